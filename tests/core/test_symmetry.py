"""Names and numbers of users, items and components do not matter."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hcpf.core.elbo import elbo
from hcpf.core.half_step import cavi_step
from core import dense
from core.worlds import ELEMENTS, PRIORS, SHAPE, SIZE, as_production, draw_model


def reordered(model, users, items, components):
    def side(old, rows):
        return dense.replace(
            old,
            a=old.a[rows][:, components],
            b=old.b[rows][:, components],
            activity_b=old.activity_b[rows],
        )

    grid = np.ix_(users, items)
    return dense.replace(
        model,
        users=side(model.users, users),
        items=side(model.items, items),
        values=model.values[grid],
        observed=model.observed[grid],
        exposed=model.exposed[grid],
    )


def after_three_steps(model, train_on):
    problem, state = as_production(model, train_on)
    for _ in range(3):
        cavi_step(state, problem, PRIORS)
    return state, elbo(state, problem, PRIORS)


@settings(max_examples=25)
@given(
    element=st.sampled_from(ELEMENTS),
    train_on=st.sampled_from(["full", "observed"]),
    excluded=st.sampled_from([0.0, 0.3]),
    users=st.permutations(range(SHAPE[0])),
    items=st.permutations(range(SHAPE[1])),
    components=st.permutations(range(SIZE)),
)
def test_a_permuted_start_gives_the_permuted_result(
    element, train_on, excluded, users, items, components
):
    model = draw_model(element, train_on, excluded=excluded)
    state, bound = after_three_steps(model, train_on)
    other, other_bound = after_three_steps(reordered(model, users, items, components), train_on)
    assert other_bound == pytest.approx(bound, rel=1e-6)
    for new, old, rows in ((other.users, state.users, users), (other.items, state.items, items)):
        np.testing.assert_allclose(new.a, old.a[rows][:, components], rtol=1e-5)
        np.testing.assert_allclose(new.mean, old.mean[rows][:, components], rtol=1e-5)
        np.testing.assert_allclose(new.activity_b, old.activity_b[rows], rtol=1e-5)


@settings(max_examples=15)
@given(seed=st.integers(0, 10**6), order=st.permutations(range(SHAPE[0])))
def test_a_problem_whose_users_are_reordered_inside_gives_them_back_in_place(seed, order):
    model = draw_model(ELEMENTS[3], excluded=0.2, seed=seed)
    plain, bound = after_three_steps(model, "full")
    problem, state = as_production(model, order=np.array(order))
    for _ in range(3):
        cavi_step(state, problem, PRIORS)
    assert elbo(state, problem, PRIORS) == pytest.approx(bound, rel=1e-6)
    back = np.argsort(order)
    np.testing.assert_allclose(state.users.mean[back], plain.users.mean, rtol=1e-5)
    np.testing.assert_allclose(state.items.mean, plain.items.mean, rtol=1e-5)

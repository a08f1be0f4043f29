"""One step of every solver, and the bound, against the dense twin."""

import pytest

from hcpf.core.elbo import elbo
from hcpf.core.half_step import cavi_step
from hcpf.elements import Poisson
from hcpf.training.element_update import update_theta
from hcpf.training.solvers.svi import SviOptions, svi_pass
from core import dense
from core.worlds import (
    ELEMENTS,
    PRIORS,
    TRAINING,
    TRAINING_IDS,
    as_production,
    assert_same_point,
    draw_model,
)

every_training = pytest.mark.parametrize(("element", "train_on"), TRAINING, ids=TRAINING_IDS)


@every_training
@pytest.mark.parametrize("excluded", [0.0, 0.2])
def test_a_step_of_coordinate_ascent_is_the_twins(element, train_on, excluded):
    model = draw_model(element, train_on, excluded=excluded)
    problem, state = as_production(model, train_on)
    for _ in range(2):
        cavi_step(state, problem, PRIORS)
        model = dense.cavi_step(model)
    assert_same_point(state, model)


@pytest.mark.parametrize("entries", [1, 2, 3])
def test_fewer_entries_than_are_done_at_a_time(entries):
    model = draw_model(Poisson(2.0), shape=(2, 1 + entries), density=1.0)
    assert model.observed.sum() == entries
    problem, state = as_production(model)
    cavi_step(state, problem, PRIORS)
    assert_same_point(state, dense.cavi_step(model))


@every_training
@pytest.mark.parametrize("excluded", [0.0, 0.2])
def test_the_bound_is_the_twins(element, train_on, excluded):
    model = draw_model(element, train_on, excluded=excluded)
    problem, state = as_production(model, train_on)
    assert elbo(state, problem, PRIORS) == pytest.approx(dense.bound(model), rel=3e-7)


@every_training
@pytest.mark.parametrize("excluded", [0.0, 0.2])
def test_a_minibatch_pass_is_the_twins(element, train_on, excluded):
    model = draw_model(element, train_on, excluded=excluded)
    problem, state = as_production(model, train_on)
    options = SviOptions(batches=4, local_sweeps=2, tau=1.5, xi=0.7)
    svi_pass(state, problem, PRIORS, options)
    model = dense.svi_pass(model, 4, 2, 0, 1.5, 0.7)
    svi_pass(state, problem, PRIORS, options)
    model = dense.svi_pass(model, 4, 2, 4, 1.5, 0.7)
    assert_same_point(state, model, rtol=1e-5)


@pytest.mark.parametrize("element", ELEMENTS, ids=lambda e: e.name)
def test_the_element_follows_the_mean_equation_and_the_bound_follows_the_element(element):
    model = draw_model(element)
    problem, state = as_production(model)
    for _ in range(3):
        cavi_step(state, problem, PRIORS)
        update_theta(state, problem)
        halfway = dense.update_users(model)
        model = dense.replace(dense.update_items(halfway), element=dense.m_step(halfway).element)
    for name, value in model.element.parameters.items():
        assert getattr(state.element, name) == pytest.approx(value, rel=2e-6)
    assert_same_point(state, model, rtol=1e-5)
    assert elbo(state, problem, PRIORS) == pytest.approx(dense.bound(model), rel=1e-6)


@every_training
@pytest.mark.parametrize("learn", [False, True])
def test_the_twins_bound_never_falls(element, train_on, learn):
    model = draw_model(element, train_on, excluded=0.1)
    before = dense.bound(model)
    for _ in range(8):
        halfway = dense.update_users(model)
        model = dense.update_items(halfway)
        if learn:
            # q(n) is the same in both: theta and the items' factors do not meet in the bound.
            model = dense.replace(model, element=dense.m_step(halfway).element)
        for after in (dense.bound(halfway), dense.bound(model)):
            assert after >= before - 1e-9 * abs(before)
            before = after

"""Elements whose theta varies: whole fits by every solver, their bits, their checkpoints."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hcpf
from core import dense
from core.dense_theta import Theta, Thetas
from core.test_symmetry import reordered
from core.worlds import (
    PRIORS,
    VARYING,
    VARYING_IDS,
    as_matrix,
    as_production,
    assert_same_point,
    draw_model,
    quick,
)
from hcpf import HCPF
from hcpf.core import threads
from hcpf.core.elbo import elbo
from hcpf.core.half_step import cavi_step
from hcpf.elements import Gamma, Geometric, InverseGaussian, Normal, Poisson
from hcpf.errors import CheckpointError
from hcpf.training import loop as fitting

SOLVERS = ["cavi", "svi", "entry", "auto"]
SOME = [Gamma(2.0, 0.5, per="both"), Normal(1.0, 2.0, per="item"), Geometric(0.4, per="user")]
SOME_IDS = [f"{element.name}-{element.per}" for element in SOME]


def groups_of(fitted):
    sides = [side.theta for fit in fitted.posteriors_ for side in (fit.users, fit.items)]
    return [groups for groups in sides if groups is not None]


def bits(fitted):
    """Everything a fit gives back, but for the seconds."""
    sides = [side for fit in fitted.posteriors_ for side in (fit.users, fit.items)]
    return (
        [getattr(s, n).tobytes() for s in sides for n in ("shape_", "mean_", "activity_b")],
        [(g.chi.tobytes(), g.nu.tobytes(), g.chi0, g.nu0) for g in groups_of(fitted)],
        fitted.element_,
        [(c.iteration, c.elbo, c.validation_log_likelihood) for c in fitted.history_],
    )


@pytest.mark.parametrize("element", VARYING, ids=VARYING_IDS)
def test_the_stochastic_solvers_give_sensible_predictions(element):
    solver = "entry" if element.per == "item" else "svi"
    matrix = as_matrix(draw_model(element, shape=(40, 12)))
    options = {"batches": 4} if solver == "svi" else {"tau": 50.0}
    found = quick(element=element, solver=solver, max_iter=10, **options).fit(matrix)
    assert all(np.isfinite(check.elbo) for check in found.history_)
    assert found.history_[-1].elbo > found.history_[0].elbo - 0.02 * abs(found.history_[0].elbo)
    pairs = matrix.nonzero()
    assert np.mean(found.predict(*pairs)) == pytest.approx(matrix.data.mean(), rel=0.3)
    everyone = np.arange(40)[:, None], np.arange(12)
    assert found.predict_proba(*everyone).mean() == pytest.approx(matrix.nnz / 480, rel=0.3)


@pytest.fixture(scope="module")
def data():
    # Large enough for "auto" to begin with minibatches.
    return hcpf.simulate(
        450, 40, n_components=3, density=0.3, element=Gamma(2.0, 0.5), random_state=5
    ).interactions


def fit(data, **changes):
    defaults = {"element": Gamma(per="both"), "max_iter": 2, "tol": 0.0, "random_state": 11}
    defaults |= {"batches": 5, "validation_fraction": 0.1, "n_fits": 1, "n_threads": 1}
    return HCPF(4, **(defaults | changes)).fit(data)


@pytest.mark.parametrize("solver", SOLVERS)
def test_threads_and_repetition_do_not_change_a_bit(data, solver, monkeypatch):
    monkeypatch.setattr(threads, "_WORTH_WAKING", 0.0)
    one = bits(fit(data, solver=solver))
    assert bits(fit(data, solver=solver, n_threads=2)) == one
    assert bits(fit(data, solver=solver)) == one
    assert bits(fit(data, solver=solver, random_state=12)) != one


@pytest.mark.parametrize("solver", ["cavi", "auto", "entry"])
def test_a_run_that_was_killed_goes_on_to_the_same_bits(data, solver, tmp_path, monkeypatch):
    changes = {"solver": solver, "n_fits": 2, "max_iter": 5, "checkpoint_every": 1}
    if solver == "cavi":  # small, and long enough for another dispersion
        data = as_matrix(draw_model(Gamma(2.0, 0.5, per="item"), shape=(30, 20)))
    else:
        data = hcpf.Interactions.from_matrix(data.matrix.ceil())
        changes["element"] = Poisson(per="both")
    expected = bits(fit(data, **changes))
    one_pass, left = fitting._one_pass, [0]

    def until_the_end(run, options):
        left[0] -= 1
        if left[0] < 0:
            raise RuntimeError("killed")
        one_pass(run, options)

    monkeypatch.setattr(fitting, "_one_pass", until_the_end)
    for _ in range(3):  # three passes at a time, through both fits
        left[0] = 3
        with pytest.raises(RuntimeError, match="killed"):
            fit(data, checkpoint=tmp_path, **changes)
    monkeypatch.undo()
    assert bits(fit(data, checkpoint=tmp_path, **changes)) == expected


def test_a_checkpoint_of_another_way_to_vary_is_refused(data, tmp_path):
    fit(data, checkpoint=tmp_path)
    for per in ("user", "item", None):
        with pytest.raises(CheckpointError, match="other data or settings"):
            fit(data, checkpoint=tmp_path, element=Gamma(per=per))


def test_a_checkpoint_of_another_start_is_refused(data, tmp_path):
    started = fit(data, warm_start=True, checkpoint=tmp_path)
    started.set_params(checkpoint=tmp_path / "warm").fit(data)
    started.posterior_.items.theta.chi[3] *= 1.5
    with pytest.raises(CheckpointError, match="other data or settings"):
        started.fit(data)


@settings(max_examples=12)
@given(
    element=st.sampled_from(VARYING),
    users=st.permutations(range(14)),
    items=st.permutations(range(11)),
)
def test_a_permuted_start_gives_the_permuted_result(element, users, items):
    model = draw_model(element, excluded=0.2)
    other = reordered(model, users, items, [0, 1, 2])
    thetas = Thetas(*map(at, (model.thetas.users, model.thetas.items), (users, items)))
    results = []
    for twin in (model, dense.replace(other, thetas=thetas)):
        problem, state = as_production(twin)
        for _ in range(3):
            cavi_step(state, problem, PRIORS)
        results.append((state, elbo(state, problem, PRIORS)))
    (state, bound), (moved, moved_bound) = results
    assert moved_bound == pytest.approx(bound, rel=1e-6)
    np.testing.assert_allclose(moved.users.mean, state.users.mean[users], rtol=1e-5)
    np.testing.assert_allclose(moved.items.mean, state.items.mean[items], rtol=1e-5)
    for is_users, rows in ((True, users), (False, items)):
        old, new = state.varying.side(is_users), moved.varying.side(is_users)
        if old is not None:
            scale = np.abs(old.chi).max()
            np.testing.assert_allclose(new.chi, old.chi[rows], rtol=1e-5, atol=1e-5 * scale)
            np.testing.assert_allclose(new.nu, old.nu[rows], rtol=1e-5)


def at(theta, rows):
    return theta and Theta(theta.chi[rows], theta.nu[rows], theta.chi0, theta.nu0)


@pytest.mark.parametrize("element", SOME, ids=SOME_IDS)
def test_users_reordered_inside_come_back_in_place(element):
    model = draw_model(element)
    order = np.random.default_rng(0).permutation(14)
    problem, state = as_production(model, order=order)
    for _ in range(2):
        cavi_step(state, problem, PRIORS)
        model = dense.cavi_step(model)
    assert elbo(state, problem, PRIORS) == pytest.approx(dense.bound(model), rel=1e-6)
    np.testing.assert_allclose(state.users.mean[np.argsort(order)], model.users.mean, rtol=1e-5)
    np.testing.assert_allclose(state.items.mean, model.items.mean, rtol=1e-5)


FAR = {
    Gamma(3.0, 1.0): 12.0, InverseGaussian(0.2, 9.0): 3.0, Normal(1.0, 2.0): 8.0, Poisson(8.0): 2.0
}  # fmt: skip
"""How far to move the means, as logarithms where they multiply."""


@pytest.mark.parametrize("per", ["item", "user", "both"])
@pytest.mark.parametrize("element", FAR, ids=lambda e: e.name)
def test_rates_far_below_the_tables_are_the_twins(element, per):
    model = draw_model(element.varying(per), density=0.3, shape=(9, 8))
    rng = np.random.default_rng(3)

    def far(theta):
        if theta is None:
            return None
        moved = np.abs(FAR[element] * rng.standard_normal(len(theta.chi)))
        centre = theta.chi / theta.nu
        centre = centre + moved if element.name == "normal" else centre * np.exp(moved)
        return dense.replace(theta, chi=centre * theta.nu)

    thetas = Thetas(far(model.thetas.users), far(model.thetas.items))
    model = dense.replace(model, thetas=thetas)
    problem, state = as_production(model)
    shift = state.users.shift[:, None] + state.items.shift
    shift = shift + problem.tables.cross * np.outer(state.users.cross, state.items.cross)
    assert shift.min() < -35.0
    assert elbo(state, problem, PRIORS) == pytest.approx(dense.bound(model), rel=2e-6)
    cavi_step(state, problem, PRIORS)
    assert_same_point(state, dense.cavi_step(model), rtol=2e-5)


@pytest.mark.parametrize("per", ["item", "both"])
@pytest.mark.parametrize("kind", [Gamma, InverseGaussian, Normal], ids=lambda kind: kind.name)
def test_the_unit_of_the_values_does_not_matter(kind, per):
    matrix = as_matrix(draw_model(Gamma(6.0, 2.0), shape=(30, 20)))
    means = np.exp(0.8 * np.random.default_rng(3).standard_normal(50))
    matrix.data *= means[matrix.nonzero()[0]] * means[30 + matrix.nonzero()[1]]
    found = []
    for unit in (1e-7, 1e7) if kind is Normal else (1e-7, 1e7, 1e-50, 1e50):
        fitted = quick(element=kind(per=per), max_iter=12).fit(matrix * unit)
        mean = fitted.element_at(np.arange(30)[:, None], np.arange(20)).mean / unit
        found.append((fitted.history_[-1].elbo + matrix.nnz * np.log(unit), mean))
    for bound, mean in found[1:]:  # the search for the best prior is not exact
        assert bound == pytest.approx(found[0][0], rel=1e-3)
        assert np.corrcoef(mean.ravel(), found[0][1].ravel())[0, 1] > 0.98
        np.testing.assert_allclose(mean.mean(), found[0][1].mean(), rtol=0.05)

"""Partial pooling: whole fits by every solver, their bits, their checkpoints, any unit."""

import numpy as np
import pytest

import hcpf
from core import dense
from core.dense_theta import Thetas
from core.worlds import as_matrix, as_production, assert_same_point, draw_model
from hcpf import SVI, Algorithm1, Checkpoints
from hcpf.core import threads
from hcpf.core.collective import LOCAL
from hcpf.core.value_model import ValueModel
from hcpf.elements import Gamma, InverseGaussian, Normal, Poisson
from hcpf.errors import CheckpointError
from hcpf.training import loop
from hcpf.training.solvers.cavi import cavi_pass
from model.small import VARYING, name_of, quick, settings_of
from prepared import prepared

SOME = [
    one
    for one in VARYING
    if (one.element.name, one.vary_by)
    in {
        ("gamma", "both"), ("gamma", "item"), ("normal", "both"), ("inverse_gaussian", "both"),
        ("poisson", "user"), ("binomial", "item"), ("logarithmic", "item"), ("geometric", "user"),
    }
]  # fmt: skip
"""Value models for what takes long: every form of theta, and both stochastic solvers."""
SOLVERS = ["cavi", SVI(batches=5), "algorithm1", "auto"]


def thetas_of(fitted):
    sides = [side.theta for fit in fitted.posteriors_ for side in (fit.users, fit.items)]
    return [theta for theta in sides if theta is not None]


def bits(fitted):
    """Everything a fit gives back, but for the seconds."""
    sides = [side for fit in fitted.posteriors_ for side in (fit.users, fit.items)]
    return (
        [getattr(s, n).tobytes() for s in sides for n in ("shape_", "mean_", "activity_b")],
        [(t.chi.tobytes(), t.nu.tobytes(), t.chi0, t.nu0) for t in thetas_of(fitted)],
        fitted.element_,
        [(c.iteration, c.elbo, c.validation_log_likelihood) for c in fitted.history_],
    )


@pytest.mark.parametrize(
    "value_model",
    [pytest.param(one, marks=() if one in SOME else pytest.mark.slow) for one in VARYING],
    ids=name_of,
)
def test_the_stochastic_solvers_give_sensible_predictions(value_model):
    solver = Algorithm1(tau=50.0) if value_model.vary_by == "item" else SVI(batches=4)
    matrix = as_matrix(draw_model(value_model, shape=(40, 12)))
    found = quick(**settings_of(value_model), solver=solver, max_iter=6).fit(matrix)
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
    defaults = {"element": "gamma", "vary_by": "both", "max_iter": 2, "tol": 0.0}
    defaults |= {"random_state": 11}
    defaults |= {"validation": 0.1, "n_fits": 1, "n_threads": 1}
    return prepared(4, **(defaults | changes)).fit(data)


@pytest.mark.parametrize("solver", SOLVERS)
def test_threads_and_repetition_do_not_change_a_bit(data, solver, monkeypatch):
    monkeypatch.setattr(threads, "_WORTH_WAKING", 0.0)
    one = bits(fit(data, solver=solver))
    assert bits(fit(data, solver=solver, n_threads=2)) == one


@pytest.mark.parametrize("solver", ["cavi", "auto", "algorithm1"])
def test_a_run_that_was_killed_goes_on_to_the_same_bits(data, solver, tmp_path, monkeypatch):
    changes = {"solver": solver, "n_fits": 2, "max_iter": 5}
    if solver == "auto":
        data = hcpf.Interactions.from_matrix(data.matrix.ceil())
        changes |= {"element": "poisson", "max_iter": 3}  # two of minibatches, one of all users
    else:  # small, and long enough for another dispersion
        data = as_matrix(draw_model(Gamma(2.0, 0.5), shape=(30, 20)))
        changes["vary_by"] = "item" if solver == "cavi" else "both"
    expected = bits(fit(data, **changes))
    make_pass, left = loop._make_pass, [0]

    def until_the_end(run):
        left[0] -= 1
        if left[0] < 0:
            raise RuntimeError("killed")
        make_pass(run)

    monkeypatch.setattr(loop, "_make_pass", until_the_end)
    for _ in range(3 if solver != "auto" else 2):  # a few passes at a time, through both fits
        left[0] = 3 if solver != "auto" else 2
        with pytest.raises(RuntimeError, match="killed"):
            fit(data, checkpoint=Checkpoints(tmp_path, every_passes=1), **changes)
    monkeypatch.undo()
    assert bits(fit(data, checkpoint=tmp_path, **changes)) == expected


def test_a_checkpoint_of_another_value_model_is_refused(data, tmp_path):
    fit(data, checkpoint=tmp_path)
    for changes in ({"vary_by": "user"}, {"vary_by": "item"}, {"vary_by": None}, {"hurdle": True}):
        with pytest.raises(CheckpointError, match="other data or settings"):
            fit(data, checkpoint=tmp_path, **changes)


def test_a_checkpoint_of_another_start_is_refused(data, tmp_path):
    started = fit(data, warm_start=True, checkpoint=tmp_path)
    started.set_params(checkpoint=tmp_path / "warm").fit(data)
    started.posterior_.items.theta.chi[3] *= 1.5
    with pytest.raises(CheckpointError, match="other data or settings"):
        started.fit(data)


FAR = {
    Gamma(3.0, 1.0): 12.0, InverseGaussian(0.2, 9.0): 3.0, Normal(1.0, 2.0): 8.0, Poisson(8.0): 2.0
}  # fmt: skip
"""How far to move the means, as logarithms where they multiply."""


@pytest.mark.parametrize("vary_by", ["item", "user", "both"])
@pytest.mark.parametrize("element", FAR, ids=lambda e: e.name)
def test_rates_far_below_the_tables_are_the_twins(element, vary_by):
    model = draw_model(ValueModel(element, vary_by=vary_by), density=0.3, shape=(9, 8))
    rng = np.random.default_rng(3)

    def far(theta):
        if theta is None:
            return None
        moved = np.abs(FAR[element] * rng.standard_normal(len(theta.chi)))
        center = theta.chi / theta.nu
        center = center + moved if element.name == "normal" else center * np.exp(moved)
        return dense.replace(theta, chi=center * theta.nu)

    thetas = Thetas(far(model.thetas.users), far(model.thetas.items))
    model = dense.replace(model, thetas=thetas)
    shard, state = as_production(model)
    users, items = state.users.factors, state.items.factors
    shift = users.shift[:, None] + items.shift
    shift = shift + shard.tables.arrays.cross * np.outer(users.cross, items.cross)
    assert shift.min() < -35.0
    assert state.elbo(shard, LOCAL) == pytest.approx(dense.elbo(model), rel=2e-6)
    cavi_pass(state, shard)
    assert_same_point(state, dense.cavi_pass(model), rtol=2e-5)


@pytest.mark.parametrize("vary_by", [pytest.param("item", marks=pytest.mark.slow), "both"])
@pytest.mark.parametrize("kind", [Gamma, InverseGaussian, Normal], ids=lambda kind: kind.name)
def test_the_unit_of_the_values_does_not_matter(kind, vary_by):
    matrix = as_matrix(draw_model(Gamma(6.0, 2.0), shape=(30, 20)))
    means = np.exp(0.8 * np.random.default_rng(3).standard_normal(50))
    matrix.data *= means[matrix.nonzero()[0]] * means[30 + matrix.nonzero()[1]]
    found = []
    for unit in (1e-7, 1e7) if kind is Normal else (1e-50, 1e50):
        fitted = quick(element=kind(), vary_by=vary_by, max_iter=12).fit(matrix * unit)
        mean = fitted.element_at(np.arange(30)[:, None], np.arange(20)).mean / unit
        found.append((fitted.history_[-1].elbo + matrix.nnz * np.log(unit), mean))
    for elbo, mean in found[1:]:  # the search for the best prior is not exact
        assert elbo == pytest.approx(found[0][0], rel=1e-3)
        assert np.corrcoef(mean.ravel(), found[0][1].ravel())[0, 1] > 0.98
        np.testing.assert_allclose(mean.mean(), found[0][1].mean(), rtol=0.05)

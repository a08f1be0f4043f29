"""The seam between workers: the same loop on two and three workers as on one."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from hcpf import elements
from hcpf.core.axis import NO_EXPOSURE, Exposure
from hcpf.core.shard import ShardData
from hcpf.errors import CheckpointError, ParameterError
from hcpf.training.ensemble import Job, Part, run_fits
from hcpf.training.held_out import split_validation
from hcpf.training.resolve import resolve_priors, resolve_value_model
from hcpf.training.settings import SVI, FitPlan
from training.workers import (
    WorkerLostError,
    joined_users,
    run_alone,
    run_together,
    with_checkpoint,
)

SHAPE, SIZE = (240, 50), 4


def draw(kind="gamma", density=0.1, seed=0):
    rng = np.random.default_rng(seed)
    users, items = rng.gamma(0.4, 1.0, (SHAPE[0], 3)), rng.gamma(0.4, 1.0, (SHAPE[1], 3))
    rate = users @ items.T
    n = rng.poisson(rate * density / rate.mean())
    row, col = np.nonzero(n)
    n = n[row, col]
    effect = np.exp(0.4 * rng.standard_normal(SHAPE[0]))[row]
    values = {
        "gamma": lambda: 3.0 * effect * rng.gamma(2.0 * n),
        "normal": lambda: rng.normal(2.0 * n + effect, np.sqrt(n)),
        "counts": lambda: rng.poisson(1.5 * effect * n) + n,
        "large": lambda: rng.poisson(300.0 * effect * n) + n,
    }[kind]()
    return sparse.csr_array((values.astype(float), (row, col)), shape=SHAPE)


def prepare(
    element, kind="gamma", *, vary_by=None, hurdle=False, train_on="full", solver="cavi",
    excluded=0.0, validation=0.0, density=0.1, passes=14, tempering=2.0, learn=True,
    with_exposure=False, **settings,
):  # fmt: skip
    """The data, value model, priors and plan that workers share."""
    plan = FitPlan(
        SIZE, element=element, vary_by=vary_by, hurdle=hurdle, train_on=train_on, n_fits=1,
        solver=SVI(batches=5, local_passes=2) if solver == "svi" else solver,
        max_iter=passes, tol=0.0, check_every=passes, learn_element=learn,
        validation_fraction=validation, tempering=1.0 if train_on == "observed" else tempering,
        progress=False, **settings,
    )  # fmt: skip
    matrix, rng = draw(kind, density), np.random.default_rng(3)
    marks = sparse.random_array(SHAPE, density=excluded, rng=rng, format="csr")
    exclude = marks if excluded else None
    exposure = NO_EXPOSURE
    if with_exposure:
        exposure = Exposure(*(np.exp(rng.normal(1.0, 0.7, size)) for size in SHAPE))
    split = split_validation(matrix, None, exclude, validation, train_on, rng, exposure)
    value_model = resolve_value_model(plan, split)
    priors = resolve_priors("auto", split, value_model, SIZE)
    return split, value_model, priors, plan


def assert_same_fit(outcomes, alone, rtol=1e-5):
    for outcome in outcomes:
        for mine, other in zip(outcome.history, alone.history, strict=True):
            assert mine.iteration == other.iteration
            assert mine.elbo == pytest.approx(other.elbo, rel=rtol)
            if other.validation_log_likelihood is not None:
                score = other.validation_log_likelihood
                assert mine.validation_log_likelihood == pytest.approx(score, rel=1e-4)
        # Wider than the ELBO: it is flat in the dispersion, whose search stops at a step size.
        for name, value in alone.value_model.element.parameters.items():
            assert outcome.value_model.element.parameters[name] == pytest.approx(value, rel=5e-3)
    items = alone.posterior.items.mean
    scale = items.max()
    np.testing.assert_allclose(
        outcomes[0].posterior.items.mean, items, rtol=5e-2, atol=1e-3 * scale
    )
    users = joined_users(outcomes, lambda side: side.mean)
    expected = alone.posterior.users.mean
    np.testing.assert_allclose(users, expected, rtol=5e-2, atol=1e-3 * expected.max())


def assert_equal_to_the_bit(one, other):
    for mine, theirs in zip(one, other, strict=True):
        for side in ("users", "items"):
            a, b = getattr(mine.posterior, side), getattr(theirs.posterior, side)
            for name in ("shape_", "mean_", "activity_b"):
                np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
            assert (a.theta is None) == (b.theta is None)
            if a.theta is not None:
                np.testing.assert_array_equal(a.theta.chi, b.theta.chi)
                np.testing.assert_array_equal(a.theta.nu, b.theta.nu)
        assert [c.elbo for c in mine.history] == [c.elbo for c in theirs.history]
        assert mine.value_model == theirs.value_model


CASES = {
    "cavi": {"element": "gamma"},
    "svi": {"element": "gamma", "solver": "svi"},
    "momentum": {"element": "gamma", "solver": "auto"},
    "minibatches, then momentum": {"element": "gamma", "solver": "auto", "start": "noise"},
    "clusters": {"element": "gamma", "solver": "auto", "start": "clusters"},
    "excluded pairs": {"element": "gamma", "excluded": 0.1},
    "excluded pairs, svi": {"element": "gamma", "excluded": 0.1, "solver": "svi"},
    "exposures": {"element": "gamma", "excluded": 0.1, "with_exposure": True, "vary_by": "item"},
    "exposures, svi": {"element": "gamma", "with_exposure": True, "solver": "svi"},
    "exposures, observed only": {
        "element": "gamma", "with_exposure": True, "train_on": "observed",
    },
    "observed only": {"element": "normal", "kind": "normal", "train_on": "observed"},
    "observed only, momentum": {"element": "gamma", "train_on": "observed", "solver": "auto"},
    "validation": {"element": "gamma", "validation": 0.15, "vary_by": "item"},
    "per user": {"element": "gamma", "vary_by": "user"},
    "per item": {"element": "negative_binomial", "kind": "counts", "vary_by": "item"},
    "both, gamma": {"element": "gamma", "vary_by": "both"},
    "both, inverse Gaussian": {"element": "inverse_gaussian", "vary_by": "both"},
    "both, normal": {"element": "normal", "kind": "normal", "vary_by": "both"},
    "both, Poisson, svi": {
        "element": "poisson", "kind": "counts", "vary_by": "both", "solver": "svi",
    },
    "both, hurdle": {"element": "gamma", "vary_by": "both", "hurdle": True},
    "hurdle": {"element": "poisson", "kind": "counts", "hurdle": True},
    "dense, theta with momentum": {
        "element": "gamma", "vary_by": "both", "density": 1.5, "solver": "auto",
    },
    "by mode": {"element": "zero_truncated_poisson", "kind": "counts", "vary_by": "item"},
    "Poisson factorization": {"element": "degenerate", "kind": "counts"},
    "presence": {"element": "presence", "kind": "counts"},
    "retabulation": {
        "element": elements.NegativeBinomial(1.0, 0.5), "kind": "large", "density": 0.3,
        "passes": 8,
    },
    "many values, summed directly": {
        "element": elements.Poisson(1.0), "kind": "large", "density": 0.3, "passes": 8,
    },
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_two_workers_fit_as_one_does(case):
    shared = prepare(**CASES[case])
    alone = run_alone(*shared)
    assert_same_fit(run_together(*shared, 2), alone)


@pytest.mark.parametrize("case", ["svi", "both, gamma", "excluded pairs", "validation"])
def test_three_workers_fit_as_one_does_and_repeat_themselves_to_the_bit(case):
    shared = prepare(**CASES[case])
    outcomes = run_together(*shared, 3)
    assert_same_fit(outcomes, run_alone(*shared))
    assert_equal_to_the_bit(outcomes, run_together(*shared, 3))


def test_all_workers_have_the_same_items():
    first, *others = run_together(*prepare("gamma", vary_by="both", solver="auto"), 3)
    for other in others:
        np.testing.assert_array_equal(first.posterior.items.mean_, other.posterior.items.mean_)
        np.testing.assert_array_equal(
            first.posterior.items.theta.chi, other.posterior.items.theta.chi
        )
        assert first.value_model == other.value_model


def test_the_cases_cover_what_they_are_named_after():
    """The dispersion is learned and the tables are made again in the cases that say so."""
    gamma = run_alone(*prepare("gamma"))
    start = prepare("gamma")[1].element
    assert gamma.value_model.element.shape != pytest.approx(start.shape, rel=0.01)
    split, value_model, priors, plan = prepare(**CASES["retabulation"])
    from hcpf.core.shard import ShardSource

    laid_out = []
    original = ShardSource.lay_out
    try:
        ShardSource.lay_out = lambda self, *a: laid_out.append(1) or original(self, *a)
        run_alone(split, value_model, priors, plan)
    finally:
        ShardSource.lay_out = original
    assert len(laid_out) > 1


def test_a_worker_without_entries_takes_part():
    split, *rest = prepare("gamma", vary_by="item")
    matrix = split.training.tolil()
    matrix[::3] = 0.0
    split = replace(split, training=sparse.csr_array(matrix.tocsr()))
    split.training.eliminate_zeros()
    assert_same_fit(run_together(split, *rest, 3), run_alone(split, *rest))


@pytest.mark.parametrize(
    ("element", "kind", "settings"),
    [
        ("gamma", "gamma", {}),
        ("negative_binomial", "counts", {}),
        ("gamma", "gamma", {"vary_by": "user"}),
        ("gamma", "gamma", {"combine": "best"}),
        ("normal", "normal", {"train_on": "observed"}),
    ],
)
def test_workers_combine_several_fits_as_one_does(element, kind, settings):
    split, value_model, priors, plan = prepare(element, kind, passes=8, **settings)
    plan = replace(plan, n_fits=3)
    seeds = np.random.default_rng(7).integers(1 << 63, size=(3, 2))
    alone = run_fits(Part(ShardData.whole(split.training)), Job(value_model, priors, plan, seeds))
    first, *others = run_together(split, value_model, priors, plan, 3)
    assert len(first.posteriors) == len(alone.posteriors)
    for other in others:
        assert other.value_model == first.value_model
    for name, value in alone.value_model.element.parameters.items():
        assert first.value_model.element.parameters[name] == pytest.approx(value, rel=1e-3)


def test_what_is_exchanged_does_not_grow_with_the_users():
    def bytes_exchanged(repeat):
        split, *rest = prepare("gamma", passes=3, learn=False)
        training = sparse.csr_array(sparse.vstack([split.training] * repeat))
        collectives = []
        run_together(replace(split, training=training), *rest, 2, collectives=collectives)
        return [call for call in collectives[0].calls if call[0] in ("sum_rows", "gather")]

    assert bytes_exchanged(1) == bytes_exchanged(3)


@pytest.mark.parametrize("moment", [0.5, 0.7, 0.9])
def test_a_group_that_lost_a_worker_resumes_to_the_same_bits(tmp_path, moment):
    shared = prepare("gamma", vary_by="both", solver="auto", passes=20)
    collectives = []
    whole = run_together(*shared, 2, collectives=collectives)
    *rest, plan = shared
    saving = with_checkpoint(plan, tmp_path)
    with pytest.raises(WorkerLostError):
        run_together(*rest, saving, 2, lost_after=round(moment * len(collectives[0].calls)))
    assert (tmp_path / "fit-0.json").exists()
    assert_equal_to_the_bit(run_together(*rest, saving, 2), whole)
    kept = {
        "fit-0.json",
        *(f"fit-0.pass-{p}.rank-{r}.safetensors" for p in (15, 20) for r in (0, 1)),
    }
    assert {file.name for file in tmp_path.iterdir()} == kept


def test_a_damaged_file_of_one_worker_takes_all_to_the_commit_before(tmp_path, caplog):
    split, value_model, priors, plan = prepare("gamma", passes=10)
    saving = with_checkpoint(plan, tmp_path)
    whole = run_together(split, value_model, priors, saving, 2)
    damaged = tmp_path / "fit-0.pass-10.rank-1.safetensors"
    damaged.write_bytes(damaged.read_bytes()[:-100])
    again = run_together(split, value_model, priors, saving, 2)
    assert_equal_to_the_bit(again, whole)
    assert "cannot be read" in caplog.text
    for file in tmp_path.glob("*.safetensors"):
        file.write_bytes(b"nothing")
    with pytest.raises(CheckpointError, match="cannot be read"):
        run_together(split, value_model, priors, saving, 2)


def test_another_number_of_workers_is_refused(tmp_path):
    split, value_model, priors, plan = prepare("gamma", passes=5)
    saving = with_checkpoint(plan, tmp_path)
    run_together(split, value_model, priors, saving, 2)
    with pytest.raises(CheckpointError, match="written by 2 workers, not by 3"):
        run_together(split, value_model, priors, saving, 3)


def test_algorithm_1_needs_a_single_worker():
    with pytest.raises(ParameterError, match=r"Algorithm 1 .* one worker"):
        run_together(*prepare("gamma", solver="algorithm1"), 2)

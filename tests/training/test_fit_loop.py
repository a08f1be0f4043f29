"""Around the passes of a fit: stopping, history, held-out pairs, warm starts, several fits."""

import logging
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse

import hcpf
from core import dense
from core.worlds import as_matrix, as_posterior, at_fit, draw_model, excluded_matrix
from hcpf import HCPF, CompoundPoisson, Interactions, Priors
from hcpf.elements import Gamma, Normal, Poisson, Presence
from hcpf.errors import InputError
from hcpf.model.fitted import FittedModel
from hcpf.model.inspect import describe_fit
from hcpf.training.held_out import split_validation
from model import small
from model.small import PRIORS

SOLVERS = ["cavi", "svi", "auto", "algorithm1"]


def quick(n_components=3, **settings):
    return small.quick(n_components, **({"element": "poisson"} | settings))


@pytest.fixture(scope="module")
def simulated():
    return hcpf.simulate(
        120, 60, n_components=3, density=0.15, element=Poisson(3.0), random_state=2
    )


# -- stopping and history -------------------------------------------------------------------------


@pytest.mark.parametrize("solver", SOLVERS)
def test_without_a_tolerance_all_passes_are_made(simulated, solver):
    fitted = quick(solver=solver, max_iter=7, check_every=3).fit(simulated.interactions)
    assert [check.iteration for check in fitted.history_] == [3, 6, 7]
    assert fitted.n_iter_ == 7
    seconds = [check.seconds for check in fitted.history_]
    assert seconds == sorted(seconds)
    assert seconds[0] > 0
    assert all(check.validation_log_likelihood is None for check in fitted.history_)


def test_a_tolerance_stops_early_and_the_last_line_belongs_to_the_posterior():
    model = draw_model(Gamma(2.0, 0.5))
    fitted = quick(element=Gamma(2.0, 0.5), priors=PRIORS, tol=1e-3, max_iter=500).fit(
        as_matrix(model)
    )
    assert 2 * 5 <= fitted.n_iter_ < 500
    assert fitted.n_iter_ == fitted.history_[-1].iteration
    assert fitted.history_[-1].elbo == pytest.approx(dense.elbo(at_fit(model, fitted)), rel=1e-6)
    old, new = fitted.history_[-2:]
    assert abs(new.elbo - old.elbo) < 1e-3 * 5 * abs(new.elbo)


def test_converged_means_all_fits_and_the_last_pass_counts(simulated):
    settings = {"tol": 1e-3, "check_every": 1}
    one = quick(max_iter=100, **settings).fit(simulated.interactions)
    at_limit = quick(max_iter=one.n_iter_, **settings).fit(simulated.interactions)
    assert one.converged_
    assert at_limit.converged_
    assert describe_fit(at_limit.model_)["ended"] == "converged"
    two = quick(max_iter=one.n_iter_, n_fits=2, **settings).fit(simulated.interactions)
    assert two.history_[-1].iteration == one.n_iter_  # the second fit takes longer
    assert not two.converged_
    assert describe_fit(two.model_)["ended"] == "max_iter"


def test_the_validation_likelihood_decides_when_there_is_one(simulated):
    fitted = quick(validation=0.1, tol=1e-4, max_iter=300).fit(simulated.interactions)
    scores = [check.validation_log_likelihood for check in fitted.history_]
    assert fitted.n_iter_ < 300
    assert scores[-1] - scores[-2] < 1e-4 * 5 * abs(scores[-1])
    assert all(after - before >= 1e-4 * 5 * abs(after) for before, after in pairwise(scores[:-1]))


def test_progress_goes_to_the_log_not_to_the_output(simulated, caplog, capsys):
    with caplog.at_level(logging.INFO, logger="hcpf"):
        quick(max_iter=5).fit(simulated.interactions)
    assert "pass 5" in caplog.text
    assert capsys.readouterr() == ("", "")


# -- held-out pairs -------------------------------------------------------------------------------


def test_a_fraction_of_zero_holds_nothing_out():
    model = draw_model(Poisson(0.8))
    split = split_validation(as_matrix(model), None, None, 0.0, "full", np.random.default_rng(0))
    assert split.validation is None
    assert split.excluded is None
    assert split.training.nnz == model.observed.sum()


def test_held_out_pairs_are_missing_ones_too_and_weighted_to_the_sparsity():
    matrix = as_matrix(draw_model(Poisson(0.8), shape=(60, 50), density=0.1))
    exclude = sparse.csr_array(([1.0, 1.0], ([0, 0], [1, 2])), shape=matrix.shape)
    split = split_validation(matrix, None, exclude, 0.25, "full", np.random.default_rng(0))
    held = split.validation
    size = len(held.users)
    assert size == round(0.25 * matrix.nnz)
    assert split.training.nnz == matrix.nnz - size
    assert np.all(matrix[held.users, held.items] == held.values)
    assert np.all(split.training[held.users, held.items] == 0)
    pairs = set(zip(held.missing_users, held.missing_items, strict=True))
    assert len(pairs) == size
    assert not pairs & set(zip(*matrix.nonzero(), strict=True))
    assert not pairs & {(0, 1), (0, 2)}
    # The missing pairs stand for the same share of all missing pairs as the observed ones do.
    missing = 60 * 50 - matrix.nnz - 2
    share = size / matrix.nnz
    assert held.missing_weight * size == pytest.approx(share * missing, rel=1e-12)
    assert split.excluded.nnz == 2 * size + 2


@pytest.mark.parametrize("train_on", ["full", "observed"])
def test_the_validation_likelihood_is_that_of_the_pairs(train_on):
    model = draw_model(Gamma(2.0, 0.5), shape=(40, 30), density=0.3)
    matrix = as_matrix(model)
    fitted = quick(element=Gamma(2.0, 0.5), train_on=train_on, solver="svi", validation=0.2).fit(
        matrix
    )
    rng = np.random.default_rng(0)
    held = split_validation(matrix, None, None, 0.2, train_on, rng).validation
    rate = fitted.rate(held.users, held.items)
    total = CompoundPoisson(rate, fitted.element_).log_density(held.values).sum()
    if train_on == "full":
        missing = fitted.rate(held.missing_users, held.missing_items)
        total -= held.missing_weight * missing.sum()
    else:
        assert len(held.missing_users) == 0
    score = fitted.history_[-1].validation_log_likelihood
    assert score == pytest.approx(total / len(held.users), rel=1e-5)


@pytest.mark.parametrize("solver", ["cavi", "svi", "algorithm1"])
def test_excluded_and_validation_pairs_take_no_part(solver):
    # Whatever stands at such a pair, observed or not, the fit is the same.
    model = draw_model(Gamma(2.0, 0.5), excluded=0.2)
    exclude = excluded_matrix(model)
    settings = {
        "element": Gamma(2.0, 0.5),
        "solver": solver,
        "priors": PRIORS,
        "learn_element": False,
    }
    fitted = quick(**settings).fit(as_matrix(model), exclude=exclude)
    filled = as_matrix(model) + 7.0 * exclude
    again = quick(**settings).fit(filled, exclude=exclude)
    assert np.array_equal(fitted.posterior_.users.mean_, again.posterior_.users.mean_)
    held = sparse.csr_array(([3.0, 1.0], ([5, 6], [6, 2])), shape=filled.shape)
    one = quick(**settings).fit(as_matrix(model), exclude=exclude, validation=held)
    two = quick(**settings).fit(filled, exclude=exclude, validation=held)
    assert np.array_equal(one.posterior_.items.mean_, two.posterior_.items.mean_)
    assert one.history_[-1].elbo == two.history_[-1].elbo


def test_a_fit_with_excluded_and_validation_pairs_is_the_twins():
    model = draw_model(Normal(0.7, 2.0), excluded=0.2)
    fitted = quick(
        element=Normal(0.7, 2.0), priors=PRIORS, warm_start=True, learn_element=False, max_iter=4
    )
    data = Interactions.from_matrix(as_matrix(model))
    fitted.model_ = FittedModel(
        model.value_model, PRIORS, (as_posterior(model),), data.users, data.items
    )
    held = np.zeros_like(model.observed)
    held[5, 6] = held[6, 2] = True
    validation = sparse.csr_array((np.ones(2), np.nonzero(held)), shape=held.shape)
    fitted.fit(as_matrix(model), exclude=excluded_matrix(model), validation=validation)
    rng = np.random.default_rng(0)
    split = split_validation(as_matrix(model), validation, excluded_matrix(model), 0.0, "full", rng)
    held[split.validation.missing_users, split.validation.missing_items] = True
    assert held.sum() == 4
    model = dense.replace(model, observed=model.observed & ~held, included=model.included & ~held)
    for _ in range(4):
        model = dense.cavi_pass(model)
    np.testing.assert_allclose(fitted.posterior_.users.mean, model.users.mean, rtol=1e-5)
    np.testing.assert_allclose(fitted.posterior_.items.mean, model.items.mean, rtol=1e-5)
    assert fitted.history_[-1].elbo == pytest.approx(dense.elbo(model), rel=1e-6)


def test_presence_takes_validation_values_as_ones():
    matrix = as_matrix(draw_model(Gamma(2.0, 0.5), shape=(40, 30)))
    scores = []
    for value in (3.7, 1.0):
        held = sparse.csr_array(([value], ([5], [6])), shape=matrix.shape)
        fitted = quick(element="presence").fit(matrix, validation=held)
        scores.append(fitted.history_[-1].validation_log_likelihood)
    assert fitted.element_ == Presence()
    assert np.isfinite(scores[0])
    assert scores[0] == scores[1]


# -- warm starts and several fits -----------------------------------------------------------------


@pytest.mark.parametrize("solver", ["cavi", "auto"])
@pytest.mark.parametrize("n_fits", [1, 2])
def test_a_warm_start_goes_on(simulated, solver, n_fits):
    fitted = quick(solver=solver, warm_start=True, n_fits=n_fits, check_every=1, max_iter=8)
    fitted.fit(simulated.interactions)
    before, element = fitted.history_[-1].elbo, fitted.element_
    fitted.fit(simulated.interactions)
    assert fitted.history_[0].iteration == 1
    if n_fits == 1:
        assert fitted.history_[0].elbo > before - 1e-6 * abs(before)
    assert fitted.history_[-1].elbo > before
    assert type(fitted.element_) is type(element)
    cold = quick(solver=solver, n_fits=n_fits, check_every=1, max_iter=8)
    cold.fit(simulated.interactions).fit(simulated.interactions)
    assert cold.history_[-1].elbo == pytest.approx(before, rel=1e-9)


def test_a_warm_start_of_other_rows_or_components_is_an_error(simulated):
    data = simulated.interactions
    fitted = quick(warm_start=True).fit(data)
    with pytest.raises(InputError, match=r"users are not those .* Call partial_fit"):
        fitted.fit(data.matrix[:50])
    reverse = Interactions(data.matrix, data.users, data.items[::-1])
    with pytest.raises(InputError, match=r"items are not those .* Call partial_fit"):
        fitted.fit(reverse)
    fitted.set_params(n_components=4)
    for train_further in (fitted.fit, partial(fitted.partial_fit, duplicates="last")):
        with pytest.raises(InputError, match=r"n_components=4, but .* has 3"):
            train_further(data)


def test_the_best_fit_is_kept_or_all_are_averaged(simulated):
    settings = {"n_fits": 3, "max_iter": 15}
    averaged = quick(**settings).fit(simulated.interactions)
    best = quick(combine="best", **settings).fit(simulated.interactions)
    assert len(averaged.posteriors_) == 3
    assert averaged.posterior_ is averaged.posteriors_[0]
    assert len(best.posteriors_) == 1
    means = [p.users.mean @ p.items.mean.T for p in averaged.posteriors_]
    rate = averaged.rate(np.arange(120)[:, None], np.arange(60))
    np.testing.assert_allclose(rate, np.mean(means, axis=0), rtol=1e-5)
    # The best one is among the three, and none of them has a larger ELBO.
    which = [
        np.array_equal(p.users.mean_, best.posterior_.users.mean_) for p in averaged.posteriors_
    ]
    assert sum(which) == 1
    assert best.history_[-1].elbo >= averaged.history_[-1].elbo


def test_priors_are_matched_to_the_training_part_only():
    matrix = as_matrix(draw_model(Poisson(0.8), shape=(50, 40), density=0.5))
    exclude = sparse.csr_array(np.arange(50 * 40).reshape(50, 40) % 2 == 0).astype(float)
    fitted = quick(priors="paper", element=Poisson(0.8)).fit(matrix, exclude=exclude)
    left = matrix.toarray()[exclude.toarray() == 0]
    stored = matrix.copy()
    stored.data[:] = 1.0
    share = stored.toarray()[exclude.toarray() == 0].sum() / len(left)
    assert fitted.priors_ == Priors.paper(share, 3)


def test_counts_of_a_degenerate_element_set_the_scale_of_the_papers_priors():
    matrix = sparse.csr_array(np.full((6, 5), 40.0))
    fitted = HCPF(2, element="HPF", priors="paper", max_iter=2).fit(matrix)
    assert fitted.priors_.user_shape == pytest.approx(0.1 * np.sqrt(40.0 / 2))

"""Scores against hand-worked numbers, the paper's formulas and scikit-learn."""

from math import exp, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from sklearn.metrics import roc_auc_score

from evaluate.oracles import Oracle, world
from hcpf import simulate
from hcpf.elements import Degenerate, Gamma, Presence, ZeroTruncatedPoisson
from hcpf.errors import SupportError
from hcpf.evaluate import GlobalElement, Score, auc, scores, split
from hcpf.evaluate.scoring import mean_score

RATES = [[0.5, 0.2, 0.1], [1.0, 0.3, 0.05]]


def test_poisson_scores_by_hand():
    # Counts are Poisson: log Po(2 | 0.5) and log Po(1 | 0.3), and the missing ones -0.1, -0.05.
    parts = world(np.eye(2, 3), [(0, 0, 2), (1, 1, 1)], [(0, 2), (1, 2)], share=0.25, n_missing=40)
    found = scores(Oracle(RATES, Degenerate()), parts)
    observed = [-0.5 + 2 * log(0.5) - log(2), -0.3 + log(0.3)]
    given_observed = [x - log(1 - exp(-r)) for x, r in zip(observed, (0.5, 0.3), strict=True)]
    means = 0.5 / (1 - exp(-0.5)), 0.3 / (1 - exp(-0.3))
    assert found.missing.value == pytest.approx(-0.075)
    assert found.missing.error == pytest.approx(0.025)  # of two numbers 0.05 apart
    assert found.nonmissing.value == pytest.approx(np.mean(observed))
    assert found.conditional_nonmissing.value == pytest.approx(np.mean(given_observed))
    # The paper's sum, 0.25 * 40 / 2 * L_M + L_NM, over 10 missing and 2 observed entries.
    total = 0.25 * 40 / 2 * (-0.15) + sum(observed)
    assert found.log_likelihood.value == pytest.approx(1000 * total / 12)
    assert found.auc.value == 1.0
    assert found.mae.value == pytest.approx((2 - means[0] + means[1] - 1) / 2)
    assert found.rmse.value == pytest.approx(
        (((2 - means[0]) ** 2 + (means[1] - 1) ** 2) / 2) ** 0.5
    )


def test_a_model_of_observed_entries_has_no_sparsity_scores():
    parts = world(np.eye(2, 3), [(0, 0, 2), (1, 1, 1)], [(0, 2), (1, 2)], n_missing=40)
    found = scores(Oracle(RATES, Degenerate(), train_on="observed"), parts)
    assert found.log_likelihood is found.missing is found.auc is None
    assert np.isfinite(found.nonmissing.value)
    assert found.as_dict()["auc"] is None
    assert "auc                     does not apply" in repr(found)


def test_a_model_of_presence_is_scored_on_ones():
    parts = world(np.eye(2, 3), [(0, 0, 4.5), (1, 1, 1)], [(0, 2)], n_missing=4)
    found = scores(Oracle(RATES, Presence()), parts)
    assert found.nonmissing.value == pytest.approx(np.mean([-0.5 + log(0.5), -0.3 + log(0.3)]))


def test_an_impossible_observation_costs_everything_and_does_not_warn():
    parts = world(np.eye(2, 3), [(0, 0, 1), (1, 1, 1)], [(0, 2)], n_missing=4)
    found = scores(Oracle(np.zeros((2, 3)), Degenerate()), parts)
    assert found.nonmissing.value == found.log_likelihood.value == -np.inf
    assert np.isnan(found.nonmissing.error)
    assert found.conditional_nonmissing.value == 0.0


def test_values_outside_the_support_are_named():
    parts = world(np.eye(2, 3), [(0, 0, 1.5)], [(0, 2)], n_missing=4)
    with pytest.raises(SupportError, match=r"1\.5"):
        scores(Oracle(RATES, ZeroTruncatedPoisson(2.0)), parts)


def test_scores_read_as_a_mapping_and_as_text():
    parts = world(np.eye(2, 3), [(0, 0, 2), (1, 1, 1)], [(0, 2), (1, 2)], n_missing=40)
    found = scores(Oracle(RATES, Degenerate()), parts)
    assert list(found) == [
        "log_likelihood", "missing", "nonmissing", "conditional_nonmissing", "auc", "rmse", "mae",
    ]  # fmt: skip
    assert found["auc"] is found.auc
    assert found.as_dict()["rmse_error"] == found.rmse.error
    assert len(repr(found).splitlines()) == 8


def test_other_pairs_and_blocks_give_the_same(monkeypatch):
    data = simulate(60, 40, density=0.2, element=Gamma(2, 0.5), random_state=0)
    parts = split(data.interactions, test=0.2, validation=0.2, random_state=0)
    model = Oracle(data.user_factors @ data.item_factors.T, data.element)
    whole = scores(model, parts), scores(model, parts, on=parts.validation)
    assert whole[0].as_dict() != whole[1].as_dict()
    monkeypatch.setattr("hcpf.evaluate.scoring._BLOCK", 7)
    assert scores(model, parts).as_dict() == pytest.approx(whole[0].as_dict(), nan_ok=True)


def test_the_true_rates_are_likelier_than_others():
    data = simulate(300, 200, density=0.1, element=Gamma(2, 0.5), random_state=0)
    parts = split(data.interactions, random_state=0)
    rates = data.user_factors @ data.item_factors.T
    found = [scores(Oracle(c * rates, data.element), parts) for c in (0.6, 1.0, 1.6)]
    likelihood = [x.log_likelihood.value for x in found]
    assert max(likelihood) == likelihood[1]
    assert found[0].auc.value == pytest.approx(found[1].auc.value)


def test_one_element_for_all_is_its_own_log_density():
    data = simulate(60, 40, density=0.2, element=Gamma(2, 0.5), random_state=0).interactions
    parts = split(data, random_state=0)
    model = GlobalElement(Gamma()).fit(parts.train)
    found = scores(model, parts)
    wanted = np.mean(model.element_.log_density(parts.test.values))
    assert found.conditional_nonmissing.value == pytest.approx(wanted)
    assert found.nonmissing.value == pytest.approx(wanted)
    assert found.rmse.value == pytest.approx(
        np.sqrt(np.mean((parts.test.values - model.element_.mean) ** 2))
    )


FEW = npst.arrays(float, st.integers(1, 30), elements=st.integers(0, 8).map(float))


@given(FEW, FEW)
def test_auc_agrees_with_sklearn_ties_included(positive, negative):
    labels = np.repeat([1, 0], [len(positive), len(negative)])
    wanted = roc_auc_score(labels, np.concatenate([positive, negative]))
    assert auc(positive, negative).value == pytest.approx(wanted)


def test_the_standard_error_of_auc_is_that_of_repeated_samples(rng):
    found = [auc(rng.normal(0.7, 1, 150), rng.normal(0, 1, 100)) for _ in range(400)]
    spread = np.std([x.value for x in found])
    assert np.mean([x.error for x in found]) == pytest.approx(spread, rel=0.1)


def test_means_of_none_of_one_and_of_infinite_numbers():
    assert np.isnan(mean_score([]).value)
    assert mean_score([2.0]).value == 2.0
    assert np.isnan(mean_score([2.0]).error)
    assert mean_score([1.0, -np.inf]).value == -np.inf
    assert np.isnan(auc([], [1.0]).value)
    assert mean_score([1.0, 3.0]) == Score(2.0, 1.0)


@pytest.mark.parametrize(
    ("score", "text"),
    [
        (Score(-173.4967, 0.1893), "-173.50 ± 0.19"),
        (Score(158.2, 23.4), "158 ± 23"),
        (Score(1.0, float("nan")), "1"),
        (Score(float("-inf"), float("nan")), "-inf"),
    ],
)
def test_scores_show_what_their_error_leaves_meaningful(score, text):
    assert str(score) == text

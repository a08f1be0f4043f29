"""What "auto" means on observed entries only, and on more values than are needed."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from hcpf import HCPF
from hcpf.core.value_model import ValueModel
from hcpf.elements import Binomial, Gamma, Normal
from hcpf.errors import InputError, ParameterError, SupportError
from hcpf.training import auto, resolve
from hcpf.training.held_out import TrainingSplit, split_validation
from hcpf.training.resolve import (
    OBSERVED_COUNT,
    choose_value_model,
    observed_count,
    resolve_priors,
    resolve_value_model,
)
from hcpf.training.settings import FitPlan

RATINGS = np.tile([1.0, 2.0, 3.0, 4.0, 4.0, 4.0, 5.0, 5.0, 3.0, 5.0], 20)


def test_a_normal_expects_as_many_elements_as_its_variance_needs():
    count = observed_count(Normal(), RATINGS, "auto")
    assert count == pytest.approx(2.0 * RATINGS.mean() ** 2 / RATINGS.var())
    element = choose_value_model("normal", RATINGS, train_on="observed").element
    # Of the variance of a sum of so many elements, the count's own share is half of the values'.
    assert count * float(element.mean) == pytest.approx(RATINGS.mean())
    assert count * float(element.mean) ** 2 == pytest.approx(0.5 * RATINGS.var())


@pytest.mark.parametrize(("values", "count"), [(RATINGS + 90.0, 30.0), (RATINGS**6, None)])
def test_the_expected_count_has_limits(values, count):
    found = observed_count(Normal(), values, "auto")
    assert found == (OBSERVED_COUNT if count is None else count)


@pytest.mark.parametrize(("element", "priors"), [(Normal(), "paper"), (Gamma(), "auto")])
def test_the_papers_count_is_kept_elsewhere(element, priors):
    assert observed_count(element, RATINGS, priors) == OBSERVED_COUNT
    paper = choose_value_model(Normal(), RATINGS, train_on="observed", priors="paper")
    assert paper.element.mean == pytest.approx(RATINGS.mean() / OBSERVED_COUNT)


def test_priors_of_observed_entries_match_the_expected_count():
    matrix = sparse.csr_array(RATINGS.reshape(20, 10))
    value_model = choose_value_model("normal", matrix.data, train_on="observed")
    count = observed_count(value_model.element, RATINGS, "auto")
    for size in (5, 50, 500):
        priors = resolve_priors("auto", TrainingSplit(matrix, None, None), value_model, size)
        assert priors.expected(size) == pytest.approx(count)
        assert priors.user_shape == pytest.approx(max(0.3, 30.0 / size))


def test_an_estimate_from_some_values_is_near_that_from_all(monkeypatch):
    rng = np.random.default_rng(0)
    values = rng.binomial(10, 0.3, 20_000).astype(float)
    values[777] = 31.0  # the largest value, which the trials must reach, is not overlooked
    monkeypatch.setattr(resolve, "MAX_ESTIMATION_VALUES", 1000)
    found = choose_value_model("binomial", values).element
    assert found.trials >= 31
    assert float(found.mean) == pytest.approx(values.mean(), rel=0.03)
    values[778] = 0.5
    for element in ("binomial", Binomial()):
        with pytest.raises(SupportError, match=r"0\.5"):
            choose_value_model(element, values)


@pytest.mark.parametrize("hurdle", [True, False])
def test_held_out_values_are_not_estimated_from(hurdle):
    rng = np.random.default_rng(3)
    matrix = sparse.csr_array(rng.gamma(2.0, 1.0, (50, 40)))
    held_out = sparse.csr_array(([77_184.0], ([3], [5])), shape=matrix.shape)
    split = split_validation(matrix, held_out, None, 0.0, "full", rng)
    plan = FitPlan(2, element="gamma", hurdle=hurdle)
    found = resolve_value_model(plan, split).element
    assert found == Gamma.estimate(split.training.data)


def test_ratings_are_predicted_better_than_by_what_is_usual():
    rng = np.random.default_rng(1)
    users, items = rng.normal(size=(300, 2)), rng.normal(size=(80, 2))
    bias = rng.normal(scale=0.3, size=(300, 1)) + rng.normal(scale=0.4, size=80)
    ratings = 3.5 + bias + 0.6 * users @ items.T + rng.normal(scale=0.5, size=(300, 80))
    ratings = np.clip(np.rint(ratings), 1.0, 5.0)
    kept, test = rng.random((300, 80)) < 0.5, rng.random((300, 80)) < 0.1
    train = sparse.csr_array(np.where(kept & ~test, ratings, 0.0))
    model = HCPF(
        4, element="normal", vary_by="both", train_on="observed", n_fits=1, random_state=0
    ).fit(train)
    u, i = np.nonzero(test)
    error = ratings[test] - model.predict(u, i)
    usual = ratings[test] - _usual(train)[u, i]
    assert np.mean(error**2) < 0.8 * np.mean(usual**2)


def _usual(train):
    """The mean rating, and what the user and the item add to it."""
    seen, values = train.toarray() > 0, train.toarray()
    mean = values[seen].mean()
    item = np.where(seen, values - mean, 0.0).sum(axis=0) / (seen.sum(axis=0) + 5.0)
    user = np.where(seen, values - mean - item, 0.0).sum(axis=1) / (seen.sum(axis=1) + 5.0)
    return mean + item + user[:, None]


def test_excluded_pairs_are_no_zeros_in_the_choice_of_an_element(caplog, monkeypatch):
    monkeypatch.setattr(auto, "candidate_elements", lambda values: [Gamma.estimate(values)])
    monkeypatch.setattr(auto, "_DENSE_PASSES", (6,))
    monkeypatch.setattr(auto, "_DENSE_BASE_PASSES", 2)
    rng = np.random.default_rng(2)
    observed, excluded = rng.random((60, 40)) < 0.9, rng.random((60, 40)) < 0.4
    values = np.where(observed & ~excluded, rng.gamma(2.0, 1.0, (60, 40)), 0.0)
    scores = []
    for exclude in (None, sparse.csr_array(excluded.astype(float))):
        caplog.clear()
        with caplog.at_level("INFO", logger="hcpf"):
            HCPF(3, n_fits=1, max_iter=1, random_state=0).fit(
                sparse.csr_array(values), exclude=exclude
            )
        lines = [line for line in caplog.messages if line.startswith("auto: gamma")]
        assert len(lines) == 8  # compound and hurdle, four poolings each
        scores.append(max(float(line.split()[-1]) for line in lines))
    # Of what is left 90% is observed; with the excluded pairs as zeros it would be about a half.
    assert scores[1] > scores[0] + 0.3


def test_values_that_no_element_explains_are_named():
    with pytest.raises(InputError, match=r"these values, which are all 2\.5\. Pass element="):
        resolve.most_likely_element(np.full(9, 2.5))


def test_numbers_given_replace_those_of_auto_and_shapes_keep_the_scale():
    matrix = sparse.random_array((60, 40), density=0.2, rng=np.random.default_rng(0), format="csr")
    split, value_model = TrainingSplit(matrix, None, None), ValueModel(Gamma(2.0, 1.0))
    auto_priors = resolve_priors("auto", split, value_model, 4)
    found = resolve_priors({"item_shape": 1.5}, split, value_model, 4)
    assert found.item_shape == 1.5
    assert found.expected(4) == pytest.approx(auto_priors.expected(4))
    assert found.user_activity_mean == auto_priors.user_activity_mean
    both = resolve_priors({"item_shape": 1.5, "item_activity_mean": 7}, split, value_model, 4)
    assert (both.item_shape, both.item_activity_mean) == (1.5, 7.0)
    assert resolve_priors({}, split, value_model, 4) == auto_priors
    with pytest.raises(ParameterError, match=r"unknown name 'shape'\. Names are user_shape, "):
        resolve_priors({"shape": 1.0}, split, value_model, 4)
    with pytest.raises(ParameterError, match="item_shape"):
        resolve_priors({"item_shape": -1.0}, split, value_model, 4)


def test_a_model_with_some_prior_numbers_is_saved_cloned_and_resumed(tmp_path):
    matrix = sparse.random_array((30, 20), density=0.3, rng=np.random.default_rng(0), format="csr")
    settings = {"element": "gamma", "n_fits": 1, "tempering": 1, "random_state": 0, "max_iter": 4}
    model = HCPF(2, priors={"item_shape": 2.0}, **settings)
    fitted = clone(model).fit(matrix, checkpoint=tmp_path / "run")
    assert fitted.priors_.item_shape == 2.0
    again = model.fit(matrix, checkpoint=tmp_path / "run")
    np.testing.assert_array_equal(again.components_, fitted.components_)
    fitted.save(tmp_path / "model")
    assert HCPF.load(tmp_path / "model").priors == {"item_shape": 2.0}

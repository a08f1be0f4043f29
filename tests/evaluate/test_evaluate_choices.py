"""Comparisons, the choice of K, and real data."""

from dataclasses import replace

import numpy as np
import pytest

from hcpf import HCPF, Interactions, simulate
from hcpf.elements import Gamma
from hcpf.errors import InputError
from hcpf.evaluate import (
    BinaryHPF,
    Candidate,
    Comparison,
    ComponentPath,
    GlobalElement,
    PerItemElement,
    Popularity,
    Score,
    calibration,
    choose_components,
    compare,
    consensus,
    evaluate_model,
    fit_and_score,
    leave_out,
    log_likelihood_gain,
    ranking,
    scores,
    split,
)
from hcpf.evaluate.scoring import pair_scores
from hcpf.training import selection

QUICK = {"element": "gamma", "n_fits": 1, "max_iter": 8}


@pytest.fixture(scope="module")
def parts():
    data = simulate(
        200, 120, density=0.1, n_components=3, element=Gamma(2, 0.5), random_state=0
    ).interactions
    return split(data, test=0.2, validation=0.1, random_state=0)


@pytest.fixture(scope="module")
def table(parts):
    fitted = HCPF(3, random_state=0, **QUICK).fit(parts.train, exclude=parts.held_out)
    models = {"hcpf": fitted, "popular": Popularity(), "one": GlobalElement()}
    return compare(models, parts, n=10)


def test_a_typo_in_fit_options_is_an_error(parts):
    options = {"user_exposur": 2.0}
    for evaluated in (
        lambda: compare({"popular": Popularity()}, parts, fit_options=options),
        lambda: evaluate_model(HCPF(2, **QUICK), parts, fit_options=options),
        lambda: choose_components(parts, [2], fit_options=options),
        lambda: consensus(parts, 2, fit_options=options),
    ):
        with pytest.raises(InputError, match=r"'user_exposur'.* such as user_exposure"):
            evaluated()


def test_rows_are_what_each_measure_gives(parts, table):
    again = Popularity().fit(parts.train, exclude=parts.held_out)
    assert table["popular"].scores.as_dict() == scores(again, parts).as_dict()
    assert table["popular"].ranking.as_dict() == ranking(again, parts, 10).as_dict()
    assert table["popular"].seconds > 0
    assert table["hcpf"].seconds is None
    assert table["one"].ranking is None
    assert [row.name for row in table.rows] == ["hcpf", "popular", "one"]


def test_a_comparison_becomes_a_frame_and_text(table):
    frame = table.to_table().to_pandas()
    assert list(frame.columns)[:3] == ["model", "log_likelihood", "log_likelihood_error"]
    assert list(frame.columns)[-1] == "seconds"
    assert {"ndcg", "recall", "hit_rate_error"} < set(frame.columns)
    lines = repr(table).splitlines()
    assert len(lines) == 4
    assert "_error" not in lines[0]
    assert len(lines[0].split()) == 7
    assert lines[3].split()[:2] == ["one", "–"]


def test_a_comparison_of_nothing_is_refused(parts):
    with pytest.raises(InputError, match="at least one model"):
        compare({}, parts)


def test_the_gain_is_the_difference_with_a_paired_standard_error(table):
    first, second = table["hcpf"], table["popular"]
    gain = log_likelihood_gain(first, second)
    scores = first.score("log_likelihood"), second.score("log_likelihood")
    assert gain.value == pytest.approx(scores[0].value - scores[1].value)
    assert 0 < gain.error < np.hypot(scores[0].error, scores[1].error)
    assert log_likelihood_gain(first, first) == Score(0.0, 0.0)
    per_entry = [row.pairs.per_entry for row in (first, second)]
    n_pairs = len(first.pairs.rate) + first.pairs.missing_weight * len(first.pairs.missing)
    assert per_entry[0] - per_entry[1] == pytest.approx(
        gain.value / 1000 * n_pairs / len(first.pairs.rate)
    )


def test_masses_of_integers_are_probabilities(parts):
    matrix = parts.train.matrix.copy()
    matrix.data = np.ceil(matrix.data)
    parts = split(matrix, random_state=0)
    model = GlobalElement(Gamma()).fit(parts.train)
    masses = pair_scores(model, parts, as_mass=True)
    y = parts.test.values
    below = np.where(y == 1.0, 0.0, model.element_.cdf(y - 0.5))  # the first takes all below it
    wanted = model.element_.cdf(y + 0.5) - below
    np.testing.assert_allclose(np.exp(masses.conditional), wanted, rtol=1e-9)


def test_integers_are_compared_by_probabilities():
    """A density at the most frequent integer can be far above 1."""
    rng = np.random.default_rng(0)
    values = rng.choice([1.0, 2.0], size=(100, 80), p=[0.95, 0.05])
    parts = split(values * (rng.random(values.shape) < 0.2), random_state=0)
    names = ("gamma", "zero_truncated_poisson")
    table = compare({name: Popularity(name) for name in names}, parts)
    assert table.best.name == "zero_truncated_poisson"
    assert all(row.scores.conditional_nonmissing.value < 0.0 for row in table.rows)


def test_a_model_that_fails_is_a_result_where_that_is_asked_for(parts):
    broken = HCPF(2, element=Gamma(2.0, 0.5), vary_by="user", hurdle=True, train_on="observed")
    assert "hurdle" in fit_and_score("x", broken, parts, keep_errors=True).error
    with pytest.raises(InputError, match="hurdle"):
        fit_and_score("x", broken, parts)


@pytest.mark.parametrize(
    ("gain", "pooled", "hurdle", "wins"),
    [
        (0.006, True, False, True),
        (0.004, True, False, False),
        (0.006, False, True, True),
        (0.004, False, True, False),
        (1e-9, False, False, True),
    ],
)
def test_the_simpler_model_is_chosen_unless_the_gain_is_large_enough(gain, pooled, hurdle, wins):
    simple = selection.Candidate("simple", likelihoods(-3.0))
    other = selection.Candidate("other", likelihoods(-3.0 + gain), pooled=pooled, hurdle=hurdle)
    assert selection.select([simple, other]) == ("other" if wins else "simple")


def likelihoods(observed, missing=0.0, missing_per_entry=20.0):
    shape = (400,)
    observed, missing = np.broadcast_to(observed, shape), np.broadcast_to(missing, shape)
    return selection.PairLikelihoods(observed, missing, missing_per_entry)


def test_a_gain_within_its_standard_error_does_not_make_up_for_a_harder_model():
    rng = np.random.default_rng(0)
    common, noise = rng.normal(size=400), rng.normal(size=400)
    noise -= noise.mean()
    simple = selection.Candidate("simple", likelihoods(common))
    for deviation, wins in ((0.5, True), (2.0, False)):  # standard errors of 0.025 and 0.1
        better = likelihoods(common + 0.06 + deviation * noise)
        other = selection.Candidate("other", better, hurdle=True)
        assert selection.select([simple, other]) == ("other" if wins else "simple")


def test_the_gain_is_paired_and_counts_missing_pairs_by_their_share():
    rng = np.random.default_rng(1)
    observed, missing = rng.normal(size=(2, 400)), -rng.random((2, 400))
    first, second = (likelihoods(observed[j], missing[j]) for j in range(2))
    gain = first.gain_over(second)
    assert gain.value == pytest.approx(
        (observed[0] - observed[1]).mean() + 20.0 * (missing[0] - missing[1]).mean()
    )
    errors = [(rows[0] - rows[1]).std(ddof=1) / 20.0 for rows in (observed, missing)]
    assert gain.error == pytest.approx(np.hypot(errors[0], 20.0 * errors[1]))
    impossible = likelihoods(np.where(np.arange(400) == 7, -np.inf, observed[0]))
    assert first.gain_over(impossible) == (np.inf, 0.0)
    assert impossible.gain_over(impossible) == (0.0, 0.0)
    average = selection.PairLikelihoods.average([first, second])
    np.testing.assert_allclose(np.exp(average.observed), np.exp(observed).mean(axis=0))
    np.testing.assert_allclose(average.missing, missing.mean(axis=0))


def test_a_model_of_values_alone_is_not_the_best_of_models_of_all_pairs(parts):
    # Its likelihood is per value, and higher, because it leaves the missing pairs out.
    found = compare({"popular": Popularity(), "values": PerItemElement()}, parts)
    assert found["values"].pairs.per_entry > found["popular"].pairs.per_entry
    assert found.best.name == "popular"
    assert compare({"values": PerItemElement()}, parts).best.name == "values"


def test_the_best_of_a_comparison_follows_the_same_rule(table):
    worse = table["popular"]
    row = replace(table["hcpf"], name="pooled", vary_by="item")
    assert Comparison([worse, row]).best is row
    assert Comparison([worse, replace(worse, name="pooled", vary_by="item")]).best is worse


@pytest.mark.parametrize(
    ("tried", "most_likely", "best"),
    [
        (((10, 1.1, 0.1), (20, 0.1, 0.2), (50, 0.0, 0.0)), 50, 20),
        (((10, 1.1, 0.1), (20, 0.1, 0.05), (50, 0.0, 0.0)), 50, 50),
        (((10, 1.0, 2.0), (20, 0.0, 0.0), (50, 0.5, 0.1)), 20, 10),
        (((10, 0.0, 0.0), (20, 0.0, 0.0)), 10, 10),
        (((10, 0.0, float("nan")),), 10, 10),
    ],
)
def test_the_one_standard_error_rule_is_about_paired_deficits(tried, most_likely, best):
    path = ComponentPath([
        Candidate(k, Score(-5.0 - value, 9.0), 1.0, Score(value, error))
        for k, value, error in tried
    ])  # fmt: skip
    assert (path.most_likely, path.best) == (most_likely, best)


def test_the_path_is_that_of_fits_made_by_hand(parts):
    path = choose_components(parts, (3, 1, 3), random_state=0, **QUICK)
    assert [c.n_components for c in path.candidates] == [1, 3]
    model = HCPF(3, random_state=0, **QUICK).fit(parts.train, exclude=parts.held_out)
    wanted = scores(model, parts, on=parts.validation).log_likelihood
    assert path.candidates[1].log_likelihood == wanted
    assert path.most_likely == 3
    deficit, error = path.candidates[0].deficit, path.candidates[0].log_likelihood.error
    assert deficit.value == pytest.approx(wanted.value - path.candidates[0].log_likelihood.value)
    assert 0 < deficit.error < error
    assert path.candidates[1].deficit == Score(0.0, 0.0)
    assert list(path.to_table().to_pandas().columns) == [
        "n_components", "log_likelihood", "log_likelihood_error", "deficit", "deficit_error",
        "seconds",
    ]  # fmt: skip
    assert repr(path).endswith(f"best {path.best}, most likely 3")


def test_data_are_split_where_no_split_is_given(parts):
    path = choose_components(parts.train, (2,), validation=0.2, **QUICK)
    assert path.best == 2
    observed = choose_components(parts.train, (2,), train_on="observed", **QUICK)
    assert np.isfinite(observed.candidates[0].log_likelihood.value)


def test_numbers_of_components_are_compared_by_probability_where_values_are_integers(parts):
    """element="auto" may choose a discrete element for one K and a continuous one for another."""
    counts = Interactions(parts.train.matrix.ceil(), parts.train.users, parts.train.items)
    parts = split(counts, validation=0.1, random_state=0)
    row = compare({"two": HCPF(2, random_state=0, **QUICK)}, parts, on=parts.validation).rows[0]
    path = choose_components(parts, 2, random_state=0, **QUICK)
    assert path.candidates[0].log_likelihood == row.scores.log_likelihood


def test_bad_choices_are_refused(parts):
    with pytest.raises(InputError, match="at least one number"):
        choose_components(parts, ())
    with pytest.raises(InputError, match="n_components must be"):
        choose_components(parts, (0,))
    with pytest.raises(InputError, match="no validation pairs"):
        choose_components(leave_out(parts.train, random_state=0))


def test_real_ratings(shared_data):
    """MovieLens 100k: the model beats popularity at ranking and likelihood, items matter."""
    path = shared_data / "ml100k" / "ml100k.parquet"
    if not path.exists():
        pytest.skip("ml100k is not there")
    data = Interactions.read(path, user="user", item="item", value="value", progress=False)
    parts = split(data, random_state=0)
    models = {
        "hcpf": HCPF(20, element="binomial", n_fits=1, random_state=0),
        "binary": BinaryHPF(20, n_fits=1, random_state=0),
        "popular": Popularity(),
        "one": GlobalElement(),
        "items": PerItemElement(),
    }
    table = compare(models, parts)
    auc = {name: table[name].scores.auc.value for name in ("hcpf", "binary", "popular")}
    assert auc["hcpf"] > 0.92
    assert auc["popular"] < auc["hcpf"]
    assert table["hcpf"].ranking.ndcg.value > 1.5 * table["popular"].ranking.ndcg.value
    likelihood = {name: table[name].scores.log_likelihood.value for name in auc}
    assert likelihood["hcpf"] > likelihood["popular"]
    assert table["items"].scores.rmse.value < table["one"].scores.rmse.value
    found = calibration(models["popular"], parts)
    assert found.expected_error < 0.03

"""The simulator: its draws have the model's distribution."""

import logging

import numpy as np
import pytest
from scipy import sparse, stats

from hcpf import _draw, elements
from hcpf.data import Interactions
from hcpf.elements import Binomial, Degenerate, Gamma, Normal, Poisson
from hcpf.errors import InputError, ParameterError
from hcpf.simulation import Simulation, simulate

TINY = 1e-4  # a test with a fixed seed fails below this p-value
REPEATS = 40_000


def draw(s, v, seed=0, element=None, keep_counts=False):
    return _draw.draw_entries(
        np.asarray(s, dtype=float),
        np.asarray(v, dtype=float),
        element or Degenerate(),
        np.random.default_rng(seed),
        keep_counts=keep_counts,
        advance=lambda users: None,
    )


def repeated_counts(s_u, v, seed=0):
    """Counts of one user drawn many times over, as the rows of one block matrix after another."""
    interactions, _ = draw(np.tile(s_u, (REPEATS, 1)), v, seed)
    return interactions.matrix.toarray()


def poisson_p_value(sample, rate):
    """Chi-square goodness of fit of a sample to Poisson(rate), bins pooled to expect 10."""
    top = int(sample.max()) + 1
    expected = stats.poisson.pmf(np.arange(top + 1), rate) * len(sample)
    expected[-1] = stats.poisson.sf(top - 1, rate) * len(sample)
    seen = np.bincount(sample.astype(int), minlength=top + 1).astype(float)
    keep = expected >= 10
    seen = np.append(seen[keep], seen[~keep].sum())
    expected = np.append(expected[keep], expected[~keep].sum())
    if expected[-1] < 10:  # too few to stand alone: they join the last bin
        seen = np.append(seen[:-2], seen[-2:].sum())
        expected = np.append(expected[:-2], expected[-2:].sum())
    return stats.chisquare(seen, expected * seen.sum() / expected.sum()).pvalue


# -- the draws are exact --------------------------------------------------------------------------

S_U = np.array([0.7, 0.0, 0.25])
V = np.array([[0.5, 1.0, 0.1], [0.0, 2.0, 1.5], [1.2, 0.3, 0.0], [0.05, 0.0, 0.02]])
# Few events are drawn one by one, many pair by pair: both ways must agree with the model.
SCALES = {"events": 1.0, "pairs": 6.0}


@pytest.fixture(scope="module", params=SCALES)
def counts_and_rates(request):
    scale = SCALES[request.param]
    takes_events = S_U @ V.sum(axis=0) * scale < len(V)
    assert takes_events == (request.param == "events")
    return repeated_counts(S_U * scale, V), V @ S_U * scale


def test_marginals_are_poisson(counts_and_rates):
    counts, rates = counts_and_rates
    p_values = [poisson_p_value(counts[:, i], rate) for i, rate in enumerate(rates)]
    assert min(p_values) > TINY


def test_means_are_the_rates(counts_and_rates):
    counts, rates = counts_and_rates
    z = (counts.mean(axis=0) - rates) / np.sqrt(rates / REPEATS)
    assert np.abs(z).max() < 4


def test_cells_are_independent(counts_and_rates):
    counts, _ = counts_and_rates
    observed = [stats.chi2_contingency(np.histogram2d(counts[:, i] > 0, counts[:, j] > 0, 2)[0])
                for i in range(4) for j in range(i)]  # fmt: skip
    assert min(test.pvalue for test in observed) > TINY
    correlation = np.corrcoef(counts.T)[np.triu_indices(4, 1)] * np.sqrt(REPEATS)
    assert np.abs(correlation).max() < 4


def test_repeats_are_independent(counts_and_rates):
    counts, _ = counts_and_rates
    for column in counts.T:
        assert abs(np.corrcoef(column[1:], column[:-1])[0, 1]) * np.sqrt(REPEATS) < 4


def test_joint_distribution_equals_brute_force(counts_and_rates):
    counts, rates = counts_and_rates
    brute = np.random.default_rng(99).poisson(rates, (REPEATS, len(rates)))
    # Code each row of counts, clipped to 0, 1, 2, as one number in base 3.
    base = 3 ** np.arange(len(rates))
    codes = [np.minimum(table, 2).astype(int) @ base for table in (counts, brute)]
    table = np.array([np.bincount(code, minlength=3 ** len(rates)) for code in codes])
    pooled = np.hstack([table[:, table.sum(axis=0) >= 20], table[:, table.sum(axis=0) < 20].sum(
        axis=1, keepdims=True)])  # fmt: skip
    assert stats.chi2_contingency(pooled[:, pooled.sum(axis=0) > 0]).pvalue > TINY


def test_an_item_or_component_without_rate_has_no_events():
    counts = repeated_counts(np.array([0.5, 0.0]), np.array([[0.0, 9.0], [0.4, 0.0], [0.0, 0.0]]))
    assert counts[:, [0, 2]].sum() == 0
    assert counts[:, 1].sum() > 0


@pytest.mark.parametrize("block", [1, 7, 300])
def test_small_blocks_change_nothing_of_the_distribution(monkeypatch, block):
    rng = np.random.default_rng(5)
    s, v = rng.gamma(0.5, 2.0, (60, 3)), rng.gamma(0.5, 1.0, (40, 3))
    s[[3, 31]] *= 500.0  # two users with far more events than items
    s[10:15] = 0.0
    monkeypatch.setattr(_draw, "_BLOCK_EVENTS", block)
    tables = np.array([draw(s, v, seed)[0].matrix.toarray() for seed in range(60)])
    rates = s @ v.T
    z = (tables.mean(axis=0) - rates) / np.sqrt(np.maximum(rates, 1e-300) / len(tables))
    enough = rates * len(tables) > 30
    assert np.abs(z[enough]).max() < 5
    assert abs(np.mean(z[enough] ** 2) - 1.0) < 0.15
    assert tables[:, 10:15].sum() == 0


def test_blocks_cover_the_users_in_order(monkeypatch):
    monkeypatch.setattr(_draw, "_BLOCK_EVENTS", 10)
    expected = np.array([3.0, 4.0, 1e30, 2.0, 2.0, 9.5, 0.0, 0.0, 11.0])
    blocks = list(_draw._blocks(expected))
    assert [stop for _, stop, _ in blocks[:-1]] == [start for start, _, _ in blocks[1:]]
    assert (blocks[0][0], blocks[-1][1]) == (0, len(expected))
    assert (2, 3, 1e30) in blocks  # alone
    assert all(events <= 10 or stop - start == 1 for start, stop, events in blocks)


def test_calibration_across_rates():
    """The observed share of pairs follows 1 - exp(-rate) at every size of rate."""
    result = simulate(600, 500, density=0.2, random_state=3)
    probability = -np.expm1(-(result.user_factors @ result.item_factors.T)).ravel()
    seen = np.zeros(result.interactions.shape)
    entries = result.interactions.matrix.tocoo()
    seen[entries.row, entries.col] = 1.0
    for part in np.array_split(np.argsort(probability), 20):
        expected, variance = probability[part].sum(), (probability * (1 - probability))[part].sum()
        assert abs(seen.ravel()[part].sum() - expected) < 4 * np.sqrt(variance) + 1e-9


# -- factors and values ---------------------------------------------------------------------------

PRIORS = {
    "user_shape": 0.7,
    "user_activity_shape": 3.0,
    "user_activity_mean": 2.0,
    "item_shape": 1.5,
    "item_activity_shape": 5.0,
    "item_activity_mean": 20.0,
}


def test_factors_follow_their_priors():
    result = simulate(4000, 3000, n_components=2, density=None, **PRIORS, random_state=1)
    assert result.priors == PRIORS
    sides = [
        (result.user_activity, result.user_factors, 3.0, 2.0, 0.7),
        (result.item_activity, result.item_factors, 5.0, 20.0, 1.5),
    ]
    for activity, factors, activity_shape, mean, shape in sides:
        law = stats.gamma(activity_shape, scale=mean / activity_shape)
        assert stats.kstest(activity, law.cdf).pvalue > TINY
        scaled = factors * activity[:, None]
        assert stats.kstest(scaled.ravel(), stats.gamma(shape).cdf).pvalue > TINY
        assert abs(stats.spearmanr(scaled[:, 0], activity).statistic) < 0.08
        assert abs(stats.spearmanr(scaled[:, 0], scaled[:, 1]).statistic) < 0.08


def test_the_whole_process_equals_a_dense_draw():
    """Means and variances of totals over many small data sets, against the plain process."""

    def theirs_of(rng):
        r, w = rng.gamma(3.0, 2.0 / 3.0, 6), rng.gamma(5.0, 20.0 / 5.0, 5)
        s, v = rng.gamma(0.7, 1.0, (6, 2)) / r[:, None], rng.gamma(1.5, 1.0, (5, 2)) / w[:, None]
        n = rng.poisson(s @ v.T)
        y = np.where(n > 0, rng.gamma(np.maximum(n, 1) * 2.0) / 0.5, 0.0)
        return [(n > 0).sum(), y.sum(), ((n > 0).sum(axis=1) ** 2).sum()]

    def ours_of(rng):
        result = simulate(
            6, 5, n_components=2, density=None, element=Gamma(2.0, 0.5), random_state=rng, **PRIORS
        )
        observed = np.diff(result.interactions.matrix.indptr)
        return [observed.sum(), result.interactions.values.sum(), (observed**2).sum()]

    ours, theirs = (
        np.array([f(np.random.default_rng([seed, k])) for seed in range(2500)])
        for k, f in enumerate((ours_of, theirs_of))
    )
    for a, b in zip(ours.T, theirs.T, strict=True):
        # Many ties in integers make the Kolmogorov-Smirnov test only more cautious.
        assert stats.ks_2samp(a, b).pvalue > TINY
        assert stats.ttest_ind(a, b, equal_var=False).pvalue > TINY


def test_values_given_the_counts():
    element = Normal(3.0, 4.0)
    result = simulate(300, 200, density=0.3, element=element, keep_counts=True, random_state=2)
    n, y = result.counts, result.interactions.values
    assert n is not None
    assert n.shape == y.shape
    assert n.min() >= 1
    assert n.max() > 5
    assert stats.kstest((y - 3.0 * n) / np.sqrt(4.0 * n), stats.norm.cdf).pvalue > TINY


def test_the_counts_are_the_values_of_the_degenerate_element():
    result = simulate(50, 40, density=0.4, element=Degenerate(), keep_counts=True, random_state=2)
    assert np.array_equal(result.counts, result.interactions.values)
    assert simulate(50, 40, random_state=2).counts is None


@pytest.mark.parametrize("kind", elements.ALL)
def test_values_lie_in_the_support_of_every_element(kind):
    given = {"trials": 3.0, "successes": 2.0, "probability": 0.4}
    element = kind(**{name: given.get(name, 1.5) for name in kind.domains()})
    result = simulate(80, 60, density=0.1, element=element, random_state=4)
    assert result.element == element
    element.support.check(kind.__name__, result.interactions.values)
    assert result.interactions.n_observed > 0


def test_a_hurdle_draws_one_element_per_observed_pair():
    options = {"density": 0.8, "keep_counts": True, "random_state": 0}
    compound = simulate(60, 50, element=Binomial(4, 0.5), **options)
    hurdle = simulate(60, 50, element=Binomial(4, 0.5), hurdle=True, **options)
    assert np.array_equal(hurdle.interactions.matrix.indices, compound.interactions.matrix.indices)
    assert np.array_equal(hurdle.counts, compound.counts)
    assert hurdle.interactions.values.max() == 4 < compound.interactions.values.max()
    with pytest.raises(ParameterError, match="hurdle must be True or False"):
        simulate(10, 10, hurdle=1)


def test_presence_draws_ones():
    result = simulate(50, 40, density=0.6, element=elements.Presence(), random_state=0)
    assert set(result.interactions.values) == {1.0}


def test_observed_zeros_are_kept():
    result = simulate(100, 100, density=0.1, element=Poisson(0.1), random_state=0)
    assert np.sum(result.interactions.values == 0) > result.interactions.n_observed / 2


# -- density --------------------------------------------------------------------------------------


@pytest.mark.parametrize("density", [1e-3, 0.02, 0.09, 0.3, 0.8])
@pytest.mark.parametrize("size", [(700, 900), (1500, 1100)])  # all pairs, a sample of pairs
def test_the_expected_share_is_the_density(size, density):
    result = simulate(*size, density=density, random_state=8)
    share = -np.expm1(-(result.user_factors @ result.item_factors.T)).mean()
    assert share == pytest.approx(density, rel=1e-6 if size[0] == 700 else 5e-3)
    n_pairs = size[0] * size[1]
    assert abs(result.interactions.n_observed - n_pairs * share) < 4 * np.sqrt(n_pairs * share)


@pytest.mark.parametrize("shape", [1.0, 0.6])
def test_the_density_holds_with_heavy_tails(shape):
    result = simulate(
        1500, 1100, density=0.02, user_activity_shape=shape, item_activity_shape=1.0, random_state=6
    )
    share = -np.expm1(-(result.user_factors @ result.item_factors.T)).mean()
    assert share == pytest.approx(0.02, rel=0.03)


def test_scaled_factors_and_activities_stay_consistent():
    free = simulate(30, 20, density=None, random_state=5)
    scaled = simulate(30, 20, density=0.3, random_state=5)
    half = free.user_activity[0] / scaled.user_activity[0]
    assert scaled.user_factors == pytest.approx(free.user_factors * half)
    assert scaled.item_factors == pytest.approx(free.item_factors * half)
    assert scaled.item_activity == pytest.approx(free.item_activity / half)
    assert scaled.priors["user_activity_mean"] == pytest.approx(1.0 / half)
    assert scaled.priors["item_activity_mean"] == pytest.approx(1.0 / half)
    # The same priors with no density to reach give back the same factors.
    again = simulate(30, 20, density=None, random_state=5, **scaled.priors)
    assert again.user_factors == pytest.approx(scaled.user_factors)


def test_rate_broadcasts():
    result = simulate(30, 20, random_state=5)
    everything = result.user_factors @ result.item_factors.T
    assert result.rate(np.arange(30)[:, None], np.arange(20)) == pytest.approx(everything)
    assert result.rate([3, 4], 7) == pytest.approx(everything[[3, 4], 7])
    assert result.rate(3, 7).shape == ()
    for bad in (-1, 30, 1.5, "a"):
        with pytest.raises(InputError, match="users must be integers from 0 to 29"):
            result.rate(bad, 0)


# -- form -----------------------------------------------------------------------------------------


def test_result():
    result = simulate(70, 50, n_components=4, random_state=0)
    assert isinstance(result, Simulation)
    assert isinstance(result.interactions, Interactions)
    assert result.interactions.shape == (70, 50)
    assert result.user_factors.shape == (70, 4)
    assert result.item_factors.shape == (50, 4)
    assert result.user_activity.shape == (70,)
    assert result.item_activity.shape == (50,)
    assert result.element == Gamma(2.0, 1.0)
    assert result.interactions.values.dtype == np.float64
    assert result.interactions.matrix.indices.dtype == np.int32
    assert repr(result).startswith("Simulation(Interactions(70 users x 50 items, ")


@pytest.mark.parametrize("density", [0.01, 0.7])
def test_rows_are_canonical(density):
    matrix = simulate(300, 200, density=density, random_state=1).interactions.matrix
    again = sparse.csr_array((matrix.data, matrix.indices, matrix.indptr), shape=matrix.shape)
    assert again.has_canonical_format  # computed, not carried over


def same(a, b):
    return all(
        np.array_equal(getattr(a.interactions.matrix, name), getattr(b.interactions.matrix, name))
        for name in ("data", "indices", "indptr")
    ) and np.array_equal(a.user_factors, b.user_factors)


def test_seeds():
    first = simulate(100, 80, random_state=11)
    assert same(first, simulate(100, 80, random_state=11))
    assert same(first, simulate(100, 80, random_state=np.random.default_rng(11)))
    assert same(first, simulate(100, 80, random_state=np.random.SeedSequence(11)))
    assert not same(first, simulate(100, 80, random_state=12))
    assert not same(simulate(100, 80), simulate(100, 80))


def test_a_generator_moves_on():
    rng = np.random.default_rng(0)
    assert not same(simulate(50, 40, random_state=rng), simulate(50, 40, random_state=rng))


def test_one_by_one():
    assert simulate(1, 1, density=0.5, random_state=0).interactions.shape == (1, 1)


def test_nothing_observed_is_no_error():
    result = simulate(20, 10, density=None, user_activity_mean=1e12, random_state=0)
    assert result.interactions.n_observed == 0


def test_progress_is_shown_only_when_asked_and_only_on_standard_error(capsys):
    simulate(50, 40, random_state=0)
    assert capsys.readouterr() == ("", "")
    quiet = simulate(50, 40, random_state=0, progress=False)
    assert capsys.readouterr() == ("", "")
    shown = simulate(50, 40, random_state=0, progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert "Simulating" in err
    assert same(quiet, shown)


def test_log(caplog):
    with caplog.at_level(logging.INFO, logger="hcpf"):
        simulate(50, 40, random_state=0)
    assert "50 users x 40 items" in caplog.text

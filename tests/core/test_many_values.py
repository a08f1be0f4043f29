"""Tables of discrete elements with hundreds of distinct values, against direct sums over n."""

import numpy as np
import pytest
from scipy import sparse
from scipy.special import gammaln, logsumexp

from core.test_count_tables import assert_direct, diagonal
from hcpf.core import discrete_tables, kernels
from hcpf.core.discrete_tables import RowWeights
from hcpf.elements import (
    Binomial,
    Geometric,
    Logarithmic,
    NegativeBinomial,
    Poisson,
    ZeroTruncatedPoisson,
)
from model.small import quick

SMOOTH = [
    Geometric(0.999),
    Geometric(0.5),
    NegativeBinomial(0.46, 0.9995),
    NegativeBinomial(5.0, 0.5),
    Logarithmic(0.9999),
    Logarithmic(0.6),
]
"""Elements whose n changes little from one large value to the next."""
STEPWISE = [Poisson(142.0), Binomial(300, 0.4), ZeroTruncatedPoisson(60.0)]
RATES = np.array([1e-14, 1e-11, 1e-6, 1e-3, 0.07, 0.9, 4.0, 31.0, 255.9, 256.1, 300.0])
BEYOND = 256.0  # rates that the table does not hold


def many_values(largest):
    return np.unique(np.rint(np.geomspace(1.0, largest, 5000)))


def checked(element, y, log_rate, few=90, **settings):
    """Compare some of the entries with direct sums; return the tables' arrays."""
    shard, mean, sums, n_truncated = diagonal(element, y, log_rate, **settings)
    assert n_truncated == 0
    some = np.linspace(0, len(y) - 1, few).astype(int)
    most = settings.get("max_count")
    assert_direct(element, y[some], log_rate[some], mean[some], sums[some], most)
    return shard.tables.arrays


@pytest.mark.parametrize("element", SMOOTH, ids=repr)
def test_values_between_rows_have_direct_counts_and_sums(element):
    y = many_values(352_698)
    rate = np.tile(RATES, len(y))[: len(y)]
    needed = np.full(len(y), 9.0)
    arrays = checked(element, y, np.log(rate), max_log2_rate=needed)
    assert arrays.mode == kernels.GRID
    assert len(arrays.places) < 0.25 * len(y)
    assert arrays.x_high > BEYOND  # few rows: the table itself serves larger rates


@pytest.mark.parametrize("element", SMOOTH[:3], ids=repr)
def test_rates_outside_are_summed_at_the_rows_around(element):
    y = many_values(50_000)
    rate = np.where(np.arange(len(y)) % 2, 700.0, 1e-16)
    _, _, _, n_truncated = diagonal(element, y, np.log(rate))
    assert n_truncated > 0  # the weights end before the terms do
    arrays = checked(element, y, np.log(rate), max_log2_rate=np.full(len(y), 13.5))
    assert arrays.mode == kernels.GRID
    assert arrays.x_high == BEYOND


@pytest.mark.parametrize("tabulated", [False, True])
@pytest.mark.parametrize("element", STEPWISE, ids=repr)
def test_steps_of_n_keep_the_weights_of_each_value(element, tabulated, monkeypatch):
    if tabulated:
        monkeypatch.setattr(discrete_tables, "_NODES_PER_ENTRY", np.inf)
    y = many_values(30_000)
    rate = np.tile(RATES, len(y))[: len(y)]
    arrays = checked(element, y, np.log(rate), max_log2_rate=np.full(len(y), 9.0))
    assert arrays.mode == kernels.ROWS
    assert np.isfinite(arrays.x_low) == tabulated


@pytest.mark.parametrize("element", [Geometric(0.999), Poisson(142.0)], ids=repr)
def test_truncated_sums(element):
    y = many_values(20_000)
    rate = np.tile(RATES, len(y))[: len(y)]
    checked(element, y, np.log(rate), max_count=9)


def test_zero_and_large_values_together():
    y = np.append(0.0, many_values(100_000))
    element = NegativeBinomial(0.5, 0.99)
    arrays = checked(element, y, np.full(len(y), np.log(0.3)))
    assert arrays.mode == kernels.GRID


def assert_all_weights(element, y, last):
    least, most = element.n_range(y)
    rows = RowWeights.smooth(element, y, least, last, most)
    np.testing.assert_array_equal(rows.least, least)
    np.testing.assert_array_equal(rows.more, last < most)
    for j, value in enumerate(y):
        n = np.arange(least[j], last[j] + 1.0)
        exact = element.log_density_unchecked(np.full(n.shape, value), n) - gammaln(n + 1.0)
        np.testing.assert_allclose(rows.row(j), exact, rtol=1e-12, atol=1e-9)


@pytest.mark.parametrize("element", [*SMOOTH, *STEPWISE], ids=repr)
def test_weights_of_some_counts_give_the_others(element):
    y = np.array([1.0, 70.0, 5000.0, 120_000.0])
    least, most = element.n_range(y)
    assert_all_weights(element, y, np.minimum(least + 5999.0, most))


class OneOrThree(Geometric):
    """A sum of n elements that are 1 or 3 is odd if and only if n is."""

    def log_density_unchecked(self, y, n):
        ups = 0.5 * (y - n)
        with np.errstate(all="ignore"):
            log_p = gammaln(n + 1.0) - gammaln(ups + 1.0) - gammaln(n - ups + 1.0)
        return np.where((ups == np.floor(ups)) & (ups <= n), log_p - n * np.log(2.0), -1e4)


def test_weights_that_jump_between_neighbors_are_all_computed():
    assert_all_weights(OneOrThree(0.5), np.array([900.0, 1001.0]), np.array([880.0, 980.0]))


@pytest.mark.parametrize("g", [0.0, -3e-6])
def test_every_few_terms_of_a_wide_sum_give_all_of_it(g):
    n = np.arange(1.0, 60_000.0)
    series, phi, log_x = -gammaln(n + 1.0), n**2 - 1.0, np.log([3.0, 17.0, 400.0, 2.5e4])
    mean, log_sum = np.empty((2, 4, 1, len(log_x)))
    owner, start = np.zeros(1, np.int64), np.array([0, len(n)])
    kernels.tabulate(0, 1, series, start, owner, phi, np.array([g]), log_x, mean, log_sum)
    for j, slope in enumerate(log_x):
        terms = series + g * phi + n * slope
        total = logsumexp(terms)
        weight = np.exp(terms - total)
        by_n, by_phi = weight @ n, weight @ phi
        np.testing.assert_allclose(mean[0, 0, j], by_n, rtol=1e-11)
        np.testing.assert_allclose(mean[1, 0, j], weight @ (n - by_n) ** 2, rtol=1e-9)
        np.testing.assert_allclose(log_sum[0, 0, j], total - slope, rtol=1e-11)
        np.testing.assert_allclose(log_sum[2, 0, j], g * by_phi, rtol=1e-9)


@pytest.mark.parametrize("element", ["negative_binomial", "geometric", "logarithmic"])
def test_a_fit_with_rows_of_some_values_is_one_with_rows_of_all(element, monkeypatch):
    rng = np.random.default_rng(0)
    values = np.rint(rng.lognormal(5.0, 1.5, 4000)) + 1.0
    pairs = rng.permutation(200 * 100)[:4000]
    matrix = sparse.csr_array((values, (pairs // 100, pairs % 100)), shape=(200, 100))
    few = quick(element=element).fit(matrix)
    monkeypatch.setattr(discrete_tables, "_FEW_ROWS", len(values))
    every = quick(element=element).fit(matrix)
    assert few.history_[-1].elbo == pytest.approx(every.history_[-1].elbo, rel=1e-6)
    users, items = pairs // 100, pairs % 100
    np.testing.assert_allclose(few.rate(users, items), every.rate(users, items), rtol=2e-3)

"""E[n] and log Z as the kernels give them, against direct sums over n."""

import numpy as np
import pytest
from scipy import sparse, special

from cases import CASES
from core import dense
from hcpf.core import count_tables, kernels
from hcpf.core.axis import Axis
from hcpf.core.collective import LOCAL
from hcpf.core.half_step import half_step
from hcpf.core.layout import UserOrder
from hcpf.core.posterior import FactorPosterior, Posterior, axis_prior
from hcpf.core.priors import Priors
from hcpf.core.shard import ShardData, ShardSource
from hcpf.core.value_model import ValueModel
from hcpf.elements import (
    Binomial,
    Gamma,
    InverseGaussian,
    Normal,
    Poisson,
    Separable,
    ZeroTruncatedPoisson,
)
from hcpf.errors import ParameterError
from hcpf.training.start import start_from_posterior
from model.small import ELEMENTS

PRIORS = Priors(1e-9, 1.0, 1.0, 1e-9, 1.0, 1.0)
RATES = np.array([1e-30, 1e-15, 1e-11, 1e-5, 1e-3, 0.07, 0.9, 1.0, 4.0, 31.0, 255.9, 256.1])
LARGE_RATES = np.array([700.0, 1e4, 3e5])
MANY, FEW = (0, 0), (64, 1024)


@pytest.fixture
def few_values(request, monkeypatch):
    """Continuous elements have a table row per value where there are few, else one for all."""
    monkeypatch.setattr(count_tables, "_FEW_VALUES", request.param[0])
    monkeypatch.setattr(count_tables, "_MANY_VALUES", request.param[1])
    return request.param == FEW


def each_table(elements):
    """Parametrize by element and by whether the values are few, where that matters."""
    pairs = [(element, MANY) for element in elements]
    pairs += [(element, FEW) for element in elements if not element.support.discrete]
    names = [f"{element!r}, {'few' if few == FEW else 'many'} values" for element, few in pairs]
    return pytest.mark.parametrize(
        ("element", "few_values"), pairs, indirect=["few_values"], ids=names
    )


def diagonal(element, y, log_rate, max_count=None, max_log2_rate=None):
    """A shard in which user j has the value y_j at item j, with the geometric rate given.

    Returns it with E[n] and log Z of each entry, and the number of sums that were cut short.
    """
    size = len(y)
    matrix = sparse.csr_array((y, (np.arange(size), np.arange(size))), shape=(size, size))
    data = ShardData.whole(matrix)
    order = UserOrder.of(data.numbers, size, None)
    source = ShardSource(data, order, max_count=max_count)
    shard = source.lay_out(ValueModel(element), max_log2_rate)
    # exp(E log) of Gamma(1, b) is exp(psi(1)) / b; each side takes half of the log rate.
    mean = np.exp(0.5 * log_rate - special.psi(1.0)).astype(np.float32)[:, None]
    side = FactorPosterior(np.ones_like(mean), mean, np.ones(size), np.ones(size))
    rng = np.random.default_rng(0)
    state = start_from_posterior(shard, Posterior(side, side), PRIORS, 1, rng, LOCAL)
    users, items, arrays = state.users, state.items, shard.tables.arrays
    sums, single = np.zeros(size), np.arange(size + 1)
    factors = users.factors, items.factors
    kernels.sum_log_z(0, size, shard.users.entries, *factors, arrays, single, sums)
    info = half_step(users, items, shard.users, arrays, axis_prior(PRIORS, Axis.USERS, 1))
    return shard, users.factors.a[:, 0].astype(float), sums, info.n_truncated


def grid(values, rates):
    y, rate = np.meshgrid(np.asarray(values, dtype=float), rates, indexing="ij")
    return y.ravel(), np.log(rate.ravel())


def values_of(element):
    if element.support.discrete:
        return [v for v in (0, 1, 2, 5, 40) if element.support.contains(np.array(float(v)))]
    scale = float(np.sqrt(element.variance)) + abs(float(element.mean))
    values = [0.03 * scale, 0.5 * scale, scale, 3.0 * scale, 11.0 * scale]
    return [-v for v in values] + [0.0, *values] if element.support.lowest < 0 else values


def assert_direct(element, y, log_rate, mean, log_z, most=None):
    pairs = zip(y, log_rate, strict=True)
    direct = [dense.one_sum_over_counts(element, *pair, most) for pair in pairs]
    expected, expected_log = np.array(direct).T
    # Values and rates are held in float32: what a relative error of 1e-7 there can do.
    np.testing.assert_allclose(mean, expected, rtol=4e-6)
    error = np.abs(log_z - expected_log)
    assert np.all(error <= 2e-6 * (1.0 + np.abs(expected_log) + expected))


def log_z_of_entries(element, shard, sums, y):
    """Sums of log Z of single entries, with what the library keeps for all of them together."""
    if shard.tables.arrays.mode == kernels.ROWS:
        return sums
    form = None if element.support.discrete else element.form
    if not isinstance(form, Separable):
        if shard.tables.constant == 0.0:  # otherwise that of entries of known counts
            return sums
        n = element.n_range(y)[0]
        return sums + element.log_density_unchecked(y, n) - special.gammaln(n + 1.0)
    shift = shard.tables.arrays.mode == kernels.SHIFT
    one = np.ones(1)
    return sums + form.c(y) + (0.0 if shift else form.phi(one)[0]) * form.g(y)


@each_table([case.element for case in CASES])
def test_counts_and_sums_are_direct_ones(element, few_values):
    y, log_rate = grid(values_of(element), RATES)
    shard, mean, sums, _ = diagonal(element, y, log_rate)
    log_z = log_z_of_entries(element, shard, sums, y)
    assert_direct(element, y, log_rate, mean, log_z)
    assert np.sum(sums) + shard.tables.constant == pytest.approx(np.sum(log_z), rel=1e-12)


@each_table(ELEMENTS)
def test_rates_beyond_the_table_are_summed_once_the_weights_reach_them(element, few_values):
    has_grid = isinstance(element, Normal) and not few_values  # which takes 5 s up to 3e5
    assert_large_rates_are_served(element, LARGE_RATES[:2] if has_grid else LARGE_RATES)


@pytest.mark.slow
def test_a_grid_serves_the_largest_rates(monkeypatch):
    monkeypatch.setattr(count_tables, "_FEW_VALUES", 0)
    assert_large_rates_are_served(Normal(0.7, 2.0), LARGE_RATES)


def assert_large_rates_are_served(element, rates):
    y, log_rate = grid([values_of(element)[1], values_of(element)[-1]], rates)
    shard, mean, sums, n_truncated = diagonal(element, y, log_rate)
    if element.n_range(y)[1].max() < np.inf:
        assert n_truncated == 0  # no more than y elements make up y
    else:
        assert n_truncated > 0
        needed = shard.tables.needed_log2_rate(log_rate, shard.users.entries.coordinate)
        assert np.all(needed >= np.log2(rates[-1]))
        shard, mean, sums, n_truncated = diagonal(element, y, log_rate, max_log2_rate=needed)
        assert n_truncated == 0
    assert_direct(element, y, log_rate, mean, log_z_of_entries(element, shard, sums, y))


@each_table(ELEMENTS)
def test_values_of_80000(element, few_values):
    y, log_rate = grid([79_999.0, 80_000.0], [1e-30, 1e-8, 0.3, 50.0])
    shard, mean, sums, n_truncated = diagonal(element, y, log_rate)
    assert n_truncated == 0
    assert_direct(element, y, log_rate, mean, log_z_of_entries(element, shard, sums, y))


@each_table(ELEMENTS)
@pytest.mark.parametrize("most", [1, 2, 9])
def test_truncation_is_a_truncated_sum(element, few_values, most):
    values = [v for v in values_of(element) if element.n_range(np.array(v * 1.0))[0] <= most]
    y, log_rate = grid(values, RATES)
    shard, mean, sums, n_truncated = diagonal(element, y, log_rate, max_count=most)
    assert n_truncated == 0
    if shard.tables.arrays.mode != kernels.KNOWN:
        log_z = log_z_of_entries(element, shard, sums, y)
        assert_direct(element, y, log_rate, mean, log_z, most)


def test_truncation_below_the_least_count_is_an_error():
    with pytest.raises(ParameterError, match="max_count=2"):
        diagonal(Binomial(5, 0.5), np.array([1.0, 40.0]), np.zeros(2), max_count=2)


@each_table([Gamma(150.0, 3.0), Normal(-30.0, 0.01), InverseGaussian(0.2, 9.0)])
def test_concentrated_elements_are_summed_directly(element, few_values):
    # Both signs of log y, and a spread of a log y that no float32 holds as a factor.
    y, log_rate = grid(np.array([0.2, 0.9, 1.7, 3.1, 5.9]) * float(element.mean), RATES)
    shard, mean, sums, _ = diagonal(element, y, log_rate)
    assert shard.tables.arrays.mode == (kernels.ROWS if few_values else kernels.DIRECT)
    assert_direct(element, y, log_rate, mean, log_z_of_entries(element, shard, sums, y))


def test_not_too_many_values_have_a_table_row_each_where_no_grid_serves(monkeypatch):
    monkeypatch.setattr(count_tables, "_FEW_VALUES", 0)
    monkeypatch.setattr(count_tables, "_MANY_VALUES", 5)
    element = Gamma(150.0, 3.0)
    y, log_rate = grid(np.array([0.2, 0.9, 1.7, 3.1, 5.9]) * 50.0, RATES)
    for values, mode in ((y, kernels.ROWS), (np.append(y[1:], 60.0), kernels.DIRECT)):
        assert diagonal(element, values, log_rate)[0].tables.arrays.mode == mode
    # The largest rate may have been that of one row for all values.
    shard = diagonal(element, y, log_rate, max_log2_rate=np.array([9.0]))[0]
    assert shard.tables.max_log2_rate.shape == (5,)


def test_float32_values_are_read_as_float64():
    element = Poisson(0.8)
    y, log_rate = grid([0, 3, 40, 333], RATES)
    _, mean, sums, _ = diagonal(element, y.astype(np.float32), log_rate)
    assert_direct(element, y, log_rate, mean, sums)


def test_known_counts_shift_with_the_element():
    # All values 1: n is 1 for any element on 1, 2, ..., whose own density is then in the constant.
    element = ZeroTruncatedPoisson(0.5)
    shard, mean, sums, _ = diagonal(element, np.ones(3), np.zeros(3))
    assert shard.tables.arrays.mode == kernels.KNOWN
    assert shard.tables.log_normalizer == pytest.approx(-np.log(np.expm1(0.5)))
    assert np.all(mean == 1.0)
    total = np.sum(sums) + shard.tables.constant
    assert total == pytest.approx(3 * element.log_density(1.0), abs=1e-6)


def test_inverse_gaussian_values_over_six_decades_at_large_rates_share_a_grid():
    """Log Z is near a million here, and single digits of it must not cost the table."""
    element = InverseGaussian(100.0, 20.0)
    y, log_rate = grid(np.geomspace(0.06, 4e5, 100), np.array([0.01, 1.0, 4e3, 4e7]))
    shard, mean, sums, _ = diagonal(element, y, log_rate, max_log2_rate=np.array([26.0]))
    assert shard.tables.arrays.mode == kernels.GRID
    assert_direct(element, y, log_rate, mean, log_z_of_entries(element, shard, sums, y))

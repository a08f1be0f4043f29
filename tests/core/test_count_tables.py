"""E[n] and log Z as the kernels give them, against direct sums over n."""

import numpy as np
import pytest
from hcpf.core.state import side_prior, state_from_posterior
from scipy import sparse, special

from cases import CASES
from hcpf.core import count_tables as local
from hcpf.core import kernels
from hcpf.core.half_step import half_step
from hcpf.core.layout import make_problem
from hcpf.core.posterior import FactorPosterior, Posterior
from hcpf.core.priors import Priors
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
from core import dense
from core.worlds import ELEMENTS

PRIORS = Priors(1e-9, 1.0, 1.0, 1e-9, 1.0, 1.0)
RATES = np.array([1e-30, 1e-15, 1e-11, 1e-5, 1e-3, 0.07, 0.9, 1.0, 4.0, 31.0, 255.9, 256.1])
LARGE_RATES = np.array([700.0, 1e4, 3e5])


@pytest.fixture(params=[(0, 0), (64, 1024)], ids=["many values", "few values"], autouse=True)
def few_values(request, monkeypatch):
    """Continuous elements have a table row per value where there are few, else one for all."""
    monkeypatch.setattr(local, "_FEW_VALUES", request.param[0])
    monkeypatch.setattr(local, "_MANY_VALUES", request.param[1])
    return request.param[0]


def diagonal(element, y, log_rate, **options):
    """A problem in which user j has the value y_j at item j, with the geometric rate given.

    Returns it with E[n] and log Z of each entry, and the number of sums that were cut short.
    """
    size = len(y)
    matrix = sparse.csr_array((y, (np.arange(size), np.arange(size))), shape=(size, size))
    problem = make_problem(matrix, element, **options)
    # exp(E log) of Gamma(1, b) is exp(psi(1)) / b; each side takes half of the log rate.
    mean = np.exp(0.5 * log_rate - special.psi(1.0)).astype(np.float32)[:, None]
    side = FactorPosterior(np.ones_like(mean), mean, np.ones(size), np.ones(size))
    state = state_from_posterior(problem, Posterior(side, side), 1)
    sums, single = np.zeros(size), np.arange(size + 1)
    sides = state.users, state.items
    kernels.sum_log_z(0, size, problem.users.entries, *sides, problem.tables, single, sums)
    constant = problem.local.constant
    _, counts = half_step(
        state.users, state.items, problem.users, problem,
        side_prior(PRIORS, 1, users=True), state.item_sums,
    )  # fmt: skip
    return problem, state.users.a[:, 0].astype(float), sums, constant, counts[1]


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


def log_z_of_entries(element, problem, sums, y):
    """Sums of log Z of single entries, with what the library keeps for all of them together."""
    if problem.tables.mode == kernels.ROWS:
        return sums
    form = None if element.support.discrete else element.form
    if not isinstance(form, Separable):
        parts = problem.local.constant  # zero, or that of one entry of a known count
        if parts == 0.0:
            return sums
        n = element.n_range(y)[0]
        return sums + element.log_density_unchecked(y, n) - special.gammaln(n + 1.0)
    shift = problem.tables.mode == kernels.SHIFT
    one = np.ones(1)
    return sums + form.c(y) + (0.0 if shift else form.phi(one)[0]) * form.g(y)


@pytest.mark.parametrize("case", CASES, ids=repr)
def test_counts_and_sums_are_direct_ones(case):
    element = case.element
    y, log_rate = grid(values_of(element), RATES)
    problem, mean, sums, constant, _ = diagonal(element, y, log_rate)
    log_z = log_z_of_entries(element, problem, sums, y)
    assert_direct(element, y, log_rate, mean, log_z)
    assert np.sum(sums) + constant == pytest.approx(np.sum(log_z), rel=1e-12)


@pytest.mark.parametrize("element", ELEMENTS, ids=lambda e: e.name)
def test_rates_beyond_the_table_are_summed_once_the_weights_reach_them(element):
    y, log_rate = grid([values_of(element)[1], values_of(element)[-1]], LARGE_RATES)
    problem, mean, sums, _, cut = diagonal(element, y, log_rate)
    if element.n_range(y)[1].max() < np.inf:
        assert cut == 0  # no more than y elements make up y
    else:
        assert cut > 0
        reach = problem.local.reach_for(log_rate, np.arange(len(log_rate)))
        assert np.all(reach >= np.log2(LARGE_RATES[-1]))
        problem, mean, sums, _, cut = diagonal(element, y, log_rate, reach=reach)
        assert cut == 0
    assert_direct(element, y, log_rate, mean, log_z_of_entries(element, problem, sums, y))


@pytest.mark.parametrize("element", ELEMENTS, ids=lambda e: e.name)
def test_values_of_80000(element):
    y, log_rate = grid([79_999.0, 80_000.0], [1e-30, 1e-8, 0.3, 50.0])
    problem, mean, sums, _, cut = diagonal(element, y, log_rate)
    assert cut == 0
    assert_direct(element, y, log_rate, mean, log_z_of_entries(element, problem, sums, y))


@pytest.mark.parametrize("element", ELEMENTS, ids=lambda e: e.name)
@pytest.mark.parametrize("most", [1, 2, 9])
def test_truncation_is_a_truncated_sum(element, most):
    values = [v for v in values_of(element) if element.n_range(np.array(v * 1.0))[0] <= most]
    y, log_rate = grid(values, RATES)
    problem, mean, sums, _, cut = diagonal(element, y, log_rate, n_truncation=most)
    assert cut == 0
    if problem.tables.mode == kernels.KNOWN:
        return
    assert_direct(element, y, log_rate, mean, log_z_of_entries(element, problem, sums, y), most)


def test_truncation_below_the_least_count_is_an_error():
    with pytest.raises(ParameterError, match="n_truncation=2"):
        diagonal(Binomial(5, 0.5), np.array([1.0, 40.0]), np.zeros(2), n_truncation=2)


@pytest.mark.parametrize(
    "element", [Gamma(150.0, 3.0), Normal(-30.0, 0.01), InverseGaussian(0.2, 9.0)], ids=repr
)
def test_concentrated_elements_are_summed_directly(element, few_values):
    # Both signs of log y, and a spread of a log y that no float32 holds as a factor.
    y, log_rate = grid(np.array([0.2, 0.9, 1.7, 3.1, 5.9]) * float(element.mean), RATES)
    problem, mean, sums, _, _ = diagonal(element, y, log_rate)
    assert problem.tables.mode == (kernels.ROWS if few_values else kernels.DIRECT)
    assert_direct(element, y, log_rate, mean, log_z_of_entries(element, problem, sums, y))


def test_not_too_many_values_have_a_table_row_each_where_no_grid_serves(monkeypatch):
    monkeypatch.setattr(local, "_FEW_VALUES", 0)
    monkeypatch.setattr(local, "_MANY_VALUES", 5)
    y, log_rate = grid(np.array([0.2, 0.9, 1.7, 3.1, 5.9]) * 50.0, RATES)
    for values, mode in ((y, kernels.ROWS), (np.append(y[1:], 60.0), kernels.DIRECT)):
        assert diagonal(Gamma(150.0, 3.0), values, log_rate)[0].tables.mode == mode
    wide = local.local_step(Gamma(150.0, 3.0), y, reach=np.array([9.0]))  # of one row for all
    assert wide.reach_for(np.zeros(len(y)), np.arange(len(y))).shape == (5,)


def test_float32_values_are_read_as_float64():
    element = Poisson(0.8)
    y, log_rate = grid([0, 3, 40, 333], RATES)
    _, mean, sums, _, _ = diagonal(element, y.astype(np.float32), log_rate)
    assert_direct(element, y, log_rate, mean, sums)


def test_known_counts_shift_with_the_element():
    # All values 1: n is 1 for any element on 1, 2, ..., whose own density is then in the constant.
    element = ZeroTruncatedPoisson(0.5)
    problem, mean, sums, constant, _ = diagonal(element, np.ones(3), np.zeros(3))
    assert problem.tables.mode == kernels.KNOWN
    assert problem.local.slope == pytest.approx(-np.log(np.expm1(0.5)))
    assert np.all(mean == 1.0)
    assert np.sum(sums) + constant == pytest.approx(3 * element.log_density(1.0), abs=1e-6)

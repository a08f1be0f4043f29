"""Elements against scipy, and elements with array parameters against single ones."""

import mpmath as mp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from cases import CASES, moments, some_values
from hcpf import elements


@pytest.mark.parametrize("n", [1, 2, 9])
@pytest.mark.parametrize("case", [case for case in CASES if case.scipy], ids=repr)
def test_agrees_with_scipy(case, n):
    y, twin, element = some_values(case.element, n), case.scipy(n), case.element
    log_twin = twin.logpmf(y) if element.support.discrete else twin.logpdf(y)
    assert_allclose(element.log_density(y, n), log_twin, rtol=1e-9, atol=1e-9)
    assert_allclose(element.cdf(y, n), twin.cdf(y), rtol=1e-9, atol=1e-13)
    assert_allclose(moments(element, n), (twin.mean(), twin.std()), rtol=1e-12)


@pytest.mark.parametrize("p", [0.001, 0.6, 0.97])
def test_logarithmic_agrees_with_scipy_for_one(p):
    element, twin, y = elements.Logarithmic(p), stats.logser(p), np.arange(1.0, 60.0)
    assert_allclose(element.log_density(y), twin.logpmf(y), rtol=1e-10, atol=1e-10)
    assert_allclose([element.mean, element.variance], twin.stats(), rtol=1e-9)


@pytest.mark.parametrize("rate", [1e-6, 0.5, 25.0])
def test_zero_truncated_poisson_is_a_poisson_that_is_not_zero(rate):
    element, whole, y = (
        elements.ZeroTruncatedPoisson(rate),
        stats.poisson(rate),
        np.arange(1.0, 90.0),
    )
    truncated = whole.logpmf(y) - np.log(-np.expm1(-rate))
    assert_allclose(element.log_density(y), truncated, rtol=1e-10, atol=1e-9)


@pytest.mark.parametrize("shape", [1e-6, 1.0, 1e3, 1e12])
def test_inverse_gaussian_cdf_in_high_precision(shape):
    """Its textbook form multiplies e^(2 shape / mean) with a tail that cancels it."""
    mean = 1.7
    element = elements.InverseGaussian(mean, shape)
    for y in mean * (1 + np.array([-2.0, -0.3, 0.0, 1.0, 3.0]) * min(0.3, (mean / shape) ** 0.5)):
        with mp.workdps(60):
            m, s, x = mp.mpf(mean), mp.mpf(shape), mp.mpf(y)
            near, far = mp.sqrt(s / x) * (x / m - 1), mp.sqrt(s / x) * (x / m + 1)
            tail = mp.erfc(far / mp.sqrt(2)) / 2
            exact = float(mp.ncdf(near) + mp.exp(2 * s / m) * tail)
        assert_allclose(element.cdf(y), exact, rtol=1e-9)


@pytest.mark.parametrize("family", elements.ALL, ids=lambda family: family.name)
def test_array_parameters_broadcast(family, rng):
    singles = [case.element for case in CASES if type(case.element) is family]
    names = family.domains()
    stacked = family(**{name: [getattr(e, name) for e in singles] for name in names})
    y = some_values(singles[0])[-7:, None]
    n = np.array([1.0, 2.0, 5.0])[:, None, None]
    for method in ("log_density", "cdf"):
        whole = getattr(stacked, method)(y, n)
        assert whole.shape == (3, len(y), len(singles))
        for index, single in enumerate(singles):
            assert_allclose(whole[..., index], getattr(single, method)(y, n)[..., 0], rtol=1e-13)
    drawn = stacked.sample(np.full((5000, 1), 4), rng)
    assert drawn.shape == (5000, len(singles))
    for column, single in zip(drawn.T, singles, strict=True):
        mean, spread = moments(single, 4)
        assert abs(column.mean() - mean) <= 6 * spread / np.sqrt(5000)
    assert np.shape(np.broadcast_to(stacked.mean, len(singles))) == (len(singles),)


def test_parameters_broadcast_with_each_other():
    element = elements.Gamma(shape=[[1.0], [2.0]], rate=[3.0, 4.0, 5.0])
    assert element.log_density(1.0).shape == (2, 3)
    assert element.log_density(1.0)[1, 2] == elements.Gamma(2.0, 5.0).log_density(1.0)
    assert element.mean.shape == (2, 3)

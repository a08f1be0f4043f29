"""The float32 functions of the inner loops, against scipy in float64."""

import numba
import numpy as np
import pytest
from numba.extending import intrinsic
from scipy.special import digamma, gammaln

from hcpf.core.kernels.gamma_bound import gamma_row_bound
from hcpf.core.kernels.lanes import exponential, power_of_two, splat
from hcpf.core.kernels.posterior import rescale_row
from hcpf.core.kernels.scalars import fast_log2
from hcpf.core.kernels.types import LANES, padded


@numba.njit
def _geometric_means(a, mean, out, least):
    for u in range(len(a)):
        least[u] = rescale_row(a, mean, out, u)


def _each(function):
    """A vector function applied to every element of an array."""

    @intrinsic
    def of_one(typing_context, x):
        def generate(context, builder, signature, arguments):
            return function(splat(builder, arguments[0], LANES)).lane(LANES - 1)

        return x(x), generate

    @numba.njit
    def of_all(x):
        out = np.empty_like(x)
        for j in range(len(x)):
            out[j] = of_one(x[j])
        return out

    return of_all


@pytest.mark.parametrize(
    ("low", "high", "tolerance"),
    [(0.0125, 0.3, 3e-5), (0.3, 3.0, 2e-6), (3.0, 1e4, 4e-7), (1e4, 1e13, 3e-7)],
)
def test_geometric_mean(low, high, tolerance):
    a = np.geomspace(low, high, 20_000).astype(np.float32).reshape(400, 50)
    mean = np.geomspace(1e-6, 1e6, 20_000).astype(np.float32).reshape(400, 50)
    out, least = np.full((400, padded(50)), np.nan, np.float32), np.empty(400, np.float32)
    _geometric_means(a, mean, out, least)
    exact = np.exp(digamma(a.astype(float)) - np.log(a.astype(float))) * mean.astype(float)
    np.testing.assert_allclose(out[:, :50], exact, rtol=tolerance)
    np.testing.assert_array_equal(out[:, 50:], 0.0)
    np.testing.assert_array_equal(least, a.min(axis=1))


def test_geometric_mean_of_tiny_shapes_is_nothing():
    a = np.array([[1e-40, 1e-30, 1e-8, 1e-3]], np.float32)
    out, least = np.ones((1, LANES), np.float32), np.empty(1, np.float32)
    _geometric_means(a, np.full((1, 4), 1e3, np.float32), out, least)
    np.testing.assert_array_equal(out, 0.0)


@pytest.mark.parametrize(
    ("function", "exact", "low", "high"),
    [(exponential, np.exp, -87.0, 88.0), (power_of_two, np.exp2, -126.0, 127.4)],
    ids=["exp", "exp2"],
)
def test_exponentials(function, exact, low, high):
    x = np.concatenate([np.linspace(low, high, 200_000), np.linspace(-1.0, 1.0, 100_000)])
    x = x.astype(np.float32)
    np.testing.assert_allclose(_each(function)(x), exact(x.astype(float)), rtol=3e-7)


@numba.njit
def _logarithms(x, out):
    for j in range(len(x)):
        out[j] = fast_log2(x[j])


def test_fast_log2():
    x = np.concatenate([np.geomspace(1.2e-38, 3e38, 200_000), np.linspace(0.5, 2.0, 100_000)])
    x = x.astype(np.float32)
    out = np.empty_like(x)
    _logarithms(x, out)
    exact = np.log2(x.astype(float))
    np.testing.assert_allclose(out, exact, rtol=3e-7, atol=2e-7)
    assert out[x == 1.0].tolist() == [0.0] * int(np.sum(x == 1.0))


@numba.njit
def _row_bounds(a, mean, shape, bound, sum_of_means):
    for u in range(len(a)):
        bound[u], sum_of_means[u] = gamma_row_bound(a, mean, u, shape)


@pytest.mark.parametrize("size", [1, 7, 8, 13, 50, 2000])
@pytest.mark.parametrize(("low", "high"), [(1e-30, 1e-4), (1e-4, 1.0), (1.0, 1e4)])
def test_what_the_gammas_of_a_row_add_to_the_elbo(size, low, high):
    rng = np.random.default_rng(size)
    a = np.exp(rng.uniform(np.log(low), np.log(high), (5, size))).astype(np.float32)
    mean = np.exp(rng.uniform(-40.0, 20.0, (5, size))).astype(np.float32)
    bound, sum_of_means = np.empty(5), np.empty(5)
    _row_bounds(a, mean, 0.3, bound, sum_of_means)
    a, mean = a.astype(np.float64), mean.astype(np.float64)
    parts = [gammaln(a), (0.3 - a) * digamma(a), a, -0.3 * np.log(a / mean)]
    size_of_parts = np.abs(parts).sum(axis=(0, 2))  # they cancel
    np.testing.assert_allclose(
        bound, np.sum(parts, axis=(0, 2)), rtol=0, atol=1e-14 * size_of_parts.max()
    )
    np.testing.assert_allclose(sum_of_means, mean.sum(axis=1), rtol=1e-13)

"""The float32 functions of the inner loops, against scipy in float64."""

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import digamma

from hcpf.inference.kernels.scalars import fast_exp, fast_log2, geometric_mean
from hcpf.inference.kernels.vector import exp_four


@numba.njit
def _geometric_means(a, mean, out):
    for j in range(len(a)):
        out[j] = geometric_mean(a[j], mean[j])


@numba.njit
def _exponentials(x, one, four):
    for j in range(0, len(x), 4):
        four[j], four[j + 1], four[j + 2], four[j + 3] = exp_four(
            (x[j], x[j + 1], x[j + 2], x[j + 3])
        )
        for k in range(j, j + 4):
            one[k] = fast_exp(x[k])


@pytest.mark.parametrize(
    ("low", "high", "tolerance"),
    [(0.0125, 0.3, 3e-5), (0.3, 3.0, 2e-6), (3.0, 1e4, 4e-7), (1e4, 1e13, 3e-7)],
)
def test_geometric_mean(low, high, tolerance):
    a = np.geomspace(low, high, 20_000).astype(np.float32)
    mean = np.geomspace(1e-6, 1e6, 20_000).astype(np.float32)
    out = np.empty_like(a)
    _geometric_means(a, mean, out)
    exact = np.exp(digamma(a.astype(float)) - np.log(a.astype(float))) * mean.astype(float)
    np.testing.assert_allclose(out, exact, rtol=tolerance)


def test_geometric_mean_of_tiny_shapes_is_nothing():
    a = np.array([1e-40, 1e-30, 1e-8, 1e-3], np.float32)
    out = np.empty_like(a)
    _geometric_means(a, np.full(4, 1e3, np.float32), out)
    np.testing.assert_array_equal(out, 0.0)


@given(st.lists(st.floats(-86.0, 80.0, width=32), min_size=4, max_size=4))
def test_exponentials(values):
    x = np.array(values, np.float32)
    one, four = np.empty((2, 4), np.float32)
    _exponentials(x, one, four)
    exact = np.exp(x.astype(float))
    np.testing.assert_allclose(one, exact, rtol=3e-7)
    np.testing.assert_allclose(four, exact, rtol=3e-7)


def test_four_exponentials_beyond_their_range():
    x = np.array([-1e30, -100.0, 81.0, 1e30], np.float32)
    one, four = np.empty((2, 4), np.float32)
    _exponentials(np.minimum(x, 80.0).astype(np.float32), one, four)
    np.testing.assert_array_equal(one[:2], 0.0)
    np.testing.assert_allclose(four, np.exp(np.clip(x.astype(float), -87.0, 80.0)), rtol=3e-7)


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

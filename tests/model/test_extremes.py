"""Values that are all 1, or as large or small as numbers get: the right answer or a clear error."""

import numpy as np
import pytest
from scipy import sparse

from hcpf.elements import (
    Binomial,
    Degenerate,
    Gamma,
    Geometric,
    InverseGaussian,
    Logarithmic,
    Normal,
    Poisson,
    Presence,
    ZeroTruncatedPoisson,
)
from hcpf.errors import SupportError
from model.life import Start, live
from model.small import draw_matrix, quick

FULL = ((True,) * 5,) * 6


def ones(shape=(12, 8)):
    matrix = sparse.random_array(shape, density=0.5, rng=0, format="csr")
    matrix.data[:] = 1.0
    return matrix


@pytest.mark.parametrize("vary_by", ["user", "item"])
@pytest.mark.parametrize("hurdle", [False, True])
@pytest.mark.parametrize("element", [Logarithmic(), ZeroTruncatedPoisson()], ids=lambda e: e.name)
def test_where_every_value_is_1_a_value_is_1(element, hurdle, vary_by):
    model = quick(2, element=element, vary_by=vary_by, hurdle=hurdle, max_iter=20).fit(ones())
    pairs = model.predict_distribution(model.users_[:, None], model.items_)
    if hurdle:
        np.testing.assert_allclose(pairs.log_density_observed(1.0), 0.0, atol=1e-6)
        np.testing.assert_allclose(pairs.mean_observed, 1.0, atol=1e-6)
    else:  # n is 1 or more, and every element is 1
        rate = pairs.rate
        np.testing.assert_allclose(pairs.log_density(1.0), np.log(rate) - rate, atol=1e-6)
    low, high = pairs.observed.interval(0.9)
    assert np.all(low == 1.0)
    assert np.all(high >= 1.0)
    assert np.isfinite(model.score(ones()))


def counts(top, seed=0, shape=(9, 7)):
    """Counts from 1 of all sizes up to ``top``."""
    rng = np.random.default_rng(seed)
    values = np.floor(np.exp(rng.random(shape) * np.log(top)))
    return sparse.csr_array(np.where(rng.random(shape) < 0.6, values, 0.0))


@pytest.mark.parametrize(
    ("element", "vary_by", "data"),
    [
        (Geometric(), "item", ones()),
        (Poisson(), "both", counts(1e9)),
        (Poisson(), "user", counts(1e9)),
        (ZeroTruncatedPoisson(), "item", counts(1e9)),
        (Binomial(), "item", counts(1e9)),
        (Logarithmic(), "item", counts(1e9)),
    ],
    ids=lambda part: getattr(part, "name", None),
)
def test_explanations_add_up_where_rates_overflow(element, vary_by, data):
    model = quick(2, element=element, vary_by=vary_by, max_iter=30, tempering=1.0).fit(data)
    for user in model.users_[:5]:
        parts = model.explain(user, 1)
        assert np.all(np.isfinite(parts.rate))
        assert np.sum(parts.rate) == pytest.approx(float(model.rate(user, 1)), rel=1e-6)
        assert np.all(parts.rate[:-1] >= 0)


@pytest.mark.parametrize("size", [1e300, 1e-300, 1e150])
@pytest.mark.parametrize("element", [Gamma(), InverseGaussian(), Normal()], ids=lambda e: e.name)
@pytest.mark.parametrize("vary_by", [None, "item", "both"])
def test_continuous_values_beyond_double_precision_are_to_be_rescaled(element, size, vary_by):
    data = size * np.random.default_rng(0).uniform(0.5, 1.5, (6, 5))
    with pytest.raises(SupportError, match=r"cannot be trained on a value of .*Rescale them"):
        quick(2, element=element, vary_by=vary_by).fit(data)
    model = quick(2, element=element, vary_by=vary_by).fit(data / size)
    assert np.all(np.isfinite(model.predict(model.users_[:, None], model.items_)))
    with pytest.raises(SupportError, match="Rescale them"):
        model.fold_in(data)


@pytest.mark.parametrize(
    "element", [Logarithmic(), Poisson(), Degenerate(), Geometric()], ids=lambda e: e.name
)
def test_counts_near_2_to_53_are_to_be_rescaled(element):
    data = np.random.default_rng(0).integers(2**52, 2**53, (6, 5)).astype(np.float64)
    with pytest.raises(SupportError, match="Rescale them and choose an element for numbers above"):
        quick(2, element=element).fit(data)
    quick(2, element=Presence()).fit(data)  # which counts every value as 1


@pytest.mark.parametrize("vary_by", [None, "user", "item"])
@pytest.mark.parametrize("hurdle", [False, True])
@pytest.mark.parametrize(
    "element", [Logarithmic(), ZeroTruncatedPoisson(), Degenerate()], ids=lambda e: e.name
)
def test_intervals_of_huge_counts_need_no_tables(element, hurdle, vary_by):
    if element.conjugate is None and (hurdle or vary_by is not None):
        pytest.skip("every element is 1")
    values = tuple(np.random.default_rng(1).integers(1, 10**9, 30).astype(float))
    assert live(Start(element, values, FULL, vary_by, hurdle)) == "whole"


@pytest.mark.parametrize("size", [1e20, 3e38, 1e57])
@pytest.mark.parametrize(
    ("element", "vary_by"),
    [(Gamma(2.0, 1.0), None), (Gamma(2.0, 1.0), "both"), (Normal(1.0, 2.0), None)],
    ids=str,
)
def test_values_beyond_what_the_element_explains_end_in_an_error(element, vary_by, size):
    matrix = draw_matrix(element)
    model = quick(2, element=element, vary_by=vary_by, max_iter=3).fit(matrix).model_
    pair = model.predict_distribution(1, 1)
    assert np.isfinite(pair.log_density(size))
    assert pair.cdf(size) == 1.0
    matrix.data = matrix.data * size
    for call in (model.score, model.fold_in, model.fold_in_items):
        with pytest.raises(SupportError, match=r"cannot explain a value of .*Rescale the values"):
            call(matrix)


def test_counts_of_few_pairs_to_1e12_have_intervals():
    """The predictive cdf integrates over a beta density as narrow as 1e-6 of its mean."""
    values = 813270239200.0, 912755577277.0, 606635775767.0, 729496560983.0
    start = Start(Binomial(), values, ((True, True),) * 2, "user", max_iter=1)
    assert live(start) == "whole"

"""Input that cannot be used: one exception of ours each, with a message that says where."""

from decimal import Decimal

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from cases import EVERYDAY, NEEDING_PARAMETERS
from hcpf import CompoundPoisson
from hcpf.elements import (
    POSITIVE_INTEGER,
    UNIT_INTERVAL,
    Binomial,
    Gamma,
    Geometric,
    Normal,
    Poisson,
)
from hcpf.errors import EstimationError, InputError, ParameterError, SupportError

ELEMENTS = [case.element for case in EVERYDAY]
each_element = pytest.mark.parametrize("element", ELEMENTS, ids=repr)
PARAMETERS = [
    (family, name, domain)
    for family in NEEDING_PARAMETERS
    for name, domain in family.domains().items()
]


@pytest.mark.parametrize(("family", "name", "domain"), PARAMETERS)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, [1.0, np.nan], -1e300])
def test_parameters_outside_their_domain(family, name, domain, value):
    if value == -1e300 and family is Normal and name == "mean":
        value = np.nan
    with pytest.raises(ParameterError, match=f"{family.__name__}.*{name}"):
        family(**{name: value})


@pytest.mark.parametrize(("family", "name", "domain"), PARAMETERS)
@pytest.mark.parametrize("value", ["3", "much", b"1", [["a"]], 1 + 2j, object(), [None, 1.0], {}])
def test_parameters_of_the_wrong_type(family, name, domain, value):
    with pytest.raises(InputError, match=f"{family.__name__}.*{name}.*numbers"):
        family(**{name: value})


@pytest.mark.parametrize(("family", "name", "domain"), PARAMETERS)
def test_edges_of_the_domains(family, name, domain):
    outside = {UNIT_INTERVAL: [0.0, 1.0, 1.5], POSITIVE_INTEGER: [0.0, 2.5]}.get(domain, [0.0])
    for value in outside if name != "mean" or family is not Normal else []:
        with pytest.raises(ParameterError, match=domain.description):
            family(**{name: value})


def test_the_place_of_a_bad_parameter():
    with pytest.raises(ParameterError, match=r"got -2 at position 1, 0"):
        Poisson([[1.0], [-2.0]])


@pytest.mark.parametrize("value", [3, np.float32(3), np.int8(3), np.array(3), True, Decimal(3)])
def test_numbers_of_any_kind_are_fine(value):
    assert Poisson(value).rate == float(value)
    assert isinstance(Poisson(value).rate, float)
    assert np.isfinite(Poisson(2.0).log_density(value))


@each_element
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite(element, bad):
    for use in (
        element.log_density,
        type(element).estimate,
        CompoundPoisson(1, element).log_density,
    ):
        with pytest.raises(SupportError, match=r"(nan|inf) at position 1, 0"):
            use([[1.0], [bad]])


@each_element
def test_values_outside_the_support(element):
    support, bad = element.support, []
    if support.discrete:
        bad += [0.5, 2.000001]
    if support.lowest >= 0:
        bad += [-1.0]
    if not support.has_zero:
        bad += [0.0]
    for value in bad:
        for use in (element.log_density, type(element).estimate):
            with pytest.raises(SupportError, match=rf"{value:g} at position 2 \(2 such"):
                use([1.0, 2.0, value, value])
        with pytest.raises(SupportError, match=type(element).__name__):
            element.log_density(value)


@each_element
@pytest.mark.parametrize("bad", ["3", None, ["a", "b"], {"a": 1}, 2j, [None]])
def test_values_of_the_wrong_type(element, bad):
    compound = CompoundPoisson(1.0, element)
    uses = (element.log_density, element.cdf, type(element).estimate, compound.log_density)
    for use in (*uses, compound.cdf, compound.quantile):
        with pytest.raises(InputError, match="numbers"):
            use(bad)


@each_element
@pytest.mark.parametrize("n", [0, -1, 1.5, np.nan, np.inf, [1, 0], "2", None])
def test_numbers_of_elements(element, n, rng):
    with pytest.raises(InputError, match="number of summed elements"):
        element.log_density(1.0, n)
    with pytest.raises(InputError, match="number of summed elements"):
        element.cdf(1.0, n)
    if n not in (0, [1, 0]):
        with pytest.raises(InputError, match="number of summed elements"):
            element.sample(n, rng)


@each_element
def test_the_cdf_takes_any_number_but_nan(element):
    with pytest.raises(InputError, match="NaN"):
        element.cdf([0.0, np.nan])


@each_element
@pytest.mark.parametrize("rng", [None, 3, np.random])
def test_random_numbers_come_from_a_generator(element, rng):
    with pytest.raises(InputError, match="default_rng"):
        element.sample(1, rng)
    with pytest.raises(InputError, match="default_rng"):
        CompoundPoisson(1.0, element).sample(rng=rng)


@each_element
def test_estimates_from_nothing(element):
    with pytest.raises(InputError, match="no values"):
        type(element).estimate([])


def test_estimates_with_arrays_as_given():
    with pytest.raises(ParameterError, match="single number"):
        Gamma.estimate([1.0, 2.0], shape=[1.0, 2.0])
    with pytest.raises(ParameterError, match="above 0"):
        Gamma.estimate([1.0, 2.0], shape=-1.0)


def test_too_few_trials():
    with pytest.raises(ParameterError, match="below the largest value 7"):
        Binomial.estimate([1, 7], trials=5)


@each_element
def test_no_values_give_no_results(element, rng):
    nothing = np.empty((0, 3))
    assert element.log_density(nothing).shape == (0, 3)
    assert element.cdf(nothing).shape == (0, 3)
    assert element.sample(nothing, rng).shape == (0, 3)


@pytest.mark.parametrize("family", [Normal, Gamma], ids=lambda family: family.__name__)
def test_values_beyond_double_precision(family):
    with pytest.raises(EstimationError, match="Rescale"):
        family.estimate([1e-300, 1e308, 1.5e308])


def test_a_value_too_far_out_has_no_density():
    assert Normal(0.0, 1.0).log_density(1e200) == -np.inf
    assert CompoundPoisson(1.0, Normal(0.0, 1.0)).log_density(1e200) == -np.inf
    assert_array_equal(Geometric(0.5).log_density([1, 2], 3), [-np.inf, -np.inf])

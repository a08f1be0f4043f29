"""Elements as values: names, printing, comparison, copies, parameters left out."""

import copy
import pickle
from dataclasses import FrozenInstanceError, dataclass

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import gammaln

from cases import CASES, EVERYDAY, NEEDING_PARAMETERS, some_values, whole_numbers
from hcpf import CompoundPoisson, elements
from hcpf.elements import (
    COUNTS,
    POSITIVE,
    POSITIVE_COUNTS,
    REAL,
    UNIT_INTERVAL,
    Element,
    Gamma,
    Normal,
    Poisson,
    parameter,
)
from hcpf.errors import (
    EstimationError,
    HcpfError,
    IncompleteElementError,
    InputError,
    ParameterError,
)

ELEMENTS = [case.element for case in EVERYDAY]
each_element = pytest.mark.parametrize("element", ELEMENTS, ids=repr)
each_family = pytest.mark.parametrize("family", NEEDING_PARAMETERS, ids=lambda family: family.name)


def test_there_are_ten_with_names_of_their_own():
    assert len(elements.ALL) == 10
    for attribute in ("name", "acronym", "__name__"):
        assert len({getattr(family, attribute) for family in elements.ALL}) == 10
    assert {family.__name__ for family in elements.ALL} <= set(elements.__all__)


@each_element
def test_get_by_name_and_acronym(element):
    family = type(element)
    for name in (family.name, family.acronym, family.__name__, family.name.upper()):
        assert elements.get(name) is family
    assert elements.get(f" {family.name.replace('_', '-')} ") is family


@pytest.mark.parametrize("name", ["gauss", "", "none", None, 3])
def test_get_an_unknown_name(name):
    with pytest.raises(InputError, match="inverse_gaussian"):
        elements.get(name)


def test_repr_says_what_is_set():
    assert repr(Gamma(2, 0.05)) == "Gamma(shape=2, rate=0.05)"
    assert repr(Gamma(shape=2)) == "Gamma(shape=2, rate=?)"
    assert repr(Poisson(np.ones((2, 3)))) == "Poisson(rate=<array of shape (2, 3)>)"
    assert repr(elements.Degenerate()) == "Degenerate()"


@each_element
def test_equality_and_hash(element):
    same = type(element)(**element.parameters)
    assert element == same
    assert hash(element) == hash(same)
    assert len({element, same}) == 1
    for other in CASES:
        assert (element == other.element) == (repr(element) == repr(other.element))
    assert element != repr(element)


def test_equality_of_zeros_arrays_and_gaps():
    assert Normal(0.0, 1.0) == Normal(-0.0, 1.0)
    assert hash(Normal(0.0, 1.0)) == hash(Normal(-0.0, 1.0))
    assert Poisson([1.0, 2.0]) == Poisson(np.array([1, 2]))
    assert hash(Poisson([1.0, 2.0])) == hash(Poisson(np.array([1, 2])))
    assert Poisson([1.0, 2.0]) != Poisson([1.0, 3.0])
    assert Poisson([1.0]) != Poisson(1.0)
    assert Gamma(shape=2.0) == Gamma(2.0)
    assert Gamma(shape=2.0) != Gamma(rate=2.0)
    assert Gamma(1.0, 1 / 3) != Gamma(1.0, 0.333333)


@each_element
def test_copies_and_pickles(element):
    twins = [copy.copy(element), copy.deepcopy(element), pickle.loads(pickle.dumps(element))]
    y = some_values(element)
    for twin in twins:
        assert twin == element
        assert_array_equal(twin.log_density(y), element.log_density(y))


@each_family
def test_incomplete_elements_copy_too(family):
    assert copy.deepcopy(family()) == pickle.loads(pickle.dumps(family())) == family()


@each_element
def test_immutable(element):
    for name in element.domains():
        with pytest.raises(FrozenInstanceError):
            setattr(element, name, 1.0)


def test_array_parameters_are_kept_apart_from_what_was_given():
    given = np.array([1.0, 2.0])
    element = Poisson(given)
    given[0] = -5.0
    assert_array_equal(element.rate, [1.0, 2.0])
    with pytest.raises(ValueError, match="read-only"):
        element.rate[0] = 3.0


@each_family
def test_parameters_left_out(family, rng):
    element = family()
    assert not element.is_complete
    assert element.parameters == {}
    assert "=?" in repr(element)
    name = next(iter(family.domains()))
    uses = [
        lambda: element.log_density(1.0),
        lambda: element.cdf(1.0),
        lambda: element.sample(1, rng),
        lambda: element.log_prob_zero + getattr(element, name),
        lambda: CompoundPoisson(1.0, element),
        *(lambda what=what: getattr(element, what) for what in ("theta", "mean", "variance")),
        *(lambda what=what: getattr(element, what) for what in family.domains()),
    ]
    for use in uses:
        with pytest.raises(IncompleteElementError, match=name):
            use()


def test_incomplete_is_one_of_our_errors_and_an_attribute_error():
    assert issubclass(IncompleteElementError, HcpfError)
    assert not hasattr(Poisson(), "rate")
    assert Gamma(shape=2.0).kappa == 2.0
    with pytest.raises(IncompleteElementError, match="rate"):
        _ = Gamma(shape=2.0).mean


@each_element
def test_no_such_attribute(element):
    with pytest.raises(AttributeError, match="color") as caught:
        _ = element.color
    assert not isinstance(caught.value, HcpfError)


@each_element
def test_replace(element):
    assert element.replace() == element
    for name, value in element.parameters.items():
        without = element.replace(**{name: None})
        assert name not in without.parameters
        assert without.replace(**{name: value}) == element
    with pytest.raises(ParameterError, match="color"):
        element.replace(color=3)
    with pytest.raises(ParameterError, match="color"):
        type(element).estimate([1.0, 2.0], color=3)


@each_element
def test_complete_estimates_only_what_is_missing(element, rng):
    y = element.sample(np.ones(300), rng)
    assert element.complete(y) is element
    for name, value in element.parameters.items():
        partial = type(element)(**{name: value}) if len(element.parameters) > 1 else type(element)()
        if name == "trials":
            value = 9.0
            partial = type(element)(trials=value)
        completed = partial.complete(y)
        assert completed.is_complete
        assert completed == type(element).estimate(y, **partial.parameters)
        for kept, kept_value in partial.parameters.items():
            assert completed.parameters[kept] == kept_value


# -- an element of one's own -----------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class Twice(Element):
    """Twice a Poisson, and nothing more than the contract asks for."""

    rate: float = parameter(POSITIVE)

    name, acronym, support = "twice", "TW", COUNTS
    theta = property(lambda self: 0.5 * np.log(self.rate))
    kappa = property(lambda self: 1.0)
    mean = property(lambda self: 2.0 * self.rate)
    variance = property(lambda self: 4.0 * self.rate)

    def log_partition(self, theta):
        return np.exp(2.0 * np.asarray(theta))

    def log_base_measure(self, y, kappa):
        inside = 0.5 * y * np.log(kappa) - gammaln(0.5 * y + 1.0)
        return np.where(np.mod(y, 2) == 0, inside, -np.inf)

    def draw(self, n, rng):
        return 2.0 * rng.poisson(n * self.rate)


@dataclass(frozen=True, eq=False, repr=False)
class Laplace(Element):
    """Continuous and bare: a location and a width, of which only one value is ever summed."""

    location: float = parameter(REAL)
    width: float = parameter(POSITIVE)

    name, acronym, support = "laplace", "LA", elements.REALS
    theta = kappa = mean = variance = property(lambda self: 0.0)

    def log_partition(self, theta):
        return np.zeros(())

    def log_base_measure(self, y, kappa):
        return -np.abs(y - self.location) / self.width - np.log(2.0 * self.width)

    def draw(self, n, rng):
        return rng.laplace(self.location, self.width, n.shape)


def test_own_discrete_element_has_all_the_rest(rng):
    element, plain, y = Twice(1.3), Poisson(1.3), whole_numbers(Twice(1.3), 5)
    assert_allclose(element.cdf(y, 5), plain.cdf(np.floor(y / 2), 5), atol=1e-13)
    assert_array_equal(element.form.table(y, 1.0), element.log_density(y))
    assert_allclose(element.log_prob_zero, -1.3)
    sample = element.sample(np.ones(500), rng)
    assert_allclose(Twice.estimate(sample).rate, sample.mean() / 2, rtol=1e-6)
    compound, twin = CompoundPoisson(0.8, element), CompoundPoisson(0.8, plain)
    assert_allclose(compound.log_density([0, 2, 8]), twin.log_density([0, 1, 4]), atol=1e-12)
    assert_allclose(compound.observed.quantile([0.3, 0.9]), 2 * twin.observed.quantile([0.3, 0.9]))


def test_own_continuous_element_must_bring_a_cdf_and_a_form():
    element = Laplace(0.0, 1.0)
    for use in (lambda: element.cdf(1.0), lambda: element.form):
        with pytest.raises(InputError, match="continuous"):
            use()


def test_general_estimate_of_an_own_element(rng):
    y = rng.laplace(-7.0, 3.0, 401)
    found = Laplace.estimate(y)
    assert_allclose(found.location, np.median(y), atol=1e-4)
    assert_allclose(found.width, np.mean(np.abs(y - np.median(y))), rtol=1e-5)
    assert Laplace.estimate(y, width=2.0).width == 2.0


def test_general_estimate_without_any_mass():
    with pytest.raises(EstimationError, match="no parameters"):
        Twice.estimate([1.0, 3.0])


def test_general_estimate_needs_whole_numbers_given():
    @dataclass(frozen=True, eq=False, repr=False)
    class Counted(Twice):
        times: float = parameter(elements.POSITIVE_INTEGER)

    with pytest.raises(EstimationError, match="cannot estimate times"):
        Counted.estimate([2.0, 4.0])
    assert Counted.estimate([2.0, 4.0], times=3).times == 3.0


def test_supports_and_domains_are_public():
    assert POSITIVE_COUNTS.lowest == 1.0
    assert not POSITIVE_COUNTS.has_zero
    assert COUNTS.has_zero
    assert UNIT_INTERVAL.check("Some", "p", 0.5) == 0.5

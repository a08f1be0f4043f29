"""The tables and links of README and docs/elements.md; the example element keeps the contract."""

import importlib.util
import re
import sys

import numpy as np
import pytest
from scipy import stats

from hcpf import CompoundPoisson
from hcpf.elements import Element
from hcpf.errors import ParameterError, SupportError
from pages import ROOT, python_blocks

EXAMPLE = ROOT / "docs" / "examples" / "shifted_negative_binomial.py"
PAGES = [ROOT / "README.md", ROOT / "docs" / "elements.md"]


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("shifted_negative_binomial", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module.ShiftedNegativeBinomial
    del sys.modules[spec.name]


@pytest.fixture(scope="module", params=[(1.5, 0.6), (0.3, 0.2), (8.0, 0.35)], ids=str)
def element(request, example):
    return example(*request.param)


# -- the pages ----------------------------------------------------------------------------------


def test_page_shows_the_example_file():
    assert EXAMPLE.read_text() in python_blocks(PAGES[1])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_to_files_lead_somewhere(page):
    links = re.findall(r"\]\((?!https?:)([^)#]+)\)", page.read_text())
    assert links
    for link in links:
        assert (page.parent / link).exists(), link


def test_every_element_is_in_each_table_of_the_docs():
    from hcpf import elements

    text = PAGES[1].read_text()
    for known in elements.ALL:
        assert text.count(f"| `{known.__name__}` |") == 3, known.__name__
        assert f"| `{known.__name__}` | {known.acronym} |" in text


# -- the example element ------------------------------------------------------------------------


def test_sums_are_distributions(element):
    y = np.arange(1.0, 3000.0)
    for n in (1, 2, 7):
        assert np.exp(element.log_density(y, n)).sum() == pytest.approx(1.0, abs=1e-10)


def test_density_is_a_shifted_negative_binomial(element):
    y, n = np.arange(1.0, 60.0), np.arange(1.0, 6.0)[:, None]
    expected = stats.nbinom.logpmf(y - n, n * element.successes, 1 - element.probability)
    np.testing.assert_allclose(element.log_density(y, n), expected, rtol=1e-9, atol=1e-9)


def test_sums_are_convolutions(element):
    y = np.arange(1.0, 400.0)
    one = np.concatenate([[0.0], np.exp(element.log_density(y))])
    total = one
    for n in (2, 3, 4):
        total = np.convolve(total, one)[: one.size]
        mass = np.exp(element.log_density(y, n))
        np.testing.assert_allclose(mass, total[1:], rtol=1e-8, atol=1e-14)


def test_moments_are_those_of_the_log_partition(element):
    theta, step = element.theta, 1e-4
    points = element.log_partition(theta + step * np.array([-2, -1, 0, 1, 2]))
    first = points @ [1, -8, 0, 8, -1] / (12 * step)
    second = points @ [-1, 16, -30, 16, -1] / (12 * step**2)
    assert element.kappa * first == pytest.approx(element.mean, rel=1e-7)
    assert element.kappa * second == pytest.approx(element.variance, rel=1e-5)
    y = np.arange(1.0, 3000.0)
    mass = np.exp(element.log_density(y))
    assert mass @ y == pytest.approx(element.mean, rel=1e-9)
    assert mass @ (y - element.mean) ** 2 == pytest.approx(element.variance, rel=1e-9)


@pytest.mark.parametrize("n", [1, 5])
def test_draws_follow_the_density(element, n):
    draws = element.sample(np.full(40_000, n), np.random.default_rng(11))
    error = np.sqrt(n * element.variance / draws.size)
    assert abs(draws.mean() - n * element.mean) < 4.5 * error
    assert draws.var() == pytest.approx(n * element.variance, rel=0.1)
    values = np.arange(n, n + 6.0)
    share = (draws[:, None] == values).mean(axis=0)
    np.testing.assert_allclose(share, np.exp(element.log_density(values, n)), atol=0.012)


def test_cdf_is_the_running_sum(element):
    y = np.arange(1.0, 40.0)
    expected = stats.nbinom.cdf(y - 3, 3 * element.successes, 1 - element.probability)
    np.testing.assert_allclose(element.cdf(y, 3), expected, atol=1e-12)


def test_number_of_elements_lies_in_the_stated_range(element):
    assert element.log_density(4, 4) > -np.inf
    assert element.log_density(4, 5) == -np.inf
    low, high = element.n_range(np.array([1.0, 9.0]))
    assert low.tolist() == [1, 1]
    assert high.tolist() == [1, 9]


def test_estimate_is_the_best_on_a_grid(example):
    y = example(2.0, 0.5).sample(np.ones(400), np.random.default_rng(5))
    found = example.estimate(y)
    reached = found.log_density(y).sum()
    values, counts = np.unique(y, return_counts=True)
    r, p = np.geomspace(0.1, 50, 60)[:, None, None], np.linspace(0.02, 0.98, 80)[:, None]
    grid = example(r, p).log_density(values) @ counts
    assert reached >= grid.max() - 1e-9
    assert reached == pytest.approx(grid.max(), abs=0.5)
    # The maximum of the likelihood matches the sample mean, as in every such model.
    assert found.mean == pytest.approx(y.mean(), rel=1e-5)


def test_parameters_given_stay_and_the_others_are_estimated(example):
    found = example(successes=2.0).complete([1, 3, 2, 5])
    assert found.successes == 2.0
    assert found.mean == pytest.approx(2.75, rel=1e-6)


def test_bad_parameters_and_values_are_refused(example):
    with pytest.raises(ParameterError, match="probability"):
        example(1.0, 1.5)
    with pytest.raises(SupportError, match="integers"):
        example(1.0, 0.5).log_density([1, 0])


def test_it_is_an_element_like_any_other(element):
    assert isinstance(element, Element)
    assert "successes=" in repr(element)
    assert element == element.replace()
    assert element != element.replace(successes=99.0)


def test_it_works_inside_the_compound_poisson(element):
    rate = np.array([3.0, 0.2, 1e-12])
    entry = CompoundPoisson(rate, element)
    y = np.arange(1.0, 120.0)
    n = np.arange(1.0, 80.0)[:, None]
    terms = np.exp(element.log_density(y, n))
    weights = stats.poisson.pmf(n.ravel(), rate[:, None])
    expected = weights @ terms
    np.testing.assert_allclose(np.exp(entry.log_density(y[:, None])).T, expected, rtol=1e-9)
    # In the sparse limit an observed entry is one element.
    observed = np.exp(entry.log_density_observed(y[:, None]))[:, 2]
    np.testing.assert_allclose(observed, terms[0], rtol=1e-9, atol=1e-11)
    assert np.all(entry.observed.cdf(entry.observed.quantile(0.9)) >= 0.9)
    draws = entry.observed.sample(20_000, rng=np.random.default_rng(2))
    np.testing.assert_allclose(draws.mean(axis=0), entry.mean_observed, rtol=0.06)

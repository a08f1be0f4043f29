"""Masses of rounded values: against scipy, in the tails, at the first value; more missing pairs."""

import numpy as np
import pytest
from scipy import stats

from hcpf import CompoundPoisson, simulate
from hcpf.elements import Gamma, Normal, Poisson
from hcpf.errors import NotFittedError, ParameterError
from hcpf.evaluate import ConstantRate, Popularity, scores, split
from hcpf.evaluate.masses import ValueGrid
from hcpf.evaluate.scoring import pair_scores


def masses(grid, observed, values):
    values = np.asarray(values, dtype=np.float64)
    return grid.log_masses(
        observed,
        values,
        lambda mask: CompoundPoisson(rates(values)[mask], observed.element).observed,
    )


def rates(values):
    return np.full(len(values), 1e-9)  # the value of an observed pair is then one element


@pytest.mark.parametrize("unit", [1.0, 0.01])
def test_masses_are_those_of_scipy_in_the_body_and_the_tail(unit):
    values = np.array([1.0, 2.0, 5.0, 30.0, 200.0])
    observed = CompoundPoisson(rates(values), Gamma(2.0, 0.5)).observed
    found = masses(ValueGrid(unit, 1.0), observed, values)
    law = stats.gamma(2.0, scale=2.0)
    exact = np.log(law.sf(values - unit / 2) - law.sf(values + unit / 2))
    exact[0] = law.logcdf(1.0 + unit / 2)  # the first value takes all below it
    np.testing.assert_allclose(found, exact, rtol=1e-6, atol=1e-6)
    assert found[-1] < -80


def test_the_masses_of_all_counts_sum_to_one():
    values = np.arange(-3.0, 90.0)
    observed = CompoundPoisson(np.full(len(values), 0.7), Normal(4.0, 9.0)).observed
    grid = ValueGrid(1.0, -3.0)
    found = grid.log_masses(
        observed,
        values,
        lambda mask: CompoundPoisson(np.full(mask.sum(), 0.7), Normal(4.0, 9.0)).observed,
    )
    assert np.exp(found).sum() == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize(
    ("scale", "unit"), [(1.0, 1.0), (0.01, 0.01), (1 / 3, None)], ids=["counts", "cents", "reals"]
)
def test_the_grid_of_values(scale, unit):
    data = simulate(40, 30, density=0.2, element=Poisson(4.0), random_state=0).interactions
    matrix = data.matrix.copy()
    matrix.data = (matrix.data + 1.0) * scale
    grid = ValueGrid.of(split(matrix, random_state=0))
    if unit is None:
        assert grid is None
    else:
        assert grid == ValueGrid(unit, pytest.approx(matrix.data.min()))


def test_a_discrete_and_a_continuous_element_meet_as_masses():
    data = simulate(60, 40, density=0.2, element=Gamma(0.05, 0.05), random_state=0).interactions
    matrix = data.matrix.copy()
    matrix.data = 1.0 + (matrix.data > 9.0)  # mostly 1, where a fitted gamma has a high density
    parts = split(matrix, random_state=0)
    model = Popularity("gamma").fit(parts.train, exclude=parts.held_out)
    density, mass = (pair_scores(model, parts, as_mass=as_mass) for as_mass in (False, True))
    assert np.all(mass.conditional <= 0)
    assert density.conditional.mean() > mass.conditional.mean()


def test_more_missing_pairs_stand_for_the_same_number():
    data = simulate(60, 40, density=0.05, element=Poisson(4.0), random_state=0).interactions
    few, many = (split(data, missing=ratio, random_state=0) for ratio in (1.0, 10.0))
    assert np.array_equal(few.test.values, many.test.values)
    assert few.test.n_missing == len(few.test)
    assert many.test.n_missing == 10 * len(many.test)
    assert many.validation.n_missing == len(many.validation)
    for parts in (few, many):
        stands_for = parts.test.missing_weight * parts.test.n_missing
        assert stands_for == pytest.approx(0.2 * parts.n_missing)
    with pytest.raises(ParameterError, match="missing"):
        split(data, missing=0.5)


def test_at_most_half_of_the_missing_pairs_are_test_pairs():
    data = simulate(40, 30, density=0.5, element=Poisson(4.0), random_state=0).interactions
    parts = split(data, missing=10.0, random_state=0)
    assert parts.test.n_missing == parts.n_missing // 2


def test_a_constant_rate_has_the_density_of_the_training_pairs():
    data = simulate(60, 40, density=0.1, element=Gamma(2.0, 1.0), random_state=0).interactions
    parts = split(data, random_state=0)
    model = ConstantRate("gamma").fit(parts.train, exclude=parts.held_out)
    share = parts.train.n_observed / (60 * 40 - parts.held_out.nnz)
    found = model.predict_distribution(data.users[:2], data.items[0])
    np.testing.assert_allclose(found.prob_observed, share)
    assert scores(model, parts).auc.value == 0.5
    with pytest.raises(NotFittedError, match="not fitted"):
        ConstantRate().rate(0, 0)

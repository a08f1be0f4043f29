"""Tempering: a power of the likelihood, given or chosen."""

import numpy as np
import pytest
from scipy import sparse

from hcpf import HCPF, simulate
from hcpf.elements import Degenerate, Gamma
from hcpf.errors import ParameterError
from hcpf.training.held_out import TrainingSplit
from hcpf.training.resolve import MAX_TEMPERING, MAX_TEMPERING_OF_SEVERAL, formula_tempering
from hcpf.training.settings import FitPlan
from model import small


def quick(n_components, **settings):
    return small.quick(n_components, **({"element": "degenerate"} | settings))


def formula(matrix, train_on="full", solver="cavi", n_fits=1):
    plan = FitPlan(5, train_on=train_on, solver=solver, n_fits=n_fits)
    return formula_tempering(plan, TrainingSplit(matrix, None, None))


def test_a_tempering_of_two_counts_every_pair_twice():
    """For the degenerate element: the same as two copies of each user who share their factors."""
    data = simulate(60, 40, density=0.2, element=Degenerate(), random_state=0).interactions
    doubled = quick(4, tempering=2.0, max_iter=3).fit(data)
    plain = quick(4, max_iter=3).fit(data)
    # All evidence counts twice, so the shapes beyond the prior's do, at least at the start.
    extra = doubled.posterior_.users.a.sum() / plain.posterior_.users.a.sum()
    assert 1.5 < extra < 2.05


def test_the_formula_follows_the_entries_for_each_factor():
    data = simulate(200, 100, density=0.1, element=Gamma(2.0, 1.0), random_state=0).interactions
    model = quick(5, element="gamma", tempering="formula", max_iter=1).fit(data)
    assert model.tempering_ == pytest.approx(data.n_observed / 200 / 8.0)
    assert formula(data.matrix[:20], "full", "cavi", 1) == 1.0
    corner = simulate(100, 100, density=0.4, random_state=0).interactions.matrix
    assert formula(corner, "full", "cavi", 1) == MAX_TEMPERING
    assert formula(corner, "full", "cavi", 2) == pytest.approx(corner.nnz / 800.0)
    busy = simulate(200, 200, density=0.45, random_state=0).interactions.matrix
    assert formula(busy, "full", "cavi", 2) == MAX_TEMPERING_OF_SEVERAL
    assert formula(corner, "observed", "cavi", 1) == 1.0
    assert formula(corner, "full", "algorithm1", 1) == 1.0
    mostly_observed = simulate(60, 60, density=0.8, random_state=0).interactions.matrix
    assert formula(mostly_observed, "full", "cavi", 1) == 1.0
    assert quick(5, element="gamma", tempering=1.7, max_iter=1).fit(data).tempering_ == 1.7


def many_groups(n_groups=60, *, n_users=1000, n_items=800, inside=0.8, outside=0.002):
    """More groups of users and items, apart from each other, than there are components."""
    rng = np.random.default_rng(0)
    user_group, item_group = rng.integers(0, n_groups, n_users), rng.integers(0, n_groups, n_items)
    chance = np.where(user_group[:, None] == item_group, inside, outside)
    return sparse.csr_array((rng.random(chance.shape) < chance).astype(float))


def test_auto_tempers_more_where_held_out_pairs_gain_and_a_warm_start_keeps_it():
    data = many_groups()
    several = {"n_fits": 2, "tempering": "auto"}
    model = quick(8, max_iter=30, warm_start=True, **several).fit(data)
    by_formula = formula(data, "full", "auto", 2)
    assert by_formula < model.tempering_ <= 64.0
    steps = np.log2(model.tempering_ / by_formula) / 2.0  # each step multiplies it by four
    assert steps == pytest.approx(round(steps))
    # Short fits are not worth a search, and nothing but held-out pairs chooses another than 1.
    assert quick(8, max_iter=5, **several).fit(data).tempering_ == 1.0
    formula_alone = several | {"tempering": "formula"}
    assert quick(8, max_iter=5, **formula_alone).fit(data).tempering_ == by_formula
    assert quick(8, tempering=2.0, max_iter=30).fit(data).tempering_ == 2.0
    assert quick(8, tempering="auto", max_iter=2, priors="paper").fit(data).tempering_ == 1.0
    before = model.tempering_
    assert model.set_params(max_iter=2).fit(data).tempering_ == before


def test_auto_takes_the_ordinary_posterior_unless_held_out_pairs_gain():
    data = many_groups(100, n_users=800, n_items=600, outside=0.01)
    assert formula(data, "full", "auto", 2) > 1.3
    assert quick(8, tempering="auto", n_fits=2, max_iter=30).fit(data).tempering_ == 1.0


@pytest.mark.parametrize("bad", ["hot", 0.0, -1.0, np.nan, np.inf, None, True])
def test_bad_tempering(bad):
    data = simulate(20, 10, density=0.3, random_state=0).interactions
    with pytest.raises(ParameterError, match="tempering"):
        HCPF(3, element="gamma", tempering=bad).fit(data)

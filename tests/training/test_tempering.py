"""Data that count more, or less, than once."""

import numpy as np
import pytest
from hcpf.training.recipes import (
    MOST_TEMPERING,
    MOST_TEMPERING_OF_SEVERAL,
    usual_tempering,
)
from scipy import sparse

from core import dense
from core.worlds import (
    PRIORS,
    TRAINING,
    TRAINING_IDS,
    as_production,
    assert_same_point,
    draw_model,
    quick,
)
from hcpf import HCPF, simulate
from hcpf.core.elbo import elbo
from hcpf.core.half_step import cavi_step
from hcpf.elements import Degenerate, Gamma, Poisson
from hcpf.errors import ParameterError
from hcpf.training.solvers.svi import SviOptions, svi_pass


@pytest.mark.parametrize("weight", [0.25, 3.0])
@pytest.mark.parametrize("train_on", TRAINING, ids=TRAINING_IDS)
@pytest.mark.parametrize("element", [Poisson(0.8), Gamma(2.0, 1.5)], ids=["poisson", "gamma"])
def test_steps_and_bound_are_those_of_the_twin(element, train_on, weight):
    model = dense.replace(draw_model(element, train_on=train_on), weight=weight)
    problem, state = as_production(model, train_on)
    previous = -np.inf
    for _ in range(4):
        assert elbo(state, problem, PRIORS) == pytest.approx(dense.bound(model), rel=1e-6)
        assert dense.bound(model) >= previous
        previous = dense.bound(model)
        cavi_step(state, problem, PRIORS)
        model = dense.cavi_step(model)
    assert_same_point(state, model, rtol=2e-5)


def test_one_batch_with_a_full_step_is_coordinate_ascent():
    model = dense.replace(draw_model(Poisson(0.8)), weight=2.5)
    problem, state = as_production(model)
    svi_pass(state, problem, PRIORS, SviOptions(batches=1, local_sweeps=1, tau=1.0, xi=0.6))
    assert_same_point(state, dense.cavi_step(model), rtol=2e-5)


def test_weight_two_is_every_entry_and_every_pair_twice():
    """For the degenerate element: the same as two copies of each user who share their factors."""
    data = simulate(60, 40, density=0.2, element=Degenerate(), random_state=0).interactions
    doubled = quick(4, element=Degenerate(), tempering=2.0, max_iter=3).fit(data)
    once = quick(4, element=Degenerate(), max_iter=3).fit(data)
    # All evidence counts twice, so the shapes beyond the prior's do, at least at the start.
    extra = doubled.posterior_.users.a.sum() / once.posterior_.users.a.sum()
    assert 1.5 < extra < 2.05


def test_auto_follows_the_entries_for_each_factor():
    data = simulate(200, 100, density=0.1, random_state=0).interactions
    model = quick(5, tempering="auto").fit(data)
    assert model.tempering_ == pytest.approx(data.n_observed / 200 / 8.0)
    assert usual_tempering(data.matrix[:20], "full", "cavi", 1) == 1.0
    corner = simulate(100, 100, density=0.4, random_state=0).interactions.matrix
    assert usual_tempering(corner, "full", "cavi", 1) == MOST_TEMPERING
    assert usual_tempering(corner, "full", "cavi", 2) == pytest.approx(corner.nnz / 800.0)
    busy = simulate(200, 200, density=0.45, random_state=0).interactions.matrix
    assert usual_tempering(busy, "full", "cavi", 2) == MOST_TEMPERING_OF_SEVERAL
    assert usual_tempering(corner, "observed", "cavi", 1) == 1.0
    assert usual_tempering(corner, "full", "entry", 1) == 1.0
    mostly_observed = simulate(60, 60, density=0.8, random_state=0).interactions.matrix
    assert usual_tempering(mostly_observed, "full", "cavi", 1) == 1.0
    assert quick(5, tempering=1.7).fit(data).tempering_ == 1.7


def many_groups():
    """More groups of users and items, apart from each other, than there are components."""
    rng = np.random.default_rng(0)
    user_group, item_group = rng.integers(0, 40, 600), rng.integers(0, 40, 500)
    chance = np.where(user_group[:, None] == item_group, 0.7, 0.004)
    return sparse.csr_array((rng.random(chance.shape) < chance).astype(float))


def test_auto_lets_data_count_more_where_held_out_pairs_are_likelier_then():
    data = many_groups()
    model = quick(8, element="degenerate", tempering="auto", max_iter=30).fit(data)
    usual = usual_tempering(data, "full", "auto", 1)
    assert usual < model.tempering_ <= 64.0
    steps = np.log2(model.tempering_ / usual) / 2.0  # each one lets the data count four times more
    assert steps == pytest.approx(round(steps))
    # Short fits are not worth a search, and what is given is taken.
    assert quick(8, tempering="auto", max_iter=5).fit(data).tempering_ == usual
    assert quick(8, tempering=2.0, max_iter=30).fit(data).tempering_ == 2.0
    assert quick(8, tempering="auto", max_iter=2, priors="paper").fit(data).tempering_ == 1.0


def test_a_warm_start_goes_on_with_its_tempering():
    data = many_groups()
    model = quick(8, element="degenerate", tempering="auto", max_iter=30).fit(data)
    before = model.tempering_
    assert model.set_params(warm_start=True, max_iter=2).fit(data).tempering_ == before


@pytest.mark.parametrize("bad", ["hot", 0.0, -1.0, np.nan, np.inf, None, True])
def test_bad_tempering(bad):
    data = simulate(20, 10, density=0.3, random_state=0).interactions
    with pytest.raises(ParameterError, match="tempering"):
        HCPF(3, tempering=bad).fit(data)

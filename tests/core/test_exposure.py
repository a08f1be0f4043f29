"""Known exposures: the twin states them as multipliers, the library as factors times exposure."""

import copy

import numpy as np
import pytest

from core import dense
from core.worlds import HURDLES, as_production, assert_same_point, draw_model
from hcpf import SVI, Algorithm1
from hcpf.core.collective import LOCAL
from hcpf.core.value_model import ValueModel
from hcpf.elements import Gamma, Poisson
from hcpf.training.solvers.algorithm1 import algorithm1_pass, observed_share
from hcpf.training.solvers.cavi import cavi_pass
from hcpf.training.solvers.svi import svi_pass
from model.small import TRAINING, VARYING, name_of
from training.test_algorithm1 import TAU, XI, draw_pairs, run_twin

BOTH = ValueModel(Gamma(2.0, 0.5), vary_by="both")
OBSERVED = [BOTH.replace(train_on="observed"), ValueModel(Poisson(0.8), train_on="observed")]


EVERY = TRAINING + VARYING + HURDLES


@pytest.mark.parametrize(
    ("value_model", "excluded"),
    [(one, 0.2) for one in EVERY] + [(one, 0.0) for one in EVERY[::4]],
    ids=lambda given: name_of(given) if isinstance(given, ValueModel) else f"excluded {given}",
)
def test_passes_and_the_elbo_are_the_twins(value_model, excluded):
    model = draw_model(value_model, excluded=excluded, density=0.3, with_exposure=True)
    model = dense.replace(model, tempering=1.7)
    shard, state = as_production(model)
    for _ in range(2):
        assert state.elbo(shard, LOCAL) == pytest.approx(dense.elbo(model), rel=1e-6)
        cavi_pass(state, shard)
        model = dense.cavi_pass(model)
        assert_same_point(state, model, rtol=1e-5)


@pytest.mark.parametrize("value_model", [*TRAINING[::4], BOTH, *OBSERVED], ids=name_of)
def test_the_twins_elbo_never_falls(value_model):
    model = draw_model(value_model, excluded=0.1, density=0.3, with_exposure=True)
    before = dense.elbo(model)
    for _ in range(4):
        for update in (dense.update_users, dense.update_items):
            model = update(model)
            assert dense.elbo(model) >= before - 1e-9 * abs(before)
            before = dense.elbo(model)


@pytest.mark.parametrize("value_model", [*TRAINING[::3], *OBSERVED[1:]], ids=name_of)
def test_minibatch_passes_are_the_twins(value_model):
    model = draw_model(value_model, excluded=0.2, with_exposure=True)
    shard, state = as_production(model)
    for first_step in (0, 4):
        svi_pass(state, shard, SVI(batches=4, local_passes=2, tau=1.5, xi=0.7))
        model = dense.svi_pass(model, 4, 2, first_step, 1.5, 0.7)
    assert_same_point(state, model, rtol=1e-5)


@pytest.mark.parametrize("value_model", [*TRAINING[::3], *OBSERVED[1:]], ids=name_of)
def test_a_pass_is_algorithm_1_to_the_letter(value_model):
    model = draw_model(value_model, excluded=0.15, with_exposure=True)
    shard, state = as_production(model)
    share = observed_share(shard, True)
    pairs = draw_pairs(shard, share, copy.deepcopy(state.rng), shard.totals.n_entries)
    algorithm1_pass(state, shard, Algorithm1(TAU, XI))
    assert_same_point(state, run_twin(model, pairs, share), rtol=1e-5)


@pytest.mark.parametrize("value_model", [ValueModel(Poisson(0.8)), BOTH, *OBSERVED], ids=name_of)
def test_users_in_another_order_inside_keep_their_exposures(value_model):
    model = draw_model(value_model, excluded=0.2, with_exposure=True)
    order = np.random.default_rng(1).permutation(len(model.users.a))
    shard, state = as_production(model, order)
    cavi_pass(state, shard)
    found = state.to_posterior(shard.order)
    twin = dense.cavi_pass(model)
    for mine, side in ((found.users, twin.users), (found.items, twin.items)):
        np.testing.assert_allclose(mine.mean, side.mean, rtol=1e-5)
        np.testing.assert_allclose(mine.exposure, side.exposure)

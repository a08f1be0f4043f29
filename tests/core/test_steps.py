"""One pass of the solvers, and the ELBO, against the dense twin."""

import pytest

from core import dense
from core.worlds import HURDLES, as_production, assert_same_point, draw_model
from hcpf.core.collective import LOCAL
from hcpf.core.value_model import ValueModel
from hcpf.elements import Gamma, Poisson
from hcpf.training.element_update import update_element
from hcpf.training.settings import SVI
from hcpf.training.solvers.cavi import cavi_pass
from hcpf.training.solvers.svi import svi_pass
from model.small import ELEMENTS, TRAINING, VARYING, name_of

POOLED = [one for one in VARYING + HURDLES if one.vary_by is not None]
SHARED = TRAINING + [one for one in HURDLES if one.vary_by is None]
BATCHES = SVI(batches=4, local_passes=2, tau=1.5, xi=0.7)
every_shared = pytest.mark.parametrize("value_model", SHARED, ids=name_of)
every_pooled = pytest.mark.parametrize("value_model", POOLED, ids=name_of)


def assert_passes_are_the_twins(model, n_passes=3):
    shard, state = as_production(model)
    for _ in range(n_passes):
        assert state.elbo(shard, LOCAL) == pytest.approx(dense.elbo(model), rel=1e-6)
        cavi_pass(state, shard)
        model = dense.cavi_pass(model)
        assert_same_point(state, model, rtol=1e-5)


@every_pooled
def test_partial_pooling_and_its_elbo_are_the_twins(value_model):
    model = draw_model(value_model, excluded=0.2, density=0.3)
    assert_passes_are_the_twins(dense.replace(model, tempering=2.5))


@pytest.mark.parametrize(
    "value_model",
    [one.replace(train_on="observed") for one in VARYING]
    + [one for one in POOLED if one.vary_by == "both"],
    ids=name_of,
)
def test_partial_pooling_without_excluded_pairs_is_the_twins(value_model):
    assert_passes_are_the_twins(draw_model(value_model, density=0.3))


@every_shared
@pytest.mark.parametrize("excluded", [0.0, 0.2])
def test_two_passes_and_the_elbo_are_the_twins_to_the_last_digits(value_model, excluded):
    model = draw_model(value_model, excluded=excluded)
    shard, state = as_production(model)
    assert state.elbo(shard, LOCAL) == pytest.approx(dense.elbo(model), rel=3e-7)
    for _ in range(2):
        cavi_pass(state, shard)
        model = dense.cavi_pass(model)
    assert_same_point(state, model)


@pytest.mark.parametrize("n_entries", [1, 2, 3])
def test_fewer_entries_than_are_done_at_a_time(n_entries):
    model = draw_model(Poisson(2.0), shape=(2, 1 + n_entries), density=1.0)
    assert model.observed.sum() == n_entries
    shard, state = as_production(model)
    cavi_pass(state, shard)
    assert_same_point(state, dense.cavi_pass(model))


@every_shared
def test_minibatch_passes_are_the_twins(value_model):
    model = draw_model(value_model, excluded=0.2)
    shard, state = as_production(model)
    for first_step in (0, 4):
        svi_pass(state, shard, BATCHES)
        model = dense.svi_pass(model, 4, 2, first_step, 1.5, 0.7)
    assert_same_point(state, model, rtol=1e-5)


def test_one_batch_with_a_full_step_is_coordinate_ascent():
    model = dense.replace(draw_model(Poisson(0.8)), tempering=2.5)
    shard, state = as_production(model)
    svi_pass(state, shard, SVI(batches=1, local_passes=1, tau=1.0, xi=0.6))
    assert_same_point(state, dense.cavi_pass(model), rtol=2e-5)


@pytest.mark.parametrize("hurdle", [False, True], ids=["compound", "hurdle"])
@pytest.mark.parametrize("element", ELEMENTS, ids=lambda e: e.name)
def test_the_element_follows_the_mean_equation_and_the_elbo_the_element(element, hurdle):
    model = draw_model(ValueModel(element, hurdle=hurdle), excluded=0.1)
    shard, state = as_production(model)
    for _ in range(3):
        cavi_pass(state, shard)
        update_element(state, shard)
        halfway = dense.update_users(model)
        model = dense.update_items(halfway).with_element(dense.m_step(halfway).element)
        assert state.elbo(shard, LOCAL) == pytest.approx(dense.elbo(model), rel=1e-6)
    for name, value in model.element.parameters.items():
        assert getattr(state.element, name) == pytest.approx(value, rel=2e-6)
    assert_same_point(state, model, rtol=1e-5)


# -- the twin itself -------------------------------------------------------------------------------


def assert_the_twin_climbs(model, *, learn=False, n_passes=6):
    before = dense.elbo(model)
    for _ in range(n_passes):
        halfway = dense.update_users(model)
        model = dense.update_items(halfway)
        if learn:
            # q(n) is the same in both: theta and the items' factors do not meet in the ELBO.
            model = model.with_element(dense.m_step(halfway).element)
        for after in (dense.elbo(halfway), dense.elbo(model)):
            assert after >= before - 1e-9 * abs(before)
            before = after


@every_shared
def test_the_twins_elbo_never_falls(value_model):
    assert_the_twin_climbs(draw_model(value_model, excluded=0.1), learn=True)


@pytest.mark.parametrize(
    "value_model", [one for one in POOLED if one.element.conjugate.is_exact], ids=name_of
)
def test_the_twins_elbo_never_falls_with_partial_pooling(value_model):
    for train_on in ("full",) if value_model.hurdle else ("full", "observed"):
        model = draw_model(value_model.replace(train_on=train_on), excluded=0.1, density=0.3)
        assert_the_twin_climbs(dense.replace(model, tempering=1.7), n_passes=3)


@pytest.mark.parametrize("tempering", [0.25, 3.0])
@pytest.mark.parametrize("train_on", ["full", "observed"])
@pytest.mark.parametrize("element", [Poisson(0.8), Gamma(2.0, 1.5)], ids=lambda e: e.name)
def test_tempered_passes_are_the_twins(element, train_on, tempering):
    model = draw_model(ValueModel(element, train_on=train_on))
    model = dense.replace(model, tempering=tempering)
    assert_the_twin_climbs(model)
    assert_passes_are_the_twins(model, 4)

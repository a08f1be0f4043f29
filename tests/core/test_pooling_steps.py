"""Elements whose theta varies: one step of each solver, and the bound, against the dense twin."""

import pytest

from hcpf.core.elbo import elbo
from hcpf.core.half_step import cavi_step
from core import dense
from core.worlds import (
    PRIORS,
    VARYING,
    VARYING_IDS,
    as_production,
    assert_same_point,
    draw_model,
)

EXACT = [element for element in VARYING if element.conjugate.exact]
EXACT_IDS = [f"{element.name}-{element.per}" for element in EXACT]

every_way = pytest.mark.parametrize("element", VARYING, ids=VARYING_IDS)
every_set = pytest.mark.parametrize(
    ("train_on", "excluded", "weight"),
    [("full", 0.0, 1.0), ("full", 0.2, 2.5), ("observed", 0.0, 1.0)],
)


@every_way
@every_set
def test_steps_and_bounds_are_the_twins(element, train_on, excluded, weight):
    model = draw_model(element, train_on, excluded=excluded, density=0.3, shape=(9, 8))
    model = dense.replace(model, weight=weight)
    problem, state = as_production(model, train_on)
    for _ in range(3):
        assert elbo(state, problem, PRIORS) == pytest.approx(dense.bound(model), rel=1e-6)
        cavi_step(state, problem, PRIORS)
        model = dense.cavi_step(model)
        assert_same_point(state, model, rtol=1e-5)


@pytest.mark.parametrize("element", EXACT, ids=EXACT_IDS)
@pytest.mark.parametrize("train_on", ["full", "observed"])
def test_the_twins_bound_never_falls(element, train_on):
    model = draw_model(element, train_on, excluded=0.1, density=0.3, shape=(9, 8))
    model = dense.replace(model, weight=1.7)
    before = dense.bound(model)
    for _ in range(6):
        halfway = dense.update_users(model)
        model = dense.update_items(halfway)
        for after in (dense.bound(halfway), dense.bound(model)):
            assert after >= before - 1e-9 * abs(before)
            before = after

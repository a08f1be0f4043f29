"""The half-step in two halves: sums over entries that add up over shards, then posteriors."""

import copy

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core import dense
from core.worlds import HURDLES, as_production, draw_model
from hcpf.core.axis import Axis
from hcpf.core.collective import row_block
from hcpf.core.half_step import Statistics, accumulate, apply, half_step
from hcpf.core.kernels import Entries, ListedPairs
from hcpf.core.kernels.types import COUNT, CUT
from hcpf.core.layout import Layout, row_blocks
from hcpf.core.posterior import axis_prior
from hcpf.core.priors import Priors
from hcpf.core.value_model import ValueModel
from hcpf.elements import Gamma, Poisson
from model.small import SHAPE, TRAINING, VARYING, name_of

EVERY = TRAINING + VARYING + HURDLES
SOME = [
    ValueModel(Gamma(2.0, 0.5)),
    ValueModel(Gamma(2.0, 0.5), vary_by="both"),
    ValueModel(Poisson(0.8), vary_by="both", hurdle=True),
    ValueModel(Poisson(0.8), train_on="observed"),
]
PAPER = Priors.paper(2e-8, 3)
SET_BY_A_HALF_STEP = (
    "a", "mean", "g", "log_scale", "activity_b", "count", "cross_count", "value_sum", "row_terms"
)  # fmt: skip


def small_shapes(model, seed=0):
    """The same model where some rows, or some factors of a row, are next to nothing."""
    rng = np.random.default_rng(seed)

    def side(old):
        a = 10.0 ** rng.uniform(-6.0, rng.uniform(-5.0, 1.0, (len(old.a), 1)), old.a.shape)
        a = a.astype(np.float32).astype(float)
        return dense.replace(old, a=a, b=a / old.mean.astype(np.float32))

    return dense.replace(model, users=side(model.users), items=side(model.items))


def in_two_halves(mine, other, layout, tables, prior, n_blocks=1):
    """A half-step as several workers make it: all sums first, then block by block of rows."""
    found = accumulate(mine, other, layout, tables)
    mean_sums = np.zeros(mine.n_components)
    for rank in range(n_blocks):
        rows = row_block(rank, n_blocks, mine.n_rows)
        part = Statistics(*(array[rows] for array in found))
        mean_sums += apply(mine, other, layout, part, prior, rows)
    mine.mean_sums = mean_sums
    return found


def assert_halves_make_the_whole(model, *, step=1.0, n_blocks=1):
    shard, state = as_production(model)
    for axis in Axis:
        other, layout = state.axis(axis.other), shard.layout(axis)
        prior = axis_prior(model.priors, axis, 3, step=step, scale=model.tempering)
        fused, split = state.axis(axis), copy.deepcopy(state.axis(axis))
        info = half_step(fused, other, layout, shard.tables.arrays, prior)
        found = in_two_halves(split, other, layout, shard.tables.arrays, prior, n_blocks)
        counts = found.counts.sum(axis=0)
        assert (counts[COUNT], counts[CUT]) == pytest.approx(info, rel=1e-9)
        np.testing.assert_allclose(split.mean_sums, fused.mean_sums, rtol=1e-6)
        for name in SET_BY_A_HALF_STEP:
            halves, whole = getattr(split.factors, name), getattr(fused.factors, name)
            np.testing.assert_allclose(halves, whole, rtol=1e-6, atol=1e-30, err_msg=name)


@pytest.mark.parametrize("value_model", EVERY, ids=name_of)
def test_accumulate_and_apply_are_the_fused_half_step(value_model):
    model = draw_model(value_model, excluded=0.2)
    assert_halves_make_the_whole(dense.replace(model, tempering=2.5))


@pytest.mark.parametrize("value_model", SOME, ids=name_of)
@pytest.mark.parametrize("excluded", [0.0, 0.3])
@pytest.mark.parametrize(("step", "n_blocks"), [(1.0, 3), (0.3, 1), (0.05, 20)])
def test_damped_steps_and_blocks_of_rows(value_model, excluded, step, n_blocks):
    model = draw_model(value_model, excluded=excluded)
    assert_halves_make_the_whole(model, step=step, n_blocks=n_blocks)


@pytest.mark.parametrize("value_model", SOME, ids=name_of)
@pytest.mark.parametrize("step", [1.0, 0.3])
def test_rows_next_to_nothing_take_the_slow_path_in_both(value_model, step):
    model = small_shapes(draw_model(value_model, excluded=0.2, priors=PAPER))
    _, state = as_production(model)
    assert np.any(state.users.factors.log_scale < -1e3)
    assert_halves_make_the_whole(model, step=step, n_blocks=2)


# -- shards of users -------------------------------------------------------------------------------


def of_users(layout, chosen):
    """The layout of the items over some of the users."""
    entries, listed = layout.entries, layout.listed
    kept, listed_kept = chosen[entries.index], chosen[listed.index]
    start, stop = _ends(entries, kept)
    entries = Entries(start, stop, *(x[kept] if len(x) else x for x in entries[2:]))
    start, stop = _ends(listed, listed_kept)
    return Layout(
        entries,
        ListedPairs(start, stop, listed.index[listed_kept], listed.sign),
        row_blocks(entries),
    )


def _ends(rows, kept):
    before = np.concatenate([[0], np.cumsum(kept)])
    return before[rows.start], before[rows.stop]


@given(
    value_model=st.sampled_from(EVERY),
    worker=st.lists(st.integers(0, 2), min_size=SHAPE[0], max_size=SHAPE[0]),
    seed=st.integers(0, 99),
)
def test_statistics_add_up_over_any_shards_of_users(value_model, worker, seed):
    shard, state = as_production(draw_model(value_model, excluded=0.2, seed=seed))
    arrays = state.items, state.users
    whole = accumulate(*arrays, shard.items, shard.tables.arrays)
    parts = [
        accumulate(*arrays, of_users(shard.items, np.array(worker) == rank), shard.tables.arrays)
        for rank in range(3)
    ]
    total = Statistics(*(sum(arrays) for arrays in zip(*parts, strict=True)))
    # The kernel sums E[n] phi in float32 over up to 256 entries, everything else in float64.
    np.testing.assert_allclose(total.totals, whole.totals, rtol=1e-6)
    for name in ("listed_means", "counts"):
        one, other = getattr(total, name), getattr(whole, name)
        scale = np.maximum(np.abs(other).max(axis=0), 1e-300)  # theta of either sign may cancel
        np.testing.assert_allclose(one / scale, other / scale, rtol=1e-12, atol=1e-12, err_msg=name)

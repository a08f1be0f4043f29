"""Tables kept between calls serve new values as tables made for these values alone do."""

import pickle

import numpy as np
import pytest

from cases import EVERYDAY
from hcpf.core import table_cache
from hcpf.core.count_tables import tabulate_values
from hcpf.core.kernels import GRID, ROWS, SHIFT
from hcpf.core.table_cache import TableCache
from hcpf.core.value_model import ValueModel
from hcpf.elements import Degenerate, Gamma, Poisson, ZeroTruncatedPoisson

CASES = [ValueModel(case.element) for case in EVERYDAY]
CASES += [ValueModel(Degenerate()), ValueModel(Gamma(2.0, 1.0), hurdle=True)]


def values_of(value_model, seed, size=5):
    rng = np.random.default_rng(seed)
    n = np.ones(size) if value_model.hurdle else 1.0 + rng.poisson(1.0, size)
    return value_model.element.sample(n, rng)


def expected_counts(tables, coordinate):
    """E[n] of entries at rates from 1/8 to 8, read from the tables as the kernels do."""
    arrays = tables.arrays
    if arrays.mode not in (ROWS, SHIFT, GRID):
        return coordinate
    out = []
    for y in coordinate.astype(np.float64):
        row, scale, across = int(y), 1.0, y - int(y)
        if arrays.mode == SHIFT:
            row, scale, across = 0, y, 0.0
        bits = (scale * 2.0 ** np.linspace(-3.0, 3.0, 25)).astype(np.float32).view(np.int32)
        piece, t = (bits >> 20) - arrays.first_code, (bits & 0xFFFFF) * 2.0**-20
        cubics = arrays.mean_table[row, piece].astype(np.float64).reshape(len(bits), -1, 4)
        along = np.sum(cubics * t[:, None, None] ** np.arange(4), axis=2)
        out.append(along @ across ** np.arange(along.shape[1]))
    return np.array(out)


@pytest.mark.parametrize("value_model", CASES, ids=lambda v: v.description)
def test_any_sequence_of_calls_gives_the_counts_of_tables_made_for_one_call(value_model):
    cache = TableCache(value_model, None)
    for seed in range(6):
        values = values_of(value_model, seed)
        tables, coordinate = cache.tables_for(values)
        own, own_coordinate = tabulate_values(value_model, values)
        assert coordinate.dtype == np.float32
        found, expected = expected_counts(tables, coordinate), expected_counts(own, own_coordinate)
        np.testing.assert_allclose(found, expected, rtol=2e-5)


def test_values_served_before_cost_no_new_tables(monkeypatch):
    calls = []

    def counted(*arguments, **options):
        calls.append(len(arguments[1]))
        return tabulate_values(*arguments, **options)

    monkeypatch.setattr(table_cache, "tabulate_values", counted)
    counts = TableCache(ValueModel(Poisson(1.5)), None)
    for values in ([1.0, 2.0], [2.0, 1.0, 1.0], [3.0, 1.0], [3.0], [2.0, 3.0]):
        counts.tables_for(np.array(values))
    assert calls == [2, 1]  # the rows of a new value are appended
    calls.clear()
    amounts = TableCache(ValueModel(Gamma(2.0, 1.0)), None)
    for values in ([1.0, 2.0], [2.5, 0.7], [0.3, 7.9], [100.0], [50.0]):
        amounts.tables_for(np.array(values))
    assert len(calls) == 2  # an interval of values, then a wider one


def test_tables_of_many_values_are_not_kept(monkeypatch):
    monkeypatch.setattr(table_cache, "_MAX_VALUES", 3)
    cache = TableCache(ValueModel(Poisson(1.5)), None)
    kept = cache.tables_for(np.array([1.0, 2.0, 3.0]))[0]
    for values in ([4.0, 5.0], [1.0, 2.0, 3.0, 4.0, 5.0]):
        tables, coordinate = cache.tables_for(np.array(values))
        own = expected_counts(*tabulate_values(ValueModel(Poisson(1.5)), np.array(values)))
        np.testing.assert_allclose(expected_counts(tables, coordinate), own, rtol=1e-6)
    assert cache.tables_for(np.array([2.0]))[0] is not None
    assert len(kept.arrays.least) == 3


def test_values_with_a_known_count_may_come_first():
    value_model = ValueModel(ZeroTruncatedPoisson(1.5))
    cache = TableCache(value_model, None)
    for values in ([1.0], [1.0, 2.0], [4.0, 1.0]):
        tables, coordinate = cache.tables_for(np.array(values))
        own, own_coordinate = tabulate_values(value_model, np.array(values))
        if tables.arrays.mode == own.arrays.mode:
            found = expected_counts(tables, coordinate)
            np.testing.assert_allclose(found, expected_counts(own, own_coordinate), rtol=1e-6)


def test_a_copy_of_the_cache_is_empty():
    cache = TableCache(ValueModel(Gamma(2.0, 1.0)), 7)
    cache.tables_for(np.array([1.0, 3.0]))
    copy = pickle.loads(pickle.dumps(cache))
    tables, coordinate = copy.tables_for(np.array([1.0, 3.0]))
    assert np.isfinite(coordinate).all()
    assert len(tables.arrays.series) == 7

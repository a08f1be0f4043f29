"""Data frames and arrays: ids of every kind come back right, whatever library holds them."""

import uuid
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.table_files import COLUMNS, NAMES, assert_holds, by_pair
from hcpf.data import Interactions
from hcpf.errors import InputError


def arrow_array(values):
    """Return an Arrow array; pyarrow recognizes Python's UUIDs from version 24 on only."""
    if isinstance(values, list) and any(isinstance(value, uuid.UUID) for value in values):
        return pa.array([value.bytes for value in values], pa.uuid())
    return pa.array(values)


def arrow_columns(columns):
    return {name: arrow_array(values) for name, values in columns.items()}


FRAMES = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "polars lazy": lambda columns: pl.DataFrame(columns).lazy(),
    "arrow": lambda columns: pa.table(arrow_columns(columns)),
    "arrow batch": lambda columns: pa.record_batch(arrow_columns(columns)),
}
UUIDS = [uuid.UUID(int=k << 90) for k in (3, 1, 2)]
IDS = {
    "text": ["b", "a", "Ü→\u2028\n"],
    "int64": [3, -(2**63), 2**63 - 1],
    "int8": np.array([3, -1, 2], np.int8),
    "uint64": np.array([3, 2**64 - 1, 2**63], np.uint64),
    "uuid": UUIDS,
}


def build(kind, users, items=("x", "y", "x"), values=(1.0, 0.0, -2.5)):
    return FRAMES[kind](dict(zip(NAMES, (users, list(items), list(values)), strict=True)))


@pytest.fixture(params=FRAMES)
def kind(request):
    return request.param


@pytest.mark.parametrize("ids", IDS.values(), ids=IDS)
def test_ids_of_every_kind_in_every_frame(kind, ids):
    data = Interactions.from_frame(build(kind, ids), **COLUMNS)
    first, second, third = (value for value in np.asarray(ids).tolist())
    assert_holds(data, {(first, "x"): 1.0, (second, "y"): 0.0, (third, "x"): -2.5})


@pytest.mark.parametrize("ids", IDS.values(), ids=IDS)
def test_ids_of_every_kind_in_every_array(ids):
    first, second, third = np.asarray(ids).tolist()
    for container in (list, np.array, pd.Series, pd.Index, pl.Series, arrow_array):
        users = ids if container is np.array and isinstance(ids, np.ndarray) else container(ids)
        data = Interactions.from_arrays(users, ["x", "y", "x"], [1.0, 0.0, -2.5])
        assert_holds(data, {(first, "x"): 1.0, (second, "y"): 0.0, (third, "x"): -2.5})


@pytest.mark.parametrize(
    "column",
    [
        pd.Categorical(["b", "a", "b"], categories=["z", "b", "a"]),
        pl.Series(["b", "a", "b"], dtype=pl.Categorical),
        pl.Series(["b", "a", "b"], dtype=pl.Enum(["z", "b", "a"])),
        pa.array(["b", "a", "b"]).dictionary_encode(),
        pa.array(["b", "a", "b"], pa.large_string()),
        pa.array(["b", "a", "b"], pa.string_view()),
        pa.chunked_array([["b"], ["a", "b"]]),
        pd.Series(["b", "a", "b"], dtype="string"),
        pd.Series(["b", "a", "b"], dtype="string[pyarrow]"),
    ],
    ids=lambda column: f"{type(column).__module__}-{getattr(column, 'dtype', '')}"[:40],
)
def test_categories_and_other_ways_to_store_text(column):
    items = ["x", "x", "y"]
    expected = {("b", "x"): 1.0, ("a", "x"): 2.0, ("b", "y"): 3.0}
    assert_holds(Interactions.from_arrays(column, items, [1, 2, 3]), expected)
    library = pd if "pandas" in type(column).__module__ else pl
    make = pa.table if "pyarrow" in type(column).__module__ else library.DataFrame
    frame = make({"who": column, "what": items, "paid": [1, 2, 3]})
    assert_holds(Interactions.from_frame(frame, **COLUMNS), expected)


def test_categories_of_whole_numbers():
    frame = pd.DataFrame({"who": pd.Categorical([20, 10]), "what": ["x", "x"]})
    data = Interactions.from_frame(frame, user="who", item="what")
    assert_holds(data, {(20, "x"): 1.0, (10, "x"): 1.0})


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (np.array([1, 2], np.int8), [1.0, 2.0]),
        (np.array([1, 2], ">i4"), [1.0, 2.0]),
        (np.array([1.5, 2], np.float16), [1.5, 2.0]),
        (np.array([True, False]), [1.0, 0.0]),
        ([2**40 + 1, 1], [2.0**40 + 1, 1.0]),
        ([Decimal("1.25"), Decimal(-3)], [1.25, -3.0]),
        (pa.array([1, 2], pa.uint64()), [1.0, 2.0]),
        (pd.Series([1, 2], dtype="Int64"), [1.0, 2.0]),
        (pd.Series([1.5, 2], index=[7, 7]), [1.5, 2.0]),
        ((value for value in (5, 6)), [5.0, 6.0]),
        (None, [1.0, 1.0]),
    ],
)
def test_values_of_every_kind(values, expected):
    data = Interactions.from_arrays(["b", "a"], [7, 7], values)
    assert_holds(data, {("b", 7): expected[0], ("a", 7): expected[1]})
    assert data.values.dtype == np.float64


@pytest.mark.parametrize("how", [("who", "what", "paid"), (0, 1, 2), (np.int64(0), "what", 2)])
def test_columns_by_name_or_place(kind, how):
    user, item, value = how
    frame = build(kind, ["c", "a", "b"])
    data = Interactions.from_frame(frame, user=user, item=item, value=value, returns="keep")
    assert_holds(data, {("c", "x"): 1.0, ("a", "y"): 0.0, ("b", "x"): -2.5})


def test_a_whole_number_is_a_place_even_where_it_is_a_name():
    frame = pd.DataFrame([["a", "b", 4.0]], columns=[2, 1, 0])
    data = Interactions.from_frame(frame, user=0, item=1, value=2)
    assert by_pair(data) == {("a", "b"): 4.0}


def test_without_a_response_every_pair_counts_one(kind):
    data = Interactions.from_frame(build(kind, ["c", "a", "b"]), user="who", item="what")
    assert data.values.tolist() == [1.0, 1.0, 1.0]


def test_of_a_lazy_frame_only_the_columns_asked_for_are_computed():
    frame = build("polars lazy", ["a", "b", "c"]).with_columns(
        broken=pl.col("what").cast(pl.Float64)
    )
    assert Interactions.from_frame(frame, **COLUMNS).n_observed == 3
    with pytest.raises(InputError, match=r"cannot be read.*conversion.*f64"):
        Interactions.from_frame(frame, user="who", item="what", value="broken")


# -- duplicates and zeros -------------------------------------------------------------------------

id_lists = st.one_of(
    st.lists(
        st.text(max_size=3).filter(lambda text: text.isprintable() and text.strip()),
        min_size=1,
        max_size=4,
    ),
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=4),
    st.lists(st.integers(2**63, 2**64 - 1), min_size=1, max_size=4),
    st.lists(st.uuids(), min_size=1, max_size=4),
)


@st.composite
def rows(draw):
    users, items = draw(id_lists), draw(id_lists)
    cell = st.tuples(st.sampled_from(users), st.sampled_from(items), st.integers(-5, 5))
    return draw(st.lists(cell, min_size=1, max_size=25))


def merged(cells, policy):
    values = {}
    for user, item, value in cells:
        values.setdefault((user, item), []).append(float(value))
    reduce = {"sum": sum, "mean": lambda x: sum(x) / len(x), "last": lambda x: x[-1]}[policy]
    return {pair: reduce(found) for pair, found in values.items()}


@given(rows(), st.sampled_from(["sum", "mean", "last"]), st.sampled_from(sorted(FRAMES)))
def test_rows_merge_as_in_a_dictionary(cells, policy, kind):
    users, items, values = (list(column) for column in zip(*cells, strict=True))
    expected = merged(cells, policy)
    assert_holds(Interactions.from_arrays(users, items, values, duplicates=policy), expected)
    if any(isinstance(value, int) and value >= 2**63 for value in users + items):
        users, items = (np.array(ids) for ids in (users, items))  # so that frames see uint64
        if "O" in (users.dtype.kind, items.dtype.kind):
            return
    frame = build(kind, users, items, values)
    assert_holds(Interactions.from_frame(frame, **COLUMNS, duplicates=policy), expected)


@given(rows())
def test_duplicates_are_never_merged_unasked(cells):
    users, items, values = (list(column) for column in zip(*cells, strict=True))
    if len(set(zip(users, items, strict=True))) == len(cells):
        assert Interactions.from_arrays(users, items, values).n_observed == len(cells)
        return
    with pytest.raises(InputError, match="stored more than once"):
        Interactions.from_arrays(users, items, values)


def test_a_sum_of_duplicates_beyond_float64_is_refused():
    with pytest.raises(InputError, match=r"user 'a' and item 'x'.*inf.*sum of duplicates"):
        Interactions.from_arrays(["a", "a"], ["x", "x"], [1e308, 1e308], duplicates="sum")


def test_zeros_are_observed(kind):
    data = Interactions.from_frame(build(kind, ["a", "b", "c"], values=[0.0, 0, -0.0]), **COLUMNS)
    assert data.n_observed == 3
    assert data.values.tolist() == [0.0, 0.0, 0.0]

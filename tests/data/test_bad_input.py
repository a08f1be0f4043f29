"""What frames, arrays and matrices must not hold: always an InputError that says where it is."""

import uuid

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from data.table_files import COLUMNS
from hcpf.data import Interactions
from hcpf.errors import InputError

GOOD = {"who": ["a", "b"], "what": ["x", "y"], "paid": [1.0, 2.0]}
NAN, INF = float("nan"), float("inf")
INVALID_UTF8 = pa.StringArray.from_buffers(
    2, pa.py_buffer(np.array([0, 1, 2], np.int32).tobytes()), pa.py_buffer(b"a\xff")
)


def from_arrays(users=GOOD["who"], items=GOOD["what"], values=GOOD["paid"], **options):
    return Interactions.from_arrays(users, items, values, **options)


def polars_frame(columns):
    """Mixed columns as Python objects, which polars would refuse or change."""

    def dtype(values):
        return pl.Object if len({type(value) for value in values} - {type(None)}) > 1 else None

    return pl.DataFrame(
        [pl.Series(name, values, dtype=dtype(values)) for name, values in columns.items()]
    )


FRAMES = {
    "pandas": pd.DataFrame,
    "polars": polars_frame,
    "polars lazy": lambda columns: polars_frame(columns).lazy(),
    "arrow": pa.table,
}


def assert_refused(columns, wrong, message):
    """Refuse ``columns`` as arrays and in every frame that can hold them, naming the wrong one."""
    name = {"who": "users", "what": "items", "paid": "values"}[wrong]
    with pytest.raises(InputError, match=rf"(?s)'{name}'.*({message})"):
        Interactions.from_arrays(*columns.values())
    for make in FRAMES.values():
        try:
            frame = make(columns)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            continue  # this library cannot hold such a column
        with pytest.raises(InputError, match=rf"(?s)'{wrong}'.*({message})"):
            Interactions.from_frame(frame, **COLUMNS)


MIXED = "cannot be read|holds"
BAD_IDS = {
    "null": (["a", None], "no id in row 2"),
    "null at first": ([None, "a"], "no id in row 1"),
    "nothing but nulls": ([None, None], "no id in rows 1 and 2"),
    "null number": ([1, None], "no id in row 2|holds double"),
    "null UUID": ([uuid.UUID(int=1), None], "no id in row 2"),
    "NaN in text": (["a", NAN], f"no id in row 2|{MIXED}"),
    "float": ([1.5, 2.0], "holds (double|float64).*integers first"),
    "NaN": (np.array([1.0, NAN]), "no id in row 2|holds double"),
    "bool": ([True, False], "holds bool"),
    "text and numbers": (["a", 1], MIXED),
    "numbers and bools": ([1, True], MIXED),
    "UUIDs and text": ([uuid.UUID(int=1), "a"], MIXED),
    "bytes": ([b"a", b"b"], "holds (large_)?binary"),
    "lists": ([["a"], ["b"]], "holds (large_)?list"),
    "dictionaries": ([{"a": 1}, {"a": 2}], "holds struct"),
    "objects": ([object(), object()], "cannot be read"),
    "dates": (np.array(["2020-01-01", "2020-01-02"], "datetime64[ms]"), "holds timestamp"),
    "beyond 64 bits": ([2**64, 1], MIXED),
    "negative and huge": ([-1, 2**63], MIXED),
    "lone surrogate": (["\ud800", "a"], "surrogates not allowed"),
}


@pytest.mark.parametrize("case", BAD_IDS)
def test_bad_ids(case):
    ids, message = BAD_IDS[case]
    for column in ("who", "what"):
        assert_refused({**GOOD, column: ids}, column, message)


BAD_VALUES = {
    "null": ([1.0, None], "no value in row 2"),
    "NaN": ([1.0, NAN], "no value in row 2|not finite: nan in row 2"),
    "inf": ([INF, 1.0], "not finite: inf in row 1"),
    "-inf": ([1.0, -INF], "not finite: -inf in row 2"),
    "text": (["1", "two"], "not numbers: 'two' in row 2"),
    "dates": (np.array(["2020-01-01", "2020-01-02"], "datetime64[ms]"), "holds timestamp"),
    "spans": (np.array([1, 2], "timedelta64[ms]"), "holds duration"),
    "objects": ([object(), 1], "cannot be read"),
    "complex": ([1j, 2j], "cannot be read"),
    "lists": ([[1], [2]], "holds (large_)?list"),
    "numbers and text": ([1, "a"], MIXED),
}


@pytest.mark.parametrize("case", BAD_VALUES)
def test_bad_values(case):
    values, message = BAD_VALUES[case]
    assert_refused({**GOOD, "paid": values}, "paid", message)


def test_no_rows():
    with pytest.raises(InputError, match="There are no rows"):
        from_arrays([], [], [])
    for make in FRAMES.values():
        with pytest.raises(InputError, match="There are no rows"):
            Interactions.from_frame(make({"who": [], "what": [], "paid": []}), **COLUMNS)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pa.DictionaryArray.from_arrays([0, 1], ["a", None]), "no id in row 2"),
        (pa.array([1.5, 2.0]).dictionary_encode(), "holds double"),
        (INVALID_UTF8, "not UTF-8"),
        (pa.array(["a", "b"], pa.binary(1)), "holds fixed_size_binary"),
        (pa.RunEndEncodedArray.from_arrays([1, 2], ["a", "b"]), "holds run_end_encoded"),
    ],
)
def test_bad_arrow_columns(column, message):
    with pytest.raises(InputError, match=f"'who'.*{message}"):
        Interactions.from_frame(pa.table({**GOOD, "who": column}), **COLUMNS)
    with pytest.raises(InputError, match=f"'users'.*{message}"):
        from_arrays(column)


def test_the_row_is_counted_across_chunks():
    ids = pa.chunked_array([["a", "b"], ["c", None]])
    values = pa.chunked_array([[1.0, 2.0], [3.0, INF]])
    good = {"who": list("abcd"), "what": list("abcd"), "paid": [1.0] * 4}
    with pytest.raises(InputError, match="'who' has no id in row 4"):
        Interactions.from_frame(pa.table({**good, "who": ids}), **COLUMNS)
    with pytest.raises(InputError, match=r"'paid' .* not finite: inf in row 4"):
        Interactions.from_frame(pa.table({**good, "paid": values}), **COLUMNS)


# -- arguments ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "frame",
    [None, 5, "rows.csv", GOOD, [GOOD], np.eye(3), pd.Series([1]), pl.Series([1]), pa.array([1]),
     sparse.eye_array(3), object(), pd.DataFrame, Interactions.from_matrix(np.eye(2))],
    ids=lambda frame: type(frame).__name__,
)  # fmt: skip
def test_what_is_no_frame(frame):
    with pytest.raises(InputError, match=f"got {type(frame).__name__}"):
        Interactions.from_frame(frame, **COLUMNS)


WRONG_COLUMNS = [
    ("nobody", r"'nobody': there is no such column.*\['who', 'what', 'paid'\]"),
    ("", "there is no such column"),
    (3, "3: positions are 0 to 2"),
    (-1, "-1: positions are 0 to 2"),
    (True, "the name or the position of a column, got True"),
    (1.0, "got 1.0"),
    (["who"], r"got \['who'\]"),
    (np.array([1, 2]), "got array"),
    (object(), "got <object"),
]


@pytest.mark.parametrize(("column", "message"), WRONG_COLUMNS)
def test_wrong_columns(column, message):
    for role in ("user", "item", "value"):
        for kind in ("pandas", "polars lazy"):
            with pytest.raises(InputError, match=rf"{role}.*{message}"):
                Interactions.from_frame(FRAMES[kind](GOOD), **{**COLUMNS, role: column})


def test_no_column_of_ids():
    for role in ("user", "item"):
        with pytest.raises(
            InputError, match=f"{role} must be the name or the position of a column, got N"
        ):
            Interactions.from_frame(pd.DataFrame(GOOD), **{**COLUMNS, role: None})


@pytest.mark.parametrize("columns", [("who", "who", "paid"), ("who", "what", "who"), (0, "who", 2)])
def test_the_same_column_twice(columns):
    user, item, value = columns
    with pytest.raises(InputError, match="must be different columns"):
        Interactions.from_frame(pa.table(GOOD), user=user, item=item, value=value)


@pytest.mark.parametrize("value", ["paid", 2])
def test_two_columns_of_one_name(value):
    names = ["who", "what", "paid", "paid"]
    frames = (
        pd.DataFrame([["a", "x", 1.0, 2.0]], columns=names),
        pa.table([["a"], ["x"], [1.0], [2.0]], names=names),
    )
    for frame in frames:
        with pytest.raises(InputError, match="'paid'"):
            Interactions.from_frame(frame, user="who", item="what", value=value)


def test_a_lazy_frame_of_a_file_that_is_not_there():
    with pytest.raises(InputError, match=r"cannot be read: .*nowhere\.csv"):
        Interactions.from_frame(pl.scan_csv("nowhere.csv"), **COLUMNS)


NO_SEQUENCES = [5, 1.5, "ab", b"ab", object(), {"a", "b"}, {"a": 1, "b": 2}, len]


@pytest.mark.parametrize("wrong", NO_SEQUENCES, ids=lambda wrong: type(wrong).__name__)
def test_what_is_no_sequence(wrong):
    for name in ("users", "items", "values"):
        message = f"{name} must be a sequence, got {type(wrong).__name__}"
        with pytest.raises(InputError, match=message):
            from_arrays(**{name: wrong})


@pytest.mark.parametrize("wrong", [np.eye(2), np.array(3), pd.DataFrame(GOOD), [[1], [2, 3]]])
def test_arrays_of_other_shapes(wrong):
    for name in ("users", "items", "values"):
        with pytest.raises(InputError, match=name):
            from_arrays(**{name: wrong})


def test_ids_must_be_there():
    for name in ("users", "items"):
        with pytest.raises(InputError, match=f"{name} must be a sequence, got NoneType"):
            from_arrays(**{name: None})


def test_lengths_must_agree():
    with pytest.raises(InputError, match="2 users, 3 items, 2 values"):
        from_arrays(items=["x", "y", "z"])
    with pytest.raises(InputError, match="2 users, 1 items"):
        Interactions.from_arrays(["a", "b"], ["x"])


@pytest.mark.parametrize(
    "values", [np.array([1j, 2]), np.zeros(2, "V4"), np.zeros(2, "longdouble")]
)
def test_numbers_arrow_does_not_know(values):
    with pytest.raises(InputError, match="values"):
        from_arrays(values=values)


@pytest.mark.parametrize("policy", [None, 5, "first", ["sum"], np.array([1, 2]), b"sum"])
def test_wrong_policy_for_duplicates(policy, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("who,what,paid\na,x,1\n")
    for call in (
        lambda: from_arrays(duplicates=policy),
        lambda: Interactions.from_frame(pd.DataFrame(GOOD), **COLUMNS, duplicates=policy),
        lambda: Interactions.from_matrix(np.eye(2), duplicates=policy),
        lambda: Interactions.read(path, **COLUMNS, duplicates=policy),
    ):
        with pytest.raises(InputError, match="duplicates must be one of 'error', 'sum'"):
            call()


# -- matrices: see also test_interactions.py ------------------------------------------------------


@pytest.mark.parametrize("X", [None, "abc", b"abc", {1, 2}, object(), pl.DataFrame(GOOD),
                               pa.table(GOOD), np.zeros((2, 2), "m8[s]"), [[None, 1]]])  # fmt: skip
def test_what_is_no_matrix(X):
    with pytest.raises(InputError, match=r"X must|from_frame"):
        Interactions.from_matrix(X)


def test_a_value_beyond_float64():
    if np.finfo(np.longdouble).max <= np.finfo(float).max:
        pytest.skip("long doubles are doubles here")
    with pytest.raises(InputError, match=r"user 0 and item 1 .*inf"):
        Interactions.from_matrix(np.array([[1, np.longdouble("1e4000")]]))

"""Interactions: what is stored, what is refused, and that nothing is summed on the way in."""

import uuid
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from hcpf.data import Interactions
from hcpf.errors import InputError

FORMATS = ["csr", "csc", "coo", "lil", "dok", "dia", "bsr"]
DENSE = np.array([[0.0, 3.0, 0.0, 1.0], [5.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 2.0]])


def triples(interactions):
    entries = interactions.matrix.tocoo()
    return list(zip(entries.row.tolist(), entries.col.tolist(), entries.data.tolist(), strict=True))


def assert_canonical(interactions):
    matrix = interactions.matrix
    assert isinstance(matrix, sparse.csr_array)
    for row in range(matrix.shape[0]):
        columns = matrix.indices[matrix.indptr[row] : matrix.indptr[row + 1]]
        assert np.all(np.diff(columns) > 0)
    assert matrix.indices.dtype == matrix.indptr.dtype == np.int32
    assert matrix.data.dtype in (np.float32, np.float64)


# -- formats --------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("container", ["array", "matrix"])
def test_every_sparse_format_gives_the_same_entries(form, container):
    X = getattr(sparse, f"{form}_{container}")(DENSE)
    interactions = Interactions.from_matrix(X)
    assert_canonical(interactions)
    assert triples(interactions) == triples(Interactions.from_matrix(DENSE))
    assert interactions.n_observed == 4


def test_dense_zeros_are_missing():
    interactions = Interactions.from_matrix([[0, 1], [2, 0]])
    assert triples(interactions) == [(0, 1, 1.0), (1, 0, 2.0)]


@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
def test_explicit_zeros_are_observed(form):
    X = sparse.coo_array(([0.0, 2.0], ([0, 1], [1, 0])), shape=(2, 2)).asformat(form)
    interactions = Interactions.from_matrix(X)
    assert triples(interactions) == [(0, 1, 0.0), (1, 0, 2.0)]


def test_padding_of_blocks_is_missing():
    X = sparse.bsr_array(np.array([[0.0, 1.0], [2.0, 0.0]]), blocksize=(2, 2))
    assert X.nnz == 4
    assert Interactions.from_matrix(X).n_observed == 2


def test_unsorted_csr_is_sorted_and_the_source_left_alone():
    data, indices, indptr = np.array([1.0, 2.0, 3.0]), np.array([2, 0, 1]), np.array([0, 2, 3])
    X = sparse.csr_array((data, indices, indptr), shape=(2, 3))
    interactions = Interactions.from_matrix(X)
    assert_canonical(interactions)
    assert triples(interactions) == [(0, 0, 2.0), (0, 2, 1.0), (1, 1, 3.0)]
    assert X.indices.tolist() == [2, 0, 1]


def test_canonical_csr_is_not_copied():
    X = sparse.csr_array(DENSE)
    interactions = Interactions.from_matrix(X)
    assert np.shares_memory(interactions.matrix.data, X.data)
    assert np.shares_memory(interactions.matrix.indices, X.indices)


def test_flags_of_the_source_are_not_believed():
    X = sparse.csr_array((np.ones(2), np.array([1, 1]), np.array([0, 2])), shape=(1, 2))
    X.has_canonical_format = True
    with pytest.raises(InputError, match="more than once"):
        Interactions.from_matrix(X)


def test_wide_indices_become_narrow():
    X = sparse.csr_array(DENSE)
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    assert_canonical(Interactions.from_matrix(X))


def test_indices_stay_wide_where_they_must():
    X = sparse.coo_array(([1.0], ([0], [2**31])), shape=(1, 2**31 + 1))
    # The ids 0, 1, 2, ... would take 16 GB: these take one byte.
    ids = np.lib.stride_tricks.as_strided(np.zeros(1, np.int64), (2**31 + 1,), (0,))
    matrix = sparse.csr_array(X)
    assert Interactions(matrix, np.arange(1), ids).matrix.indices.dtype == np.int64


@pytest.mark.parametrize(
    ("dtype", "stored"),
    [
        ("bool", "float32"),
        ("int8", "float32"),
        ("uint16", "float32"),
        ("float16", "float32"),
        ("float32", "float32"),
        ("int32", "float64"),
        ("int64", "float64"),
        ("float64", "float64"),
        ("longdouble", "float64"),
    ],
)
def test_value_types(dtype, stored):
    interactions = Interactions.from_matrix(np.array([[0, 1], [1, 0]], dtype=dtype))
    assert interactions.values.dtype == stored
    assert interactions.values.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("dtype", ["bool", "int16", "int64", "float32"])
@pytest.mark.parametrize("form", FORMATS)
def test_value_types_of_sparse_formats(form, dtype):
    X = sparse.coo_array(DENSE.astype(dtype)).asformat(form)
    expected = "float64" if dtype == "int64" else "float32"
    assert Interactions.from_matrix(X).values.dtype == expected


# -- duplicates -----------------------------------------------------------------------------------


def duplicated(form):
    """Pair (0, 1) three times, 7 then 1 then 4; the rest out of order."""
    rows, columns = np.array([0, 1, 0, 0, 0]), np.array([1, 0, 1, 0, 1])
    X = sparse.coo_array((np.array([7.0, 5.0, 1.0, 2.0, 4.0]), (rows, columns)), shape=(2, 3))
    X.has_canonical_format = True  # so that the conversions here do not sum either
    return X.asformat(form)


@pytest.mark.parametrize("form", ["coo", "csr", "csc"])
@pytest.mark.parametrize(("policy", "value"), [("sum", 12.0), ("mean", 4.0), ("last", 4.0)])
def test_policies(form, policy, value):
    interactions = Interactions.from_matrix(duplicated(form), duplicates=policy)
    assert_canonical(interactions)
    assert triples(interactions) == [(0, 0, 2.0), (0, 1, value), (1, 0, 5.0)]


def test_last_is_the_last_stored():
    X = sparse.coo_array(([4.0, 1.0], ([0, 0], [0, 0])), shape=(1, 1))
    assert Interactions.from_matrix(X, duplicates="last").values.tolist() == [1.0]


@pytest.mark.parametrize("form", ["coo", "csr", "csc"])
def test_the_error_names_the_pair_by_its_ids(form):
    with pytest.raises(InputError, match=r"user 'ann' and item 20 .*2 surplus"):
        Interactions.from_matrix(duplicated(form), users=["ann", "bob"], items=[10, 20, 30])


def test_blocks_that_overlap_are_duplicates():
    X = sparse.bsr_array((np.ones((2, 1, 1)), np.array([0, 0]), np.array([0, 2])), shape=(1, 1))
    with pytest.raises(InputError, match="more than once"):
        Interactions.from_matrix(X)


def test_sums_of_narrow_values_are_exact():
    n = 2**24 // 2**10 + 3
    X = sparse.coo_array(
        (np.full(n, 1024, dtype=np.float32), (np.zeros(n, int), np.zeros(n, int))), shape=(1, 1)
    )
    assert Interactions.from_matrix(X, duplicates="sum").values[0] == 1024.0 * n


def test_unknown_policy():
    with pytest.raises(InputError, match="'error', 'sum', 'mean', 'last'"):
        Interactions.from_matrix(DENSE, duplicates="first")  # pyright: ignore


@st.composite
def entries(draw):
    n_rows, n_columns = draw(st.integers(1, 6)), draw(st.integers(1, 6))
    pairs = st.tuples(st.integers(0, n_rows - 1), st.integers(0, n_columns - 1))
    cells = draw(st.lists(st.tuples(pairs, st.integers(-9, 9)), max_size=30))
    return (n_rows, n_columns), [(*pair, value) for pair, value in cells]


@given(entries(), st.sampled_from(["sum", "mean", "last"]), st.sampled_from(["coo", "csr", "csc"]))
@settings(deadline=None, max_examples=150)
def test_duplicates_merge_as_a_dictionary_would(drawn, policy, form):
    shape, cells = drawn
    # The order of the entries of a compressed matrix is that of its rows or columns.
    axis = {"coo": None, "csr": 0, "csc": 1}[form]
    cells = cells if axis is None else sorted(cells, key=lambda cell: cell[axis])
    by_pair = {}
    for row, column, value in cells:
        by_pair.setdefault((row, column), []).append(float(value))
    reduce = {"sum": sum, "mean": lambda x: sum(x) / len(x), "last": lambda x: x[-1]}[policy]
    rows, columns, values = np.array(cells, dtype=np.int64).reshape(-1, 3).T
    X = sparse.coo_array((values.astype(float), (rows, columns)), shape)
    X.has_canonical_format = True
    interactions = Interactions.from_matrix(X.asformat(form), duplicates=policy)
    assert_canonical(interactions)
    assert triples(interactions) == [(*pair, reduce(by_pair[pair])) for pair in sorted(by_pair)]
    counted = Counter((row, column) for row, column, _ in cells)
    if any(count > 1 for count in counted.values()):
        with pytest.raises(InputError, match="more than once"):
            Interactions.from_matrix(X.asformat(form))


@given(entries(), st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=100)
def test_round_trip_in_any_order_of_entries_rows_and_columns(drawn, random):
    shape, cells = drawn
    unique = list({(row, column): value for row, column, value in cells}.items())
    random.shuffle(unique)
    to_row, to_column = (random.sample(range(size), size) for size in shape)
    rows = np.array([to_row[row] for (row, _), _ in unique], dtype=np.int64)
    columns = np.array([to_column[column] for (_, column), _ in unique], dtype=np.int64)
    X = sparse.coo_array((np.array([float(value) for _, value in unique]), (rows, columns)), shape)
    interactions = Interactions.from_matrix(
        X, users=np.argsort(to_row), items=np.argsort(to_column)
    )
    assert_canonical(interactions)
    # Read by id, the entries are those before the permutation.
    seen = {
        (int(interactions.users[row]), int(interactions.items[column])): value
        for row, column, value in triples(interactions)
    }
    assert seen == {pair: float(value) for pair, value in unique}
    again = Interactions.from_matrix(interactions.matrix)
    assert triples(again) == triples(interactions)
    assert np.shares_memory(again.values, interactions.values) or again.n_observed == 0


# -- ids ------------------------------------------------------------------------------------------


def test_default_ids_count_from_0():
    interactions = Interactions.from_matrix(DENSE)
    assert interactions.users.tolist() == [0, 1, 2]
    assert interactions.items.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "ids",
    [
        ["a", "b", "c"],
        [7, 2, 9],
        np.array(["x", "y", "z"]),
        [uuid.UUID(int=k) for k in range(3)],
    ],
)
def test_ids_are_kept_as_given(ids):
    assert list(Interactions.from_matrix(DENSE, users=ids).users) == list(ids)


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (["a", "b"], r"3 ids.*row.*\(2,\)"),
        ([["a"], ["b"], ["c"]], r"3 ids.*\(3, 1\)"),
        ("abc", r"3 ids.*\(\)"),
        (["a", "b", "a"], "'a' occurs more than once"),
        ([4, 5, 5], "the id 5 occurs"),
        ([uuid.UUID(int=1)] * 3, "occurs more than once"),
        (np.array([{}, {}, {}], dtype=object), "str, int or UUID"),
        ((1, "1", "one"), "mixed"),
        (np.array([1, "a", None], dtype=object), "None is NoneType"),
        ([1.5, 2.0, 3.0], "1.5 is float"),
        (np.array([1.5, 2.0, 3.0]), "float64"),
        ([True, False, True], "bool"),
        ([2**70, 1, 2], "64 bits"),
    ],
)
def test_bad_ids(ids, message):
    with pytest.raises(InputError, match=message):
        Interactions.from_matrix(DENSE, users=ids)


def test_bad_item_ids():
    with pytest.raises(InputError, match="4 ids, one per column"):
        Interactions.from_matrix(DENSE, items=[1, 2])


# -- bad matrices ---------------------------------------------------------------------------------


class Frame:
    columns = ("user", "item", "value")


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.ones(3), "2 dimensions"),
        (np.ones((2, 2, 2)), "2 dimensions"),
        (sparse.coo_array(np.ones(3)), "2 dimensions"),
        (3.0, "2 dimensions"),
        (np.ones((0, 3)), "at least one row"),
        (sparse.csr_array((3, 0)), "at least one row"),
        (np.array([["a", "b"]]), "real numbers"),
        (np.array([[1, None]], dtype=object), "real numbers"),
        (np.array([[1j, 2]]), "real numbers"),
        (sparse.csr_array(np.array([[1j, 2]])), "real numbers"),
        ([[1, 2], [3]], "2-D array"),
        (Frame(), "data frame"),
        (np.ma.masked_equal(DENSE, 3.0), "masked"),
        (sparse.coo_array((2**32, 2**31)), "64-bit"),
    ],
)
def test_what_is_no_matrix_of_numbers(X, message):
    with pytest.raises(InputError, match=message):
        Interactions.from_matrix(X)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("form", ["dense", *FORMATS])
def test_the_first_value_that_is_not_finite_is_named(form, bad):
    X = DENSE.copy()
    X[1, 0] = X[2, 3] = bad
    source = X if form == "dense" else sparse.coo_array(X).asformat(form)
    with pytest.raises(InputError, match=rf"user 'b' and item 0 .*{bad:g}"):
        Interactions.from_matrix(source, users=["a", "b", "c"])


@pytest.mark.parametrize("form", ["csr", "csc"])
def test_indices_beyond_the_shape(form):
    X = getattr(sparse, f"{form}_array")(np.eye(3))
    X.indices[1] = 99
    with pytest.raises(InputError, match=f"valid {form.upper()}"):
        Interactions.from_matrix(X)


def test_the_constructor_takes_only_the_canonical_form():
    for matrix in (DENSE, sparse.csr_array(DENSE.astype(int)), sparse.coo_array(DENSE)):
        with pytest.raises(InputError, match="from_matrix"):
            Interactions(matrix, np.arange(3), np.arange(4))
    with pytest.raises(InputError, match="4 ids"):
        Interactions(sparse.csr_array(DENSE), np.arange(3), np.arange(3))


# -- properties -----------------------------------------------------------------------------------


def test_properties():
    interactions = Interactions.from_matrix(DENSE)
    assert (interactions.n_users, interactions.n_items) == interactions.shape == (3, 4)
    assert interactions.n_observed == 4
    assert interactions.density == 4 / 12
    assert interactions.sparsity == 1 - 4 / 12
    assert interactions.values.tolist() == [3.0, 1.0, 5.0, 2.0]
    assert repr(interactions) == "Interactions(3 users x 4 items, 4 observed, sparsity 0.6667)"


def test_nothing_observed():
    interactions = Interactions.from_matrix(sparse.coo_array((2, 3)))
    assert interactions.n_observed == 0
    assert interactions.sparsity == 1.0


def test_immutable():
    X, ids = sparse.csr_array(DENSE), np.array(["a", "b", "c"])
    interactions = Interactions.from_matrix(X, users=ids)
    matrix = interactions.matrix
    arrays = (matrix.data, matrix.indices, matrix.indptr, interactions.users, interactions.items)
    for array in arrays:
        with pytest.raises(ValueError, match="read-only"):
            array[0] = array[-1]
    with pytest.raises(AttributeError):
        interactions.users = ids
    assert X.data.flags.writeable
    assert ids.flags.writeable


def test_the_read_only_matrix_still_computes():
    matrix = Interactions.from_matrix(DENSE).matrix
    assert np.array_equal((matrix @ np.ones(4)), DENSE.sum(axis=1))
    assert np.array_equal(matrix.tocsc().toarray(), DENSE)
    assert np.array_equal(matrix[[2, 0]].toarray(), DENSE[[2, 0]])


def test_identity_is_equality():
    first, second = Interactions.from_matrix(DENSE), Interactions.from_matrix(DENSE)
    assert first != second
    assert len({first, second, first}) == 2

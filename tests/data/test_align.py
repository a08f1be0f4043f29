"""Interactions in the order of ids known before, and two sets joined."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.table_files import by_pair
from hcpf.core.axis import Axis
from hcpf.data import Interactions
from hcpf.data.ids import IdIndex, as_ids
from hcpf.errors import InputError
from hcpf.model.alignment import align, joined

DATA = Interactions.from_arrays(["a", "a", "b"], ["x", "z", "y"], [1.0, 0.0, 3.0])


def index(*ids):
    return IdIndex("ids", as_ids("ids", list(ids)))


def test_items_come_in_the_known_order_and_zeros_stay():
    aligned = align(DATA, Axis.ITEMS, index("z", "w", "y", "x"))
    assert aligned.items.tolist() == ["z", "w", "y", "x"]
    assert aligned.users.tolist() == ["a", "b"]
    assert aligned.matrix.toarray().tolist() == [[0, 0, 0, 1], [0, 0, 3, 0]]
    assert by_pair(aligned) == by_pair(DATA)


def test_users_come_in_the_known_order():
    aligned = align(DATA, Axis.USERS, index("c", "b", "a"))
    assert aligned.users.tolist() == ["c", "b", "a"]
    assert by_pair(aligned) == by_pair(DATA)


@pytest.mark.parametrize(("axis", "what"), [(Axis.ITEMS, "item 'z'"), (Axis.USERS, "user 'b'")])
def test_an_unknown_id_with_entries_is_named_or_dropped(axis, what):
    known = index("a", "x", "y")
    with pytest.raises(InputError, match=rf"Unknown {what} \(1 unknown"):
        align(DATA, axis, known)
    found = by_pair(align(DATA, axis, known, drop_unknown=True))
    assert found == {pair: n for pair, n in by_pair(DATA).items() if what[-2] not in pair}


def test_a_whole_number_is_shown_plainly():
    data = Interactions.from_arrays([1, 7], [1, 1])
    with pytest.raises(InputError, match="Unknown user 7 "):
        align(data, Axis.USERS, index(1))


def test_an_unknown_id_without_entries_does_not_matter():
    data = Interactions.from_matrix([[0, 2, 0], [0, 0, 0]], users=["a", "?"], items=["!", "x", "."])
    assert by_pair(align(data, Axis.ITEMS, index("y", "x"))) == {("a", "x"): 2.0}
    assert by_pair(align(data, Axis.USERS, index("b", "a"))) == {("a", "x"): 2.0}


def test_ids_of_another_kind():
    with pytest.raises(InputError, match="are integers, but these are strings"):
        align(DATA, Axis.ITEMS, index(1, 2))


cells = st.dictionaries(
    st.tuples(st.integers(0, 4), st.sampled_from("vwxyz")), st.integers(-3, 3), min_size=1
)


def interactions(pairs):
    users, items = zip(*pairs, strict=True)
    return Interactions.from_arrays(users, items, list(pairs.values()))


@given(cells, cells, st.sampled_from(["sum", "mean", "last"]))
def test_joined_as_dictionaries_would_be(first, second, policy):
    merge = {
        "sum": lambda x, y: x + y,
        "mean": lambda x, y: (x + y) / 2,
        "last": lambda x, y: y,
    }[policy]
    expected = {**first, **second}
    for pair in first.keys() & second.keys():
        expected[pair] = merge(first[pair], second[pair])
    data = joined(interactions(first), interactions(second), policy)
    assert by_pair(data) == expected
    known = interactions(first)
    assert data.users.tolist()[: known.n_users] == known.users.tolist()
    assert data.items.tolist()[: known.n_items] == known.items.tolist()


@given(cells, cells)
def test_joined_refuses_pairs_in_both(first, second):
    if first.keys() & second.keys():
        with pytest.raises(InputError, match="more than once"):
            joined(interactions(first), interactions(second), "error")
    else:
        data = joined(interactions(first), interactions(second), "error")
        assert by_pair(data) == {**first, **second}


def test_joined_ids_beyond_int64_keep_every_digit():
    large = 2**63 + 1
    small = Interactions.from_arrays([2**53 + 1, 2**53], ["x", "x"])
    more = Interactions.from_arrays(np.array([large, 2**53 + 1], np.uint64), ["x", "y"])
    data = joined(small, more, "error")
    assert data.users.tolist() == [2**53, 2**53 + 1, large]
    assert by_pair(data).keys() == {
        (2**53, "x"), (2**53 + 1, "x"), (large, "x"), (2**53 + 1, "y"),
    }  # fmt: skip


def test_joined_ids_of_another_kind():
    with pytest.raises(InputError, match="are strings, but these are integers"):
        joined(DATA, Interactions.from_arrays([1], [2]), "error")

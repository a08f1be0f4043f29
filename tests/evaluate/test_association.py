"""Components that follow labels: the ranks' variance against scipy's test, and made-up batches."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from hcpf.errors import InputError
from hcpf.evaluate import component_association
from model.small import by_hand

RNG = np.random.default_rng(0)
LABELS = np.array(["a", "b", "c"], dtype=object)[RNG.integers(3, size=60)]


def model_of(users):
    return by_hand([(users, RNG.gamma(2.0, 1.0, (5, users.shape[1])))])


@given(seed=st.integers(0, 10**6), n_distinct=st.sampled_from([2, 5, 1000]))
def test_the_test_is_that_of_kruskal_and_wallis(seed, n_distinct):
    rng = np.random.default_rng(seed)
    users = (1.0 + rng.integers(n_distinct, size=(60, 2))).astype(np.float32)
    found = component_association(model_of(users), LABELS)
    for k in range(2):
        groups = [users[label == LABELS, k] for label in "abc"]
        statistic, p_value = stats.kruskal(*(group.astype(float) for group in groups))
        assert found.share[k] == pytest.approx(statistic / 59, abs=1e-12)
        assert found.p_value[k] == pytest.approx(p_value, rel=1e-6)


def test_a_component_of_one_batch_is_found_and_the_others_are_not():
    users = RNG.gamma(2.0, 1.0, (60, 4))
    users[LABELS == "b", 2] *= 6.0
    found = component_association(model_of(users), LABELS)
    assert np.argmax(found.share) == 2
    assert found.highest[2] == "b"
    assert found.q_value[2] < 1e-4 < 0.05 < np.delete(found.q_value, 2).min()
    inside, outside = users[LABELS == "b", 2].mean(), users[LABELS != "b", 2].mean()
    assert found.ratio[2] == pytest.approx(inside / outside, rel=1e-6)
    assert found.component.tolist() == ["hcpf0", "hcpf1", "hcpf2", "hcpf3"]


def test_users_without_a_label_take_no_part():
    pandas = pytest.importorskip("pandas")
    users = RNG.gamma(2.0, 1.0, (60, 2))
    model, some = model_of(users), LABELS.copy()
    some[:5], some[5:9] = None, np.nan
    expected = component_association(model_of(users[9:]), LABELS[9:])
    by_id = dict(enumerate(LABELS[9:], start=9))
    of_pandas = pandas.Series([None] * 9 + LABELS[9:].tolist(), dtype="string")  # whose None is NA
    by_category = of_pandas.astype("category")
    for labels in (
        some, by_id, pandas.Series(by_id)[::-1], {**by_id, 999: "z"}, of_pandas, by_category,
        of_pandas.array,
    ):  # fmt: skip
        found = component_association(model, labels)
        np.testing.assert_allclose(found.p_value, expected.p_value)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["a"] * 60, "60 users have 1 different labels"),
        (list(range(60)), "60 users have 60 different labels"),
        (["a", "b"], r"60 labels in the order of the users, or a mapping by id; its shape is \(2,"),
        ({}, "0 users have 0 different labels"),
    ],
)
def test_labels_that_say_nothing_are_refused(labels, message):
    with pytest.raises(InputError, match=message):
        component_association(model_of(np.ones((60, 2))), labels)


def test_a_series_with_repeated_ids_is_refused():
    pandas = pytest.importorskip("pandas")
    labels = pandas.Series(LABELS)
    twice = pandas.concat([labels, labels[:7]])
    with pytest.raises(InputError, match="7 of 67 ids are repeated"):
        component_association(model_of(np.ones((60, 2))), twice)


def test_a_frame_is_not_labels():
    pandas = pytest.importorskip("pandas")
    with pytest.raises(InputError, match="labels is a data frame"):
        component_association(model_of(np.ones((60, 2))), pandas.DataFrame({"batch": LABELS}))

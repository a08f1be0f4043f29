"""Every method of a fitted model against what it cannot take: our exceptions, in plain words."""

import uuid

import numpy as np
import pytest
from scipy import sparse

from hcpf import HCPF, Interactions
from hcpf.elements import Poisson
from hcpf.errors import InputError, ParameterError, SupportError
from model.small import draw_matrix, quick


@pytest.fixture(scope="module")
def model():
    return quick(2, element=Poisson(), max_iter=3).fit(draw_matrix(Poisson(1.5)))


@pytest.fixture
def target(tmp_path):
    return tmp_path / "out.parquet"


IDS = {
    "rate of users": ("users", lambda m, v, _: m.rate(v, 0)),
    "rate of items": ("items", lambda m, v, _: m.rate(0, v)),
    "predict": ("users", lambda m, v, _: m.predict(v, 0)),
    "predict_proba": ("items", lambda m, v, _: m.predict_proba(0, v)),
    "predict_expected_value": ("items", lambda m, v, _: m.predict_expected_value(0, v)),
    "predict_distribution": ("users", lambda m, v, _: m.predict_distribution(v, 0)),
    "predict_distribution, drawn": (
        "items",
        lambda m, v, _: m.predict_distribution(0, v, n_samples=2),
    ),
    "recommend": ("users", lambda m, v, _: m.recommend(v)),
    "recommend among": ("items", lambda m, v, _: m.recommend(0, among=v)),
    "recommend deny": ("items", lambda m, v, _: m.recommend(0, deny=v)),
    "similar_items": ("items", lambda m, v, _: m.similar_items(v)),
    "similar_users": ("users", lambda m, v, _: m.similar_users(v)),
    "explain a user": ("users", lambda m, v, _: m.explain(v, 0)),
    "explain an item": ("items", lambda m, v, _: m.explain(0, v)),
    "explain_components": ("users", lambda m, v, _: m.explain_components(v, 0)),
    "write_recommendations": ("users", lambda m, v, to: m.write_recommendations(to, users=v)),
    "write_predictions of users": ("users", lambda m, v, to: m.write_predictions(to, users=v)),
    "write_predictions of items": ("items", lambda m, v, to: m.write_predictions(to, items=v)),
}
BAD_IDS = {
    "unknown": (99, "unknown id 99"),
    "negative": (-1, "unknown id -1"),
    "one of many": ([0, 1, 77], "unknown id 77"),
    "text": ("x", "fitted ids are integers, but these are strings"),
    "uuid": (uuid.UUID(int=5), "fitted ids are integers, but these are UUIDs"),
    "float": (1.5, "ids must be str, int or UUID"),
    "floats": (np.array([0.0, 1.0]), "ids must be str, int or UUID"),
    "nan": (float("nan"), "ids must be str, int or UUID"),
    "bool": (True, "ids must be str, int or UUID"),
    "bytes": (b"a", "ids must be str, int or UUID"),
    "mixed": ([0, "a"], "all be of one kind"),
    "ragged": ([[0, 1], [2]], "ids must be str, int or UUID"),
    "object": (object(), "ids must be str, int or UUID"),
    "too large": (2**70, "does not fit in 64 bits"),
    "unsigned": (np.uint64(2**63 + 5), "unknown id 9223372036854775813"),
}


@pytest.mark.parametrize("bad", BAD_IDS)
@pytest.mark.parametrize("call", IDS)
def test_ids(model, target, call, bad):
    (name, method), (value, message) = IDS[call], BAD_IDS[bad]
    with pytest.raises(InputError, match=f"{name}: .*{message}"):
        method(model, value, target)
    assert not target.exists()


ONE_LIST = ("recommend", "similar_items", "similar_users", "write_recommendations",
            "write_predictions of users", "write_predictions of items")  # fmt: skip


@pytest.mark.parametrize("call", ONE_LIST)
def test_lists_of_lists(model, target, call):
    name, method = IDS[call]
    with pytest.raises(InputError, match=rf"{name} must be an id or a list.*\(1, 2\)"):
        method(model, [[0, 1]], target)


@pytest.mark.parametrize("ids", [([0], 0), (0, [1]), ([], 0), ([[0]], 1)])
def test_an_explanation_is_of_one_pair(model, ids):
    for method in (model.explain, model.explain_components):
        with pytest.raises(InputError, match="one user and one item"):
            method(*ids)


def test_none_is_no_id(model):
    for call in ("rate of users", "predict_proba", "similar_items", "explain a user"):
        with pytest.raises(InputError, match="got NoneType"):
            IDS[call][1](model, None, None)


def test_all_is_every_user_or_item(model, target):
    n_users, n_items = len(model.users_), len(model.items_)
    everyone = model.recommend("all", 1, exclude_seen=False)
    assert everyone.user.tolist() == model.users_.tolist()
    assert model.write_recommendations(target, 1, users="all", exclude_seen=False) == n_users
    every = {"users": "all", "items": "all", "overwrite": True}
    assert model.write_predictions(target, **every) == n_users * n_items
    assert set(model.similar_items("all", 1).of.tolist()) == set(model.items_.tolist())


def test_none_is_a_model_s_only_user(model, target):
    for call in (model.recommend, lambda users: model.write_predictions(target, users=users)):
        with pytest.raises(InputError, match="users is required: this model has"):
            call(None)
    only = model.fold_in({0: 2.0, 3: 1.0})
    assert only.write_predictions(target, users=None) == len(model.items_)


def test_empty_lists_give_empty_answers(model, target):
    assert model.rate([], 0).shape == model.predict([], []).shape == (0,)
    assert model.predict_distribution([], 0, n_samples=3).mean.shape == (0,)
    for found in (model.recommend([]), model.similar_items([]), model.similar_users([])):
        assert len(found) == 0
        assert len(found.to_arrow()) == 0
    for write in (model.write_recommendations, model.write_predictions):
        assert write(target, users=[], overwrite=True) == 0
    assert model.write_predictions(target, items=[], overwrite=True) == 0


def test_pairs_that_do_not_match(model):
    for method in (model.rate, model.predict, model.predict_distribution):
        with pytest.raises(InputError, match=r"shape \(2,\) and items of shape \(3,\)"):
            method([0, 1], [0, 1, 2])


COUNTS = {
    "recommend": ("n", lambda m, v, _: m.recommend(0, v)),
    "write_recommendations": ("n", lambda m, v, to: m.write_recommendations(to, v)),
    "similar_items": ("n", lambda m, v, _: m.similar_items(0, v)),
    "similar_users": ("n", lambda m, v, _: m.similar_users(0, v)),
    "predict_distribution": (
        "n_samples",
        lambda m, v, _: m.predict_distribution(0, 0, n_samples=v),
    ),
}


@pytest.mark.parametrize("value", [0, -1, 2.5, np.float64(2.0), "3", None, True, [1], np.nan])
@pytest.mark.parametrize("call", COUNTS)
def test_numbers_of_things(model, target, call, value):
    name, method = COUNTS[call]
    if name == "n_samples" and value == 0 and value is not None:
        assert method(model, 0, target).rate > 0
        return
    with pytest.raises(ParameterError, match=f"{name} must be an integer"):
        method(model, value, target)
    assert not target.exists()


@pytest.mark.parametrize("value", ["prob", "", None, 3, ["expected_value"], b"expected_value"])
def test_criteria(model, target, value):
    for call in (model.recommend, lambda _, by: model.write_recommendations(target, by=by)):
        with pytest.raises(ParameterError, match="by must be one of consensus, probability, value"):
            call(0, by=value)


@pytest.mark.parametrize("value", ["yes", None, 1, np.array([1, 2])])
def test_flags(model, value):
    with pytest.raises(ParameterError, match="exclude_seen must be True or False"):
        model.recommend(0, exclude_seen=value)


@pytest.mark.parametrize("value", ["x", -1, 2.5])
def test_seeds(model, value):
    with pytest.raises(ParameterError, match="random_state must be an int"):
        model.predict_distribution(0, 0, n_samples=2, random_state=value)


@pytest.mark.parametrize("value", [None, 3, b"a", "x\0y"])
def test_paths(model, value):
    for method in (model.save, HCPF.load, model.write_predictions, model.write_recommendations):
        with pytest.raises(ParameterError, match="path must be a path"):
            method(value)


@pytest.mark.parametrize("value", ["csv", None, 3])
def test_kinds_of_frames(model, value):
    with pytest.raises(InputError, match="backend must be 'pandas', 'polars' or 'pyarrow'"):
        model.recommend(0).to_frame(value)


@pytest.mark.parametrize("value", [[], [0, 1], None, 1.5, [[0]]])
def test_the_rows_of_one_user(model, value):
    with pytest.raises(InputError, match=r"of takes one user|ids must be"):
        model.recommend([0, 1]).of(value)


# -- matrices -------------------------------------------------------------------------------------

TAKES_USERS = ("fold_in", "transform", "score", "partial_fit")
MATRICES = {
    "too few columns": (np.ones((2, 4)), InputError, "4 columns, but 11 items"),
    "one dimension": (np.ones(11), InputError, "2 dimensions"),
    "three dimensions": (np.ones((1, 2, 11)), InputError, "2 dimensions"),
    "nothing": (None, InputError, "not None"),
    "text": ("abc", InputError, "2 dimensions"),
    "empty": ([], InputError, "2 dimensions"),
    "no rows": (np.zeros((0, 11)), InputError, "at least one row"),
    "ragged": ([[1], [1, 2]], InputError, "scipy sparse matrix or a 2-D array"),
    "nan": (np.full((2, 11), np.nan), InputError, "user 0 and item 0 .*nan; values must be fin"),
    "inf": (np.full((2, 11), np.inf), InputError, "user 0 and item 0 .*inf; values must be fin"),
    "negative": (-np.ones((2, 11)), SupportError, "Poisson takes integers.*-1"),
    "fractions": (np.full((2, 11), 1.5), SupportError, r"Poisson takes integers.*1\.5"),
    "objects": (np.full((2, 11), "a", dtype=object), InputError, "real numbers"),
    "complex": (np.ones((2, 11), complex), InputError, "real numbers"),
    "twice": (
        sparse.coo_array((np.ones(2), ([0, 0], [1, 1])), shape=(2, 11)), InputError, "than once",
    ),
    "beyond counting": (
        sparse.coo_array(([1.0], ([0], [0])), shape=(2**40, 2**40)), InputError, "64-bit",
    ),
    "other ids": (
        Interactions.from_arrays(["a"], ["b"], [1.0]), InputError, "integers, but.*strings",
    ),
}  # fmt: skip


@pytest.mark.parametrize("bad", MATRICES)
@pytest.mark.parametrize("method", TAKES_USERS)
def test_matrices_of_users(model, method, bad):
    X, error, message = MATRICES[bad]
    before = dict(vars(model))
    with pytest.raises(error, match=message):
        getattr(model, method)(X)
    assert all(vars(model)[name] is value for name, value in before.items())


@pytest.mark.parametrize("method", ["fold_in_items", "transform_items"])
@pytest.mark.parametrize(
    "bad", ["one dimension", "nothing", "nan", "negative", "fractions", "objects", "twice"]
)
def test_matrices_of_items(model, method, bad):
    X, error, message = MATRICES[bad]
    if hasattr(X, "shape") and len(X.shape) == 2:
        X = sparse.coo_array((X.data, (X.col, X.row)), shape=(14, 2)) if bad == "twice" else X
        X = X if bad == "twice" else np.resize(X, (14, 2))
    with pytest.raises(error, match=message):
        getattr(model, method)(X)


def test_rows_without_entries_cannot_be_scored(model):
    with pytest.raises(InputError, match="too few entries"):
        model.score(np.zeros((2, 11)))


def test_wide_indices_and_read_only_input_are_fine(model):
    narrow = draw_matrix(Poisson(1.5), seed=2)
    wide = narrow.copy()
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    for array in (wide.data, wide.indices, wide.indptr):
        array.flags.writeable = False
    np.testing.assert_array_equal(model.transform(wide), model.transform(narrow))
    assert model.score(wide) == model.score(narrow)
    assert model.rate(np.uint8(3), np.int16(2)) == model.rate(3, 2)
    assert list(model.recommend(range(3))) == list(model.recommend(np.arange(3, dtype=np.int32)))

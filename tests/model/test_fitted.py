"""FittedModel alone: without training data, without a trainer, behind the estimator."""

import inspect
import os
import subprocess
import sys
from dataclasses import FrozenInstanceError, fields

import numpy as np
import pytest
from scipy import sparse

import hcpf
from hcpf import HCPF, FittedModel, Interactions
from hcpf.elements import Poisson
from hcpf.errors import InputError, ParameterError
from model.small import by_hand, draw_matrix, quick

USERS, ITEMS = [f"u{j}" for j in range(14)], [f"i{j}" for j in range(11)]


@pytest.fixture(scope="module")
def data():
    return Interactions.from_matrix(draw_matrix(Poisson(1.5)), users=USERS, items=ITEMS)


@pytest.fixture(scope="module")
def estimator(data):
    held = sparse.csr_array(np.random.default_rng(0).random(data.shape) < 0.1)
    return quick(2, element=Poisson(), n_fits=2, max_iter=4).fit(data, exclude=held)


@pytest.fixture(scope="module")
def bare(estimator, tmp_path_factory):
    """The same model, saved without its data and loaded again."""
    path = tmp_path_factory.mktemp("bare") / "model"
    estimator.save(path, include_data=False)
    return hcpf.load(path)


# -- without training data ------------------------------------------------------------------------


def test_a_model_without_data_is_smaller_and_predicts_the_same(estimator, bare, data, tmp_path):
    assert bare.data is None
    np.testing.assert_array_equal(bare.excluded.toarray(), estimator.model_.excluded.toarray())
    for method in ("rate", "predict", "predict_expected_value", "predict_proba"):
        expected = getattr(estimator, method)(USERS[3], ITEMS)
        np.testing.assert_array_equal(getattr(bare, method)(USERS[3], ITEMS), expected)
    np.testing.assert_array_equal(bare.transform(data), estimator.transform(data))
    estimator.save(tmp_path / "full")
    bare.save(tmp_path / "bare")
    sizes = [sum(f.stat().st_size for f in (tmp_path / n).iterdir()) for n in ("full", "bare")]
    assert sizes[0] > sizes[1]


def test_what_the_users_have_is_then_given_as_seen(estimator, bare, data):
    expected = list(estimator.recommend(USERS, 3))
    order = np.random.default_rng(1).permutation(14)
    shuffled = Interactions(sparse.csr_array(data.matrix[order]), data.users[order], data.items)
    for seen in (data, data.matrix, shuffled):
        assert list(bare.recommend(USERS, 3, seen=seen)) == expected
        assert list(bare.explain("u3", "i2", seen=seen)) == list(estimator.explain("u3", "i2"))
    assert len(bare.recommend("u3", 11, exclude_seen=False)) == 11
    some = Interactions.from_arrays(["u3", "u3", "stranger"], ["i1", "unheard of", "i2"])
    assert "i1" not in bare.recommend("u3", 11, seen=some).item
    assert len(bare.recommend("u3", 11, seen=some)) == 10


def test_without_either_the_error_says_what_to_pass(bare, data, tmp_path):
    for call in (
        lambda: bare.recommend("u3"),
        lambda: bare.explain("u3", "i2"),
        lambda: bare.write_recommendations(tmp_path / "best.parquet"),
    ):
        with pytest.raises(InputError, match=r"does not have its training data.*seen="):
            call()
    with pytest.raises(InputError, match=r"partial_fit adds .* does not have.*warm_start=True"):
        HCPF.from_model(bare).partial_fit(data)
    with pytest.raises(ParameterError, match="include_data must be True or False"):
        bare.save(tmp_path / "model", include_data="no")
    with pytest.raises(InputError, match=r"seen has shape \(2, 2\), but the data have \(14, 11\)"):
        bare.recommend("u3", seen=np.ones((2, 2)))


def test_training_continues_from_a_model_without_data(estimator, bare, data):
    model = HCPF.from_model(bare).set_params(max_iter=1)
    again = HCPF.from_model(estimator.model_).set_params(max_iter=1)
    for other in (model, again):
        other.fit(data, exclude=bare.excluded, warm_start=True)
    np.testing.assert_array_equal(model.posterior_.users.mean_, again.posterior_.users.mean_)
    last = estimator.history_[-1].elbo
    assert model.history_[0].elbo > last - 1e-6 * abs(last)


# -- without the trainer --------------------------------------------------------------------------

_IMPORT = """
import sys, hcpf
hcpf.errors.NotFittedError, hcpf.elements.Gamma(2.0, 1.0), hcpf.CompoundPoisson
print(*sys.modules)
"""
_SERVE = """
import sys, hcpf
model = hcpf.load(sys.argv[1])
model.recommend(model.users, 3)
model.explain(model.users[3], model.items[2])
model.fold_in(model.data).predict_distribution(model.users[0], model.items[0], n_samples=3)
print(*sys.modules)
"""


def loaded_modules(script, *arguments):
    path = os.pathsep.join(sys.path)
    done = subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)], env=os.environ | {"PYTHONPATH": path},
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_importing_hcpf_loads_neither_scikit_learn_nor_numba():
    assert not {"sklearn", "numba", "pyarrow", "pandas"} & loaded_modules(_IMPORT)


def test_serving_a_saved_model_loads_no_trainer_and_no_scikit_learn(estimator, tmp_path):
    estimator.save(tmp_path / "model")
    names = loaded_modules(_SERVE, tmp_path / "model")
    assert "hcpf.model.fitted" in names
    assert not {"sklearn", "hcpf.training", "hcpf.estimator", "hcpf.evaluate"} & names


# -- behind the estimator -------------------------------------------------------------------------


def test_a_fitted_model_is_frozen_and_says_what_it_is(estimator):
    model = estimator.model_
    with pytest.raises(FrozenInstanceError):
        model.tempering = 2.0
    assert repr(model) == "FittedModel(poisson, 14 users x 11 items, 2 components, 2 fits)"
    assert repr(by_hand([([[1.0]], [[2.0]])])).endswith("1 components, 1 fit)")
    assert model.settings == estimator.get_params(deep=False)


def test_the_estimator_answers_what_its_model_answers(estimator):
    model = estimator.model_
    for name, method in inspect.getmembers(FittedModel, inspect.isfunction):
        if name.startswith("_"):
            continue
        mine = getattr(HCPF, name)
        assert mine.__doc__, name
        expected = list(inspect.signature(method).parameters)
        found = [known for known in inspect.signature(mine).parameters if known != "y"]
        assert found[: len(expected)] == expected, name
    np.testing.assert_array_equal(estimator.rate("u1", ITEMS), model.rate("u1", ITEMS))
    assert isinstance(estimator.fold_in(model.data), FittedModel)
    attributes = {field.name for field in fields(FittedModel)} - {
        "settings",
        "max_count",
        "words",
        "folded",
    }
    renamed = {"data": "interactions_", "excluded": "model_"}
    for name in attributes:
        found = getattr(estimator, renamed.get(name, f"{name}_"))
        if name in ("users", "items", "data", "value_model", "priors"):
            assert found is getattr(model, name)
    assert estimator.posterior_ is model.posteriors[0]
    assert (estimator.n_features_in_, estimator.n_iter_) == (11, 4)


def test_before_a_fit_the_estimator_has_no_fitted_attributes():
    for name in ("element_", "value_model_", "posteriors_", "users_", "model_", "n_features_in_"):
        assert not hasattr(HCPF(), name)

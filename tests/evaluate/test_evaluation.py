"""Evaluations: a model and its baselines, written to a file and read again."""

import json
from dataclasses import fields

import numpy as np
import pytest

from hcpf import HCPF, Interactions, simulate
from hcpf.elements import Gamma, Poisson
from hcpf.errors import InputError
from hcpf.evaluate import Evaluation, evaluate_model, excluded_split, scores, split
from hcpf.evaluate.predictive_checks import check_values

QUICK = {"n_fits": 1, "max_iter": 5, "random_state": 0}


def parts_of(element):
    data = simulate(40, 30, density=0.25, element=element, random_state=0).interactions
    return split(data, random_state=0)


@pytest.fixture(scope="module")
def parts():
    return parts_of(Gamma(2, 0.05))


@pytest.fixture(scope="module")
def found(parts):
    return evaluate_model(HCPF(2, element="gamma", **QUICK), parts)


def test_the_model_comes_first_and_is_scored_as_elsewhere(parts, found):
    again = HCPF(2, element="gamma", **QUICK).fit(parts.train, exclude=parts.held_out)
    assert found.model.scores.as_dict() == scores(again, parts).as_dict()
    assert [row.name for row in found.baselines] == ["Popularity", "Binary HPF"]
    assert all(row.calibration is not None for row in found.models)
    assert (found.n_test, found.n_missing) == (len(parts.test), parts.test.n_missing)
    assert found.settings == "2 components, element gamma"


@pytest.mark.parametrize(
    ("settings", "names"),
    [
        ({"element": "presence"}, ["Popularity"]),
        ({"element": "poisson"}, ["Popularity", "Binary HPF", "HPF"]),
        ({"train_on": "observed", "element": "poisson"}, ["Shared element", "Element per item"]),
    ],
    ids=str,
)
def test_baselines_are_those_of_the_value_model(settings, names):
    data = parts_of(Poisson(3.0)).train
    data.matrix.data.flags.writeable = True
    np.maximum(data.matrix.data, 1.0, out=data.matrix.data)
    parts = split(data, random_state=0)
    found = evaluate_model(HCPF(2, **settings, **QUICK), parts)
    assert [row.name for row in found.baselines] == names
    assert not evaluate_model(HCPF(2, **settings, **QUICK), parts, max_baselines=0).baselines


def same(one, two):
    if hasattr(one, "__dataclass_fields__"):
        left_out = ("pairs", "pit")
        names = [field.name for field in fields(one) if field.name not in left_out]
        return all(same(getattr(one, name), getattr(two, name)) for name in names)
    if isinstance(one, list):
        return len(one) == len(two) and all(map(same, one, two))
    if isinstance(one, dict):
        return list(one) == list(two) and all(map(same, one.values(), two.values()))
    return np.array_equal(one, two, equal_nan=isinstance(one, float | np.ndarray))


def test_a_file_gives_the_evaluation_back(found, tmp_path):
    path = tmp_path / "evaluation.json"
    found.save(path)
    again = Evaluation.load(path)
    assert same(found, again)
    assert again.model.calibration.pit is None
    text = path.read_text()
    assert "NaN" not in text
    assert json.loads(text)["models"][0]["name"] == "This model"


def test_files_that_are_not_evaluations_are_refused(tmp_path):
    path = tmp_path / "evaluation.json"
    with pytest.raises(InputError, match="cannot be read"):
        Evaluation.load(path)
    for text in ("", "[]", "{}", '{"hcpf_evaluation": 99}', '{"hcpf_evaluation": 1}'):
        path.write_text(text)
        with pytest.raises(InputError, match="is not an evaluation"):
            Evaluation.load(path)
    with pytest.raises(InputError, match="cannot be written"):
        Evaluation([], None, "", 0, 0, 0, 0, 0).save(tmp_path / "none" / "e.json")


def test_entries_excluded_from_training_are_test_pairs(parts):
    data = simulate(40, 30, density=0.25, element=Gamma(2, 0.05), random_state=0).interactions
    model = HCPF(2, element="gamma", **QUICK)
    held = excluded_split(model.fit(data, exclude=parts.held_out).model_)
    assert len(held.test) == len(parts.test) + len(parts.validation)
    assert held.test.n_missing == parts.test.n_missing + parts.validation.n_missing
    np.testing.assert_array_equal(held.train.values, parts.train.values)
    # Only their positions are known to a model that was not given their values.
    assert excluded_split(model.fit(parts.train, exclude=parts.held_out).model_) is None
    assert excluded_split(model.fit(data).model_) is None


def test_values_of_excluded_entries_are_not_compared(parts):
    largest = parts.train.matrix.copy()
    largest.data[largest.data < np.quantile(largest.data, 0.9)] = 0.0
    largest.eliminate_zeros()
    excluded = Interactions(largest, parts.train.users, parts.train.items)
    model = HCPF(2, element="gamma", **QUICK).fit(parts.train, exclude=excluded)
    found = check_values(model, None)
    assert found.n_values == parts.train.n_observed - excluded.n_observed
    assert found.percentile_99 < excluded.values.min()

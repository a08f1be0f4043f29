"""Models saved with schema 1 (an element had ``per`` and ``once``) and 2 load and predict alike.

``saved_models`` contains folders that hcpf wrote at commit 1cab2c6 with what they predicted, and
folders of schema 2 written just before the solver objects (2c833ae).
"""

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

from hcpf import HCPF, SVI, Algorithm1, Auto, FittedModel, Interactions
from hcpf.core.value_model import ValueModel
from hcpf.elements import Binomial, Gamma, Poisson, Presence

FOLDER = Path(__file__).parent / "saved_models"
ITEMS = [f"i{j}" for j in range(8)]
DESCRIPTIONS = {
    "auto": "inverse gaussian per user and item",
    "binary": "presence",
    "binomial_once": "binomial hurdle",
    "gamma": "gamma",
    "gamma_once_per_both": "gamma hurdle per user and item",
    "gamma_per_both": "gamma per user and item",
    "gamma_per_item": "gamma per item",
    "gamma_per_user": "gamma per user",
    "observed": "poisson",
    "several_fits": "poisson",
}


@pytest.mark.parametrize("name", DESCRIPTIONS)
def test_it_loads_and_predicts_the_same_numbers(name):
    expected = json.loads((FOLDER / f"{name}.json").read_text())
    model = FittedModel.load(FOLDER / name)
    assert model.value_model.description == DESCRIPTIONS[name]
    assert (model.n_iter, model.tempering) == (expected["n_iter"], expected["tempering"])
    u, i = np.repeat(["u0", "u1", "u2"], 8), np.tile(ITEMS, 3)
    found = {method: getattr(model, method)(u, i) for method in ("rate", "predict")}
    found["predict_expected_value"] = model.predict_expected_value(u, i)
    found["element_mean"] = np.broadcast_to(model.element_at(u, i).mean, len(u))
    found["explained"] = model.explain("u0", "i1").rate
    assert model.recommend(["u0", "u1", "u2"], 2).item.tolist() == expected["recommended"]
    first_two = Interactions.from_matrix(model.data.matrix[:2], users=["x", "y"], items=ITEMS)
    folded, pairs = model.fold_in(first_two), (np.repeat(["x", "y"], 8), np.tile(ITEMS, 2))
    found["folded_rate"], found["folded_value"] = folded.rate(*pairs), folded.predict(*pairs)
    for method, values in found.items():
        np.testing.assert_allclose(values, expected[method], rtol=1e-6, err_msg=method)


@pytest.mark.parametrize(
    ("name", "element", "vary_by", "hurdle", "train_on"),
    [
        ("binary", Presence(), None, False, "full"),
        ("binomial_once", Binomial(), None, True, "full"),
        ("gamma_once_per_both", Gamma(), "both", True, "full"),
        ("gamma_per_user", Gamma(), "user", False, "full"),
        ("observed", Poisson(), None, False, "observed"),
        ("auto", "auto", None, False, "full"),
    ],
)
def test_its_settings_are_those_of_today(name, element, vary_by, hurdle, train_on, tmp_path):
    model = HCPF.load(FOLDER / name)
    given = (model.element, model.vary_by, model.hurdle, model.train_on)
    assert given == (element, vary_by, hurdle, train_on)
    assert isinstance(model.value_model_, ValueModel)
    model.save(tmp_path / "again")
    again = HCPF.load(tmp_path / "again")
    assert again.get_params() == model.get_params()
    assert again.value_model_ == model.value_model_
    np.testing.assert_array_equal(again.rate("u0", ITEMS), model.rate("u0", ITEMS))


@pytest.mark.parametrize(
    ("name", "solver", "start"),
    [
        ("schema2_svi", SVI(batches=7, tau=2.0, max_count=50), "noise"),
        ("schema2_algorithm1", Algorithm1(xi=0.8, stratified=False), "auto"),
        ("schema2_auto", Auto(svi_passes=3), "auto"),
        ("gamma", Auto(), "auto"),
    ],
)
def test_constants_of_the_solver_were_parameters_before_schema_3(name, solver, start, tmp_path):
    model = HCPF.load(FOLDER / name)
    assert model.solver == solver
    assert model.start == start
    assert model.model_.max_count == solver.max_count
    model.save(tmp_path / "again")
    assert HCPF.load(tmp_path / "again").get_params() == model.get_params()
    clone(model).fit(model.interactions_, progress=False)

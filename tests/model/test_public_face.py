"""The first steps of a new user, on the data that comes with hcpf."""

import inspect

import numpy as np
import polars
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import hcpf
from hcpf import CAVI, HCPF, SVI, Algorithm1, FittedModel, datasets
from hcpf.errors import InputError
from hcpf.evaluate import Popularity, compare, split
from hcpf.model.fitted import FittedModel as Served

PARAMETERS = [
    "n_components", "element", "vary_by", "hurdle", "learn_element", "train_on", "n_fits",
    "combine", "priors", "tempering", "solver", "start", "max_iter", "tol", "random_state",
]  # fmt: skip
GUEST = {"85123A": 12.0, "22423": 30.0}


@pytest.fixture(scope="module")
def parts():
    return split(datasets.retail(), test=0.2, random_state=0)


@pytest.fixture(scope="module")
def model(parts):
    estimator = HCPF(n_components=5, element="gamma", n_fits=1, max_iter=10, random_state=0)
    return estimator.fit(parts.train, exclude=parts.held_out)


def test_there_are_fifteen_parameters():
    assert list(inspect.signature(HCPF).parameters) == PARAMETERS
    assert sorted(HCPF().get_params()) == sorted(PARAMETERS)


def test_recommendations_are_named_rows(model, tmp_path):
    rows = list(model.recommend([12347, 12352], n=3))
    assert [row.user for row in rows] == [12347] * 3 + [12352] * 3
    assert all(isinstance(row.item, str) for row in rows)
    assert all(0 < row.probability < 1 and row.value > 0 for row in rows)
    products = [row.probability * row.value for row in rows]
    np.testing.assert_allclose(products, [row.expected_value for row in rows])
    everyone = model.recommend("all", n=2)
    assert list(dict.fromkeys(everyone.user)) == list(model.users_)
    everyone.write(tmp_path / "recommendations.parquet")
    written = polars.read_parquet(tmp_path / "recommendations.parquet")
    assert written.equals(everyone.to_polars())
    columns = ["user", "item", "rank", "probability", "value", "expected_value"]
    assert written.columns == columns == list(everyone.to_pandas())


def test_a_pair_has_a_distribution_and_an_explanation(model):
    spend = model.predict_distribution(12347, "85123A")
    assert 0 < spend.prob_observed < 1
    low, high = spend.observed.interval(0.9)
    assert 0 < low < high
    reasons = model.explain(12347, "85123A")
    assert reasons.source[-1] == "(prior)"
    assert reasons.share.sum() == pytest.approx(1.0)


def test_a_guest_is_a_mapping_or_a_list(model):
    guest = model.fold_in(GUEST)
    assert isinstance(guest, FittedModel)
    best = guest.recommend(n=3)
    assert len(best) == 3
    assert set(best.user) == {"new"}
    assert not set(best.item) & set(GUEST)
    row = np.zeros((1, len(model.items_)))
    row[0, model.model_.item_index.positions(list(GUEST))] = list(GUEST.values())
    np.testing.assert_array_equal(
        guest.rate("new", best.item), model.fold_in(row).rate(0, best.item)
    )
    ones = model.fold_in(dict.fromkeys(GUEST, 1.0)).rate("new", best.item)
    np.testing.assert_array_equal(model.fold_in(list(GUEST)).rate("new", best.item), ones)
    np.testing.assert_array_equal(model.transform(GUEST), model.transform(row))
    bought = model.fold_in_items({12347: 20.0, 12352: 5.0})
    assert bought.items.tolist() == ["new"]


@pytest.mark.parametrize(
    ("guest", "message"),
    [
        ({"no such item": 1.0}, "'no such item'"),
        ({"85123A": "much"}, "must map ids of items to numbers"),
        ({"85123A": float("nan")}, "finite"),
        ({"85123A": -1.0}, "Gamma"),
        (["85123A", "85123A"], "twice"),
    ],
)
def test_a_guest_that_cannot_be(model, guest, message):
    with pytest.raises(InputError, match=message):
        model.fold_in(guest)


def test_users_may_be_omitted_only_if_there_is_one(model):
    with pytest.raises(InputError, match="users is required: this model has"):
        model.recommend(n=3)


def test_models_are_compared_saved_and_served(model, parts, tmp_path):
    table = compare({"hcpf": model, "popularity": Popularity()}, parts)
    assert "hcpf" in str(table)
    model.save(tmp_path / "model")
    served = hcpf.load(tmp_path / "model")
    assert isinstance(served, Served)
    assert list(served.recommend([12347], n=3)) == list(model.recommend([12347], n=3))


@pytest.mark.parametrize("solver", [CAVI(), SVI(batches=3), Algorithm1(tau=100.0), "svi", "auto"])
def test_solvers_are_parameters(solver, tmp_path):
    data = hcpf.simulate(30, 20, n_components=2, density=0.3, random_state=0).interactions
    model = HCPF(2, element="gamma", n_fits=1, max_iter=2, solver=solver, random_state=0)
    copied = clone(model)
    assert copied.solver == solver
    assert repr(solver) in repr(model) or solver == "auto"
    copied.fit(data).save(tmp_path / "model")
    assert HCPF.load(tmp_path / "model").solver == solver
    search = GridSearchCV(copied, {"solver": [CAVI(), SVI(batches=2)]}, cv=2)
    assert search.fit(data.matrix).best_params_["solver"] in (CAVI(), SVI(batches=2))

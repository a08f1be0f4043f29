"""New users whose items are matched by name, of which perhaps only some were measured."""

import logging
from dataclasses import replace

import numpy as np
import pandas as pd
import polars
import pyarrow
import pytest
from scipy import sparse

from core import dense
from core.worlds import as_matrix, draw_model
from hcpf import Interactions
from hcpf.core.value_model import ValueModel
from hcpf.elements import Gamma, Poisson
from hcpf.errors import InputError, ParameterError
from model.small import draw_matrix, name_of, quick
from model.test_against_twin import converge, even_start, model_at
from model.test_fold_in_starts import with_users

anndata = pytest.importorskip("anndata")

GENES = [f"g{j}" for j in range(20)]
NEW = draw_matrix(Poisson(1.5), seed=5, shape=(12, 20)).toarray()


def cells(X, genes):
    obs = pd.DataFrame(index=[f"c{j}" for j in range(len(X))])
    return anndata.AnnData(sparse.csr_matrix(X), obs=obs, var=pd.DataFrame(index=list(genes)))


@pytest.fixture(scope="module")
def model():
    matrix = draw_matrix(Poisson(1.5), seed=4, shape=(30, 20))
    data = Interactions.from_matrix(matrix, items=GENES)
    return quick(3, element=Poisson(), n_fits=2, max_iter=30).fit(data)


def tables(X, genes):
    """The same new users in every form that names its items."""
    frame = pd.DataFrame(np.asarray(X), columns=list(genes))
    yield cells(X, genes)
    yield frame
    yield polars.from_pandas(frame)
    yield pyarrow.Table.from_pandas(frame, preserve_index=False)
    yield Interactions.from_matrix(np.asarray(X), items=list(genes))


@pytest.mark.parametrize("form", range(5))
def test_items_are_matched_by_name_whatever_their_order(model, form):
    expected = model.transform(NEW)
    order = np.random.default_rng(0).permutation(20)
    for columns in (np.arange(20), np.arange(20)[::-1], order):
        X = list(tables(NEW[:, columns], np.array(GENES)[columns]))[form]
        np.testing.assert_allclose(model.transform(X), expected, rtol=1e-4)
    assert not np.allclose(model.transform(NEW[:, ::-1]), expected, rtol=0.1)


def test_new_users_keep_the_names_of_their_rows(model):
    assert model.fold_in(cells(NEW, GENES)).users.tolist() == [f"c{j}" for j in range(12)]
    frame = pd.DataFrame(NEW, columns=GENES, index=[f"r{j}" for j in range(12)])
    assert model.fold_in(frame).users.tolist() == frame.index.tolist()
    assert model.fold_in(polars.from_pandas(frame)).users.tolist() == list(range(12))


@pytest.mark.parametrize("form", range(5))
def test_items_that_were_not_measured_take_no_part(model, form):
    measured = np.array([17, 2, 11, 5, 8, 3])
    X = list(tables(NEW[:, measured], np.array(GENES)[measured]))[form]
    unlisted = np.ones(NEW.shape)
    unlisted[:, measured] = 0.0
    expected = model.model_.fold_in(NEW, exclude=unlisted)
    found = model.fold_in(X, measured_items="listed")
    for fit, twin in zip(found.posteriors, expected.posteriors, strict=True):
        np.testing.assert_allclose(fit.users.mean, twin.users.mean, rtol=2e-4)
        np.testing.assert_allclose(fit.users.a, twin.users.a, rtol=2e-4)
    np.testing.assert_array_equal(
        model.transform(X, measured_items="listed"),
        np.hstack([fit.users.mean for fit in found.posteriors]),
    )
    others_missing = NEW.copy()
    others_missing[unlisted > 0] = 0.0
    counted = model.transform(X)
    np.testing.assert_allclose(counted, model.transform(others_missing), rtol=1e-4)
    assert not np.allclose(counted, model.transform(X, measured_items="listed"), rtol=0.05)


@pytest.mark.parametrize(
    "value_model",
    [ValueModel(Gamma(2.0, 1.0)), ValueModel(Gamma(2.0, 1.0), vary_by="both"),
     ValueModel(Gamma(2.0, 1.0), train_on="observed"), ValueModel(Gamma(2.0, 1.0), hurdle=True)],
    ids=name_of,
)  # fmt: skip
def test_measured_items_against_the_twin(value_model):
    twin = draw_model(value_model, shape=(7, 6))
    model, measured = model_at(twin), np.array([4, 1, 2])
    X = Interactions.from_matrix(as_matrix(twin)[:, measured], items=measured)
    found = model.fold_in(X, measured_items="listed").posteriors[0].users
    is_measured = np.isin(np.arange(6), measured)
    observed = twin.observed & is_measured
    included = (twin.included & is_measured) if value_model.train_on == "full" else observed
    values = np.where(observed, twin.values, 0.0)
    part = even_start(replace(twin, observed=observed, included=included, values=values))
    at_found = with_users(replace(part, max_count=60), np.arange(7), found)
    again = dense.update_users(at_found).users
    np.testing.assert_allclose(again.mean, found.mean, rtol=1e-4)
    assert dense.elbo(at_found) > dense.elbo(converge(part)) - 1e-3


def test_a_user_given_as_a_mapping_may_have_measured_items_only(model):
    basket = {"g3": 2.0, "g8": 1.0, "g15": 4.0}
    X = np.zeros((1, 3))
    X[0] = list(basket.values())
    expected = model.transform(pd.DataFrame(X, columns=list(basket)), measured_items="listed")
    np.testing.assert_allclose(
        model.transform(basket, measured_items="listed"), expected, rtol=1e-5
    )
    with_stranger = {**basket, "new gene": 7.0}
    with pytest.raises(InputError, match="unknown id 'new gene'"):
        model.transform(with_stranger)
    np.testing.assert_allclose(
        model.transform(with_stranger, unknown="drop"), model.transform(basket), rtol=1e-6
    )
    names = ["g3", "new gene", "g8"]
    np.testing.assert_allclose(
        model.transform(names, unknown="drop"), model.transform(["g3", "g8"]), rtol=1e-6
    )


@pytest.mark.parametrize("form", range(5))
def test_unknown_items_are_an_error_or_dropped(model, form):
    genes = [*GENES[:15], "x1", "x2"]
    X = list(tables(np.hstack([NEW[:, :15], np.full((12, 2), 3.0)]), genes))[form]
    with pytest.raises(InputError, match=r"Unknown item 'x1' \(2 .*unknown=\"drop\""):
        model.transform(X)
    kept = list(tables(NEW[:, :15], GENES[:15]))[form]
    for measured in ("all", "listed"):
        found = model.transform(X, measured_items=measured, unknown="drop")
        expected = model.transform(kept, measured_items=measured)
        np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize("form", range(5))
def test_items_of_which_none_is_known_are_an_error(model, form):
    X = list(tables(NEW[:, :3], ["ENSG1", "ENSG2", "ENSG3"]))[form]
    message = "None of the 3 items of X was fitted. Items of the model are like 'g0'"
    with pytest.raises(InputError, match=message):
        model.transform(X, measured_items="listed", unknown="drop")
    if form < 4:  # a list of entries may have new items only
        with pytest.raises(InputError, match=message):
            model.transform(X, unknown="drop")
    else:
        nothing = model.transform(np.zeros((12, 20)))
        np.testing.assert_allclose(model.transform(X, unknown="drop"), nothing)


def test_the_overlap_is_logged(model, caplog):
    caplog.set_level(logging.INFO, "hcpf")
    X = cells(np.hstack([NEW[:, :15], np.ones((12, 2))]), [*GENES[:15], "x1", "x2"])
    model.transform(X, measured_items="listed", unknown="drop")
    assert [record.getMessage() for record in caplog.records] == [
        "X has 15 of 20 fitted items; the other 5 take no part. 2 unknown items dropped."
    ]
    caplog.clear()
    model.transform(cells(NEW[:, :15], GENES[:15]))
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "15 of 20 fitted items; the other 5 count as missing" in caplog.text
    caplog.clear()
    model.transform(cells(NEW, GENES))
    model.transform(cells(NEW[:, :15], GENES[:15]), measured_items="listed")
    assert [record.levelname for record in caplog.records] == ["INFO", "INFO"]
    caplog.clear()
    model.transform(NEW)
    model.transform({"g3": 2.0})
    assert not caplog.records


def test_a_score_reports_the_overlap_too(model, caplog):
    panel = cells(NEW[:, :15], GENES[:15])
    model.score(panel)
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "X has 15 of 20 fitted items; the other 5 count as missing" in caplog.text
    strangers = cells(NEW[:, :2], ["ENSG1", "ENSG2"])
    with pytest.raises(InputError, match="None of the 2 items of X was fitted"):
        model.score(strangers, unknown="drop")


def test_excluded_pairs_of_items_that_were_not_measured_change_nothing(model):
    measured = np.arange(6)
    X = Interactions.from_matrix(NEW[:, measured], items=GENES[:6])
    excluded = np.zeros(NEW.shape)
    excluded[:, 2] = excluded[:, 9] = 1.0
    found = model.fold_in(X, measured_items="listed", exclude=excluded)
    excluded[:, 6:] = 1.0
    expected = model.fold_in(NEW, exclude=excluded)
    np.testing.assert_allclose(
        found.posteriors[0].users.mean, expected.posteriors[0].users.mean, rtol=2e-4
    )


def test_words_that_are_not_choices(model):
    with pytest.raises(ParameterError, match="measured_items must be one of all, listed"):
        model.transform(NEW, measured_items="some")
    with pytest.raises(ParameterError, match="unknown must be one of error, drop"):
        model.fold_in(NEW, unknown="ignore")


def test_frames_that_cannot_be_matched(model):
    with pytest.raises(InputError, match="Unknown item 'user'"):
        model.transform(pd.DataFrame({"user": [1.0], "item": [2.0]}))
    with pytest.raises(InputError, match="the fitted ids are strings, but these are integers"):
        model.transform(pd.DataFrame(NEW))
    for frame in (pd.DataFrame, polars.DataFrame):
        with pytest.raises(InputError, match="The column 'type' of X does not hold real numbers"):
            model.transform(frame({"g1": [1.0, 2.0], "type": ["B", "T"]}))
    with pytest.raises(InputError, match="nan; values must be finite"):
        model.transform(pd.DataFrame({"g1": [1.0, np.nan]}))
    twice = pd.DataFrame(NEW[:, :2], columns=["g1", "g1"])
    with pytest.raises(InputError, match="g1"):
        model.transform(twice)

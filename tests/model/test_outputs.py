"""Recommendations with the user's own ids, as frames, and streamed to Parquet."""

import resource
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

from hcpf import Interactions
from hcpf.elements import Poisson
from hcpf.errors import InputError
from hcpf.model import predict, ranking, recommend
from hcpf.model.tables import Table
from model.small import ID_KINDS, ids, quick

SHAPE = (13, 9)


def counts():
    rng = np.random.default_rng(1)
    matrix = (rng.random(SHAPE) < 0.4) * (1.0 + rng.poisson(2.0, SHAPE))
    matrix[:2] = 3.0  # the first two have seen everything
    return matrix


@pytest.fixture(scope="module")
def models():
    def fit(kind):
        users, items = ids(kind, SHAPE[0]), ids(kind, SHAPE[1])
        data = Interactions.from_matrix(counts(), users=users, items=items)
        return quick(element=Poisson()).fit(data)

    return {kind: fit(kind) for kind in ID_KINDS}


@pytest.mark.parametrize("kind", ID_KINDS)
def test_ids_go_in_and_come_out(models, kind):
    plain, model = models["positions"], models[kind]
    users, items = np.array(model.users_), np.array(model.items_)
    order = [5, 2, 5, 12]
    expected = plain.recommend(order, 4, among=[1, 2, 3, 8], deny=[3])
    for asked in (users[order], list(users[order])):
        found = model.recommend(asked, 4, among=list(items[[1, 2, 3, 8]]), deny=items[3])
        assert list(found.user) == list(users[expected.user])
        assert list(found.item) == list(items[expected.item])
        np.testing.assert_array_equal(found.probability, expected.probability)
    assert model.rate(users[3], items[4]) == plain.rate(3, 4)
    near, at = model.similar_items(items[2], 3), plain.similar_items(2, 3)
    assert list(near.id) == list(items[at.id])
    assert list(near.of) == [items[2]] * 3
    assert list(model.explain(users[5], items[0]).source[:-1]) == [
        items[j] for j in plain.explain(5, 0).source[:-1]
    ]


@pytest.mark.parametrize("kind", ID_KINDS)
@pytest.mark.parametrize("asked", [[5, 2, 5], [0], []], ids=["some", "all seen", "nobody"])
def test_frames_hold_the_same_columns(models, kind, asked):
    model = models[kind]
    found = model.recommend(model.users_[asked], 4)
    as_text = kind in ("str", "uuid")
    expected = {
        name: [str(v) for v in column] if column.dtype == object else column.tolist()
        for name, column in found.columns().items()
    }
    table = found.to_frame("pyarrow")
    assert isinstance(table, pa.Table)
    assert table.to_pydict() == expected
    assert table.schema.field("user").type == (
        pa.string() if as_text else pa.from_numpy_dtype(model.users_.dtype)
    )
    polars, pandas = found.to_frame("polars"), found.to_frame("pandas")
    assert isinstance(polars, pl.DataFrame)
    assert isinstance(pandas, pd.DataFrame)
    assert polars.to_dict(as_series=False) == expected
    assert pandas.to_dict("list") == expected


def test_rows_and_text(models):
    found = models["str"].recommend(models["str"].users_, 9)
    first = next(iter(found))
    assert first == tuple(column[0] for column in found.columns().values())
    assert (first.user, first.rank, first.probability) == (first[0], 1, first[3])
    assert isinstance(first.rank, int)
    lines = repr(found).splitlines()
    assert lines[0].split() == list(found.columns())
    assert len(lines) == 22
    assert lines[-1] == f"... {len(found) - 20} more rows"


def test_a_table_of_records_with_errors_and_gaps(tmp_path):
    table = Table.from_records(
        [
            {"model": "hcpf", "auc": 0.81234, "auc_error": 0.0021, "seconds": 12345.678, "k": 3},
            {"model": "popularity", "auc": None, "auc_error": None, "seconds": None, "k": 12},
        ]
    )
    assert repr(table) == (
        "     model              auc  seconds   k\n"
        "      hcpf  0.8123 ± 0.0021   12,350   3\n"
        "popularity                –        –  12"
    )
    assert [row.k for row in table] == [3, 12]
    assert table.to_polars()["auc"].to_list() == [0.81234, None]
    assert table.to_pandas()["model"].tolist() == ["hcpf", "popularity"]
    table.write(tmp_path / "scores.csv")
    lines = (tmp_path / "scores.csv").read_text().splitlines()
    assert lines[1] == '"hcpf",0.81234,0.0021,12345.678,3'
    assert lines[2] == '"popularity",,,,12'
    with pytest.raises(InputError, match=r"exists already. Pass overwrite=True"):
        table.write(tmp_path / "scores.csv")
    with pytest.raises(InputError, match=r"End its name in \.parquet, \.csv, \.tsv"):
        table.write(tmp_path / "scores.doc")
    with pytest.raises(InputError, match="equally long"):
        Table(a=[1, 2], b=[1])
    with pytest.raises(AttributeError, match="no column 'b'"):
        _ = Table(a=[1, 2]).b


# -- files ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("block", [1 << 24, 9, 30])
@pytest.mark.parametrize("kind", ["int", "str", "uuid"])
def test_a_streamed_file_holds_what_recommend_returns(models, kind, block, tmp_path, monkeypatch):
    # With blocks of one user the first two parts are empty: these users have seen everything.
    model, target = models[kind], tmp_path / "best.parquet"
    expected = model.recommend(model.users_, 3, by="expected_value").to_arrow()
    monkeypatch.setattr(ranking, "_USERS_AT_ONCE", max(1, block // 9))
    rows = model.write_recommendations(target, 3, by="expected_value")
    written = parquet.read_table(target)
    assert rows == len(written) == len(expected) > 0
    assert written.schema.equals(expected.schema)
    for name in ("user", "item", "rank"):
        assert written[name].to_pylist() == expected[name].to_pylist()
    for name in ("probability", "value", "expected_value"):
        np.testing.assert_allclose(written[name], expected[name], rtol=1e-6)
    assert [file.name for file in tmp_path.iterdir()] == ["best.parquet"]


def test_some_users_and_items_only(models, tmp_path):
    model, target = models["str"], tmp_path / "best.parquet"
    some = list(model.users_[[7, 3, 7]])
    rows = model.write_recommendations(
        target, 2, users=some, among=model.items_[:4], exclude_seen=False
    )
    found = model.recommend(some, 2, among=model.items_[:4], exclude_seen=False)
    assert rows == 6
    assert parquet.read_table(target).equals(found.to_arrow())


def test_users_who_have_seen_everything_make_an_empty_file_with_all_columns(models, tmp_path):
    model, target = models["str"], tmp_path / "none.parquet"
    assert model.write_recommendations(target, users=model.users_[:2]) == 0
    assert parquet.read_table(target).schema.equals(model.recommend([]).to_arrow().schema)


@pytest.mark.parametrize("block", [1 << 22, 5, 20])
@pytest.mark.parametrize("kind", ["int", "uuid"])
def test_streamed_predictions_are_those_of_the_pairs(models, kind, block, tmp_path, monkeypatch):
    model, target = models[kind], tmp_path / "all.parquet"
    monkeypatch.setattr(predict, "_BLOCK", block)
    users, items = model.users_[[4, 0, 4]], model.items_[[8, 2]]
    assert model.write_predictions(target, users=users, items=items) == 6
    written = parquet.read_table(target)
    assert written.column_names == ["user", "item", "probability", "value", "expected_value"]
    u, i = (np.broadcast_to(a, (3, 2)).ravel() for a in (users[:, None], items))
    assert written["user"].to_pylist() == [v if kind == "int" else str(v) for v in u]
    assert written["item"].to_pylist() == [v if kind == "int" else str(v) for v in i]
    np.testing.assert_array_equal(written["probability"], model.predict_proba(u, i))
    np.testing.assert_array_equal(written["value"], model.predict(u, i))
    np.testing.assert_array_equal(written["expected_value"], model.predict_expected_value(u, i))
    assert model.write_predictions(target, overwrite=True) == SHAPE[0] * SHAPE[1]
    assert len(parquet.read_table(target)) == SHAPE[0] * SHAPE[1]


@pytest.mark.parametrize("method", ["write_recommendations", "write_predictions"])
def test_an_existing_file_is_kept_unless_it_may_be_replaced(models, method, tmp_path):
    write, target = getattr(models["str"], method), tmp_path / "file.parquet"
    target.write_text("precious")
    with pytest.raises(InputError, match=r"file\.parquet exists already. Pass overwrite=True"):
        write(target)
    assert target.read_text() == "precious"
    assert write(target, overwrite=True) == len(parquet.read_table(target))


@pytest.mark.parametrize("method", ["write_recommendations", "write_predictions"])
def test_a_failure_leaves_the_old_file_and_nothing_else(models, method, tmp_path, monkeypatch):
    write, target = getattr(models["str"], method), tmp_path / "file.parquet"
    target.write_text("precious")
    monkeypatch.setattr(ranking, "_USERS_AT_ONCE", 1)
    monkeypatch.setattr(predict, "_BLOCK", 9)
    describe, calls = predict.describe, []

    def fail_later(*arguments):
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return describe(*arguments)

    for module in (recommend, predict):
        monkeypatch.setattr(module, "describe", fail_later)
    with pytest.raises(KeyboardInterrupt):
        write(target, overwrite=True)
    assert target.read_text() == "precious"
    assert [file.name for file in tmp_path.iterdir()] == ["file.parquet"]
    with pytest.raises(InputError, match=r"missing/file\.parquet cannot be written"):
        write(tmp_path / "missing" / "file.parquet")


_FULL_DISK = """
import resource, sys, hcpf
from hcpf.errors import InputError
model = hcpf.load(sys.argv[1])
model.recommend(model.users)  # numba starts its threads while it can
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
for limit in (0, 700):
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    for write in (model.write_recommendations, model.write_predictions):
        try:
            write(sys.argv[2], overwrite=True)
        except InputError as error:
            assert "file.parquet cannot be written" in str(error), error
        else:
            raise SystemExit("written")
"""


@pytest.mark.skipif(not hasattr(resource, "RLIMIT_FSIZE"), reason="no limit of file sizes")
def test_a_full_disk_leaves_the_old_file_and_nothing_else(models, tmp_path):
    folder, target = tmp_path / "out", tmp_path / "out" / "file.parquet"
    folder.mkdir()
    target.write_text("precious")
    models["str"].save(tmp_path / "model")
    command = [sys.executable, "-c", _FULL_DISK, tmp_path / "model", target]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert target.read_text() == "precious"
    assert [file.name for file in folder.iterdir()] == ["file.parquet"]

"""Forged models with right checksums: numbers that no training gives are refused."""

import hashlib
import json
import os
import re

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from safetensors.numpy import load_file, save_file

from hcpf import FittedModel, Interactions
from hcpf.elements import Binomial, Gamma, Geometric
from hcpf.errors import InputError, ModelError
from model.small import draw_matrix, ids, quick


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Folders of a gamma model with means per user and item, and of two count models."""
    folder = tmp_path_factory.mktemp("models")
    for name, element, vary_by, hurdle in (
        ("gamma", Gamma(2.0, 1.0), "both", False),
        ("geometric", Geometric(0.4), "item", False),
        ("binomial", Binomial(5, 0.5), None, True),
    ):
        matrix = draw_matrix(element)
        if hurdle:
            matrix.data = np.minimum(matrix.data, 5.0)
        data = Interactions.from_matrix(matrix, users=ids("str", 14), items=ids("str", 11))
        estimator = quick(2, element=element, vary_by=vary_by, hurdle=hurdle, max_iter=3)
        estimator.fit(data, user_exposure=np.full(14, 2.0) if hurdle else None)
        estimator.save(folder / name)
    return folder


def forge(source, target, tensors=None, manifest=None, files=None):
    """Copy a model with changes to its tensors, manifest or files; all checksums are right."""
    target.mkdir()
    about = json.loads((source / "manifest.json").read_bytes())["manifest"]
    for kind, entry in about["files"].items():
        path = target / entry["name"]
        path.write_bytes((source / entry["name"]).read_bytes())
        if kind == "tensors" and tensors is not None:
            arrays = {name: array.copy() for name, array in load_file(path).items()}
            tensors(arrays)
            save_file(arrays, path)
        if files is not None and kind in files:
            files[kind](path)
        entry["bytes"] = path.stat().st_size
        entry["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    if manifest is not None:
        manifest(about)
    digest = hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()
    (target / "manifest.json").write_text(json.dumps({"sha256": digest, "manifest": about}))
    return target


def put(name, value, index=0):
    def change(arrays):
        arrays[name].flat[index] = value

    return change


def retype(name, dtype):
    def change(arrays):
        arrays[name] = arrays[name].astype(dtype)

    return change


def no_components(arrays):
    for name in list(arrays):
        if re.fullmatch(r"fit0\.(users|items)\.(shape|mean)", name):
            arrays[name] = np.zeros((len(arrays[name]), 0), np.float32)


POSITIVE = ["shape", "mean", "activity_a", "activity_b", "theta.nu"]
NUMBERS = [
    *(
        ("gamma", put(f"fit0.{axis}.{part}", value), "not finite or not above 0")
        for axis in ("users", "items")
        for part in POSITIVE
        for value in (np.nan, np.inf, -1.0, 0.0)
    ),
    *(
        ("gamma", put(f"fit0.{axis}.{part}", value), "factors that are too large or too small")
        for axis in ("users", "items")
        for part, value in (("shape", 1e-38), ("shape", 3e38), ("mean", 3e38))
    ),
    *(
        ("gamma", put("fit0.users.theta.chi", value), "outside the range of the element")
        for value in (np.nan, np.inf, -1.0, 0.0)
    ),
    *(
        ("gamma", put("fit0.items.theta.prior", value, index), "not finite|outside the range")
        for value in (np.nan, -1.0)
        for index in (0, 1)
    ),
    *(
        (
            "gamma",
            put(f"fit0.{axis}.theta.{part}", value),
            "too large or too small|outside the range",
        )
        for axis in ("users", "items")
        for part in ("chi", "nu", "prior")
        for value in (1e200, 1e308, 1e-200, 5e-324)
    ),
    ("geometric", put("fit0.items.theta.chi", 1e-3), "outside the range of the element"),
    *(
        ("binomial", put("exposure.users", value), "exposure.users has numbers that are not")
        for value in (np.nan, np.inf, -1.0, 0.0, 1e-10, 1e10, 1e308)
    ),
    ("gamma", retype("fit0.users.mean", np.int32), "the wrong type"),
    ("gamma", retype("fit0.users.mean", np.float64), "the wrong type"),
    ("gamma", retype("fit0.users.activity_a", np.float32), "the wrong type"),
    ("gamma", retype("fit0.users.theta.chi", np.float32), "the wrong type"),
    ("gamma", no_components, "no components"),
    ("gamma", put("data.values", -3.0), "do not fit its element: Gamma takes numbers above 0"),
    ("gamma", put("data.values", 1e300), "cannot be trained on a value of 1e"),
    ("gamma", put("data.values", np.nan), "values must be finite"),
    ("geometric", put("data.values", 1.5), "takes integers 1, 2, 3"),
    ("binomial", put("data.values", 6.0), "takes at least 2 elements"),
]


@pytest.mark.parametrize(("name", "change", "message"), NUMBERS)
def test_forged_tensors_are_refused(models, tmp_path, name, change, message):
    path = forge(models / name, tmp_path / "forged", tensors=change)
    with pytest.raises(ModelError, match=message) as error:
        FittedModel.load(path)
    assert str(path) in str(error.value)


def put_about(value, *place):
    def change(about):
        inner = about
        for key in place[:-1]:
            inner = inner[key]
        inner[place[-1]] = value

    return change


PARAMETERS = "value_model", "element", "parameters"
MANIFESTS = [
    *(
        (put_about(value, "tempering"), "tempering must be a finite number above 0")
        for value in (float("nan"), float("inf"), 0, -1.0, "1", None, True)
    ),
    *(
        (put_about(value, "n_fits"), "n_fits must be an integer, 1 or more")
        for value in (0, -1, 1.0, "1", True)
    ),
    *(
        (put_about(value, "max_count"), "max_count must be an integer, 1 or more")
        for value in (0, 2.5, "7")
    ),
    (put_about(1, "interrupted"), "interrupted must be true or false"),
    (put_about([1.0, 2.0], *PARAMETERS, "shape"), "takes single numbers as parameters"),
    (put_about(float("nan"), *PARAMETERS, "shape"), "shape must be a finite number above 0"),
    (put_about([14.0, 11], "shape"), "lacks the numbers of users and items"),
    (put_about([14, 10], "shape"), "has 11 ids instead of 10"),
    (put_about("x", "history", 0, "elbo"), "history has a check with invalid numbers"),
    (put_about("a\nb", "files", "users", "bytes"), r"instead of 'a\\nb'"),
    (put_about(None, "history", 0, "iteration"), "history has a check with invalid numbers"),
]


@pytest.mark.parametrize(("change", "message"), MANIFESTS)
def test_forged_manifests_are_refused(models, tmp_path, change, message):
    with pytest.raises(ModelError, match=message):
        FittedModel.load(forge(models / "gamma", tmp_path / "forged", manifest=change))


def test_an_unchanged_copy_loads(models, tmp_path):
    for name in ("gamma", "geometric", "binomial"):
        found = FittedModel.load(forge(models / name, tmp_path / name))
        assert found.predict_proba(found.users[0], found.items[0]) > 0


def test_values_of_excluded_pairs_may_lie_outside_the_support(tmp_path):
    matrix = draw_matrix(Gamma(2.0, 1.0))
    matrix.data[3] = -7.0
    mark = matrix.copy()
    mark.data = (matrix.data < 0).astype(float)
    mark.eliminate_zeros()
    model = quick(1, element="auto", max_iter=2).fit(matrix, exclude=mark)
    assert model.value_model_.element.support.lowest == 0.0
    model.save(tmp_path / "model")
    assert FittedModel.load(tmp_path / "model").data.matrix.data[3] == -7.0


def id_file(values):
    return lambda path: parquet.write_table(pa.table({"id": values}), path, compression="zstd")


def test_ids_are_counted_before_they_are_unpacked(models, tmp_path, monkeypatch):
    many = id_file(pa.array(["x" * 1000], pa.string()).take(pa.array(np.zeros(10**6, np.int64))))
    path = forge(models / "gamma", tmp_path / "many", files={"users": many})

    def read(*_, **__):
        raise AssertionError("the ids were unpacked")

    monkeypatch.setattr(parquet.ParquetFile, "read", read)
    with pytest.raises(ModelError, match="has 1000000 ids instead of 14"):
        FittedModel.load(path)
    big = id_file(pa.array(["x" * 10**7] + [f"{'y' * 10**7}{j}" for j in range(13)]))
    path = forge(models / "gamma", tmp_path / "big", files={"users": big})
    with pytest.raises(ModelError, match="unpacks to 14000"):
        FittedModel.load(path)


def test_repeated_ids_are_refused(models, tmp_path):
    same = id_file(pa.array(["x"] * 14))
    with pytest.raises(ModelError, match="contains an id more than once"):
        FittedModel.load(forge(models / "gamma", tmp_path / "same", files={"users": same}))


@pytest.mark.skipif(os.name != "posix", reason="symbolic links")
def test_links_out_of_the_folder_are_refused(models, tmp_path):
    path = forge(models / "gamma", tmp_path / "forged")
    (file,) = path.glob("tensors-*")
    inside = file.rename(path / "other.safetensors")
    file.symlink_to(inside.name)
    FittedModel.load(path)  # a link within the folder
    file.unlink()
    file.symlink_to(inside.rename(tmp_path / "elsewhere.safetensors"))
    with pytest.raises(ModelError, match="is a link out of the folder"):
        FittedModel.load(path)


def test_matrices_of_too_many_rows_are_refused():
    from scipy import sparse

    for shape in ((2**40, 3), (3, 2**40)):
        entries = sparse.coo_array(([1.0], ([0], [0])), shape=shape)
        with pytest.raises(InputError, match=r"X has 1,099,511,627,776 .* the limit is"):
            Interactions.from_matrix(entries)

"""Saved models: what comes back, what is refused, and what a crash leaves."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

from hcpf import HCPF, FittedModel, Interactions, Priors
from hcpf.core.posterior import Check
from hcpf.elements import Gamma, Normal, Poisson
from hcpf.errors import ModelError
from model.small import (
    ID_KINDS,
    TRAINING,
    VARYING,
    by_hand,
    draw_matrix,
    ids,
    name_of,
    quick,
    settings_of,
)


def assert_same_model(found, model):
    """Bit-equal predictions, and everything else that a fitted model has."""
    users, items = np.asarray(model.users_)[:, None], np.asarray(model.items_)
    assert found.users_.dtype == model.users_.dtype
    assert list(found.users_) == list(model.users_)
    assert list(found.items_) == list(model.items_)
    for method in ("rate", "predict_proba", "predict", "predict_expected_value"):
        np.testing.assert_array_equal(
            getattr(found, method)(users, items), getattr(model, method)(users, items)
        )
    assert found.value_model_ == model.value_model_
    assert found.priors_ == model.priors_
    assert found.history_ == model.history_
    assert found.n_iter_ == model.n_iter_
    assert list(found.recommend(model.users_, 5)) == list(model.recommend(model.users_, 5))
    mine, theirs = found.interactions_.matrix, model.interactions_.matrix
    assert mine.dtype == theirs.dtype
    for part in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(mine, part), getattr(theirs, part))


@pytest.mark.parametrize("value_model", TRAINING + VARYING, ids=name_of)
def test_a_model_comes_back_bit_for_bit(value_model, tmp_path):
    matrix = draw_matrix(value_model.element)
    model = quick(2, **settings_of(value_model), max_iter=2).fit(matrix)
    model.save(tmp_path / "model")
    found = HCPF.load(tmp_path / "model")
    assert found.get_params() == model.get_params()
    assert_same_model(found, model)
    np.testing.assert_array_equal(found.transform(matrix), model.transform(matrix))
    assert list(found.explain(3, 2)) == list(model.explain(3, 2))


@pytest.mark.parametrize("kind", ID_KINDS)
def test_ids_of_every_kind_and_averages(kind, tmp_path):
    data = Interactions.from_matrix(
        draw_matrix(Poisson(1.0)).astype(np.float32), users=ids(kind, 14),
        items=ids(kind, 11),
    )  # fmt: skip
    model = quick(2, element=Poisson(), n_fits=3, max_iter=4).fit(data)
    model.save(tmp_path / "model")
    found = HCPF.load(tmp_path / "model")
    assert len(found.posteriors_) == 3
    assert_same_model(found, model)


def test_settings_that_json_has_no_word_for(tmp_path):
    model = HCPF.from_model(by_hand([([[1.0]], [[2.0]])], element=Normal(-1.0, 2.0)))
    model.set_params(priors=Priors(1, 2, 3, 4, 5, 6), tol=np.inf, element=Gamma())
    model.set_params(random_state=np.random.default_rng(0))
    model.model_ = replace(model.model_, history=(Check(3, 0.5, -np.inf, np.nan),))
    model.save(tmp_path / "model")
    found = HCPF.load(tmp_path / "model")
    assert found.tol == np.inf
    assert found.element == Gamma()
    assert found.priors == Priors(1, 2, 3, 4, 5, 6)
    assert found.history_[0].elbo == -np.inf
    assert np.isnan(found.history_[0].validation_log_likelihood)
    text = (tmp_path / "model" / "manifest.json").read_text()
    json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))


def test_a_folder_holds_only_tensors_ids_and_a_manifest(tmp_path):
    model = by_hand([([[1.0]], [[2.0]])])
    model.save(tmp_path / "model")
    names = sorted(file.name for file in (tmp_path / "model").iterdir())
    assert [name.split("-")[0] for name in names] == ["items", "manifest.json", "tensors", "users"]
    assert {name.rsplit(".", 1)[1] for name in names} == {"json", "parquet", "safetensors"}
    for file in (tmp_path / "model").iterdir():
        content = file.read_bytes()
        assert content[:1] != b"\x80"  # how every pickle begins
        assert content[:4] != b"PK\x03\x04"
    model.save(tmp_path / "model", overwrite=True)
    assert sorted(file.name for file in (tmp_path / "model").iterdir()) == names


def test_factors_are_mapped_and_the_file_is_never_changed(tmp_path):
    model = by_hand([(np.ones((50, 3)), np.ones((40, 3)))])
    model.save(tmp_path / "model")
    (file,) = (tmp_path / "model").glob("*.safetensors")
    before = file.read_bytes()
    found = FittedModel.load(tmp_path / "model")
    assert isinstance(found.posteriors[0].users.mean_.base, np.memmap)
    found.posteriors[0].users.mean_[:] = 7.0
    assert file.read_bytes() == before


def test_an_existing_model_is_replaced_only_if_asked_and_other_files_never(tmp_path):
    one, two = by_hand([([[1.0]], [[2.0]])]), by_hand([([[1.0]], [[3.0]])])
    path = tmp_path / "deep" / "model"
    one.save(path)
    with pytest.raises(ModelError, match=r"contains a model already\. Pass overwrite=True"):
        two.save(path)
    assert FittedModel.load(path).rate(0, 0) == 2.0
    mapped = FittedModel.load(path)
    two.save(path, overwrite=True)
    assert FittedModel.load(path).rate(0, 0) == 3.0
    assert mapped.rate(0, 0) == 2.0  # a model in use keeps its factors
    mapped.save(path, overwrite=True)
    assert FittedModel.load(path).rate(0, 0) == 2.0
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").write_text("precious")
    (tmp_path / "file").write_text("precious")
    for name, message in (("other", "contains other files"), ("file", "is a file")):
        for overwrite in (False, True):
            with pytest.raises(ModelError, match=message):
                one.save(tmp_path / name, overwrite=overwrite)


def test_what_a_killed_first_save_left_does_not_stand_in_the_way(tmp_path):
    path = tmp_path / "model"
    path.mkdir()
    for name in (".tensors-abc.part", "users-0123.parquet", ".manifest.json.77.part", ".tmpGsrTZL"):
        (path / name).write_bytes(b"half")
    by_hand([([[1.0]], [[2.0]])]).save(path)
    assert FittedModel.load(path).rate(0, 0) == 2.0
    assert len(list(path.iterdir())) == 4


def test_an_element_of_one_s_own_cannot_be_saved(tmp_path):
    class Mine(Poisson):
        pass

    with pytest.raises(ModelError, match="Mine is not one of hcpf's elements"):
        by_hand([([[1.0]], [[2.0]])], element=Mine(1.0)).save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


_SAVE_FOR_EVER = """
import sys, hcpf
models = [hcpf.load(path) for path in sys.argv[2:]]
models[0].save(sys.argv[1], overwrite=True)  # the first one also loads modules
print("ready", flush=True)
while True:
    for model in models:
        model.save(sys.argv[1], overwrite=True)
"""

_SAVE_ON_A_FULL_DISK = """
import resource, sys, hcpf
from hcpf.errors import ModelError
model, hard = hcpf.load(sys.argv[2]), resource.getrlimit(resource.RLIMIT_FSIZE)[1]
for limit in (0, 1000, 200_000):
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        model.save(sys.argv[1], overwrite=True)
    except ModelError as error:
        assert "cannot be written to" in str(error) and "oo large" in str(error), error
    else:
        raise SystemExit("saved")
"""


@pytest.fixture
def big(tmp_path):
    """The folders of two saved models whose rates are 8 and 32."""
    for name, level in (("one", 1.0), ("two", 2.0)):
        model = by_hand([(np.full((3000, 8), level), np.full((500, 8), level))])
        model.save(tmp_path / name)
    shutil.copytree(tmp_path / "one", tmp_path / "model")
    return tmp_path / "model", tmp_path / "one", tmp_path / "two"


def child(script, *arguments):
    path = os.pathsep.join(sys.path)
    return subprocess.Popen(
        [sys.executable, "-c", script, *map(str, arguments)], env=os.environ | {"PYTHONPATH": path},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def test_a_kill_at_any_moment_leaves_a_whole_model(big):
    path, one, two = big
    rng, found = np.random.default_rng(0), set()
    for _ in range(2):
        with child(_SAVE_FOR_EVER, path, one, two) as process:
            try:
                assert process.stdout.readline() == "ready\n", process.stderr.read()
                time.sleep(rng.uniform(0.0, 0.1))
                for _ in range(24):  # a process that is stopped leaves what a killed one would
                    os.kill(process.pid, signal.SIGSTOP)
                    found.add(float(FittedModel.load(path).rate(0, 0)))
                    os.kill(process.pid, signal.SIGCONT)
                    time.sleep(rng.uniform(0.0, 0.02))
            finally:
                process.kill()
        found.add(float(FittedModel.load(path).rate(0, 0)))
    assert found == {8.0, 32.0}
    FittedModel.load(one).save(path, overwrite=True)
    assert len(list(path.iterdir())) == 4


def test_a_full_disk_leaves_the_old_model_and_nothing_else(big):
    path, _, two = big
    before = sorted((file.name, file.stat().st_size) for file in path.iterdir())
    with child(_SAVE_ON_A_FULL_DISK, path, two) as process:
        _, errors = process.communicate()
    assert (process.returncode, errors) == (0, "")
    assert sorted((file.name, file.stat().st_size) for file in path.iterdir()) == before
    assert FittedModel.load(path).rate(0, 0) == 8.0


def test_a_first_save_that_fails_leaves_no_folder(big):
    path, _, two = big
    new = path.parent / "new" / "model"
    with child(_SAVE_ON_A_FULL_DISK, new, two) as process:
        _, errors = process.communicate()
    assert (process.returncode, errors) == (0, "")
    assert not new.parent.exists()


_SAVE_MANY_TIMES = """
import sys, hcpf
model = hcpf.load(sys.argv[2])
print("ready", flush=True)
for _ in range(12):
    model.save(sys.argv[1], overwrite=True)
"""


@pytest.mark.skipif(os.name != "posix", reason="file locks")
def test_two_writers_and_a_reader_of_one_model(big):
    path, one, two = big
    found = set()
    with child(_SAVE_MANY_TIMES, path, one) as first, child(_SAVE_MANY_TIMES, path, two) as second:
        while first.poll() is None or second.poll() is None:
            found.add(float(FittedModel.load(path).rate(0, 0)))
        errors = first.stderr.read() + second.stderr.read()
    assert (first.returncode, second.returncode, errors) == (0, 0, "")
    found.add(float(FittedModel.load(path).rate(0, 0)))
    assert found == {8.0, 32.0}
    assert len(list(path.iterdir())) == 4

"""What write_report takes, and how it refuses."""

import numpy as np
import pytest

from hcpf import HCPF
from hcpf.errors import InputError
from hcpf.evaluate import Evaluation
from hcpf.report import write_report
from report.reporting import read


def test_a_saved_model(model, tmp_path):
    model.save(tmp_path / "model")
    saved = write_report(str(tmp_path / "model"), tmp_path / "a.html")
    assert saved.read_bytes() == write_report(model, tmp_path / "b.html").read_bytes()


def test_refuses_to_overwrite_before_any_work(model, tmp_path):
    path = tmp_path / "r.html"
    path.write_text("mine")
    with pytest.raises(InputError, match="overwrite=True"):
        write_report("no such model", path)
    assert path.read_text() == "mine"
    assert write_report(model, path, overwrite=True) == path
    assert read(path).tags[0] == "html"
    assert [file.name for file in tmp_path.iterdir()] == ["r.html"]


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("output", 3),
        ("output", "no/such/folder/r.html"),
        ("model", "no such model"),
        ("model", "\0"),
        ("model", 3),
        ("model", HCPF(3)),
        ("random_state", -1),
        ("random_state", "x"),
        ("overwrite", "yes"),
        ("users", ["nobody"]),
        ("users", [10**6]),
        ("names", 3),
        ("names", "no such file.csv"),
        ("names", "no such file.parquet"),
        ("names", {"no such id": "name"}),
        ("evaluation", "something"),
        ("evaluation", np.array([[1.0, 0.0]])),
    ],
)
def test_says_what_is_wrong(model, argument, value, tmp_path):
    (tmp_path / "here.html").touch()
    arguments = {"model": model, "output": tmp_path / "r.html"} | {argument: value}
    if argument == "overwrite":
        arguments["output"] = tmp_path / "here.html"
    with pytest.raises(InputError):
        write_report(**arguments)
    assert not (tmp_path / "r.html").exists()


def test_a_folder_is_not_replaced(model, tmp_path):
    with pytest.raises(InputError):
        write_report(model, tmp_path, overwrite=True)


def test_an_evaluation_of_other_data_is_refused(model, tmp_path):
    found = Evaluation([], None, "", 30, 30, 0, 0, 0)
    with pytest.raises(InputError, match="of 30 users and 30 items"):
        write_report(model, tmp_path / "r.html", evaluation=found)


def test_a_model_without_its_data_is_refused(model, tmp_path):
    model.save(tmp_path / "model", include_data=False)
    with pytest.raises(InputError, match="include_data=True"):
        write_report(tmp_path / "model", tmp_path / "r.html")

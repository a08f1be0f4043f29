"""Exposures from the command line: tables of numbers by id, and predictions at other exposures."""

import numpy as np
import pytest

from hcpf.model.fitted import FittedModel

FIT = ("-e", "gamma", "-K", 2, "--fits", 1, "--max-iter", 3, "--threads", 1)


@pytest.fixture(scope="module")
def tables(folder):
    """Files with the days of every customer and product, and some that are not in the data."""
    numbers = {"c": np.arange(1.0, 101.0), "p": np.linspace(0.5, 3.0, 60)}
    paths = []
    for letter, days in numbers.items():
        path = folder / f"{letter}.csv"
        lines = [f"{letter}{j},x,{value}" for j, value in enumerate(days)]
        path.write_text("\n".join(["who,note,days", *lines]) + "\n")
        paths.append(path)
    return paths


@pytest.fixture(scope="module")
def exposed(invoke, folder, sales, tables):
    users, items = tables
    path = folder / "exposed"
    invoke(
        "fit", sales, "-o", path, *FIT,
        "--user-exposure", f"{users}:days", "--item-exposure", f"{items}:days",
    )  # fmt: skip
    return path


def test_fit_reads_exposures_by_id(exposed):
    model = FittedModel.load(exposed)
    expected = [1.0 + int(user[1:]) for user in model.users]
    np.testing.assert_array_equal(model.exposure.users, expected)
    assert model.exposure.items.min() >= 0.5


def test_info_shows_exposures(run_json, invoke, exposed):
    about = run_json("info", exposed)
    assert about["exposure"]["item"]["high"] <= 3.0
    assert "users: 1 to " in invoke("info", exposed).stdout


def test_predictions_at_another_exposure(run_json, exposed):
    model = FittedModel.load(exposed)
    for option, exposure in (((), None), (("--exposure", 7), 7)):
        found = run_json("predict", exposed, "--user", "c3", "--item", "p5", *option)[0]
        expected = model.predict_proba("c3", "p5", exposure=exposure)
        assert found["probability"] == pytest.approx(float(expected))
        lists = run_json("recommend", exposed, "c3", "-n", 3, *option)
        best = model.recommend("c3", 3, exposure=exposure)
        assert [row["item"] for row in lists] == list(best.item)
        assert [row["probability"] for row in lists] == pytest.approx(list(best.probability))


def test_new_users_need_an_exposure(run_json, fails, exposed, sales, tables, tmp_path):
    message = fails("recommend", exposed, "--basket", "p3=2")
    assert "--user-exposure: the user 'new' has none" in message
    assert len(run_json("recommend", exposed, "--basket", "p3=2", "--user-exposure", 9)) == 10
    new = tmp_path / "new.csv"
    new.write_text("customer,product,spend\nc91,p3,20.5\nc92,p4,13.0\n")
    assert "the user 'c91' has none" in fails("fold-in", exposed, new)
    given = ("--user-exposure", f"{tables[0]}:days")
    assert {row["user"] for row in run_json("fold-in", exposed, new, *given)} == {"c91", "c92"}
    run_json("update", exposed, new, "-o", tmp_path / "more", *given)
    model = FittedModel.load(tmp_path / "more")
    assert model.exposure.users[model.user_index.positions("c92")] == 93.0


def test_evaluations_take_exposures(run_json, sales, tables):
    given = ("--user-exposure", f"{tables[0]}:days", "--item-exposure", f"{tables[1]}:days")
    plain = run_json("evaluate", sales, *FIT)
    found = run_json("evaluate", sales, *FIT, *given)
    assert found["scores"]["log_likelihood"] != plain["scores"]["log_likelihood"]


def test_mistakes_name_the_option(fails, sales, tables, tmp_path):
    def message(text):
        return fails("fit", sales, "-o", tmp_path / "m", *FIT, "--user-exposure", text)

    assert "--user-exposure days is neither a column of the data nor FILE:COLUMN" in message("days")
    assert "has no column 'weeks'. Columns: who, note, days" in message(f"{tables[0]}:weeks")
    assert "--user-exposure: no column has the ids of the data" in message(f"{tables[1]}:days")

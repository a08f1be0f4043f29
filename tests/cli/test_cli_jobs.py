"""hcpf update, explain, fold-in, similar, components, info of a row, and lists with details."""

import csv
import json

import numpy as np
import pytest

from hcpf import HCPF, Interactions
from hcpf.model.fitted import FittedModel


@pytest.fixture(scope="session")
def pooled(folder, varied):
    """A saved model with a mean per user and item, and its data."""
    data = Interactions.read(varied, user="customer", item="product", value="spend")
    path = folder / "pooled"
    settings = {"element": "gamma", "vary_by": "both", "n_fits": 2, "max_iter": 6}
    HCPF(3, **settings, random_state=0).fit(data).save(path)
    return path


@pytest.fixture
def names(tmp_path):
    path = tmp_path / "names.csv"
    path.write_text("id,name\n" + "".join(f"p{i},Product {i}\n" for i in range(40)))
    return path


def read_csv(path):
    with path.open() as file:
        return list(csv.DictReader(file))


def test_explain_lists_the_own_items(run_json, pooled, names):
    model = FittedModel.load(pooled)
    found = run_json("explain", pooled, "c3", "p5", "--top", 2, "--names", names)
    expected = model.explain("c3", "p5")
    assert [row["source"] for row in found["sources"]] == [*expected.source[:2], "(prior)"]
    assert [row["name"] for row in found["sources"]][:2] == [
        f"Product {item[1:]}" for item in expected.source[:2]
    ]
    shown = sum(row["share"] for row in found["sources"])
    assert shown + found["further_share"] == pytest.approx(1.0)
    assert found["further_items"] == len(expected) - 3
    assert found["probability"] == pytest.approx(float(model.predict_proba("c3", "p5")))


def test_explain_refuses_unknown_ids(fails, pooled):
    assert "unknown id 'nobody'" in fails("explain", pooled, "nobody", "p5")


@pytest.mark.parametrize(("option", "id"), [((), "p5"), (("--users",), "c3")])
def test_similar(run_json, pooled, option, id):
    model = FittedModel.load(pooled)
    expected = (model.similar_users if option else model.similar_items)(id, 3)
    found = run_json("similar", pooled, id, *option, "-n", 3)
    assert [row["id"] for row in found] == list(expected.id)
    assert [row["similarity"] for row in found] == pytest.approx(list(expected.similarity))


def test_components_share_out_entries_and_values(run_json, invoke, pooled, names, tmp_path):
    found = run_json("components", pooled, "--top", 4, "--names", names)
    assert sorted(row["component"] for row in found) == [0, 1, 2]
    for name in ("share", "value_share"):
        assert sum(row[name] for row in found) == pytest.approx(1.0)
    assert found[0]["share"] >= found[1]["share"] >= found[2]["share"]
    assert [len(row["items"]) for row in found] == [len(row["users"]) for row in found] == [4] * 3
    path = tmp_path / "components.csv"
    invoke("components", pooled, "--top", 4, "-o", path)
    rows = read_csv(path)
    assert len(rows) == 3 * (4 + 4)
    assert {row["axis"] for row in rows} == {"item", "user"}
    invoke("components", pooled, "--kind", "scaled", "--top", 4, "-o", path, "--overwrite")
    items = [row for row in read_csv(path) if row["axis"] == "item"]
    expected = FittedModel.load(pooled).top_items(4, kind="scaled")
    assert {(int(row["component"]), int(row["rank"]), row["id"]) for row in items} == set(
        zip(expected.component, expected.rank, expected.item, strict=True)
    )


def test_info_of_a_user_and_of_an_item(run_json, fails, pooled):
    model = FittedModel.load(pooled)
    entries = model.data.matrix[int(model.user_index.positions("c3"))]
    about = run_json("info", pooled, "--user", "c3")
    assert about["entries"] == entries.nnz
    assert about["total"] == pytest.approx(entries.sum())
    assert about["typical_value"] > 0
    assert [row["item"] for row in about["next"]] == list(model.recommend("c3", 5).item)
    about = run_json("info", pooled, "--item", "p5")
    seen = {row["user"] for row in about["largest"]}
    assert about["next"]
    assert not seen & {row["user"] for row in about["next"]}
    probabilities = [row["probability"] for row in about["next"]]
    assert probabilities == sorted(probabilities, reverse=True)
    assert "--user or --item" in fails("info", pooled, "--user", "c3", "--item", "p5")
    assert "unknown id" in fails("info", pooled, "--user", "c999")


def test_details_of_recommendations(run_json, invoke, pooled, names, tmp_path):
    model = FittedModel.load(pooled)
    found = run_json("recommend", pooled, "c3", "c4", "-n", 3, "--details")
    for row in found:
        assert row["low"] < row["value"] < row["high"]
        expected = model.explain(row["user"], row["item"])
        assert row["reason"] == expected.source[0]
        assert row["reason_share"] == pytest.approx(expected.share[0])
    path = tmp_path / "campaign.csv"
    invoke("recommend", pooled, "--all", "-n", 2, "--details", "--names", names, "-o", path)
    rows = read_csv(path)
    assert all(row["reason"].startswith("Product ") for row in rows if row["reason"])
    assert all(len(row["value"].replace(".", "").strip("0")) <= 4 for row in rows)


def test_a_value_on_few_entries_is_pointed_out(run, folder, tmp_path):
    path = tmp_path / "sales.csv"
    lines = [f"c{u},p{i},{10 + u + i}" for u in range(8) for i in range(6) if (u + i) % 3]
    path.write_text("\n".join(["customer,product,spend", *lines, "c9,p1,77184"]) + "\n")
    options = ("-e", "gamma", "--vary-by", "user", "-K", "2", "--fits", "1", "--max-iter", "3")
    assert run(["fit", str(path), "-o", str(tmp_path / "m"), *options]).exit_code == 0
    result = run(["recommend", str(tmp_path / "m"), "c9", "-n", "2", "--details"])
    assert "2 of 2 values rest on one or two entries of the user" in result.stderr
    result = run(["recommend", str(tmp_path / "m"), "c1", "-n", "1", "--details"])
    assert "rest on" not in result.stderr


def test_a_basket_is_a_new_user(run_json, fails, pooled):
    model = FittedModel.load(pooled)
    found = run_json("recommend", pooled, "--basket", "p5=12.5", "--basket", "p6=30", "-n", 3)
    expected = model.fold_in({"p5": 12.5, "p6": 30.0}).recommend(n=3)
    assert [row["item"] for row in found] == list(expected.item)
    assert [row["probability"] for row in found] == pytest.approx(list(expected.probability))
    values = np.sort(model.data.matrix[:, [int(model.item_index.positions("p6"))]].data)
    median = float(values[len(values) // 2])
    without = run_json("recommend", pooled, "--basket", "p5=12.5", "--basket", "p6", "-n", 3)
    expected = model.fold_in({"p5": 12.5, "p6": median}).recommend(n=3)
    assert [row["value"] for row in without] == pytest.approx(list(expected.value))
    assert "is not a number" in fails("recommend", pooled, "--basket", "p5=many")
    assert "unknown id 'x'" in fails("recommend", pooled, "--basket", "x=1")


def test_unknown_items_of_new_users_are_named(fails, pooled, tmp_path):
    path = tmp_path / "new.csv"
    path.write_text("customer,product,spend\nn1,p5,12.5\nn1,x,30\nn2,y,8\n")
    said = fails("fold-in", pooled, path)
    assert "Unknown item x (2 in total)." in said
    assert "first with hcpf update." in said


def test_fold_in_a_file_of_new_users(run_json, pooled, tmp_path):
    path = tmp_path / "new.csv"
    path.write_text("customer,product,spend\nn1,p5,12.5\nn1,p6,30\nn2,p7,8\n")
    found = run_json("fold-in", pooled, path, "-n", 2)
    expected = FittedModel.load(pooled).fold_in({"p5": 12.5, "p6": 30.0}).recommend(n=2)
    assert [row["item"] for row in found if row["user"] == "n1"] == list(expected.item)
    assert {row["user"] for row in found} == {"n1", "n2"}


def test_update_adds_entries_users_and_items(run_json, invoke, fails, pooled, tmp_path):
    more = tmp_path / "more.csv"
    more.write_text("customer,product,spend\nc3,p99,12.5\nn1,p6,30\nn1,p7,31\n")
    target = tmp_path / "updated"
    about = run_json("update", pooled, more, "-o", target)
    assert (about["new_users"], about["new_items"], about["new_entries"]) == (1, 1, 3)
    updated = FittedModel.load(target)
    assert "n1" in updated.users
    assert "p99" in updated.items
    expected = HCPF.load(pooled).partial_fit(
        Interactions.read(more, user="customer", item="product", value="spend")
    )
    np.testing.assert_allclose(updated.rate("n1", "p6"), expected.rate("n1", "p6"))
    assert "duplicates" in fails("update", target, more)
    twice = invoke("update", target, more, "-o", tmp_path / "twice", "--duplicates", "sum")
    assert f"{about['new_entries']} pairs had an entry before: the values were added." in (
        twice.stderr
    )
    again = run_json("update", target, more, "--duplicates", "sum")
    assert (again["path"], again["new_entries"]) == (str(target), 0)


def test_compare_ends_with_a_command_to_copy(run, sales):
    options = ["-K", "2", "--max-iter", "2", "--only", "gamma", "--vary-by", "shared", "--quick"]
    result = run(["compare", str(sales), *options, "--value", "spend", "--json"])
    command = json.loads(result.stdout)["verdict"]["command"]
    assert command.startswith(f"hcpf fit {sales} ")
    assert "--value spend" in command
    assert "--components 2" in command
    assert "--element gamma" in command
    assert "--quick" not in command  # which would fit less than the comparison did


def test_evaluate_shows_a_baseline(run, sales):
    result = run(["evaluate", str(sales), "-e", "gamma", "-K", "2", "--max-iter", "3"])
    assert result.exit_code == 0, result.output
    line = next(line for line in result.stdout.splitlines() if "AUC" in line)
    assert "(popularity: 0." in line

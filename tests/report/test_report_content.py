"""What stands in a report: every section, the right numbers, and nothing that could do harm."""

import json
import re
import uuid

import numpy as np
import pytest
from scipy import sparse

from hcpf import HCPF
from hcpf.elements import registry
from hcpf.evaluate import Popularity, calibration, ranking, scores, split
from hcpf.report import write_report
from hcpf.report.wording import percent, scored, short
from report.reporting import SECTIONS, drawn, fitted, read, with_ids

NASTY = "</script><script>document.title='broken'</script>\"'&<b>"

COMPLETE = {
    "normal": {"mean": 3.0, "variance": 4.0},
    "gamma": {"shape": 2.0, "rate": 0.05},
    "inverse_gaussian": {"mean": 3.0, "shape": 2.0},
    "poisson": {"rate": 3.0},
    "binomial": {"trials": 4, "probability": 0.5},
    "negative_binomial": {"successes": 2.0, "probability": 0.4},
    "zero_truncated_poisson": {"rate": 3.0},
    "logarithmic": {"probability": 0.6},
    "geometric": {"probability": 0.4},
    "degenerate": {},
}


@pytest.fixture(scope="module")
def report(model, tmp_path_factory):
    return write_report(model, tmp_path_factory.mktemp("report") / "report.html")


def test_has_every_section_once_and_unique_ids(report):
    page = read(report)
    assert [name for name in page.ids if name in SECTIONS] == SECTIONS
    assert len(set(page.ids)) == len(page.ids)


def test_needs_nothing_from_outside(report):
    text = report.read_text(encoding="utf-8")
    assert re.search(r"https?:|//[a-z]|@import|url\(|\bsrc=", text, re.IGNORECASE) is None
    page = read(report)
    assert {value for name, value in page.attributes if name == "href" and value[0] != "#"} == {
        "data:,"
    }
    assert any("default-src 'none'" in value for _, value in page.attributes if value)


def test_is_the_same_for_the_same_seed(model, report, tmp_path):
    again = write_report(model, tmp_path / "again.html")
    assert again.read_bytes() == report.read_bytes()


def test_numbers_are_those_of_evaluate(model, report):
    parts = split(model.interactions_, test=0.2, validation=0.0, random_state=0)
    again = HCPF(3, element="gamma", max_iter=5, n_fits=1, random_state=0)
    again.fit(parts.train, exclude=parts.exclude)
    found, ranked = scores(again, parts), ranking(again, parts, 20)
    cells = read(report).text
    for score in (
        found.log_likelihood, found.conditional_nonmissing, found.auc, found.mae,
        ranked.ndcg, ranked.hit_rate,
    ):  # fmt: skip
        assert scored(score) in cells
    curve = calibration(again, parts, population="training")
    assert f"hold 90% of values hold {percent(curve.coverage[0.9].value)}." in cells
    for x, y in zip(curve.reliability.predicted, curve.reliability.observed, strict=True):
        assert f"This model {percent(x)} {percent(y)}" in cells or y == 0
    popular = Popularity("gamma").fit(parts.train, exclude=parts.exclude)
    assert scored(scores(popular, parts).log_likelihood) in cells


def test_a_split_is_scored_without_a_second_fit(data, tmp_path):
    parts = split(data, random_state=3)
    model = fitted(parts.train, element="gamma")
    page = read(write_report(model, tmp_path / "r.html", data=parts))
    assert scored(scores(model, parts).auc) in page.text
    assert "trained without the held-out pairs" in page.text


def test_other_data_are_split(model, tmp_path):
    other = drawn(registry.get("gamma")(2, 0.05), 20, 30, seed=5)
    page = read(write_report(model, tmp_path / "r.html", data=other))
    assert f"{round(0.2 * other.n_observed):,} observed pairs" in page.text


@pytest.mark.parametrize("name", COMPLETE)
def test_every_element(name, tmp_path):
    kind = registry.get(name)
    data = drawn(kind(**COMPLETE[name]))
    path = write_report(fitted(data, k=2, element=name, max_iter=3), tmp_path / "r.html")
    page = read(path)
    assert name.replace("_", " ") in page.text
    # Whole numbers from 1 on can be compared with a plain Poisson as well.
    counts = kind.support.discrete and data.values.min() >= 1 and name != "degenerate"
    assert ("Plain Poisson (HPF)" in page.text) == counts
    assert "nan" not in page.text
    assert "NaN" not in path.read_text(encoding="utf-8").replace("isNaN", "")


def test_a_model_of_which_pairs_are_observed(data, tmp_path):
    page = read(write_report(fitted(data, train_on="binary"), tmp_path / "r.html"))
    assert "their values are left aside" in page.text
    assert "ranked by how probable it is" in page.text
    assert "nothing to compare" in page.text


def test_a_model_of_observed_pairs_only(data, tmp_path):
    model = fitted(data, train_on="observed", element="gamma")
    page = read(write_report(model, tmp_path / "r.html"))
    assert "AUC" not in page.text
    assert "Item averages" in page.text
    assert "it does not say which pairs are observed" in page.text


def test_averaged_fits(data, tmp_path):
    model = fitted(data, n_fits=2, element="gamma")
    page = read(write_report(model, tmp_path / "r.html", users=[3]))
    assert "average 2 fits" in page.text
    assert "ranked by the consensus of the fits" in page.text
    best = model.recommend(3, 6)
    assert all(percent(p) in page.text for p in best.probability)
    low, high = model.predictive(best.user, best.item).observed.interval(0.9)
    for a, b in zip(low, high, strict=True):
        assert f"{short(float(a))} – {short(float(b))}" in page.text


def ids(kind, size):
    if kind == "int":
        return np.arange(size)[::-1] * 7 - 20
    if kind == "str":
        return [f"no {j} ž" for j in range(size)]
    return [uuid.UUID(int=j * 12345678901234567890) for j in range(size)]


@pytest.mark.parametrize("kind", ["int", "str", "uuid"])
def test_ids_of_every_kind(data, kind, tmp_path):
    users, items = ids(kind, data.n_users), ids(kind, data.n_items)
    model = fitted(with_ids(data, users, items), element="gamma")
    page = read(
        write_report(
            model, tmp_path / "r.html", users=[users[4]], names=dict.fromkeys(items[:9], "tea")
        )
    )
    assert f"User {users[4]}" in page.text
    assert "tea" in page.text
    assert sum(str(item) in page.text for item in items) > 5


def test_names_and_ids_are_never_code(data, tmp_path):
    users = [f"{NASTY}{j}" for j in range(data.n_users)]
    items = [f"{j}{NASTY}" for j in range(data.n_items)]
    model = fitted(with_ids(data, users, items), element="gamma")
    names = {item: f"name {item}" for item in items[::2]}
    path = write_report(model, tmp_path / "r.html", names=names)
    page = read(path)
    assert page.tags.count("script") == 2
    assert f"User {users[0]}" not in path.read_text(encoding="utf-8")
    block = re.search(r'id="people">(.*?)</script>', path.read_text(encoding="utf-8"), re.DOTALL)
    assert sorted(user[0] for user in json.loads(block[1])["users"]) == sorted(users)


def test_a_lone_surrogate_is_written(data, tmp_path):
    names = {int(item): f"\ud800 {item}" for item in data.items}
    read(write_report(fitted(data, element="gamma"), tmp_path / "r.html", names=names))


TINY = {
    "one pair": [[3.0]],
    "one user": [[3.0, 5.0, 0.0]],
    "one item": [[3.0], [5.0], [0.0]],
    "two by two": [[1.0, 0.0], [0.0, 2.0]],
    "dense": [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]],
    "all the same": [[2.0, 0.0, 2.0], [0.0, 2.0, 2.0], [2.0, 2.0, 0.0]],
    "empty rows": [[0.0, 0.0, 0.0], [1.0, 2.0, 0.0], [0.0, 0.0, 0.0], [0.0, 3.0, 0.0]],
}


@pytest.mark.parametrize(
    ("case", "train_on"),
    [
        *((case, "full") for case in TINY),
        *((case, kind) for case in ("one user", "dense") for kind in ("observed", "binary")),
    ],
)
def test_tiny_data(case, train_on, tmp_path):
    element = "auto" if train_on == "binary" else registry.get("gamma")(2.0, 1.0)
    model = fitted(np.array(TINY[case]), k=1, element=element, train_on=train_on, max_iter=2)
    page = read(write_report(model, tmp_path / "r.html"))
    assert [name for name in page.ids if name in SECTIONS] == SECTIONS


def test_more_factors_than_are_shown(data, tmp_path):
    page = read(write_report(fitted(data, k=30, element="gamma"), tmp_path / "r.html"))
    assert "The 24 largest of 30 factors are shown." in page.text


def test_a_large_matrix_is_sampled(rng, tmp_path, monkeypatch):
    monkeypatch.setattr("hcpf.report.degrees._PAIRS", 10)
    monkeypatch.setattr("hcpf.report.degrees._LEAST", 20)
    matrix = sparse.random_array((60, 20), density=0.2, rng=rng, format="csr")
    page = read(write_report(fitted(matrix, element="gamma"), tmp_path / "r.html"))
    assert "How many items do users have?" in page.text

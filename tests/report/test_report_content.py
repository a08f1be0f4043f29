"""What stands in a report: every section, the right numbers, and nothing that could do harm."""

import json
import re
import uuid
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from hcpf import HCPF
from hcpf.data.words import Words
from hcpf.elements import registry
from hcpf.evaluate import evaluate_model, ranking, scores, split
from hcpf.model.typical_values import typical_values
from hcpf.report import write_report
from hcpf.report.text import percent, score_texts, short
from report.reporting import SECTIONS, drawn, fitted, read, unfitted, with_ids

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
def report(model, evaluation, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    return write_report(model, path, evaluation=evaluation)


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


def test_is_the_same_from_a_saved_evaluation(model, evaluation, report, tmp_path):
    evaluation.save(tmp_path / "evaluation.json")
    path = tmp_path / "again.html"
    again = write_report(model, path, evaluation=tmp_path / "evaluation.json")
    assert again.read_bytes() == report.read_bytes()


def test_numbers_are_those_of_the_evaluation(evaluation, report):
    text = read(report).text
    for name in ("log_likelihood", "conditional_nonmissing", "auc", "mae", "ndcg", "hit_rate"):
        decimals = 3 if name in ("auc", "ndcg", "hit_rate") else None
        shown = score_texts([row.score(name) for row in evaluation.models], decimals)
        assert all(score in text for score in shown)
    found = evaluation.model.calibration
    assert f"contain 90% of values contain {percent(found.coverage[0.9].value)}." in text
    curve = found.reliability
    for x, y in zip(curve.predicted, curve.observed, strict=True):
        assert f"This model {percent(x)} {percent(y)}" in text or y == 0
    assert f"{evaluation.n_test:,} observed pairs" in text
    assert f"{evaluation.values.n_values} values of pairs that were held out" in text
    assert "the model of this report has" not in text


def test_another_model_than_the_evaluated_one_is_named(data, evaluation, tmp_path):
    other = fitted(data, k=2, element="gamma")
    page = read(write_report(other, tmp_path / "r.html", evaluation=evaluation))
    assert (
        "The model scored has 3 components, element gamma; the model of this report has 2"
        in page.text
    )


def test_without_an_evaluation_the_report_says_how_to_make_one(model, tmp_path, monkeypatch):
    monkeypatch.setattr(HCPF, "fit", None)  # nothing is trained
    page = read(write_report(model, tmp_path / "r.html"))
    assert "hcpf evaluate DATA --like MODEL -o evaluation.json" in page.text
    assert "values of pairs that the model was fitted to" in page.text


def test_entries_excluded_from_training_are_scored(data, parts, tmp_path):
    model = unfitted(element="gamma").fit(data, exclude=parts.held_out)
    page = read(write_report(model, tmp_path / "r.html"))
    trained = model.fit(parts.train, exclude=parts.held_out)
    found = [scores(trained, parts).auc, ranking(trained, parts).ndcg]
    assert all(score in page.text for score in score_texts(found, 3))
    assert "Popularity" not in page.text


@pytest.mark.parametrize("name", COMPLETE)
def test_every_element(name, tmp_path):
    kind = registry.get(name)
    data = drawn(kind(**COMPLETE[name]))
    found = evaluate_model(unfitted(2, element=name, max_iter=3), split(data, random_state=0))
    model = fitted(data, k=2, element=name, max_iter=3)
    path = write_report(model, tmp_path / "r.html", evaluation=found)
    page = read(path)
    assert name.replace("_", " ") in page.text
    # Integers from 1 can be compared with a plain Poisson as well.
    counts = kind.support.discrete and data.values.min() >= 1 and name != "degenerate"
    assert ("Poisson factorization of the counts" in page.text) == counts
    assert "nan" not in page.text
    assert "NaN" not in path.read_text(encoding="utf-8").replace("isNaN", "")


def test_a_model_of_presence(data, parts, tmp_path):
    found = evaluate_model(unfitted(element="presence"), parts)
    model = fitted(data, element="presence")
    page = read(write_report(model, tmp_path / "r.html", evaluation=found))
    assert "it does not use their values" in page.text
    assert "ranked by their probability" in page.text
    assert "Which users take which items?" in page.text
    assert "Do the values fit?" not in page.text


@pytest.mark.parametrize("element", ["presence", "auto"])
def test_presence_only_data_show_no_values(data, element, tmp_path):
    matrix = data.matrix.copy()
    matrix.data = np.ones_like(matrix.data)
    model = fitted(matrix, element=element)
    page = read(write_report(model, tmp_path / "r.html"))
    for text in ("1 – 1", "in total", "Value", "largest values", "sum of values", "Mean value"):
        assert text not in page.text, text


def test_up_to_500_users_are_all_included(rng, tmp_path):
    matrix = sparse.random_array((400, 8), density=0.3, rng=rng, format="csr")
    page = read(write_report(fitted(matrix, k=1, element="gamma", max_iter=2), tmp_path / "r.html"))
    assert "All 400 users are in this file." in page.text


def test_a_model_of_observed_pairs_only(data, parts, tmp_path):
    settings = {"train_on": "observed", "element": "gamma"}
    found = evaluate_model(unfitted(**settings), parts)
    page = read(write_report(fitted(data, **settings), tmp_path / "r.html", evaluation=found))
    assert "AUC" not in page.text
    assert "Element per item" in page.text
    assert "it does not predict which pairs are observed" in page.text


@pytest.mark.parametrize("vary_by", ["user", "both"])
def test_typical_values(data, vary_by, tmp_path):
    model = fitted(data, element="gamma", vary_by=vary_by, hurdle=True)
    page = read(write_report(model, tmp_path / "r.html"))
    assert "typical" in page.ids
    assert "Half of the users have an estimated typical value below" in page.text
    assert ("typical-items" in page.ids) == (vary_by == "both")
    highest = typical_values(model, "users").value.max()
    assert short(float(highest)) in page.text


def test_averaged_fits(data, tmp_path):
    model = fitted(data, n_fits=2, element="gamma")
    page = read(write_report(model, tmp_path / "r.html", users=[3]))
    assert "average 2 fits" in page.text
    assert "ranked by the consensus of 2 fits" in page.text
    best = model.recommend(3, 6)
    assert all(percent(p) in page.text for p in best.probability)
    low, high = model.predict_distribution(best.user, best.item).observed.interval(0.9)
    for a, b in zip(low, high, strict=True):
        assert f"{short(float(a))} – {short(float(b))}" in page.text


def test_recommendations_say_on_how_many_entries_they_rest(data, tmp_path):
    model = fitted(data, element="gamma")
    page = read(write_report(model, tmp_path / "r.html", users=[3]))
    popularity = np.bincount(data.matrix.indices, minlength=data.n_items)
    best = model.recommend(3, 6)
    for item in model.model_.item_index.positions(best.item):
        n = popularity[item]
        assert f"{n} {'user' if n == 1 else 'users'}; because of" in page.text


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
    ("case", "settings"),
    [
        *((case, {}) for case in TINY),
        *((case, {"train_on": "observed"}) for case in ("one user", "dense")),
        *((case, {"element": "presence"}) for case in ("one user", "dense")),
    ],
    ids=str,
)
def test_tiny_data(case, settings, tmp_path):
    settings = {"element": registry.get("gamma")(2.0, 1.0), "max_iter": 2, **settings}
    model = fitted(np.array(TINY[case]), k=1, **settings)
    page = read(write_report(model, tmp_path / "r.html"))
    is_presence = settings["element"] == "presence"
    sections = [name for name in SECTIONS if not (is_presence and name == "values")]
    assert [name for name in page.ids if name in SECTIONS] == sections


def test_an_evaluation_of_tiny_data(tmp_path):
    data = np.array(TINY["dense"])
    found = evaluate_model(unfitted(1, element="gamma", max_iter=2), split(data, random_state=0))
    model = fitted(data, k=1, element="gamma", max_iter=2)
    write_report(model, tmp_path / "r.html", evaluation=found)


def test_more_components_than_are_shown(data, tmp_path):
    """Small data need few components: those with the same items are shown once."""
    page = read(write_report(fitted(data, k=30, element="gamma"), tmp_path / "r.html"))
    repeated = int(re.search(r"(\d+) components? repeats? another one", page.text)[1])
    n_cards = len(re.findall(r"Component \d+ explains", page.text))
    assert 0 < repeated < 30
    assert n_cards == min(24, 30 - repeated)
    is_cut = n_cards + repeated < 30
    assert (f"The {n_cards} largest of 30 components are shown." in page.text) == is_cut


def test_the_words_of_the_reader(data, tmp_path):
    words = Words.of_columns(
        "CustomerID", "StockCode", "Amount", currency="£", source="orders.csv",
        period="1 May 2024 to 3 June 2024",
    )  # fmt: skip
    model = replace(fitted(data, element="gamma", vary_by="both").model_, words=words)
    model.save(tmp_path / "model")
    page = read(write_report(tmp_path / "model", tmp_path / "r.html"))
    for text in (
        "Which customers take which stock codes, and with what amounts?",
        "Data: orders.csv, 1 May 2024 to 3 June 2024.",
        "a period as long as that of the data, 1 May 2024 to 3 June 2024.",
        "The median amount is £",
        "Typical amounts per customer and stock code",
        "Look up a customer",
        "How many stock codes do customers have?",
        "Amount (£)",
    ):
        assert text in page.text
    assert "Which users" not in page.text


def test_a_large_matrix_is_sampled(rng, tmp_path, monkeypatch):
    monkeypatch.setattr("hcpf.evaluate.predictive_checks._MAX_PAIRS", 10)
    monkeypatch.setattr("hcpf.evaluate.predictive_checks._MIN_ROWS", 20)
    matrix = sparse.random_array((60, 20), density=0.2, rng=rng, format="csr")
    page = read(write_report(fitted(matrix, element="gamma"), tmp_path / "r.html"))
    assert "How many items do users have?" in page.text


def test_ids_are_cut_and_isolated(tmp_path):
    from hcpf import HCPF, Interactions
    from hcpf.report import write_report

    long, hebrew = "x" * 10_000, "שלום"
    users = [long, hebrew, "c", "d"]
    matrix = [[1.0, 2.0, 0], [2.0, 0, 3.0], [0, 2.0, 1.0], [1.5, 1.0, 0]]
    data = Interactions.from_matrix(matrix, users=users, items=["a", "b", "c"])
    model = HCPF(1, element="gamma", n_fits=1, max_iter=3, random_state=0).fit(data)
    text = write_report(model, tmp_path / "r.html", users=[long, hebrew]).read_text("utf-8")
    assert long[:130] not in text
    assert long[:119] + "…" in text
    assert f"\u2068{hebrew}\u2069" in text
    assert "All 4 users are in this file" in text


def test_a_single_value_is_not_given_as_a_range(tmp_path):
    from hcpf import HCPF
    from hcpf.report import write_report

    model = HCPF(1, element="degenerate", n_fits=1, max_iter=3, random_state=0)
    model.fit([[1, 1, 0], [0, 1, 1], [1, 0, 1]])
    text = write_report(model, tmp_path / "r.html").read_text("utf-8")
    assert "All values are 1" in text
    assert "between 1 and 1" not in text

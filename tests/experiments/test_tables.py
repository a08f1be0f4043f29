"""The paper's tables and claims: which cells, results that survive a kill, pairing and verdicts."""

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from hcpf import plots, simulate
from hcpf.elements import Gamma, Poisson, ZeroTruncatedPoisson
from hcpf.errors import InputError
from hcpf.evaluate import log_likelihood_gain
from hcpf.evaluate.comparison import ModelScores
from hcpf.evaluate.scoring import Score, pair_scores
from hcpf.experiments import cells, claims, pages, running, tables

RECIPE = cells.Recipe("paper", "cavi", 3, max_iter=3)
DEFAULT = cells.Recipe("default", "auto", 3, max_iter=3)
EVERYTHING = ("table3", "table4", "table5", "claims")


def write_set(folder, name, element, seed=0):
    data = simulate(60, 40, density=0.2, element=element, random_state=seed).interactions
    entries = data.matrix.tocoo()
    table = pa.table({"user": entries.row, "item": entries.col, "value": entries.data})
    (folder / name).mkdir(parents=True)
    parquet.write_table(table, folder / name / f"{name}.parquet")


@pytest.fixture(scope="module")
def computed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sets")
    write_set(folder, "ml1m", ZeroTruncatedPoisson(2.0))
    write_set(folder, "steam_hours", Gamma(2.0, 0.1))
    results = folder / "results.jsonl"
    for recipe in (RECIPE, DEFAULT):
        plan = running.make_plan(EVERYTHING, cells.find_sets(folder), results, recipe, 2)
        running.run(plan, results)
    return folder, results, cells.read_results(results)


def models(tables, values):
    return [
        (cell.model, cell.trained_on)
        for cell in cells.cells_for(tables, "ml1m", np.array(values), RECIPE, 1)
    ]


def test_only_the_cells_that_a_table_needs():
    money = models(EVERYTHING, [1.5, 2.0])
    assert {name for name, _ in money if name.startswith("HCPF")} == {
        "HCPF-N", "HCPF-GA", "HCPF-IG",
    }  # fmt: skip
    assert ("HPF", "F") not in money
    assert ("HPF", "B") in money
    counts = models(["table3"], [1.0, 2.0])
    assert {trained for _, trained in counts} == {"F"}
    assert len([name for name, _ in counts if name.startswith("HCPF")]) == 7
    assert ("popularity-BI", "F") in counts
    assert ("constant-BI", "F") in counts
    assert ("HPF", "NM") in models(["table4"], [1.0, 2.0])
    assert ("HPF", "B") not in models(["table4"], [1.0, 2.0])
    assert models(["table5"], [1.0, 1.0]) == [("HPF", "B")]


def test_baselines_are_shared_by_recipes():
    one, other = (
        cells.cells_for(["table3"], "ml1m", np.array([1.0, 2.0]), recipe, 1)
        for recipe in (RECIPE, DEFAULT)
    )
    shared = {cell.key for cell in one} & {cell.key for cell in other}
    assert len(shared) == 2 * 7


def test_scores_are_where_they_apply(computed):
    _, _, found = computed
    assert not [cell.error for cell in found if cell.error]
    for cell in found:
        assert ("auc" in cell.scores) == (cell.trained_on != "NM")
        assert ("likelihood" in cell.scores) == (cell.trained_on not in ("NM", "B"))
        assert ("value" in cell.scores) == (cell.trained_on != "B")
        if cell.model.endswith(("-PO", "-ZTP")):
            assert cell.scores["value"] == cell.scores["value_density"]
        if cell.dataset == "ml1m" and cell.model == "HCPF-N":
            assert cell.scores["value"] != cell.scores["value_density"]


def test_a_second_run_computes_nothing_and_half_a_line_is_computed_again(computed, monkeypatch):
    folder, results, found = computed
    plan = running.make_plan(EVERYTHING, cells.find_sets(folder), results, RECIPE, 2)
    assert not plan.left
    content = results.read_bytes()
    cut = content[: content.rstrip().rfind(b"\n") + 200]
    results.write_bytes(cut)
    plan = running.make_plan(EVERYTHING, cells.find_sets(folder), results, DEFAULT, 2)
    assert len(plan.left) == 1
    running.run(plan, results)
    assert not plan.left
    assert sorted(cell.key for cell in cells.read_results(results)) == sorted(
        cell.key for cell in found
    )


def test_cells_of_another_version_are_not_mixed(computed, tmp_path):
    _, _, found = computed
    results = tmp_path / "results.jsonl"
    cells.append_result(results, replace(found[0], version="0.0.1+older"))
    cells.append_result(results, found[1])
    assert [cell.key for cell in cells.read_results(results)] == [found[1].key]
    assert len(cells.read_results(results, "0.0.1+older")) == 1
    assert json.loads(results.read_text().splitlines()[0])["version"] == "0.0.1+older"


def test_a_budget_leaves_the_rest_with_its_cost(computed, tmp_path):
    folder, _, _ = computed
    plan = running.make_plan(
        ["table5"], cells.find_sets(folder), tmp_path / "results.jsonl", RECIPE, 1
    )
    before = len(plan.left)
    running.run(plan, tmp_path / "results.jsonl", budget=0.0)
    assert len(plan.left) == before
    costs = plan.cost_by_set()
    assert sum(number for number, _ in costs.values()) == before
    assert sum(seconds for _, seconds in costs.values()) == pytest.approx(plan.cost(plan.left))


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("90s", 90), ("30m", 1800), ("1h 30m", 5400), ("1.5h", 5400)]
)
def test_durations(text, seconds):
    assert running.parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "1d", "-5m", "1h later"])
def test_other_texts_are_no_durations(text):
    with pytest.raises(InputError, match="not a duration"):
        running.parse_duration(text)


def test_a_failed_cell_is_a_result(tmp_path):
    write_set(tmp_path, "yelp_250k", Poisson(2.0))
    (path,) = cells.find_sets(tmp_path).values()
    parts = cells.split_of(cells.read_set(path), 0)
    cell = cells.Cell("yelp_250k", "HCPF-GA", "F", 0, "paper", "cavi", 3, "0")
    failed = cells.compute(cell, parts, RECIPE)  # zeros are outside the gamma's support
    assert "above 0" in failed.error
    assert "failed" in tables.describe(failed, {})


def test_a_cell_is_described_with_the_papers_figure_and_baselines(computed):
    _, _, found = computed
    done = {cell.key: cell for cell in found}
    cell = next(c for c in found if (c.model, c.trained_on) == ("HCPF-PO", "F"))
    text = tables.describe(cell, done)
    for part in ("paper -27.056", "popularity", "constant", "±", "auc", "value"):
        assert part in text


@pytest.mark.parametrize("table", tables.TITLES)
def test_pages_have_few_columns_and_one_best_per_column(computed, table):
    _, _, found = computed
    text = pages.table_page(table, found)
    assert "ml1m (movielens)" in text
    assert "steam_hours (dchoose)" in text
    assert cells.code_version() in text
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert max(line.count("|") - 1 for line in rows) <= 8
    recipes = claims.recipes_in(found)
    for recipe, group in ((recipes[0], "Ratings"), (recipes[1], "Money and expression")):
        part = tables.render(table, found, recipe, group)
        assert part.count("**") == 2
        scores = [
            score.value
            for name, trained in tables.table_rows(table)
            for column in tables.columns_of(claims.by_set(found, recipe), group)
            if (
                score := claims.average_score(
                    claims.by_set(found, recipe)[column].get((name, trained), []),
                    tables.SCORES[table],
                )
            )
        ]
        best = max(scores)
        bold = part.split("**")[1].split(" ")[0].replace(",", "")
        assert float(bold) == pytest.approx(best, abs=0.01 * abs(best))


def test_rows_of_a_binomial_that_has_become_a_poisson_are_explained():
    def cell(model, value):
        return cells.Cell(
            "ml1m", model, "F", 0, "paper", "cavi", 3, "0", scores={"value": (value, 0.1)}
        )

    same = [cell("HCPF-BI", -2.00001), cell("HCPF-PO", -2.0)]
    (note,) = tables.same_rows(same, RECIPE)
    assert "ml1m" in note
    assert "trials" in note
    assert not tables.same_rows([cell("HCPF-BI", -2.1), cell("HCPF-PO", -2.0)], RECIPE)


def test_paired_errors_from_blocks_are_those_of_the_pairs(computed):
    folder, _, found = computed
    parts = cells.split_of(cells.read_set(cells.find_sets(folder)["ml1m"]), 0)
    fitted = []
    for name in ("HCPF-PO", "HCPF-ZTP"):
        model = DEFAULT.model(name, "F", 0)
        model.fit(parts.train, exclude=parts.held_out, validation=parts.validation_matrix)
        fitted.append(ModelScores(name, pairs=pair_scores(model, parts)))
    exact = log_likelihood_gain(*fitted)
    one, other = (
        [
            c
            for c in found
            if (c.dataset, c.model, c.trained_on, c.recipe, c.split)
            == ("ml1m", name, "F", "default", 0)
        ]
        for name in ("HCPF-PO", "HCPF-ZTP")
    )
    gap = claims.difference(one, other, "likelihood")
    assert gap.value == pytest.approx(exact.value, rel=1e-5)
    assert gap.within == pytest.approx(exact.error, rel=0.35)  # of 64 groups
    auc = claims.difference(one, other, "auc")
    assert auc.value == pytest.approx(one[0].scores["auc"][0] - other[0].scores["auc"][0])
    assert 0 < auc.within < one[0].scores["auc"][1]


def test_values_are_scored_given_that_their_pair_is_observed(computed):
    """Also those of models trained on observed entries only."""
    folder, _, found = computed
    parts = cells.split_of(cells.read_set(cells.find_sets(folder)["ml1m"]), 0)
    model = DEFAULT.model("HPF", "NM", 0)
    model.fit(parts.train, exclude=parts.held_out, validation=parts.validation_matrix)
    key = ("ml1m", "HPF", "NM", 0, "default")
    cell = next(c for c in found if c.key[:5] == key)
    exact = pair_scores(model, parts).conditional
    assert cell.scores["value"][0] == pytest.approx(exact.mean(), rel=1e-5)
    assert cell.blocks["value"] == pytest.approx(cells._block_means(exact), rel=1e-5)


def test_averages_have_the_larger_error():
    assert claims.average([]) is None
    assert claims.average([Score(1.0, 0.3)]) == Score(1.0, 0.3)
    close = claims.average([Score(1.0, 0.3), Score(1.0, 0.4)])
    assert close.error == pytest.approx(0.25)
    apart = claims.average([Score(0.0, 0.3), Score(2.0, 0.4)])
    assert apart.value == 1.0
    assert apart.error == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("values", "within", "room"),
    [
        ([1.0], 0.3, 0.6),
        ([1.0, 1.0, 1.0], 0.3, 0.6 / np.sqrt(3.0)),
        ([0.9, 1.0, 1.1], 0.01, 4.303 * 1.326 * 0.1 / np.sqrt(3.0)),
        ([0.9, 1.1], 0.01, 12.706 * 1.227 * 0.1),
    ],
)
def test_few_overlapping_splits_need_a_larger_difference(values, within, room):
    gap = claims.Gap.of([Score(value, within) for value in values])
    assert gap.value == pytest.approx(1.0)
    assert gap.room == pytest.approx(room, rel=1e-3)
    assert gap.scaled(2.0).room == pytest.approx(2.0 * room, rel=1e-3)


def fake(model, trained, value, blocks, name="ml1m", score="value", split=0):
    part = {"value": "value", "auc": "above"}[score]
    both = {part: list(blocks), "below": [0.0] * len(blocks)}
    return cells.Cell(
        name, model, trained, split, "paper", "cavi", 3, "0", scores={score: (value, 1.0)},
        blocks=both, sizes=(100.0, 10),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("gap", "noise", "verdict"),
    [(1.0, 0.01, "holds"), (-1.0, 0.01, "fails"), (0.1, 10.0, "undecided")],
)
def test_verdicts_need_two_paired_standard_errors(gap, noise, verdict):
    rng = np.random.default_rng(0)
    base = rng.normal(size=64)
    shift = rng.normal(size=64) * noise
    found = [
        fake("HPF", "NM", -2.0 + gap, base + gap + shift - shift.mean()),
        fake("HPF", "F", -2.0, base),
    ]
    claim = next(c for c in claims.CLAIMS if c.name == "hpf-observed")
    (finding,) = claims.judge(claim, found, RECIPE).findings
    assert finding.verdict == verdict
    assert finding.gap.value == pytest.approx(gap)


def test_a_claim_of_equality_holds_within_its_margin():
    claim = replace(
        next(c for c in claims.CLAIMS if c.name == "near-binary"), score="value", margin=0.1
    )

    def verdict(gap, error):
        return claim._verdict(claims.Gap(gap, error, np.nan, 1))

    assert verdict(0.01, 0.01) == "holds"
    assert verdict(0.5, 0.01) == "fails"
    assert verdict(-0.5, 0.01) == "fails"
    assert verdict(0.09, 0.05) == "undecided"


def test_best_of_all_needs_every_comparison():
    claim = next(c for c in claims.CLAIMS if c.name == "counts-best")
    names = [comparison.second[0] for comparison in claim.comparisons]
    blocks = np.zeros(64)
    found = [fake("HCPF-IG", "F", -1.0, blocks, "echonest_43k")]
    found += [fake(name, "F", -2.0, blocks - 1.0, "echonest_43k") for name in names]
    (finding,) = claims.judge(claim, found, RECIPE).findings
    assert finding.verdict == "holds"
    found[-1] = fake(names[-1], "F", -0.5, blocks + 0.5, "echonest_43k")
    (finding,) = claims.judge(claim, found, RECIPE).findings
    assert finding.verdict == "fails"
    assert claims.judge(claim, found[:-1], RECIPE) is None  # one element is missing


def test_the_claims_page_and_its_charts(computed):
    _, _, found = computed
    text = pages.claims_page(found)
    charts = plots.paper_claims(found)
    for name in charts:
        assert f"({name})" in text
    assert text.count(".svg)") == len(charts)
    assert "holds on" in text
    assert "claim-auc.svg" in charts
    assert "default-auto-K3-above-paper-cavi-K3.svg" in charts
    chart = charts["claim-auc.svg"]
    assert {point.x_text for point in chart.points()} == {"ml1m", "steam_hours"}
    assert "<svg" in chart.to_svg()


def test_results_as_csv_have_every_cell(computed):
    _, _, found = computed
    lines = pages.to_csv(found).splitlines()
    assert len(lines) == len(found) + 1
    assert "version" in lines[0]


def test_no_sets_is_an_error(tmp_path):
    with pytest.raises(InputError, match="none of the data sets"):
        cells.find_sets(tmp_path)
    with pytest.raises(InputError, match="not a folder"):
        cells.find_sets(tmp_path / "nowhere")


def test_every_set_has_a_group_of_at_most_seven():
    for members in cells.GROUPS.values():
        assert sum(len(cells.STAND_INS[like]) for like in members) <= 7
    assert {like for members in cells.GROUPS.values() for like in members} == set(cells.STAND_INS)

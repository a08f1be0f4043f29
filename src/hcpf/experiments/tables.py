"""The paper's tables 3, 4 and 5 in Markdown, a column per data set."""

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any

from hcpf.evaluate.scoring import Score
from hcpf.experiments.cells import BASELINES, ELEMENTS, GROUPS, STAND_INS, Cell, Recipe, paper_set
from hcpf.experiments.claims import Found, average_score, by_set, difference
from hcpf.experiments.running import baseline_of
from hcpf.model.tables import NOT_APPLICABLE

TITLES = {
    "table3": "Table 3: test log-likelihood per 1,000 pairs, trained on all pairs",
    "table4": "Table 4: test log-likelihood of an observed value",
    "table5": "Table 5: test AUC",
}
SCORES = {"table3": "likelihood", "table4": "value", "table5": "auc"}
_TRAINED: dict[str, tuple[str, ...]] = {
    "table3": ("F",), "table4": ("F", "NM"), "table5": ("F", "B"),
}  # fmt: skip
TRAINED_ON = {"F": "", "NM": ", observed only", "B": ", binary"}
_NAMES = {
    "N": "normal", "GA": "gamma", "IG": "inverse Gaussian", "PO": "Poisson", "BI": "binomial",
    "NB": "negative binomial", "ZTP": "zero-truncated Poisson",
}  # fmt: skip
_CONTINUOUS = ("N", "GA", "IG")
_SAME = 1e-3  # relative difference below which two rows are explained as the same model


@cache
def paper_figures(table: str) -> Mapping[tuple[str, str, str], float]:
    """Return the paper's own numbers by data set, model and what it was trained on."""
    text = resources.files("hcpf.experiments.paper").joinpath(f"{table}.csv").read_text()
    found: dict[tuple[str, str, str], float] = {}
    for row in csv.DictReader(text.splitlines()):
        model, trained = row.pop("model"), row.pop("trained_on", "F")
        found |= {(name, model, trained): float(value) for name, value in row.items() if value}
    return found


def model_name(model: str, trained_on: str = "F") -> str:
    """Return a model in words, such as "negative binomial (NB), observed only"."""
    kind, _, acronym = model.partition("-")
    return (f"{_NAMES[acronym]} ({acronym})" if acronym else kind) + TRAINED_ON[trained_on]


def describe(cell: Cell, done: Mapping[tuple[Any, ...], Cell]) -> str:
    """Return a finished cell in a line: ours, the paper's figure, and both baselines."""
    head = f"{cell.dataset}, split {cell.split + 1}: {cell.model} on {cell.trained_on}"
    if cell.error:
        return f"{head} failed: {cell.error}"
    parts: list[str] = []
    for table, name in SCORES.items():
        score = cell.score(name)
        if score is None or cell.trained_on not in _TRAINED[table]:
            continue
        text = f"{name} {score}"
        others: list[str] = []
        figure = paper_figures(table).get((paper_set(cell.dataset), cell.model, cell.trained_on))
        if figure is not None:
            others.append(f"{_paper_word(table, cell.model)} {figure:g}")
        for kind in BASELINES if cell.recipe != "any" else ():
            other = baseline_of(cell, kind, done)
            found = None if other is None else other.score(name)
            if found is not None:
                others.append(f"{kind} {found}")
        parts.append(f"{text} ({', '.join(others)})" if others else text)
    seconds = "" if cell.seconds is None else f"; {cell.seconds:.1f} s"
    return f"{head}: {'; '.join(parts)}{seconds}"


def _paper_word(table: str, model: str) -> str:
    """Return what the paper's figure is called: it compares densities of continuous elements."""
    is_density = table != "table5" and model.partition("-")[2] in _CONTINUOUS
    return "paper's density" if is_density else "paper"


def table_rows(table: str) -> list[tuple[str, str]]:
    """Return the models of a table, and what they were trained on."""
    trained = _TRAINED[table]
    rows = [(f"HCPF-{e}", t) for e in ELEMENTS for t in trained if t != "B"]
    return rows + [("HPF", t) for t in trained if table != "table5" or t == "B"]


def columns_of(found: Mapping[str, Found], group: str) -> list[str]:
    """Return the data sets of a group that have cells, in the paper's order."""
    kinds = GROUPS[group]
    return [name for kind in kinds for name in (kind, *STAND_INS[kind]) if name in found]


def render(table: str, cells: Iterable[Cell], recipe: Recipe, group: str) -> str:
    """Return one group of a table: the best of each column in bold, the paper's in brackets."""
    found, name = by_set(cells, recipe), SCORES[table]
    names = columns_of(found, group)
    rows = table_rows(table)
    scores = {
        (row, column): average_score(found[column].get(row, []), name)
        for row in rows
        for column in names
    }
    best = {
        column: max((s.value for row in rows if (s := scores[row, column])), default=None)
        for column in names
    }

    def entry(row: tuple[str, str], column: str) -> str:
        score = scores[row, column]
        if score is None:
            return NOT_APPLICABLE
        text = f"**{score}**" if score.value == best[column] else str(score)
        return text + _in_brackets(table, row, column)

    return _markdown(rows, names, entry)


def render_densities(table: str, cells: Iterable[Cell], recipe: Recipe, group: str) -> str:
    """Return the densities of continuous elements, which the paper compares with masses."""
    found, name = by_set(cells, recipe), f"{SCORES[table]}_density"
    rows = [row for row in table_rows(table) if row[0].partition("-")[2] in _CONTINUOUS]

    def entry(row: tuple[str, str], column: str) -> str:
        score = average_score(found[column].get(row, []), name)
        if score is None:
            return NOT_APPLICABLE
        figure = paper_figures(table).get((paper_set(column), *row))
        return str(score) if figure is None else f"{score} ({figure:g})"

    return _markdown(rows, columns_of(found, group), entry)


def render_gains(kind: str, cells: Iterable[Cell], recipe: Recipe, group: str) -> str:
    """Return how far each model's likelihood is above a baseline with the same element."""
    found = by_set(cells, recipe)
    rows = [(f"HCPF-{element}", "F") for element in ELEMENTS]

    def entry(row: tuple[str, str], column: str) -> str:
        other = (f"{kind}-{row[0].partition('-')[2]}", "F")
        cells_of = found[column]
        gap = difference(cells_of.get(row, []), cells_of.get(other, []), "likelihood")
        return NOT_APPLICABLE if gap is None else f"{'+' if gap.value > 0 else ''}{gap.score}"

    return _markdown(rows, columns_of(found, group), entry)


def _markdown(
    rows: Sequence[tuple[str, str]],
    columns: Sequence[str],
    entry: Callable[[tuple[str, str], str], str],
) -> str:
    if not columns:
        return ""
    header = ["Model", *(_column_name(column) for column in columns)]
    lines = [header, ["---"] + ["---:"] * len(columns)]
    for row in rows:
        texts = [entry(row, column) for column in columns]
        if any(text != NOT_APPLICABLE for text in texts):
            lines.append([model_name(*row), *texts])
    if len(lines) == 2:
        return ""
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def _column_name(name: str) -> str:
    like = paper_set(name)
    return name if name == like else f"{name} ({like})"


def _in_brackets(table: str, row: tuple[str, str], column: str) -> str:
    """Return the paper's figure, unless it is a density where ours is a mass."""
    if _paper_word(table, row[0]) != "paper":
        return ""
    figure = paper_figures(table).get((paper_set(column), *row))
    return "" if figure is None else f" ({figure:g})"


def same_rows(cells: Iterable[Cell], recipe: Recipe) -> list[str]:
    """Return sentences on elements that have become a Poisson, whose rows are the same."""
    found = by_set(cells, recipe)
    notes: list[str] = []
    for acronym, why in (
        ("BI", "its trials are at the end of their range, where a binomial is a Poisson"),
        ("NB", "its successes are so many that it is a Poisson"),
    ):
        names: list[str] = []
        for column, models in found.items():
            pair = [
                average_score(models.get((f"HCPF-{e}", "F"), []), "value") for e in (acronym, "PO")
            ]
            if _are_same(*pair):
                names.append(column)
        if names:
            notes.append(
                f"{_NAMES[acronym].capitalize()} and Poisson have the same rows on "
                f"{', '.join(names)}: {why}."
            )
    return notes


def _are_same(one: Score | None, other: Score | None) -> bool:
    if one is None or other is None:
        return False
    return abs(one.value - other.value) < _SAME * abs(other.value)

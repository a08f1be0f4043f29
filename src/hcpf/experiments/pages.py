"""The pages of a reproduction: one per table, one for the claims, and all scores as CSV."""

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields

from hcpf.experiments import tables
from hcpf.experiments.cells import ELEMENTS, GROUPS, MISSING_PER_ENTRY, Cell, Recipe
from hcpf.experiments.claims import (
    BY_ELEMENT,
    CLAIMS,
    Claim,
    Finding,
    Judgment,
    compare_recipes,
    judge,
    recipes_in,
    with_element,
)
from hcpf.model.tables import NOT_APPLICABLE

_KEYS = tuple(part.name for part in fields(Cell)[:8])
_SCORES = ("likelihood", "value", "auc", "missing", "likelihood_density", "value_density")
_READ = {
    "table3": "Nats per 1,000 pairs, missing pairs in their true proportion; higher is better.",
    "table4": "Nats per observed test pair: of its value, given that the pair is observed. (For "
    "models trained on observed entries only, the paper has pair and value.) Higher is better.",
    "table5": "The probability that an observed pair is ranked above a missing one.",
}


def render(names: Sequence[str], cells: Sequence[Cell]) -> dict[str, str]:
    """Return the pages by file name."""
    pages = {"results.csv": to_csv(cells)}
    for name in names:
        page = claims_page(cells) if name == "claims" else table_page(name, cells)
        pages[f"{name}.md"] = page
    return pages


def table_page(table: str, cells: Sequence[Cell]) -> str:
    """Return one of the paper's tables: all recipes, group by group."""
    lines = [f"# {tables.TITLES[table]}", "", f"{_READ[table]} {_about(cells)}", ""]
    if table != "table5":
        lines += [
            "All likelihoods are masses: on integers a continuous element is integrated from "
            "y - 1/2 to y + 1/2 (the first count takes all below it), on money over a cent. The "
            "densities that the paper compares with masses are at the end.",
            "",
        ]
    found = recipes_in(cells)
    for recipe in found:
        lines += [f"## {_heading(recipe)}", ""]
        notes = tables.same_rows(cells, recipe) if table != "table5" else []
        lines += [f"{note}\n" for note in notes]
        lines += _groups(lambda group, r=recipe: tables.render(table, cells, r, group))
    if table == "table3":
        for kind in ("popularity", "constant"):
            rate = "popularity" if kind == "popularity" else "a constant rate"
            lines += [f"## Gain over {rate} with the same element", ""]
            for recipe in found:
                lines += [f"{_heading(recipe)}.", ""]
                lines += _groups(
                    lambda group, k=kind, r=recipe: tables.render_gains(k, cells, r, group), "####"
                )
    if table != "table5":
        lines += ["## Densities, as the paper reports continuous elements", ""]
        for recipe in found:
            lines += [f"{_heading(recipe)}.", ""]
            lines += _groups(
                lambda group, r=recipe: tables.render_densities(table, cells, r, group), "####"
            )
    return "\n".join(lines)


def _groups(render: Callable[[str], str], level: str = "###") -> list[str]:
    lines: list[str] = []
    for group in GROUPS:
        text = render(group)
        if text:
            lines += [f"{level} {group}", "", text]
    return lines


def _heading(recipe: Recipe) -> str:
    text = str(recipe)
    return text[0].upper() + text[1:]


def _about(cells: Sequence[Cell]) -> str:
    n_splits = max((cell.split for cell in cells), default=0) + 1
    splits = "One random split" if n_splits == 1 else f"Mean over up to {n_splits} random splits"
    versions = ", ".join(sorted({cell.version for cell in cells})) or "none"
    return (
        f"{splits} ± standard error (the larger of that over pairs and that over splits); the best "
        "of a column is bold, the paper's figure for its own set "
        f"in brackets. Test pairs: 20% of the entries, and {MISSING_PER_ENTRY:g} times as many "
        f"missing ones (at most half of all). Code: {versions}."
    )


def claims_page(cells: Sequence[Cell]) -> str:
    """Return the verdicts on the claims of section 5, and on questions of ours."""
    lines = [
        "# The claims of section 5",
        "",
        "A claim holds on a data set if the difference is above 0 by more than two paired standard "
        "errors over pairs and, with J splits, by more than t sqrt(1 + J n_test / n_train) "
        "standard errors over splits, where t is the 97.5% quantile of Student's t with J - 1 "
        "degrees of freedom: 5.7 standard errors for three splits, which share most of their "
        "training data. It fails if it is below by as much, and is undecided otherwise. The "
        "element is the same on all sets, so nothing is chosen by its result. Likelihoods are "
        "masses. "
        f"{_about(cells)}",
        "",
    ]
    found = recipes_in(cells)
    lines += _summary(cells, found)
    for claim in CLAIMS:
        judged = [j for recipe in found if (j := judge(claim, cells, recipe)) is not None]
        if judged:
            lines += _claim_section(claim, judged, cells)
    for first, second in recipe_pairs(found):
        judged = compare_recipes(cells, first, second)
        if judged is not None:
            lines += [f"## {judged.claim.text}", "", f"It {judged.summary}.", ""]
            lines += [f"![Differences per data set]({judged.claim.name}.svg)", ""]
            lines += [_findings_table([judged], ["Difference"])]
    return "\n".join(lines)


def _summary(cells: Sequence[Cell], recipes: Sequence[Recipe]) -> list[str]:
    """Return how often each claim holds with each recipe."""
    rows = {c.text: [_counts(judge(c, cells, recipe)) for recipe in recipes] for c in CLAIMS}
    known = {text: row for text, row in rows.items() if set(row) - {NOT_APPLICABLE}}
    header = "Claim: sets where it holds / undecided / fails"
    return [*_table(header, [recipe.label for recipe in recipes], known), ""]


def _table(header: str, headings: Sequence[str], rows: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the lines of a table in Markdown, whose rows have names."""
    lines = [f"| {header} | {' | '.join(headings)} |", "|---|" + "---:|" * len(headings)]
    return lines + [f"| {name} | {' | '.join(row)} |" for name, row in rows.items()]


def _counts(judged: Judgment | None) -> str:
    if judged is None:
        return NOT_APPLICABLE
    return " / ".join(str(judged.count(v)) for v in ("holds", "undecided", "fails"))


def recipe_pairs(found: Sequence[Recipe]) -> list[tuple[Recipe, Recipe]]:
    """Return which recipes are compared: each with the paper's by coordinate ascent at K = 50."""
    base = next((r for r in found if (r.name, r.solver) == ("paper", "cavi")), None)
    return [] if base is None else [(recipe, base) for recipe in found if recipe != base]


def _claim_section(claim: Claim, judged: Sequence[Judgment], cells: Iterable[Cell]) -> list[str]:
    source = f" (section {claim.source})" if claim.source else " (a question of ours)"
    lines = [f"## {claim.text}", "", f"Differences in {claim.unit}{source}.", ""]
    lines += [f"- {_heading(judgment.recipe)}: {judgment.summary}." for judgment in judged]
    lines += ["", f"![Differences per data set](claim-{claim.name}.svg)", ""]
    lines += [_findings_table(judged, [judgment.recipe.label for judgment in judged])]
    if claim.name in BY_ELEMENT:
        lines += _by_element(claim, cells, [judgment.recipe for judgment in judged])
    return lines


def _findings_table(judged: Sequence[Judgment], headings: Sequence[str]) -> str:
    names = dict.fromkeys(f.dataset for judgment in judged for f in judgment.findings)
    texts = [{f.dataset: _finding_text(f) for f in judgment.findings} for judgment in judged]
    rows = {name: [text.get(name, NOT_APPLICABLE) for text in texts] for name in names}
    return "\n".join(_table("Data set", headings, rows)) + "\n"


def _finding_text(finding: Finding) -> str:
    sign = "+" if finding.gap.value > 0 else ""
    return f"{sign}{finding.gap.score}, {finding.verdict}"


def _by_element(claim: Claim, cells: Iterable[Cell], recipes: Sequence[Recipe]) -> list[str]:
    """Return how often the claim holds with every element, each the same on all sets."""
    cells = list(cells)
    rows = {
        tables.model_name(f"HCPF-{e}"): [
            _counts(judge(with_element(claim, e), cells, recipe)) for recipe in recipes
        ]
        for e in ELEMENTS
    }
    title = "With every element (sets where it holds / undecided / fails):"
    return [title, "", *_table("Element", [recipe.label for recipe in recipes], rows), ""]


def to_csv(cells: Iterable[Cell]) -> str:
    """Return one line per cell and split, with all scores and standard errors."""
    out = io.StringIO()
    names = [*_KEYS, *(n for s in _SCORES for n in (s, f"{s}_error"))]
    names += ["element", "passes", "seconds", "error"]
    writer = csv.DictWriter(out, names, lineterminator="\n")
    writer.writeheader()
    for cell in cells:
        row = {name: getattr(cell, name) for name in (*_KEYS, "element", "error")}
        for name in _SCORES:
            if name in cell.scores:
                value, error = cell.scores[name]
                row |= {name: f"{value:.6g}", f"{name}_error": f"{error:.3g}"}
        row["passes"] = "" if cell.passes is None else cell.passes
        row["seconds"] = "" if cell.seconds is None else f"{cell.seconds:.2f}"
        writer.writerow(row)
    return out.getvalue()

"""The paper's tables 3, 4 and 5 from computed cells, with the paper's own numbers in brackets."""

import csv
from collections.abc import Callable, Iterable
from importlib import resources

from hcpf.experiments.cells import VARYING, Cell, by_dataset
from hcpf.model.tables import NOT_APPLICABLE

MODELS = (
    "HCPF-N", "HCPF-GA", "HCPF-IG", "HCPF-PO", "HCPF-BI", "HCPF-NB", "HCPF-ZTP", "HCPF-LOG",
    "HCPF-GEO", "HPF", "popularity",
)  # fmt: skip
TITLES = {
    "table3": "Table 3: test log-likelihood per 1,000 pairs, trained on the full matrix",
    "table4": "Table 4: test log-likelihood of an observed entry, trained on the full matrix (F, "
    "given that it is observed) and on observed entries only (NM)",
    "table5": "Table 5: test AUC, trained on the full matrix (F) or its binary form (B)",
}
_ROWS: dict[str, tuple[str, ...]] = {"table3": ("F",), "table4": ("F", "NM"), "table5": ("F", "B")}
_FORMAT = {"table3": "{:.3f}", "table4": "{:.3f}", "table5": "{:.4f}"}


def value_of(table: str, cell: Cell) -> float | None:
    """Return the number of a cell that a table shows; None where it does not apply."""
    if table == "table3":
        return cell.log_likelihood
    if table == "table5":
        return cell.auc
    return cell.nonmissing if cell.trained_on == "NM" else cell.conditional_nonmissing


def paper_figures(table: str) -> dict[tuple[str, str, str], float]:
    """Return the paper's own numbers by data set, model and what it was trained on."""
    text = resources.files("hcpf.experiments.paper").joinpath(f"{table}.csv").read_text()
    found: dict[tuple[str, str, str], float] = {}
    for row in csv.DictReader(text.splitlines()):
        model, trained = row.pop("model"), row.pop("trained_on", "F")
        found |= {(name, model, trained): float(value) for name, value in row.items() if value}
    return found


def render(table: str, cells: Iterable[Cell]) -> str:
    """Return a table in Markdown, a column per data set; the paper's numbers are in brackets."""
    paper = paper_figures(table)
    columns = list(by_dataset(cells))
    numbers = {
        (name, cell.model, cell.trained_on): cell for _, name, chosen in columns for cell in chosen
    }
    header = ["model", "trained on"]
    header += [name if name == like else f"{name} ({like})" for like, name, _ in columns]
    lines = [header]
    best = {name: _best(table, chosen) for _, name, chosen in columns}
    for model in (row for name in MODELS for row in (name, f"{name} {VARYING}")):
        for trained in _ROWS[table]:
            if not any(key[1:] == (model, trained) for key in numbers):
                continue
            line = [model, trained]
            for like, name, _ in columns:
                line.append(
                    _entry(
                        table,
                        numbers.get((name, model, trained)),
                        paper.get((like, model, trained)),
                        best[name],
                    )
                )
            lines.append(line)
    rule = ["---"] * 2 + ["---:"] * (len(header) - 2)
    body = [header, rule, *lines[1:]]
    text = "\n".join("| " + " | ".join(line) + " |" for line in body)
    return f"### {TITLES[table]}\n\n{text}\n"


def _best(table: str, cells: list[Cell]) -> float | None:
    shown = [
        value
        for cell in cells
        if cell.trained_on in _ROWS[table] and (value := value_of(table, cell)) is not None
    ]
    return max(shown, default=None)


def _entry(table: str, cell: Cell | None, paper: float | None, best: float | None) -> str:
    show: Callable[[float], str] = _FORMAT[table].format
    in_brackets = "" if paper is None else f" ({show(paper)})"
    if cell is None:
        return NOT_APPLICABLE + in_brackets
    if cell.error:
        return "failed" + in_brackets
    value = value_of(table, cell)
    if value is None:
        return NOT_APPLICABLE + in_brackets
    text = show(value)
    return (f"**{text}**" if value == best else text) + in_brackets

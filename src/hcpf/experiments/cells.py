"""The cells of the paper's tables: a data set, a model, and what it was trained on."""

import csv
import logging
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from hcpf import evaluate
from hcpf._progress import progress_bar
from hcpf._types import FloatArray
from hcpf._version import __version__
from hcpf.core.value_model import ways_to_vary
from hcpf.data.interactions import Interactions
from hcpf.elements import ALL, Degenerate, get
from hcpf.errors import InputError
from hcpf.estimator import HCPF
from hcpf.evaluate.scoring import pair_scores

logger = logging.getLogger("hcpf")

STAND_INS: dict[str, tuple[str, ...]] = {
    "amazon": ("bookcrossing_explicit",),
    "movielens": ("ml1m", "ml_latest_small_x2", "anime_30pct"),
    "netflix": ("netflix_1200",),
    "yelp": ("yelp_250k",),
    "wordpress": ("lastfm_artist_tags",),
    "tencent": ("lastfm_user_tags", "online_retail_quantity"),
    "echonest": ("echonest_43k", "online_retail_invoices"),
    "bestbuy": ("completejourney_baskets", "msweb", "gowalla_binary"),
    "merck": ("hiv_atompairs",),
    "donation": ("qld_donations",),
    "dchoose": ("completejourney_spend", "online_retail_spend", "steam_hours"),
    "geuvadis": ("geuvadis_ceu_chr19_genes",),
}
"""Public sets of the same kind as each of the paper's."""

VARYING = "varying"
"""Marks a partially pooled model: per user and item where the element allows it, else per item."""


@dataclass(frozen=True)
class Settings:
    """Settings that all cells share."""

    n_components: int = 50
    random_state: int = 0
    max_iter: int = 100
    n_fits: int = 1
    """One fit, as in the paper; averages of several are better."""


@dataclass(frozen=True)
class Cell:
    """A line of the results; scores that do not apply, or of a failed cell, are None."""

    dataset: str
    model: str
    trained_on: str
    n_components: int
    random_state: int
    version: str
    log_likelihood: float | None = None
    missing: float | None = None
    nonmissing: float | None = None
    conditional_nonmissing: float | None = None
    conditional_mass: float | None = None
    auc: float | None = None
    rmse: float | None = None
    passes: int | None = None
    seconds: float | None = None
    error: str = ""

    @property
    def key(self) -> tuple[Any, ...]:
        """What identifies a cell."""
        return tuple(getattr(self, field.name) for field in fields(self)[:6])


def models_for(values: FloatArray) -> list[tuple[str, str]]:
    """Return the models of the paper's tables, and popularity, that can describe the values."""
    found: list[tuple[str, str]] = [("popularity", "F"), ("HPF", "B")]
    for element in ALL:
        if not np.all(element.support.contains(values)):
            continue
        name = "HPF" if element is Degenerate else f"HCPF-{element.acronym}"
        if element is not Degenerate and np.ptp(values) == 0:
            continue  # one value only: nothing to estimate
        found += [(name, "F"), (name, "NM")]
        if element.conjugate is not None:
            found.append((f"{name} {VARYING}", "F"))
    return found


def _value_model(cell: Cell) -> dict[str, Any]:
    """Return the parameters of HCPF that make the value model of a cell."""
    train_on = "observed" if cell.trained_on == "NM" else "full"
    if cell.model == "HPF":
        return {"element": "presence" if cell.trained_on == "B" else "degenerate"} | {
            "train_on": train_on
        }
    name, _, varying = cell.model.removeprefix("HCPF-").partition(" ")
    vary_by = ways_to_vary(get(name))
    # The last way is the most general: both, where the element can, else per item.
    return {"element": name, "vary_by": vary_by[-1] if varying else None, "train_on": train_on}


def read_set(path: Path) -> Interactions:
    """Read a Parquet file with the columns user, item and value."""
    return Interactions.read(path, user="user", item="item", value="value", progress=False)


def find_sets(folder: Path) -> dict[str, Path]:
    """Return the known data sets in a folder: NAME.parquet or NAME/NAME.parquet, smallest first."""
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder of data sets.")
    known = {name for names in STAND_INS.values() for name in names} | set(STAND_INS)
    found = {path.stem: path for path in sorted(folder.glob("*.parquet"))}
    found |= {path.stem: path for path in sorted(folder.glob("*/*.parquet"))}
    found = {name: path for name, path in found.items() if name in known}
    found = dict(sorted(found.items(), key=lambda pair: pair[1].stat().st_size))
    if not found:
        raise InputError(
            f"{folder} has none of the data sets. Put NAME.parquet there for one of: "
            f"{', '.join(sorted(known))}."
        )
    return found


def run(
    sets: dict[str, Path], results: Path, settings: Settings, progress: bool | None = None
) -> list[Cell]:
    """Compute every cell that the results file lacks, and append each as soon as it is done."""
    _drop_incomplete_line(results)
    done = {cell.key: cell for cell in read_results(results)}
    with progress_bar(progress, "Reproducing", len(sets)) as advance:
        for name, path in sets.items():
            data = read_set(path)
            wanted = [
                Cell(name, model, trained, settings.n_components, settings.random_state,
                     __version__)
                for model, trained in models_for(data.values.astype(np.float64))
            ]  # fmt: skip
            missing = [cell for cell in wanted if cell.key not in done]
            parts = evaluate.split(data, random_state=settings.random_state) if missing else None
            for cell in missing:
                advance(0, f"{name}: {cell.model} {cell.trained_on}")
                assert parts is not None
                found = compute(cell, parts, settings)
                done[found.key] = found
                append_result(results, found)
            advance(1, name)
    return list(done.values())


def compute(cell: Cell, parts: evaluate.Split, settings: Settings) -> Cell:
    """Fit and score the model of a cell; an error becomes the cell's result."""
    model = _model(cell, settings)
    row = evaluate.fit_and_score(
        cell.model, model, parts, k=None, early_stopping=True, keep_errors=True, progress=False
    )
    if row.scores is None:
        logger.warning("%s, %s on %s: %s", cell.dataset, cell.model, cell.trained_on, row.error)
        return Cell(*cell.key, error=row.error)
    # Only the pattern was fitted where that is all a model is trained on.
    names = ["missing", "auc"]
    if cell.trained_on != "B":
        names += ["log_likelihood", "nonmissing", "conditional_nonmissing", "rmse"]
    values = {name: score.value for name in names if (score := row.scores[name]) is not None}
    mass = None if cell.trained_on == "B" else _conditional_mass(model, parts)
    return Cell(*cell.key, **values, conditional_mass=mass, passes=row.passes, seconds=row.seconds)  # pyright: ignore[reportArgumentType]


def _model(cell: Cell, settings: Settings) -> Any:
    if cell.model == "popularity":
        return evaluate.Popularity()
    return HCPF(
        settings.n_components,
        **_value_model(cell),
        max_iter=settings.max_iter,
        n_fits=settings.n_fits,
        random_state=settings.random_state,
    )


def _conditional_mass(model: Any, parts: evaluate.Split) -> float | None:
    """Return the conditional likelihood of integers as probabilities, also of densities."""
    values = parts.test.values
    if not np.all(values == np.floor(values)):
        return None
    return float(pair_scores(model, parts, as_mass=True).conditional.mean())


def read_results(path: Path) -> list[Cell]:
    """Return the results written before; incomplete lines are dropped and computed again."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return [cell for cell in map(_parse, rows) if cell is not None]


def _parse(row: dict[Any, Any]) -> Cell | None:
    if None in row or None in row.values():  # too many or too few fields
        return None
    try:
        whole = {name: int(row[name]) for name in ("n_components", "random_state")}
        text = {name: row[name] for name in ("dataset", "model", "trained_on", "version", "error")}
        passes = int(row["passes"]) if row["passes"] else None
        numbers = {
            field.name: float(row[field.name]) if row[field.name] else None
            for field in fields(Cell)[6:-1]
            if field.name != "passes"
        }
        return Cell(**text, **whole, **numbers, passes=passes)  # pyright: ignore[reportArgumentType]
    except (KeyError, TypeError, ValueError):
        return None


def append_result(path: Path, cell: Cell) -> None:
    """Append a cell to the results file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    names = [field.name for field in fields(Cell)]
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, names, lineterminator="\n")
        if file.tell() == 0:
            writer.writeheader()
        writer.writerow(
            {name: "" if value is None else value for name, value in asdict(cell).items()}
        )


def _drop_incomplete_line(path: Path) -> None:
    """Remove the incomplete last line that a killed process may have left."""
    if not path.exists():
        return
    text = path.read_bytes()
    if text and not text.endswith(b"\n"):
        path.write_bytes(text[: text.rfind(b"\n") + 1])


def by_dataset(cells: Iterable[Cell]) -> Iterator[tuple[str, str, list[Cell]]]:
    """Yield the paper's data set, the one used and its cells, in the paper's order."""
    cells = list(cells)
    for paper_set, names in STAND_INS.items():
        for name in (paper_set, *names):
            chosen = [cell for cell in cells if cell.dataset == name]
            if chosen:
                yield paper_set, name, chosen

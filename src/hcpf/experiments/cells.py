"""Data sets of the paper's tables, and their cells: a set, a model, what it trains on, a split."""

import json
import logging
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

import hcpf
from hcpf import evaluate
from hcpf._checks import one_of
from hcpf._types import FloatArray
from hcpf._version import __version__
from hcpf.data.interactions import Interactions
from hcpf.elements import Degenerate, get
from hcpf.errors import InputError
from hcpf.estimator import HCPF
from hcpf.evaluate.scoring import PairScores, Score, auc_parts, mean_score, pair_scores
from hcpf.io import fingerprint
from hcpf.training.settings import PAPER_COMPONENTS, RECIPES, paper_settings

STAND_INS: dict[str, tuple[str, ...]] = {
    "amazon": ("bookcrossing_explicit",),
    "movielens": ("ml100k", "ml_latest_small_x2", "ml1m", "anime_30pct"),
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

GROUPS: dict[str, tuple[str, ...]] = {
    "Ratings": ("amazon", "movielens", "netflix", "yelp"),
    "Counts: social media and music": ("wordpress", "tencent", "echonest"),
    "Near-binary counts": ("bestbuy", "merck"),
    "Money and expression": ("donation", "dchoose", "geuvadis"),
}
"""The paper's sets by kind of value."""

_SAMPLED_USERS = {"hiv_atompairs": 4_000}
"""Sets of which only some users are taken, evenly spread."""


def paper_set(name: str) -> str:
    """Return the set of the paper that a data set stands in for."""
    return next((like for like, names in STAND_INS.items() if name in (like, *names)), name)


def find_sets(folder: Path) -> dict[str, Path]:
    """Return the known data sets in a folder: NAME.parquet or NAME/NAME.parquet, smallest first."""
    from pyarrow import parquet

    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder of data sets.")
    known = {name for names in STAND_INS.values() for name in names} | set(STAND_INS)
    found = {path.stem: path for path in sorted(folder.glob("*.parquet"))}
    found |= {path.stem: path for path in sorted(folder.glob("*/*.parquet"))}
    found = {name: path for name, path in found.items() if name in known}
    if not found:
        raise InputError(
            f"{folder} has none of the data sets. Put NAME.parquet there for one of: "
            f"{', '.join(sorted(known))}."
        )
    sizes = {name: int(parquet.read_metadata(path).num_rows) for name, path in found.items()}
    return {name: found[name] for name in sorted(sizes, key=sizes.__getitem__)}


def read_set(path: Path) -> Interactions:
    """Read a Parquet file with the columns user, item and value; of some sets a sample of users."""
    data = Interactions.read(path, user="user", item="item", value="value", progress=False)
    size = _SAMPLED_USERS.get(path.stem, data.n_users)
    if size >= data.n_users:
        return data
    rows = np.unique(np.linspace(0, data.n_users - 1, size).astype(np.int64))
    matrix = data.matrix[rows]
    items = np.flatnonzero(np.bincount(matrix.indices, minlength=data.n_items))
    return Interactions(matrix[:, items], data.users[rows], data.items[items])


ELEMENTS = ("N", "GA", "IG", "PO", "BI", "NB", "ZTP")
"""The paper's elements by acronym."""
MISSING_PER_ENTRY = 10.0
"""Missing test pairs per observed one, where the grid has them."""
_TEST, _VALIDATION = 0.2, 0.01
TEST_PER_TRAINING = _TEST / (1.0 - _TEST - _VALIDATION)
"""Test entries per training entry of a split."""
N_BLOCKS = 64
"""Groups of test pairs whose means are kept: paired errors of any two cells follow from them."""
BASELINES = ("popularity", "constant")
SOLVERS = ("auto", "cavi", "algorithm1")
_SOURCES = ("core", "data", "distributions", "elements", "evaluate", "model", "training")
_SOURCE_FILES = ("estimator.py", "_defaults.py", "experiments/cells.py")


@dataclass(frozen=True)
class Recipe:
    """How the models of a run are fitted."""

    name: str = "paper"
    solver: str = "cavi"
    n_components: int = PAPER_COMPONENTS
    max_iter: int | None = None

    def __post_init__(self) -> None:
        one_of("recipe", self.name, RECIPES)
        one_of("solver", self.solver, SOLVERS)
        if self.name == "paper" and self.solver == "auto":
            raise InputError("The paper's recipe has solver cavi or algorithm1, not auto.")

    def model(self, name: str, trained_on: str, random_state: int) -> Any:
        """Return the unfitted model of a cell."""
        kind, _, acronym = name.partition("-")
        if kind in BASELINES:
            baseline = evaluate.Popularity if kind == "popularity" else evaluate.ConstantRate
            return baseline(get(acronym)())
        element = acronym or ("presence" if trained_on == "B" else "degenerate")
        train_on = "observed" if trained_on == "NM" else "full"
        settings: dict[str, Any]
        if self.name == "paper":
            settings = paper_settings(self.solver, max_iter=self.max_iter)
        else:
            settings = {"solver": self.solver, "n_fits": 1}
            settings |= {} if self.max_iter is None else {"max_iter": self.max_iter}
        return HCPF(
            self.n_components, element=element, train_on=train_on, random_state=random_state,
            **settings,
        )  # fmt: skip

    @property
    def key(self) -> tuple[str, str, int]:
        """What the cells of a run have in common."""
        return self.name, self.solver, self.n_components

    @property
    def label(self) -> str:
        """The recipe in a few words."""
        return f"{self.name}, {self.solver}, K = {self.n_components}"

    def __str__(self) -> str:
        settings = "the paper's recipe" if self.name == "paper" else "default settings, one fit"
        return f"{settings}, solver {self.solver}, K = {self.n_components}"


@dataclass(frozen=True)
class Cell:
    """A fitted model and its scores on one split; those of a failed cell are empty.

    Likelihoods are masses where the values are integers or cents. ``scores`` holds pairs of a
    number and its standard error: ``likelihood`` (Table 3), ``value`` (Table 4), ``auc`` (Table 5),
    and the densities that the paper compares, ``likelihood_density`` and ``value_density``.
    """

    dataset: str
    model: str
    trained_on: str
    split: int
    recipe: str
    solver: str
    n_components: int
    version: str
    scores: Mapping[str, tuple[float, float]] = field(default_factory=dict[str, Any])
    blocks: Mapping[str, list[float]] = field(default_factory=dict[str, Any])
    sizes: tuple[float, int] = (0.0, 0)
    """Missing pairs that the test pairs stand for, and observed test pairs."""
    pairs: str = ""
    """Fingerprint of the test pairs."""
    element: str = ""
    passes: int | None = None
    seconds: float | None = None
    error: str = ""

    @property
    def key(self) -> tuple[Any, ...]:
        """What identifies a cell."""
        return tuple(getattr(self, part.name) for part in fields(self)[:8])

    @property
    def recipe_key(self) -> tuple[str, str, int]:
        """The ``key`` of the recipe."""
        return self.recipe, self.solver, self.n_components

    @property
    def is_baseline(self) -> bool:
        """Whether the model is a baseline, which does not depend on the recipe."""
        return self.model.partition("-")[0] in BASELINES

    def score(self, name: str) -> Score | None:
        """Return a score by name; None where it does not apply."""
        return Score(*self.scores[name]) if name in self.scores else None


@cache
def code_version() -> str:
    """Return the version and a fingerprint of the source files that numbers depend on."""
    root = Path(hcpf.__file__).parent
    files = [path for name in _SOURCES for path in sorted((root / name).rglob("*.py"))]
    digest = sha256()
    for path in [*files, *(root / name for name in _SOURCE_FILES)]:
        digest.update(path.relative_to(root).as_posix().encode() + path.read_bytes())
    return f"{__version__}+{digest.hexdigest()[:8]}"


def cells_for(
    tables: Iterable[str], dataset: str, values: FloatArray, recipe: Recipe, n_splits: int
) -> list[Cell]:
    """Return the unfitted cells that some tables need of a data set, split by split."""
    cells = [
        Cell(dataset, model, trained_on, split, *recipe.key, code_version())
        for split in range(n_splits)
        for model, trained_on in _models_for(set(tables), values)
    ]
    shared = {"recipe": "any", "solver": "any", "n_components": 0}
    return [replace(cell, **shared) if cell.is_baseline else cell for cell in cells]


def _models_for(tables: set[str], values: FloatArray) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    if np.ptp(values) > 0:
        for acronym in ELEMENTS:
            if np.all(get(acronym).support.contains(values)):
                found += [(f"{kind}-{acronym}", "F") for kind in BASELINES]
                found.append((f"HCPF-{acronym}", "F"))
                found += [(f"HCPF-{acronym}", "NM")] * ("table4" in tables)
    if np.all(Degenerate.support.contains(values)):
        found += [("HPF", "F")] * bool(tables & {"table3", "table4"})
        found += [("HPF", "NM")] * ("table4" in tables)
    found += [("HPF", "B")] * ("table5" in tables)
    return found


def split_of(data: hcpf.Interactions, number: int) -> evaluate.Split:
    """Return one of the splits of a data set, the same for all models."""
    return evaluate.split(
        data, test=_TEST, validation=_VALIDATION, missing=MISSING_PER_ENTRY, random_state=number
    )


def compute(
    cell: Cell, parts: evaluate.Split, recipe: Recipe, n_threads: int | None = None
) -> Cell:
    """Fit and score the model of a cell; an error of hcpf becomes the cell's result."""
    model = recipe.model(cell.model, cell.trained_on, cell.split)
    # Algorithm 1 is not stopped by validation: its likelihood is flat in the first passes.
    stops = recipe.solver != "algorithm1"
    with _quiet():
        row = evaluate.fit_and_score(
            cell.model, model, parts, n=None, early_stopping=stops, keep_errors=True,
            n_threads=n_threads, progress=False,
        )  # fmt: skip
    if row.pairs is None:
        return replace(cell, error=row.error)
    binary = cell.trained_on == "B"
    mass = row.pairs if binary else _with_masses(row.pairs, model, parts)
    return replace(
        cell,
        scores=_scores(binary, row.pairs, mass),
        blocks=_blocks(binary, mass),
        sizes=(mass.missing_weight * parts.test.n_missing, len(parts.test)),
        pairs=fingerprint(
            parts.test.users, parts.test.items, parts.test.missing_users, parts.test.missing_items
        )[:12],
        element=row.element,
        passes=row.passes,
        seconds=row.seconds,
    )


@contextmanager
def _quiet() -> Generator[None]:
    """Keep warnings about the paper's own settings out of a long run; the pages explain them."""
    logger = logging.getLogger("hcpf")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


def _with_masses(pairs: PairScores, model: Any, parts: evaluate.Split) -> PairScores:
    """Return the scores with the likelihoods of values as masses."""
    found = pair_scores(model, parts, as_mass=True)
    return replace(pairs, conditional=found.conditional, log_density=found.log_density)


def _scores(binary: bool, density: PairScores, mass: PairScores) -> dict[str, tuple[float, float]]:
    found: dict[str, Score | None] = {}
    if not binary:
        for name, pairs in (("", mass), ("_density", density)):
            found[f"value{name}"] = mean_score(pairs.conditional)
            found[f"likelihood{name}"] = pairs.log_likelihood()
    if density.missing is not None:
        found["missing"] = mean_score(density.missing)
        found["auc"] = evaluate.auc(density.rate, -density.missing)
    return {name: (s.value, s.error) for name, s in found.items() if s is not None}


def _blocks(binary: bool, pairs: PairScores) -> dict[str, list[float]]:
    """Return the means of groups of test pairs, which are in random order."""
    found: dict[str, FloatArray] = {}
    if not binary:
        found["observed"], found["value"] = pairs.log_density, pairs.conditional
    if pairs.missing is not None:
        found["missing"] = pairs.missing
        found["above"], found["below"] = auc_parts(pairs.rate, -pairs.missing)
    return {name: _block_means(x) for name, x in found.items()}


def _block_means(x: FloatArray) -> list[float]:
    group = np.arange(len(x)) % N_BLOCKS
    size = np.maximum(np.bincount(group, minlength=N_BLOCKS), 1)
    means = np.bincount(group, weights=np.maximum(x, -1e6), minlength=N_BLOCKS) / size
    return [float(f"{mean:.7g}") for mean in means[: min(len(x), N_BLOCKS)]]


def read_results(path: Path, version: str | None = None) -> list[Cell]:
    """Return the cells computed before by this version of the code, or by the one given."""
    if not path.exists():
        return []
    wanted = version or code_version()
    cells: dict[tuple[Any, ...], Cell] = {}
    for line in path.read_text().splitlines():
        try:
            read = json.loads(line)
            read["sizes"] = tuple(read["sizes"])
            cell = Cell(**read)
        except (ValueError, KeyError, TypeError):
            continue  # an incomplete line of a killed process: computed again
        if cell.version == wanted:
            cells[cell.key] = cell
    return list(cells.values())


def append_result(path: Path, cell: Cell) -> None:
    """Append a cell to the results file, after the incomplete line of a killed process if any."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as file:
        if file.tell():
            file.seek(-1, 2)
            if file.read(1) != b"\n":
                file.write(b"\n")
        file.write(json.dumps(asdict(cell)).encode() + b"\n")


def without_blocks(cell: Cell) -> dict[str, Any]:
    """Return a cell as a dict, without what only paired errors need."""
    return {name: value for name, value in asdict(cell).items() if name != "blocks"}

"""Counts with named factors: hcpf compared with scikit-learn's NMF-KL and LDA; and new cells.

- programs: simulated counts with known components. How well are they recovered, how well are
  held-out counts predicted, in how much CPU time?
- topics: the docstrings of installed packages. Perplexity, and coherence by the ranking of words.
- panel: new cells in which only some genes were measured, projected as if the others were missing
  ("before"), and with ``measured_items="listed"`` ("after"); and genes in another order.

    .venv-bench/bin/python benchmarks/science.py --only programs topics panel
"""

import importlib
import inspect
import warnings
from time import process_time
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import linear_sum_assignment
from sklearn.decomposition import NMF, LatentDirichletAllocation
from sklearn.feature_extraction.text import CountVectorizer

import common
from hcpf import HCPF, Interactions, simulate
from hcpf.elements import Degenerate
from hcpf.evaluate import thin

PARTS = ("programs", "topics", "panel")
PACKAGES = (
    "numpy", "numpy.linalg", "numpy.random", "scipy.stats", "scipy.signal", "scipy.optimize",
    "scipy.sparse", "scipy.special", "scipy.linalg", "scipy.ndimage", "scipy.interpolate",
    "scipy.spatial", "pandas", "sklearn.linear_model", "sklearn.cluster", "sklearn.ensemble",
    "sklearn.metrics", "sklearn.preprocessing", "sklearn.model_selection", "matplotlib.pyplot",
    "asyncio", "socket", "threading", "os", "pathlib", "datetime", "decimal", "logging", "sqlite3",
)  # fmt: skip
WEIGHTS = (1.0, 0.6, 0.4, 0.2)  # of the share against the lift, in relevance
TOP = 10  # items whose coherence is measured


def models(n_components: int, args: Any) -> dict[str, Any]:
    """The models by name; those of hcpf have one fit, whose components are compared."""
    ours: dict[str, Any] = {"n_fits": 1, "random_state": args.seed}
    plain = ours | {"element": "degenerate"}
    return {
        "hcpf, Poisson counts": HCPF(n_components, **plain),
        "hcpf, Poisson counts, no tempering": HCPF(n_components, tempering=1, **plain),
        "hcpf, element chosen": HCPF(n_components, **ours),
        "NMF-KL": NMF(
            n_components, solver="mu", beta_loss="kullback-leibler", init="nndsvda",
            max_iter=200, random_state=args.seed,
        ),
        "LDA": LatentDirichletAllocation(
            n_components, learning_method="batch", max_iter=50,
            random_state=args.seed,
        ),
    }  # fmt: skip


def fit(model: Any, counts: Any, args: Any) -> tuple[Any, Any, float]:
    """Factors of users and items (rows are components), and CPU seconds."""
    began = process_time()
    if isinstance(model, HCPF):
        model.fit(counts, n_threads=args.threads, progress=False)
        users, items = (model.factors(axis).values for axis in ("users", "items"))
        return users, items.T, process_time() - began
    with warnings.catch_warnings(action="ignore"):
        users = model.fit_transform(counts)
    seconds, items = process_time() - began, model.components_
    if isinstance(model, LatentDirichletAllocation):
        items = items / items.sum(axis=1, keepdims=True)
        users = users * np.asarray(counts.sum(axis=1)).reshape(-1, 1)
    return users, items, seconds


def perplexity(users: Any, items: Any, held_out: Interactions) -> float:
    """That of ``hcpf.evaluate.perplexity``, for any factors."""
    entries = held_out.matrix.tocoo()
    expected = np.einsum("jk,kj->j", users[entries.row], items[:, entries.col])
    totals = users @ items.sum(axis=1)
    log_share = np.log(np.maximum(expected / np.maximum(totals[entries.row], 1e-12), 1e-12))
    return float(np.exp(-(entries.data @ log_share) / entries.data.sum()))


def recovery(items: Any, truth: Any) -> float:
    """Mean cosine of matched components."""
    unit = [m / np.maximum(np.linalg.norm(m, axis=1, keepdims=True), 1e-12) for m in (items, truth)]
    cosine = unit[0] @ unit[1].T
    return float(cosine[linear_sum_assignment(cosine, maximize=True)].mean())


def npmi_by_weight(users: Any, items: Any, counts: Any) -> dict[str, float]:
    """Mean coherence of components, their items ranked by relevance with several weights."""
    present = sparse.csc_array(counts > 0).astype(np.float64)
    together = (present.T @ present).toarray() / counts.shape[0]
    size = users.sum(axis=0) * items.sum(axis=1)
    share = items / np.maximum(items.sum(axis=1, keepdims=True), 1e-300) + 1e-300
    lift = share / ((size @ share) / size.sum())
    found = {}
    first, second = np.triu_indices(TOP, 1)
    for weight in WEIGHTS:
        top = np.argsort(-(weight * np.log(share) + (1 - weight) * np.log(lift)), axis=1)[:, :TOP]
        a, b = top[:, first], top[:, second]
        both, alone = together[a, b], np.diag(together)
        with np.errstate(divide="ignore", invalid="ignore"):
            value = np.log(both / (alone[a] * alone[b])) / -np.log(both)
        found[f"NPMI, {weight:g}"] = float(np.where(both == 0, -1.0, value).mean())
    return found


def programs(args: Any) -> list[dict[str, Any]]:
    """Known components, recovered from counts."""
    drawn = simulate(
        args.users, args.items, n_components=args.components, density=0.15, element=Degenerate(),
        user_shape=0.2, item_shape=0.2, random_state=args.seed,
    )  # fmt: skip
    rest, held_out = thin(drawn.interactions, 0.1, random_state=args.seed)
    rows = []
    for name, model in models(args.components, args).items():
        users, items, seconds = fit(model, sparse.csr_matrix(rest.matrix), args)
        rows.append(
            {
                "model": name,
                "cosine with the truth": recovery(items, drawn.item_factors.T),
                "perplexity": perplexity(users, items, held_out),
                "CPU s": seconds,
            }
        )
        print(rows[-1], flush=True)
    return rows


def docstrings() -> list[str]:
    """The distinct texts, of more than 300 characters, of public functions and classes."""
    texts: dict[str, None] = {}
    with warnings.catch_warnings(action="ignore"):
        for name in PACKAGES:
            module = importlib.import_module(name)
            for member in dir(module):
                text = inspect.getdoc(getattr(module, member, None))
                if not member.startswith("_") and text and len(text) > 300:
                    texts[text] = None
    return list(texts)


def topics(args: Any) -> list[dict[str, Any]]:
    """Topics of docstrings."""
    counter = CountVectorizer(
        stop_words="english", min_df=5, max_df=0.5, token_pattern=r"[a-z]{3,}"
    )
    counts = counter.fit_transform(docstrings())
    counts = counts[np.diff(counts.indptr) > 0].astype(np.float64)
    print(f"{counts.shape[0]} texts, {counts.shape[1]} words, {int(counts.sum())} in all\n")
    rest, held_out = thin(counts, 0.1, random_state=args.seed)
    rows = []
    for name, model in models(args.topics, args).items():
        users, items, seconds = fit(model, sparse.csr_matrix(rest.matrix), args)
        found = npmi_by_weight(users, items, counts)
        rows.append(
            {"model": name, "perplexity": perplexity(users, items, held_out), **found}
            | {"CPU s": seconds}
        )
        print(rows[-1], flush=True)
    return rows


def panel(args: Any) -> list[dict[str, Any]]:
    """New cells with some of the genes: correlation with the truth, and mass of the factors."""
    drawn = simulate(
        args.users, args.items, n_components=args.components, density=0.15, element=Degenerate(),
        user_shape=0.2, item_shape=0.2, random_state=args.seed,
    )  # fmt: skip
    counts, genes = (
        sparse.csr_matrix(drawn.interactions.matrix),
        [f"g{j}" for j in range(args.items)],
    )
    new = np.arange(args.users) >= 4 * args.users // 5
    data = Interactions.from_matrix(counts[~new], items=genes)
    model = HCPF(
        args.components, element="degenerate", n_fits=1, tempering=1, random_state=args.seed
    ).fit(data, n_threads=args.threads, progress=False)
    mine, theirs = match(model.components_, drawn.item_factors.T)
    totals = model.components_.sum(axis=1), drawn.item_factors.sum(axis=0)
    truth = (drawn.user_factors[new] * totals[1])[:, theirs]
    rng, dense = np.random.default_rng(args.seed), counts[new].toarray()

    def row(what: str, X: Any, **options: Any) -> dict[str, Any]:
        found = (model.transform(X, **options) * totals[0])[:, mine]
        r = np.corrcoef(found.ravel(), truth.ravel())[0, 1]
        return {"new cells": what, "r": r, "mass": found.sum() / truth.sum()}

    rows = [row("all genes", dense)]
    rows.append(row("reversed genes, before: by position", dense[:, ::-1]))
    named = Interactions.from_matrix(dense[:, ::-1], items=genes[::-1])
    rows.append(row("reversed genes, after: by name", named))
    for share in (0.3, 0.1):
        some = np.sort(rng.choice(args.items, int(share * args.items), replace=False))
        X = Interactions.from_matrix(dense[:, some], items=[genes[j] for j in some])
        rows.append(row(f"{share:.0%} of the genes, before", X))
        rows.append(row(f"{share:.0%} of the genes, after", X, measured_items="listed"))
    return rows


def match(items: Any, truth: Any) -> tuple[Any, Any]:
    """Positions of matched components."""
    unit = [m / np.linalg.norm(m, axis=1, keepdims=True) for m in (items, truth)]
    return linear_sum_assignment(unit[0] @ unit[1].T, maximize=True)


def main() -> None:
    """Make the tables asked for."""
    parser = common.parser(__doc__)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--users", type=common.whole, default=1500)
    parser.add_argument("--items", type=common.whole, default=800)
    parser.add_argument("--components", type=int, default=8)
    parser.add_argument("--topics", type=int, default=20)
    args = parser.parse_args()
    header = common.start("Counts with named factors", ", ".join(args.only))
    results = {name: globals()[name](args) for name in args.only}
    weights = dict.fromkeys((f"NPMI, {weight:g}" for weight in WEIGHTS), ".3f")
    columns: dict[str, dict[str, str]] = {
        "programs": {
            "model": "", "cosine with the truth": ".3f", "perplexity": ",.1f", "CPU s": ".1f",
        },
        "topics": {"model": "", "perplexity": ",.0f", **weights, "CPU s": ".1f"},
        "panel": {"new cells": "", "r": ".2f", "mass": ".2f"},
    }  # fmt: skip
    for name, rows in results.items():
        common.table(rows, columns[name])
    common.finish(header, results, args.json)


if __name__ == "__main__":
    main()

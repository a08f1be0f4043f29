"""Counts with named factors: hcpf compared with scikit-learn's NMF-KL and LDA; and new cells.

- programs: simulated counts with known components, with uneven depth and few counts per cell. How
  well are they recovered, how well are held-out counts predicted, how coherent are their genes, in
  how much CPU time? Means over ``--seeds``. Programs share a profile and overlap, unless
  ``--shared 0 --overlap 0`` is given; ``--held-out 0`` fits to all counts.
- passes: CPU time of one pass over simulated counts, compared with an iteration of NMF-KL.
- consensus: the stability of components and the held-out log-likelihood by K, on the blood cells
  that scanpy has (which must be installed); ``--charts FOLDER`` writes the charts.
- topics: texts. Perplexity, and coherence by the ranking of words, in the texts that are fitted and
  in others (the reference). ``--texts`` is a file of Debian's descriptions of packages, such as
  dists/bookworm/main/i18n/Translation-en.xz of a mirror; without it docstrings of installed
  packages are taken, and there are no others.
- panel: new cells in which only some genes were measured, projected as if the others were missing
  ("before"), and with ``measured_items="listed"`` ("after"); and genes in another order.

    .venv-bench/bin/python benchmarks/science.py --only programs passes topics panel
"""

import importlib
import inspect
import lzma
import warnings
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import linear_sum_assignment
from sklearn.base import clone
from sklearn.decomposition import NMF, LatentDirichletAllocation
from sklearn.feature_extraction.text import CountVectorizer

import common
from hcpf import HCPF, FittedModel, Interactions, plots, simulate
from hcpf.elements import Degenerate
from hcpf.evaluate import consensus, thin

PARTS = ("programs", "passes", "topics", "panel", "consensus")
PACKAGES = (
    "numpy", "numpy.linalg", "numpy.random", "scipy.stats", "scipy.signal", "scipy.optimize",
    "scipy.sparse", "scipy.special", "scipy.linalg", "scipy.ndimage", "scipy.interpolate",
    "scipy.spatial", "pandas", "sklearn.linear_model", "sklearn.cluster", "sklearn.ensemble",
    "sklearn.metrics", "sklearn.preprocessing", "sklearn.model_selection", "matplotlib.pyplot",
    "asyncio", "socket", "threading", "os", "pathlib", "datetime", "decimal", "logging", "sqlite3",
)  # fmt: skip
WEIGHTS = (1.0, 0.6, 0.4)  # of the share against the lift, in relevance
TOP = 10  # items whose coherence is measured
FOUND = 0.9  # cosine from which a program counts as found


def programs_models(args: Any) -> dict[str, Any]:
    """The models of programs by name."""
    ours: dict[str, Any] = {"random_state": args.seed}
    plain = ours | {"element": "degenerate", "tempering": 1}
    others = peers(args.components, args.seed)
    others["NMF-KL, random start"] = clone(others["NMF-KL"]).set_params(init="random")
    return {
        "hcpf, element chosen, one fit": HCPF(args.components, n_fits=1, **ours),
        "hcpf, Poisson counts, one fit": HCPF(args.components, n_fits=1, **plain),
        "hcpf, Poisson counts, from clusters": HCPF(
            args.components, n_fits=1, start="clusters", **plain
        ),
        "hcpf, Poisson counts, best of 10": HCPF(
            args.components, n_fits=10, combine="best", start="noise", **plain
        ),
        "hcpf, Poisson counts, consensus of 10": lambda counts: (
            consensus(counts, args.components, n_fits=10, element="degenerate", tempering=1).model
        ),
        **others,
    }


def topics_models(args: Any) -> dict[str, Any]:
    """The models of topics by name; those of hcpf have one fit, whose components are compared."""
    plain: dict[str, Any] = {"n_fits": 1, "random_state": args.seed, "tempering": 1}
    clusters = plain | {"start": "clusters"}
    smooth = clusters | {"priors": {"item_shape": 1.0}}
    return {
        "hcpf, Poisson counts": HCPF(args.topics, element="degenerate", **plain),
        "hcpf, from clusters": HCPF(args.topics, element="degenerate", **clusters),
        "hcpf, from clusters, shape 1": HCPF(args.topics, element="degenerate", **smooth),
        "hcpf, geometric": HCPF(args.topics, element="geometric", **plain),
        "hcpf, geometric, clusters, shape 1": HCPF(args.topics, element="geometric", **smooth),
        **peers(args.topics, args.seed),
    }


def peers(n_components: int, seed: int) -> dict[str, Any]:
    """Models of scikit-learn."""
    lda = LatentDirichletAllocation(
        n_components, learning_method="batch", max_iter=50, random_state=seed
    )
    nmf = NMF(
        n_components, solver="mu", beta_loss="kullback-leibler", init="nndsvda", max_iter=200,
        random_state=seed,
    )  # fmt: skip
    return {"NMF-KL": nmf, "LDA": lda}


def fit(model: Any, counts: Any, args: Any) -> tuple[Any, Any, float]:
    """Factors of users and items (rows are components), and CPU seconds."""
    began = process_time()
    if isinstance(model, HCPF):
        model.fit(counts, n_threads=args.threads, progress=False)
    elif callable(model):
        model = model(counts)
    if isinstance(model, HCPF | FittedModel):
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


def matched_cosines(items: Any, truth: Any) -> Any:
    """Cosines of matched components."""
    unit = [m / np.maximum(np.linalg.norm(m, axis=1, keepdims=True), 1e-12) for m in (items, truth)]
    cosine = unit[0] @ unit[1].T
    return cosine[linear_sum_assignment(cosine, maximize=True)]


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
    """Known components, recovered from counts: means over several data sets."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for seed in range(args.seed, args.seed + args.seeds):
        truth, counts = draw_programs(args, np.random.default_rng(seed))
        rest, held_out = Interactions.from_matrix(counts), None
        if args.held_out:
            rest, held_out = thin(counts, args.held_out, random_state=seed)
        for name, model in programs_models(args).items():
            if args.models not in name:
                continue
            users, items, seconds = fit(model, sparse.csr_matrix(rest.matrix), args)
            cosine = matched_cosines(items, truth)
            row = {
                "cosine": cosine.mean(), "lowest": cosine.min(), "found": np.mean(cosine > FOUND),
                "NPMI": npmi_by_weight(users, items, counts)["NPMI, 0.6"], "CPU s": seconds,
            }  # fmt: skip
            if held_out is not None:
                row["held-out nats"] = -np.log(perplexity(users, items, held_out))
            rows.setdefault(name, []).append(row)
            print(seed, name, row, flush=True)
    return [
        {"model": name, **{key: np.mean([row[key] for row in found]) for key in found[0]}}
        for name, found in rows.items()
    ]


def draw_programs(args: Any, rng: np.random.Generator) -> tuple[Any, Any]:
    """Programs, components x genes, and counts of cells with uneven depth.

    A program is a profile that all share (``--shared``), and genes of its own, of which some
    (``--overlap``) belong to its neighbor, too. Cells mix few programs, of which the rarest has a
    tenth of the most common one's weight.
    """
    size, own = args.components, max(args.items // args.components, 4)
    shared = rng.gamma(0.3, size=args.items)
    truth = np.empty((size, args.items))
    genes = rng.permutation(args.items)
    for k in range(size):
        mine = np.zeros(args.items)
        first = round(k * own * (1.0 - args.overlap))
        chosen = np.take(genes, np.arange(first, first + own), mode="wrap")
        mine[chosen] = rng.lognormal(0.0, 1.0, own)
        truth[k] = args.shared * shared / shared.sum() + (1 - args.shared) * mine / mine.sum()
    weights = np.geomspace(1.0, 0.1, size)
    usage = rng.dirichlet(0.3 * size * weights / weights.sum(), args.users)
    depth = rng.lognormal(np.log(args.depth), 0.8, args.users)
    counts = sparse.csr_matrix(rng.poisson((usage * depth[:, None]) @ truth).astype(np.float64))
    return truth, counts[np.diff(counts.indptr) > 0]


def passes(args: Any) -> list[dict[str, Any]]:
    """CPU seconds of one pass: the difference between long and short fits, per pass."""
    drawn = simulate(
        args.users, args.items, n_components=args.components, density=args.density,
        element=Degenerate(), random_state=args.seed,
    )  # fmt: skip
    counts = sparse.csr_matrix(drawn.interactions.matrix)
    print(f"{counts.nnz:,} entries\n")
    settings: dict[str, Any] = {"element": "degenerate", "tempering": 1, "start": "noise"}
    settings |= {"n_fits": 1, "tol": 0.0, "random_state": args.seed}
    nmf: dict[str, Any] = {"solver": "mu", "beta_loss": "kullback-leibler", "init": "random"}
    nmf |= {"tol": 0.0, "random_state": args.seed}
    makers = {
        "hcpf, Poisson counts": lambda n: HCPF(args.components, max_iter=n, **settings),
        "NMF-KL": lambda n: NMF(args.components, max_iter=n, **nmf),
    }
    rows = []
    for (name, make), (few, many) in zip(makers.items(), ((5, 45), (1, 5)), strict=True):
        fit(make(1), counts[:200], args)  # kernels are loaded
        seconds = [fit(make(n), counts, args)[2] for n in (few, many)]
        each = (seconds[1] - seconds[0]) / (many - few)
        rows.append({"model": name, "CPU s per pass": each, "entries per CPU s": counts.nnz / each})
        print(rows[-1], flush=True)
    return rows


def consensus_by_size(args: Any) -> list[dict[str, Any]]:
    """Stability and held-out log-likelihood by K, of the blood cells that scanpy has."""
    import scanpy

    cells = scanpy.datasets.pbmc68k_reduced().raw.to_adata()
    scaled = np.expm1(cells.X.toarray())  # as in docs/howto/scanpy.md
    unit = np.where(scaled > 0, scaled, np.inf).min(axis=1, keepdims=True)
    cells.X = np.rint(scaled / unit).astype(np.float32)
    settings: dict[str, Any] = {"element": "geometric", "vary_by": "item", "tempering": 1}
    began = process_time()
    found = consensus(cells, (4, 6, 8, 10, 12), n_fits=20, random_state=args.seed, **settings)
    print(f"{found!r}\n\n{process_time() - began:.0f} CPU s\n")
    if args.charts is not None:
        for name, chart in zip(("stability", "likelihood"), plots.consensus(found), strict=True):
            chart.save(args.charts / f"consensus-{name}.svg", overwrite=True)
    return [
        {
            "K": c.n_components, **c.stability._asdict(), "log-likelihood": c.log_likelihood.value,
            "error": c.log_likelihood.error,
        }
        for c in found.candidates
    ]  # fmt: skip


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


def descriptions(file: Path, rng: np.random.Generator) -> list[str]:
    """Long descriptions of packages in random order, one of those that begin alike."""
    found: dict[str, str] = {}
    with lzma.open(file, "rt", encoding="utf-8") as stream:
        for paragraph in stream.read().split("\n\n"):
            text = paragraph.partition("Description-en: ")[2]
            if len(text) > 300:
                found.setdefault("".join(text.split("\n")[1:])[:120], text)
    texts = list(found.values())
    return [texts[j] for j in rng.permutation(len(texts))]


def topics(args: Any) -> list[dict[str, Any]]:
    """Topics of texts."""
    counter = CountVectorizer(
        stop_words="english", min_df=5, max_df=0.3, token_pattern=r"[a-z]{3,}"
    )
    rng = np.random.default_rng(args.seed)
    texts = docstrings() if args.texts is None else descriptions(args.texts, rng)
    fitted, others = texts[: args.documents], texts[args.documents :][:15_000]
    counts = counter.fit_transform(fitted)
    counts = counts[np.diff(counts.indptr) > 0].astype(np.float64)
    print(f"{counts.shape[0]} texts, {counts.shape[1]} words, {int(counts.sum())} in all\n")
    rest, held_out = thin(counts, 0.1, random_state=args.seed)
    rows = []
    for name, model in topics_models(args).items():
        users, items, seconds = fit(model, sparse.csr_matrix(rest.matrix), args)
        row = {"model": name, "perplexity": perplexity(users, items, held_out)}
        row |= npmi_by_weight(users, items, counts)
        if others:
            reference = npmi_by_weight(users, items, counter.transform(others))
            row |= {key.replace("NPMI", "others"): value for key, value in reference.items()}
        rows.append(row | {"CPU s": seconds})
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
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS[:-1])
    parser.add_argument("--users", type=common.whole, default=1500)
    parser.add_argument("--items", type=common.whole, default=800)
    parser.add_argument("--components", type=int, default=8)
    parser.add_argument("--depth", type=float, default=100, help="median counts of a cell")
    parser.add_argument("--seeds", type=int, default=3, help="data sets of programs")
    parser.add_argument("--shared", type=float, default=0.3, help="share of the common profile")
    parser.add_argument("--overlap", type=float, default=0.5, help="genes shared with the neighbor")
    parser.add_argument("--held-out", type=float, default=0.1, help="share of the counts")
    parser.add_argument("--density", type=float, default=0.08, help="of the counts of passes")
    parser.add_argument("--charts", type=Path, help="folder for the charts of consensus")
    parser.add_argument("--models", default="", help="part of the names of programs' models to fit")
    parser.add_argument("--topics", type=int, default=20)
    parser.add_argument("--texts", type=Path, help="Translation-en.xz of Debian")
    parser.add_argument("--documents", type=common.whole, default=4000, help="texts to fit")
    args = parser.parse_args()
    header = common.start("Counts with named factors", ", ".join(args.only))
    parts = {
        "programs": programs, "passes": passes, "topics": topics, "panel": panel,
        "consensus": consensus_by_size,
    }  # fmt: skip
    results = {name: parts[name](args) for name in args.only}
    words = ("NPMI", "others") if args.texts else ("NPMI",)
    weights = {f"{word}, {weight:g}": ".3f" for word in words for weight in WEIGHTS}
    columns: dict[str, dict[str, str]] = {
        "programs": {
            "model": "", "cosine": ".3f", "lowest": ".3f", "found": ".0%", "held-out nats": ".3f",
            "NPMI": ".3f", "CPU s": ".1f",
        },
        "passes": {"model": "", "CPU s per pass": ".3f", "entries per CPU s": ",.0f"},
        "consensus": {
            "K": "d", "silhouette": ".3f", "cosine": ".3f", "kept": ".3f",
            "log-likelihood": ".1f", "error": ".1f",
        },
        "topics": {"model": "", "perplexity": ",.0f", **weights, "CPU s": ".1f"},
        "panel": {"new cells": "", "r": ".2f", "mass": ".2f"},
    }  # fmt: skip
    for name, rows in results.items():
        common.table(rows, columns[name])
    common.finish(header, results, args.json)


if __name__ == "__main__":
    main()

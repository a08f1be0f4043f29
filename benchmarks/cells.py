"""Single-cell counts on shards: time and memory of a fit, compared with MiniBatchNMF.

Cells are drawn in blocks with one set of gene factors and written to a folder of shards, so that
neither drawing nor fitting holds all entries in memory. The depth of each cell is its exposure. The
full size, a million cells by 5,000 genes at 8%, is 400 million entries: ``--cells 1e6``. ``--data``
keeps the shards and the figures of finished phases: a run that was stopped goes on drawing where it
was, and fitting from its last checkpoint. MiniBatchNMF (one pass, Kullback-Leibler loss) reads
``--peer-cells`` of them into memory. CPU seconds and anonymous memory (RssAnon) are per phase.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

import common
from out_of_core import Meter

_BLOCK = 25_000  # cells drawn at once


def _factors(args: argparse.Namespace) -> tuple[Any, Any]:
    """The gene factors, scaled to the density at exposure 1, and the priors of cells."""
    from hcpf._draw import draw_factors, solve_scale

    rng = np.random.default_rng([args.seed, 1])
    priors = {"user_shape": 0.5, "user_activity_shape": 20.0, "user_activity_mean": 1.0}
    priors |= {"item_shape": 0.3, "item_activity_shape": 2.0, "item_activity_mean": 1.0}
    genes = draw_factors("item", args.genes, args.components, priors, rng)[1]
    cells = draw_factors("user", 2_000, args.components, priors, rng)[1]
    depth = _depth(args, 2_000, rng)
    return genes * solve_scale(cells * depth[:, None], genes, args.density, rng), priors


def _depth(args: argparse.Namespace, size: int, rng: np.random.Generator) -> Any:
    return np.exp(rng.normal(0.0, args.spread, size))


def draw(args: argparse.Namespace) -> dict[str, Any]:
    """Draw cells block by block and append them as shards (child process)."""
    from hcpf import Interactions, Shards
    from hcpf._draw import draw_entries, draw_factors
    from hcpf.elements import Degenerate

    genes, priors = _factors(args)
    folder = args.folder / "shards"
    done = Shards.open(folder, check=False).n_users if folder.exists() else 0
    meter = Meter()
    for first in range(done, args.cells, _BLOCK):
        size = min(_BLOCK, args.cells - first)
        rng = np.random.default_rng([args.seed, 2, first])
        depth = _depth(args, size, rng)
        cells = draw_factors("user", size, args.components, priors, rng)[1] * depth[:, None]
        drawn, _ = draw_entries(
            cells, genes, Degenerate(), rng, keep_counts=False, advance=lambda _: None
        )
        matrix = drawn.matrix.astype(np.float32)
        block = Interactions(matrix, np.arange(first, first + size), drawn.items)
        np.save(args.folder / f"depth-{first}.npy", depth)
        block.to_shards(folder, append=first > 0)
    return {"phase": "draw", "cells": args.cells - done, **meter.finish()}


def fit(args: argparse.Namespace) -> dict[str, Any]:
    """Make some passes on the shards (child process)."""
    from hcpf import HCPF, Checkpoints, Shards

    data = Shards.open(args.folder / "shards", check=False)
    blocks = range(0, data.n_users, _BLOCK)
    depth = np.concatenate([np.load(args.folder / f"depth-{first}.npy") for first in blocks])
    settings: dict[str, Any] = {"element": "degenerate", "n_fits": 1, "tempering": 1.0, "tol": 0.0}
    run: dict[str, Any] = {"n_threads": args.threads, "progress": False}
    warm = data.sample(20_000, args.seed)
    HCPF(args.components, max_iter=2, **settings).fit(warm, **run)  # kernels are loaded
    run["checkpoint"] = Checkpoints(args.folder / "checkpoint", every_seconds=600.0)
    model = HCPF(args.components, max_iter=args.passes, random_state=args.seed, **settings)
    meter = Meter()
    model.fit(data, user_exposure=depth, **run)
    return {
        "phase": "fit", "cells": data.n_users, "entries": data.n_observed,
        "passes": model.n_iter_, **meter.finish(), "elbo": [check.elbo for check in model.history_],
    }  # fmt: skip


def peer(args: argparse.Namespace) -> dict[str, Any]:
    """Make one pass of scikit-learn's MiniBatchNMF over some cells in memory (child process)."""
    from sklearn.decomposition import MiniBatchNMF

    from hcpf import Shards

    data = Shards.open(args.folder / "shards", check=False)
    matrix = data.matrix[np.arange(min(args.peer_cells, data.n_users))]
    made = MiniBatchNMF(
        args.components, beta_loss="kullback-leibler", init="random", max_iter=1,
        random_state=args.seed,
    )  # fmt: skip
    meter = Meter()
    made.fit(matrix)
    sizes = {"cells": matrix.shape[0], "entries": int(matrix.nnz), "passes": 1}
    return {"phase": "MiniBatchNMF", **sizes, **meter.finish()}


TASKS = {"draw": draw, "fit": fit, "peer": peer}


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("-K", "--components", type=int, default=20)
    parser.add_argument("--cells", type=common.whole, default=20_000)
    parser.add_argument("--genes", type=common.whole, default=5_000)
    parser.add_argument("--density", type=float, default=0.08)
    parser.add_argument("--spread", type=float, default=0.5, help="deviation of the log depth")
    parser.add_argument("--passes", type=int, default=10)
    parser.add_argument("--peer-cells", type=common.whole, default=5_000)
    parser.add_argument("--data", type=Path, help="folder to keep the shards in")
    parser.add_argument("--task", choices=TASKS, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.task:
        print(json.dumps(TASKS[args.task](args)))
        return
    header = common.start(
        "Single cells on shards",
        f"simulated, {args.cells:,} cells x {args.genes:,} genes, density {args.density:g}, "
        f"K = {args.components}, {args.threads} threads, seed {args.seed}",
    )
    names = ("components", "cells", "genes", "density", "spread", "passes", "peer_cells")
    shared: list[Any] = ["--threads", args.threads, "--seed", args.seed]
    for name in names:
        shared += [f"--{name.replace('_', '-')}", getattr(args, name)]
    with common.workspace() as temporary:
        folder = args.data or temporary
        folder.mkdir(parents=True, exist_ok=True)
        rows = [_phase(task, folder, shared) for task in TASKS]
    for row in rows[1:]:
        row["CPU s per pass"] = row["CPU s"] / row["passes"]
        row["entries per CPU s"] = row["entries"] / row["CPU s per pass"]
    columns = {"phase": "", "cells": ",", "entries": ",", "passes": "d", "s": ",.0f"}
    columns |= {"CPU s": ",.0f", "CPU s per pass": ",.1f", "entries per CPU s": ",.0f"}
    common.table(rows, {**columns, "RssAnon GB": ".2f"})
    common.finish(header, {"rows": rows}, args.json)


def _phase(task: str, folder: Path, shared: list[Any]) -> dict[str, Any]:
    """The figures of a phase, which runs in a separate process unless it is done."""
    file = folder / f"{task}.json"
    if not file.exists():
        found = common.child("cells.py", "--task", task, "--folder", folder, *shared)
        file.write_text(json.dumps(found))
    return json.loads(file.read_text())


if __name__ == "__main__":
    main()

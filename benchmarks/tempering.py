"""What tempering is worth: c = 1, the formula's c, and the c that "auto" chooses.

Held-out log-likelihood in nats per observed pair, each with its share of the missing ones; gains
are over c = 1, with paired standard errors, for one fit and for the average of four. The element is
the most likely one of the values alone. One file per data set and number of fits is kept, so that
the benchmark resumes. ``--simulated 10`` takes data drawn from the model instead.

    .venv-bench/bin/python benchmarks/tempering.py FOLDER --output results --max-entries 300_000
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import common
import sets
from hcpf import HCPF, Interactions, simulate
from hcpf.elements import Gamma
from hcpf.evaluate import split
from hcpf.evaluate.scoring import pair_scores
from hcpf.io import write_atomically

COLUMNS = {
    "data": "", "fits": "", "formula": ".2f", "gain of formula": ".4f", "its error": ".4f",
    "chosen": ".2f", "gain of chosen": ".4f", "error of chosen": ".4f",
}  # fmt: skip


def compare(name: str, data: Interactions, n_fits: int, args: Any) -> dict[str, Any]:
    """One row; a tempering that is 1 gains 0."""
    parts = split(data, random_state=args.seed)
    row: dict[str, Any] = {"data": name, "fits": n_fits, "entries": data.n_observed}
    found: dict[float, Any] = {}
    for label, tempering in (("one", 1.0), ("formula", "formula"), ("chosen", "auto")):
        settings = {"element": "quick", "n_fits": n_fits, "random_state": args.seed}
        model = HCPF(args.components, tempering=tempering, **settings)
        model.fit(parts.train, exclude=parts.held_out, n_threads=args.threads, progress=False)
        c = row[label] = model.tempering_
        if c not in found:
            found[c] = pair_scores(model, parts).likelihoods
        gain = found[c].gain_over(found[1.0])
        error = "its error" if label == "formula" else f"error of {label}"
        row |= {f"gain of {label}": gain.value, error: gain.error}
        if c == 1.0 and label == "formula":  # then nothing is to be chosen
            row |= {"chosen": 1.0, "gain of chosen": 0.0, "error of chosen": 0.0}
            break
    return row


def kept(name: str, data: Interactions, n_fits: int, args: Any) -> dict[str, Any]:
    """One row; read from the output folder if it is there already."""
    path = args.output / f"{name}-{n_fits}.json"
    if not path.exists():
        args.output.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps(compare(name, data, n_fits, args), indent=2) + "\n")
    row: dict[str, Any] = json.loads(path.read_text())
    print(row, flush=True)
    return row


def simulated(args: Any) -> Iterator[tuple[str, Interactions]]:
    """Data drawn from the model, for which the formula is above 1."""
    for seed in range(args.simulated):
        drawn = simulate(300, 200, n_components=10, element=Gamma(2.0, 1.0), density=0.15,
                         random_state=seed)  # fmt: skip
        yield f"simulated {seed}", drawn.interactions


def main() -> None:
    """Compare on all data sets of the folder, or on those named."""
    parser = sets.parser(__doc__)
    parser.add_argument("--output", type=Path, required=True, help="folder of the results")
    parser.add_argument("--fits", type=int, nargs="*", default=[1, 4])
    parser.add_argument("--simulated", type=int, default=0, help="simulated data sets instead")
    args = parser.parse_args()
    header = common.start("Tempering", str(args.folder))
    source = simulated(args) if args.simulated else sets.each(args)
    rows = [kept(name, data, n_fits, args) for name, data in source for n_fits in args.fits]
    common.table(rows, COLUMNS)
    common.finish(header, {"rows": rows}, args.json)


if __name__ == "__main__":
    main()

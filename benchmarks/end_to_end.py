"""What a person waits for: the default fit, against fits with everything known.

For each data set, each in a separate process with warm kernels and the data in memory:

- default: ``HCPF(random_state=0).fit(data)``, which chooses element and tempering by short fits;
- given: the same number of fits with the element, vary_by, hurdle and tempering it chose;
- one: one such fit.

Besides the files of FOLDER there are two simulated sets, article_views and play_counts. Results are
kept in --output, so that the same command resumes; --table prints the tables from there.

    .venv/bin/python benchmarks/end_to_end.py FOLDER --max-entries 300_000 --output results
    .venv/bin/python benchmarks/end_to_end.py FOLDER --output results --against ../before
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

import common
import sets
from hcpf import HCPF, Interactions, simulate

Triples = tuple[Any, Any, Any]  # users, items and values

CALLS = ("default", "given", "one")
WARM_UP_ENTRIES = 20_000  # enough for the minibatch passes that small data do not have


# -- in a child process ---------------------------------------------------------------------------


def measure(args: argparse.Namespace) -> dict[str, Any]:
    """Time one call on one data set (child process)."""
    data = sets.read(args.file)
    settings = json.loads(args.settings)
    HCPF(args.components, random_state=1, max_iter=5, **settings).fit(few_users(data))  # warm-up
    model = HCPF(args.components, random_state=args.seed, **settings)
    before = common.resident_bytes()
    common.reset_peak()
    with common.Stopwatch() as watch:
        model.fit(data, n_threads=args.threads, progress=False)
    chosen = model.value_model_
    return {
        "wall s": watch.wall,
        "cpu s": watch.cpu,
        "others": watch.others,
        "memory MB": (common.peak_bytes() - before) / common.MB,
        "passes": model.n_iter_,
        "entries": data.n_observed,
        "shape": list(data.shape),
        "value model": chosen.description,
        "settings": {
            "element": chosen.element.name,
            "vary_by": chosen.vary_by,
            "hurdle": chosen.hurdle,
            "tempering": model.tempering_,
        },
    }


def few_users(data: Interactions) -> Any:
    """About ``WARM_UP_ENTRIES`` entries of random users, as a matrix."""
    users = np.random.default_rng(0).permutation(data.shape[0])
    n_users = int(np.ceil(data.shape[0] * min(1.0, WARM_UP_ENTRIES / data.n_observed)))
    return data.matrix[np.sort(users[:n_users])]


# -- simulated sets -------------------------------------------------------------------------------


def article_views() -> Triples:
    """33,669 counts of views, from 1 to about 100."""
    rng = np.random.default_rng(0)
    users, items = drawn_pairs(1_200, 2_900, 33_669)
    means = 1.5 * np.exp(rng.normal(0, 0.7, 1_200)[users])
    return users, items, np.minimum(1.0 + rng.poisson(rng.gamma(0.5, means / 0.5)), 100.0)


def play_counts() -> Triples:
    """92,834 counts of plays: a median of about 260, and up to 352,698."""
    rng = np.random.default_rng(0)
    users, items = drawn_pairs(1_892, 17_632, 92_834)
    logs = rng.normal(0, 1.0, 1_892)[users] + rng.normal(0, 0.5, 17_632)[items]
    plays = np.ceil(260 * np.exp(logs + rng.normal(0, 1.1, len(logs))))
    plays[np.argmax(plays)] = 352_698
    return users, items, np.minimum(plays, 352_698.0)


def drawn_pairs(users: int, items: int, n: int) -> Any:
    """User and item of exactly ``n`` pairs drawn from the model."""
    drawn = simulate(users, items, density=1.1 * n / (users * items), random_state=0)
    pairs = np.array(drawn.interactions.matrix.nonzero())
    return pairs[:, np.sort(np.random.default_rng(0).permutation(pairs.shape[1])[:n])]


SIMULATED = {"article_views": article_views, "play_counts": play_counts}


def write_simulated(folder: Path) -> None:
    """Write the simulated sets as files, unless they are there."""
    for name, make in SIMULATED.items():
        path = folder / name / f"{name}.parquet"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            users, items, values = make()
            parquet.write_table(pa.table({"user": users, "item": items, "value": values}), path)


# -- runs and tables ------------------------------------------------------------------------------


def run(path: Path, checkouts: list[Path], output: Path, args: argparse.Namespace) -> None:
    """Measure what is not yet in the JSON of one data set."""
    target = output / f"{path.stem}.json"
    results: dict[str, Any] = json.loads(target.read_text()) if target.exists() else {}
    shared = ("--file", path, "-K", args.components, "--threads", args.threads, "--seed", args.seed)
    for call in CALLS:
        for checkout in checkouts:
            record = results.setdefault(checkout.name, {"commit": common.commit(checkout)})
            if call in record and record[call]["others"] <= args.max_others:
                continue
            settings = {} if call == "default" else dict(record["default"]["settings"])
            if call == "one":
                settings["n_fits"] = 1
            env = {"PYTHONPATH": str(checkout / "src")}
            task = ("--task", "--settings", json.dumps(settings))
            new = common.child("end_to_end.py", args.folder, *task, *shared, env=env)
            if call not in record or new["others"] < record[call]["others"]:
                record[call] = new
            print(
                f"- {path.stem}, {checkout.name}, {call}: {common.describe_time(new)}", flush=True
            )
            target.write_text(json.dumps(results, indent=2) + "\n")


def tables(paths: list[Path], checkouts: list[Path], output: Path) -> list[dict[str, Any]]:
    """Print the tables of all data sets that were measured; return their rows."""
    rows = [row for path in paths if (row := table_row(path.stem, checkouts, output))]
    whole = {"Data": "", "Entries": ",", "Chosen": ""}
    print("Wall time:\n")
    times = {"Default, s": ".2f", "Given, s": ".2f", "One fit, s": ".2f", "Default / given": ".2f"}
    common.table(rows, {**whole, **times})
    print("CPU time, and memory beyond the data:\n")
    cpu = {"Default, CPU s": ".2f", "Given, CPU s": ".2f", "Default / given, CPU": ".2f"}
    memory = {"Default, MB": ",.0f", "Given, MB": ",.0f"}
    common.table(rows, {"Data": "", **cpu, **memory})
    if len(checkouts) > 1:
        print(f"The default fit of {checkouts[1].name} (before) and {checkouts[0].name} (after):\n")
        before = {"Before, s": ".2f", "After, s": ".2f", "Ratio": ".1f"}
        before |= {"Before, CPU s": ".1f", "After, CPU s": ".1f"}
        common.table(rows, {"Data": "", **before, "Before, MB": ",.0f", "After, MB": ",.0f"})
    return rows


def table_row(name: str, checkouts: list[Path], output: Path) -> dict[str, Any]:
    target = output / f"{name}.json"
    results = json.loads(target.read_text()) if target.exists() else {}
    mine = results.get(checkouts[0].name, {})
    if not all(call in mine for call in CALLS):
        return {}
    default, given = mine["default"], mine["given"]
    row = {"Data": name, "Entries": default["entries"], "Chosen": default["value model"]}
    row |= {"Default, s": default["wall s"], "Given, s": given["wall s"]}
    row |= {"One fit, s": mine["one"]["wall s"], "commit": mine["commit"]}
    row["Default / given"] = default["wall s"] / given["wall s"]
    row |= {"Default, CPU s": default["cpu s"], "Given, CPU s": given["cpu s"]}
    row["Default / given, CPU"] = default["cpu s"] / given["cpu s"]
    row |= {"Default, MB": default["memory MB"], "Given, MB": given["memory MB"]}
    before = results.get(checkouts[-1].name, {}).get("default")
    if before is not None:
        for key, unit in (("wall s", "s"), ("cpu s", "CPU s"), ("memory MB", "MB")):
            row |= {f"Before, {unit}": before[key], f"After, {unit}": default[key]}
        row["Ratio"] = before["wall s"] / default["wall s"]
    return row


def main() -> None:
    parser = sets.parser(__doc__)
    parser.add_argument("--output", type=Path, help="folder of the results, to resume from")
    parser.add_argument("--against", type=Path, help="another checkout to measure as well")
    parser.add_argument("--max-others", **common.MAX_OTHERS)
    parser.add_argument("--table", action="store_true", help="print the tables, measure nothing")
    parser.add_argument("--task", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--settings", help=argparse.SUPPRESS)
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.task:
        print(json.dumps(measure(args)))
        return
    checkouts = [Path(__file__).resolve().parent.parent]
    checkouts += [args.against.resolve()] if args.against else []
    title = f"{args.folder} and simulated sets, K = {args.components}, {args.threads} threads"
    header = common.start("From the call to the answer", title)
    with common.workspace() as temporary:
        output = args.output or temporary
        write_simulated(output / "data")
        simulated = argparse.Namespace(**{**vars(args), "folder": output / "data"})
        paths = sets.files(args) + sets.files(simulated)
        if not args.table:
            for path in sets.by_size(paths):
                run(path, checkouts, output, args)
        rows = tables(sets.by_size(paths), checkouts, output)
    common.finish(header, {"rows": rows}, args.json)


if __name__ == "__main__":
    main()

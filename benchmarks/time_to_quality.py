"""Time to quality: how good are the predictions of a program after how many seconds?

Each program is fitted to the same split with growing numbers of iterations, up to its default, each
from the beginning. Seconds count from the call, with data in memory and compiled code loaded.
AUC is of held-out observed against missing pairs. L is the log-likelihood of which pairs are
observed, 1 - exp(-rate), in nats per 1,000 pairs; ALS has no rates. A rate below a thousandth of
the density is raised to it, for all programs: a single rate of zero would make L minus infinity.
NDCG@20 is over at most 10,000 users. A program stops before a fit that takes more than --limit.

    .venv-bench/bin/python benchmarks/time_to_quality.py FOLDER --output results
    .venv-bench/bin/python benchmarks/time_to_quality.py FOLDER --output results --table \\
        --chart docs/images/time-to-quality.svg
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import common
import peers
import sets
from hcpf import Interactions, simulate
from hcpf.elements import Gamma
from hcpf.evaluate import auc, split
from hcpf.evaluate.ranks import rank_metrics

SIMULATED = "simulated_10m"
VALUE_MODELS: dict[str, dict[str, Any]] = {
    "ml1m": {"element": "binomial", "vary_by": "item", "hurdle": True},
    "yelp_250k": {"element": "binomial", "vary_by": "item", "hurdle": True},
    "online_retail_spend": {"element": "gamma", "vary_by": "both"},
    SIMULATED: {"element": "gamma"},
}
K, N_USERS = 20, 10_000  # length of the ranked lists; users they are made for
LOWEST_RATE = 1e-3  # of the density
SCORES = {"AUC": "AUC", "L": "L, nats per 1,000 pairs", "NDCG@20": "NDCG@20"}


# -- data -----------------------------------------------------------------------------------------


def make_data(name: str, folder: Path) -> Interactions:
    if name != SIMULATED:
        return sets.read(folder / name / f"{name}.parquet")
    drawn = simulate(
        100_000, 20_000, density=0.005, n_components=30, element=Gamma(2.0, 0.1), random_state=0
    )
    return drawn.interactions


def save_split(data: Interactions, target: Path) -> None:
    """Store a split, so that later versions of the package get the same pairs."""
    parts = split(data, random_state=0)
    common.save_matrix(parts.train.matrix, target / "train")
    common.save_matrix(parts.held_out, target / "held_out")
    test = parts.test
    np.savez(
        target / "test.npz", users=test.users, items=test.items, missing_users=test.missing_users,
        missing_items=test.missing_items, missing_weight=test.missing_weight,
        train_share=parts.train.n_observed / data.n_observed,
    )  # fmt: skip


# -- scores ---------------------------------------------------------------------------------------


def scores(fitted: peers.Fitted, problem: peers.Problem, test: Any) -> dict[str, float | None]:
    """AUC, L and NDCG@20 of the held-out pairs."""
    observed = fitted.score(test["users"], test["items"])
    missing = fitted.score(test["missing_users"], test["missing_items"])
    found: dict[str, float | None] = {"AUC": auc(observed, missing).value, "L": None}
    if fitted.has_rates:
        found["L"] = log_likelihood(observed, missing, problem, float(test["missing_weight"]))
    found["NDCG@20"] = ndcg(fitted, test["users"], test["items"], problem.train.shape)
    return found


def log_likelihood(observed: Any, missing: Any, problem: peers.Problem, weight: float) -> float:
    """Nats per 1,000 pairs, observed and missing ones in their true proportion."""
    n_users, n_items = problem.train.shape
    density = problem.train.nnz / problem.train_share / n_users / n_items
    observed, missing = (np.maximum(rate, LOWEST_RATE * density) for rate in (observed, missing))
    total = np.sum(np.log(-np.expm1(-observed))) - weight * np.sum(missing)
    return float(1000 * total / (len(observed) + weight * len(missing)))


def ndcg(fitted: peers.Fitted, users: NDArray[Any], items: NDArray[Any], shape: Any) -> float:
    """The mean over users with held-out items, all of them or a random sample."""
    with_items = np.unique(users)
    chosen = np.random.default_rng(0).permutation(with_items)[:N_USERS]
    chosen = np.sort(chosen)
    best = fitted.top(chosen, K)
    keys = np.sort(users * shape[1] + items)
    asked = chosen[:, None] * shape[1] + best
    position = np.minimum(np.searchsorted(keys, asked), len(keys) - 1)
    hits = (keys[position] == asked) & (best >= 0)
    wanted = np.bincount(users, minlength=shape[0])[chosen]
    return float(rank_metrics(hits, wanted)["ndcg"].mean())


# -- runs -----------------------------------------------------------------------------------------


def measure(args: argparse.Namespace) -> None:
    """Add the points that a program lacks on one data set to its JSON (child process)."""
    name, title = args.task
    folder = args.output / "data" / name
    test = dict(np.load(folder / "test.npz"))
    problem = peers.Problem(
        common.load_matrix(folder / "train"), common.load_matrix(folder / "held_out"),
        float(test["train_share"]), VALUE_MODELS.get(name, {}), args.components, args.threads,
        args.seed,
    )  # fmt: skip
    program, target = peers.PROGRAMS[title], result_file(args.output, name, title)
    record = read_result(target) | {"set": name, "program": title, "machine": common.machine()}
    record |= {"versions": common.versions(), "commit": common.commit(Path(__file__).parent)}
    record |= {"entries": problem.train.nnz, "shape": list(problem.train.shape)}
    points: list[dict[str, Any]] = record.setdefault("points", [])
    program.fit(warm_up(problem), program.iterations[0])
    for j, iterations in enumerate(program.iterations):
        old = points[j] if j < len(points) else {}
        if old and old["others"] <= args.max_others:
            continue
        if j and predicted_seconds(title, points[j - 1], iterations) > args.limit:
            record["stopped"] = f"{iterations} iterations exceed {args.limit:g} s"
            break
        with common.Stopwatch() as watch:
            fitted = program.fit(problem, iterations)
        point = {"iterations": iterations, "seconds": watch.wall, "cpu": watch.cpu}
        if not old or watch.others < old["others"]:
            found = {key: old[key] for key in SCORES} if old else scores(fitted, problem, test)
            points[j : j + 1] = [{**point, "others": watch.others, **found}]
        target.write_text(json.dumps(record, indent=2) + "\n")
    record["done"] = True
    target.write_text(json.dumps(record, indent=2) + "\n")
    print(json.dumps(points))


def predicted_seconds(title: str, last: dict[str, Any], iterations: int) -> float:
    """How long more iterations would take; ours stop when they have converged."""
    growth = 1.0 if title.startswith("hcpf") else iterations / last["iterations"]
    return growth * last["seconds"]


def warm_up(problem: peers.Problem) -> peers.Problem:
    """The same problem with about 20,000 entries, to load compiled code."""
    n_users = max(500, round(problem.train.shape[0] * 20_000 / problem.train.nnz))
    parts = problem.train[:n_users], problem.held_out[:n_users]
    rest = problem.train_share, problem.value_model
    return peers.Problem(*parts, *rest, 8, problem.threads, problem.seed)


def result_file(output: Path, name: str, title: str) -> Path:
    return output / f"{name}-{title.replace(', ', '-').replace(' ', '-')}.json"


def is_open(path: Path, max_others: float) -> bool:
    """Whether a result lacks points, or has some that others disturbed."""
    result = read_result(path)
    return "done" not in result or any(p["others"] > max_others for p in result["points"])


def read_result(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text()) if path.exists() else {}


# -- table and chart ------------------------------------------------------------------------------


def table(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Print the last point of each program and when ours were as good; return the rows."""
    rows: list[dict[str, Any]] = []
    for result in results:
        last = result["points"][-1]
        row = {"Data": result["set"], "Program": result["program"], "Time, s": last["seconds"]}
        done, full = last["iterations"], peers.PROGRAMS[result["program"]].iterations[-1]
        row["Iterations"] = f"{done}" if done == full else f"{done} of {full}"
        row |= {key: last[key] for key in SCORES}
        rows.append(row)
    columns = {"Data": "", "Program": "", "Iterations": "d", "Time, s": ".2f"}
    common.table(rows, {**columns, "AUC": ".3f", "L": ".3f", "NDCG@20": ".3f"})
    behind = [reached(result, results) for result in results if not is_ours(result)]
    print("Seconds after which one fit and four fits are as good as the peer in the end:\n")
    columns = {"Data": "", "Peer": "", "Peer, s": ".2f", "Quick, AUC": ".2f"}
    columns |= {"One fit, AUC": ".2f", "Four fits, AUC": ".2f"}
    common.table(behind, {**columns, "One fit, L": ".2f", "Four fits, L": ".2f"})
    return rows + behind


def reached(peer: dict[str, Any], results: list[dict[str, Any]]) -> dict[str, Any]:
    """When our fits reached the final scores of a peer: seconds, or "never"."""
    final = peer["points"][-1]
    row = {"Data": peer["set"], "Peer": peer["program"], "Peer, s": final["seconds"]}
    for result in results:
        if not is_ours(result) or result["set"] != peer["set"]:
            continue
        label = result["program"].removeprefix("hcpf, ").capitalize()
        for key in ("AUC", "L"):
            if final[key] is not None:
                good = [p["seconds"] for p in result["points"] if p[key] >= final[key]]
                row[f"{label}, {key}"] = min(good) if good else "never"
    return row


def is_ours(result: dict[str, Any]) -> bool:
    return result["program"].startswith("hcpf")


def main() -> None:
    parser = sets.parser(__doc__, tuple(VALUE_MODELS))
    parser.add_argument("--programs", nargs="*", default=list(peers.PROGRAMS))
    parser.add_argument("--output", type=Path, required=True, help="folder of the results")
    parser.add_argument("--limit", type=float, default=100.0, help="most seconds of a fit")
    parser.add_argument("--max-others", **common.MAX_OTHERS)
    parser.add_argument("--table", action="store_true", help="print the tables, measure nothing")
    parser.add_argument("--chart", type=Path, help="an SVG file to draw the chart into")
    parser.add_argument("--task", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.task:
        measure(args)
        return
    header = common.start("Time to quality", f"{', '.join(args.only)}, K = {args.components}")
    options = ("--output", args.output, "--limit", args.limit, "--threads", args.threads)
    options += ("--seed", args.seed, "-K", args.components, "--max-others", args.max_others)
    for name in args.only:
        if not (args.output / "data" / name / "test.npz").exists() and not args.table:
            save_split(make_data(name, args.folder), args.output / "data" / name)
        for title in args.programs:
            if not args.table and is_open(result_file(args.output, name, title), args.max_others):
                task = ("--task", name, title)
                points = common.child("time_to_quality.py", args.folder, *task, *options)
                print(f"- {name}, {title}: {points[-1]}", flush=True)
    files = [result_file(args.output, name, title) for name in args.only for title in args.programs]
    results = [result for path in files if "points" in (result := read_result(path))]
    rows = table(results)
    if args.chart:
        import quality_chart

        quality_chart.draw(results, SCORES, args.chart)
    common.finish(header, {"rows": rows, "results": results}, args.json)


if __name__ == "__main__":
    main()

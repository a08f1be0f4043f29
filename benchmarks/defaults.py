"""The default settings against popularity and the paper's priors, and what "auto" chooses.

With ``--elements`` every applicable element, shared and pooled, compound and hurdle, is fitted in
full, too: the regret is how much more likely the test pairs are under the best of them than under
the choice of "auto", in nats per observed pair. Single fits (``--fits 1``) of the same model differ
by several hundredths of a nat between seeds, as much as the models that are compared.

    .venv-bench/bin/python benchmarks/defaults.py FOLDER --min-entries 10_000
"""

import itertools
import json
import time
from pathlib import Path
from typing import Any

import common
import sets
from hcpf import HCPF, Interactions
from hcpf.core.value_model import ValueModel, ways_to_vary
from hcpf.errors import InputError
from hcpf.evaluate import Popularity, Scores, scores, split
from hcpf.evaluate.scoring import pair_scores
from hcpf.io import write_atomically
from hcpf.training.resolve import candidate_elements
from hcpf.training.selection import PairLikelihoods

COLUMNS = {
    "data": "", "model": "", "element": "", "L": ".3f", "AUC": ".4f", "conditional": ".4f",
    "seconds": ".1f", "better": "",
}  # fmt: skip
REGRETS = {"data": "", "auto": "", "best": "", "regret": ".4f", "error": ".4f", "within": ""}
MAX_REGRET = 0.01
"""Nats per observed pair, or two standard errors."""


def compare(name: str, data: Interactions, args: Any) -> list[dict[str, Any]]:
    """Popularity, the paper's priors and the defaults on one data set."""
    parts = split(data, random_state=args.seed)
    default = HCPF(args.components, random_state=args.seed)
    paper = HCPF(args.components, random_state=args.seed, priors="paper")
    rows = [fit("default", default, parts)]
    chosen = default.value_model_
    paper.set_params(element=chosen.element, vary_by=chosen.vary_by, hurdle=chosen.hurdle)
    rows += [fit("paper's priors", paper, parts), fit("popularity", Popularity(), parts)]
    for row in rows:
        row["data"] = name
    mine = rows[0]
    for other in rows[1:]:
        other["better"] = "yes" if mine["L"] > other["L"] and mine["AUC"] > other["AUC"] else "NO"
    common.table(rows, COLUMNS)
    return rows


def fit(label: str, model: Any, parts: Any) -> dict[str, Any]:
    """Fit and score one model."""
    begin = time.perf_counter()
    model.fit(parts.train, exclude=parts.held_out)
    seconds = time.perf_counter() - begin
    found = scores(model, parts)
    return {
        "model": label,
        "element": named(model),
        "seconds": seconds,
        "L": value(found, "log_likelihood"),
        "AUC": value(found, "auc"),
        "conditional": value(found, "conditional_nonmissing"),
    }


def value(found: Scores, name: str) -> float:
    """A score, or NaN where it does not apply."""
    score = found[name]
    return float("nan") if score is None else score.value


def named(model: Any) -> str:
    """Such as "gamma per item", or "binomial hurdle"; the element's name for a baseline."""
    value_model = getattr(model, "value_model_", None) or ValueModel(model.element_)
    return value_model.description


def regret(name: str, data: Interactions, args: Any) -> dict[str, Any]:
    """How far the choice of "auto" is behind the best of all candidates, all fitted in full."""
    parts = split(data, random_state=args.seed)
    likelihoods: dict[str, PairLikelihoods] = {}
    seconds: dict[str, float] = {}

    def add(**settings: Any) -> HCPF:
        model = HCPF(args.components, n_fits=args.fits, random_state=args.seed, **settings)
        begin = time.perf_counter()
        model.fit(parts.train, exclude=parts.held_out, n_threads=args.threads, progress=False)
        label = named(model)
        seconds[label] = time.perf_counter() - begin
        likelihoods[label] = pair_scores(model, parts).likelihoods
        return model

    auto = add(element="auto")
    kinds = [type(element) for element in candidate_elements(parts.train.values)]
    for hurdle, kind in itertools.product((False, True), kinds):
        for vary_by in (None, *ways_to_vary(kind)):
            value_model = ValueModel(kind(), vary_by, hurdle)
            if value_model.description in likelihoods:
                continue
            try:
                add(element=kind(), vary_by=vary_by, hurdle=hurdle, tempering=auto.tempering_)
            except InputError as error:
                print(f"{name}: {value_model.description}: {error}", flush=True)
    chosen = named(auto)
    best = max(likelihoods, key=lambda label: likelihoods[label].per_entry)
    gain = likelihoods[best].gain_over(likelihoods[chosen])
    return {
        "data": name,
        "auto": chosen,
        "best": best,
        "regret": gain.value,
        "error": gain.error,
        "within": gain.value <= max(MAX_REGRET, 2.0 * gain.error),
        "fits": args.fits,
        "tempering": auto.tempering_,
        "log_likelihood": {label: found.per_entry for label, found in likelihoods.items()},
        "seconds": seconds,
    }


def kept(name: str, data: Interactions, args: Any) -> dict[str, Any]:
    """The regret on one data set; read from the output folder if it is there already."""
    if args.output is None:
        return regret(name, data, args)
    path = args.output / f"{name}.json"
    if not path.exists():
        args.output.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps(regret(name, data, args), indent=2) + "\n")
    row: dict[str, Any] = json.loads(path.read_text())
    common.table([row], REGRETS)
    return row


def main() -> None:
    """Compare on all data sets of the folder, or on those named."""
    parser = sets.parser(__doc__)
    parser.add_argument("--elements", action="store_true", help="the regret of auto instead")
    parser.add_argument(
        "--fits", type=int, default=HCPF().n_fits, help="fits per model, with --elements"
    )
    parser.add_argument("--output", type=Path, help="folder of one file per data set")
    args = parser.parse_args()
    header = common.start("Defaults", str(args.folder))
    rows: list[dict[str, Any]] = []
    for name, data in sets.each(args):
        rows += [kept(name, data, args)] if args.elements else compare(name, data, args)
    common.table(rows, REGRETS if args.elements else COLUMNS)
    common.finish(header, {"rows": rows}, args.json)


if __name__ == "__main__":
    main()

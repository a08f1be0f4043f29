"""What a saved model is."""

import json
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hcpf.cli.about_theta import describe_theta, show_theta
from hcpf.cli.elements import element_text
from hcpf.cli.files import readable_size
from hcpf.cli.fit import summary
from hcpf.cli.models import MANIFEST, load_model
from hcpf.cli.screen import number, percent, show_facts
from hcpf.cli.sources import read_names


def describe_model(folder: Path, names: str | None = None) -> dict[str, Any]:
    """A saved model as JSON; ``names`` is where the items' are."""
    model = load_model(folder)
    manifest = json.loads((folder / MANIFEST).read_bytes())["manifest"]
    written = datetime.fromtimestamp((folder / MANIFEST).stat().st_mtime, UTC)
    return {
        "kind": "model",
        "path": str(folder),
        **summary(model),
        "sparsity": model.interactions_.sparsity,
        "usual": describe_theta(model, read_names(names, model.items_)),
        "priors": asdict(model.priors_),
        "solver": model.solver,
        "seed": model.random_state if isinstance(model.random_state, int) else None,
        "seconds": model.history_[-1].seconds if model.history_ else None,
        "written": written.isoformat(timespec="seconds"),
        "version": manifest.get("hcpf"),
        "bytes": sum(file.stat().st_size for file in folder.iterdir()),
    }


def show_model(about: dict[str, Any]) -> None:
    """Print it for people."""
    priors = {
        side: ", ".join(
            f"{name.removeprefix(side + '_').replace('_', ' ')} {number(value)}"
            for name, value in about["priors"].items()
            if name.startswith(side)
        )
        for side in ("user", "item")
    }
    ended = about["ended"].replace("--max-iter", f"the limit of {about['max_iter']}")
    show_facts(
        {
            "fitted to": f"{about['users']:,} users x {about['items']:,} items, "
            f"{about['observed']:,} observed ({percent(1 - about['sparsity'])})",
            "trained on": {"full": "all pairs", "observed": "observed entries only",
                           "binary": "which pairs are observed"}[about["train_on"]],
            "element": element_text(about["element"]),
            "components": about["components"],
            "fits": about["fits"],
            "priors": [f"of users: {priors['user']}", f"of items: {priors['item']}"],
            "passes": f"{about['passes']}, {ended}",
            "bound": about["bound"],
            "fit took": "–" if about["seconds"] is None else f"{about['seconds']:.1f} s",
            "written": f"{about['written']} by hcpf {about['version']}",
            "on disk": readable_size(about["bytes"]),
        },
        f"Model {about['path']}",
    )  # fmt: skip
    if about["usual"]:
        show_theta(about["usual"])
    if about["interrupted"]:
        show_facts({"!": "Ctrl-C ended the fit early: it can be used but has not settled."})

"""How theta of a saved model varies: what is usual, and who is furthest from it."""

from typing import TYPE_CHECKING, Any

import typer

from hcpf.cli.screen import Field, number, show_facts, show_rows

if TYPE_CHECKING:
    from hcpf.estimator import HCPF
    from hcpf.model.typical_values import TypicalValues

_ENDS = 3  # rows from either end


def describe_theta(model: "HCPF", names: dict[str, str] | None) -> dict[str, Any] | None:
    """What is usual for users and items, as JSON; None where theta is one for all."""
    from hcpf.model.typical_values import pooled_axes, typical_values

    axes = pooled_axes(model)
    if not axes:
        return None
    return {f"{axis}s": _describe(typical_values(model, axis), model, names) for axis in axes}


def _describe(
    found: "TypicalValues", model: "HCPF", names: dict[str, str] | None
) -> dict[str, Any]:
    ids = model.users_ if found.axis == "user" else model.items_
    groups = getattr(model.posterior_, f"{found.axis}s").groups

    def row(place: Any) -> dict[str, Any]:
        one = ids[place]
        known = {} if names is None or found.axis == "user" else {"name": names.get(str(one))}
        return {
            "id": one, **known, "usual": found.value[place], "entries": found.entries[place],
            "average": found.average[place],
        }  # fmt: skip

    highest, lowest = found.extremes(_ENDS)
    return {
        "prior": {"chi": groups.chi0, "nu": groups.nu0},
        "fitted": dict(zip(("low", "median", "high"), found.levels, strict=True)),
        "new": dict(zip(("low", "median", "high"), found.new, strict=True)),
        "highest": [row(place) for place in highest],
        "lowest": [row(place) for place in lowest],
    }


def show_theta(theta: dict[str, Any]) -> None:
    """Print it for people."""
    both = len(theta) == 2
    for side, about in theta.items():
        one, other = (side[:-1], "item" if side == "users" else "user")
        partner = f", with a usual {other}" if both else ""
        facts = {
            f"of the {side}": _levels(about["fitted"]),
            f"expected of a new {one}": _levels(about["new"]),
        }
        show_facts(facts, f"\nUsual value of a pair, by {one}{partner}")
        typer.echo("")
        named = any(row.get("name") for row in about["highest"] + about["lowest"])
        fields = [
            Field("end", "", right=False),
            Field("id", one, str, right=False),
            *([Field("name", "name", lambda value: value or "–", right=False)] if named else []),
            Field("usual", "usual value"),
            Field("entries", "entries"),
            Field("average", "their average"),
        ]
        rows = [{**row, "end": end} for end in ("highest", "lowest") for row in about[end]]
        show_rows(fields, rows)


def _levels(about: dict[str, float]) -> str:
    low, middle, high = (number(float(about[name])) for name in ("low", "median", "high"))
    return f"{middle} in the median, nine in ten between {low} and {high}"

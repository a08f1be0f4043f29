"""The sections about single users: examples, and the table in which any can be looked up."""

from typing import Any

from hcpf.evaluate.protocols import explains_missing
from hcpf.model.fitted import FittedModel
from hcpf.model.profiles import LEVEL, Profile, Recommendation
from hcpf.report.markup import Markup, element, fill, joined, table
from hcpf.report.wording import NOTHING, counted, id_text, percent, short

COLUMNS = ["Item", "Probability", f"Value, {percent(LEVEL)} range"]


def examples(model: FittedModel, profiles: list[Profile], labels: list[str]) -> Markup:
    """Show a few users in full."""
    return fill(
        "examples.html",
        level=percent(LEVEL),
        basis=_basis(model),
        people=joined(_portrait(model, profile, labels) for profile in profiles),
    )


def _basis(model: FittedModel) -> str:
    if not explains_missing(model):
        return (
            "This model was trained on observed pairs only, so it does not predict how probable a "
            "pair is: items are ranked by their expected value."
        )
    if len(model.posteriors) == 1:
        return "Items are ranked by how probable it is that the user takes them."
    return "Items are ranked by the consensus of the fits on what the user takes."


def _portrait(model: FittedModel, profile: Profile, labels: list[str]) -> Markup:
    name = id_text(model.users[profile.row])
    entries = [[labels[item], short(value)] for item, value in profile.entries]
    lines = [_advised(model, advice, labels) for advice in profile.recommendations]
    summary = f"{counted(profile.n_items, 'item')}, {short(profile.total)} in all"
    return element(
        "article",
        element("header", element("h3", "User ", name), element("p", summary)),
        element(
            "div",
            element("h4", "Has (largest values)"),
            table(f"History of user {name}", ["Item", "Value"], entries, css="tight"),
        ),
        element(
            "div",
            element("h4", "Is recommended"),
            table(f"Recommendations for user {name}", COLUMNS, lines, css="tight"),
        ),
        class_="person",
    )


def _advised(model: FittedModel, advice: Recommendation, labels: list[str]) -> list[Any]:
    known = explains_missing(model)
    why = ", ".join(f"{labels[item]} ({percent(share)})" for item, share in advice.reasons)
    because = element("small", f"because of {why}") if why else ""
    between = element("small", f"{short(advice.low)} – {short(advice.high)}")
    return [
        joined([labels[advice.item], because]),
        percent(advice.probability) if known else NOTHING,
        joined([short(advice.value), between]),
    ]


def lookup(model: FittedModel, profiles: list[Profile], labels: list[str]) -> Markup:
    """Show the table of users; a click on one shows all about them."""
    header = ["User", "Items", "Total value", "Mean value", "First recommendation", "Probability"]
    rows: list[list[Any]] = []
    known = explains_missing(model)
    for profile in profiles:
        name = id_text(model.users[profile.row])
        first = profile.recommendations[0] if profile.recommendations else None
        mean = profile.total / profile.n_items if profile.n_items else 0.0
        chance = (first.probability, percent(first.probability)) if first and known else None
        rows.append(
            [
                (name, element("button", name, type="button", class_="pick")),
                (profile.n_items, f"{profile.n_items:,}"),
                (profile.total, short(profile.total)),
                (mean, short(mean) if profile.n_items else NOTHING),
                labels[first.item] if first else NOTHING,
                chance or ("", NOTHING),
            ]
        )
    return fill(
        "users.html",
        shown=f"{len(profiles):,}",
        total=f"{len(model.users):,}",
        table=table(
            "Users",
            header,
            rows,
            numeric=[False, True, True, True, False, True],
            sortable=True,
            id="users-table",
            row_attributes=[{"data_row": j} for j in range(len(rows))],
        ),
    )


def lookup_data(model: FittedModel, profiles: list[Profile], labels: list[str]) -> dict[str, Any]:
    """Return the same users as compact JSON: items once, the rest by their index."""
    indices: dict[int, int] = {}

    def index(item: int) -> int:
        return indices.setdefault(item, len(indices))

    known = explains_missing(model)
    users = [
        [
            id_text(model.users[profile.row]),
            profile.n_items,
            short(profile.total),
            [[index(item), short(value)] for item, value in profile.entries],
            [
                [
                    index(a.item),
                    percent(a.probability) if known else NOTHING,
                    short(a.value),
                    f"{short(a.low)} – {short(a.high)}",
                    [[index(item), percent(share)] for item, share in a.reasons],
                ]
                for a in profile.recommendations
            ],
        ]
        for profile in profiles
    ]
    return {"columns": COLUMNS, "items": [labels[item] for item in indices], "users": users}

"""The sections about single users: examples, and the table in which any can be looked up."""

from typing import Any

from hcpf.estimator import HCPF
from hcpf.report.markup import Markup, element, fill, joined, table
from hcpf.report.people import LEVEL, Advice, Person
from hcpf.report.wording import NOTHING, counted, id_text, percent, short

ADVICE_COLUMNS = ["Item", "Probability", f"Value, {percent(LEVEL)} range"]


def examples(model: HCPF, people: list[Person], labels: list[str]) -> Markup:
    """A few users in full."""
    return fill(
        "examples.html",
        level=percent(LEVEL),
        basis=_basis(model),
        people=joined(_portrait(model, person, labels) for person in people),
    )


def _basis(model: HCPF) -> str:
    if model.train_on == "observed":
        return (
            "This model was trained on observed pairs only, so it says nothing about how probable "
            "a pair is: items are ranked by their expected value."
        )
    if len(model.posteriors_) == 1:
        return "Items are ranked by how probable it is that the user takes them."
    return "Items are ranked by the consensus of the fits on what the user takes."


def _portrait(model: HCPF, person: Person, labels: list[str]) -> Markup:
    name = id_text(model.users_[person.row])
    history = [[labels[item], short(value)] for item, value in person.history]
    lines = [_advised(model, advice, labels) for advice in person.advice]
    summary = f"{counted(person.n_items, 'item')}, {short(person.total)} in all"
    return element(
        "article",
        element("header", element("h3", "User ", name), element("p", summary)),
        element(
            "div",
            element("h4", "Has (largest values)"),
            table(f"History of user {name}", ["Item", "Value"], history, css="tight"),
        ),
        element(
            "div",
            element("h4", "Is recommended"),
            table(f"Recommendations for user {name}", ADVICE_COLUMNS, lines, css="tight"),
        ),
        class_="person",
    )


def _advised(model: HCPF, advice: Advice, labels: list[str]) -> list[Any]:
    known = model.train_on != "observed"
    why = ", ".join(f"{labels[item]} ({percent(share)})" for item, share in advice.reasons)
    because = element("small", f"because of {why}") if why else ""
    between = element("small", f"{short(advice.low)} – {short(advice.high)}")
    return [
        joined([labels[advice.item], because]),
        percent(advice.probability) if known else NOTHING,
        joined([short(advice.response), between]),
    ]


def lookup(model: HCPF, people: list[Person], labels: list[str]) -> Markup:
    """The table of users; a click on one shows all about them."""
    header = ["User", "Items", "Total value", "Mean value", "First recommendation", "Probability"]
    rows: list[list[Any]] = []
    known = model.train_on != "observed"
    for person in people:
        name = id_text(model.users_[person.row])
        first = person.advice[0] if person.advice else None
        mean = person.total / person.n_items if person.n_items else 0.0
        chance = (first.probability, percent(first.probability)) if first and known else None
        rows.append(
            [
                (name, element("button", name, type="button", class_="pick")),
                (person.n_items, f"{person.n_items:,}"),
                (person.total, short(person.total)),
                (mean, short(mean) if person.n_items else NOTHING),
                labels[first.item] if first else NOTHING,
                chance or ("", NOTHING),
            ]
        )
    return fill(
        "users.html",
        shown=f"{len(people):,}",
        total=f"{len(model.users_):,}",
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


def lookup_data(model: HCPF, people: list[Person], labels: list[str]) -> dict[str, Any]:
    """The same users as compact JSON: items once, and everything else by their place in it."""
    places: dict[int, int] = {}

    def place(item: int) -> int:
        return places.setdefault(item, len(places))

    known = model.train_on != "observed"
    users = [
        [
            id_text(model.users_[person.row]),
            person.n_items,
            short(person.total),
            [[place(item), short(value)] for item, value in person.history],
            [
                [
                    place(a.item),
                    percent(a.probability) if known else NOTHING,
                    short(a.response),
                    f"{short(a.low)} – {short(a.high)}",
                    [[place(item), percent(share)] for item, share in a.reasons],
                ]
                for a in person.advice
            ],
        ]
        for person in people
    ]
    return {"columns": ADVICE_COLUMNS, "items": [labels[item] for item in places], "users": users}

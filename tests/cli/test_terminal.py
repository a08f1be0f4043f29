"""What a person sees in a terminal of 80 columns."""

import io
import re
import sys
from dataclasses import replace

import pytest
import typer

from hcpf import HCPF, Interactions
from hcpf.cli.app import app
from hcpf.data.words import Words

LONG = "SET OF {} RETROSPOT CAKE CASES WITH A RIBBON, ASSORTED COLORS"
PEOPLE, PRODUCTS = ("Ann", "Bob", "Cy", "Dee", "Eve"), tuple(f"p{i}" for i in range(6))


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def screen(monkeypatch, tmp_path):
    """Run a command in this process as if at a terminal; return its exit code and its lines.

    It runs in ``tmp_path``, so that the names of files are short.
    """
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        terminal = Terminal()
        monkeypatch.setattr(sys, "stdout", terminal)
        monkeypatch.setattr(sys, "stderr", terminal)
        monkeypatch.setenv("COLUMNS", "80")
        monkeypatch.setenv("TERM", "dumb")
        code = 0
        try:
            code = app([str(word) for word in arguments], standalone_mode=False) or 0
        except typer.Exit as ending:
            code = ending.exit_code
        lines = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", terminal.getvalue()).splitlines()
        assert max(map(len, lines), default=0) <= 80, lines
        return code, lines

    return run


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """A model of a shop with long names, and the names; each person lacks a product, Zoe none."""
    pairs = [(who, what) for who in (*PEOPLE, "Zoe") for what in PRODUCTS]
    lacking = set(zip(PEOPLE, PRODUCTS, strict=False)) | {("Ann", "p3")}
    pairs = [pair for pair in pairs if pair not in lacking]
    values = [1000.0 + 250.0 * (k % 7) for k in range(len(pairs))]
    data = Interactions.from_arrays(*map(list, zip(*pairs, strict=True)), values)
    folder = tmp_path_factory.mktemp("shop")
    settings = {"element": "gamma", "vary_by": "both", "n_fits": 2, "max_iter": 5}
    HCPF(2, **settings, random_state=0).fit(data).save(folder / "model")
    names = folder / "names.csv"
    names.write_text("id,name\n" + "".join(f'{i},"{LONG.format(i)}"\n' for i in PRODUCTS))
    return folder / "model", names


def test_details_fit_and_no_number_is_cut(screen, shop):
    model, names = shop
    code, lines = screen("recommend", model, "Ann", "Bob", "--details", "--names", names)
    text = "\n".join(lines)
    assert code == 0
    assert "…" not in text
    assert "User Ann, 4 entries" in text
    assert "User Bob, 5 entries" in text
    rows = [line.split() for line in lines if re.match(r"\s+\d+  SET OF", line)]
    assert len(rows) == 3
    assert all(re.search(r"\d%  +[\d,]+  [\d,.]+ – [\d,]+  +\d  ", " ".join(lines)) for _ in rows)


def test_predictions_say_on_how_many_entries_they_rest(screen, shop):
    _, lines = screen("predict", shop[0], "--user", "Ann", "--item", "p0", "--item", "p5")
    assert [line.split()[-3:] for line in lines if " p" in line] == [
        ["4", "/", "5"],
        ["4", "/", "6"],
    ]
    _, lines = screen("explain", shop[0], "Ann", "p0")
    assert "  entries user / item  4 / 5" in lines


def test_explain_where_the_entries_of_the_item_are_not_known(screen, shop, tmp_path):
    new = HCPF.load(shop[0]).fold_in({"p0": 1000.0, "p1": 1250.0})
    new.save(tmp_path / "new")
    code, lines = screen("explain", "new", "new", "p2")
    assert code == 0
    assert "  entries user / item  2 / –" in lines


def test_no_id_is_cut(screen, tmp_path):
    user, item = "customer-0000000000017", "9783055059367-hardcover"
    data = Interactions.from_arrays([user, user, "b"], [item, "y", item], [1234.5, 2000.25, 1800.0])
    HCPF(1, element="gamma", n_fits=1, max_iter=2).fit(data).save(tmp_path / "model")
    _, lines = screen("predict", "model", "--user", user, "--item", item)
    first = next(k for k, line in enumerate(lines) if "───" in line) + 1
    cells = [re.findall(r"[a-z\d-]{6,}", line) for line in lines[first:]]
    shown = ["".join(words) for words in zip(*(row for row in cells if row), strict=True)]
    assert shown == [user, item]


def test_a_pair_that_is_observed_is_called_so(screen, shop):
    said = "  observed             yes: the pair's own entry is below, too"
    assert said in screen("explain", shop[0], "Ann", "p1")[1]
    assert said not in screen("explain", shop[0], "Ann", "p0")[1]


def test_unused_components_are_listed_once(screen, shop, tmp_path):
    data = HCPF.load(shop[0]).model_.data
    HCPF(12, element="gamma", n_fits=1, max_iter=60, random_state=0).fit(data).save(tmp_path / "m")
    _, lines = screen("components", "m")
    assert re.search(r"\d more have the same items as one of these", " ".join(lines))
    rows = [line.split(maxsplit=3)[3] for line in lines if re.match(r" +\d+ +[\d.]+%", line)]
    assert len(rows) == len(set(rows)) < 12


def test_compared_models_can_be_told_apart(screen, tmp_path):
    rows = [f"{u},{i},{1.5 + (3 * u + i) % 7}" for u in range(20) for i in range(12) if (u + i) % 3]
    (tmp_path / "sales.csv").write_text("\n".join(["member,film,spend", *rows]) + "\n")
    options = ("--only", "inverse_gaussian", "-K", 1, "--max-iter", 2, "--quick")
    _, lines = screen("compare", "sales.csv", *options)
    assert not any("per …" in line or "user …" in line for line in lines)
    assert any(line.lstrip().startswith("and item") for line in lines)


def test_somebody_who_has_everything(screen, shop):
    code, lines = screen("recommend", shop[0], "Zoe")
    assert code == 0
    assert " ".join(lines) == (
        "Nothing to recommend: User Zoe has an entry for every item. To rank those as well: --seen."
    )


def test_errors_break_between_words(screen, tmp_path):
    path = tmp_path / "sales.csv"
    path.write_text(
        "InvoiceNo,CustomerID,StockCode,Amount\n1,c1,a,-5\n2,,a,5\n3,c2,b,3\n4,c2,a,7\n"
    )
    code, lines = screen("fit", path.name, "-o", "unwritten")
    assert code == 1
    words = " ".join(lines).split()
    assert {"--drop-blank-ids", "--returns", "net", "keep."} <= set(words)


def test_long_facts_break_between_words(screen, tmp_path):
    path = tmp_path / "ratings.csv"
    path.write_text(
        "member,film,stars\n"
        + "".join(f"{u},{i},{1 + (u + i) % 5}\n" for u in range(9) for i in range(9) if (u * i) % 4)
    )
    _, lines = screen("info", path.name)
    assert any("negative_binomial" in line for line in lines)
    assert not any("Traceback" in line for line in lines)


@pytest.mark.parametrize("command", ["", "fit", "recommend", "predict", "info", "shard"])
def test_help_shows_no_types_of_python(screen, command):
    _, lines = screen(*([command] if command else []), "--help")
    text = "\n".join(lines)
    assert "--help" in text
    assert "bool" not in text
    assert "list[" not in text


def test_one_user_is_called_one(screen, tmp_path):
    path = tmp_path / "one.csv"
    path.write_text("name,product,spent\nAnn,tea,3\nAnn,milk,2\nAnn,jam,4\n")
    _, lines = screen("info", path.name)
    assert any("1 user x 3 items" in line for line in lines)
    assert any("there is one user only" in line for line in lines)


def test_an_amount_per_row_is_offered(screen, tmp_path):
    path = tmp_path / "lines.csv"
    path.write_text("customer,product,Quantity,UnitPrice\nAnn,tea,2,£1.50\nBob,tea,1,£2.00\n")
    _, lines = screen("info", path.name)
    assert "For the amount of each row instead: --value 'Quantity*UnitPrice'." in lines
    _, lines = screen("info", path.name, "--value", "Quantity*UnitPrice")
    assert any("from 2 to 3" in line for line in lines)
    path.write_text("customer,product,Qty,Price,Line total\nAnn,tea,2,£1.50,£3\nBob,tea,1,£2,£2\n")
    _, lines = screen("info", path.name)
    assert "For the amount of each row instead: --value 'Line total'." in lines


def test_probabilities_are_said_to_refer_to_a_period(screen, shop, tmp_path):
    model = HCPF.load(shop[0]).model_
    words = Words("person", "product", "spend", period="1 May to 3 June 2024")
    replace(model, words=words).save(tmp_path / "dated")
    said = "A probability refers to a period as long as that of the data (1 May to 3 June 2024)."
    pair = "--user", "Ann", "--item", "p0"
    for command in (
        ("recommend", "dated", "Ann"),
        ("recommend", "dated", "--all", "-o", "lists.csv"),
        ("predict", "dated", *pair),
        ("predict", "dated", *pair, "-o", "pairs.csv"),
        ("explain", "dated", "Ann", "p0"),
        ("info", "dated", "--user", "Ann"),
    ):
        assert said in " ".join(screen(*command)[1]), command
    assert said not in " ".join(screen("recommend", shop[0], "Ann")[1])


def test_the_name_of_a_column_does_not_flood_the_terminal(screen, tmp_path):
    (tmp_path / "odd.csv").write_text(f"user,item,{'x ' * 50_000}\nAnn,tea,2\n")
    _, lines = screen("fit", "odd.csv", "-o", "model", "--user", "none such")
    assert 0 < sum(map(len, lines)) < 10_000


def test_bad_rows_are_listed_between_words(screen, tmp_path):
    (tmp_path / "lines.csv").write_text("customer,product,spend\nAnn,tea,2\n,tea,1\nBob,tea,3\n")
    _, lines = screen("info", "lines.csv")
    first = next(k for k, line in enumerate(lines) if line.startswith("Problems"))
    heading = "Problems (a fit refuses these rows; the numbers below assume the options named here)"
    assert " ".join(lines[first : first + 2]) == heading


def all_commands(command, *names):
    yield names
    for name, one in getattr(command, "commands", {}).items():
        yield from all_commands(one, *names, name)


@pytest.mark.parametrize("names", list(all_commands(typer.main.get_command(app))), ids=" ".join)
def test_help_shows_no_python_types(screen, names):
    code, lines = screen(*names, "--help")
    assert code == 0
    assert not re.search(r"<(str|int|float|path|bool)\b|list\[|\bTEXT\b", "\n".join(lines))

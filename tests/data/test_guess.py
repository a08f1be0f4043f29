"""Which columns are taken for users, items and values."""

import pytest

from hcpf.cli.columns import Column, guess
from hcpf.cli.peek import peek
from hcpf.errors import InputError


def table(text):
    """Columns as "name:kind name:kind"."""
    return [Column(*part.split(":")) for part in text.split()]


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ("customer:text product:text spend:real", "customer product spend"),
        ("userId:whole movieId:whole rating:real timestamp:whole", "userId movieId rating"),
        ("spend:real sku:text client_id:whole", "client_id sku spend"),
        ("InvoiceNo:text StockCode:text Quantity:whole CustomerID:whole",
         "CustomerID StockCode Quantity"),
        ("donor:text cause:text amount:real date:time", "donor cause amount"),
        ("cell:text gene:text expression:real", "cell gene expression"),
        ("userid:text songs:text plays:whole", "userid songs plays"),
        ("User-ID:whole ISBN:text Book-Rating:whole", "User-ID ISBN Book-Rating"),
        ("item_price:real item:text user:text", "user item item_price"),
        ("a:text b:text c:real", "a b c"),
        ("f0:whole f1:whole f2:whole f3:whole", "f0 f1 f2"),
        ("x:real a:text b:whole timestamp:whole y:real", "a b y"),
        ("user:whole item:whole timestamp:whole", "user item None"),
        ("user:text item:text", "user item None"),
        ("player:text hours:real game:text", "player game hours"),
        ("rating:whole who:text what:text", "who what rating"),
        ("who:text amount:real movie:text", "who movie amount"),
        ("user:text item:text rating:text", "user item rating"),
        ("row:whole who:text what:text paid:real", "who what paid"),
        ("index:whole acct:text line_code:whole gbp:real", "acct line_code gbp"),
        ("invoice:whole client:text thing:text total:real", "client thing total"),
        ("sku:text gbp:real cust:text", "cust sku gbp"),
    ],
)  # fmt: skip
def test_guesses(columns, expected):
    found = guess(table(columns), None, None, None)
    assert f"{found.user} {found.item} {found.response}" == expected


def test_named_columns_are_kept_and_not_taken_twice():
    columns = table("user:text item:text rating:real hours:real")
    found = guess(columns, "item", None, "hours")
    assert (found.user, found.item, found.response) == ("item", "user", "hours")
    assert guess(columns, "0", "1", "3").response == "hours"
    assert guess(columns, None, None, "none").response is None
    assert "every row counts 1" in str(guess(columns, None, None, "none"))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("nobody", None, None), "--user nobody: there is no such column"),
        (("9", None, None), "--user 9"),
        ((None, None, "nothing"), "--response nothing"),
    ],
)
def test_unknown_columns_are_listed(given, message):
    with pytest.raises(InputError, match=message) as error:
        guess(table("a:text b:text c:real"), *given)
    assert "a, b, c" in str(error.value)


def test_too_few_ids_ask_for_the_option():
    with pytest.raises(InputError, match="pass --item COLUMN"):
        guess(table("user:text rating:real"), None, None, None)


@pytest.mark.parametrize(
    ("text", "header", "names"),
    [
        ("user,item,rating\n1,2,3.5\n", True, ["user", "item", "rating"]),
        ("1,2,3.5\n4,5,2.0\n", False, ["f0", "f1", "f2"]),
        ("a,b\nx,y\n", True, ["a", "b"]),
        ("ann,tea,3\nbob,milk,4\n", False, ["f0", "f1", "f2"]),
    ],
)
def test_headers_are_noticed(tmp_path, text, header, names):
    path = tmp_path / "a.csv"
    path.write_text(text)
    layout = peek(path, None, None)
    assert (layout.header, [column.name for column in layout.columns]) == (header, names)


@pytest.mark.parametrize(
    ("values", "response"),
    [(["3.50", "n/a", "£4.20", "9.99"], "paid"), (["good", "bad", "3.5", "fair"], None)],
)
def test_numbers_with_a_few_that_are_none_are_a_value(tmp_path, values, response):
    path = tmp_path / "sales.csv"
    rows = [f"c{j},p{j},{value}" for j, value in enumerate(values)]
    path.write_text("\n".join(["who,what,note" if response is None else "who,what,paid", *rows]))
    layout = peek(path, None, None)
    assert guess(layout.columns, None, None, None).response == response


def test_columns_that_might_be_the_value_are_named(run, tmp_path):
    path = tmp_path / "sales.csv"
    path.write_text("who,what,note\na,x,nice\nb,y,bad\n")
    assert (
        "Not used: note. If one is the value: --response NAME." in run(["info", str(path)]).stderr
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [("user,item,spend\n", "There are no rows"), ("user,user,spend\na,b,3.5\n", "more than once")],
)
def test_files_without_rows_or_with_columns_of_one_name(fails, tmp_path, text, message):
    path = tmp_path / "sales.csv"
    path.write_text(text)
    assert message in fails("info", path)

"""Which columns are taken for users, items and values."""

import pytest

from hcpf.data.files import FileColumn, open_file
from hcpf.data.guess import guess_columns
from hcpf.errors import InputError


def table(text):
    """Columns as "name:kind name:kind"."""
    return [FileColumn(*part.split(":")) for part in text.split()]


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ("customer:text product:text spend:real", "customer product spend"),
        ("userId:integer movieId:integer rating:real timestamp:integer", "userId movieId rating"),
        ("spend:real sku:text client_id:integer", "client_id sku spend"),
        ("InvoiceNo:text StockCode:text Quantity:integer CustomerID:integer",
         "CustomerID StockCode Quantity"),
        ("donor:text cause:text amount:real date:time", "donor cause amount"),
        ("cell:text gene:text expression:real", "cell gene expression"),
        ("userid:text songs:text plays:integer", "userid songs plays"),
        ("User-ID:integer ISBN:text Book-Rating:integer", "User-ID ISBN Book-Rating"),
        ("item_price:real item:text user:text", "user item item_price"),
        ("a:text b:text c:real", "a b c"),
        ("f0:integer f1:integer f2:integer f3:integer", "f0 f1 f2"),
        ("x:real a:text b:integer timestamp:integer y:real", "a b y"),
        ("user:integer item:integer timestamp:integer", "user item None"),
        ("user:text item:text", "user item None"),
        ("player:text hours:real game:text", "player game hours"),
        ("rating:integer who:text what:text", "who what rating"),
        ("who:text amount:real movie:text", "who movie amount"),
        ("user:text item:text rating:text", "user item rating"),
        ("row:integer who:text what:text paid:real", "who what paid"),
        ("index:integer acct:text line_code:integer gbp:real", "acct line_code gbp"),
        ("invoice:integer client:text thing:text total:real", "client thing total"),
        ("sku:text gbp:real cust:text", "cust sku gbp"),
        ("Bestelldatum:time Kunde:text Artikel:integer Titel:text Menge:integer Betrag:real",
         "Kunde Artikel Betrag"),
        ("Commande:integer Client:text Produit:text Quantité:integer Montant:real",
         "Client Produit Montant"),
        ("Importe:real Cantidad:integer Artículo:text Cliente:integer Pedido:text",
         "Cliente Artículo Importe"),
    ],
)  # fmt: skip
def test_guesses(columns, expected):
    found = guess_columns(table(columns))
    assert f"{found.user} {found.item} {found.value}" == expected


def test_named_columns_are_kept_and_not_taken_twice():
    columns = table("user:text item:text rating:real hours:real")
    found = guess_columns(columns, "item", None, "hours")
    assert (found.user, found.item, found.value) == ("item", "user", "hours")
    assert guess_columns(columns, "0", "1", "3").value == "hours"
    assert guess_columns(columns, None, None, "none").value is None
    assert "every row counts as 1" in str(guess_columns(columns, None, None, "none"))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("nobody", None, None), "user='nobody': there is no such column"),
        (("9", None, None), "user='9'"),
        ((None, None, "nothing"), "value='nothing'"),
    ],
)
def test_unknown_columns_are_listed(given, message):
    with pytest.raises(InputError, match=message) as error:
        guess_columns(table("a:text b:text c:real"), *given)
    assert "a, b, c" in str(error.value)


def test_too_few_ids_ask_for_the_column():
    with pytest.raises(InputError, match="pass item=COLUMN"):
        guess_columns(table("user:text rating:real"))


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
    file = open_file(path)
    assert (file.has_header, file.names) == (header, names)


@pytest.mark.parametrize(
    ("values", "value"),
    [(["3.50", "n/a", "£4.20", "9.99"], "paid"), (["good", "bad", "3.5", "fair"], None)],
)
def test_numbers_with_a_few_that_are_none_are_a_value(tmp_path, values, value):
    path = tmp_path / "sales.csv"
    rows = [f"c{j},p{j},{value}" for j, value in enumerate(values)]
    path.write_text("\n".join(["who,what,note" if value is None else "who,what,paid", *rows]))
    assert guess_columns(open_file(path).columns).value == value

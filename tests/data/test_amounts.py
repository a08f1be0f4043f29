"""Amounts as people write them: the number they mean, or an error that says what to do."""

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hcpf.data import Interactions
from hcpf.data.amounts import is_plain, mostly_amounts, parse_amounts
from hcpf.errors import InputError


def parse(*texts, decimal=None):
    return parse_amounts("Amount", pa.array(texts), decimal)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("£1,234.50", 1234.5),
        ("$220,000", 220_000),
        ("5,95", 5.95),
        ("1.234,50 EUR", 1234.5),
        ("(12.00)", -12),
        ("($1,200.00)", -1200),
        ("1'234", 1234),
        ("CHF 1’234.50", 1234.5),
        ("1 234,50", 1234.5),
        ("1\u202f234,50\u00a0€", 1234.5),
        ("£\u00a01,234.50", 1234.5),
        ("-\u2009€\u202f5,00", -5),
        ("-£5.00", -5),
        ("£-5.00", -5),
        ("5.00-", -5),
        ("−5.00", -5),  # U+2212, which spreadsheets write
        ("12,5%", 12.5),
        ("US$ 5.00", 5),
        ("R$ 1.234,56", 1234.56),
        ("Rs. 12,34,567.00", 1_234_567),
        ("1 234 kr", 1234),
        ("0,950", 0.95),
        ("1234,567", 1234.567),
        ("1,234,567", 1_234_567),
        (" 7 ", 7),
        (".5", 0.5),
        ("5.", 5),
        ("+5", 5),
        ("1e5", 100_000),
        ("1.5E-3", 0.0015),
        ("1,5e-3", 0.0015),
        ("1.234e3", 1234),
    ],
)
def test_one_amount(text, number):
    parsed = parse(text)
    assert parsed.values.tolist() == [number]
    assert not parsed.not_numbers.any()


@pytest.mark.parametrize(
    "text",
    ["n/a", "-", "(5", "5)", "--5", "(-5)", "5k", "1.2M", "1.2.2010", "1,23,4", "1,,234", "12:30",
     "1 2", "1 234 56", "£", "e5", "5 apples", "0x10", "1'23", "1.234.5", "inf", "½"],
)  # fmt: skip
def test_no_amount(text):
    parsed = parse(text, "1.50")
    assert parsed.not_numbers.tolist() == [True, False]
    assert np.isnan(parsed.values[0])


@pytest.mark.parametrize(
    ("texts", "numbers"),
    [
        (["1,234", "5.5"], [1234, 5.5]),
        (["1,234", "5,5"], [1.234, 5.5]),
        (["1,234", "1,234,567"], [1234, 1_234_567]),
        (["1.234", "1.234,5"], [1234, 1234.5]),
        (["1.234", "0.5"], [1.234, 0.5]),
        (["$1,234", "$950"], [1234, 950]),
        (["1.234 €", "950 €"], [1234, 950]),
        (["950", "12"], [950, 12]),
        (["£5.00", "3"], [5, 3]),
    ],
)
def test_the_column_decides_the_decimal_mark(texts, numbers):
    assert parse(*texts).values.tolist() == numbers
    assert parse(*reversed(texts)).values.tolist() == numbers[::-1]


@pytest.mark.parametrize("texts", [["1,234"], ["1.234", "950"], ["1,234", "2.345"], ["1.234 KWD"]])
def test_undecided_columns_name_the_option(texts):
    with pytest.raises(InputError, match=r"thousands or decimals.*Pass decimal='\.' or ','"):
        parse(*texts)


def test_a_decimal_mark_that_is_given():
    assert parse("1,234", "950", decimal=",").values.tolist() == [1.234, 950]
    assert parse("1,234", "950", decimal=".").values.tolist() == [1234, 950]
    wrong = parse("5.95", "1,5", decimal=",")
    assert wrong.not_numbers.tolist() == [True, False]


def test_two_decimal_marks():
    with pytest.raises(
        InputError, match=r"decimal points.*'5\.5'.*decimal commas.*'6,7'.*decimal="
    ):
        parse("5.5", "6,7")


@pytest.mark.parametrize("texts", [["£5", "€3"], ["5 EUR", "5 USD"], ["12%", "3"], ["5 %", "$3"]])
def test_different_units(texts):
    with pytest.raises(InputError, match="different units, such as"):
        parse(*texts)


@pytest.mark.parametrize(
    ("texts", "remark"),
    [
        (["£5", "£1,234.50"], "Amount: read as money, e.g. '£1,234.50' = 1234.5."),
        (["5,95"], "Amount: read as numbers, e.g. '5,95' = 5.95."),
        (["12,5%"], "Amount: read as percentages, e.g. '12,5%' = 12.5."),
        (["5", "6.5", "1e3"], None),
    ],
)
def test_what_was_understood(texts, remark):
    assert parse(*texts).remark == remark


def test_numbers_that_floats_cannot_hold():
    parsed = parse("9007199254740993", "9007199254740992", "1e-400", "0.0", "1e300")
    assert parsed.inexact.tolist() == [True, False, False, False, False]
    assert parsed.vanished.tolist() == [False, False, True, False, False]


STYLES = {
    "plain": lambda n: f"{n}",
    "english": lambda n: f"£{n:,}",
    "german": lambda n: f"{n:,}".translate(str.maketrans(",.", ".,")) + " EUR",
    "swiss": lambda n: f"CHF {n:,}".replace(",", "'"),
    "french": lambda n: f"{n:,}".replace(",", "\u202f").replace(".", ",") + " €",
    "accounting": lambda n: f"(${-n:,})" if n < 0 else f"${n:,}",
}


@given(
    st.lists(st.decimals(-(10**9), 10**9, places=2), min_size=1, max_size=20),
    st.sampled_from(sorted(STYLES)),
)
def test_any_amount_in_any_style(numbers, style):
    texts = [STYLES[style](Decimal(number)) for number in numbers]
    assert parse(*texts).values.tolist() == [float(number) for number in numbers]


@pytest.mark.parametrize(
    ("texts", "plain"),
    [
        (["1", "2.5", "-3e5"], True),
        (["1.234", "2.345"], True),
        (["950", "1.234"], False),  # thousands, perhaps
        (["950", "1.234", "0.5"], True),
        (["1", "£5"], False),
        (["1,5"], False),
        ([], True),
    ],
)
def test_plain_columns_are_left_to_arrow(texts, plain):
    assert is_plain(pa.array(texts, pa.string())) == plain


@pytest.mark.parametrize(
    ("texts", "amounts"),
    [(["£5", "n/a", "$3"], True), (["5,95", "6,10"], True), (["A1", "B2"], False),
     (["12", "13"], False), (["1.12.2010", "2.12.2010"], False), ([], False), (["", ""], False)],
)  # fmt: skip
def test_columns_of_amounts_are_recognized(texts, amounts):
    assert mostly_amounts(pa.array(texts, pa.string())) == amounts


# -- in files and frames ---------------------------------------------------------------------------

COLUMNS = {"user": "who", "item": "what", "value": "Amount"}


def test_money_in_a_file(tmp_path, caplog):
    path = tmp_path / "sales.csv"
    path.write_text('who,what,Amount\nann,tea,"£1,234.50"\nbob,tea,£5.00\n')
    caplog.set_level("INFO", "hcpf")
    assert Interactions.read(path, **COLUMNS).values.tolist() == [1234.5, 5.0]
    assert "Amount: read as money, e.g. '£1,234.50' = 1234.5." in caplog.text


def test_money_in_a_frame():
    frame = pa.table({"who": ["a", "b"], "what": ["x", "x"], "Amount": ["1.234,50", "5,00"]})
    assert Interactions.from_frame(frame, **COLUMNS).values.tolist() == [1234.5, 5.0]
    category = frame.set_column(2, "Amount", frame["Amount"].dictionary_encode())
    assert Interactions.from_frame(category, **COLUMNS).values.tolist() == [1234.5, 5.0]


def test_money_that_begins_late_in_a_file(tmp_path):
    path = tmp_path / "sales.csv"
    plain = [f"u{row},x,{row}.5" for row in range(200_000)]
    path.write_text("\n".join(["who,what,Amount", *plain, 'last,x,"£1,000.00"']))
    data = Interactions.read(path, **COLUMNS)
    assert data.n_observed == 200_001
    assert data.values.max() == 199_999.5
    assert data.values[data.users == "last"] == 1000.0


def test_bad_amounts_are_listed_with_their_rows(tmp_path):
    path = tmp_path / "sales.csv"
    values = ["5.00", "n/a", "?", "£3", "none", "x", "tba"]
    path.write_text("\n".join(["who,what,Amount", *(f"u{v},x,{v}" for v in values)]))
    with pytest.raises(InputError) as error:
        Interactions.read(path, **COLUMNS)
    assert str(error.value) == (
        f"{path}: Column 'Amount' has no value: 'n/a' in row 3 and 'none' in row 6 (row 1 is the "
        "header). Pass drop_blank_values=True to drop such rows. Column 'Amount' has values that "
        "are not numbers: '?' in row 4, 'x' in row 7 and 'tba' in row 8 (row 1 is the header). "
        "Correct or drop such rows."
    )


def test_rows_are_numbered_as_in_a_spreadsheet_despite_blank_lines(tmp_path):
    path = tmp_path / "sales.csv"
    path.write_text('\nwho,what,Amount\n\n"a\nb",x,1\n\n\nc,x,?\n')
    with pytest.raises(InputError, match=r"'\?' in row 7"):
        Interactions.read(path, **COLUMNS)


@pytest.mark.parametrize(
    ("text", "message"),
    [("9007199254740993", "cannot hold exactly: '9007199254740993' in row 3"),
     ("1e-400", "make them 0: '1e-400' in row 3"), ("0." + "0" * 330 + "1", "make them 0")],
)  # fmt: skip
def test_numbers_are_not_rounded_silently(tmp_path, text, message):
    path = tmp_path / "sales.csv"
    path.write_text(f"who,what,Amount\na,x,1\nb,x,{text}\n")
    with pytest.raises(InputError, match=message):
        Interactions.read(path, **COLUMNS)


def test_large_numbers_that_floats_hold(tmp_path):
    path = tmp_path / "sales.csv"
    path.write_text(f"who,what,Amount\na,x,{2**60}\nb,x,1e300\nc,x,0\nd,x,1e-200\n")
    assert Interactions.read(path, **COLUMNS).values.tolist() == [2.0**60, 1e300, 0.0, 1e-200]


@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
def test_large_integers_of_typed_columns(dtype):
    values = np.array([1, 2**53 + 1], dtype)
    frame = pa.table({"who": ["a", "b"], "what": ["x", "x"], "Amount": values})
    with pytest.raises(InputError, match="cannot hold exactly: '9007199254740993' in row 2"):
        Interactions.from_frame(frame, **COLUMNS)
    with pytest.raises(InputError, match="integer 9007199254740993"):
        Interactions.from_matrix(values[None, :])
    exact = pa.table({"who": ["a"], "what": ["x"], "Amount": np.array([2**60], dtype)})
    assert Interactions.from_frame(exact, **COLUMNS).values.tolist() == [2.0**60]


def test_an_example_shows_no_escapes():
    remark = parse("1\u202f234,50\u00a0€").remark
    assert remark == "Amount: read as money, e.g. '1 234,50 €' = 1234.5."

"""Files in the forms that people have: encodings, spreadsheets, JSON lines, databases."""

import datetime
import json
import re
import sqlite3
import zipfile
from contextlib import closing

import pyarrow as pa
import pytest
import xlsxwriter
from pyarrow import parquet

from data.table_files import by_pair, packed
from hcpf.data import Interactions
from hcpf.data.files import open_file
from hcpf.data.files.base import Columns
from hcpf.data.read_options import ReadOptions
from hcpf.data.shards.folder import Shards
from hcpf.errors import InputError
from hcpf.model.tables import Table

HEADER = ["Customer", "Product", "Amount"]
COLUMNS = dict(zip(("user", "item", "value"), HEADER, strict=True))
ROWS = [["Zoë", "Café", 3.5], ["Zoë", "tea", 1234.5], ["bob", "tea", 2.0]]
EXPECTED = {("Zoë", "Café"): 3.5, ("Zoë", "tea"): 1234.5, ("bob", "tea"): 2.0}
TEXT = "\n".join(",".join(map(str, row)) for row in [HEADER, *ROWS])


def read(path, **options):
    return by_pair(Interactions.read(path, **{**COLUMNS, **options}))


# -- encodings -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "encoding",
    ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp1252", "latin-1"],
)
@pytest.mark.parametrize("ending", [".csv", ".csv.gz"])
def test_encodings_are_detected(tmp_path, encoding, ending):
    path = tmp_path / f"sales{ending}"
    content = TEXT.encode(encoding)
    path.write_bytes(packed(content, ".gz") if ending.endswith("gz") else content)
    assert read(path) == EXPECTED


def test_what_was_detected_is_said(tmp_path):
    path = tmp_path / "sales.csv"
    path.write_bytes(TEXT.encode("cp1252"))
    assert open_file(path).remarks == [
        "sales.csv: read as Windows-1252, because it is not UTF-8, e.g. 'Zoë' (otherwise pass "
        "encoding=...)."
    ]
    path.write_bytes(TEXT.encode("utf-16"))
    assert open_file(path).remarks[0].startswith("sales.csv: read as UTF-16, e.g. 'Zoë'")
    path.write_bytes(TEXT.encode())
    assert open_file(path).remarks == []


def test_another_encoding_is_noticed_late_in_a_file(tmp_path):
    path = tmp_path / "sales.csv"
    rows = "".join(f"u{row},tea,1\n" for row in range(200_000))
    path.write_bytes(f"Customer,Product,Amount\n{rows}Zoë,Café,£2.00\n".encode("cp1252"))
    assert path.stat().st_size > 2 << 20
    found = read(path)
    assert len(found) == 200_001
    assert found["Zoë", "Café"] == 2.0


def test_no_row_is_lost_by_decoding_and_no_copy_stays(tmp_path, monkeypatch):
    """Arrow's decoding lost rows in one of fifty reads, and left threads that never ended."""
    copies = tmp_path / "copies"
    copies.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(copies))
    path = tmp_path / "sales.csv"
    rows = "".join(f"u{row},tea,£{row}.50\n" for row in range(100_000))
    path.write_bytes(f"Customer,Product,Amount\n{rows}".encode("cp1252"))
    columns = Columns("Customer", "Product", "Amount")
    for _ in range(20):
        file = open_file(path)
        assert sum(batch.num_rows for batch, _ in file.batches(columns)) == 100_000
        assert len(list(copies.iterdir())) == 1
        del file
        assert list(copies.iterdir()) == []


def test_an_encoding_that_is_given(tmp_path):
    path = tmp_path / "sales.csv"
    path.write_bytes(TEXT.encode("mac-roman"))
    assert read(path, encoding="mac-roman") == EXPECTED
    with pytest.raises(InputError, match=r"UTF8|utf-8"):
        read(path, encoding="utf-8")
    with pytest.raises(InputError, match="encoding='utf-9' is unknown"):
        read(path, encoding="utf-9")


def test_money_in_cp1252_has_a_pound_sign(tmp_path):
    path = tmp_path / "sales.csv"
    path.write_bytes("Customer,Product,Amount\na,x,£3.50\n".encode("cp1252"))
    assert read(path) == {("a", "x"): 3.5}


# -- headers ---------------------------------------------------------------------------------------


def test_a_header_of_two_megabytes(tmp_path):
    path = tmp_path / "wide.csv"
    path.write_text(f"Customer,Product,Amount,{'x' * (2 << 20)}\na,x,1,2\n")
    assert read(path) == {("a", "x"): 1.0}


def test_a_header_of_half_a_million_columns(tmp_path):
    path = tmp_path / "wide.csv"
    names = ",".join(map(str, range(500_000)))
    path.write_text(f"Customer,{names}\na,{names}\n")
    with pytest.raises(InputError, match=r"500,001 columns.*from_matrix"):
        read(path)


def test_a_file_that_is_one_line(tmp_path, monkeypatch):
    from hcpf.data.files import text

    monkeypatch.setattr(text, "_MAX_LINE_BYTES", 1 << 20)
    path = tmp_path / "line.csv"
    path.write_text("x" * (3 << 20))
    with pytest.raises(InputError, match="first line is longer than 1 MB"):
        read(path)


# -- spreadsheets ----------------------------------------------------------------------------------


def write_xlsx(path, sheets):
    with xlsxwriter.Workbook(str(path)) as book:
        date = book.add_format({"num_format": "yyyy-mm-dd"})
        for name, rows in sheets.items():
            sheet = book.add_worksheet(name)
            for y, row in enumerate(rows):
                for x, cell in enumerate(row):
                    is_date = isinstance(cell, datetime.date)
                    sheet.write(y, x, cell, *([date] if is_date else []))


def write_ods(path, sheets):
    """Write an OpenDocument spreadsheet: its three files, as LibreOffice names them."""

    def cell_xml(cell):
        if cell is None:
            return "<table:table-cell/>"
        if isinstance(cell, str):
            kind = 'office:value-type="string"'
        else:
            kind = f'office:value-type="float" office:value="{cell}"'
        return f"<table:table-cell {kind}><text:p>{cell}</text:p></table:table-cell>"

    tables = "".join(
        f'<table:table table:name="{name}">'
        + "".join(
            f"<table:table-row>{''.join(map(cell_xml, row))}</table:table-row>" for row in rows
        )
        + "</table:table>"
        for name, rows in sheets.items()
    )
    prefix = "urn:oasis:names:tc:opendocument:xmlns"
    spaces = " ".join(f'xmlns:{n}="{prefix}:{n}:1.0"' for n in ("office", "table", "text"))
    mime = "application/vnd.oasis.opendocument.spreadsheet"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("mimetype", mime)
        archive.writestr(
            "META-INF/manifest.xml",
            f'<manifest:manifest xmlns:manifest="{prefix}:manifest:1.0"><manifest:file-entry '
            f'manifest:full-path="/" manifest:media-type="{mime}"/><manifest:file-entry '
            'manifest:full-path="content.xml" manifest:media-type="text/xml"/></manifest:manifest>',
        )
        archive.writestr(
            "content.xml",
            f'<?xml version="1.0" encoding="UTF-8"?><office:document-content {spaces}>'
            f"<office:body><office:spreadsheet>{tables}</office:spreadsheet></office:body>"
            "</office:document-content>",
        )


WRITERS = {".xlsx": write_xlsx, ".ods": write_ods}


@pytest.fixture(params=WRITERS)
def sheet(request, tmp_path):
    """Write sheets to a file of either kind, and return its path."""

    def write(*rows, **sheets):
        path = tmp_path / f"sales{request.param}"
        WRITERS[request.param](path, sheets or {"Sheet1": list(rows)})
        return path

    return write


def test_spreadsheets(sheet):
    assert read(sheet(HEADER, *ROWS)) == EXPECTED


def test_ids_in_spreadsheets_are_not_floats(sheet):
    path = sheet(HEADER, [17850, "85123A", 1], [12347, 22423, 2.5], [12347, "007", 1])
    assert read(path) == {(17850, "85123A"): 1, (12347, "22423"): 2.5, (12347, "007"): 1}


def test_money_in_spreadsheets_may_be_text_or_numbers(sheet):
    path = sheet(HEADER, ["a", "x", "1.234,50 €"], ["b", "x", 2.5], ["c", "x", 1e-3], ["d", "x", 7])
    assert read(path) == {("a", "x"): 1234.5, ("b", "x"): 2.5, ("c", "x"): 1e-3, ("d", "x"): 7.0}


def test_titles_and_blank_rows_are_skipped_and_counted(sheet):
    path = sheet(["Sales 2024"], [], HEADER, ["a", "x", 1], [], ["b", "x", "?"], [None, None, 3])
    with pytest.raises(InputError) as error:
        read(path)
    assert "no id in row 7 (as the spreadsheet numbers them)" in str(error.value)
    assert "'?' in row 6" in str(error.value)


def test_sheets(sheet):
    path = sheet(Notes=[["b", "c", 5.0]], Orders=[HEADER, *ROWS])
    assert read(path, sheet="Orders") == EXPECTED
    with pytest.raises(InputError, match=r"sheet='None'.*Sheets: Notes, Orders"):
        read(path, sheet="None")
    first = open_file(path)
    assert not first.has_header
    assert "read the sheet 'Notes', one of 2" in first.remarks[0]
    assert open_file(path, ReadOptions(sheet="Orders")).has_header


def test_a_cover_sheet_is_not_the_table(sheet):
    path = sheet(Cover=[["Sales of May"], ["Prepared for the board"]], Orders=[HEADER, *ROWS])
    assert read(path) == EXPECTED
    assert "read the sheet 'Orders', one of 2" in open_file(path).remarks[0]
    assert open_file(sheet(Cover=[["a"], ["b"]], Notes=[["c"]])).names == ["a"]


def test_dates_of_a_spreadsheet_make_rows_events(tmp_path):
    path = tmp_path / "sales.xlsx"
    days = [datetime.date(2024, 1, day) for day in (1, 2)]
    rows = [["a", "x", 1.5, day] for day in days]
    write_xlsx(path, {"Orders": [[*HEADER, "Day"], *rows]})
    assert [column.kind for column in open_file(path).columns] == ["text", "text", "real", "time"]
    assert read(path) == {("a", "x"): 3.0}


def test_empty_and_damaged_spreadsheets(sheet, tmp_path):
    with pytest.raises(InputError, match="the sheet is empty"):
        read(sheet([]))
    for name in ("broken.xlsx", "broken.ods"):
        (tmp_path / name).write_bytes(b"PK no archive")
        with pytest.raises(InputError, match=f"{name} cannot be read"):
            read(tmp_path / name)


def test_tables_are_written_as_spreadsheets(tmp_path):
    path = tmp_path / "lists.xlsx"
    table = Table(Customer=["=1+1", "007", "Zoë"], Product=[1, 2, 3], Amount=[1.5, 2.25, 3.0])
    table.write(path)
    assert read(path) == {("=1+1", 1): 1.5, ("007", 2): 2.25, ("Zoë", 3): 3.0}
    with pytest.raises(InputError, match="exists already"):
        table.write(path)


def test_a_spreadsheet_shows_all_digits_of_an_id(tmp_path):
    path = tmp_path / "lists.xlsx"
    isbns, names = [9783055059367, 9783159269506], ["Das große Buch – Band 4", "x"]
    Table(item=isbns, name=names, key=[9007199254740993, 7], p=[0.5, 0.25]).write(path)
    with zipfile.ZipFile(path) as book:
        sheet = book.read("xl/worksheets/sheet1.xml").decode()
        styles = book.read("xl/styles.xml").decode()
    style = re.search(r'<c r="A2" s="(\d+)"><v>9783055059367</v>', sheet)
    formats = re.findall(r'<xf numFmtId="(\d+)"', styles.split("<cellXfs")[1])
    assert formats[int(style[1])] == "1"  # 0, not General: no 9.78306E+12
    widths = [float(width) for width in re.findall(r'width="([\d.]+)"', sheet)]
    assert widths[0] > 13
    assert widths[1] > len(names[0])
    assert "<t>9007199254740993</t>" in sheet  # a number would lose its last digit


def test_a_sheet_has_a_last_row(tmp_path, monkeypatch):
    from hcpf.model import tables

    monkeypatch.setattr(tables, "_MAX_ROWS", 3)
    with pytest.raises(InputError, match=r"holds 2 rows.*\.parquet"):
        Table(a=[1, 2, 3]).write(tmp_path / "long.xlsx")
    assert list(tmp_path.iterdir()) == []


# -- JSON lines ------------------------------------------------------------------------------------


def write_lines(path, records):
    text = "\n".join(
        record if isinstance(record, str) else json.dumps(record) for record in records
    )
    path.write_bytes(packed(text.encode(), ".gz") if path.suffix == ".gz" else text.encode())
    return path


RECORDS = [dict(zip(HEADER, row, strict=True)) for row in ROWS]


@pytest.mark.parametrize("name", ["sales.jsonl", "sales.ndjson", "sales.jsonl.gz"])
def test_json_lines(tmp_path, name):
    records = [{**record, "other": {"nested": [1]}} for record in RECORDS]
    assert read(write_lines(tmp_path / name, records)) == EXPECTED


def test_json_lines_of_changing_types(tmp_path):
    mixed = [*RECORDS, {"Customer": "d", "Product": "x", "Amount": "£5.00"}, {"other": 1}]
    with pytest.raises(InputError, match="'Customer' has no id in row 5"):
        read(write_lines(tmp_path / "sales.jsonl", mixed))
    assert read(tmp_path / "sales.jsonl", drop_blank_ids=True) == {**EXPECTED, ("d", "x"): 5.0}


def test_json_ids_keep_their_types(tmp_path):
    records = [{"Customer": 7, "Product": "7", "Amount": 1}]
    assert read(write_lines(tmp_path / "a.jsonl", records)) == {(7, "7"): 1.0}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"Customer": ', "line 2 is not JSON"),
        ("[1]", "line 2 is not a JSON object"),
        ('{"Customer": "b", "Product": "x", "Amount": 9007199254740993}', "cannot hold exactly"),
        ('{"Customer": "b", "Product": "x", "Amount": 1e-400}', "make them 0"),
    ],
)
@pytest.mark.parametrize("amount", [1, 1.5])
def test_bad_json_lines(tmp_path, line, message, amount):
    first = {"Customer": "a", "Product": "x", "Amount": amount}
    with pytest.raises(InputError, match=message):
        read(write_lines(tmp_path / "sales.jsonl", [first, line]))


# -- databases -------------------------------------------------------------------------------------


def make_database(path):
    if path.suffix == ".duckdb":
        connection = pytest.importorskip("duckdb").connect(str(path))
    else:
        connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE sales (Customer TEXT, Product TEXT, Amount DOUBLE)")
    connection.executemany("INSERT INTO sales VALUES (?, ?, ?)", ROWS)
    connection.commit()
    return connection


@pytest.fixture(params=["shop.sqlite", "shop.db", "shop.duckdb"])
def database(request, tmp_path):
    return tmp_path / request.param


def test_the_only_table_of_a_database(database):
    make_database(database).close()
    assert read(database) == EXPECTED
    assert open_file(database).remarks == [f"{database.name}: read the table 'sales'."]


def test_queries(database):
    connection = make_database(database)
    connection.execute("CREATE TABLE names (id TEXT, name TEXT)")
    connection.commit()
    connection.close()
    with pytest.raises(InputError, match=r"2 tables: .*sql='SELECT"):
        read(database)
    query = "SELECT Customer AS c, Product AS p, count(*) AS n FROM sales GROUP BY 1, 2"
    found = read(database, sql=query, user="c", item="p", value="n")
    assert found == dict.fromkeys(EXPECTED, 1.0)


@pytest.mark.parametrize("query", ["SELECT nothing FROM sales", "DROP TABLE sales", "SELEC"])
def test_bad_queries(database, query):
    make_database(database).close()
    with pytest.raises(InputError, match=database.name):
        read(database, sql=query)
    assert read(database) == EXPECTED


def test_columns_of_several_types(tmp_path):
    path = tmp_path / "shop.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE sales (Customer, Product, Amount)")
    rows = [(1, "x", 1), (2, b"y", "£2.50"), (None, "x", 1.5), (3, "z", None)]
    connection.executemany("INSERT INTO sales VALUES (?, ?, ?)", rows)
    connection.commit()
    connection.close()
    with pytest.raises(InputError, match=r"no id in row 3.*no value in row 4"):
        read(path)
    found = read(path, drop_blank_ids=True, sql="SELECT * FROM sales WHERE Amount IS NOT NULL")
    assert found[1, "x"] == 1.0
    assert sorted(found.values()) == [1.0, 2.5]


def test_files_that_are_no_database(tmp_path):
    path = tmp_path / "shop.db"
    path.write_text("Customer,Product,Amount\n")
    with pytest.raises(InputError, match="neither an SQLite nor a DuckDB database"):
        read(path)
    csv = tmp_path / "shop.csv"
    csv.write_text(TEXT)
    with pytest.raises(InputError, match="a query requires a database"):
        read(csv, sql="SELECT 1")


def test_kinds_may_be_mixed(tmp_path):
    (tmp_path / "1.csv").write_text("Customer,Product,Amount\nann,tea,£1.50\n")
    write_xlsx(tmp_path / "2.xlsx", {"Sheet1": [HEADER, ["bob", "tea", 2.5]]})
    records = [dict(zip(HEADER, ("cid", "tea", 3.5), strict=True))]
    write_lines(tmp_path / "3.jsonl", records)
    expected = {("ann", "tea"): 1.5, ("bob", "tea"): 2.5, ("cid", "tea"): 3.5}
    assert read(f"{tmp_path}/*") == expected


# -- products of two columns ------------------------------------------------------------------

ORDERS = [("ann", "tea", 2, 1.5), ("bob", "tea", -1, 2.0), ("bob", "jam", 3, 1200.5)]
PRODUCTS = {("ann", "tea"): 3.0, ("bob", "tea"): -2.0, ("bob", "jam"): 3601.5}


def write_orders(path):
    header = ["who", "what", "Quantity", "UnitPrice"]
    if path.suffix == ".xlsx":
        write_xlsx(path, {"Orders": [header, *map(list, ORDERS)]})
    elif path.suffix == ".sqlite":
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("CREATE TABLE t (who, what, Quantity, UnitPrice)")
            connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", ORDERS)
            connection.commit()
    elif path.suffix == ".jsonl":
        write_lines(path, [dict(zip(header, row, strict=True)) for row in ORDERS])
    elif path.suffix == ".parquet":
        columns = dict(zip(header, map(list, zip(*ORDERS, strict=True)), strict=True))
        parquet.write_table(pa.table(columns), path)
    else:
        rows = "".join(f'{u},{i},{n},"£{price:,.2f}"\n' for u, i, n, price in ORDERS)
        path.write_text(",".join(header) + "\n" + rows, "cp1252")


@pytest.mark.parametrize("ending", ["csv", "xlsx", "sqlite", "jsonl", "parquet"])
def test_values_may_be_a_product_of_two_columns(tmp_path, ending):
    path = tmp_path / f"orders.{ending}"
    write_orders(path)
    columns = {"user": "who", "item": "what", "value": "Quantity * UnitPrice"}
    assert by_pair(Interactions.read(path, **columns, returns="keep")) == PRODUCTS
    kept = {pair: value for pair, value in PRODUCTS.items() if value > 0}
    assert by_pair(Interactions.read(path, **columns, returns="net")) == kept
    with pytest.raises(InputError, match="has negative values: -2 in row"):
        Interactions.read(path, **columns)


def test_products_name_columns_that_exist(tmp_path):
    path = tmp_path / "orders.csv"
    write_orders(path)
    columns = {"user": "who", "item": "what"}
    for value in ("Quantity*Price", "Amount*UnitPrice"):
        with pytest.raises(InputError, match="there is no such column"):
            Interactions.read(path, **columns, value=value)
    with pytest.raises(InputError, match="shards take one column of values"):
        Shards.from_files(path, tmp_path / "s", **columns, value="Quantity*UnitPrice")

"""Forms of files that `modwatch init` reads, and the causes it names where it cannot."""

import csv
import datetime as dt
import gzip
import io
import json
import os
import sqlite3
import uuid
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from openpyxl import Workbook
from sqlalchemy import create_engine, text

from modwatch.cli.main import main
from modwatch.common.account import Account
from modwatch.data.validation.comments import validate_comments
from modwatch.settings import load_settings
from modwatch.settings.file import apply_settings_file

MARK = "quillfeather"
DAY = dt.date(2026, 3, 13)
HEADER = ["id", "body", "posted"]
ROWS = [
    [f"k{number}", f'the {MARK} "remark" {number}, or so', f"2026-03-13T{number % 24:02}:30:00Z"]
    for number in range(60)
]
#: The same texts without anything that a dialect would have to escape.
PLAIN = [[row[0], f"the {MARK} remark {number}", row[2]] for number, row in enumerate(ROWS)]


@pytest.fixture(autouse=True)
def _clean(monkeypatch, tmp_path):
    for name in [name for name in os.environ if name.startswith("MODWATCH_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def init(capsys, monkeypatch):
    """Run `init` without a question; return what it printed, which no comment is in."""

    def run(*arguments: str, status: int = 0) -> str:
        given = ["init", "--yes", "--no-run", "--force", *arguments]
        assert main(given) == status
        captured = capsys.readouterr()
        shown = captured.out + captured.err
        assert MARK not in shown
        assert Path("modwatch.env").exists() == (status == 0)
        for name in [name for name in os.environ if name.startswith("MODWATCH_SOURCE__")]:
            monkeypatch.delenv(name)
        environ: dict[str, str] = {}
        apply_settings_file(environ)
        for name, value in environ.items():
            monkeypatch.setenv(name, value)
        return shown

    return run


def read_day(day: dt.date = DAY) -> tuple[list[dict], int]:
    """Return the landed rows of a day by the settings, and how many are valid."""
    source = load_settings().source.open()
    account = Account()
    landed = list(source.read(day, account))
    account.count("landed", sum(batch.num_rows for batch in landed))
    account.close(source.name)

    def read(columns: list[str] | None = None) -> list[pa.RecordBatch]:
        return [batch.select(columns) if columns else batch for batch in landed]

    rows = [row for batch in landed for row in batch.to_pylist()]
    return rows, validate_comments(read, day=day).result.valid


def written(delimiter: str = ",", rows: list[list[str]] = ROWS, **options) -> str:
    file = io.StringIO()
    csv.writer(file, delimiter=delimiter, lineterminator="\n", **options).writerows([HEADER, *rows])
    return file.getvalue()


def joined(delimiter: str, rows: list[list[str]], end: str = "", header_end: str = "") -> str:
    lines = [delimiter.join(HEADER) + header_end, *(delimiter.join(row) + end for row in rows)]
    return "".join(f"{line}\n" for line in lines)


def escaped(delimiter: str, rows: list[list[str]]) -> str:
    lines = [[field.replace('"', '\\"') for field in row] for row in [HEADER, *rows]]
    return "".join(delimiter.join(f'"{field}"' for field in line) + "\n" for line in lines)


DUMP = [[row[0], f"the {MARK}\\tremark\\\nof {number}", row[2]] for number, row in enumerate(ROWS)]
#: One delimiter of each form; tests/data/sources has all of them.
TEXTS = {
    **{f"minimal {d}": written(d) for d in ",;|\t"},
    "all quoted": written(";", quoting=csv.QUOTE_ALL),
    "BOM and sep line": f"\ufeffsep=;\n{written(';')}",
    "trailing": joined("|", PLAIN, end="|"),
    "trailing, in the header": joined(",", PLAIN, end=",", header_end=","),
    "blank after": joined(", ", PLAIN),
    "quoted, blank after": written(";").replace(";", "; "),
    "backslash": escaped("\t", ROWS),
    "unquoted": joined("|", [[r[0], f'"{MARK} 5" nails', r[2]] for r in ROWS]),
    "semicolons in texts": written(";", [[r[0], r[1] + "; and; more", r[2]] for r in ROWS]),
    "repeated header": written() + written(rows=[[f"x{r[0]}", *r[1:]] for r in ROWS]),
    "blank lines": written().replace("\n", "\n\n"),
}
FORMS = [
    *((form, "utf-8") for form in TEXTS),
    *zip(("minimal ,", "backslash", "trailing"), ("utf-16", "utf-16-le", "utf-16-be"), strict=True),
]


@pytest.mark.parametrize(("form", "encoding"), FORMS)
def test_texts_of_every_dialect(form, encoding, init):
    Path("a.csv").write_bytes(TEXTS[form].encode(encoding))
    shown = init("a.csv")
    rows = 120 if form == "repeated header" else 60
    assert f"The first {rows} rows are valid." in shown
    assert read_day()[1] == rows


def test_another_dialect_is_shown(init):
    Path("a.csv").write_text(TEXTS["unquoted"])
    assert "Text is read with '|' between fields, no quotation marks.\n" in init("a.csv")
    Path("a.csv").write_text(TEXTS["backslash"])
    assert "between fields, quotation marks, and \\ before them.\n" in init("a.csv")
    Path("a.csv").write_text(TEXTS["minimal ,"])
    assert "between fields" not in init("a.csv")


def test_the_dialect_can_be_set(init):
    Path("a.csv").write_text(joined("~", [[r[0], f"a {MARK} 5' nail", r[2]] for r in ROWS]))
    shown = init("a.csv", status=1)
    assert "--delimiter: the first line names only one" in shown
    init("a.csv", "--delimiter", "~", "--quoting", "none", "--escape", "\\")
    assert read_day()[1] == 60
    form = load_settings().source
    assert (form.delimiter, form.quoting, form.escape) == ("~", "none", "\\")
    Path("a.txt").write_text(joined("\t", PLAIN))
    init("a.txt", "--delimiter", "tab")
    assert read_day()[1] == 60
    Path("modwatch.env").unlink()
    Path("b.csv").write_text(joined(",", [[r[0], f'"{MARK}" "{MARK}', r[2]] for r in ROWS]))
    shown = init("b.csv", "--quoting", "minimal", "--escape", "", status=1)
    assert "60 of 60, from line 2 on, have damaged quotation marks; add --quoting none" in shown
    assert "must be one character" in init("a.txt", "--delimiter", "~~", status=1)


def test_dumps_of_databases(init):
    Path("outfile.txt").write_text(joined("\t", DUMP))  # MySQL INTO OUTFILE with names before it
    init("outfile.txt")
    assert read_day()[1] == 60
    missing = [[*row, r"\N"] for row in PLAIN]
    Path("copy.tsv").write_text(joined("\t", missing, header_end="\tlang"))  # COPY … HEADER
    init("copy.tsv", "--column", "language=lang")
    rows, valid = read_day()
    assert (valid, {row["language"] for row in rows}) == (60, {None})
    batch = [[row[0], f"the {MARK}\\tremark {number}", row[2]] for number, row in enumerate(ROWS)]
    Path("batch.tsv").write_text(joined("\t", batch))  # mysql -B
    init("batch.tsv")
    assert read_day()[1] == 60
    Path("names.txt").write_text(joined("\t", PLAIN).partition("\n")[2])  # without names
    shown = init("names.txt", status=1) if not Path("modwatch.env").unlink() else ""
    assert "names.txt does not name its columns: its field 3 is a time" in shown


def sheet(*rows: list[object], more: str | None = None) -> bytes:
    book, file = Workbook(), io.BytesIO()
    for row in rows:
        book.active.append(row)
    if more:
        book.create_sheet(more).append(["x"])
    book.save(file)
    return file.getvalue()


CSV = written(rows=ROWS)
LINES = [dict(zip(HEADER, row, strict=True)) for row in ROWS]
CP1252 = [[r[0], f"ein {MARK} f\xfcr Gr\xfc\xdfe", r[2]] for r in ROWS]
CAUSES = {
    "empty.csv": (b"", "empty.csv is empty; point to data"),
    "header.csv": (b"id,body,posted\n", "header.csv has the names of its columns and no row"),
    "names.xlsx": (sheet(HEADER), "names.xlsx has the names of its columns and no row"),
    "empty.json": (b"[]", "empty.json is empty; point to data"),
    "r.csv": (
        written(rows=[[str(n), *row] for n, row in enumerate(ROWS)]).encode(),
        "no row of /r.csv can be read: 60 of 60, from line 2 on, have 4 fields under 3 names; name "
        "the first column (R writes row names without one)",
    ),
    "commas.csv": (
        joined(",", [[r[0], f"{MARK}, {MARK}, {MARK}", r[2]] for r in ROWS]).encode(),
        "have 5 fields under 3 names; put texts in quotation marks, or add --delimiter",
    ),
    "titled.xlsx": (
        sheet([f"An export of {MARK}"], HEADER, *ROWS),
        "61 of 61, from line 2 on, have 3 fields under 1 name; delete the lines above the names",
    ),
    "titled.csv": (f"An export\n{CSV}".encode(), "have 3 fields under 1 name; delete the lines"),
    "lines.csv": (
        "".join('"' + line.replace('"', '""') + '"\n' for line in CSV.splitlines()).encode(),
        "lines.csv is a table with each line in one field; split it into columns, or set the",
    ),
    "padded.csv": (
        f"An export,,\n{CSV}".encode(),
        "padded.csv is a table with a title; delete the lines above the names of its columns",
    ),
    "single.csv": (
        "".join(",".join(f"'{field}'" for field in row) + "\n" for row in [HEADER, *ROWS]).encode(),
        "single.csv is a table with fields in single quotation marks; write double ones",
    ),
    "values.csv": (
        joined(",", [[f"'{field}'" for field in row] for row in PLAIN]).encode(),
        "values.csv is a table with fields in single quotation marks; write double ones",
    ),
    "columns.json": (
        json.dumps({name: {"0": MARK, "1": MARK} for name in HEADER}).encode(),
        "columns.json is one JSON object with the records in it; save them as a list, in",
    ),
    "keyed.json": (
        json.dumps({f"{MARK}{number}": line for number, line in enumerate(LINES)}).encode(),
        "keyed.json is one JSON object with the records in it; save them as a list",
    ),
    "keyed.jsonl": (
        "".join(json.dumps({f"{MARK}{n}": line}) + "\n" for n, line in enumerate(LINES)).encode(),
        "keyed.jsonl is one JSON object with the records in it; save them as a list",
    ),
    "sheets.xlsx": (sheet(HEADER, *ROWS, more="x"), "2 sheets of /sheets.xlsx have rows; save"),
    "page.csv": (b"<!DOCTYPE html><html></html>", "page.csv is an HTML page"),
    "table.csv": (b"\n <table><tr><td>1</td></tr></table>", "table.csv is an HTML page"),
    "page.xlsx": (b"<html><table></table></html>", "page.xlsx is an HTML page"),
    "page.parquet": (b"<html><table></table></html>", "page.parquet is an HTML page"),
    "excel.csv": (sheet(HEADER, *ROWS), "excel.csv is a spreadsheet or an archive; name a"),
    "excel.json": (sheet(HEADER, *ROWS), "excel.json is a spreadsheet or an archive; name a"),
    "excel.parquet": (sheet(HEADER, *ROWS), "excel.parquet is a spreadsheet or an archive"),
    "text.xlsx": (CSV.encode(), "text.xlsx is no .xlsx file; name a text file *.csv or *.jsonl"),
    "text.parquet": (CSV.encode(), "text.parquet is no .parquet file; name a text file *.csv"),
    "old.xlsx": (b"\xd0\xcf\x11\xe0 more", "old.xlsx is an old Excel file; save it as *.xlsx"),
    "old.xls": (b"\xd0\xcf\x11\xe0 more", "save an old Excel file as *.xlsx"),
    "all.zip": (b"PK\x03\x04", "unpack an archive"),
    "twice.csv.gz": (gzip.compress(gzip.compress(CSV.encode())), "is compressed twice; unpack it"),
    "object.json": (
        json.dumps({"next": None, "comments": LINES}).encode(),
        "object.json is one JSON object with the records in it; save them as a list",
    ),
    "pretty.json": (
        json.dumps({"comments": LINES}, indent=1).encode(),
        "line 1 of /pretty.json is no JSON object; perhaps the file is one JSON object",
    ),
    "pretty_keys.json": (
        json.dumps({f"{MARK}{n}": line for n, line in enumerate(LINES)}, indent=1).encode(),
        "perhaps the file is one JSON object with the records in it; save them as a list",
    ),
    "csv.json": (CSV.encode(), "line 1 of /csv.json is no JSON object; name CSV *.csv"),
    "damaged.csv.gz": (
        gzip.compress(CSV.encode())[:99] + bytes(99),
        "damaged.csv.gz cannot be read (error); check that it is complete",
    ),
    "cut.json": (json.dumps(LINES)[:-9].encode(), "Record 60 of /cut.json is not valid JSON"),
    "one.csv": (b"body\n" + b"".join(b"a %d\n" % n for n in range(60)), "--generate-ids"),
    "cp1252.csv": (
        written(rows=CP1252).encode("cp1252"),
        "validation would fail, so no settings are written. Of the first 60 rows, 0 are valid; "
        "quarantined: 60 (100 %); a day may have at most 20 %, or 5 rows\n"
        "  undecodable_text 60 (first: cp1252.csv, line 2); may need --encoding, such as cp1252\n",
    ),
    "names.csv": (
        ("k\xfc,w\xf6rter,z\xe4hler\n" + CSV.partition("\n")[2]).encode("cp1252"),
        "if the names above are damaged, add --encoding",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CAUSES)
def test_the_cause_is_named(name, tmp_path, init):
    content, message = CAUSES[name]
    Path(name).write_bytes(content)
    assert message in init(name, status=1).replace(f"{tmp_path}", "")


def test_what_helps_without_an_id_or_a_time_is_named(init):
    Path("a.csv").write_text(written(rows=[["1", *row[1:]] for row in ROWS]))
    shown = init("a.csv", status=1)
    assert "id is no id: 60 rows that differ have 1 values of it; correct the source" in shown
    Path("a.csv").write_text(written(rows=[row[1:] for row in ROWS]).replace("id,", "", 1))
    shown = init("a.csv", status=1)
    assert "no column can be the id; add --column comment_id=COLUMN, or of files --gen" in shown
    Path("a.csv").write_text(written(rows=[[*row[:2], "soon"] for row in ROWS]))
    shown = init("a.csv", status=1)
    assert "no column can be the time; add --column created_at=COLUMN, --time-format" in shown
    assert "or of files --day DATE as the day of all rows" in shown


def test_a_few_rows_in_quarantine_are_stated(init):
    rows = [[r[0], " " if number < 3 else r[1], r[2]] for number, r in enumerate(ROWS)]
    rows[5], rows[7] = [rows[4][0], "other words", rows[5][2]], [*rows[7], "more"]
    rows.append(rows[8])
    Path("a.csv").write_text(written(rows=rows))
    assert (
        "Of the first 60 rows, 55 are valid; quarantined: 5 (8.3 %). More than usual: "
        "at most 2 %\n"
        "  blank_text 3 (first: a.csv, line 2); may need --column text=COLUMN where another column "
        "has the text; a deleted one has none\n"
        "  duplicate_id 1 (first: a.csv, line 7 has the id of line 6)\n"
        "  malformed_record 1 (first: a.csv, line 9)\n"
        "1 more repeat one of them in every value and count once.\n"
    ) in init("a.csv", "--column", "comment_id=id")
    assert read_day()[1] == 55


def test_rows_of_every_file_are_tried(init):
    Path("in").mkdir()
    for number in range(5):
        ids = [[f"{number}-{row[0]}", *row[1:]] for row in ROWS]
        Path(f"in/{number}.csv").write_text(written(rows=ids))
    Path("in/5.csv").write_text(written(rows=[["", *row[1:]] for row in ROWS]))
    shown = init("in", "--column", "comment_id=id", status=1)
    assert "Of the first 360 rows, 300 are valid; quarantined: 60 (16.7 %)" in shown
    assert "missing_id 60 (first: 5.csv, line 2)" in shown
    assert "no settings are written: lost are 100 % of 60 rows of file" in shown
    Path("in/6.csv").write_text("id,words,posted\n1,2,2026-03-13\n")
    shown = init("in", "--column", "comment_id=id", status=1)
    assert "has no column 'body'" in shown


TIMES = {
    "%a %b %d %H:%M:%S +0000 %Y": "%a %b %d %H:%M:%S %z %Y",
    "%a, %d %b %Y %H:%M:%S +0000": "%a, %d %b %Y %H:%M:%S %z",
    "%a, %d %b %Y %H:%M:%S GMT": "%a, %d %b %Y %H:%M:%S %z",
    "%d/%b/%Y:%H:%M:%S +0000": "%d/%b/%Y:%H:%M:%S %z",
    "%a %b %d %Y %H:%M:%S GMT+0000 (Coordinated Universal Time)": "%a %b %d %Y %H:%M:%S GMT%z",
    "%m/%d/%Y %I:%M:%S %p": "%m/%d/%Y %I:%M:%S %p",
    "%b %d, %Y %I:%M %p": "%b %d, %Y %I:%M %p",
    "%Y-%m-%d %H:%M:%S.123456789 +0000 UTC m=+0.1": None,
    "%Y-%m-%d %H:%M:%S +0000 UTC": None,
    "%Y-%m-%dT%H:%M:%S.123456789Z": None,
    "%s": None,
    "%s123": None,
    "%s123456": None,
    "%s123456789": None,
}


@pytest.mark.parametrize("form", TIMES)
def test_times_are_proposed(form, init):
    times = [dt.datetime(2026, 3, 13, number % 24, tzinfo=dt.UTC) for number in range(60)]
    rows = [[*row[:2], time.strftime(form)] for row, time in zip(ROWS, times, strict=True)]
    Path("a.csv").write_text(written(rows=rows))
    init("a.csv")
    assert load_settings().source.timestamp_format == TIMES[form]
    found, valid = read_day()
    assert valid == 60
    assert [row["created_at"].replace(microsecond=0) for row in found] == times


def test_the_format_of_times_can_be_set(init):
    rows = [[*row[:2], f"{number % 24:02}h on 13 of March 2026"] for number, row in enumerate(ROWS)]
    Path("a.csv").write_text(written(rows=rows))
    init("a.csv", status=1)
    init("a.csv", "--time-format", "%Hh on %d of %B %Y")
    assert read_day()[1] == 60
    Path("modwatch.env").unlink()
    assert "no column can be the time" in init("a.csv", "--time-format", "%d.%m.%Y", status=1)


def test_ids_are_generated(init):
    Path("in/more").mkdir(parents=True)
    for path in ("in/a.csv", "in/more/a.csv"):
        Path(path).write_text("body\n" + f"{MARK}\n" * 30)
    init("in", "--generate-ids", "--day", f"{DAY}")
    first, valid = read_day()
    assert (valid, len({row["comment_id"] for row in first})) == (60, 60)
    assert all(len(row["comment_id"]) == 20 for row in first)
    assert read_day()[0] == first
    Path("in").rename("moved")
    init("moved", "--generate-ids", "--day", f"{DAY}")
    assert [r["comment_id"] for r in read_day()[0]] == [r["comment_id"] for r in first]


def test_a_day_stands_for_times(init):
    rows = [row[:2] for row in ROWS]
    Path("a.csv").write_text(written(rows=rows).replace(",posted", ""))
    init("a.csv", "--day", "2026-03-13")
    found, valid = read_day()
    assert (valid, load_settings().source.day) == (60, "2026-03-13")
    assert {row["created_at"] for row in found} == {dt.datetime(2026, 3, 13, tzinfo=dt.UTC)}
    assert read_day(DAY + dt.timedelta(days=1)) == ([], 0)


@pytest.mark.parametrize("given", ["in", "in/{dt}.csv"])
def test_the_day_of_the_file_stands_for_times(given, init):
    Path("in").mkdir()
    for number in (12, 13):
        lines = [[f"{number}-{row[0]}", row[1]] for row in ROWS]
        text = written(rows=lines).replace(",posted", "")
        Path(f"in/2026-03-{number}.csv").write_text(text)
    shown = init(given)
    assert "Without a column: created_at" in shown
    assert "2 days were found, the last is 2026-03-13" in shown
    found, valid = read_day()
    assert (valid, load_settings().source.day) == (60, "{dt}")
    assert {row["created_at"].date() for row in found} == {DAY}


def test_the_label_is_that_of_most_votes(init):
    votes = {"yes,no,1": 1, "no,false,": 0, "1,0,": None, ",,": None, "nein,ja,ja": 1}
    lines = [f"{n},a {MARK},2026-03-13,{text}" for n, text in enumerate(votes)]
    Path("a.csv").write_text("\n".join(["id,body,posted,ann,ben,cem", *lines, ""]))
    init("a.csv", "--votes", "ann,ben,cem")
    rows, valid = read_day()
    assert (valid, [row["label"] for row in rows]) == (5, [*votes.values()])
    Path("modwatch.env").unlink()
    assert "no column 'dan'; correct --votes" in init("a.csv", "--votes", "ann,dan", status=1)


KINDS: dict[str, tuple[str, pa.DataType | None, Callable[[int], object]]] = {
    "uuid": ("id", None, lambda n: uuid.UUID(int=n)),
    "decimal": ("id", pa.decimal128(20, 0), Decimal),
    "integers": ("id", pa.int64(), lambda n: 2**60 + n),
    "dictionary": ("body", pa.dictionary(pa.int32(), pa.string()), lambda n: f"{MARK} {n % 7}"),
    "binary": ("body", pa.binary(), lambda n: f"Gr\xfc\xdfe {MARK} {n}".encode()),
    "large_binary": ("body", pa.large_binary(), lambda n: f"Gr\xfc\xdfe {MARK} {n}".encode()),
    "fixed_binary": ("id", pa.binary(4), lambda n: f"{n:04}".encode()),
    "string_view": ("body", pa.string_view(), lambda n: f"{MARK} {n}"),
    "nanoseconds": ("posted", pa.timestamp("ns", "UTC"), lambda n: 1773360000 * 10**9 + n),
    "wall_clock": ("posted", pa.timestamp("us"), lambda n: dt.datetime(2026, 3, 13, n % 24)),  # noqa: DTZ001
    "date": ("posted", pa.date32(), lambda _: DAY),
}


@pytest.mark.parametrize("kind", KINDS)
def test_parquet_of_every_type(kind, init):
    column, type_, make = KINDS[kind]
    arrays = {name: pa.array([row[at] for row in ROWS]) for at, name in enumerate(HEADER)}
    if type_ is None:
        storage = pa.array([make(n).bytes for n in range(60)], pa.binary(16))
        arrays[column] = pa.ExtensionArray.from_storage(pa.uuid(), storage)
    else:
        arrays[column] = pa.array([make(n) for n in range(60)], type_)
    pq.write_table(pa.table(arrays), "a.parquet")
    init("a.parquet")
    rows, valid = read_day()
    assert valid == 60
    if kind == "uuid":
        assert rows[1]["comment_id"] == "00000000-0000-0000-0000-000000000001"
    if column == "body":
        assert all(MARK in row["text"] and not row["text"].startswith("b'") for row in rows)


@pytest.mark.parametrize("name", ["a.json", "a.jsonl", "a.csv.gz", "a.csv", "a.json.zst", "a.xlsx"])
def test_other_files(name, init):
    lines = [{**line, "lang": float("nan"), "user": None} for line in LINES]
    content = {
        "a.json": json.dumps(lines, indent=2).encode(),
        "a.jsonl": json.dumps(lines).encode(),
        "a.csv.gz": CSV.encode(),
        "a.csv": gzip.compress(CSV.encode()),
        "a.json.zst": zstd(json.dumps(lines).encode()),
        "a.xlsx": sheet(HEADER, *([*r[:2], dt.datetime(2026, 3, 13, 8)] for r in ROWS)),  # noqa: DTZ001
    }
    Path(name).write_bytes(content[name])
    init(name)
    rows, valid = read_day()
    assert valid == 60
    assert {row["language"] for row in rows} == {None}


def zstd(content: bytes) -> bytes:
    file = pa.BufferOutputStream()
    with pa.CompressedOutputStream(file, "zstd") as stream:
        stream.write(content)
    return file.getvalue().to_pybytes()


def test_typed_values_of_sqlite(init):
    with sqlite3.connect("forum.db") as connection:
        connection.execute("CREATE TABLE posts (id BLOB, body BLOB, posted TEXT, prob REAL)")
        rows = [
            (str(uuid.UUID(int=n)).encode(), r[1].encode(), r[2], None) for n, r in enumerate(ROWS)
        ]
        rows += [(b"none", b"a remark", None, None), (b"soon", b"a remark", "soon", None)]
        connection.executemany("INSERT INTO posts VALUES (?, ?, ?, ?)", rows)
    connection.close()
    shown = init("forum.db")
    assert "2 of 62 rows have no time, or one before 1990 or to come. They are on no day" in shown
    found, valid = read_day()
    assert valid == 60
    assert {row["comment_id"] for row in found} == {str(uuid.UUID(int=n)) for n in range(60)}
    account = Account()
    list(load_settings().source.open().read(DAY, account))
    assert account.rows() == [("Records without a possible time, on no day", 2, "")]
    Path("modwatch.env").unlink()
    assert "--generate-ids is for files" in init("forum.db", "--generate-ids", status=1)


def test_typed_values_of_postgresql(path_server, init):
    url = path_server.url("own_types")
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(text("DROP TABLE IF EXISTS posts"))
        connection.execute(
            text(
                "CREATE TABLE posts AS SELECT gen_random_uuid() AS id, convert_to('a remark ' "
                "|| n, 'UTF8') AS body, timestamptz '2026-03-13 08:00:00Z' AS posted, "
                "n::numeric AS author_id, 'NaN'::float8 AS thread_id "
                "FROM generate_series(1, 60) AS n"
            )
        )
        connection.execute(text("UPDATE posts SET posted = NULL WHERE author_id > 57"))
    engine.dispose()
    assert "3 of 60 rows have no time, or one before 1990" in init(url, "--table", "posts")
    rows, valid = read_day()
    assert (valid, {row["thread_id"] for row in rows}) == (57, {None})
    assert {row["author_id"] for row in rows} == {str(number) for number in range(1, 58)}
    assert all(row["text"].startswith("a remark ") for row in rows)


def test_right_files_stay_right(init):
    big = [[f"{2**60 + number}", *row[1:]] for number, row in enumerate(ROWS)]
    Path("big_ids.csv").write_text(written(rows=big))
    Path("cr.csv").write_text(CSV.replace("\n", "\r"))
    Path("excel_de.csv").write_text("\ufeff" + written(";"), newline="\r\n")
    marked = [
        [*row[:2], row[2]] if n else [row[0], f"a \ufeff{MARK}", row[2]]
        for n, row in enumerate(ROWS)
    ]
    Path("bom_middle.csv").write_text(written(rows=marked))
    for name in ("big_ids.csv", "cr.csv", "excel_de.csv", "bom_middle.csv"):
        init(name)
        assert read_day()[1] == 60, name
    halves = [{**LINES[0], "body": "\ud83d"}, *LINES[1:]]
    Path("surrogate.jsonl").write_text("".join(json.dumps(line) + "\n" for line in halves))
    assert "undecodable_text 1 (first: surrogate.jsonl, line 1)" in init("surrogate.jsonl")
    assert read_day()[1] == 59
    mixed = [*ROWS[:-3], ["1", "2"], ["1", "2", "3", "4"], ["", "2", ROWS[0][2]]]
    Path("mixed.csv").write_text(written(rows=mixed))
    assert "Of the first 60 rows, 57 are valid" in init("mixed.csv", "--column", "comment_id=id")
    assert read_day()[1] == 57


def test_two_columns_of_one_name(init):
    rows = [[*row, "more"] for row in ROWS]
    Path("a.csv").write_text(written(rows=rows).replace("id,body,posted", "id,body,posted,body"))
    assert "Left out: body (2)." in init("a.csv")
    assert read_day()[1] == 60


def test_votes_and_days_of_a_table(init):
    with sqlite3.connect("forum.db") as connection:
        connection.execute("CREATE TABLE posts (id, body, posted, ann, ben, cem)")
        rows = [(*row, number % 2, 1, None) for number, row in enumerate(ROWS)]
        connection.executemany("INSERT INTO posts VALUES (?, ?, ?, ?, ?, ?)", rows)
    connection.close()
    shown = init("forum.db", "--votes", "ann,ben,cem")
    assert "have no time" not in shown
    found, valid = read_day()
    assert (valid, {row["label"] for row in found}) == (60, {None, 1})
    Path("modwatch.env").unlink()
    assert "has no row of 2026-03-14" in init("forum.db", "--day", "2026-03-14", status=1)


@pytest.mark.parametrize("blank", ["", "k7"])
def test_one_blank_or_repeated_id_is_left_to_the_quarantine(init, blank):
    rows = [[blank if n == 9 else row[0], *row[1:]] for n, row in enumerate(PLAIN)]
    Path("a.csv").write_text("\n".join(map(",".join, [HEADER, *rows, [""] * 3])))
    shown = init("a.csv")
    assert "comment_id  from id" in shown
    assert read_day()[1] == 59


def test_rows_of_days_without_comments_are_named_and_set_no_first_day(init):
    odd = {3: "1899-12-30T00:00:00Z", 4: "2999-01-01T00:00:00Z"}
    rows = [[*row[:2], odd.get(n, row[2])] for n, row in enumerate(PLAIN)]
    Path("a.csv").write_text("\n".join(map(",".join, [HEADER, *rows])))
    assert "2 of 60 rows have no time, or one before 1990 or to come." in init("a.csv")
    settings = load_settings()
    assert settings.first_day == DAY
    account = Account()
    landed = sum(batch.num_rows for batch in settings.source.open().read(DAY, account))
    assert (landed, account.places["unusual_day"]) == (58, 2)
    assert account.first["unusual_day"].endswith("a.csv:5")


def test_one_zero_among_numbers_since_1970_does_not_hide_the_times(init):
    rows = [[*row[:2], str(0 if n == 5 else 1_773_400_000 + n)] for n, row in enumerate(PLAIN)]
    Path("a.csv").write_text("\n".join(map(",".join, [HEADER, *rows])))
    assert "created_at  from posted" in init("a.csv")
    assert read_day()[1] == 59


def dated(form: str, days: range = range(1, 29)) -> str:
    """Return a CSV file with the days of March 2026, written by `form`."""
    times = [dt.date(2026, 3, day).strftime(form) for day in days]
    return written(rows=[[*row[:2], time] for row, time in zip(ROWS, times, strict=False)])


@pytest.mark.parametrize("form", ["%y-%m-%d", "%y/%m/%d", "%y.%m.%d"])
def test_a_year_of_two_digits_may_come_first(form, init):
    Path("a.csv").write_text(dated(form))
    assert "28 days were found, the last is 2026-03-28" in init("a.csv")
    assert load_settings().source.timestamp_format == form
    Path("modwatch.env").unlink()
    Path("a.csv").write_text(dated(form, range(1, 2)))
    assert f"--time-format '{form}'" in init("a.csv", status=1)
    init("a.csv", "--time-format", form)
    assert len(read_day(dt.date(2026, 3, 1))[0]) == 1


@pytest.mark.parametrize("form", ["%d-%m-%y", "%m/%d/%y"])
def test_a_year_of_two_digits_may_come_last(form, init):
    Path("a.csv").write_text(dated(form))
    init("a.csv")
    assert load_settings().source.timestamp_format == form


@pytest.mark.parametrize(("form", "odd"), [("%m/%d/%Y", "31/03/2026"), ("%d/%m/%Y", "03/31/2026")])
def test_one_day_that_scatters_the_others_does_not_decide(form, odd, init):
    Path("a.csv").write_text(dated(form, range(1, 13)) + f"odd,a {MARK},{odd}\n")
    assert "add --time-format '%d/%m/%Y' or --time-format '%m/%d/%Y'" in init("a.csv", status=1)


def test_what_is_read_by_its_own_name_is_stated(init):
    lines = [{**line, "label": n % 2, "groups": "a|b"} for n, line in enumerate(LINES)]
    Path("a.json").write_text(json.dumps(lines))
    shown = init("a.json")
    assert "  label       from label\n" in shown
    assert "Left out: no column." in shown
    assert (read_day()[0][1]["label"], read_day()[0][1]["groups"]) == (1, ["a", "b"])
    assert "Left out: label, groups." in init(
        "a.json", "--column", "label=none", "--column", "groups=none"
    )
    assert {(row["label"], row["groups"]) for row in read_day()[0]} == {(None, None)}


def test_decisions_are_stated_and_can_be_left_out(init):
    lines = [{**line, "prob": 0.25, "flagged": n % 2} for n, line in enumerate(LINES)]
    Path("a.json").write_text(json.dumps(lines))
    assert "  flagged     from flagged\n" in init("a.json", "--own-scores", "prob")
    assert {row["flagged"] for row in read_day()[0]} == {True, False}
    shown = init("a.json", "--own-scores", "prob", "--column", "flagged=none")
    assert "Left out: flagged." in shown
    assert {row["flagged"] for row in read_day()[0]} == {False}


@pytest.mark.parametrize("kind", ["csv", "db"])
def test_labels_that_are_no_votes_can_be_left_out(kind, init):
    rows = [[*row, "ok" if n % 2 else "toxic"] for n, row in enumerate(ROWS)]
    Path("a.csv").write_text(written(rows=rows).replace("posted", "posted,label", 1))
    with sqlite3.connect("a.db") as connection:
        connection.execute("CREATE TABLE posts (id, body, posted, label)")
        connection.executemany("INSERT INTO posts VALUES (?, ?, ?, ?)", rows)
    connection.close()
    assert "60 of 60 rows have a label that is no vote" in init(f"a.{kind}", status=1)
    assert "Left out: label." in init(f"a.{kind}", "--column", "label=none")
    assert read_day()[1] == 60
    Path("modwatch.env").unlink()
    assert "there is no column 'none'" in init(f"a.{kind}", "--column", "text=none", status=1)


def test_votes_are_read_in_place_of_a_label(init):
    rows = [[*row, "unsure", "1"] for row in ROWS]
    Path("a.csv").write_text(written(rows=rows).replace("posted", "posted,label,ann", 1))
    shown = init("a.csv", "--votes", "ann")
    assert "  vote 1      from ann\n" in shown
    assert "Left out: label." in shown
    assert {row["label"] for row in read_day()[0]} == {1}


HEADLESS = {
    "u1": "u{}".format,
    "17": "{}".format,
    "3f2a9c1e-1b2c-4d5e-8f90-a1b2c3d4e5f6": lambda n: str(uuid.UUID(int=2**127 + 7919**9 * n)),
    "x7k2p9": "q{}k".format,
    "ada": lambda n: "abcdefghij"[n],
}


@pytest.mark.parametrize("first", HEADLESS)
@pytest.mark.parametrize("name", ["a.csv", "a.xlsx"])
def test_a_first_comment_is_no_header(first, name, init):
    rows = [[HEADLESS[first](n), f"{'so what ' * n} then"] for n in range(2, 9)]
    lines = [[first, f"go {MARK} away"], *rows]
    csv_text = "".join(",".join(line) + "\n" for line in lines)
    Path(name).write_bytes(sheet(*lines) if name.endswith("x") else csv_text.encode())
    shown = init(name, "--day", f"{DAY}", status=1)
    assert "does not name its columns: it looks like the lines below it; add a first line" in shown
    assert first not in shown.replace(str(Path.cwd()), "").replace(name, "")


@pytest.mark.parametrize("names", ["Nr,Mein Beitrag", "k1,Comment Text", "Mein Autor,text"])
def test_unusual_names_are_a_header(names, init):
    lines = [f"k{n},so what {n % 3}" for n in range(9)]
    Path("a.csv").write_text("\n".join([names, *lines]))
    init("a.csv", "--day", f"{DAY}", *(() if "Nr" not in names else ("--column", "text=column 2")))
    assert read_day()[1] == 9


TIMES_OF_DATABASES = {
    "units": [1773360000 if n < 2 else 1773360000000 for n in range(20)],
    "types": ["2026-03-13T08:00:00Z", *[1773360000] * 19],
    "zeros": [1773360000, *[0] * 19],
    "none": ["2026-03-13T08:00:00Z", *[None] * 19],
}


def table(times: list[object]) -> None:
    with sqlite3.connect("a.db") as connection:
        connection.execute("DROP TABLE IF EXISTS posts")
        connection.execute("CREATE TABLE posts (id, body, posted)")
        rows = [(f"k{n}", f"a {MARK}", time) for n, time in enumerate(times)]
        connection.executemany("INSERT INTO posts VALUES (?, ?, ?)", rows)
    connection.close()


@pytest.mark.parametrize("name", TIMES_OF_DATABASES)
def test_a_table_with_most_rows_on_no_day_is_refused(name, init):
    times = TIMES_OF_DATABASES[name]
    table(times)
    column = ("--column", "created_at=posted")
    shown = init("a.db", *column, status=1)
    lost = "rows have no time, or one before 1990 or to come, so no settings are written"
    assert lost in shown or "the values of posted are not times" in shown


def test_rows_of_no_possible_day_are_counted(init):
    table([1773360000] * 60 + [1773360000000, 0, None, "soon"])
    assert "4 of 64 rows have no time, or one before 1990 or to come." in init("a.db")
    assert load_settings().first_day == DAY
    account = Account()
    landed = sum(batch.num_rows for batch in load_settings().source.open().read(DAY, account))
    assert (landed, account.places["undated"]) == (60, 4)


@pytest.mark.parametrize("column", ["id", "posted", "user"])
@pytest.mark.parametrize("kind", [pa.float16(), pa.float32()])
def test_ids_and_times_in_short_floats_are_refused(column, kind, init):
    arrays = {name: pa.array([row[at] for row in ROWS]) for at, name in enumerate(HEADER)}
    values = [1773360000.0 + 200 * n if column == "posted" else float(n) for n in range(60)]
    kind = pa.float32() if column == "posted" else kind
    arrays |= {column: pa.array(values, pa.float32()).cast(kind), "prob": pa.array(values, kind)}
    pq.write_table(pa.table(arrays), "a.parquet")
    shown = init("a.parquet", "--own-scores", "none", status=1)
    assert f"floats of 32 bits or less, which are rounded (times to two minutes): {column}" in shown


@pytest.mark.parametrize(("damaged", "status"), [(1, 0), (12, 0), (13, 1), (30, 1)])
def test_the_trial_has_the_limit_of_validation(damaged, status, init):
    rows = [[r[0], " " if number < damaged else r[1], r[2]] for number, r in enumerate(ROWS)]
    Path("a.csv").write_text(written(rows=rows))
    shown = init("a.csv", status=status)
    assert ("a day may have at most 20 %, or 5 rows" in shown) == (status == 1)
    assert ("More than usual: at most 2 %" in shown) == (damaged == 12)


@pytest.mark.parametrize("name", ["a.csv", "a.json", "floats.csv", "a.parquet"])
@pytest.mark.parametrize("form", [(), ("--time-format", "%Y%m%d")])
def test_dates_of_eight_digits(name, form, init):
    times = [20260313 + number % 2 for number in range(60)]
    lines = [{**line, "posted": time} for line, time in zip(LINES, times, strict=True)]
    end = ".0" * (name == "floats.csv")
    rows = [[*row[:2], f"{time}{end}"] for row, time in zip(ROWS, times, strict=True)]
    if name == "floats.csv" and form:
        pytest.skip("the format has no fraction")
    if name.endswith("csv"):
        Path(name).write_text(written(rows=rows))
    elif name == "a.json":
        Path(name).write_text(json.dumps(lines))
    else:
        pq.write_table(pa.Table.from_pylist(lines), name)
    assert "20260321-like" in init(name, *form)
    assert read_day()[1] == 30


def with_column(name: str, values: list[str], rows: list[list[str]] = ROWS) -> str:
    """Return ROWS as CSV with `;` between fields and one more column."""
    rows = [[*row, value] for row, value in zip(rows, values, strict=True)]
    return written(";", rows).replace("posted", f"posted;{name}", 1)


def test_deleted_comments_are_left_out_and_counted(init):
    deleted = ["[deleted]", "[removed]", "[ Removed by moderator ]"]
    rows = [[row[0], deleted[n % 3], row[2]] if n < 27 else row for n, row in enumerate(ROWS)]
    Path("a.csv").write_text(with_column("author", ["[deleted]"] * 30 + ["ada"] * 30, rows))
    shown = init("a.csv")
    assert "27 of 60 rows have the text [deleted] or [removed] or [ Removed by moderator ]" in shown
    assert "27 more are deleted comments and are left out." in shown
    found, valid = read_day()
    assert (len(found), valid) == (33, 33)
    assert {row["author_id"] for row in found} == {None, "ada"}
    init("a.csv", "--deleted-text", "none")
    assert len(read_day()[0]) == 60


def test_a_sentence_that_repeats_is_told_and_not_printed(init):
    rows = [[row[0], f"{MARK} was taken down", row[2]] if n < 9 else row
            for n, row in enumerate(ROWS)]  # fmt: skip
    Path("a.csv").write_text(written(rows=rows))
    assert "9 of 60 rows have the same text; if it stands for deleted comments" in init("a.csv")
    init("a.csv", "--deleted-text", f"{MARK} was taken down")
    assert len(read_day()[0]) == 51


SCORES = [f"{n / 61:.3f}" for n in range(60)]
READ = {
    "with blanks": [*SCORES[:55], "", "n/a", "NA", "null", " "],
    "with commas": [score.replace(".", ",") for score in SCORES],
    "in per cent": [f"{100 * float(score):.1f} %" for score in SCORES],
}


@pytest.mark.parametrize("form", READ)
def test_scores_are_read_as_people_write_them(form, init):
    Path("a.csv").write_text(with_column("Toxicity Score", READ[form]))
    assert "  prob        from Toxicity Score\n" in init("a.csv")
    found = [row["prob"] for row in read_day()[0]]
    assert found[:55] == pytest.approx([float(score) for score in SCORES[:55]], abs=1e-3)
    assert found.count(None) == 5 * (form == "with blanks")


DOUBTED = {
    "of the predicted class": ([f"{0.5 + n / 200:.3f}" for n in range(60)], "no number is under"),
    "in per cent": ([f"{n}.5" for n in range(60)], "numbers from 0.5 to 59.5, perhaps in per cent"),
    "mostly missing": (SCORES[:20] + [""] * 40, "40 of 60 rows have none"),
}


@pytest.mark.parametrize("kind", DOUBTED)
def test_a_score_that_may_mean_something_else_is_left_out_with_the_reason(kind, init):
    values, reason = DOUBTED[kind]
    Path("a.csv").write_text(with_column("score", values))
    shown = init("a.csv")
    assert f"score: {reason}" in shown
    assert "--own-scores score takes them" in shown
    assert "prob" not in shown.split("Modwatch reads:")[1].split("Left out")[0]
    if kind == "mostly missing":
        return
    init("a.csv", "--own-scores", "score")
    first = next(row["prob"] for row in read_day()[0])
    assert first == pytest.approx(float(values[0]) / (100 if kind == "in per cent" else 1))


def test_labels_in_any_language_are_read_by_their_meaning(init):
    """`no` is English, too: a half of the vocabulary would lose just the toxic comments."""
    words = ["sí"] * 5 + ["no"] * 54 + ["no sé"]
    Path("a.csv").write_text(with_column("label", words))
    assert "6 of 60 rows have a label that is no vote; may need --value" in init("a.csv", status=1)
    meaning = ("--value", "sí=toxic", "--value", "no=other", "--value", "no sé=abstain")
    assert "The first 60 rows are valid.\n" in init("a.csv", *meaning)
    labels = [row["label"] for row in read_day()[0]]
    assert (labels.count(1), labels.count(0), labels.count(None)) == (5, 54, 1)


def test_a_language_in_words_costs_no_comment(init):
    Path("a.csv").write_text(with_column("language", ["English"] * 30 + ["en"] * 30))
    shown = init("a.csv")
    assert "language: malformed_language 30; used without the value" in shown
    found, valid = read_day()
    assert (valid, [row["language"] for row in found]) == (60, [None] * 30 + ["en"] * 30)


def test_an_export_with_every_row_twice_is_read_once(init):
    Path("a.csv").write_text(written(rows=ROWS * 3))
    shown = init("a.csv")
    assert "  comment_id  from id\n" in shown
    assert "120 more repeat one of them in every value and count once." in shown
    assert read_day()[1] == 60


def test_a_row_of_another_day_with_the_same_id_is_named_with_its_line(init):
    """Each day is tried at once: the rows are alike but for their day."""
    twice = [ROWS[3][0], ROWS[3][1], ROWS[3][2].replace(f"{DAY}", "2026-03-12")]
    blank = ["k99", " ", ROWS[0][2]]
    Path("a.csv").write_text(written(rows=[*ROWS[:40], twice, *ROWS[40:], blank]))
    shown = init("a.csv", "--column", "comment_id=id")
    assert "Of the first 62 rows, 60 are valid; quarantined: 2" in shown
    assert "duplicate_id 1 (first: a.csv, line 42 has the id of line 5)" in shown
    assert "blank_text 1 (first: a.csv, line 63)" in shown

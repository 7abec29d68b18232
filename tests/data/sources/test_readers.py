import csv
import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openpyxl import Workbook
from openpyxl.chart import BarChart

from modwatch.common.account import Account
from modwatch.common.errors import SourceError
from modwatch.data.sources.delimited import DELIMITERS, TextFormat
from modwatch.data.sources.labels import label_of
from modwatch.data.sources.readers import column_names, file_format, read_records, table_columns
from modwatch.data.sources.values import names_of, number_of, text_of, vote_of


def written(folder: Path, name: str, content: bytes) -> Path:
    path = folder / name
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return path


def values(path: Path, **options) -> list[dict]:
    return [dict(record.values) for record in read_records(path, **options)]


@pytest.mark.parametrize("name", ["day.doc", "day", "day.parquet.gz", "day.gz"])
def test_an_unknown_suffix_is_refused_with_the_known_ones(name):
    with pytest.raises(SourceError, match=r"format of .* is unknown; name the file \*\.csv"):
        file_format(Path(name))


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
def test_csv_with_quotes_line_ends_and_bom(tmp_path, name):
    path = written(tmp_path, name, b'\xef\xbb\xbfid,text\r\n1,"a ""b""\r\nc, d"\r\n\r\n2,e\r\n')
    assert values(path) == [{"id": "1", "text": 'a "b"\r\nc, d'}, {"id": "2", "text": "e"}]
    assert [record.line for record in read_records(path)] == [2, 5]
    assert column_names(path) == ("id", "text")


@pytest.mark.parametrize(("delimiter", "rows"), [*zip(DELIMITERS, [0, 1, 30, 2], strict=True)])
def test_the_delimiter_is_found_by_the_header(tmp_path, delimiter, rows):
    path = tmp_path / "a.csv"
    content = [{"id": str(row), "text": "a; b, c | d", "more": ""} for row in range(rows)]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, ["id", "text", "more"], delimiter=delimiter)
        writer.writeheader()
        writer.writerows(content)
    assert column_names(path) == ("id", "text", "more")
    assert values(path) == content


def test_of_several_delimiters_in_the_header_the_next_lines_decide(tmp_path):
    path = written(tmp_path, "a.csv", b"id,text;more;at\n1,a;b\n2,c\n")
    assert values(path) == [{"id": "1", "text;more;at": "a;b"}, {"id": "2", "text;more;at": "c"}]
    path = written(tmp_path, "b.csv.gz", b"id;text,more;at\n1;a,b;c\n2;d;e\n")
    assert column_names(path) == ("id", "text,more", "at")


def test_a_broken_record_is_marked_and_reading_goes_on(tmp_path):
    path = written(tmp_path, "a.csv", b'id,text\n1,"a,"\n2,b,c\n3\n4,"d"e\n5,f\n')
    records = list(read_records(path))
    assert [record.problem for record in records] == [None, *["malformed_record"] * 3, None]
    assert [record.raw for record in records[1:4]] == ["2,b,c\n", "3\n", '4,"d"e\n']
    assert records[4].line == 6


def test_an_open_quotation_at_the_end_loses_nothing_before_it(tmp_path):
    path = written(tmp_path, "a.csv", b'id,text\n1,"a,b"\n2,"b\nc')
    good, *bad = read_records(path)
    assert good.values == {"id": "1", "text": "a,b"}
    assert [(record.line, record.problem, record.raw) for record in bad] == [
        (3, "unclosed_quote", '2,"b\n'),
        (4, "malformed_record", "c"),
    ]


def test_a_megabyte_in_one_field_is_read_and_the_process_limit_stays(tmp_path):
    before = csv.field_size_limit()
    path = written(tmp_path, "a.csv", b"id,text\n1," + b"x" * 1_000_000 + b"\n2,y\n")
    reader = read_records(path)
    assert len(next(reader).values["text"]) == 1_000_000
    assert csv.field_size_limit() == before
    assert next(reader).values["id"] == "2"


def test_a_field_beyond_the_limit_is_a_broken_record_and_the_next_is_read(tmp_path):
    path = written(tmp_path, "a.csv", b"id,text\n1," + b"x" * 10_000_001 + b"\n2,y\n")
    first, second = read_records(path)
    assert first.problem == "malformed_record"
    assert second.values == {"id": "2", "text": "y"}


def test_a_header_that_cannot_be_read_gives_no_columns(tmp_path):
    assert column_names(written(tmp_path, "a.csv", b'"id')) == ()
    assert column_names(written(tmp_path, "b.csv", b"\n\nid,text\n")) == ("id", "text")
    assert len(column_names(written(tmp_path, "c.csv", b"x" * 200_000))) == 1


def test_nul_bytes_come_through(tmp_path):
    assert values(written(tmp_path, "a.csv", b"id,text\n1,a\0b\n"))[0]["text"] == "a\0b"


def test_json_lines(tmp_path):
    deep = b'{"a":' + b"[" * 100_000 + b"\n"
    content = b'{"id": 1, "text": "a"}\n\n[1]\n{"id": 2\n' + deep + b'{"id": 3, "more": null}\n'
    path = written(tmp_path, "a.jsonl.gz", content)
    records = list(read_records(path))
    assert [record.problem for record in records] == [None, *["malformed_record"] * 3, None]
    assert [record.line for record in records] == [1, 3, 4, 5, 6]
    assert column_names(path) == ("id", "text", "more")


@pytest.mark.parametrize("name", ["a.jsonl", "a.json"])
def test_a_json_object_with_a_key_twice_is_a_broken_record(tmp_path, name):
    items = [
        '{"id" : "1", "text": "\\": {", "more": {"a": 1}}', '{"id": "1", "id": "2"}',
        '{"id" : "1", "id" : "2"}', '{"id": "1", "id"\t:"2"}', '{"id": "1", "\\u0069d": "2"}',
    ]  # fmt: skip
    content = "\n".join(items) if name == "a.jsonl" else f"[{', '.join(items)}]"
    first, *others = read_records(written(tmp_path, name, content.encode()))
    assert first.values == {"id": "1", "text": '": {', "more": {"a": 1}}
    assert [other.problem for other in others] == ["malformed_record"] * 4
    assert [other.raw.strip() for other in others] == items[1:]


def test_a_value_with_a_key_twice_is_no_text_vote_number_or_label(tmp_path):
    path = written(tmp_path, "a.jsonl", b'{"id": "1", "text": {"a": 1, "a": 1}}\n')
    (record,) = read_records(path)
    for convert in (text_of, vote_of, number_of, names_of, label_of):
        assert convert(record.values["text"])[1] is not None


def test_parquet_with_broken_utf8_dictionaries_and_nanoseconds(tmp_path):
    bad = pa.array([b"caf\xe9", b"fine"], pa.binary()).view(pa.string())
    table = pa.table(
        {
            "id": pa.array(["a", "b"]).dictionary_encode(),
            "text": bad,
            "at": pa.array([1, None], pa.timestamp("ns", tz="UTC")),
        }
    )
    path = tmp_path / "a.parquet"
    pq.write_table(table, path)
    first, second = values(path)
    assert first["text"] == "caf\udce9"
    assert first["at"].microsecond == 0
    assert second == {"id": "b", "text": "fine", "at": None}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv.gz", b"\x1f\x8bno"),
        ("a.parquet", b"PAR1 no parquet"),
        ("a.jsonl.gz", b"\x1f\x8b\x08"),
    ],
)
def test_a_file_that_is_not_what_its_suffix_says(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(SourceError, match=f"{name} cannot be read .* check that it is complete"):
        list(read_records(path))


def test_a_truncated_archive_is_an_error_not_an_end(tmp_path):
    path = tmp_path / "a.csv.gz"
    path.write_bytes(
        gzip.compress(b"id,text\n" + b"".join(b"%d,%d\n" % (i, i * i) for i in range(9999)))[:-200]
    )
    with pytest.raises(SourceError, match="EOFError"):
        list(read_records(path))
    with pytest.raises(SourceError, match="does not exist"):
        list(read_records(tmp_path / "gone.csv"))


plain = st.text(st.characters(codec="utf-8"), max_size=30)


@given(rows=st.lists(st.tuples(plain, plain), max_size=20))
def test_whatever_is_written_as_csv_is_read_back(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("csv") / "a.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL).writerows([("id", "text"), *rows])
    assert values(path) == [{"id": a, "text": b} for a, b in rows]


@given(rows=st.lists(st.dictionaries(plain, plain), max_size=20))
def test_whatever_is_written_as_json_lines_is_read_back(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("jsonl") / "a.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    assert values(path) == rows


def test_times_that_python_does_not_have_are_missing(tmp_path):
    far = pa.array([0, -(10**17), None], pa.timestamp("us"))
    late = pa.array([2**62, 0, None], pa.timestamp("ms", tz="UTC"))
    date = pa.array([2**30, 0, None], pa.date32())
    pq.write_table(pa.table({"far": far, "late": late, "date": date}), tmp_path / "a.parquet")
    found = [[value is None for value in row.values()] for row in values(tmp_path / "a.parquet")]
    assert found == [[False, True, True], [True, False, False], [True, True, True]]


def test_cells_of_excel_with_errors_are_no_text(tmp_path):
    book = Workbook()
    for row in (["id", "text"], ["1", "fine"], ["2", "#NAME?"], [3, "#a tag"]):
        book.active.append(row)
    book.save(tmp_path / "a.xlsx")
    assert [row["text"] for row in values(tmp_path / "a.xlsx")] == ["fine", ["#NAME?"], "#a tag"]


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        ("one_x000D_\ntwo", "one\r\ntwo"), ("_x005F_x000D_", "_x000D_"), ("_x0007_", "\a"),
        ("my_x_file", "my_x_file"), ("_x00_", "_x00_"),
    ],
)  # fmt: skip
def test_escaped_characters_of_excel_are_decoded(tmp_path, cell, text):
    book = Workbook()
    for row in (["id", "te_x005F_xt"], ["1", cell]):
        book.active.append(row)
    book.save(tmp_path / "a.xlsx")
    assert values(tmp_path / "a.xlsx") == [{"id": "1", "te_xt": text}]


@pytest.mark.parametrize("blank", [0, 3])
def test_rows_of_excel_have_the_numbers_of_the_sheet(tmp_path, blank):
    book, account = Workbook(), Account()
    for number, row in enumerate((["id", "text"], ["1", "fine"], [], ["2", "a", "b"]), 1 + blank):
        for column, cell in enumerate(row, 1):
            book.active.cell(number, column, cell)
    book.save(tmp_path / "a.xlsx")
    records = list(read_records(tmp_path / "a.xlsx", account=account))
    assert [(record.line, record.problem) for record in records] == [
        (2 + blank, None), (4 + blank, "malformed_record")
    ]  # fmt: skip
    assert account.places == {"blank_line": blank + 1, "header": 1}
    assert account.read == 4 + blank


def test_a_chart_sheet_is_passed_over_and_one_without_a_chart_is_named(tmp_path):
    book = Workbook()
    for row in (["id", "text"], ["1", "fine"]):
        book.active.append(row)
    chart = book.create_chartsheet("chart", 0)
    book.save(tmp_path / "empty.xlsx")
    for read in (column_names, values):
        with pytest.raises(SourceError, match=r"empty\.xlsx cannot be read; delete chart sheets"):
            read(tmp_path / "empty.xlsx")
    chart.add_chart(BarChart())
    book.save(tmp_path / "a.xlsx")
    assert values(tmp_path / "a.xlsx") == [{"id": "1", "text": "fine"}]


def test_names_of_columns_have_no_line_breaks(tmp_path):
    path = written(tmp_path, "a.csv", b'id,"text\n(comment)"\n1,a\n')
    assert column_names(path) == ("id", "text (comment)")
    assert values(path) == [{"id": "1", "text (comment)": "a"}]


RECORD = {"id": "1", "text": "a", "notes": [{"by": "x"}, {"by": "y"}]}
TABLES = {
    "one.jsonl": json.dumps(RECORD),
    "nested.jsonl": f"{json.dumps({'id': {'of': 1}, 'text': {'raw': 'a'}})}\n" * 2,
    "damaged.jsonl": f"{{\n{json.dumps(RECORD)}\n",
    "quoted.csv": "id,text,note\n1,'a',b\n",
    "index.csv": ",id,text\n0,1,a\n",
    "one.csv": "text\na\n",
    "title.csv": '"Export, of March"\nid,text\n',
}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_that_looks_like_none_is_not_refused(tmp_path, name):
    path = written(tmp_path, name, TABLES[name].encode())
    assert table_columns(path, TextFormat()) == column_names(path)


def test_a_header_in_another_order_holds_from_there_on(tmp_path):
    """Files that were joined, the second with its columns in another order."""
    path = tmp_path / "joined.csv"
    path.write_text("id,text,author\n1,a,x\nid,text,author\n2,b,y\ntext,id,author\nc,3,z\n")
    account = Account()
    found = [dict(record.values) for record in read_records(path, account=account)]
    assert found == [
        {"id": "1", "text": "a", "author": "x"},
        {"id": "2", "text": "b", "author": "y"},
        {"text": "c", "id": "3", "author": "z"},
    ]
    assert account.places["header"] == 3

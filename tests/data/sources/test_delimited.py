"""Dialects, and quotation marks that nobody closed: no line is lost, and no sound row changes."""

import csv
import gzip
import io
import random
import re
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from modwatch.common.account import Account
from modwatch.common.errors import SourceError
from modwatch.data.sources.delimited import TextFormat
from modwatch.data.sources.readers import Record, read_records

HEADER = ["id", "text", "created_at"]
NOON = "2026-03-13T12:{:02}:00Z"
#: Sixty sound comments.
ROWS = [[f"p{n}", f"orchard pencil kettle {n % 7}", NOON.format(n)] for n in range(60)]


def lines(rows: list[list[str]], delimiter: str = ",", end: str = "\n") -> list[str]:
    return [delimiter.join(row) + end for row in [HEADER, *rows]]


def with_text(text: str, *, at: int = 30) -> list[list[str]]:
    rows = [list(row) for row in ROWS]
    rows[at][1] = text
    return rows


def read(path: Path, content: str | bytes, form: TextFormat | None = None) -> list[Record]:
    """Return the records of a file; its account closes."""
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    account = Account()
    records = list(read_records(path, form=form or TextFormat(), account=account))
    account.count("used", len(records))
    account.close(path.name)
    return records


def texts(records: list[Record]) -> list[str]:
    return [record.values["text"] for record in records if record.problem is None]


SOUND = [row[1] for row in ROWS]


@pytest.mark.parametrize(("delimiter", "at"), [(",", 0), (";", 30), ("\t", 58), ("|", 59)])
def test_a_lone_quote_in_a_file_without_quoting_is_a_character(tmp_path, delimiter, at):
    content = "".join(lines(with_text('"orchard', at=at), delimiter))
    records = read(tmp_path / "a.csv", content)
    assert [r.problem for r in records] == [None] * 60
    assert texts(records)[at] == '"orchard'


@pytest.mark.parametrize("places", [(3, 4), (0, 1, 2), (10, 20, 30, 59)])
def test_a_lone_quote_in_a_file_with_quoting_costs_its_line(tmp_path, places):
    rows = with_text('"kettle, pencil"', at=50)
    rows[51][1] = '"a ""b"", c"'
    rows[52][1] = '"d, e"'
    rows[53][1] = '"f, g"'
    rows[54][1] = '"h, i"'
    for place in places:
        rows[place][1] = '"orchard'
    records = read(tmp_path / "a.csv", "".join(lines(rows)))
    damaged = [r.line - 2 for r in records if r.problem]
    assert damaged == [*places]
    assert texts(records)[50 - sum(p < 50 for p in places)] == "kettle, pencil"
    assert len(records) == 60


def test_a_lone_quote_far_beyond_the_first_lines_costs_its_line(tmp_path):
    rows = [[f"p{n}", f"orchard {n}", NOON.format(n % 60)] for n in range(9_000)]
    for place in (2_000, 5_000, 5_001, 8_999):
        rows[place][1] = '"orchard'
    records = read(tmp_path / "a.tsv", "".join(lines(rows, "\t")))
    assert [(r.line - 2, r.problem) for r in records if r.problem] == [
        (2_000, "unclosed_quote"),
        (5_000, "unclosed_quote"),
        (5_001, "unclosed_quote"),
        (8_999, "malformed_record"),
    ]
    assert len(records) == 9_000


@pytest.mark.parametrize("text", ["a\n\n\nb", "list:\n1, one\n2, two", 'she "said"\nso, twice'])
def test_texts_of_several_lines_stay_whole(tmp_path, text):
    rows = with_text(text)
    for quoting in (csv.QUOTE_MINIMAL, csv.QUOTE_ALL):
        out = io.StringIO()
        csv.writer(out, quoting=quoting).writerows([HEADER, *rows])
        records = read(tmp_path / "a.csv", out.getvalue())
        assert [list(r.values.values()) for r in records] == rows


FORMS = {
    "sep": (["sep=;\r\n", *lines(ROWS, ";", "\r\n")], None),
    "sep and a mark": (["\ufeffsep=|\n", *lines(ROWS, "|")], None),
    "sep of a tab": (["sep=\t\n", *lines(ROWS, "\t")], None),
    "sep in capitals": (["SEP=;\n", *lines(ROWS, ";")], None),
    "sep in quotes": (['"sep=;"\n', *lines(ROWS, ";")], None),
    "trailing delimiter": ([lines([])[0], *(f"{line[:-1]},\n" for line in lines(ROWS)[1:])], None),
    "trailing everywhere": ([f"{line[:-1]};\n" for line in lines(ROWS, ";")], None),
    "blank after the delimiter": ([line.replace(",", ", ") for line in lines(ROWS)], None),
    "quoted after a blank": (
        [
            lines([])[0].replace(",", ", "),
            *(f'p{n}, "{text}", {at}\n' for n, (_, text, at) in enumerate(ROWS)),
        ],
        None,
    ),
    "carriage returns": (["".join(lines(ROWS, end="\r"))], None),
    "named delimiter": (lines(ROWS, "~"), TextFormat(delimiter="~")),
    "tabs in a csv": (lines(ROWS, "\t"), None),
    "repeated header": ([*lines(ROWS[:20]), *lines(ROWS[20:])], None),
    "repeated header with a mark": ([*lines(ROWS[:20]), "\ufeff", *lines(ROWS[20:])], None),
    "blank lines": ([line for row in lines(ROWS) for line in (row, "\n", "  \n")], None),
}


@pytest.mark.parametrize("name", FORMS)
def test_forms_that_programs_write(tmp_path, name):
    content, form = FORMS[name]
    records = read(tmp_path / "a.csv", "".join(content), form)
    assert [r.problem for r in records] == [None] * 60
    assert texts(records) == SOUND
    assert [r.values["created_at"].strip() for r in records] == [row[2] for row in ROWS]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-16-le", "utf-16-be", "utf-8-sig"])
def test_encodings_of_unicode_are_found(tmp_path, encoding):
    content = "".join(lines(with_text("Grüße 🙂"), "\t")).encode(encoding)
    assert texts(read(tmp_path / "a.csv", content))[30] == "Grüße 🙂"


def test_compression_is_found_whatever_the_name_says(tmp_path):
    content = "".join(lines(ROWS)).encode()
    assert texts(read(tmp_path / "a.csv.zst", gzip.compress(content))) == SOUND
    assert texts(read(tmp_path / "a.csv", pa.compress(content, "zstd", asbytes=True))) == SOUND


@pytest.mark.parametrize("quoted", [True, False])
def test_backslashes_escape(tmp_path, quoted):
    mark = '"' if quoted else ""
    rows = [
        f'{mark}p{n}{mark},{mark}so \\"to\\, say\\"{mark},{mark}{NOON.format(n)}{mark}\n'
        for n in range(60)
    ]
    records = read(tmp_path / "a.csv", "".join([lines([])[0], *rows]))
    assert texts(records) == ['so "to, say"'] * 60


def test_an_outfile_of_mysql(tmp_path):
    rows = [rf"p{n}	two\	fields\\ {n}	{NOON.format(n)}" + "\n" for n in range(60)]
    rows[5] = f"p5\t\\N\t{NOON.format(5)}\n"
    records = read(tmp_path / "a.tsv", "".join(["id\ttext\tcreated_at\n", *rows]))
    assert len(records) == 60
    assert texts(records)[7] == "two\tfields\\ 7"


def test_settings_settle_what_cannot_be_seen(tmp_path):
    path, content = tmp_path / "a.csv", 'id,text,created_at\n1,"a",2026-03-13T12:00:00Z\n'
    assert texts(read(path, content)) == ["a"]
    assert texts(read(path, content, TextFormat(quoting="none"))) == ['"a"']
    broken = (
        content + '2,"b,2026-03-13T12:00:00Z\n3,c,2026-03-13T12:00:00Z\n4,"d,2026-03-13T12:00:00Z\n'
    )
    assert texts(read(path, broken, TextFormat(quoting="minimal"))) == ["a", "c"]
    escaped = content.replace('"a"', '"a\\"b"')
    assert texts(read(path, escaped, TextFormat(escape="\\"))) == ['a"b']
    assert texts(read(path, escaped, TextFormat(escape=""))) != ['a"b']


def test_two_columns_with_one_name_are_both_there(tmp_path):
    (record,) = read(tmp_path / "a.csv", "id,text,text,\n1,a,b,\n")
    assert record.values == {"id": "1", "text": "a", "text (2)": "b", "column 4": ""}


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"\n <!DOCTYPE html><p>Log in", "an HTML page"),
        (b"\xef\xbb\xbf<html>", "an HTML page"),
        (b"<?xml version='1.0'?>", "an XML document"),
        (b"PK\x03\x04rest", r"name a spreadsheet \*\.xlsx"),
        (b"\xd0\xcf\x11\xe0rest", "an old Excel file"),
        (b"PAR1rest", "a Parquet file"),
        (b"%PDF-1.7", "a PDF"),
    ],
)
def test_files_of_other_kinds_are_named(tmp_path, content, kind):
    with pytest.raises(SourceError, match=kind):
        read(tmp_path / "a.csv", content)


def test_impossible_forms_are_refused():
    for name, value in (("delimiter", "ab"), ("delimiter", "\n"), ("escape", '"')):
        with pytest.raises(SourceError, match=f"SOURCE__{name.upper()} must be one character"):
            TextFormat(**{name: value})
    with pytest.raises(SourceError, match="Encoding 'utf-9' does not exist"):
        TextFormat(encoding="utf-9")


word = st.text(
    st.characters(codec="utf-8", exclude_characters='"\r\n,;\t|\\\ufeff'), min_size=1, max_size=12
)
quoted = st.text(st.sampled_from('ab "\n,;'), max_size=12)
damage = st.sampled_from(['x,"lone,', "too,few", "a,b,c,d", '"a"b,c,d', '"', "\x00", ""])


@given(
    rows=st.lists(st.tuples(word, st.one_of(word, quoted)), max_size=20),
    broken=st.lists(st.tuples(st.integers(0, 80), damage), max_size=3),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
)
def test_every_line_is_accounted_for_whatever_is_damaged(tmp_path_factory, rows, broken, quoting):
    rows += [("p", "of many")] * 60
    out: list[str] = []
    for n, (first, text) in enumerate(rows):
        line = io.StringIO()
        row = [f"{first}-{n}", f"an invented remark: {text}", NOON.format(n % 60)]
        csv.writer(line, quoting=quoting).writerow(row)
        out.append(line.getvalue())
    for place, line in sorted(broken, reverse=True):
        out.insert(min(place, len(out)), f"{line}\r\n")
    content = "".join([",".join(HEADER) + "\r\n", *out])
    records = read(tmp_path_factory.mktemp("any") / "a.csv", content)
    found = iter((record.values["text"], record.problem) for record in records if record.values)
    assert all((f"an invented remark: {text}", None) in found for _, text in rows)


@pytest.mark.parametrize("columns", ["id,text", "text,id"])
def test_two_lone_quotes_do_not_join_records_of_random_ids(tmp_path, columns):
    content = [f"{'really ' * (n % 5)}a remark, or two"[n % 3 :] for n in range(2_000)]
    content = [text.replace(",", "") for text in content]
    content[1_501], content[1_505] = f'"{content[1_501]}', f'{content[1_505]}"'
    rows = [(random.Random(n).randbytes(20).hex(), text) for n, text in enumerate(content)]
    rows = [row if columns == "id,text" else row[::-1] for row in rows]
    records = read(tmp_path / "a.csv", "\n".join([columns, *map(",".join, rows), ""]))
    assert len(records) == 2_000
    assert [r.line for r in records if r.problem] == [1_503]


@pytest.mark.parametrize(
    ("end", "text"), [("\n", 'an idiot \\"\nwell, thanks'), ("\r\n", 'a \\\\ b \\"')]
)
def test_escaped_quotes_at_the_end_of_a_line(tmp_path, end, text):
    rows = [f'"{n}","remark {n}"{end}' for n in range(40)]
    rows[30] = f'"30","{text}"{end}'
    records = read(tmp_path / "a.csv", "".join([f'"id","text"{end}', *rows]))
    assert len(records) == 40
    assert texts(records)[30] == re.sub(r"\\(.)", r"\1", text)


@pytest.mark.parametrize(("kind", "problem"), [("quoted", None), ("bare", "malformed_record")])
def test_a_carriage_return_alone_ends_no_line_of_a_file_with_line_feeds(tmp_path, kind, problem):
    text = "first half\rsecond half"
    rows = with_text(f'"{text}"' if kind == "quoted" else text)
    records = read(tmp_path / "a.csv", "".join(lines(rows)).encode())
    assert len(records) == 60
    assert records[30].problem == problem
    assert problem or texts(records)[30] == text


def test_a_text_that_quotes_a_table_is_one_record(tmp_path):
    rows = [f"{5_070_112 + n},a remark {n} of many\n" for n in range(60)]
    table = "".join(f"{n},{n} persons\n" for n in range(223, 230))
    rows[30] = f'5070142,"I found this:\nfrom    to\n{table}\nWhat do you think?"\n'
    records = read(tmp_path / "a.csv", "".join(["id,text\n", *rows]))
    assert len(records) == 60
    assert not any(record.problem for record in records)


def test_quotes_that_are_trusted_close_where_they_close(tmp_path):
    path = tmp_path / "a.csv"
    at = NOON.format(7)
    forged = f'p5,"a text,{at}\np6,forged,{at}\np7,by its author",{at}\n'
    path.write_text("".join([*lines(ROWS, ","), forged]))
    trusted = list(read_records(path, form=TextFormat(quoting="minimal")))
    assert len(trusted) == len(ROWS) + 1
    assert not any(record.problem for record in trusted)
    assert len(list(read_records(path))) == len(ROWS) + 3


@pytest.mark.parametrize("text", ['"three\nshort\nlines"', "a short line"])
def test_two_lone_quotes_do_not_join_the_lines_of_one_column(tmp_path, text):
    content = [f"a remark {n}" for n in range(300)]
    content[9], content[199] = f'"{content[9]}', f'{content[199]}"'
    content[20] = text
    records = read(tmp_path / "a.csv", "\n".join(["text", *content, ""]))
    assert [(r.line, r.problem) for r in records if r.problem] == [(11, "unclosed_quote")]
    assert len(records) == 300


def test_an_escape_character_that_escapes_nothing_stands_for_itself(tmp_path):
    rows = [f'p{n},"C:\\temp\\file \\"{n}\\", \\\\o/ \\N",{NOON.format(n)}\n' for n in range(60)]
    records = read(tmp_path / "a.csv", "".join(["id,text,created_at\n", *rows]))
    assert texts(records)[7] == 'C:\\temp\\file "7", \\o/ \\N'

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modwatch.audits.dsa.cells import HARMFUL
from modwatch.audits.dsa.reading import MAX_BYTES, MAX_CELLS, MAX_ROWS, Sheet, read


def rules(content: bytes) -> list[str]:
    return [finding.rule for finding in read(content).findings]


CELLS = st.text(max_size=20).filter(lambda text: not HARMFUL.search(text))


@given(st.lists(st.lists(CELLS, min_size=3, max_size=3), min_size=1, max_size=5))
def test_what_the_standard_library_writes_is_read_as_it_was(rows):
    rows = [["a", "b", "c"], *(row for row in rows if any(cell.strip() for cell in row))]
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\r\n").writerows(rows)

    sheet = read(text.getvalue().encode())

    assert sheet.findings == ()
    assert [sheet.header, *(cells for _, cells in sheet.rows)] == [tuple(row) for row in rows]


@given(st.binary(max_size=200) | st.text(alphabet='a",;\r\n\t\0é', max_size=40).map(str.encode))
def test_any_bytes_are_read(content):
    sheet = read(content)

    assert isinstance(sheet, Sheet)
    assert all(len(cells) == len(sheet.header) for _, cells in sheet.rows)


@pytest.mark.parametrize(
    "content", [b"", b"\xef\xbb\xbf", b"\r\n\r\n", b" ,,\n;", b"\n" * 10**6, b"sep=;\r\n"]
)
def test_an_empty_file(content):
    assert rules(content)[-1] == "file-empty"


ONE = ((2, ("1", "2")),)
STRAY = "a,b\r\n{}\r\n3,4\r\n"

#: A file, the rule that it breaks, the row, some words of the finding, and the rows that are read.
FAULTS = [
    ("\ufeffa,b\r\n1,2\r\n", "byte-order-mark", None, "byte order mark", ONE),
    ("a,b\r\n1,é\r\n".encode("latin-1"), "encoding", None, "Byte 8, in line 2",
     ((2, ("1", "\ufffd")),)),
    *(("a,b\r\n1,é\r\n".encode(name), "encoding", None, "UTF-16 or UTF-32", ((2, ("1", "é")),))
      for name in ("utf-16", "utf-16-le", "utf-16-be", "utf-32")),
    ("a;b\r\n1,5;2\r\n", "delimiter", None, "';'", ((2, ("1,5", "2")),)),
    ("a\tb\r\n1\t2\r\n", "delimiter", None, "tabs", ONE),
    ("a|b\r\n1|2\r\n", "delimiter", None, "'|'", ONE),
    *((f'sep={sign}\r\na{sign}b\r\n"1,5"{sign}2\r\n', "delimiter", None, "delete the first line",
       ((2, ("1,5", "2")),)) for sign in (",", ";", "\t")),  # as Excel writes it
    ("a,b\n1,2\n3,4\n", "line-ending", 1, "LF or CR", (*ONE, (3, ("3", "4")))),
    ("a,b\r1,2\r3,4\r", "line-ending", 1, "LF or CR", (*ONE, (3, ("3", "4")))),
    (STRAY.format('x"y,2'), "stray-quote", 2, "Cell 1", ((2, ('x"y', "2")), (3, ("3", "4")))),
    (STRAY.format('"x"y,2'), "stray-quote", 2, "Cell 1", ((2, ("xy", "2")), (3, ("3", "4")))),
    (STRAY.format('1,"2" '), "stray-quote", 2, "Cell 2", ((2, ("1", "2 ")), (3, ("3", "4")))),
    (STRAY.format(' "1",2'), "stray-quote", 2, "Cell 1", ((2, (' "1"', "2")), (3, ("3", "4")))),
    ('a,b\r\n1,2\r\n3,"4\r\n5,6\r\n', "unclosed-quote", 3, "cell 2", ONE),
    ("a,b\r\n1\r\n", "ragged-row", 2, "1 cells, the header 2", ((2, ("1", "")),)),
    ("a,b\r\n1,2,3\r\n", "ragged-row", 2, "3 cells, the header 2", ONE),
    *((f"a,b\r\n{row}\r\n1,2\r\n", "blank-row", 2, "empty", ((3, ("1", "2")),))
      for row in ("", ",", " , ")),
    *((f"a,b\r\n1,x{sign}y\r\n", "control-character", 2, f"Cell 2 contains the invisible "
       f"character U+{ord(sign):04X}.", ((2, ("1", f"x{sign}y")),))
      for sign in "\0\x1b\x7f\x85\u202e\u2066"),
]  # fmt: skip


@pytest.mark.parametrize(("content", "rule", "row", "words", "rows"), FAULTS)
def test_a_fault_is_reported_where_it_is_and_the_rest_is_read(content, rule, row, words, rows):
    sheet = read(content.encode() if isinstance(content, str) else content)

    [finding] = sheet.findings
    assert (finding.rule, finding.row) == (rule, row)
    assert words in finding.message
    assert set(finding.message).isdisjoint("\0\x1b\x7f\x85\u202e\u2066")
    assert (sheet.header, sheet.rows) == (("a", "b"), rows)


@pytest.mark.parametrize(
    ("content", "rows"),
    [
        (b'a,b\r\n"1\n2\r3\r\n4",5\r\n', ((2, ("1\n2\r3\r\n4", "5")),)),
        (b"a,b\r\n1,2", ONE),  # the last row needs no end
        (b'a,b\r\n1,"x\ty\nz"\r\n', ((2, ("1", "x\ty\nz")),)),
    ],
)
def test_tabs_and_line_ends_within_quotes_are_no_faults(content, rows):
    sheet = read(content)

    assert (sheet.findings, sheet.rows) == ((), rows)


def test_a_file_that_is_too_large():
    assert rules(b"x" * (MAX_BYTES + 1)) == ["file-too-large"]


def test_a_file_of_too_many_rows():
    sheet = read(b"a\r\n" * (MAX_ROWS + 1))

    assert [finding.rule for finding in sheet.findings] == ["file-too-large"]
    assert len(sheet.rows) == MAX_ROWS - 1


def test_a_row_of_too_many_cells():
    sheet = read(b"a,b\r\n" + b"x," * MAX_CELLS + b"x\r\n1,2\r\n")

    assert {finding.rule for finding in sheet.findings} == {"ragged-row"}
    assert len(sheet.rows) == 1


LARGE = 2**20


@pytest.mark.parametrize(
    "content",
    [
        b"," * LARGE,
        b'"' * LARGE,
        b'"' * (LARGE + 1),
        b'""a' * (LARGE // 3),
        b'"a"b\r\n' * (LARGE // 6),
        b'a"b,' * (LARGE // 4),
        b"\0" * LARGE,
        b"\xff" * LARGE,
        b"x" + b"\n" * LARGE,
        b"a;" * (LARGE // 2),
        b"a,b\r\n" + b"=1\t\r" * (LARGE // 4),
    ],
    ids=range(11),
)
def test_each_byte_of_a_large_file_is_read_once(content):
    """With a pattern that goes back over what it has read, this would take hours."""
    sheet = read(content)

    assert len(sheet.rows) < MAX_ROWS
    assert len(sheet.findings) <= 3 * MAX_ROWS

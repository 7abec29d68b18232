import csv
import io
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modwatch.audits.dsa.cells import HARMFUL
from modwatch.audits.dsa.reading import MAX_BYTES, MAX_CELLS, MAX_ROWS, Sheet, read


def rules(content: bytes) -> list[str]:
    return [finding.rule for finding in read(content).findings]


def only(content: bytes) -> tuple[str, int | None, str]:
    """Return the one finding of a file."""
    [finding] = read(content).findings
    return finding.rule, finding.row, finding.message


CELLS = st.text(max_size=20).filter(lambda text: not HARMFUL.search(text))


@given(st.lists(st.lists(CELLS, min_size=3, max_size=3), min_size=1, max_size=5))
def test_what_the_standard_library_writes_is_read_as_it_was(rows):
    rows = [["a", "b", "c"], *(row for row in rows if any(cell.strip() for cell in row))]
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\r\n").writerows(rows)

    sheet = read(text.getvalue().encode())

    assert sheet.findings == ()
    assert [sheet.header, *(cells for _, cells in sheet.rows)] == [tuple(row) for row in rows]


@given(st.binary(max_size=200))
def test_any_bytes_are_read(content):
    sheet = read(content)

    assert isinstance(sheet, Sheet)
    assert all(len(cells) == len(sheet.header) for _, cells in sheet.rows)


@given(st.text(alphabet='a",;\r\n\t\0é', max_size=40))
def test_any_text_is_read(text):
    sheet = read(text.encode())

    assert all(len(cells) == len(sheet.header) for _, cells in sheet.rows)


@pytest.mark.parametrize("content", [b"", b"\xef\xbb\xbf", b"\r\n\r\n", b" ,,\n;", b"\n" * 10**7])
def test_an_empty_file(content):
    assert rules(content)[-1] == "file-empty"


def test_a_byte_order_mark_is_reported_and_left_out():
    sheet = read(b"\xef\xbb\xbfa,b\r\n1,2\r\n")

    assert [finding.rule for finding in sheet.findings] == ["byte-order-mark"]
    assert sheet.header == ("a", "b")


def test_bytes_that_are_no_utf8_are_reported_where():
    rule, row, message = only("a,b\r\n1,é\r\n".encode("latin-1"))

    assert (rule, row) == ("encoding", None)
    assert "Byte 8, in line 2" in message


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_other_kinds_of_unicode_are_reported_and_read(encoding):
    sheet = read("a,b\r\n1,é\r\n".encode(encoding))

    assert [finding.rule for finding in sheet.findings] == ["encoding"]
    assert (sheet.header, sheet.rows) == (("a", "b"), ((2, ("1", "é")),))


@pytest.mark.parametrize(("delimiter", "word"), [(";", "';'"), ("\t", "tabs"), ("|", "'|'")])
def test_other_delimiters_are_reported_and_read(delimiter, word):
    sheet = read(f"a{delimiter}b\r\n1{delimiter}2\r\n".encode())

    assert [finding.rule for finding in sheet.findings] == ["delimiter"]
    assert word in sheet.findings[0].message
    assert sheet.rows == ((2, ("1", "2")),)


@pytest.mark.parametrize("sign", [",", ";", "\t"])
@pytest.mark.parametrize("ending", ["\r\n", "\n"])
def test_a_first_line_of_excel_that_names_the_delimiter(sign, ending):
    sheet = read(f'sep={sign}{ending}a{sign}b{ending}"1,5"{sign}2{ending}'.encode())

    [finding] = [finding for finding in sheet.findings if finding.rule != "line-ending"]
    assert finding.rule == "delimiter"
    assert "delete the first line" in finding.message
    assert (sheet.header, sheet.rows) == (("a", "b"), ((2, ("1,5", "2")),))


def test_a_file_of_only_the_line_that_names_the_delimiter_is_empty():
    assert rules(b"sep=;\r\n") == ["file-empty"]


def test_a_comma_in_a_file_with_semicolons():
    assert read(b"a;b\r\n1,5;2\r\n").rows == ((2, ("1,5", "2")),)


@pytest.mark.parametrize("ending", [b"\n", b"\r"])
def test_other_line_ends_are_reported_once(ending):
    content = b"a,b" + ending + b"1,2" + ending + b"3,4" + ending

    assert only(content)[:2] == ("line-ending", 1)
    assert len(read(content).rows) == 2


def test_line_ends_within_quotes_belong_to_the_cell():
    assert read(b'a,b\r\n"1\n2\r3\r\n4",5\r\n').rows == ((2, ("1\n2\r3\r\n4", "5")),)


def test_the_last_row_needs_no_end():
    assert read(b"a,b\r\n1,2").rows == ((2, ("1", "2")),)


@pytest.mark.parametrize("row", [b'x"y,2', b'"x"y,2', b'1,"2" ', b' "1",2'])
def test_stray_quotes(row):
    rule, number, _ = only(b"a,b\r\n" + row + b"\r\n3,4\r\n")

    assert (rule, number) == ("stray-quote", 2)
    assert read(b"a,b\r\n" + row + b"\r\n3,4\r\n").rows[-1] == (3, ("3", "4"))


def test_quotes_that_never_end():
    rule, number, message = only(b'a,b\r\n1,2\r\n3,"4\r\n5,6\r\n')

    assert (rule, number) == ("unclosed-quote", 3)
    assert "cell 2" in message


@pytest.mark.parametrize(("row", "cells"), [(b"1", ("1", "")), (b"1,2,3", ("1", "2"))])
def test_ragged_rows_are_reported_and_fitted(row, cells):
    content = b"a,b\r\n" + row + b"\r\n"

    assert only(content)[:2] == ("ragged-row", 2)
    assert read(content).rows == ((2, cells),)


@pytest.mark.parametrize("row", [b"", b",", b" , "])
def test_empty_rows_are_reported_and_left_out(row):
    content = b"a,b\r\n" + row + b"\r\n1,2\r\n"

    assert only(content)[:2] == ("blank-row", 2)
    assert read(content).rows == ((3, ("1", "2")),)


@pytest.mark.parametrize("character", ["\0", "\x1b", "\x7f", "\x85", "\u202e", "\u2066"])
def test_characters_that_no_one_sees(character):
    rule, number, message = only(f"a,b\r\n1,x{character}y\r\n".encode())

    assert (rule, number) == ("control-character", 2)
    assert f"U+{ord(character):04X}" in message
    assert character not in message


def test_tabs_and_line_ends_are_no_harm():
    assert rules(b'a,b\r\n1,"x\ty\nz"\r\n') == []


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


LARGE = 10 * 2**20


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
def test_large_files_are_read_in_bounded_time(content):
    start = time.process_time()
    sheet = read(content)

    assert time.process_time() - start < 20
    assert len(sheet.rows) < MAX_ROWS
    assert len(sheet.findings) <= 3 * MAX_ROWS

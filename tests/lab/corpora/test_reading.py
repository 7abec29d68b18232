from collections import Counter

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from modwatch.common.errors import SourceError
from modwatch_lab.corpora import reading


def test_unreadable_records_are_counted_and_the_rest_is_read(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b'id, text\n1,a\n2\n3,caf\xe9\n4,"b')
    left_out: Counter[str] = Counter()
    assert list(reading.rows(path, ("id", "text"), left_out)) == [{"id": "1", "text": "a"}]
    assert left_out == {"malformed_record": 2, "undecodable_text": 1}


def test_values_of_parquet_are_read_as_text(tmp_path):
    path = tmp_path / "a.parquet"
    columns = {
        "id": [1.0, 2.0, 3.0],
        "toxic": [True, None, False],
        "text": [b"caf\xc3\xa9", b"b", b"\xff"],
        "unused": [[1], [], None],
    }
    pq.write_table(pa.table(columns), path)
    left_out: Counter[str] = Counter()
    found = list(reading.rows(path, ("id", "text", "toxic"), left_out))
    assert [(row["id"], row["text"], row["toxic"]) for row in found] == [
        ("1", "café", "True"),
        ("2", "b", ""),
    ]
    assert left_out == {"undecodable_text": 1}


def test_another_format_is_named(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("id,body\n1,a\n")
    with pytest.raises(SourceError, match=r"has no column 'text'; .* \(expected id, text\)"):
        list(reading.rows(path, ("id", "text"), Counter()))


def test_an_empty_file_is_not_a_corpus(tmp_path):
    path = tmp_path / "a.csv"
    path.touch()
    with pytest.raises(SourceError, match="contains no records; download"):
        list(reading.rows(path, ("id",), Counter()))


def test_values_of_another_format_are_refused(tmp_path):
    with pytest.raises(SourceError, match="is not 0 or 1"):
        reading.binary("2", tmp_path)
    with pytest.raises(SourceError, match="not a number"):
        reading.number("high", tmp_path)

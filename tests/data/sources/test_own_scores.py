"""Sources that bring scores: what they say is taken, and what they leave out is configured."""

import datetime as dt
import json
import math
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlalchemy import create_engine, text

from modwatch.common.errors import SourceError
from modwatch.data.lake.schemas import LANDED
from modwatch.data.sources.files import FileSource
from modwatch.data.sources.landing import convert
from modwatch.data.sources.own_scores import OwnScores
from modwatch.data.sources.sql import SqlSource

DAY = dt.date(2024, 3, 1)
NOON = "2024-03-01T12:00:00Z"
SCORE = ("prob", "model_version", "flagged")
OWN = OwnScores(threshold=0.7, model_version="rules-1")


def landed(source: FileSource | SqlSource) -> list[dict]:
    return pa.Table.from_batches(source.read(DAY), LANDED).to_pylist()


def scores(source: FileSource | SqlSource) -> list[tuple[object, ...]]:
    return [tuple(row[name] for name in SCORE) for row in landed(source)]


def csv_file(folder: Path, header: str, *lines: str, name: str = "day.csv") -> Path:
    path = folder / name
    rows = [f"{number},words,{NOON},{line}" for number, line in enumerate(lines)]
    path.write_text("\n".join([f"comment_id,text,created_at,{header}", *rows, ""]))
    return path


def json_file(folder: Path, *fields: dict[str, object], name: str = "day.jsonl") -> Path:
    path = folder / name
    plain = {"text": "words", "created_at": NOON}
    rows = [{"comment_id": f"c{n}", **plain, **each} for n, each in enumerate(fields)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("prob", "0.25", (0.25, None)),
        ("prob", " 1e-3 ", (0.001, None)),
        ("prob", 1, (1.0, None)),
        ("prob", Decimal("0.5"), (0.5, None)),
        ("prob", "1.5", (1.5, None)),  # validation names it
        ("prob", "", (None, None)),
        ("prob", "0,25", (None, "unreadable_probability")),
        ("prob", "an insult", (None, "unreadable_probability")),
        ("prob", True, (None, "unreadable_probability")),
        ("prob", 10**400, (None, "unreadable_probability")),
        ("prob", ["0.2"], (None, "unreadable_probability")),
        ("flagged", "true", (True, None)),
        ("flagged", 0, (False, None)),
        ("flagged", False, (False, None)),
        ("flagged", "", (None, None)),
        ("flagged", "maybe", (None, "unreadable_decision")),
        ("flagged", 0.7, (None, "unreadable_decision")),
        ("model_version", 3, ("3", None)),
        ("model_version", "", (None, None)),
    ],
)
def test_values_are_converted_or_named_as_a_problem(name, value, expected):
    assert convert(name, value) == expected


def test_not_a_number_is_kept_for_validation():
    value, problem = convert("prob", "nan")
    assert math.isnan(value)
    assert problem is None


def test_decisions_and_versions_are_taken_as_they_are(tmp_path):
    path = csv_file(tmp_path, "prob,model_version,flagged", "0.9,v7,0", "0.1,v7,1", "0.9,,")
    found = scores(FileSource(path=path, own_scores=OWN))
    assert found == [(0.9, "v7", False), (0.1, "v7", True), (0.9, None, None)]


def test_absent_columns_are_what_is_configured(tmp_path):
    path = csv_file(tmp_path, "prob", "0.71", "0.7", "")
    found = scores(FileSource(path=path, own_scores=OWN))
    assert found == [(0.71, "rules-1", True), (0.7, "rules-1", False), (None, "rules-1", None)]


def test_columns_may_have_other_names(tmp_path):
    path = csv_file(tmp_path, "score,action,prob", "0.2,1,0.9")
    columns = {"prob": "score", "flagged": "action"}
    found = scores(FileSource(path=path, columns=columns, own_scores=OWN))
    assert found == [(0.2, "rules-1", True)]


def test_without_the_setting_columns_of_scores_are_not_read(tmp_path):
    path = csv_file(tmp_path, "prob,model_version,flagged", "0.9,v7,0")
    assert scores(FileSource(path=path)) == [(None, None, None)]
    with pytest.raises(SourceError, match=r"maps prob, but .*MODWATCH_SOURCE__OWN_SCORES=true"):
        FileSource(path=path, columns={"prob": "prob"})


def test_the_probability_must_be_there_and_so_must_what_is_mapped(tmp_path):
    path = csv_file(tmp_path, "flagged", "0")
    with pytest.raises(SourceError, match=r"Column 'prob' is not in .*day\.csv"):
        landed(FileSource(path=path, own_scores=OWN))
    path = json_file(tmp_path, {"prob": 0.2})
    source = FileSource(path=path, columns={"flagged": "action"}, own_scores=OWN)
    with pytest.raises(SourceError, match="Column 'action' is not in"):
        landed(source)


def test_decisions_that_only_late_records_of_json_lines_have_are_not_replaced(tmp_path):
    """Records may leave out what is null: it is then missing, and no threshold decides."""
    rows = [{"prob": 0.9}] * 1_500 + [{"prob": 0.1, "flagged": True}]
    found = scores(FileSource(path=json_file(tmp_path, *rows), own_scores=OWN))
    assert set(found[:-1]) == {(0.9, "rules-1", None)}
    assert found[-1] == (0.1, "rules-1", True)


def test_files_of_one_day_have_the_same_columns(tmp_path):
    csv_file(tmp_path, "prob,flagged", "0.9,1", name="a.csv")
    csv_file(tmp_path, "prob", "0.9", name="b.csv")
    source = FileSource(path=tmp_path, own_scores=OWN)
    with pytest.raises(SourceError, match=r"different columns .*a\.csv and .*b\.csv .* in flagged"):
        landed(source)
    (tmp_path / "b.csv").write_text("comment_id,text,created_at,prob\nx,y,2024-03-02T12:00:00Z,1\n")
    assert scores(source) == [(0.9, "rules-1", True)]  # the other file is of another day
    (tmp_path / "b.csv").write_text("")
    assert len(landed(source)) == 1


def test_parquet_keeps_its_types(tmp_path):
    table = pa.table(
        {
            "comment_id": ["a", "b"],
            "text": ["x", "y"],
            "created_at": [dt.datetime(2024, 3, 1, 12, tzinfo=dt.UTC)] * 2,
            "prob": pa.array([0.25, None], pa.float32()),
            "flagged": [True, False],
            "model_version": pa.array([3, 3]),
        }
    )
    pq.write_table(table, tmp_path / "day.parquet")
    found = scores(FileSource(path=tmp_path / "day.parquet", own_scores=OWN))
    assert found == [(0.25, "3", True), (None, "3", False)]


def test_a_query_brings_scores(tmp_path):
    url = f"sqlite:///{tmp_path / 'forum.db'}"
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(
            text("CREATE TABLE post (comment_id TEXT, text TEXT, created_at TEXT, p REAL, hit INT)")
        )
        connection.execute(
            text("INSERT INTO post VALUES ('a', 'x', '2024-03-01 12:00:00.000000', 0.9, 0)")
        )
    engine.dispose()
    query = "SELECT * FROM post WHERE created_at >= :start AND created_at < :end"
    columns = {"prob": "p", "flagged": "hit"}
    given = {"url": url, "query": query, "assume_timezone": "UTC"}
    source = SqlSource(**given, columns=columns, own_scores=OWN)
    assert scores(source) == [(0.9, "rules-1", False)]
    assert scores(SqlSource(**given)) == [(None, None, None)]
    with pytest.raises(SourceError, match="Column 'prob' is not in the query"):
        landed(SqlSource(**given, own_scores=OWN))

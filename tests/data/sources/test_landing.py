"""Sources of comments: what holds for all of them, conversions, and scores that a source brings."""

import datetime as dt
import itertools
import json
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlalchemy import create_engine, text

from modwatch.common.account import Account
from modwatch.common.errors import SourceError
from modwatch.data.lake.schemas import LANDED
from modwatch.data.sources import landing
from modwatch.data.sources.files import FileSource
from modwatch.data.sources.landing import (
    LandedRow,
    MappedSource,
    OwnScores,
    Source,
    batches,
    column_batch,
    convert,
)
from modwatch.data.sources.sql import SqlSource
from modwatch.data.sources.timestamps import read_moment
from modwatch.data.sources.values import Vocabulary
from modwatch_lab.community import Community
from modwatch_lab.corpora.corpus import ITEMS, Corpus, table
from modwatch_lab.replay import ReplaySource

DAY = dt.date(2024, 3, 1)
ROWS = 10_500
NOON = "2024-03-01T12:00:00Z"
SCORE = ("prob", "model_version", "flagged")
OWN = OwnScores(threshold=0.7, model_version="rules-1")


def file_source(folder: Path) -> Source:
    lines = (f"{i},x,2024-03-01T00:00:00Z\n" for i in range(ROWS))
    (folder / "a.csv").write_text("comment_id,text,created_at\n" + "".join(lines))
    return FileSource(path=folder / "a.csv")


def sql_source(folder: Path) -> Source:
    url = f"sqlite:///{folder / 'a.db'}"
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE post (comment_id, text, created_at)"))
        connection.execute(
            text("INSERT INTO post VALUES (:i, 'x', '2024-03-01T00:00:00Z')"),
            [{"i": i} for i in range(ROWS)],
        )
    engine.dispose()
    query = "SELECT * FROM post WHERE :start < :end ORDER BY rowid"
    return SqlSource(url=url, query=query)


def replay_source(folder: Path) -> Source:
    items = [{"comment_id": str(i), "text": "x", "label": 0} for i in range(ROWS)]
    corpus = Corpus(name="tiny", items=table(ITEMS, items))
    return ReplaySource(corpus=corpus, first_day=DAY, days=1)


def community_source(folder: Path) -> Source:
    return Community(comments_per_day=ROWS, dirt_rate=0.002)


@pytest.mark.parametrize("make", [file_source, sql_source, replay_source, community_source])
def test_every_source_yields_numbered_batches_of_the_landed_schema_and_repeats_itself(
    tmp_path, make
):
    source = make(tmp_path)
    found = list(source.read(DAY))
    assert len(found) >= 2
    assert all(batch.schema == LANDED and 0 < batch.num_rows <= 10_000 for batch in found)
    rows = list(itertools.chain.from_iterable(batch["row"].to_pylist() for batch in found))
    assert rows == list(range(len(rows)))
    assert {day for batch in found for day in batch["dt"].unique().to_pylist()} == {DAY}
    assert list(source.read(DAY)) == found
    assert source.name


def row_of(text: str | None) -> LandedRow:
    return LandedRow(origin="here", values={"text": text})


def test_batches_have_the_schema_and_count_rows_over_the_day(monkeypatch):
    monkeypatch.setattr(landing, "BATCH_ROWS", 2)
    found = list(batches(DAY, [row_of(str(i)) for i in range(5)]))
    assert [batch.num_rows for batch in found] == [2, 2, 1]
    assert all(batch.schema == LANDED for batch in found)
    assert [row for batch in found for row in batch["row"].to_pylist()] == [0, 1, 2, 3, 4]
    assert list(batches(DAY, [])) == []


@pytest.mark.parametrize(
    ("name", "value", "fault"),
    [
        ("language", "english", "malformed_language"),
        ("language", "en\n", "malformed_language"),
        ("language", "<script>", "malformed_language"),
        ("author_id", "a\x00b", "nul_byte"),
        ("groups", ["a", "b\x00"], "nul_byte"),
        ("views", "many", "unreadable_views"),
        ("label", "perhaps", "unreadable_label"),
        ("thread_id", {"no": "text"}, "malformed_record"),
    ],
)
def test_a_fault_in_an_optional_column_costs_its_value_only(name, value, fault):
    source = MappedSource()
    row = source._landed_row("a.csv:2", {name: value}, {name: name}, read_moment(DAY, dt.UTC))
    sound = LandedRow(origin="a.csv:3", values={name: None})
    [batch] = batches(DAY, [row, sound])
    assert batch["faults"].to_pylist() == [[f"{name}: {fault}"], None]
    assert batch["problem"].null_count == batch[name].null_count == 2


@pytest.mark.parametrize("language", ["en", "zh-Hans-CN", "EN", None])
def test_a_language_is_a_tag(language):
    [batch] = batches(DAY, [LandedRow(origin="a", values={"language": language})])
    assert batch["language"].to_pylist() == [language]
    assert batch["faults"].null_count == 1


def test_rows_alike_in_every_value_count_once():
    known = {"comment_id": "1", "text": "a", "groups": ["g"]}
    rows = [LandedRow(origin=f"a:{n}", values=known) for n in range(3)]
    rows.append(LandedRow(origin="a:4", values=known | {"text": "b"}))
    rows += [LandedRow(origin="a:5", values={"text": "+1"})] * 2
    account = Account()
    [batch] = batches(DAY, rows, account)
    assert batch["text"].to_pylist() == ["a", "b", "+1", "+1"]
    assert (account.places["repeated"], account.first["repeated"]) == (2, "a:1")


def test_long_texts_end_a_batch_early():
    found = list(batches(DAY, [row_of("x" * 9_000_000) for _ in range(3)]))
    assert [batch.num_rows for batch in found] == [2, 1]


def test_a_row_does_not_show_its_text():
    assert "private words" not in repr(row_of("private words"))


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("text", None, (None, None)),
        ("text", "a\x00b", ("a\x00b", None)),
        ("text", {"no": "text"}, ("{'no': 'text'}", "malformed_record")),
        ("text", "\ud83d", ("\ufffd", "undecodable_text")),
        ("comment_id", 12345678901234567890, ("12345678901234567890", None)),
        ("label", True, (1, None)),
        ("label", 0.7, (None, "unreadable_label")),
        ("groups", [], ([], None)),
        ("groups", ["a", 3, None], (["a", "3"], None)),
        ("groups", 3, (None, "malformed_record")),
        ("prob", "0.25", (0.25, None)),
        ("prob", Decimal("0.5"), (0.5, None)),
        ("prob", "1.5", (1.5, None)),  # validation names it
        ("prob", "", (None, None)),
        ("prob", "nan", (None, None)),
        ("prob", "0,5", (0.5, None)),
        ("views", "1204", (1204.0, None)),
        ("views", -1, (None, "unreadable_views")),
        ("views", "inf", (None, "unreadable_views")),
        ("prob", "an insult", (None, "unreadable_probability")),
        ("prob", True, (None, "unreadable_probability")),
        ("prob", 10**400, (None, "unreadable_probability")),
        ("flagged", "true", (True, None)),
        ("flagged", 0, (False, None)),
        ("flagged", "maybe", (None, "unreadable_flag")),
        ("model_version", 3, ("3", None)),
        ("decision", "Removed ", ("removed", None)),
        ("decision", "published", ("kept", None)),
        ("decision", None, ("none", None)),
        ("decision", "NA", ("none", None)),
        ("decision", "1", (None, "unreadable_decision")),  # hidden, or approved
        ("decision", ["spam"], (None, "unreadable_decision")),
        ("decided_by", "AUTOMOD", ("rule", None)),
        ("decided_by", "ada", (None, "unreadable_decided_by")),
        ("decided_by", None, (None, None)),
    ],
)
def test_values_are_converted_or_named_as_a_problem(name, value, expected):
    assert convert(name, value) == expected


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
    rows = [{"comment_id": f"c{n}", **plain, **own} for n, own in enumerate(fields)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


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
    with pytest.raises(SourceError, match=r"day\.csv has no column 'prob'"):
        landed(FileSource(path=path, own_scores=OWN))
    path = json_file(tmp_path, {"prob": 0.2})
    source = FileSource(path=path, columns={"flagged": "action"}, own_scores=OWN)
    with pytest.raises(SourceError, match="has no column 'action'"):
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
    with pytest.raises(SourceError, match=r"the query of .* has no column 'prob'"):
        landed(SqlSource(**given, own_scores=OWN))


def test_what_the_platform_did_lands_with_who_and_when(tmp_path):
    """What cannot be read costs its value; who took the decision only counts where there is one."""
    path = csv_file(
        tmp_path, "what,who,when", f"spam,human,{NOON}", "ok,,soon", ",,", "weiss nicht,robot,"
    )
    source = FileSource(
        path=str(path),
        columns={"decision": "what", "decided_by": "who", "decided_at": "when"},
        vocabulary=Vocabulary.of(["ok=other"]),
        decided_by="model",
    )
    rows = landed(source)
    moment = dt.datetime.fromisoformat(NOON)
    names = ("decision", "decided_by", "decided_at", "faults")
    assert [tuple(row[name] for name in names) for row in rows] == [
        ("removed", "person", moment, None),
        ("kept", "model", None, ["decided_at: unreadable_timestamp"]),
        ("none", None, None, None),
        (None, None, None, ["decision: unreadable_decision", "decided_by: unreadable_decided_by"]),
    ]
    assert {row["problem"] for row in rows} == {None}


def test_a_package_that_gives_other_words_gives_no_decision():
    columns = {
        "decision": ["removed", "gone", None, "none"],
        "decided_by": ["rule", "", None, "me"],
    }
    batch = column_batch(DAY, 0, {"origin": ["a:1"] * 4, **columns})
    assert batch.column("decision").to_pylist() == ["removed", None, None, "none"]
    assert batch.column("decided_by").to_pylist() == ["rule", None, None, None]
    assert batch.column("faults").to_pylist()[1] == [
        "decision: unreadable_decision",
        "decided_by: unreadable_decided_by",
    ]

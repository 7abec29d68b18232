import csv
import datetime as dt
import io
import json
import logging
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from modwatch.common.account import Account
from modwatch.common.errors import SourceError
from modwatch.common.text import text_problem
from modwatch.data.lake.schemas import LANDED
from modwatch.data.sources.delimited import TextFormat
from modwatch.data.sources.files import FileSource

DAY = dt.date(2024, 3, 1)
DAYS = [DAY + dt.timedelta(days=n) for n in range(-1, 4)]
HEADER = "comment_id,text,created_at\n"


def csv_file(folder: Path, *lines: str, name: str = "a.csv") -> Path:
    path = folder / name
    path.write_text(HEADER + "".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def landed(source: FileSource, day: dt.date = DAY) -> list[dict]:
    return pa.Table.from_batches(source.read(day), LANDED).to_pylist()


def ids(source: FileSource, day: dt.date = DAY) -> list[str | None]:
    return [row["comment_id"] for row in landed(source, day)]


def test_rows_are_selected_by_utc_day_half_open(tmp_path):
    path = csv_file(
        tmp_path,
        "before,x,2024-02-29T23:59:59.999999Z",
        "first,x,2024-03-01T00:00:00Z",
        "zone,x,2024-03-02T00:30:00+01:00",
        "after,x,2024-03-02T00:00:00Z",
    )
    rows = landed(FileSource(path=path, platform="forum"))
    assert [row["comment_id"] for row in rows] == ["first", "zone"]
    assert [row["row"] for row in rows] == [0, 1]
    assert rows[1]["created_at"] == dt.datetime(2024, 3, 1, 23, 30, tzinfo=dt.UTC)
    assert rows[0]["origin"] == f"{path}:3"
    assert {(row["dt"], row["platform"], row["problem"]) for row in rows} == {(DAY, "forum", None)}


@pytest.mark.parametrize("indent", [None, 1])
def test_one_object_with_the_records_is_named(tmp_path, indent):
    record = {"comment_id": "a", "text": "secret", "created_at": "2024-03-01T00:00:00Z"}
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"data": [record]}, indent=indent))
    with pytest.raises(SourceError, match="one JSON object with the records in it; save"):
        landed(FileSource(path=path))


def test_a_file_named_by_its_day_keeps_rows_of_other_days_for_the_checks(tmp_path):
    csv_file(tmp_path, "a,x,2024-03-05T00:00:00Z", "b,x,never", name="2024-03-01.csv")
    rows = landed(FileSource(path=tmp_path / "{dt}.csv"))
    assert [row["comment_id"] for row in rows] == ["a", "b"]
    assert [row["problem"] for row in rows] == [None, "unreadable_timestamp"]


def test_unreadable_times_follow_the_row_before_them_or_the_first_after(tmp_path):
    path = csv_file(
        tmp_path,
        "head,x,?",
        "one,x,2024-03-01T10:00:00Z",
        "follows,x,?",
        "broken",
        "two,x,2024-03-02T10:00:00Z",
        "tail,x,",
    )
    source = FileSource(path=path)
    assert ids(source) == ["head", "one", "follows", None]
    assert ids(source, DAY + dt.timedelta(days=1)) == ["two", "tail"]
    assert landed(source)[3]["text"] == "broken\n"


def test_no_readable_time_at_all_is_stated(tmp_path):
    source = FileSource(path=csv_file(tmp_path, "a,x,?"))
    with pytest.raises(
        SourceError, match=r"No row of .*a\.csv has a readable time.*TIMESTAMP_COLUMN"
    ):
        landed(source)


def test_times_without_zone_are_marked_or_placed_in_the_zone_given(tmp_path):
    path = csv_file(tmp_path, "a,x,2024-03-01 00:30")
    (marked,) = landed(FileSource(path=path))
    assert (marked["created_at"], marked["problem"]) == (None, "timestamp_without_zone")
    berlin = FileSource(path=path, assume_timezone="Europe/Berlin")
    assert ids(berlin) == []
    assert ids(berlin, DAY - dt.timedelta(days=1)) == ["a"]


def test_hard_texts_are_handed_on_faithfully(tmp_path):
    texts = ["", "a\x00b", "🙂🏽", "مرحبا \u202e", "x" * 1_000_000, "=1+1"]
    path = tmp_path / "a.jsonl"
    lines = [
        {"comment_id": "same", "text": text, "created_at": "2024-03-01T01:00:00Z"} for text in texts
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    rows = landed(FileSource(path=path))
    assert [row["text"] for row in rows] == texts
    assert {row["problem"] for row in rows} == {None}


def test_the_wrong_encoding_marks_only_the_rows_it_spoils_and_is_stated(tmp_path, caplog):
    path = tmp_path / "a.csv"
    lines = HEADER + "a,café,2024-03-01T01:00:00Z\nb,tea,2024-03-01T02:00:00Z\n"
    path.write_bytes(lines.encode("cp1252"))
    with caplog.at_level(logging.WARNING):
        rows = landed(FileSource(path=path))
    assert [row["problem"] for row in rows] == ["undecodable_text", None]
    assert rows[0]["text"] == "caf\ufffd"
    (result,) = caplog.records
    assert (result.event, result.undecodable_text) == ("rows_with_problems", 1)
    assert "caf" not in caplog.text
    named = landed(FileSource(path=path, form=TextFormat(encoding="cp1252")))
    assert [row["text"] for row in named] == ["café", "tea"]


def test_columns_are_mapped_and_optional_ones_found(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("id,body,when,language,tags,y\n1,hi,2024-03-01T01:00:00Z,en,p|q,1\n")
    names = {"comment_id": "id", "text": "body", "groups": "tags", "label": "y"}
    (row,) = landed(FileSource(path=path, columns=names, timestamp_column="when"))
    assert (row["comment_id"], row["text"], row["language"]) == ("1", "hi", "en")
    assert (row["groups"], row["label"], row["author_id"]) == (["p", "q"], 1, None)


@pytest.mark.parametrize(
    ("options", "column"),
    [({"columns": {"thread_id": "thread"}}, "thread"), ({"timestamp_column": "when"}, "when")],
)
def test_a_missing_column_is_named_with_those_there_are(tmp_path, options, column):
    source = FileSource(path=csv_file(tmp_path, "a,x,2024-03-01T01:00:00Z"), **options)
    with pytest.raises(
        SourceError, match=f"a.csv has no column '{column}'; it has comment_id, text, created_at"
    ):
        landed(source)


def test_a_file_without_header_does_not_show_a_comment_in_the_message(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("7,some private words,2024-03-01T01:00:00Z\n8,y,2024-03-01T01:00:00Z\n")
    with pytest.raises(SourceError, match="has no column 'comment_id'") as caught:
        landed(FileSource(path=path))
    assert "private" not in str(caught.value)


def test_an_empty_file_is_an_empty_day(tmp_path):
    for content in (HEADER, ""):
        (tmp_path / "a.csv").write_text(content)
        assert landed(FileSource(path=tmp_path / "a.csv")) == []


def test_no_file_at_all_is_an_error(tmp_path):
    with pytest.raises(SourceError, match=r"No file matches .*2024-03-01\.csv"):
        landed(FileSource(path=tmp_path / "{dt}.csv"))


def test_folders_globs_and_day_folders(tmp_path, caplog):
    folder = tmp_path / "dt=2024-03-01"
    folder.mkdir()
    csv_file(folder, "a,x,2024-03-01T01:00:00Z", name="1.csv")
    line = {"comment_id": "b", "text": "x", "created_at": "2024-03-01T01:00:00Z"}
    (folder / "2.jsonl").write_text(json.dumps(line))
    stamp = pa.array([dt.datetime(2024, 3, 1, tzinfo=dt.UTC)], pa.timestamp("us", tz="UTC"))
    pq.write_table(
        pa.table({"comment_id": ["c"], "text": ["x"], "created_at": stamp}), folder / "3.parquet"
    )
    (folder / "_SUCCESS").touch()
    (folder / "notes.txt").touch()
    assert ids(FileSource(path=tmp_path)) == ["a", "b", "c"]
    assert ids(FileSource(path=tmp_path / "dt={dt}")) == ["a", "b", "c"]
    assert ids(FileSource(path=str(tmp_path / "*" / "*.csv"))) == ["a"]
    assert {record.event for record in caplog.records} == {"file_passed_over"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"columns": {"txet": "body"}}, "maps txet, which Modwatch does not have"),
        ({"assume_timezone": "Nowhere"}, "Time zone 'Nowhere' does not exist"),
        ({"day": "{dt}"}, "MODWATCH_SOURCE__DAY must be"),
        ({"path": "{dt}.csv", "day": "2026-03-13"}, "MODWATCH_SOURCE__DAY must be"),
    ],
)
def test_impossible_settings_are_refused_at_once(options, message):
    with pytest.raises(SourceError, match=message):
        FileSource(**{"path": "a.csv"} | options)


def test_generated_ids_depend_on_values_and_without_times_on_file_and_line(tmp_path):
    csv_file(tmp_path, "1,a,2024-03-01T12:00:00Z", "1,a,2024-03-01T12:00:00Z", name="a.csv")
    csv_file(tmp_path, "1,a,2024-03-01T12:00:00Z", name="b.csv")
    dated = FileSource(path=tmp_path, generate_ids=True)
    undated = FileSource(path=tmp_path, generate_ids=True, day="2024-03-01")
    [known], first = ids(dated), ids(undated)
    assert len(set(first)) == 3
    csv_file(tmp_path, "1,b,2024-03-01T12:00:00Z", "1,a,2024-03-01T12:00:00Z", name="a.csv")
    again = ids(undated)
    assert again[0] not in first
    assert again[1:] == first[1:]
    assert ids(dated)[1:] == [known]


def test_ids_of_files_of_several_days_differ(tmp_path):
    for day in DAYS[:2]:
        (tmp_path / f"{day}").mkdir()
        csv_file(tmp_path / f"{day}", f"1,a,{day}T12:00:00Z")
    source = FileSource(path=tmp_path / "{dt}/*.csv", generate_ids=True, day="{dt}")
    assert len({*ids(source, DAYS[0]), *ids(source, DAYS[1])}) == 2
    assert landed(source, DAYS[0])[0]["created_at"].date() == DAYS[0]


@pytest.mark.parametrize(
    ("votes", "label", "faults"),
    [("1,0,1", 1, None), ("no,,false", 0, None), ("1,0,", None, None), (",,", None, None),
     ("1,1,maybe", None, ["label: unreadable_label"])],
)  # fmt: skip
def test_the_label_is_that_of_most_votes(tmp_path, votes, label, faults):
    path = tmp_path / "a.csv"
    path.write_text(f"comment_id,text,created_at,a,b,c\n1,x,2024-03-01T12:00:00Z,{votes}\n")
    [row] = landed(FileSource(path=path, votes=("a", "b", "c")))
    assert (row["label"], row["faults"], row["problem"]) == (label, faults, None)
    with pytest.raises(SourceError, match="has no column 'd'"):
        landed(FileSource(path=path, votes=("a", "d")))


def test_the_first_rows_come_from_every_file_with_their_day(tmp_path):
    for day in DAYS:
        lines = [f"{day}-{n},x,{day}T12:00:00Z" for n in range(50)]
        csv_file(tmp_path, *lines, name=f"{day}.csv")
    for path in (tmp_path, tmp_path / "{dt}.csv"):
        found = [*FileSource(path=path).first_rows(100, DAY)]
        assert [day for day, _ in found] == [day for day in DAYS for _ in range(20)]


texts = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]) | st.sampled_from('",;\t|\\'),
    min_size=1,
    max_size=12,
).filter(lambda text: text_problem(text) is None and text != "\\N")
dialects = st.fixed_dictionaries(
    {
        "delimiter": st.sampled_from(",;|\t"),
        "quoting": st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
        "lineterminator": st.sampled_from(["\n", "\r\n"]),
    }
)
damages = st.sampled_from(
    ["", "", "", "more", "less", '"', "blank", "header", "time", "bytes", "swallow"]
)


def damaged(fields: list[str], damage: str, dialect: dict) -> bytes:
    """Return a record, with damage that spoils only itself."""
    delimiter = dialect["delimiter"]
    given = {
        "more": [*fields, "x"],
        "less": fields[:-1],
        "blank": [],
        "header": HEADER.strip().split(","),
        "time": [*fields[:-1], "soon"],
    }
    file = io.StringIO()
    csv.writer(file, **dialect).writerow(given.get(damage, fields))
    line = file.getvalue().encode()
    if damage == "swallow":
        line = delimiter.join([fields[0], '"oh', fields[2]]).encode() + b"\n"
    if damage == '"':
        line = delimiter.join([fields[0], '"a" b', fields[2]]).encode() + b"\n"
    return line.replace(b"T", b"T\xff", 1) if damage == "bytes" else line


@examples(40)
@given(rows=st.lists(st.tuples(texts, damages), min_size=1, max_size=30), dialect=dialects)
def test_the_account_of_all_days_closes_and_no_valid_row_changes(tmp_path_factory, rows, dialect):
    path = tmp_path_factory.mktemp("property") / "a.csv"
    form = TextFormat(delimiter=dialect["delimiter"], quoting="minimal", escape="")
    lines, whole = [damaged(HEADER.strip().split(","), "", dialect)], {}
    for number, (text, damage) in enumerate(rows):
        fields = [f"k{number}", text, f"{DAYS[number % 3]}T12:00:00Z"]
        lines.append(damaged(fields, damage, dialect))
        if damage == "":
            whole[fields[0]] = (text, DAYS[number % 3])
    path.write_bytes(b"".join([*lines, damaged(["last", "x", f"{DAY}T12:00:00Z"], "", dialect)]))
    source, found, read = FileSource(path=path, form=form), {}, 0
    for day in DAYS:
        account = Account()
        for row in pa.Table.from_batches(source.read(day, account), LANDED).to_pylist():
            account.count("landed")
            read += 1
            if row["problem"] is None:
                found[row["comment_id"]] = (row["text"], row["dt"])
        account.close(source.name)
    assert found == whole | {"last": ("x", DAY)}
    kept = [damage for _, damage in rows if damage not in ("blank", "header")]
    assert read == len(kept) + 1

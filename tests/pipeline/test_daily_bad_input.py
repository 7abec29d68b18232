"""Bad input and bad weather: a clear message, nothing lost, and a re-run that gives the same."""

import datetime
import gzip
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from feed import MARK, assert_again_the_same, good, quarantined, refused, write_json

from installation import (
    FROM_THE_QUEUE,
    MONDAY,
    TO_THE_QUEUE,
    TUESDAY,
    Installation,
    assert_same,
    config_with,
    files_with,
    picture_of,
    queue_rows,
)
from modwatch.common.errors import DayRejectedError, IncidentError, SettingsError, SourceError
from modwatch.installation.resources import open_resources
from modwatch.monitoring.incidents.actions import repair
from modwatch.monitoring.publishing.days import read_days
from modwatch.pipeline import daily
from modwatch.review.empty_days import declare_empty, declared_empty
from modwatch.review.log.verification import verify_log

# MLflow 3.17 uses a loader strategy that SQLAlchemy 2.1 deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")

Install = Callable[..., Installation]


def from_csv(files: Installation, incoming: Path, content: bytes) -> Installation:
    (incoming / f"{MONDAY}.csv").write_bytes(content)
    return files.but(source={"kind": "files", "path": str(incoming / "{dt}.csv")})


def csv_bytes(rows: int) -> bytes:
    lines = [f'{n},2026-01-05T12:00:00Z,"a remark, {MARK}"' for n in range(rows)]
    return "\n".join(["comment_id,created_at,text", *lines, ""]).encode()


#: The rule that refuses a row, and what is wrong with the row.
BAD_ROWS = [
    ("blank_text", {"text": ""}),
    ("blank_text", {"text": " \t\u200b"}),
    ("blank_text", {"text": None}),
    ("long_text", {"text": MARK + "a" * 1_000_000}),
    ("nul_byte", {"text": f"{MARK}\0"}),
    ("undecodable_text", {"text": f"{MARK}\ud800"}),
    ("missing_id", {"comment_id": None}),
    ("nul_byte", {"comment_id": "a\0b"}),
    ("long_id", {"comment_id": MARK * 100}),
    ("duplicate_id", {"comment_id": f"{MONDAY}/3"}),
    ("time_outside_day", {"created_at": "2026-01-06T00:00:00Z"}),
    ("time_outside_day", {"created_at": "2026-01-05T00:30:00+01:00"}),
    ("timestamp_without_zone", {"created_at": "2026-01-05T12:00:00"}),
    ("unreadable_timestamp", {"created_at": f"soon, {MARK}"}),
    ("unreadable_timestamp", {"created_at": None}),
]


def test_bad_rows_go_to_quarantine_and_the_day_goes_on(files, incoming):
    bad = [good(400 + number, **fields) for number, (_, fields) in enumerate(BAD_ROWS)]
    unread = good(399, label=f"maybe, {MARK}")  # costs its label only
    write_json(incoming / f"{MONDAY}.jsonl", [*map(good, range(399)), unread, *bad])
    assert files.run(*TO_THE_QUEUE) == [415, 400, 400, 400, 40, 0]
    assert quarantined(files) == sorted(rule for rule, _ in BAD_ROWS)
    assert_again_the_same(files, *TO_THE_QUEUE)
    checks = Path(files.settings.checks_root)
    assert files_with(MARK, [checks]) == []
    named = [*(rule for rule, _ in BAD_ROWS), "label: unreadable_label"]
    assert [rule for rule in named if not files_with(rule, [checks])] == []


def test_the_first_of_two_rows_with_one_id_stays(files, incoming):
    rows = [*map(good, range(40)), good(3, text=f"another remark, {MARK}")]
    write_json(incoming / f"{MONDAY}.jsonl", rows)
    files.run("ingest", "check_comments")
    with open_resources(files.settings) as resources:
        kept = {
            row["comment_id"]: row["text"]
            for row in resources.lake.table("comments", MONDAY).to_pylist()
        }
    assert kept[good(3)["comment_id"]] == good(3)["text"]


def test_an_id_of_an_earlier_day_is_refused_on_the_later_one(files, incoming):
    tuesday = [*(good(n, TUESDAY) for n in range(40)), good(7, TUESDAY, comment_id=f"{MONDAY}/7")]
    write_json(incoming / f"{TUESDAY}.jsonl", tuesday)
    steps = ("ingest", "check_comments")
    for day in (MONDAY, TUESDAY):
        files.run(*steps, day=day)
    assert quarantined(files) == []
    assert quarantined(files, TUESDAY) == ["id_of_earlier_day"]
    for day in (MONDAY, TUESDAY):
        assert_again_the_same(files, *steps, day=day)


def test_comments_that_move_to_an_earlier_day_are_named_until_the_later_one_is_run_again(
    files, incoming
):
    late = [good(100 + n, TUESDAY) for n in range(10)]
    write_json(incoming / f"{MONDAY}.jsonl", map(good, range(40)))
    write_json(incoming / f"{TUESDAY}.jsonl", [*(good(n, TUESDAY) for n in range(40)), *late])
    for day in (MONDAY, TUESDAY):
        files.run("ingest", "check_comments", day=day)
    moved = [{**row, "created_at": f"{MONDAY}T23:59:59Z"} for row in late]
    write_json(incoming / f"{MONDAY}.jsonl", [*map(good, range(40)), *moved])
    write_json(incoming / f"{TUESDAY}.jsonl", [good(n, TUESDAY) for n in range(40)])
    assert files.run("ingest", "check_comments") == [50, 50]
    page = Path(files.settings.checks_root) / str(MONDAY) / "index.html"
    assert f"ids_of_later_days: 10 of {TUESDAY}" in page.read_text()
    assert files.run("ingest", "check_comments", day=TUESDAY) == [40, 40]
    assert files.run("check_comments") == [50]
    assert "ids_of_later_days:" not in page.read_text()


def test_an_emptied_source_does_not_empty_a_day_unasked(files, incoming):
    write_json(incoming / f"{MONDAY}.jsonl", map(good, range(40)))
    files.run("ingest", "check_comments")
    write_json(incoming / f"{MONDAY}.jsonl", [])
    before = picture_of(files)
    refused(lambda: files.run("ingest"), SettingsError, "40 landed before", "--allow-empty")
    assert_same(before, picture_of(files))
    with open_resources(files.settings) as resources:
        assert daily.ingest(resources, MONDAY, allow_empty=True) == 0
        assert resources.lake.count("landed", MONDAY) == 0
        assert daily.ingest(resources, MONDAY) == 0


def test_the_page_of_a_dirty_day_says_where_each_line_went(files, incoming):
    lines = [f'{n},{MONDAY}T12:00:00Z,"a remark, {MARK}"' for n in range(60)]
    lines[10] = f'10,{MONDAY}T12:00:00Z,"a remark, {MARK}'
    lines[20] = f"20,{MONDAY}T12:00:00Z, \u200b"
    lines[30] = f'30,{MONDAY}T12:00:00Z,"two\nlines, {MARK}"'
    lines[40] = f"39,{MONDAY}T12:00:00Z,{MARK}"
    lines[50] = ""
    lines[51] = f"51,{TUESDAY}T12:00:00Z,{MARK}"
    content = "\n".join(["comment_id,created_at,text", *lines, ""])
    (incoming / "all.csv").write_text(content)
    home = files.but(source={"kind": "files", "path": str(incoming / "all.csv")})
    assert home.run("ingest", "check_comments") == [58, 55]
    page = (Path(home.settings.checks_root) / str(MONDAY) / "index.html").read_text()
    cells = re.findall(r"<td>(.*?)</td><td class=\"number\">(\d+)</td><td>(.*?)</td>", page)
    assert {
        re.sub("<.*?>", "", name): (int(n), at.rpartition(":")[2]) for name, n, at in cells
    } == {
        "Header lines": (1, ""),
        "Blank lines": (1, ""),
        "Further lines of a record": (1, ""),
        "Records of other days": (1, ""),
        "Quarantined: unclosed_quote": (1, "12"),
        "Quarantined: blank_text": (1, "22"),
        "Quarantined: duplicate_id": (1, "42"),  # the line that keeps the id, after its own
        "Used records": (55, ""),
    }
    assert '<td class="number">62</td>' in page
    assert MARK not in page


def test_odd_but_sound_words_reach_the_queue_unharmed(files, incoming):
    odd = [
        "👩🏽‍🚀👨‍👩‍👧‍👦 🏳️‍🌈",
        "שלום לכולם, תודה על הגינה",
        "مرحبا \u202e بالجميع \u202c",
        "e\u0301 is not é, and ﬁ is a ligature",
        "tabs\tand\r\nlines\u2028and\x07 bells",
        "'; DROP TABLE review_item; -- <script>alert(1)</script> {{7*7}} %s \\N",
        "=1+1",
        "\ufeffwith a mark at its beginning",
    ]
    rows = [good(n, text=f"{text} {MARK}") for n, text in enumerate(odd)]
    write_json(incoming / f"{MONDAY}.jsonl", rows)
    everything = files.but(review_fraction=1.0)
    assert everything.run(*TO_THE_QUEUE)[4] == len(odd)
    with open_resources(everything.settings) as resources:
        queued = {item["comment_id"]: item["text"] for item in queue_rows(resources.database)}
    assert queued == {row["comment_id"]: row["text"] for row in rows}


def test_a_file_cut_off_within_a_quotation_loses_only_its_last_row(files, incoming):
    whole = csv_bytes(41)
    home = from_csv(files, incoming, whole[: -len(f'{MARK}"\n') - 3])
    assert home.run("ingest", "check_comments") == [41, 40]
    assert quarantined(home) == ["malformed_record"]


def test_rows_of_another_encoding_go_to_quarantine(files, incoming):
    spoilt = f'41,2026-01-05T12:00:00Z,"café, {MARK}"\n'.encode("latin-1")
    home = from_csv(files, incoming, csv_bytes(40) + spoilt)
    home.run("ingest", "check_comments")
    assert quarantined(home) == ["undecodable_text"]
    right = home.but(source={**home.values["source"], "encoding": "latin-1"})
    assert right.run("ingest", "check_comments") == [41, 41]
    assert quarantined(right) == []


def test_a_file_of_utf_16_is_read_and_one_of_another_encoding_is_refused(files, incoming):
    home = from_csv(files, incoming, csv_bytes(40).decode().encode("utf-16"))
    assert home.run("ingest") == [40]
    home = from_csv(files, incoming, csv_bytes(40).decode().encode("utf-32-be"))
    refused(lambda: home.run("ingest"), SourceError, f"{MONDAY}.csv", "utf-8")


def test_a_missing_column_is_named_and_the_day_stays_as_it_was(files, incoming):
    column = "created_at"
    home = from_csv(files, incoming, csv_bytes(40))
    home.run("ingest", "check_comments")
    before = picture_of(home)
    from_csv(files, incoming, csv_bytes(40).replace(column.encode(), b"something", 1))
    refused(lambda: home.run("ingest"), SourceError, repr(column), f"{MONDAY}.csv", "__COLUMNS")
    assert_same(before, picture_of(home))


def test_a_file_that_is_not_there_is_named(files):
    refused(lambda: files.run("ingest", day=TUESDAY), SourceError, f"{TUESDAY}.jsonl", "check")


def test_a_damaged_archive_lands_nothing(files, incoming):
    packed = gzip.compress(csv_bytes(5_000))
    (incoming / f"{MONDAY}.csv.gz").write_bytes(packed[: len(packed) // 2])
    home = files.but(source={"kind": "files", "path": str(incoming / "{dt}.csv.gz")})
    refused(lambda: home.run("ingest"), SourceError, f"{MONDAY}.csv.gz", "complete")
    with open_resources(home.settings) as resources:
        assert resources.lake.count("landed", MONDAY) == 0


def test_a_day_that_is_mostly_broken_changes_no_table(files, incoming):
    files.run(*TO_THE_QUEUE)
    before = picture_of(files)
    rows = [good(n, text="" if n % 2 else f"a remark, {MARK}") for n in range(40)]
    write_json(incoming / f"{MONDAY}.jsonl", rows)
    words = ("2026-01-05 failed", "quarantined_most", "50", "Open the validation page")
    refused(lambda: files.run("ingest", "check_comments"), DayRejectedError, *words)
    after = picture_of(files)
    for part in ("landed", "checks"):
        assert before[part] != after[part]
    assert_same({**before, "landed": [], "checks": []}, {**after, "landed": [], "checks": []})


def declare(files: Installation) -> None:
    with open_resources(files.settings) as resources:
        declare_empty(resources.database, MONDAY, "lea")


@pytest.mark.soak  # a declared day without a file below; tests/data/validation has the verdict
def test_a_day_that_is_declared_empty_is_fine(install, tmp_path):
    """Also where it was rejected: after days of the usual volume."""
    community = {"kind": "community", "seed": 7, "comments_per_day": 60}
    home = install(source=community)
    for back in (3, 2, 1):
        home.run(*TO_THE_QUEUE, day=MONDAY - datetime.timedelta(days=back))
    empty = home.but(source={**community, "comments_per_day": 0})
    with pytest.raises(DayRejectedError, match="volume_collapse"):
        empty.run(*TO_THE_QUEUE)
    declare(empty)
    assert empty.run(*TO_THE_QUEUE, *FROM_THE_QUEUE)[:6] == [0] * 6
    with open_resources(empty.settings) as resources:
        verdict = resources.checks.load("comments", MONDAY)
        assert verdict.status == "passed"
        assert "lea declared that the day has no comments" in resources.checks.read_page(MONDAY)
        (day,) = [day for day in read_days(resources.lake) if day.day == MONDAY]
        assert day.status == "no comments"
        assert verify_log(resources.database).problems == ()
    assert_again_the_same(empty, *TO_THE_QUEUE, *FROM_THE_QUEUE)


def test_a_declared_day_needs_no_file_and_rows_that_come_later_count(files, incoming):
    write_json(incoming / f"{MONDAY}.jsonl", map(good, range(40)))
    files.run("ingest", "check_comments")
    (incoming / f"{MONDAY}.jsonl").unlink()
    with pytest.raises(SourceError):
        files.run("ingest")
    declare(files)
    assert files.run(*TO_THE_QUEUE)[:5] == [0] * 5
    write_json(incoming / f"{MONDAY}.jsonl", map(good, range(40)))
    assert files.run("ingest", "check_comments") == [40, 40]
    with open_resources(files.settings) as resources:
        assert "declared" not in resources.checks.read_page(MONDAY)


def test_a_day_that_the_calendar_closes_needs_no_file_and_nobody_who_declares_it(files, tmp_path):
    with pytest.raises(SourceError):
        files.run("ingest", day=TUESDAY)
    config = config_with(tmp_path, {"calendar.toml": "[weekdays]\ntuesday = 0"})
    closed = files.but(config=config)
    assert closed.run("ingest", "check_comments", day=TUESDAY) == [0, 0]
    with open_resources(closed.settings) as resources:
        verdict = resources.checks.load("comments", TUESDAY)
        assert verdict is not None
        assert verdict.status == "passed"
        assert "the calendar declared" in (resources.checks.read_page(TUESDAY) or "")


@pytest.mark.parametrize("person", ["", " ", "a\nb", "x" * 81])
def test_whoever_declares_a_day_empty_has_a_name(files, person):
    with open_resources(files.settings) as resources:
        with pytest.raises(IncidentError, match="person"):
            repair(resources.database, MONDAY, person, run=lambda *_: "run", empty=True)
        assert declared_empty(resources.database, MONDAY, MONDAY) == {}


def test_an_emptied_day_empties_what_it_had(files, incoming):
    files.run(*TO_THE_QUEUE, *FROM_THE_QUEUE)
    write_json(incoming / f"{MONDAY}.jsonl", [])
    with open_resources(files.settings) as resources:
        daily.ingest(resources, MONDAY, allow_empty=True)
    files.run(*TO_THE_QUEUE[1:], *FROM_THE_QUEUE)
    with open_resources(files.settings) as resources:
        for table in ("landed", "comments", "staged_scores", "scores", "routed"):
            assert resources.lake.count(table, MONDAY) == 0
        assert {item["status"] for item in queue_rows(resources.database)} == {"withdrawn"}

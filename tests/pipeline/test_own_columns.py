"""Columns of a platform's own: from a file to the queue, the figures, an export, and erasure."""

import csv
import datetime
import json

import pyarrow as pa
import pytest
from databases import execute
from fastapi.testclient import TestClient
from sqlalchemy import select

from installation import MONDAY, TUESDAY, Installation, config_with, files_with, review
from modwatch.common.errors import LakeError, SourceError
from modwatch.data.lake.delta import Lake
from modwatch.data.lake.erasure import Subject
from modwatch.data.sources.landing import LandedRow, batches
from modwatch.data.validation.profiles import read_profile
from modwatch.installation.resources import open_resources
from modwatch.pipeline.personal_data import erase, export, problems
from modwatch.review.console.app import create_app
from modwatch.review.log.verification import verify_log
from modwatch.review.people import access_tokens, sessions
from modwatch.review.people.accounts import create_moderator
from modwatch.review.quality_control.gold import gold_from_decisions
from modwatch.review.queue import deciding, leases
from modwatch.review.tables import gold_comment, review_item
from modwatch.settings import Settings

#: SQL words, and all types.
COLUMNS = {
    "order": {"type": "text", "groups_by": True, "shown_in_queue": True},
    "select": {"type": "text", "shown_in_queue": True, "erasable": True},
    "user": {"type": "integer", "shown_in_queue": True, "hidden_when_blind": True},
    "subscriber": {"type": "boolean", "groups_by": True},
    "karma": {"type": "number"},
    "joined": {"type": "time", "erasable": True},
}
SIZE, TITLE = 400, "thimblewick"
STEPS = ("ingest", "check_comments", "score", "check_scores", "route")


def title(number):
    return f"{TITLE}{number:04}"


def rows(day):
    for number in range(SIZE):
        yield {
            "comment_id": f"{day}-{number}",
            "created_at": f"{day}T12:00:00Z",
            "text": f"an invented remark, number {number}",
            "author_id": f"author-{number % 50}",
            "prob": 0.9 if number % 20 == 0 else 0.3 * number / SIZE,
            "label": int(number % 20 == 0),
            "order": ("news", "sports")[number % 2],
            "headline": title(number),
            "user": number if number % 8 else "many",
            "subscriber": ("yes", "no", "")[number % 3],
            "karma": f"{number / 4}",
            "joined": "2020-01-01T00:00:00Z",
        }


@pytest.fixture
def home(queue_url, incoming, tmp_path):
    incoming.mkdir()
    for day in (MONDAY, TUESDAY):
        with (incoming / f"{day}.csv").open("w", newline="") as file:
            table = csv.DictWriter(file, [*next(rows(day))])
            table.writeheader()
            table.writerows(rows(day))
    source = {
        "kind": "files",
        "path": str(incoming / "{dt}.csv"),
        "columns": {"select": "headline"},
        "own_scores": True,
    }
    expected = {
        "type": "expect_column_values_to_be_in_set",
        "kwargs": {"column": "order", "value_set": ["news"]},
        "meta": {"modwatch": {"rule": "known_order"}},
    }
    suite = json.dumps({"expectations": [expected]})
    config = config_with(tmp_path, {"expectations.json": suite})
    values = {"database_url": queue_url, "window_days": 3, "config": str(config)}
    places = {"home": tmp_path / "home", "source": source, "columns": COLUMNS}
    return Installation(values={**values, **places})


def client_of(engine, name, role):
    person = create_moderator(engine, name, role)
    session = sessions.open_session(engine, access_tokens.issue_token(engine, person.id))
    headers = {"Accept": "text/html", "Cookie": f"modwatch_session={session}"}
    return person, TestClient(create_app(engine), headers=headers)


def test_a_column_goes_with_its_comment_from_the_file_to_its_erasure(home):
    home.run(*STEPS, "compare_groups", "detect_drift")
    with open_resources(home.settings) as resources:
        lake, engine = resources.lake, resources.database
        stored = lake.table("comments", MONDAY).to_pylist()
        first = next(row for row in stored if row["comment_id"] == f"{MONDAY}-1")
        assert {name: first[name] for name in COLUMNS} == {
            "order": "sports", "select": title(1), "user": 1, "subscriber": False,
            "karma": 0.25, "joined": datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC),
        }  # fmt: skip
        result = resources.checks.load("comments", MONDAY)
        assert result.left_out == {"user: unreadable_integer": SIZE // 8}
        assert [rule.name for rule in result.results if rule.own and not rule.passed] == [
            "known_order"
        ]
        profile = read_profile(lake, MONDAY)
        assert profile.missing["user"] == SIZE // 8
        assert profile.categories["order"] == {"news": SIZE // 2, "sports": SIZE // 2}
        groups = lake.table("comment_groups", MONDAY).to_pandas()
        compared = set(groups[["attribute", "group"]].dropna().itertuples(index=False, name=None))
        assert {("order", "news"), ("order", "sports"), ("subscriber", "true")} <= compared
        counts = lake.table("segment_counts", MONDAY).to_pandas()
        assert set(counts["order"]) == {"news", "sports"}
        assert set(counts["subscriber"]) == {"true", "false", "(none)"}
        item = engine.connect().execute(select(review_item).order_by(review_item.c.rank)).first()
        number = int(item.comment_id.rpartition("-")[2])
        assert item.shown == {
            "order": ("news", "sports")[number % 2],
            "others": {"select": title(number)},
            **({"hidden": {"user": number}} if number % 8 else {}),
        }
        assert_shown_to_leads_alone(engine)
        review(home, limit=30)
        assert_erased(resources, home, f"author-{number % 50}")


def assert_shown_to_leads_alone(engine):
    ann, moderator = client_of(engine, "ann", "moderator")
    _, lead = client_of(engine, "lea", "lead")
    execute(
        engine,
        "UPDATE review_item SET shown = jsonb_set(shown, '{hidden}', '{\"user\": 777777777}')",
    )
    card = moderator.get("/review/", follow_redirects=True)
    if TITLE not in card.text:
        card = moderator.get("/", follow_redirects=True)
    assert f"Select: <bdi>{TITLE}" in card.text
    assert "Order: <bdi>" in card.text
    assert "777777777" not in card.text
    held = engine.connect().execute(
        select(review_item).where(review_item.c.leased_by == ann.id)
    ).first()  # fmt: skip
    execute(engine, "UPDATE review_item SET leased_until = NULL, leased_by = NULL")
    lease = leases.claim(engine, ann.id, held.id)
    assert "hidden" not in lease.item.shown
    deciding.escalate(
        engine, moderator_id=ann.id, item_id=held.id, lease_token=lease.token, reason="context",
        idempotency_key="e",
    )  # fmt: skip
    page = lead.get(f"/items/{held.id}").text
    assert "<dt>User</dt><dd><bdi>777777777</bdi>" in page
    escalated = leases.lease_escalated(engine, create_moderator(engine, "lea", "lead").id)
    assert escalated.item.shown["hidden"] == {"user": 777777777}


def assert_erased(resources, home, author):
    lake, engine = resources.lake, resources.database
    subject = Subject(author=author)
    kept = export(resources, subject)
    assert {row["select"] for row in kept["comments"]} == {
        row["select"] for row in lake.table("comments", MONDAY).to_pylist()
        if row["author_id"] == author
    }  # fmt: skip
    assert kept["queue"][0]["shown"]["others"]["select"].startswith(TITLE)
    titles = {row["select"] for row in kept["comments"]}
    # The setting goes, and what was stored is found and erased all the same.
    with open_resources(home.but(columns={}).settings) as without:
        assert "select" not in without.lake.table("comments", MONDAY).column_names
        assert {row["select"] for row in export(without, subject)["comments"]} == titles
        done = erase(without, subject)
        assert problems(without, done) == []
    of_day = {row["comment_id"]: row for row in lake.table("comments", MONDAY).to_pylist()}
    for comment_id, row in of_day.items():
        is_gone = int(comment_id.rpartition("-")[2]) % 50 == int(author.rpartition("-")[2])
        assert (row["select"] is None) == (row["joined"] is None) == is_gone
        assert row["karma"] is None if is_gone else row["karma"] is not None
    places = [place for words in titles for place in files_with(words, [home.home])]
    assert places == []
    assert verify_log(engine).problems == ()
    home.run("ingest", "check_comments")
    again = lake.table("comments", MONDAY).to_pylist()
    assert sum(row["select"] is None for row in again) == SIZE // 50
    assert all(row["karma"] is not None for row in again), "nothing of it is about a person"


def test_gold_is_served_in_the_place_of_what_shows_as_much(home):
    home.run(*STEPS)
    with open_resources(home.settings) as resources:
        engine = resources.database
        with engine.connect() as connection:
            item = connection.execute(select(review_item).limit(1)).one()
        for name in ("ann", "ben"):
            person = create_moderator(engine, name, "moderator")
            execute(engine, f"UPDATE review_item SET labels_wanted = 2 WHERE id = {item.id}")
            lease = leases.claim(engine, person.id, item.id)
            deciding.decide(
                engine, moderator_id=person.id, item_id=item.id, lease_token=lease.token, label=1,
                idempotency_key=name,
            )  # fmt: skip
        assert gold_from_decisions(engine, [item.id]) == [item.comment_id]
        with engine.connect() as connection:
            assert connection.execute(select(gold_comment.c.shown)).scalar_one() == item.shown


def test_days_before_a_column_lack_it_and_a_removed_one_is_kept_out_of_sight(home):
    plain = home.but(config=None, source={**home.values["source"], "columns": {}})
    before, after = plain.but(columns={}), plain.but(columns={"order": COLUMNS["order"]})
    assert before.run("ingest", "check_comments")[1] == SIZE
    after.run("ingest", "check_comments", day=TUESDAY)
    with open_resources(after.settings) as resources:
        orders = resources.lake.table("comments", [MONDAY, TUESDAY], columns=["dt", "order"])
    table = orders.to_pandas().groupby("dt")["order"].count()
    assert table.to_dict() == {MONDAY: 0, TUESDAY: SIZE}
    before.run("ingest", "check_comments", day=TUESDAY)
    with open_resources(after.settings) as resources:
        column = resources.lake.table("comments", TUESDAY, columns=["order"]).column(0)
    assert column.null_count == SIZE


def test_a_column_of_another_type_is_refused_by_name(home):
    home.run("ingest")
    other = home.but(columns={**COLUMNS, "karma": {"type": "text"}})
    with open_resources(other.settings) as resources:
        for read in (
            lambda: resources.lake.table("landed", MONDAY),
            lambda: other.run("ingest"),
        ):
            with pytest.raises(LakeError, match=r"'karma'.*stored as number.*text.*otherwise"):
                read()
        assert export(resources, Subject(author="author-1"))["landed"][0]["karma"] is not None


def test_a_source_may_map_declared_columns_only(home):
    mapped = home.but(columns={}).settings.source
    unknown = Settings(source={**mapped.model_dump(), "columns": {"select": "headline"}}).source
    with pytest.raises(SourceError, match="maps select, which Modwatch does not have"):
        unknown.open()


def test_values_of_a_source_of_ones_own_that_cannot_be_are_missing(tmp_path):
    own = Settings(columns=COLUMNS).columns
    values = {"comment_id": "c", "text": "t", "user": "many", "karma": "0.5", "select": "a\0"}
    [batch] = batches(MONDAY, [LandedRow(origin="o", values=values)], own=own)
    [row] = batch.to_pylist()
    assert (row["user"], row["karma"], row["select"]) == (None, 0.5, None)
    assert row["faults"] == ["user: unreadable_integer", "select: nul_byte"]
    lake = Lake(root=str(tmp_path), columns=own)
    [plain] = batches(MONDAY, [LandedRow(origin="o", values=values)])
    lake.replace("landed", MONDAY, [plain])
    assert lake.table("landed", MONDAY).column("user").to_pylist() == [None]
    assert lake.schema("landed").field("joined").type == pa.timestamp("us", tz="UTC")

"""Requests of people: what is kept about them is erased everywhere, and everything verifies."""

import json
from dataclasses import replace
from unittest.mock import Mock

import pyarrow as pa
import pytest
from databases import as_owner
from small_audits import begin, label_everything, seal
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from installation import (
    MONDAY,
    TO_THE_QUEUE,
    Installation,
    files_with,
    review,
    table_rows,
)
from modwatch.common.errors import AuditError, QueueError
from modwatch.common.text import ERASED
from modwatch.data.lake import erasure
from modwatch.data.lake.delta import Lake
from modwatch.data.lake.erasure import Subject
from modwatch.data.lake.schemas import LANDED
from modwatch.installation.resources import Resources, open_resources
from modwatch.pipeline import personal_data
from modwatch.pipeline.personal_data import Certificate, erase, export, find, problems
from modwatch.review.log.verification import verify_log
from modwatch.review.people.accounts import create_moderator
from modwatch.review.quality_control.gold import GoldComment, add_gold
from modwatch.review.queue.deciding import decide, undo
from modwatch.review.queue.intake import enqueue
from modwatch.review.queue.items import NewItem
from modwatch.review.queue.leases import lease
from modwatch.review.tables import metadata

pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")


def one(resources: Resources, column: str = "author_id") -> tuple[str, list[str]]:
    """Return an author whose comments are answered and were queued, and their texts."""
    rows = resources.lake.table("comments", MONDAY).to_pylist()
    quoted = {row["parent_text"] for row in rows}
    queued = {row["comment_id"] for row in resources.lake.table("routed", MONDAY).to_pylist()}
    found = next(row for row in rows if row["text"] in quoted and row["comment_id"] in queued)
    return found[column], [r["text"] for r in rows if r[column] == found[column]]


def tables(url: str, words: str) -> list[str]:
    with as_owner(url) as connection:
        return [
            name
            for name in metadata.tables
            if connection.scalar(
                text(f"SELECT EXISTS (SELECT FROM {name} t WHERE t::text LIKE :words)"),
                {"words": f"%{words}%"},
            )
        ]


@pytest.fixture
def queued(install_scored):
    """An installation whose first day waits in the queue."""
    home = install_scored()
    home.run("route")
    return home


def places_of(home: Installation, words: str) -> list[object]:
    url = home.settings.database_url
    assert url is not None
    return [*files_with(words, [home.home]), *tables(url.get_secret_value(), words)]


def test_an_erased_author_is_found_nowhere_and_everything_verifies(queued):
    review(queued, limit=20)
    with open_resources(queued.settings) as resources:
        author, texts = one(resources)
        before = verify_log(resources.database)
        figures = {t: table_rows(resources.lake, t) for t in ("scores", "routed", "segment_counts")}
        planned = erase(resources, Subject(author=author), dry_run=True)
        assert verify_log(resources.database, before.witness).erased == 0
        done = erase(resources, Subject(author=author), reference="request 12")
        assert planned.places == done.places
        assert done.places["comments"] == len(texts)
        assert done.places["answers"] > 0
        assert problems(resources, done) == []
        after = verify_log(resources.database, before.witness)
        assert after.intact, after.problems
        assert after.erased == done.places["queue"]
        assert figures == {t: table_rows(resources.lake, t) for t in figures}
        with pytest.raises(QueueError, match="no such comment"):
            find(resources, Subject(author=author))
    for words in texts:
        assert places_of(queued, words) == []
    assert files_with(author, [queued.home / "lake"]) == []
    # The source still has them.
    queued.run(*TO_THE_QUEUE)
    with open_resources(queued.settings) as resources:  # no model scores what is erased
        assert figures["scores"] == table_rows(resources.lake, "scores")
        assert figures["routed"] == table_rows(resources.lake, "routed")
    for words in texts:
        assert places_of(queued, words) == []
    with open_resources(queued.settings) as resources:
        assert verify_log(resources.database, before.witness).intact


def test_a_sealed_audit_verifies_and_counts_what_was_erased(small):
    seal(small)
    sampled = small.audit("small").folder.sample(1)[0].comment_id
    erase(small, Subject(comment_ids=frozenset({sampled})))
    levels = small.audit("small").levels()
    assert [problem for level in levels for problem in level.problems] == []
    (lake,) = (level for level in levels if level.name == "lake")
    # On both days, since ids of the small lake are the same.
    assert any("2 texts of the period were erased" in remark for remark in lake.remarks)


def test_a_text_that_is_only_said_to_be_erased_is_a_problem(small):
    seal(small)
    sampled = small.audit("small").folder.sample(1)[0]
    erasure.record(small.lake, {(sampled.day, sampled.comment_id): "comment"})
    erasure.apply(small.lake, {})
    levels = small.audit("small").levels()
    assert any(
        "no erasure of the log names" in problem for level in levels for problem in level.problems
    )


def test_nobody_avoids_a_label_by_writing_that_a_text_is_erased(small):
    begin(small)
    with small.database.begin() as connection:
        connection.execute(
            text(f"UPDATE review_item SET text = '{ERASED}', status = 'withdrawn' WHERE id = "
                 "(SELECT min(id) FROM review_item)")
        )  # fmt: skip
    label_everything(small)
    with pytest.raises(AuditError, match="undecided"):
        small.audit("small").seal()


def test_a_comment_on_lease_can_no_longer_be_decided(small):
    begin(small)
    ann = create_moderator(small.database, "ann", "moderator")
    held = lease(small.database, ann.id)
    assert held is not None
    erase(small, Subject(comment_ids=frozenset({held.item.comment_id})))
    with pytest.raises(QueueError, match="withdrawn"):
        decide(
            small.database, label=1, moderator_id=ann.id, item_id=held.item.id,
            lease_token=held.token, idempotency_key="1",
        )  # fmt: skip
    label_everything(small)
    small.audit("small").seal()
    assert small.audit("small").verify() == []


def test_an_erased_comment_is_never_asked_about(small):
    ids = frozenset({f"c{number}" for number in range(300)})
    erase(small, Subject(comment_ids=ids))
    begin(small)
    label_everything(small)
    with small.database.connect() as connection:
        shown = connection.execute(
            text("SELECT i.text, count(d.id) FROM review_item i LEFT JOIN decision d "
                 "ON d.item_id = i.id GROUP BY 1")
        ).all()  # fmt: skip
    assert dict(map(tuple, shown))[ERASED] == 0


def test_gold_and_notes_are_erased_too(small):
    begin(small)
    ann = create_moderator(small.database, "ann", "moderator")
    held = lease(small.database, ann.id)
    assert held is not None
    decide(
        small.database, label=1, moderator_id=ann.id, item_id=held.item.id,
        lease_token=held.token, idempotency_key="1", note="they wrote zanzibar before",
    )  # fmt: skip
    about = {"comment_id": held.item.comment_id, "label": 1, "source": "panel"}
    answer = {"comment_id": "x", "label": 0, "source": "panel", "text": "an answer"}
    gold = GoldComment(text="the gold zanzibar", **about)
    add_gold(small.database, [gold, GoldComment(parent_text="the gold zanzibar", **answer)])
    done = erase(small, Subject(comment_ids=frozenset({held.item.comment_id})))
    assert (done.places["gold"], done.places["notes"]) == (2, 1)
    assert tables(small.settings.database_url.get_secret_value(), "zanzibar") == []
    report = verify_log(small.database)
    assert report.problems == ()


@pytest.mark.parametrize(
    "forgery",
    [
        "SELECT erase_notes(array(SELECT id FROM review_item))",
        f"UPDATE review_item SET text = '{ERASED}', text_salt = NULL WHERE status = 'decided'",
    ],
)
def test_an_erasure_without_an_event_is_named(small, forgery):
    begin(small)
    ann = create_moderator(small.database, "ann", "moderator")
    held = lease(small.database, ann.id)
    assert held is not None
    decide(
        small.database, label=1, moderator_id=ann.id, item_id=held.item.id,
        lease_token=held.token, idempotency_key="1", note="a note",
    )  # fmt: skip
    assert verify_log(small.database).intact
    with small.database.begin() as connection:  # as the application
        connection.execute(text(forgery))
    assert len(verify_log(small.database).problems) == 1


@pytest.mark.parametrize("change", ["note = 'x'", "note = NULL, note_salt = NULL, label = 0"])
def test_nothing_but_notes_can_be_erased_from_the_log(small, change):
    begin(small)
    label_everything(small)
    with pytest.raises(IntegrityError, match="append-only"), as_owner(small.database) as connection:
        connection.execute(text(f"UPDATE decision SET {change}"))


def test_an_erasure_that_was_killed_is_completed(queued, monkeypatch):
    with open_resources(queued.settings) as resources:
        author, texts = one(resources)
        monkeypatch.setattr(Lake, "vacuum", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            erase(resources, Subject(author=author))
        monkeypatch.undo()
        done = erase(resources, Subject(author=author))
        assert problems(resources, done) == []
    for words in texts:
        assert places_of(queued, words) == []


def test_what_a_restored_backup_brings_back_is_found_and_erased_again(queued):
    with open_resources(queued.settings) as resources:
        author, texts = one(resources)
        backup = {t: [*resources.lake.read(t, MONDAY)] for t in ("landed", "comments")}
        done = erase(resources, Subject(author=author))
        for table, rows in backup.items():
            resources.lake.replace(table, MONDAY, rows)
        resources.lake.replace("erasures", MONDAY, [])
        assert "restored backup" in problems(resources, done)[0]
        again = erase(resources, Subject(comment_ids=done.comment_ids))
        assert problems(resources, done) == problems(resources, again) == []
    for words in texts:
        assert places_of(queued, words) == []


def test_certificates_are_files_without_texts_or_authors(queued):
    with open_resources(queued.settings) as resources:
        author, texts = one(resources)
        done = erase(resources, Subject(author=author))
        content = done.to_json()
        assert author.encode() not in content
        assert not any(json.dumps(words).encode() in content for words in texts)
        assert Certificate.from_json(content) == done
        forged = replace(done, comments=done.comments[1:])
        for other in (forged, replace(done, position=2), replace(done, hash=bytes(32))):
            assert len(problems(resources, other)) == 1
    for damaged in (b"", b"[]", b"{}", content[:-9], content.replace(b"parent", b"other")):
        with pytest.raises(QueueError, match="not the certificate"):
            Certificate.from_json(damaged)


def test_people_get_what_is_kept_about_them_and_nothing_of_others(queued):
    review(queued, limit=30)
    with open_resources(queued.settings) as resources:
        author, texts = one(resources)
        kept = export(resources, Subject(author=author))
    assert {row["text"] for row in kept["comments"]} == set(texts)
    assert len(kept["scores"]) == len(kept["comments"])
    assert kept["routed"]
    for rows in kept.values():
        assert not {"parent_text", "moderator", "salt", "moderator_id"} & rows[0].keys()
    with (
        open_resources(queued.settings) as resources,
        pytest.raises(QueueError, match="no such comment"),
    ):
        export(resources, Subject(author="nobody"))


@pytest.mark.services
def test_an_embedded_database_keeps_no_text_in_its_files(install_scored):
    home = install_scored(database_url="embedded")
    home.run("route")
    with open_resources(home.settings) as resources:
        author, texts = one(resources)
        assert any(files_with(words, [home.home / "postgres"]) for words in texts)
        erase(resources, Subject(author=author))
        for words in texts:
            assert files_with(words, [home.home]) == []


def land(lake: Lake, *rows: dict[str, object]) -> None:
    full = [dict.fromkeys(LANDED.names) | {"dt": MONDAY, "row": n} | r for n, r in enumerate(rows)]
    lake.replace("landed", MONDAY, [pa.RecordBatch.from_pylist(full, schema=LANDED)])


def test_texts_that_postgresql_cannot_have_are_erased(small):
    land(
        small.lake,
        {"comment_id": "n\x001", "text": "zan\x00zibar", "author_id": "A"},
        {"comment_id": "n2", "text": None, "author_id": "A"},
        {"comment_id": None, "text": "so", "parent_text": "zan\x00zibar", "author_id": "B"},
    )
    assert problems(small, erase(small, Subject(author="A"))) == []
    assert "zibar" not in str(small.lake.table("landed", MONDAY).to_pylist())


@pytest.mark.parametrize("given", ["", "a\0", "\ud800"])
def test_ids_that_name_nothing_are_refused(small, given):
    for subject in (Subject(author=given or "\0"), Subject(comment_ids=frozenset({given}))):
        with pytest.raises(QueueError, match="no valid text"):
            find(small, subject)


def test_the_next_erasure_completes_a_killed_one(small, monkeypatch):
    begin(small)
    first, other = (frozenset({one}) for one in queued_ids(small)[:2])
    monkeypatch.setattr(personal_data, "erase_reviews", Mock(side_effect=KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        erase(small, Subject(comment_ids=first))
    monkeypatch.undo()
    erase(small, Subject(comment_ids=other))
    assert not {*first, *other} & {*queued_ids(small)}


def queued_ids(resources: Resources) -> list[str]:
    with resources.database.connect() as connection:
        left = text(f"SELECT comment_id FROM review_item WHERE text <> '{ERASED}' ORDER BY id")
        return list(connection.scalars(left))


def test_an_author_is_found_until_everything_is_erased(small, monkeypatch):
    land(small.lake, {"comment_id": "n1", "text": "zanzibar", "author_id": "A"})
    monkeypatch.setattr(Resources, "compact_database", Mock(side_effect=KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        erase(small, Subject(author="A"))
    monkeypatch.undo()
    assert problems(small, erase(small, Subject(author="A"))) == []


def test_a_certificate_says_what_the_log_says(small):
    done = erase(small, Subject(comment_ids=frozenset({"c5"})), reference="request 12")
    later = done.erased_at.replace(year=2020)
    changes = ({"erased_at": later}, {"reference": "x"}, {"places": {}}, {"comments": []})
    for change in changes:
        assert len(problems(small, replace(done, **change))) == 1
    with pytest.raises(QueueError, match="not the certificate"):
        Certificate.from_json(replace(done, position=2**70).to_json())


def test_answers_that_came_back_are_found(small):
    answer = {"comment_id": "n2", "text": "so", "parent_text": "zanzibar", "author_id": "B"}
    land(small.lake, {"comment_id": "n1", "text": "zanzibar", "author_id": "A"}, answer)
    done = erase(small, Subject(author="A"))
    land(small.lake, answer)
    assert "restored backup" in problems(small, done)[0]


def test_an_erased_label_cannot_be_undone(small):
    begin(small)
    ann = create_moderator(small.database, "ann", "moderator")
    held = lease(small.database, ann.id)
    assert held is not None
    made = decide(
        small.database, label=1, moderator_id=ann.id, item_id=held.item.id,
        lease_token=held.token, idempotency_key="1",
    )  # fmt: skip
    erase(small, Subject(comment_ids=frozenset({held.item.comment_id})))
    with pytest.raises(QueueError, match="nothing to undo"):
        undo(small.database, moderator_id=ann.id, decision_id=made.id, idempotency_key="2")


def test_an_erased_comment_is_not_queued_again(small):
    item = NewItem(
        comment_id="c5", text="zanzibar", reason="uncertainty", stratum=0, rank=1, prob=0.1,
        inclusion_probability=1.0, review_score=0.1, uncertainty=0.1, model_version="1",
    )  # fmt: skip
    erase(small, Subject(comment_ids=frozenset({"c5"})))
    literal = replace(item, comment_id="c6", text=ERASED)  # somebody wrote that
    assert enqueue(small.database, [item, literal], MONDAY).routed == 1

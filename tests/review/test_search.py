from collections.abc import Callable
from dataclasses import replace
from datetime import date, timedelta
from itertools import count, product

import pytest
from databases import execute, scalar, tamper
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError
from sqlalchemy import Engine, select, text

from modwatch.common.errors import ItemNotFoundError, QueueError
from modwatch.review import search
from modwatch.review.people import accounts
from modwatch.review.people.accounts import Moderator
from modwatch.review.quality_control.gold import GoldComment, add_gold
from modwatch.review.queue import deciding, intake, leases, metrics
from modwatch.review.queue.items import NewItem
from modwatch.review.search import SearchQuery, Viewer
from modwatch.review.tables import review_item
from review.labelling import held, label, label_next, skip

New = Callable[..., NewItem]

ADMIN = Viewer(moderator_id=0, sees_all=True, scores=True, notes=True, reviews=False)
LEAD = replace(ADMIN, reviews=True)
AUDITOR = replace(ADMIN, scores=False, notes=False, audits=True)

INJECTIONS = [
    "' OR '1'='1", "'; DROP TABLE decision; --", "\" OR 1=1 --", "%", "_", "\\", "%%%%", "\\%",
    "1) OR (1=1", ":name", "%(name)s", "$1", "{0}",
    "' UNION SELECT password_hash FROM moderator --",
]  # fmt: skip


def own(person: Moderator) -> Viewer:
    return Viewer(moderator_id=person.id, sees_all=False, scores=False, notes=False, reviews=True)


def found(engine: Engine, viewer: Viewer = ADMIN, **query: object) -> list[str | None]:
    result = search.find(engine, SearchQuery(**query), viewer)  # type: ignore[arg-type]
    return [item.comment_id for item in result.items]


@pytest.fixture
def days(day):
    return {"first_day": day, "last_day": day + timedelta(days=2)}


def test_every_field(engine, ann, new_item, day, days):
    intake.enqueue(engine, [new_item("a"), new_item("b", 2)], day)
    intake.enqueue(engine, [new_item("c")], day + timedelta(days=1))
    label_next(engine, ann, policy_code="harassment.threat")
    assert found(engine) == ["c", "b", "a"]
    assert found(engine, comment_id="b") == ["b"]
    assert found(engine, text="TEXT OF B", **days) == ["b"]
    assert found(engine, pseudonym="ann") == ["a"]
    assert found(engine, pseudonym="nobody") == []
    assert found(engine, first_day=day + timedelta(days=1)) == ["c"]
    assert found(engine, last_day=day) == ["b", "a"]
    assert found(engine, status="decided") == ["a"]
    assert found(engine, queue="elsewhere") == []
    assert found(engine, policy_code="harassment.threat", **days) == ["a"]
    assert found(engine, policy_code="harassment", **days) == []
    assert found(engine, status="decided", comment_id="b") == []
    # Queues of others are not there.
    execute(engine, "UPDATE review_item SET queue = 'de' WHERE comment_id = 'b'")
    viewer = replace(ADMIN, queues=frozenset({"de"}))
    assert found(engine, viewer) == ["b"]
    assert found(engine, viewer, queue="general") == []
    with pytest.raises(ItemNotFoundError):
        history_of(engine, viewer, "a")


def test_whatever_is_searched_for_is_a_value(engine, new_item, day, days):
    intake.enqueue(engine, [new_item("a"), new_item("b", 2)], day)
    fields = ("comment_id", "text", "pseudonym", "status", "queue", "policy_code")
    for field, term in product(fields, INJECTIONS):
        assert found(engine, **{field: term}, **days) == [], (field, term)
    assert metrics.counts(engine).waiting == 2


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1))
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_text_is_found_by_any_part_of_it(engine, new_item, day, part):
    intake.enqueue(engine, [new_item("a", text=f"before {part} after")], day)
    same_day = {"first_day": day, "last_day": day}
    assert found(engine, text=part[:512], **same_day) == ["a"]
    assert found(engine, text=(part + "%")[-512:], **same_day) == []


def test_impossible_searches(engine):
    for sent in (
        {"comment_id": ""}, {"comment_id": "x" * 513}, {"limit": 201}, {"coment_id": "a"},
    ):  # fmt: skip
        with pytest.raises(ValidationError):
            TypeAdapter(SearchQuery).validate_python(sent)
    for query in (
        SearchQuery(text="x"),
        SearchQuery(policy_code="x", first_day=date(2026, 1, 1)),
        SearchQuery(text="x", first_day=date(2026, 1, 1), last_day=date(2026, 2, 1)),
        SearchQuery(first_day=date(2026, 1, 2), last_day=date(2026, 1, 1)),
        SearchQuery(pseudonym="a\0b"),
        SearchQuery(queue="\ud800"),
    ):
        with pytest.raises(QueueError) as refusal:
            search.find(engine, query, ADMIN)
        assert "\0" not in str(refusal.value)
    for cursor in ("", "x", "-1", "1.5", "²", "9" * 30, "1; DROP TABLE decision"):
        with pytest.raises(QueueError, match="cursor"):
            search.find(engine, SearchQuery(cursor=cursor), ADMIN)
    # A month of texts may be searched.
    assert found(engine, text="x", first_day=date(2026, 1, 1), last_day=date(2026, 1, 31)) == []
    assert found(engine, text="x", comment_id="a") == []


def test_a_long_search_is_refused_kindly(engine, new_item, day):
    long = [new_item(f"c{i}", i + 1, text="ab" * 20_000) for i in range(100)]
    intake.enqueue(engine, long, day)
    query = SearchQuery(text="a_%" * 60, first_day=day, last_day=day)
    with pytest.raises(QueueError, match="choose fewer days"):
        search.find(engine, query, ADMIN, patience=timedelta(milliseconds=1))
    assert search.find(engine, SearchQuery(comment_id="c7"), ADMIN).items  # the next is as patient
    assert scalar(engine, "SHOW statement_timeout") == "0"


def history_of(engine: Engine, viewer: Viewer, comment_id: str) -> search.History:
    """Return the history of the first item of a comment."""
    item = review_item.c
    ids = select(item.id).where(item.comment_id == comment_id).order_by(item.queued_at, item.id)
    with engine.connect() as connection:
        first = connection.scalars(ids).first()
    assert first is not None
    return search.history(engine, viewer, first)


def test_a_history_tells_all_in_order(engine, cora, ann, new_item, day):
    intake.enqueue(engine, [new_item("a")], day)
    first = label_next(engine, ann, 1, note="a <b>note</b>", policy_code="x").id
    lease = deciding.undo(engine, moderator_id=ann.id, decision_id=first, idempotency_key="u")
    label(engine, ann, lease, 0)
    version = history_of(engine, ADMIN, "a").items[0].version
    deciding.correct(
        engine, moderator_id=cora.id, item_id=lease.item.id, label=1, version=version,
        idempotency_key="c", reason="appeal", others_too=True,
    )  # fmt: skip
    later = [new_item("a", kind="imported", reason="imported")]
    intake.enqueue(engine, later, day, kinds=["imported"])
    result = search.history(engine, ADMIN, item_id=lease.item.id)
    assert result == history_of(engine, ADMIN, "a")
    with pytest.raises(ItemNotFoundError):
        search.history(engine, ADMIN, 99)
    assert [(event.action, event.pseudonym, event.label) for event in result.events] == [
        ("queued", None, None), ("label", "ann", 1), ("undo", "ann", None), ("label", "ann", 0),
        ("correct", "cora", 1), ("queued", None, None),
    ]  # fmt: skip
    assert result.events[1].note == "a <b>note</b>"
    assert result.events[4].reason == "appeal"
    assert result.events[2].refers_to == result.events[1].decision_id
    assert [item.label for item in result.items] == [1, None]
    assert "invented text" not in repr(result)
    assert history_of(engine, AUDITOR, "a").events[1].note is None
    assert history_of(engine, own(ann), "a").events[0].note == "a <b>note</b>"


SECRET = ("kind", "reason", "prob", "uncertainty", "model_version")


def test_an_auditor_sees_no_score_and_no_label_of_what_they_may_audit(engine, ann, new_item, day):
    intake.enqueue(engine, [new_item("a"), new_item("b", 2)], day)
    label_next(engine, ann, policy_code="x", note="toxic!")
    told_all = history_of(engine, AUDITOR, "a")
    for expected in (search.find(engine, SearchQuery(status="decided"), AUDITOR), told_all):
        (item,) = expected.items
        assert [getattr(item, name) for name in SECRET] == [None] * len(SECRET)
        assert item.label == 1
    assert told_all.events[0].reason is None
    decided = search.find(engine, SearchQuery(status="decided"), ADMIN).items
    assert decided[0].prob == pytest.approx(0.3)
    label_next(engine, ann)
    intake.enqueue(engine, [new_item("a", kind="audit")], day, kinds=["audit"])
    result = history_of(engine, AUDITOR, "a")
    assert [(event.label, event.note, event.policy_code) for event in result.events] == [
        (None,) * 3
    ] * 3
    assert {item.label for item in result.items} == {None}
    assert history_of(engine, AUDITOR, "b").items[0].label == 1
    assert history_of(engine, ADMIN, "a").items[0].label == 1


@pytest.mark.parametrize("kind", ["gold", "retest", "confirmation", "imported", "audit"])
def test_whoever_may_be_served_a_comment_finds_nothing_of_it(
    engine, cora, ann, new_item, day, kind
):
    """Its decided item, with its label, would tell that the item that waits is a measurement."""
    viewer = replace(LEAD, moderator_id=cora.id)
    intake.enqueue(engine, [new_item("a")], day)
    label_next(engine, ann)
    before = search.find(engine, SearchQuery(), viewer).items
    assert [item.comment_id for item in before] == ["a"]
    intake.enqueue(engine, [new_item("a", kind=kind)], day + timedelta(kind != "confirmation"),
                  kinds=[kind])  # fmt: skip
    for query in ({}, {"comment_id": "a"}, {"status": "decided"}, {"status": "waiting"}):
        assert found(engine, viewer, **query) == []
    with pytest.raises(ItemNotFoundError):
        history_of(engine, viewer, "a")
    for status in search.OPEN_STATUSES:
        assert found(engine, LEAD, status=status) == []
    assert found(engine, comment_id="a") == ["a", "a"]  # an admin is not served it
    lease = held(engine, cora)
    for person, status in ((viewer, "waiting"), (viewer, "decided")):
        assert found(engine, person, status=status) == []
    with pytest.raises(ItemNotFoundError):
        search.history(engine, viewer, item_id=lease.item.id)


def test_ones_own_decisions_look_alike_whatever_they_were_of(engine, cora, new_item, day):
    for viewer in (own(cora), replace(LEAD, moderator_id=cora.id)):
        for n, kind in enumerate(("review", "gold", "retest", "audit")):
            there = day + timedelta(n)
            intake.enqueue(engine, [new_item(f"{kind}{viewer.sees_all}", kind=kind)], there,
                          kinds=[kind])  # fmt: skip
            label_next(engine, cora)
        mine = search.find(engine, SearchQuery(), viewer).items
        unlike = ("text", "id")
        assert len({repr([getattr(item, name) for name in vars(item) if name not in unlike])
                    for item in mine}) == 1  # fmt: skip
        for item in mine:
            history = search.history(engine, viewer, item_id=item.id)
            assert history.comment_id is None
            assert [event.action for event in history.events] == ["label"]


def test_gold_and_what_may_be_retested_is_found_by_nobody_who_may_be_served_it(
    engine, cora, ann, new_item, day
):
    viewer = replace(LEAD, moderator_id=cora.id)
    intake.enqueue(engine, [new_item("known"), new_item("mine", 2)], day)
    label_next(engine, ann)
    label_next(engine, cora)
    add_gold(engine, [GoldComment(comment_id="known", text="x", label=1, source="p")])
    tamper(engine, "UPDATE decision SET decided_at = decided_at - interval '15 days'")
    assert found(engine, viewer) == []
    assert found(engine) == ["mine", "known"]


@pytest.mark.usefixtures("random_numbers")
def test_pages_by_random_numbers_hold_everything_once_in_the_order_of_decisions(
    engine, ann, new_item, day, monkeypatch
):
    monkeypatch.setattr(search, "PER_PAGE", 2)
    intake.enqueue(engine, [new_item(f"c{n}", n + 1) for n in range(7)], day)
    done = [label_next(engine, ann) for _ in range(7)]
    assert sorted(ids := [entry.item_id for entry in done]) != ids
    later = count(1)
    for viewer in (ADMIN, own(ann), LEAD):
        seen, cursor = [], None
        for _ in range(4):
            page = search.find(engine, SearchQuery(cursor=cursor), viewer)
            seen += [item.id for item in page.items]
            cursor = page.cursor
            # What comes while someone turns pages shifts none of them.
            intake.enqueue(engine, [new_item("new")], day + timedelta(days=next(later)))
        assert cursor is None
        assert sorted(seen) == sorted(ids)
        assert viewer is ADMIN or seen == ids[::-1]


def test_a_moderator_sees_their_own_decisions_of_two_weeks(engine, ann, ben, new_item, day):
    intake.enqueue(engine, [new_item("a", labels_wanted=2), new_item("b", 2)], day)
    label_next(engine, ann, 1)
    label_next(engine, ben, 1)
    assert found(engine, own(ann)) == [None]  # an id of another day would tell gold
    assert found(engine, own(ann), comment_id="b") == []
    result = history_of(engine, own(ann), "a")
    assert [(event.pseudonym, event.label) for event in result.events] == [("ann", 1)]
    with pytest.raises(ItemNotFoundError):
        history_of(engine, own(ann), "b")
    tamper(engine, "UPDATE decision SET decided_at = decided_at - interval '14 days'")
    assert found(engine, own(ann)) == []  # a retest of it may come now
    with pytest.raises(ItemNotFoundError):
        history_of(engine, own(ann), "a")


def test_a_moderator_is_reported_nothing_that_others_did_with_their_items(
    engine, ann, ben, new_item, day
):
    items = [new_item("a", labels_wanted=2), new_item("b", 2, labels_wanted=2)]
    intake.enqueue(engine, items, day)
    for person, code in ((ann, "fine"), (ben, "hate")):
        for _ in range(2):
            label_next(engine, person, 1 if person is ann else 0, policy_code=code)
    with engine.connect() as connection:
        today = connection.execute(text("SELECT CAST(now() AS date)")).scalar_one()
    days = {"first_day": today, "last_day": today}
    mine = search.find(engine, SearchQuery(**days), own(ann)).items
    assert {item.label for item in mine} == {1}
    assert found(engine, own(ann), pseudonym="ben") == []
    assert found(engine, own(ann), policy_code="hate", **days) == []
    assert len(found(engine, own(ann), pseudonym="ann")) == len(mine) == 2
    for name in ("comment_id", "dt", "status", "version", "queued_at", "due_at", "reason", "kind"):
        assert {getattr(item, name) for item in mine} == {None}, name
    with pytest.raises(QueueError, match="status"):
        found(engine, own(ann), status="escalated")


def test_the_next_of_several_does_not_read_what_the_first_answered(engine, ann, new_item, day):
    lea = accounts.create_moderator(engine, "lea", "lead")
    intake.enqueue(engine, [new_item("a", labels_wanted=2)], day)
    label_next(engine, ann, 1, policy_code="hate")
    viewer = replace(LEAD, moderator_id=lea.id)
    for _ in range(2):
        with pytest.raises(ItemNotFoundError):
            history_of(engine, viewer, "a")
        assert leases.lease(engine, lea.id, timedelta(0)) is not None


def test_what_is_not_shown_of_ones_own_decisions_is_not_searched(engine, cora, new_item, day):
    """The day of a comment would tell a confirmation, its id a gold item."""
    intake.enqueue(engine, [new_item("a")], day)
    label_next(engine, cora)
    with engine.connect() as connection:
        today = connection.execute(text("SELECT CAST(now() AS date)")).scalar_one()
    for viewer in (own(cora), replace(LEAD, moderator_id=cora.id)):
        assert found(engine, viewer, first_day=today) == found(engine, viewer) == [None]
        assert found(engine, viewer, last_day=today - timedelta(days=1)) == []
        assert found(engine, viewer, first_day=day, last_day=day) == []
        assert found(engine, viewer, comment_id="a") == []


@pytest.mark.parametrize("goes_on", [False, True])
def test_what_others_do_with_a_skipped_item_is_not_shown(engine, cora, ben, new_item, day, goes_on):
    """Others go on with an ordinary item, and not with one that is reserved."""
    viewer = replace(LEAD, moderator_id=cora.id)
    intake.enqueue(engine, [new_item("a", labels_wanted=2), new_item("b", 2)], day)
    lease = held(engine, cora)
    skip(engine, cora, lease)
    label_next(engine, cora)
    if goes_on:
        label_next(engine, ben, 1, policy_code="hate")
        label_next(engine, accounts.create_moderator(engine, "dan", "moderator"), 1)
    second, first = search.find(engine, SearchQuery(), viewer).items
    assert first.id == lease.item.id
    assert (first.status, first.version, first.label) == (None, None, None)
    assert (second.status, second.label) == ("decided", 1)
    assert [event.action for event in search.history(engine, viewer, first.id).events] == ["skip"]
    for query in ({"pseudonym": "ben"}, {"status": "waiting"}, {"policy_code": "hate"}):
        today = {"first_day": day, "last_day": day + timedelta(days=30)}
        assert found(engine, viewer, **query, **today) == []
    assert len(found(engine, viewer, status="decided")) == 1


@pytest.mark.parametrize("act", ["skip", "escalate", "undo"])
def test_the_first_label_is_hidden_while_the_second_can_be_undone(
    engine, cora, ann, new_item, day, act
):
    viewer = replace(LEAD, moderator_id=cora.id)
    intake.enqueue(engine, [new_item("a"), new_item("a", kind="confirmation")], day)
    label_next(engine, ann)
    lease = held(engine, cora)
    request = {"moderator_id": cora.id, "item_id": lease.item.id, "lease_token": lease.token,
               "idempotency_key": "k"}  # fmt: skip
    if act in ("label", "undo"):
        done = deciding.decide(engine, label=0, **request)
    else:
        done = {"skip": deciding.skip, "escalate": deciding.escalate}[act](engine, **request)
    if act == "undo":
        lease = deciding.undo(
            engine, moderator_id=cora.id, decision_id=done.id, idempotency_key="u"
        )
        leases.release(engine, cora.id, lease.item.id, lease.token)
    history = search.history(engine, viewer, lease.item.id)
    assert {event.pseudonym for event in history.events} == {"cora"}
    assert len(history.items) == len(found(engine, viewer)) == 1

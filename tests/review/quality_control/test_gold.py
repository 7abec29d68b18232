from collections.abc import Callable
from datetime import date

import pytest
from sqlalchemy import Engine, select, text

from modwatch.common.errors import QueueError
from modwatch.review import people, queue
from modwatch.review.people import Moderator
from modwatch.review.quality_control.gold import (
    GoldComment,
    add_gold,
    gold_from_decisions,
    gold_of,
    retire_gold,
)
from modwatch.review.queue.deciding import correct
from modwatch.review.queue.items import NewItem
from modwatch.review.tables import gold_comment, review_item
from review.labelling import label, label_next

Make = Callable[..., NewItem]


@pytest.fixture
def lea(engine: Engine) -> Moderator:
    return people.create_moderator(engine, "lea", "lead")


def gold(comment_id: str, label: int = 1, **more: str) -> GoldComment:
    known = {"text": f"invented gold {comment_id}", "source": "a panel"}
    return GoldComment(comment_id=comment_id, label=label, **(known | more))


def stored(engine: Engine) -> dict[str, tuple[int, str, bool]]:
    with engine.connect() as connection:
        rows = connection.execute(select(gold_comment)).all()
    return {row.comment_id: (row.label, row.source, row.retired_at is None) for row in rows}


def test_gold_is_added_once(engine: Engine) -> None:
    assert add_gold(engine, [gold("g1"), gold("g2", 0)]) == 2
    assert add_gold(engine, [gold("g2", 0), gold("g3")]) == 1
    assert stored(engine)["g2"] == (0, "a panel", True)


def test_all_or_none_and_no_other_answer(engine: Engine) -> None:
    add_gold(engine, [gold("g1")])
    with pytest.raises(QueueError, match="'g1' is already gold") as refusal:
        add_gold(engine, [gold("g2"), gold("g1", 0)])
    assert "invented" not in str(refusal.value)
    assert set(stored(engine)) == {"g1"}
    with pytest.raises(QueueError, match="'g1' is already gold"):
        add_gold(engine, [gold("g1", text="another text")])


def test_retired_gold_may_come_back_with_another_answer(engine: Engine) -> None:
    add_gold(engine, [gold("g1")])
    assert retire_gold(engine, ["g1", "unknown"]) == 1
    assert retire_gold(engine, ["g1"]) == 0
    assert stored(engine)["g1"][2] is False
    assert add_gold(engine, [gold("g1", 0)]) == 1
    assert stored(engine)["g1"] == (0, "a panel", True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"label": 2}, "must be 0 or 1"),
        ({"text": "a\x00b"}, "contains NUL"),
        ({"comment_id": ""}, "characters"),
        ({"source": " "}, "no source"),
    ],
)
def test_what_cannot_be_gold_is_refused(engine: Engine, change: dict, message: str) -> None:
    known = {"comment_id": "g1", "text": "invented", "label": 1, "source": "a panel"}
    with pytest.raises(QueueError, match=message):
        add_gold(engine, [GoldComment(**(known | change))])
    assert stored(engine) == {}


PRIVATE = "what no refusal may repeat"
RECORD = {"comment_id": "g1", "text": PRIVATE, "label": "1", "source": "a panel"}


def test_a_record_of_a_file_says_a_gold_comment() -> None:
    assert gold_of(RECORD, "line 2") == GoldComment(
        comment_id="g1", text=PRIVATE, label=1, source="a panel"
    )
    more = {"label": 0, "language": "de", "parent_text": "", "platform": None, "votes": "7"}
    result = gold_of(RECORD | more, "line 2")
    assert (result.label, result.language, result.parent_text, result.platform) == (
        0,
        "de",
        None,
        None,
    )


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"comment_id": None}, "comment_id"),
        ({"text": ""}, "text"),
        ({"text": [PRIVATE]}, "text"),
        ({"label": PRIVATE}, "label"),
        ({"label": "0.5"}, "label"),
        ({"source": 7}, "source"),
        ({"parent_text": {PRIVATE: PRIVATE}}, "parent_text"),
    ],
)
def test_a_record_that_says_none_is_refused_by_its_place(change: dict, field: str) -> None:
    with pytest.raises(QueueError, match=f"invalid {field} of line 2") as refusal:
        gold_of(RECORD | change, "line 2")
    assert PRIVATE not in str(refusal.value)
    assert refusal.value.__context__ is None  # the foreign error would carry the record


def test_what_two_people_stated_alike_becomes_gold(
    engine: Engine, ann: Moderator, ben: Moderator, new_item: Make, day: date
) -> None:
    item = new_item("c1", language="en", platform="news", parent_text="the parent")
    second = new_item(
        "c1", kind="confirmation", language="en", platform="news", parent_text="the parent"
    )
    queue.enqueue(engine, [item, second], day)
    first = label_next(engine, ann).item_id
    with pytest.raises(QueueError, match="neither a unanimous label"):
        gold_from_decisions(engine, [first])
    other = label_next(engine, ben).item_id
    assert gold_from_decisions(engine, [first]) == ["c1"]
    assert stored(engine) == {"c1": (1, "unanimous, 2 people", True)}
    assert gold_from_decisions(engine, [first, first]) == []
    with engine.connect() as connection:
        row = connection.execute(select(gold_comment)).one()
    assert (row.text, row.parent_text, row.language) == (item.text, "the parent", "en")
    assert other != first


def test_two_who_disagree_make_no_gold_until_a_lead_settles_it(
    engine: Engine, ann: Moderator, ben: Moderator, lea: Moderator, new_item: Make, day: date
) -> None:
    queue.enqueue(engine, [new_item("c1", labels_wanted=2)], day)
    item = label_next(engine, ann).item_id
    label_next(engine, ben, 0)
    with pytest.raises(QueueError, match=f"item {item} is not a decided review item"):
        gold_from_decisions(engine, [item])
    escalated = queue.lease_escalated(engine, lea.id)
    assert escalated is not None
    assert label(engine, lea, escalated, 0).item_id == item
    assert gold_from_decisions(engine, [item]) == ["c1"]
    assert stored(engine) == {"c1": (0, "settled by lea", True)}


def test_a_leads_correction_settles_and_ones_own_does_not(
    engine: Engine, ann: Moderator, lea: Moderator, new_item: Make, day: date
) -> None:
    queue.enqueue(engine, [new_item("c1")], day)
    item = label_next(engine, ann).item_id
    change = {"engine": engine, "item_id": item, "reason": "policy"}
    correct(**change, moderator_id=ann.id, label=0, version=2, idempotency_key="a")
    with pytest.raises(QueueError, match="neither a unanimous label"):
        gold_from_decisions(engine, [item])
    correct(**change, moderator_id=lea.id, label=1, version=3, idempotency_key="b", others_too=True)
    assert gold_from_decisions(engine, [item]) == ["c1"]
    assert stored(engine) == {"c1": (1, "settled by lea", True)}


def test_retired_gold_waits_for_no_one(engine: Engine, ann: Moderator, day: date) -> None:
    add_gold(engine, [gold("g1")])
    with engine.begin() as connection:
        connection.execute(
            text(
                "INSERT INTO review_item (dt, comment_id, kind, text, reason, stratum, "
                "inclusion_probability, rank, review_score, prob, uncertainty, model_version, "
                "reserved_for) VALUES (:dt, 'g1', 'gold', 'invented', 'gold', 0, 1, 1, 0, 0.5, "
                "0.25, '', :person)"
            ),
            {"dt": day, "person": ann.id},
        )
    retire_gold(engine, ["g1"])
    assert queue.lease(engine, ann.id) is None
    with engine.connect() as connection:
        assert connection.scalar(select(review_item.c.status)) == "withdrawn"

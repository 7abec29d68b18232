import itertools
import json
from collections.abc import Callable
from typing import Any

import pytest
from databases import execute
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine, select

from modwatch.common.errors import QueueError, SourceError
from modwatch.data.sources.delimited import TextFormat
from modwatch.review.erasure import erase_reviews
from modwatch.review.quality_control.gold import (
    GoldComment,
    add_gold,
    add_gold_file,
    gold_from_decisions,
    gold_of,
    retire_gold,
)
from modwatch.review.queue import intake, leases
from modwatch.review.queue.comments import REASONS
from modwatch.review.queue.deciding import correct
from modwatch.review.queue.items import NewItem
from modwatch.review.tables import gold_comment, review_item
from review.labelling import held_escalated, label, label_next

Make = Callable[..., NewItem]


def gold(comment_id: str, label: int = 1, **more: str) -> GoldComment:
    known = {"text": f"invented gold {comment_id}", "source": "a panel"}
    return GoldComment(comment_id=comment_id, label=label, **(known | more))


def stored(engine: Engine) -> dict[str, tuple[int, str, bool]]:
    with engine.connect() as connection:
        rows = connection.execute(select(gold_comment)).all()
    return {row.comment_id: (row.label, row.source, row.retired_at is None) for row in rows}


def test_gold_is_added_once_all_or_none_and_may_come_back(engine):
    assert add_gold(engine, [gold("g1"), gold("g2", 0)]) == 2
    assert add_gold(engine, [gold("g2", 0), gold("g3")]) == 1
    assert stored(engine)["g2"] == (0, "a panel", True)
    # No other answer, and no other text.
    with pytest.raises(QueueError, match=r"other_gold 1 .the first: number 2") as refusal:
        add_gold(engine, [gold("g4"), gold("g1", 0)])
    assert "invented" not in str(refusal.value)
    assert "g1" not in str(refusal.value)
    assert set(stored(engine)) == {"g1", "g2", "g3"}
    with pytest.raises(QueueError, match=r"other_gold 1 .the first: number 1"):
        add_gold(engine, [gold("g1", text="another text")])
    assert retire_gold(engine, ["g1", "unknown"]) == 1
    assert retire_gold(engine, ["g1"]) == 0
    assert stored(engine)["g1"][2] is False
    assert add_gold(engine, [gold("g1", 0)]) == 1
    assert stored(engine)["g1"] == (0, "a panel", True)


PRIVATE = "what no refusal may repeat"
RECORD = {"comment_id": "g1", "text": PRIVATE, "label": "1", "source": "a panel"}


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"comment_id": None}, "missing_id"),
    ({"comment_id": "\u200b "}, "missing_id"),
    ({"comment_id": "c" * 257}, "long_id"),
    ({"text": ""}, "blank_text"),
    ({"text": "\u202e\u2066"}, "blank_text"),
    ({"text": [PRIVATE]}, "malformed_record"),
    ({"text": f"{PRIVATE}\0"}, "nul_byte"),
    ({"text": b"caf\xe9"}, "undecodable_text"),
    ({"text": PRIVATE * 5_000}, "long_text"),
    ({"parent_text": {PRIVATE: PRIVATE}}, "malformed_record"),
    ({"language": PRIVATE}, "malformed_language"),
    ({"policy_code": "\ud800"}, "undecodable_text"),
    ({"label": "maybe"}, "unreadable_label"),
    ({"label": "0.5"}, "unreadable_label"),
    ({"label": 2}, "unreadable_label"),
    ({"label": " "}, "missing_label"),
    ({"label": float("nan")}, "missing_label"),
    ({"source": " "}, "missing_source"),
    ({"source": None}, "missing_source"),
]


def test_what_cannot_be_gold_is_refused(engine):
    fields = {"comment_id", "text", "label", "source"}
    for change, reason in REFUSED:
        assert gold_of(RECORD | change) == (None, reason)
        assert reason in REASONS
        if fields >= change.keys():
            with pytest.raises(QueueError, match=rf"{reason} 1 .the first: number 1") as refusal:
                add_gold(engine, [GoldComment(**(RECORD | change))])
            assert PRIVATE not in str(refusal.value)
    assert stored(engine) == {}


CONVERTED: list[tuple[dict[str, Any], str, object]] = [
    ({"label": "ja"}, "label", 1),
    ({"label": False}, "label", 0),
    ({"label": 1.0}, "label", 1),
    ({"comment_id": 17.0}, "comment_id", "17"),
    ({"source": 2026}, "source", "2026"),
    ({"language": "de"}, "shown", {"language": "de"}),
    ({"language": float("nan")}, "shown", {}),
    ({"parent_text": ""}, "parent_text", None),
    ({"year": "n/a"}, "text", PRIVATE),
]


def test_values_are_converted_as_those_of_the_daily_job():
    for change, field, value in CONVERTED:
        comment, problem = gold_of(RECORD | change)
        assert (getattr(comment, field), problem) == (value, None)


#: Files without the columns, and how they are named.
WRONG_FILES = [
    ("", "no column 'comment_id', 'text', 'label', 'source'; it has no columns"),
    ("id,body,y\n1,fine,1\n", "no column 'comment_id', .*; it has id, body, y"),
    ("COMMENT_ID,TEXT,LABEL,SOURCE\nq,a,1,p\n", "it has COMMENT_ID, TEXT, LABEL, SOURCE"),
    ("comment_id,text,label\nq,a,1\n", "no column 'source'; it has comment_id, text, label"),
    ("q,what no refusal may repeat,1,p\n", "its first line has a number"),
    ("comment_id,text,label,label,source\nq,a,1,0,p\n", "has several columns label; rename"),
    ("comment_id,text,label,source,language,language\nq,a,1,p,,\n", "several columns language"),
]


def test_wrong_files_are_named(engine, tmp_path):
    file = tmp_path / "gold.csv"
    for content, match in WRONG_FILES:
        file.write_text(content)
        with pytest.raises(SourceError, match=match) as refusal:
            add_gold_file(engine, file, TextFormat())
        assert PRIVATE not in str(refusal.value)
    file = tmp_path / "gold.json"
    for indent in (None, 1):
        file.write_text(json.dumps({"data": [RECORD]}, indent=indent))
        with pytest.raises(SourceError, match="one JSON object with the records in it; save"):
            add_gold_file(engine, file, TextFormat())
    assert stored(engine) == {}


def test_a_file_of_faults_is_reported_by_reason_and_line(engine, tmp_path):
    lines = [
        "comment_id,text,label,source,year", "g1,one,1,panel,n/a", "g1,one,1,panel,2020",
        "g2,two,maybe,panel,", "g3,three,2,panel,", " ,four,0,panel,", "g1,other,1,panel,", "g5",
    ]  # fmt: skip
    file = tmp_path / "gold.csv"
    file.write_bytes("\n".join([*lines, "g6,caf\xe9,0,panel,"]).encode("cp1252"))
    with pytest.raises(QueueError) as refusal:
        add_gold_file(engine, file, TextFormat())
    for part in (
        "nothing of", "gold.csv", "different_copy 1 (the first: line 7",
        "malformed_record 1 (the first: line 8", "missing_id 1 (the first: line 6",
        "undecodable_text 1 (the first: line 9", "unreadable_label 2 (the first: line 4",
    ):  # fmt: skip
        assert part in str(refusal.value)
    assert stored(engine) == {}
    file.write_bytes("\n".join([*lines[:3], "g6,caf\xe9,0,panel,"]).encode("cp1252"))
    new, account = add_gold_file(engine, file, TextFormat(encoding="cp1252"))
    assert (new, account.read) == (2, 4)
    assert account.places == {"header": 1, "used": 2, "merged": 1}
    quoted = "".join(f'q{n},"a, b",1,panel\n' for n in range(5))
    file.write_text(f'{lines[0][:-5]}\n{quoted}g7,"one,1,panel\ng8,two,1,panel\n')
    with pytest.raises(QueueError, match=r"unclosed_quote 1 .the first: line 7"):
        add_gold_file(engine, file, TextFormat())
    file.write_text("comment_id,text,label,source\ng9,one,1,panel\ng1,one,0,panel\n")
    with pytest.raises(QueueError, match=r"other_gold 1 .the first: line 3"):
        add_gold_file(engine, file, TextFormat())
    assert set(stored(engine)) == {"g1", "g6"}


CELLS = {
    "comment_id": st.sampled_from(["g1", "g2", "g3", 4, " ", None]),
    "text": st.sampled_from(["one", "two", "\u200b", "\0", None, ["x"]]),
    "label": st.sampled_from([1, "no", True, "maybe", None]),
    "source": st.sampled_from(["panel", "", 7]),
    "year": st.sampled_from(["n/a", 2020]),
}
#: The file of each example has ids of its own, as the examples share a database.
RUNS = itertools.count()


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(records=st.lists(st.fixed_dictionaries(CELLS) | st.just(7), min_size=1, max_size=6))
def test_the_account_of_any_file_closes(engine, tmp_path, records):
    run, file = next(RUNS), tmp_path / "gold.jsonl"
    for record in records:
        if isinstance(record, dict) and isinstance(record["comment_id"], str):
            record["comment_id"] = record["comment_id"].replace("g", f"{run}-")
        elif isinstance(record, dict) and record["comment_id"] is not None:
            record["comment_id"] = 1_000 + run
    file.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    read = [gold_of(record)[0] if isinstance(record, dict) else None for record in records]
    valid = {comment.comment_id: comment for comment in read if comment}
    if all(comment and valid[comment.comment_id] == comment for comment in read):
        new, account = add_gold_file(engine, file, TextFormat())
        assert (new, account.places.total()) == (len(valid), len(records))
        assert valid.keys() <= stored(engine).keys()
    else:
        with pytest.raises(QueueError, match=rf"nothing of {file} .* .the first: line [1-6];"):
            add_gold_file(engine, file, TextFormat())
        assert not valid.keys() & stored(engine).keys()


def test_what_two_people_stated_alike_becomes_gold(engine, ann, ben, new_item, day):
    item = new_item("c1", language="en", platform="news", parent_text="the parent")
    second = new_item(
        "c1", kind="confirmation", language="en", platform="news", parent_text="the parent"
    )
    intake.enqueue(engine, [item, second], day)
    first = label_next(engine, ann).item_id
    with pytest.raises(QueueError, match="neither a unanimous label"):
        gold_from_decisions(engine, [first])
    other = label_next(engine, ben).item_id
    assert gold_from_decisions(engine, [first]) == ["c1"]
    assert stored(engine) == {"c1": (1, "unanimous, 2 people", True)}
    assert gold_from_decisions(engine, [first, first]) == []
    with engine.connect() as connection:
        row = connection.execute(select(gold_comment)).one()
    assert (row.text, row.parent_text, row.shown) == (item.text, "the parent", item.shown)
    assert other != first


def test_two_who_disagree_make_no_gold_until_a_lead_settles_it(
    engine, ann, ben, lea, new_item, day
):
    intake.enqueue(engine, [new_item("c1", labels_wanted=2)], day)
    item = label_next(engine, ann).item_id
    label_next(engine, ben, 0)
    with pytest.raises(QueueError, match=f"item {item} is not a decided review item"):
        gold_from_decisions(engine, [item])
    escalated = held_escalated(engine, lea)
    assert label(engine, lea, escalated, 0).item_id == item
    assert gold_from_decisions(engine, [item]) == ["c1"]
    assert stored(engine) == {"c1": (0, "settled by lea", True)}


def test_a_leads_correction_settles_and_ones_own_does_not(engine, ann, lea, new_item, day):
    intake.enqueue(engine, [new_item("c1")], day)
    item = label_next(engine, ann).item_id
    change = {"engine": engine, "item_id": item, "reason": "policy"}
    correct(**change, moderator_id=ann.id, label=0, version=2, idempotency_key="a")
    with pytest.raises(QueueError, match="neither a unanimous label"):
        gold_from_decisions(engine, [item])
    correct(**change, moderator_id=lea.id, label=1, version=3, idempotency_key="b", others_too=True)
    assert gold_from_decisions(engine, [item]) == ["c1"]
    assert stored(engine) == {"c1": (1, "settled by lea", True)}
    erase_reviews(engine, {(day, "c1"): "comment"}, [])  # what was erased is no gold
    with pytest.raises(QueueError, match=f"item {item} is not a decided review item"):
        gold_from_decisions(engine, [item])


def test_retired_gold_waits_for_no_one(engine, ann, day):
    add_gold(engine, [gold("g1")])
    execute(
        engine,
        "INSERT INTO review_item (dt, comment_id, kind, text, reason, stratum, "
        "inclusion_probability, rank, review_score, prob, uncertainty, model_version, "
        "reserved_for) VALUES (:dt, 'g1', 'gold', 'invented', 'gold', 0, 1, 1, 0, 0.5, "
        "0.25, '', :person)",
        dt=day,
        person=ann.id,
    )
    retire_gold(engine, ["g1"])
    assert leases.lease(engine, ann.id) is None
    with engine.connect() as connection:
        assert connection.scalar(select(review_item.c.status)) == "withdrawn"

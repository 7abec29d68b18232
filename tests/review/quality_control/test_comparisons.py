"""Answers to checks, as they go to the lake: planted errors come back, nothing else counts."""

from collections.abc import Callable
from datetime import date, timedelta

import numpy as np
from sqlalchemy import Engine

from modwatch.review.people.accounts import Moderator
from modwatch.review.quality_control.comparisons import day_answers
from modwatch.review.quality_control.gold import GoldComment, add_gold, retire_gold
from modwatch.review.quality_control.queueing import queue_quality_control
from modwatch.review.queue import intake
from modwatch.review.queue.deciding import undo
from modwatch.review.queue.items import NewItem
from modwatch.statistics.agreement import annotator_error_rate
from review.labelling import label_all, routed_like_gold

Make = Callable[..., NewItem]


def answers(engine: Engine, day: date) -> list[dict[str, object]]:
    return [row for part in day_answers(engine, day) for row in part.to_pylist()]


def asked(engine: Engine, day: date, *, retest: float = 0.0, gold: float = 0.0) -> None:
    routed_like_gold(engine, day)
    queue_quality_control(engine, day, retest_share=retest, gold_share=gold, salt="s", least_days=0)


def panel(n: int) -> list[GoldComment]:
    return [
        GoldComment(comment_id=f"g{k}", text=f"invented {k}", label=k % 2, source="panel")
        for k in range(n)
    ]


def test_retests_stand_next_to_what_the_same_person_answered_first(
    engine: Engine, ann: Moderator, day: date, new_item: Make
) -> None:
    places = [{"stratum": k % 2, "inclusion_probability": 1.0 - 0.5 * (k % 2)} for k in range(100)]
    intake.enqueue(engine, [new_item(f"c{k}", k + 1, **places[k]) for k in range(100)], day)
    label_all(engine, ann, lambda _: 0)
    assert answers(engine, day) == []
    tomorrow = day + timedelta(1)
    asked(engine, tomorrow, retest=0.4)
    wrong = iter([True] * 7 + [False] * 33)
    label_all(engine, ann, lambda _: int(next(wrong)))
    found = answers(engine, tomorrow)
    assert len(found) == 40
    assert {(row["kind"], row["moderator"], row["known"]) for row in found} == {
        ("retest", "ann", 0)
    }
    assert sum(row["label"] for row in found) == 7
    assert all(
        (row["stratum"], row["inclusion_probability"])
        == tuple(places[int(str(row["comment_id"])[1:])].values())
        for row in found
    )
    assert answers(engine, day) == []


def test_gold_stands_next_to_its_label_until_it_is_retired(
    engine: Engine, ann: Moderator, day: date, new_item: Make
) -> None:
    intake.enqueue(engine, [new_item(f"c{k}", k + 1) for k in range(100)], day)
    label_all(engine, ann, lambda _: 0)
    add_gold(engine, panel(40))
    tomorrow = day + timedelta(1)
    asked(engine, tomorrow, gold=0.4)
    label_all(engine, ann, lambda comment_id: int(comment_id[1:]) % 2 if comment_id != "g3" else 0)
    found = answers(engine, tomorrow)
    assert len(found) == 40
    assert {row["stratum"] for row in found} == {None}
    wrong = [row["comment_id"] for row in found if row["label"] != row["known"]]
    assert wrong == ["g3"]
    retire_gold(engine, ["g3", "g4"])
    assert len(answers(engine, tomorrow)) == 38


def test_what_was_taken_back_does_not_count(
    engine: Engine, ann: Moderator, day: date, new_item: Make
) -> None:
    intake.enqueue(engine, [new_item(f"c{k}", k + 1) for k in range(20)], day)
    label_all(engine, ann, lambda _: 0)
    add_gold(engine, panel(2))
    tomorrow = day + timedelta(1)
    asked(engine, tomorrow, gold=0.1)
    first, last = label_all(engine, ann, lambda comment_id: int(comment_id[1:]) % 2)
    undo(engine, moderator_id=ann.id, decision_id=last.id, idempotency_key="undo")
    assert [row["comment_id"] for row in answers(engine, tomorrow)] == [first.comment_id]


def test_a_planted_error_rate_comes_back(
    engine: Engine, ann: Moderator, day: date, new_item: Make
) -> None:
    rng = np.random.default_rng(5)
    intake.enqueue(engine, [new_item(f"c{k}", k + 1) for k in range(125)], day)
    label_all(engine, ann, lambda _: int(rng.random() < 0.15))
    for later in range(1, 5):  # at most 50 a day
        asked(engine, day + timedelta(later), retest=0.25)
        label_all(engine, ann, lambda _: int(rng.random() < 0.15))
    rows = [row for k in range(1, 5) for row in answers(engine, day + timedelta(k))]
    one, again = (np.array([row[name] for row in rows]) for name in ("known", "label"))
    found = annotator_error_rate(one, again)
    assert found.low is not None
    assert found.high is not None
    assert found.low <= 0.15 <= found.high
    assert found.n == len(rows) >= 100

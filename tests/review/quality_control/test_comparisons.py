"""Answers to gold items, as they go to the lake: planted errors come back, nothing else counts."""

from collections.abc import Callable
from datetime import date, timedelta

from sqlalchemy import Engine, text

from modwatch.review.quality_control.comparisons import gold_answers
from modwatch.review.quality_control.gold import GoldComment, add_gold, retire_gold
from modwatch.review.quality_control.queueing import queue_quality_control
from modwatch.review.queue import intake
from modwatch.review.queue.items import NewItem
from review.labelling import label_all, routed_like_gold

Make = Callable[..., NewItem]


def answers(engine: Engine, day: date) -> list[dict[str, object]]:
    return [row for part in gold_answers(engine, day) for row in part.to_pylist()]


def asked(engine: Engine, day: date, *, retest: float = 0.0, gold: float = 0.0) -> None:
    routed_like_gold(engine, day)
    queue_quality_control(engine, day, retest_share=retest, gold_share=gold, salt="s", least_days=0)


def checks(engine: Engine) -> list[str]:
    query = text("SELECT comment_id FROM review_item WHERE kind = 'gold' ORDER BY id")
    with engine.connect() as connection:
        return list(connection.scalars(query))


def panel(n: int) -> list[GoldComment]:
    return [
        GoldComment(comment_id=f"g{k}", text=f"invented {k}", label=k % 2, source="panel")
        for k in range(n)
    ]


def test_gold_stands_next_to_its_label_until_it_is_retired(engine, ann, day, new_item):
    intake.enqueue(engine, [new_item(f"c{k}", k + 1) for k in range(50)], day)
    label_all(engine, ann, lambda _: 0)
    add_gold(engine, panel(40))
    tomorrow = day + timedelta(1)
    asked(engine, tomorrow, gold=0.4)
    never = checks(engine)[0]
    label_all(engine, ann, lambda name: int(name[1:]) % 2 ^ (name == never))
    found = answers(engine, tomorrow)
    assert len(found) == 20
    assert {row["round"] for row in found} == {0}
    wrong = [row["comment_id"] for row in found if row["label"] != row["first_label"]]
    assert wrong == [never]
    retire_gold(engine, [never])
    assert len(answers(engine, tomorrow)) == 19

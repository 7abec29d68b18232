"""Error rates from the log: which labels count, what is kept back, and that intervals hold."""

from collections.abc import Callable
from datetime import date, timedelta

import numpy as np
import pandas as pd
import pytest
from sqlalchemy import Engine

from modwatch.common.errors import QueueError
from modwatch.review.people.accounts import Moderator
from modwatch.review.quality_control.comparisons import labels_of_comments
from modwatch.review.quality_control.error_rates import (
    ErrorRates,
    by_name,
    error_rate_report,
    error_rates,
    labelled_comments,
)
from modwatch.review.queue import intake
from modwatch.review.queue.deciding import correct, undo
from modwatch.review.queue.items import NewItem
from review.labelling import label, label_all, label_next

Make = Callable[..., NewItem]
Route = Callable[..., None]

MONDAY = date(2026, 1, 5)
FALSE_POSITIVE, FALSE_NEGATIVE = 0.05, 0.25


@pytest.fixture
def route(engine, new_item):
    """Queue n comments of a day, all of them with confirmations."""

    def put(n: int, day: date = MONDAY, **fields: object) -> None:
        items = []
        for k in range(n):
            named = {"comment_id": f"c{day:%m%d}{k:04}", **fields}
            items.append(new_item(rank=k + 1, **named))
            for number in (2, 3):
                rank = n + 2 * k + number
                items.append(new_item(kind="confirmation", **{"round": number}, rank=rank, **named))
        intake.enqueue(engine, items, day)

    return put


def rounds(engine: Engine, people: list[Moderator], *labels: int) -> None:
    """Let one person after the other label all that waits for them, each always the same."""
    for person, value in zip(people, labels, strict=False):
        label_all(engine, person, lambda _, value=value: value)  # type: ignore[misc]


def simulated(n: int, seed: int, **changes: object) -> list[dict[str, object]]:
    """Return rows of comments of which all toxic first labels and some others are confirmed."""
    rng = np.random.default_rng(seed)
    toxic = rng.random(n) < 0.3
    prob = np.clip(rng.beta(2, 5, n) + 0.3 * toxic, 0.01, 0.99)
    labels = np.where(
        toxic, rng.random((3, n)) >= FALSE_NEGATIVE, rng.random((3, n)) < FALSE_POSITIVE
    ).astype(int)
    second = labels[0].astype(bool) | (rng.random(n) < 0.3)
    given = np.where(second, np.where(labels[0] != labels[1], 3, 2), 1)
    return [
        {
            "dt": MONDAY, "queue": "general", "reason": "uncertainty", "stratum": 0,
            "prob": prob[k], "first_label": labels[0, k], "given": given[k],
            "toxic": labels[: given[k], k].sum(), **changes,
        }
        for k in range(n)
    ]  # fmt: skip


def holds(rates: ErrorRates) -> bool:
    truth = ((rates.false_positive, FALSE_POSITIVE), (rates.false_negative, FALSE_NEGATIVE))
    return all(found.low <= true <= found.high for found, true in truth)  # type: ignore[operator]


def test_rates_are_recovered_within_their_intervals():
    found = [error_rates(labelled_comments(simulated(1500, seed))) for seed in range(3)]
    assert all(map(holds, found))  # both at once
    assert all(match.false_negative.high - match.false_negative.low < 0.25 for match in found)
    assert all(0 < (match.overturned or 0) < match.confirmed < match.labelled for match in found)


def test_top_and_slice_are_distinguished():
    rows = [*simulated(900, 1), *simulated(900, 2, stratum=3, reason="random_slice")]
    assert holds(error_rates(labelled_comments(rows)))


def test_too_few_confirmed_labels_give_no_figure():
    rows = [{**row, "given": 1, "toxic": row["first_label"]} for row in simulated(200, 3)]
    for row in rows[:29]:
        row |= {"given": 2, "toxic": 2, "first_label": 1}
    found = error_rates(labelled_comments(rows))
    assert found.confirmed == 29
    assert found.false_positive.status == found.false_negative.status == "insufficient"
    assert (found.false_positive.value, found.false_negative.high) == (None, None)
    assert found.overturned is None
    assert found.false_positive.reason == "29 confirmed labels; 30 are needed"
    rows[29] |= {"given": 2, "toxic": 2, "first_label": 1}
    found = error_rates(labelled_comments(rows))
    assert found.confirmed == 30
    assert found.false_positive.status == found.false_negative.status == "ok"


def test_nothing_labelled_is_insufficient(engine):
    report = error_rate_report(engine, MONDAY, MONDAY)
    assert (report.everything.labelled, report.everything.false_negative.n) == (0, 0)
    assert report.by_queue == report.by_reason == report.by_week == {}
    with pytest.raises(QueueError, match="swap the days"):
        error_rate_report(engine, MONDAY, MONDAY - timedelta(1))


def test_what_counts_of_one_comment(engine, team, route):
    for number, (labels, given, toxic, overturned) in enumerate((
        ((1,), 1, 1, 0), ((1, 1), 2, 2, 0), ((1, 0), 2, 1, 0), ((1, 0, 1), 3, 2, 0),
        ((1, 0, 0), 3, 1, 1), ((0, 1, 1), 3, 2, 1),
    )):  # fmt: skip
        day = MONDAY + timedelta(number)
        route(1, day)
        rounds(engine, team, *labels)
        comments = read(engine, day)
        assert (comments.given.tolist(), comments.toxic.tolist()) == ([given], [toxic])
        assert comments.first_label.tolist() == [labels[0]]
        assert int(comments.overturned.sum()) == overturned
        intake.enqueue(engine, [], day)  # what is left is withdrawn


def read(engine: Engine, day: date = MONDAY) -> pd.DataFrame:
    with engine.connect() as connection:
        return labelled_comments(labels_of_comments(connection, day, day))


def test_what_was_undone_does_not_count_and_what_was_corrected_counts_as_first_stated(
    engine, team, route
):
    route(2)
    ann, ben, _ = team
    first = label_next(engine, ann, 1)
    other = label_next(engine, ann, 1)
    correct(
        engine, moderator_id=ann.id, item_id=other.item_id, label=0, version=2,
        idempotency_key="corrected", reason="slip",
    )  # fmt: skip
    second = label_next(engine, ben, 0)
    assert read(engine).given.tolist() == [2, 1]
    lease = undo(engine, moderator_id=ben.id, decision_id=second.id, idempotency_key="undo")
    assert read(engine).given.tolist() == [1, 1]
    label(engine, ben, lease, 1)
    assert (read(engine).given.tolist(), read(engine).toxic.tolist()) == ([2, 1], [2, 1])
    undo(engine, moderator_id=ann.id, decision_id=first.id, idempotency_key="undo too")
    assert (read(engine).given.tolist(), read(engine).first_label.tolist()) == ([1], [1])


def test_by_queue_reason_and_week(engine, team, route):
    route(32)
    route(10, MONDAY + timedelta(6), reason="random_slice", stratum=2, inclusion_probability=0.1)
    route(3, MONDAY + timedelta(7))
    rounds(engine, team, 1, 1)
    report = error_rate_report(engine, MONDAY, MONDAY + timedelta(20))
    assert {week: item.confirmed for week, item in report.by_week.items()} == {
        MONDAY + timedelta(7): 3,
        MONDAY: 42,
    }
    assert list(report.by_week) == [MONDAY + timedelta(7), MONDAY]
    assert {name: item.confirmed for name, item in report.by_reason.items()} == {
        "random_slice": 10,
        "uncertainty": 35,
    }
    assert report.by_queue == {"general": report.everything}
    assert [item.false_positive.status for item in report.by_week.values()] == [
        "insufficient",
        "ok",
    ]
    elsewhere = error_rate_report(engine, MONDAY, MONDAY, queues=["de"])
    assert elsewhere.everything.labelled == 0


def test_only_the_largest_queues_have_figures_of_their_own():
    rows = [row for k in range(10) for row in simulated(5 + k, k, queue=f"q{k}", given=2, toxic=1)]
    comments = labelled_comments(rows)
    assert list(by_name(comments, "queue")) == [f"q{k}" for k in range(2, 10)]

import datetime as dt
import random
from dataclasses import replace

import pytest

from modwatch.review.outbox.decision_events import LogEntry, current_decision

FIRST = LogEntry(
    id=1,
    transaction=10,
    item_id=1,
    labels_wanted=1,
    moderator_id=1,
    action="label",
    label=1,
    policy_version="1",
    policy_code="spam",
    refers_to=None,
    decided_at=dt.datetime(2026, 1, 1, tzinfo=dt.UTC),
)
UNDO = replace(FIRST, id=2, action="undo", label=None, refers_to=1)


def label(id: int, who: int, value: int, wanted: int = 1, **changes: object) -> LogEntry:
    return replace(FIRST, id=id, moderator_id=who, label=value, labels_wanted=wanted, **changes)  # type: ignore[arg-type]


def test_nothing_stands_of_nothing() -> None:
    assert current_decision([]) is None


def test_a_label_stands_until_it_is_undone() -> None:
    again = label(3, 2, 0)
    assert current_decision([FIRST]) == FIRST
    assert current_decision([FIRST, UNDO]) is None
    assert current_decision([FIRST, UNDO, again]) == again


def test_a_correction_replaces_the_label() -> None:
    correction = replace(FIRST, id=2, action="correct", label=0, refers_to=1)
    assert current_decision([FIRST, correction]) == correction


def test_of_several_labels_only_the_agreed_one_stands() -> None:
    first, same, other = label(1, 1, 1, 2), label(2, 2, 1, 2), label(2, 2, 0, 2)
    assert current_decision([first]) is None
    assert current_decision([first, same]) == same
    assert current_decision([first, other]) is None


def test_a_lead_settles_what_was_disputed_and_may_undo_it() -> None:
    disputed = [label(1, 1, 1, 2), label(2, 2, 0, 2)]
    settled = label(3, 3, 0, 2, action="adjudicate")
    undone = replace(UNDO, id=4, moderator_id=3, refers_to=3)
    assert current_decision([*disputed, settled]) == settled
    assert current_decision([*disputed, settled, undone]) is None


def test_an_undone_label_is_not_counted() -> None:
    rows = [label(1, 1, 0, 2), UNDO, label(3, 2, 1, 2), label(4, 3, 1, 2)]
    assert current_decision(rows[:3]) is None
    assert current_decision(rows) == rows[3]


def test_an_undone_escalation_takes_no_label_back() -> None:
    assert current_decision([FIRST, replace(UNDO, refers_to=9)]) == FIRST


def test_of_two_items_of_a_comment_the_last_decision_counts() -> None:
    imported = label(2, 2, 0, item_id=2)
    assert current_decision([FIRST, imported]) == imported
    assert current_decision([FIRST, imported, replace(UNDO, id=3, item_id=2, refers_to=2)]) == FIRST


@pytest.mark.parametrize("seed", range(5))
def test_rows_may_come_in_any_order(seed: int) -> None:
    rows = [FIRST, UNDO, label(3, 2, 0), replace(FIRST, id=4, action="correct", label=1)]
    mixed = random.Random(seed).sample(rows, len(rows))
    assert current_decision(mixed) == rows[3]

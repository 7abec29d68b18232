from dataclasses import dataclass
from itertools import permutations

from modwatch.review.outbox.decision_events import current_decision


@dataclass(frozen=True)
class Entry:
    id: int
    label: int | None
    outcome: str = "decided"
    item_id: int = 1


FIRST = Entry(1, 1)
UNDO = Entry(2, None, "waiting")


def label(id: int, value: int, outcome: str = "decided", item_id: int = 1) -> Entry:
    return Entry(id, value, outcome, item_id)


def test_rows_may_come_in_any_order():
    rows = [FIRST, UNDO, label(3, 0), label(4, 1)]
    for mixed in permutations(rows):
        assert current_decision(mixed) == rows[3]

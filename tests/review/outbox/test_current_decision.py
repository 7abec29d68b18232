from dataclasses import dataclass, replace
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


def test_a_label_stands_until_it_is_undone_or_replaced() -> None:
    assert current_decision([]) is None
    assert current_decision([FIRST]) == FIRST
    assert current_decision([FIRST, UNDO]) is None
    assert current_decision([FIRST, UNDO, label(3, 0)]) == label(3, 0)
    assert current_decision([FIRST, label(2, 0)]) == label(2, 0)


def test_of_several_labels_only_the_one_that_decides_stands() -> None:
    first, same, other = label(1, 1, "waiting"), label(2, 1), label(2, 0, "escalated")
    assert current_decision([first]) is None
    assert current_decision([first, same]) == same
    assert current_decision([first, other]) is None
    assert current_decision([first, other, label(3, 0)]) == label(3, 0)


def test_of_two_items_of_a_comment_the_last_decision_counts() -> None:
    imported = label(2, 0, item_id=2)
    assert current_decision([FIRST, imported]) == imported
    assert current_decision([FIRST, imported, replace(UNDO, id=3, item_id=2)]) == FIRST


def test_rows_may_come_in_any_order() -> None:
    rows = [FIRST, UNDO, label(3, 0), label(4, 1)]
    for mixed in permutations(rows):
        assert current_decision(mixed) == rows[3]

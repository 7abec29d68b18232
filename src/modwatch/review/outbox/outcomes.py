"""What a comment's decisions amount to, read from the log alone.

The queue keeps the same in `review_item.status`; the log says it for any moment of the past.
"""

import datetime as dt
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

#: Actions that can change an outcome; `close` and `reopen` are about items without one.
DECISIVE = ("label", "adjudicate", "correct", "undo")


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One row of the log, as far as outcomes go."""

    id: int
    #: Which transaction wrote it: with `id`, its place in the order in which the log is followed.
    transaction: int
    item_id: int
    #: How many people are to label the item.
    labels_wanted: int
    moderator_id: int
    #: label | adjudicate | correct | undo
    action: str
    label: int | None
    policy_version: str | None
    policy_code: str | None
    #: The decision that this one takes back or replaces.
    refers_to: int | None
    decided_at: dt.datetime

    @property
    def place(self) -> tuple[int, int]:
        """Where the log holds it for those who follow."""
        return self.transaction, self.id


def outcome(entries: Iterable[Entry]) -> Entry | None:
    """Return the decision that stands of one comment, None if none does.

    `entries` are all decisive rows of its items; of two items the one decided last counts.
    """
    items = defaultdict[int, list[Entry]](list)
    for entry in entries:
        items[entry.item_id].append(entry)
    standing = (_of_item(sorted(rows, key=lambda row: row.id)) for rows in items.values())
    return max((entry for entry in standing if entry), key=lambda entry: entry.id, default=None)


def _of_item(entries: Iterable[Entry]) -> Entry | None:
    """Return the decision that stands of one item, whose rows come in their order."""
    labels, stands = dict[int, Entry](), None
    for entry in entries:
        if entry.action == "label":
            labels[entry.moderator_id] = entry
            stands = entry if _settled(labels, entry) else None
        elif entry.action == "undo":
            labels = {who: row for who, row in labels.items() if row.id != entry.refers_to}
            stands = None if stands and stands.id == entry.refers_to else stands
        else:
            stands = entry
    return stands


def _settled(labels: dict[int, Entry], last: Entry) -> bool:
    """Return whether the last label was the last wanted, and all agree."""
    agree = all(entry.label == last.label for entry in labels.values())
    return last.labels_wanted == 1 or (len(labels) >= last.labels_wanted and agree)

"""What people said of the drawn comments, and the one label that counts for each."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from modwatch.audit.draw import DrawnComment
from modwatch.errors import AuditError

#: What a labeller may do; the word of an adjudicator goes over all labels.
ACTIONS = ("label", "adjudicate")

Key = tuple[date, str]


@dataclass(frozen=True, kw_only=True)
class AuditLabel:
    """What one person said of one drawn comment."""

    day: date
    comment_id: str
    #: Pseudonym.
    labeller: str
    #: label | adjudicate
    action: str
    #: 0 or 1.
    label: int
    #: UTC, ISO 8601.
    decided_at: str
    #: Hash of the decision in the log of decisions.
    decision: str


def key_of(each: DrawnComment | AuditLabel) -> Key:
    """Return what names the comment that was drawn, or labelled."""
    return each.day, each.comment_id


def labelled(labels: Iterable[AuditLabel]) -> int:
    """Return how many comments have a label."""
    return len({key_of(label) for label in labels})


def final_labels(drawn: Sequence[DrawnComment], labels: Iterable[AuditLabel]) -> dict[Key, int]:
    """Return the label that counts of each comment that has one.

    That of the adjudicator, or the one that all labellers gave. Comments on which people disagree,
    with nobody having settled it, have none.

    Raises:
        AuditError: a label of a comment that was not drawn, two of the same person on one comment,
            two settlements, or a settlement by one of the labellers.
    """
    wanted = {key_of(each) for each in drawn}
    said: dict[Key, list[AuditLabel]] = defaultdict(list)
    for label in labels:
        key = key_of(label)
        _refuse(key not in wanted, label, "is of a comment that was not drawn")
        _refuse(label.action not in ACTIONS, label, f"has the action {label.action!r}")
        _refuse(label.label not in (0, 1), label, "is neither 0 nor 1")
        said[key].append(label)
    return {key: final for key, each in said.items() if (final := _final(each)) is not None}


def conflicts(labels: Iterable[AuditLabel], moderated: Mapping[Key, set[str]]) -> list[AuditLabel]:
    """Return the labels by people who decided the comment as moderators.

    `moderated` holds the pseudonyms of those who decided a comment before the audit.
    """
    return [label for label in labels if label.labeller in moderated.get(key_of(label), set())]


def refuse_conflicts(labels: Iterable[AuditLabel], moderated: Mapping[Key, set[str]]) -> None:
    """Raise AuditError when there are `conflicts`; it counts them and names nobody."""
    number = len(conflicts(labels, moderated))
    if number:
        raise AuditError(
            f"{number} {'label is' if number == 1 else 'labels are'} by who decided the comment as "
            "a moderator (`modwatch audit status` says whose); have them taken back, or give the "
            "audit up"
        )


def changed(sealed: Iterable[AuditLabel], now: Iterable[AuditLabel]) -> set[Key]:
    """Return the comments whose labels are no longer those that were sealed.

    A label was corrected, taken back or added; comments without a sealed label do not count.
    """
    before, after = {*sealed}, {*now}
    there = {key_of(each) for each in before}
    return there & {key_of(each) for each in before ^ after}


def _final(said: Sequence[AuditLabel]) -> int | None:
    """Return the label that counts, or None while people differ."""
    settled = [each for each in said if each.action == "adjudicate"]
    first = [each for each in said if each.action == "label"]
    people = set[str]()
    for each in said:
        _refuse(each.labeller in people, each, "is the second by the same person")
        people.add(each.labeller)
    _refuse(len(settled) > 1, said[-1], "is settled twice")
    if settled:
        return settled[0].label
    return first[0].label if len({each.label for each in first}) == 1 else None


def _refuse(wrong: bool, label: AuditLabel, why: str) -> None:
    if wrong:
        raise AuditError(
            f"the label of comment {label.comment_id!r} of {label.day} by {label.labeller!r} {why}"
        )

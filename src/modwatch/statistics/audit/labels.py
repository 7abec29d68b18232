"""The labels of the drawn comments, and the final label of each."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from modwatch.common.errors import AuditError
from modwatch.statistics.audit.confirmation_rules import MOST_LABELS
from modwatch.statistics.audit.draw import DrawnComment
from modwatch.statistics.audit.plan import AuditPlan

#: Actions of a labeller; an adjudication overrides all labels. `correct` is the label of a person
#: who replaced their own one, without knowing those of others.
ACTIONS = ("label", "correct", "adjudicate")

#: Comments are `decided`, or undecided when the labelling was stopped: `waiting` for labels,
#: `escalated` to a lead, `withdrawn`, `closed`, or `erased` before it was decided.
OUTCOMES = ("decided", "waiting", "escalated", "withdrawn", "closed", "erased")

Key = tuple[date, str]


@dataclass(frozen=True, kw_only=True)
class AuditLabel:
    """The label of one drawn comment by one person."""

    day: date
    comment_id: str
    #: Pseudonym.
    labeller: str
    #: One of ACTIONS.
    action: str
    #: 0 or 1.
    label: int
    #: UTC, ISO 8601.
    decided_at: str
    #: Hash of the decision in the log of decisions.
    decision: str


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of one drawn comment in the queue until its labels were sealed."""

    day: date
    comment_id: str
    #: One of OUTCOMES.
    outcome: str
    #: Labels and adjudications that count.
    labels: int


def key_of(each: DrawnComment | AuditLabel | Outcome) -> Key:
    """Return what names the comment that was drawn, or labelled."""
    return each.day, each.comment_id


def labelled(labels: Iterable[AuditLabel]) -> int:
    """Return the number of comments with a label."""
    return len({key_of(label) for label in labels})


def final_labels(drawn: Sequence[DrawnComment], labels: Iterable[AuditLabel]) -> dict[Key, int]:
    """Return the final label of each comment that has one: the adjudicator's, or the majority's.

    Comments with a tie have none.

    Raises:
        AuditError: a label of a comment that was not drawn, two labels by one person on a comment,
            two adjudications, or an adjudication by one of the labellers.
    """
    wanted = {key_of(comment) for comment in drawn}
    by_comment: dict[Key, list[AuditLabel]] = defaultdict(list)
    for label in labels:
        key = key_of(label)
        _reject(key not in wanted, label, "refers to a comment that was not drawn")
        _reject(label.action not in ACTIONS, label, f"has the action {label.action!r}")
        _reject(label.label not in (0, 1), label, "is neither 0 nor 1")
        by_comment[key].append(label)
    found = ((key, _final(mine)) for key, mine in by_comment.items())
    return {key: final for key, final in found if final is not None}


def in_order(labels: Iterable[AuditLabel]) -> dict[Key, list[AuditLabel]]:
    """Return the labels of each comment, oldest first."""
    by_comment: dict[Key, list[AuditLabel]] = defaultdict(list)
    for label in sorted(labels, key=lambda one: (one.decided_at, one.labeller)):
        by_comment[key_of(label)].append(label)
    return dict(by_comment)


def labels_demanded(plan: AuditPlan, drawn: DrawnComment, labels: Sequence[AuditLabel]) -> int:
    """Return how many people must label a drawn comment, given the labels so far, oldest first.

    One; two if the plan confirms the first label; three if these two differ.
    """
    given = [label.label for label in labels]
    if len(given) > 1:
        return MOST_LABELS if given[0] != given[1] else 2
    return 2 if {*given} & {*plan.confirms(drawn.stratum, drawn.key)} else 1


def blind_labels(labels: Iterable[AuditLabel]) -> dict[Key, list[int]]:
    """Return the labels of each comment by people who did not know each other's, oldest first.

    An adjudicator knows the other labels: theirs only counts where it is the only one.
    """
    return {
        key: [one.label for one in given if one.action != "adjudicate"] or [given[-1].label]
        for key, given in in_order(labels).items()
    }


@dataclass(frozen=True, kw_only=True)
class Unlabelled:
    """The drawn comments without a final label, by what the files show of why."""

    #: People disagreed, and no lead settled it.
    disputed: frozenset[Key]
    #: Nobody labelled them, but comments that the draw put behind them: passed over or escalated.
    passed_over: frozenset[Key]
    #: The labelling ended before them, in the order of the draw.
    not_reached: frozenset[Key]

    @property
    def unknown(self) -> frozenset[Key]:
        """Those whose label may be the reason that they have none; the others are random."""
        return self.disputed | self.passed_over


def unlabelled(
    samples: Sequence[Sequence[DrawnComment]], labels: Iterable[AuditLabel]
) -> Unlabelled:
    """Return the comments without a final label.

    `samples` are those of the stages, each including the one before, in the order of the draw,
    which is random and the order of labelling. So the comments after the last labelled one of a
    stage are a random part of it, and those before it are not.
    """
    given = list(labels)
    seen = {key_of(label) for label in given}
    final = final_labels(samples[-1], given)
    passed_over, not_reached = set[Key](), set[Key]()
    earlier = set[Key]()
    for sample in samples:
        stage = [key_of(comment) for comment in sample if key_of(comment) not in earlier]
        last = max((place for place, key in enumerate(stage) if key in seen), default=-1)
        passed_over |= {*stage[: last + 1]} - seen
        not_reached |= {*stage[last + 1 :]}
        earlier |= {*stage}
    return Unlabelled(
        disputed=frozenset(seen - final.keys()),
        passed_over=frozenset(passed_over),
        not_reached=frozenset(not_reached),
    )


def conflicts(labels: Iterable[AuditLabel], moderated: Mapping[Key, set[str]]) -> list[AuditLabel]:
    """Return the labels by people who decided the comment as moderators before.

    `moderated` are the pseudonyms of those who decided a comment before the audit.
    """
    return [label for label in labels if label.labeller in moderated.get(key_of(label), set())]


def refuse_conflicts(labels: Iterable[AuditLabel], moderated: Mapping[Key, set[str]]) -> None:
    """Raise AuditError when there are `conflicts`; the message counts them, without names."""
    number = len(conflicts(labels, moderated))
    if number:
        raise AuditError(
            f"{number} {'label is' if number == 1 else 'labels are'} by people who decided the "
            "comment as moderators (`modwatch audit status` lists them); have the labels undone, "
            "or cancel the audit"
        )


def changed(sealed: Iterable[AuditLabel], now: Iterable[AuditLabel]) -> set[Key]:
    """Return the comments whose labels changed after they were sealed.

    A label was corrected, undone or added; comments without a sealed label do not count.
    """
    before, after = {*sealed}, {*now}
    known = {key_of(label) for label in before}
    return known & {key_of(label) for label in before ^ after}


def _final(labels: Sequence[AuditLabel]) -> int | None:
    """Return the final label, or None for a tie."""
    settled = [label for label in labels if label.action == "adjudicate"]
    first = [label for label in labels if label.action != "adjudicate"]
    people = set[str]()
    for label in labels:
        _reject(label.labeller in people, label, "is the second by the same person")
        people.add(label.labeller)
    _reject(len(settled) > 1, labels[-1], "is adjudicated twice")
    if settled:
        return settled[0].label
    excess = sum(1 if label.label else -1 for label in first)
    return None if not excess else int(excess > 0)


def _reject(wrong: bool, label: AuditLabel, why: str) -> None:
    if wrong:
        raise AuditError(
            f"the label of comment {label.comment_id!r} of {label.day} by {label.labeller!r} {why}"
        )

"""How far moderators agree with each other, with known answers, and with themselves.

Every figure is an `Estimate`: a value with n and a 95 % interval, or insufficient with the reason.
`comparisons` says which judgements count. The figures are about the comments that were compared:
unsure comments that several people label are harder than others.
"""

import datetime as dt
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Engine, RowMapping, select

from modwatch.errors import QueueError
from modwatch.metrics.agreement import (
    cohen_kappa,
    krippendorff_alpha,
    observed_agreement,
    observed_disagreement,
)
from modwatch.metrics.annotator_error import MINIMUM_PAIRS
from modwatch.metrics.estimate import Estimate
from modwatch.review.checks.comparisons import compared
from modwatch.review.people.groups import SMALLER_GROUPS, SMALLEST_MINIMUM
from modwatch.review.tables import moderator_group


@dataclass(frozen=True, kw_only=True)
class PersonAgreement:
    """One figure of one person; insufficient, not shown, below the minimum."""

    moderator_id: int
    pseudonym: str
    agreement: Estimate


@dataclass(frozen=True, kw_only=True)
class GroupAgreement:
    """Figures of everybody who says the same of themselves."""

    group: str
    #: Members who answered a gold item or a retest in the period.
    people: int
    gold_accuracy: Estimate
    retest_consistency: Estimate


@dataclass(frozen=True, kw_only=True)
class AgreementReport:
    """What a period says of how moderators label."""

    first: dt.date
    last: dt.date
    #: First and second opinion are the same.
    second_opinions: Estimate
    #: Cohen's κ of first and second opinion.
    second_opinions_kappa: Estimate
    #: Krippendorff's α of the items that several people label.
    several_labels_alpha: Estimate
    gold_accuracy: Estimate
    gold_by_person: tuple[PersonAgreement, ...]
    #: People label a comment as before.
    retest_consistency: Estimate
    #: r, of which flip rates are made: 1 − consistency.
    retest_disagreement: Estimate
    retests_by_person: tuple[PersonAgreement, ...]


_Measure = Callable[..., Estimate]
_Rows = Sequence[RowMapping]


def agreement_report(
    engine: Engine,
    first: dt.date,
    last: dt.date,
    *,
    minimum: int = MINIMUM_PAIRS,
    queues: Collection[str] | None = None,
    seed: int = 0,
) -> AgreementReport:
    """Return the agreement among moderators from `first` to `last`, days UTC, both included.

    Figures of fewer than `minimum` comparisons, a person's too, are insufficient. Only of `queues`,
    or of all when None. `seed` decides the bootstrap of α. One snapshot of the log. Raises
    `QueueError` when the period cannot be.
    """
    with engine.connect().execution_options(isolation_level="REPEATABLE READ") as connection:
        twice, several, gold, retests = (
            compared(connection, what, first, last, queues)
            for what in ("second opinions", "several labels", "gold", "retests")
        )
    opinions, again = _columns(twice, "first", "second"), _columns(retests, "first", "again")
    rng, least = np.random.default_rng(seed), {"minimum": minimum}
    return AgreementReport(
        first=first,
        last=last,
        second_opinions=observed_agreement(*opinions, **least),
        second_opinions_kappa=cohen_kappa(*opinions, **least),
        several_labels_alpha=krippendorff_alpha(
            *_columns(several, "item_id", "label"), rng=rng, **least
        ),
        gold_accuracy=observed_agreement(*_columns(gold, "label", "gold"), **least),
        gold_by_person=_by_person(gold, observed_agreement, ("label", "gold"), minimum),
        retest_consistency=observed_agreement(*again, **least),
        retest_disagreement=observed_disagreement(*again, **least),
        retests_by_person=_by_person(retests, observed_agreement, ("first", "again"), minimum),
    )


def agreement_by_group(
    engine: Engine,
    first: dt.date,
    last: dt.date,
    *,
    least_people: int = 10,
    minimum: int = MINIMUM_PAIRS,
    queues: Collection[str] | None = None,
) -> list[GroupAgreement]:
    """Return gold accuracy and retest consistency by what moderators say of themselves, by name.

    Groups of which fewer than `least_people` answered are one, "smaller groups", which is left out
    if it is too small itself; so is any figure to which too few contributed. Who says nothing is in
    no group. Raises `QueueError` for `least_people` below 5, with which figures would name people.
    """
    if least_people < SMALLEST_MINIMUM:
        raise QueueError(f"groups below {SMALLEST_MINIMUM} people are not shown; ask for more")
    with engine.connect().execution_options(isolation_level="REPEATABLE READ") as connection:
        gold, retests = (
            compared(connection, what, first, last, queues) for what in ("gold", "retests")
        )
        said = {
            row.moderator_id: row.group_name for row in connection.execute(select(moderator_group))
        }
    groups = _large_groups(said, [*gold, *retests], least_people)
    least = (least_people, minimum)
    return [
        GroupAgreement(
            group=name,
            people=len(members),
            gold_accuracy=_of_group(gold, members, observed_agreement, ("label", "gold"), least),
            retest_consistency=_of_group(
                retests, members, observed_agreement, ("first", "again"), least
            ),
        )
        for name, members in sorted(groups.items())
    ]


def _columns(rows: Iterable[RowMapping], *names: str) -> tuple[NDArray[np.float64], ...]:
    every = list(rows)
    return tuple(np.array([row[name] for row in every], dtype=np.float64) for name in names)


def _by_person(
    rows: _Rows, measure: _Measure, columns: tuple[str, str], minimum: int
) -> tuple[PersonAgreement, ...]:
    names: Mapping[int, str] = {row["moderator_id"]: row["pseudonym"] for row in rows}
    return tuple(
        PersonAgreement(
            moderator_id=person,
            pseudonym=name,
            agreement=measure(*_columns(_of(rows, {person}), *columns), minimum=minimum),
        )
        for person, name in sorted(names.items(), key=lambda each: each[1])
    )


def _of(rows: _Rows, members: Collection[int]) -> _Rows:
    return [row for row in rows if row["moderator_id"] in members]


def _large_groups(said: Mapping[int, str], rows: _Rows, least_people: int) -> dict[str, set[int]]:
    """Return who of each group answered, small groups together."""
    answered = {row["moderator_id"] for row in rows}
    groups: dict[str, set[int]] = {}
    for person in answered & said.keys():
        groups.setdefault(said[person], set()).add(person)
    large = {name: members for name, members in groups.items() if len(members) >= least_people}
    small = set[int]().union(*(groups[name] for name in groups.keys() - large.keys()))
    return large | ({SMALLER_GROUPS: small} if len(small) >= least_people else {})


def _of_group(
    rows: _Rows,
    members: Collection[int],
    measure: _Measure,
    columns: tuple[str, str],
    least: tuple[int, int],
) -> Estimate:
    least_people, minimum = least
    theirs = _of(rows, members)
    people = len({row["moderator_id"] for row in theirs})
    if people < least_people:
        reason = f"fewer than {least_people} people contributed"
        return Estimate.insufficient(reason, n=0)
    return measure(*_columns(theirs, *columns), minimum=minimum)

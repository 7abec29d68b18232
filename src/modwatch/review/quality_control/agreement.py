"""Agreement of moderators with each other, with gold labels, and with their own earlier labels.

Every figure is an `Estimate`: a value with n and a 95 % interval, or insufficient with the reason.
`comparisons` selects the labels that count. First labels and confirmations are weighted by the
inverse of the probability that the label was confirmed, so their agreement is that of all reviewed
comments. The other figures are about the comments that were compared: unsure comments that several
people label are harder than others.
"""

import datetime as dt
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sqlalchemy import Engine

from modwatch.common.errors import QueueError
from modwatch.review.people.groups import counted_groups
from modwatch.review.quality_control.comparisons import compared
from modwatch.statistics.agreement import (
    MINIMUM_PAIRS,
    cohen_kappa,
    krippendorff_alpha,
    observed_agreement,
    observed_disagreement,
)
from modwatch.statistics.divergence.annotator_groups import suppressed_groups
from modwatch.statistics.estimate import Estimate


@dataclass(frozen=True, kw_only=True)
class PersonAgreement:
    """A statistic of one person; insufficient below the minimum number of comparisons."""

    moderator_id: int
    pseudonym: str
    agreement: Estimate


@dataclass(frozen=True, kw_only=True)
class GroupAgreement:
    """Statistics of the people who count in one group."""

    group: str
    #: People counted in it who answered a gold item or a retest in the period, rounded down.
    people: int
    gold_accuracy: Estimate
    retest_consistency: Estimate


@dataclass(frozen=True, kw_only=True)
class AgreementReport:
    """The agreement of moderators in a period."""

    first: dt.date
    last: dt.date
    #: First and second label are the same, over all comments that are reviewed.
    confirmations: Estimate
    #: Cohen's κ of first and second label, over the same comments.
    confirmations_kappa: Estimate
    #: Krippendorff's α of the items that several people label.
    several_labels_alpha: Estimate
    gold_accuracy: Estimate
    gold_by_person: tuple[PersonAgreement, ...]
    #: People label a comment as before.
    retest_consistency: Estimate
    #: r, from which flip rates are computed: 1 − consistency.
    retest_disagreement: Estimate
    retests_by_person: tuple[PersonAgreement, ...]


#: Statistics of smaller groups could identify people.
SMALLEST_MINIMUM = 5


def agreement_report(
    engine: Engine,
    first: dt.date,
    last: dt.date,
    *,
    minimum: int = MINIMUM_PAIRS,
    queues: Collection[str] | None = None,
    seed: int = 0,
    lag: dt.timedelta = dt.timedelta(0),
) -> AgreementReport:
    """Return the agreement of moderators from `first` to `last`, days in UTC, both included.

    Statistics of fewer than `minimum` comparisons are insufficient, also per person. Only items of
    `queues` count, or all if None, and no label that is more recent than `lag`: people who may be
    served items must not see by these numbers what they can still undo. `seed` is that of the
    bootstrap of α. Reads one snapshot of the log. Raises `QueueError` if `last` is before `first`.
    """
    with engine.connect().execution_options(isolation_level="REPEATABLE READ") as connection:
        twice, several, gold, retests = (
            compared(connection, what, first, last, queues, lag)
            for what in ("confirmations", "several labels", "gold", "retests")
        )
    pairs, again = _columns(twice, "first", "second"), _columns(retests, "first", "again")
    weight = 1 / twice["probability"].to_numpy(np.float64)
    rng, least = np.random.default_rng(seed), {"minimum": minimum}
    return AgreementReport(
        first=first,
        last=last,
        confirmations=observed_agreement(*pairs, sample_weight=weight, minimum=minimum),
        confirmations_kappa=cohen_kappa(*pairs, sample_weight=weight, minimum=minimum),
        several_labels_alpha=krippendorff_alpha(
            *_columns(several, "item_id", "label"), rng=rng, **least
        ),
        gold_accuracy=observed_agreement(*_columns(gold, "label", "gold"), **least),
        gold_by_person=_by_person(gold, ("label", "gold"), minimum),
        retest_consistency=observed_agreement(*again, **least),
        retest_disagreement=observed_disagreement(*again, **least),
        retests_by_person=_by_person(retests, ("first", "again"), minimum),
    )


def agreement_by_group(
    engine: Engine,
    first: dt.date,
    last: dt.date,
    *,
    least_people: int = 10,
    minimum: int = MINIMUM_PAIRS,
) -> list[GroupAgreement]:
    """Return gold accuracy and retest consistency by group of moderators, in order of name.

    The groups are those that people count in (`people.groups.counted_groups`). For reports that are
    published once: two periods that overlap reveal who answered in one of them only.
    Numbers of people and of answers are multiples of `least_people`, rounded down. A statistic to
    which fewer of a group contributed is insufficient, and so is that of a group that would follow
    from the others. Raises `QueueError` for `least_people` below 5, which could identify people.
    """
    if least_people < SMALLEST_MINIMUM:
        raise QueueError(f"least_people must be at least {SMALLEST_MINIMUM}, got {least_people}")
    group_of = counted_groups(engine)
    with engine.connect().execution_options(isolation_level="REPEATABLE READ") as connection:
        gold, retests = (compared(connection, what, first, last) for what in ("gold", "retests"))
    accuracy = _by_group(gold, ("label", "gold"), group_of, least_people, minimum)
    consistency = _by_group(retests, ("first", "again"), group_of, least_people, minimum)
    answered = {*gold["pseudonym"], *retests["pseudonym"]}
    people = Counter(group_of[person] for person in answered & group_of.keys())
    too_few = Estimate.insufficient("too few people contributed", n=0)
    return [
        GroupAgreement(
            group=name,
            people=people[name] // least_people * least_people,
            gold_accuracy=accuracy.get(name, too_few),
            retest_consistency=consistency.get(name, too_few),
        )
        for name in sorted(accuracy.keys() | consistency.keys())
    ]


def _columns(rows: pd.DataFrame, *names: str) -> list[NDArray[np.float64]]:
    return [rows[name].to_numpy(np.float64) for name in names]


def _by_person(
    rows: pd.DataFrame, columns: tuple[str, str], minimum: int
) -> tuple[PersonAgreement, ...]:
    return tuple(
        PersonAgreement(
            moderator_id=int(theirs["moderator_id"].iloc[0]),
            pseudonym=str(name),
            agreement=observed_agreement(*_columns(theirs, *columns), minimum=minimum),
        )
        for name, theirs in rows.groupby("pseudonym")
    )


def _by_group(
    rows: pd.DataFrame,
    columns: tuple[str, str],
    group_of: Mapping[str, str],
    least_people: int,
    minimum: int,
) -> dict[str, Estimate]:
    """Return a statistic of each group in which enough people contributed to it."""
    group = rows["pseudonym"].map(group_of)
    sizes = rows["pseudonym"].groupby(group).nunique()
    without = rows["pseudonym"][group.isna()].nunique()
    hidden = suppressed_groups(sizes, without, minimum=least_people)
    return {
        str(name): _rounded(
            observed_agreement(*_columns(theirs, *columns), minimum=minimum), least_people
        )
        for name, theirs in rows.groupby(group)
        if name not in hidden
    }


def _rounded(figure: Estimate, base: int) -> Estimate:
    """Return a figure with three decimals, and n as a multiple of `base`, rounded down."""
    n = figure.n // base * base
    if figure.value is None:
        return Estimate.insufficient("too few answers", n=n)  # the reason has their number
    value, *ends = (round(number or 0.0, 3) for number in (figure.value, figure.low, figure.high))
    return Estimate.from_interval(value, (ends[0], ends[1]), n=n)

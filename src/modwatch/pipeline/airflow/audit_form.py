"""The form of the DAG `audit_recall`: fields, help texts and limits."""

import datetime
from collections.abc import Mapping
from typing import Any

from airflow.sdk import Param

_ONE_DAY = datetime.timedelta(days=1)

# Airflow shows fields without a section first; the others are collapsed.
_DESIGN, _PEOPLE = "Design", "People"

#: The fields, all optional; `modwatch.audits.request.requested` reads them.
FORM: dict[str, Param] = {
    "audit": Param(
        None,
        type=["null", "string"],
        pattern="^[a-z0-9][a-z0-9_-]{0,99}$",
        title="Name",
        description="Lower-case letters, digits, - and _. Default: period and time.",
    ),
    "first": Param(
        None,
        type=["null", "string"],
        format="date",
        title="First day",
        description="UTC. If both days are empty, the previous month is audited.",
    ),
    "last": Param(
        None,
        type=["null", "string"],
        format="date",
        title="Last day",
        description="Inclusive. One model must have scored all days.",
    ),
    "allow_missing_days": Param(
        False,
        type="boolean",
        title="Allow missing days",
        description="Plan the audit although days of the period have no scores. The approval page "
        "and the report name these days. Without it such a period is refused.",
    ),
    "service": Param(
        None,
        type=["null", "string"],
        maxLength=200,
        title="Service",
        description="Name of the service, for the report and the Digital Services Act files.",
    ),
    "labels": Param(
        1000,
        type="integer",
        minimum=20,
        maximum=1_000_000,
        title="Comments to label",
        description="All stages together. Example: if 1 % of the unflagged comments are harmful, "
        "1,000 labels give an interval of about 0.5 % to 1.75 % for that share; four times as many "
        "labels halve its width. The approval page shows the working hours.",
    ),
    "method": Param(
        "neyman",
        type="string",
        enum=["neyman", "quantile", "equal_width", "sqrt_mass"],
        title="Stratification",
        description="How scores are divided into strata. Keep the default unless you compare "
        "methods.",
        section=_DESIGN,
    ),
    "bins": Param(
        8,
        type="integer",
        minimum=1,
        maximum=64,
        title="Number of strata",
        description="Among unflagged comments.",
        section=_DESIGN,
    ),
    "allocation": Param(
        "neyman",
        type="string",
        enum=["neyman", "proportional", "equal"],
        title="Allocation",
        description="neyman: more labels where errors are likely by the scores, with a minimum in "
        "each stratum.",
        section=_DESIGN,
    ),
    "worst_case": Param(
        1.1,
        type="number",
        minimum=1,
        maximum=100,
        title="Worst case",
        description="Variance over that of a random sample with as many labels, at most, however "
        "wrong the scores are. Higher: labels follow the scores further.",
        section=_DESIGN,
    ),
    "flagged_share": Param(
        None,
        type=["null", "number"],
        exclusiveMinimum=0,
        exclusiveMaximum=1,
        title="Share for flagged comments",
        description="Share of the labels, in (0, 1). Default: the share with the most precise "
        "recall.",
        section=_DESIGN,
    ),
    "expected_prevalence": Param(
        None,
        type=["null", "number"],
        exclusiveMinimum=0,
        exclusiveMaximum=1,
        title="Expected prevalence",
        description="Share of harmful comments among unflagged ones, if you know better than the "
        "labels of the random slice, which are used by default. Estimates do not depend on it.",
        section=_DESIGN,
    ),
    "second_stage_share": Param(
        0.0,
        type="number",
        minimum=0,
        exclusiveMaximum=1,
        title="Second stage",
        description="Share of the labels for a second draw, allocated by the results of the first.",
        section=_DESIGN,
    ),
    "level": Param(
        0.95,
        type="number",
        minimum=0.6,
        maximum=0.9999,
        title="Confidence level",
        description="Of the intervals.",
        section=_DESIGN,
    ),
    "sides": Param(
        "both",
        type="string",
        enum=["both", "lower", "upper"],
        title="Sides",
        description="both: a two-sided interval. lower or upper: a one-sided bound.",
        section=_DESIGN,
    ),
    "confirmed_share": Param(
        0.2,
        type="number",
        minimum=0,
        maximum=1,
        title="Share of confirmations",
        description="Expected second and third labels over first ones. Blind second labels tell "
        "how often annotators err, which the intervals then allow for. 0: labels count as true.",
        section=_PEOPLE,
    ),
    "deadline_days": Param(
        14,
        type="integer",
        minimum=1,
        maximum=365,
        title="Deadline in days",
        description="Per stage. Comments without labels are left out then, and an incomplete first "
        "stage has no second.",
        section=_PEOPLE,
    ),
    "four_eyes": Param(
        True,
        type="boolean",
        title="Four eyes",
        description="Whoever triggers the audit cannot approve the plan, and neither can sign the "
        "result. Without it one person may do all of it, and the report says so. Whoever labels "
        "can never approve or sign.",
        section=_PEOPLE,
    ),
    "remind_days": Param(
        3,
        type="integer",
        minimum=1,
        maximum=365,
        title="Days between reminders",
        description="Sent to every alert channel while labels are missing.",
        section=_PEOPLE,
    ),
}


def filled_in(
    form: Mapping[str, Any], *, covers: datetime.datetime | None, run: str, asked: datetime.datetime
) -> dict[str, Any]:
    """Return the form with the default period and name where they are empty.

    `covers` is a moment of the month that a scheduled run covers; a run by hand covers the month
    before `asked`. The name is the same whenever the run asks again.

    >>> asked = datetime.datetime(2026, 11, 1, 7, tzinfo=datetime.UTC)
    >>> october = datetime.datetime(2026, 10, 1, 7, tzinfo=datetime.UTC)
    >>> filled_in({"labels": 500}, covers=october, run="scheduled__x", asked=asked)
    {'labels': 500, 'first': '2026-10-01', 'last': '2026-10-31', 'audit': '2026-10-01_2026-10-31', \
'origin': 'scheduled__x'}
    >>> filled_in({"first": "2026-10-05", "last": "2026-10-06"}, covers=None, run="manual__x",
    ...           asked=asked)["audit"]
    '2026-10-05_2026-10-06_20261101t070000'
    """
    given = {name: value for name, value in form.items() if value not in (None, "")}
    scheduled = covers is not None and run.startswith("scheduled")
    # A run by hand: Airflow would have it cover the last interval that its schedule has ended.
    day = covers.date() if covers and scheduled else asked.date().replace(day=1) - _ONE_DAY
    if "first" not in given and "last" not in given:
        first, last = month_of(day)
        given |= {"first": first.isoformat(), "last": last.isoformat()}
    name = f"{given.get('first')}_{given.get('last')}"
    by_hand = f"_{asked:%Y%m%dt%H%M%S}"
    return {**given, "audit": given.get("audit", name + by_hand * (not scheduled)), "origin": run}


def month_of(day: datetime.date) -> tuple[datetime.date, datetime.date]:
    """Return the first and the last day of the month in which `day` lies.

    >>> month_of(datetime.date(2026, 2, 14))
    (datetime.date(2026, 2, 1), datetime.date(2026, 2, 28))
    """
    first = day.replace(day=1)
    return first, (first + 31 * _ONE_DAY).replace(day=1) - _ONE_DAY

"""The form with which an auditor asks for an audit: help texts and limits."""

import datetime
from collections.abc import Mapping
from typing import Any

from airflow.sdk import Param

_ONE_DAY = datetime.timedelta(days=1)

# Fields without a section are those that Airflow shows at once.
_DESIGN, _PEOPLE = "Design", "People"

#: The fields; all may be left as they are. `requested` says what becomes of them.
FORM: dict[str, Param] = {
    "audit": Param(
        None,
        type=["null", "string"],
        pattern="^[a-z0-9][a-z0-9_-]{0,99}$",
        title="Name",
        description="Lower-case letters, digits, - and _. Made of period and time when empty.",
    ),
    "first": Param(
        None,
        type=["null", "string"],
        format="date",
        title="First day",
        description="UTC. When both days are empty: the whole month before.",
    ),
    "last": Param(
        None,
        type=["null", "string"],
        format="date",
        title="Last day",
        description="Included. All days must have been scored by the same model.",
    ),
    "service": Param(
        None,
        type=["null", "string"],
        maxLength=200,
        title="Service",
        description="Its name, for the report and the files for the Digital Services Act.",
    ),
    "labels": Param(
        1000,
        type="integer",
        minimum=20,
        maximum=1_000_000,
        title="Comments to label",
        description="Of all stages together. With 1 % missed and 1,000 labels, the interval of the "
        "missed share reaches about half of it down and three quarters up; four times the labels "
        "about halve it. Whoever is asked to approve sees the hours.",
    ),
    "method": Param(
        "neyman",
        type="string",
        enum=["neyman", "quantile", "equal_width", "sqrt_mass"],
        title="Strata",
        description="How the scores are cut into strata. Leave it unless you compare methods.",
        section=_DESIGN,
    ),
    "bins": Param(
        8,
        type="integer",
        minimum=1,
        maximum=64,
        title="Number of strata",
        description="Of comments that were not flagged.",
        section=_DESIGN,
    ),
    "allocation": Param(
        "neyman",
        type="string",
        enum=["neyman", "proportional", "equal"],
        title="Labels by stratum",
        description="neyman: more where the scores expect mistakes, with a floor everywhere.",
        section=_DESIGN,
    ),
    "floor": Param(
        0.4,
        type="number",
        minimum=0,
        maximum=1,
        title="Floor",
        description="Part of the labels that is spread evenly, against scores that are wrong.",
        section=_DESIGN,
    ),
    "flagged_share": Param(
        None,
        type=["null", "number"],
        exclusiveMinimum=0,
        exclusiveMaximum=1,
        title="Part for flagged comments",
        description="Of the labels, in (0, 1). Empty: what serves recall best.",
        section=_DESIGN,
    ),
    "expected_prevalence": Param(
        None,
        type=["null", "number"],
        exclusiveMinimum=0,
        exclusiveMaximum=1,
        title="Expected share missed",
        description="Of harmful comments among those not flagged, if known, such as from the "
        "last audit. It only shares the labels out better; no figure depends on it.",
        section=_DESIGN,
    ),
    "second_stage_share": Param(
        0.0,
        type="number",
        minimum=0,
        exclusiveMaximum=1,
        title="Second stage",
        description="Part of the labels kept for a second draw, which learns from the first.",
        section=_DESIGN,
    ),
    "level": Param(
        0.95,
        type="number",
        minimum=0.6,
        maximum=0.9999,
        title="Confidence",
        description="Level of the intervals.",
        section=_DESIGN,
    ),
    "sides": Param(
        "both",
        type="string",
        enum=["both", "lower", "upper"],
        title="Sides",
        description="both: an interval. lower or upper: one bound at that level.",
        section=_DESIGN,
    ),
    "seed": Param(
        None,
        type=["null", "string"],
        maxLength=200,
        title="Seed",
        description="Makes the draw. Best from a public source that nobody controls; made at "
        "random when empty.",
        section=_DESIGN,
    ),
    "several_labels_share": Param(
        0.2,
        type="number",
        minimum=0,
        maximum=1,
        title="Part labelled by several",
        description="Of the comments. Tells how often people err; a lead settles differences.",
        section=_PEOPLE,
    ),
    "labels_an_item": Param(
        2,
        type="integer",
        minimum=2,
        maximum=9,
        title="How many people that are",
        description="Labels of each of those comments.",
        section=_PEOPLE,
    ),
    "deadline_days": Param(
        14,
        type="integer",
        minimum=1,
        maximum=365,
        title="Days to label",
        description="Of each stage. What is not labelled then is left out, and after a first stage "
        "that is not complete there is no second.",
        section=_PEOPLE,
    ),
    "remind_days": Param(
        3,
        type="integer",
        minimum=1,
        maximum=365,
        title="Days between reminders",
        description="While labels are missing, on every channel of alerts.",
        section=_PEOPLE,
    ),
}


def filled_in(
    form: Mapping[str, Any], *, covers: datetime.datetime | None, run: str, asked: datetime.datetime
) -> dict[str, Any]:
    """Return the form with period and name, where they were left empty.

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

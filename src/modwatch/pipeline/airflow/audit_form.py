"""The form of the DAG `audit_recall`: fields, help texts and limits."""

from functools import partial

from airflow.sdk import Param

from modwatch.pipeline.airflow.questions import field

_design, _people = partial(field, section="Design"), partial(field, section="People")

#: The fields, all optional; `modwatch.audits.request.requested` reads them.
FORM: dict[str, Param] = {
    "audit": field(
        "string",
        "Name",
        "Lower-case letters, digits, - and _. Default: period and time.",
        pattern="^[a-z0-9][a-z0-9_-]{0,99}$",
    ),
    "first": field(
        "string",
        "First day",
        "UTC. If both days are empty, the previous month is audited.",
        format="date",
    ),
    "last": field(
        "string", "Last day", "Inclusive. One model must have scored all days.", format="date"
    ),
    "allow_missing_days": field(
        "boolean",
        "Allow missing days",
        "Plan the audit although days of the period have no scores. The approval page "
        "and the report name these days. Otherwise such a period is rejected.",
        default=False,
    ),
    "service": field(
        "string",
        "Service",
        "Name of the service, for the report and the Digital Services Act files.",
        maxLength=200,
    ),
    "labels": field(
        "integer",
        "Comments to label",
        "All stages together. Example: if 1 % of the unflagged comments are harmful, "
        "1,000 labels give an interval of about 0.5 % to 1.75 % for that share; four times as many "
        "labels halve its width. The approval page shows the working hours.",
        default=1000,
        minimum=20,
        maximum=1_000_000,
    ),
    "bins": _design(
        "integer",
        "Number of strata",
        "Among unflagged comments.",
        default=8,
        minimum=1,
        maximum=64,
    ),
    "worst_case": _design(
        "number",
        "Worst case",
        "Variance over that of a random sample with as many labels, at most, however "
        "wrong the scores are. Higher: labels follow the scores further.",
        default=1.1,
        minimum=1,
        maximum=100,
    ),
    "flagged_share": _design(
        "number",
        "Share for flagged comments",
        "Share of the labels, in (0, 1). Default: the share with the most precise recall.",
        exclusiveMinimum=0,
        exclusiveMaximum=1,
    ),
    "expected_prevalence": _design(
        "number",
        "Expected prevalence",
        "Share of harmful comments among unflagged ones, if you know better than the "
        "labels of the random slice, which are used by default. Estimates do not depend on it.",
        exclusiveMinimum=0,
        exclusiveMaximum=1,
    ),
    "second_stage_share": _design(
        "number",
        "Second stage",
        "Share of the labels for a second draw, allocated by the results of the first, if the "
        "scores are not known to be calibrated.",
        default=0.0,
        minimum=0,
        exclusiveMaximum=1,
    ),
    "level": _design(
        "number",
        "Confidence level",
        "Of the intervals.",
        default=0.95,
        minimum=0.6,
        maximum=0.9999,
    ),
    "sides": _design(
        "string",
        "Sides",
        "both: a two-sided interval. lower or upper: a one-sided bound.",
        default="both",
        enum=["both", "lower", "upper"],
    ),
    "confirmed_share": _people(
        "number",
        "Share of confirmations",
        "Expected second and third labels over first ones. Blind second labels measure "
        "the annotator error rate, which the intervals then include. 0: labels count as true.",
        default=0.2,
        minimum=0,
        maximum=1,
    ),
    "shared_false_positive": _people(
        "number",
        "Shared false positives",
        "Largest probability that a second person also labels a comment positive that is not, as "
        "where a guideline is unclear. Confirmations do not show it; the intervals allow for it.",
        default=0.2,
        minimum=0,
        maximum=0.9,
    ),
    "shared_false_negative": _people(
        "number",
        "Shared false negatives",
        "The same for positives that a second person does not recognise either.",
        default=0.3,
        minimum=0,
        maximum=0.9,
    ),
    "deadline_days": _people(
        "integer",
        "Deadline in days",
        "Per stage. Comments without labels are left out then, and an incomplete first "
        "stage has no second.",
        default=14,
        minimum=1,
        maximum=365,
    ),
    "four_eyes": _people(
        "boolean",
        "Four eyes",
        "The person who triggers the audit cannot approve the plan, and neither can "
        "sign the result. If off, one person can do everything, and the report says so. People who "
        "label can never approve or sign.",
        default=True,
    ),
    "remind_days": _people(
        "integer",
        "Days between reminders",
        "Sent to every alert channel while labels are missing.",
        default=3,
        minimum=1,
        maximum=365,
    ),
}

"""The form of the DAG `audit_recall`: fields, help texts and limits."""

from airflow.sdk import Param

from modwatch.pipeline.airflow.questions import optional

# Airflow shows fields without a section first; the others are collapsed.
_DESIGN, _PEOPLE = "Design", "People"

#: The fields, all optional; `modwatch.audits.request.requested` reads them.
FORM: dict[str, Param] = {
    "audit": optional(
        "string",
        "Name",
        pattern="^[a-z0-9][a-z0-9_-]{0,99}$",
        description="Lower-case letters, digits, - and _. Default: period and time.",
    ),
    "first": optional(
        "string",
        "First day",
        format="date",
        description="UTC. If both days are empty, the previous month is audited.",
    ),
    "last": optional(
        "string",
        "Last day",
        format="date",
        description="Inclusive. One model must have scored all days.",
    ),
    "allow_missing_days": Param(
        False,
        type="boolean",
        title="Allow missing days",
        description="Plan the audit although days of the period have no scores. The approval page "
        "and the report name these days. Otherwise such a period is rejected.",
    ),
    "service": optional(
        "string",
        "Service",
        maxLength=200,
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
    "flagged_share": optional(
        "number",
        "Share for flagged comments",
        exclusiveMinimum=0,
        exclusiveMaximum=1,
        description="Share of the labels, in (0, 1). Default: the share with the most precise "
        "recall.",
        section=_DESIGN,
    ),
    "expected_prevalence": optional(
        "number",
        "Expected prevalence",
        exclusiveMinimum=0,
        exclusiveMaximum=1,
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
        description="Expected second and third labels over first ones. Blind second labels measure "
        "the annotator error rate, which the intervals then include. 0: labels count as true.",
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
        description="The person who triggers the audit cannot approve the plan, and neither can "
        "sign the result. If off, one person can do everything, and the report says so. People who "
        "label can never approve or sign.",
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

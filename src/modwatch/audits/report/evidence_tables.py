"""The tables of the evidence in the report, as text: options of the plan, steps, and files."""

from collections.abc import Sequence

from modwatch.audits.evidence import Event
from modwatch.audits.report import formatting
from modwatch.audits.report.tables import Table
from modwatch.statistics.audit.plan import AuditPlan

#: Options of the design: title, and text when not given.
_DESIGN = {
    "method": ("Stratification method", ""),
    "bins": ("Maximum strata of unflagged comments", ""),
    "allocation": ("Allocation of labels to strata", ""),
    "worst_case": ("Variance over that of a random sample, at most", ""),
    "flagged_share": ("Share of labels for flagged comments", "optimal for recall"),
    "expected_prevalence": ("Expected share of positives among unflagged", "from the scores"),
}
_RATES = {"flagged_share", "expected_prevalence"}


def of_plan(plan: AuditPlan) -> Table:
    """Return the frozen options of the plan, except the strata."""
    interval, options = plan.rule, plan.options or {}
    sides = "two-sided" if interval.sides == "both" else f"one-sided, {interval.sides} bound"
    settings = {
        "Interval method": f"{interval.method.replace('_', ' ')}, {sides}",
        "Confidence level": formatting.rate(interval.level),
        "Maximum share of hidden positives": formatting.rate(interval.hidden_share),
        "Labels of the second stage": formatting.whole(plan.second_stage_labels),
        "Weight of the first stage": formatting.rate(plan.first_stage_share),
        **_of_confirmations(plan),
        **_of_draw(plan),
    }
    given = sorted(options, key=[*_DESIGN, *sorted(options)].index)
    rows = [*settings.items(), *(_of_option(key, options[key]) for key in given)]
    return Table(
        caption="Options of the plan, frozen before the draw",
        columns=("Option", "Value"),
        rows=tuple(rows),
    )


def _of_confirmations(plan: AuditPlan) -> dict[str, str]:
    """Return who labels a comment beside the first person."""
    if not plan.confirmations:
        return {"Confirmations": "none: labels count as true"}
    words = {"flagged": "flagged", "unflagged": "unflagged"}
    return {
        f"Confirmed labels of {words[side]} comments": (
            f"{formatting.rate(rule.positive)} of the positives, {formatting.rate(rule.negative)} "
            "of the negatives"
        )
        for side, rule in sorted(plan.confirmations.items())
    }


def _of_draw(plan: AuditPlan) -> dict[str, str]:
    """Return where the seed comes from, and who may approve and sign."""
    public = {"Public value in the seed": formatting.name(plan.public_value)}
    return {
        "Seed of the draw": "made of plan, decision log and a random number at the approval",
        **(public if plan.public_value else {}),
        "Planner, approver and signer": "different people"
        if plan.four_eyes
        else "may be one person",
    }


def _of_option(key: str, value: object) -> tuple[str, str]:
    title, absent = _DESIGN.get(key, (f"Design: {formatting.name(key)}", "none"))
    if value is None:
        return title, absent
    if key in _RATES and isinstance(value, int | float):
        return title, formatting.rate(value)
    return title, formatting.name(value).replace("_", " ")


def of_chain(chain: Sequence[Event]) -> Table:
    """Return the steps, who took them, and when."""
    rows = tuple(
        (
            formatting.name(event.action).replace("_", " ").capitalize(),
            formatting.name(event.actor),
            formatting.at(event.at),
            formatting.name(event.note),
            event.digest,
        )
        for event in chain
    )
    return Table(
        caption="Steps, oldest first; each hash covers the step and the previous hash",
        columns=("Step", "By", "When", "Note", "SHA-256 of the step"),
        rows=rows,
    )


def of_files(chain: Sequence[Event]) -> Table:
    """Return the sealed files with their hashes."""
    rows = tuple(
        (
            formatting.name(file),
            formatting.name(event.action).replace("_", " "),
            formatting.name(digest),
        )
        for event in chain
        for file, digest in sorted(event.files.items())
    )
    return Table(
        caption="Files of the evidence", columns=("File", "Sealed by step", "SHA-256"), rows=rows,
    )  # fmt: skip

"""The evidence tables of the report: the frozen plan, the steps, and the files."""

from collections.abc import Sequence

from modwatch.audit.evidence import Event
from modwatch.audit.plan import AuditPlan
from modwatch.audit.report import formatting
from modwatch.audit.report.tables import Table

#: Options of the design: title, and text when not given.
_DESIGN = {
    "method": ("Stratification method", ""),
    "bins": ("Maximum strata of unflagged comments", ""),
    "allocation": ("Allocation of labels to strata", ""),
    "floor": ("Share of labels allocated proportionally", ""),
    "flagged_share": ("Share of labels for flagged comments", "optimal for recall"),
    "expected_prevalence": ("Expected share of positives among unflagged", "from the scores"),
}
_RATES = {"floor", "flagged_share", "expected_prevalence"}


def of_plan(plan: AuditPlan) -> Table:
    """Return the frozen options of the plan, except the strata."""
    interval, options = plan.rule, plan.options or {}
    sides = "two-sided" if interval.sides == "both" else f"one-sided, {interval.sides} bound"
    settings = {
        "Interval method": f"{interval.method.replace('_', ' ')}, {sides}",
        "Confidence level": formatting.rate(interval.level),
        "Maximum share of positives that the score does not detect": formatting.rate(
            interval.hidden_share
        ),
        "Labels of the second stage": formatting.whole(plan.second_stage_labels),
        "Weight of the first stage": formatting.rate(plan.first_stage_share),
        "Share of comments with several labels": formatting.rate(plan.several_labels_share),
        "Labels of each of those": formatting.whole(plan.labels_an_item),
        "Seed of the draw": formatting.name(plan.seed),
    }
    # Plans of other versions may have unknown options.
    given = sorted(options, key=[*_DESIGN, *sorted(options)].index)
    rows = [*settings.items(), *(_of_option(key, options[key]) for key in given)]
    return Table(
        caption="Options of the plan, frozen before the draw",
        columns=("Option", "Value"),
        rows=tuple(rows),
    )


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

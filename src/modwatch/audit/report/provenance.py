"""The tables of the report on the evidence: what was frozen, what was done, and the files."""

from collections.abc import Sequence

from modwatch.audit.evidence import Event
from modwatch.audit.plan import AuditPlan
from modwatch.audit.report import words
from modwatch.audit.report.tables import Table

#: Settings of the design: what they are called, and what it means that one is not given.
_DESIGN = {
    "method": ("How scores are cut into strata", ""),
    "bins": ("Strata of the unflagged, at most", ""),
    "allocation": ("How labels are allotted to strata", ""),
    "floor": ("Labels spread in proportion, whatever the score", ""),
    "flagged_share": ("Labels for the flagged", "what serves recall best"),
    "expected_prevalence": ("Expected positives among the unflagged", "as the scores say"),
}
_RATES = {"floor", "flagged_share", "expected_prevalence"}


def of_plan(plan: AuditPlan) -> Table:
    """Return what the plan froze beside the strata, the settings of the design among it."""
    rule, options = plan.rule, plan.options or {}
    settings = {
        "Interval": f"{rule.method.replace('_', ' ')}, {rule.sides} sides".replace("both", "two"),
        "Level": words.level(rule),
        "Positives that the score may be blind to": words.rate(rule.hidden_share),
        "Labels of a second stage": words.whole(plan.second_stage_labels),
        "Weight of the first stage": words.rate(plan.first_stage_share),
        "Comments that several people label": words.rate(plan.several_labels_share),
        "People who label those": words.whole(plan.labels_an_item),
        "Seed of the draw": words.name(plan.seed),
    }
    # A plan of another version may have settings of which nothing is known here.
    given = sorted(options, key=[*_DESIGN, *sorted(options)].index)
    rows = [*settings.items(), *(_of_option(key, options[key]) for key in given)]
    return Table(
        caption="What the plan froze before anything was drawn",
        columns=("Setting", "Value"),
        rows=tuple(rows),
    )


def _of_option(key: str, value: object) -> tuple[str, str]:
    title, absent = _DESIGN.get(key, (f"Design: {words.name(key)}", "none"))
    if value is None:
        return title, absent
    if key in _RATES and isinstance(value, int | float):
        return title, words.rate(value)
    return title, words.name(value).replace("_", " ")


def of_chain(chain: Sequence[Event]) -> Table:
    """Return what was done, by whom and when."""
    rows = tuple(
        (
            words.name(event.action).replace("_", " ").capitalize(),
            words.name(event.actor),
            words.at(event.at),
            words.name(event.note),
            event.digest,
        )
        for event in chain
    )
    return Table(
        caption="Steps, oldest first; each hash is over the step and the hash before it",
        columns=("Step", "By", "When", "Note", "SHA-256 of the step"),
        rows=rows,
    )


def of_files(chain: Sequence[Event]) -> Table:
    """Return the files that were sealed, with their hashes."""
    rows = tuple(
        (words.name(file), words.name(event.action).replace("_", " "), words.name(digest))
        for event in chain
        for file, digest in sorted(event.files.items())
    )
    return Table(
        caption="Files of the evidence", columns=("File", "Sealed when", "SHA-256"), rows=rows,
    )  # fmt: skip

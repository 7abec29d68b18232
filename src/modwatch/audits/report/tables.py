"""The tables of the report as text: estimates, labels, plan, steps and files."""

from collections.abc import Sequence
from dataclasses import dataclass

from modwatch.audits.descriptions import LABELS_AN_HOUR
from modwatch.audits.evidence import Event
from modwatch.audits.report import formatting
from modwatch.audits.report.charts import range_of, stratum_share
from modwatch.audits.report.metrics import (
    METRICS,
    Result,
    by_column,
    history,
    in_order,
    of_metric,
    title,
)
from modwatch.statistics.audit.plan import AuditPlan
from modwatch.statistics.audit.share_interval import IntervalOptions

#: Maximum length of a column heading.
_HEADING = 40

#: Options of the design: title, and text when not given.
_DESIGN = {
    "bins": ("Maximum strata of unflagged comments", ""),
    "worst_case": ("Variance over that of a random sample, at most", ""),
    "flagged_share": ("Share of labels for flagged comments", "optimal for recall"),
    "expected_prevalence": ("Expected share of positives among unflagged", "from the scores"),
}
_RATES = {"flagged_share", "expected_prevalence"}

_DOMAIN_METRICS = ("recall", "precision", "prevalence_unflagged", "accuracy")


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table; the first cell of a row is its header."""

    caption: str
    #: Title of each column.
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    #: Indices of the numeric columns, aligned to the right.
    numbers: frozenset[int] = frozenset()


def of_estimates(result: Result, interval: IntervalOptions) -> Table:
    """Return all estimates for the whole period."""
    positives = "Positives, expected" if "label_errors" in result else "Positives"
    widened = any(estimate.get("low_if_random") is not None for estimate in result["figures"])
    more = ("If those without a label were like the others",) if widened else ()
    return Table(
        caption="Estimates for the whole period",
        columns=("Metric", "Estimate", formatting.level(interval), "Labels", positives, *more),
        rows=tuple(
            (
                ": ".join(METRICS[estimate["metric"]]),
                formatting.value_of(estimate, interval),
                formatting.ends_of(estimate, interval),
                formatting.whole(estimate["labels"]),
                formatting.whole(estimate["positives"]),
                *(formatting.if_random(estimate, interval) for _ in more),
            )
            for estimate in in_order(result["figures"])
        ),
        numbers=frozenset({1, 3, 4}),
    )


def of_strata(result: Result) -> Table:
    """Return the strata and their labels."""
    counts = ("population", "drawn", "labels", "positives")
    rows = tuple(
        (
            range_of(stratum),
            formatting.NONE if (mean := stratum["mean_score"]) is None else formatting.score(mean),
            *(formatting.whole(stratum[name]) for name in counts),
            formatting.rate(stratum["score"]),
            stratum_share(stratum),
        )
        for stratum in result["strata"]
    )
    return Table(
        caption="Strata: ranges of the score, mean score of the drawn comments, share of positives "
        "that the plan expected, and share found with its 95\u00a0% confidence interval",
        columns=(
            "Scores", "Mean score", "Comments", "Drawn", "Labelled", "Positives",
            "Expected share", "Share of positives",
        ),
        rows=rows,
        numbers=frozenset(range(1, 7)),
    )  # fmt: skip


def of_domains(result: Result, interval: IntervalOptions) -> list[Table]:
    """Return a table for each column that results are broken down by."""
    tables = []
    for column, domains in by_column(result).items():
        rows = []
        for domain in domains:
            estimates = [of_metric(domain["figures"], metric) for metric in _DOMAIN_METRICS]
            rows.append(
                (
                    formatting.name(domain["value"]),
                    formatting.whole(domain["comments"]),
                    formatting.whole(estimates[0]["labels"]),
                    formatting.whole(estimates[0]["positives"]),
                    *(_with_ends(estimate, interval) for estimate in estimates),
                )
            )
        heading = formatting.heading(column)
        tables.append(
            Table(
                caption=f"By {heading.lower()}: estimates with their {formatting.level(interval)}",
                columns=(
                    heading if len(heading) <= _HEADING else "Value",
                    "Comments", "Labels", "Positives", *map(title, _DOMAIN_METRICS),
                ),
                rows=tuple(rows),
                numbers=frozenset({1, 2, 3}),
            )
        )  # fmt: skip
    return tables


def of_labelling(result: Result) -> Table:
    """Return the numbers of comments, labels and annotators."""
    missing = result["drawn"] - result["labelled"]
    reasons = [
        (f"– – {text}", result["missing"][name])
        for name, text in (
            ("disputed", "disputed, and not settled by a lead"),
            ("passed_over", "passed over or escalated, and not labelled"),
            ("not_reached", "not reached, in the order of the draw"),
        )
    ]
    flagged, comments = result["flagged"], result["comments"]
    rows = (
        ("Comments in the period", comments),
        ("– flagged", flagged),
        ("– not flagged", comments - flagged),
        ("Comments drawn", result["drawn"]),
        ("– with a final label", result["labelled"]),
        ("– without a final label", missing),
        *reasons,
        ("– with fewer labels than planned", result["short_of_labels"]),
        ("Labels, including second labels and adjudications", result["decisions"]),
        ("Annotators", result["labellers"]),
    )
    return Table(
        caption="Sample and labels",
        columns=("Item", "Number"),
        rows=tuple((what, formatting.whole(number)) for what, number in rows),
        numbers=frozenset({1}),
    )


def of_agreement(result: Result) -> Table:
    """Return the agreement between annotators before adjudication."""
    names = {
        "observed": "Observed agreement",
        "cohen_kappa": "Cohen's κ (1: full agreement, 0: chance)",
    }
    rows = []
    for measure in result["agreement"]:
        value, ends = formatting.NONE, measure["reason"]
        if measure["value"] is not None and measure["metric"] == "observed":
            value = formatting.value_of(measure, IntervalOptions())
            ends = formatting.ends_of(measure, IntervalOptions())
        elif measure["value"] is not None:
            value = f"{measure['value']:.2f}"
            ends = f"{measure['low']:.2f} to {measure['high']:.2f}"
        rows.append((names[measure["metric"]], value, ends, formatting.whole(measure["n"])))
    return Table(
        caption="Agreement between annotators who labelled the same comment independently"
        ", weighted to represent all labels",
        columns=("Measure", "Value", "95\u00a0% confidence interval", "Comments"),
        rows=tuple(rows),
        numbers=frozenset({1, 3}),
    )


def of_error_rates(result: Result) -> Table | None:
    """Return confirmations and estimated error rates; None where labels count as true."""
    errors = result.get("label_errors")
    if errors is None:
        return None
    rows = [
        ("Comments with a second label", formatting.whole(errors["confirmed"]), formatting.NONE),
        ("– overturned: most people contradicted the first label",
         formatting.whole(errors["overturned"]), formatting.NONE),
        ("– with a third label", formatting.whole(errors["third_labels"]), formatting.NONE),
        ("Comments that lack a further label of the plan", formatting.whole(errors["missing"]),
         formatting.NONE),
    ]  # fmt: skip
    names = {
        "false_positive": "False-positive rate: comments within the rules labelled as against them",
        "false_negative": "False-negative rate: comments against the rules labelled as within them",
    }
    for side, rates in errors["rates"].items():
        words = "flagged" if side == "flagged" else "not flagged"
        for name, text in names.items():
            rate = rates[name]
            ends = (
                f"{formatting.rate(rate['low'])} to {formatting.rate(rate['high'])}"
                if errors["enough"]
                else "too few confirmations"
            )
            value = formatting.rate(rate["value"]) if errors["enough"] else formatting.NONE
            rows.append((f"{text}, {words}", value, ends))
    return Table(
        caption="Confirmations, and error rates of a single label",
        columns=("Item", "Value", "95\u00a0% interval"),
        rows=tuple(rows),
        numbers=frozenset({1}),
    )


def of_cost(result: Result) -> Table:
    """Return the labels of the audit, and of a random sample with the same standard error."""
    missed = of_metric(result["figures"], "prevalence_unflagged")
    rows = [
        ("This audit, all labels", result["decisions"]),
        ("This audit, labelled comments", result["labelled"]),
        ("– not flagged", missed["labels"]),
    ]
    if result["random_labels"] is not None:
        random = "Random sample of unflagged comments with the same standard error"
        rows.append((random, result["random_labels"]))
    return Table(
        caption=f"Labels, and hours of work at {LABELS_AN_HOUR:,} labels per hour",
        columns=("Item", "Labels", "Hours"),
        rows=tuple((what, formatting.whole(n), f"{n / LABELS_AN_HOUR:,.1f}") for what, n in rows),
        numbers=frozenset({1, 2}),
    )


def of_history(
    result: Result, earlier: tuple[Result, ...], interval: IntervalOptions
) -> Table | None:
    """Return the audits over time; None without an earlier one."""
    audits = history(result, earlier)
    if len(audits) == 1:
        return None
    rows = tuple(
        (
            formatting.name(audit["audit"]) + (" (this audit)" if audit is result else ""),
            f"{audit['first_day']} to {audit['last_day']}",
            formatting.name(audit["model_version"]),
            "none" if audit["threshold"] is None else formatting.score(audit["threshold"]),
            formatting.whole(audit["labelled"]),
            *(
                _with_ends(of_metric(audit["figures"], metric), interval)
                for metric in ("recall", "precision")
            ),
        )
        for audit in audits
    )
    return Table(
        caption="Audits, oldest first, estimates with the confidence interval of each audit",
        columns=("Audit", "Period", "Model", "Threshold", "Labels", "Recall", "Precision"),
        rows=rows,
        numbers=frozenset({3, 4}),
    )


def _with_ends(estimate: Result, interval: IntervalOptions) -> str:
    if estimate["value"] is None:
        return formatting.lacking_briefly(estimate)
    return formatting.with_ends(estimate, interval)


def of_plan(plan: AuditPlan) -> Table:
    """Return the frozen options of the plan, except the strata."""
    interval, options = plan.rule, plan.options or {}
    sides = "two-sided" if interval.sides == "both" else f"one-sided, {interval.sides} bound"
    settings = {
        "Interval": f"test inversion, {sides}",
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
    """Return which labels other people confirm."""
    if not plan.confirmations:
        return {"Confirmations": "none: labels count as true"}
    return {
        f"Confirmed labels of {side} comments": (
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

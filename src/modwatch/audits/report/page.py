"""Renders the report of an audit as a self-contained HTML page.

The page has no scripts and no text of a comment. Its Content-Security-Policy allows one style
sheet, by its hash, and nothing else.
"""

from collections.abc import Sequence
from typing import Any

from modwatch.audits.descriptions import ONE_PERSON
from modwatch.audits.evidence import Event
from modwatch.audits.report import charts, formatting, narrative, tables
from modwatch.audits.report.metrics import Result
from modwatch.common.html import render_html
from modwatch.statistics.audit.plan import AuditPlan


def render_report(
    plan: AuditPlan,
    result: Result,
    chain: Sequence[Event],
    earlier: Sequence[Result] = (),
    *,
    service: str = "",
    others: Sequence[str] = (),
) -> str:
    """Return the report of an audit as HTML; equal input gives equal output.

    Args:
        plan: the frozen plan.
        result: from `results.computed`, or read from its JSON.
        chain: the events so far, of which one is `signed_off`.
        earlier: results of other audits, for the trend; one of the same name is ignored.
        service: name of the service; omitted when empty.
        others: sentences about other audits of the same days.
    """
    page = page_context(plan, result, chain, tuple(earlier), service, others)
    return render_html("modwatch.audits.report", "page.html", page=page)


def page_context(
    plan: AuditPlan,
    result: Result,
    chain: Sequence[Event],
    earlier: tuple[Result, ...],
    service: str,
    others: Sequence[str],
) -> dict[str, Any]:
    """Return what the template shows, by name; it uses every name."""
    interval = plan.rule
    return {
        "audit": formatting.name(plan.audit),
        "signed": narrative.signed(chain),
        "facts": _facts(plan, result, service),
        "digests": (
            ("Plan", plan.digest),
            ("Last step", chain[-1].digest),
        ),
        "answers": [*narrative.answers(plan, result), *others],
        "ranges": [charts.ranges(result, metric, interval) for metric in ("recall", "precision")],
        "strata": charts.strata(result),
        "over_time": charts.over_time(result, earlier, interval),
        "history": tables.of_history(result, earlier, interval),
        "estimates": tables.of_estimates(result, interval),
        "strata_table": tables.of_strata(result),
        "domains": tables.of_domains(result, interval),
        "labelling": tables.of_labelling(result),
        "agreement": tables.of_agreement(result),
        "error_rates": tables.of_error_rates(result),
        "cost": tables.of_cost(result),
        "cost_comparison": narrative.cost(result),
        "limits": narrative.limits(plan, result, chain),
        "plan": tables.of_plan(plan),
        "chain": tables.of_chain(chain),
        "files": tables.of_files(chain),
    }


def _facts(plan: AuditPlan, result: Result, service: str) -> list[tuple[str, str]]:
    """Return term and description: period, service, model and so on."""
    days = (plan.last - plan.first).days + 1
    people = formatting.noun(result["labellers"], "person", "people")
    facts = [
        ("Period", f"{plan.first} to {plan.last}, {formatting.noun(days, 'UTC day')}"),
        ("Service", formatting.name(service)),
        ("Comments", f"{result['comments']:,}, {result['flagged']:,} of them flagged"),
        ("Model version", formatting.name(plan.model)),
        ("Threshold", formatting.decision(result["threshold"])),
        ("Labels", f"{formatting.noun(result['labelled'], 'comment')}, labelled by {people}"),
        ("Four eyes", "" if result["four_eyes"] else ONE_PERSON),
    ]
    return [(term, text) for term, text in facts if text]

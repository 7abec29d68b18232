"""Renders the report of an audit as a self-contained HTML page.

The page has no scripts and no text of a comment. Its Content-Security-Policy allows one style
sheet, by its hash, and nothing else.
"""

from collections.abc import Sequence
from typing import Any

from modwatch.audits.descriptions import ONE_PERSON
from modwatch.audits.evidence import Event, file_digest, sealed_files
from modwatch.audits.files import PLAN, RESULT
from modwatch.audits.report import charts, formatting, narrative, tables
from modwatch.audits.report.metrics import Result
from modwatch.common.errors import AuditError
from modwatch.common.html import render_html
from modwatch.statistics.audit.plan import AuditPlan
from modwatch.statistics.audit.results import to_json


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
        chain: the events so far. The report is a draft until one is `signed_off`.
        earlier: results of other audits, for the trend; one of the same name is ignored.
        service: name of the service; omitted when empty.
        others: sentences about other audits of the same days.

    Raises:
        AuditError: the result belongs to another plan, or is not the one sealed in the chain.
    """
    _verify_input(plan, result, chain)
    page = page_context(plan, result, chain, tuple(earlier), service, others)
    return render_html("modwatch.audits.report", "page.html", page=page)


def _verify_input(plan: AuditPlan, result: Result, chain: Sequence[Event]) -> None:
    """Raise AuditError for a result that does not belong to plan and chain."""
    if result["plan"] != plan.digest:
        raise AuditError(
            f"audit {plan.audit!r}: the result belongs to another plan; estimate it again"
        )
    if chain and chain[0].audit != plan.audit:
        raise AuditError(
            f"audit {plan.audit!r}: the chain belongs to audit {chain[0].audit[:100]!r}"
        )
    sealed = sealed_files(chain)
    for name, content in ((PLAN, plan.to_json().encode()), (RESULT, to_json(dict(result)))):
        if name in sealed and sealed[name] != file_digest(content):
            raise AuditError(
                f"audit {plan.audit!r}: {name} is not the sealed one; use the sealed file"
            )


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
    state, status = narrative.status(chain)
    return {
        "audit": formatting.name(plan.audit),
        "state": state,  # draft | signed | cancelled
        "status": status,
        "facts": _facts(plan, result, service),
        "digests": (
            ("Plan", plan.digest),
            ("Last step", chain[-1].digest if chain else "no steps recorded"),
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

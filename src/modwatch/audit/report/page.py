"""The report of an audit as HTML that opens from disk, prints, and loads nothing.

It holds no script and no text of a comment. Its Content-Security-Policy allows one style sheet, by
its hash, and nothing else.
"""

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from modwatch.audit import files
from modwatch.audit.evidence import Event, file_digest, sealed_files
from modwatch.audit.plan import AuditPlan
from modwatch.audit.report import pictures, provenance, remarks, tables, words
from modwatch.audit.report.figures import Result
from modwatch.audit.report.pictures import Ranges, Trend
from modwatch.audit.report.tables import Table
from modwatch.audit.results import to_json
from modwatch.errors import AuditError


@dataclass(frozen=True, kw_only=True)
class ReportPage:
    """What the report shows; the template uses every field."""

    audit: str
    #: draft | signed | cancelled
    state: str
    status: str
    #: Term and description: period, service, model and so on.
    facts: tuple[tuple[str, str], ...]
    #: Term and SHA-256.
    digests: tuple[tuple[str, str], ...]
    answers: tuple[str, ...]
    ranges: tuple[Ranges, ...]
    strata: Ranges
    trends: tuple[Trend, ...]
    history: Table | None
    figures: Table
    strata_table: Table
    domains: tuple[Table, ...]
    labelling: Table
    agreement: Table
    sensitivity: Table | None
    cost: Table
    cost_remark: str
    limits: tuple[str, ...]
    plan: Table
    chain: Table
    files: Table


def render_report(
    plan: AuditPlan,
    result: Result,
    chain: Sequence[Event],
    earlier: Sequence[Result] = (),
    *,
    service: str = "",
) -> str:
    """Return the report of one audit as HTML text: the same input makes the same bytes.

    Args:
        plan: the frozen plan.
        result: what `results.computed` returned, or its JSON read back.
        chain: the events so far. Until one says `signed_off`, the report is called a draft.
        earlier: results of other audits, for the trend; one of the same name is left out.
        service: name of the service whose comments these are; not said when empty.

    Raises:
        AuditError: the result is of another plan, or not the one that the chain sealed.
    """
    _refuse_strangers(plan, result, chain)
    page = _page(plan, result, chain, tuple(earlier), service)
    environment = Environment(
        loader=PackageLoader("modwatch.audit.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    # The style sheet is our own file, and must stay as it is for its hash to match.
    style = Markup(resources.files(__package__).joinpath("templates/page.css").read_text("utf-8"))  # noqa: S704
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    template = environment.get_template("page.html")
    return template.render(page=page, style=style, style_hash=f"sha256-{digest}")


def _refuse_strangers(plan: AuditPlan, result: Result, chain: Sequence[Event]) -> None:
    """Raise AuditError for a result that does not belong to the plan and the chain."""
    if result["plan"] != plan.digest:
        raise AuditError(f"audit {plan.audit!r}: the result is of another plan; estimate it anew")
    if chain and chain[0].audit != plan.audit:
        raise AuditError(f"audit {plan.audit!r}: the chain is of audit {chain[0].audit[:100]!r}")
    sealed = sealed_files(chain)
    for name, content in ((files.PLAN, plan.to_json().encode()), (files.RESULT, _json(result))):
        if name in sealed and sealed[name] != file_digest(content):
            raise AuditError(
                f"audit {plan.audit!r}: {name} is not the one that was sealed; report on the "
                "sealed file"
            )


def _json(result: Result) -> bytes:
    return to_json(dict(result))


def _page(
    plan: AuditPlan,
    result: Result,
    chain: Sequence[Event],
    earlier: tuple[Result, ...],
    service: str,
) -> ReportPage:
    rule = plan.rule
    state, status = remarks.status(chain)
    return ReportPage(
        audit=words.name(plan.audit),
        state=state,
        status=status,
        facts=_facts(plan, result, service),
        digests=(
            ("Plan", plan.digest),
            ("Last step", chain[-1].digest if chain else "no step is recorded"),
        ),
        answers=tuple(remarks.answers(plan, result)),
        ranges=tuple(pictures.ranges(result, metric, rule) for metric in ("recall", "precision")),
        strata=pictures.strata(result),
        trends=tuple(pictures.trends(result, earlier, rule)),
        history=tables.of_history(result, earlier, rule),
        figures=tables.of_figures(result, rule),
        strata_table=tables.of_strata(result),
        domains=tuple(tables.of_domains(result, rule)),
        labelling=tables.of_labelling(result),
        agreement=tables.of_agreement(result),
        sensitivity=tables.of_sensitivity(result, rule),
        cost=tables.of_cost(result),
        cost_remark=remarks.cost(result),
        limits=tuple(remarks.limits(plan, result, chain)),
        plan=provenance.of_plan(plan),
        chain=provenance.of_chain(chain),
        files=provenance.of_files(chain),
    )


def _facts(plan: AuditPlan, result: Result, service: str) -> tuple[tuple[str, str], ...]:
    days = (plan.last - plan.first).days + 1
    people = words.noun(result["labellers"], "person", "people")
    facts = [
        ("Period", f"{plan.first} to {plan.last}, {words.noun(days, 'UTC day')}"),
        ("Service", words.name(service)),
        ("Comments", f"{result['comments']:,}, of them {result['flagged']:,} flagged"),
        ("Model version", words.name(result["model_version"])),
        ("Threshold", f"flagged when the score is above {words.score(result['threshold'])}"),
        ("Labels", f"{words.noun(result['labelled'], 'comment')}, labelled by {people}"),
    ]
    return tuple((term, text) for term, text in facts if text)

"""The steps of an audit, in their order.

Each takes what the one before left, seals what it makes, and may be killed and run again.
"""

import json
import logging
from collections.abc import Mapping
from contextlib import nullcontext

from modwatch.audit import evidence, files
from modwatch.audit.design import design
from modwatch.audit.draw import draw
from modwatch.audit.evidence import file_problems
from modwatch.audit.labels import AuditLabel, conflicts, labelled, refuse_conflicts
from modwatch.audit.plan import AuditPlan
from modwatch.audit.report import render_report
from modwatch.audit.results import Document, computed, to_json
from modwatch.audit.verify import planned_sizes, read_evidence, verify
from modwatch.audits.dsa_files import dsa_files
from modwatch.audits.population import days_between, survey
from modwatch.audits.request import AuditRequest
from modwatch.audits.sources import (
    population,
    queue_items,
    refuse_changed_labels,
    standing_labels,
)
from modwatch.audits.store import MACHINE, AuditStore
from modwatch.errors import AuditError
from modwatch.resources import Resources
from modwatch.review.queue.audits import (
    AuditProgress,
    audit_lock,
    audit_progress,
    enqueue_audit,
    moderated_before,
    withdraw_audit,
    withdrawing,
)

_log = logging.getLogger(__name__)


def store(at: Resources) -> AuditStore:
    """Return where the evidence is kept."""
    return AuditStore(
        root=f"{at.settings.lake_root.rstrip('/')}/_audits",
        lock=lambda audit: audit_lock(at.database, audit),
    )


def plan(at: Resources, request: AuditRequest, *, actor: str) -> AuditPlan:
    """Freeze the plan of an audit; return it.

    Raises:
        AuditError: the period is empty, has days without scores or with several models, or the
            audit was planned otherwise before.
        DesignError: fewer labels than the strata need.
    """
    kept = store(at)
    if kept.chain(request.audit):
        return _replanned(kept, request)
    days, flagged, unflagged = survey(at.lake, days_between(request.first, request.last))
    if not flagged.comments + unflagged.comments:
        raise AuditError(f"there is no comment from {request.first} to {request.last}")
    made = design(flagged, unflagged, request.first_stage_labels, request.options)
    frozen = request.planned(days, made)
    kept.record(
        request.audit,
        "planned",
        actor=actor,
        content={files.PLAN: frozen.to_json().encode()},
        note=request.origin,
    )
    return frozen


def approve(at: Resources, audit: str, *, actor: str, note: str = "") -> None:
    """Record that somebody approved the plan."""
    store(at).record(audit, "approved", actor=actor, note=note)


def draw_stage(at: Resources, audit: str) -> int:
    """Draw the next stage and queue it blind; return how many comments are drawn in all.

    Raises:
        AuditError: out of order, or scores, or labels of the stage before, were changed since.
    """
    kept = store(at)
    folder = kept.ready(audit, "drawn")
    actions = [event.action for event in kept.chain(audit)]
    frozen = AuditPlan.from_json(folder[files.PLAN].decode())
    stage = max(actions.count("labelled") + 1, actions.count("drawn"))
    if stage > (2 if frozen.second_stage_labels else 1):
        raise AuditError(f"audit {audit!r}: all stages of the plan are drawn and labelled")
    refuse_changed_labels(at, audit, folder)
    sizes = planned_sizes(frozen, folder, stage)
    drawn = draw(frozen, population(at, frozen), sizes)
    kept.record(
        audit,
        "drawn",
        content={
            files.sample_file(stage): files.write_sample(drawn.comments),
            files.population_file(stage): files.write_population(drawn),
        },
    )
    items = queue_items(at, frozen, drawn.comments, sizes)
    enqueue_audit(at.database, audit, items, at.lanes)
    if kept.chain(audit)[-1].action == "cancelled":  # meanwhile, by somebody else
        withdraw_audit(at.database, audit)
    return len(drawn.comments)


def progress(at: Resources, audit: str) -> AuditProgress:
    """Return how far the labelling is."""
    return audit_progress(at.database, audit)


def conflicting_labels(at: Resources, audit: str) -> list[AuditLabel]:
    """Return the labels by people who decided the comment as moderators; none can be sealed."""
    return conflicts(standing_labels(at, audit), moderated_before(at.database, audit))


def seal_labels(
    at: Resources, audit: str, *, stop: bool = False, actor: str = MACHINE, note: str = ""
) -> int:
    """Seal the labels of a stage; return how many comments have one.

    `stop` gives up what nobody has labelled yet, and a second stage, unless it is drawn after all.
    Decide it without looking at the labels: otherwise the estimate is not free of bias.

    Raises:
        AuditError: items are left, a label is by somebody who decided the comment as a moderator,
            or labels of an earlier stage were changed after they were sealed. Those cannot be
            sealed again: cancel the audit, and plan it anew.
    """
    kept = store(at)
    folder = kept.ready(audit, "labelled")
    stage = [event.action for event in kept.chain(audit)].count("drawn")
    refuse_changed_labels(at, audit, folder)
    found = audit_progress(at.database, audit)
    drawn = len(files.read_sample(folder[files.sample_file(stage)]))
    if found.items < drawn:
        raise AuditError(
            f"audit {audit!r}: {drawn} comments are drawn and {found.items} of them queued; draw "
            "once more, which queues the rest"
        )
    if found.left and not stop:
        raise AuditError(
            f"audit {audit!r}: {found.left} items are not decided; wait for them, or stop the "
            "labelling"
        )
    with withdrawing(at.database, audit) if stop else nullcontext():
        labels = standing_labels(at, audit)
        refuse_conflicts(labels, moderated_before(at.database, audit))
        kept.record(
            audit,
            "labelled",
            actor=actor,
            content={files.labels_file(stage): files.write_labels(labels)},
            note=evidence.stopping(note) if stop else note,
        )
    return labelled(labels)


def estimate(at: Resources, audit: str) -> Mapping[str, object]:
    """Compute every figure and seal it; return the result."""
    kept = store(at)
    result = computed(read_evidence(kept.ready(audit, "estimated")))
    kept.record(audit, "estimated", content={files.RESULT: to_json(result)})
    return result


def plan_of(at: Resources, audit: str) -> AuditPlan:
    """Return the frozen plan; AuditError when there is no such audit."""
    return AuditPlan.from_json(store(at).file(audit, files.PLAN).decode())


def result_of(at: Resources, audit: str) -> Document:
    """Return the sealed result.

    Raises:
        AuditError: there is none yet, or a file was changed since it was sealed.
    """
    kept = store(at)
    folder = kept.read(audit)
    problems = file_problems(kept.chain(audit), folder)
    if problems or files.RESULT not in folder:
        raise AuditError(f"audit {audit!r}: {problems[0] if problems else 'there is no result'}")
    return dict(json.loads(folder[files.RESULT]))


def sign_off(at: Resources, audit: str, *, actor: str, note: str = "") -> None:
    """Record that somebody signed the result.

    Raises:
        AuditError: they labelled items of the audit themselves, the evidence is not sound, or
            labels were changed after they were sealed: cancel the audit, and plan it anew.
    """
    kept = store(at)
    folder = kept.ready(audit, "signed_off")
    if actor in {label.labeller for label in read_evidence(folder).labels}:
        raise AuditError(f"audit {audit!r}: {actor!r} labelled for it and cannot sign it off")
    problems = verify(folder)
    if problems:
        raise AuditError(f"audit {audit!r} cannot be signed off: {problems[0]}")
    refuse_changed_labels(at, audit, folder)
    kept.record(audit, "signed_off", actor=actor, note=note)


def publish(at: Resources, audit: str, *, service: str = "") -> str:
    """Write and seal report and DSA files of a signed audit; return the name of the report.

    `service` is the name of the service that they speak of; without it there are no DSA files. The
    trend shows the audits that were published before. Once published, an audit stays as it is.

    Raises:
        AuditError: out of order, or labels were changed after they were sealed: cancel the audit,
            and plan it anew.
    """
    kept = store(at)
    folder, chain = kept.ready(audit, "published"), kept.chain(audit)
    if chain[-1].action == "published":
        return files.REPORT
    refuse_changed_labels(at, audit, folder)
    frozen = AuditPlan.from_json(folder[files.PLAN].decode())
    result = json.loads(folder[files.RESULT])
    report = render_report(frozen, result, chain, _published(at, audit), service=service)
    content = {files.REPORT: report.encode()}
    if service:
        content |= dsa_files(at, frozen, result, service=service)
    kept.record(audit, "published", content=content)
    return files.REPORT


def cancel(at: Resources, audit: str, *, actor: str, note: str = "") -> None:
    """Give an audit up; its evidence stays."""
    store(at).record(audit, "cancelled", actor=actor, note=note)
    withdraw_audit(at.database, audit)


def _replanned(kept: AuditStore, request: AuditRequest) -> AuditPlan:
    """Return the plan that is there, if it is the one that is asked for."""
    frozen = AuditPlan.from_json(kept.file(request.audit, files.PLAN).decode())
    if request.origin != kept.chain(request.audit)[0].note or not request.fits(frozen):
        raise AuditError(
            f"audit {request.audit!r} was planned before, and otherwise; give another name"
        )
    return frozen


def _published(at: Resources, audit: str) -> list[Document]:
    """Return the results of the other audits that were published, oldest period first."""
    found, kept = [], store(at)
    for name in kept.names():
        try:
            chain = kept.chain(name)
            if name != audit and chain and chain[-1].action == "published":
                found.append(result_of(at, name))
        except AuditError as exc:
            _log.warning("The trend leaves out audit %s: %s.", name, exc)
    return sorted(found, key=lambda result: (result["last_day"], result["audit"]))

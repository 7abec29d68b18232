"""The steps of an audit, in their order.

Each takes what the one before left, seals what it makes, and may be killed and run again.
"""

import datetime
import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from modwatch.audit import files
from modwatch.audit.design import DesignOptions, design
from modwatch.audit.draw import DrawnComment, Scored, draw, labels_wanted
from modwatch.audit.intervals import IntervalRule
from modwatch.audit.labels import AuditLabel, refuse_conflicts
from modwatch.audit.plan import AuditPlan, planned_strata
from modwatch.audit.report import render_report
from modwatch.audit.results import Document, computed, to_json
from modwatch.audit.verify import planned_sizes, read_evidence, redraw, verify
from modwatch.errors import AuditError
from modwatch.review.queue.audits import (
    AuditProgress,
    audit_labels,
    audit_progress,
    enqueue_audit,
    moderated_before,
    withdraw_audit,
)
from modwatch.review.queue.items import NewItem
from modwatch.stops.audit_population import days_between, scored, survey
from modwatch.stops.audit_store import AuditStore
from modwatch.wiring import Wiring


@dataclass(frozen=True, kw_only=True)
class AuditRequest:
    """What an auditor asks for; `modwatch audit plan` and the form of the DAG fill it in."""

    #: Name of the audit.
    audit: str
    first: datetime.date
    #: Included.
    last: datetime.date
    #: Labels of all stages together.
    labels: int
    options: DesignOptions = field(default_factory=DesignOptions)
    rule: IntervalRule = field(default_factory=IntervalRule)
    #: Part of the labels in [0, 1) of a second stage, allotted by what the first one found.
    second_stage_share: float = 0.0
    several_labels_share: float = 0.2
    labels_an_item: int = 2
    deadline_days: int = 14
    #: Makes the draw; made at random when empty.
    seed: str = ""


def store(at: Wiring) -> AuditStore:
    """Return where the evidence is kept."""
    return AuditStore(root=f"{at.settings.lake_root.rstrip('/')}/_audits")


def plan(at: Wiring, request: AuditRequest, *, actor: str) -> AuditPlan:
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
    second = round(request.second_stage_share * request.labels)
    if not flagged.comments + unflagged.comments:
        raise AuditError(f"there is no comment from {request.first} to {request.last}")
    made = design(flagged, unflagged, request.labels - second, request.options)
    frozen = AuditPlan(
        audit=request.audit,
        population=days,
        strata=planned_strata(made),
        seed=request.seed or secrets.token_hex(16),
        rule=request.rule,
        second_stage_labels=second,
        first_stage_share=1 - second / request.labels,
        several_labels_share=request.several_labels_share,
        labels_an_item=request.labels_an_item,
        deadline_days=request.deadline_days,
        options=asdict(request.options),
    )
    kept.record(
        request.audit, "planned", actor=actor, content={files.PLAN: frozen.to_json().encode()}
    )
    return frozen


def approve(at: Wiring, audit: str, *, actor: str, note: str = "") -> None:
    """Record that somebody approved the plan."""
    store(at).record(audit, "approved", actor=actor, note=note)


def draw_stage(at: Wiring, audit: str) -> int:
    """Draw the next stage and queue it blind; return how many comments are drawn in all."""
    kept = store(at)
    folder = kept.ready(audit, "drawn")
    actions = [event.action for event in kept.chain(audit)]
    frozen = AuditPlan.from_json(folder[files.PLAN].decode())
    stage = max(actions.count("labelled") + 1, actions.count("drawn"))
    if stage > (2 if frozen.second_stage_labels else 1):
        raise AuditError(f"audit {audit!r}: all stages of the plan are drawn and labelled")
    drawn = draw(frozen, _population(at, frozen), planned_sizes(frozen, folder, stage))
    kept.record(
        audit,
        "drawn",
        content={
            files.sample_file(stage): files.write_sample(drawn.comments),
            files.population_file(stage): files.write_population(drawn),
        },
    )
    enqueue_audit(at.database, audit, _items(at, frozen, drawn.comments), at.lanes)
    return len(drawn.comments)


def progress(at: Wiring, audit: str) -> AuditProgress:
    """Return how far the labelling is."""
    return audit_progress(at.database, audit)


def seal_labels(at: Wiring, audit: str, *, stop: bool = False, actor: str = "modwatch") -> int:
    """Seal the labels of a stage; return how many comments have one.

    `stop` gives up what nobody has labelled yet. Raises AuditError while items are left, and for a
    label by somebody who decided the comment as a moderator.
    """
    kept = store(at)
    kept.ready(audit, "labelled")
    if stop:
        withdraw_audit(at.database, audit)
    left = audit_progress(at.database, audit).left
    if left:
        raise AuditError(
            f"audit {audit!r}: {left} items are not decided; wait for them, or stop the labelling"
        )
    labels = _labels(at, audit)
    refuse_conflicts(labels, moderated_before(at.database, audit))
    stage = [event.action for event in kept.chain(audit)].count("drawn")
    kept.record(
        audit,
        "labelled",
        actor=actor,
        content={files.labels_file(stage): files.write_labels(labels)},
        note="stopped before all were labelled" if stop else "",
    )
    return len({(label.day, label.comment_id) for label in labels})


def estimate(at: Wiring, audit: str) -> Mapping[str, object]:
    """Compute every figure and seal it; return the result."""
    kept = store(at)
    result = computed(read_evidence(kept.ready(audit, "estimated")))
    kept.record(audit, "estimated", content={files.RESULT: to_json(result)})
    return result


def sign_off(at: Wiring, audit: str, *, actor: str, note: str = "") -> None:
    """Record that somebody signed the result.

    Raises:
        AuditError: they labelled items of the audit themselves, or the evidence is not sound.
    """
    kept = store(at)
    folder = kept.ready(audit, "signed_off")
    if actor in {label.labeller for label in read_evidence(folder).labels}:
        raise AuditError(f"audit {audit!r}: {actor!r} labelled for it and cannot sign it off")
    problems = verify(folder)
    if problems:
        raise AuditError(f"audit {audit!r} cannot be signed off: {problems[0]}")
    kept.record(audit, "signed_off", actor=actor, note=note)


def publish(at: Wiring, audit: str, *, service: str = "") -> str:
    """Write the report of a signed audit, and seal it; return its name in the folder.

    `service` is the name of the service that the report speaks of. The trend shows the audits that
    were published before.
    """
    kept = store(at)
    folder, chain = kept.ready(audit, "published"), kept.chain(audit)
    signed = [event for event in chain if event.action != "published"]
    report = render_report(
        AuditPlan.from_json(folder[files.PLAN].decode()),
        json.loads(folder[files.RESULT]),
        signed,
        _published(kept, audit),
        service=service,
    )
    kept.record(audit, "published", content={files.REPORT: report.encode()})
    return files.REPORT


def cancel(at: Wiring, audit: str, *, actor: str, note: str = "") -> None:
    """Give an audit up; its evidence stays."""
    store(at).record(audit, "cancelled", actor=actor, note=note)
    withdraw_audit(at.database, audit)


def check(at: Wiring, audit: str, *, with_scores: bool = True) -> list[str]:
    """Return what is wrong with an audit: its files, its draw, and its labels since.

    `with_scores` draws the sample anew from the lake and compares the labels with the decision log.
    """
    folder = store(at).read(audit)
    problems = verify(folder)
    if problems or not with_scores:
        return problems
    for stage in (1, 2):
        sample = folder.get(files.sample_file(stage))
        if sample is None:
            continue
        if redrawn(at, folder, stage) != sample:
            problems.append(
                f"{files.sample_file(stage)} is not what the plan draws from the scores"
            )
        labels = folder.get(files.labels_file(stage))
        if labels is not None and not set(files.read_labels(labels)) <= set(_labels(at, audit)):
            problems.append("a label was changed in the decision log after it was sealed")
    return problems


def redrawn(at: Wiring, folder: Mapping[str, bytes], stage: int = 1) -> bytes:
    """Return the file of a stage's sample, drawn anew from the scores by the plan in `folder`."""
    frozen = AuditPlan.from_json(folder[files.PLAN].decode())
    return redraw(frozen, _population(at, frozen), planned_sizes(frozen, folder, stage))


def _replanned(kept: AuditStore, request: AuditRequest) -> AuditPlan:
    """Return the plan that is there, if it is the one that is asked for."""
    frozen = AuditPlan.from_json(kept.read(request.audit)[files.PLAN].decode())
    same = (frozen.first, frozen.last) == (request.first, request.last)
    if not same or (request.seed and request.seed != frozen.seed):
        raise AuditError(
            f"audit {request.audit!r} was planned before, and otherwise; give another name"
        )
    return frozen


def _published(kept: AuditStore, audit: str) -> list[Document]:
    """Return the results of the other audits that were published, oldest period first."""
    found = []
    for name in kept.names():
        chain = kept.chain(name)
        if name != audit and chain and chain[-1].action == "published":
            found.append(json.loads(kept.read(name)[files.RESULT]))
    return sorted(found, key=lambda result: (result["last_day"], result["audit"]))


def _population(at: Wiring, frozen: AuditPlan) -> Iterator[Scored]:
    for day in frozen.population:
        yield from scored(at.lake, day.day)


def _labels(at: Wiring, audit: str) -> list[AuditLabel]:
    return [AuditLabel(**row) for row in audit_labels(at.database, audit)]


def _items(
    at: Wiring, frozen: AuditPlan, drawn: Sequence[DrawnComment]
) -> list[tuple[datetime.date, NewItem]]:
    """Return the drawn comments as the queue takes them, in the order of the draw."""
    texts: dict[tuple[datetime.date, str], dict[str, Any]] = {}
    columns = ["comment_id", "text", "parent_text", "language", "platform"]
    version = next(day.model_version for day in frozen.population if day.comments)
    for day in sorted({each.day for each in drawn}):
        wanted = {each.comment_id for each in drawn if each.day == day}
        for batch in at.lake.read("comments", day, columns=columns):
            texts |= {
                (day, row["comment_id"]): row
                for row in batch.to_pylist()
                if row["comment_id"] in wanted
            }
    return [
        (
            each.day,
            NewItem(
                **texts[each.day, each.comment_id],
                kind="audit",
                reason="audit",
                stratum=each.stratum,
                inclusion_probability=_chance(frozen, each.stratum),
                rank=rank,
                review_score=0.0,
                prob=each.score,
                uncertainty=each.score * (1 - each.score),
                model_version=version,
                labels_wanted=labels_wanted(frozen, each),
            ),
        )
        for rank, each in enumerate(drawn, 1)
    ]


def _chance(frozen: AuditPlan, stratum: int) -> float:
    planned = frozen.strata[stratum]
    return max(planned.labels, 1) / planned.population

"""One recall audit: its evidence, and the steps that seal it, in their order.

Every step may be taken again, by a process that was killed or a task that is cleared, even after
later steps: what is sealed stays as it is, and the answer is the same.
"""

import json
import logging
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property

from sqlalchemy import Engine

from modwatch.audit import evidence, files
from modwatch.audit.design import design
from modwatch.audit.draw import draw
from modwatch.audit.dsa.statement import refuse_unusable
from modwatch.audit.evidence import Event
from modwatch.audit.labels import AuditLabel, conflicts, labelled, refuse_conflicts
from modwatch.audit.plan import AuditPlan
from modwatch.audit.report import render_report
from modwatch.audit.results import Document, computed, to_json
from modwatch.audit.verify import planned_sizes, read_evidence, verify
from modwatch.audits import sources, verification
from modwatch.audits.dsa_files import dsa_files
from modwatch.audits.request import AuditRequest
from modwatch.audits.store import MACHINE, AuditStore
from modwatch.days import between
from modwatch.errors import AuditCancelledError, AuditError
from modwatch.lake.delta import Lake
from modwatch.review.queue.audits import (
    AuditProgress,
    audit_progress,
    enqueue_audit,
    moderated_before,
    withdraw_audit,
    withdrawing,
)
from modwatch.review.queue.lanes import Lanes

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Labelling:
    """The progress of the labels of a stage."""

    progress: AuditProgress
    #: Labels are not waited for any longer, UTC.
    deadline: datetime
    #: When the stage was drawn, UTC.
    since: datetime

    @property
    def over(self) -> bool:
        """Whether all items are decided or the deadline has passed."""
        complete = bool(self.progress.items) and not self.progress.left
        return complete or datetime.now(UTC) >= self.deadline

    @property
    def text(self) -> str:
        """The progress in a sentence."""
        progress = self.progress
        lead = f", {progress.escalated:,} are escalated to a lead" if progress.escalated else ""
        return (
            f"{progress.decided:,} of {progress.items:,} comments are decided{lead}; the deadline "
            f"is {self.deadline:%Y-%m-%d %H:%M} UTC."
        )


@dataclass(kw_only=True)
class Audit:
    """An audit by its name. What is read of its evidence is read once, until a step seals more."""

    name: str
    store: AuditStore
    lake: Lake
    database: Engine
    #: How the queue serves each reason.
    lanes: Lanes

    @cached_property
    def chain(self) -> list[Event]:
        """The steps that were sealed, oldest first.

        Raises:
            AuditError: the chain was changed, or no audit has this name.
        """
        return self.store.chain(self.name) or self.store.raise_unknown(self.name)

    @cached_property
    def plan(self) -> AuditPlan:
        """The sealed plan; AuditError when no audit has this name."""
        return AuditPlan.from_json(self._file(files.PLAN).decode())

    @cached_property
    def folder(self) -> dict[str, bytes]:
        """Every file of the evidence by its name; AuditError when no audit has this name."""
        return self.store.read(self.name)

    @property
    def result(self) -> Document:
        """The sealed result.

        Raises:
            AuditError: there is none yet, or a file was changed after it was sealed.
        """
        problems = evidence.file_problems(self.chain, self.folder)
        if problems or files.RESULT not in self.folder:
            raise AuditError(
                f"audit {self.name!r}: {problems[0] if problems else 'there is no result'}"
            )
        return dict(json.loads(self.folder[files.RESULT]))

    def done(self, action: str) -> bool:
        """Return whether a step is sealed; AuditCancelledError when the audit was cancelled."""
        return any(event.action == action for event in self._active_chain())

    def freeze_plan(self, request: AuditRequest, *, actor: str) -> AuditPlan:
        """Survey the period, and seal the plan of `request`; return it.

        Raises:
            AuditError: the period is empty, has days without scores or with several models, or the
                audit was planned before by another request.
            DesignError: fewer labels than the strata need.
        """
        if chain := self.store.chain(self.name):
            if request.origin != chain[0].note or not request.fits(self.plan):
                raise AuditError(
                    f"audit {self.name!r} was planned by another request; choose another name"
                )
            return self.plan
        days, flagged, unflagged = sources.survey(self.lake, between(request.first, request.last))
        if not flagged.comments + unflagged.comments:
            raise AuditError(f"there is no comment from {request.first} to {request.last}")
        known = sources.known_labels(self.lake, days)
        made = design(flagged, unflagged, request.first_stage_labels, request.options, known)
        plan = request.planned(days, made)
        content = {files.PLAN: plan.to_json().encode()}
        self._record("planned", actor=actor, content=content, note=request.origin)
        return plan

    def approve(self, *, actor: str, note: str = "") -> None:
        """Record who approved the plan."""
        if not self.done("approved"):
            self._record("approved", actor=actor, note=note)

    def draw(self, stage: int | None = None) -> int:
        """Draw a stage and queue it blind; return the number of comments drawn in all stages.

        `stage` is the next one by default. Of a stage that the plan does not have, or that was
        cancelled with the labelling of the first, nothing is drawn and 0 is returned.

        Raises:
            AuditError: the step is out of order, every stage is labelled, or scores or labels of
                the stage before were changed since.
        """
        chain = self._active_chain()
        begun, sealed = len(_stages(chain, "drawn")), len(_stages(chain, "labelled"))
        if stage is None:
            stage = max(sealed + 1, begun)
            if stage > self.plan.stages:
                raise AuditError(
                    f"audit {self.name!r}: all stages of the plan are drawn and labelled"
                )
        if sealed >= stage:
            return len(files.read_sample(self._file(files.sample_file(stage))))
        if self.plan.stages < stage or (stage > 1 and evidence.stopped(chain)):
            return 0
        folder = self._ready("drawn")
        sources.raise_on_changed_labels(self.database, self.name, folder)
        sizes = planned_sizes(self.plan, folder, stage)
        drawn = draw(self.plan, sources.population(self.lake, self.plan), sizes)
        self._record(
            "drawn",
            content={
                files.sample_file(stage): files.write_sample(drawn.comments),
                files.population_file(stage): files.write_population(drawn.population),
            },
        )
        items = sources.queue_items(self.lake, self.plan, drawn.comments, sizes)
        enqueue_audit(self.database, self.name, items, self.lanes)
        if self.chain[-1].action == "cancelled":  # meanwhile, by somebody else
            withdraw_audit(self.database, self.name)
        return len(drawn.comments)

    def labelling(self, stage: int) -> Labelling | None:
        """Return the progress of the labels of a stage; None if they are sealed or not drawn."""
        chain = self._active_chain()
        drawn = _stages(chain, "drawn")
        if len(drawn) < stage or len(_stages(chain, "labelled")) >= stage:
            return None
        since = evidence.moment(drawn[-1].at)
        wait = timedelta(days=self.plan.deadline_days)
        return Labelling(progress=self.progress(), since=since, deadline=since + wait)

    def progress(self) -> AuditProgress:
        """Return how many items of the audit are in which status."""
        return audit_progress(self.database, self.name)

    def conflicting_labels(self) -> list[AuditLabel]:
        """Return the labels by people who decided the comment as moderators; they block sealing."""
        labels = sources.current_labels(self.database, self.name)
        return conflicts(labels, moderated_before(self.database, self.name))

    def seal(
        self,
        stage: int | None = None,
        *,
        stop: bool = False,
        actor: str = MACHINE,
        note: str = "",
    ) -> int:
        """Seal the labels of a stage, by default the last drawn; return how many comments have one.

        `stop` withdraws the items that nobody has labelled yet, and a second stage unless it is
        drawn already. Decide on it without looking at the labels: otherwise the estimate is biased.

        Raises:
            AuditError: items are undecided, a label is by somebody who decided the comment as a
                moderator, or labels of an earlier stage were changed after they were sealed. Those
                cannot be sealed again: cancel the audit and plan another.
        """
        chain = self._active_chain()
        sealed = _stages(chain, "labelled")
        stage = stage or max(len(_stages(chain, "drawn")), 1)
        if len(sealed) >= stage:
            if evidence.stopped(chain):
                withdraw_audit(self.database, self.name)  # the process may have been killed before
            return labelled(files.read_labels(self._file(files.labels_file(stage))))
        if stage > 1 and len(_stages(chain, "drawn")) < stage:
            return 0
        return self._seal(stage, stop=stop, actor=actor, note=note)

    def estimate(self) -> Document:
        """Compute every metric and seal the result; return it."""
        if not self.done("estimated"):
            result = computed(read_evidence(self._ready("estimated")))
            self._record("estimated", content={files.RESULT: to_json(result)})
        return self.result

    def sign_off(self, *, actor: str, note: str = "") -> None:
        """Record who signed the result.

        Raises:
            AuditError: they labelled items of the audit themselves, the evidence is invalid, or
                labels were changed after they were sealed: cancel the audit and plan another.
        """
        if self.done("signed_off"):
            return
        folder = self._ready("signed_off")
        if actor in {label.labeller for label in read_evidence(folder).labels}:
            raise AuditError(
                f"audit {self.name!r}: {actor!r} labelled for it and cannot sign it off"
            )
        problems = verify(folder)
        if problems:
            raise AuditError(f"audit {self.name!r} cannot be signed off: {problems[0]}")
        sources.raise_on_changed_labels(self.database, self.name, folder)
        self._record("signed_off", actor=actor, note=note)

    def publish(self, *, service: str = "") -> str:
        """Write and seal report and DSA files of a signed audit; return the name of the report.

        `service` is the name of the service that they describe; without it there are no DSA files.
        The trend shows the audits that were published before.

        Raises:
            AuditError: out of order, or labels were changed after they were sealed: cancel the
                audit and plan another.
        """
        if self.done("published"):
            return files.REPORT
        if service:
            refuse_unusable("service", service)
        folder = self._ready("published")
        sources.raise_on_changed_labels(self.database, self.name, folder)
        result = json.loads(folder[files.RESULT])
        report = render_report(
            self.plan, result, self.chain, self._published_before(), service=service
        )
        content = {files.REPORT: report.encode()}
        if service:
            content |= dsa_files(self.plan, result, self.lake, self.database, service=service)
        self._record("published", content=content)
        return files.REPORT

    def cancel(self, *, actor: str, note: str = "") -> None:
        """Cancel the audit and withdraw its items; its evidence stays."""
        self._record("cancelled", actor=actor, note=note)
        withdraw_audit(self.database, self.name)  # again, if the process was killed before

    def verify(self, *, with_scores: bool = True) -> list[str]:
        """Return what is wrong with the evidence; see `verification.problems_of`."""
        return verification.problems_of(
            self.name, self.folder, self.lake, self.database, with_scores=with_scores
        )

    def _active_chain(self) -> list[Event]:
        if self.chain[-1].action == "cancelled":
            withdraw_audit(self.database, self.name)  # the process may have been killed before
            raise AuditCancelledError(
                f"audit {self.name!r} was cancelled by {self.chain[-1].actor!r}"
            )
        return self.chain

    def _ready(self, action: str) -> Mapping[str, bytes]:
        """Return the folder for a step; AuditError if it is out of order or a file was changed."""
        if self.chain[-1].action != action:
            evidence.refuse_out_of_order(self.chain, audit=self.name, action=action)
        problems = evidence.file_problems(self.chain, self.folder)
        if problems:
            raise AuditError(f"audit {self.name!r}: {problems[0]}")
        return self.folder

    def _seal(self, stage: int, *, stop: bool, actor: str, note: str) -> int:
        folder = self._ready("labelled")
        sources.raise_on_changed_labels(self.database, self.name, folder)
        drawn = len(files.read_sample(folder[files.sample_file(stage)]))
        _raise_if_incomplete(self.name, self.progress(), drawn, stop=stop)
        with withdrawing(self.database, self.name) if stop else nullcontext():
            labels = sources.current_labels(self.database, self.name)
            refuse_conflicts(labels, moderated_before(self.database, self.name))
            self._record(
                "labelled",
                actor=actor,
                content={files.labels_file(stage): files.write_labels(labels)},
                note=evidence.stopping(note) if stop else note,
            )
        return labelled(labels)

    def _record(
        self,
        action: str,
        *,
        actor: str = MACHINE,
        content: Mapping[str, bytes] | None = None,
        note: str = "",
    ) -> None:
        self.store.record(self.name, action, actor=actor, content=content, note=note)
        for read in ("chain", "folder"):
            vars(self).pop(read, None)

    def _file(self, name: str) -> bytes:
        return self.store.file(self.name, name)

    def _published_before(self) -> list[Document]:
        """Return the results of the other audits that were published, oldest period first."""
        results = []
        for name in self.store.names():
            other = replace(self, name=name)
            try:
                if name != self.name and other.chain[-1].action == "published":
                    results.append(other.result)
            except AuditError as exc:
                _log.warning("The trend leaves out audit %s: %s.", name, exc)
        return sorted(results, key=lambda result: (result["last_day"], result["audit"]))


def _raise_if_incomplete(audit: str, progress: AuditProgress, drawn: int, *, stop: bool) -> None:
    if progress.items < drawn:
        raise AuditError(
            f"audit {audit!r}: {drawn} comments are drawn and {progress.items} of them queued; "
            "draw the stage again to queue the rest"
        )
    if progress.left and not stop:
        raise AuditError(
            f"audit {audit!r}: {progress.left} items are not decided; wait for them, or stop the "
            "labelling"
        )


def _stages(chain: list[Event], action: str) -> list[Event]:
    return [event for event in chain if event.action == action]

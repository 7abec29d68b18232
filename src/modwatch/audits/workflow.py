"""One recall audit: its evidence, and the steps that seal it, in their order.

Every step may be taken again, by a process that was killed or a task that is cleared, even after
later steps: what is sealed stays as it is, and the answer is the same.
"""

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from sqlalchemy import Engine

from modwatch.audits import evidence, files, register, sources, verification
from modwatch.audits.consistency import outcome_problems
from modwatch.audits.descriptions import describe_days
from modwatch.audits.dsa.cells import refuse_unusable
from modwatch.audits.dsa.from_audit import Measures
from modwatch.audits.dsa_files import period_measures
from modwatch.audits.evidence import Event
from modwatch.audits.folder import AuditFolder
from modwatch.audits.identities import MACHINE, conflict
from modwatch.audits.publication import Level, OtherAudit, Publication, published_files
from modwatch.audits.request import AuditRequest
from modwatch.audits.review_items import (
    AuditProgress,
    Labelling,
    audit_labels,
    audit_progress,
    enqueue_audit,
    moderated_before,
    withdraw_audit,
    withdrawing,
)
from modwatch.audits.seeds import PUBLIC_VALUE, made_seed, seed_of
from modwatch.audits.store import AuditStore
from modwatch.audits.verify import planned_sizes, read_evidence, recomputed, verify
from modwatch.audits.witnesses import WITNESSED, Witnesses
from modwatch.common.errors import AuditCancelledError, AuditError, TimestampError
from modwatch.common.installed import version
from modwatch.common.text import folded
from modwatch.data.lake.day_scores import DEMONSTRATION
from modwatch.data.lake.delta import Lake
from modwatch.data.lake.files import Folder
from modwatch.review.log.witnesses import Newest, newest
from modwatch.review.queue.lanes import Lanes
from modwatch.statistics.audit.draw import draw
from modwatch.statistics.audit.labels import AuditLabel, conflicts, labelled, refuse_conflicts
from modwatch.statistics.audit.plan import AuditPlan
from modwatch.statistics.audit.results import Document
from modwatch.statistics.audit.sample_design import design

_log = logging.getLogger(__name__)

#: Fact of the plan: digest of the request.
REQUEST = "request"


@dataclass(kw_only=True)
class Audit:
    """An audit by its name. What is read of its evidence is read once, until a step seals more."""

    name: str
    store: AuditStore
    lake: Lake
    database: Engine
    #: How the queue serves each reason.
    lanes: Lanes
    #: Who may witness its steps, in addition to its own files and the register.
    witnesses: Witnesses
    #: Where witnesses of the decision log are kept.
    place: Folder | None

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
        return AuditPlan.from_json(self.store.file(self.name, files.PLAN).decode())

    @cached_property
    def folder(self) -> AuditFolder:
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
        return self.folder.result

    def done(self, action: str) -> bool:
        """Return whether a step is sealed; AuditCancelledError when the audit was cancelled."""
        return any(event.action == action for event in self._active_chain())

    def freeze_plan(self, request: AuditRequest, *, actor: str) -> AuditPlan:
        """Survey the period, and seal the plan of `request`; return it.

        Raises:
            AuditError: the period is empty, has days without scores that the request does not
                allow, or with several models, or the audit was planned before by another request.
            DesignError: fewer labels than the strata need.
        """
        if chain := self.store.chain(self.name):
            if chain[0].facts.get(REQUEST) != request.digest:
                raise AuditError(
                    f"audit {self.name!r} was planned by another request; choose another name"
                )
            # The process may have been killed before.
            register.enter(self.database, chain, self.plan)
            return self.plan
        days, flagged, unflagged = sources.survey(self.lake, request.days)
        if not flagged.comments + unflagged.comments:
            raise AuditError(f"there is no comment from {request.first} to {request.last}")
        known = sources.known_labels(self.lake, days)
        made = design(flagged, unflagged, request.first_stage_labels, request.options, known)
        plan = request.planned(days, made)
        if plan.missing_days and not request.allow_missing_days:
            raise AuditError(
                f"the period has no scores on {describe_days(plan.missing_days)}; run "
                "score_comments for them, choose another period, or allow missing days "
                "(allow_missing_days, --allow-missing-days), which the report then names"
            )
        content = {files.PLAN: plan.to_json().encode()}
        facts = {REQUEST: request.digest}
        self._record("planned", actor=actor, content=content, note=request.origin, facts=facts)
        return plan

    def approve(self, *, actor: str, note: str = "") -> None:
        """Record who approved the plan, and fix what the seed of the draw is made of.

        Raises:
            AuditError: `actor` is no person, or, with four eyes, planned the audit.
        """
        if not self.done("approved"):
            self._refuse("approved", actor)
            self._ready("approved")
            facts = register.approval_facts(self.database, self.plan)
            self._record("approved", actor=actor, note=note, facts=facts)

    def draw(self, stage: int | None = None, *, public_value: str = "") -> int:
        """Draw a stage and queue it blind; return the number of comments drawn in all stages.

        `public_value` is the value that the plan names, for the first stage. `stage` is the next
        one by default. Of a stage that the plan does not have, or that was cancelled with the
        labelling of the first, nothing is drawn and 0 is returned.

        Raises:
            AuditError: the step is out of order, every stage is labelled, scores or labels of the
                stage before were changed since, or the public value is missing or not asked for.
        """
        chain = self._active_chain()
        begun = len(evidence.all_of(chain, "drawn"))
        sealed = len(evidence.all_of(chain, "labelled"))
        if stage is None:
            stage = max(sealed + 1, begun)
            if stage > self.plan.stages:
                raise AuditError(
                    f"audit {self.name!r}: all stages of the plan are drawn and labelled"
                )
        if sealed >= stage:
            return len(self.folder.sample(stage))
        if self.plan.stages < stage or (stage > 1 and evidence.stopped(chain)):
            return 0
        folder = self._ready("drawn")
        sources.raise_on_changed_labels(self.database, self.name, folder)
        sizes = planned_sizes(self.plan, folder, stage)
        seed, facts = self._seed(public_value)
        drawn = draw(self.plan, sources.population(self.lake, self.plan), sizes, seed)
        self._record(
            "drawn",
            facts=facts,
            content={
                files.sample_file(stage): files.write_sample(drawn.comments),
                files.population_file(stage): files.write_population(drawn.population),
            },
        )
        items = sources.queue_items(self.lake, self.plan, drawn.comments, sizes)
        enqueue_audit(self.database, self.name, items, self.lanes, barred=self._may_not_label)
        if self.chain[-1].action == "cancelled":  # meanwhile, by another person
            withdraw_audit(self.database, self.name)
        return len(drawn.comments)

    def labelling(self, stage: int) -> Labelling | None:
        """Return the progress of the labels of a stage; None if they are sealed or not drawn."""
        chain = self._active_chain()
        drawn = evidence.all_of(chain, "drawn")
        if len(drawn) < stage or len(evidence.all_of(chain, "labelled")) >= stage:
            return None
        since = evidence.moment(drawn[-1].at)
        wait = timedelta(days=self.plan.deadline_days)
        return Labelling(progress=self.progress(), since=since, deadline=since + wait)

    def progress(self) -> AuditProgress:
        """Return how many items of the audit are in which status."""
        return audit_progress(self.database, self.name)

    def conflicting_labels(self) -> list[AuditLabel]:
        """Return the labels by people who decided the comment as moderators; they block sealing."""
        labels = audit_labels(self.database, self.name)
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

        `stop` withdraws the items without a label, and a second stage unless it is
        drawn already. Decide on it without looking at the labels: otherwise the estimate is biased.

        Raises:
            AuditError: items are undecided and the labelling is not stopped or the note names no
                reason, a label is by someone who decided the comment as a
                moderator, or labels of an earlier stage were changed after they were sealed. Those
                cannot be sealed again: cancel the audit and plan another.
        """
        chain = self._active_chain()
        sealed = evidence.all_of(chain, "labelled")
        stage = stage or max(len(evidence.all_of(chain, "drawn")), 1)
        if len(sealed) >= stage:
            if evidence.stopped(chain):
                withdraw_audit(self.database, self.name)  # the process may have been killed before
            return labelled(self.folder.labels(stage))
        if stage > 1 and len(evidence.all_of(chain, "drawn")) < stage:
            return 0
        return self._seal(stage, stop=stop, actor=actor, note=note)

    def estimate(self) -> Document:
        """Compute every metric and seal the result; return it."""
        if not self.done("estimated"):
            content = {files.RESULT: recomputed(self._ready("estimated"))}
            self._record("estimated", content=content)
        return self.result

    def sign_off(self, *, actor: str, note: str = "") -> None:
        """Record who signed the result.

        Raises:
            AuditError: they labelled items of the audit themselves or, with four eyes, planned or
                approved it; the evidence is invalid; or labels were changed after they were sealed,
                or left out: cancel the audit and plan another.
        """
        if self.done("signed_off"):
            return
        folder = self._ready("signed_off")
        self._refuse("signed_off", actor, {one.labeller for one in read_evidence(folder).labels})
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
        publication = Publication(
            version=version(),
            service=service,
            earlier=self._published_before(),
            others=[*self._of_same_days()],
            measures=self._measures() if service else None,
        )
        content = published_files(self.plan, folder.result, self.chain, publication)
        self._record("published", content=content | {files.PUBLICATION: publication.to_json()})
        return files.REPORT

    def _measures(self) -> dict[str, Measures] | None:
        """Return the measures of the period; None where they mean nothing, and no file is made."""
        if any(day.model_origin == DEMONSTRATION for day in self.plan.population):
            _log.warning("No DSA files are written: %s.", DEMONSTRATION)
            return None
        return period_measures(self.plan, self.lake, self.database)

    def sign(self, key: Ed25519PrivateKey, *, actor: str) -> str:
        """Sign the last approval or result of `actor`, who holds `key`; return the file's name.

        Raises:
            AuditError: `actor` neither approved nor signed off, or the key is not the one that is
                registered for them.
        """
        steps = [
            event.position
            for event in self.chain
            if event.action in WITNESSED and folded(event.actor) == folded(actor)
        ]
        if not steps:
            raise AuditError(f"audit {self.name!r}: {actor!r} took no step that is to be signed")
        self.witnesses.refuse_key(actor, key)
        name = files.signature_file(steps[-1])
        content = evidence.written(self.chain[: steps[-1]]).encode()
        self.store.witness(self.name, name, key.sign(content))
        return name

    def stamp(self) -> list[str]:
        """Have the steps that lack a timestamp witnessed, if an authority is set; return the files.

        TimestampError when the authority cannot be reached or answers with something else.
        """
        made = []
        for event in self.chain:
            name = files.timestamp_file(event.position)
            if event.action in WITNESSED and name not in self.folder:
                content = evidence.written(self.chain[: event.position]).encode()
                answer = self.witnesses.stamp(content)
                if answer is not None:
                    self.store.witness(self.name, name, answer)
                    made.append(name)
        vars(self).pop("folder", None)
        return made

    def cancel(self, *, actor: str, note: str = "") -> None:
        """Cancel the audit and withdraw its items; its evidence stays, with how many labels."""
        with withdrawing(self.database, self.name):  # so that no label comes in meanwhile
            facts = {evidence.LABELS: str(len(audit_labels(self.database, self.name)))}
            self._record("cancelled", actor=actor, note=note, facts=facts)

    def verify(self) -> list[str]:
        """Return what is wrong with the evidence; see `verification.levels_of`."""
        return [problem for level in self.levels() for problem in level.problems]

    def levels(
        self, witness: Newest | None = None, witnesses: Witnesses | None = None
    ) -> list[Level]:
        """Return what each level of verification shows; see `verification.levels_of`.

        `witness` is that of the decision log, by default the newest one that is kept, and
        `witnesses` must vouch for the steps, in place of those of the audit, which may.
        """
        witness = witness or newest(self.place, self.witnesses.authority)
        return verification.levels_of(
            self.name, self.store, self.lake, self.database, witnesses or self.witnesses, witness
        )

    def _active_chain(self) -> list[Event]:
        # The process may have been killed before.
        register.enter(self.database, self.chain, self.plan)
        if self.chain[-1].action == "cancelled":
            withdraw_audit(self.database, self.name)  # the process may have been killed before
            raise AuditCancelledError(
                f"audit {self.name!r} was cancelled by {self.chain[-1].actor!r}"
            )
        return self.chain

    def _ready(self, action: str) -> AuditFolder:
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
        drawn = folder.sample(stage)
        progress = self.progress()
        _refuse_incomplete(self.name, progress, len(drawn), stop=stop, note=note)
        why = f"{note} ({progress.open})" if progress.left else note
        with withdrawing(self.database, self.name) if stop else nullcontext():
            labels = audit_labels(self.database, self.name)
            refuse_conflicts(labels, moderated_before(self.database, self.name))
            _refuse_labels_of_approver(self.plan, self.chain, labels)
            content = {files.labels_file(stage): files.write_labels(labels)}
            outcomes = sources.outcomes(self.database, self.name, drawn, labels)
            for problem in outcome_problems(outcomes, drawn, labels, stopped=stop):
                raise AuditError(
                    f"audit {self.name!r}: the queue {problem}; someone changed a label just now: "
                    "seal again"
                )
            content[files.outcomes_file(stage)] = files.write_outcomes(outcomes)
            note = evidence.stopping(why) if stop else note
            facts = {evidence.STOPPED: "yes"} if stop else {}
            self._record("labelled", actor=actor, content=content, note=note, facts=facts)
        return labelled(labels)

    def _refuse(self, action: str, actor: str, labellers: Collection[str] = ()) -> None:
        """Raise AuditError unless `actor` may take a step."""
        why = conflict(
            self.chain, action, actor, four_eyes=self.plan.four_eyes, labellers=labellers
        )
        if why:
            raise AuditError(f"audit {self.name!r}: {why}")

    def _may_not_label(self, pseudonym: str) -> bool:
        """Return whether a person approved the plan, and so may not label."""
        approved = evidence.first_of(self.chain, "approved")
        return approved is not None and folded(pseudonym) == folded(approved.actor)

    def _seed(self, public_value: str) -> tuple[str, dict[str, str]]:
        """Return the seed of the draw, and what the step fixes of it."""
        approved = evidence.first_of(self.chain, "approved")
        if approved is None or evidence.first_of(self.chain, "drawn"):
            return seed_of(self.plan, self.chain), {}
        seed = made_seed(self.plan, approved.facts, public_value)
        return seed, {PUBLIC_VALUE: public_value} if public_value else {}

    def _record(
        self,
        action: str,
        *,
        actor: str = MACHINE,
        content: Mapping[str, bytes] | None = None,
        note: str = "",
        facts: Mapping[str, str] | None = None,
    ) -> None:
        self.store.record(self.name, action, actor=actor, content=content, note=note, facts=facts)
        for read in ("chain", "folder"):
            vars(self).pop(read, None)
        register.enter(self.database, self.chain, self.plan)
        try:
            self.stamp()
        except TimestampError as exc:  # a step must not wait for others; `stamp` tries again
            _log.warning("A step of audit %s has no timestamp yet: %s.", self.name, exc)

    def _of_same_days(self) -> Iterator[OtherAudit]:
        """Yield the other audits of days of the period."""
        for name, steps in register.same_days(register.read(self.database), self.plan).items():
            labels = self.store.cancelled_labels(name)
            if labels is None:
                labels = len(audit_labels(self.database, name))
            yield OtherAudit(
                audit=name,
                first=steps[0].first,
                last=steps[0].last,
                action=steps[-1].step,
                at=steps[-1].at,
                labels=labels,
            )

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


def _refuse_incomplete(
    audit: str, progress: AuditProgress, drawn: int, *, stop: bool, note: str
) -> None:
    """Raise AuditError unless all items are queued, and decided or left out for a reason."""
    if progress.items < drawn:
        raise AuditError(
            f"audit {audit!r}: {drawn} comments are drawn and {progress.items} of them queued; "
            "draw the stage again to queue the rest"
        )
    if progress.left and not stop:
        raise AuditError(
            f"audit {audit!r}: {progress.open}; wait for them, or stop the labelling with a reason"
        )
    if progress.left and not note.strip():
        raise AuditError(
            f"audit {audit!r}: {progress.open}; name the reason why the labelling stops without "
            "them, which the report states"
        )


def _refuse_labels_of_approver(
    plan: AuditPlan, chain: Sequence[Event], labels: Collection[AuditLabel]
) -> None:
    """Raise AuditError when who approved the plan has labelled."""
    approved = evidence.first_of(chain, "approved")
    labellers = {one.labeller for one in labels}
    if approved is not None:
        why = conflict(chain, "approved", approved.actor, four_eyes=False, labellers=labellers)
        if why:
            raise AuditError(
                f"audit {plan.audit!r}: {why}; have the labels undone, or cancel the audit"
            )

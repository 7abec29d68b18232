"""The path of an audit, one function a stop, as the DAG `audit_recall` takes it.

    plan → (approve) → draw → (people label) → seal → estimate → (sign_off) → publish → track

An audit of two stages draws and seals twice. Somebody may `cancel` on the way. What stands in
brackets people do. Each stop may come again, even after later ones, as when its process was killed
or its task is cleared: what has been done stays, and the answer is the same.
"""

import datetime
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from modwatch.alerts.delivery import notify
from modwatch.alerts.messages import Alert, approval_alert, reminder_alert
from modwatch.audit import files
from modwatch.audit.dsa.statement import refuse_unusable
from modwatch.audit.evidence import Event, moment, stopped
from modwatch.audit.labels import labelled
from modwatch.audit.words import plan_in_words, result_in_words
from modwatch.audits import auditing
from modwatch.audits.request import requested
from modwatch.errors import AlertError, AuditCancelledError
from modwatch.resources import Resources
from modwatch.review.queue.audits import AuditProgress, withdraw_audit
from modwatch.tracking import audit_runs

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Labelling:
    """How far people are with the labels of a stage."""

    progress: AuditProgress
    #: When people are no longer waited for, UTC.
    deadline: datetime.datetime
    #: When the stage was drawn, UTC.
    since: datetime.datetime

    @property
    def over(self) -> bool:
        """Whether nothing is left to wait for."""
        return self.done or datetime.datetime.now(datetime.UTC) >= self.deadline

    @property
    def done(self) -> bool:
        """Whether everything is queued, and decided."""
        return bool(self.progress.items) and not self.progress.left

    @property
    def words(self) -> str:
        """How far it is, in a sentence."""
        found = self.progress
        lead = f", {found.escalated:,} wait for a lead" if found.escalated else ""
        return (
            f"{found.decided:,} of {found.items:,} comments are decided{lead}; the deadline is "
            f"{self.deadline:%Y-%m-%d %H:%M} UTC."
        )


def plan(at: Resources, form: Mapping[str, Any], *, actor: str = "modwatch") -> str:
    """Freeze the plan that a form asks for; return the audit's name. See `requested`.

    A name of a service that cannot be published is refused now, not weeks later.
    """
    if form.get("service"):
        refuse_unusable("service", form["service"])
    return auditing.plan(at, requested(form), actor=actor).audit


def approve(at: Resources, audit: str, *, actor: str, note: str = "") -> None:
    """Record that somebody approved the plan, unless that is done."""
    if not done(at, audit, "approved"):
        auditing.approve(at, audit, actor=actor, note=note)


def draw(at: Resources, audit: str, stage: int) -> int:
    """Draw and queue a stage, unless it is done; return how many comments are drawn in all.

    There is no second stage, and 0 is returned, if the plan has none or labelling was stopped.
    """
    chain, drawn = _going_on(at, audit), files.sample_file(stage)
    if len(_stages(chain, "labelled")) >= stage:
        return len(files.read_sample(auditing.store(at).file(audit, drawn)))
    if auditing.plan_of(at, audit).stages < stage or (stage > 1 and stopped(chain)):
        return 0
    return auditing.draw_stage(at, audit)


def labelling(at: Resources, audit: str, stage: int) -> Labelling | None:
    """Return how far the labels of a stage are; None if they are sealed, or there is no stage."""
    chain = _going_on(at, audit)
    drawn = _stages(chain, "drawn")
    if len(drawn) < stage or len(_stages(chain, "labelled")) >= stage:
        return None
    since = moment(drawn[-1].at)
    wait = datetime.timedelta(days=auditing.plan_of(at, audit).deadline_days)
    return Labelling(progress=auditing.progress(at, audit), since=since, deadline=since + wait)


def seal(
    at: Resources,
    audit: str,
    stage: int,
    *,
    stop: bool = False,
    actor: str = "modwatch",
    note: str = "",
) -> int:
    """Seal the labels of a stage, unless that is done; return how many comments are labelled."""
    if labelling(at, audit, stage) is not None:
        return auditing.seal_labels(at, audit, stop=stop, actor=actor, note=note)
    kept = auditing.store(at)
    chain = kept.chain(audit)
    if stopped(chain):
        withdraw_audit(at.database, audit)  # whoever stopped it may have been killed before
    if len(_stages(chain, "labelled")) < stage:
        return 0
    return labelled(files.read_labels(kept.file(audit, files.labels_file(stage))))


def ask(at: Resources, audit: str, action: str, *, page: str) -> str:
    """Tell people once that somebody is asked to approve or to sign; return what they must know.

    `page` is where the answer is given, what is returned is Markdown.
    """
    last = _going_on(at, audit)[-1]
    _notify(at, approval_alert(audit, action, page), moment(last.at).date())
    if action == "approved":
        return plan_in_words(auditing.plan_of(at, audit))
    told = result_in_words(auditing.result_of(at, audit), auditing.store(at).place(audit))
    return f"{told} Whoever labelled for the audit cannot sign it."


def remind(at: Resources, audit: str, stage: int, number: int) -> None:
    """Tell people on every channel how far the labels are; each number of a stage once."""
    found = labelling(at, audit, stage)
    if found is None:
        return
    alert = reminder_alert(
        audit=audit,
        key=f"audit/{audit}/{stage}/{number}",
        decided=found.progress.decided,
        items=found.progress.items,
        escalated=found.progress.escalated,
        deadline=found.deadline,
        links={"review queue": at.settings.console_url},
    )
    _notify(at, alert, found.since.date())


def estimate(at: Resources, audit: str) -> str:
    """Compute and seal the result, unless that is done; return the status of recall."""
    if not done(at, audit, "estimated"):
        auditing.estimate(at, audit)
    figures = auditing.result_of(at, audit)["figures"]
    return str(next(each["status"] for each in figures if each["metric"] == "recall"))


def sign_off(at: Resources, audit: str, *, actor: str, note: str = "") -> None:
    """Record that somebody signed the result, unless that is done."""
    if not done(at, audit, "signed_off"):
        auditing.sign_off(at, audit, actor=actor, note=note)


def publish(at: Resources, audit: str, *, service: str = "") -> str:
    """Write the report and the DSA files, unless that is done; return the report's name."""
    if done(at, audit, "published"):
        return files.REPORT
    return auditing.publish(at, audit, service=service)


def track(at: Resources, audit: str) -> str:
    """Show a published audit in MLflow, in place of an earlier run; return the run's id."""
    _going_on(at, audit)
    kept, result = auditing.store(at), auditing.result_of(at, audit)
    return audit_runs.publish_audit(
        result,
        description=result_in_words(result, kept.place(audit)),
        files={name: each for name, each in kept.read(audit).items() if name in files.SHOWN},
        tracking_uri=at.settings.mlflow_url,
    )


def cancel(at: Resources, audit: str, *, actor: str, note: str = "") -> None:
    """Give an audit up, unless that is done; its evidence stays."""
    auditing.cancel(at, audit, actor=actor, note=note)  # of one given up, it ends what was begun


def done(at: Resources, audit: str, action: str) -> bool:
    """Return whether an audit that goes on has this step behind it.

    Raises:
        AuditCancelledError: it was given up.
    """
    return any(event.action == action for event in _going_on(at, audit))


def _notify(at: Resources, alert: Alert, day: datetime.date) -> None:
    """Send an alert; a failed channel must not block the audit, and is tried again later."""
    try:
        notify(at.database, at.alert_channels, alert, day, topic="audit")
    except AlertError as exc:
        _log.warning("An alert of an audit was not delivered: %s", exc)


def _going_on(at: Resources, audit: str) -> list[Event]:
    chain = auditing.store(at).chain(audit)
    if chain and chain[-1].action == "cancelled":
        withdraw_audit(at.database, audit)  # whoever gave it up may have been killed before
        raise AuditCancelledError(f"audit {audit!r} was cancelled by {chain[-1].actor!r}")
    return chain


def _stages(chain: list[Event], action: str) -> list[Event]:
    return [event for event in chain if event.action == action]

"""The path of an audit, as the DAG `audit_recall` and `modwatch audit` take it.

    plan → approve → draw → (people label) → seal → estimate → sign_off → publish → track

`plan` makes the audit, `Resources.audit` returns it, and the steps between are methods of
`modwatch.audits.workflow.Audit`. An audit of two stages draws and seals twice; `cancel` ends it at
any point. Every step may run again, even after later ones: what is done stays, and the answer is
the same.
"""

from collections.abc import Mapping
from typing import Any

from modwatch.audits import files
from modwatch.audits.descriptions import describe_plan, describe_result
from modwatch.audits.evidence import moment
from modwatch.audits.request import requested
from modwatch.audits.review_items import Labelling
from modwatch.audits.tracking import publish_audit
from modwatch.audits.workflow import Audit
from modwatch.installation.resources import Resources
from modwatch.monitoring.incidents.delivery import notify
from modwatch.monitoring.incidents.messages.alert import Alert, header_safe


def plan(resources: Resources, form: Mapping[str, Any], *, actor: str = "modwatch") -> Audit:
    """Seal the plan that a form asks for; return the audit. See `requested` for the fields."""
    request = requested(form)
    audit = resources.audit(request.audit)
    audit.freeze_plan(request, actor=actor)
    return audit


def ask(resources: Resources, name: str, action: str, *, page: str) -> str:
    """Notify people once that an audit waits for approval or sign-off; return what to decide on.

    `page` is where the answer is given; the text returned is Markdown.
    """
    audit = resources.audit(name)
    audit.done(action)  # raises if the audit was cancelled
    alert, day = approval_alert(name, action, page), moment(audit.chain[-1].at).date()
    notify(resources.database, resources.alert_channels, alert, day, topic="audit")
    if action == "approved":
        return describe_plan(audit.plan)
    text = describe_result(audit.result, audit.store.place(name))
    who = "planned, approved or labelled it" if audit.plan.four_eyes else "labelled for it"
    return (
        f"{text} A person who {who} cannot sign it. To add a signature by your own key: "
        f"`modwatch audit sign {name} --by YOU --key FILE`."
    )


def remind(resources: Resources, name: str, stage: int, number: int) -> None:
    """Notify every channel of the progress of the labels; each `number` of a stage once."""
    labelling = resources.audit(name).labelling(stage)
    if labelling is not None:
        console = resources.settings.console_url
        alert = reminder_alert(name, stage, number, labelling, console)
        day = labelling.since.date()
        notify(resources.database, resources.alert_channels, alert, day, topic="audit")


def track(resources: Resources, name: str) -> str:
    """Show a published audit in MLflow, in place of an earlier run; return the run's id."""
    audit = resources.audit(name)
    audit.done("published")  # raises if the audit was cancelled
    return publish_audit(
        audit.result,
        description=describe_result(audit.result, audit.store.place(name)),
        files={name: content for name, content in audit.folder.items() if name in files.SHOWN},
        tracking_uri=resources.settings.mlflow_url,
    )


def approval_alert(audit: str, action: str, page: str) -> Alert:
    """Return the alert that an audit waits for an action: `approved` or `signed_off`.

    `page` is the Airflow page on which to answer.

    >>> approval_alert("2026-01", "signed_off", "http://airflow").title
    '[info] Audit 2026-01 is waiting for sign-off'
    """
    need = {"approved": "approval", "signed_off": "sign-off"}[action]
    return Alert(
        key=header_safe(f"audit/{audit}/{action}"),
        title=f"[info] Audit {audit} is waiting for {need}",
        text=f"The audit is paused until someone gives {need} or cancels it.",
        facts={"event": "question", "severity": "info", "audit": audit, "action": action},
        links={"answer": page},
    )


def reminder_alert(
    audit: str, stage: int, number: int, labelling: Labelling, console: str
) -> Alert:
    """Return the `number`th reminder that labels of a stage are missing.

    `console` is the URL of the review console.
    """
    progress, deadline = labelling.progress, labelling.deadline
    until = f"{deadline:%Y-%m-%d %H:%M} UTC"
    lead = f" {progress.escalated:,} are escalated to a lead." if progress.escalated else ""
    return Alert(
        key=header_safe(f"audit/{audit}/{stage}/{number}"),
        title=f"[info] Audit {audit}: {progress.items - progress.decided:,} labels missing, "
        f"deadline {until}",
        text=f"{progress.decided:,} of {progress.items:,} comments of audit {audit} are labelled."
        f"{lead} Comments without a label at {until} are excluded, which widens the confidence "
        "intervals.",
        facts={
            "event": "reminder",
            "severity": "info",
            "audit": audit,
            "decided": progress.decided,
            "items": progress.items,
            "escalated": progress.escalated,
            "deadline": deadline.isoformat(),
        },
        links={"review queue": console},
    )

"""The alerts that ask somebody to act: on an audit, a model, or an escalated comment."""

import datetime
from collections.abc import Mapping

from modwatch.monitoring.incidents.messages.alert import Alert, header_safe


def approval_alert(audit: str, action: str, page: str) -> Alert:
    """Return the alert for an audit that waits for an action: `approved` or `signed_off`.

    `page` is the Airflow page on which to answer.

    >>> approval_alert("2026-01", "signed_off", "http://airflow").title
    '[info] Audit 2026-01 is waiting for sign-off'
    """
    need = {"approved": "approval", "signed_off": "sign-off"}[action]
    return Alert(
        key=header_safe(f"audit/{audit}/{action}"),
        title=f"[info] Audit {audit} is waiting for {need}",
        text=f"The audit is paused until somebody gives {need} or cancels it.",
        facts={"event": "question", "severity": "info", "audit": audit, "action": action},
        links={"answer": page},
    )


def promotion_alert(model: str, version: str, page: str) -> Alert:
    """Return the alert for a version of a model that waits for the decision to promote it.

    `page` is the Airflow page on which to answer.

    >>> promotion_alert("toxicity", "7", "http://airflow").title
    '[info] Version 7 of model toxicity is waiting for approval'
    """
    return Alert(
        key=header_safe(f"model/{model}/{version}"),
        title=f"[info] Version {version} of model {model} is waiting for approval",
        text="It passed its evaluation. The champion scores until somebody decides.",
        facts={"event": "question", "severity": "info", "model": model, "version": version},
        links={"answer": page},
    )


def severe_escalation_alert(
    item_id: int, due: datetime.datetime, overdue: bool, page: str
) -> Alert:
    """Return the alert for a severe escalation that waits for a lead, or is overdue.

    `page` is where leads resolve escalations.

    >>> due = datetime.datetime(2026, 1, 5, 9, 30, tzinfo=datetime.UTC)
    >>> severe_escalation_alert(7, due, False, "http://console/lead").title
    '[critical] A severe escalation waits for a lead until 09:30 UTC: item 7'
    """
    state = "overdue" if overdue else "waiting"
    until = f"{due.astimezone(datetime.UTC):%H:%M} UTC"
    title = (
        f"A severe escalation is overdue since {until}: item {item_id}"
        if overdue
        else f"A severe escalation waits for a lead until {until}: item {item_id}"
    )
    return Alert(
        key=f"escalation/{item_id}/{due.isoformat()}/{state}",
        title=f"[critical] {title}",
        text="A moderator escalated a comment because somebody may be in danger, or for another "
        "reason that your queue rules call severe. It is the first that a lead is served.",
        facts={
            "event": "escalation",
            "severity": "critical",
            "item": item_id,
            "state": state,
            "due": due.isoformat(),
        },
        links={"resolve": page},
    )


def reminder_alert(
    *,
    audit: str,
    key: str,
    decided: int,
    items: int,
    escalated: int,
    deadline: datetime.datetime,
    links: Mapping[str, str],
) -> Alert:
    """Return the reminder that labels of an audit are missing."""
    facts = {"event": "reminder", "severity": "info", "audit": audit, "decided": decided}
    until = f"{deadline:%Y-%m-%d %H:%M} UTC"
    lead = f" {escalated:,} are escalated to a lead." if escalated else ""
    return Alert(
        key=header_safe(key),
        title=f"[info] Audit {audit}: {items - decided:,} labels missing, deadline {until}",
        text=f"{decided:,} of {items:,} comments of audit {audit} are labelled.{lead} Comments "
        f"without a label at {until} are excluded, which widens the confidence intervals.",
        facts={**facts, "items": items, "escalated": escalated, "deadline": deadline.isoformat()},
        links=links,
    )

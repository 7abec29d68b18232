"""The alerts that ask people to act: on a model, or an escalated comment."""

import datetime

from modwatch.monitoring.incidents.messages.alert import Alert, header_safe


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

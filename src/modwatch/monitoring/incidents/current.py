"""The open incidents as the newest evaluation sees them, which may be otherwise than was told.

A message is about its evening. Labels come later, and the estimates of the days of an incident
change: people who look at it now see the newest ones.
"""

import datetime
from collections.abc import Iterable, Sequence
from dataclasses import replace

from sqlalchemy import Engine

from modwatch.common.errors import LakeError
from modwatch.data.lake.delta import Lake
from modwatch.monitoring.incidents.actions import OpenIncident, open_incidents
from modwatch.monitoring.incidents.causes import cause_name
from modwatch.monitoring.incidents.evaluation import active_alerts
from modwatch.monitoring.incidents.messages.incidents import ActiveAlert
from modwatch.monitoring.incidents.rules import AlertRule


def current_incidents(
    database: Engine, lake: Lake, rules: Iterable[AlertRule]
) -> list[OpenIncident]:
    """Return the open incidents, the most severe first, with what the newest evaluation says.

    If the table `alerts` cannot be read, they are as the last messages tell of them.
    """
    found = open_incidents(database)
    try:
        days = lake.days("alerts")
        alerts = active_alerts(lake.table("alerts", days[-1])) if days else ()
    except LakeError:
        return found
    return as_evaluated(found, alerts, days[-1], rules) if days else found


def as_evaluated(
    incidents: Iterable[OpenIncident],
    alerts: Sequence[ActiveAlert],
    day: datetime.date,
    rules: Iterable[AlertRule],
) -> list[OpenIncident]:
    """Return incidents with headline and value of the `alerts` of a day.

    Those that opened later, or that no alert is about, are returned as they are.
    """
    known = {rule.name: rule for rule in rules}
    by_cause = {
        cause_name(known[alert.rule], alert.subject): alert
        for alert in alerts
        if alert.rule in known and alert.headline
    }
    return [_as_evaluated(each, by_cause.get(each.name), day) for each in incidents]


def _as_evaluated(
    incident: OpenIncident, alert: ActiveAlert | None, day: datetime.date
) -> OpenIncident:
    if alert is None or day < incident.opened:
        return incident
    return replace(incident, headline=alert.headline, newest_value=alert.description, evaluated=day)

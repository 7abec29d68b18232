"""`modwatch alerts …`: active incidents, actions on them, and the heartbeat."""

import datetime
from typing import TYPE_CHECKING, Any

import click

from modwatch.cli.arguments import Group, day, with_resources
from modwatch.common.errors import IncidentError

if TYPE_CHECKING:
    from modwatch.installation.resources import Resources

_incident = click.argument("incident", help="Number or name, as `modwatch alerts list` prints it.")
_by = click.option("--by", required=True, metavar="NAME", help="Person who acts.")
_note = click.option("--note", default="", help="Reason; never the text of a comment.")
_limit = click.option(
    "--limit", type=click.IntRange(1), default=50, help="Print at most this many; count the others."
)


@click.group(cls=Group)
def alerts() -> None:
    """List incidents, act on them, and check that days are measured."""


@alerts.command("list")
@_limit
@with_resources
def list_(resources: "Resources", *, limit: int) -> None:
    """Print the active incidents, most severe first."""
    from modwatch.monitoring.incidents.actions import open_incidents

    found = open_incidents(resources.database)
    for incident in found[:limit]:
        parts = [
            f"{incident.number} {incident.name}: [{incident.severity}] {incident.headline}, since "
            f"{incident.since}",
            f"at first: {incident.at_first}" if incident.at_first else "",
            f"acknowledged by {incident.acknowledged_by}" if incident.acknowledged_by else "",
            f"silent until {incident.silent_until}" if incident.silent_until else "",
        ]
        print("; ".join(filter(None, parts)))
    if more := len(found[limit:]):
        print(f"{more} more; --limit {len(found)} prints all")
    if not found:
        print("no incident is active")


@alerts.command()
@click.argument("incident", required=False)
@_limit
@with_resources
def history(resources: "Resources", *, incident: str | None, limit: int) -> None:
    """Print the newest messages and actions, of all incidents or of INCIDENT, oldest first."""
    from modwatch.monitoring.incidents.actions import history

    found = history(resources.database, incident, newest=limit)
    if incident and not found.entries:
        raise IncidentError(
            f"no incident has the name {incident!r}; `modwatch alerts history` lists all"
        )
    if not found.entries:
        print("no message or action is stored")
    if found.earlier:
        print(f"{found.earlier} earlier; --limit {found.earlier + len(found.entries)} prints all")
    for entry in found.entries:
        moment = entry.at.astimezone(datetime.UTC)
        print(f"{moment:%Y-%m-%d %H:%M} UTC  {entry.incident}  {entry.what}  {entry.text}")


@alerts.command()
@_incident
@_by
@_note
@with_resources
def acknowledge(resources: "Resources", *, incident: str, by: str, note: str) -> None:
    """Record that a person has seen an incident."""
    from modwatch.monitoring.incidents.actions import acknowledged_by

    before = acknowledged_by(resources.database, incident)
    _record(resources, "acknowledge", incident, by, note)
    if before:
        print(f"already acknowledged by {before}; `modwatch alerts history` has both")


@alerts.command()
@_incident
@_by
@_note
@click.option(
    "--until",
    type=day,
    required=True,
    help="Last day without messages, UTC, at most 90 days ahead; a day in the past ends a silence.",
)
@with_resources
def silence(
    resources: "Resources", *, incident: str, by: str, note: str, until: datetime.date
) -> None:
    """Send no messages about an incident for some days."""
    _record(resources, "silence", incident, by, note, until=until)


def _record(
    resources: "Resources", action: Any, incident: str, by: str, note: str, **values: Any
) -> None:
    from modwatch.monitoring.incidents.actions import Action, record

    taken = Action(action=action, incident=incident, person=by, note=note, **values)
    record(resources.database, taken)


@alerts.command()
@_incident
@_by
@click.option("--note", required=True, help="Reason; never the text of a comment.")
@click.option(
    "--level-since", type=day, help="First day at that level; default: the incident's first day."
)
@with_resources
def accept(
    resources: "Resources", *, incident: str, by: str, note: str, level_since: datetime.date | None
) -> None:
    """Accept the present level as the new normal, which ends the incident."""
    from modwatch.monitoring.incidents.actions import accept
    from modwatch.monitoring.incidents.delivery import deliver

    accept(
        resources.database,
        resources.alert_channels,
        incident,
        person=by,
        note=note,
        measured=resources.lake.days("estimates"),
        level_since=level_since,
    )
    deliver(resources.database, resources.alert_channels)


@alerts.command()
@with_resources
def check_heartbeat(resources: "Resources") -> int:
    """Alert if the day that is due is not measured, with exit status 1; for cron."""
    from modwatch.monitoring.incidents.operations import check_heartbeat

    found = check_heartbeat(
        resources.lake,
        resources.checks,
        lambda: resources.database,
        resources.alert_channels,
        now=datetime.datetime.now(datetime.UTC),
        hour=resources.settings.alert_measured_by,
        airflow_url=resources.settings.airflow_url,
    )
    if found.is_late:
        print(f"{found.due} is not measured; the last measured day: {found.measured or 'none'}")
        return 1
    print(f"{found.due} is measured")
    return 0

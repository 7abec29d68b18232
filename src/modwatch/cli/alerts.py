"""`modwatch alerts …`: active incidents, what people do about them, and the heartbeat."""

import argparse
import datetime
from typing import Any

from modwatch.cli.arguments import add_command, day, open_resources, whole_number
from modwatch.common.errors import IncidentError

#: Lines that `list` and `history` print, unless `--limit` says otherwise.
_LIMIT = 50

#: A longer silence is a mistyped date, or a rule that should be disabled.
_LONGEST_SILENCE = datetime.timedelta(days=90)


def add_commands(commands: Any) -> None:
    """Add every command of `modwatch alerts` to its parser's `commands`."""
    listed = add_command(commands, "list", _list, "print the active incidents, most severe first")
    _add_limit(listed, "incidents")
    text = "print the newest messages and actions, in the order in which they were stored"
    history = add_command(commands, "history", _history, text)
    history.add_argument("incident", nargs="?", help="name of an incident; default: all")
    _add_limit(history, "messages and actions")

    text = "say that somebody has seen an incident"
    _add_action(commands, "acknowledge", _record, text)
    assign = _add_action(commands, "assign", _record, "say who looks into an incident")
    assign.add_argument("assignee", help="name of the person")
    _add_action(commands, "comment", _record, "add a note to an incident", note=True)
    silence = _add_action(commands, "silence", _record, "send nothing about an incident for a time")
    silence.add_argument(
        "--until",
        type=day,
        required=True,
        help="last day without messages, YYYY-MM-DD, UTC, at most "
        f"{_LONGEST_SILENCE.days} days ahead; a day that is over ends a silence",
    )
    text = "accept the present level as the new normal, which ends the incident"
    accept = _add_action(commands, "accept", _accept, text, note=True)
    accept.add_argument(
        "--level-since",
        type=day,
        help="first day at that level, YYYY-MM-DD; default: the day on which the incident began",
    )

    text = "alert if the day that is due is not measured; for cron. Exit status 1 if it is not"
    heartbeat = add_command(commands, "check-heartbeat", _check_heartbeat, text)
    heartbeat.add_argument(
        "--by",
        type=whole_number(0, 23),
        metavar="HOUR",
        help="hour, UTC, by which the day before should be measured; default: "
        "MODWATCH_ALERT_MEASURED_BY",
    )


def _add_action(
    commands: Any, name: str, call: Any, text: str, *, note: bool = False
) -> argparse.ArgumentParser:
    parser = add_command(commands, name, call, text)
    parser.set_defaults(action=name, assignee=None, until=None)
    parser.add_argument("incident", help="its name, as `modwatch alerts list` prints it")
    parser.add_argument("--by", required=True, metavar="NAME", help="who does it")
    parser.add_argument("--note", required=note, default="", help="why; no texts of comments")
    return parser


def _add_limit(parser: argparse.ArgumentParser, what: str) -> None:
    text = f"how many {what} to print; default: {_LIMIT}. The others are counted"
    parser.add_argument("--limit", type=whole_number(1), default=_LIMIT, metavar="N", help=text)


def _list(options: argparse.Namespace) -> None:
    from modwatch.monitoring.incidents.actions import open_incidents

    with open_resources() as resources:
        found = open_incidents(resources.database)
    for each in found[: options.limit]:
        parts = [
            f"{each.name}: [{each.severity}] {each.headline}, since {each.since}",
            f"at first: {each.at_first}" if each.at_first else "",
            f"acknowledged by {each.acknowledged_by}" if each.acknowledged_by else "",
            f"assigned to {each.assignee}" if each.assignee else "",
            f"silent until {each.silent_until}" if each.silent_until else "",
        ]
        print("; ".join(filter(None, parts)))
    if more := len(found[options.limit :]):
        print(f"{more} more; --limit {len(found)} prints all")
    if not found:
        print("no incident is active")


def _history(options: argparse.Namespace) -> None:
    from modwatch.monitoring.incidents.actions import history

    with open_resources() as resources:
        found = history(resources.database, options.incident, newest=options.limit)
    if options.incident and not found.entries:
        raise IncidentError(
            f"no incident has the name {options.incident!r}; `modwatch alerts history` lists all"
        )
    if not found.entries:
        print("no message was stored, and nobody has acted on an incident")
    if found.earlier:
        print(f"{found.earlier} earlier; --limit {found.earlier + len(found.entries)} prints all")
    for each in found.entries:
        moment = each.at.astimezone(datetime.UTC)
        print(f"{moment:%Y-%m-%d %H:%M} UTC  {each.incident}  {each.what}  {each.text}")


def _record(options: argparse.Namespace) -> None:
    from modwatch.monitoring.incidents.actions import Action, acknowledged_by, record

    if options.until:
        check_silence(options.until, datetime.datetime.now(datetime.UTC).date())
    action = Action(
        incident=options.incident,
        action=options.action,
        person=options.by,
        note=options.note,
        assignee=options.assignee,
        until=options.until,
    )
    with open_resources() as resources:
        acknowledges = options.action == "acknowledge"
        before = acknowledged_by(resources.database, options.incident) if acknowledges else None
        record(resources.database, action)
    if before:
        print(f"already acknowledged by {before}; `modwatch alerts history` has both")


def check_silence(until: datetime.date, today: datetime.date) -> None:
    """Refuse a silence that lasts longer than 90 days.

    Raises:
        IncidentError: `until` is too far ahead.

    >>> check_silence(datetime.date(2026, 4, 1), datetime.date(2026, 1, 1))
    """
    latest = today + _LONGEST_SILENCE
    if until > latest:
        raise IncidentError(
            f"--until {until} is more than {_LONGEST_SILENCE.days} days ahead; silence until "
            f"{latest} at most, and disable the alert rule if its messages are never wanted"
        )


def _accept(options: argparse.Namespace) -> None:
    from modwatch.monitoring.incidents.actions import accept
    from modwatch.monitoring.incidents.delivery import deliver

    with open_resources() as resources:
        measured = resources.lake.days("measurements")
        if not measured:
            raise IncidentError("no day is measured: there is no level to accept")
        accept(
            resources.database,
            resources.alert_channels,
            options.incident,
            person=options.by,
            note=options.note,
            first=measured[0],
            day=measured[-1],
            level_since=options.level_since,
        )
        deliver(resources.database, resources.alert_channels)


def _check_heartbeat(options: argparse.Namespace) -> int:
    from modwatch.monitoring.incidents.operations import check_heartbeat

    with open_resources() as resources:
        hour = resources.settings.alert_measured_by if options.by is None else options.by
        found = check_heartbeat(
            resources.lake,
            resources.checks,
            lambda: resources.database,
            resources.alert_channels,
            now=datetime.datetime.now(datetime.UTC),
            hour=hour,
            airflow_url=resources.settings.airflow_url,
        )
    if found.is_late:
        print(f"{found.due} is not measured; the last measured day: {found.measured or 'none'}")
        return 1
    print(f"{found.due} is measured")
    return 0

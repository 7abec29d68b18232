"""Watches the figures of the last days, and tells people of incidents, once.

`raise_alerts` judges, and keeps what is to be told in the outbox of the review database; `deliver`
tells it, channel by channel. Whichever is killed is made good by running it again.
"""

import datetime
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from modwatch.alerts.channels import Channel
from modwatch.alerts.figures import figures
from modwatch.alerts.incidents import Figure, Incident, in_hindsight, news, watched
from modwatch.alerts.messages import (
    Alert,
    StandingAlert,
    described,
    incident_alert,
    most_severe_first,
    retired_alert,
    series_of,
)
from modwatch.alerts.rules import Rule
from modwatch.errors import AlertError, AlertRefusedError, DatabaseError, TrackingError
from modwatch.lake.schemas import ALERTS
from modwatch.resources import Resources
from modwatch.review.outbox import messages as outbox
from modwatch.review.outbox.messages import OutboxMessage
from modwatch.tracking import links
from modwatch.tracking.client import connect, experiment_id

_log = logging.getLogger(__name__)

_ONE_DAY = datetime.timedelta(days=1)

#: Days before the window that are looked at too, so that a streak which ends in it is seen whole.
_LOOK_BACK = 28 * _ONE_DAY

#: How long an alert that no receiver takes is tried; later it is news to nobody.
_GIVE_UP = datetime.timedelta(days=14)

_INCIDENT, _FAILURE = "incident", "failure"

Told = Mapping[str, OutboxMessage]


def raise_alerts(at: Resources, day: datetime.date) -> int:
    """Judge the days up to `day`, keep what people have to be told; return how many messages.

    Days after `day` that were judged before are judged again with it. The incidents that stand on
    each day of the window go to the table `alerts`.
    """
    told = outbox.latest(at.database, _INCIDENT)
    today = _latest_day(at, day, told)
    window = at.window(today)
    seen = figures(at, window[0] - _LOOK_BACK, today)
    judged = [_judged(series, told.get(series.name)) for series in _all_series(at, seen, today)]
    new = [piece for each in judged for piece in _news(each, told.get(each.series.name), today)]
    gone = told.keys() - {each.series.name for each in judged}
    new += [piece for name in sorted(gone) for piece in _retired(told[name], today)]
    for past in window:
        _keep_standing(at, past, judged)
    _log.info(
        "The figures are judged.",
        extra={"event": "alerts.judged", "dt": str(day), "until": str(today), "new": len(new)},
    )
    return sum(_post(at, message) for message in _with_pages(at, new))


def standing_alerts(at: Resources, day: datetime.date) -> tuple[StandingAlert, ...]:
    """Return the incidents that stand at the end of `day`, the most severe first."""
    rows = at.lake.table("alerts", day).drop_columns(["dt"]).to_pylist()
    return most_severe_first(StandingAlert(**row) for row in rows)


def deliver(at: Resources) -> int:
    """Send every alert to the channels that have not got it yet; return how many were sent.

    Each channel fails by itself, and what failed is sent with the next call.

    Raises:
        AlertError: some alert could not be delivered; everything else was.
    """
    problems: list[str] = []
    sent = sum(_deliver_by(at, channel, problems) for channel in at.alert_channels)
    if problems:
        raise AlertError("; ".join(dict.fromkeys(problems)))
    return sent


def report_failure(at: Resources, failure: Alert, day: datetime.date) -> None:
    """Tell of a failed task of `day`: once, unless the database is down, then at every call.

    Raises:
        AlertError: some channel did not take it.
    """
    try:
        tell(at, failure, day, topic=_FAILURE)
    except DatabaseError:
        _send_unkept(at, failure)


def tell(at: Resources, alert: Alert, day: datetime.date, *, topic: str) -> None:
    """Tell something on every channel once; `topic` says what kind of message it is.

    Raises:
        AlertError: some channel did not take it; it is kept for the next call.
    """
    _post(at, _message(alert, topic=topic, series=alert.key, sequence=1, day=day))
    deliver(at)


def _send_unkept(at: Resources, alert: Alert) -> None:
    """Send an alert on every channel, without a record of who got it."""
    problems: list[str] = []
    for channel in at.alert_channels:
        try:
            channel.send(alert)
        except AlertError as error:
            problems.append(str(error))
    if problems:
        raise AlertError("; ".join(problems))


def _latest_day(at: Resources, day: datetime.date, told: Told) -> datetime.date:
    """Return the last day that has been judged: going back would take later incidents back."""
    # Days that have drift alone may be a slip of the keyboard, years ahead.
    measured = at.lake.days("measurements")[-1:]
    return max([day, *measured, *(message.dt for message in told.values())])


@dataclass(frozen=True, kw_only=True)
class _Series:
    """What one rule watches of one subject."""

    rule: Rule
    subject: str
    figures: Sequence[Figure]

    @property
    def name(self) -> str:
        return series_of(self.rule.name, self.subject)

    def on(self, day: datetime.date) -> Figure | None:
        return next((figure for figure in self.figures if figure.day == day), None)


@dataclass(frozen=True, kw_only=True)
class _Judged:
    """A series and its incidents."""

    series: _Series
    incidents: Sequence[Incident]


def _all_series(at: Resources, seen: Sequence[Figure], today: datetime.date) -> Iterator[_Series]:
    for rule in at.alert_rules:
        settled = today - rule.settle_days * _ONE_DAY
        found = watched(rule, [figure for figure in seen if figure.day <= settled])
        for subject, series in found.items():
            yield _Series(rule=rule, subject=subject, figures=series)


def _judged(series: _Series, last: OutboxMessage | None) -> _Judged:
    return _Judged(
        series=series, incidents=in_hindsight(series.rule, series.figures, _standing(last))
    )


def _standing(last: OutboxMessage | None) -> Incident | None:
    """Return the incident that the receivers believe to stand, from the last that they heard."""
    if last is None or last.payload["facts"]["event"] != "opened":
        return None
    since = datetime.date.fromisoformat(last.payload["facts"]["since"])
    return Incident(since=since, opened=last.dt)


def _news(
    judged: _Judged, last: OutboxMessage | None, today: datetime.date
) -> Iterator[OutboxMessage]:
    """Yield what is new in a series, to be told after `last`."""
    told, series = _standing(last), judged.series
    now = series.on(told.opened) if told else None
    pieces = news(told, judged.incidents, today=today, now=now)
    for sequence, piece in enumerate(pieces, last.sequence + 1 if last else 1):
        alert = incident_alert(series.rule, series.subject, piece, sequence)
        yield _message(alert, series=series.name, sequence=sequence, day=piece.day)


def _retired(last: OutboxMessage, today: datetime.date) -> Iterator[OutboxMessage]:
    """Yield what closes an incident that no rule watches any more, or that has no figure left."""
    if told := _standing(last):
        facts, sequence = last.payload["facts"], last.sequence + 1
        alert = retired_alert(facts["rule"], facts["subject"], told.since, sequence)
        yield _message(alert, series=last.series, sequence=sequence, day=today)


def _message(
    alert: Alert, *, series: str, sequence: int, day: datetime.date, topic: str = _INCIDENT
) -> OutboxMessage:
    payload = {
        "title": alert.title,
        "text": alert.text,
        "facts": dict(alert.facts),
        "links": dict(alert.links),
    }
    return OutboxMessage(
        key=alert.key, topic=topic, series=series, sequence=sequence, dt=day, payload=payload
    )


def _post(at: Resources, message: OutboxMessage) -> bool:
    """Keep a message for the channels of this installation; return whether it is new."""
    channels = [channel.name for channel in at.alert_channels]
    posted = outbox.post(at.database, message, channels)
    if posted:
        _log.warning(
            "An alert is raised: %s.",
            message.payload["title"],
            extra={"event": "alerts.raised", "key": message.key, "channels": len(channels)},
        )
    return posted


def _deliver_by(at: Resources, channel: Channel, problems: list[str]) -> int:
    """Send what is pending on a channel; return how many, and add what went wrong to `problems`.

    What is refused holds up its own series only; a receiver that is down holds up everything.
    """

    def give(message: OutboxMessage) -> None:
        channel.send(Alert(key=message.key, **message.payload))

    sent, stuck = 0, set[str]()
    for message in outbox.pending(at.database, channel.name, younger_than=_GIVE_UP):
        if message.series in stuck:
            continue
        try:
            sent += outbox.send(at.database, message, channel.name, give)
        except AlertError as error:
            problems.append(str(error))
            stuck.add(message.series)
            if not isinstance(error, AlertRefusedError):
                break
    return sent


def _keep_standing(at: Resources, day: datetime.date, judged: Sequence[_Judged]) -> None:
    """Keep the incidents that stand at the end of `day`, unless they are kept already."""
    rows = [
        _standing_row(day, each.series, incident)
        for each in judged
        for incident in each.incidents
        if incident.stands_on(day)
    ]
    if rows != at.lake.table("alerts", day).to_pylist():
        at.lake.replace("alerts", day, [pa.RecordBatch.from_pylist(rows, schema=ALERTS)])


def _standing_row(day: datetime.date, series: _Series, incident: Incident) -> dict[str, Any]:
    figure = series.on(day)
    return {
        "dt": day,
        "rule": series.rule.name,
        "subject": series.subject,
        "severity": series.rule.severity,
        "since": incident.since,
        "words": described(series.rule, figure) if figure else "",
    }


def _with_pages(at: Resources, messages: Sequence[OutboxMessage]) -> Iterator[OutboxMessage]:
    """Yield the messages with the pages to open: MLflow's first page while MLflow is down."""
    if not messages:
        return
    base, experiment = links.public_url(at.settings.mlflow_url), ""
    with suppress(TrackingError), connect(at.settings.mlflow_url) as client:
        experiment = experiment_id(client, "modwatch")
    for message in messages:
        pages = {
            "MLflow": links.day_url(base, experiment, message.dt) if experiment else base,
            "review queue": at.settings.console_url,
            "Airflow": f"{at.settings.airflow_url}/dags/monitor_collaboration/runs",
        }
        yield replace(message, payload={**message.payload, "links": pages})

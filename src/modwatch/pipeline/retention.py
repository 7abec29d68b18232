"""What is removed once it is older than its setting `MODWATCH_KEEP_…`, one function a task.

Days of comments count back from the last day that was published: while the daily job stands still,
nothing is removed that it has yet to read. Figures, validation pages, the decision log with its
messages and the evidence of audits are kept for ever. Each step may be killed at any point and run
again.

Each step returns what it removed, or with `dry_run` would remove, and what is old and yet kept, one
sentence each. As in `pipeline.daily`, imports stand inside the steps.
"""

import datetime
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

from modwatch.common import days

if TYPE_CHECKING:
    from modwatch.installation.resources import Resources

#: Tables of the lake with rows of comments, by the setting `keep_…` of their age. All others have
#: figures.
TABLES = {
    "landed": ("landed",),
    "staged_scores": ("staged_scores",),
    "quarantine": ("quarantine",),
    "comments": ("comments",),
    "scores": (
        *("scores", "copies", "routed", "labels", "confirmations", "follow_ups"),
        "annotations",
    ),
}

#: Days that scores are kept as they were before validation: as long as a refused day is repaired.
_KEEP_STAGED_SCORES = 7
#: Days that alerts are kept once they were delivered: a quarter, in which incidents are reported.
_KEEP_MESSAGES = 90
#: Days that sessions and access tokens are kept after their end.
_KEEP_SESSIONS = 30

#: Settings of tables that an audit reads.
_AUDITED = ("comments", "scores")


def remove_rows(resources: "Resources", day: datetime.date, *, dry_run: bool = False) -> list[str]:
    """Remove old days of the tables with rows of comments, but those of open audits.

    Their files stay until `vacuum`. Their texts in the queue are erased first. An event says so:
    verification does not take it for a forgery.

    Raises:
        AuditError: the evidence of an audit cannot be read, so it may be an open one.
    """
    from modwatch.review.erasure import erase_old

    lake, found = resources.lake, list[str]()
    audited = {
        past: f"audit {name!r} is open"
        for name, period in _open_audits(resources).items()
        for past in period
    }
    for name, tables in TABLES.items():
        first = _first_kept(resources, day, name)
        held = audited if name in _AUDITED else {}
        for table in tables:
            old = {past: size for past, size in lake.stored(table).items() if past < first}
            gone = [past for past in old if past not in held]
            if table == "comments":
                with resources.database.connect() as connection:
                    number = erase_old(connection, first, held)
                    found.append(f"texts in the queue before {first}: {number:,}")
                    if (gone or number) and not dry_run:
                        connection.commit()
            if gone and not dry_run:
                for past in gone:
                    lake.replace(table, past, [])
            size = sum((old[past] for past in gone), Counter[str]())
            found.append(f"{table} before {first}: days {len(gone)}, {_size(size)}")
            if kept := [past for past in old if past in held]:
                why = ", ".join(sorted({held[past] for past in kept}))
                found.append(f"{table} kept: days {len(kept)}, {kept[0]} to {kept[-1]}: {why}")
    return found


def remove_ended(
    resources: "Resources", _day: datetime.date, *, dry_run: bool = False
) -> list[str]:
    """Remove alerts that were delivered, and sessions, tokens and log-in attempts that ended.

    Messages about decisions stay with the log, against which they are verified.
    """
    from modwatch.review.outbox.decision_events import TOPIC
    from modwatch.review.outbox.messages import remove_delivered
    from modwatch.review.people.access_tokens import remove_tokens
    from modwatch.review.people.throttle import prune

    with resources.database.connect() as connection:
        age = datetime.timedelta(days=_KEEP_MESSAGES)
        messages, left = remove_delivered(connection, age, but=TOPIC)
        tokens = remove_tokens(connection, datetime.timedelta(days=_KEEP_SESSIONS))
        attempts = prune(connection)
        if not dry_run:
            connection.commit()
    return [
        f"alerts: {messages:,}",
        f"alerts kept: {left:,}, of series that are not all delivered and old",
        f"sessions and access tokens: {tokens:,}",
        f"log-in attempts and known browsers: {attempts:,}",
    ]


def remove_runs(resources: "Resources", day: datetime.date, *, dry_run: bool = False) -> list[str]:
    """Remove the runs of old days from MLflow, with their files; no report and no audit.

    Raises:
        TrackingError: MLflow cannot be reached.
    """
    from modwatch.monitoring.publishing.runs import remove_days

    first, url = _first_kept(resources, day, "runs"), resources.settings.mlflow_url
    removed = remove_days(first, tracking_uri=url, dry_run=dry_run)
    return [f"runs in MLflow before {first}: {removed}"]


def compact(resources: "Resources", day: datetime.date, *, dry_run: bool = False) -> list[str]:
    """Write the small files of a day into one, in every table, but of days that may be run again.

    Those are the days of the window and the ones that follow.
    """
    from modwatch.data.lake.schemas import TABLES as EVERY

    before = days.trailing(_last_published(resources, day), 2 * resources.settings.window_days)[0]
    if dry_run:
        return []
    fewer = sum(resources.lake.compact(table, before) for table in EVERY)
    return [f"files fewer before {before}, as small ones are one: {fewer}"]


def vacuum(resources: "Resources", _day: datetime.date, *, dry_run: bool = False) -> list[str]:
    """Delete the files of the lake whose rows were replaced or removed, and old commits."""
    from modwatch.data.lake.schemas import TABLES as EVERY

    hours = 24 * resources.settings.keep_old_files
    old = (resources.lake.vacuum(table, hours=hours, dry_run=dry_run) for table in EVERY)
    return [f"replaced files: {_size(sum(old, Counter[str]()))}"]


def _open_audits(resources: "Resources") -> dict[str, list[datetime.date]]:
    """Return the days of each audit that is neither published nor cancelled."""
    from modwatch.audits.evidence import FOLLOWS

    audits = (resources.audit(name) for name in resources.audit_store.names())
    return {
        audit.name: [planned.day for planned in audit.plan.population]
        for audit in audits
        if FOLLOWS[audit.chain[-1].action]
    }


def _first_kept(resources: "Resources", day: datetime.date, name: str) -> datetime.date:
    keep: int = (
        _KEEP_STAGED_SCORES
        if name == "staged_scores"
        else getattr(resources.settings, f"keep_{name}")
    )
    return days.trailing(_last_published(resources, day), keep)[0]


def _last_published(resources: "Resources", day: datetime.date) -> datetime.date:
    """Return the last day that was published, up to `day`; the first possible one without any."""
    published = [past for past in resources.lake.days("days") if past <= day]
    return published[-1] if published else resources.settings.first_day


def _size(stored: Counter[str]) -> str:
    rows = f"rows {stored['rows']:,}, " if stored["rows"] else ""
    return f"{rows}files {stored['files']:,}, {stored['bytes'] / 1e6:,.1f} MB"


#: In the order in which `modwatch retention` runs them.
STEPS: tuple[Callable[..., list[str]], ...]
STEPS = (remove_rows, remove_ended, remove_runs, compact, vacuum)

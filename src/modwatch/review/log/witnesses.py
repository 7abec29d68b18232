"""Witnesses of the decision log, kept outside the database: one a day, verified with the next.

A witness is the line of JSON from `LogReport.witness` in a file of its own, which is never
overwritten. The place should be out of reach of those who can write to the database: a bucket of
another account, with object lock, or a folder of another machine. With a time-stamping authority
(RFC 3161), each has a timestamp next to it: then those who can write to the place as well cannot
write a witness of an earlier day. The result of each day is recorded for the alert rules.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta

import pyarrow as pa
from cryptography import x509
from sqlalchemy import Engine

from modwatch.common.errors import LakeError, LedgerError, TimestampError
from modwatch.common.ledger import timestamps
from modwatch.common.ledger.chain import witness_in
from modwatch.data.lake.delta import Lake
from modwatch.data.lake.files import Folder
from modwatch.data.lake.schemas import LOG_VERIFICATIONS
from modwatch.review.database import now
from modwatch.review.log.verification import LogReport, verify_log

_log = logging.getLogger(__name__)

_WITNESS, _TIMESTAMP = ".witness.json", ".witness.json.tsr"

#: The names of witnesses, in the order of time.
_NAME = "%Y%m%dT%H%M%S.%fZ"

#: How far the authority's clock may be from that of the database.
_CLOCKS = timedelta(hours=1)


@dataclass(frozen=True, kw_only=True)
class Authority:
    """A time-stamping authority."""

    url: str = field(repr=False)
    roots: Sequence[x509.Certificate]


@dataclass(frozen=True, kw_only=True)
class Witnessed:
    """The result of `verify_and_witness`."""

    #: The verification against the last witness; an invalid witness is one of its problems.
    report: LogReport
    #: Time of the last witness, the new one if it was written; None: there is none.
    last: datetime | None
    #: Why the place or the authority could not be used; empty: they could.
    failure: str = ""


def verify_and_witness(
    engine: Engine, place: Folder, authority: Authority | None = None
) -> Witnessed:
    """Verify the log against the last witness in `place` and, if it is intact, write a new one.

    An unusable place or authority is reported as `failure`: the log is verified all the same.
    Raises `DatabaseError`.
    """
    last, witness = None, None
    failure, invalid = "", ""
    try:
        last, witness = latest(place, authority)
    except LakeError as exc:
        failure = str(exc)
    except (TimestampError, LedgerError) as exc:
        invalid = f"the last witness is not valid: {exc}"
    report = verify_log(engine, witness)
    if invalid:
        report = replace(report, problems=(invalid, *report.problems))
    if not failure and report.intact:
        try:
            last = _write(place, report, authority)
        except (LakeError, TimestampError) as exc:
            failure = str(exc)
    return Witnessed(report=report, last=last, failure=failure)


def latest(place: Folder, authority: Authority | None) -> tuple[datetime | None, str | None]:
    """Return time and text of the last witness in `place`, or None for both if there is none.

    Raises:
        LakeError: the place cannot be read.
        TimestampError: the timestamp of the last witness is missing, or is not valid, or is of
            another time than its name.
        LedgerError: the last witness is none, or is of another time than its name.
    """
    names = [name for name in place.names() if name.endswith(_WITNESS)]
    if not names:
        return None, None
    name = max(names)
    content = place.read(name) or b""
    witness = content.decode(errors="replace")
    moment = _moment(witness_in(witness).at)
    if moment.strftime(_NAME) != name.removesuffix(_WITNESS):
        raise LedgerError(f"the witness {name} is not of the time in its name")
    if authority is not None:
        answer = place.read(name.removesuffix(_WITNESS) + _TIMESTAMP)
        if answer is None:
            raise TimestampError(f"the witness {name} has no timestamp; it may be forged")
        stamped = timestamps.verify(answer, content, authority.roots)
        if abs(stamped - moment) > _CLOCKS:
            raise TimestampError(
                f"the witness {name} was stamped at {stamped:%Y-%m-%d %H:%M} UTC: it is not of the "
                "time in its name"
            )
    return moment, witness


def _moment(at: float | None) -> datetime:
    return datetime.fromtimestamp(at or 0.0, UTC)


def _write(place: Folder, report: LogReport, authority: Authority | None) -> datetime:
    """Write the witness of a report, and return its time."""
    moment, content = _moment(report.at), report.witness.encode()
    name = moment.strftime(_NAME)
    if authority is not None:  # first: a witness without its timestamp looks forged
        answer = timestamps.stamp(authority.url, content, authority.roots)
        place.write(name + _TIMESTAMP, answer)
    place.write(name + _WITNESS, content)
    return moment


def verify_decision_log(
    lake: Lake,
    database: Engine,
    day: date,
    place: Folder | None,
    authority: Authority | None,
    clock: Callable[[], datetime],
) -> int:
    """Verify the decision log, and record the result as that of `day`; return how many problems.

    An intact log gets a new witness in `place`, if there is one. What is wrong is logged without
    quoting a decision. `clock` returns the time on this machine, in UTC, which is compared with
    that of the database. A verification that fails is recorded as not completed.
    """
    row = {"dt": day, "completed": False, "decisions": 0, "problems": 0}
    row["witness_expected"] = place is not None
    try:
        row["clock_difference_seconds"] = abs(now(database) - clock()).total_seconds()
        if place is None:
            done = Witnessed(report=verify_log(database), last=None)
        else:
            done = verify_and_witness(database, place, authority)
        report = done.report
        age = None
        if done.last is not None:
            age = (_moment(report.at) - done.last) / timedelta(hours=1)
        row |= {
            "completed": True,
            "decisions": report.decisions,
            "problems": len(report.problems),
            "witness_age_hours": age,
        }
    finally:
        batch = pa.RecordBatch.from_pylist([row], schema=LOG_VERIFICATIONS)
        lake.replace("log_verifications", day, [batch])
    if done.failure:
        _log.warning(
            "No witness was written: %s.", done.failure, extra={"event": "witness_missing"}
        )
    for problem in report.problems:
        _log.error("Decision log: %s.", problem, extra={"event": "log_altered"})
    return len(report.problems)

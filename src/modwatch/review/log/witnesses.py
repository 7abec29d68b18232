"""Witnesses of the decision log, kept outside the database: one a day, verified with the next.

A witness is the line of JSON from `LogReport.witness` in a file of its own, which is never
overwritten. The place should be out of reach of those who can write to the database: a bucket of
another account, with object lock, or a folder of another machine. With a time-stamping authority
(RFC 3161), each has a timestamp next to it: then those who can write to the place as well cannot
write a witness of an earlier day. The result of each day is recorded for the alert rules.
"""

import logging
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from sqlalchemy import Engine

from modwatch.common.errors import LakeError, LedgerError, TimestampError
from modwatch.common.ledger.chain import EMPTY, Head, Witness, witness_in
from modwatch.common.ledger.timestamps import Authority
from modwatch.data.lake.files import Folder
from modwatch.data.lake.schemas import LOG_VERIFICATIONS
from modwatch.review.database import now
from modwatch.review.log.verification import LogReport, verify_log

if TYPE_CHECKING:  # 20 MiB, which the console does not need
    from modwatch.data.lake.delta import Lake

_log = logging.getLogger(__name__)

_WITNESS, _TIMESTAMP = ".witness.json", ".witness.json.tsr"

#: The names of witnesses, in the order of time.
_NAME = "%Y%m%dT%H%M%S.%fZ"

#: How far the authority's clock may be from that of the database.
_CLOCKS = timedelta(hours=1)


@dataclass(frozen=True, kw_only=True)
class Newest:
    """The newest witness of a place, or why there is none to compare with."""

    #: The witness; None: there is none, or it is not valid.
    text: str | None = None
    #: Its time, UTC; None for one that was given by hand, or if there is none.
    moment: datetime | None = None
    #: Why none is used; empty: one is, or is `invalid`.
    unused: str = ""
    #: Whether the place cannot be read.
    unreadable: bool = False
    #: What is wrong with it; empty: nothing.
    invalid: str = ""

    @property
    def sentence(self) -> str:
        """What a verification is compared with.

        >>> Newest(unused="MODWATCH_WITNESS_FOLDER is not set").sentence
        'no witness was used: MODWATCH_WITNESS_FOLDER is not set'
        """
        if self.unused:
            return f"no witness was used: {self.unused}"
        of = f" of {self.moment:%Y-%m-%d %H:%M} UTC" if self.moment else ""
        return self.invalid or f"compared with the witness{of}"

    def report(self, engine: Engine) -> LogReport:
        """Verify the log against the witness; an `invalid` one is the first problem.

        Raises `LedgerError` for one given by hand that is not valid.
        """
        report = verify_log(engine, self.text)
        if self.invalid:
            report = replace(report, problems=(self.invalid, *report.problems))
        return report


def newest(place: Folder | None, authority: Authority | None) -> Newest:
    """Return the newest witness of `place`, verified with its timestamp where there is `authority`.

    What cannot be read, or is no witness, is a part of the answer.
    """
    if place is None:
        return Newest(unused="MODWATCH_WITNESS_FOLDER is not set")
    try:
        return _newest(place, authority)
    except LakeError as exc:
        return Newest(unused=str(exc), unreadable=True)
    except (TimestampError, LedgerError) as exc:
        return Newest(invalid=f"the newest witness is not valid: {exc}")


def verify_and_witness(
    engine: Engine, place: Folder | None, authority: Authority | None = None
) -> tuple[LogReport, datetime | None, str]:
    """Verify the log against the newest witness in `place`; if it is intact, write a new one.

    Returns the report, the time of the newest witness, the new one if it was written, and why the
    place or the authority could not be used, empty if they could: the log is verified all the same,
    as it is without a place. Raises `DatabaseError`.
    """
    known = newest(place, authority)
    report, last = known.report(engine), known.moment
    failure = known.unused if known.unreadable else ""
    if place is not None and not failure and report.intact:
        try:
            last = _write(place, report, authority)
        except (LakeError, TimestampError) as exc:
            failure = str(exc)
    return report, last, failure


def _newest(place: Folder, authority: Authority | None) -> Newest:
    """Return the newest witness in `place`.

    Raises:
        LakeError: the place cannot be read.
        TimestampError: the timestamp of the newest witness is missing, or is not valid, or is of
            another time than its name.
        LedgerError: the newest witness is none, or is of another time than its name, or covers
            less than one before it.
    """
    names = sorted(name for name in place.names() if name.endswith(_WITNESS))
    if not names:
        return Newest(unused="the folder of MODWATCH_WITNESS_FOLDER has none yet")
    name = names[-1]
    content = place.read(name) or b""
    witness = content.decode(errors="replace")
    known = witness_in(witness)
    moment = _moment(known.at)
    if moment.strftime(_NAME) != name.removesuffix(_WITNESS):
        raise LedgerError(f"the witness {name} is not of the time in its name")
    if authority is not None and authority.url:
        answer = place.read(name.removesuffix(_WITNESS) + _TIMESTAMP)
        if answer is None:
            raise TimestampError(f"the witness {name} has no timestamp; it may be forged")
        authority.verify(answer, content, moment, before=_CLOCKS, after=_CLOCKS)
    with ThreadPoolExecutor(16) as pool:
        for earlier in pool.map(place.read, names[:-1]):
            if not _covers(known, (earlier or b"").decode(errors="replace")):
                raise LedgerError(f"{name} covers less than one before it: it was cut or exchanged")
    return Newest(text=witness, moment=moment)


def _covers(known: Witness, earlier: str) -> bool:
    before: Mapping[int, Head] = {}
    with suppress(LedgerError):  # one that is not valid was reported in its time
        before = witness_in(earlier).heads
    return all(known.heads.get(one, EMPTY).length >= head.length for one, head in before.items())


def _moment(at: float | None) -> datetime:
    return datetime.fromtimestamp(at or 0.0, UTC)


def _write(place: Folder, report: LogReport, authority: Authority | None) -> datetime:
    """Write the witness of a report, and return its time."""
    moment, content = _moment(report.at), report.witness.encode()
    name = moment.strftime(_NAME)
    if authority is not None and authority.url:
        # First: a witness without its timestamp looks forged.
        place.write(name + _TIMESTAMP, authority.stamp(content))
    place.write(name + _WITNESS, content)
    return moment


def verify_decision_log(
    lake: "Lake",
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
    row: dict[str, Any] = {"dt": day, "completed": False, "decisions": 0, "problems": 0}
    row["witness_expected"] = place is not None
    try:
        row["clock_difference_seconds"] = abs(now(database) - clock()).total_seconds()
        report, last, failure = verify_and_witness(database, place, authority)
        row |= {
            "completed": True,
            "decisions": report.decisions,
            "problems": len(report.problems),
            "witness_age_hours": last and (_moment(report.at) - last) / timedelta(hours=1),
        }
    finally:
        batch = pa.RecordBatch.from_pylist([row], schema=LOG_VERIFICATIONS)
        lake.replace("log_verifications", day, [batch])
    if failure:
        _log.warning("No witness was written: %s.", failure, extra={"event": "witness_missing"})
    for problem in report.problems:
        _log.error("Decision log: %s.", problem, extra={"event": "log_altered"})
    return len(report.problems)

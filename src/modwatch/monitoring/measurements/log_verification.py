"""Daily verification of the decision log, recorded for the alert rules."""

import datetime
import logging

import pyarrow as pa
from sqlalchemy import Engine

from modwatch.data.lake.delta import Lake
from modwatch.data.lake.files import Folder
from modwatch.data.lake.schemas import LOG_VERIFICATIONS
from modwatch.review.database import now
from modwatch.review.log.verification import Authority, Witnessed, verify_and_witness, verify_log

_log = logging.getLogger(__name__)


def verify_decision_log(
    lake: Lake,
    database: Engine,
    day: datetime.date,
    place: Folder | None,
    authority: Authority | None,
) -> int:
    """Verify the decision log, and record the result as that of `day`; return how many problems.

    An intact log gets a new witness in `place`, if there is one. What is wrong is logged without
    quoting a decision.
    """
    if place is None:
        done = Witnessed(report=verify_log(database), last=None, verified_at=now(database))
    else:
        done = verify_and_witness(database, place, authority)
    if done.failure:
        _log.warning(
            "No witness was written: %s.", done.failure, extra={"event": "witness_missing"}
        )
    for problem in done.report.problems:
        _log.error("Decision log: %s.", problem, extra={"event": "log_altered"})
    age = (done.verified_at - done.last) / datetime.timedelta(hours=1) if done.last else None
    row = {
        "dt": day,
        "decisions": done.report.decisions,
        "problems": len(done.report.problems),
        "witness_age_hours": age,
        "witness_expected": place is not None,
    }
    batch = pa.RecordBatch.from_pylist([row], schema=LOG_VERIFICATIONS)
    lake.replace("log_verifications", day, [batch])
    return len(done.report.problems)

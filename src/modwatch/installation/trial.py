"""Validation of the first rows of a source in memory, before anything is installed."""

import datetime as dt
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa

from modwatch.common.account import Account
from modwatch.common.errors import SourceError
from modwatch.data.sources.files import FileSource
from modwatch.data.sources.landing import LandedRow, distinct, in_batches
from modwatch.data.sources.sql import SqlSource
from modwatch.data.validation.comments import validate_comments
from modwatch.data.validation.result import InvalidRows, percentage
from modwatch.data.validation.rules import Thresholds

_ROWS = 1000
#: The options of `modwatch init` that may help, by the reason of a quarantine.
_OPTIONS = {
    "malformed_record": "--delimiter, --quoting or --escape",
    "unclosed_quote": "--quoting none",
    "undecodable_text": "--encoding, such as cp1252",
    "unreadable_timestamp": "--column created_at=COLUMN or --time-format",
    "blank_text": "--column text=COLUMN where another column has the text; a deleted one has none",
    "malformed_language": "--column language=COLUMN",
    "unreadable_label": "--value WORD=toxic and --value WORD=other for each word, "
    "WORD=abstain, WORD=missing, --column label=COLUMN, --column label=none or --votes",
    "unreadable_views": "--column views=COLUMN or --column views=none",
    "unreadable_flag": "--value WORD=toxic and --value WORD=other for each word, --column "
    "flagged=COLUMN, or --column flagged=none where the score and its threshold decide",
    "unreadable_decision": "--value WORD=removed, WORD=limited or WORD=kept for each word, or "
    "WORD=abstain for no decision",
    "unreadable_decided_by": "--value WORD=model, WORD=rule or WORD=person for each word",
    **dict.fromkeys(("timestamp_without_zone", "time_outside_day"), "--timezone"),
    "duplicate_id": "--column comment_id=COLUMN; these rows have one id and other values",
    "missing_id": "--column comment_id=COLUMN, or --generate-ids where no row has an id",
    "long_id": "--column comment_id=COLUMN",
    "rounded_id": "an export with the ids as text: a spreadsheet rounded them",
    **dict.fromkeys(
        ("unreadable_probability", "missing_probability", "probability_out_of_range"),
        "--own-scores",
    ),
}


def try_source(source: FileSource | SqlSource, day: dt.date) -> str:
    """Return, in lines, how many of the first rows are valid, and why the others are not.

    They are validated at once, as rows of `day`, with the ids of all their days. Of a database,
    they are rows of `day`.

    Raises:
        SourceError: there is no row, or so many would be quarantined that validation fails.
    """
    found = list(islice(source.first_rows(_ROWS, day), _ROWS))
    if not found:
        raise SourceError(f"{source.name} has no row of {day}; name another --day, or make a view")
    days, account = {row.origin: of for of, row in found}, Account()
    rows = [
        row
        if row.created_at is None
        else replace(row, created_at=row.created_at + (day - days[row.origin]))
        for row in distinct(source.undeleted((row for _, row in found), account), account)
    ]
    landed = list(in_batches(day, rows))

    def read(columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
        return (batch.select(columns) if columns else batch for batch in landed)

    own_scores = source.own_scores is not None
    validated = validate_comments(read, day=day, own_scores=own_scores)
    invalid = validated.invalid
    labels = validated.result.left_out.get("label: unreadable_label", 0)
    if labels > Thresholds().left_out_warning * len(rows):
        raise SourceError(
            f"no settings are written: {labels:,} of {len(rows):,} rows have a label that is no "
            f"vote{_remedy('unreadable_label')}"
        )
    lost = [
        f"  {fault} {number:,}; used without the value{_remedy(fault.partition(': ')[2])}"
        for fault, number in validated.result.left_out.items()
    ]
    if deleted := account.places["deleted"]:
        lost.append(f"{deleted:,} more are deleted comments and are left out.")
    if repeated := account.places["repeated"]:
        lost.append(f"{repeated:,} more repeat one of them in every value and count once.")
    if not invalid.count:
        return "\n".join([f"The first {len(rows):,} rows are valid.", *lost])
    lines = [
        f"Of the first {len(rows):,} rows, {len(rows) - invalid.count:,} are valid; quarantined: "
        f"{invalid.count:,} ({percentage(invalid.count, len(rows))})",
        *_reasons(rows, invalid),
    ]
    failed = {rule.name: rule for rule in validated.result.failed_of("day")}
    if rule := failed.get("concentrated_loss"):
        raise SourceError("\n".join([*lines, f"no settings are written: lost are {rule.observed}"]))
    if rule := failed.get("quarantined_most"):
        lines[0] = (
            f"validation would fail, so no settings are written. {lines[0]}; a day may have "
            f"{rule.allowed}"
        )
        raise SourceError("\n".join([*lines, "Correct the data, or add an option"]))
    if rule := failed.get("quarantined_many"):
        lines[0] += f". More than usual: {rule.allowed}"
    return "\n".join([*lines, *lost])


def _reasons(rows: Sequence[LandedRow], invalid: InvalidRows) -> Iterator[str]:
    """Yield a line for each reason of a quarantine, with the first of its rows."""
    for reason, number in invalid.counts().items():
        name, _, line = rows[np.flatnonzero(invalid.failing(reason))[0]].origin.rpartition(":")
        if reason == "duplicate_id":
            line += f" has the id of line {rows[invalid.conflict[1]].origin.rpartition(':')[2]}"
        options = _remedy(reason) if number > Thresholds().quarantined_warning * len(rows) else ""
        if reason == "malformed_record" and not name.lower().endswith((".csv", ".tsv", ".txt")):
            options = "; a text or id is a list, an object or a rounded number: export it as text"
        yield f"  {reason} {number:,} (first: {Path(name).name}, line {line}){options}"


def _remedy(reason: str) -> str:
    return f"; may need {_OPTIONS[reason]}" if reason in _OPTIONS else ""

"""The hash of a decision, in Python and in SQL.

A format is a list of columns, each with its encoding. The hash is the SHA-256 of the hash of the
row before and of that list as JSON. Rows keep the format that they were written in, so new columns
leave old hashes valid. All hashes of an export can be computed without the database.
"""

import hashlib
import json
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

#: The hash before a moderator's first decision.
GENESIS = bytes(32)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class _Encoding:
    """The encoding of values of one type, the same in both languages."""

    plain: Callable[[Any], Any]
    #: The same, as an SQL expression of `{0}`.
    sql: str


_AS_IS = _Encoding(plain=lambda value: value, sql="{0}")
_DATE = _Encoding(plain=date.isoformat, sql="to_char({0}, 'YYYY-MM-DD')")
#: Microseconds since 1970, UTC.
_MOMENT = _Encoding(
    plain=lambda moment: (moment - _EPOCH) // timedelta(microseconds=1),
    sql="(extract(epoch from {0}) * 1000000)::bigint",
)
#: The eight bytes of the number, in hex, so that no digit is lost.
_NUMBER = _Encoding(
    plain=lambda number: struct.pack(">d", number).hex(), sql="encode(float8send({0}), 'hex')"
)

#: Format 2, in this order.
_COVERED = {
    "position": _AS_IS,
    "item_id": _AS_IS,
    "dt": _DATE,
    "comment_id": _AS_IS,
    "kind": _AS_IS,
    "item_version": _AS_IS,
    "moderator_id": _AS_IS,
    "action": _AS_IS,
    "label": _AS_IS,
    "policy_version": _AS_IS,
    "policy_code": _AS_IS,
    "reason": _AS_IS,
    "note": _AS_IS,
    "seconds": _NUMBER,
    "idempotency_key": _AS_IS,
    "refers_to": _AS_IS,
    "decided_at": _MOMENT,
}

#: The format of new rows.
CURRENT = 2

COVERED = tuple(_COVERED)

#: Format 1, which had no policy version, reason or reference.
_COVERED_1 = tuple(
    name for name in COVERED if name not in ("policy_version", "reason", "refers_to")
)


def row_hash(row: Mapping[str, Any]) -> bytes:
    """Return the SHA-256 of a row's previous hash and of the columns that its `format` covers.

    >>> empty = dict.fromkeys(COVERED) | {"previous_hash": GENESIS, "format": CURRENT}
    >>> row_hash(empty).hex()[:8] == row_hash(empty | {"label": 1}).hex()[:8]
    False
    """
    content = _content_1(row) if row["format"] == 1 else content_of(row)
    return hashlib.sha256(row["previous_hash"] + content.encode()).digest()


def content_of(row: Mapping[str, Any]) -> str:
    """Return the columns of `row` that format 2 covers, as JSON.

    >>> content_of(dict.fromkeys(COVERED) | {"position": 1, "seconds": 2.5, "note": "an é"})[:24]
    '[1, null, null, null, nu'
    """
    return json.dumps(
        [
            None if row[name] is None else encoding.plain(row[name])
            for name, encoding in _COVERED.items()
        ],
        ensure_ascii=False,
    )


def content_sql(expressions: Mapping[str, str]) -> str:
    """Return the SQL expression of `content_of`; `expressions` has one for each column.

    >>> content_sql({name: f"d.{name}" for name in COVERED})[:44]
    'json_build_array(d.position, d.item_id, to_c'
    """
    parts = (encoding.sql.format(expressions[name]) for name, encoding in _COVERED.items())
    return f"json_build_array({', '.join(parts)})::text"


def _content_1(row: Mapping[str, Any]) -> str:
    content = [row[name] for name in _COVERED_1]
    return json.dumps(content, default=_plain_1, separators=(",", ":"))


def _plain_1(value: date | datetime) -> str:
    if isinstance(value, datetime):
        value = value.astimezone(UTC)
    return value.isoformat()

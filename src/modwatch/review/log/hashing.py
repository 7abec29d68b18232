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

#: Bytes in hex.
_DIGEST = _Encoding(plain=bytes.hex, sql="encode({0}, 'hex')")
#: PostgreSQL's `xid8`, as text.
_TRANSACTION = _Encoding(plain=lambda number: number, sql="{0}::text")

#: Format 3, in this order.
_ENCODINGS = {
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
    "text_digest": _DIGEST,
    "outcome": _AS_IS,
    "transaction_id": _TRANSACTION,
}

#: The format of new rows.
CURRENT = 3

COVERED = tuple(_ENCODINGS)

#: The columns that each format covers. Format 2 did not cover what was judged, and with what
#: outcome; format 1 had no policy version, reason or reference.
COLUMNS_OF = {
    3: COVERED,
    2: COVERED[: COVERED.index("text_digest")],
    1: tuple(
        name
        for name in COVERED[: COVERED.index("text_digest")]
        if name not in ("policy_version", "reason", "refers_to")
    ),
}

#: Columns that must be null in rows of a format that does not cover them. The transaction is told
#: of every row.
_LATER = ("policy_version", "reason", "refers_to", "text_digest", "outcome")


def row_hash(row: Mapping[str, Any]) -> bytes:
    """Return the SHA-256 of a row's previous hash and of the columns that its `format` covers.

    >>> empty = dict.fromkeys(COVERED) | {"previous_hash": GENESIS, "format": CURRENT}
    >>> row_hash(empty).hex()[:8] == row_hash(empty | {"label": 1}).hex()[:8]
    False
    """
    content = _content_1(row) if row["format"] == 1 else content_of(row, row["format"])
    return hashlib.sha256(row["previous_hash"] + content.encode()).digest()


def unbound(row: Mapping[Any, Any]) -> bool:
    """Return whether a row has a value that its format, known or not, would not have covered."""
    covered = COLUMNS_OF.get(row["format"], ())
    return any(row.get(name) is not None for name in _LATER if name not in covered)


def content_of(row: Mapping[str, Any], format: int = CURRENT) -> str:
    """Return the columns of `row` that a format from 2 covers, as JSON.

    >>> content_of(dict.fromkeys(COVERED) | {"position": 1, "seconds": 2.5, "note": "an é"})[:24]
    '[1, null, null, null, nu'
    """
    return json.dumps(
        [
            None if row[name] is None else _ENCODINGS[name].plain(row[name])
            for name in COLUMNS_OF[format]
        ],
        ensure_ascii=False,
    )


def content_sql(expressions: Mapping[str, str], format: int = CURRENT) -> str:
    """Return the SQL expression of `content_of`; `expressions` has one for each column.

    >>> content_sql({name: f"d.{name}" for name in COVERED})[:44]
    'json_build_array(d.position, d.item_id, to_c'
    """
    parts = (_ENCODINGS[name].sql.format(expressions[name]) for name in COLUMNS_OF[format])
    return f"json_build_array({', '.join(parts)})::text"


def text_digest_sql(item: str) -> str:
    """Return the SQL expression of the SHA-256 of what a moderator of `item` reads: both texts.

    >>> text_digest_sql("held")
    "sha256(convert_to(json_build_array(held.text, held.parent_text)::text, 'UTF8'))"
    """
    texts = f"json_build_array({item}.text, {item}.parent_text)::text"
    return f"sha256(convert_to({texts}, 'UTF8'))"


def _content_1(row: Mapping[str, Any]) -> str:
    content = [row[name] for name in COLUMNS_OF[1]]
    return json.dumps(content, default=_plain_1, separators=(",", ":"))


def _plain_1(value: date | datetime) -> str:
    if isinstance(value, datetime):
        value = value.astimezone(UTC)
    return value.isoformat()

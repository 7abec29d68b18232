"""A chain as a text: one entry per line, in canonical JSON.

A line has the fields of the entry, with its `position` from 1, the hash `previous` of the line
before, and its own `hash`. Chain and text are equivalent: any other form of a line is rejected.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from modwatch.common.errors import LedgerError
from modwatch.common.ledger.chain import Entry, Verification, canonical, entry_hash, whole

T = TypeVar("T")


def line_hash(fields: Mapping[str, Any]) -> bytes:
    """Return the hash of an entry with these fields; `previous` is hexadecimal."""
    content = {name: value for name, value in fields.items() if name != "previous"}
    return entry_hash(bytes.fromhex(fields["previous"]), canonical(content))


def written_line(fields: Mapping[str, Any]) -> str:
    """Return the line of an entry with these fields."""
    return canonical({**fields, "hash": line_hash(fields).hex()}) + "\n"


def read_lines(text: str, name: str, parse: Callable[[dict[str, Any]], T]) -> list[T]:
    """Return the entries of a text, each as `parse` makes it from its fields without the hash.

    `parse` raises ValueError or TypeError for invalid fields. Raises `LedgerError` if the text is
    not a chain; the message names the first wrong line, and the chain by `name`.

    >>> line = written_line({"position": 1, "previous": "00", "kind": "planned"})
    >>> read_lines(line.replace("planned", "drawn"), "the chain", dict)
    Traceback (most recent call last):
    modwatch.common.errors.LedgerError: line 1 of the chain does not follow the entry before it
    """
    verification = Verification()
    entries = []
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        place = f"line {number} of {name}"
        try:
            fields = json.loads(line)
            hashes = bytes.fromhex(fields["previous"]), bytes.fromhex(fields.pop("hash"))
            entry = Entry(0, whole(fields["position"]), *hashes, place)
            record = parse(fields)
            verification.follow(entry, line_hash(fields))
            if not verification.problems and written_line(fields) != line:
                verification.report(
                    f"{place} is not in canonical form: it was edited, reformatted or cut"
                )
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise LedgerError(f"{place} is not an entry") from None
        if verification.problems:
            raise LedgerError(verification.problems[0])
        entries.append(record)
    return entries

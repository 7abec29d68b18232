"""Hash chains: how an entry is hashed, which texts it binds, and where a chain breaks.

The hash of an entry is the SHA-256 of the hash of the entry before it and of the entry's content, a
JSON text that includes its position. A text (a comment, a note) enters the content only as a
commitment, the SHA-256 of a random salt and the text. Salt and text are stored together outside
the entry: while they exist, they prove what the entry binds; once both are erased, the text cannot
be guessed from the entry, and the chain still verifies.

Someone who can rewrite a whole chain can forge all of it, so a witness, the heads of all chains and
the time, is stored out of their reach and compared with the next verification. Times rise along a
chain, and lie within the witnesses around them.

As a text, a chain has one entry per line, in canonical JSON: the fields of the entry, its
`position` from 1, the hash `previous` of the line before, and its own `hash`. Chain and text are
equivalent: any other form of a line is rejected.
"""

import hashlib
import json
import secrets
from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from datetime import UTC, datetime
from math import inf
from typing import Any, NamedTuple, TypeVar

from modwatch.common.errors import LedgerError

#: The hash before the first entry.
GENESIS = bytes(32)

_SALT_BYTES = 16

#: Problems of a kind, in a chain, that are named; the others are counted.
_MOST_PROBLEMS = 20

#: Kinds that are told apart: invented chains must not fill the memory.
_MOST_KINDS = 1_000

#: How far a time may be before the one that it follows, in seconds: a clock that is set, and
#: transactions that end after a witness.
CLOCKS = 300.0


class Head(NamedTuple):
    """The last entry of a chain; its position is the chain's length."""

    length: int
    hash: bytes


EMPTY = Head(0, GENESIS)


class Entry(NamedTuple):
    """What a chain consists of: the content of an entry is verified through its hash."""

    chain: int
    #: From 1.
    position: int
    previous_hash: bytes
    hash: bytes
    #: The entry's name in messages.
    place: str
    #: Seconds since 1970; None: the time is not the ledger's.
    at: float | None = None


class Witness(NamedTuple):
    """What was known of all chains at a time."""

    heads: Mapping[int, Head]
    #: Seconds since 1970; None: unknown.
    at: float | None = None


def canonical(document: Any) -> str:
    """Return the one JSON text of a document.

    >>> canonical({"b": "é", "a": [1.0, None]})
    '{"a":[1.0,null],"b":"\\\\u00e9"}'
    """
    return json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False)


def entry_hash(previous: bytes, content: str) -> bytes:
    """Return the hash of an entry.

    >>> entry_hash(GENESIS, "[1]") == entry_hash(GENESIS, "[2]")
    False
    """
    return hashlib.sha256(previous + content.encode()).digest()


def new_salt() -> bytes:
    """Return a random salt, one per text: it is what keeps short texts from being guessed."""
    return secrets.token_bytes(_SALT_BYTES)


def commitment(salt: bytes, text: str) -> bytes:
    """Return the commitment to a text.

    >>> commitment(bytes(16), "a") == commitment(bytes(16), "b")
    False
    """
    return hashlib.sha256(salt + text.encode()).digest()


def opens(committed: bytes | None, salt: bytes | None, text: str | None) -> bool:
    """Return whether salt and text are those of a commitment, or all three are missing.

    >>> opens(commitment(bytes(16), "a"), bytes(16), "a"), opens(None, None, None)
    (True, True)
    >>> opens(None, None, "a")
    False
    """
    if salt is None or text is None:
        return committed is None and salt is None and text is None
    return committed == commitment(salt, text)


class Verification:
    """Follows the chains of a ledger in parallel, entry by entry, and collects their problems.

    `witness` has heads that must be part of the chains, and `now` is the time, in seconds since
    1970. With `partial`, gaps are allowed. `name` returns the name of a chain for messages.
    """

    def __init__(
        self,
        witness: Witness | None = None,
        *,
        now: float = inf,
        partial: bool = False,
        name: Callable[[int], str] = lambda _: "the chain",
    ) -> None:
        self.heads: dict[int, Head] = {}
        #: How many were found.
        self.found = 0
        self._named: list[str] = []
        self._kinds: Counter[Hashable] = Counter()
        self._witness = witness or Witness({})
        self._latest: dict[int, float] = {}
        self._now = now
        self._partial = partial
        self._name = name
        if (self._witness.at or 0) > now + CLOCKS:
            self.report("the witness is dated in the future: its clock or this one is wrong")

    @property
    def problems(self) -> list[str]:
        """One sentence each: the first twenty of a kind, and how many more there are."""
        more = self.found - len(self._named)
        return [*self._named, *([f"{more:,} more problems of these kinds"] if more else [])]

    def follow(self, entry: Entry, expected: bytes | None) -> None:
        """Verify `entry`, whose hash must be `expected`; None: no hash fits its content."""
        last = self.heads.get(entry.chain, EMPTY)
        if (
            entry.position != last.length + 1
            or entry.previous_hash != last.hash
            or entry.hash != expected
            or self._witness.heads
        ):
            self._find_problems(entry, last, expected)
        if entry.at is not None:
            self._compare_time(entry, entry.at)
        # An invented entry at another position does not stand between two that follow each other.
        if entry.position == last.length + 1 or entry.hash == expected:
            self.heads[entry.chain] = Head(entry.position, entry.hash)

    def compare(self, recorded: Mapping[int, Head]) -> None:
        """Compare the heads with the recorded ones."""
        for chain in sorted(self.heads.keys() | recorded.keys()):
            head, record = self.heads.get(chain, EMPTY), recorded.get(chain)
            if head != record:
                self.report(
                    f"{self._name(chain)} ends at position {head.length}, but its recorded end is "
                    f"{record.length if record else 'none'}",
                    "recorded end",
                )

    def finish(self) -> None:
        """Find witnessed entries that are missing."""
        for chain, seen in sorted(self._witness.heads.items()):
            length = self.heads.get(chain, EMPTY).length
            if length < seen.length:
                self.report(
                    f"{self._name(chain)} ends at position {length}, but the witness covers it up "
                    f"to {seen.length}",
                    "witnessed end",
                )

    def report(self, problem: str, *kind: Hashable) -> None:
        """Record `problem`; of each kind only the first ones are named."""
        self.found += 1
        if kind not in self._kinds and len(self._kinds) >= _MOST_KINDS:
            kind = ()
        self._kinds[kind] += 1
        if self._kinds[kind] <= _MOST_PROBLEMS:
            self._named.append(problem)

    def _find_problems(self, entry: Entry, last: Head, expected: bytes | None) -> None:
        place, chain = entry.place, entry.chain
        if entry.position <= last.length:
            self.report(
                f"{place} is out of order: it comes after position {last.length}", chain, "order"
            )
        elif entry.position > last.length + 1:
            if not self._partial:
                self.report(
                    f"entries are missing before {place}: the chain was at position {last.length}",
                    chain,
                    "missing",
                )
        elif entry.previous_hash != last.hash:
            self.report(f"{place} does not follow the entry before it", chain, "follow")
        if entry.hash != expected:
            self.report(
                f"{place} was changed: its hash does not match its content",
                chain,
                "changed",
                entry.position == last.length + 1,
            )
        seen = self._witness.heads.get(chain, EMPTY)
        if seen.length == entry.position and seen.hash != entry.hash:
            self.report(f"{place} is not the one that was witnessed there", chain, "witness")

    def _compare_time(self, entry: Entry, at: float) -> None:
        """Report a time before that of an earlier entry or witness, or after that of a later."""
        latest, until = self._latest.get(entry.chain, -inf), self._now
        if (seen := self._witness.at) is not None:
            if entry.position > self._witness.heads.get(entry.chain, EMPTY).length:
                latest = max(latest, seen)
            else:
                until = min(until, seen)
        if at < latest - CLOCKS:
            self.report(
                f"{entry.place} is dated before the entry, or the witness, before it",
                entry.chain,
                "time",
            )
        if at > until + CLOCKS:
            whose = "of the witness that covers it" if until < self._now else "of its verification"
            self.report(f"{entry.place} is dated after the time {whose}", entry.chain, "time")
        elif at > latest:
            self._latest[entry.chain] = at


def witness_of(heads: Mapping[int, Head], at: float | None = None) -> str:
    """Return a witness as a line of JSON: `{"heads": [[chain, length, hash], …], "at": …}`.

    `at` is the time in ISO 8601, UTC, or null.
    """
    rows = [[chain, head.length, head.hash.hex()] for chain, head in sorted(heads.items())]
    time = None if at is None else datetime.fromtimestamp(at, UTC).isoformat()
    return json.dumps({"heads": rows, "at": time})


def witness_in(line: str | None) -> Witness:
    """Return the witness in a line of JSON, an empty one for None; raise `LedgerError` if invalid.

    >>> witness_in(witness_of({1: Head(2, bytes(32))}, 0.5))[0][1].length
    2
    """
    if line is None:
        return Witness({})
    try:
        document = json.loads(line)
        at, heads = document["at"], {}
        for chain, length, last in document["heads"]:
            heads[whole(chain)] = Head(abs(whole(length)), bytes.fromhex(last))
        time = None if at is None else datetime.fromisoformat(at).timestamp()
        written = witness_of(heads, time)
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        written = ""
    if not written or written != line.strip():  # a time without its zone, a negative length
        raise LedgerError(
            "the witness is not valid; pass the complete line of JSON from `LogReport.witness`"
        )
    return Witness(heads, time)


def whole(value: object) -> int:
    """Return `value` if it is an integer of 8 bytes; raise TypeError otherwise."""
    if type(value) is not int or not -(2**63) <= value < 2**63:
        raise TypeError
    return value


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

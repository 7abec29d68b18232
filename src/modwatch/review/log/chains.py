"""Follows hash chains row by row and tells where they break."""

import json
from collections.abc import Mapping
from typing import NamedTuple

from modwatch.common.errors import QueueError
from modwatch.review.log.hashing import GENESIS

_MOST_PROBLEMS = 100

#: The chain of the events; the other chains have the number of their moderator, from 1.
EVENTS = 0


class ChainEnd(NamedTuple):
    """The end of a chain."""

    length: int
    hash: bytes


EMPTY = ChainEnd(0, GENESIS)


class Link(NamedTuple):
    """One row of a chain."""

    id: int
    #: `EVENTS`, or the moderator's id.
    chain: int
    position: int
    previous_hash: bytes
    hash: bytes

    @property
    def place(self) -> str:
        """Where the row stands, for messages."""
        if self.chain == EVENTS:
            return f"event {self.id} (position {self.position})"
        return f"decision {self.id} (moderator {self.chain}, position {self.position})"


class Chains:
    """The verification of all chains in parallel.

    `witnessed` are ends that must be part of the chains. With `partial`, gaps are allowed.
    """

    def __init__(self, witnessed: Mapping[int, ChainEnd], *, partial: bool = False) -> None:
        self.ends: dict[int, ChainEnd] = {}
        self.problems: list[str] = []
        self._witnessed = witnessed
        self._partial = partial

    def follow(self, link: Link, expected: bytes | None) -> None:
        """Verify `link`, whose hash must be `expected`."""
        last = self.ends.get(link.chain, EMPTY)
        if (
            link.position != last.length + 1
            or link.previous_hash != last.hash
            or link.hash != expected
            or self._witnessed
        ):
            self._find_problems(link, last, expected)
        self.ends[link.chain] = ChainEnd(link.position, link.hash)

    def compare(self, recorded: Mapping[int, ChainEnd]) -> None:
        """Compare the ends of the chains with the recorded ones."""
        for chain in sorted(self.ends.keys() | recorded.keys()):
            end, record = self.ends.get(chain, EMPTY), recorded.get(chain)
            if end != record:
                self.complain(
                    f"{_name(chain)} ends at position {end.length}, but its recorded end is "
                    f"{record.length if record else 'none'}"
                )

    def finish(self) -> None:
        """Find witnessed rows that are missing."""
        for chain, seen in sorted(self._witnessed.items()):
            length = self.ends.get(chain, EMPTY).length
            if length < seen.length:
                self.complain(
                    f"{_name(chain)} ends at position {length}, but the witness covers it up to "
                    f"{seen.length}"
                )

    def complain(self, problem: str) -> None:
        """Record `problem`, unless there are too many."""
        if len(self.problems) < _MOST_PROBLEMS:
            self.problems.append(problem)

    def _find_problems(self, link: Link, last: ChainEnd, expected: bytes | None) -> None:
        where = link.place
        if link.position <= last.length:
            self.complain(f"{where} is out of order: it comes after position {last.length}")
        elif link.position > last.length + 1:
            if not self._partial:
                self.complain(
                    f"rows are missing before {where}: the chain was at position {last.length}"
                )
        elif link.previous_hash != last.hash:
            self.complain(f"{where} does not follow the row before it")
        if link.hash != expected:
            self.complain(f"{where} was changed: its hash does not match its content")
        seen = self._witnessed.get(link.chain, EMPTY)
        if seen.length == link.position and seen.hash != link.hash:
            self.complain(f"{where} is not the one that was witnessed there")


def witness_of(ends: Mapping[int, ChainEnd]) -> str:
    """Return ends of chains as a line of JSON: `[[chain, length, hash], …]`."""
    return json.dumps([[chain, end.length, end.hash.hex()] for chain, end in sorted(ends.items())])


def ends_of(witness: str | None) -> dict[int, ChainEnd]:
    """Return the ends that a witness names; raise `QueueError` if it is invalid.

    >>> ends_of(witness_of({1: ChainEnd(2, bytes(32))}))[1].length
    2
    """
    try:
        return {
            whole(chain): ChainEnd(whole(length), bytes.fromhex(last))
            for chain, length, last in json.loads("[]" if witness is None else witness)
        }
    except (ValueError, TypeError, RecursionError):
        raise QueueError(
            "the witness is not valid; pass the complete line of JSON from `LogReport.witness`"
        ) from None


def whole(value: object) -> int:
    """Return `value` if it is an integer; raise TypeError otherwise."""
    if type(value) is not int:
        raise TypeError
    return value


def _name(chain: int) -> str:
    return "the chain of events" if chain == EVENTS else f"the chain of moderator {chain}"

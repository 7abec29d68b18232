"""The ledger of an audit: its steps in order, who took them, and the files that they sealed.

Each event contains the SHA-256 of the files of its step. The chain is a text with one line per
event (`common.ledger.chain`). Notes are in a file of their own, with the salts with which the
events commit to them. Chain and files suffice to verify the audit.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, field, replace
from datetime import UTC, datetime
from typing import Any

from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

from modwatch.common.errors import AuditError, LedgerError
from modwatch.common.ledger.chain import (
    GENESIS,
    canonical,
    commitment,
    line_hash,
    new_salt,
    opens,
    read_lines,
    written_line,
)

#: Events that may follow each event; None is the start. `drawn` recurs in an adaptive audit.
FOLLOWS: dict[str | None, tuple[str, ...]] = {
    None: ("planned",),
    "planned": ("approved", "cancelled"),
    "approved": ("drawn", "cancelled"),
    "drawn": ("labelled", "cancelled"),
    "labelled": ("drawn", "estimated", "cancelled"),
    "estimated": ("signed_off", "cancelled"),
    "signed_off": ("published", "cancelled"),
    "published": (),
    "cancelled": (),
}

START = GENESIS.hex()

#: Fact of a labelling that was stopped: the audit continues without the missing labels and later
#: stages.
STOPPED = "stopped"

#: Fact of a cancellation: how many labels people had given.
LABELS = "labels"


@dataclass(frozen=True, kw_only=True, config=ConfigDict(strict=True, extra="forbid"))
class Event:
    """One step of an audit."""

    audit: str
    #: In the chain, from 1.
    position: int
    #: One of FOLLOWS.
    action: str
    #: Pseudonym of the person, or `modwatch`.
    actor: str
    #: UTC, ISO 8601.
    at: str
    #: SHA-256 in hexadecimal of each file of the step, by name.
    files: Mapping[str, str] = field(default_factory=dict)
    #: What the step fixes in addition to its files, such as the parts of the seed.
    facts: Mapping[str, str] = field(default_factory=dict)
    #: Hash of the event before.
    previous: str = START
    #: Commitment to the note, in hexadecimal; empty without a note.
    note_commitment: str = ""
    #: Reason or remark, never the text of a comment; not in the chain.
    note: str = ""
    #: Of the note's commitment, in hexadecimal; not in the chain.
    note_salt: str = ""

    @property
    def digest(self) -> str:
        """Hash of the event, in hexadecimal."""
        return line_hash(self.document).hex()

    @property
    def document(self) -> dict[str, object]:
        """The fields in the chain."""
        return {name: value for name, value in asdict(self).items() if name not in _NOTE}


#: The fields of an event in the file of notes.
_NOTE = ("note", "note_salt")


def file_digest(content: bytes) -> str:
    """Return the SHA-256 of a file, in hexadecimal.

    >>> file_digest(b"")[:8]
    'e3b0c442'
    """
    return hashlib.sha256(content).hexdigest()


def following(
    chain: Sequence[Event],
    *,
    audit: str,
    action: str,
    actor: str,
    at: datetime,
    files: Mapping[str, bytes] | None = None,
    note: str = "",
    facts: Mapping[str, str] | None = None,
) -> Event:
    """Return the event that continues `chain`.

    Raises:
        AuditError: out of order; the message names what must come first. Or the chain belongs to
            another audit, or `at` is before its last event.

    >>> now = datetime(2026, 1, 5, tzinfo=UTC)
    >>> first = following([], audit="a", action="planned", actor="ann", at=now)
    >>> following([first], audit="a", action="approved", actor="bob", at=now).position
    2
    >>> following([first], audit="a", action="drawn", actor="bob", at=now)
    Traceback (most recent call last):
    modwatch.common.errors.AuditError: audit 'a' cannot be drawn after it was planned: only \
approved or labelled audits can be
    """
    if chain and chain[0].audit != audit:
        raise AuditError(f"audit {audit!r}: the chain belongs to audit {chain[0].audit!r}")
    refuse_out_of_order(chain, audit=audit, action=action)
    if chain and at < moment(chain[-1].at):
        raise AuditError(
            f"audit {audit!r}: the time {at} is before the last step at {chain[-1].at}; correct "
            "the clock, or wait"
        )
    event = Event(
        audit=audit,
        position=len(chain) + 1,
        action=action,
        actor=actor,
        at=at.astimezone(UTC).isoformat(),
        files={name: file_digest(content) for name, content in (files or {}).items()},
        facts=dict(facts or {}),
        previous=chain[-1].digest if chain else START,
    )
    return noted(event, note)


def noted(event: Event, note: str) -> Event:
    """Return an event that commits to another note."""
    if not note:
        return replace(event, note="", note_salt="", note_commitment="")
    salt = new_salt()
    return replace(
        event, note=note, note_salt=salt.hex(), note_commitment=commitment(salt, note).hex()
    )


def refuse_out_of_order(chain: Sequence[Event], *, audit: str, action: str) -> None:
    """Raise AuditError unless `action` may come next."""
    last = chain[-1].action if chain else None
    if action in FOLLOWS[last]:
        return
    if last is None:
        raise AuditError(f"audit {audit!r} has no plan; plan it first")
    states = [state for state, actions in FOLLOWS.items() if state and action in actions]
    only = f": only {' or '.join(states)} audits can be" if states else ""
    message = f"audit {audit!r} cannot be {action} after it was {last}{only}"
    raise AuditError(message.replace("_", " "))


def written(chain: Sequence[Event]) -> str:
    """Return the chain as text: one line per event, with its hash."""
    return "".join(written_line(event.document) for event in chain)


def written_notes(chain: Sequence[Event]) -> bytes:
    """Return the file of the notes and their salts, by position."""
    notes = {
        str(event.position): {"note": event.note, "note_salt": event.note_salt}
        for event in chain
        if event.note
    }
    return (canonical(notes) + "\n").encode()


def read(text: str, notes: bytes = b"") -> list[Event]:
    """Return the chain in a text, with the notes in a file; `note_problems` compares them.

    Raises:
        AuditError: the text is not a chain, a hash does not match, or the order is invalid; the
            message names the line.

    >>> now = datetime(2026, 1, 5, tzinfo=UTC)
    >>> first = following([], audit="a", action="planned", actor="ann", at=now, note="a trial")
    >>> read(written([first]), written_notes([first])) == [first]
    True
    """
    try:
        chain = read_lines(text, "the chain", _event)
    except LedgerError as exc:
        raise AuditError(str(exc)) from None
    for number, event in enumerate(chain):
        place = f"line {number + 1} of the chain"
        if event.at != moment(event.at).isoformat():
            raise AuditError(f"the time on {place} is not in UTC")
        if number and event.audit != chain[0].audit:
            raise AuditError(f"{place} belongs to another audit")
        if number and moment(event.at) < moment(chain[number - 1].at):
            raise AuditError(f"{place} has an earlier time than the line before it")
        refuse_out_of_order(chain[:number], audit=event.audit, action=event.action)
    opened = _read_notes(notes)
    return [
        replace(event, note=note, note_salt=salt)
        for event in chain
        for note, salt in [opened.get(event.position, ("", ""))]
    ]


def note_problems(chain: Sequence[Event]) -> Iterator[str]:
    """Yield the notes that are not the ones that their events commit to."""
    for event in chain:
        step = f"the note of the step {event.action.replace('_', ' ')}"
        try:
            committed = bytes.fromhex(event.note_commitment)
            salt = bytes.fromhex(event.note_salt)
            unchanged = opens(committed or None, salt or None, event.note or None)
        except ValueError:
            unchanged = False
        if event.note_commitment and not event.note:
            yield f"{step} is missing"
        elif not unchanged:
            yield f"{step} was changed: it is not the one that the step commits to"


def moment(text: str) -> datetime:
    """Return the time of a text in ISO 8601 with an offset; AuditError for anything else.

    >>> moment("2026-01-05T12:00:00+00:00").hour
    12
    """
    try:
        time = datetime.fromisoformat(text)
        if time.tzinfo is not None:
            return time.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise AuditError("A time is not in ISO 8601 with an offset from UTC.")


def first_of(chain: Sequence[Event], action: str) -> Event | None:
    """Return the first event of an action; None if the step was not taken."""
    return next((event for event in chain if event.action == action), None)


def all_of(chain: Sequence[Event], action: str) -> list[Event]:
    """Return the events of an action; of `drawn` and `labelled`, one for each stage."""
    return [event for event in chain if event.action == action]


def sealed_files(chain: Sequence[Event]) -> dict[str, str]:
    """Return the SHA-256 of every file of the chain, by name."""
    return {name: digest for event in chain for name, digest in event.files.items()}


def stopped(chain: Sequence[Event]) -> bool:
    """Return whether the labelling that was sealed last was stopped early.

    >>> now = datetime(2026, 1, 5, tzinfo=UTC)
    >>> first = following([], audit="a", action="planned", actor="ann", at=now)
    >>> stopped([first])
    False
    """
    sealed = all_of(chain, "labelled")
    return bool(sealed) and STOPPED in sealed[-1].facts


def stopping(why: str) -> str:
    """Return the note of a labelling that was stopped early.

    >>> stopping("the deadline")
    'stopped before all were labelled: the deadline'
    """
    return f"stopped before all were labelled: {why}" if why else "stopped before all were labelled"


def file_problems(chain: Sequence[Event], files: Mapping[str, bytes]) -> list[str]:
    """Return the problems of the notes and files of a chain; empty when there are none."""
    times = Counter(name for event in chain for name in event.files)
    problems = [*note_problems(chain)]
    problems += [f"{name} was sealed more than once" for name in times if times[name] > 1]
    for name, digest in sealed_files(chain).items():
        if name not in files:
            problems.append(f"{name} is missing")
        elif file_digest(files[name]) != digest:
            problems.append(f"{name} was changed after it was sealed")
    return problems


def _event(fields: dict[str, Any]) -> Event:
    event = Event(**fields)
    if event.document != fields:  # a field is missing, or does not belong into the chain
        raise ValueError
    return event


def _read_notes(content: bytes) -> dict[int, tuple[str, str]]:
    """Return note and salt by position; none for a file that is invalid, as if it were missing."""
    try:
        return {
            int(place): (str(fields["note"]), str(fields["note_salt"]))
            for place, fields in json.loads(content).items()
        }
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return {}

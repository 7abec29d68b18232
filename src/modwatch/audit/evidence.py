"""The hash chain of an audit: what was done, in which order, by whom, and the files that it left.

Each event holds the SHA-256 of the files of its step and the hash of the event before it. The chain
is a text of one JSON document a line; with the files beside it, it is all that a stranger needs.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, field
from datetime import UTC, datetime

from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

from modwatch.errors import AuditError

#: What may follow each event; None is the beginning. `drawn` comes again in an adaptive audit.
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

#: What must have happened first, in words.
_NEEDS = {
    "approved": "the plan is frozen",
    "drawn": "the plan is approved, or the first stage is labelled",
    "labelled": "the sample is drawn",
    "estimated": "the labels are sealed",
    "signed_off": "the result is estimated",
    "published": "the result is signed off",
    "cancelled": "the plan is frozen, and nothing is published",
}

START = "0" * 64

#: How the note of a labelling begins that somebody stopped: they wait for no more labels, and not
#: for a later stage.
STOPPED = "stopped before all were labelled"


@dataclass(frozen=True, kw_only=True, config=ConfigDict(strict=True, extra="forbid"))
class Event:
    """One step of an audit."""

    audit: str
    position: int
    #: One of FOLLOWS.
    action: str
    #: Pseudonym of the person, or `modwatch`.
    actor: str
    #: UTC, ISO 8601.
    at: str
    #: SHA-256 in hexadecimal of each file of the step, by name.
    files: Mapping[str, str] = field(default_factory=dict)
    #: Why, or what else is to be known: no text of a comment.
    note: str = ""
    previous: str = START

    @property
    def digest(self) -> str:
        """SHA-256 of the event, in hexadecimal."""
        return hashlib.sha256(_canonical(asdict(self)).encode()).hexdigest()


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
) -> Event:
    """Return the event that goes on with `chain`.

    Raises:
        AuditError: out of order; the message says what has to come first. Or the chain is of
            another audit, or `at` is before its last event.

    >>> now = datetime(2026, 1, 5, tzinfo=UTC)
    >>> first = following([], audit="a", action="planned", actor="ann", at=now)
    >>> following([first], audit="a", action="approved", actor="bob", at=now).position
    1
    >>> following([first], audit="a", action="drawn", actor="bob", at=now)
    Traceback (most recent call last):
    modwatch.errors.AuditError: audit 'a': it cannot be drawn after it was planned: not before \
the plan is approved, or the first stage is labelled
    """
    if chain and chain[0].audit != audit:
        raise AuditError(f"audit {audit!r}: this is the chain of audit {chain[0].audit!r}")
    refuse_out_of_order(chain, audit=audit, action=action)
    if chain and at < moment(chain[-1].at):
        raise AuditError(
            f"audit {audit!r}: it is {at} and the last step was at {chain[-1].at}; set the clock "
            "right, or wait"
        )
    return Event(
        audit=audit,
        position=len(chain),
        action=action,
        actor=actor,
        at=at.astimezone(UTC).isoformat(),
        files={name: file_digest(content) for name, content in (files or {}).items()},
        note=note,
        previous=chain[-1].digest if chain else START,
    )


def refuse_out_of_order(chain: Sequence[Event], *, audit: str, action: str) -> None:
    """Raise AuditError unless `action` may come next."""
    last = chain[-1].action if chain else None
    if action in FOLLOWS[last]:
        return
    if last is None:
        raise AuditError(f"audit {audit!r}: there is no plan; plan it first")
    words = action.replace("_", " ")
    needs = _NEEDS.get(action, "it begins")
    raise AuditError(
        f"audit {audit!r}: it cannot be {words} after it was {last.replace('_', ' ')}: "
        f"not before {needs}"
    )


def written(chain: Sequence[Event]) -> str:
    """Return the chain as text: a line an event, with its hash."""
    return "".join(_line(each) for each in chain)


def read(text: str) -> list[Event]:
    """Return the chain that a text holds.

    Raises:
        AuditError: it is no chain, a hash does not fit, or the order is impossible; the message
            names the line.

    >>> now = datetime(2026, 1, 5, tzinfo=UTC)
    >>> first = following([], audit="a", action="planned", actor="ann", at=now)
    >>> read(written([first])) == [first]
    True
    """
    chain: list[Event] = []
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        event, told = _read_line(line, number)
        problem = _misplaced(event, chain)
        if event.digest != told:
            problem = "does not have the hash that it tells"
        elif _line(event) != line:
            problem = "is not in canonical form: it was edited, reformatted or cut"
        if problem:
            raise AuditError(f"line {number} of the chain {problem}")
        refuse_out_of_order(chain, audit=event.audit, action=event.action)
        chain.append(event)
    return chain


def moment(text: str) -> datetime:
    """Return the time that a text in ISO 8601 with an offset tells; AuditError for anything else.

    >>> moment("2026-01-05T12:00:00+00:00").hour
    12
    """
    try:
        told = datetime.fromisoformat(text)
        if told.tzinfo is not None:
            return told.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise AuditError("a time is not in ISO 8601 with its offset from UTC")


def sealed_files(chain: Sequence[Event]) -> dict[str, str]:
    """Return the SHA-256 of every file of the chain, by name."""
    return {name: digest for event in chain for name, digest in event.files.items()}


def stopped(chain: Sequence[Event]) -> bool:
    """Return whether somebody stopped the labelling that was sealed last.

    >>> now = datetime(2026, 1, 5, tzinfo=UTC)
    >>> first = following([], audit="a", action="planned", actor="ann", at=now)
    >>> stopped([first])
    False
    """
    notes = [event.note for event in chain if event.action == "labelled"]
    return bool(notes) and notes[-1].startswith(STOPPED)


def stopping(why: str) -> str:
    """Return the note of a labelling that is stopped.

    >>> stopping("the deadline")
    'stopped before all were labelled: the deadline'
    """
    return f"{STOPPED}: {why}" if why else STOPPED


def file_problems(chain: Sequence[Event], files: Mapping[str, bytes]) -> list[str]:
    """Return what is wrong with the files beside a chain, in words; empty when all is well."""
    times = Counter(name for event in chain for name in event.files)
    problems = [f"{name} was sealed more than once" for name in times if times[name] > 1]
    for name, digest in sealed_files(chain).items():
        if name not in files:
            problems.append(f"{name} is missing")
        elif file_digest(files[name]) != digest:
            problems.append(f"{name} was changed after it was sealed")
    return problems


def _read_line(line: str, number: int) -> tuple[Event, object]:
    """Return the event of a line, and the hash that the line tells."""
    try:
        fields = json.loads(line)
        told = fields.pop("hash")
        event = Event(**fields)
        if event.at != moment(event.at).isoformat():
            raise AuditError(f"the time on line {number} of the chain is not in UTC")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise AuditError(f"line {number} of the chain is no event") from None
    return event, told


def _misplaced(event: Event, chain: Sequence[Event]) -> str:
    """Return why an event does not go on with a chain; empty when it does."""
    if event.previous != (chain[-1].digest if chain else START):
        return "does not follow the line before it"
    if event.position != len(chain) or (chain and event.audit != chain[0].audit):
        return "is of another place or audit"
    if chain and moment(event.at) < moment(chain[-1].at):
        return "is of an earlier time than the line before it"
    return ""


def _line(event: Event) -> str:
    return _canonical(asdict(event) | {"hash": event.digest}) + "\n"


def _canonical(fields: Mapping[str, object]) -> str:
    return json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=True)

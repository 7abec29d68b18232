"""The hash chain of an audit: its steps in order, who took them, and the files that they sealed.

Each event contains the SHA-256 of the files of its step and the hash of the previous event. The
chain is a text with one JSON document per line. Chain and files suffice to verify the audit.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, field
from datetime import UTC, datetime

from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

from modwatch.common.errors import AuditError

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

START = "0" * 64

#: Start of the note of a labelling that was stopped: the audit continues without the missing labels
#: and later stages.
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
    #: Reason or remark; never the text of a comment.
    note: str = ""
    previous: str = START
    #: What the step fixes beside its files, such as the parts of the seed. Events without facts are
    #: written, and hashed, without the field, as by versions that did not have it.
    facts: Mapping[str, str] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """SHA-256 of the event, in hexadecimal."""
        return hashlib.sha256(_canonical(self.document).encode()).hexdigest()

    @property
    def document(self) -> dict[str, object]:
        """The fields as they are written and hashed."""
        fields = asdict(self)
        if not self.facts:
            del fields["facts"]
        return fields


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
        AuditError: out of order; the message says what must come first. Or the chain belongs to
            another audit, or `at` is before its last event.

    >>> now = datetime(2026, 1, 5, tzinfo=UTC)
    >>> first = following([], audit="a", action="planned", actor="ann", at=now)
    >>> following([first], audit="a", action="approved", actor="bob", at=now).position
    1
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
    return Event(
        audit=audit,
        position=len(chain),
        action=action,
        actor=actor,
        at=at.astimezone(UTC).isoformat(),
        files={name: file_digest(content) for name, content in (files or {}).items()},
        note=note,
        previous=chain[-1].digest if chain else START,
        facts=dict(facts or {}),
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
    return "".join(_line(each) for each in chain)


def read(text: str) -> list[Event]:
    """Return the chain in a text.

    Raises:
        AuditError: the text is not a chain, a hash does not match, or the order is invalid; the
            message names the line.

    >>> now = datetime(2026, 1, 5, tzinfo=UTC)
    >>> first = following([], audit="a", action="planned", actor="ann", at=now)
    >>> read(written([first])) == [first]
    True
    """
    chain: list[Event] = []
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        event, digest = _read_line(line, number)
        problem = _misplaced(event, chain)
        if event.digest != digest:
            problem = "does not match its hash"
        elif _line(event) != line:
            problem = "is not in canonical form: it was edited, reformatted or cut"
        if problem:
            raise AuditError(f"Line {number} of the chain {problem}.")
        refuse_out_of_order(chain, audit=event.audit, action=event.action)
        chain.append(event)
    return chain


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
    notes = [event.note for event in chain if event.action == "labelled"]
    return bool(notes) and notes[-1].startswith(STOPPED)


def stopping(why: str) -> str:
    """Return the note of a labelling that was stopped early.

    >>> stopping("the deadline")
    'stopped before all were labelled: the deadline'
    """
    return f"{STOPPED}: {why}" if why else STOPPED


def file_problems(chain: Sequence[Event], files: Mapping[str, bytes]) -> list[str]:
    """Return the problems of the files of a chain; empty when there are none."""
    times = Counter(name for event in chain for name in event.files)
    problems = [f"{name} was sealed more than once" for name in times if times[name] > 1]
    for name, digest in sealed_files(chain).items():
        if name not in files:
            problems.append(f"{name} is missing")
        elif file_digest(files[name]) != digest:
            problems.append(f"{name} was changed after it was sealed")
    return problems


def _read_line(line: str, number: int) -> tuple[Event, object]:
    """Return the event and the hash on a line."""
    try:
        fields = json.loads(line)
        digest = fields.pop("hash")
        event = Event(**fields)
        if event.at != moment(event.at).isoformat():
            raise AuditError(f"The time on line {number} of the chain is not in UTC.")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise AuditError(f"Line {number} of the chain is not an event.") from None
    return event, digest


def _misplaced(event: Event, chain: Sequence[Event]) -> str:
    """Return why an event does not continue a chain; empty when it does."""
    if event.previous != (chain[-1].digest if chain else START):
        return "does not follow the line before it"
    if event.position != len(chain) or (chain and event.audit != chain[0].audit):
        return "has another position or audit"
    if chain and moment(event.at) < moment(chain[-1].at):
        return "has an earlier time than the line before it"
    return ""


def _line(event: Event) -> str:
    return _canonical(event.document | {"hash": event.digest}) + "\n"


def _canonical(fields: Mapping[str, object]) -> str:
    return json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=True)

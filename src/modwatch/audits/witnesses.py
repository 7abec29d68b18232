"""What signatures and timestamps of the steps of an audit show."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from modwatch.audits import files
from modwatch.audits.evidence import Event, moment, written
from modwatch.audits.folder import AuditFolder
from modwatch.audits.publication import Level
from modwatch.common.errors import AuditError, TimestampError
from modwatch.common.ledger.signatures import Signers, read_signers
from modwatch.common.ledger.timestamps import Authority, read_roots
from modwatch.common.text import folded

#: The steps that are signed and timestamped.
WITNESSED = ("approved", "signed_off")

#: Tolerated difference between the clock of a step and that of the authority before it, and the
#: longest time in which a step is timestamped.
_CLOCKS, _LATEST = timedelta(minutes=5), timedelta(days=1)


@dataclass(frozen=True, kw_only=True)
class Witnesses:
    """The keys of signers, and an authority for timestamps; all optional.

    >>> Witnesses().stamp(b"") is None
    True
    """

    #: None: no one has a key.
    signers: Signers | None = None
    authority: Authority | None = None
    #: Whether each step must be signed, or timestamped, for which there are `signers`, or an
    #: `authority`.
    required: bool = False

    def stamp(self, content: bytes) -> bytes | None:
        """Return the timestamp of `content`; None without an authority to ask."""
        authority = self.authority
        return authority.stamp(content) if authority and authority.url else None

    def refuse_key(self, actor: str, key: Ed25519PrivateKey) -> None:
        """Raise AuditError unless `key` is the one that is registered for `actor`."""
        known = (self.signers or {}).get(folded(actor))
        if known is None:
            raise AuditError(f"{actor!r} has no key in signers.toml; add the public key")
        if known != key.public_key():
            raise AuditError(f"this is not the key of {actor!r} in signers.toml")

    def levels(self, folder: Mapping[str, bytes]) -> list[Level]:
        """Return what signatures and timestamps in valid files show."""
        return [
            self._level(
                folder,
                name="signatures",
                shows="who approved the plan and signed the result held the registered keys, and "
                "what they signed is unchanged",
                file=files.signature_file,
                missing="is not signed: anyone who can write the files can have put the name",
                unknown="is signed, and there is no file of signers to verify it with",
                find=None if self.signers is None else partial(_signature_problems, self.signers),
            ),
            self._level(
                folder,
                name="timestamps",
                shows="plan and result existed when the chain says, by the clock of an authority",
                file=files.timestamp_file,
                missing="has no timestamp: its time is only that of the own clock",
                unknown="has a timestamp, and no root certificates to verify it with",
                find=None
                if self.authority is None
                else partial(_timestamp_problems, self.authority),
            ),
        ]

    def _level(
        self,
        folder: Mapping[str, bytes],
        *,
        name: str,
        shows: str,
        file: Callable[[int], str],
        missing: str,
        unknown: str,
        find: Callable[[Event, bytes, bytes], Iterator[str]] | None,
    ) -> Level:
        """Return what the witnesses in one kind of `file` show.

        `find` yields what is wrong with that of a step, whose text it gets as well; None where
        there is nothing to verify it with.
        """
        problems: list[str] = []
        remarks: list[str] = []
        chain = AuditFolder(folder).chain
        for event in chain:
            if event.action not in WITNESSED:
                continue
            step = f"the step {event.action.replace('_', ' ')} by {event.actor!r}"
            witness = folder.get(file(event.position))
            if witness is None:
                (problems if self.required and find else remarks).append(f"{step} {missing}")
            elif find is None:
                remarks.append(f"{step} {unknown}")
            else:
                text = written(chain[: event.position]).encode()
                problems += [f"{step} {problem}" for problem in find(event, witness, text)]
        return Level(name=name, shows=shows, problems=problems, remarks=remarks)


def _signature_problems(
    signers: Signers, event: Event, signature: bytes, text: bytes
) -> Iterator[str]:
    key = signers.get(folded(event.actor))
    if key is None:
        yield "is signed, and the file of signers does not have the name"
        return
    try:
        key.verify(signature, text)
    except InvalidSignature:
        yield (
            "has a signature that is not valid: names, times, plan, labels or result were changed "
            "since, or someone else signed"
        )


def _timestamp_problems(
    authority: Authority, event: Event, answer: bytes, text: bytes
) -> Iterator[str]:
    try:
        authority.verify(answer, text, moment(event.at), before=_CLOCKS, after=_LATEST)
    except TimestampError as exc:
        yield f"has no valid timestamp: {exc}"


def read_witnesses(signers: Path | None, roots: Path | None) -> Witnesses:
    """Return who must vouch for an audit, by files of their keys and of roots of an authority."""
    return Witnesses(
        signers=read_signers(signers) if signers else None,
        authority=Authority(roots=read_roots(roots)) if roots else None,
        required=True,
    )

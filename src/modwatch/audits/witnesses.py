"""Witnesses of the steps of an audit: signers, and a time-stamp authority."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from modwatch.audits import files
from modwatch.audits.evidence import Event, moment, written
from modwatch.audits.folder import AuditFolder
from modwatch.audits.publication import Level
from modwatch.common.errors import AuditError, TimestampError
from modwatch.common.ledger import timestamps
from modwatch.common.ledger.signatures import Signers, read_signers, signed_by
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
    #: Root certificates of the authorities that are trusted.
    roots: Sequence[x509.Certificate] = ()
    #: URL of the authority that is asked for timestamps; it may contain a token.
    authority: str = field(default="", repr=False)
    #: Whether each step must be signed, or timestamped, for which there are `signers`, or `roots`.
    required: bool = False

    def stamp(self, content: bytes) -> bytes | None:
        """Return the timestamp of `content`; None without an authority."""
        return timestamps.stamp(self.authority, content, self.roots) if self.authority else None

    def refuse_key(self, actor: str, key: Ed25519PrivateKey) -> None:
        """Raise AuditError unless `key` is the one that is registered for `actor`."""
        known = (self.signers or {}).get(folded(actor))
        if known is None:
            raise AuditError(f"{actor!r} has no key in signers.toml; add the public key")
        if known != key.public_key():
            raise AuditError(f"this is not the key of {actor!r} in signers.toml")

    def levels(self, folder: Mapping[str, bytes]) -> list[Level]:
        """Return what signatures and timestamps in valid files show."""
        chain = AuditFolder(folder).chain
        return [self._signatures(chain, folder), self._timestamps(chain, folder)]

    def _signatures(self, chain: Sequence[Event], folder: Mapping[str, bytes]) -> Level:
        problems: list[str] = []
        remarks: list[str] = []
        unsigned = problems if self.required and self.signers is not None else remarks
        for event in _witnessed(chain):
            step = f"the step {event.action.replace('_', ' ')} by {event.actor!r}"
            signature = folder.get(files.signature_file(event.position))
            key = (self.signers or {}).get(folded(event.actor))
            if signature is None:
                unsigned.append(
                    f"{step} is not signed: anyone who can write the files can have put the name"
                )
            elif self.signers is None:
                remarks.append(
                    f"{step} is signed, and there is no file of signers to verify it with"
                )
            elif key is None:
                problems.append(f"{step} is signed, and the file of signers does not have the name")
            elif not signed_by(signature, _content(chain, event), key):
                problems.append(
                    f"{step} has a signature that is not valid: names, times, plan, labels or "
                    "result were changed since, or someone else signed"
                )
        return Level(
            name="signatures",
            shows="who approved the plan and signed the result held the registered keys, and what "
            "they signed is unchanged",
            problems=problems,
            remarks=remarks,
        )

    def _timestamps(self, chain: Sequence[Event], folder: Mapping[str, bytes]) -> Level:
        problems: list[str] = []
        remarks: list[str] = []
        for event in _witnessed(chain):
            step = f"the step {event.action.replace('_', ' ')}"
            answer = folder.get(files.timestamp_file(event.position))
            if answer is None:
                sentence = f"{step} has no timestamp: its time is only that of the own clock"
                (problems if self.required and self.roots else remarks).append(sentence)
            elif not self.roots:
                remarks.append(
                    f"{step} has a timestamp, and no root certificates to verify it with"
                )
            else:
                problems += self._stamped(chain, event, answer)
        return Level(
            name="timestamps",
            shows="plan and result existed when the chain says, by the clock of an authority",
            problems=problems,
            remarks=remarks,
        )

    def _stamped(self, chain: Sequence[Event], event: Event, answer: bytes) -> Iterator[str]:
        step = f"the step {event.action.replace('_', ' ')}"
        try:
            seen = timestamps.verify(answer, _content(chain, event), self.roots)
        except TimestampError as exc:
            yield f"{step}: {exc}. What it covers was changed, or the authority is not trusted"
            return
        at = moment(event.at)
        if not at - _CLOCKS <= seen <= at + _LATEST:
            yield (
                f"{step} says {at:%Y-%m-%d %H:%M} UTC, and the authority saw it at "
                f"{seen:%Y-%m-%d %H:%M} UTC: it was written anew, or the clock was wrong"
            )


def read_witnesses(signers: Path | None, roots: Path | None, **more: Any) -> Witnesses:
    """Return who vouches for audits, by the files of their keys and of an authority's roots."""
    return Witnesses(
        signers=read_signers(signers) if signers else None,
        roots=timestamps.read_roots(roots) if roots else (),
        **more,
    )


def _witnessed(chain: Sequence[Event]) -> list[Event]:
    return [event for event in chain if event.action in WITNESSED]


def _content(chain: Sequence[Event], event: Event) -> bytes:
    return written(chain[: event.position]).encode()

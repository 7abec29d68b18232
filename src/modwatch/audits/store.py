"""Keeps the evidence of audits: a folder for each, next to the tables of the lake."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NoReturn

from modwatch.audits import evidence, files
from modwatch.audits.evidence import Event
from modwatch.audits.folder import AuditFolder
from modwatch.audits.identities import MACHINE
from modwatch.common.errors import AuditError
from modwatch.data.lake.files import Folder


@dataclass(frozen=True, kw_only=True)
class AuditStore:
    """The folders of all audits.

    >>> AuditStore(root="memory://audits-of-an-example").names()
    []
    """

    #: Folder or URL.
    root: str
    #: Locks an audit by its name while a step of it is recorded.
    lock: Callable[[str], AbstractContextManager[None]] = lambda _: nullcontext()

    def names(self) -> list[str]:
        """Return the names of all audits."""
        return [name for name in self._folder.names() if "." not in name]

    def place(self, audit: str) -> str:
        """Return path or URL of an audit's folder."""
        return f"{self.root.rstrip('/')}/{audit}"

    def chain(self, audit: str) -> list[Event]:
        """Return the sealed steps, oldest first; none for an unknown audit.

        Raises:
            AuditError: the chain was changed.
        """
        names = (files.CHAIN, files.NOTES)
        contents = {name: self._folder.read(f"{audit}/{name}") or b"" for name in names}
        return AuditFolder(contents).chain

    def cancelled_labels(self, audit: str) -> int | None:
        """Return how many labels a cancelled audit had.

        None: it was not cancelled, or its chain is gone or was changed.
        """
        try:
            facts = self.chain(audit)[-1].facts
        except (AuditError, IndexError):
            return None
        labels = facts.get(evidence.LABELS, "")
        return int(labels) if labels.isdecimal() else None

    def read(self, audit: str) -> AuditFolder:
        """Return all files of an audit by name; AuditError for an unknown audit."""
        names = self._folder.names(audit)
        contents = {name: self._folder.read(f"{audit}/{name}") for name in names}
        existing = AuditFolder(
            (name, content) for name, content in contents.items() if content is not None
        )
        return existing if files.CHAIN in existing else self.raise_unknown(audit)

    def raise_unknown(self, audit: str) -> NoReturn:
        """Raise AuditError for an audit that does not exist, naming those that do."""
        known = ", ".join(self.names()) or "none"
        raise AuditError(f"no audit is called {audit!r}; existing audits: {known}")

    def file(self, audit: str, name: str) -> bytes:
        """Return one file of an audit; AuditError when it does not exist."""
        content = self._folder.read(f"{audit}/{name}")
        if content is None:
            raise AuditError(f"audit {audit!r} has no {name}")
        return content

    def record(
        self,
        audit: str,
        action: str,
        *,
        actor: str = MACHINE,
        content: Mapping[str, bytes] | None = None,
        note: str = "",
        facts: Mapping[str, str] | None = None,
    ) -> Event:
        """Write the files of a step and its event; return the event.

        The last step may be recorded again with the same files and changes nothing, so that a task
        that was killed in the middle can run again. Raises AuditError when the step is out of
        order, or was recorded before with other files.
        """
        content = content or {}
        with self.lock(audit):
            chain, now = self.chain(audit), datetime.now(UTC)
            if chain and chain[-1].action == action:
                digests = {name: evidence.file_digest(file) for name, file in content.items()}
                if dict(chain[-1].files) == digests:
                    return chain[-1]
                raise AuditError(
                    f"audit {audit!r} was already {action.replace('_', ' ')} with other contents; "
                    "sealed files cannot be replaced: plan another audit"
                )
            event = evidence.following(
                chain,
                audit=audit,
                action=action,
                actor=actor,
                at=now,
                files=content,
                note=note,
                facts=facts,
            )
            made = [*chain, event]
            written = {files.NOTES: evidence.written_notes(made)} if event.note else {}
            written |= {files.CHAIN: evidence.written(made).encode()}  # last: it seals the others
            for name, file in (dict(content) | written).items():
                self._folder.write(f"{audit}/{name}", file)
            return event

    def witness(self, audit: str, name: str, content: bytes) -> None:
        """Write a signature or timestamp of a chain."""
        self._folder.write(f"{audit}/{name}", content)

    @property
    def _folder(self) -> Folder:
        return Folder(root=self.root, holds="evidence of audits")

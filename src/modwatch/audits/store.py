"""Where the evidence of audits is kept: a folder an audit, beside the tables of the lake."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime

from modwatch.audit import evidence, files
from modwatch.audit.evidence import Event
from modwatch.errors import AuditError
from modwatch.lake.files import Folder

#: Who does what no person does.
MACHINE = "modwatch"


@dataclass(frozen=True, kw_only=True)
class AuditStore:
    """The folders of all audits.

    >>> AuditStore(root="memory://audits-of-an-example").names()
    []
    """

    #: Folder or URL.
    root: str
    #: Holds an audit by its name while a step of it is recorded.
    lock: Callable[[str], AbstractContextManager[None]] = lambda _: nullcontext()

    def names(self) -> list[str]:
        """Return the names of all audits."""
        return self._folder.names()

    def place(self, audit: str) -> str:
        """Return path or URL of an audit's folder."""
        return f"{self.root.rstrip('/')}/{audit}"

    def chain(self, audit: str) -> list[Event]:
        """Return what was done so far; nothing of an audit that there is not.

        Raises:
            AuditError: the chain was tampered with.
        """
        content = self._folder.read(f"{audit}/{files.CHAIN}")
        return evidence.read(content.decode(errors="replace")) if content else []

    def read(self, audit: str) -> dict[str, bytes]:
        """Return all files of an audit by name.

        Raises:
            AuditError: there is none of that name.
        """
        found = {name: self._folder.read(f"{audit}/{name}") for name in self._folder.names(audit)}
        there = {name: content for name, content in found.items() if content is not None}
        if files.CHAIN not in there:
            known = ", ".join(self.names()) or "none"
            raise AuditError(f"there is no audit {audit!r}; there are: {known}")
        return there

    def file(self, audit: str, name: str) -> bytes:
        """Return one file of an audit; AuditError when there is none."""
        content = self._folder.read(f"{audit}/{name}")
        if content is None:
            raise AuditError(f"there is no {name} of an audit {audit!r}")
        return content

    def ready(self, audit: str, action: str) -> dict[str, bytes]:
        """Return the same, for a step that is to be taken, perhaps once more.

        Raises:
            AuditError: there is no such audit, the step is out of order, or a file was changed
                since it was sealed.
        """
        there, chain = self.read(audit), self.chain(audit)
        if chain[-1].action != action:
            evidence.refuse_out_of_order(chain, audit=audit, action=action)
        problems = evidence.file_problems(chain, there)
        if problems:
            raise AuditError(f"audit {audit!r}: {problems[0]}")
        return there

    def record(
        self,
        audit: str,
        action: str,
        *,
        actor: str = MACHINE,
        content: Mapping[str, bytes] | None = None,
        note: str = "",
    ) -> Event:
        """Keep the files of a step, and then that it was done; return the event.

        The step that was done last, with the same files, may be done again and changes nothing:
        so a task that was killed in the middle of it is run again. Raises AuditError when the step
        is out of order, or was done before with other files.
        """
        with self.lock(audit):
            return self._recorded(audit, action, actor, dict(content or {}), note)

    def _recorded(
        self, audit: str, action: str, actor: str, content: Mapping[str, bytes], note: str
    ) -> Event:
        chain = self.chain(audit)
        digests = {name: evidence.file_digest(each) for name, each in content.items()}
        if chain and chain[-1].action == action:
            if dict(chain[-1].files) == digests:
                return chain[-1]
            raise AuditError(
                f"audit {audit!r} was {action.replace('_', ' ')} before, and otherwise; what is "
                "sealed stays as it is: plan another audit"
            )
        event = evidence.following(
            chain,
            audit=audit,
            action=action,
            actor=actor,
            at=datetime.now(UTC),
            files=content,
            note=note,
        )
        for name, each in content.items():
            self._folder.write(f"{audit}/{name}", each)
        self._folder.write(f"{audit}/{files.CHAIN}", evidence.written([*chain, event]).encode())
        return event

    @property
    def _folder(self) -> Folder:
        return Folder(root=self.root, holds="evidence of audits")

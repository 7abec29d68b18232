"""Somebody who can write every file of an audit, and makes all of them fit together."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from databases import unguarded
from sqlalchemy import text

from modwatch.audits import evidence, files
from modwatch.audits.evidence import Event
from modwatch.audits.publication import Publication, published_files
from modwatch.audits.verify import recomputed
from modwatch.data.lake.files import Folder
from modwatch.installation.resources import Resources
from modwatch.statistics.audit.labels import AuditLabel, key_of
from modwatch.statistics.audit.plan import AuditPlan

Change = Callable[[Event], Event]


def turned_round(resources: Resources) -> list[AuditLabel]:
    """Return the sealed labels, as "not against the rules" where the plan has none confirmed.

    A label that is confirmed would lack its confirmations.
    """
    folder = resources.audit_store.read("small")
    plan = AuditPlan.from_json(folder[files.PLAN].decode())
    drawn = files.read_sample(folder[files.sample_file(1)])
    alone = {
        key_of(comment) for comment in drawn if not plan.confirms(comment.stratum, comment.key)
    }
    labels = files.read_labels(folder[files.labels_file(1)])
    turned = [replace(item, label=0) if key_of(item) in alone else item for item in labels]
    assert turned != labels
    return turned


def forge(
    resources: Resources,
    changes: Mapping[str, bytes] | None = None,
    *,
    event: Change = lambda event: event,
    cut: int | None = None,
    redo: bool = True,
    audit: str = "small",
) -> None:
    """Change files and events of an audit, and do all over that follows: result, report, hashes.

    `cut` is how many steps stay. Without `redo`, result and published files are as in `changes`.
    """
    changes = dict(changes or {})
    folder = resources.audit_store.read(audit) | changes
    chain = resources.audit_store.chain(audit)[:cut]
    names = {name for item in chain for name in item.files}
    if redo and files.RESULT in names:
        folder[files.CHAIN] = evidence.written(_rechained(chain, folder, event)).encode()
        folder[files.RESULT] = recomputed(folder)
    if redo and files.REPORT in names:
        signed = _rechained(chain[:-1], folder, event)
        of = Publication.from_json(folder[files.PUBLICATION])
        plan = AuditPlan.from_json(folder[files.PLAN].decode())
        folder |= published_files(plan, json.loads(folder[files.RESULT]), signed, of)
        folder |= {name: item for name, item in changes.items() if name in names}
    forged = _rechained(chain, folder, event)
    folder[files.CHAIN] = evidence.written(forged).encode()
    folder[files.NOTES] = evidence.written_notes(forged)
    kept = Folder(root=resources.audit_store.root, holds="evidence")
    for name, content in folder.items():
        if name in names | {files.CHAIN, files.NOTES} or files.witnessed_steps(name):
            kept.write(f"{audit}/{name}", content)
        else:
            kept.remove(f"{audit}/{name}")


def remove_folder(resources: Resources, audit: str) -> None:
    """Remove an audit's folder, and what the queue has of it."""
    kept = Folder(root=resources.audit_store.root, holds="evidence")
    for name in resources.audit_store.read(audit):
        kept.remove(f"{audit}/{name}")
    (resources.settings.home / "lake" / "_audits" / audit).rmdir()


def without_triggers(resources: Resources, statement: str) -> None:
    """Run a statement as a superuser of the database does."""
    with unguarded(resources.database) as connection:
        connection.execute(text(statement))


def problems(resources: Resources, level: str, audit: str = "small") -> list[str]:
    """Return the problems of one level."""
    levels = {item.name: item for item in resources.audit(audit).levels()}
    return list(levels[level].problems) if level in levels else []


def remarks(resources: Resources, level: str, audit: str = "small") -> list[str]:
    """Return the remarks of one level."""
    levels = {item.name: item for item in resources.audit(audit).levels()}
    return list(levels[level].remarks)


def finders(resources: Resources, audit: str = "small") -> set[str]:
    """Return the levels with problems."""
    return {level.name for level in resources.audit(audit).levels() if level.problems}


def _rechained(chain: Sequence[Event], folder: Mapping[str, bytes], change: Change) -> list[Event]:
    """Return a chain whose events were changed, and whose hashes were made anew."""
    made: list[Event] = []
    for event in chain:
        digests = {name: evidence.file_digest(folder[name]) for name in event.files}
        previous = made[-1].digest if made else evidence.START
        made.append(replace(change(event), files=digests, previous=previous))
    return made

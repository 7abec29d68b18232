"""Those who label for audits under Airflow, and audits without Airflow to compare theirs with."""

import json
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from databases import owner_url
from small_audits import plan_audit
from sqlalchemy import func, select

from acceptance.audit_runs import FORM, Audits, chain
from installation import Installation
from modwatch.audits import files
from modwatch.audits.evidence import first_of
from modwatch.audits.request import requested
from modwatch.installation.resources import Resources, open_resources
from modwatch.review.database import create_database
from modwatch.review.events import record_event
from modwatch.review.migrate import upgrade
from modwatch.review.people.accounts import create_moderator
from modwatch.review.queue.leases import claim
from modwatch.review.tables import decision, outbox_message, review_item
from modwatch.settings import Settings
from modwatch.statistics.audit.labels import AuditLabel
from review.labelling import label as decide

#: Why the labelling of an audit is stopped.
HALF = "half of the people left"


def label(
    audit: str, settings: Settings | None = None, *, people: Sequence[str] = (), share: float = 1
) -> None:
    """Let people label what waits of an audit: the first share of it, and one item at least.

    They are people of their own: nobody is handed a comment that they labelled for another audit.
    """
    with open_resources(settings) as resources:
        waiting = _waiting(resources, audit)
        for name in people or (f"{audit}-ann", f"{audit}-ben"):
            person = create_moderator(resources.database, name, "moderator")
            for item_id, comment_id in waiting[: max(1, round(share * len(waiting)))]:
                lease = claim(resources.database, person.id, item_id)
                if lease is not None:
                    decide(resources.database, person, lease, _judged(comment_id))


def sealed_labels(audit: str, settings: Settings | None = None) -> list[AuditLabel]:
    """Return the labels that were sealed last."""
    with open_resources(settings) as resources:
        kept = resources.audit_store.read(audit)
    return files.read_labels(kept[max(name for name in kept if name.startswith("labels-"))])


def decisions(audit: str) -> int:
    """Return how many labels were given for an audit."""
    wanted = (
        select(func.count())
        .select_from(decision.join(review_item, decision.c.item_id == review_item.c.id))
        .where(review_item.c.audit == audit)
    )
    with open_resources() as resources, resources.database.connect() as connection:
        return int(connection.execute(wanted).scalar_one())


def messages(key: str) -> int:
    """Return how often people were told something, by its key."""
    wanted = select(func.count()).where(outbox_message.c.key == key)
    with open_resources() as resources, resources.database.connect() as connection:
        return int(connection.execute(wanted).scalar_one())


def elsewhere(airflow: Audits, folder: Path) -> Settings:
    """Return another installation with a copy of the scored days."""
    for table in ("comments", "scores"):
        shutil.copytree(airflow.demo.settings.home / "lake" / table, folder / "lake" / table)
    url = create_database(owner_url(os.environ["MODWATCH_DATABASE_URL"]), "undisturbed")
    upgrade(url)
    values = {"home": folder, "database_url": url, "source": {"kind": "community"}}
    return Installation(values=values).settings


def undisturbed(
    settings: Settings,
    audit: str,
    labelling: Callable[[str, Settings], None],
    *,
    stop: bool = False,
    **changes: Any,
) -> None:
    """Carry an audit out up to its result, in one go and without Airflow."""
    request = requested({**FORM, "audit": audit, **changes})
    with open_resources(settings) as resources:
        plan = plan_audit(resources, request, actor="eva")
        approved = first_of(chain(audit), "approved")
        assert approved is not None
        with resources.database.begin() as connection:  # the same seed
            record_event(
                connection, "audit_approval", actor_id=None,
                audit=audit, plan=plan.digest, witness="[]", **approved.facts,
            )  # fmt: skip
        resources.audit(audit).approve(actor="eva")
        for _ in range(resources.audit(audit).plan.stages):
            resources.audit(audit).draw()
            labelling(audit, settings)
            resources.audit(audit).seal(stop=stop, note=HALF if stop else "")
        resources.audit(audit).estimate()


def found(audit: str, settings: Settings | None = None) -> dict[str, Any]:
    """Return what an audit has found: its evidence without who did it, and when."""
    with open_resources(settings) as resources:
        kept = resources.audit_store.read(audit)
    tables = {name: item for name, item in kept.items() if name.startswith(("sample", "popul"))}
    message = sealed_labels(audit, settings)
    labels = sorted((item.day, item.comment_id, item.label) for item in message)
    return {**tables, "plan": kept[files.PLAN], "labels": labels, **json.loads(kept[files.RESULT])}


def assert_same_findings(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert one.keys() == other.keys()
    assert [part for part in one if one[part] != other[part]] == []


def _waiting(resources: Resources, audit: str) -> list[tuple[int, str]]:
    wanted = (
        select(review_item.c.id, review_item.c.comment_id)
        .where(review_item.c.audit == audit, review_item.c.status == "waiting")
        .order_by(review_item.c.dt, review_item.c.comment_id)
    )
    with resources.database.connect() as connection:
        return [(row[0], row[1]) for row in connection.execute(wanted)]


def _judged(comment_id: str) -> int:
    """Two of three comments with a higher score are against the rules."""
    number = int("".join(filter(str.isdigit, comment_id)))
    return int(number > 150 and number % 3 > 0)

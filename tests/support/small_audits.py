"""Audits of the small lake, from the plan to the labels, and people who change their minds."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from lake_days import put_comments, put_scores
from sqlalchemy import Connection, select

from installation import MONDAY, TUESDAY, Installation
from modwatch.audits.request import AuditRequest
from modwatch.common.ledger.chain import Head
from modwatch.installation.resources import Resources, open_resources
from modwatch.review.log.verification import EVENTS, recorded_heads
from modwatch.review.people.accounts import create_moderator
from modwatch.review.queue.deciding import correct
from modwatch.review.tables import decision, review_item
from modwatch.statistics.audit.plan import AuditPlan
from review.labelling import label_all

REQUEST = AuditRequest(audit="small", first=MONDAY, last=TUESDAY, labels=120, confirmed_share=0.1)
ADAPTIVE = replace(REQUEST, labels=160, second_stage_share=0.4)

#: Comments of a day of the small lake.
_DAY = 400
#: What is flagged was removed, by the model or a rule.
REMOVED = {
    "decision": ["kept", "none"] * (_DAY // 4) + ["removed", "limited"] * (_DAY // 4),
    "decided_by": ["model", "rule"] * (_DAY // 2),
}


def small_installation(folder: Path, database_url: str) -> Installation:
    source = {"kind": "community"}
    return Installation(values={"home": folder, "database_url": database_url, "source": source})


def make_small_home(folder: Path, database_url: str) -> Installation:
    """Return a lake that is made in no time: two days of comments, the later half flagged."""
    home = small_installation(folder, database_url)
    with open_resources(home.settings) as opened:
        for day in (MONDAY, TUESDAY):
            put_comments(opened.lake, day, _DAY, language=["de", "en"] * (_DAY // 2), **REMOVED)
            put_scores(opened.lake, day, np.arange(_DAY, dtype=np.float32) / _DAY + 0.001)
    return home


@contextmanager
def same_audit_draws() -> Iterator[None]:
    """Let the seeds of audits depend on plan and decisions alone, not on chance or times of events.

    For tests of estimates and intervals, which an unlucky draw would fail.
    """

    def heads(connection: Connection) -> dict[int, Head]:
        return {chain: end for chain, end in recorded_heads(connection).items() if chain != EVENTS}

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("modwatch.audits.register.random_number", lambda: 64 * "0")
        patched.setattr("modwatch.audits.register.recorded_heads", heads)
        yield


def plan_audit(resources: Resources, request: AuditRequest, *, actor: str) -> AuditPlan:
    """Seal the plan of a request; return it."""
    return resources.audit(request.audit).freeze_plan(request, actor=actor)


def begin(resources: Resources, request: AuditRequest = REQUEST) -> None:
    """Plan an audit and draw its first stage."""
    plan_audit(resources, request, actor="eva")
    resources.audit(request.audit).approve(actor="eve")
    resources.audit(request.audit).draw()


def label_everything(resources: Resources) -> None:
    """Label all that waits: two of three comments with a higher score are against the rules."""
    for name in ("ann", "ben"):
        person = create_moderator(resources.database, name, "moderator")
        label_all(
            resources.database, person, lambda id_: int(int(id_[1:]) > 150 and int(id_[1:]) % 3 > 0)
        )


def seal(resources: Resources, request: AuditRequest = REQUEST) -> None:
    """Carry an audit out up to the sealed labels of its first stage."""
    begin(resources, request)
    label_everything(resources)
    resources.audit(request.audit).seal()


def correct_some(resources: Resources, number: int = 1, audit: str = "small") -> None:
    """Let people turn round what they said of some comments that they labelled alone."""
    result = (
        select(review_item.c.id, review_item.c.version, decision.c.moderator_id, decision.c.label)
        .join(decision, decision.c.item_id == review_item.c.id)
        .where(review_item.c.audit == audit, review_item.c.labels_wanted == 1)
        .order_by(review_item.c.id)
        .limit(number)
    )
    with resources.database.connect() as connection:
        rows = connection.execute(result).all()
    for row in rows:
        correct(
            resources.database, moderator_id=row.moderator_id, item_id=row.id, label=1 - row.label,
            version=row.version, idempotency_key=f"correct {row.id}", reason="a slip",
        )  # fmt: skip
    assert len(rows) == number

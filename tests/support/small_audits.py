"""Audits of the small lake, from the plan to the labels, and people who change their minds."""

from dataclasses import replace

from sqlalchemy import select

from installation import MONDAY, TUESDAY
from modwatch.audits.request import AuditRequest
from modwatch.installation.resources import Resources
from modwatch.review.people.accounts import create_moderator
from modwatch.review.queue.deciding import correct
from modwatch.review.tables import decision, review_item
from modwatch.statistics.audit.plan import AuditPlan
from review.labelling import label_all

REQUEST = AuditRequest(audit="small", first=MONDAY, last=TUESDAY, labels=120, confirmed_share=0.1)
ADAPTIVE = replace(REQUEST, labels=160, second_stage_share=0.4)


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

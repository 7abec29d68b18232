"""My day: what one did, and what of it can be taken back or corrected."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from fastapi import APIRouter, Depends, Form, Query, Request, Response
from fastapi.responses import RedirectResponse

from modwatch.errors import ItemNotFoundError, LeaseConflictError, QueueError
from modwatch.review.console.choices import preferences_of
from modwatch.review.console.day import Day, my_day
from modwatch.review.console.desk import DeskDep, FormText, Visit, page_visit
from modwatch.review.console.i18n import N_
from modwatch.review.console.render import Page, render, shell_of
from modwatch.review.policy.tree import check, check_reason
from modwatch.review.queue import amendments

router = APIRouter(include_in_schema=False)

NOTICES = {
    "corrected": N_("Corrected. The log keeps both."),
    "conflict": N_("Somebody went on with that comment, so it stays as it is. Ask a lead."),
    "refused": N_("That label cannot be corrected here. Ask a lead."),
}

ReviewVisit = Annotated[Visit, Depends(page_visit("review"))]


@dataclass(frozen=True, kw_only=True)
class DayPage(Page):
    """`day.html`."""

    template: ClassVar[str] = "day.html"

    notice: str | None
    day: Day
    #: Title of every code and reason that the day mentions.
    titles: dict[str, str]
    #: Why one corrects: word and title.
    reasons: dict[str, str]


@router.get("/day")
def show(
    request: Request,
    desk: DeskDep,
    visit: ReviewVisit,
    notice: Annotated[str, Query(max_length=20)] = "",
) -> Response:
    """Return one's own day."""
    locale = shell_of(request, visit).locale
    chosen = preferences_of(visit.person.preferences)
    known = {node.code: node.title.of(locale) for node in desk.policy.nodes}
    for action in ("skip", "escalate"):
        for word, texts in desk.policy.reasons.get(action, {}).items():
            known[f"{action}:{word}"] = texts.of(locale)
    page = DayPage(
        notice=NOTICES.get(notice),
        day=my_day(desk.engine, visit.person.id, chosen.timezone),
        titles=known,
        reasons={
            word: texts.of(locale) for word, texts in desk.policy.reasons.get("correct", {}).items()
        },
    )
    return render(page, request, visit)


@router.post("/correct")
def correct(
    desk: DeskDep,
    visit: ReviewVisit,
    csrf: FormText,
    decision_id: Annotated[int, Form(ge=1, le=2**63 - 1)],
    item_id: Annotated[int, Form(ge=1, le=2**63 - 1)],
    version: Annotated[int, Form(ge=1, le=2**31 - 1)],
    label: Annotated[Literal["0", "1"], Form()],
    reason: Annotated[str, Form(max_length=60)],
) -> Response:
    """Replace one's own label."""
    visit.check(csrf)
    check_reason(desk.policy, "correct", reason)
    required = desk.options.require_code and label == "1"
    try:
        check(desk.policy, int(label), None, required=required)
        amendments.correct(
            desk.engine,
            moderator_id=visit.person.id,
            item_id=item_id,
            queues=visit.person.queues,
            label=int(label),
            version=version,
            idempotency_key=f"page-correct-{decision_id}-{version}",
            reason=reason,
            policy_version=desk.policy.version,
        )
    except (LeaseConflictError, ItemNotFoundError):
        return RedirectResponse("./day?notice=conflict", 303)
    except QueueError:
        return RedirectResponse("./day?notice=refused", 303)
    return RedirectResponse("./day?notice=corrected", 303)

"""One comment: its text, its history, and for leads the correction of its label."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Form, Response
from fastapi.responses import RedirectResponse

from modwatch.common.errors import LeaseConflictError, QueueError
from modwatch.review.console.api import RecordId
from modwatch.review.console.api import review as api
from modwatch.review.console.api.decisions import viewer_of
from modwatch.review.console.decision_choices import codes_of, reasons_of, titles_of
from modwatch.review.console.forms import (
    FormCode,
    FormKey,
    FormLabel,
    FormNote,
    FormVersion,
    new_key,
)
from modwatch.review.console.pages.search import SearchSession
from modwatch.review.console.render import Page, render
from modwatch.review.console.request_context import LeadForm, Session
from modwatch.review.queue import LONGEST_NOTE
from modwatch.review.reporting import search
from modwatch.review.reporting.search import FoundItem, History

router = APIRouter(include_in_schema=False)

#: Kinds whose label may be replaced; labels of the others exist for comparison.
CORRECTABLE = ("review", "imported")


@dataclass(frozen=True, kw_only=True)
class ItemPage(Page, template="item.html"):
    """One comment with its history."""

    item: FoundItem
    history: History
    problem: str | None
    #: Events after this decision are new to the reader; None: mark none.
    seen: int | None
    #: Whether to show the form for a correction.
    correctable: bool
    #: Idempotency key of the form.
    key: str
    codes: dict[int, tuple[tuple[str, str], ...]]
    reasons: dict[str, str]
    titles: dict[str, str]
    longest_note: int = LONGEST_NOTE

    @property
    def last(self) -> int:
        """The last decision on the comment; 0 if there is none."""
        return max((each.decision_id or 0 for each in self.history.events), default=0)


@router.get("/items/{item_id}")
def show(item_id: RecordId, session: SearchSession) -> Response:
    """Return the comment of an item, with its history."""
    return render(_page(session, item_id), session)


@router.post("/items/{item_id}/correct")
def correct(
    item_id: RecordId,
    session: LeadForm,
    version: FormVersion,
    seen: Annotated[int, Form(ge=0, le=2**63 - 1)],
    key: FormKey,
    label: FormLabel,
    reason: FormCode,
    policy_code: FormCode = "",
    note: FormNote = "",
) -> Response:
    """Replace the current label; if the item has changed, show the changes and ask again."""
    viewer = viewer_of(session.person)
    search.history(session.engine, viewer, item_id=item_id)  # 404 for items of other queues
    try:
        api.correct(
            session.context,
            session.person,
            item_id,
            label=int(label),
            version=version,
            key=key,
            reason=reason,
            others_too=True,
            policy_code=policy_code or None,
            note=note.strip() or None,
        )
    except LeaseConflictError as exc:
        page = _page(session, item_id, problem=str(exc), seen=seen)
        return render(page, session, 409)
    except QueueError as exc:
        page = _page(session, item_id, problem=str(exc))
        return render(page, session, 422)
    return RedirectResponse(f"../{item_id}?notice=corrected", 303)


def _page(
    session: Session, item_id: int, *, problem: str | None = None, seen: int | None = None
) -> ItemPage:
    locale = session.locale
    history = search.history(session.engine, viewer_of(session.person), item_id=item_id)
    item = next(each for each in history.items if each.id == item_id)
    return ItemPage(
        item=item,
        history=history,
        problem=problem,
        seen=seen,
        correctable=session.person.may("lead")
        and item.status == "decided"
        and item.kind in CORRECTABLE,
        key=new_key(),
        codes={label: codes_of(session.policy, label, locale) for label in (1, 0)},
        reasons=reasons_of(session.policy, "correct", locale),
        titles=titles_of(session.policy, locale),
    )

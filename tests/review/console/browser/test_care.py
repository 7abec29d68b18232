"""What looks after the moderators."""

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Engine

from modwatch.review.console.request_context import ConsoleOptions
from modwatch.review.people import changes
from modwatch.review.people.accounts import Moderator

Seat = Callable[..., Any]
Queued = Callable[..., None]


def test_masked_text_is_shown_on_request(
    desk_of: Seat, queued: Queued, ann: Moderator, engine: Engine
) -> None:
    changes.save_preferences(engine, ann.id, {"masking": "blur"})
    queued("comment 0", "comment 1", parent_text="the comment above")
    desk = desk_of(ann)
    covered = desk.page.locator("#here .comment")
    assert "blur" in covered.evaluate("element => getComputedStyle(element).filter")
    assert covered.get_attribute("aria-hidden") == "true"
    assert desk.page.evaluate("document.activeElement.matches('.reveal')")
    assert "comment 0" not in desk.page.locator("main").aria_snapshot()
    assert "the comment above" not in desk.page.locator("main").aria_snapshot()
    desk.press("r")
    assert "comment 0" in desk.page.locator("main").aria_snapshot()
    assert covered.evaluate("element => getComputedStyle(element).filter") == "none"
    desk.press("r")
    assert "comment 0" not in desk.page.locator("main").aria_snapshot()
    desk.press("r", "n").wait_for("comment 1")
    assert "comment 1" not in desk.page.locator("main").aria_snapshot()  # each by itself
    desk.press("Enter")  # the button has the focus
    assert "comment 1" in desk.page.locator("main").aria_snapshot()


def test_the_budget_proposes_a_stop(
    desk_of: Seat, queued: Queued, ann: Moderator, engine: Engine
) -> None:
    changes.save_preferences(engine, ann.id, {"budget": 2})
    queued(*(f"comment {i}" for i in range(6)))
    desk = desk_of(ann).press("t", "n")
    pause = desk.page.locator("#pause")
    assert not pause.is_visible()
    desk.press("t")
    pause.filter(has_text="daily limit").wait_for()
    pause.get_by_role("button", name="Continue").click()
    assert desk.rest().comment == "comment 3"
    desk.until(lambda: desk.page.evaluate("document.activeElement.matches('.comment')"), True)
    desk.press("t")
    assert not pause.is_visible()  # soft: not each time


def test_a_break_is_proposed_and_may_be_taken(
    desk_of: Seat, queued: Queued, ann: Moderator, engine: Engine
) -> None:
    changes.save_preferences(engine, ann.id, {"break_minutes": 5})
    queued("comment 0", "comment 1", "comment 2")
    desk = desk_of(ann)
    desk.page.evaluate(f"sessionStorage.setItem('modwatch.{ann.id}.worked', '301')")
    desk.page.reload()
    desk.settled().press("n")
    desk.page.get_by_role("button", name="Stop for now").click()
    desk.page.wait_for_selector(".tiles")


def test_keys_are_changed_and_conflicts_refused(
    desk_of: Seat, queued: Queued, ann: Moderator, engine: Engine
) -> None:
    queued("comment 0", "comment 1")
    desk = desk_of(ann).open("preferences")
    desk.page.fill("#key_fine", "t")
    desk.page.get_by_role("button", name="Save").first.click()
    desk.page.locator("#problem", has_text="same key").wait_for()
    desk.page.fill("#key_fine", "j")
    desk.page.get_by_label("Dark").check()
    desk.page.get_by_role("button", name="Save").first.click()
    desk.page.get_by_text("Saved.").wait_for()
    ground = "getComputedStyle(document.body).backgroundColor"
    desk.until(lambda: desk.page.evaluate(ground), "rgb(20, 23, 27)")
    desk.open().press("n")
    assert desk.comment == "comment 0"
    desk.press("j").wait_for("comment 1")


def test_asking_first_takes_a_code(
    desk_of: Seat, queued: Queued, ann: Moderator, engine: Engine
) -> None:
    changes.save_preferences(engine, ann.id, {"ask": True})
    queued("comment 0", "comment 1")
    desk = desk_of(ann).press("t")
    options = desk.page.locator("#palette [role=option]:visible")
    assert all(text.startswith("Toxic:") for text in options.all_inner_texts())
    desk.press("ArrowDown", "ArrowDown", "ArrowUp", "Enter")
    desk.wait_for("comment 1").says("Decided: Toxic: Harassment · Insult.")


class TestWhyItWasSent:
    @pytest.fixture
    def options(self) -> ConsoleOptions:
        return ConsoleOptions(show_reasons=True)

    def test_is_reported_where_nothing_is_compared(
        self, desk_of: Seat, queued: Queued, ann: Moderator
    ) -> None:
        queued("comment 0", prob=0.4, uncertainty=0.24)
        why = desk_of(ann).page.locator(".why").inner_text()
        assert "leans towards not toxic and is unsure" in why
        assert "40%" in why

    @pytest.mark.parametrize(
        "blind", [{"kind": "gold"}, {"kind": "audit", "reason": "audit"}, {"labels_wanted": 2}]
    )
    def test_is_hidden_when_blind(
        self, desk_of: Seat, queued: Queued, ann: Moderator, blind: dict[str, object]
    ) -> None:
        queued("comment 0", **blind)
        assert desk_of(ann).page.locator(".why").count() == 0


def test_is_hidden_by_default(desk_of: Seat, queued: Queued, ann: Moderator) -> None:
    queued("comment 0")
    assert desk_of(ann).page.locator(".why").count() == 0

"""What looks after the moderators: each sets it for themselves."""

from collections.abc import Callable
from typing import Any

from modwatch.review.people import changes
from modwatch.review.queue import metrics

Seat = Callable[..., Any]
Queued = Callable[..., None]


def test_preferences_are_kept_at_the_desk(desk_of, queued, ann, engine):
    queued(*(f"comment {i}" for i in range(12)), parent_text="the comment above")

    def reopened(**preferences: object) -> Any:
        changes.save_preferences(engine, ann.id, preferences)
        return desk.open()

    # The budget proposes a stop.
    changes.save_preferences(engine, ann.id, {"budget": 2})
    desk = desk_of(ann).press("t", "n")
    pause = desk.page.locator("#pause")
    assert not pause.is_visible()
    desk.press("t")
    pause.filter(has_text="daily limit").wait_for()
    pause.get_by_role("button", name="Continue").click()
    assert desk.rest().comment == "comment 3"
    desk.until(lambda: desk.page.evaluate("document.activeElement.matches('.comment')"), True)
    desk.rest().press("t")  # the desk heard of the closed dialog at some time in this
    assert desk.comment == "comment 4"
    assert not pause.is_visible()  # soft: not each time
    # A break is proposed, and may be taken.
    desk.page.evaluate(f"sessionStorage.setItem('modwatch.{ann.id}.worked', '301')")
    reopened(break_minutes=5).press("n")
    desk.page.get_by_role("button", name="Stop for now").click()
    desk.page.wait_for_selector(".tiles")
    # Masked text is shown on request.
    reopened(masking="blur").wait_for("comment 5")
    covered = desk.page.locator("#here .comment")

    def read() -> str:
        return str(desk.page.locator("main").aria_snapshot())

    assert "blur" in covered.evaluate("element => getComputedStyle(element).filter")
    assert covered.get_attribute("aria-hidden") == "true"
    assert desk.page.evaluate("document.activeElement.matches('.reveal')")
    assert "comment 5" not in read()
    assert "the comment above" not in read()
    desk.press("r")
    assert "comment 5" in read()
    assert covered.evaluate("element => getComputedStyle(element).filter") == "none"
    desk.press("r")
    assert "comment 5" not in read()
    desk.press("r", "n").wait_for("comment 6")
    assert "comment 6" not in read()  # each by itself
    desk.press("Enter")  # the button has the focus
    assert "comment 6" in read()
    # Who wants to be asked first names a code.
    reopened(ask=True).press("t")
    options = desk.page.locator("#palette [role=option]:visible")
    assert all(text.startswith("Toxic:") for text in options.all_inner_texts())
    desk.press("ArrowDown", "ArrowDown", "ArrowUp", "Enter")
    desk.wait_for("comment 7").says("Decided: Toxic: Harassment · Insult.")
    # Single characters are switched off; Tab and Enter reach everything.
    desk.until(lambda: metrics.counts(engine).decided, 7)
    reopened(shortcuts=False).press("n", "t", "1")
    assert desk.comment == "comment 7"
    assert metrics.counts(engine).decided == 7
    assert desk.page.locator("#here kbd").count() == 0
    desk.press("Tab")
    assert desk.page.evaluate("document.activeElement.value") == "0"
    desk.press("Enter").wait_for("comment 8")
    # Keys are changed on the page, and conflicts refused.
    changes.save_preferences(engine, ann.id, {})
    desk.open("preferences")
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
    assert desk.comment == "comment 8"
    desk.press("j").wait_for("comment 9")

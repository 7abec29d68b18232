"""Decisions that the server has not confirmed yet."""

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Engine, text

from modwatch.review.people import access_tokens
from modwatch.review.people.accounts import Moderator

Seat = Callable[..., Any]
Queued = Callable[..., None]

DECISIONS = "**/decisions"


def decided(engine: Engine) -> list[tuple[str, str]]:
    """Return who did what, in the order of the log."""
    made = "SELECT pseudonym, comment_id || ' ' || action FROM decision"
    with engine.connect() as connection:
        rows = connection.execute(
            text(f"{made} JOIN moderator ON moderator.id = moderator_id ORDER BY decision.id")
        )
        return [tuple(row) for row in rows]


def until(desk: Any, engine: Engine, *expected: tuple[str, str]) -> None:
    """Wait until the log holds these, in whatever order."""
    desk.until(lambda: sorted(decided(engine)), sorted(expected))


def wait_for_notice(desk: Any, words: str) -> None:
    desk.page.locator("#offline", has_text=words).wait_for()


def log_in(desk: Any, engine: Engine, person: Moderator) -> None:
    """Log `person` in, in another tab of the same browser."""
    desk.page.context.clear_cookies()
    tab = desk.page.context.new_page()
    tab.goto(desk.address + "login?next=preferences")
    tab.get_by_text("token instead").click()
    tab.fill("#token", access_tokens.issue_token(engine, person.id))
    tab.press("#token", "Enter")
    tab.wait_for_selector("header .who")
    tab.close()


def test_undo_works_after_a_decision_that_was_sent_twice(
    desk_of: Seat, queued: Queued, ann: Moderator, engine: Engine
) -> None:
    queued("comment 0", "comment 1", "comment 2")
    desk = desk_of(ann)
    desk.page.context.set_offline(True)
    desk.press("t")
    wait_for_notice(desk, "1 of your decisions")
    desk.press("u")  # not yet
    assert desk.comment == "comment 1"
    desk.page.context.set_offline(False)
    until(desk, engine, ("ann", "c0 label"))
    desk.page.locator("#offline").wait_for(state="hidden")
    desk.press("u").wait_for("comment 0").says("Undone")


def test_a_refusal_from_before_a_reload_leaves_later_decisions_to_undo(
    desk_of: Seat, queued: Queued, ann: Moderator, ben: Moderator, engine: Engine
) -> None:
    queued("comment 0", "comment 1", "comment 2")
    desk = desk_of(ann)
    desk.page.context.route("**/items/1/decisions", lambda route: route.abort())
    desk.press("t")
    wait_for_notice(desk, "1 of your decisions")
    with engine.begin() as connection:  # someone else has it now
        theirs = text("UPDATE review_item SET leased_by = :ben WHERE id = 1")
        connection.execute(theirs, {"ben": ben.id})
    desk.page.reload()
    assert desk.settled().comment == "comment 1"
    desk.press("n").wait_for("comment 2")
    until(desk, engine, ("ann", "c1 label"))
    desk.page.context.unroute("**/items/1/decisions")
    desk.page.get_by_text("Nothing was lost").wait_for()
    desk.press("u").wait_for("comment 1").says("Undone")


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (401, "Your session has expired"),
        (403, "Your session has expired"),
        (429, "1 of your decisions"),
    ],
)
def test_what_is_put_off_is_kept_and_reported(
    desk_of: Seat, queued: Queued, ann: Moderator, engine: Engine, status: int, words: str
) -> None:
    queued("comment 0", "comment 1")
    desk = desk_of(ann)
    desk.page.route(DECISIONS, lambda route: route.fulfill(status=status, json={}))
    desk.press("t")
    wait_for_notice(desk, words)
    assert "refused" not in desk.toast
    desk.page.unroute(DECISIONS)
    until(desk, engine, ("ann", "c0 label"))
    desk.page.locator("#offline").wait_for(state="hidden")
    desk.press("u").wait_for("comment 0")


def test_a_skip_beyond_the_limit_is_refused_and_not_sent_again(
    desk_of: Seat, queued: Queued, ann: Moderator, engine: Engine
) -> None:
    queued("comment 0", "comment 1")
    desk = desk_of(ann)
    limit = {"status": 429, "headers": {"Retry-After": "3600"}, "json": {}}
    desk.page.route(DECISIONS, lambda route: route.fulfill(**limit))
    desk.press("s").wait_for("comment 1")
    desk.page.locator("#toast").filter(has_text="rejected").wait_for()
    assert not desk.page.locator("#offline").is_visible()


def test_nothing_is_decided_in_the_name_of_someone_else(
    desk_of: Seat, queued: Queued, ann: Moderator, ben: Moderator, engine: Engine
) -> None:
    queued("comment 0", "comment 1")
    desk = desk_of(ann)
    log_in(desk, engine, ben)
    sent: list[int] = []
    desk.page.on(
        "response", lambda answer: "decisions" in answer.url and sent.append(answer.status)
    )
    desk.press("t")
    wait_for_notice(desk, "Your session has expired")
    while len(sent) < 3:  # and tries again
        desk.page.wait_for_timeout(50)
    assert set(sent) == {403}
    assert decided(engine) == []
    log_in(desk, engine, ann)
    until(desk, engine, ("ann", "c0 label"))
    desk.page.locator("#offline").wait_for(state="hidden")


def test_undo_without_a_session_can_be_had_after_the_next_log_in(
    desk_of: Seat, queued: Queued, ann: Moderator, engine: Engine
) -> None:
    queued("comment 0", "comment 1")
    desk = desk_of(ann).press("t")
    until(desk, engine, ("ann", "c0 label"))
    desk.page.context.clear_cookies()
    desk.press("u")
    wait_for_notice(desk, "Your session has expired")
    assert "no longer" not in desk.toast
    log_in(desk, engine, ann)
    desk.press("u").wait_for("comment 0")


def test_undo_does_not_wait_for_a_network_that_hangs(
    desk_of: Seat, queued: Queued, ann: Moderator, engine: Engine
) -> None:
    queued("comment 0", "comment 1", "comment 2")
    desk = desk_of(ann)
    hanging: list[Any] = []
    desk.page.route("**/items/1/decisions", lambda route: hanging.append(route))
    desk.press("t", "u")
    wait_for_notice(desk, "1 of your decisions")
    assert len(hanging) == 1  # it has not failed
    desk.press("n").wait_for("comment 2")
    hanging[0].continue_()
    until(desk, engine, ("ann", "c0 label"), ("ann", "c1 label"))
    desk.page.locator("#offline").wait_for(state="hidden")
    desk.press("u").wait_for("comment 1").press("u").wait_for("comment 0")

"""A tab that comes back: after a reload, from another page, under a new token of its session."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from sqlalchemy import Engine, text

from modwatch.review.console.request_context import CSRF_HEADER, SESSION_COOKIE
from modwatch.review.people import changes, sessions
from modwatch.review.people.accounts import Moderator
from modwatch.review.queue import metrics

Seat = Callable[..., Any]
Queued = Callable[..., None]


def rotate(desk: Any, engine: Engine) -> None:
    """Give the browser the next token of its session, as another tab may."""
    context = desk.page.context
    cookie = next(cooky for cooky in context.cookies() if cooky["name"] == SESSION_COOKIE)
    new = sessions.rotate_session(engine, cookie["value"], timedelta(0))
    assert new is not None
    context.add_cookies([{**cookie, "value": new}])


def labels(engine: Engine) -> list[tuple[str, int | None]]:
    with engine.connect() as connection:
        rows = connection.execute(text("SELECT comment_id, label FROM decision ORDER BY id"))
        return [tuple(row) for row in rows]


def test_a_form_holds_under_a_new_token_of_its_session(
    desk_of: Seat, queued: Queued, ann: Moderator, engine: Engine
) -> None:
    queued("comment 0", "comment 1")
    desk = desk_of(ann, java_script_enabled=False, lands_on="preferences")
    desk.page.goto(desk.address)
    rotate(desk, engine)
    desk.page.locator("#here button[value='1']").click()
    desk.page.get_by_text("comment 1").wait_for()
    assert labels(engine) == [("c0", 1)]


def test_leases_and_a_proof_hold_under_a_new_token_of_their_session(
    desk_of: Seat, queued: Queued, ann: Moderator, engine: Engine
) -> None:
    queued("comment 0", "comment 1")
    desk = desk_of(ann)
    proof = desk.page.locator("main").get_attribute("data-csrf")
    remembered = f"JSON.parse(sessionStorage.getItem('modwatch.{ann.id}.held'))"
    desk.until(lambda: [item["item_id"] for item in desk.page.evaluate(remembered)], [1, 2])
    held = desk.page.evaluate(remembered)
    rotate(desk, engine)

    def post(path: str, **data: Any) -> Any:
        headers = {CSRF_HEADER: proof, "X-Modwatch-Fragment": "1"}
        return desk.page.request.post(desk.address + path, data=data, headers=headers)

    assert post("leave", held=held).status == 204
    assert metrics.counts(engine).leased == 0
    again = post("next", held=held[1:], count=0)
    assert again.status == 200
    assert 'data-item="2"' in again.text()
    assert metrics.counts(engine).leased == 1


def test_what_is_taken_back_from_my_day_comes_first(
    desk_of: Seat, queued: Queued, ann: Moderator, engine: Engine
) -> None:
    queued(*(f"comment {i}" for i in range(5)))
    desk = desk_of(ann).press("t").wait_for("comment 1")  # and comment 2 is held
    desk.until(lambda: labels(engine), [("c0", 1)])
    desk.page.get_by_role("link", name="My activity").click()
    desk.page.get_by_role("button", name="Undo the decision").click()
    assert desk.settled().says("Undone").comment == "comment 0"
    desk.page.reload()
    assert desk.settled().comment == "comment 0"
    assert "Undone" not in desk.toast
    desk.press("n").wait_for("comment 1").press("n").wait_for("comment 2")


#: Presses `n` as soon as the comment is there.
AT_ONCE = """
    new MutationObserver((_, watch) => {
      watch.disconnect();
      document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "n", bubbles: true }));
      window.pressed = true;
    }).observe(document.querySelector("main"), { attributeFilter: ["class"] });
"""


def test_no_key_decides_before_the_comment_is_there(
    desk_of: Seat, queued: Queued, ann: Moderator, engine: Engine
) -> None:
    changes.save_preferences(engine, ann.id, {"masking": "blur"})
    queued(*(f"comment {i}" for i in range(5)))
    desk = desk_of(ann)
    slow: list[Any] = []
    desk.page.route("**/next", lambda route: slow.append(route))
    desk.page.reload(wait_until="commit")
    while not slow:
        desk.page.wait_for_timeout(50)
    desk.page.wait_for_timeout(600)  # longer than whoever presses twice
    for key in "rtn":
        desk.page.keyboard.press(key)
    desk.page.evaluate(AT_ONCE)  # nobody has read it
    slow[0].continue_()
    desk.page.unroute("**/next")
    desk.page.wait_for_selector("main.ready")
    desk.page.wait_for_timeout(600)
    assert desk.page.evaluate("window.pressed")
    assert desk.comment == "comment 0"
    assert desk.page.locator("[data-masked]").count() == 1
    assert labels(engine) == []
    desk.press("n").wait_for("comment 1")


def test_a_tab_that_took_much_back_gives_back_and_regains_it(
    desk_of: Seat, queued: Queued, ann: Moderator, engine: Engine
) -> None:
    queued(*(f"comment {i}" for i in range(8)))
    desk = desk_of(ann).press(*"nnnn")
    desk.wait_for("comment 4")
    for last in ("comment 3", "comment 2", "comment 1", "comment 0"):
        desk.press("u").wait_for(last)
    desk.until(lambda: metrics.counts(engine).leased, 6)
    desk.page.reload()
    assert desk.settled().comment == "comment 0"
    desk.open("day")
    desk.page.wait_for_selector(".log")
    desk.until(lambda: metrics.counts(engine).leased, 0)

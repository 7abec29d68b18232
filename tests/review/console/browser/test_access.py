"""Everybody can use it: every page, both themes, small screens, no script, in German."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from sqlalchemy import Engine

from modwatch.review.console.request_context import SESSION_COOKIE
from modwatch.review.people import accounts, changes, sessions
from modwatch.review.queue import intake
from review.labelling import label_all, settle

Seat = Callable[..., Any]
Queued = Callable[..., None]

RULES = {
    "resultTypes": ["violations"],
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
}


#: All that a theme changes.
COLOURS = {"resultTypes": ["violations"], "runOnly": {"type": "rule", "values": ["color-contrast"]}}

SHOW = "(theme) => { document.documentElement.dataset.theme = theme; }"


FITS = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"

#: What is smaller than a finger, as HTML.
SMALL = """() => [...document.querySelectorAll("a, button, summary, input, select")]
    .filter((each) => each.checkVisibility() && !each.matches(".skip, p a"))
    .map((each) => [each.outerHTML.slice(0, 80), each.getBoundingClientRect()])
    .filter(([, box]) => box.width && (box.width < 20 || box.height < 24))
    .map(([html]) => html)"""


def assert_accessible(page: Any, *, dark: bool = False) -> None:
    """Assert that Axe finds nothing; with `dark`, nor in the colours of the dark theme."""
    themes = [("dark", COLOURS)] * dark + [("light", RULES)]
    for theme, options in themes:
        page.evaluate(SHOW, theme)
        # Axe itself may run, whatever the policy says of others: this is a debugger's evaluation.
        results = Axe().run(page, options=options)
        found = [
            (violation["id"], [node["html"][:200] for node in violation["nodes"]])
            for violation in results.response["violations"]
        ]
        assert found == [], theme
        assert page.evaluate(FITS)


def test_everybody_can_use_every_page(desk_of, queued, engine, ann):
    texts = ("w" * 5_000, "line\n" * 190, "comment \u202e")
    queued(*texts, parent_text="line\n" * 90, platform="f" * 60)
    desk = desk_of(ann, viewport={"width": 320, "height": 640}, device_scale_factor=2)
    assert_accessible(desk.page, dark=True)
    assert [item for item in desk.page.evaluate(SMALL) if "radio" not in item] == []
    desk.press("t")
    # The verdict stays in sight of a long comment.
    box = desk.page.locator("#here button[value='0']").bounding_box()
    assert box["y"] + box["height"] <= 640
    desk.page.set_viewport_size({"width": 1280, "height": 700})
    for keys in ("Control+k", "?"):
        desk.press(keys)
        assert_accessible(desk.page)
        desk.press("Escape")
    desk.press("n", "n")
    desk.page.get_by_text("Queue is empty").wait_for()
    assert_accessible(desk.page)
    desk.page.set_viewport_size({"width": 320, "height": 640})
    for path in ("day", "preferences", "nowhere"):
        desk.page.goto(desk.address + path)
        assert_accessible(desk.page, dark=path == "day")
    changes.save_preferences(engine, ann.id, {"masking": "blur"})
    queued("comment 9")
    assert_accessible(desk.open().page)
    # Nothing is left after the sign-out.
    stolen = desk.page.context.cookies()
    desk.page.get_by_role("button", name="Sign out").click()
    desk.page.wait_for_selector("#pseudonym")
    assert_accessible(desk.page)
    desk.page.go_back()
    desk.page.wait_for_selector("#pseudonym")
    assert "comment 9" not in desk.page.content()
    desk.page.context.add_cookies(stolen)
    desk.page.goto(desk.address)
    assert "Your session has expired" in desk.page.content()


def test_the_error_rates_have_no_violation(
    desk_of, engine, new_item, day, ann,
    ben
):  # fmt: skip
    more: list[dict[str, Any]] = [{}, *({"kind": "confirmation", "round": n} for n in (2, 3))]
    texts = {"text": "w" * 500, "parent_text": "above it"}
    items = [new_item(f"c{k}", 3 * k + n, **item, **texts) for k in range(31)
             for n, item in enumerate(more, start=1)]  # fmt: skip
    intake.enqueue(engine, items, day)
    cai, lea = (
        accounts.create_moderator(engine, *who) for who in (("cai", "moderator"), ("lea", "lead"))
    )
    for person, value in ((ann, 1), (ben, 0), (cai, 0)):
        label_all(engine, person, lambda _, value=value: value)  # type: ignore[misc]
    settle(engine)
    desk = desk_of(lea, lands_on=f"lead/errors?first={day}&last={day}&queue=general")
    desk.page.locator(".whisker").first.wait_for()
    assert desk.page.locator(".said > li").count() == 31
    desk.page.set_viewport_size({"width": 320, "height": 700})
    assert_accessible(desk.page, dark=True)


def rotate(desk: Any, engine: Engine) -> None:
    """Give the browser the next token of its session, as another tab may."""
    context = desk.page.context
    cookie = next(cookie for cookie in context.cookies() if cookie["name"] == SESSION_COOKIE)
    new = sessions.rotate_session(engine, cookie["value"], timedelta(0))
    assert new is not None
    context.add_cookies([{**cookie, "value": new}])


def test_it_works_without_a_script(desk_of, queued, ann, engine):
    changes.save_preferences(engine, ann.id, {"masking": "blur"})
    queued("comment 0", "comment 1")
    desk = desk_of(ann, java_script_enabled=False, lands_on="preferences")
    page = desk.page
    page.goto(desk.address)
    page.get_by_role("button", name="Show hidden text").click()
    assert page.locator("#here .comment").inner_text() == "comment 0"
    page.locator("#here .more summary").click()
    page.locator("#here textarea").fill("a note")
    page.locator("#here [name=exact]").select_option("1:threat")
    rotate(desk, engine)  # the form holds under a new token of its session
    page.get_by_role("button", name="Submit").click()
    page.get_by_role("button", name="Undo").click()
    desk.says("Undone")
    page.locator("#here button[value='0']").click()
    page.locator("#here button[value='skip']").click()
    page.get_by_text("Queue is empty").wait_for()


def test_focus_is_seen_and_motion_is_not_forced_in_german(desk_of, queued, ann):
    queued("comment 0")
    desk = desk_of(ann, reduced_motion="reduce", locale="de-DE")
    assert desk.page.evaluate("document.documentElement.lang") == "de"
    assert desk.page.get_by_role("button", name="Abmelden").is_visible()
    assert desk.page.evaluate("document.getAnimations().length") == 0
    desk.press("Tab")
    outline = "getComputedStyle(document.activeElement).outlineStyle"
    assert desk.page.evaluate(outline) == "solid"
    desk.open("day")
    desk.press("Tab")
    assert desk.page.evaluate("document.activeElement.matches('.skip')")

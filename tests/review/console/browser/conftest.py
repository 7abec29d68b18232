"""A console that listens, and a browser that moderators might have."""

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page

from modwatch.review.console.request_context import SESSION_COOKIE
from modwatch.review.people.accounts import Moderator
from modwatch.review.queue import intake
from review.console.visiting import serving, session_of

#: Whoever decides sooner after a new comment has pressed twice; milliseconds, see `console.js`.
SETTLE = 280

#: The item at the desk, or none; `nothing` while one is fetched.
SHOWN = """
    document.querySelector("#here .sheet")?.dataset.item
    ?? (document.querySelector("#empty")?.hidden ? "nothing" : "none")
"""

#: Presses a key twice within a moment: much happens between two messages to a browser.
TWICE = """
    (key) => [1, 2].forEach(
        () => document.activeElement.dispatchEvent(
            new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true })))
"""


@pytest.fixture(scope="module")
def address(session_engine):
    with serving(session_engine) as url:
        yield f"{url}/"


@pytest.fixture
def queued(engine, new_item, day):
    """Put comments with these texts in the queue, in their order."""

    def put(*texts: str, **fields: object) -> None:
        items = [new_item(f"c{i}", i + 1, text=text, **fields) for i, text in enumerate(texts)]
        intake.enqueue(engine, items, day, kinds={item.kind for item in items})

    return put


class Desk:
    """A moderator's browser tab, as seen from their chair."""

    def __init__(self, page: Page, address: str) -> None:
        self.page = page
        self.address = address
        self.broken: list[str] = []
        page.on("pageerror", lambda error: self.broken.append(str(error)))
        page.on("dialog", lambda dialog: dialog.accept())

    def open(self, path: str = "") -> "Desk":
        self.page.goto(self.address + path)
        return self if path else self.settled()

    def settled(self) -> "Desk":
        self.page.wait_for_selector("main.ready", timeout=10_000)
        return self.rest()

    def press(self, *keys: str) -> "Desk":
        for key in keys:
            self.page.keyboard.press(key)
            self.rest()
        return self

    def rest(self) -> "Desk":
        """Look at what is shown for a while, and at what comes then, if it comes later."""
        before, now = None, self.page.evaluate(SHOWN)
        for _ in range(20):
            if now == before and now != "nothing":
                break
            self.page.wait_for_timeout(SETTLE)
            before, now = now, self.page.evaluate(SHOWN)
        return self

    @property
    def comment(self) -> str | None:
        found = self.page.locator("#here .comment")
        return found.inner_text() if found.count() else None

    @property
    def toast(self) -> str:
        return self.page.locator("#toast").inner_text()

    def says(self, words: str) -> "Desk":
        self.page.locator("#toast", has_text=words).wait_for()
        return self

    def until(self, read: Callable[[], object], expected: object) -> None:
        """Wait until `read` gives what is expected; much travels in the background."""
        for _ in range(200):
            if read() == expected:
                return
            self.page.wait_for_timeout(50)
        assert read() == expected

    def press_twice(self, key: str) -> "Desk":
        self.page.evaluate(TWICE, key)
        return self.rest()

    def wait_for(self, comment: str) -> "Desk":
        text = self.page.locator("#here .comment", has_text=comment)
        if not text.count():  # what is there has been looked at for a while
            text.wait_for(timeout=10_000)
            self.page.wait_for_timeout(SETTLE)
        return self


@pytest.fixture
def desk_of(chromium, address, engine):
    """Seat a moderator whose browser has a session, and open the desk."""
    contexts: list[BrowserContext] = []
    desks: list[Desk] = []

    def seat(person: Moderator, *, lands_on: str = "", **context: Any) -> Desk:
        contexts.append(chromium.new_context(**context))
        session = {"name": SESSION_COOKIE, "value": session_of(engine, person), "url": address}
        contexts[-1].add_cookies([{**session, "httpOnly": True}])
        # Chromium may let requests of a page pass by a route that is the first and came later.
        contexts[-1].route("**/nothing", lambda route: route.abort())
        page = contexts[-1].new_page()
        page.set_default_timeout(15_000)
        desks.append(Desk(page, address))
        return desks[-1].open(lands_on)

    yield seat
    for context in contexts:
        context.close()
    assert [broken for desk in desks for broken in desk.broken] == []

"""A moderator's day at the desk: what one tab does with keys, without a network, and later."""

import statistics
from collections.abc import Callable
from typing import Any

from sqlalchemy import Engine, text

from modwatch.review.log import verification
from modwatch.review.people import access_tokens, accounts
from modwatch.review.people.accounts import Moderator
from modwatch.review.queue import deciding, leases, metrics

Seat = Callable[..., Any]
Queued = Callable[..., None]

DECISIONS = "**/decisions"


def actions(engine: Engine) -> list[tuple[str, str, int | None, str | None, str | None]]:
    columns = "comment_id, action, label, coalesce(policy_code, reason), note"
    with engine.connect() as connection:
        rows = connection.execute(text(f"SELECT {columns} FROM decision ORDER BY id"))
        return [tuple(row) for row in rows]


def until(desk: Any, engine: Engine, n: int) -> None:
    """Wait until the log has `n` decisions."""
    desk.until(lambda: len(actions(engine)), n)


def change(engine: Engine, statement: str, **values: object) -> None:
    with engine.begin() as connection:
        connection.execute(text(statement), values)


def test_a_full_shift_by_keyboard(desk_of, queued, ann, engine):
    queued(*(f"comment {i}" for i in range(9)))
    desk = desk_of(ann)
    desk.open("login")  # who is in goes on
    assert desk.settled().comment == "comment 0"
    assert desk.page.evaluate("document.activeElement.matches('.comment')")
    desk.press("n").press("t").press("2")
    desk.press("m")
    desk.page.keyboard.type("no t or n in here decides")
    desk.press("Escape", "e")
    desk.press("Shift+S")
    desk.page.keyboard.type("language")
    desk.press("Enter")
    desk.press("Control+k")
    desk.page.keyboard.type("slur")
    desk.press("Enter")
    desk.wait_for("comment 6").says("Decided: Toxic: Hate · Slur.")
    # Whoever presses or clicks twice decides one comment.
    desk.page.wait_for_timeout(300)
    desk.page.locator("#here button[value='1']").dblclick()
    desk.wait_for("comment 7")
    desk.page.wait_for_timeout(300)
    desk.press_twice("n").wait_for("comment 8").press("s")
    until(desk, engine, 9)
    assert sorted(actions(engine)) == [
        ("c0", "label", 0, None, None),
        ("c1", "label", 1, None, None),
        ("c2", "label", 1, "threat", None),
        ("c3", "escalate", None, None, "no t or n in here decides"),
        ("c4", "skip", None, "language", None),
        ("c5", "label", 1, "hate.slur", None),
        ("c6", "label", 1, None, None),
        ("c7", "label", 0, None, None),
        ("c8", "skip", None, None, None),
    ]
    desk.page.get_by_text("Queue is empty").wait_for()
    desk.press("?")
    desk.page.locator("#help").wait_for()
    desk.press("Escape")
    desk.open("day")
    assert desk.page.locator(".log li").count() == 9


LAPS = """
    window.laps = [];
    let pressed = 0;
    document.addEventListener("keydown", (event) => { pressed = event.timeStamp; }, true);
    new MutationObserver(() => requestAnimationFrame(() => {
      const channel = new MessageChannel(); // after the frame was painted
      channel.port1.onmessage = () => window.laps.push(performance.now() - pressed);
      channel.port2.postMessage(0);
    })).observe(document.getElementById("here"), { childList: true });
"""

#: Presses `n` as soon as the comment is there.
AT_ONCE = """
    new MutationObserver((_, watch) => {
      watch.disconnect();
      document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "n", bubbles: true }));
      window.pressed = true;
    }).observe(document.querySelector("main"), { attributeFilter: ["class"] });
"""


def test_a_tab_keeps_its_comments_and_gives_them_back(desk_of, queued, ann, engine):
    queued(*(f"comment {i} " + "words and words " * 40 for i in range(12)))
    desk = desk_of(ann)
    # The next comment is painted within 100 ms, however slow the network is.
    network = desk.page.context.new_cdp_session(desk.page)
    network.send("Network.enable")
    slow = {"offline": False, "latency": 150, "downloadThroughput": -1, "uploadThroughput": -1}
    network.send("Network.emulateNetworkConditions", slow)
    desk.page.evaluate(LAPS)
    for number in range(4):
        desk.press("n").wait_for(f"comment {number + 1}")
    laps = desk.page.evaluate("window.laps")
    assert len(laps) == 4
    assert statistics.median(laps) < 100, laps
    network.send("Network.emulateNetworkConditions", slow | {"latency": 0})
    until(desk, engine, 4)
    # Another tab has others, a reload shows the same, and whoever leaves gives back.
    other = type(desk)(desk.page.context.new_page(), desk.address).open()
    assert other.comment.split()[1] not in ("4", "5")
    other.page.close()
    for last in (3, 2, 1, 0):
        desk.press("u").wait_for(f"comment {last}")
    desk.until(lambda: metrics.counts(engine).leased, 6)
    desk.page.reload()
    assert desk.settled().comment.startswith("comment 0")
    desk.page.get_by_role("link", name="My activity").click()
    desk.page.wait_for_selector(".log")
    desk.until(lambda: metrics.counts(engine).leased, 0)
    desk.page.go_back()
    assert desk.settled().comment.startswith("comment 0")
    # No key decides before the comment is there.
    waiting: list[Any] = []
    desk.page.route("**/next", lambda route: waiting.append(route))
    desk.page.reload(wait_until="commit")
    while not waiting:
        desk.page.wait_for_timeout(50)
    desk.page.wait_for_timeout(600)  # longer than whoever presses twice
    for key in "tn":
        desk.page.keyboard.press(key)
    desk.page.evaluate(AT_ONCE)  # nobody has read it
    waiting[0].continue_()
    desk.page.unroute("**/next")
    desk.settled()
    assert desk.page.evaluate("window.pressed")
    assert desk.comment.startswith("comment 0")
    assert len(actions(engine)) == 8
    desk.press("n").wait_for("comment 1")


def test_decisions_are_undone_and_corrected(desk_of, queued, ann, engine, monkeypatch):
    queued(*(f"comment {i}" for i in range(6)))
    desk = desk_of(ann)
    desk.press("t").wait_for("comment 1").press("t").wait_for("comment 2")
    desk.press("u").wait_for("comment 1").says("Undone")
    desk.press("u").wait_for("comment 0")
    desk.press("n").wait_for("comment 1").press("n").wait_for("comment 2")
    until(desk, engine, 6)
    assert sorted(row[:3] for row in actions(engine)) == [
        (comment, *done)
        for comment in ("c0", "c1")
        for done in (("label", 0), ("label", 1), ("undo", None))
    ]
    assert verification.verify_log(engine).decisions == 6
    # A lead took what was escalated.
    desk.press("e").wait_for("comment 3")
    until(desk, engine, 7)
    lead = accounts.create_moderator(engine, "lea", "lead")
    assert leases.lease_escalated(engine, lead.id) is not None
    desk.press("u").says("no longer be undone")
    assert desk.comment == "comment 3"
    # While it is looked at, a lease is extended; what was lost is reported kindly.
    minute = "UPDATE review_item SET leased_until = now() + interval '1 minute' WHERE id = 4"
    change(engine, minute)
    desk.page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")

    def extended() -> object:
        with engine.connect() as connection:
            left = "SELECT leased_until > now() + interval '5 minutes' FROM review_item"
            return connection.scalar(text(f"{left} WHERE id = 4"))

    desk.until(extended, True)
    change(engine, "UPDATE review_item SET leased_until = now() WHERE id = 4")
    desk.press("t")
    desk.page.get_by_text("Nothing was lost").wait_for()
    assert len(actions(engine)) == 7
    desk.press("n")
    until(desk, engine, 8)
    # What is taken back from the day's list comes first.
    desk.page.get_by_role("link", name="My activity").click()
    desk.page.get_by_role("button", name="Undo the decision").last.click()
    assert desk.settled().says("Undone").comment == "comment 0"
    desk.page.reload()
    assert desk.settled().comment == "comment 0"
    assert "Undone" not in desk.toast
    desk.press("t")
    until(desk, engine, 10)
    monkeypatch.setattr("modwatch.review.console.activity.UNDO_WITHIN", deciding.UNDO_WITHIN * 0)
    desk.open("day")
    desk.page.get_by_text("Correct", exact=True).first.click()
    desk.page.get_by_role("button", name="Change to not toxic").first.click()
    desk.page.get_by_text("Corrected.").wait_for()
    assert actions(engine)[-1] == ("c0", "correct", 0, "slip", None)


def wait_for_notice(desk: Any, words: str) -> None:
    desk.page.locator("#offline", has_text=words).wait_for()


def all_sent(desk: Any, engine: Engine, n: int) -> None:
    until(desk, engine, n)
    desk.page.locator("#offline").wait_for(state="hidden")


def refusing(answer: dict[str, Any]) -> Callable[[Any], None]:
    return lambda route: route.fulfill(**answer)


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


def test_nothing_is_lost_that_the_server_did_not_confirm(desk_of, queued, ann, ben, engine):
    queued(*(f"comment {i}" for i in range(9)))
    desk = desk_of(ann)
    desk.page.context.set_offline(True)
    desk.press("t", "n")
    wait_for_notice(desk, "2 of your decisions are saved")
    desk.press("u")  # not yet
    assert (desk.comment, actions(engine)) == (None, [])
    desk.page.context.set_offline(False)
    all_sent(desk, engine, 2)
    assert sorted(row[:3] for row in actions(engine)) == [("c0", "label", 1), ("c1", "label", 0)]
    desk.press("u").wait_for("comment 1").says("Undone").press("n").wait_for("comment 2")
    # What is put off is kept; an hour's limit is a refusal.
    desk.page.route(DECISIONS, refusing({"status": 429, "json": {}}))
    desk.press("t").wait_for("comment 3")
    wait_for_notice(desk, "1 of your decisions")
    assert "refused" not in desk.toast
    desk.page.unroute(DECISIONS)
    all_sent(desk, engine, 5)
    limit = {"status": 429, "headers": {"Retry-After": "3600"}, "json": {}}
    desk.page.route(DECISIONS, refusing(limit))
    desk.press("s").wait_for("comment 4")
    desk.page.locator("#toast").filter(has_text="rejected").wait_for()
    assert not desk.page.locator("#offline").is_visible()
    desk.page.unroute(DECISIONS)
    # Undo does not wait for a network that hangs.
    hanging: list[Any] = []
    desk.page.route("**/items/5/decisions", lambda route: hanging.append(route))
    desk.press("t", "u")
    wait_for_notice(desk, "1 of your decisions")
    desk.press("n").wait_for("comment 6")
    (request,) = hanging  # it has not failed
    request.continue_()
    all_sent(desk, engine, 7)
    desk.press("u").wait_for("comment 5").press("u").wait_for("comment 4")
    # A refusal from before a reload leaves later decisions to undo.
    desk.page.unroute("**/items/5/decisions")
    desk.page.context.route("**/items/5/decisions", lambda route: route.abort())
    desk.press("t").wait_for("comment 5")
    wait_for_notice(desk, "1 of your decisions")
    change(engine, "UPDATE review_item SET leased_by = :ben WHERE id = 5", ben=ben.id)
    desk.page.reload()
    assert desk.settled().comment == "comment 5"
    desk.press("n").wait_for("comment 6")
    until(desk, engine, 10)
    desk.page.context.unroute("**/items/5/decisions")
    desk.page.get_by_text("Nothing was lost").wait_for()
    desk.press("u").wait_for("comment 5").says("Undone")
    # A database that is down is no empty queue.
    desk.page.evaluate("sessionStorage.clear()")
    desk.page.route("**/next", refusing({"status": 503, "json": {}}))
    desk.page.reload()
    wait_for_notice(desk, "Comments cannot be loaded at present")
    assert not desk.page.get_by_text("Queue is empty").is_visible()
    desk.page.unroute("**/next")
    desk.page.locator(".sheet").wait_for()
    assert not desk.page.locator("#offline").is_visible()


def test_nothing_is_decided_in_the_name_of_someone_else(desk_of, queued, ann, ben, engine):
    queued("comment 0", "comment 1")
    desk = desk_of(ann)
    log_in(desk, engine, ben)
    sent: list[int] = []
    desk.page.on(
        "response", lambda answer: "decisions" in answer.url and sent.append(answer.status)
    )
    desk.press("t")
    wait_for_notice(desk, "Your session has expired")
    assert set(sent) == {403}
    assert actions(engine) == []
    log_in(desk, engine, ann)
    all_sent(desk, engine, 1)
    # What is undone without a session can be undone after the next log-in.
    desk.page.context.clear_cookies()
    desk.press("u")
    wait_for_notice(desk, "Your session has expired")
    assert "no longer" not in desk.toast
    log_in(desk, engine, ann)
    desk.press("u").wait_for("comment 0")
    assert [row[:2] for row in actions(engine)] == [("c0", "label"), ("c0", "undo")]

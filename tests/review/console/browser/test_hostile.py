"""Comments, notes and names that mean harm."""

from collections.abc import Callable
from typing import Any

from databases import scalars

from modwatch.review.people import accounts
from modwatch.review.queue import metrics

Seat = Callable[..., Any]
Queued = Callable[..., None]

ATTACKS = [
    "<script>window.caught = 1</script>",
    "<img src=x onerror='window.caught = 1'>",
    "</div></main><svg onload=window.caught=1>",
    "{{ 7 * 7 }} ${window.caught = 1} {% raw %}",
    "\"' autofocus onfocus='window.caught = 1",
    "<iframe srcdoc='<script>parent.caught = 1</script>'></iframe>",
    "javascript:window.caught=1",
    "<style>body { display: none }</style><base href=https://elsewhere.invalid/>",
    "<template><form action=https://elsewhere.invalid><input name=csrf></form></template>",
]


#: Where the first of a sign stands in the comment.
PLACE_OF = """(sign) => {
    const walker = document.createTreeWalker(
        document.querySelector("#here .comment"), NodeFilter.SHOW_TEXT);
    for (let node; (node = walker.nextNode());) {
        const at = node.data.indexOf(sign);
        if (at < 0) continue;
        const range = document.createRange();
        range.setStart(node, at);
        range.setEnd(node, at + 1);
        return range.getBoundingClientRect().left;
    }
}"""


def test_nothing_in_a_comment_a_note_or_a_name_runs(desk_of, queued, engine):
    turned = ("safe \u202egpj.exe\u202c and zero\u200bwidth", "مرحبا <b>hello</b> بالعالم")
    shown = {"parent_text": ATTACKS[1], "platform": ATTACKS[0], "language": ATTACKS[4]}
    queued(" ".join(ATTACKS), *turned, **shown)
    desk = desk_of(accounts.create_moderator(engine, ATTACKS[1], "moderator"))
    assert desk.page.locator(".who bdi").inner_text() == ATTACKS[1]
    assert desk.comment == " ".join(ATTACKS)
    desk.press("m")
    desk.page.keyboard.insert_text(ATTACKS[0])
    desk.press("Escape", "n")
    # What turns text around is shown, in the order in which it is written.
    assert desk.comment == "safe RLOgpj.exePDF and zeroZWSPwidth"
    assert desk.page.evaluate(PLACE_OF, "g") < desk.page.evaluate(PLACE_OF, "x")
    desk.press("n").wait_for("hello")
    direction = "getComputedStyle(document.querySelector('#here .comment')).direction"
    assert desk.page.evaluate(direction) == "rtl"
    assert desk.page.evaluate("getComputedStyle(document.body).direction") == "ltr"
    desk.press("n")
    desk.until(lambda: metrics.counts(engine).decided, 3)
    desk.open("day")
    assert desk.page.locator(".begin").count() == 3
    assert desk.page.evaluate("window.caught") is None
    assert desk.page.locator("iframe, svg, img, base, main style").count() == 0
    notes = scalars(engine, "SELECT note FROM decision ORDER BY id")
    assert notes == [ATTACKS[0], None, None]


LONG = {"one word": "x" * 1_000_000, "marks": "a\u202e" * 500_000, "lines": "\n" * 1_000_000}


def test_a_megabyte_does_not_freeze_the_page(desk_of, queued, ann, engine):
    queued("comment", *(text for name, long in LONG.items() for text in (long, f"after {name}")))
    desk = desk_of(ann)
    for name in LONG:
        desk.press("n")
        summary = desk.page.locator("#here .comment summary")
        assert "characters" in summary.inner_text(), name
        summary.click()
        desk.until(desk.page.locator("#here .rest[open]").count, 1)
        assert desk.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
        started = desk.page.evaluate("performance.now()")
        desk.press("n").wait_for(f"after {name}")
        assert desk.page.evaluate("performance.now()") - started < 4_000, name

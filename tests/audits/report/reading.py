"""Reads a page of HTML as strictly as a test wants it."""

from dataclasses import replace
from html.parser import HTMLParser

from modwatch.audits.evidence import Event

#: Elements of HTML that have no end, and those of SVG that end themselves.
VOID, EMPTY = {"meta"}, {"line", "circle"}


class WellFormed(HTMLParser):
    """Raises for an element that is not closed, or closed in the wrong place."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), tag
        self.seen.append(tag)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in EMPTY
        self.seen.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def parsed(page: str) -> WellFormed:
    parser = WellFormed()
    parser.feed(page)
    parser.close()
    assert parser.open == []
    return parser


def signed(chain: list[Event]) -> list[Event]:
    """Return a chain whose last step is signed."""
    return [*chain, replace(chain[-1], action="signed_off", actor="fay", files={}, note="")]


def words_of(page: str) -> str:
    """Return what a reader sees."""
    seen = " ".join(parsed(page.partition("<main>")[2].partition("</main>")[0]).words)
    return " ".join(seen.replace("\u00a0", " ").split())

"""Every link that a person sees opens: of the navigation, the tabs, and the pages behind them."""

import re
from html import unescape
from urllib.parse import urljoin, urlsplit

import pytest

from modwatch.review.console.render import NAVIGATION
from review.console.visiting import by_cookie, session_of, used

#: Pages of one kind, such as those of items: the first few are opened.
_OF_A_KIND = 3


def links(page: str) -> set[str]:
    """Return the addresses of all links of a page."""
    return {unescape(address) for address in re.findall(r'<a\s[^>]*href="([^"#]*)', page)}


def kind(address: str) -> str:
    """Return what the addresses of pages of one kind have in common."""
    return re.sub(r"\d+|[?].*", "", address)


@pytest.mark.usefixtures("fast_hashes")
@pytest.mark.parametrize("role", ["moderator", "lead", "admin"])
def test_every_link_opens(role, engine, stranger, new_item, day):
    who = used(engine, new_item, day)[role]
    headers = by_cookie(session_of(engine, who))
    stranger.follow_redirects = True
    start = "preferences"  # every role has it; the first page is not everybody's
    waiting, seen, opened = [f"http://testserver/{start}"], list[str](), set[str]()
    while waiting:
        address = waiting.pop()
        if address in seen or [kind(one) for one in seen].count(kind(address)) > _OF_A_KIND:
            continue
        seen.append(address)
        answer = stranger.get(address, headers=headers)
        assert answer.status_code == 200, (role, address)
        opened.add(answer.url.path.strip("/"))
        if "text/html" in answer.headers["content-type"]:
            found = {urljoin(str(answer.url), link) for link in links(answer.text)}
            waiting += [one for one in found if urlsplit(one).netloc == "testserver"]
    allowed = {where for where, _, scopes in NAVIGATION if any(who.may(one) for one in scopes)}
    assert allowed <= opened, "the navigation was not followed"

"""Content and requests that mean harm; the same in a browser is in `browser/test_hostile.py`."""

import json
import re
import secrets
import time
from collections.abc import Callable, Iterable
from html.parser import HTMLParser
from itertools import product
from typing import Any
from urllib.parse import quote

import pytest
from databases import scalars, tamper, unguarded
from sqlalchemy import Engine, text

from modwatch.review.console.request_context import CSRF_HEADER, csrf_of
from modwatch.review.console.review_page import LEASE_COOKIE
from modwatch.review.console.sign_in import LOGIN_COOKIE
from modwatch.review.log import verification
from modwatch.review.people import accounts, passwords
from modwatch.review.queue import intake, leases
from review.console.visiting import bearer_of, by_cookie, routes_of, rows, session_of, used
from review.labelling import escalate

Fill = Callable[[int], None]

HARMLESS = "harmless"

#: SQL, HTML, scripts, templates, headers, formats, addresses, and what turns text around.
ATTACKS = {
    "sql": "'); DROP TABLE decision; --",
    "sql or": "' OR '1'='1",
    "html": "</td></div></main><h1 onclick=x>hello</h1><base href=//elsewhere.invalid>",
    "attribute": "\" autofocus onfocus='alert(1)' x=\"",
    "script": "</script></textarea></title><script>alert(1)</script><!--",
    "template": "{{ 7 * 7 }}{% for x in () %}{{ page.__class__ }}#{7*7}${7*7}",
    "header": "a\r\nSet-Cookie: caught=1\r\n\r\n<script>",
    "format": "%(name)s %s %n {0.__class__} %",
    "address": "javascript:alert(1)//../../admin",
    "turned": "safe\u202egpj.exe\u200b\u2066\ufeff",
    "look-alike": "аdmin аnn ﹤script﹥",
}

#: Characters that turn the order of others around.
TURNING = re.compile("[\u202a-\u202e\u2066-\u2069]")


class Outline(HTMLParser):
    """The tags of a page, with the names of their attributes; marks of the invisible left out."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, tuple[str, ...]]] = []
        self.addresses: list[str] = []
        #: What stands outside an isolate, and would turn around what follows it.
        self.turning: list[str] = []
        self._in_mark = False
        self._isolates = 0
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if ("class", "mark") in attrs:
            self._in_mark = True
            return
        self._isolates += tag == "bdi"
        self.tags.append((tag, tuple(sorted(name for name, _ in attrs))))
        addresses = {"href", "src", "action", "formaction"}
        self.addresses += [value or "" for name, value in attrs if name in addresses]

    def handle_endtag(self, tag: str) -> None:
        if self._in_mark:
            self._in_mark = False
        else:
            self._isolates -= tag == "bdi"
            self.tags.append((f"/{tag}", ()))

    def handle_data(self, data: str) -> None:
        if TURNING.search(data) and not self._isolates and self.tags[-1][0] != "title":
            self.turning.append(data)


def plant(engine: Engine, value: str) -> None:
    """Write `value` wherever the console shows what people or other systems wrote."""
    places = {
        "review_item": ("text", "parent_text", "queue"),
        "decision": ("note",),
        "outbox_delivery": ("last_problem", "channel"),
        "access_token": ("name",),
    }
    # Words of the policy and the rules, which an installation writes itself.
    words = {} if TURNING.search(value) else {"review_item": "reason", "decision": "policy_code"}
    with unguarded(engine) as connection:
        for table, columns in places.items():
            more = [words[table]] if table in words else []
            changes = ", ".join(f"{name} = :value" for name in [*columns, *more])
            connection.execute(text(f"UPDATE {table} SET {changes}"), {"value": value})
        for table, column in (("review_item", "comment_id"), ("moderator", "pseudonym")):
            statement = f"UPDATE {table} SET {column} = :value || id"
            connection.execute(text(statement), {"value": value})
        shown = {"platform": value, "language": value, "others": {"topic": value}}
        documents = {"shown": json.dumps(shown)}
        connection.execute(text("UPDATE review_item SET shown = :shown"), documents)
        details = {"details": json.dumps({"queues": [value], "name": value})}
        connection.execute(text("UPDATE event SET details = :details"), details)


def test_what_is_shown_changes_no_page(engine, app, stranger, new_item, day):
    """Each page has the tags with every attack that it has with a harmless word."""
    who = used(engine, new_item, day)
    sessions = {role: session_of(engine, person) for role, person in who.items()}
    paths = [path for method, path in routes_of(app) if method == "GET" and "/api/" not in path]

    def outlines(places: Iterable[tuple[str, str]]) -> dict[tuple[str, str], Outline]:
        tamper(engine, "UPDATE review_item SET leased_until = NULL, leased_by = NULL")
        found = {}
        for role, path in places:
            page = stranger.get(path, headers=by_cookie(sessions[role]))
            assert page.status_code < 500, (role, path)
            assert not any("\r" in value or "\n" in value for value in page.headers.values())
            if page.status_code == 200 and "html" in page.headers["Content-Type"]:
                found[role, path] = Outline(page.text)
        return found

    plant(engine, HARMLESS)
    expected = outlines(product(sessions, paths))
    assert len(expected) > 25
    markup = "".join(ATTACKS[name] for name in ("html", "attribute", "script"))
    formats = "".join(ATTACKS[name] for name in ("sql", "template", "header", "format", "address"))
    for name, attack in (("markup", markup), ("formats", formats), ("turned", ATTACKS["turned"])):
        plant(engine, attack)
        found = outlines(expected)
        assert found.keys() == expected.keys(), name
        for where, outline in found.items():
            assert outline.tags == expected[where].tags, (name, where)
            assert outline.turning == [], (name, where)
            for address in outline.addresses:
                assert re.match(r"\.{0,2}/|#|[\w/]*$|https?://testserver/", address), (name, where)


@pytest.mark.parametrize("attack", ["sql or", "script", "format", "turned"])
def test_what_is_sent_is_a_value(engine, stranger, new_item, day, attack):
    """Whatever a program or a form sends is stored or refused as it is, and opens nothing."""
    who, attack = used(engine, new_item, day), ATTACKS[attack]
    before, raw = rows(engine), attack.encode()
    lead = bearer_of(engine, who["lead"])
    sessions = {role: session_of(engine, who[role]) for role in ("lead", "admin")}
    subject = f"admin/people/{who['moderator'].id}"
    lease = stranger.post("/api/v1/leases", headers=lead).json()
    decided = stranger.post(
        f"/api/v1/items/{lease['item']['id']}/decisions",
        json={"lease_token": lease["token"], "label": 1, "note": attack},
        headers={**lead, "Idempotency-Key": raw},  # type: ignore[dict-item]
    )
    assert decided.status_code == 201
    days, held = {"first_day": str(day), "last_day": str(day)}, {"lease_token": "t"}
    for body in (
        {"lease_token": attack, "label": 1},
        held | {"label": 1, "policy_code": attack},
        held | {"action": "skip", "reason": attack},
    ):
        sent = {**lead, "Idempotency-Key": secrets.token_hex(4)}
        answer = stranger.post("/api/v1/items/1/decisions", json=body, headers=sent)
        assert 400 <= answer.status_code < 500, body
    for role, path, form in (
        *(("lead", "search", {**days, name: attack}) for name in (
            "comment_id", "text", "pseudonym", "status", "queue", "policy_code", "cursor",
        )),
        *(("lead", "lead/close/count", {name: attack}) for name in (
            "queue", "reason", "language", "platform", "comment_ids",
        )),
        ("lead", "lead/close", {"criteria": attack, "expected": "1", "why": "spam_wave"}),
        ("lead", "items/1/correct", {
            "label": "1", "version": "1", "seen": "0", "key": attack, "reason": attack,
        }),
        ("lead", "preferences", {"opt_outs": attack[:60]}),
        ("lead", "preferences", {"timezone": attack, "key_fine": attack}),
        ("lead", "preferences", {attack: "1"}),
        ("admin", subject, {"queues": attack}),
        ("admin", f"{subject}/tokens", {"name": attack, "scopes": attack}),
        ("admin", "deliveries/resend", {"channel": attack}),
        ("admin", "records/check", {"witness": attack}),
    ):  # fmt: skip
        session = sessions[role]
        sent = form | {"csrf": csrf_of(session)}
        answer = stranger.post(f"/{path}", data=sent, headers=by_cookie(session))
        assert answer.status_code < 500, (path, form)
        assert path != "search" or not re.search(r"items/\d", answer.text), form
    answer = stranger.get(
        "/api/v1/decisions", params={"after": attack}, headers=bearer_of(engine, who["admin"])
    )
    assert answer.status_code < 500
    accounts.create_moderator(engine, "zed", "moderator")  # the tables are still there
    after = rows(engine)
    assert all(after[table] >= before[table] for table in before)
    assert after["decision"] == before["decision"] + 1
    assert attack in scalars(engine, "SELECT note FROM decision")
    assert verification.verify_log(engine).intact


def test_nothing_that_is_typed_comes_back_as_a_header(engine, stranger, ann, fast_hashes):
    passwords.set_password(engine, ann.id, "a long pass phrase")
    session = by_cookie(session_of(engine, ann))
    for attack in ATTACKS.values():
        asked = stranger.get("/login", params={"next": attack})
        typed = {"csrf": csrf_of("s"), "pseudonym": "ann", "password": "a long pass phrase"}
        cookie = {"Cookie": f"{LOGIN_COOKIE}=s"}
        entered = stranger.post("/login", data={**typed, "next": attack}, headers=cookie)
        wrong = stranger.post("/login", data={**typed, "pseudonym": attack}, headers=cookie)
        token = stranger.post("/login", data={**typed, "token": attack}, headers=cookie)
        unknown = stranger.get(f"/{quote(attack, safe='')}")
        missing = stranger.get(f"/items/{quote(attack, safe='')}", headers=session)
        cookies = {"Cookie": f"{session['Cookie']}; {LEASE_COOKIE}=".encode() + attack.encode()}
        held = stranger.get("/", headers=cookies)  # type: ignore[arg-type]
        assert (entered.status_code, entered.headers["Location"]) == (303, "./")
        assert (wrong.status_code, token.status_code, held.status_code) == (401, 401, 200)
        for answer in (asked, entered, wrong, token, unknown, missing, held):
            assert answer.status_code < 500
            for name, value in answer.headers.multi_items():
                assert "caught" not in name + value
                assert not re.search(r"[\r\n]|elsewhere\.invalid|javascript:", value)


#: Of each comment that is shown whole, what escaping may make of it; of lists, the beginnings.
SHOWN_WHOLE = {
    "/": 1, "/next": 2, "/search": 0, "/items/1": 1, "/day": 0, "/lead": 0, "/lead/settle": 1,
}  # fmt: skip


def test_pages_of_megabytes_come_soon_and_are_bounded(engine, stranger, new_item, day):
    lead = accounts.create_moderator(engine, "cora", "lead")
    signs = ["<", "\u202ea", "\n", "\U0001f525"] * 2
    texts = [sign * (1_000_000 // len(sign.encode())) for sign in signs]
    intake.enqueue(engine, [new_item(f"c{i}", i + 1, text=t) for i, t in enumerate(texts)], day)
    lease = leases.lease(engine, lead.id)
    assert lease is not None
    escalate(engine, lead, lease, reason="legal")
    session = session_of(engine, lead)
    headers = {**by_cookie(session), CSRF_HEADER: csrf_of(session)}
    for path, whole in SHOWN_WHOLE.items():
        started = time.process_time()
        answer = (
            stranger.post(path, json={"count": 2}, headers=headers)
            if path == "/next"
            else stranger.get(path, headers=headers)
        )
        assert answer.status_code in (200, 303)
        assert time.process_time() - started < 5
        assert len(answer.content) < 100_000 + whole * 6_500_000


BROKEN = (b"\0", b"%00", b"\xff\xfe", b"%ff", b"\xed\xa0\x80", b"%ed%a0%80")


def test_what_is_no_text_is_refused(engine, stranger, ann, fill):
    """NUL, halves of surrogate pairs and other bytes, in forms, addresses, cookies and headers."""
    fill(1)
    session = session_of(engine, ann)
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    csrf, cookie = csrf_of(session).encode(), {"Cookie": f"{LOGIN_COOKIE}=s"}
    bearer = bearer_of(engine, ann)
    for broken in BROKEN:
        note = b"csrf=" + csrf + b"&item_id=1&lease_token=t&verdict=1&note=" + broken
        search = b"csrf=" + csrf + b"&comment_id=" + broken
        login = b"csrf=" + csrf_of("s").encode() + b"&pseudonym=" + broken + b"&password=" + broken
        for path, content, headers in (
            ("/decide", note, by_cookie(session)),
            ("/search", search, by_cookie(session)),
            ("/login", login, cookie),
            ("/login", login.replace(b"pseudonym", b"token"), cookie),
        ):
            answer = stranger.post(path, content=content, headers={**headers, **form})
            assert answer.status_code < 500, path
        for header in ("Idempotency-Key", "X-Lease-Token", "X-Modwatch-CSRF", "Accept-Language"):
            sent: Any = {**bearer, "Idempotency-Key": "k", header: b"x" + broken}
            body = {"lease_token": "t", "label": 1}
            for path in ("decisions", "lease"):
                answer = stranger.post(f"/api/v1/items/1/{path}", json=body, headers=sent)
                assert 400 <= answer.status_code < 500, header
    assert verification.verify_log(engine).decisions == 0


def test_what_json_can_say_and_a_database_cannot_store_is_refused(engine, stranger, fill):
    fill(1)
    headers = bearer_of(engine, accounts.create_moderator(engine, "cora", "lead"))
    lease = stranger.post("/api/v1/leases", headers=headers).json()
    sent = {**headers, "Content-Type": "application/json", "Idempotency-Key": "k"}
    path = f"/api/v1/items/{lease['item']['id']}/decisions"
    held = {"lease_token": lease["token"], "label": 1}
    for body in (held | {"note": "x~"}, held | {"lease_token": "~"}, held | {"~": 1}):
        for escape in (r"\u0000", r"\ud800", r"\udfff"):
            content = json.dumps(body).replace("~", escape)
            answer = stranger.post(path, content=content, headers=sent)
            assert answer.status_code in (409, 422), body
            assert set(answer.json()) == {"error"}
    assert verification.verify_log(engine).decisions == 0
    # A refusal is short, whatever it refuses.
    for long in ({"x" * 900_000: 1}, {f"field {i}": i for i in range(40_000)}):
        answer = stranger.post(path, json=held | long, headers=sent)
        assert answer.status_code == 422
        assert len(answer.content) < 5_000


def test_absurd_times_are_refused_or_harmless(engine, stranger, fill):
    """Seconds, days and moments that no clock ever shows."""
    fill(3)
    cora = accounts.create_moderator(engine, "cora", "lead")
    headers = bearer_of(engine, cora)
    lead = session_of(engine, cora)
    admin = session_of(engine, accounts.create_moderator(engine, "ada", "admin"))
    lease = stranger.post("/api/v1/leases", headers=headers).json()
    path = f"/api/v1/items/{lease['item']['id']}/decisions"
    keyed = {**headers, "Idempotency-Key": "k", "Content-Type": "application/json"}
    for seconds in ("-1", "1e308", "86401", "NaN", "Infinity", "-Infinity", '"1e999"', "1e999"):
        body = f'{{"lease_token": "{lease["token"]}", "label": 1, "seconds": {seconds}}}'
        assert stranger.post(path, content=body, headers=keyed).status_code == 422, seconds
    days = ("0001-01-01", "1969-12-31", "9999-12-31", "10000-01-01", "-0001-01-01", "1e300", "")
    moments = ("9999-12-31T23:59", "0001-01-01T00:00", "1e300", "-1e18")
    for session, place, names, values in (
        (lead, "lead/team", ("first", "last"), days),
        (lead, "lead/errors", ("first", "last"), days),
        (lead, "search", ("first_day", "last_day"), days),
        (lead, "lead/close/count", ("first_day", "last_day", "queued_before"), (*days, *moments)),
        (admin, "records/export", ("first", "last"), days),
    ):
        for name, value in product(names, values):
            form = {"csrf": csrf_of(session), "format": "csv", "queue": "", name: value}
            if place.startswith(("lead/team", "lead/errors")):
                answer = stranger.get(f"/{place}", params={name: value}, headers=by_cookie(session))
            else:
                answer = stranger.post(f"/{place}", data=form, headers=by_cookie(session))
            assert answer.status_code in (200, 422), (place, name, value)
    right = {"lease_token": lease["token"], "label": 1, "seconds": 3}
    assert stranger.post(path, json=right, headers=keyed).status_code == 201

"""Somebody who has a person's password, and not the device that shows the codes."""

import re
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pyotp
import pytest
from databases import execute
from fastapi.testclient import TestClient
from sqlalchemy import Engine, text

from modwatch.common.errors import AccessDeniedError, CodeRequiredError, QueueError, ThrottledError
from modwatch.review.console.app import create_app
from modwatch.review.console.request_context import SESSION_COOKIE, ConsoleOptions
from modwatch.review.events import recent_events
from modwatch.review.people import accounts, passwords, second_factor, sessions
from modwatch.review.people.accounts import Moderator
from review.console.visiting import hidden, session_of

GOOD = "a long pass phrase"


class Device:
    """Shows codes; each call moves on by half a minute, as the log-ins of a day do."""

    def __init__(self, engine: Engine, person: Moderator) -> None:
        self.engine, self.person = engine, person
        self.totp = pyotp.TOTP(second_factor.begin_enrolment(engine, person.id))
        self.recovery = second_factor.confirm_enrolment(engine, person.id, self.now())

    def now(self) -> str:
        return self.totp.at(time.time())

    def pass_time(self) -> None:
        """Let the last accepted code be one of the past."""
        with self.engine.begin() as connection:
            connection.execute(text("UPDATE second_factor SET last_step = last_step - 9"))


@pytest.fixture
def lea(engine, fast_hashes):
    person = accounts.create_moderator(engine, "lea", "lead")
    passwords.set_password(engine, person.id, GOOD)
    return person


@pytest.fixture
def device(engine, lea):
    made = Device(engine, lea)
    made.pass_time()
    return made


def first_step(engine: Engine) -> str:
    with pytest.raises(CodeRequiredError) as due:
        passwords.log_in(engine, "lea", GOOD, address="::1")
    return due.value.pending


def second_step(engine: Engine, pending: str, code: str) -> str:
    return second_factor.finish_log_in(engine, pending, code, address="::1", device="d")


def test_password_and_code_open_a_session(engine, device, lea):
    pending = first_step(engine)
    with pytest.raises(AccessDeniedError):
        sessions.authenticate(engine, pending, "session")  # it opens nothing by itself
    assert (
        sessions.authenticate(engine, second_step(engine, pending, device.now()), "session") == lea
    )
    found = [event for event in recent_events(engine) if event.action == "log_in"]
    assert [match.details["by"] for match in found] == ["password and code"]


def test_a_used_or_older_code_opens_nothing(engine, device, lea):
    code, before = device.now(), device.totp.at(time.time() - 30)
    assert second_step(engine, first_step(engine), code)
    for replayed in (code, f" {code[:3]} {code[3:]}"):
        with pytest.raises(AccessDeniedError, match="used"):
            second_step(engine, first_step(engine), replayed)
    with pytest.raises(AccessDeniedError):
        second_step(engine, first_step(engine), before)
    # A first step ends with a new password.
    pending = first_step(engine)
    device.pass_time()
    passwords.set_password(engine, lea.id, "another long pass phrase")
    with pytest.raises(AccessDeniedError):
        second_step(engine, pending, device.now())


def test_one_code_sent_many_times_at_once_opens_one_session(engine, device):
    pending, code = first_step(engine), device.now()

    def send(_: int) -> bool:
        try:
            return bool(second_step(engine, pending, code))
        except AccessDeniedError:
            return False

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(send, range(16))) == 1


def test_guessing_codes_is_five_guesses_whatever_the_log_ins(engine, device):
    refused = []
    for number in range(20):
        try:
            second_step(engine, first_step(engine), f"{number:06}")
        except AccessDeniedError as exc:
            refused.append(type(exc))
    assert refused.count(AccessDeniedError) == 5
    assert refused.count(ThrottledError) == 15
    with pytest.raises(ThrottledError):
        second_step(engine, first_step(engine), device.now())
    failed = [event for event in recent_events(engine) if event.action == "log_in_failed"]
    assert {item.subject for item in failed} == {"lea"}
    assert len(failed) == 5


def test_a_recovery_code_is_used_once(engine, device):
    first, *others = device.recovery
    assert len(set(device.recovery)) == 10
    assert second_step(engine, first_step(engine), f"{first[:10]}-{first[10:].upper()}")
    with pytest.raises(AccessDeniedError):
        second_step(engine, first_step(engine), first)
    assert second_step(engine, first_step(engine), others[0])
    with engine.connect() as connection:
        stored = str(connection.execute(text("SELECT * FROM second_factor")).one())
    assert not any(code in stored for code in device.recovery)


@pytest.mark.parametrize(
    "end",
    ["UPDATE second_factor SET pending_until = now()", "UPDATE moderator SET disabled_at = now()"],
)
def test_a_first_step_does_not_last(engine, device, end):
    pending = first_step(engine)
    execute(engine, end)
    with pytest.raises(AccessDeniedError):
        second_step(engine, pending, device.now())


def test_a_thief_does_not_replace_the_device(engine, device, lea):
    with pytest.raises(QueueError, match="reset it first"):
        second_factor.begin_enrolment(engine, lea.id)
    with pytest.raises(QueueError, match="no enrolment"):
        second_factor.confirm_enrolment(engine, lea.id, device.now())


@pytest.fixture
def strict(engine):
    app = create_app(engine, ConsoleOptions(require_second_factor=True))
    with TestClient(app, raise_server_exceptions=False, headers={"Accept": "text/html"}) as client:
        yield client


def send(client: TestClient, **typed: str) -> httpx.Response:
    return client.post("/login", data=hidden(client.get("/login"), "login") | typed)


def test_where_it_is_required_nothing_else_is_open_before(engine, strict, lea, ann):
    page = send(strict, pseudonym="lea", password=GOOD)
    assert page.url.path == "/second-factor"
    assert "Your role requires a second factor" in page.text
    for path in ("/lead", "/search", "/records", "/api/v1/decisions"):
        assert strict.get(path).status_code == 403, path
    assert strict.post("/api/v1/leases", json={}).status_code == 403
    wrong = strict.post("/second-factor", data=hidden(page, "second-factor") | {"password": "x"})
    assert wrong.status_code == 422
    assert "current password is incorrect" in wrong.text
    form = hidden(page, "second-factor")
    shown = strict.post("/second-factor", data=form | {"password": GOOD})
    totp = pyotp.TOTP(re.findall(r'class="secret"[^>]*>(\w+)<', shown.text)[0])
    done = strict.post(
        "/second-factor/confirm", data=hidden(shown, "confirm") | {"code": totp.now()}
    )
    recovery = re.findall(r"<li><code>(\w{20})</code>", done.text)
    assert len(recovery) == 10
    assert strict.get("/lead").url.path == "/login"
    page = send(strict, pseudonym="lea", password=GOOD)
    assert "Code from your authenticator app" in page.text
    assert strict.get("/lead").url.path == "/login"  # not before the code
    page = send(strict, pseudonym="lea", password=GOOD)
    wrong = strict.post("/login", data=hidden(page, "login") | {"code": "000000"})
    assert wrong.status_code == 401
    page = send(strict, pseudonym="lea", password=GOOD)
    strict.post("/login", data=hidden(page, "login") | {"code": recovery[0]})
    assert strict.get("/lead").status_code == 200
    passwords.set_password(engine, ann.id, GOOD)
    strict.cookies.delete(SESSION_COOKIE)
    assert send(strict, pseudonym="ann", password=GOOD).url.path == "/"  # a moderator


def test_an_admin_resets_it(engine, visitor, device, lea):
    admin = accounts.create_moderator(engine, "the admin", "admin")
    visitor.cookies.set(SESSION_COOKIE, session_of(engine, admin))
    session = session_of(engine, lea)
    page = visitor.get(f"/admin/people/{lea.id}")
    assert "Reset second factor" in page.text
    form = hidden(page, f"people/{lea.id}") | {"second_factor": "reset"}
    assert "Reset second factor" not in visitor.post(f"/admin/people/{lea.id}", data=form).text
    with pytest.raises(AccessDeniedError):
        sessions.authenticate(engine, session, "session")
    assert passwords.log_in(engine, "lea", GOOD, address="::1")
    reset = [event for event in recent_events(engine) if event.action == "reset_second_factor"]
    assert [(item.actor, item.subject) for item in reset] == [("the admin", "lea")]

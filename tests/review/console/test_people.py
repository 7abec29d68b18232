import html
import re

import httpx
import pytest
from fastapi.testclient import TestClient
from sqlalchemy import Engine, text

from modwatch.common.errors import AccessDeniedError
from modwatch.review.console.app import create_app
from modwatch.review.console.request_context import SESSION_COOKIE
from modwatch.review.outbox.delivery import delivery_state
from modwatch.review.people import access_tokens, accounts
from modwatch.review.people.sessions import authenticate, open_session
from review.console.visiting import plain
from review.labelling import open_queues


@pytest.fixture
def ada(engine):
    return accounts.create_moderator(engine, "ada", "admin")


@pytest.fixture
def admin(engine, ada):
    with TestClient(create_app(engine), raise_server_exceptions=False) as client:
        client.headers["Accept"] = "text/html"
        token = access_tokens.issue_token(engine, ada.id)
        client.cookies.set(SESSION_COOKIE, open_session(engine, token))
        yield client


def csrf(page: httpx.Response) -> dict[str, str]:
    found = re.search(r'name="csrf" value="([^"]*)"', page.text)
    assert found is not None
    return {"csrf": found[1]}


def account(engine: Engine, pseudonym: str) -> accounts.Account:
    return next(person for person in accounts.people(engine) if person.pseudonym == pseudonym)


def test_an_account_from_first_to_last(engine, admin):
    form = csrf(admin.get("/admin"))
    page = admin.post("/admin/people", data=form | {"pseudonym": "wren", "role": "moderator"})
    wren = accounts.find_moderator(engine, "wren")
    here = f"/admin/people/{wren.id}"
    assert page.url.path == here
    admin.post(here, data=form | {"role": "lead"})
    unknown = admin.post(here, data=form | {"queues": "de"})
    assert unknown.status_code == 422
    assert "unknown queue 'de' (known queues: general)" in html.unescape(unknown.text)
    open_queues(engine, "de", "fr")
    admin.post(here, data=form | {"queues": "de\n\n fr \nde"})
    assert (account(engine, "wren").role, account(engine, "wren").queues) == ("lead", {"de", "fr"})
    assert admin.post(here, data=form | {"password": "a good long sentence 7"}).status_code == 200
    assert account(engine, "wren").has_password
    admin.post(here, data=form | {"queues": " \n"})
    assert account(engine, "wren").queues is None
    admin.post(here, data=form | {"disabled": "yes"})
    assert account(engine, "wren").disabled_at is not None
    assert "Disabled" in plain(admin.get("/admin"))
    admin.post(here, data=form | {"disabled": "no"})
    assert account(engine, "wren").disabled_at is None
    message = plain(admin.get(here))
    for action in ("create", "change_role", "set_queues", "set_password", "disable", "enable"):
        assert action in message
    assert "a good long sentence" not in admin.get("/admin/events").text
    assert admin.get("/admin/people/9999").status_code == 404


def test_a_token_is_shown_once_and_revoked(engine, admin, ann, ben):
    here = f"/admin/people/{ann.id}"
    form = csrf(admin.get(here))
    page = admin.post(
        f"{here}/tokens", data=form | {"name": "tablet", "days": "30", "scopes": "review"}
    )
    assert page.status_code == 201
    shown = re.search(r'class="secret"[^>]*>([^<]+)<', page.text)
    assert shown is not None
    assert authenticate(engine, shown[1]).scopes == {"review"}
    page = admin.get(here)
    assert shown[1] not in page.text
    assert "tablet" in page.text
    (token,) = access_tokens.tokens(engine, ann.id)
    admin.post(f"{here}/revoke", data=form | {"token_id": str(token.id)})
    with pytest.raises(AccessDeniedError):
        authenticate(engine, shown[1])
    # All sessions are ended; the token that opened them stays, and so does that of another person.
    kept, bens = (access_tokens.issue_token(engine, person.id) for person in (ann, ben))
    sessions = [open_session(engine, kept) for _ in range(2)]
    admin.post(f"{here}/revoke", data=form)
    for session in sessions:
        with pytest.raises(AccessDeniedError):
            authenticate(engine, session, "session")
    (other,) = access_tokens.tokens(engine, ben.id)
    page = admin.post(f"{here}/revoke", data=form | {"token_id": str(other.id)})
    assert page.status_code == 404
    assert [authenticate(engine, token).pseudonym for token in (kept, bens)] == ["ann", "ben"]


def test_no_one_shuts_themselves_out_or_creates_a_name_that_deceives(engine, admin, ada):
    here = f"/admin/people/{ada.id}"
    form = csrf(admin.get(here))
    for change in ({"role": "ops"}, {"disabled": "yes"}):
        page = admin.post(here, data=form | change)
        assert page.status_code == 422
        assert "ask another admin" in plain(page)
    assert account(engine, "ada").role == "admin"
    for pseudonym, role in (
        ("", "moderator"), ("zed", "king"), ("аda", "moderator"), ("z\u202eed", "moderator"),
    ):  # fmt: skip
        page = admin.post("/admin/people", data=form | {"pseudonym": pseudonym, "role": role})
        assert page.status_code == 422
    assert len(accounts.people(engine)) == 1


def test_what_was_given_up_is_sent_again(engine, admin):
    assert "No pending or failed deliveries." in plain(admin.get("/deliveries"))
    dead_letters(engine, 3)
    page = admin.get("/deliveries")
    assert plain(page).count("answer 500") == 3
    assert "a secret payload" not in page.text
    form = csrf(page) | {"channel": "platform"}
    admin.post("/deliveries/resend", data=form | {"message_id": "1"})
    state = delivery_state(engine)["platform"]
    assert (state.pending, state.dead) == (1, 2)
    admin.post("/deliveries/resend", data=form)
    assert delivery_state(engine)["platform"].pending == 3


def dead_letters(engine: Engine, n: int) -> None:
    with engine.begin() as connection:
        for number in range(1, n + 1):
            connection.execute(
                text(
                    "INSERT INTO outbox_message (key, topic, series, sequence, dt, payload) VALUES "
                    "(:key, 'decision', :key, 1, now(), CAST(:payload AS jsonb))"
                ),
                {"key": f"k{number}", "payload": '{"event": "decided", "x": "a secret payload"}'},
            )
        connection.execute(
            text(
                "INSERT INTO outbox_delivery (message_id, channel, attempts, dead_at, "
                "last_problem) SELECT id, 'platform', 9, now(), 'answer 500' FROM outbox_message"
            )
        )

import base64
import hmac
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from databases import scalars
from joserfc.jwk import RSAKey
from sqlalchemy import select

from modwatch.common.errors import AccessDeniedError, QueueError
from modwatch.review.events import recent_events
from modwatch.review.people import access_tokens, accounts, changes, sessions
from modwatch.review.people.accounts import Moderator
from modwatch.review.people.oidc import OidcOptions, Provider
from modwatch.review.tables import moderator

_PEM = (serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)


@pytest.fixture
def options(fake):
    return OidcOptions(
        issuer=fake.issuer,
        client_id="modwatch",
        client_secret="a secret: with / signs",
        redirect_url="http://127.0.0.1:8090/oidc/return",
        role_claim="realm.roles",
        roles={"mod-leads": "lead", "mods": "moderator"},
    )


@pytest.fixture
def provider(options):
    return Provider(options, httpx.Client(timeout=5), pause=0)


@pytest.fixture
def enter(engine, fake, provider):
    def go(role: object = "mods", **claims: Any) -> Moderator:
        pending = provider.begin()
        code, state = fake.visit(pending.url, realm={"roles": role}, **claims)
        session = provider.finish(engine, cookie=pending.cookie, state=state, code=code)
        return sessions.authenticate(engine, session, "session")

    return go


def test_a_person_gets_a_made_up_pseudonym_and_keeps_the_account(engine, fake, enter):
    first = enter()
    assert enter() == first
    assert first.role == "moderator"
    assert first.pseudonym.startswith("person-")
    assert enter(subject="s-2").id != first.id
    with engine.connect() as connection:
        rows = connection.execute(select(moderator)).all()
    assert {row.oidc_subject for row in rows} == {f"{fake.issuer}|s-1", f"{fake.issuer}|s-2"}
    assert "Ann" not in str(rows)
    assert "example" not in str(rows)


def test_the_role_follows_the_claim(engine, enter):
    person = enter(["others", "mods"])
    assert person.role == "moderator"
    assert enter(["mods", "mod-leads"]).role == "lead"
    actions = [event.action for event in recent_events(engine, subject_id=person.id)]
    assert actions == ["log_in", "change_role", "log_in", "create"]
    for none in ("nobody", [], None, {"mods": 1}, 3):
        with pytest.raises(AccessDeniedError, match="no known role"):
            enter(none)


def test_without_a_role_all_access_ends_until_there_is_one_again(engine, fake, provider, enter):
    person = enter()
    token = access_tokens.issue_token(engine, person.id)
    session = sessions.open_session(engine, token)
    with pytest.raises(AccessDeniedError, match="no known role"):
        enter("nobody", subject="s-2")  # someone else
    assert sessions.authenticate(engine, token) == person
    with pytest.raises(AccessDeniedError, match="no known role"):
        enter("nobody")
    for replayed, purpose in ((token, "api"), (session, "session")):
        with pytest.raises(AccessDeniedError):
            sessions.authenticate(engine, replayed, purpose)  # type: ignore[arg-type]
    assert enter() == person
    with pytest.raises(AccessDeniedError):
        sessions.authenticate(engine, token)
    changes.disable(engine, person.id)
    with pytest.raises(AccessDeniedError, match="disabled"):
        enter()


def test_first_logins_at_once_are_one_person(fake, enter):
    together = threading.Barrier(4)

    def wait(claims: dict[str, Any]) -> dict[str, Any]:
        together.wait()
        return claims

    enter(subject="s-0")  # keys and configuration are known from here
    fake.claims = wait
    with ThreadPoolExecutor(4) as pool:
        for subject in "abc":
            found = pool.map(lambda _, subject=subject: enter(subject=subject), range(4))
            assert len({person.id for person in found}) == 1


WRONG_CLAIMS: list[dict[str, Any]] = [
    {"nonce": "another"},
    {"nonce": None},
    {"aud": "another"},
    {"aud": ["modwatch", "another"]},
    {"azp": "another"},
    {"iss": "https://another.example"},
    {"sub": ""},
    {"sub": "nul\0"},
    {"sub": 7},
    {"sub": "x" * 256},
]


def test_wrong_and_missing_claims_are_refused(engine, fake, enter):
    now = int(time.time())
    for change in (*WRONG_CLAIMS, {"exp": now - 3600}, {"iat": now + 3600}):
        fake.claims = lambda claims, change=change: claims | change
        with pytest.raises(AccessDeniedError, match="is not valid"):
            enter()
    for missing in ("iss", "sub", "aud", "exp", "iat", "nonce"):
        fake.claims = lambda claims, missing=missing: {
            name: claims[name] for name in claims if name != missing
        }
        with pytest.raises(AccessDeniedError, match="is not valid"):
            enter()
    assert accounts.people(engine) == []


def _unsigned(fake: Any, claims: dict[str, Any]) -> str:
    parts = ({"alg": "none", "kid": fake.kid, "typ": "JWT"}, claims)
    return f"{b'.'.join(_base64(json.dumps(part).encode()) for part in parts).decode()}."


def _by_a_stranger(fake: Any, claims: dict[str, Any]) -> str:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return str(fake.signed(claims, key=key))


def _with_the_public_key_as_a_secret(fake: Any, claims: dict[str, Any]) -> str:
    public = fake.key.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return _with_a_shared_key(public, claims, fake.kid)


def _with_a_shared_key(secret: bytes, claims: dict[str, Any], kid: str = "shared") -> str:
    parts = ({"alg": "HS256", "kid": kid, "typ": "JWT"}, claims)
    signed = b".".join(_base64(json.dumps(part).encode()) for part in parts)
    return f"{signed.decode()}.{_base64(hmac.digest(secret, signed, 'sha256')).decode()}"


def _base64(content: bytes) -> bytes:
    return base64.urlsafe_b64encode(content).rstrip(b"=")


def _changed(fake: Any, claims: dict[str, Any]) -> str:
    head, _, tail = fake.signed(claims).split(".")
    body = json.dumps(claims | {"realm": {"roles": "mod-leads"}}).encode()
    return f"{head}.{_base64(body).decode()}.{tail}"


def _by_an_unknown_key(fake: Any, claims: dict[str, Any]) -> str:
    return str(fake.signed(claims, headers={"kid": "elsewhere"}))


def _by_a_key_of_its_own(fake: Any, claims: dict[str, Any]) -> str:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    own = RSAKey.import_key(key.public_key().public_bytes(*_PEM)).as_dict(private=False)
    return str(fake.signed(claims, key=key, headers={"jwk": own}))


def _no_token(*_: object) -> str:
    return "no.to.ken"


def test_forged_tokens_are_refused(fake, enter):
    for forge in (
        _unsigned, _by_a_stranger, _with_the_public_key_as_a_secret, _changed, _by_an_unknown_key,
        _by_a_key_of_its_own, _no_token,
    ):  # fmt: skip
        fake.sign = lambda claims, forge=forge: forge(fake, claims)
        with pytest.raises(AccessDeniedError, match="is not valid"):
            enter()
    # Keys that cannot sign are ignored.
    shared = {"kty": "oct", "k": "c2VjcmV0", "kid": "shared"}
    encrypting = fake.published_key() | {"use": "enc"}
    fake.more_keys = [{"kty": "ML-DSA", "kid": "new"}, shared, {"kty": 7}, "text", encrypting]
    fake.sign = fake.signed
    assert enter().role == "moderator"
    fake.sign = lambda claims: _with_a_shared_key(b"secret", claims)
    with pytest.raises(AccessDeniedError, match="is not valid"):
        enter()


@pytest.mark.parametrize("kind", ["RS256", "ES256"])
def test_keys_rotate(fake, enter, kind):
    first = enter()
    assert enter() == first
    assert fake.key_requests == 1
    fake.rotate("second", kind)
    assert enter() == first
    assert fake.key_requests == 2


def test_unknown_keys_do_not_make_a_flood(engine, fake, options):
    fake.sign = lambda claims: fake.signed(claims, headers={"kid": "elsewhere"})
    patient = Provider(options)
    for _ in range(3):
        pending = patient.begin()
        code, state = fake.visit(pending.url)
        with pytest.raises(AccessDeniedError):
            patient.finish(engine, cookie=pending.cookie, state=state, code=code)
    assert fake.key_requests == 1


def test_an_answer_belongs_to_the_browser_that_asked(engine, fake, provider):
    mine, theirs = provider.begin(), provider.begin()
    code, state = fake.visit(theirs.url, realm={"roles": "mods"})
    state_alone = mine.cookie.split(".")[0]
    without_nonce = f"{state}..{theirs.cookie.split('.')[2]}"
    for cookie in (mine.cookie, "", "..", state, f"{state}.x", f"{state}.x.y.z", without_nonce):
        with pytest.raises(AccessDeniedError, match="this browser"):
            provider.finish(engine, cookie=cookie, state=state, code=code)
    with pytest.raises(AccessDeniedError, match="rejected"):  # a stolen code fails by PKCE
        provider.finish(engine, cookie=mine.cookie, state=state_alone, code=code)
    with pytest.raises(AccessDeniedError, match="another identity provider"):
        provider.finish(
            engine,
            cookie=mine.cookie,
            state=state_alone,
            code=code,
            issuer="https://another.example",
        )


def test_a_provider_that_promises_its_name_must_give_it(engine, fake, provider):
    fake.configuration = {"authorization_response_iss_parameter_supported": True}
    pending = provider.begin()
    code, state = fake.visit(pending.url, realm={"roles": "mods"})
    answer = {"cookie": pending.cookie, "state": state, "code": code}
    with pytest.raises(AccessDeniedError, match="another identity provider"):
        provider.finish(engine, **answer)
    assert provider.finish(engine, **answer, issuer=fake.issuer)
    with pytest.raises(AccessDeniedError, match="rejected"):  # a code works once
        provider.finish(engine, **answer, issuer=fake.issuer)


def test_an_unsafe_or_absent_provider_is_refused(fake, options):
    for published, problem in (
        ({"issuer": "https://another.example"}, "another issuer"),
        ({"authorization_endpoint": "http://login.example/authorize"}, "not https"),
        ({"authorization_endpoint": "javascript:alert(1)"}, "not https"),
        ({"authorization_endpoint": None}, "publishes no"),
        ({"authorization_endpoint": "https://[no"}, "is not a URL"),
    ):
        fake.configuration = published
        with pytest.raises(QueueError, match=problem):
            Provider(options, httpx.Client(timeout=5)).begin()
    fake.server_close()
    with pytest.raises(QueueError, match=f"{fake.issuer} did not send a valid response"):
        Provider(options, httpx.Client(timeout=1)).begin()
    with pytest.raises(QueueError, match="unknown role 'owner'"):
        Provider(OidcOptions(**{**vars(options), "roles": {"x": "owner"}}))


def test_secrets_stay_out_of_sight(engine, options, provider, enter):
    assert options.client_secret not in repr(options)
    assert provider.begin().cookie not in repr(provider.begin())
    enter()
    events = scalars(engine, "SELECT details::text FROM event")
    created, logged_in = map(json.loads, events)
    assert created.keys() == {"pseudonym", "role", "by_oidc"}
    assert logged_in == {"by": "provider", "network": ""}

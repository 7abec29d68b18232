"""Log-in through an OpenID Connect provider: the code flow with PKCE, state and nonce.

joserfc reads keys and verifies signatures; Authlib builds the request and validates the claims.
Only the subject and the role are stored: the account gets a random pseudonym, never a name or an
address. See OpenID Connect Core 1.0, section 3.1, and RFC 9700.
"""

import base64
import hmac
import secrets
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote_plus, urlsplit

import httpx
from authlib.oauth2.rfc6749.parameters import prepare_grant_uri
from authlib.oauth2.rfc7636 import create_s256_code_challenge
from authlib.oidc.core import CodeIDToken
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import Key, import_key
from sqlalchemy import Connection, Engine, Select, select

from modwatch.common.addresses import is_loopback
from modwatch.common.cache import TimedCache
from modwatch.common.errors import AccessDeniedError, QueueError
from modwatch.review.events import record_event
from modwatch.review.people.access_tokens import end_access
from modwatch.review.people.accounts import add_account, lock_names, lock_person, update_person
from modwatch.review.people.changes import set_role
from modwatch.review.people.groups import forget_group
from modwatch.review.people.sessions import begin_session, record_log_in
from modwatch.review.tables import ROLES, moderator

#: Asymmetric algorithms only: a token with HS256 or `none` is rejected before it is verified.
ALGORITHMS = ("RS256", "ES256")

#: Allowed clock difference, in seconds.
LEEWAY = 60

#: Seconds for which the published configuration and keys are cached.
KEPT = 3600.0

#: Minimum seconds between two requests for keys, whichever keys tokens name.
PAUSE = 10.0

#: Characters of random pseudonyms; none looks like another.
_LETTERS = "abcdefghjkmpqrstuwxyz23456789"

_REJECTED = "the identity provider's token is not valid; log in again, or ask its administrator"


@dataclass(frozen=True, kw_only=True)
class OidcOptions:
    """The configuration of the OIDC client."""

    #: As the provider writes it, `https://…`; http on loopback only.
    issuer: str
    client_id: str
    client_secret: str = field(repr=False)
    #: To which the provider redirects people.
    redirect_url: str
    #: The claim of the id token with the role or roles, by name or dotted path.
    role_claim: str
    #: Role by value of the claim; of several values, the first in this order counts.
    roles: Mapping[str, str]
    scope: str = "openid"


@dataclass(frozen=True, kw_only=True)
class PendingLogin:
    """A log-in in progress in one browser, which stores `cookie` and goes to `url`."""

    url: str
    #: For a short-lived HttpOnly cookie, SameSite=Lax, which ties the response to the browser.
    cookie: str = field(repr=False)


class Provider:
    """The provider of `options`; thread-safe, and caches its configuration and keys.

    `client` sends the requests; unknown keys are fetched every `pause` seconds at most.
    """

    def __init__(
        self, options: OidcOptions, client: httpx.Client | None = None, *, pause: float = PAUSE
    ) -> None:
        if unknown := sorted(set(options.roles.values()) - set(ROLES)):
            raise QueueError(f"unknown role {unknown[0]!r}; choose from {', '.join(ROLES)}")
        self._options = options
        self._client = client or httpx.Client(timeout=10)
        self._pause = pause
        self._lock = threading.Lock()
        self._published = TimedCache(self._discovered, KEPT)
        self._keys: tuple[float, Mapping[str | None, Mapping[str, Any]]] | None = None

    def begin(self) -> PendingLogin:
        """Return where to send the browser; raise `QueueError` if the provider does not respond."""
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        url = prepare_grant_uri(
            self._endpoint("authorization_endpoint"),
            self._options.client_id,
            "code",
            redirect_uri=self._options.redirect_url,
            scope=self._options.scope,
            state=state,
            nonce=nonce,
            code_challenge=create_s256_code_challenge(verifier),
            code_challenge_method="S256",
        )
        return PendingLogin(url=url, cookie=f"{state}.{nonce}.{verifier}")

    def finish(
        self,
        engine: Engine,
        *,
        cookie: str,
        state: str,
        code: str,
        address: str = "",
        issuer: str | None = None,
    ) -> str:
        """Return a session token for the person whom the provider has authenticated.

        `address` is where the person logs in from. `cookie` is that of `begin`; `state`, `code` and
        `issuer` are parameters of the redirect. The issuer may be missing only if the provider does
        not promise it (RFC 9207). The account is created at the first log-in, and its role follows
        the claim; without a role, `withdraw` ends the person's access. Raises `AccessDeniedError`
        for a response that was not requested or is invalid, a person without a role, or a disabled
        account; `QueueError` if the provider does not respond.
        """
        parts, given = cookie.split("."), state.encode(errors="surrogatepass")
        if len(parts) != 3 or not all(parts) or not hmac.compare_digest(parts[0].encode(), given):
            raise AccessDeniedError("this log-in was not started in this browser; log in again")
        promised = self._published().get("authorization_response_iss_parameter_supported") is True
        if issuer != self._options.issuer and (issuer is not None or promised):
            raise AccessDeniedError("the response is of another identity provider; log in again")
        claims = self._verified(self._id_token(code, verifier=parts[2]), nonce=parts[1])
        role = _role(claims, self._options)
        subject = f"{self._options.issuer}|{claims['sub']}"
        if role is None:
            withdraw(engine, subject)
            raise AccessDeniedError(
                "the identity provider gives this person no known role; ask its administrator"
            )
        with engine.begin() as connection:
            moderator_id = _account(connection, subject, role)
            record_log_in(connection, moderator_id, "provider", address)
            return begin_session(connection, moderator_id)

    def _id_token(self, code: str, verifier: str) -> str:
        options = self._options
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": options.redirect_url,
            "code_verifier": verifier,
        }
        headers = {}
        methods = self._published().get("token_endpoint_auth_methods_supported")
        if not isinstance(methods, list) or "client_secret_basic" in methods:
            # Authlib does not encode id and secret as RFC 6749, section 2.3.1, requires.
            pair = f"{quote_plus(options.client_id)}:{quote_plus(options.client_secret)}"
            headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        else:
            form |= {"client_id": options.client_id, "client_secret": options.client_secret}
        answer = self._request("POST", self._endpoint("token_endpoint"), data=form, headers=headers)
        token = answer.get("id_token")
        if not isinstance(token, str):
            raise AccessDeniedError("the identity provider sent no id token; log in again")
        return token

    def _verified(self, token: str, *, nonce: str) -> Mapping[str, Any]:
        """Return the claims of an id token for this client and the log-in of `nonce`.

        Raises `AccessDeniedError` unless the signature is by a published key, and issuer, audience,
        times, nonce and subject are valid.
        """
        expected = {"iss": self._options.issuer, "aud": self._options.client_id}
        try:
            found = jwt.decode(
                token, lambda part: self._key(part.headers().get("kid")), algorithms=ALGORITHMS
            )
            CodeIDToken(
                claims := found.claims,
                found.header,
                options={name: {"essential": True, "value": expected[name]} for name in expected},
                params={"nonce": nonce, "client_id": self._options.client_id},
            ).validate(leeway=LEEWAY)
        except (JoseError, ValueError, TypeError):
            raise AccessDeniedError(_REJECTED) from None  # the cause quotes parts of the token
        # OpenID Connect Core 1.0, section 2.
        if not (0 < len(claims["sub"]) <= 255 and claims["sub"].isprintable()):
            raise AccessDeniedError(_REJECTED)
        return claims

    def _key(self, kid: str | None) -> Key:
        """Return the published key `kid`; fetch the keys again if it is unknown."""
        address = self._endpoint("jwks_uri")
        with self._lock:
            known = self._keys
            now = time.monotonic()
            if known is None or now - known[0] > (KEPT if kid in known[1] else self._pause):
                known = self._keys = (now, _signing(self._request("GET", address)))
        if kid is None and len(known[1]) == 1:
            kid = next(iter(known[1]))
        if kid not in known[1]:
            raise AccessDeniedError(_REJECTED)
        return import_key(dict(known[1][kid]))

    def _endpoint(self, name: str) -> str:
        """Return the URL published as `name`; raise `QueueError` if it is missing or not secure."""
        address = self._published().get(name)
        if not isinstance(address, str):
            raise QueueError(
                f"the identity provider {self._options.issuer} publishes no {name}; check "
                "MODWATCH_OIDC_ISSUER"
            )
        return _safe(address)

    def _discovered(self) -> Mapping[str, Any]:
        """Return the provider's configuration (OpenID Connect Discovery 1.0)."""
        issuer = self._options.issuer
        address = f"{issuer.rstrip('/')}/.well-known/openid-configuration"
        content = self._request("GET", _safe(address))
        if content.get("issuer") != issuer:
            raise QueueError(
                f"{address} names another issuer than {issuer}; set MODWATCH_OIDC_ISSUER exactly "
                "as the provider writes it"
            )
        return content

    def _request(self, method: str, address: str, **content: Any) -> Mapping[str, Any]:
        try:
            answer = self._client.request(method, address, follow_redirects=False, **content)
            if method == "POST" and answer.is_client_error:
                raise AccessDeniedError(
                    "the identity provider rejected the log-in; log in again, and if that fails, "
                    "check the OIDC client id and secret"
                )
            document = answer.raise_for_status().json()
        except (httpx.HTTPError, httpx.InvalidURL, ValueError):
            document = None  # the error quotes the request, which must not be logged
        if not isinstance(document, dict):
            raise QueueError(
                f"the identity provider {self._options.issuer} did not send a valid "
                "response; try again later"
            )
        return document


def withdraw(engine: Engine, subject: str) -> None:
    """End all access of the person of `subject`, to whom the provider gives no role any more.

    Sessions and API tokens end, and a password that an admin set is removed: the provider decides
    who gets in. The group that the person chose is deleted, since they no longer can. An unknown
    subject is ignored.
    """
    with engine.begin() as connection:
        moderator_id: int | None = connection.scalar(_with_subject(subject))
        if moderator_id is None:
            return
        had_password = lock_person(connection, moderator_id)["password_hash"] is not None
        tokens, sessions = end_access(connection, moderator_id)
        forget_group(connection, moderator_id)
        if not (had_password or sessions or tokens):  # nothing was left to end
            return
        update_person(connection, moderator_id, password_hash=None)
        record_event(
            connection,
            "withdraw_role",
            actor_id=None,
            subject_id=moderator_id,
            revoked_tokens=tokens,
            had_password=had_password,
        )


def _with_subject(subject: str) -> Select[int]:
    return select(moderator.c.id).where(moderator.c.oidc_subject == subject)


def _account(connection: Connection, subject: str, role: str) -> int:
    """Return the id of the account of `subject`, locked, in `role`."""
    statement = _with_subject(subject)
    moderator_id: int | None = connection.scalar(statement)
    if moderator_id is None:
        lock_names(connection)
        moderator_id = connection.scalar(statement)  # another first log-in may have been faster
    if moderator_id is None:
        name = "person-" + "".join(secrets.choice(_LETTERS) for _ in range(10))
        person = add_account(connection, name, role, oidc_subject=subject)
        moderator_id = person.id
    if lock_person(connection, moderator_id)["disabled_at"] is not None:
        raise AccessDeniedError("this account is disabled; ask an admin")
    set_role(connection, moderator_id, role)
    return moderator_id


def _role(claims: Mapping[str, Any], options: OidcOptions) -> str | None:
    claim: Any = claims.get(options.role_claim)
    if claim is None:
        claim = claims
        for step in options.role_claim.split("."):
            claim = claim.get(step) if isinstance(claim, Mapping) else None
    values = claim if isinstance(claim, list) else [claim]
    return next((role for value, role in options.roles.items() if value in values), None)


def _signing(published: Mapping[str, Any]) -> dict[str | None, Mapping[str, Any]]:
    keys = published.get("keys")
    listed = keys if isinstance(keys, list) else []
    return {
        key.get("kid"): key
        for key in listed
        if isinstance(key, dict) and key.get("use", "sig") == "sig"
    }


def _safe(address: str) -> str:
    """Return `address`; raise `QueueError` unless it is https, or http on loopback."""
    try:
        parts = urlsplit(address)
    except ValueError:
        raise QueueError(f"{address!r} of the identity provider is not a URL") from None
    if parts.scheme != "https" and not (
        parts.scheme == "http" and is_loopback(parts.hostname or "")
    ):
        raise QueueError(
            f"the identity provider's address {address} is not https; http is allowed on loopback "
            "only"
        )
    return address

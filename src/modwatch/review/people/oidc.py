"""Log-in through an OpenID Connect provider: the code flow with PKCE, state and nonce.

Only the subject and the role are stored: the account gets a random pseudonym, never a name or an
address. See OpenID Connect Core 1.0, section 3.1, and RFC 9700.
"""

import base64
import datetime as dt
import hashlib
import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import httpx
from sqlalchemy import Connection, Engine, Select, select

from modwatch.common.errors import AccessDeniedError, QueueError
from modwatch.review.events import record_event
from modwatch.review.people.access_tokens import end_access
from modwatch.review.people.accounts import (
    add_account,
    lock_names,
    lock_person,
    update_person,
)
from modwatch.review.people.changes import set_role
from modwatch.review.people.discovery import PAUSE, Discovery, basic_credentials
from modwatch.review.people.groups import forget_group
from modwatch.review.people.sessions import begin_session, record_log_in
from modwatch.review.tables import ROLES, moderator

#: Characters of random pseudonyms, none of which looks like another.
_LETTERS = "abcdefghjkmpqrstuwxyz23456789"


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
    """The provider of `options`; thread-safe, and caches the provider's keys.

    `client` sends the requests; unknown keys are fetched every `pause` seconds at most.
    """

    def __init__(
        self, options: OidcOptions, client: httpx.Client | None = None, *, pause: float = PAUSE
    ) -> None:
        if unknown := sorted(set(options.roles.values()) - set(ROLES)):
            raise QueueError(f"unknown role {unknown[0]!r}; choose from {', '.join(ROLES)}")
        self._options = options
        self._discovery = Discovery(options.issuer, client or httpx.Client(timeout=10), pause=pause)

    def begin(self) -> PendingLogin:
        """Return where to send the browser; raise `QueueError` if the provider does not respond."""
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        challenge = hashlib.sha256(verifier.encode()).digest()
        query = {
            "response_type": "code",
            "client_id": self._options.client_id,
            "redirect_uri": self._options.redirect_url,
            "scope": self._options.scope,
            "state": state,
            "nonce": nonce,
            "code_challenge": base64.urlsafe_b64encode(challenge).rstrip(b"=").decode(),
            "code_challenge_method": "S256",
        }
        address = self._discovery.endpoint("authorization_endpoint")
        joint = "&" if "?" in address else "?"
        return PendingLogin(
            url=f"{address}{joint}{urlencode(query)}", cookie=f"{state}.{nonce}.{verifier}"
        )

    def finish(
        self,
        engine: Engine,
        *,
        cookie: str,
        state: str,
        code: str,
        lifetime: dt.timedelta,
        address: str = "",
        issuer: str | None = None,
    ) -> str:
        """Return a session token for the person whom the provider has authenticated.

        `address` is where the person logs in from. `cookie` is that of `begin`; `state`, `code` and
        `iss` are parameters of the redirect, of which `iss` may be missing only if the provider
        does not promise it (RFC 9207). The account
        is created at the first log-in, and its role follows the claim; without a role, the account
        is closed as `withdraw` says. Raises `AccessDeniedError` for a response that was not
        requested or is invalid, a person without a role, or a disabled account; `QueueError` if the
        provider does not respond.
        """
        parts, given = cookie.split("."), state.encode(errors="surrogatepass")
        if len(parts) != 3 or not hmac.compare_digest(parts[0].encode(), given):
            raise AccessDeniedError("this log-in was not started in this browser; log in again")
        left_out = issuer is None and not self._discovery.names_itself()
        if issuer != self._options.issuer and not left_out:
            raise AccessDeniedError("the response is of another identity provider; log in again")
        token = self._id_token(code, verifier=parts[2])
        claims = self._discovery.verified(token, audience=self._options.client_id, nonce=parts[1])
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
            return begin_session(connection, moderator_id, lifetime)

    def _id_token(self, code: str, verifier: str) -> str:
        options = self._options
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": options.redirect_url,
            "code_verifier": verifier,
        }
        headers = {}
        if self._discovery.takes_basic():
            headers = basic_credentials(options.client_id, options.client_secret)
        else:
            form |= {"client_id": options.client_id, "client_secret": options.client_secret}
        answer = self._discovery.post("token_endpoint", form, headers)
        token = answer.get("id_token")
        if not isinstance(token, str):
            raise AccessDeniedError("the identity provider sent no id token; log in again")
        return token


def withdraw(engine: Engine, subject: str) -> None:
    """End all access of the person of `subject`, to whom the provider gives no role any more.

    Sessions and API tokens end, and a password that an admin set is removed: the provider decides
    who gets in. The group that the person chose is deleted, since they no longer can. An unknown
    subject is ignored.
    """
    with engine.begin() as connection:
        moderator_id: int | None = connection.scalar(_of_subject(subject))
        if moderator_id is None:
            return
        had_password = lock_person(connection, moderator_id)["password_hash"] is not None
        ended = end_access(connection, moderator_id)
        forget_group(connection, moderator_id)
        if not (had_password or ended.sessions or ended.tokens):  # nothing was left to end
            return
        update_person(connection, moderator_id, password_hash=None)
        record_event(
            connection,
            "withdraw_role",
            actor_id=None,
            subject_id=moderator_id,
            revoked_tokens=ended.tokens,
            had_password=had_password,
        )


def _of_subject(subject: str) -> Select[int]:
    return select(moderator.c.id).where(moderator.c.oidc_subject == subject)


def _account(connection: Connection, subject: str, role: str) -> int:
    """Return the id of the account of `subject`, locked, in `role`."""
    statement = _of_subject(subject)
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
    for value, role in options.roles.items():
        if value in values:
            return role
    return None

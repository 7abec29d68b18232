"""Log-in through an OpenID Connect provider: the code flow with PKCE, state and nonce.

Of what the provider says, only the subject and the role are kept: the account gets a made-up
pseudonym, never a name or an address. See OpenID Connect Core 1.0, section 3.1, and RFC 9700.
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
from sqlalchemy import Connection, Engine, select

from modwatch.errors import AccessDeniedError, QueueError
from modwatch.review.people.accounts import add_account, lock_names, lock_person
from modwatch.review.people.changes import set_role
from modwatch.review.people.discovery import PAUSE, Discovery, basic_credentials
from modwatch.review.people.sessions import begin_session
from modwatch.review.tables import ROLES, moderator

#: What pseudonyms are made of: no two of these are mistaken for each other.
_LETTERS = "abcdefghjkmpqrstuwxyz23456789"


@dataclass(frozen=True, kw_only=True)
class OidcOptions:
    """How this installation is known to its provider."""

    #: As the provider writes it, `https://…`; plain http on loopback only.
    issuer: str
    client_id: str
    client_secret: str = field(repr=False)
    #: Where the provider sends people back to.
    redirect_url: str
    #: The claim of the id token that holds the role or roles, by name or dotted path.
    role_claim: str
    #: Role by value of the claim; of several, the one that stands first here is given.
    roles: Mapping[str, str]
    scope: str = "openid"


@dataclass(frozen=True, kw_only=True)
class PendingLogin:
    """A log-in that is under way in one browser, which keeps `cookie` and goes to `url`."""

    url: str
    #: For an HttpOnly cookie, SameSite=Lax, of some minutes: it ties the answer to the browser.
    cookie: str = field(repr=False)


class Provider:
    """The provider of `options`; one object serves all threads, and keeps the provider's keys.

    `client` is how it is reached; it looks for a new key every `pause` seconds at most.
    """

    def __init__(
        self, options: OidcOptions, client: httpx.Client | None = None, *, pause: float = PAUSE
    ) -> None:
        if unknown := sorted(set(options.roles.values()) - set(ROLES)):
            raise QueueError(f"unknown role {unknown[0]!r}; choose among {', '.join(ROLES)}")
        self._options = options
        self._discovery = Discovery(options.issuer, client or httpx.Client(timeout=10), pause=pause)

    def begin(self) -> PendingLogin:
        """Return where to send the browser; raise `QueueError` if the provider does not answer."""
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
        issuer: str | None = None,
    ) -> str:
        """Return a session token for the person whom the provider vouches for.

        `cookie` is what `begin` gave; `state`, `code` and, if there, `iss` come with the browser's
        return. The account is created with the first log-in, and its role follows the claim.
        Raises `AccessDeniedError` for an answer that was not asked for or does not hold, a person
        without a role, or a disabled one; `QueueError` if the provider does not answer.
        """
        parts = cookie.split(".")
        if len(parts) != 3 or not hmac.compare_digest(parts[0].encode(), _bytes(state)):
            raise AccessDeniedError("this log-in was not begun in this browser; begin again")
        if issuer is not None and issuer != self._options.issuer:
            raise AccessDeniedError("the answer is from another identity provider; begin again")
        claims = self._claims(code, nonce=parts[1], verifier=parts[2])
        role = _role(claims, self._options)
        subject = f"{self._options.issuer}|{claims['sub']}"
        with engine.begin() as connection:
            moderator_id = _account(connection, subject, role)
            return begin_session(connection, moderator_id, lifetime)

    def _claims(self, code: str, *, nonce: str, verifier: str) -> dict[str, Any]:
        return self._discovery.verified(
            self._id_token(code, verifier), audience=self._options.client_id, nonce=nonce
        )

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
            raise AccessDeniedError("the identity provider sent no id token; begin again")
        return token


def _account(connection: Connection, subject: str, role: str) -> int:
    """Return the id of the account of `subject`, locked, in `role`."""
    statement = select(moderator.c.id).where(moderator.c.oidc_subject == subject)
    moderator_id: int | None = connection.scalar(statement)
    if moderator_id is None:
        lock_names(connection)
        moderator_id = connection.scalar(statement)  # two first log-ins at once are one person
    if moderator_id is None:
        name = "person-" + "".join(secrets.choice(_LETTERS) for _ in range(10))
        person = add_account(connection, name, role, oidc_subject=subject)
        moderator_id = person.id
    if lock_person(connection, moderator_id)["disabled_at"] is not None:
        raise AccessDeniedError("this account is disabled; ask an admin")
    set_role(connection, moderator_id, role)
    return moderator_id


def _role(claims: Mapping[str, Any], options: OidcOptions) -> str:
    found: Any = claims.get(options.role_claim)
    if found is None:
        found = claims
        for step in options.role_claim.split("."):
            found = found.get(step) if isinstance(found, Mapping) else None
    values = found if isinstance(found, list) else [found]
    for value, role in options.roles.items():
        if value in values:
            return role
    raise AccessDeniedError(
        "the identity provider gives this person no role here; ask whoever manages it"
    )


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogatepass")

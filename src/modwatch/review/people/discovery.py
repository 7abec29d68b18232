"""OpenID Connect discovery: a provider's published configuration and keys, and its id tokens."""

import base64
import hmac
import ipaddress
import threading
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote_plus, urlsplit

import httpx
import jwt

from modwatch.common.errors import AccessDeniedError, QueueError

#: Asymmetric algorithms only: a token with HS256 or `none` is rejected before it is verified.
ALGORITHMS = ("RS256", "ES256")

#: Allowed clock difference, in seconds.
LEEWAY = 60

#: Seconds for which the published configuration and keys are cached.
KEPT = 3600.0

#: Minimum seconds between two requests for keys, whichever keys tokens name.
PAUSE = 10.0

_REJECTED = "the identity provider's token is not valid; log in again, or ask its administrator"


class Discovery:
    """The published configuration and keys of the provider at `issuer`, fetched on demand."""

    def __init__(self, issuer: str, client: httpx.Client, *, pause: float = PAUSE) -> None:
        self._issuer = issuer
        self._client = client
        self._pause = pause
        self._lock = threading.Lock()
        self._configuration: tuple[float, Mapping[str, Any]] | None = None
        self._keys: tuple[float, Mapping[str | None, Mapping[str, Any]]] | None = None

    def endpoint(self, name: str) -> str:
        """Return the URL published as `name`; raise `QueueError` if it is missing or not secure."""
        address = self._published().get(name)
        if not isinstance(address, str):
            raise QueueError(
                f"the identity provider {self._issuer} publishes no {name}; check "
                "MODWATCH_OIDC_ISSUER"
            )
        return _safe(address)

    def takes_basic(self) -> bool:
        """Return whether the client may authenticate with HTTP Basic, as is usual."""
        methods = self._published().get("token_endpoint_auth_methods_supported")
        return not isinstance(methods, list) or "client_secret_basic" in methods

    def names_itself(self) -> bool:
        """Return whether the provider adds its `iss` to every redirect (RFC 9207)."""
        return self._published().get("authorization_response_iss_parameter_supported") is True

    def post(
        self, name: str, form: Mapping[str, str], headers: Mapping[str, str]
    ) -> Mapping[str, Any]:
        """Return the response of the endpoint `name` to `form`.

        Raises `AccessDeniedError` if it rejects the request, and `QueueError` if it does not
        respond.
        """
        return self._asked("POST", self.endpoint(name), data=dict(form), headers=dict(headers))

    def verified(self, token: str, *, audience: str, nonce: str) -> dict[str, Any]:
        """Return the claims of an id token for `audience` with `nonce`.

        Raises `AccessDeniedError` unless the signature is by a published key, and issuer, audience,
        times and nonce are valid.
        """
        try:
            header = jwt.get_unverified_header(token)
            if header.get("alg") not in ALGORITHMS:
                raise AccessDeniedError(_REJECTED)
            claims: dict[str, Any] = jwt.decode(
                token,
                jwt.PyJWK.from_dict(dict(self._key(header.get("kid"))), header["alg"]).key,
                algorithms=[header["alg"]],
                audience=audience,
                issuer=self._issuer,
                leeway=LEEWAY,
                options={"require": ["iss", "sub", "aud", "exp", "iat", "nonce"]},
            )
        except (jwt.PyJWTError, ValueError, TypeError):
            raise AccessDeniedError(_REJECTED) from None  # the cause quotes parts of the token
        if not _is_for(claims, audience, nonce):
            raise AccessDeniedError(_REJECTED)
        return claims

    def _published(self) -> Mapping[str, Any]:
        with self._lock:
            if self._configuration is None or _age(self._configuration[0]) > KEPT:
                address = f"{self._issuer.rstrip('/')}/.well-known/openid-configuration"
                content = self._asked("GET", _safe(address))
                if content.get("issuer") != self._issuer:
                    raise QueueError(
                        f"{address} names another issuer than {self._issuer}; set "
                        "MODWATCH_OIDC_ISSUER exactly as the provider writes it"
                    )
                self._configuration = (time.monotonic(), content)
            return self._configuration[1]

    def _key(self, kid: str | None) -> Mapping[str, Any]:
        """Return the published key `kid`; fetch the keys again if it is unknown."""
        address = self.endpoint("jwks_uri")
        with self._lock:
            known = self._keys
            if known is None or _age(known[0]) > (KEPT if kid in known[1] else self._pause):
                known = self._keys = (time.monotonic(), _signing(self._asked("GET", address)))
        if kid is None and len(known[1]) == 1:
            return next(iter(known[1].values()))
        if kid not in known[1]:
            raise AccessDeniedError(_REJECTED)
        return known[1][kid]

    def _asked(self, method: str, address: str, **content: Any) -> Mapping[str, Any]:
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
                f"the identity provider {self._issuer} did not send a valid response; try again "
                "later"
            )
        return document


def basic_credentials(client_id: str, client_secret: str) -> dict[str, str]:
    """Return the header of HTTP Basic authentication of the client (RFC 6749, section 2.3.1)."""
    pair = f"{quote_plus(client_id)}:{quote_plus(client_secret)}"
    return {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}


def _is_for(claims: Mapping[str, Any], audience: str, nonce: str) -> bool:
    """Return whether a token with a valid signature is for this client and this log-in."""
    given, party = claims["nonce"], claims.get("azp")
    several = isinstance(claims["aud"], list) and len(claims["aud"]) > 1
    return (
        isinstance(given, str)
        and hmac.compare_digest(given.encode(errors="surrogatepass"), nonce.encode())
        and (party == audience or (party is None and not several))
        and isinstance(claims["sub"], str)
        and 0 < len(claims["sub"]) <= 255  # OpenID Connect Core 1.0, section 2
        and claims["sub"].isprintable()
    )


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
    if parts.scheme != "https" and not (parts.scheme == "http" and _loopback(parts.hostname or "")):
        raise QueueError(
            f"the identity provider's address {address} is not https; http is allowed on loopback "
            "only"
        )
    return address


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _age(moment: float) -> float:
    return time.monotonic() - moment

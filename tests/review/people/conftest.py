"""An OpenID Connect provider on loopback, as strict as a real one, that can also misbehave."""

import base64
import contextlib
import functools
import hashlib
import json
import secrets
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from joserfc import jwt
from joserfc.jwk import ECKey, RSAKey

CLIENT_ID, CLIENT_SECRET = "modwatch", "a secret: with / signs"
REDIRECT_URL = "http://127.0.0.1:8090/oidc/return"


class FakeProvider(ThreadingHTTPServer):
    """Keeps codes and keys; `claims` and `sign` are what a test may bend."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.issuer = f"http://127.0.0.1:{self.server_address[1]}"
        self.configuration: dict[str, Any] = {}
        self.codes: dict[str, dict[str, str]] = {}
        self.claims: Callable[[dict[str, Any]], dict[str, Any]] = lambda claims: claims
        self.sign: Callable[[dict[str, Any]], str] = self.signed
        self.key_requests = 0
        self.more_keys: list[Any] = []
        self.rotate("first")

    def rotate(self, kid: str, kind: str = "RS256") -> None:
        self.kid, self.kind = kid, kind
        self.key: Any = _key(kid, kind)

    def signed(self, claims: dict[str, Any], **changes: Any) -> str:
        header = {"alg": self.kind, "kid": self.kid} | changes.get("headers", {})
        key = _imported(changes.get("key", self.key))
        return jwt.encode(header, claims, key, algorithms=[header["alg"]])

    def published_key(self) -> dict[str, Any]:
        key = dict(_imported(self.key).as_dict(private=False))
        return key | {"kid": self.kid, "use": "sig"}

    def visit(self, url: str, *, subject: str = "s-1", **claims: Any) -> tuple[str, str]:
        """Return code and state, as the browser of a person who agrees brings them back."""
        query = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
        assert query["response_type"] == "code"
        assert query["client_id"] == CLIENT_ID
        assert query["code_challenge_method"] == "S256"
        code = secrets.token_urlsafe(8)
        self.codes[code] = query | {"subject": subject, "claims": json.dumps(claims)}
        return code, query["state"]

    def redeem(self, form: dict[str, str], authorization: str) -> dict[str, Any] | None:
        asked = self.codes.pop(form.get("code", ""), None)
        challenge = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        shown = base64.b64decode(authorization.removeprefix("Basic ")).decode()
        if (
            asked is None
            or shown != f"{CLIENT_ID}:a+secret%3A+with+%2F+signs"
            or form.get("grant_type") != "authorization_code"
            or form.get("redirect_uri") != asked["redirect_uri"]
            or base64.urlsafe_b64encode(challenge).rstrip(b"=").decode() != asked["code_challenge"]
        ):
            return None
        now = int(time.time())
        claims = {
            "iss": self.issuer,
            "sub": asked["subject"],
            "aud": CLIENT_ID,
            "iat": now,
            "exp": now + 300,
            "nonce": asked["nonce"],
            "name": "Ann Example",
            "email": "ann@example.org",
        } | json.loads(asked["claims"])
        return {"token_type": "Bearer", "id_token": self.sign(self.claims(claims))}


@functools.cache  # to generate one takes half a second
def _key(kid: str, kind: str) -> Any:
    if kind == "RS256":
        return rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return ec.generate_private_key(ec.SECP256R1())


def _imported(key: Any) -> RSAKey | ECKey:
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    kind = RSAKey if isinstance(key, rsa.RSAPrivateKey) else ECKey
    return kind.import_key(pem)


class _Handler(BaseHTTPRequestHandler):
    server: FakeProvider

    def do_GET(self) -> None:
        if self.path == "/keys":
            self.server.key_requests += 1
            self._answer({"keys": [*self.server.more_keys, self.server.published_key()]})
        elif self.path == "/.well-known/openid-configuration":
            issuer = self.server.issuer
            self._answer(
                {
                    "issuer": issuer,
                    "authorization_endpoint": f"{issuer}/authorize",
                    "token_endpoint": f"{issuer}/token",
                    "jwks_uri": f"{issuer}/keys",
                }
                | self.server.configuration
            )
        else:
            self._answer(None)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        form = {name: values[0] for name, values in parse_qs(body).items()}
        self._answer(self.server.redeem(form, self.headers.get("Authorization", "")))

    def log_message(self, *_: object) -> None:
        pass

    def _answer(self, content: dict[str, Any] | None) -> None:
        body = json.dumps(content or {"error": "invalid_grant"}).encode()
        with contextlib.suppress(BrokenPipeError):
            self.send_response(200 if content else 400)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)


@pytest.fixture
def fake():
    with FakeProvider() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()

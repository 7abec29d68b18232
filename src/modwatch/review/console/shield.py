"""What stands between the network and every endpoint: a size limit and security headers."""

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

#: Bytes of a request's body.
BODY_LIMIT = 1_000_000

#: Own files only, no inline script or style, no frame, no form to elsewhere.
_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)

_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


class SecurityHeaders:
    """Adds the headers to every answer; nothing but the static files may be cached."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_shielded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(_HEADERS)
                if "/static/" not in scope["path"]:
                    headers["Cache-Control"] = "no-store"
            await send(message)

        await self._app(scope, receive, send_shielded)


class BodyLimit:
    """Refuses bodies over `BODY_LIMIT` with 413, announced or not."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        received = 0
        announced = Headers(scope=scope).get("content-length", "0") if "headers" in scope else "0"

        async def receive_limited() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > BODY_LIMIT or (announced.isdigit() and int(announced) > BODY_LIMIT):
                # Raised inside the application, which answers in the shape of all its errors.
                raise HTTPException(413, f"the body is larger than {BODY_LIMIT} bytes; shorten it")
            return message

        await self._app(scope, receive_limited, send)

"""Timestamps by an authority outside (RFC 3161): proof that a content existed at a moment.

The authority gets the SHA-256 of the content, never the content. Its answer is stored as it came
(a TimeStampResp in DER), so that others can verify it without Modwatch:

    openssl ts -verify -data FILE -in FILE.tsr -CAfile ROOTS.pem
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
from cryptography import x509
from rfc3161_client import (
    HashAlgorithm,
    TimestampRequestBuilder,
    VerificationError,
    VerifierBuilder,
    decode_timestamp_response,
)

from modwatch.common.errors import TimestampError

_QUERY, _REPLY = "application/timestamp-query", "application/timestamp-reply"

#: Most bytes of an answer; with the certificates of the authority it has some 5,000.
_MOST_BYTES = 65_536


def read_roots(path: Path) -> tuple[x509.Certificate, ...]:
    """Return the certificates in a PEM file, each once; TimestampError if there are none."""
    try:
        return tuple(dict.fromkeys(x509.load_pem_x509_certificates(path.read_bytes())))
    except (OSError, ValueError) as exc:
        raise TimestampError(
            f"{path} cannot be read as certificates in PEM ({type(exc).__name__})"
        ) from None


@dataclass(frozen=True, kw_only=True)
class Authority:
    """A time-stamping authority."""

    #: http or https; may contain a token, and is not quoted in errors. Empty: none is asked, and
    #: timestamps are verified only.
    url: str = field(default="", repr=False)
    #: Certificates that those of the authority must lead to.
    roots: Sequence[x509.Certificate]

    def stamp(self, content: bytes, *, timeout: float = 10) -> bytes:
        """Return the timestamp of `content`, verified against `roots`.

        No redirect is followed. Connecting, sending, each part of the head and the whole body of
        the answer may take `timeout` seconds each.

        Raises:
            TimestampError: the authority cannot be reached, refuses, or answers with something else
                than a valid timestamp of `content`.
        """
        request = TimestampRequestBuilder(data=content, hash_algorithm=HashAlgorithm.SHA256).build()
        answer = _asked(self.url, request.as_bytes(), timeout)
        # A granted answer always has the number that it was asked with (RFC 3161, 2.4.2).
        self._verified(answer, content, VerifierBuilder.from_request(request))
        return answer

    def verify(
        self, answer: bytes, content: bytes, at: datetime, *, before: timedelta, after: timedelta
    ) -> None:
        """Verify by its stored answer that the authority saw `content` when it says it was made.

        That may be `before` the time `at`, as clocks differ, and some time `after` it. The
        certificate of the authority must have been valid then.

        Raises:
            TimestampError: the answer is no timestamp, or of another content or time, or by an
                authority that is not trusted.
        """
        seen = self._verified(answer, content, VerifierBuilder())
        if not at - before <= seen <= at + after:
            raise TimestampError(
                f"the time is {at:%Y-%m-%d %H:%M} UTC, and the authority saw it at "
                f"{seen:%Y-%m-%d %H:%M} UTC: it was written anew, or the clock was wrong"
            )

    def _verified(self, answer: bytes, content: bytes, builder: VerifierBuilder) -> datetime:
        """Return when the authority saw `content`, in UTC."""
        try:
            response = decode_timestamp_response(answer)
        except ValueError:
            raise TimestampError(
                "this is not an answer of a time-stamping authority in DER, as RFC 3161 demands"
            ) from None
        for root in self.roots:
            builder = builder.add_root_certificate(root)
        try:
            builder.build().verify_message(response, content)
            return response.tst_info.gen_time.astimezone(UTC)
        except (VerificationError, ValueError) as exc:
            raise TimestampError(f"the timestamp is not valid: {exc}") from None


def _asked(url: str, query: bytes, timeout: float) -> bytes:
    """Return the body of the authority's answer; TimestampError if it is none, or too long."""
    until = time.monotonic() + timeout
    answer = bytearray()
    try:
        with httpx.stream(
            "POST", url, content=query, timeout=timeout, headers={"Content-Type": _QUERY}
        ) as response:
            media = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
            if response.status_code != httpx.codes.OK or media != _REPLY:
                raise TimestampError(
                    f"the time-stamping authority answered {response.status_code} and no "
                    "timestamp; check MODWATCH_TIMESTAMP_URL"
                )
            for part in response.iter_raw():
                answer += part
                if len(answer) > _MOST_BYTES:
                    raise TimestampError("the answer of the time-stamping authority is too long")
                if time.monotonic() > until:
                    raise TimestampError("the answer of the time-stamping authority took too long")
    # Messages of these errors may quote the URL, and with it a token: only the class is named.
    except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as exc:
        raise TimestampError(
            f"the time-stamping authority cannot be reached ({type(exc).__name__}); it is asked "
            "again with the next try"
        ) from None
    return bytes(answer)

"""Digests of tokens, which are stored in their place, and of documents."""

import hashlib
import json
from typing import Any


def digest_of(token: str) -> bytes:
    """Return the SHA-256 of `token`.

    >>> digest_of("mw_invented").hex()[:8]
    '2f298e57'
    """
    return hashlib.sha256(token.encode(errors="surrogatepass")).digest()


def json_digest(document: Any) -> str:
    """Return the SHA-256 of the canonical JSON of `document`, in hexadecimal.

    >>> json_digest({"b": 1, "a": 2}) == json_digest({"a": 2, "b": 1})
    True
    """
    canonical = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode()).hexdigest()

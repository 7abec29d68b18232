"""Digests of tokens, which are stored in place of the tokens."""

import hashlib


def digest_of(token: str) -> bytes:
    """Return the SHA-256 of `token`.

    >>> digest_of("mw_invented").hex()[:8]
    '2f298e57'
    """
    return hashlib.sha256(token.encode(errors="surrogatepass")).digest()

"""Permanent random numbers: one key per comment, unpredictable for outsiders."""

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from modwatch.errors import DesignError

_CHUNK = 65_536


def random_keys(
    comment_ids: Sequence[str], *, day: str, design_digest: str, salt: str
) -> NDArray[np.uint64]:
    """Return one uniform uint64 per comment (n,): a keyed BLAKE2b of day, design and comment id.

    The key of a comment depends on nothing else, so a day may be keyed in chunks, in any order, and
    a re-run draws the same comments (permanent random numbers, Ohlsson 1995). Without the salt the
    draw cannot be predicted. Raises DesignError for an empty salt.

    >>> keys = random_keys(["a", "b"], day="2026-01-01", design_digest="d", salt="secret")
    >>> bool(keys[1] == random_keys(["b"], day="2026-01-01", design_digest="d", salt="secret")[0])
    True
    """
    if not salt:
        raise DesignError("salt must not be empty; set a secret one")
    secret = blake2b(salt.encode(), digest_size=64).digest()
    start = blake2b(
        f"{len(day)}:{day}{len(design_digest)}:{design_digest}".encode(), key=secret, digest_size=8
    )
    keys = np.empty(len(comment_ids), dtype=np.uint64)
    for first in range(0, keys.size, _CHUNK):
        digests = []
        for comment_id in comment_ids[first : first + _CHUNK]:
            digest = start.copy()
            digest.update(comment_id.encode(errors="surrogatepass"))
            digests.append(digest.digest())
        keys[first : first + len(digests)] = np.frombuffer(b"".join(digests), dtype="<u8")
    return keys

"""Random samples: permanent random numbers of comments, and sizes of samples by stratum."""

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from modwatch.common.errors import DesignError
from modwatch.statistics.arguments import Floats, Ints

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


def allocate(mass: Floats, population: Ints, total: int, *, minimum: int) -> Ints:
    """Return the sample size n_h (H,) of each stratum; they sum to `total`.

    Each stratum gets `minimum` or its whole population; the remainder is allocated by `mass`, up to
    the population. `total` must be between the sum of the minima and the sum of the populations.

    >>> allocate(np.array([3.0, 1.0]), np.array([100, 5]), 12, minimum=2).tolist()
    [8, 4]
    """
    sizes = np.minimum(population, min(minimum, total))
    while (left := total - int(sizes.sum())) > 0:
        room = population - sizes
        wanted = np.where(room > 0, mass, 0.0)
        wanted = wanted if wanted.sum() > 0 else room.astype(np.float64)
        share = left * wanted / wanted.sum()
        given = np.minimum(np.floor(share).astype(np.int64), room)
        if not given.any():
            given[np.argmax(share)] = 1
        sizes = sizes + given
    return sizes

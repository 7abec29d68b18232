"""Follow-ups: which of the routed comments without a label are labelled after all.

Labels that are missing may depend on the label: a random part of what is missing represents all of
it (Hansen & Hurwitz 1946, *The problem of non-response in sample surveys*).
"""

import datetime
import hashlib
import math
from collections.abc import Mapping

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from modwatch.common.errors import DesignError
from modwatch.data.lake.day_scores import DayScores
from modwatch.data.lake.delta import Lake, as_batch
from modwatch.data.lake.schemas import FOLLOW_UPS
from modwatch.routing.design import RoutingPolicy
from modwatch.statistics.arguments import Floats, Ints
from modwatch.statistics.sampling import random_keys

#: Drawn, and represented, apart: the slice, what is flagged of the top, and the rest of the top.
PARTS = ("slice", "top_flagged", "top")


def follow_up_parts(stratum: NDArray[np.integer], flagged: NDArray[np.bool_]) -> Ints:
    """Return the part of each comment (m,), as a position in `PARTS`."""
    return np.where(stratum != 0, 0, np.where(flagged, 1, 2))


def draw_follow_ups(
    part: Ints, keys: NDArray[np.uint64], *, share: float, minimum: int = 2
) -> tuple[NDArray[np.bool_], Floats]:
    """Return which of m missing comments are followed up (m,), and with what probability (m,).

    Simple random samples of each `part` (m,), together ⌈`share` × m⌉: up to half from the slice,
    whose comments stand for many, and the others from both parts of the top in proportion. At least
    `minimum` from each part that has as many; nothing at share 0. `keys` (m,) are independent of
    those of other draws. Raises DesignError if they are not one per comment.

    >>> part = np.array([2] * 9 + [0])
    >>> drawn, probability = draw_follow_ups(part, np.arange(10, dtype=np.uint64), share=0.3)
    >>> np.flatnonzero(drawn).tolist(), probability[[0, 9]].round(2).tolist()
    ([0, 1, 9], [0.22, 1.0])
    """
    if keys.shape != part.shape:
        raise DesignError(f"got {keys.size} keys for {part.size} comments; pass one each")
    drawn, probability = np.zeros(part.size, np.bool_), np.zeros(part.size)
    sizes = _sizes(np.bincount(part, minlength=len(PARTS)).tolist(), share, minimum)
    for number, size in enumerate(sizes if share else ()):
        rows = np.flatnonzero(part == number)
        drawn[rows[np.argsort(keys[rows], kind="stable")[:size]]] = True
        probability[rows] = size / max(rows.size, 1)
    return drawn, probability


def _sizes(missing: list[int], share: float, minimum: int) -> list[int]:
    """Return how many of the missing comments of each part are drawn."""
    wanted = math.ceil(share * sum(missing))
    of_slice = min(max(wanted // 2, minimum), missing[0])
    top = wanted - of_slice
    proportional = round(top * missing[1] / max(sum(missing[1:]), 1))
    of_flagged = min(max(proportional, minimum), missing[1])
    return [of_slice, of_flagged, min(max(top - of_flagged, minimum), missing[2])]


def routed_digest(lake: Lake, day: datetime.date) -> str:
    """Return a hash of the comments of a day that were routed, with their strata."""
    rows = lake.table("routed", day, columns=["comment_id", "stratum"]).to_pylist()
    return hashlib.sha256(repr(sorted(map(tuple, map(dict.values, rows)))).encode()).hexdigest()


def drawn_follow_ups(lake: Lake, day: datetime.date) -> pa.Table:
    """Return the rows of FOLLOW_UPS that were drawn among what is routed now, as a table."""
    rows = lake.table("follow_ups", day)
    if not len(rows):  # most days: what is routed need not be read
        return rows
    return rows.filter(pc.equal(rows.column("routed_digest"), routed_digest(lake, day)))


def follow_up_rows(
    lake: Lake,
    day: datetime.date,
    scores: DayScores,
    reasons: Mapping[str, str],
    policy: RoutingPolicy,
    salt: str,
) -> pa.RecordBatch:
    """Return the comments without a label as rows of FOLLOW_UPS, some of them drawn.

    `reasons` tell why a comment has no label, by its id. A lead closed what was dismissed: it
    cannot be followed up.
    """
    routed = lake.table("routed", day, columns=["comment_id", "stratum"])
    missing = routed.filter(pc.is_in(routed.column("comment_id"), pa.array(list(reasons))))
    ids = missing.column("comment_id")
    flagged = scores.flagged[scores.positions(ids.chunks)]
    part = follow_up_parts(missing.column("stratum").to_numpy(), flagged)
    rows = pd.DataFrame(missing.to_pandas()).assign(
        dt=day,
        part=np.array(PARTS)[part],
        reason=[reasons[name] for name in ids.to_pylist()],
        drawn=False,
        probability=0.0,
        routed_digest=routed_digest(lake, day),
    )
    use = f"{policy.digest} follow-up"
    keys = random_keys(ids.to_pylist(), day=day.isoformat(), design_digest=use, salt=salt)
    left = (rows["reason"] != "dismissed").to_numpy()
    rows.loc[left, "drawn"], rows.loc[left, "probability"] = draw_follow_ups(
        part[left], keys[left], share=policy.follow_up_share, minimum=policy.minimum
    )
    return as_batch(rows, FOLLOW_UPS)

"""The rows of a day's follow-ups: what had no label when its review was over; what was drawn."""

import datetime
import hashlib
from collections.abc import Mapping

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from modwatch.data.lake.day_scores import DayScores
from modwatch.data.lake.delta import Lake, as_batch
from modwatch.data.lake.schemas import FOLLOW_UPS
from modwatch.routing.design import RoutingPolicy
from modwatch.routing.follow_up_design import PARTS, draw_follow_ups, follow_up_parts
from modwatch.statistics.sampling import random_keys


def routed_digest(lake: Lake, day: datetime.date) -> str:
    """Return a hash of the comments of a day that were routed, with their strata."""
    rows = lake.table("routed", day, columns=["comment_id", "stratum"]).to_pylist()
    return hashlib.sha256(repr(sorted(map(tuple, map(dict.values, rows)))).encode()).hexdigest()


def drawn_follow_ups(lake: Lake, day: datetime.date) -> pa.Table:
    """Return the rows of FOLLOW_UPS that were drawn among what is routed now, as a table."""
    rows = lake.table("follow_ups", day)
    return rows.filter(pc.equal(rows.column("routed_digest"), routed_digest(lake, day)))


def follow_up_rows(
    lake: Lake,
    day: datetime.date,
    scores: DayScores,
    reasons: Mapping[str, str],
    policy: RoutingPolicy,
    salt: str,
) -> pa.RecordBatch:
    """Return the routed comments without a label as rows of FOLLOW_UPS, some of them drawn.

    `reasons` tell why a comment has no label, by its id. A lead closed what was dismissed: it
    cannot be followed up.
    """
    routed = lake.table("routed", day, columns=["comment_id", "stratum"])
    labelled = lake.table("labels", day, columns=["comment_id"]).column("comment_id")
    missing = routed.filter(pc.invert(pc.is_in(routed.column("comment_id"), labelled)))
    ids = missing.column("comment_id")
    flagged = scores.flagged[scores.positions(ids.chunks)]
    part = follow_up_parts(missing.column("stratum").to_numpy(), flagged)
    rows = pd.DataFrame(missing.to_pandas()).assign(
        dt=day,
        part=np.array(PARTS)[part],
        reason=[reasons.get(name, "waiting") for name in ids.to_pylist()],
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

"""The rows of a day's follow-ups: what had no label when its review was over; what was drawn."""

import datetime
import hashlib
from collections.abc import Mapping

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from modwatch.data.lake.delta import Lake, as_batch
from modwatch.data.lake.schemas import FOLLOW_UPS
from modwatch.routing.design import RoutingPolicy
from modwatch.routing.follow_up_design import draw_follow_ups
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
    lake: Lake, day: datetime.date, reasons: Mapping[str, str], policy: RoutingPolicy, salt: str
) -> pa.RecordBatch:
    """Return the routed comments without a label as rows of FOLLOW_UPS, some of them drawn.

    `reasons` tell why a comment has no label, by its id. A lead closed what was dismissed: it
    cannot be followed up.
    """
    routed = lake.table("routed", day, columns=["comment_id", "stratum"])
    labelled = lake.table("labels", day, columns=["comment_id"]).column("comment_id")
    missing = routed.filter(pc.invert(pc.is_in(routed.column("comment_id"), labelled))).to_pandas()
    missing["reason"] = [reasons.get(name, "waiting") for name in missing["comment_id"]]
    open_ = (missing["reason"] != "dismissed").to_numpy()
    keys = random_keys(
        missing["comment_id"].tolist(),
        day=day.isoformat(),
        design_digest=f"{policy.digest} follow-up",
        salt=salt,
    )
    draw = draw_follow_ups(
        missing["stratum"].to_numpy()[open_],
        keys[open_],
        share=policy.follow_up_share,
        minimum=policy.minimum,
    )
    drawn, probability = np.zeros(open_.size, np.bool_), np.zeros(open_.size)
    drawn[open_], probability[open_] = draw.drawn, draw.probability
    digest = routed_digest(lake, day)
    rows = pd.DataFrame(missing).assign(
        dt=day, drawn=drawn, probability=probability, routed_digest=digest
    )
    return as_batch(rows, FOLLOW_UPS)

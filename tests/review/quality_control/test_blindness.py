"""A classifier that guesses the kind of what was served: at chance unless something tells."""

from collections.abc import Callable
from datetime import timedelta

import numpy as np
import pandas as pd
import pytest
from databases import tamper, unguarded
from sqlalchemy import text

from modwatch.review.quality_control.blindness import (
    MEASURED,
    above_chance,
    blind_integrity,
    last_recognised,
    measure_blindness,
    served_items,
)
from modwatch.review.queue import deciding, intake, leases
from modwatch.review.queue.items import NewItem
from modwatch.statistics.estimate import Estimate
from review.labelling import held, label_all

Make = Callable[..., NewItem]


def items(n: int, seed: int = 0) -> pd.DataFrame:
    """Return served items of all kinds whose fields depend on nothing."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "kind": rng.choice(["review", *MEASURED], n, p=[0.7, 0.1, 0.1, 0.1]),
            "day": rng.integers(0, 28, n),
            "id": rng.integers(0, 2**52, n),
            "platform": rng.choice(["forum", "news", ""], n),
            "length": rng.lognormal(4, 1, n),
        }
    )


def test_where_nothing_tells_every_kind_is_at_chance():
    found = blind_integrity(items(2_500))
    assert found.keys() == set(MEASURED)
    assert not any(above_chance(auc) for auc in found.values())


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[pytest.mark.soak] * (kind != "gold")) for kind in MEASURED]
)
def test_a_planted_tell_is_found(kind):
    """A third of the items of one kind have no platform, as gold of a corpus had."""
    made = items(2_500, 1)
    made.loc[(made["kind"] == kind) & (made.index % 3 == 0), "platform"] = None
    found = blind_integrity(made)
    assert {other for other, auc in found.items() if above_chance(auc)} == {kind}


def test_few_items_are_insufficient():
    assert blind_integrity(items(100))["gold"].reason.endswith("50 of 5 days are needed")
    assert blind_integrity(pd.DataFrame({"kind": [], "day": []}))["gold"].status == "insufficient"


def test_above_chance_is_above_both_bounds():
    for auc, interval, expected in (
        (0.54, (0.51, 0.57), False), (0.6, (0.49, 0.7), False), (0.56, (0.51, 0.6), True),
    ):  # fmt: skip
        assert above_chance(Estimate.from_interval(auc, interval, n=100)) == expected


def test_what_was_served_is_read_and_a_measurement_remembered(engine, ann, new_item, day):
    """Gold of another platform, which this installation served unmatched."""
    kinds = ("review", "gold")
    for number, kind in enumerate(kinds):
        made = [
            new_item(
                f"{kind}{k}", k + 1, kind=kind, platform="panel" if kind == "gold" else "forum"
            )
            for k in range(60)
        ]
        intake.enqueue(engine, made, day + timedelta(number), kinds=[kind])
    assert last_recognised(engine) == []
    label_all(engine, ann, lambda _: 0)
    with unguarded(engine) as connection:  # over eight days
        days = "decided_at - (id % 8) * interval '1 day'"
        connection.execute(text(f"UPDATE decision SET decided_at = {days}"))
    with engine.connect() as connection:
        today = connection.execute(text("SELECT (now() AT TIME ZONE 'UTC')::date")).scalar_one()
    served = served_items(engine, today - timedelta(9), today)
    assert served["kind"].value_counts().to_dict() == {"review": 60, "gold": 60}
    told = {"text", "dt", "comment_id", "reason", "queued_at", "due_at", "reserved_for"}
    assert told.isdisjoint(served.columns)  # no feature is one that nobody is sent
    found = measure_blindness(engine, today)
    assert found["gold"].value == pytest.approx(1, abs=0.02)
    assert last_recognised(engine) == ["gold"]
    assert served_items(engine, today + timedelta(1), today + timedelta(2)).empty


def test_confirmations_are_served_among_the_items_of_the_next_day(engine, ann, ben, new_item, day):
    from modwatch.review.queue.lanes import load_lanes

    rules = load_lanes()
    more = [{}, {"kind": "confirmation"}, {"kind": "confirmation", "round": 3}]
    intake.enqueue(engine, [new_item("a", **each) for each in more], day, lanes=rules)
    deciding.decide(
        engine, moderator_id=ann.id, item_id=(lease := held(engine, ann, lanes=rules)).item.id,
        lease_token=lease.token, label=1, idempotency_key="a",
    )  # fmt: skip
    assert leases.lease(engine, ben.id, lanes=rules) is None
    tamper(engine, "UPDATE review_item SET queued_at = queued_at - interval '1 day'")
    assert leases.lease(engine, ben.id, lanes=rules) is not None

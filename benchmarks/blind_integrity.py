"""Whether moderators can tell gold items, retests and confirmations from ordinary items.

Five people work weeks of a simulated queue through the console's API. A classifier then guesses the
kind of each served item from all that the console sent, but the texts (`quality_control.blindness`,
which also measures it every week). Floor: AUC at most 0.55, or an interval that includes 0.5. A
planted tell shows that the classifier finds one. `behind`: all work at once, and the
queue grows by some thirty items a day; `drained`: the team finishes every day; `turns`: it does so,
one person after the other, fifteen items each.

    python benchmarks/blind_integrity.py
    python benchmarks/blind_integrity.py --days 20 --regimes behind
"""

import argparse
import datetime as dt
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from fastapi.testclient import TestClient
from sqlalchemy import Engine, text

from modwatch.review.console.app import create_app
from modwatch.review.database import connect
from modwatch.review.embedded import embedded
from modwatch.review.migrate import upgrade
from modwatch.review.people import access_tokens, accounts
from modwatch.review.quality_control.blindness import (
    above_chance,
    blind_integrity,
    served_items,
)
from modwatch.review.quality_control.gold import GoldComment, add_gold
from modwatch.review.quality_control.queueing import queue_quality_control, unlike_gold
from modwatch.review.queue import intake
from modwatch.review.queue.intake import withdraw_expired
from modwatch.review.queue.items import NewItem
from modwatch.routing.confirmation_design import draw_confirmations

FIRST = dt.date(2026, 1, 1)
ROUTED, TEAM = 220, 5
#: Decisions of a day by a team that falls behind, by some thirty items a day.
WORK = 300
FIELDS = {"id", "text", "parent_text", "shown", "version"}

#: A day passes: all times are earlier, so that every day begins at the same time of day.
NIGHT = (
    """
    UPDATE review_item SET queued_at = queued_at - :day, serve_by = serve_by - :day,
        due_at = due_at - :day, claimed_at = claimed_at - :day, leased_until = leased_until - :day
    """,
    "UPDATE decision SET decided_at = decided_at - :day",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--days", type=int, default=42)
    parser.add_argument("--regimes", nargs="*", default=["behind", "drained", "turns"])
    options = parser.parse_args()
    for regime in options.regimes:
        with tempfile.TemporaryDirectory() as folder, embedded(Path(folder)) as postgres:
            url = postgres.url("blind")
            upgrade(url)
            engine = connect(url)
            simulate(engine, options.days, regime)
            report(engine, regime, options.days)
            engine.dispose()


def simulate(engine: Engine, days: int, regime: str) -> None:
    """Let a team work `days` days."""
    rng = np.random.default_rng(7)
    team = [accounts.create_moderator(engine, f"p{n}", "moderator") for n in range(TEAM)]
    tokens = [access_tokens.issue_token(engine, person.id) for person in team]
    like = [comment(rng, f"g{n}") for n in range(1_500)]
    bare = (vars(comment(rng, f"x{n}")) for n in range(500))
    corpus = [NewItem(**{**one, "shown": {}, "parent_text": None}) for one in bare]
    add_gold(engine, (gold(item, n % 2) for n, item in enumerate([*like, *corpus])))
    with TestClient(create_app(engine)) as client:
        for number in range(days):
            day, begun = FIRST + dt.timedelta(days=number), time.monotonic()
            intake.enqueue(engine, routed(rng, number), day)
            queue_quality_control(engine, day, retest_share=0.06, gold_share=0.06, salt="s")
            withdraw_expired(engine, day - dt.timedelta(days=28))
            most = WORK if regime == "behind" else 10_000
            work(client, tokens, rng, most, 15 if regime == "turns" else 1)
            with engine.begin() as connection:
                connection.execute(text("SET LOCAL session_replication_role = replica"))
                passed = dt.timedelta(days=1, seconds=begun - time.monotonic())
                for change in NIGHT:
                    connection.execute(text(change), {"day": passed})


def comment(rng: np.random.Generator, name: str, rank: int = 1, **more: object) -> NewItem:
    """Return a comment whose length, parent and language depend on its platform."""
    platform = rng.choice(["forum", "news", ""], p=[0.5, 0.3, 0.2])
    words = int(rng.lognormal({"forum": 3.2, "news": 2.4, "": 2.8}[platform], 0.7)) + 1
    values = {
        "text": f"{name} {'word ' * words}",
        "shown": {
            **({"platform": str(platform)} if platform else {}),
            "language": str(rng.choice(["de", "en", "tr"], p=[0.6, 0.3, 0.1])),
        },
        "parent_text": "parent " * int(rng.integers(1, 30)) if rng.random() < 0.5 else None,
        "reason": str(rng.choice(["uncertainty", "random_slice"], p=[0.7, 0.3])),
        **{"stratum": 0, "inclusion_probability": 1.0, "review_score": 0.2, "prob": 0.3},
        **{"uncertainty": 0.21, "model_version": "1"},
    }
    return NewItem(comment_id=name, rank=rank, **values, **more)  # type: ignore[arg-type]


def gold(item: NewItem, label: int) -> GoldComment:
    """Return the comment as a gold comment."""
    names = ("comment_id", "text", "parent_text", "shown")
    return GoldComment(**{name: getattr(item, name) for name in names}, label=label, source="panel")


def routed(rng: np.random.Generator, day: int) -> Iterator[NewItem]:
    """Yield a day, a quarter of it confirmed, as `route` queues it."""
    items = [comment(rng, f"c{day}-{n}", n + 1) for n in range(ROUTED)]
    yield from items
    keys, rank_keys = rng.integers(0, 2**64, (2, ROUTED), dtype=np.uint64)
    drawn = draw_confirmations(np.full((ROUTED, 2), 0.25), keys, rank_keys)
    probabilities = {f"confirmation_probability_{label}": 0.25 for label in (0, 1)}
    for row, ranks in zip(drawn.row, drawn.rank.tolist(), strict=True):
        for number, rank in zip((2, 3), ranks, strict=True):
            yield replace(items[row], kind="confirmation", round=number, rank=rank,
                          confirms=[0, 1], **probabilities)  # fmt: skip


def work(
    client: TestClient, tokens: list[str], rng: np.random.Generator, most: int, batch: int
) -> None:
    """Make decisions, each person `batch` in a row, until nobody is served or `most` are made."""
    made, idle, person = 0, 0, 0
    while made < most and idle < len(tokens):
        person = (person + 1) % len(tokens)
        headers = {"Authorization": f"Bearer {tokens[person]}"}
        served = 0
        for _ in range(min(batch, most - made)):
            answer = client.post("/api/v1/leases", headers=headers)
            if answer.status_code == 204:
                break
            lease = answer.json()
            assert set(lease["item"]) == FIELDS, "another field that the classifier does not see"
            action = {"label": int(rng.random() < 0.3)}
            if rng.random() < 0.02:
                action = {"action": "skip", "reason": "unsure"}
            path = f"/api/v1/items/{lease['item']['id']}/decisions"
            keyed = {**headers, "Idempotency-Key": lease["token"]}
            body = {"lease_token": lease["token"], **action}
            assert client.post(path, json=body, headers=keyed).status_code == 201
            served, made = served + 1, made + 1
        idle = 0 if served else idle + 1


def report(engine: Engine, regime: str, days: int) -> None:
    today = dt.datetime.now(dt.UTC).date()
    # Without the first two weeks, in which there can be no retests.
    served = served_items(engine, today - dt.timedelta(days=days - 14), today)
    print(f"{regime}: {len(served)} items, {dict(Counter(served['kind']))}, "
          f"{unlike_gold(engine)} of 2000 gold comments look like none of the stream")  # fmt: skip
    show(served)
    told = served.assign(platform=served["platform"].where(served["kind"] == "review", ""))
    print(" planted tell: no platform")
    show(told)


def show(served: pd.DataFrame) -> None:
    for kind, auc in blind_integrity(served).items():
        if auc.status == "ok":
            value, low, high = auc.known
            verdict = "recognised" if above_chance(auc) else "blind"
            print(f"  {kind}: AUC {value:.3f} ({low:.3f} - {high:.3f}), n {auc.n}: {verdict}")
        else:
            print(f"  {kind}: {auc.reason}")


if __name__ == "__main__":
    main()

"""Blind integrity: whether what moderators are served tells measurements from ordinary items.

A classifier guesses the kind of served items from everything that the console sends about them. It
does not read the texts: that a retest is a comment which the person saw weeks ago, a person who
keeps all texts knows by definition.
"""

import datetime as dt
from collections.abc import Mapping

import numpy as np
import pandas as pd
from sqlalchemy import Engine, text

from modwatch.common.columns import shown
from modwatch.review.database import at_once
from modwatch.review.events import record_event
from modwatch.review.log.decision_log import compared_sql, others_sql
from modwatch.statistics.estimate import Estimate
from modwatch.statistics.intervals import NORMAL_QUANTILE

#: Kinds that must not be told from `review`.
MEASURED = ("retest", "gold", "confirmation")

#: With fewer items of a kind, its estimate is insufficient.
MINIMUM_ITEMS = 50

_FOLDS = 5

#: The highest AUC that counts as chance, if the interval does not include 0.5.
HIGHEST_AUC = 0.55

#: Served items whose fields are compared; the latest of the period.
MOST_SERVED = 20_000

#: Days whose served items the weekly metric is made of.
DAYS = 28

#: The event that records a measurement.
MEASURED_EVENT = "measure_blindness"

_OURS = [column.name for column in shown()][::-1]

#: What is shown of our columns, and whether it is that of the item before.
_SHOWN = ", ".join(
    [
        *(f"COALESCE(shown->>'{name}', '') AS {name}" for name in _OURS),
        *(
            f"(shown->>'{name}' = lag(shown->>'{name}') OVER mine)::int AS same_{name}"
            for name in _OURS
        ),
    ]
)

#: Of each item that a person decided: its kind, what the console sent, and when. Ids and versions
#: are modulo 4,096 and relative to the item before, too: any order of them is a feature.
_SERVED = text(
    f"""
    SELECT kind, comment_id, (at AT TIME ZONE 'UTC')::date - DATE '2000-01-01' AS day,
        id, id % 4096 AS id_end, id - lag(id) OVER mine AS id_step,
        item_version AS version, item_version - lag(item_version) OVER mine AS version_step,
        queue, {_SHOWN},
        length(parent_text) AS parent_length, length(text) AS length,
        extract(epoch FROM at - date_trunc('day', at, 'UTC'))::float8 AS time_of_day,
        extract(isodow FROM at)::int AS weekday,
        extract(epoch FROM at - lag(at) OVER mine)::float8 AS since_last,
        row_number() OVER (PARTITION BY moderator_id, date_trunc('day', at, 'UTC') ORDER BY at)
            AS place_in_day,
        count(*) OVER (PARTITION BY moderator_id, date_trunc('day', at, 'UTC')) AS of_day,
        jsonb_build_array(({compared_sql("served")}) - ARRAY{_OURS}, {others_sql("served")})::text
            AS own
    FROM (
        SELECT DISTINCT ON (d.item_id, d.moderator_id) i.*, d.moderator_id,
            d.item_version, least(i.claimed_at, d.decided_at) AS at, d.decided_at
        FROM decision AS d JOIN review_item AS i ON i.id = d.item_id
        WHERE d.decided_at >= :begin AND d.decided_at < :end
            AND d.action IN ('label', 'skip', 'escalate')
        ORDER BY d.item_id, d.moderator_id, d.id
    ) AS served
    WINDOW mine AS (PARTITION BY moderator_id ORDER BY at, id)
    ORDER BY decided_at DESC LIMIT :most
    """.replace("::", r"\:\:")  # noqa: S608 - our own text
)


def served_items(engine: Engine, first: dt.date, last: dt.date) -> pd.DataFrame:
    """Return what people were served from `first` to `last`, one row a comment and kind.

    The columns `kind` and `day`, and as features all that the console sent about the item but its
    text: its id, version and attributes, lengths, and the time and order of service. A gold comment
    is served to many, and nobody knows that it was gold for others: a classifier that saw it twice
    would. Days in UTC, both included.
    """
    values = {"begin": first, "end": last + dt.timedelta(days=1), "most": MOST_SERVED}
    with engine.connect() as connection:
        rows = connection.execute(_SERVED, values)
        served = pd.DataFrame(map(tuple, rows), columns=list(rows.keys()))
    return served.drop_duplicates(["kind", "comment_id"]).drop(columns="comment_id")


def blind_integrity(served: pd.DataFrame, *, seed: int = 0) -> dict[str, Estimate]:
    """Return how well each of `MEASURED` is told from ordinary items: the AUC, in [0, 1].

    0.5 is chance and 1 certainty; gradient boosting on all other columns, cross-validated over
    whole days, since who guesses knows other days; with the 95 % interval of Hanley and McNeil
    (1982). `n` is the number of items of the kind; insufficient below 50, and below five days.

    >>> rng = np.random.default_rng(0)
    >>> items = pd.DataFrame({"kind": ["review", "gold"] * 200, "day": np.arange(400) // 40,
    ...                       "id": rng.integers(0, 9, 400)})
    >>> blind_integrity(items)["gold"].low < 0.5
    True
    >>> blind_integrity(items.assign(length=items["kind"] == "gold"))["gold"].value
    1.0
    """
    return {kind: _auc(served[served["kind"].isin(["review", kind])], kind, seed)
            for kind in MEASURED}  # fmt: skip


def above_chance(found: Estimate) -> bool:
    """Return whether a kind is recognised: its AUC is above 0.55, and its interval above 0.5."""
    return found.status == "ok" and found.known[0] > HIGHEST_AUC and found.known[1] > 0.5


def recognised(found: Mapping[str, Estimate]) -> list[str]:
    """Return the kinds of `blind_integrity` that are above chance, by name."""
    return sorted(kind for kind, auc in found.items() if above_chance(auc))


def measure_blindness(engine: Engine, last: dt.date) -> dict[str, Estimate]:
    """Return the blind integrity of the four weeks to `last`, and record it as an event."""
    found = blind_integrity(served_items(engine, last - dt.timedelta(days=DAYS - 1), last))
    values = {kind: auc.value for kind, auc in found.items() if auc.status == "ok"}
    with engine.begin() as connection:
        record_event(
            connection, MEASURED_EVENT, actor_id=None, last=str(last), auc=values,
            recognised=recognised(found),
        )  # fmt: skip
    return found


def last_recognised(engine: Engine) -> list[str]:
    """Return the kinds that the last measurement could tell from ordinary items."""
    query = text("SELECT details FROM event WHERE action = :action ORDER BY id DESC LIMIT 1")
    rows = at_once(engine, query, {"action": MEASURED_EVENT})
    return [kind for row in rows for kind in row["details"]["recognised"]]


def _auc(items: pd.DataFrame, kind: str, seed: int) -> Estimate:
    y = (items["kind"] == kind).to_numpy()
    ones, zeros = int(y.sum()), int((~y).sum())
    if min(ones, zeros) < MINIMUM_ITEMS or items["day"].nunique() < _FOLDS:
        reason = f"{ones} served items; {MINIMUM_ITEMS} of {_FOLDS} days are needed"
        return Estimate.insufficient(reason, n=ones)
    x = items.drop(columns=["kind", "day"])
    for name in x.select_dtypes(exclude="number"):
        x[name] = pd.factorize(x[name])[0]
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import StratifiedGroupKFold, cross_val_predict

    model = HistGradientBoostingClassifier(
        max_iter=60, max_leaf_nodes=8, min_samples_leaf=20, class_weight="balanced",
        random_state=seed,
    )  # fmt: skip
    folds = StratifiedGroupKFold(_FOLDS, shuffle=True, random_state=seed)
    guess = cross_val_predict(
        model, x.to_numpy(float), y, groups=items["day"], cv=folds, method="predict_proba"
    )[:, 1]
    auc = float(roc_auc_score(y, guess))
    both_ones, both_zeros = auc / (2 - auc), 2 * auc**2 / (1 + auc)
    variance = auc * (1 - auc) + (ones - 1) * (both_ones - auc**2) + (zeros - 1) * (
        both_zeros - auc**2
    )  # fmt: skip
    half = NORMAL_QUANTILE * np.sqrt(max(variance, 0.0) / (ones * zeros))
    return Estimate.from_interval(auc, (auc - half, auc + half), n=ones)

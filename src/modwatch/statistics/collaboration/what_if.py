"""What-if: the outcomes and the cost of other review strategies and review fractions.

Nothing is estimated here: the estimates of the last window are combined with moderator time.
"""

from collections.abc import Hashable
from typing import Any

import pandas as pd

from modwatch.statistics.live.figures import keys

#: Outcomes; each has the columns `…`, `…_low` and `…_high` in the table.
OUTCOMES = keys(outcome=True)

_NUMBERS = (
    *("alpha", "comments_per_day", "hours_per_day", "saved_per_hour"),
    *(f"{outcome}{end}" for outcome in OUTCOMES for end in ("", "_low", "_high")),
)

#: Columns of the table that `what_if_table` returns.
COLUMNS = ("strategy", "deployed", *_NUMBERS, "n", "status", "reason")


def what_if_table(
    estimates: pd.DataFrame,
    *,
    comments_per_day: float,
    seconds_per_decision: float | None,
    strategy: str,
    review_fraction: float,
) -> pd.DataFrame:
    """Return one row per strategy and review fraction: outcomes with 95 % intervals, and hours.

    Columns: `COLUMNS`. `hours_per_day` is the time of all moderators together, at the median time
    per decision: a mean would include pauses. `saved_per_hour` is how much lower the cost of a day
    would be for each further hour of review up to the next review fraction, in the unit of the
    costs: review pays as long as that is more than an hour costs. Numbers are nullable floats,
    missing if `status` is insufficient; the `reason` names them.

    Args:
        estimates: of a window of days, as `measure_days` returns them, with every strategy and
            review fraction to compare.
        comments_per_day: mean number of comments a day.
        seconds_per_decision: median time of a moderator for one comment; None if unknown.
        strategy: the deployed one.
        review_fraction: the deployed one.

    Source of the outcomes: Kivlichan et al. (2021), section 4.1.

    >>> row = {"strategy": "toxicity", "alpha": 0.1, "value": 0.5, "low": 0.4, "high": 0.6,
    ...        "n": 90, "status": "ok", "reason": ""}
    >>> more = row | {"alpha": 0.2, "value": 0.4}
    >>> table = what_if_table(
    ...     pd.DataFrame([at | {"metric": name} for at in (row, more) for name in OUTCOMES]),
    ...     comments_per_day=7200, seconds_per_decision=10, strategy="toxicity",
    ...     review_fraction=0.1)
    >>> table.loc[0, ["comments_per_day", "hours_per_day", f"{OUTCOMES[0]}_low"]].tolist()
    [720.0, 2.0, 0.4]
    >>> float(round(table.loc[0, "saved_per_hour"]))  # 10 % of 7,200 comments in 2 hours
    360.0
    """
    outcomes = estimates[estimates["metric"].isin(OUTCOMES)]
    table = pd.DataFrame(
        [
            _choice(group.to_dict("records"), comments_per_day, seconds_per_decision)
            for _, group in outcomes.groupby(["strategy", "alpha"], sort=False)
        ],
        columns=COLUMNS,
    )
    table["saved_per_hour"] = _saved_per_hour(table, comments_per_day)
    kinds = dict.fromkeys(_NUMBERS, "Float64") | {"strategy": "str", "n": "int64"}
    at_alpha = (table["alpha"].astype("float64") - review_fraction).abs() < 1e-12
    return table.astype(kinds).assign(deployed=at_alpha & (table["strategy"] == strategy))


def _saved_per_hour(table: pd.DataFrame, comments: float) -> "pd.Series[float]":
    """Return what each further hour of review saves up to the next review fraction."""
    rising = table.sort_values("alpha").astype({"hours_per_day": float, "remaining_cost": float})
    step = rising.groupby("strategy", sort=False)[["hours_per_day", "remaining_cost"]].diff(-1)
    saved = comments * step["remaining_cost"] / -step["hours_per_day"]
    return saved.where(step["hours_per_day"] < 0)


def _choice(
    estimates: list[dict[Hashable, Any]], comments: float, seconds: float | None
) -> dict[str, Any]:
    """Return the row of one strategy and review fraction from its estimates."""
    reviewed = float(estimates[0]["alpha"]) * comments
    lacking = {row["metric"]: row["reason"] for row in estimates if row["status"] != "ok"}
    if seconds is None:
        lacking["hours_per_day"] = "no decision says how long it took"
    return {
        "strategy": estimates[0]["strategy"],
        "alpha": estimates[0]["alpha"],
        "comments_per_day": reviewed,
        "hours_per_day": None if seconds is None else reviewed * seconds / 3600,
        **_outcomes(estimates),
        "n": max(row["n"] for row in estimates),
        "status": "insufficient" if lacking else "ok",
        "reason": "; ".join(f"{what}: {why}" for what, why in lacking.items()),
    }


def _outcomes(estimates: list[dict[Hashable, Any]]) -> dict[str, float]:
    """Return value and interval of every sufficient estimate."""
    return {
        f"{row['metric']}{end}": row[name]
        for row in estimates
        if row["status"] == "ok"
        for end, name in (("", "value"), ("_low", "low"), ("_high", "high"))
    }

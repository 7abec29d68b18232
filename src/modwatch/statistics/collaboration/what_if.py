"""What-if: the outcomes and the cost of other review strategies and review fractions.

Nothing is estimated here: the estimates of the last window are combined with moderator time.
"""

from collections.abc import Hashable
from typing import Any

import pandas as pd

#: Outcomes; each has the columns `…`, `…_low` and `…_high` in the table.
OUTCOMES = ("review_efficiency", "oc_accuracy", "review_effectiveness")

_NUMBERS = (
    *("alpha", "comments_per_day", "hours_per_day"),
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
    per decision: a mean would include pauses. Numbers are nullable floats, missing if `status` is
    insufficient; the `reason` names them.

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
    >>> table = what_if_table(pd.DataFrame([row | {"metric": name} for name in OUTCOMES]),
    ...     comments_per_day=7200, seconds_per_decision=10, strategy="toxicity",
    ...     review_fraction=0.1)
    >>> table.loc[0, ["comments_per_day", "hours_per_day", "oc_accuracy_low"]].tolist()
    [720.0, 2.0, 0.4]
    """
    outcomes = estimates[estimates["metric"].isin(OUTCOMES)]
    table = pd.DataFrame(
        [
            _choice(group.to_dict("records"), comments_per_day, seconds_per_decision)
            for _, group in outcomes.groupby(["strategy", "alpha"], sort=False)
        ],
        columns=COLUMNS,
    )
    kinds = dict.fromkeys(_NUMBERS, "Float64") | {"strategy": "str", "n": "int64"}
    at_alpha = (table["alpha"].astype("float64") - review_fraction).abs() < 1e-12
    return table.astype(kinds).assign(deployed=at_alpha & (table["strategy"] == strategy))


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

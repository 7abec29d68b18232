"""What the estimates of days suppose that their labels can contradict, and with which chance.

A check is worth its power: the chance to see, in a window with as many labels, that what is
supposed is wrong by a stated amount. Below `LEAST_POWER` nothing is checked.
"""

import numpy as np
import pandas as pd
from scipy import stats

from modwatch.statistics.arguments import Floats
from modwatch.statistics.dependence import SIGNIFICANT_DEPENDENCE, dependence_table
from modwatch.statistics.error_rates import CLIMB
from modwatch.statistics.intervals import NORMAL_QUANTILE
from modwatch.statistics.live.census import contradicted
from modwatch.statistics.live.measure import Measured

#: Power below which a check is none.
LEAST_POWER = 0.5
#: How many times the odds of an error at one end of the scores are those at the other.
RISEN = 2.0
#: Share of the prevalence by which estimates by score may be off.
OFF = 0.5


def assumption_checks(
    measured: Measured, estimates: tuple[pd.DataFrame, pd.DataFrame], pairs: pd.DataFrame
) -> pd.DataFrame:
    """Return one row for each check.

    Columns: `check`; `tested`, how many sets; `n`, the labels in them; `found`, how many sets
    contradict; `p_value` and `power` in [0, 1], missing without any. Checks: those of
    `dependence_table`, that second labels are copied; `false positives by score` and `misses by
    score`, that the labels and earlier ones show by themselves that these become more or less
    frequent (power: `RISEN` times the odds at one end); `estimates by score`, that the interval of
    prevalence by the design excludes the value by score (power: that is `OFF` of the prevalence
    from the truth).

    Args:
        measured: the days.
        estimates: their tables, as `Measured.tables` returns them.
        pairs: their first and second labels, as `dependence_table` takes them.
    """
    found = [dependence_table(pairs)]
    if measured.census is not None:
        names = ("false positives by score", "misses by score")
        labels = [each for each in (measured.sample.given, measured.history) if each is not None]
        n = sum(int((each.given > 1).sum()) for each in labels)
        rows = [
            {"check": name, "n": n, **_climb(drawn, *prior)}
            for name, drawn, prior in zip(names, measured.census[1].climbs, CLIMB, strict=True)
        ]
        found.append(pd.DataFrame([*rows, *_by_score(*estimates)]).assign(tested=1))
    return pd.concat(found, ignore_index=True).astype({"found": np.int64})


def _climb(drawn: Floats, mean: float, spread: float) -> dict[str, float]:
    """Return what labels alone tell of a climb that all groups have, whose draws (d, G) are given.

    In units of its normal prior: what that adds is taken away.
    """
    variance = drawn.var(axis=0)
    own = np.maximum(1 / variance - 1, 0.0)
    precision = float(own.sum()) / spread**2
    pull = float((drawn.mean(axis=0) / variance)[own > 0].sum()) / spread + mean * precision
    z = abs(pull) / np.sqrt(precision) if precision else 0.0
    p_value = float(2 * stats.norm.sf(z))
    critical = stats.norm.isf(SIGNIFICANT_DEPENDENCE / 2)
    power = float(stats.norm.cdf(np.log(RISEN) * np.sqrt(precision) - critical))
    return {"found": p_value < SIGNIFICANT_DEPENDENCE, "p_value": p_value, "power": power}


def _by_score(*tables: pd.DataFrame) -> list[dict[str, object]]:
    """Return whether prevalence by score is contradicted by the design; none if insufficient."""
    found = list[dict[str, object]]()
    by_both = (table[table["metric"] == "prevalence"].to_dict("records") for table in tables)
    for row, design in zip(*by_both, strict=True):
        if pd.isna(design["value"]) or design["high"] <= design["low"]:
            continue
        errors = 2 * NORMAL_QUANTILE * design["value"] / (design["high"] - design["low"])
        power = float(stats.norm.cdf(OFF * errors - NORMAL_QUANTILE))
        check = {"check": "estimates by score", "n": row["n"], "power": power}
        found.append(check | {"found": contradicted(row, design)})
    return found

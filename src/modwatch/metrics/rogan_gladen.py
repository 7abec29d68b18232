"""What the metrics would be if moderators never erred: a sensitivity analysis, no replacement.

`corrections` says which formula and why. An interval carries three things: that of the estimate, as
two halves of a normal distribution; the confidence distribution of the error rate e; and chance in
the errors that did happen, of variance e(1−e) a comment. Seeded draws of the three are put
together as if they were independent.
"""

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from modwatch.errors import MetricInputError
from modwatch.metrics.corrections import FORMULAS, Draws, Totals
from modwatch.metrics.inputs import Floats
from modwatch.metrics.moderator_error import (
    ErrorRate,
    LabelPairs,
    ModeratorError,
    assumed_error,
    moderator_error,
)

#: Error rates to look at beside the measured one, or without one.
ASSUMED_RATES = (0.0, 0.01, 0.02, 0.05)

_SHAPE = "errors of labels change the shape of the curve"
_RANKING = "the ranking is made of the labels"

#: Metrics without a correction, and why.
NOT_CORRECTED = {
    "auprc": _SHAPE,
    "calibration_auprc": _SHAPE,
    "oc_auroc": _RANKING,
    "oc_auprc": _RANKING,
    "brier": "needs the mean of p² + (1−p)² over all comments",
    "ece": "errors of labels do not cancel in a sum of absolute values",
}

#: Columns of a table of corrections: an estimate, and the same without the moderators' errors.
COLUMNS = (
    *("source", "error_rate", "metric", "strategy", "alpha", "value", "low", "high"),
    *("corrected", "corrected_low", "corrected_high", "status", "note"),
)

_FLOATS = ("alpha", "value", "low", "high", "corrected", "corrected_low", "corrected_high")
_Row = dict[Any, Any]
_Key = tuple[Any, ...]

_TAILS = (0.025, 0.975)


def moderator_error_table(
    table: pd.DataFrame,
    pairs: LabelPairs,
    totals: Totals,
    *,
    others: Mapping[str, ModeratorError] = MappingProxyType({}),
    seed: int = 0,
) -> pd.DataFrame:
    """Return every estimate beside its correction, for the measured error and for assumed ones.

    `table` has the columns of `metrics.estimate.COLUMNS`; `others` are errors known otherwise, by
    source. The result has `COLUMNS`: `source` is measured, one of `others` (each absent when
    insufficient) or assumed; `status` is ok, insufficient or not_corrected; `note` says why, or
    that a value was cut to [0, 1].
    """
    errors = [
        ("measured", moderator_error(pairs)),
        *others.items(),
        *(("assumed", assumed_error(rate)) for rate in ASSUMED_RATES),
    ]
    parts = [
        corrected_table(table, error, totals, seed=seed).assign(
            source=source, error_rate=error.pooled.value
        )
        for source, error in errors
        if error.pooled.status == "ok"
    ]
    return pd.concat(parts, ignore_index=True)[list(COLUMNS)]


def corrected_rows(
    table: pd.DataFrame, pairs: LabelPairs, totals: Totals, *, alpha: float, seed: int = 0
) -> pd.DataFrame:
    """Return `moderator_error` and the corrected metrics as deployed, as rows of the estimates.

    Columns are those of `table`. `moderator_error` is the pooled rate, its n the pairs. Where it is
    known there follow, with the suffix `_corrected`, prevalence, accuracy, and at the strategy of
    the top and `alpha` OC-Acc and Review Efficiency; `reason` may hold a note beside the value.
    """
    error = moderator_error(pairs)
    rows = [_error_row(error.pooled)]
    if error.pooled.status == "ok":
        kept = table["metric"].isin(["prevalence", "accuracy"]) | (
            table["metric"].isin(["oc_accuracy", "review_efficiency"])
            & (table["strategy"] == totals.strategy)
            & ((table["alpha"].astype("Float64") - alpha).abs().fillna(1) < 1e-12)
        )
        naive = table[kept].reset_index(drop=True)
        corrected = corrected_table(naive, error, totals, seed=seed)
        for row, new in zip(naive.to_dict("records"), corrected.to_dict("records"), strict=True):
            bounds = {name: new[f"corrected_{name}"] for name in ("low", "high")}
            about = {"metric": f"{row['metric']}_corrected", "value": new["corrected"], **bounds}
            rows.append({**row, **about, "status": new["status"], "reason": new["note"]})
    frame = pd.DataFrame(rows).reindex(columns=list(table.columns))
    return frame.astype(dict.fromkeys(("alpha", "value", "low", "high"), "Float64"))


def corrected_table(
    table: pd.DataFrame, error: ModeratorError, totals: Totals, *, seed: int = 0
) -> pd.DataFrame:
    """Return every estimate of `table` but the completion beside its correction for `error`.

    As `moderator_error_table`, without `source` and `error_rate`. Raises MetricInputError when the
    error is insufficient.

    >>> row = {"metric": "prevalence", "strategy": None, "alpha": None, "value": 0.068,
    ...        "low": 0.06, "high": 0.08, "status": "ok", "reason": ""}
    >>> totals = Totals(comments=1000, flagged=10, top=45, strategy="uncertainty")
    >>> table = corrected_table(pd.DataFrame([row]), assumed_error(0.02), totals)
    >>> table["corrected"].round(6).tolist()
    [0.05]
    """
    if error.pooled.status != "ok":
        raise MetricInputError(
            f"the error rate is insufficient ({error.pooled.reason}); assume one instead"
        )
    rows = table[table["metric"] != "completion"].astype(object)
    seen = {_key(row): row for row in rows.where(rows.notna(), None).to_dict("records")}
    draws = Draws(error, totals, seed)
    corrected = [{**row, **_corrected(row, seen, draws)} for row in seen.values()]
    frame = pd.DataFrame(corrected).reindex(columns=list(COLUMNS[2:]))
    return frame.astype(dict.fromkeys(_FLOATS, "Float64"))


def _corrected(row: _Row, seen: dict[_Key, _Row], draws: Draws) -> _Row:
    """Return corrected value, interval, status and note of one estimate."""
    metric = row["metric"]
    if metric not in FORMULAS:
        return {"status": "not_corrected", "note": NOT_CORRECTED.get(metric, "no formula")}
    formula, needed = FORMULAS[metric]
    setting = _key(row)[1:] if needed == "review_efficiency" else (None, None)
    other = row if needed is None else seen.get((needed, *setting))
    if row["status"] != "ok":
        return {"status": "insufficient", "note": row["reason"]}
    if other is None or other["status"] != "ok":
        return {"status": "insufficient", "note": f"needs {needed}, which is insufficient"}
    drawn = formula(draws.of(row, other))
    found, (low, high) = float(drawn[0]), _interval(drawn[1:])
    if math.isnan(found):
        return {"status": "insufficient", "note": "errors could explain all that the labels show"}
    value = min(max(found, 0.0), 1.0)
    note = "" if value == found else f"{found:.4g} before it was cut to [0, 1]"
    bounds = {"corrected_low": min(low, value), "corrected_high": max(high, value)}
    return {"corrected": value, **bounds, "status": "ok", "note": note}


def _interval(drawn: Floats) -> tuple[float, float]:
    """Return the central 95 %; draws that errors could explain whole may be anything."""
    anything = (np.arange(drawn.size) % 2).astype(np.float64)
    drawn = np.clip(np.where(np.isnan(drawn), anything, drawn), 0, 1)
    low, high = np.quantile(drawn, _TAILS, method="hazen")  # the draws are midpoints
    return float(low), float(high)


def _error_row(error: ErrorRate) -> _Row:
    names = ("value", "low", "high", "n", "effective_n", "status", "reason")
    return {"metric": "moderator_error", **{name: getattr(error, name) for name in names}}


def _key(row: _Row) -> _Key:
    return row["metric"], row["strategy"], row["alpha"]

"""The effect of annotator errors on the estimates.

The reported estimates allow for errors that all annotators share (`label_truth`). The table shows
what they would be if all errors were independent, and if there were none.
"""

from dataclasses import asdict
from itertools import zip_longest

import pandas as pd

from modwatch.statistics.live.estimator import MetricEstimate
from modwatch.statistics.live.measure import Measured

_ENDS = ("", "_low", "_high")

_FLOATS = (
    *("alpha", "value", "low", "high"),
    *(f"{name}{end}" for name in ("independent", "uncorrected") for end in _ENDS),
    *("shared_false_positive", "shared_false_negative"),
)

#: Columns of `label_error_table`.
COLUMNS = ("metric", "strategy", *_FLOATS, "n", "status", "reason")


def label_error_table(
    measured: Measured,
    *,
    review_fraction: float,
    strategy: str,
    threshold: float = 0.5,
    toxic_share: float = 0.5,
) -> pd.DataFrame:
    """Return the estimates at one setting, and what they suppose about annotator errors.

    Columns: `COLUMNS`. `value`, `low`, `high` are those of `measure_days`, which allow for shared
    errors up to `shared_false_positive` and `shared_false_negative`; `independent` and its interval
    suppose that no error is shared; `uncorrected` and its interval that every first label is true.
    Numbers are missing where insufficient.

    Args:
        measured: the days.
        review_fraction, strategy: the deployed ones.
        threshold, toxic_share: as in `measure_days`.

    Raises:
        MetricInputError: an argument out of range.
    """
    if measured.labels is None:
        return pd.DataFrame(columns=COLUMNS).astype(dict.fromkeys(_FLOATS, "Float64"))

    def estimates(measured: Measured) -> list[MetricEstimate]:
        found = measured.estimates(
            review_fractions=[review_fraction],
            strategies=[strategy],
            threshold=threshold,
            toxic_share=toxic_share,
        )
        return [*(one for one, _ in found if one.metric != "completion"), *measured.rates()]

    of_all = (measured, measured.independent, measured.uncorrected)
    shares = {
        "shared_false_positive": measured.known.false_positive.ends[1],
        "shared_false_negative": measured.known.false_negative.ends[1],
    }
    rows = [_row(*found) | shares for found in zip_longest(*map(estimates, of_all))]
    frame = pd.DataFrame(rows, columns=list(COLUMNS))
    return frame.astype(dict.fromkeys(_FLOATS, "Float64"))


def _row(
    reported: MetricEstimate, alone: MetricEstimate, plain: MetricEstimate | None
) -> dict[str, object]:
    """Return one row; `plain` is None for the rates of the errors themselves."""
    row = {name: value for name, value in asdict(reported).items() if name in COLUMNS}
    for name, estimate in (("independent", alone), ("uncorrected", plain)):
        ends = None if estimate is None else (estimate.value, estimate.low, estimate.high)
        row |= dict(zip((name + end for end in _ENDS), ends or (None,) * 3, strict=True))
    return row

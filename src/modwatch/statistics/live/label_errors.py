"""The effect of annotator errors on the estimates.

The reported estimates allow for errors that all annotators share (`label_truth`). The table shows
what they would be if all errors were independent, and if there were none.
"""

from collections.abc import Sequence
from dataclasses import asdict
from itertools import zip_longest

import pandas as pd

from modwatch.statistics.label_truth import ErrorEvidence, TrueLabels
from modwatch.statistics.live.estimator import MetricEstimate
from modwatch.statistics.live.labelled_day import LabelledDay
from modwatch.statistics.live.measure import annotator_estimates, sample_estimates
from modwatch.statistics.live.sample import Sample

_ENDS = ("", "_low", "_high")

_FLOATS = (
    *("alpha", "value", "low", "high"),
    *(f"{name}{end}" for name in ("independent", "uncorrected") for end in _ENDS),
    *("shared_false_positive", "shared_false_negative"),
)

#: Columns of `label_error_table`.
COLUMNS = ("metric", "strategy", *_FLOATS, "n", "status", "reason")


def label_error_table(
    days: Sequence[LabelledDay],
    *,
    review_fraction: float,
    strategy: str,
    threshold: float = 0.5,
    toxic_share: float = 0.5,
    known: ErrorEvidence | None = None,
    seed: int = 0,
) -> pd.DataFrame:
    """Return the estimates at one setting, and what they suppose about annotator errors.

    Columns: `COLUMNS`. `value`, `low`, `high` are those of `measure_days`, which allow for shared
    errors up to `shared_false_positive` and `shared_false_negative`; `independent` and its interval
    suppose that no error is shared; `uncorrected` and its interval that every first label is true.
    Numbers are missing where insufficient.

    Args:
        days, threshold, toxic_share, known, seed: as in `measure_days`.
        review_fraction, strategy: the deployed ones.

    Raises:
        MetricInputError: an argument out of range.
    """
    known = known or ErrorEvidence()
    sample = Sample(days)
    labels = sample.true_labels(known, seed=seed)
    if labels is None:
        return pd.DataFrame(columns=COLUMNS).astype(dict.fromkeys(_FLOATS, "Float64"))

    def estimates(labels: TrueLabels | None) -> list[MetricEstimate]:
        found = sample_estimates(
            sample,
            labels,
            review_fractions=[review_fraction],
            strategies=[strategy],
            threshold=threshold,
            toxic_share=toxic_share,
            seed=seed,
        )
        rates = [] if labels is None else annotator_estimates(sample, labels)
        return [*(one for one in found if one.metric != "completion"), *rates]

    alone = sample.true_labels(known.independent, seed=seed)
    shares = {
        "shared_false_positive": known.most_shared("other"),
        "shared_false_negative": known.most_shared("toxic"),
    }
    rows = [
        _row(*found) | shares
        for found in zip_longest(estimates(labels), estimates(alone), estimates(None))
    ]
    frame = pd.DataFrame(rows, columns=list(COLUMNS))
    return frame.astype(dict.fromkeys(_FLOATS, "Float64"))


def _row(
    reported: MetricEstimate, alone: MetricEstimate, plain: MetricEstimate | None
) -> dict[str, object]:
    """Return one row; `plain` is None for the rates of the errors themselves."""
    row = {name: value for name, value in asdict(reported).items() if name in COLUMNS}
    for name, estimate in (("independent", alone), ("uncorrected", plain)):
        ends = (None, None, None) if estimate is None else _ends(estimate)
        row |= {name + end: value for end, value in zip(_ENDS, ends, strict=True)}
    return row


def _ends(estimate: MetricEstimate) -> tuple[float | None, float | None, float | None]:
    return estimate.value, estimate.low, estimate.high

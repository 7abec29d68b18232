"""The effect of annotator errors on the estimates: uncorrected, corrected, with shared errors.

Errors that all annotators make on the same comment, as where a guideline is ambiguous, are
invisible to confirmations. The band of an estimate holds its intervals for every share of
shared errors from none to `SHARED`, of false positives, of false negatives, or of both. Gold
answers bound the share: if annotators err more often on gold items than they contradict each other,
the rest of their errors is shared.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import product

import pandas as pd

from modwatch.statistics.intervals import mid_p
from modwatch.statistics.label_truth import SHARED, KnownAnswers, TrueLabels
from modwatch.statistics.live.estimator import MetricEstimate
from modwatch.statistics.live.labelled_day import LabelledDay
from modwatch.statistics.live.measure import sample_estimates
from modwatch.statistics.live.sample import Sample

#: Gold answers of one kind that bound the share of shared errors.
MINIMUM_GOLD = 30

#: Beyond this, labels would carry no information.
_MOST = 0.9

_FLOATS = (
    *("alpha", "value", "low", "high", "uncorrected", "uncorrected_low", "uncorrected_high"),
    *("shared_low", "shared_high", "shared_false_positive", "shared_false_negative"),
)

#: Columns of `label_error_table`.
COLUMNS = ("metric", "strategy", *_FLOATS, "n", "status", "reason")


@dataclass(frozen=True, kw_only=True)
class SharedErrors:
    """Shares of the errors that all annotators share, in [0, 1)."""

    false_positive: float = SHARED
    false_negative: float = SHARED


def shared_errors(labels: TrueLabels, gold: KnownAnswers | None) -> SharedErrors:
    """Return the largest share of shared errors that the gold answers allow, or the stated one.

    At the upper 95 % limit of the gold error rate, g, a share 1 − f/g is shared, where f is the
    rate of errors that are not. With fewer than `MINIMUM_GOLD` answers of a kind it is `SHARED`.
    """
    gold = gold or KnownAnswers()
    kinds = ((gold.other_wrong, gold.other), (gold.toxic_wrong, gold.toxic))
    shares = []
    for (_, drawn), (wrong, given) in zip(labels.rates(), kinds, strict=True):
        if given < MINIMUM_GOLD:
            shares.append(SHARED)
            continue
        most = mid_p(wrong, given)[1]
        shares.append(min(max(1 - float(drawn.mean()) / most, 0.0), _MOST))
    return SharedErrors(false_positive=shares[0], false_negative=shares[1])


def label_error_table(
    days: Sequence[LabelledDay],
    *,
    review_fraction: float,
    strategy: str,
    threshold: float = 0.5,
    toxic_share: float = 0.5,
    known: KnownAnswers | None = None,
    gold: KnownAnswers | None = None,
    seed: int = 0,
) -> pd.DataFrame:
    """Return the estimates at one setting, without the correction and with shared errors.

    Columns: `COLUMNS`. `value`, `low`, `high` are those of `measure_days`; `uncorrected` and its
    interval take every first label as true; `shared_low` and `shared_high` are the band, for the
    largest shares of shared errors `shared_false_positive` and `shared_false_negative`. Numbers are
    missing where insufficient.

    Args:
        days, threshold, toxic_share, known, seed: as in `measure_days`.
        review_fraction, strategy: the deployed ones.
        gold: answers to gold items.

    Raises:
        MetricInputError: an argument out of range, or days whose labels are the truth.
    """
    sample = Sample(days)
    labels = sample.true_labels(known, seed=seed)
    if labels is None:
        return pd.DataFrame(columns=COLUMNS).astype(dict.fromkeys(_FLOATS, "Float64"))

    def estimates(labels: TrueLabels | None) -> list[MetricEstimate]:
        return sample_estimates(
            sample,
            labels,
            review_fractions=[review_fraction],
            strategies=[strategy],
            threshold=threshold,
            toxic_share=toxic_share,
            seed=seed,
        )

    share = shared_errors(labels, gold)
    corners = [
        estimates(labels.with_shared_errors(false_positive=up, false_negative=down))
        for up, down in product((0.0, share.false_positive), (0.0, share.false_negative))
    ]
    rows = [
        _row(headline, plain, with_shared, share)
        for headline, plain, *with_shared in zip(
            estimates(labels), estimates(None), *corners, strict=True
        )
        if headline.metric != "completion"
    ]
    frame = pd.DataFrame(rows, columns=list(COLUMNS))
    return frame.astype(dict.fromkeys(_FLOATS, "Float64"))


def _row(
    headline: MetricEstimate,
    plain: MetricEstimate,
    with_shared: Sequence[MetricEstimate],
    share: SharedErrors,
) -> dict[str, object]:
    # Shared errors may leave too few positives for an estimate: then it may be anything. No share
    # of shared errors is among them, but for rounding.
    every = [headline, *with_shared]
    lows = [0.0 if estimate.low is None else estimate.low for estimate in every]
    highs = [1.0 if estimate.high is None else estimate.high for estimate in every]
    known = headline.value is not None
    return {
        **{name: value for name, value in asdict(headline).items() if name in COLUMNS},
        "uncorrected": plain.value,
        "uncorrected_low": plain.low,
        "uncorrected_high": plain.high,
        "shared_low": min(lows) if known else None,
        "shared_high": max(highs) if known else None,
        "shared_false_positive": share.false_positive,
        "shared_false_negative": share.false_negative,
    }

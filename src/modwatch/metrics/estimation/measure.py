"""Every metric, with an interval, of days on which only some comments have a label.

Labelled are the reviewed top and a random slice of the rest (`modwatch.routing`). A metric over the
labelled comments alone is biased, so each is weighted by the number of comments it represents,
N_h/m_h (Hájek). The scores of all comments are known, and with them the comments that any strategy
would review at any review fraction.

Missing labels are assumed to be missing at random within a stratum. If the labels are too few, the
estimate is `insufficient` with a reason and without a value.
"""

from collections.abc import Sequence
from dataclasses import asdict

import numpy as np
import pandas as pd

from modwatch.metrics import inputs
from modwatch.metrics.collaborative import REVIEW_FRACTIONS
from modwatch.metrics.estimation.annotators import KnownAnswers
from modwatch.metrics.estimation.estimator import Estimator, MetricEstimate
from modwatch.metrics.estimation.labelled_day import LabelledDay
from modwatch.metrics.estimation.population import Domain
from modwatch.metrics.estimation.sample import Sample
from modwatch.metrics.intervals import interval, mid_p

#: Columns of the table that `measure_days` returns.
COLUMNS = (
    *("metric", "strategy", "alpha", "value", "low", "high"),
    *("n", "effective_n", "status", "reason"),
)


def measure_days(
    days: Sequence[LabelledDay],
    *,
    review_fractions: Sequence[float] = REVIEW_FRACTIONS,
    strategies: Sequence[str] = ("uncertainty", "toxicity"),
    threshold: float = 0.5,
    toxic_share: float = 0.5,
    known: KnownAnswers | None = None,
    seed: int = 0,
) -> pd.DataFrame:
    """Return every metric of a window of days: one row per metric, strategy and review fraction.

    Columns: `metric`, `strategy`, `alpha` (the review fraction), `value`, `low`, `high` (95 %
    interval), `n` labels, `effective_n`, `status` (ok or insufficient), `reason`. Value and
    interval are missing if insufficient, and equal if every comment is labelled.

    Args:
        days: each with its own design and capacity; strata are day × stratum.
        review_fractions: in [0, 1].
        strategies: see `review_scores`.
        threshold: in [0, 1]; the model flags prob > threshold.
        toxic_share: of the strategy `hybrid`, in [0, 1].
        seed: of the draws behind the intervals.

    Raises:
        MetricInputError: an argument out of range.

    >>> from modwatch.metrics import fully_labelled
    >>> table = measure_days([fully_labelled([1, 0], [0.9, 0.6])])
    >>> table.set_index("metric").loc["accuracy", ["value", "low", "high"]].tolist()
    [0.5, 0.5, 0.5]
    """
    estimates = sample_estimates(
        Sample(days),
        review_fractions=review_fractions,
        strategies=strategies,
        threshold=threshold,
        toxic_share=toxic_share,
        known=known,
        seed=seed,
    )
    frame = pd.DataFrame([asdict(estimate) for estimate in estimates])[list(COLUMNS)]
    return frame.astype(dict.fromkeys(("alpha", "value", "low", "high"), "Float64"))


def sample_estimates(
    sample: Sample,
    *,
    review_fractions: Sequence[float],
    strategies: Sequence[str],
    threshold: float,
    toxic_share: float,
    seed: int,
    known: KnownAnswers | None = None,
) -> list[MetricEstimate]:
    """Return every estimate of a sample; arguments as in `measure_days`."""
    alphas = [inputs.fraction("review_fraction", alpha) for alpha in review_fractions]
    threshold = inputs.fraction("threshold", threshold)
    labels = sample.true_labels(known, seed=seed)
    estimator = Estimator(sample, threshold=threshold, seed=seed, labels=labels)
    estimates = list(estimator.of_the_model())
    for strategy in strategies:
        reviews = sample.reviewed(strategy, alphas, toxic_share)
        for alpha, (domain, ranks) in zip(alphas, reviews, strict=True):
            estimates.extend(estimator.of_the_team(strategy, alpha, domain, ranks))
    return estimates


def reliability_estimates(days: Sequence[LabelledDay], *, n_bins: int = 10) -> pd.DataFrame:
    """Return the reliability diagram of a window: one row per equal bin of prob, closed above.

    Columns: `lower`, `upper`; `mean_prob` of all comments of the bin, which is known;
    `positive_rate` with the 95 % interval `low`, `high`, missing if `status` is insufficient;
    `count` labels; `weight` comments. Kivlichan et al. (2021), appendix C.

    Calibration also concerns future comments, so the interval includes the chance variation of the
    labels themselves: it has width even if every comment is labelled.

    >>> from modwatch.metrics import fully_labelled
    >>> day = fully_labelled([1, 0], [0.75, 1.0])
    >>> reliability_estimates([day], n_bins=2)["positive_rate"].tolist()
    [<NA>, 0.5]
    """
    sample = Sample(days)
    edges = np.linspace(0, 1, n_bins + 1)
    rows = [
        {"lower": lower, "upper": upper, **_observed(sample, total, domain)}
        for lower, upper, (total, domain) in zip(
            edges[:-1], edges[1:], sample.bins(np.asarray, n_bins), strict=bool(days)
        )
    ]
    frame = pd.DataFrame(rows, columns=["lower", "upper", *_OBSERVED])
    return frame.astype(dict.fromkeys(("mean_prob", "positive_rate", "low", "high"), "Float64"))


_OBSERVED = ("mean_prob", "positive_rate", "low", "high", "count", "weight", "status")


def _observed(sample: Sample, prob: float, domain: Domain) -> dict[str, object]:
    """Return the columns of one bin, whose probabilities sum to `prob`."""
    known = {
        "mean_prob": prob / domain.mass if domain.mass else None,
        "count": int((domain.part > 0).sum()),
        "weight": domain.mass,
    }
    if not known["count"] or sample.lacks(domain):
        return known | {"status": "insufficient"}
    total = sample.total(sample.label, domain)
    ends = (total.value, *interval(total.confidence()))
    rate, low, high = (min(max(end / domain.mass, 0.0), 1.0) for end in ends)
    mass = sample.masses(domain)
    effective = float(mass.sum() ** 2 / (mass**2).sum())
    least, most = mid_p(rate * effective, effective)
    return known | {
        "positive_rate": rate,
        "low": min(low, rate, least),
        "high": max(high, rate, most),
        "status": "ok",
    }

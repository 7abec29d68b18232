"""Every metric of a day of which only some comments have a label, with an interval.

The labelled are the reviewed top and a random slice of the rest (`routing.design`). A metric over
them alone is biased, so each row weighs as many comments as it stands for, N_h/m_h (Hájek). The
scores of all comments are known, and with them who would be reviewed by any strategy at any α.

Labels still missing count as missing at random within a stratum. Where labels do not suffice the
estimate is `insufficient` and says why; it is never a number then.
"""

from collections.abc import Sequence
from dataclasses import asdict

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from modwatch.metrics import inputs
from modwatch.metrics.collaborative import REVIEW_FRACTIONS
from modwatch.metrics.estimator import Estimate, Estimator
from modwatch.metrics.inputs import Floats
from modwatch.metrics.intervals import interval, mid_p
from modwatch.metrics.labelled import LabelledDay, fully_labelled
from modwatch.metrics.population import Domain
from modwatch.metrics.sample import Sample

#: Columns of the tables that `measure_day` and its kin return.
COLUMNS = (
    *("metric", "strategy", "alpha", "value", "low", "high"),
    *("n", "effective_n", "status", "reason"),
)


def measure_days(
    days: Sequence[LabelledDay],
    *,
    alphas: Sequence[float] = REVIEW_FRACTIONS,
    strategies: Sequence[str] = ("uncertainty", "toxicity"),
    threshold: float = 0.5,
    toxic_share: float = 0.5,
    seed: int = 0,
) -> pd.DataFrame:
    """Return every metric of a window of days: one row a metric, strategy and α.

    Strata are day × stratum, and each day has its own capacity. Columns: `COLUMNS`, as in the
    table of measurements; value and interval are missing where `status` is insufficient.

    >>> table = measure_days([fully_labelled(np.array([0.9, 0.6]), np.array([1, 0]))])
    >>> table.set_index("metric").loc["accuracy", ["value", "low", "high"]].tolist()
    [0.5, 0.5, 0.5]
    """
    estimates = estimates_of(
        Sample(days),
        alphas=alphas,
        strategies=strategies,
        threshold=threshold,
        toxic_share=toxic_share,
        seed=seed,
    )
    return _table(estimates)


def estimates_of(
    sample: Sample,
    *,
    alphas: Sequence[float],
    strategies: Sequence[str],
    threshold: float,
    toxic_share: float,
    seed: int,
) -> list[Estimate]:
    """Return every estimate of a sample, as `measure_days` does of days."""
    alphas = [inputs.fraction("alpha", alpha) for alpha in alphas]
    estimator = Estimator(sample, threshold=inputs.fraction("threshold", threshold), seed=seed)
    estimates = list(estimator.of_the_model())
    for strategy in strategies:
        reviews = sample.reviewed(strategy, alphas, toxic_share)
        for alpha, (domain, standing) in zip(alphas, reviews, strict=True):
            estimates.extend(estimator.of_the_team(strategy, alpha, domain, standing))
    return estimates


def measure_day(
    *,
    prob: NDArray[np.floating],
    stratum: NDArray[np.integer],
    label: NDArray[np.generic],
    labelled: NDArray[np.bool_],
    population: NDArray[np.integer],
    sample: NDArray[np.integer],
    alphas: Sequence[float] = REVIEW_FRACTIONS,
    strategies: Sequence[str] = ("uncertainty", "toxicity"),
    threshold: float = 0.5,
    toxic_share: float = 0.5,
    seed: int = 0,
) -> pd.DataFrame:
    """Return every metric of one day, as `measure_days`; the arrays are those of `LabelledDay`."""
    day = LabelledDay(
        prob=prob,
        stratum=stratum,
        label=label,
        labelled=labelled,
        population=population,
        sample=sample,
    )
    return measure_days(
        [day],
        alphas=alphas,
        strategies=strategies,
        threshold=threshold,
        toxic_share=toxic_share,
        seed=seed,
    )


def measure_truth(
    *,
    prob: Floats,
    label: NDArray[np.generic],
    alphas: Sequence[float] = REVIEW_FRACTIONS,
    strategies: Sequence[str] = ("uncertainty", "toxicity"),
    threshold: float = 0.5,
    toxic_share: float = 0.5,
) -> pd.DataFrame:
    """Return the same table for a day of which every label is known, as in replayed research data.

    Nothing is estimated, so every interval is its value. For a window give `measure_days` days
    from `fully_labelled`.
    """
    return measure_days(
        [fully_labelled(prob, label)],
        alphas=alphas,
        strategies=strategies,
        threshold=threshold,
        toxic_share=toxic_share,
    )


def reliability_estimates(days: Sequence[LabelledDay], *, bins: int = 10) -> pd.DataFrame:
    """Return the reliability diagram of a window: one row an equal bin of prob, closed above.

    Columns: `lower`, `upper`; `mean_prob` of all comments of the bin, which is known;
    `positive_rate` with the 95 % interval `low`, `high`; `count` labels; `weight` comments;
    `status` ok or insufficient, when the rate is missing. Kivlichan et al. (2021), appendix C.

    Whether a model is calibrated is a question about comments to come too, so the interval is as
    wide as chance in the labels themselves: it has width even where every comment was labelled.

    >>> day = fully_labelled(np.array([0.75, 1.0]), np.array([1, 0]))
    >>> reliability_estimates([day], bins=2)["positive_rate"].tolist()
    [<NA>, 0.5]
    """
    sample = Sample(days)
    edges = np.linspace(0, 1, bins + 1)
    rows = [
        {"lower": lower, "upper": upper, **_observed(sample, total, domain)}
        for lower, upper, (total, domain) in zip(
            edges[:-1], edges[1:], sample.bins(np.asarray, bins), strict=bool(days)
        )
    ]
    frame = pd.DataFrame(rows, columns=["lower", "upper", *_OBSERVED])
    return frame.astype(dict.fromkeys(("mean_prob", "positive_rate", "low", "high"), "Float64"))


_OBSERVED = ("mean_prob", "positive_rate", "low", "high", "count", "weight", "status")


def _observed(sample: Sample, prob: float, domain: Domain) -> dict[str, object]:
    """Return what is known of the comments of a bin, whose probabilities sum to `prob`."""
    known = {
        "mean_prob": prob / domain.mass if domain.mass else None,
        "count": int((domain.part > 0).sum()),
        "weight": domain.mass,
    }
    if not known["count"] or sample.lacks(domain):
        return known | {"status": "insufficient"}
    total = sample.total(sample.label, domain)
    found = (total.value, *interval(total.confidence()))
    rate, low, high = (min(max(each / domain.mass, 0.0), 1.0) for each in found)
    low, high = min(low, rate), max(high, rate)
    mass = sample.masses(domain)
    effective = float(mass.sum() ** 2 / (mass**2).sum())
    least, most = mid_p(rate * effective, effective)
    ends = {"low": min(low, least), "high": max(high, most)}
    return known | {"positive_rate": rate, **ends, "status": "ok"}


def _table(estimates: Sequence[Estimate]) -> pd.DataFrame:
    """Return the estimates as a table, missing values as nullable floats."""
    frame = pd.DataFrame([asdict(estimate) for estimate in estimates])[list(COLUMNS)]
    return frame.astype(dict.fromkeys(("alpha", "value", "low", "high"), "Float64"))

"""Every metric, with an interval, of days on which only some comments have a label.

Labelled are the reviewed top and a random slice of the rest (`modwatch.routing`). A metric over the
labelled comments alone is biased, so each is weighted by the number of comments it represents,
N_h/m_h (Hájek). The scores of all comments are known, and with them the comments that any strategy
would review at any review fraction.

Missing labels may differ from others of the same score as groups of comments do, as far as
follow-ups do not tell (`census`); the estimates by the design alone suppose that they are missing
at random within a stratum, unless they are followed up (`row_weights`). If the labels are too few,
the estimate is `insufficient` with a reason and without a value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from modwatch.statistics import arguments
from modwatch.statistics.arguments import Floats
from modwatch.statistics.collaboration.collaborative import REVIEW_FRACTIONS
from modwatch.statistics.intervals import interval, mid_p
from modwatch.statistics.label_truth import ErrorEvidence, GivenLabels, TrueLabels
from modwatch.statistics.live.census import Census, reconciled
from modwatch.statistics.live.estimator import Estimator, MetricEstimate
from modwatch.statistics.live.labelled_day import LabelledDay
from modwatch.statistics.live.population import Domain
from modwatch.statistics.live.sample import Sample

_FLOATS = ("alpha", "value", "low", "high")

#: Columns of the table that `measure_days` returns.
COLUMNS = ("metric", "strategy", *_FLOATS, "n", "effective_n", "status", "reason")


def measure_days(
    days: Sequence[LabelledDay],
    *,
    review_fractions: Sequence[float] = REVIEW_FRACTIONS,
    strategies: Sequence[str] = ("uncertainty", "toxicity"),
    threshold: float = 0.5,
    known: ErrorEvidence | None = None,
    history: GivenLabels | None = None,
    seed: int = 0,
) -> pd.DataFrame:
    """Return every metric of a window of days: one row per metric, strategy and review fraction.

    Columns: `metric`, `strategy`, `alpha` (the review fraction), `value`, `low`, `high` (95 %
    interval), `n` labels, `effective_n`, `status` (ok or insufficient), `reason`. Value and
    interval are missing if insufficient, and equal if every comment has its true label.
    `Measured.tables` returns the estimates by the design alone, too, which suppose nothing about
    the score; `value` uses them (`live.census`).

    Where people gave the labels (`LabelledDay.confirmations` is not None), the estimates are of the
    true labels, the intervals allow for annotator errors, and three rows describe these:
    `annotator_false_positive_rate` and `annotator_false_negative_rate` of one label, and
    `overturned`, the share of the `n` confirmed labels that most people contradict.

    Args:
        days: each with its own design and capacity; strata are day × stratum.
        review_fractions: in [0, 1].
        strategies: see `review_scores`.
        threshold: in [0, 1]; the model flags prob > threshold, except on days with decisions
            (`LabelledDay.flagged`).
        known: further evidence of people's error rates, such as answers to gold items.
        history: earlier labels of the same model, as `Sample.given` has them.
        seed: of the draws behind the intervals.

    Raises:
        MetricInputError: an argument out of range.

    >>> from modwatch.statistics import fully_labelled
    >>> table = measure_days([fully_labelled([1, 0], [0.9, 0.6])])
    >>> table.set_index("metric").loc["accuracy", ["value", "low", "high"]].tolist()
    [0.5, 0.5, 0.5]
    """
    table, _ = Measured.from_days(days, known, history=history, seed=seed).tables(
        review_fractions=review_fractions,
        strategies=strategies,
        threshold=threshold,
    )
    return table


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Days with the true labels of their comments."""

    days: Sequence[LabelledDay]
    sample: Sample
    #: Of the rows of the sample; None if its labels are true.
    labels: TrueLabels | None
    #: All comments with their true labels; None if the labels of the sample are true.
    census: tuple[Census, TrueLabels] | None
    #: What is known of people's errors besides the labels, and earlier labels.
    known: ErrorEvidence
    history: GivenLabels | None
    seed: int

    @classmethod
    def from_days(
        cls,
        days: Sequence[LabelledDay],
        known: ErrorEvidence | None = None,
        *,
        history: GivenLabels | None = None,
        seed: int = 0,
    ) -> Measured:
        """Return the days with what their labels, and earlier ones, show; as `measure_days`."""
        sample = Sample(days)
        census = Census(days) if sample.fallible else None
        return cls(
            days=days,
            sample=sample,
            labels=None,
            census=None,
            history=history,
            known=known or ErrorEvidence(),
            seed=seed,
        )._inferred(census)

    @property
    def toxic(self) -> Floats:
        """(m,) the probability that each row of the sample is toxic: its label if that is true."""
        return self.sample.label if self.labels is None else self.labels.mean

    def _inferred(self, census: Census | None) -> Measured:
        """Return the same with the true labels that are inferred by `known` and `history`."""
        if census is None:
            return self
        labels = census.true_labels(self.known, history=self.history, seed=self.seed)
        if labels is None:
            return self
        return replace(self, labels=labels.of_rows(labels.labelled), census=(census, labels))

    def tables(self, **asked: Any) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return the table of `measure_days`, with the arguments of that, and its like.

        The second one has the same rows, in the same order, estimated by the design alone.
        """
        found = [*self.estimates(**asked), *((rate, rate) for rate in self.rates())]
        return _table(one for one, _ in found), _table(other for _, other in found)

    def estimates(self, **asked: Any) -> list[tuple[MetricEstimate, MetricEstimate]]:
        """Return every estimate with that by the design alone; `asked` as in `sample_estimates`."""
        sampled = sample_estimates(self.sample, self.labels, seed=self.seed, **asked)
        if self.census is None or self.sample.lacks(self.sample.everything()):
            return [(estimate, estimate) for estimate in sampled]
        modelled = sample_estimates(*self.census, seed=self.seed, **asked)
        return [(reconciled(one, other), one) for one, other in zip(sampled, modelled, strict=True)]

    def reliability(self, n_bins: int = 10) -> pd.DataFrame:
        """Return the table of `reliability_estimates`."""
        estimator = Estimator(self.sample, threshold=0.5, seed=self.seed, labels=self.labels)
        edges = np.linspace(0, 1, n_bins + 1)
        bins = self.sample.bins(np.asarray, n_bins)
        rows = [
            {"lower": lower, "upper": upper, **_observed(estimator, total, domain)}
            for lower, upper, (total, domain) in zip(
                edges[:-1], edges[1:], bins, strict=bool(self.days)
            )
        ]
        frame = pd.DataFrame(rows, columns=["lower", "upper", *_OBSERVED])
        return frame.astype(dict.fromkeys(("mean_prob", "positive_rate", "low", "high"), "Float64"))

    def rates(self) -> list[MetricEstimate]:
        """Return the error rates of the annotators; none if the labels are true."""
        return [] if self.labels is None else [*annotator_estimates(self.sample, self.labels)]


def _table(estimates: Iterable[MetricEstimate]) -> pd.DataFrame:
    rows = [asdict(estimate) for estimate in estimates]
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype(dict.fromkeys(_FLOATS, "Float64"))


def sample_estimates(
    sample: Sample,
    labels: TrueLabels | None,
    *,
    review_fractions: Sequence[float],
    strategies: Sequence[str],
    threshold: float,
    seed: int,
) -> list[MetricEstimate]:
    """Return every estimate of a sample with these true labels; arguments as in `measure_days`."""
    alphas = [arguments.fraction("review_fraction", alpha) for alpha in review_fractions]
    threshold = arguments.fraction("threshold", threshold)
    estimator = Estimator(sample, threshold=threshold, seed=seed, labels=labels)
    estimates = list(estimator.of_the_model())
    for name in strategies:
        reviewed = sample.reviewed(name, alphas, threshold=threshold)
        for alpha, review in zip(alphas, reviewed, strict=True):
            estimates.extend(estimator.of_the_team(name, alpha, review))
    return estimates


def annotator_estimates(sample: Sample, labels: TrueLabels) -> Iterator[MetricEstimate]:
    """Yield the error rates of the annotators, and the share of confirmed labels overturned."""
    confirmed, overturned = sample.confirmations()
    about: dict[str, Any] = {"strategy": None, "alpha": None, "completion": 1.0}
    for metric, drawn in labels.rates():
        spread = float(drawn.var())
        value = float(drawn.mean())
        yield MetricEstimate.from_interval(
            value,
            interval(drawn),
            n=confirmed,
            metric=metric,
            effective_n=value * (1 - value) / spread if spread else float(confirmed),
            **about,
        )
    if confirmed:
        share = overturned / confirmed
        yield MetricEstimate.from_interval(
            share,
            (share, share),
            n=confirmed,
            metric="overturned",
            effective_n=float(confirmed),
            **about,
        )


def reliability_estimates(
    days: Sequence[LabelledDay],
    *,
    n_bins: int = 10,
    known: ErrorEvidence | None = None,
    history: GivenLabels | None = None,
    seed: int = 0,
) -> pd.DataFrame:
    """Return the reliability diagram of a window: one row per equal bin of prob, closed above.

    Columns: `lower`, `upper`; `mean_prob` of all comments of the bin, which is known;
    `positive_rate` with the 95 % interval `low`, `high`, missing if `status` is insufficient;
    `count` labels; `weight` comments. Kivlichan et al. (2021), appendix C. `known` and `history` as
    in `measure_days`.

    Calibration also concerns future comments, so the interval includes the chance variation of the
    labels themselves: it has width even if every comment is labelled.

    >>> from modwatch.statistics import fully_labelled
    >>> day = fully_labelled([1, 0], [0.75, 1.0])
    >>> reliability_estimates([day], n_bins=2)["positive_rate"].tolist()
    [<NA>, 0.5]
    """
    return Measured.from_days(days, known, history=history, seed=seed).reliability(n_bins)


_OBSERVED = ("mean_prob", "positive_rate", "low", "high", "count", "weight", "status")


def _observed(estimator: Estimator, prob: float, domain: Domain) -> dict[str, object]:
    """Return the columns of one bin, whose probabilities sum to `prob`."""
    known = {
        "mean_prob": prob / domain.mass if domain.mass else None,
        "count": int((domain.part > 0).sum()),
        "weight": domain.mass,
    }
    rate = estimator.positive_rate(domain) if known["count"] else None
    if rate is None or rate.value is None:
        return known | {"status": "insufficient"}
    value, low, high = rate.known
    least, most = mid_p(value * rate.effective_n, rate.effective_n)
    return known | {
        "positive_rate": value,
        "low": min(low, least),
        "high": max(high, most),
        "status": "ok",
    }

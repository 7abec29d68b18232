"""Two models on the same labelled days: what they decide differently, and paired differences.

The labels are those of the design that one of them, the champion, was routed by. They represent all
comments, so that they measure any other model, too. What the models decide differently is known of
all comments; whether they are right is estimated, and only there, so that the difference is more
precise than either estimate.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from modwatch.common.errors import MetricInputError
from modwatch.statistics.arguments import Floats
from modwatch.statistics.collaboration.ranking import reviews
from modwatch.statistics.intervals import interval
from modwatch.statistics.label_truth import ErrorEvidence
from modwatch.statistics.live.estimator import WIDEST_AREA, Estimator, MetricEstimate
from modwatch.statistics.live.figures import FIGURES
from modwatch.statistics.live.labelled_day import LabelledDay
from modwatch.statistics.live.measure import sample_estimates
from modwatch.statistics.live.population import Domain
from modwatch.statistics.live.sample import Sample

#: Columns of the table that `compare_days` returns.
COLUMNS = ("metric", "champion", "challenger", "value", "low", "high", "n", "status", "reason")

#: Figures of either model: shares of errors, and areas but those of calibration.
METRICS = tuple(
    key for key, figure in FIGURES.items() if figure.errors or figure.areas in ("", "oc_")
)

_FLOATS = ("champion", "challenger", "value", "low", "high")


@dataclass(frozen=True, kw_only=True)
class ModelDays:
    """A window of days with the probabilities of one model.

    It flags prob > threshold, except on days that have decisions of their own.
    """

    days: Sequence[LabelledDay]
    threshold: float = 0.5

    def scored_by(
        self,
        prob: Sequence[NDArray[np.floating]],
        flagged: Sequence[NDArray[np.bool_]] | None = None,
        *,
        columns: Sequence[Mapping[str, NDArray[np.floating]]] | None = None,
        threshold: float = 0.5,
    ) -> "ModelDays":
        """Return the same days and labels with the probabilities, (N,) a day, of another model.

        `flagged` (N,) a day are its decisions, where they are not prob > threshold; `columns` its
        further columns, where they are not those of the days.
        """
        decisions = [None] * len(prob) if flagged is None else flagged
        further = [day.columns for day in self.days] if columns is None else columns
        plain: dict[str, Any] = {"calibrated": None, "given_variance": None}
        days = [
            replace(day, prob=scores, flagged=decided, columns=more, **plain)
            for day, scores, decided, more in zip(self.days, prob, decisions, further, strict=True)
        ]
        return ModelDays(days=days, threshold=threshold)

    @cached_property
    def prob(self) -> Floats:
        """(N,) probabilities of all days."""
        return np.concatenate([day.prob for day in self.days]).astype(np.float64)

    @cached_property
    def flagged(self) -> NDArray[np.bool_]:
        """(N,) whether the model flags each comment of all days."""
        return np.concatenate([day.decisions(self.threshold) for day in self.days])

    def reviewed(self, setting: "Setting") -> Floats:
        """Return the part (N,) of each comment that is reviewed; each day has its own capacity."""
        parts = []
        for day in self.days:
            score = day.review_scores(setting.strategy, threshold=self.threshold)
            (cut,) = reviews(score, [setting.review_fraction], np.ones(score.size))
            parts.append(cut.reviewed(score))
        return np.concatenate(parts)


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What is deployed, and what is known of people's errors."""

    #: α in (0, 1].
    review_fraction: float
    strategy: str = "uncertainty"
    known: ErrorEvidence | None = None
    #: Of the draws behind the intervals.
    seed: int = 0


def compare_days(champion: ModelDays, challenger: ModelDays, setting: Setting) -> pd.DataFrame:
    """Return how the challenger differs from the champion on the same days and labels.

    Columns: `COLUMNS`. Of `METRICS`, `champion` is the estimate of `measure_days`, `value` the
    difference, challenger less champion, with its 95 % interval `low`, `high`, and `challenger` the
    sum of both. Differences of shares are estimated on the comments on which the decisions differ;
    their intervals join those of what speaks for either model (Zou & Donner 2008). Differences of
    areas have the interval of the sum of the effects that each toxic comment has on both. The
    other rows are

    - `same_decision`: the share of all comments that both flag, or both do not; `rank_correlation`
      of the probabilities (Spearman); `same_reviewed`: the share of the comments that the champion
      sends to review which the challenger would send, too. They are known: `low` and `high` are
      equal to `value`.
    - `flagged_by_champion_only`, `flagged_by_challenger_only`: the number of such comments, known,
      in the column of that model, and as `value` the share of them that is toxic.

    Args:
        champion, challenger: days with the same design, labels and order of comments.
        setting: what is deployed.

    Raises:
        MetricInputError: the days do not agree, or an argument is out of range.

    >>> from modwatch.statistics import fully_labelled
    >>> days = ModelDays(days=[fully_labelled([1, 0, 0, 1], [0.9, 0.6, 0.2, 0.3])], threshold=0.5)
    >>> other = days.scored_by([np.array([0.9, 0.4, 0.2, 0.3])], threshold=0.5)
    >>> table = compare_days(days, other, Setting(review_fraction=0.25)).set_index("metric")
    >>> table.loc["accuracy", ["champion", "challenger", "value"]].tolist()
    [0.5, 0.75, 0.25]
    """
    for one, other in zip(champion.days, challenger.days, strict=True):
        if not (
            np.array_equal(one.labelled, other.labelled)
            and np.array_equal(one.stratum, other.stratum)
        ):
            raise MetricInputError("both models need the same days with the same labels")
    if not sum(len(day.prob) for day in champion.days):
        raise MetricInputError("there is no comment to compare the models on")
    pair = _Pair(champion, challenger, setting)
    frame = pd.DataFrame([*_decisions(pair), *_differences(pair)], columns=list(COLUMNS))
    return frame.astype(dict.fromkeys(_FLOATS, "Float64"))


class _Pair:
    """Two models on the same days."""

    def __init__(self, champion: ModelDays, challenger: ModelDays, setting: Setting) -> None:
        self.champion, self.challenger, self.setting = champion, challenger, setting
        #: (N,) reviewed part of each comment, by the champion and by the challenger.
        self.reviewed = champion.reviewed(setting), challenger.reviewed(setting)
        means = [
            (one.prob.astype(np.float64) + other.prob) / 2
            for one, other in zip(champion.days, challenger.days, strict=True)
        ]
        # Both scores are evidence of the true labels.
        self._sample = Sample(champion.scored_by(means, threshold=0.5).days)
        in_top = [day.stratum == 0 for day in champion.days]
        self._in_top = np.concatenate(in_top)
        starts = np.cumsum([0, *(len(day.prob) for day in champion.days)])
        self._rows = np.concatenate(
            [start + day.rows() for start, day in zip(starts, champion.days, strict=False)]
        )

    def domain(self, part: Floats) -> Domain:
        """Return the domain with a part (N,) of each comment."""
        top = float(part[self._in_top].sum())
        return Domain(part=part[self._rows], top=top, rest=float(part.sum()) - top)

    def estimator(self, *parts: Domain) -> Estimator:
        """Return the estimates of a sample in which these domains have true labels of their own."""
        part = np.zeros(self._rows.size, np.int64)
        for number, domain in enumerate(parts, start=1):
            part[domain.part > 0] = number
        seed = self.setting.seed
        labels = self._sample.true_labels(self.setting.known, seed=seed, part=part)
        return Estimator(self._sample, threshold=0.5, seed=seed, labels=labels)

    def measured(self, model: ModelDays) -> tuple[dict[str, MetricEstimate], dict[str, Floats]]:
        """Return the estimates of one model, and the effects of toxic comments on its areas."""
        setting, sample = self.setting, Sample(model.days)
        labels = sample.true_labels(setting.known, seed=setting.seed)
        at = {"review_fractions": [setting.review_fraction], "strategies": [setting.strategy]}
        estimates = sample_estimates(
            sample,
            labels,
            **at,  # type: ignore[arg-type]
            threshold=model.threshold,
            seed=setting.seed,
        )
        estimator = Estimator(sample, threshold=model.threshold, seed=setting.seed, labels=labels)
        alone = estimator.area_effects(
            sample.without(sample.everything()), sample.ranks(np.asarray)
        )
        [review] = sample.reviewed(
            setting.strategy,
            [setting.review_fraction],
            threshold=model.threshold,
        )
        team = estimator.area_effects(review.domain, review.ranks)
        effects = alone | {f"oc_{name}": effect for name, effect in team.items()}
        return {estimate.metric: estimate for estimate in estimates}, effects


def _decisions(pair: _Pair) -> Iterator[dict[str, object]]:
    """Yield what the models decide differently."""
    old, new = pair.champion, pair.challenger
    size = old.prob.size
    yield _known("same_decision", float((old.flagged == new.flagged).mean()), size)
    if np.ptp(old.prob) and np.ptp(new.prob):
        ranks = [pd.Series(sample.prob).rank() for sample in (old, new)]
        correlation = float(np.corrcoef(ranks)[0, 1])
        yield _known("rank_correlation", correlation, size)
    of_champion = float(pair.reviewed[0].sum())
    if of_champion:
        both = float(np.minimum(*pair.reviewed).sum())
        yield _known("same_reviewed", both / of_champion, round(of_champion))
    only = {
        "champion": pair.domain((old.flagged & ~new.flagged).astype(np.float64)),
        "challenger": pair.domain((new.flagged & ~old.flagged).astype(np.float64)),
    }
    estimator = pair.estimator(*only.values())
    for name, domain in only.items():
        found = estimator.positive_rate(domain)
        yield {
            "metric": f"flagged_by_{name}_only",
            name: domain.mass,
            **{field: getattr(found, field) for field in _ESTIMATE},
        }


def _differences(pair: _Pair) -> Iterator[dict[str, object]]:
    """Yield the paired difference of each metric."""
    (before, old), (after, new) = (
        pair.measured(model) for model in (pair.champion, pair.challenger)
    )
    gains = _of_shares(pair) | _of_areas(pair, before, after, old, new)
    for metric in METRICS:
        first, gain = before[metric], gains.get(metric)
        row: dict[str, object] = {"metric": metric, "champion": first.value, "n": first.n}
        if first.value is None or gain is None:
            reason = (
                first.reason or after[metric].reason or "too few labels where the models differ"
            )
            yield row | {"status": "insufficient", "reason": reason}
            continue
        value, low, high = (min(max(end, -1.0), 1.0) for end in gain)
        known = {"challenger": first.value + value, "value": value, "low": low, "high": high}
        yield row | known | {"status": "ok", "reason": ""}


#: A difference, and the ends of its interval.
_Gain = tuple[float, float, float]


def _of_shares(pair: _Pair) -> dict[str, _Gain | None]:
    """Return the differences of the shares of errors, such as OC-Acc."""
    flags = [model.flagged.astype(np.float64) for model in (pair.champion, pair.challenger)]
    everything = np.ones(flags[0].size)
    old, new = pair.reviewed
    found: dict[str, _Gain | None] = {}
    of_both = [
        {"everything": everything, "reviewed": reviewed, "unreviewed": 1 - reviewed}
        for reviewed in (old, new)
    ]
    for metric, figure in FIGURES.items():
        if (share := figure.errors) is None:
            continue
        of_old, of_new = (parts[share.of] for parts in of_both)
        over = [float(parts[share.over].sum()) for parts in of_both]
        sign = -1.0 if share.left else 1.0
        if not all(over):
            found[metric] = None
            continue
        weights = -sign * of_old / over[0], sign * of_new / over[1]
        constant = sum(
            float(np.dot(weight, flag)) for weight, flag in zip(weights, flags, strict=True)
        )
        slope = sum(weight * (1 - 2 * flag) for weight, flag in zip(weights, flags, strict=True))
        found[metric] = _linear(pair, constant, np.asarray(slope))
    return found


def _linear(pair: _Pair, constant: float, slope: Floats) -> _Gain | None:
    """Return constant + Σ slope·y over all comments, where the slope (N,) is known."""
    most = float(np.abs(slope).max())
    slope = np.where(np.abs(slope) > _ROUNDING * most, slope, 0.0)
    signs = {1: np.maximum(slope, 0.0), -1: np.maximum(-slope, 0.0)}
    domains = {sign: pair.domain(part / most) for sign, part in signs.items() if part.any()}
    value, below, above = constant, 0.0, 0.0
    if domains:
        estimator = pair.estimator(*domains.values())
    for sign, domain in domains.items():
        found = estimator.positive_rate(domain)
        rate, low, high = (
            default if end is None else end
            for end, default in zip((found.value, found.low, found.high), _ANYTHING, strict=True)
        )
        mass = most * domain.mass
        value += sign * mass * rate
        down, up = (rate - low, high - rate)[::sign]
        below += (mass * down) ** 2
        above += (mass * up) ** 2
    below, above = float(np.sqrt(below)), float(np.sqrt(above))
    return None if below + above > WIDEST_AREA else (value, value - below, value + above)


def _of_areas(
    pair: _Pair,
    before: Mapping[str, MetricEstimate],
    after: Mapping[str, MetricEstimate],
    old: Mapping[str, Floats],
    new: Mapping[str, Floats],
) -> dict[str, _Gain | None]:
    """Return the differences of the areas under both curves, with and without review."""
    estimator = pair.estimator()
    found: dict[str, _Gain | None] = {}
    for metric in old.keys() & new.keys():
        first, second = before[metric].value, after[metric].value
        if first is None or second is None:
            continue
        value = second - first
        low, high = interval(estimator.deviation(new[metric] - old[metric]))
        found[metric] = (value, value + min(low, 0.0), value + max(high, 0.0))
    return found


_ROUNDING = 1e-12
#: An unknown rate, and its bounds.
_ANYTHING = (0.5, 0.0, 1.0)
_ESTIMATE = ("value", "low", "high", "n", "status", "reason")


def _known(metric: str, value: float, size: int) -> dict[str, object]:
    """Return a row of what is known of all comments."""
    ends = dict.fromkeys(("value", "low", "high"), value)
    return {"metric": metric, **ends, "n": size, "status": "ok", "reason": ""}

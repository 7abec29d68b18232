"""All estimates of one sample: the statistic, the conditions and the interval of each metric."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from modwatch.statistics.arguments import Floats
from modwatch.statistics.estimate import Estimate
from modwatch.statistics.intervals import convolved, effective_number, interval, mid_p
from modwatch.statistics.label_truth import TrueLabels
from modwatch.statistics.live.areas import Area, Areas, Side, mean_credit
from modwatch.statistics.live.population import Domain, Ranks, Review
from modwatch.statistics.live.sample import Sample

#: Labels of either class that areas under curves require.
MINIMUM_OF_A_CLASS = 5

#: Comments that a share requires where people may err: the truth of fewer is a matter of single
#: labels.
MINIMUM_OF_A_SHARE = 30

#: Width of the interval beyond which an area is insufficient: half of its range.
WIDEST_AREA = 0.5

#: Effective labels that the expected calibration error requires; with fewer it measures noise.
MINIMUM_FOR_CALIBRATION = 100

#: Effective labels that prediction sets require: half of them may leave one label in a set at 90 %.
MINIMUM_FOR_SETS = 30

_BINS = 15


@dataclass(frozen=True, kw_only=True)
class MetricEstimate(Estimate):
    """An estimate of one metric; `n` counts the labels used."""

    metric: str
    #: None for metrics without a strategy.
    strategy: str | None
    #: Review fraction; None for metrics without one.
    alpha: float | None
    #: Labels of equal weight with the same information: (Σw)²/Σw² (Kish).
    effective_n: float
    #: Labels received over labels requested; 1 if none was requested.
    completion: float


@dataclass(frozen=True, kw_only=True)
class _Outcome:
    """What happens to a comment, in [0, 1]; it depends on whether the comment is toxic."""

    #: (m,) expected outcome of each row.
    value: Floats
    #: (m,) its derivative in the probability that the comment is toxic.
    slope: Floats
    #: (m,) the part of the value that a label shows; None where labels are the truth.
    evident: Floats | None = None


class Estimator:
    """All estimates of one sample."""

    def __init__(
        self, sample: Sample, *, threshold: float, seed: int, labels: TrueLabels | None = None
    ) -> None:
        """`labels` are the posterior of the true labels; None: those of the sample are true."""
        self._sample = sample
        self._seed = seed
        self._labels = labels
        self._everything = sample.everything()
        self._flagged = sample.flagged(threshold)
        toxic = sample.label if labels is None else labels.mean
        evident = None if labels is None else toxic * sample.given_labels()[0]
        self._toxic = _Outcome(value=toxic, slope=np.ones(toxic.size), evident=evident)
        self._wrong = self._wrong_decision(self._flagged.part > 0)
        self._by_prob = self._curves(self._toxic, sample.prob)

    def of_the_model(self) -> Iterator[MetricEstimate]:
        """Yield the estimates without a review fraction."""
        sample, everything, flagged = self._sample, self._everything, self._flagged
        yield self._mean("accuracy", self._wrong, everything, flip=True)
        yield self._mean("prevalence", self._toxic, everything)
        yield self._mean("precision_flagged", self._toxic, flagged)
        yield self._share("recall_flagged", self._toxic, flagged, "toxic comment")
        yield self._mean("brier", self._squared_error(), everything)
        yield self._calibration_error()
        nothing = sample.without(everything)
        ranks = sample.ranks(np.asarray)
        yield from self._areas("", self._by_prob, self._toxic, nothing, ranks)
        curves = self._curves(self._wrong, _uncertainty(sample.prob))
        ranks = sample.ranks(_uncertainty)
        yield from self._areas("calibration_", curves, self._wrong, nothing, ranks)
        yield self._completion()

    def of_the_team(self, strategy: str, alpha: float, review: Review) -> Iterator[MetricEstimate]:
        """Yield the collaborative estimates at one strategy and review fraction."""
        reviewed = review.domain
        kept = self._sample.without(reviewed)
        whole = self._everything.mass
        at: dict[str, Any] = {"strategy": strategy, "alpha": alpha}
        yield self._mean("oc_accuracy", self._wrong, kept, over=whole, flip=True, **at)
        yield self._mean("review_efficiency", self._wrong, reviewed, **at)
        yield self._share("review_effectiveness", self._wrong, reviewed, "wrong decision", **at)
        over = whole / review.most
        yield self._mean("remaining_cost", self._wrong, review.at_stake, over=over, **at)
        yield from self._areas("oc_", self._by_prob, self._toxic, reviewed, review.ranks, **at)

    def positive_rate(self, domain: Domain) -> MetricEstimate:
        """Return the share of toxic comments in a part of the population.

        `effective_n` is that of the comments which the labels represent, labelled ones included.
        """
        effective = effective_number(self._sample.masses(domain))
        return replace(self._mean("positive_rate", self._toxic, domain), effective_n=effective)

    def overturn_rate(self) -> MetricEstimate:
        """Return the share of the reviewed top whose automated decision is wrong.

        It is known for the labelled comments; the interval is for the stream they are sampled from.
        """
        found = self._mean("overturn_rate", self._wrong, self._sample.reviewed_top())
        return _of_a_sample(found, found.n)

    def set_coverage(self, contains: NDArray[np.bool_], *, metric: str) -> MetricEstimate:
        """Return the share of comments whose label is in its set.

        `contains` (m, 2): whether either label is in the set of a row.
        """
        everything, missed = self._everything, 1.0 - contains
        if reason := self._too_few_for_sets():
            return self._insufficient(metric, reason, everything)
        toxic = self._toxic.value
        parts = (1 - toxic) * missed[:, 0], toxic * missed[:, 1]
        evident = None
        if self._labels is not None:
            as_toxic, as_other = self._sample.given_labels()
            evident = parts[0] * as_other + parts[1] * as_toxic
        outcome = _Outcome(value=parts[0] + parts[1], slope=missed @ [-1.0, 1.0], evident=evident)
        return self._mean(metric, outcome, everything, flip=True)

    def set_coverage_of(
        self, label: int, contains: NDArray[np.bool_], *, metric: str
    ) -> MetricEstimate:
        """Return the share of comments with a label, 0 or 1, whose label is in its set.

        `contains` is as in `set_coverage`; `n` and `effective_n` count labels of that kind.
        """
        everything, having = self._everything, self._toxic if label else self._harmless()
        n = round(having.value.sum())
        reason = self._sample.lacks(everything) or self._too_few_for_sets()
        if not reason and n < MINIMUM_OF_A_CLASS:
            reason = f"{n} labels of that kind; {MINIMUM_OF_A_CLASS} are needed"
        curves = self._curves(having, self._sample.prob)
        share = curves.mean(contains[:, label].astype(np.float64), deviation=None)
        if reason or share is None:
            return replace(self._insufficient(metric, reason, everything), n=n)
        found = self._ok(metric, share[0], *share[1], everything)
        found = replace(found, n=n, effective_n=self._effective_of(having))
        return found if self._exact else _of_a_sample(found, found.effective_n)

    def unsure_share(self, contains: NDArray[np.bool_]) -> MetricEstimate:
        """Return the share of comments whose set is not one label.

        What is labelled is known; the interval is for other labels to calibrate the sets, too, of
        which those of the rarer kind vary most.
        """
        unsure = (contains.sum(axis=1) != 1).astype(np.float64)
        if reason := self._too_few_for_sets():
            return self._insufficient("unsure_share", reason, self._everything)
        outcome = _Outcome(value=unsure, slope=np.zeros(unsure.size))
        found = self._mean("unsure_share", outcome, self._everything)
        return _of_a_sample(found, min(map(self._effective_of, (self._toxic, self._harmless()))))

    def _effective_of(self, having: _Outcome) -> float:
        """Return the effective number (Kish) of labels with an outcome, at least 1."""
        return max(effective_number(having.value * self._sample.represented), 1.0)

    def _too_few_for_sets(self) -> str:
        few = self._effective(self._everything) < MINIMUM_FOR_SETS
        return f"fewer than {MINIMUM_FOR_SETS} effective labels" if few else ""

    def auroc_against(self, other: "Estimator", *, metric: str) -> MetricEstimate:
        """Return the AUROC of this sample's toxic comments against the other one's harmless ones.

        The scores of all comments are known; the harmless ones are all less the toxic ones.
        """
        everything, others = self._everything, other._everything
        reason = self._sample.lacks(everything) or other._sample.lacks(others)
        fewest = round(min(self._toxic.value.sum(), (1 - other._toxic.value).sum()))
        if not reason and fewest < MINIMUM_OF_A_CLASS:
            reason = f"{fewest} labels of the rarer class; {MINIMUM_OF_A_CLASS} are needed"
        if reason:
            return self._insufficient(metric, reason, everything)
        prob, theirs = self._sample.prob, other._sample.prob
        toxic = other._sample.represented * other._toxic.value
        ranks = other._sample.ranks_of(prob)
        negatives = others.mass - float(toxic.sum())
        harmless = ranks.below + ranks.tied / 2 - _mass_below(theirs, toxic, prob)
        credit = np.clip(harmless / negatives, 0.0, 1.0)
        # One more toxic comment in place of a row is one harmless one less.
        share = self._toxic.value * self._sample.represented
        share = share / share.sum()
        effect = (float(np.dot(share, credit)) - 1 + _mass_below(prob, share, theirs)) / negatives
        area = self._by_prob.mean(credit, deviation=other.deviation(effect))
        if area is None:
            return self._insufficient(metric, "no toxic comment among the labels", everything)
        return self._area(metric, area, everything)

    def area_effects(self, reviewed: Domain, ranks: Ranks) -> dict[str, Floats]:
        """Return the effect (m,) of one more toxic comment in place of each row on both areas."""
        effects = self._by_prob.effects(reviewed, ranks)
        return {} if effects is None else dict(zip(("auroc", "auprc"), effects, strict=True))

    def deviation(self, effect: Floats) -> Floats:
        """Return draws of the error of a statistic, to first order, from sampling and from labels.

        `effect` (m,) is what one more toxic comment in place of each row adds to the statistic.
        """
        generator = np.random.default_rng(self._seed)
        everything, drawn = self._everything, np.zeros(1)
        for sign in (1.0, -1.0):
            pull = np.maximum(sign * effect, 0.0)
            if not pull.any():
                continue
            most = float(pull.max())
            reach, evident = pull / most, self._toxic.evident
            total = self._sample.total(
                self._toxic.value * reach,
                everything,
                reach=reach,
                evident=None if evident is None else evident * reach,
            )
            draws = sign * most * (total.confidence() - total.value)
            drawn = convolved(drawn, draws, generator)
        if self._labels is not None:
            effect = effect * self._sample.represented
            drawn = convolved(drawn, self._deviations(self._toxic, effect), generator)
        return drawn

    def _mean(
        self,
        metric: str,
        outcome: _Outcome,
        domain: Domain,
        *,
        over: float | None = None,
        flip: bool = False,
        **at: Any,
    ) -> MetricEstimate:
        """Return the total of the outcome over a domain, divided by the mass `over`."""
        mass = domain.mass if over is None else over
        if mass <= 0:
            return self._insufficient(metric, "no comment to measure it on", domain, **at)
        if reason := self._sample.lacks(domain):
            return self._insufficient(metric, reason, domain, **at)
        if self._labels is not None and domain.mass < MINIMUM_OF_A_SHARE:
            reason = f"{domain.mass:.3g} comments of {MINIMUM_OF_A_SHARE} that fallible labels need"
            return self._insufficient(metric, reason, domain, **at)
        value, likely = self._total(outcome, domain)
        value, (low, high) = value / mass, (end / mass for end in interval(likely))
        if flip:
            value, low, high = 1 - value, 1 - high, 1 - low
        return self._ok(metric, value, low, high, domain, **at)

    def _total(self, outcome: _Outcome, domain: Domain) -> tuple[float, Floats]:
        """Return the total of an outcome over a domain, with its confidence distribution."""
        total = self._sample.total(outcome.value, domain, evident=outcome.evident)
        likely = total.confidence()
        if self._labels is not None:
            masses = self._sample.masses(domain)
            generator = np.random.default_rng(self._seed)
            likely = convolved(likely, self._deviations(outcome, masses), generator)
        return total.value, likely

    def _share(
        self, metric: str, outcome: _Outcome, domain: Domain, noun: str, **at: Any
    ) -> MetricEstimate:
        """Return the share of the outcome's total that lies in the domain."""
        outside = self._sample.without(domain)
        if reason := self._sample.lacks(domain) or self._sample.lacks(outside):
            return self._insufficient(metric, reason, self._everything, **at)
        sides = [
            Side(
                total=self._sample.total(outcome.value, side, evident=outcome.evident),
                positive=outcome.value,
                credit=np.full(outcome.value.size, credit),
                seen=outcome.value * self._sample.observed(side),
            )
            for side, credit in ((domain, 1.0), (outside, 0.0))
        ]
        deviation = None
        inside, others = (side.total.value for side in sides)
        if self._labels is not None and inside + others > 0:
            # d(A/(A+B)) = (B dA − A dB)/(A+B)²
            pull = others * self._sample.masses(domain) - inside * self._sample.masses(outside)
            pull = pull / (inside + others) ** 2
            deviation = self._deviations(outcome, pull, self._sample.represented)
        generator = np.random.default_rng(self._seed)
        estimate = mean_credit(sides, generator, deviation=deviation)
        if estimate is None:
            return self._insufficient(metric, f"no {noun} among the labels", self._everything, **at)
        return self._ok(metric, estimate[0], *estimate[1], self._everything, **at)

    def _areas(
        self,
        prefix: str,
        curves: Areas,
        positive: _Outcome,
        reviewed: Domain,
        ranks: Ranks,
        **at: Any,
    ) -> Iterator[MetricEstimate]:
        """Yield the areas under both curves."""
        domain, kept = self._everything, self._sample.without(reviewed)
        names = prefix + "auroc", prefix + "auprc"
        expected = float(positive.value.sum())
        fewest = round(min(expected, positive.value.size - expected))
        parts = (domain, kept, reviewed)
        reason = next((why for part in parts if (why := self._sample.lacks(part))), "")
        if not (reason or self._exact) and fewest < MINIMUM_OF_A_CLASS:
            reason = f"{fewest} labels of the rarer class; {MINIMUM_OF_A_CLASS} are needed"
        areas = None if reason else curves.at(reviewed, ranks)
        if areas is None:
            reason = reason or "a class is missing"
            yield from (self._insufficient(name, reason, domain, **at) for name in names)
            return
        for name, area in zip(names, areas, strict=True):
            yield self._area(name, area, domain, **at)

    def _area(self, metric: str, area: Area, domain: Domain, **at: Any) -> MetricEstimate:
        """Return an area, unless its interval is too wide."""
        value, (low, high) = area
        if high - low > WIDEST_AREA:
            reason = f"the interval is {high - low:.2f} wide; more labels are needed"
            return self._insufficient(metric, reason, domain, **at)
        return self._ok(metric, value, low, high, domain, **at)

    def _calibration_error(self) -> MetricEstimate:
        """Return the expected calibration error, biased upwards by noise if labels are few.

        It is at least the distance of mean confidence, which is known, from accuracy; this gives
        the low end. The high end is that of the sum over bins, including noise.
        """
        domain = self._everything
        reason = self._sample.lacks(domain) or ("" if domain.mass else "no comment")
        if not reason and not self._exact and self._effective(domain) < MINIMUM_FOR_CALIBRATION:
            reason = f"fewer than {MINIMUM_FOR_CALIBRATION} effective labels"
        if reason:
            return self._insufficient("ece", reason, domain)
        generator = np.random.default_rng(self._seed)
        value, gap, high = 0.0, 0.0, np.zeros(1)
        wrong = self._wrong_decision(self._sample.prob > 0.5)
        for confidence, in_bin in self._sample.bins(lambda prob: np.abs(prob - 0.5) + 0.5, _BINS):
            total, likely = self._total(wrong, in_bin)
            missed = in_bin.mass - confidence  # wrong decisions of a calibrated model
            value += 0.0 if self._sample.lacks(in_bin) else abs(total - missed)
            gap += missed
            size = max(high.size, likely.size)
            high = np.resize(high, size) + generator.permutation(
                np.resize(np.abs(likely - missed), size)
            )
        if self._exact:
            exact = value / domain.mass
            return self._ok("ece", exact, exact, exact, domain)
        low = interval(self._total(wrong, domain)[1])
        nearest = max(low[0] - gap, gap - low[1], 0.0)
        bounds = (nearest / domain.mass, interval(high)[1] / domain.mass)
        return self._ok("ece", value / domain.mass, *bounds, domain)

    def _curves(self, positive: _Outcome, score: Floats) -> Areas:
        deviations = None if self._labels is None else partial(self._deviations, positive)
        return Areas(
            self._sample,
            positive.value,
            score,
            seed=self._seed,
            deviations=deviations,
            evident=positive.evident,
        )

    def _harmless(self) -> _Outcome:
        """Return whether each comment (m,) is not toxic."""
        value = 1 - self._toxic.value
        evident = None if self._labels is None else value * self._sample.given_labels()[1]
        return _Outcome(value=value, slope=-np.ones(value.size), evident=evident)

    def _wrong_decision(self, flagged: NDArray[np.bool_]) -> _Outcome:
        """Return whether the decision on each comment (m,) is wrong."""
        toxic = self._toxic.value
        value = np.asarray(np.where(flagged, 1 - toxic, toxic), np.float64)
        evident = None
        if self._labels is not None:
            as_toxic, as_other = self._sample.given_labels()
            evident = value * np.where(flagged, as_other, as_toxic)
        return _Outcome(value=value, slope=np.where(flagged, -1.0, 1.0), evident=evident)

    def _squared_error(self) -> _Outcome:
        """Return (y − p)², which is p² + (1 − 2p) y since y² = y."""
        prob, toxic = self._sample.prob, self._toxic
        slope = 1 - 2 * prob
        value = prob**2 + slope * toxic.value
        # What does not depend on the label is as sure as what is evident.
        evident = None if toxic.evident is None else prob**2 + slope * toxic.evident
        return _Outcome(value=value, slope=slope, evident=evident)

    def _deviations(self, outcome: _Outcome, effect: Floats, over: Floats | None = None) -> Floats:
        """Return a sample of a statistic's error from uncertain labels.

        `over` (m,) are the masses whose outcome the statistic is a mean of.
        """
        assert self._labels is not None  # noqa: S101
        generator = np.random.default_rng(self._seed)
        mean_of = None
        if over is not None:
            mean_of = float(np.dot(over, outcome.value)), over * outcome.slope
        return self._labels.deviations(
            effect * outcome.slope, self._sample.weight, generator, over=mean_of
        )

    @property
    def _exact(self) -> bool:
        """Whether every comment has its true label."""
        return self._sample.complete and self._labels is None

    def _completion(self) -> MetricEstimate:
        """Return the share of the routed comments with a label: a count, not an estimate."""
        if not self._sample.routed:
            return self._insufficient("completion", "no comment was routed", self._everything)
        value = self._completed
        return self._ok("completion", value, value, value, self._everything)

    @property
    def _completed(self) -> float:
        return self._sample.label.size / self._sample.routed if self._sample.routed else 1.0

    def _effective(self, domain: Domain) -> float:
        """Return Kish's effective number of labels in the domain."""
        return effective_number(self._sample.weight * domain.part)

    def _ok(
        self, metric: str, value: float, low: float, high: float, domain: Domain, **at: Any
    ) -> MetricEstimate:
        # Rounding may carry a quotient of sums past 0 or 1.
        return MetricEstimate.from_interval(
            value, (low, high), **self._fields(metric, domain, **at)
        )

    def _insufficient(self, metric: str, reason: str, domain: Domain, **at: Any) -> MetricEstimate:
        return MetricEstimate.insufficient(reason, **self._fields(metric, domain, **at))

    def _fields(
        self,
        metric: str,
        domain: Domain,
        *,
        strategy: str | None = None,
        alpha: float | None = None,
    ) -> dict[str, Any]:
        """Return the fields of an estimate that do not depend on its value."""
        return {
            "metric": metric,
            "strategy": strategy,
            "alpha": alpha,
            "n": int((domain.part > 0).sum()),
            "effective_n": self._effective(domain),
            "completion": self._completed,
        }


def _of_a_sample(estimate: MetricEstimate, size: float) -> MetricEstimate:
    """Return the estimate with an interval at least as wide as that of a share among `size`."""
    if estimate.value is None:
        return estimate
    value, *ends = estimate.known
    low, high = mid_p(value * size, size)
    return replace(estimate, low=min(ends[0], low), high=max(ends[1], high))


def _mass_below(value: Floats, mass: Floats, bound: Floats) -> Floats:
    """Return the mass (k,) of values (m,) below each bound (k,), and half of that at it."""
    order = np.argsort(value, kind="stable")
    total = np.append(0.0, np.cumsum(mass[order]))
    left, right = (np.searchsorted(value[order], bound, side) for side in ("left", "right"))
    return np.asarray((total[left] + total[right]) / 2)


def _uncertainty(prob: Floats) -> Floats:
    return prob * (1 - prob)

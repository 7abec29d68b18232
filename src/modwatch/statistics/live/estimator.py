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
from modwatch.statistics.live.figures import ALONE, FIGURES, TOGETHER
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
class Outcome:
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
        #: The whole population, and its flagged part.
        self.everything: Domain = sample.everything()
        self.flagged: Domain = sample.flagged(threshold)
        toxic = sample.label if labels is None else labels.mean
        evident = None if labels is None else toxic * sample.given_labels()[0]
        #: That a comment is toxic, and that its decision is wrong.
        self.toxic: Outcome = Outcome(value=toxic, slope=np.ones(toxic.size), evident=evident)
        self.wrong: Outcome = self._wrong_decision(self.flagged.part > 0)
        self._by_prob = self._curves(self.toxic, sample.prob)

    def of_the_model(self) -> Iterator[MetricEstimate]:
        """Yield the estimates without a review fraction: `FIGURES` of the model, completion."""
        yield from self._figures(ALONE, None)
        sample, nothing = self._sample, self.reviewed(None)
        ranks = sample.ranks(np.asarray)
        yield from self._areas("", self._by_prob, self.toxic, nothing, ranks)
        curves = self._curves(self.wrong, _uncertainty(sample.prob))
        ranks = sample.ranks(_uncertainty)
        yield from self._areas("calibration_", curves, self.wrong, nothing, ranks)
        yield self._completion()

    def of_the_team(self, strategy: str, alpha: float, review: Review) -> Iterator[MetricEstimate]:
        """Yield `FIGURES` of model and people together, at one strategy and review fraction."""
        yield from (
            replace(made, strategy=strategy, alpha=alpha)
            for made in (
                *self._figures(TOGETHER, review),
                *self._areas("oc_", self._by_prob, self.toxic, review.domain, review.ranks),
            )
        )

    def _figures(self, group: str, review: Review | None) -> Iterator[MetricEstimate]:
        """Yield the figures of a group that are no areas."""
        reviewed, kept = self.reviewed(review), self._sample.without(self.reviewed(review))
        parts = {"everything": self.everything, "reviewed": reviewed, "unreviewed": kept}
        for figure in FIGURES.values():
            if figure.group == group and (share := figure.errors) is not None:
                over = parts[share.over].mass
                yield self.mean(figure.key, self.wrong, parts[share.of], over=over, flip=share.left)
            elif figure.group == group and figure.estimate is not None:
                yield figure.estimate(self, figure.key, review)

    def reviewed(self, review: Review | None) -> Domain:
        """Return the reviewed part of the population; None: nothing is reviewed."""
        return self._sample.without(self.everything) if review is None else review.domain

    def cost(self, metric: str, review: Review | None) -> MetricEstimate:
        """Return what the wrong decisions outside of a review cost, per comment."""
        if review is None:
            return self._insufficient(metric, "nothing is reviewed", self.everything)
        return self.mean(
            metric, self.wrong, review.at_stake, over=self.everything.mass / review.most
        )

    def positive_rate(self, domain: Domain) -> MetricEstimate:
        """Return the share of toxic comments in a part of the population.

        `effective_n` is that of the comments which the labels represent, labelled ones included.
        """
        effective = effective_number(self._sample.masses(domain))
        return replace(self.mean("positive_rate", self.toxic, domain), effective_n=effective)

    def overturn_rate(self) -> MetricEstimate:
        """Return the share of the reviewed top whose automated decision is wrong.

        It is known for the labelled comments; the interval is for the stream they are sampled from.
        """
        found = self.mean("overturn_rate", self.wrong, self._sample.reviewed_top())
        return _of_a_sample(found, found.n)

    def set_coverage(self, contains: NDArray[np.bool_], *, metric: str) -> MetricEstimate:
        """Return the share of comments whose label is in its set.

        `contains` (m, 2): whether either label is in the set of a row.
        """
        everything, missed = self.everything, 1.0 - contains
        if reason := self._too_few_for_sets():
            return self._insufficient(metric, reason, everything)
        toxic = self.toxic.value
        parts = (1 - toxic) * missed[:, 0], toxic * missed[:, 1]
        evident = None
        if self._labels is not None:
            as_toxic, as_other = self._sample.given_labels()
            evident = parts[0] * as_other + parts[1] * as_toxic
        outcome = Outcome(value=parts[0] + parts[1], slope=missed @ [-1.0, 1.0], evident=evident)
        return self.mean(metric, outcome, everything, flip=True)

    def set_coverage_of(
        self, label: int, contains: NDArray[np.bool_], *, metric: str
    ) -> MetricEstimate:
        """Return the share of comments with a label, 0 or 1, whose label is in its set.

        `contains` is as in `set_coverage`; `n` and `effective_n` count labels of that kind.
        """
        everything, having = self.everything, self.toxic if label else self._harmless()
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
            return self._insufficient("unsure_share", reason, self.everything)
        outcome = Outcome(value=unsure, slope=np.zeros(unsure.size))
        found = self.mean("unsure_share", outcome, self.everything)
        return _of_a_sample(found, min(map(self._effective_of, (self.toxic, self._harmless()))))

    def _effective_of(self, having: Outcome) -> float:
        """Return the effective number (Kish) of labels with an outcome, at least 1."""
        return max(effective_number(having.value * self._sample.represented), 1.0)

    def _too_few_for_sets(self) -> str:
        few = self._effective(self.everything) < MINIMUM_FOR_SETS
        return f"fewer than {MINIMUM_FOR_SETS} effective labels" if few else ""

    def auroc_against(self, other: "Estimator", *, metric: str) -> MetricEstimate:
        """Return the AUROC of this sample's toxic comments against the other one's harmless ones.

        The scores of all comments are known; the harmless ones are all less the toxic ones.
        """
        everything, others = self.everything, other.everything
        reason = self._sample.lacks(everything) or other._sample.lacks(others)
        fewest = round(min(self.toxic.value.sum(), (1 - other.toxic.value).sum()))
        if not reason and fewest < MINIMUM_OF_A_CLASS:
            reason = f"{fewest} labels of the rarer class; {MINIMUM_OF_A_CLASS} are needed"
        if reason:
            return self._insufficient(metric, reason, everything)
        prob, theirs = self._sample.prob, other._sample.prob
        toxic = other._sample.represented * other.toxic.value
        ranks = other._sample.ranks_of(prob)
        negatives = others.mass - float(toxic.sum())
        harmless = ranks.below + ranks.tied / 2 - _mass_below(theirs, toxic, prob)
        credit = np.clip(harmless / negatives, 0.0, 1.0)
        # One more toxic comment in place of a row is one harmless one less.
        share = self.toxic.value * self._sample.represented
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
        everything, drawn = self.everything, np.zeros(1)
        for sign in (1.0, -1.0):
            pull = np.maximum(sign * effect, 0.0)
            if not pull.any():
                continue
            most = float(pull.max())
            reach, evident = pull / most, self.toxic.evident
            total = self._sample.total(
                self.toxic.value * reach,
                everything,
                reach=reach,
                evident=None if evident is None else evident * reach,
            )
            draws = sign * most * (total.confidence() - total.value)
            drawn = convolved(drawn, draws, generator)
        if self._labels is not None:
            effect = effect * self._sample.represented
            drawn = convolved(drawn, self._deviations(self.toxic, effect), generator)
        return drawn

    def mean(
        self,
        metric: str,
        outcome: Outcome,
        domain: Domain,
        *,
        over: float | None = None,
        flip: bool = False,
    ) -> MetricEstimate:
        """Return the total of the outcome over a domain, divided by the mass `over`."""
        mass = domain.mass if over is None else over
        if mass <= 0:
            return self._insufficient(metric, "no comment to measure it on", domain)
        if reason := self._sample.lacks(domain):
            return self._insufficient(metric, reason, domain)
        if self._labels is not None and domain.mass < MINIMUM_OF_A_SHARE:
            reason = f"{domain.mass:.3g} comments of {MINIMUM_OF_A_SHARE} that fallible labels need"
            return self._insufficient(metric, reason, domain)
        value, likely = self._total(outcome, domain)
        value, (low, high) = value / mass, (end / mass for end in interval(likely))
        if flip:
            value, low, high = 1 - value, 1 - high, 1 - low
        return self._ok(metric, value, low, high, domain)

    def _total(self, outcome: Outcome, domain: Domain) -> tuple[float, Floats]:
        """Return the total of an outcome over a domain, with its confidence distribution."""
        total = self._sample.total(outcome.value, domain, evident=outcome.evident)
        likely = total.confidence()
        if self._labels is not None:
            masses = self._sample.masses(domain)
            generator = np.random.default_rng(self._seed)
            likely = convolved(likely, self._deviations(outcome, masses), generator)
        return total.value, likely

    def share(self, metric: str, outcome: Outcome, domain: Domain, noun: str) -> MetricEstimate:
        """Return the share of the outcome's total that lies in the domain."""
        outside = self._sample.without(domain)
        if reason := self._sample.lacks(domain) or self._sample.lacks(outside):
            return self._insufficient(metric, reason, self.everything)
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
            return self._insufficient(metric, f"no {noun} among the labels", self.everything)
        return self._ok(metric, estimate[0], *estimate[1], self.everything)

    def _areas(
        self,
        prefix: str,
        curves: Areas,
        positive: Outcome,
        reviewed: Domain,
        ranks: Ranks,
    ) -> Iterator[MetricEstimate]:
        """Yield the areas under both curves."""
        domain, kept = self.everything, self._sample.without(reviewed)
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
            yield from (self._insufficient(name, reason, domain) for name in names)
            return
        for name, area in zip(names, areas, strict=True):
            yield self._area(name, area, domain)

    def _area(self, metric: str, area: Area, domain: Domain) -> MetricEstimate:
        """Return an area, unless its interval is too wide."""
        value, (low, high) = area
        if high - low > WIDEST_AREA:
            reason = f"the interval is {high - low:.2f} wide; more labels are needed"
            return self._insufficient(metric, reason, domain)
        return self._ok(metric, value, low, high, domain)

    def calibration_error(self, metric: str) -> MetricEstimate:
        """Return the expected calibration error, biased upwards by noise if labels are few.

        It is at least the distance of mean confidence, which is known, from accuracy; this gives
        the low end. The high end is that of the sum over bins, including noise.
        """
        domain = self.everything
        reason = self._sample.lacks(domain) or ("" if domain.mass else "no comment")
        if not reason and not self._exact and self._effective(domain) < MINIMUM_FOR_CALIBRATION:
            reason = f"fewer than {MINIMUM_FOR_CALIBRATION} effective labels"
        if reason:
            return self._insufficient(metric, reason, domain)
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
            return self._ok(metric, exact, exact, exact, domain)
        low = interval(self._total(wrong, domain)[1])
        nearest = max(low[0] - gap, gap - low[1], 0.0)
        bounds = (nearest / domain.mass, interval(high)[1] / domain.mass)
        return self._ok(metric, value / domain.mass, *bounds, domain)

    def _curves(self, positive: Outcome, score: Floats) -> Areas:
        deviations = None if self._labels is None else partial(self._deviations, positive)
        return Areas(
            self._sample,
            positive.value,
            score,
            seed=self._seed,
            deviations=deviations,
            evident=positive.evident,
        )

    def _harmless(self) -> Outcome:
        """Return whether each comment (m,) is not toxic."""
        value = 1 - self.toxic.value
        evident = None if self._labels is None else value * self._sample.given_labels()[1]
        return Outcome(value=value, slope=-np.ones(value.size), evident=evident)

    def _wrong_decision(self, flagged: NDArray[np.bool_]) -> Outcome:
        """Return whether the decision on each comment (m,) is wrong."""
        toxic = self.toxic.value
        value = np.asarray(np.where(flagged, 1 - toxic, toxic), np.float64)
        evident = None
        if self._labels is not None:
            as_toxic, as_other = self._sample.given_labels()
            evident = value * np.where(flagged, as_other, as_toxic)
        return Outcome(value=value, slope=np.where(flagged, -1.0, 1.0), evident=evident)

    def squared_error(self) -> Outcome:
        """Return (y − p)², which is p² + (1 − 2p) y since y² = y."""
        prob, toxic = self._sample.prob, self.toxic
        slope = 1 - 2 * prob
        value = prob**2 + slope * toxic.value
        # What does not depend on the label is as sure as what is evident.
        evident = None if toxic.evident is None else prob**2 + slope * toxic.evident
        return Outcome(value=value, slope=slope, evident=evident)

    def _deviations(self, outcome: Outcome, effect: Floats, over: Floats | None = None) -> Floats:
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
            return self._insufficient("completion", "no comment was routed", self.everything)
        value = self._completed
        return self._ok("completion", value, value, value, self.everything)

    @property
    def _completed(self) -> float:
        return self._sample.label.size / self._sample.routed if self._sample.routed else 1.0

    def _effective(self, domain: Domain) -> float:
        """Return Kish's effective number of labels in the domain."""
        return effective_number(self._sample.weight * domain.part)

    def _ok(
        self, metric: str, value: float, low: float, high: float, domain: Domain
    ) -> MetricEstimate:
        # Rounding may carry a quotient of sums past 0 or 1.
        return MetricEstimate.from_interval(value, (low, high), **self._fields(metric, domain))

    def _insufficient(self, metric: str, reason: str, domain: Domain) -> MetricEstimate:
        return MetricEstimate.insufficient(reason, **self._fields(metric, domain))

    def _fields(self, metric: str, domain: Domain) -> dict[str, Any]:
        """Return the fields of an estimate that do not depend on its value."""
        return {
            "metric": metric,
            "strategy": None,
            "alpha": None,
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

"""Whether other estimators than the latent class model would do better where moderators err.

    python benchmarks/label_error_alternatives.py [--repetitions 60] [--processes 1] [--csv FILE]

The windows are those of `coverage.py`, with the same seeds: two weeks of 5,000 comments, α = 0.1,
13 % confirmations, all labels received, at prevalence 1, 5 and 20 % and error rates (FPR/FNR) of
0/0, 2/10 and 2/20 %. All methods see the same labels.

    ours                     P(toxic) of the latent class model in place of the label
    infallible               the same design if no label were wrong: no method, a reference
    first label              every first label taken as true
    majority                 the majority of the labels, or the only one, taken as true
    Dawid-Skene, EM          maximum likelihood: a prevalence each for top and slice, flagged or not
    Rogan-Gladen, one rate   FPR = FNR, from how often two labels differ (Gordon et al. 2021)
    Rogan-Gladen, two rates  of first labels, the majority of the confirmed taken as true
    difference               Σ w (first + (majority − first)/π over the confirmed)
    regression               the same about a linear prediction by first label, part and score
    PPI, PPI++               the first label is the prediction, the confirmed are the labelled set
    multiple imputation      20 draws of all true labels from our posterior, joined by Rubin's rules

Dawid & Skene 1979; Rogan & Gladen 1978; Särndal et al. 1992, chapter 9 (two-phase sampling; π is
the stored probability of a confirmation); Angelopoulos et al. 2023a (PPI), 2023b (PPI++: power
tuning), both sets taken as independent; Rubin 1987. The first five have the sampling error of our
estimates, and Dawid & Skene's rates none; multiple imputation has our standard error and Rubin's
degrees of freedom. The others have Wald's interval, of both phases: without errors they are the
same estimates as ours, so that what their coverage lacks there is Wald's part.

A field of the tables is coverage of the 95 % interval, in per cent; bias in standard errors of
ours, and in percentage points; root mean square error, and mean width, over ours. Over the
prevalences it is the lowest coverage, the largest biases and the means.

Last, retests: all confirmations come from the person who gave the first label, half of whose errors
are repeated whenever the comment returns. For comparison: the same labels without
confirmations, with bias and width in units of the former.
"""

import argparse
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from coverage import DAYS, FRACTION, POLICY, THRESHOLD, Team, comments, held
from scipy import stats
from scipy.stats import rankdata

from modwatch import statistics as metrics
from modwatch.statistics.agreement import annotator_error_rate
from modwatch.statistics.intervals import NORMAL_QUANTILE
from modwatch.statistics.label_truth import DRAWS, TrueLabels
from modwatch.statistics.live.estimator import Estimator
from modwatch.statistics.live.labelled_day import Confirmations
from modwatch.statistics.live.sample import Sample

COMMENTS, IMPUTATIONS, STEPS = 5000, 20, 500
ERRORS = ((0.0, 0.0), (0.02, 0.1), (0.02, 0.2))
COMPARED = list(product((0.01, 0.05, 0.2), ERRORS, ("independent",), (1.0,), (1.0,)))
#: A person repeats half of the errors.
RETESTED = list(product((0.05,), ERRORS[1:], ("alike",), (1.0,), (1.0,)))
BY = ["errors", "metric", "method"]
#: Methods whose standard error and width are the units of a cell.
REFERENCES = ("ours", "retests")
RATES = ("annotator_false_positive_rate", "annotator_false_negative_rate")
METRICS = ("accuracy", "prevalence", "oc_accuracy", "review_efficiency", "recall_flagged")


class Headline(Estimator):
    """The estimates that every method gives; areas, which most do not, take most of the time."""

    def figures(self, reviewed):
        """Yield name, value and ends of each."""
        everything, kept = self._everything, self._sample.without(reviewed)
        for estimate in (
            self._mean("accuracy", self._wrong, everything, flip=True),
            self._mean("prevalence", self._toxic, everything),
            self._mean("oc_accuracy", self._wrong, kept, over=everything.mass, flip=True),
            self._mean("review_efficiency", self._wrong, reviewed),
            self._share("recall_flagged", self._toxic, self._flagged, "toxic comment"),
        ):
            yield estimate.metric, estimate.value, estimate.low, estimate.high


class Window:
    """The m labelled comments of a window, and their labels."""

    def __init__(self, seed, cell):
        rng = np.random.default_rng(seed)
        prevalence, errors, kind, score, completion = cell
        self.seed = seed
        self.comments = [comments(rng, COMMENTS, prevalence, score) for _ in range(DAYS)]
        team, self.days, asked = Team(rng, errors, kind, completion), [], []
        for day in self.comments:
            self.days.append(team.review(*day))
            asked.append(team.asked[self.days[-1].rows()])
        given, toxic = zip(*(day.given(day.rows()) for day in self.days), strict=True)
        self.given, self.toxic = np.concatenate(given), np.concatenate(toxic)
        true = [y[day.rows()] for day, (_, y) in zip(self.days, self.comments, strict=True)]
        self.true = np.concatenate(true)
        self.sample = Sample(self.days)
        self.first, self.confirmed = self.sample.label, self.given > 1
        self.majority = np.where(self.confirmed, 2 * self.toxic > self.given, self.first)
        #: Probability of the confirmation.
        self.chance = np.concatenate(asked)
        self.flagged = (self.sample.prob > THRESHOLD) * 1.0
        (review,) = self.sample.reviewed(
            POLICY.strategy, [POLICY.review_fraction], threshold=THRESHOLD
        )
        self.reviewed = review.domain

    def truth(self):
        """Return the true value of each metric."""
        prob, label = (np.concatenate(part) for part in zip(*self.comments, strict=True))
        scores = (metrics.review_scores(day[0], POLICY.strategy) for day in self.comments)
        at = label, prob, -np.concatenate([rankdata(-score) for score in scores])
        values = (
            metrics.accuracy(label, prob),
            metrics.prevalence(label),
            metrics.oc_accuracy(*at, **FRACTION),
            metrics.review_efficiency(*at, **FRACTION),
            metrics.recall(label, prob),
        )
        return dict(zip(METRICS, values, strict=True))

    def estimates(self, labels=None, taken=None):
        """Return the estimates by true labels, or with these (m,) or the first `taken` as true."""
        sample = self.sample
        if taken is not None:
            sample = sample.relabelled(taken, np.ones(taken.size, int), taken)
        estimator = Headline(sample, threshold=THRESHOLD, seed=self.seed, labels=labels)
        return estimator.figures(self.reviewed)

    def targets(self):
        """Yield every metric as a mean of outcomes."""
        sample, everything = self.sample, self.sample.everything()
        size, toxic = everything.mass, 2 * self.flagged - 1
        right = {"fixed": 1 - self.flagged, "slope": toxic}
        wrong = {"fixed": self.flagged, "slope": -toxic}
        whole, kept = (sample.masses(of) for of in (everything, sample.without(self.reviewed)))
        seen = self.reviewed.mass
        yield Target(name="accuracy", mass=whole, **right, over=size)
        yield Target(name="prevalence", mass=whole, fixed=0.0, slope=1.0, over=size)
        yield Target(name="oc_accuracy", mass=kept, **right, over=size, known=seen / size)
        yield Target(
            name="review_efficiency", mass=sample.masses(self.reviewed), **wrong, over=seen
        )
        yield Target(name="recall_flagged", mass=whole, fixed=0.0, slope=self.flagged, over=None)

    def variance(self, mass, outcome, noise):
        """Return the variance of Σ mass·outcome: of phase one within post-strata, and of phase two.

        `noise` (m,) is the variance of an outcome by phase two. Pseudo-values vary by both phases
        where comments without a label are represented; elsewhere only `noise` is left.
        """
        part, weight = self.sample.post_stratum, self.sample.weight
        sums, inside = np.bincount(part, weights=mass), np.bincount(part)
        means = np.bincount(part, weights=mass * outcome) / np.where(sums > 0, sums, 1)
        left = (mass * (outcome - means[part])) ** 2 * (inside / np.maximum(inside - 1, 1))[part]
        return float(left @ (1 - 1 / weight) + mass**2 @ (noise / weight))


@dataclass(frozen=True, kw_only=True)
class Target:
    """A metric: `known` + Σ mass (fixed + slope·y)/over, and over = Σ mass·y if it is None."""

    name: str
    mass: np.ndarray
    fixed: np.ndarray | float
    slope: np.ndarray | float
    over: float | None
    known: float = 0.0

    def solved(self, total: Callable):
        """Return the value, and the target linear at it; total(fixed, slope) estimates the sum."""
        if self.over is not None:
            return self.known + total(self.fixed, self.slope) / self.over, self
        toxic = max(total(0.0, 1.0), 1e-9)
        value = total(0.0, self.slope) / toxic
        return value, replace(self, slope=self.slope - value, over=toxic)


def wald(target, value, variance):
    """Return name, value and 95 % ends of a metric; `variance` is that of its sum."""
    reach = stats.norm.ppf(0.975) * np.sqrt(variance) / target.over
    return target.name, *np.clip([value, value - reach, value + reach], 0, 1)


def weighted(mass, label, fixed, slope):
    """Return a target's sum with `label` (m,) as the true labels."""
    return float(mass @ (fixed + slope * label))


def by_pseudo_values(window, value, noise, rates=()):
    """Yield the estimates with `value` (m,) in place of the label.

    `noise` (m,) is its variance by phase two; `rates` are derivatives (m,) in estimated error
    rates, each with the variance of the rate.
    """
    for target in window.targets():
        mass = target.mass
        estimate, linear = target.solved(partial(weighted, mass, value))
        slope = np.broadcast_to(linear.slope, mass.shape)
        variance = window.variance(mass, linear.fixed + slope * value, slope**2 * noise)
        variance += sum((mass @ (slope * change)) ** 2 * spread for change, spread in rates)
        yield wald(linear, estimate, variance)


def two_phase(window, fitted):
    """The difference estimator about `fitted` (m,), by the probabilities of confirmation."""
    left = np.where(window.confirmed, window.majority - fitted, 0.0)
    noise = left**2 * (1 - window.chance) / window.chance**2
    return by_pseudo_values(window, fitted + left / window.chance, noise)


def regression(window):
    """By first label, part and score: least squares, weighted by both phases."""
    top, first = window.sample.top, window.first
    line = np.column_stack([first, top, first * top, window.sample.prob, np.ones(first.size)])
    weight = np.sqrt(window.confirmed * window.sample.weight / window.chance)
    fit = np.linalg.lstsq(line * weight[:, None], window.majority * weight, rcond=None)[0]
    return two_phase(window, line @ fit)


def one_rate(window):
    """Rogan–Gladen with the same error rate e in both directions."""
    two = window.confirmed
    second = np.where(window.given > 2, 1 - window.first, window.toxic - window.first)
    weight = (window.sample.weight / window.chance)[two]
    rate = annotator_error_rate(window.first[two], second[two], sample_weight=weight)
    if rate.value is None:
        return ()
    span = 1 - 2 * rate.value
    value = (window.first - rate.value) / span
    spread = ((rate.high - rate.low) / (2 * NORMAL_QUANTILE)) ** 2
    noise = np.full(value.size, rate.value * (1 - rate.value) / span**2)
    return by_pseudo_values(window, value, noise, [((2 * value - 1) / span, spread)])


def two_rates(window):
    """Rogan–Gladen with the rates of the first labels among the confirmed."""
    weight = np.where(window.confirmed, window.sample.weight / window.chance, 0)
    rates = []
    for truth in (0, 1):
        of = weight * (window.majority == truth)
        wrong = window.first != truth
        rate = of @ wrong / of.sum()
        rates.append((rate, ((of * (wrong - rate)) ** 2).sum() / of.sum() ** 2))
    (up, up_spread), (down, down_spread) = rates
    span = 1 - up - down
    value = (window.first - up) / span
    noise = np.clip(value * down * (1 - down) + (1 - value) * up * (1 - up), 0, None) / span**2
    changes = ((value - 1) / span, up_spread), (value / span, down_spread)
    return by_pseudo_values(window, value, noise, changes)


class TwoSets:
    """The confirmed comments, weighted, and all with a first label, taken as independent."""

    def __init__(self, window, mass):
        self.window, self.size = window, mass.sum()
        confirmed = np.where(window.confirmed, mass / window.chance, 0)
        self.share, self.all_share = confirmed / confirmed.sum(), mass / mass.sum()

    def total(self, power, fixed, slope):
        true, guess = (fixed + slope * y for y in (self.window.majority, self.window.first))
        rectifier = self.share @ (true - power * guess)
        return float(self.size * (rectifier + power * (self.all_share @ guess)))

    def spread(self, target):
        """Return deviations (m,) of true outcomes and of guesses, and the variance of all guesses.

        The deviations are those of the confirmed, as parts of their mean.
        """
        y = self.window.majority, self.window.first
        true, guess = (target.fixed + target.slope * item for item in y)
        left, right = (self.share * (value - self.share @ value) for value in (true, guess))
        return left, right, self.window.variance(self.all_share, guess, np.zeros(guess.size))

    def variance(self, target, power):
        left, right, others = self.spread(target)
        rectifier = left - power * right
        return self.size**2 * (rectifier @ rectifier + power**2 * others)

    def best_power(self, target):
        left, right, others = self.spread(target)
        whole = right @ right + others
        return float(np.clip(left @ right / whole, 0, 1)) if whole > 0 else 1.0


def prediction_powered(window, tuning=None):
    """PPI (`tuning` 1) and PPI++ (None)."""
    for target in window.targets():
        sets = TwoSets(window, target.mass)
        _, linear = target.solved(partial(sets.total, 1.0))
        power = tuning or sets.best_power(linear)
        estimate, linear = target.solved(partial(sets.total, power))
        yield wald(linear, estimate, sets.variance(linear, power))


def imputed(window, labels):
    """Draws of every true label, each taken as true; Rubin's rules."""
    rng = np.random.default_rng(window.seed)
    chosen = rng.choice(len(labels.prob), IMPUTATIONS, replace=False)
    drawn = [rng.random(labels.cell.size) < labels.prob[draw][labels.cell] for draw in chosen]
    rows = [list(window.estimates(taken=draw.astype(int))) for draw in drawn]
    for item in zip(*rows, strict=True):
        value, low, high = np.array([row[1:] for row in item], float).T
        within = (((high - low) / (2 * stats.norm.ppf(0.975))) ** 2).mean()
        between = (1 + 1 / IMPUTATIONS) * value.var(ddof=1)
        freedom = (IMPUTATIONS - 1) * (1 + within / max(between, 1e-15)) ** 2
        reach = stats.t.ppf(0.975, freedom) * np.sqrt(within + between)
        middle = value.mean()
        yield item[0][0], *np.clip([middle, middle - reach, middle + reach], 0, 1)


def maximum_likelihood(window):
    """Return the true labels by Dawid & Skene's algorithm, as if its rates were known."""
    group = (~window.sample.top).astype(int)
    # Given part and first label, confirmations hardly depend on the score.
    rows = np.column_stack([2 * group + window.flagged, window.given, window.toxic]).astype(int)
    cells, cell, count = np.unique(rows, axis=0, return_inverse=True, return_counts=True)
    part, given, toxic = cells.T
    comments = np.maximum(np.bincount(part, weights=count, minlength=4), 1)
    up, down, prevalence = 0.05, 0.1, np.full(4, 0.1)
    for _ in range(STEPS):
        if_toxic = prevalence[part] * down ** (given - toxic) * (1 - down) ** toxic
        if_other = (1 - prevalence[part]) * up**toxic * (1 - up) ** (given - toxic)
        prob = if_toxic / (if_toxic + if_other)
        toxic_comments = np.bincount(part, weights=count * prob, minlength=4)
        prevalence = np.maximum(toxic_comments / comments, 1e-9)
        true, other = count * prob, count * (1 - prob)
        down = np.clip(true @ (given - toxic) / (true @ given), 1e-6, 0.5)
        up = np.clip(other @ toxic / (other @ given), 1e-6, 0.5)
    return TrueLabels(
        cell=cell.ravel(),
        group=group,
        labelled=np.ones(group.size, bool),
        prior=np.tile(prevalence[part], (DRAWS, 1)),
        prob=np.tile(prob, (DRAWS, 1)),
        false_positive=np.full((DRAWS, 2), up),
        false_negative=np.full((DRAWS, 2), down),
    )


def methods(window):
    """Yield name and estimates of each method."""
    labels = window.sample.true_labels(seed=window.seed)
    yield "ours", window.estimates(labels)
    yield "infallible", window.estimates(taken=window.true)
    yield "first label", window.estimates()
    yield "majority", window.estimates(taken=window.majority.astype(int))
    yield "Dawid-Skene, EM", window.estimates(maximum_likelihood(window))
    yield "Rogan-Gladen, one rate", one_rate(window)
    yield "Rogan-Gladen, two rates", two_rates(window)
    yield "difference", two_phase(window, window.first)
    yield "regression", regression(window)
    yield "PPI", prediction_powered(window, tuning=1.0)
    yield "PPI++", prediction_powered(window)
    yield "multiple imputation", imputed(window, labels)


def retested(window):
    """Yield name and estimates, the error rates among them, with retests and without."""
    unconfirmed = [replace(day, confirmations=Confirmations.none()) for day in window.days]
    for name, sample in (("retests", window.sample), ("not confirmed", Sample(unconfirmed))):
        labels = sample.true_labels(seed=window.seed)
        rates = ((rate, drawn.mean(), *np.quantile(drawn, [0.025, 0.975]))
                 for rate, drawn in labels.rates())  # fmt: skip
        yield name, [*window.estimates(labels), *rates]


def measured(seed, cell):
    """Return a row per method and metric of one window."""
    window = Window(seed, cell)
    truth = window.truth() | dict(zip(RATES, cell[1], strict=True))
    at = {"prevalence": cell[0], "errors": "/".join(f"{100 * rate:g}" for rate in cell[1])}
    return [
        at | {"seed": seed, "method": method, "metric": name, "truth": truth[name]}
        | dict(zip(("value", "low", "high"), ends, strict=True))
        for method, found in (retested if cell[2] == "alike" else methods)(window)
        for name, *ends in found
    ]  # fmt: skip


def summary(frame):
    """Return a line per cell, metric and method."""
    frame = frame.dropna(subset="value").copy()
    error, inside = frame["value"] - frame["truth"], held(frame)
    frame = frame.assign(error=error, width=frame["high"] - frame["low"], held=inside)
    table = frame.groupby(["prevalence", *BY], sort=False).agg(
        figures=("held", "size"),
        coverage=("held", "mean"),
        value=("value", "mean"),
        error=("error", "mean"),
        spread=("error", "std"),
        rmse=("error", lambda error: np.sqrt((error**2).mean())),
        width=("width", "mean"),
    )
    table = table.reset_index("method")
    ours = table[table["method"].isin(REFERENCES)]
    reference = ours.reindex(table.index)
    table["bias"] = table["error"] / reference["spread"]
    table["worse"] = table["rmse"] / reference["rmse"]
    table["wider"] = table["width"] / reference["width"]
    return table.assign(points=100 * table["error"]).set_index("method", append=True)


def over_prevalences(table):
    """Return the same over the prevalences: lowest coverage, largest bias, mean width."""
    groups = table.groupby(BY, sort=False)

    def largest(values):
        return values.loc[values.abs().fillna(0).idxmax()]

    biases = {name: (name, largest) for name in ("bias", "points")}
    means = {name: (name, "mean") for name in ("worse", "wider")}
    return groups.agg(coverage=("coverage", "min"), **biases, **means)


def printed(table):
    """Print a line a method, and a field a metric."""
    fields = "{0[coverage]:4.0%} {0[bias]:+6.2f} {0[points]:+6.2f} {0[worse]:5.2f} {0[wider]:5.2f}"
    lines = table.apply(fields.format, axis=1).rename("line").reset_index()
    by = [name for name in ("prevalence", "errors", "method") if name in lines]
    at = {"columns": "metric", "values": "line", "aggfunc": "first", "sort": False}
    print(lines.pivot_table(index=by, **at).to_string(sparsify=False))


def main():
    """Print a table per cell, and one over all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=60)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--csv", type=Path, help="one row per window, method and metric")
    asked, start, tables, rows = parser.parse_args(), time.perf_counter(), [], []
    cells = [*COMPARED, *RETESTED]
    with ProcessPoolExecutor(asked.processes) as pool:
        for number, cell in enumerate(cells, start=1):
            seeds = [10_000 * number + item for item in range(asked.repetitions)]
            found = pool.map(measured, seeds, [cell] * len(seeds))
            rows.append(pd.DataFrame([row for of_window in found for row in of_window]))
            tables.append(summary(rows[-1]))
            printed(tables[-1])
            seconds = time.perf_counter() - start
            print(f"cell {number} of {len(cells)}, {seconds:.0f} s", flush=True)
            if asked.csv:
                pd.concat(rows).to_csv(asked.csv, index=False)
    printed(over_prevalences(pd.concat(tables[: len(COMPARED)])))
    print(f"{asked.repetitions} windows a cell, {time.perf_counter() - start:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())

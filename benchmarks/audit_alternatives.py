"""Whether other designs or estimators than the audit's default would need fewer labels.

    python benchmarks/audit_alternatives.py [--repetitions 1000]

The prevalence among the unflagged of the populations of `audit.py`. In each of 36 `CELLS` all
methods see the same population and know the prevalence to expect, as the default does.

- Six columns of labels: variance over the default's at as many labels, which is how many times the
  labels a method needs; median of six cells. `most` is the largest of all, `fewer` the cells with a
  tenth fewer or better, `error` the median standard error of the ratio (0: in closed form).
- `bias`: the largest, in standard errors. Where there is none it is 0.08 ± 0.01 of 1,000.
- `seen`, `blind`: mean coverage at 0 and 20 % hidden, of audits with three positives, in cells
  where half have them; `least`: the lowest mean of six cells. Strata, stages and the pilot have the
  default's interval, unequal draws and difference estimators Korn–Graubard's, PPI has Wald's.

Hansen & Hurwitz 1943; Hájek 1971; Hesterberg 1995 (defensive sampling); Särndal et al. 1992
(difference estimator); Angelopoulos et al. 2023a (PPI), 2023b (PPI++); Fisch et al. 2024 (by
stratum). These three are first compared with figures of the package ppi-python 0.2.3 (a difference
estimator is PPI with `lam` 1 − n/N); on samples of all 36 cells, 360 at random and 576 strata, it
gave the same to 10⁻¹². Its `ppi_mean_ci` heeds `alternative` only when `lam` is given: by default,
"larger" and "smaller" return the two-sided interval.
"""

import argparse
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
from scipy import special, stats

from modwatch.statistics.audit.estimates import ENOUGH_POSITIVES
from modwatch.statistics.audit.sample_design import DesignOptions, ScoreCounts, design
from modwatch.statistics.audit.share_interval import IntervalOptions, interval, korn_graubard
from modwatch.statistics.audit.stages import next_stage
from modwatch.statistics.audit.stratified import StratumCounts, combine
from modwatch.statistics.recalibration import Calibration, prior_shift

# Populations and baselines are shared with the tests.
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))
from simulated_audits import SCORES, draw_positives, pilot_audit, simulate

CELLS = tuple(product((0.001, 0.01, 0.04), SCORES, (0.0, 0.2), (1000, 3000)))
#: Repetitions that get an interval; folds of the cross-fitting.
INTERVALS, FOLDS = 100, 5


class Cell:
    """Unflagged comments in order of their score, and how many labels there are."""

    def __init__(self, number, repetitions):
        self.prevalence, score, hidden, self.labels = CELLS[number]
        self.generator, self.repetitions = np.random.default_rng(number), repetitions
        made = simulate(prevalence=self.prevalence, score=score, hidden=hidden, seed=number)
        # Rounded to a hundredth of the logit: the same designs from few distinct values.
        logit = np.round(special.logit(made.unflagged.score), 2)
        order = np.lexsort((self.generator.random(logit.size), logit))
        self.raw, self.label = special.expit(logit[order]), made.unflagged.label[order] * 1.0
        self.comments, self.truth = order.size, self.label.mean()
        # Recalibrated to the expected prevalence, as designs are.
        shift = prior_shift(self.raw, self.prevalence)
        self.chance = Calibration(intercept=shift).probability(self.raw)
        self.sample = cache(self._sample)

    def design(self, labels=None, **options):
        """Return the unflagged side of a design by the code that audits run, and its positives."""
        chosen = DesignOptions(expected_prevalence=self.prevalence, **options)
        empty, labels = ScoreCounts.from_scores(np.zeros(0)), labels or self.labels
        made = design(empty, ScoreCounts.from_scores(self.raw), labels, chosen).unflagged
        return made, np.array([int(part.sum()) for part in parts(self.label, made.population)])

    def variance(self, made, value):
        """Return the variance of the stratified mean of values (N,)."""
        spread = [part.var(ddof=1) for part in parts(value, made.population)]
        unseen = 1 / made.labels - 1 / made.population
        return (made.population / self.comments) ** 2 * unseen @ spread

    def _sample(self, bins):
        """Return the default's design with `bins` strata, and samples (R, n) by it."""
        made, _ = self.design(bins=bins)
        rows = list(zip(parts(np.arange(self.comments), made.population), made.labels, strict=True))
        item = ([self.generator.choice(of, n, replace=False) for of, n in rows]
                for _ in range(self.repetitions))  # fmt: skip
        return made, np.array([np.concatenate(row) for row in item])


def parts(value, sizes):
    """Return values (…, n) stratum by stratum."""
    return np.split(value, np.cumsum(sizes)[:-1], axis=-1)


def stratified(cell, **options):
    """Return estimates (R,), positives (R,), ends (I,) of intervals and, if known, the variance."""
    made, positives = cell.design(**options)
    drawn = made.population, positives, made.labels, cell.generator
    found = draw_positives(*drawn, repetitions=cell.repetitions)
    known = {"population": made.population, "labels": made.labels, "score": made.score}
    few = StratumCounts.from_arrays(positives=found[:INTERVALS], **known).weighted()
    share = StratumCounts.from_arrays(positives=found, **known).rate()
    return share, found.sum(-1), interval(few, IntervalOptions()), cell.variance(made, cell.label)


def unequal(cell, even, kind):
    """Draws with probability ∝ (1−λ)√(p(1−p)) + λ mean, λ being `even`, with replacement.

    `ranged` draws one in each of n ranges of the score: systematic sampling, but with a start of
    its own in each, or its variance would hang on where the few positives happen to stand.
    """
    n, spread = cell.labels, np.sqrt(cell.chance * (1 - cell.chance))
    q = ((1 - even) * spread / spread.mean() + even) / cell.comments
    start = cell.generator.random((cell.repetitions, n))
    start = (start + np.arange(n)) / n if kind == "ranged" else start
    drawn = np.minimum(np.searchsorted(np.cumsum(q), start), cell.comments - 1)
    weight, label = 1 / (q[drawn] * cell.comments), cell.label[drawn]
    value = weight * label
    share = value.mean(-1)
    if kind == "Hájek":
        share = value.sum(-1) / weight.sum(-1)
        value = weight * (label - share[:, None]) / weight.mean(-1, keepdims=True)
    exact = ((cell.label / q).sum() / cell.comments**2 - cell.truth**2) / n
    known = exact if kind == "Hansen–Hurwitz" else None
    return effective(share, value.var(-1, ddof=1) / n, label, known)


def effective(share, variance, label, exact=None):
    """Return the estimates with Korn–Graubard's interval on their own variance (R,)."""
    moments = {"rate": np.clip(share, 0, 1), "variance": variance}
    size = {"labels": np.array(label.shape[-1]), "degrees_of_freedom": label.shape[-1] - 1}
    return share, label.sum(-1), korn_graubard(SimpleNamespace(**moments, **size)), exact


def prediction_powered(y, f, population, tuning=None):
    """Return estimate and variance (R,) of PPI (`tuning` 1) or PPI++ (None); y, f (R, n)."""
    n, others = y.shape[-1], population.size - y.shape[-1]
    rest = (population.sum() - f.sum(-1)) / others
    spread = ((population**2).sum() - (f**2).sum(-1)) / others - rest**2
    if tuning is None:
        together = (y * f).mean(-1) - y.mean(-1) * f.mean(-1)
        tuning = np.clip(together / ((1 + n / others) * population.var(ddof=1)), 0, 1)
    rectified = y - np.asarray(tuning)[..., None] * f
    return tuning * rest + rectified.mean(-1), tuning**2 * spread / others + rectified.var(-1) / n


def wald(share, variance):
    return [share + z * np.sqrt(variance) for z in stats.norm.ppf([0.025, 0.975])]


def powered(cell, bins=1, tuning=None, score="chance", classic=False):
    """Prediction-powered inference in each stratum; the difference estimator if `classic`."""
    made, drawn = cell.sample(bins=bins)
    f, y, share, variance = getattr(cell, score), cell.label[drawn], 0.0, 0.0
    rows, everybody = parts(drawn, made.labels), parts(f, made.population)
    for size, row, of in zip(made.population / cell.comments, rows, everybody, strict=True):
        chosen = 1 - row.shape[-1] / of.size if classic else tuning  # f of the sample counts too
        mean, error = prediction_powered(cell.label[row], f[row], of, chosen)
        share, variance = share + size * mean, variance + size**2 * error
    if classic:
        return effective(share, variance, y, cell.variance(made, cell.label - f))
    return share, y.sum(-1), wald(share, variance), None


def fitted(cell):
    """The difference estimator by a logistic calibration of its own labels, cross-fitted."""
    made, drawn = cell.sample(bins=8)
    chance, where, count = np.unique(cell.chance, return_inverse=True, return_counts=True)
    logit, fold = special.logit(chance), np.arange(cell.labels) % FOLDS
    x, y, left = logit[where[drawn]], cell.label[drawn], np.zeros(drawn.shape)
    share, variance = np.zeros(len(x)), 0.0
    for mine in (fold == number for number in range(FOLDS)):
        a, b = calibration(x[:, ~mine], y[:, ~mine])
        left[:, mine] = y[:, mine] - special.expit(a + b * x[:, mine])
        share += special.expit(a + b * logit) @ count / cell.comments / FOLDS
    for size, part in zip(made.population / cell.comments, parts(left, made.labels), strict=True):
        share += size * part.mean(-1)
        variance += size**2 * part.var(-1, ddof=1) / part.shape[-1]
    return effective(share, variance, y)


def calibration(x, y):
    """Return intercept and slope (R, 1) of y by x (R, n), drawn to 0 and 1 as by a unit normal."""
    line = np.stack([np.ones(x.shape), x], axis=-2)  # (R, 2, n)
    start = fit = np.tile([[0.0], [1.0]], (len(x), 1, 1))
    for _ in range(6):  # Newton's method
        p = special.expit((line * fit).sum(-2))
        slope = line @ (y - p)[..., None] - (fit - start)
        fit = fit + np.linalg.solve((line * (p * (1 - p))[:, None]) @ line.mT + np.eye(2), slope)
    return fit[:, 0], fit[:, 1]


def stages(cell, first_share):
    """Two stages, combined by shares fixed beforehand."""
    made, positives = cell.design(labels=round(first_share * cell.labels))
    of, counts = partial(StratumCounts.from_arrays, score=made.score), []
    left, more = made.population - made.labels, cell.labels - int(made.labels.sum())
    for _ in range(cell.repetitions):
        seen = draw_positives(made.population, positives, made.labels, cell.generator)
        first = of(population=made.population, labels=made.labels, positives=seen)
        labels = next_stage(first, more)
        then = draw_positives(left, positives - seen, labels, cell.generator)
        both = first, of(population=left, labels=labels, positives=then)
        counts.append(combine(both, (first_share, 1 - first_share), population=made.population))
    return one_by_one(counts)


def pilot(cell):
    """The paper's pilot, pooled."""
    made, positives = cell.design(method="quantile")
    known = made.population, positives, made.score, cell.labels, cell.generator
    return one_by_one([pilot_audit(*known).weighted() for _ in range(cell.repetitions)])


def one_by_one(counts):
    share, found = np.array([(count.rate, count.positives.sum()) for count in counts]).T
    ends = np.array([interval(count, IntervalOptions()) for count in counts[:INTERVALS]]).T
    return share, found, ends, None


METHODS = {
    "default: 8 neyman strata, worst case 1.1": stratified,
    **{f"{n} strata": partial(stratified, bins=n) for n in (16, 32, 64)},
    **{f"8 {m} strata": partial(stratified, method=m)
       for m in ("quantile", "equal_width", "sqrt_mass")},
    **{f"worst case {worst}": partial(stratified, worst_case=worst)
       for worst in (1.05, 1.2, 1.5, 2.5, 1e9)},
    **{f"{kind}, λ {even}": partial(unequal, even=even, kind=kind)
       for even in (0.2, 0.4) for kind in ("Hansen–Hurwitz", "Hájek", "ranged")},
    "difference, raw score": partial(powered, bins=8, score="raw", classic=True),
    "difference, recalibrated": partial(powered, bins=8, classic=True),
    "difference, fitted": fitted, "simple random sample": partial(stratified, bins=1),
    "PPI": partial(powered, tuning=1.0), "PPI++": powered,
    "PPI++ by stratum": partial(powered, bins=8),
    **{f"two stages, {s:.0%} first": partial(stages, first_share=s) for s in (0.3, 0.5)},
    "the paper's pilot, pooled": pilot,
}  # fmt: skip


def measured(number, repetitions):
    """Return the lines of one cell."""
    cell, lines = Cell(number, repetitions), []
    _, score, hidden, _ = CELLS[number]
    for name, method in METHODS.items():
        share, found, ends, exact = method(cell)
        variance, noise = exact or share.var(), (stats.kurtosis(share) + 2) / share.size
        base = lines[0]["variance"] if lines else variance
        enough = found[: ends[0].size] >= ENOUGH_POSITIVES
        holds = ((ends[0] <= cell.truth) & (cell.truth <= ends[1]))[enough]
        lines.append({
            "method": name, "blind": hidden > 0, "group": f"{score[:5]} {hidden:.0%}",
            "variance": variance, "ratio": variance / base,
            "error": 0.0 if exact else noise**0.5 * variance / base,
            "bias": abs(share.mean() - cell.truth) / variance**0.5,
            "coverage": holds.mean() if enough.mean() >= 0.5 else np.nan,
        })  # fmt: skip
    return lines


def summary(table):
    """Return a line a method."""
    groups = table.groupby("method", sort=False)
    pivot = partial(table.pivot_table, index="method", sort=False)
    return pivot(columns="group", values="ratio", aggfunc="median").assign(
        most=groups["ratio"].max(),
        fewer=groups["ratio"].apply(lambda item: int((item <= 0.9).sum())),
        error=groups["error"].median(),
        bias=groups["bias"].max(),
        **pivot(columns="blind", values="coverage").rename(columns={False: "seen", True: "blind"}),
        least=pivot(columns="group", values="coverage").min(axis=1),
    )


def agrees():
    """Stop unless all three are what ppi-python gives for 200 of 2,000 made-up comments."""
    place, labelled = np.arange(2000), slice(3, None, 10)
    f = ((place + 0.5) / 2000) ** 4
    y = ((place * 0.61803398875) % 1 < 0.7 * f**2 + 0.02).astype(float)
    for tuning, *figures in (
        (1.0, 0.11583665717470835, 0.0722563637312473, 0.1594169506181694),
        (0.9, 0.11575299145723753, 0.07369360075448535, 0.15781238215998972),
        (None, 0.11543105262781339, 0.07607000111953358, 0.1547921041360932),
    ):  # `lam` (0.9 is 1 − n/N), estimate and 95 % ends
        share, variance = prediction_powered(y[labelled], f[labelled], f, tuning)
        np.testing.assert_allclose([share, *wald(share, variance)], figures, rtol=1e-12)
    print("PPI, PPI++ and the difference estimator agree with ppi-python 0.2.3.")


def main() -> int:
    """Print a line a method."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=1000)
    asked, started = parser.parse_args(), time.perf_counter()
    agrees()
    with ProcessPoolExecutor() as pool:
        lines = pool.map(partial(measured, repetitions=asked.repetitions), range(len(CELLS)))
        table = pd.DataFrame([line for of_cell in lines for line in of_cell])
    print(summary(table).round(2).to_string(), f"{time.perf_counter() - started:.0f} s", sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

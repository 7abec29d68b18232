"""Populations of comments, scores and people's errors to test estimates on.

They were written without knowledge of the estimator; none of the scores is calibrated. What a
second person repeats of a first one's errors is within what the estimates suppose by default, 20 %
of the false positives and 30 % of the misses, but for `step of misses` (40 %) and `copied by all`.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import expit, logit, ndtr, stdtrit

#: First days of a campaign and of the new insult; days from the first of the window are ≥ 0.
CAMPAIGN, INSULT, PLATFORM = 7, 4, 0
#: Score quantiles of ordinary comments between which the comments of a campaign lie.
BANDS = {"campaign": (0.80, 0.82), "campaign in the top": (0.92, 0.94)}
#: Campaign over ordinary toxic comments; toxic comments with the insult; comments of the platform,
#: and the odds there; odds on the last day over those 60 days before it.
EXTRA_TOXIC, UNKNOWN, NEW, ODDS, DRIFT = 1 / 3, 0.25, 0.15, 3.0, 1.5
#: Correlation of the score's latent and the hidden severity.
VIEW = 0.7
#: Per kind: score, errors of people; misses rise from 8 to 50 %, in the mild form from 14 to 32 %.
MADE = {
    "plain": ("over-confident", "plain"),
    "hard": ("saturated", "hard"),
    "misses at low scores": ("beta", "low"),
    "misses at low scores, mild": ("under-confident", "mild"),
    "misses by severity": ("over-confident", "severity"),
    "errors on both sides": ("heavy tails", "both"),
    "step of misses": ("mixture", "step"),
    "campaign": ("under-confident", "plain"),
    "campaign in the top": ("under-confident", "plain"),
    "new insult": ("beta", "plain"),
    "new platform": ("saturated", "plain"),
    "drift": ("shifted", "plain"),
    "copied by all": ("heavy tails", "plain"),
    "copied by one": ("mixture", "plain"),
}
KINDS = tuple(MADE)


def scores(rng, shape, z, toxic, prior):
    """Return scores (n,) from standard normal latents `z`; `prior` is the usual log odds."""

    def odds(distance, x=z, spread=1.0):
        return prior + distance * np.where(toxic, distance + spread * x, x) - distance**2 / 2

    if shape == "over-confident":
        prob = expit(2 * (odds(2.1) + 0.7))
    elif shape == "under-confident":
        prob = expit(0.6 * odds(2.1))
    elif shape == "shifted":  # trained where toxic comments are more frequent
        prob = expit(odds(2.0) + 1.5)
    elif shape == "heavy tails":
        prob = expit(1.2 * odds(2.0, stdtrit(4, ndtr(z)), 0.9) + 0.5)
    elif shape == "saturated":  # three decimals, many 0.001 and 0.999, whatever the prevalence
        steep = expit(3.5 * (np.where(toxic, 2.4 + 1.3 * z, z) - 2))
        prob = np.clip(np.round(steep, 3), 0.001, 0.999)
    elif shape == "mixture":  # three comments of ten are in a language that the model knows badly
        prob = expit(np.where(rng.random(z.size) < 0.3, odds(1.1) - 1, 1.4 * odds(2.4)))
    else:  # Kumaraswamy's distribution, which is close to beta's; whatever the prevalence
        a, b = np.where(toxic, 1.0, 0.5), np.where(toxic, 1.9, 5.0)
        prob = (1 - ndtr(-z) ** (1 / b)) ** (1 / a)
    return np.clip(prob, 1e-6, 1 - 1e-6)


def rank(known, prob):
    """Return the quantiles (n,) of scores among sorted ones; ties count half."""
    return (np.searchsorted(known, prob) + np.searchsorted(known, prob, "right")) / 2 / known.size


@lru_cache(maxsize=64)
def reference(shape, prevalence, size=200_000):
    """Return sorted scores of comments that are not toxic, of toxic, and of ordinary ones."""
    rng = np.random.default_rng(20)
    parts = np.zeros(size, bool), np.ones(size, bool), rng.random(size) < prevalence
    z = rng.standard_normal((3, size))
    return [np.sort(scores(rng, shape, z[i], parts[i], logit(prevalence))) for i in range(3)]


def half_of_some(rng, size, mean, again):
    """Return error rates: 1/2 on a few ambiguous comments, one low rate on all others.

    The mean is `mean`, and a second person errs with probability `again` where the first did.
    """
    low = mean - mean * (again - mean) / (0.5 - mean)
    return np.where(rng.random(size) < (mean - low) / (0.5 - low), 0.5, low)


@dataclass(frozen=True)
class Population:
    """A stream of comments of one of `KINDS`, with its usual share of toxic comments."""

    kind: str
    prevalence: float

    @property
    def copying(self):
        """Who copies the first label: `all`, `one`, or nobody (empty)."""
        return self.kind.removeprefix("copied by ") if self.kind.startswith("copied by ") else ""

    def band(self):
        """Return the lowest and highest score of the campaign."""
        return np.quantile(reference(MADE[self.kind][0], self.prevalence)[2], BANDS[self.kind])

    def day(self, rng, number, size=3000):
        """Return scores (n,), true labels (n,), and P(one person errs) if not toxic, if toxic.

        `number` counts from the first day of the window. A campaign takes the place of ordinary
        comments. Odds move by the share of toxic comments: at each score by the same factor.
        """
        shape = MADE[self.kind][0]
        odds = np.full(size, self.prevalence / (1 - self.prevalence))
        if self.kind == "drift":  # usual in the middle of the window
            odds *= DRIFT ** ((number - 6.5) / 59)
        if self.kind == "new platform" and number >= PLATFORM:
            odds *= np.where(rng.random(size) < NEW, ODDS, 1)
        toxic = rng.random(size) < odds / (1 + odds)
        severity = rng.standard_normal(size)
        z = VIEW * severity + np.sqrt(1 - VIEW**2) * rng.standard_normal(size)
        unknown = toxic & (rng.random(size) < UNKNOWN)
        seen = toxic & ~(unknown & (self.kind == "new insult" and number >= INSULT))
        prob = scores(rng, shape, np.where(seen == toxic, z, rng.standard_normal(size)), seen,
                      logit(self.prevalence))  # fmt: skip
        if self.kind in BANDS and number >= CAMPAIGN:
            extra = EXTRA_TOXIC * self.prevalence
            member = rng.random(size) < extra / (1 + extra)
            prob[member], toxic[member] = rng.uniform(*self.band(), member.sum()), True
        return prob, toxic.astype(int), self.errors(rng, prob, severity)

    def errors(self, rng, prob, severity):
        """Return the error rates (n, 2) of one person on each comment."""
        shape, errors = MADE[self.kind]
        others, toxic, _ = reference(shape, self.prevalence)
        if errors == "hard":
            false = half_of_some(rng, prob.size, 0.02, 0.18)
            return np.stack([false, half_of_some(rng, prob.size, 0.2, 0.29)], 1)
        found = errors_by_score(errors, others, toxic, prob)
        if errors == "severity":
            found[:, 1] = 0.08 + 0.42 * expit(-2.5 * (severity + 0.65))
        return found


def errors_by_score(kind, others, toxic, prob):
    """Return the error rates (n, 2) of one person on comments with scores (n,).

    `others` and `toxic` are the sorted scores of comments that are not toxic, and that are.
    """
    false, miss, below = np.full(prob.size, 0.02), np.full(prob.size, 0.2), 1 - rank(toxic, prob)
    if kind in ("low", "both"):
        miss = 0.08 + 0.42 * below**2
    elif kind == "mild":
        miss = 0.14 + 0.18 * below
    elif kind == "step":
        miss = np.where(below > 2 / 3, 0.5, 0.08)
    if kind == "both":
        false = 0.005 + 0.145 * rank(others, prob) ** 8
    return np.stack([false, miss], 1)


def labels(rng, label, error, people=3, copying=""):
    """Return the labels (n, `people`) of people who err independently with rates `error` (n, 2).

    With `copying`, second labels are the first with probability one half: by whomever (`all`), or
    where one person of five labels, the others never copying (`one`).
    """
    rate = np.where(label == 1, error[:, 1], error[:, 0])[:, None]
    found = label[:, None] ^ (rng.random((label.size, people)) < rate)
    if copying:
        copied = rng.random(label.size) < {"all": 1 / 2, "one": 1 / 2 / 5}[copying]
        found[copied, 1] = found[copied, 0]
    return found.astype(int)

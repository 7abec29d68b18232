"""How far labels agree: among people, with a known answer, with what the same person said before.

Labels are numbers that stand for categories, 0 and 1 for most of us. Pairs are taken to be
independent draws; where many are of one person, the interval is about that person's comments, not
about other people. Agreement is no truth: two people whom a guideline misleads agree perfectly.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from modwatch.errors import MetricInputError
from modwatch.metrics import inputs
from modwatch.metrics.inputs import Floats
from modwatch.metrics.intervals import LEVEL, interval, mid_p
from modwatch.metrics.moderator_error import MINIMUM_PAIRS

#: Pairs that nobody saw, spread over all cells of a table, so that none has variance 0.
_ADDED_PAIRS = 2.0

_Z = float(special.ndtri((1 + LEVEL) / 2))


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """One figure of agreement. Value and interval are None when `status` is insufficient."""

    value: float | None
    #: 95 % interval, around the value.
    low: float | None
    high: float | None
    #: Pairs of labels; for α comments with at least two.
    n: int
    #: ok | insufficient
    status: str
    #: Why it is insufficient; empty when ok.
    reason: str


def observed_agreement(
    first: ArrayLike, second: ArrayLike, *, minimum: int = MINIMUM_PAIRS
) -> Agreement:
    """Return the share of n pairs of labels that are the same, in [0, 1].

    Interval: mid-P Clopper–Pearson. Insufficient with fewer than `minimum` pairs. Raises
    `MetricInputError` for labels that are no numbers, or not as many of one as of the other.

    >>> found = observed_agreement([1, 0, 0, 0], [1, 1, 0, 0], minimum=1)
    >>> found.value, found.n
    (0.75, 4)
    """
    one, other = _pairs(first, second)
    return _share(int((one == other).sum()), one.size, minimum)


def gold_accuracy(label: ArrayLike, gold: ArrayLike, *, minimum: int = MINIMUM_PAIRS) -> Agreement:
    """Return the share of n answers that are the known one, in [0, 1]. As `observed_agreement`.

    1 − accuracy is the error rate itself; no equation between two people is needed.

    >>> gold_accuracy([1, 1], [1, 0]).reason
    '2 pairs of labels; 30 are needed'
    """
    return observed_agreement(label, gold, minimum=minimum)


def retest_consistency(
    first: ArrayLike, again: ArrayLike, *, minimum: int = MINIMUM_PAIRS
) -> Agreement:
    """Return the share of n comments that people label as before, in [0, 1].

    As `observed_agreement`.

    >>> retest_consistency([1, 0], [1, 0], minimum=2).value
    1.0
    """
    return observed_agreement(first, again, minimum=minimum)


def retest_disagreement(
    first: ArrayLike, again: ArrayLike, *, minimum: int = MINIMUM_PAIRS
) -> Agreement:
    """Return the share r of n comments that people label otherwise than before, in [0, 1].

    With one flip rate for all labels r = 2p(1−p) (Gordon et al. 2021, Eq. 3). r = 1 − consistency,
    interval and all.

    >>> retest_disagreement([1, 0], [1, 1], minimum=2).value
    0.5
    """
    one, other = _pairs(first, again)
    return _share(int((one != other).sum()), one.size, minimum)


def cohen_kappa(first: ArrayLike, second: ArrayLike, *, minimum: int = MINIMUM_PAIRS) -> Agreement:
    """Return Cohen's κ of n pairs: agreement beyond what the two sides' label shares make likely.

    κ = (p_o − p_e)/(1 − p_e), in [−1, 1] (Cohen 1960): 1 is perfect, 0 is chance. Interval: large
    sample variance (Fleiss, Cohen & Everitt 1969) of the table with two pairs more, spread evenly
    over its cells. Without those it has no width when all labels agree, and covers 13 % of the time
    at n = 30 where 5 % are toxic and people err at 0.2 %; with them 93 % or more throughout.
    Insufficient with fewer than `minimum` pairs, and when all labels are the same: chance alone
    would make them agree. Raises as `observed_agreement`.

    >>> cohen_kappa([1, 1, 0, 0], [1, 0, 0, 0], minimum=1).value
    0.5
    >>> cohen_kappa([0, 0], [0, 0], minimum=1).reason
    'every label is the same'
    """
    one, other = _pairs(first, second)
    if one.size < max(minimum, 1):
        return _too_few(one.size, minimum, "pairs of labels")
    categories, codes = np.unique(np.concatenate([one, other]), return_inverse=True)
    size = categories.size
    if size == 1:
        return _insufficient("every label is the same", one.size)
    cells = codes[: one.size] * size + codes[one.size :]
    table = np.bincount(cells, minlength=size**2).reshape(size, size).astype(np.float64)
    value = _kappa(table)[0]
    center, error = _kappa(table + _ADDED_PAIRS / size**2)
    return _ok(value, center - _Z * error, center + _Z * error, one.size, floor=-1.0)


def krippendorff_alpha(
    unit: ArrayLike,
    label: ArrayLike,
    *,
    rng: np.random.Generator,
    minimum: int = MINIMUM_PAIRS,
    resamples: int = 1000,
) -> Agreement:
    """Return Krippendorff's α for nominal labels, one row a label: any number of them a unit.

    `unit` (m,) numbers say which comment each of `label` (m,) is of; who gave it plays no part, and
    units of one label do not count. α = 1 − D_o/D_e (Krippendorff 2011): 1 is perfect, 0 is chance,
    below it labels differ systematically. Interval: bootstrap over units, drawn with `rng`; for the
    low end from one unit more, whose labels differ, and for the high end from one more that agrees
    on the rarest label. So it has width even when nothing differed. Insufficient with fewer than
    `minimum` units of two labels, and when all labels are the same. Raises `MetricInputError` for
    what is no number, and columns of different lengths.

    >>> found = krippendorff_alpha([1, 1, 2, 2, 3, 3, 4], [1, 1, 0, 0, 1, 0, 0], minimum=1,
    ...                            rng=np.random.default_rng(0))
    >>> round(found.value, 3), found.n
    (0.444, 3)
    """
    if resamples < 1:
        raise MetricInputError(f"resamples is {resamples}; it must be 1 or more")
    counts = _label_counts(inputs.column("unit", unit), inputs.column("label", label))
    n = len(counts)
    if n < max(minimum, 1):
        return _too_few(n, minimum, "comments of two labels")
    total = counts.sum(axis=0)
    if (total > 0).sum() < 2:
        return _insufficient("every label is the same", n)
    profiles, times = np.unique(counts[:, total > 0], axis=0, return_counts=True)
    value = float(_alphas(times[None, :].astype(np.float64), profiles)[0])
    low, high = _alpha_interval(profiles, times, rng, resamples)
    return _ok(value, low, high, n, floor=-1.0)


def _pairs(first: ArrayLike, second: ArrayLike) -> tuple[Floats, Floats]:
    one, other = inputs.column("first", first), inputs.column("second", second)
    inputs.same_length(first=one, second=other)
    return one, other


def _share(events: int, n: int, minimum: int) -> Agreement:
    if n < max(minimum, 1):
        return _too_few(n, minimum, "pairs of labels")
    low, high = mid_p(events, n)
    return _ok(events / n, low, high, n, floor=0.0)


def _kappa(table: Floats) -> tuple[float, float]:
    """Return κ of a table (K, K) of pairs, and its standard error (Fleiss et al. 1969, Eq. 13)."""
    n = table.sum()
    shares = table / n  # (K, K)
    rows, columns = shares.sum(axis=1), shares.sum(axis=0)
    observed, expected = float(np.trace(shares)), float(rows @ columns)
    kappa = (observed - expected) / (1 - expected)
    same = np.diag(shares) @ (1 - (rows + columns) * (1 - kappa)) ** 2
    other = shares * (columns[:, None] + rows[None, :]) ** 2
    differ = (1 - kappa) ** 2 * (other.sum() - np.trace(other))
    spread = same + differ - (kappa - expected * (1 - kappa)) ** 2
    return kappa, float(np.sqrt(max(spread, 0.0) / n) / (1 - expected))


def _label_counts(unit: Floats, label: Floats) -> Floats:
    """Return how often each label (columns) was given to each unit of two labels or more."""
    inputs.same_length(unit=unit, label=label)
    units, which = np.unique(unit, return_inverse=True)
    labels, code = np.unique(label, return_inverse=True)
    shape = (units.size, labels.size)
    counts = np.bincount(which * labels.size + code, minlength=shape[0] * shape[1]).reshape(shape)
    return np.asarray(counts[counts.sum(axis=1) >= 2], dtype=np.float64)


def _alphas(times: Floats, profiles: Floats) -> Floats:
    """Return α (R,) of R samples that hold each profile (P, K) of labels so many times (R, P).

    A sample of one label only says as little as chance: 0.
    """
    size = profiles.sum(axis=1)
    differing = (size**2 - (profiles**2).sum(axis=1)) / (size - 1)  # (P,) n·D_o of each profile
    labels = times @ profiles  # (R, K)
    n = labels.sum(axis=1)
    expected = n**2 - (labels**2).sum(axis=1)
    alphas = np.zeros(len(times))
    np.divide((n - 1) * (times @ differing), expected, out=alphas, where=expected > 0)
    return np.where(expected > 0, 1 - alphas, 0.0)


def _alpha_interval(
    profiles: Floats, times: NDArray[np.integer], rng: np.random.Generator, resamples: int
) -> tuple[float, float]:
    """Return the ends of the interval: each has its own sample, with one unit more."""
    rarest_first = np.argsort(times @ profiles, kind="stable")
    differ, agree = np.zeros((2, profiles.shape[1]))
    differ[rarest_first[-2:]], agree[rarest_first[0]] = 1, 2
    shares = np.append(times, 1) / (times.sum() + 1)
    ends = []
    for more in (differ, agree):
        drawn = rng.multinomial(times.sum() + 1, shares, size=resamples).astype(np.float64)
        ends.append(interval(_alphas(drawn, np.vstack([profiles, more]))))
    return ends[0][0], ends[1][1]


def _ok(value: float, low: float, high: float, n: int, *, floor: float) -> Agreement:
    return Agreement(
        value=float(value), low=min(max(float(low), floor), float(value)),
        high=max(min(float(high), 1.0), float(value)), n=n, status="ok", reason="",
    )  # fmt: skip


def _too_few(n: int, minimum: int, what: str) -> Agreement:
    return _insufficient(f"{n} {what}; {max(minimum, 1)} are needed", n)


def _insufficient(reason: str, n: int) -> Agreement:
    return Agreement(value=None, low=None, high=None, n=n, status="insufficient", reason=reason)

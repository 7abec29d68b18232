"""Two models on the same labelled comments: differences with intervals, and what they mean."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from modwatch.common.errors import MetricInputError
from modwatch.statistics import arguments
from modwatch.statistics.arguments import Floats
from modwatch.statistics.collaboration.collaborative import oc_auroc
from modwatch.statistics.collaboration.model_metrics import accuracy, auprc, calibration_auprc
from modwatch.statistics.collaboration.review_strategies import Columns, available, review_scores
from modwatch.statistics.decisions import is_flagged

Verdict = Literal["better", "not worse", "worse", "unclear"]

#: Comments of a class that a group must have for its error rate to be compared.
LEAST_OF_A_GROUP = 50

COLUMNS = ("metric", "champion", "challenger", "difference", "low", "high", "verdict")


@dataclass(frozen=True, kw_only=True)
class ScoredByModel:
    """The scores and decisions of a model for n comments."""

    #: (n,) in [0, 1].
    prob: ArrayLike
    #: The model flags prob > threshold.
    threshold: float
    #: (n,) further columns that review scores need, as far as the model has them.
    columns: Columns = field(default_factory=dict)


#: Name of a metric, and its value for n weights; None where it is not defined.
_Metric = tuple[str, Callable[[Floats], float | None]]


def compare_models(
    y_true: ArrayLike,
    champion: ScoredByModel,
    challenger: ScoredByModel,
    *,
    review_fraction: float,
    strategy: str = "uncertainty",
    groups: Sequence[Collection[str]] | None = None,
    margin: float = 0.01,
    draws: int = 500,
    seed: int = 0,
) -> pd.DataFrame:
    """Return one row per metric, with the difference and its 95 % interval by paired bootstrap.

    Average precision, accuracy, Calibration AUPRC, OC-AUROC at the review fraction, and of the
    groups the largest distance of a false-positive rate, and of a false-negative rate, from that of
    all comments (`…_gap`). A positive difference is in favour of the challenger, of gaps too.

    `verdict` is `better` if the interval is above 0; `not worse` if it is above −margin
    (non-inferiority); `worse` if it is below 0 and reaches beyond −margin; `unclear` otherwise:
    there are too few comments. Chance of Calibration AUPRC is the error rate, so that a model with
    fewer errors has a lower one: it is `unclear` in place of `worse` where accuracy is higher.

    Args:
        y_true: (n,) labels 0 or 1.
        champion, challenger: their scores and decisions for the same comments.
        review_fraction: the deployed α in (0, 1].
        strategy: the deployed review strategy.
        groups: identities that each comment mentions; None: no groups. Groups with fewer than 50
            comments of a class are left out.
        margin: largest difference that does not matter, at least 0.
        draws: bootstrap samples.
        seed: of the bootstrap.

    Raises:
        MetricInputError: arguments do not fit.

    >>> rng = np.random.default_rng(0)
    >>> y = (rng.random(2_000) < 0.2).astype(int)
    >>> good, bad = (np.clip(0.3 * y + s * rng.random(2_000), 0, 1) for s in (0.4, 0.9))
    >>> found = compare_models(
    ...     y, ScoredByModel(prob=bad, threshold=0.5), ScoredByModel(prob=good, threshold=0.4),
    ...     review_fraction=0.1, draws=50)
    >>> found.loc[found["metric"] == "average_precision", "verdict"].item()
    'better'
    """
    if margin < 0 or draws < 1:
        raise MetricInputError(
            f"margin must be at least 0 and draws at least 1, got {margin} and {draws}"
        )
    fraction = arguments.fraction("review_fraction", review_fraction)
    metrics = [
        list(_metrics(y_true, model, fraction, strategy, groups))
        for model in (champion, challenger)
    ]
    n = len(np.asarray(y_true))
    rng = np.random.default_rng(seed)
    weights = [rng.multinomial(n, np.full(n, 1 / n)).astype(np.float64) for _ in range(draws)]
    rows = []
    for (name, old), (_, new) in zip(*metrics, strict=True):
        before, after = old(np.ones(n)), new(np.ones(n))
        if before is None or after is None:
            continue
        sign = -1.0 if name.endswith("_gap") else 1.0
        pairs = [(old(weight), new(weight)) for weight in weights]
        gains = [sign * (b - a) for a, b in pairs if a is not None and b is not None]
        low, high = np.quantile(gains, [0.025, 0.975]) if gains else (np.nan, np.nan)
        row = (name, before, after, sign * (after - before), float(low), float(high))
        rows.append((*row, _verdict(float(low), float(high), margin)))
    found = pd.DataFrame(rows, columns=list(COLUMNS)).set_index("metric", drop=False)
    fewer_errors = found["difference"].get("accuracy", 0.0) > 0
    if fewer_errors and found["verdict"].get("calibration_auprc") == "worse":
        found.loc["calibration_auprc", "verdict"] = "unclear"
    return found.reset_index(drop=True)


def _verdict(low: float, high: float, margin: float) -> Verdict:
    if low > 0:
        return "better"
    if low >= -margin:
        return "not worse"
    return "worse" if high < 0 else "unclear"


def _metrics(
    y_true: ArrayLike,
    model: ScoredByModel,
    fraction: float,
    strategy: str,
    groups: Sequence[Collection[str]] | None,
) -> Iterator[_Metric]:
    """Yield the metrics of one model."""
    y, p, _ = arguments.rows(y_true, model.prob, None, None)
    by_strategy = partial(review_scores, p, strategy, threshold=model.threshold)
    score = None
    if strategy in available([*model.columns]):
        score = by_strategy(columns=model.columns)
    yield "average_precision", lambda w: auprc(y, p, sample_weight=w, interpolation="step")
    yield "accuracy", lambda w: accuracy(y, p, sample_weight=w, threshold=model.threshold)
    yield (
        "calibration_auprc",
        lambda w: calibration_auprc(y, p, sample_weight=w, threshold=model.threshold),
    )
    yield (
        "oc_auroc",
        lambda w: (
            None
            if score is None
            else oc_auroc(y, p, score, review_fraction=fraction, sample_weight=w)
        ),
    )
    if groups is None:
        return
    if len(groups) != len(y):
        raise MetricInputError(f"got groups of {len(groups)} comments for {len(y)} labels")
    wrong = is_flagged(p, model.threshold) != (y == 1)
    for label, name in ((0, "false_positive_rate_gap"), (1, "false_negative_rate_gap")):
        of_class = y == label
        members = _members(groups, of_class)
        if members:
            yield name, _gap(wrong, of_class, members)


def _members(groups: Sequence[Collection[str]], of_class: NDArray[np.bool_]) -> list[Floats]:
    """Return for each group that is large enough which comments of the class mention it."""
    # A missing set is as much of an error as a missing name in one.
    sets = [[mentioned] if pd.api.types.is_scalar(mentioned) else mentioned for mentioned in groups]
    names = sorted({*arguments.names("groups", chain.from_iterable(sets))})
    found = [np.array([name in mentioned for mentioned in groups]) & of_class for name in names]
    return [inside.astype(np.float64) for inside in found if inside.sum() >= LEAST_OF_A_GROUP]


def _gap(
    wrong: NDArray[np.bool_], of_class: NDArray[np.bool_], members: Sequence[Floats]
) -> Callable[[Floats], float | None]:
    """Return the largest distance of a group's error rate from that of all, by weight."""

    def rate(weight: Floats) -> float:
        total = float(weight.sum())
        return float(weight @ wrong) / total if total else float("nan")

    def gap(weight: Floats) -> float | None:
        overall = rate(weight * of_class)
        found = [abs(rate(weight * member) - overall) for member in members]
        known = [gap for gap in found if np.isfinite(gap)]
        return max(known) if known else None

    return gap

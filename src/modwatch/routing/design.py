"""The routing policy, and the design of a day: the top by score, a random slice of the rest.

The slice is a stratified simple random sample, so every comment of the day has a known inclusion
probability above 0, and the metrics of the day can be estimated without bias (`measure_days`).
"""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from hashlib import sha256

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from modwatch.common.errors import DesignError
from modwatch.statistics.arguments import Floats, Ints
from modwatch.statistics.collaboration.ranking import slots
from modwatch.statistics.collaboration.review_strategies import all_review_scores, review_scores
from modwatch.statistics.decisions import is_flagged
from modwatch.statistics.label_truth import SHARED
from modwatch.statistics.sampling import allocate

#: Fields that choose among the routed comments, and not which are routed; and what weighs errors.
_COSTS = ("false_negative_cost", "false_positive_cost", "platform_costs", "cost_by_views")
_ON_TOP = ("confirmation_share", "follow_up_share")
_SHARED = ("shared_false_positive", "shared_false_negative")


@dataclass(frozen=True, kw_only=True)
class RoutingPolicy:
    """How many comments of a day are reviewed, and how they are chosen.

    >>> RoutingPolicy(review_fraction=0.1).slice_share
    0.1
    """

    #: α in (0, 1]: ⌊αn⌋ of the day's n comments are reviewed.
    review_fraction: float
    #: ρ in [0, 1): share of the capacity for the random slice.
    slice_share: float = 0.1
    #: Review strategy of the top, of `all_review_scores`.
    strategy: str = "uncertainty"
    #: Cost of a toxic comment that is not flagged, and of another one that is: ≥ 0, in one unit.
    #: None, both: those for which the model's threshold is the best one.
    false_negative_cost: float | None = None
    false_positive_cost: float | None = None
    #: Factor on both costs by platform, ≥ 0; 1 for others.
    platform_costs: Mapping[str, float] = field(default_factory=dict)
    #: Whether a comment's views, over the mean of its day, are a factor on both costs.
    cost_by_views: bool = False
    #: Maximum number of strata outside the top; at least 1.
    strata: int = 5
    #: Minimum number of comments drawn from a stratum that has as many; at least 1.
    minimum: int = 2
    #: Expected number of confirmations over that of the routed comments, in [0, 1]; on top of α.
    confirmation_share: float = 0.13
    #: Follow-ups over the routed comments without a label when the review of a day is over, in
    #: [0, 1].
    follow_up_share: float = 0.2
    #: Largest probability, in [0, 1), that a second person makes an error of a first one, which the
    #: intervals of all figures allow for.
    shared_false_positive: float = SHARED[0]
    shared_false_negative: float = SHARED[1]

    def __post_init__(self) -> None:
        _reject(
            not 0 < self.review_fraction <= 1, "review_fraction", self.review_fraction, "(0, 1]"
        )
        known = tuple(all_review_scores())
        _reject(self.strategy not in known, "strategy", self.strategy, str(known))
        _reject(self.strata < 1, "strata", self.strata, "[1, ∞)")
        _reject(self.minimum < 1, "minimum", self.minimum, "[1, ∞)")
        given = {self.false_negative_cost, self.false_positive_cost}
        costs = [cost for cost in (*given, *self.platform_costs.values()) if cost is not None]
        wrong = any(not 0 <= cost < math.inf for cost in costs) or given == {0.0}
        _reject(wrong, "costs", costs, "[0, ∞), and one cost above 0")
        if (self.false_negative_cost is None) != (self.false_positive_cost is None):
            raise DesignError("set false_negative_cost and false_positive_cost both, or neither")
        for name in _ON_TOP:
            share = getattr(self, name)
            _reject(not 0 <= share <= 1, name, share, "[0, 1]")
        for name in ("slice_share", *_SHARED):
            share = getattr(self, name)
            _reject(not 0 <= share < 1, name, share, "[0, 1)")

    @property
    def digest(self) -> str:
        """Hash of the policy, part of the random keys.

        Changes with every value except costs, and the shares of confirmations, of follow-ups and of
        shared errors, which can be changed without other keys.

        >>> policy = RoutingPolicy(review_fraction=0.1)
        >>> policy.digest == RoutingPolicy(review_fraction=0.1).digest
        True
        """
        apart = (*_COSTS, *_ON_TOP, *_SHARED)
        values = {name: value for name, value in asdict(self).items() if name not in apart}
        return sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def _reject(wrong: bool, name: str, value: object, allowed: str) -> None:
    """Raise DesignError if `wrong`."""
    if wrong:
        raise DesignError(f"{name} of the routing policy must be in {allowed}, got {value!r}")


#: Part of the slice that is allocated proportionally to the strata, regardless of the scores. It
#: bounds the weight of a comment at twice the average if the model is confident and wrong.
PROPORTIONAL_SHARE = 0.5


@dataclass(frozen=True, kw_only=True)
class Routing:
    """The r routed comments of a day, in the order of the queue.

    Slice comments have random ranks, so the rank reveals nothing to a moderator, and an unfinished
    day has finished the same part of top and slice.
    """

    #: (r,) positions in the arguments of `design` was given.
    row: Ints
    #: (r,) the strategy's name for the top, `random_slice` for the slice.
    reason: NDArray[np.object_]
    #: (r,) stratum of each; 0 is the top.
    stratum: NDArray[np.int32]
    #: (r,) in (0, 1]: n_h/N_h, and 1 for the top.
    inclusion_probability: Floats
    #: (r,) 1…r; 1 is reviewed first.
    rank: Ints
    #: (r,) the highest are reviewed first.
    review_score: Floats
    #: One row per stratum: `stratum`, `lower` and `upper` (its lowest and highest review score),
    #: `flagged` (true: only flagged comments; false: only others; missing: both),
    #: `population` N_h, `sample` n_h. Stratum 0 may share its lowest score with the next, ties at
    #: the capacity being broken by key.
    strata: pd.DataFrame


def design_routing(
    y_prob: ArrayLike,
    keys: NDArray[np.uint64],
    policy: RoutingPolicy,
    *,
    threshold: float = 0.5,
    flagged: NDArray[np.bool_] | None = None,
    cut: NDArray[np.bool_] | None = None,
    y_score: Floats | None = None,
) -> Routing:
    """Return the routed comments: ⌊αn⌋ of n, of which a share ρ is the random slice.

    Nothing depends on the order of the rows. If ρ > 0 the slice has at least one place, since
    without it the rest has inclusion probability 0. A day too small for one place routes nothing.

    Args:
        y_prob: (n,) in [0, 1].
        keys: (n,) from `random_keys`.
        policy: α is its review fraction, ρ its slice share.
        threshold: in [0, 1]; the model flags y_prob > threshold. Flagged comments outside the top
            have strata of their own, so precision and recall have labels among them.
        flagged: (n,) the decisions, where they are not y_prob > threshold.
        cut: (n,) comments of which the model did not read all. They come first, whatever the
            strategy, as far as the top has places; None: there are none.
        y_score: (n,) the highest are reviewed first; by default the review scores of the policy's
            strategy at the costs for which the threshold is the best one.

    Raises:
        DesignError: not one key, or not one decision, per comment.
        MetricInputError: probabilities outside [0, 1].

    >>> routing = design_routing(np.linspace(0, 1, 100), np.arange(100, dtype=np.uint64),
    ...                  RoutingPolicy(review_fraction=0.2))
    >>> routing.strata[["population", "sample"]].to_numpy().tolist()[0]
    [18, 18]
    >>> len(routing.row)
    20
    """
    decided = _decisions(y_prob, threshold, flagged)
    score = y_score
    if score is None:
        score = review_scores(
            y_prob,
            policy.strategy,
            threshold=threshold,
            flagged=decided,
        )
    if keys.shape != score.shape:
        raise DesignError(
            f"got {keys.size} keys for {score.size} comments; pass one key per comment"
        )
    capacity = slots(policy.review_fraction, score.size)
    in_slice = max(1, round(policy.slice_share * capacity)) if policy.slice_share else 0
    top = max(capacity - in_slice, 0)
    order = np.lexsort((keys, -score))  # descending score, ties by key
    if cut is not None and cut.any():
        first = order[cut[order]][:top]
        order = np.concatenate([first, order[~np.isin(order, first)]])
    prob = np.asarray(y_prob, dtype=np.float64)
    rest = order[top:]
    measure = _size_measure(prob[rest])
    parts = _parts(score[rest], measure, decided[rest], capacity - top, policy)
    population = np.array([part.size for part in parts], np.int64)
    masses = np.array([measure[part].sum() for part in parts])
    sample = allocate(masses, population, capacity - top, minimum=policy.minimum)
    drawn = [
        _draw(rest[part], keys, size) for part, size in zip(parts, sample.tolist(), strict=True)
    ]
    strata = [order[:top], *(rest[part] for part in parts)]
    table = _table(score, decided, strata, np.append(top, sample))
    return _routing(score, keys, policy.strategy, strata[0], drawn, table)


def strata_of(
    score: Floats, strata: pd.DataFrame, top: NDArray[np.bool_], *, flagged: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Return the stratum (n,) of every comment of a day, routed or not.

    Args:
        score: (n,) the review scores of the day, by its strategy.
        strata: `Routing.strata` of the day, as stored.
        top: (n,) whether a comment was routed as one of the top.
        flagged: (n,) the decisions.

    Raises:
        DesignError: the strata do not have the sizes of the design: scores, decisions or policy
            have changed.

    >>> prob = np.linspace(0, 1, 100)
    >>> keys = np.arange(100, dtype=np.uint64)
    >>> routing = design_routing(prob, keys, RoutingPolicy(review_fraction=0.2))
    >>> top = np.isin(np.arange(100), routing.row[routing.stratum == 0])
    >>> found = strata_of(review_scores(prob), routing.strata, top, flagged=prob > 0.5)
    >>> bool((found[routing.row] == routing.stratum).all())
    True
    """
    found = np.where(top, 0, -1).astype(np.int64)
    for row in strata.sort_values("stratum").to_dict("records")[1:]:
        if not row["population"]:
            continue
        inside = (found < 0) & (row["lower"] <= score) & (score <= row["upper"])
        if not pd.isna(row["flagged"]):
            inside &= flagged == row["flagged"]
        found[inside] = row["stratum"]
    sizes = np.bincount(found[found >= 0], minlength=len(strata))
    if sizes.sum() != found.size or not np.array_equal(sizes, strata["population"]):
        raise DesignError(
            "the comments do not divide into the strata that were routed: scores, decisions or the "
            "routing policy have changed since; route the day again"
        )
    return found


def _decisions(
    y_prob: ArrayLike, threshold: float, flagged: NDArray[np.bool_] | None
) -> NDArray[np.bool_]:
    """Return whether each comment (n,) is flagged; by the threshold unless decisions are given."""
    prob = np.asarray(y_prob, dtype=np.float64)
    if flagged is None:
        return is_flagged(prob, threshold)
    if flagged.shape != prob.shape:
        raise DesignError(
            f"got {flagged.size} decisions for {prob.size} comments; pass one decision per comment"
        )
    return flagged


def _size_measure(prob: Floats) -> Floats:
    """Return the mass (m,), with sum 1, that defines the strata and the allocation of the slice.

    For a calibrated model √(p(1−p)) is the standard deviation of the label and of the error of the
    decision, so this is Neyman allocation; half the mass is distributed evenly.
    """
    spread = np.sqrt(prob * (1 - prob))
    even = np.full(prob.size, 1 / max(prob.size, 1))
    if spread.sum() == 0:
        return even
    uneven: Floats = spread / spread.sum()
    return np.asarray((1 - PROPORTIONAL_SHARE) * uneven + PROPORTIONAL_SHARE * even)


def _parts(
    score: Floats,
    measure: Floats,
    flagged: NDArray[np.bool_],
    sample: int,
    policy: RoutingPolicy,
) -> list[Ints]:
    """Return the positions in the rest, by descending score, that each stratum contains.

    The first contains the comments replaced by the slice, so the metrics at the deployed α always
    have labels. The others contain either flagged comments or none; on each side they have equal
    mass. Equal scores stay together. Where only one other is possible, it contains both.
    """
    strata = max(1, min(policy.strata, sample // policy.minimum))
    positions = np.arange(score.size)
    if strata == 1 or score.size == 0:
        return [positions] if score.size else []
    first = int(_ends(score, np.array([sample]))[0])
    sides = [positions[first:]]
    if strata > 2:
        sides = [side[flagged[side] == way] for side in sides for way in (True, False)]
    sides = [side for side in sides if side.size]
    mass = np.array([measure[side].sum() for side in sides])
    room = np.array([side.size for side in sides], np.int64)
    numbers = allocate(mass, room, min(strata - 1, int(room.sum())), minimum=1)
    parts = [positions[:first]]
    for side, number in zip(sides, numbers.tolist(), strict=True):
        sums = np.cumsum(measure[side])
        levels = np.linspace(0, sums[-1], number + 1)[1:-1]
        ends = _ends(score[side], np.searchsorted(sums, levels) + 1)
        parts += np.split(side, np.unique(ends[ends < side.size]))
    return parts


def _ends(score: Floats, wanted: Ints) -> Ints:
    """Return the positions at or after `wanted` where a descending score changes, or its size."""
    starts = np.append(np.flatnonzero(np.diff(score)) + 1, score.size)
    return starts[np.clip(np.searchsorted(starts, wanted), 0, starts.size - 1)]


def _draw(stratum: Ints, keys: NDArray[np.uint64], size: int) -> Ints:
    """Return the `size` rows of a stratum with the smallest keys.

    The halves of the key are swapped: the upper half broke ties at the capacity, so it is no longer
    uniform within a stratum.
    """
    half = np.uint64(32)
    key = keys[stratum]
    return stratum[np.argsort((key << half) | (key >> half), kind="stable")[:size]]


def _table(
    score: Floats, flagged: NDArray[np.bool_], strata: list[Ints], sample: Ints
) -> pd.DataFrame:
    """Return the strata."""
    scores = (score[stratum] for stratum in strata)
    ends = [(part.max(), part.min()) if part.size else (None, None) for part in scores]
    sides = [set(flagged[stratum].tolist()) for stratum in strata]
    return pd.DataFrame(
        {
            "stratum": np.arange(len(strata), dtype=np.int32),
            "lower": pd.array([lower for _, lower in ends], "Float64"),
            "upper": pd.array([upper for upper, _ in ends], "Float64"),
            "flagged": pd.array(
                [side.pop() if len(side) == 1 else None for side in sides], "boolean"
            ),
            "population": np.array([stratum.size for stratum in strata], np.int64),
            "sample": sample.astype(np.int64),
        }
    )


def _routing(
    score: Floats,
    keys: NDArray[np.uint64],
    strategy: str,
    top: Ints,
    drawn: list[Ints],
    strata: pd.DataFrame,
) -> Routing:
    """Return the routing in the order of the queue."""
    row = np.concatenate([top, *drawn]).astype(np.int64)
    stratum = np.repeat(np.arange(1 + len(drawn)), [top.size, *map(len, drawn)])
    place = np.concatenate(
        [(np.arange(top.size) + 0.5) / max(top.size, 1), _places(keys[row[top.size :]])]
    )
    queue = np.argsort(place, kind="stable")
    row, stratum = row[queue], stratum[queue]
    chance = (strata["sample"] / strata["population"].clip(lower=1)).to_numpy(np.float64)
    return Routing(
        row=row,
        reason=np.where(stratum == 0, strategy, "random_slice").astype(object),
        stratum=stratum.astype(np.int32),
        inclusion_probability=chance[stratum],
        rank=np.arange(1, row.size + 1),
        review_score=score[row],
        strata=strata,
    )


def _places(keys: NDArray[np.uint64]) -> Floats:
    """Return a random position in [0, 1) of the queue for each of s slice comments, one per 1/s."""
    generator = np.random.default_rng(int(np.bitwise_xor.reduce(keys, initial=0)))
    turn = np.empty(keys.size)
    turn[np.argsort(keys)] = generator.permutation(keys.size)
    return (turn + generator.random(keys.size)) / max(keys.size, 1)

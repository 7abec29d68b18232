"""A day of comments with a designed, labelled sample."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from modwatch.common.errors import MetricInputError
from modwatch.statistics import arguments
from modwatch.statistics.arguments import Floats, Ints
from modwatch.statistics.collaboration.review_strategies import (
    Costs,
    copies_last,
    review_scores,
    stakes,
)
from modwatch.statistics.decisions import is_flagged


@dataclass(frozen=True, kw_only=True)
class Confirmations:
    """Further labels, each by another person who did not know the earlier ones."""

    #: (c,) position of the comment in the day; one entry a label.
    row: NDArray[np.integer]
    #: (c,) 0 or 1.
    label: NDArray[np.integer]

    @classmethod
    def none(cls) -> Confirmations:
        """Return that nothing was confirmed."""
        return cls(row=np.empty(0, np.int64), label=np.empty(0, np.int8))


@dataclass(frozen=True, kw_only=True)
class LabelledDay:
    """A day's whole population of N comments, of which a designed sample has labels.

    The design is stratified: n_h of N_h comments of stratum h were routed; stratum 0 is the top,
    all of it routed. Labels may be missing.
    Raises MetricInputError if the arrays contradict each other or the design.
    """

    #: (N,) in [0, 1]: the probability of every comment.
    prob: NDArray[np.floating]
    #: (N,) stratum of every routed comment, −1 allowed elsewhere; stratum 0 must be complete.
    stratum: NDArray[np.integer]
    #: (N,) 0 or 1 where labelled; anything elsewhere.
    label: NDArray[np.generic]
    #: (N,) whether the comment has a label.
    labelled: NDArray[np.bool_]
    #: (H,) N_h of every stratum of the design, from stratum 0.
    population: NDArray[np.integer]
    #: (H,) n_h of every stratum.
    sample: NDArray[np.integer]
    #: (N,) the automated decisions; None if they are prob > threshold.
    flagged: NDArray[np.bool_] | None = None
    #: (N,) in [0, 1], costs, and columns (N,) of the model, by which review scores order the
    #: comments; see `review_scores`.
    calibrated: NDArray[np.floating] | None = None
    given_variance: NDArray[np.floating] | None = None
    costs: Costs | None = None
    columns: Mapping[str, NDArray[np.floating]] = field(default_factory=dict)
    #: (N,) comments that repeat another one: they are reviewed last. None: there are none.
    copies: NDArray[np.bool_] | None = None
    #: Further labels of labelled comments, by people with the same error rates; None if `label` is
    #: the truth, as in research data.
    confirmations: Confirmations | None = None
    #: (N,) of routed comments without a label when follow-ups were drawn at random: their part in
    #: that, from 0, which the labelled ones represent; −1 for all others. None: nothing was drawn.
    missing: NDArray[np.integer] | None = None
    #: Number of labels that others of these got later; `labelled` leaves them out.
    late: int = 0

    def __post_init__(self) -> None:
        arguments.probabilities(self.prob, name="prob")
        size = arguments.same_length(
            prob=self.prob, stratum=self.stratum, label=self.label, labelled=self.labelled
        )
        if self.flagged is not None:
            arguments.same_length(prob=self.prob, flagged=self.flagged)
        arguments.same_length(population=self.population, sample=self.sample)
        arguments.labels(self.label[self.labelled], name="label")
        if int(self.population.sum()) != size:
            raise MetricInputError(
                f"the design counts {int(self.population.sum())} comments, but {size} have scores; "
                "route the day again after scoring"
            )
        self._check_strata()
        arguments.same_length(prob=self.prob, missing=self.draw)
        if (self.stratum[self.draw >= 0] < 0).any():
            raise MetricInputError("a comment with a missing label was not routed")
        if self.confirmations is not None:
            arguments.same_length(row=self.confirmations.row, label=self.confirmations.label)
            arguments.labels(self.confirmations.label, name="label of a confirmation")
            if not self.labelled[self.confirmations.row].all():
                raise MetricInputError("a comment without a first label has a confirmation")

    def _check_strata(self) -> None:
        seen = self.stratum[self.labelled]
        if seen.size and (seen.min() < 0 or seen.max() >= len(self.population)):
            raise MetricInputError("a labelled comment has no stratum; pass its routed stratum")
        if (self.sample > self.population).any() or (self.count > self.sample).any():
            raise MetricInputError(
                "a stratum has more labels than sample, or more sample than population"
            )
        if int((self.stratum == 0).sum()) != int(self.population[:1].sum()):
            raise MetricInputError(
                "stratum 0 differs in size from the design; pass it for the whole top"
            )

    def decisions(self, threshold: float) -> NDArray[np.bool_]:
        """Return which comments (N,) are flagged: as decided, or where prob > threshold.

        >>> fully_labelled([0, 1], [0.2, 0.9]).decisions(0.5).tolist()
        [False, True]
        """
        if self.flagged is not None:
            return self.flagged
        return is_flagged(self.prob, threshold)

    def review_scores(self, strategy: str, *, threshold: float) -> Floats:
        """Return the review scores (N,) by a strategy; see the function of this name.

        `threshold` makes the decisions where there are none.
        """
        score = review_scores(
            self.prob,
            strategy,
            threshold=threshold,
            flagged=self.flagged,
            calibrated=self.calibrated,
            given_variance=self.given_variance,
            columns=self.columns,
            costs=self.costs,
        )
        return copies_last(score, self.copies)

    def stakes(self, threshold: float) -> Floats:
        """Return what each decision (N,) costs if it is wrong: 1 where there are no costs."""
        return stakes(self.decisions(threshold), self.costs)

    @property
    def count(self) -> Ints:
        """(H,) labelled comments of each stratum."""
        seen = self.stratum[self.labelled]
        return np.bincount(seen, minlength=len(self.population)).astype(np.int64)

    @property
    def draw(self) -> NDArray[np.integer]:
        """(N,) `missing`, −1 everywhere if no follow-ups were drawn."""
        return np.full(len(self.prob), -1, np.int8) if self.missing is None else self.missing

    @property
    def lost(self) -> NDArray[np.bool_]:
        """(N,) which comments were routed and had no label before follow-ups, as far as known."""
        routed = self.stratum >= 0
        if int(routed.sum()) != int(self.sample.sum()):  # others have a stratum, too
            routed = self.stratum == 0
        return (self.draw >= 0) | (routed & ~self.labelled)

    def given(self, rows: Ints) -> tuple[Ints, Ints]:
        """Return the number of labels of each comment at `rows`, and how many are toxic."""
        given, toxic = (self.labelled.astype(np.int64), (self.labelled & (self.label == 1)) + 0)
        if self.confirmations is not None:
            np.add.at(given, self.confirmations.row, 1)
            np.add.at(toxic, self.confirmations.row, self.confirmations.label)
        return given[rows], toxic[rows]

    def rows(self, repeat: int = 1) -> Ints:
        """Return the positions of the labelled comments, those outside the top `repeat` times.

        No row is repeated more often than the number of comments it represents in its stratum.
        """
        rows = np.flatnonzero(self.labelled)
        times = np.minimum(repeat, self.population // np.maximum(self.count, 1))
        times[:1] = 1
        return np.repeat(rows, times[self.stratum[rows]])


def fully_labelled(
    y_true: ArrayLike, y_prob: ArrayLike, *, flagged: NDArray[np.bool_] | None = None
) -> LabelledDay:
    """Return a day on which every comment is labelled, as in replayed research data.

    `flagged` (N,) are the decisions, where they are not prob > threshold.

    >>> fully_labelled([1], [0.5]).population.tolist()
    [1]
    """
    prob = np.asarray(y_prob)
    size = np.array([len(prob)])
    return LabelledDay(
        prob=prob,
        stratum=np.zeros(len(prob), dtype=np.int64),
        label=np.asarray(y_true),
        labelled=np.ones(len(prob), dtype=bool),
        population=size,
        sample=size,
        flagged=flagged,
    )

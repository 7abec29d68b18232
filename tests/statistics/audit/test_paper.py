"""Figures of Wei, Zufall & Jia, as far as the paper gives what they are made of.

Not to be had from what is printed:

- Table 1, "Stratified": needs the positives of each of the eight strata.
- Table 1, interval of the prevalence: half as wide as any eight bins of 50 labels give.
- Table 3 but its first row: needs the classifiers' scores of CivilComments.
- The interval of recall that Tables 1 and 3 print takes the prevalence for a share of all comments,
  not of those that were not removed; so do the tests of them.
"""

import dataclasses

import numpy as np
import pytest

from modwatch.statistics.audit.estimates import AuditEstimator
from modwatch.statistics.audit.share_interval import SideShare
from modwatch.statistics.audit.stratified import StratumCounts
from modwatch.statistics.sample_size import required_labels

TABLE_2 = {
    0.1: (865, 3458, 13830),
    0.059: (1532, 6127, 24508),
    0.01: (9508, 38031, 152122),
    0.001: (95941, 383762, 1535047),
}


@pytest.mark.parametrize(
    ("prevalence", "relative", "labels"),
    [
        (prevalence, relative, labels)
        for prevalence, row in TABLE_2.items()
        for relative, labels in zip((0.2, 0.1, 0.05), row, strict=True)
    ],
)
def test_table_2_to_the_unit(prevalence, relative, labels):
    assert required_labels(prevalence, relative_error=relative) == labels


@pytest.mark.parametrize(("relative", "labels"), [(0.2, 2247), (0.1, 8986), (0.05, 35942)])
def test_table_3_random_sampling(relative, labels):
    assert required_labels(0.041, relative_error=relative) == pytest.approx(labels, abs=1)


@dataclasses.dataclass(frozen=True)
class Line:
    """A line of Table 1; shares in percent."""

    prevalence: float
    interval: tuple[float, float]
    random: int
    removed: float
    recall: float
    recall_interval: tuple[float, float]


TABLE_1 = {
    "r/politics": Line(7.00, (6.42, 7.58), 1401, 0.77, 9.91, (9.22, 10.71)),
    "r/AskReddit": Line(4.75, (4.29, 5.21), 2142, 0.70, 12.92, (11.91, 14.11)),
    "r/sex": Line(3.00, (2.63, 3.37), 3556, 2.06, 40.72, (37.94, 43.93)),
    "r/pcmasterrace": Line(4.00, (3.61, 4.39), 2567, 0.89, 18.20, (16.86, 19.78)),
    # Printed as 3.74 to 4.76: digits changed places, as the line's other figures tell.
    "r/wow": Line(4.25, (3.76, 4.74), 2455, 0.75, 14.97, (13.63, 16.60)),
    "r/legaladvice": Line(1.50, (1.25, 1.75), 7591, 7.65, 83.62, (81.38, 85.97)),
}
LINES = pytest.mark.parametrize("line", TABLE_1.values(), ids=TABLE_1)

#: The table prints two decimals of a percentage.
ROUNDING = 0.005


def random_labels(line):
    """Return the least and the most labels that a printed lower bound can mean."""
    low = line.interval[0]
    return tuple(required_labels((low + sign * ROUNDING) / 100) for sign in (1, -1))


@LINES
def test_table_1_random_labels_are_those_of_the_lower_bound(line):
    least, most = random_labels(line)
    assert least <= line.random <= most
    assert most - least < 0.01 * most


class Known(AuditEstimator):
    """An audit that is told the shares of its sides and their ends."""

    def _share(self, name: str, **_: object) -> SideShare:
        if name == "flagged":
            return self.shares(self.comments[0], 1.0, (1.0, 1.0))
        line = self.line
        low, high = (end / 100 for end in line.interval)
        return self.shares(self.comments[1], line.prevalence / 100, (low, high))

    @staticmethod
    def shares(comments: int, rate: float, ends: tuple[float, float]) -> SideShare:
        rate_, low, high = (np.asarray(value) for value in (rate, *ends))
        return SideShare(
            comments=comments, value=rate_, low=low, high=high, error=np.zeros(()),
            variance=np.zeros(()),
        )  # fmt: skip


@LINES
def test_table_1_recall_and_its_interval(line):
    """Every removal is taken to be right; 100,000 comments stand for the others."""

    def recalls(removed):
        made = Known(flagged=None, unflagged=None, comments=(round(1000 * removed), 100_000))
        object.__setattr__(made, "line", line)
        figure = made.interval_estimate("recall")
        return [100 * float(value) for value in (figure.low, figure.value, figure.high)]

    few, many = (recalls(line.removed + sign * ROUNDING) for sign in (-1, 1))
    printed = (line.recall_interval[0], line.recall, line.recall_interval[1])
    # An end of the prevalence is rounded too: worth as much as its part of itself.
    for least, expected, most in zip(few, printed, many, strict=True):
        slack = ROUNDING + expected * ROUNDING / line.interval[0]
        assert least - slack <= expected <= most + slack


def test_section_5_1_precision_recall_accuracy_and_prevalence_of_the_filter():
    """57K of 1.7M comments are removed, 58 % of them rightly; 4.1 % of the others are toxic."""
    removed, left = 57_000, 1_643_000
    made = AuditEstimator(
        flagged=counted(removed, round(0.58 * removed)),
        unflagged=counted(left, round(0.041 * left)),
        comments=(removed, left),
    )
    result = {figure.metric: figure.value for figure in made.estimates()}
    assert result["precision"] == pytest.approx(0.58, abs=0.005)
    assert result["recall"] == pytest.approx(0.33, abs=0.005)
    assert result["accuracy"] == pytest.approx(0.95, abs=0.005)
    assert result["prevalence"] == pytest.approx(0.059, abs=0.0005)


def counted(comments, positives):
    return StratumCounts.from_arrays(
        population=[comments], labels=[comments], positives=[positives], score=[0.5]
    ).weighted()


def test_eq_5_and_6_by_loops():
    population, labels, positives = [900, 80, 20], [30, 20, 10], [1, 5, 9]
    rate = 0.0
    for h in range(3):
        sample = [1] * positives[h] + [0] * (labels[h] - positives[h])
        rate += population[h] / sum(population) * sum(sample) / labels[h]
    made = StratumCounts.from_arrays(
        population=population, labels=labels, positives=positives, score=[0.1] * 3
    )
    assert float(made.rate()) == pytest.approx(rate)

"""What is known of all comments, labelled or not."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from modwatch.statistics.collaboration import collaborative
from modwatch.statistics.collaboration.ranking import slots
from modwatch.statistics.collaboration.review_strategies import review_scores
from modwatch.statistics.live.labelled_day import LabelledDay
from modwatch.statistics.live.population import Population, Ranking, pool_domains, pool_ranks

PROBS = st.lists(st.integers(0, 20), min_size=1, max_size=40).map(lambda k: np.array(k) / 20)


def population(prob, rows):
    """Return a day whose top is every third comment."""
    top = np.arange(prob.size) % 3 == 0
    return Population(unlabelled(prob, top), rows)


def unlabelled(prob, top):
    sizes = np.array([top.sum(), (~top).sum()])
    nothing = np.zeros(prob.size, np.int8)
    stratum = np.where(top, 0, -1)
    return LabelledDay(
        prob=prob, stratum=stratum, label=nothing, labelled=nothing > 0, population=sizes,
        sample=sizes,
    )  # fmt: skip


@given(PROBS, st.floats(0, 1), st.sampled_from(["uncertainty", "toxicity", "hybrid"]))
def test_what_is_reviewed_is_what_the_metric_reviews(prob, alpha, strategy):
    rows = np.arange(0, prob.size, 2)
    day = population(prob, rows)
    score = review_scores(prob, strategy)
    (part,) = day.reviewed(np.asarray(review_scores(np.sort(prob), strategy)), [alpha])
    domain = day.reviewed_domain(part, alpha)
    wrong = np.zeros(prob.size)
    for i in range(prob.size):  # the reviewed part of a comment is its share of Effectiveness
        wrong[i] = 1
        label = ((prob > 0.5) != (wrong == 1)).astype(int)
        whole = collaborative.review_effectiveness(label, prob, score, review_fraction=alpha)
        assert part[np.flatnonzero(np.sort(prob) == prob[i])[0]] == pytest.approx(whole, abs=1e-12)
        wrong[i] = 0
    assert domain.mass == pytest.approx(slots(alpha, prob.size))
    assert domain.part.size == rows.size


@given(PROBS, PROBS)
def test_a_row_stands_where_counting_puts_it(here, there):
    rows = np.concatenate([here, there])
    days = [np.sort(here), np.sort(there)]
    kept = [np.linspace(0, 1, day.size) for day in days]
    ranking = Ranking(days, rows)
    ranks = [ranking.ranks(i, part) for i, part in enumerate(kept)]
    found = pool_ranks(ranks, rows.size)
    scores, mass = np.concatenate(days), np.concatenate(kept)
    for i, row in enumerate(rows):
        assert found.below[i] == pytest.approx(mass[scores < row].sum(), abs=1e-9)
        assert found.tied[i] == pytest.approx(mass[scores == row].sum(), abs=1e-9)
    assert found.total == pytest.approx(mass.sum())


def test_flagged_and_bins_part_the_day():
    prob = np.array([0.9, 0.1, 0.5, 0.5, 0.95])
    day = population(prob, np.array([0, 4]))
    flagged = day.flagged(0.5)
    assert (flagged.top, flagged.rest) == (1, 1)
    assert flagged.part.tolist() == [1, 1]
    bins = day.bins(np.asarray, 4)
    assert sum(domain.mass for _, domain in bins) == prob.size
    assert sum(total for total, _ in bins) == pytest.approx(prob.sum())


def test_intervals_of_probability_are_closed_above():
    day = Population(unlabelled(np.array([0.2, 0.5, 0.7]), np.zeros(3, bool)), np.array([1]))
    assert day.between(np.array([0.5]), top=False).tolist() == [2, 1]
    assert day.between(np.array([0.5]), top=True).tolist() == [0, 0]


def test_domains_of_no_day_are_empty():
    nothing = pool_domains([])
    assert (nothing.mass, nothing.part.size) == (0, 0)

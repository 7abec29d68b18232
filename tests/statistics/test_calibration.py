"""The density of the curve and of error rates: its slope, and the chance of labels."""

import numpy as np
import pytest
from scipy import special, stats

from modwatch.statistics.calibration import Posterior
from modwatch.statistics.error_rates import CLIMB, ErrorRates, RatePrior

GENERATOR = np.random.default_rng(5)
SIZE = 3000
PRIORS = [
    RatePrior(common=(0.5, 5.0), wrong=2, answers=30, most=0.25),
    RatePrior(common=(0.5, 2.0), wrong=5, answers=30, most=0.6),
]


def posterior():
    given = GENERATOR.integers(0, 4, SIZE)
    return Posterior(
        GENERATOR.beta(0.5, 2, SIZE),
        GENERATOR.integers(0, 2, SIZE),
        given,
        GENERATOR.binomial(given, 0.3),
        past=np.arange(SIZE) % 2 == 0,
        moved=(0.15, 0.1),
        rates=PRIORS,
    )


@pytest.mark.parametrize("shared", [(-0.45, -0.2), (0.0, 0.0), (0.2, 0.3), (0.5, 0.9)])
def test_the_slope_is_that_of_the_density(shared):
    made = posterior()
    at = made.start + GENERATOR.normal(0, 0.5, (3, made.start.size))
    held = np.repeat([shared], 3, axis=0)
    slope = made.density(at, held)[1]
    for number in range(made.start.size):
        step = np.zeros(made.start.size)
        step[number] = 1e-5
        up, down = (made.density(at + sign * step, held)[0] for sign in (1, -1))
        assert slope[:, number] == pytest.approx((up - down) / 2e-5, abs=1e-5 * np.abs(slope).max())


@pytest.mark.parametrize("shared", [(-0.45, -0.2), (0.0, 0.0), (0.2, 0.3), (0.5, 0.9)])
def test_errors_are_beta_binomial(shared):
    """Against scipy, or label by label: the odds of toxic, of comments without a label before."""
    given, toxic = np.array([0, 1, 2, 2, 3, 3]), np.array([0, 1, 0, 2, 1, 3])
    made = Posterior(
        *(np.full(6, 0.3), np.zeros(6, np.int64), given, toxic),
        past=np.zeros(6, bool),
        moved=(0, 0),
        rates=PRIORS,
    )
    at, held = made.start[None], np.array([shared])
    before, after = (part[0, made.cell] for part in made.probabilities(at, held))
    ((up,), (usual_up,)), ((down,), (usual_down,)) = rates_of_all(made, at)

    def chance(wrong, rate, usual, again):
        if again < 0:
            return rarer(wrong, rate, again)
        if again <= usual:
            return stats.binom.pmf(wrong, given, rate)
        total = (1 - usual) / (again - usual) - 1
        return stats.betabinom.pmf(wrong, given, rate * total, (1 - rate) * total)

    def rarer(wrong, rate, again):
        """Return the chance, up to the number of orders, of labels one after the other."""
        less, found = again * rate * (1 - rate), np.ones(6)
        for place, (made, of) in enumerate(zip(wrong, given, strict=True)):
            for number in range(of):
                before = min(number if number < made else number - made, 1)
                part = rate if number < made else 1 - rate
                found[place] *= (part + before * less) / (1 + min(number, 1) * less)
        return found

    odds = chance(given - toxic, down, usual_down, shared[1])
    odds /= chance(toxic, up, usual_up, shared[0])
    assert after / (1 - after) == pytest.approx(odds * before / (1 - before))


def rates_of_all(made, at):
    """Return false-positive and false-negative rate (1,), and the common one, of one group."""
    every = made.rates(at, np.full((1, made.cell.size), 0.5), 1)
    place = [made.start.size - 10, made.start.size - 5]
    return [(rate[0], special.expit(at[0, [at_]])) for rate, at_ in zip(every, place, strict=True)]


def test_rates_climb_with_the_score_and_known_answers_have_their_own():
    """A climb of the prior's mean, from the lowest band to the highest, about the common rate."""
    high = np.array([-0.5, 0.0, 0.5, 0.0])
    own = np.array([[1, 0], [1, 0], [1, 0], [0, 1]], bool)
    stratum = np.arange(3)
    for climb in CLIMB:
        made = ErrorRates(
            first=0, high=high, own=own, climb=climb, prior=PRIORS[0],
            kinds=(stratum, 0 * stratum, 0 * stratum + 1),
        )  # fmt: skip
        at = np.array([[-2.0, 0, 0, 0, 0], [-2.0, 0, 0.5, 0, 1]])
        low, middle, top, known = made.logits(at)
        assert top - low == pytest.approx([climb[0], sum(climb)])
        assert made.climbs(at).tolist() == [[0], [1]]
        assert middle == pytest.approx([-2, -2])
        assert known[0] == -2 != known[1]

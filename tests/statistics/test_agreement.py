"""Agreement: extremes in the head, published examples, properties, coverage."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from modwatch.statistics.agreement import (
    cohen_kappa,
    krippendorff_alpha,
    observed_agreement,
    observed_disagreement,
)
from modwatch.statistics.intervals import mid_p

NAN = np.nan

#: Krippendorff (2011), "Computing Krippendorff's alpha-reliability", section C: four observers,
#: twelve units, five categories, missing values.
FOUR_OBSERVERS = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, NAN, NAN, NAN],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NAN, 3],
        [NAN, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NAN],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NAN],
    ]
)

#: Section A, two observers, twelve articles, two categories.
TWO_OBSERVERS = np.array([[0, 1, 0, 0, 0, 0, 0, 0, 1, 0], [1, 1, 1, 0, 0, 1, 0, 0, 0, 0]])


def rows(matrix):
    """Return unit and label of every cell that is not missing, of (raters, units)."""
    rater, unit = np.nonzero(~np.isnan(matrix))
    return unit, matrix[rater, unit]


def alpha(matrix, seed=0, **options):
    generator = np.random.default_rng(seed)
    return krippendorff_alpha(*rows(matrix), rng=generator, **({"minimum": 1} | options))


PAIRS = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=1, max_size=60)


def test_everybody_agrees_and_the_intervals_have_width_all_the_same():
    labels = np.arange(40) % 2
    share, kappa = observed_agreement(labels, labels), cohen_kappa(labels, labels)
    several = alpha(np.array([labels, labels], dtype=float))
    for found in (share, kappa, several):
        assert (found.value, found.high, found.n, found.status) == (1, 1, 40, "ok")
    assert (share.low, share.high) == mid_p(40, 40)
    assert 0.7 < kappa.low < 0.95
    assert 0.7 < several.low < 0.95


def test_everybody_contradicts():
    labels = np.arange(40) % 2
    assert observed_agreement(labels, 1 - labels).value == 0
    assert cohen_kappa(labels, 1 - labels).value == -1
    # Forty labels of either sort, all pairs differ: 1 − 79·80/(2·40·40).
    several = alpha(np.array([labels, 1 - labels], dtype=float))
    assert several.value == pytest.approx(1 - 79 * 80 / 3200)


def test_what_cannot_be_stated_is_not_stated():
    ones = np.ones(40)
    for found in (cohen_kappa(ones, ones), alpha(np.array([ones, ones]))):
        assert (found.status, found.reason) == ("insufficient", "every label is the same")
        assert (found.value, found.low, found.high, found.n) == (None, None, None, 40)
    assert observed_agreement(ones, ones).value == 1
    few = np.arange(29) % 2
    for measure in (observed_agreement, observed_disagreement, cohen_kappa):
        assert measure(few, few).reason == "29 pairs of labels; 30 are needed"
        assert measure([], [], minimum=0).status == "insufficient"
    lonely = krippendorff_alpha(np.arange(40), ones, rng=np.random.default_rng(0))
    assert (lonely.n, lonely.reason) == (0, "0 comments of two labels; 30 are needed")


def test_shares_are_shares():
    first, second = np.zeros(100), (np.arange(100) < 18) * 1
    same, other = observed_agreement(first, second), observed_disagreement(first, second)
    assert same.value == observed_agreement(second, first).value == 0.82
    assert other.value == pytest.approx(1 - same.value)
    assert (other.low, other.high) == pytest.approx((1 - same.high, 1 - same.low), abs=1e-9)


def test_krippendorffs_own_examples():
    four = alpha(FOUR_OBSERVERS)
    assert four.value == pytest.approx(0.743, abs=5e-4)
    assert four.n == 11  # unit 12 has one label only
    assert alpha(TWO_OBSERVERS.astype(float)).value == pytest.approx(0.095, abs=5e-4)


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=60),
    st.permutations([3.0, -1.5, 7.0, 0.0]),
    st.integers(0, 2**32 - 1),
)
def test_kappa_is_scikit_learns_whatever_the_names_and_the_order(labels, names, seed):
    first, second = np.array(labels).T
    moved = np.random.default_rng(seed).permutation(first.size)
    found = cohen_kappa(first, second, minimum=1)
    if found.status == "insufficient":
        assert len(set(first) | set(second)) == 1
        return
    assert found.value == pytest.approx(cohen_kappa_score(first, second), abs=1e-12)
    assert -1 <= found.low <= found.value <= found.high <= 1
    renamed = np.array(names)
    for other in (
        cohen_kappa(second[moved], first[moved], minimum=1),
        cohen_kappa(renamed[first], renamed[second], minimum=1),
    ):
        for name in ("value", "low", "high"):
            assert getattr(other, name) == pytest.approx(getattr(found, name), abs=1e-9)


@given(PAIRS)
def test_alpha_of_pairs_is_the_textbook_sum(labels):
    """D_o and D_e written out over every pair of values (Krippendorff 2011, Eq. 1)."""
    matrix = np.array(labels, dtype=float).T
    values = matrix.ravel()
    n = values.size
    observed = np.mean(matrix[0] != matrix[1])
    expected = (values[:, None] != values[None, :]).sum() / (n * (n - 1))
    found = alpha(matrix, resamples=10)
    if expected == 0:
        assert found.status == "insufficient"
    else:
        assert found.value == pytest.approx(1 - observed / expected)


def drawn_pairs(rng, prevalence, error, n):
    """Return n pairs of labels of two people who err independently, and the true κ."""
    truth = rng.random(n) < prevalence
    first, second = (np.where(rng.random(n) < error, ~truth, truth) for _ in range(2))
    differ = 2 * error * (1 - error)
    toxic = prevalence * (1 - error) + (1 - prevalence) * error
    return first, second, 1 - differ / (2 * toxic * (1 - toxic))


def test_the_intervals_cover():
    """Each 95 %, less three standard errors."""
    rng = np.random.default_rng(3)
    covered = []
    for _ in range(150):
        first, second, kappa = drawn_pairs(rng, 0.2, 0.05, 200)
        both = (cohen_kappa(first, second), alpha(np.array([first, second], float), resamples=200))
        covered.append([item.low <= kappa <= item.high for item in both])
    assert (np.mean(covered, axis=0) >= 0.9).all()


def test_equal_weights_are_no_weights():
    rng = np.random.default_rng(0)
    first, second = rng.integers(0, 2, (2, 50))
    for measure in (observed_agreement, cohen_kappa):
        plain = measure(first, second)
        assert measure(first, second, sample_weight=np.full(50, 7.0)) == plain
        near = measure(first, second, sample_weight=np.full(50, 7.0) + 1e-7 * np.arange(50))
        assert near.value == pytest.approx(plain.value)
        assert (near.low, near.high) == pytest.approx((plain.low, plain.high), abs=2e-3)


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=40), st.data())
def test_a_pair_without_weight_does_not_exist(pairs, data):
    y = np.array(pairs, float)
    w = np.array(
        data.draw(st.lists(st.sampled_from([0, 0.5, 3]), min_size=len(y), max_size=len(y)))
    )
    kept = w > 0
    for function in (observed_agreement, cohen_kappa):
        found = function(*y.T, sample_weight=w, minimum=2)
        assert found == function(*y[kept].T, sample_weight=w[kept], minimum=2)
        assert found.n == kept.sum()


def test_a_weight_counts_as_so_many_pairs():
    first, second = np.array([1, 0, 0]), np.array([1, 1, 0])
    weight = np.array([1.0, 2.0, 5.0])
    apart = np.repeat(np.arange(3), weight.astype(int))
    for measure in (observed_agreement, cohen_kappa):
        one = measure(first, second, sample_weight=weight, minimum=1)
        many = measure(first[apart], second[apart], minimum=1)
        assert one.value == pytest.approx(many.value)
        assert one.low <= many.low
        assert one.high >= many.high


@pytest.mark.simulation
def test_agreement_of_an_uneven_sample_is_that_of_all():
    """Labels 1 and those of a small part are compared far more often than others."""
    rng = np.random.default_rng(1)
    size, runs, error = 3000, 200, 0.15
    toxic = rng.random(size) < 0.25
    hard = rng.random(size) < 0.1  # where people differ more
    rate = np.where(hard, 3 * error, error)
    first, second = (toxic ^ (rng.random(size) < rate) for _ in range(2))
    chance = np.where(hard, 0.5, np.where(first, 0.1, 0.03))
    truth = [measure(first, second).value for measure in (observed_agreement, cohen_kappa)]
    found = []
    for _ in range(runs):
        drawn = rng.random(size) < chance
        pairs = (first[drawn], second[drawn])
        weighted = {"sample_weight": 1 / chance[drawn]}
        figures = [m(*pairs, **weighted) for m in (observed_agreement, cohen_kappa)]
        plain = [m(*pairs).value for m in (observed_agreement, cohen_kappa)]
        found.append([(f.value, f.low, f.high, p) for f, p in zip(figures, plain, strict=True)])
    values = np.array(found)  # (runs, 2, 4)
    for which, true in enumerate(truth):
        value, low, high, unweighted = values[:, which].T
        error_of_mean = value.std() / np.sqrt(runs)
        assert abs(value.mean() - true) < max(4 * error_of_mean, 0.15 * value.std())
        assert abs(unweighted.mean() - true) > 10 * error_of_mean
        assert ((low <= true) & (true <= high)).mean() >= 0.9
        assert (high - low).mean() <= 6 * value.std()  # 3.92 of a normal estimate

"""The posterior of the logit: closed forms, Monte Carlo, mixtures."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from modwatch.models.posterior import LogitPosterior

LN2 = float(np.log(2))


def posterior(mean: float, variance: float, factor: float = np.pi / 8) -> LogitPosterior:
    return LogitPosterior(mean=np.array([[mean]]), variance=np.array([[variance]]), factor=factor)


def entropy(prob: np.ndarray) -> np.ndarray:
    return -prob * np.log(prob) - (1 - prob) * np.log1p(-prob)


def test_without_variance_nothing_is_uncertain_about_the_weights():
    moments = posterior(np.log(3), 0.0).moments()
    assert moments.prob[0] == pytest.approx(0.75)
    assert moments.variance[0] == pytest.approx(0, abs=1e-15)
    assert moments.mutual_information[0] == pytest.approx(0, abs=1e-12)


def test_symmetric_posterior_has_probability_one_half():
    assert posterior(0.0, 9.0).moments().prob[0] == 0.5


def test_extreme_logits_stay_finite():
    wide = LogitPosterior(
        mean=np.array([[-1e4, 0, 1e4]]), variance=np.array([[0, 1e6, 1e8]]), factor=np.pi / 8
    )
    moments = wide.moments()
    for values in (moments.prob, moments.variance, moments.mutual_information):
        assert np.isfinite(values).all()


def test_mean_field_follows_its_formula():
    prob = posterior(2.0, 3.0, factor=0.1).prob()[0]
    assert prob == pytest.approx(1 / (1 + np.exp(-2 / np.sqrt(1.3))))


@pytest.mark.parametrize("mean", [-5.0, -1.0, 0.3, 4.0])
@pytest.mark.parametrize("variance", [0.01, 1.0, 9.0])
def test_quadrature_agrees_with_monte_carlo(mean, variance):
    draws = np.random.default_rng(0).normal(mean, np.sqrt(variance), 400_000)
    prob = 1 / (1 + np.exp(-draws))
    information = entropy(prob.mean()) - entropy(prob).mean()
    moments = posterior(mean, variance).moments()
    assert moments.variance[0] == pytest.approx(prob.var(), rel=0.02, abs=1e-6)
    assert moments.mutual_information[0] == pytest.approx(information, rel=0.02, abs=1e-6)
    assert moments.prob[0] == pytest.approx(prob.mean(), abs=0.02)


def test_a_mixture_of_sngp_members_agrees_with_monte_carlo():
    mixed = LogitPosterior(
        mean=np.array([[-2.0], [0.5]]), variance=np.array([[1.0], [4.0]]), factor=np.pi / 8
    )
    rng = np.random.default_rng(1)
    draws = np.concatenate([rng.normal(-2, 1, 400_000), rng.normal(0.5, 2, 400_000)])
    prob = 1 / (1 + np.exp(-draws))
    moments = mixed.moments()
    assert moments.variance[0] == pytest.approx(prob.var(), rel=0.01)
    assert moments.mutual_information[0] == pytest.approx(
        entropy(prob.mean()) - entropy(prob).mean(), rel=0.01
    )


def test_an_ensemble_is_the_mean_of_its_members():
    members = LogitPosterior(mean=np.array([[-1.0, 2.0], [1.0, 4.0]]), variance=np.zeros((2, 2)))
    prob = 1 / (1 + np.exp(-members.mean))
    moments = members.moments()
    assert moments.prob == pytest.approx(prob.mean(0))
    assert moments.variance == pytest.approx(prob.var(0))
    assert moments.mutual_information == pytest.approx(
        entropy(prob.mean(0)) - entropy(prob).mean(0)
    )


def test_the_moments_are_those_of_the_calibrated_probability():
    members = LogitPosterior(mean=np.array([[-1.0], [3.0]]), variance=np.zeros((2, 1)))
    prob = 1 / (1 + np.exp(-members.mean[:, 0]))
    moments = members.moments(np.square)
    assert moments.prob[0] == pytest.approx(prob.mean() ** 2)
    assert moments.variance[0] == pytest.approx((prob**2).var())
    information = entropy((prob**2).mean()) - entropy(prob**2).mean()
    assert moments.mutual_information[0] == pytest.approx(information)


@given(
    means=st.lists(st.floats(-30, 30), min_size=1, max_size=4),
    variance=st.floats(0, 100),
    scale=st.floats(0.1, 3),
)
def test_moments_stay_in_range_however_calibrated(means, variance, scale):
    mean = np.array(means)[:, None]
    mixed = LogitPosterior(mean=mean, variance=np.full_like(mean, variance), factor=np.pi / 8)
    moments = mixed.moments(lambda prob: prob**scale)
    assert 0 <= moments.prob[0] <= 1
    assert 0 <= moments.variance[0] <= 0.25
    assert 0 <= moments.mutual_information[0] <= LN2


@given(mean=st.floats(-20, 20), variance=st.floats(0, 50))
def test_labels_swapped_mirror_the_moments(mean, variance):
    one, other = posterior(mean, variance).moments(), posterior(-mean, variance).moments()
    assert one.prob[0] == pytest.approx(1 - other.prob[0], abs=1e-12)
    assert one.variance[0] == pytest.approx(other.variance[0], abs=1e-12)


def test_many_comments_are_computed_in_parts():
    mean = np.linspace(-5, 5, 9_000)[None]
    whole = LogitPosterior(mean=mean, variance=np.ones_like(mean)).moments()
    last = posterior(5.0, 1.0, factor=0.0).moments()
    assert whole.variance[-1] == pytest.approx(last.variance[0])

"""Heads: closed forms, Monte Carlo, and a Gaussian process that knows what it has not seen."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from modwatch.models.heads import DeterministicHead, GaussianLogit, SNGPHead, build_head
from modwatch.models.recipe import Recipe

LN2 = float(np.log(2))


def posterior(mean: float, variance: float, factor: float = np.pi / 8) -> GaussianLogit:
    return GaussianLogit(mean=np.array([mean]), variance=np.array([variance]), factor=factor)


def test_without_variance_nothing_is_uncertain_about_the_weights() -> None:
    moments = posterior(np.log(3), 0.0).moments()
    assert moments.prob[0] == pytest.approx(0.75)
    assert moments.variance[0] == pytest.approx(0, abs=1e-15)
    assert moments.mutual_information[0] == pytest.approx(0, abs=1e-12)


def test_symmetric_posterior_has_probability_one_half() -> None:
    assert posterior(0.0, 9.0).moments().prob[0] == 0.5


def test_extreme_logits_stay_finite_and_silent() -> None:
    wide = GaussianLogit(
        mean=np.array([-1e4, 0, 1e4]), variance=np.array([0, 1e6, 1e8]), factor=np.pi / 8
    )
    moments = wide.moments()
    for values in (moments.prob, moments.variance, moments.mutual_information):
        assert np.isfinite(values).all()


def test_mean_field_follows_its_formula() -> None:
    prob = posterior(2.0, 3.0, factor=0.1).prob()[0]
    assert prob == pytest.approx(1 / (1 + np.exp(-2 / np.sqrt(1.3))))


@pytest.mark.parametrize("mean", [-5.0, -1.0, 0.3, 4.0])
@pytest.mark.parametrize("variance", [0.01, 1.0, 9.0])
def test_quadrature_agrees_with_monte_carlo(mean: float, variance: float) -> None:
    draws = np.random.default_rng(0).normal(mean, np.sqrt(variance), 400_000)
    prob = 1 / (1 + np.exp(-draws))
    entropy = -prob * np.log(prob) - (1 - prob) * np.log1p(-prob)
    centre = prob.mean()
    information = -centre * np.log(centre) - (1 - centre) * np.log1p(-centre) - entropy.mean()
    moments = posterior(mean, variance).moments()
    assert moments.variance[0] == pytest.approx(prob.var(), rel=0.02, abs=1e-6)
    assert moments.mutual_information[0] == pytest.approx(information, rel=0.02, abs=1e-6)
    assert moments.prob[0] == pytest.approx(centre, abs=0.02)


@given(mean=st.floats(-30, 30), variance=st.floats(0, 100))
def test_moments_stay_in_range(mean: float, variance: float) -> None:
    moments = posterior(mean, variance).moments()
    assert 0 <= moments.prob[0] <= 1
    assert 0 <= moments.variance[0] <= 0.25
    assert 0 <= moments.mutual_information[0] <= LN2


@given(mean=st.floats(-20, 20), variance=st.floats(0, 50))
def test_labels_swapped_mirror_the_moments(mean: float, variance: float) -> None:
    one, other = posterior(mean, variance).moments(), posterior(-mean, variance).moments()
    assert one.prob[0] == pytest.approx(1 - other.prob[0], abs=1e-12)
    assert one.variance[0] == pytest.approx(other.variance[0], abs=1e-12)


def test_affine_scales_mean_and_deviation() -> None:
    moved = posterior(2.0, 4.0).affine(0.5, -1.0)
    assert (moved.mean[0], moved.variance[0]) == (0.0, 1.0)


def test_join_restores_an_order() -> None:
    joined = posterior(0, 1).join([posterior(2, 3), posterior(4, 5)], np.array([1, 0]))
    assert joined.mean.tolist() == [4, 2]
    assert joined.variance.tolist() == [5, 3]


def sngp(inputs: int = 8, **changes: object) -> SNGPHead:
    torch.manual_seed(0)
    head = SNGPHead(inputs, inputs, Recipe(random_features=256, **changes))  # type: ignore[arg-type]
    return head.eval()


def test_constrain_bounds_the_spectral_norm() -> None:
    head = sngp()
    with torch.no_grad():
        head.dense.weight.mul_(50)
    for _ in range(60):
        head.constrain()
    assert torch.linalg.matrix_norm(head.dense.weight, 2).item() <= 0.95 * 1.001


def test_constrain_leaves_small_weights_alone() -> None:
    head = sngp()
    with torch.no_grad():
        head.dense.weight.mul_(0.01)
    before = head.dense.weight.clone()
    head.constrain()
    assert torch.equal(head.dense.weight, before)


def test_fourier_features_approximate_the_gaussian_kernel() -> None:
    torch.manual_seed(0)
    head = SNGPHead(8, 8, Recipe(random_features=4_096)).eval()
    x = torch.randn(6, 8)
    with torch.no_grad():
        phi = head.fourier(x)
        normed = head.norm(head.hidden(x))
    kernel = torch.exp(-(torch.cdist(normed, normed) ** 2) / (2 * 8))
    assert torch.allclose(phi @ phi.T, kernel, atol=0.08)


def test_precision_is_the_laplace_sum() -> None:
    head, x = sngp(), torch.randn(20, 8)
    head.observe(x[:7])
    head.observe(x[7:])
    with torch.no_grad():
        phi = head.fourier(x)
        p = torch.sigmoid(head.output(phi))
    expected = 1e-3 * torch.eye(256) + phi.T @ (p * (1 - p) * phi)
    assert torch.allclose(head.precision.float(), expected, atol=1e-5)
    exact = (phi.double() @ torch.linalg.inv(head.precision) * phi.double()).sum(1)
    assert np.allclose(head.posterior(x).variance, exact.numpy(), rtol=1e-3)


def test_variance_is_small_where_data_was_and_large_elsewhere() -> None:
    head = sngp()
    near = torch.tensor([1.0, -1, 1, -1, 0, 0, 2, -2]) + 0.01 * torch.randn(500, 8)
    head.observe(near)
    far = -near[:1] * 3
    seen, unseen = head.posterior(near[:1]), head.posterior(far)
    assert seen.variance[0] < unseen.variance[0] / 100


def test_deterministic_head_has_no_variance() -> None:
    head = build_head(4, 4, Recipe(head="deterministic")).eval()
    assert isinstance(head, DeterministicHead)
    head.observe(torch.randn(3, 4))
    head.constrain()
    with torch.no_grad():
        assert head.posterior(torch.randn(3, 4)).variance.tolist() == [0, 0, 0]

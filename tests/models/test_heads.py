"""Heads: Laplace's posterior, the norm bound, a process that knows what it has not seen."""

import numpy as np
import pytest
import torch

from modwatch.common.errors import ModelError
from modwatch.models.heads import DeterministicHead, Head, SNGPHead, build_head
from modwatch.models.posterior import LogitPosterior
from modwatch.models.recipe import Recipe


def posterior(head: Head, features: torch.Tensor) -> LogitPosterior:
    with torch.no_grad():
        mean, variance = head.logit_moments(features).double().numpy()
    return LogitPosterior(mean=mean[None], variance=variance[None], factor=head.factor)


def sngp(inputs: int = 8, **changes: object) -> SNGPHead:
    torch.manual_seed(0)
    values = {"random_features": 256, "linear_kernel": False} | changes
    head = SNGPHead(inputs, inputs, Recipe(**values))  # type: ignore[arg-type]
    return head.eval()


def spectral_norm(head: SNGPHead) -> float:
    return float(torch.linalg.matrix_norm(head.dense.weight.detach().double(), 2))


def test_constrain_bounds_the_spectral_norm():
    head = sngp()
    with torch.no_grad():
        head.dense.weight.mul_(50)
    for _ in range(60):
        head.constrain()
    assert spectral_norm(head) <= 0.95 * 1.001
    head.constrain(exact=True)
    assert spectral_norm(head) <= 0.95 * (1 + 1e-6)


def test_the_exact_constraint_needs_one_call():
    head = sngp()
    with torch.no_grad():
        head.dense.weight.mul_(50)
    head.constrain(exact=True)
    assert spectral_norm(head) == pytest.approx(0.95, rel=1e-6)


def test_constrain_leaves_small_weights_alone():
    head = sngp()
    with torch.no_grad():
        head.dense.weight.mul_(0.01)
    before = head.dense.weight.clone()
    head.constrain()
    head.constrain(exact=True)
    assert torch.equal(head.dense.weight, before)


@pytest.mark.parametrize("linear", [False, True])
def test_the_features_approximate_the_kernel(linear):
    torch.manual_seed(0)
    head = SNGPHead(8, 8, Recipe(random_features=4_096, linear_kernel=linear)).eval()
    x = torch.randn(6, 8)
    with torch.no_grad():
        phi = head.basis(x)
        normed = head.norm(head.hidden(x))
    kernel = torch.exp(-(torch.cdist(normed, normed) ** 2) / (2 * 8))
    kernel = kernel + linear * normed @ normed.T / 8
    assert torch.allclose(phi @ phi.T, kernel, atol=0.08)


def test_precision_is_the_laplace_sum():
    head, x = sngp(), torch.randn(20, 8)
    head.observe(x[:7])
    head.observe(x[7:])
    with torch.no_grad():
        phi = head.basis(x)
        p = torch.sigmoid(head.output(phi))
    expected = 1e-3 * torch.eye(256) + phi.T @ (p * (1 - p) * phi)
    assert torch.allclose(head.precision.float(), expected, atol=1e-5)
    exact = (phi.double() @ torch.linalg.inv(head.precision) * phi.double()).sum(1)
    assert np.allclose(posterior(head, x).variance[0], exact.numpy(), rtol=1e-3)


def test_variance_is_small_where_data_was_and_large_elsewhere():
    head = sngp()
    near = torch.tensor([1.0, -1, 1, -1, 0, 0, 2, -2]) + 0.01 * torch.randn(500, 8)
    head.observe(near)
    far = -near[:1] * 3
    seen, unseen = posterior(head, near[:1]), posterior(head, far)
    assert seen.variance[0, 0] < unseen.variance[0, 0] / 100


def test_deterministic_head_has_no_variance():
    head = build_head(4, 4, Recipe(method="deterministic")).eval()
    assert isinstance(head, DeterministicHead)
    head.observe(torch.randn(3, 4))
    head.constrain()
    with torch.no_grad():
        assert posterior(head, torch.randn(3, 4)).variance.tolist() == [[0, 0, 0]]


@pytest.mark.parametrize("linear", [False, True])
def test_the_posterior_is_laplace_in_numpy(linear):
    """A linear-Gaussian toy: φ is given, the weights have the posterior N(β, (τI + ΣppᵀΦΦᵀ)⁻¹)."""
    head = sngp(random_features=16, ridge=0.5, linear_kernel=linear)
    x, new = torch.randn(50, 8), torch.randn(7, 8)
    head.observe(x)
    with torch.no_grad():
        phi, other = (head.basis(value).double().numpy() for value in (x, new))
        weight = head.output.weight.double().numpy()[0]
        bias = float(head.output.bias)
    p = 1 / (1 + np.exp(-(phi @ weight + bias)))
    covariance = np.linalg.inv(0.5 * np.eye(16 + 8 * linear) + (phi.T * (p * (1 - p))) @ phi)
    found = posterior(head, new)
    assert found.mean[0] == pytest.approx(other @ weight + bias, rel=1e-5, abs=1e-6)
    assert found.variance[0] == pytest.approx(
        np.einsum("nd,de,ne->n", other, covariance, other), rel=1e-4
    )


def test_the_power_iteration_is_saved():
    head, other = sngp(), sngp()
    for _ in range(3):
        head.constrain()
    assert not torch.equal(head.direction, other.direction)
    other.load_state_dict(head.state_dict())
    assert torch.equal(head.direction, other.direction)


def test_loaded_weights_replace_the_covariance():
    head, x = sngp(), torch.randn(30, 8)
    before = posterior(head, x).variance
    taught = sngp()
    taught.observe(x)
    head.load_state_dict(taught.state_dict())
    assert (posterior(head, x).variance < before).all()


def test_a_precision_that_is_hard_to_invert_gets_a_larger_ridge():
    head = sngp(random_features=4)
    head.precision = torch.full((4, 4), 1e6, dtype=torch.float64)  # rank 1
    assert np.isfinite(posterior(head, torch.randn(2, 8)).variance).all()
    head.precision = torch.full((4, 4), float("nan"), dtype=torch.float64)
    head._root = None
    with pytest.raises(ModelError, match="larger `ridge`"):
        posterior(head, torch.randn(2, 8))

"""Heads: from the features of a comment to a distribution over its logit.

A head has four methods: `logit` for the training loss; `constrain`, called after each optimiser
step; `observe`, which adds training features to the posterior of the weights; `posterior`, for
predictions.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import xlogy
from torch import Tensor, nn

from modwatch.models.recipe import Recipe

Floats = NDArray[np.float64]

#: The error of 64 nodes against a fine grid, in variance and information, is at most 2e-4 up to
#: σ = 5, 0.01 at σ = 10 and 0.05 at σ = 20.
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(64)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
_ROWS_AT_ONCE = 8_192


@dataclass(frozen=True, kw_only=True)
class PredictiveMoments:
    """Moments of p(y=1|x,W) under the posterior of W for N comments; each (N,) float64."""

    #: Posterior mean of p(y=1|x), in [0, 1].
    prob: Floats
    #: Var_W p(y=1|x,W), in [0, 0.25].
    variance: Floats
    #: I(y; W|x) in nats, in [0, ln 2].
    mutual_information: Floats


@dataclass(frozen=True, kw_only=True)
class GaussianLogit:
    """N independent normal logits.

    `moments().prob` is the mean-field approximation σ(μ/√(1+λσ²)) of the posterior mean (SNGP, Liu
    et al. 2020; Kivlichan et al. 2021, section 5); at λ = π/8 it is within 0.02 of the mean itself.
    Variance and mutual information are computed by Gauss–Hermite quadrature, around the mean of
    the quadrature: they are never negative and do not depend on λ. With zero variance, all three
    are those of a deterministic model.

    >>> certain = GaussianLogit(mean=np.zeros(1), variance=np.zeros(1), factor=0.1).moments()
    >>> certain.prob.tolist(), certain.variance.tolist()
    ([0.5], [0.0])
    """

    #: (N,) means μ.
    mean: Floats
    #: (N,) variances σ² ≥ 0.
    variance: Floats
    #: λ of the mean-field approximation.
    factor: float

    def affine(self, scale: float, shift: float) -> "GaussianLogit":
        """Return the distribution of scale·logit + shift."""
        return replace(self, mean=scale * self.mean + shift, variance=scale**2 * self.variance)

    def join(self, parts: "Sequence[GaussianLogit]", order: NDArray[np.intp]) -> "GaussianLogit":
        """Return the rows of `parts`, one after another, taken in `order`."""
        return GaussianLogit(
            mean=np.concatenate([part.mean for part in parts])[order],
            variance=np.concatenate([part.variance for part in parts])[order],
            factor=self.factor,
        )

    def prob(self) -> Floats:
        """Return the mean-field probability σ(μ/√(1+λσ²)), (N,)."""
        return _sigmoid(self.mean / np.sqrt(1 + self.factor * self.variance))

    def moments(self) -> PredictiveMoments:
        """Return the mean-field probability, and variance and information by quadrature."""
        variance, information = np.empty_like(self.mean), np.empty_like(self.mean)
        for start in range(0, len(self.mean), _ROWS_AT_ONCE):
            rows = slice(start, start + _ROWS_AT_ONCE)
            variance[rows], information[rows] = _quadrature(self.mean[rows], self.variance[rows])
        return PredictiveMoments(
            prob=self.prob(), variance=variance, mutual_information=information
        )


class _Projected(nn.Module):
    """A dense layer with GELU, common to both heads."""

    def __init__(self, inputs: int, width: int, dropout: float) -> None:
        super().__init__()
        self.dense = nn.Linear(inputs, width)
        self.dropout = nn.Dropout(dropout)

    def hidden(self, features: Tensor) -> Tensor:
        hidden: Tensor = self.dropout(nn.functional.gelu(self.dense(self.dropout(features))))
        return hidden  # (N, width)


class DeterministicHead(_Projected):
    """A dense layer and a linear logit: p(x) = sigmoid(logit(x)), no weight uncertainty."""

    def __init__(self, inputs: int, width: int, recipe: Recipe) -> None:
        super().__init__(inputs, width, recipe.dropout)
        self.output = nn.Linear(width, 1)

    def logit(self, features: Tensor) -> Tensor:
        """Return the logits (N,) of features (N, d)."""
        logit: Tensor = self.output(self.hidden(features)).squeeze(-1)
        return logit

    def observe(self, features: Tensor) -> None:
        """Do nothing: the weights have no posterior."""

    def posterior(self, features: Tensor) -> GaussianLogit:
        """Return the logits of features (N, d) with zero variance."""
        mean = self.logit(features).double().numpy()
        return GaussianLogit(mean=mean, variance=np.zeros_like(mean), factor=0.0)

    def constrain(self) -> None:
        """Do nothing: the weights have no constraint."""


class SNGPHead(_Projected):
    """Spectral-normalised Gaussian process head (Liu et al. 2020; Kivlichan et al. 2021).

    A dense layer of bounded spectral norm preserves distances; its output, after LayerNorm, enters
    a fixed map of D random Fourier features φ = √(2/D)·cos(Ωh + b), the kernel approximation of
    Rahimi & Recht (2007); the logit is linear in φ. Laplace's method gives its weights the
    posterior covariance (τI + Σ p(1−p)φφᵀ)⁻¹ with ridge τ.
    """

    omega: Tensor
    phase: Tensor
    precision: Tensor
    _direction: Tensor
    _root: Tensor | None = None

    def __init__(self, inputs: int, width: int, recipe: Recipe) -> None:
        super().__init__(inputs, width, recipe.dropout)
        size = recipe.random_features
        self.factor, self.norm_bound = recipe.mean_field_factor, recipe.norm_bound
        self.norm = nn.LayerNorm(width, elementwise_affine=False)
        self.output = nn.Linear(size, 1)
        # The output of LayerNorm has length √width, which is the length scale of this kernel.
        self.register_buffer("omega", torch.randn(width, size) / sqrt(width))
        self.register_buffer("phase", torch.rand(size) * 2 * torch.pi)
        self.register_buffer("precision", recipe.ridge * torch.eye(size, dtype=torch.float64))
        self.register_buffer("_direction", torch.randn(inputs), persistent=False)

    def fourier(self, features: Tensor) -> Tensor:
        """Return φ (N, D) of features (N, d)."""
        normed = self.norm(self.hidden(features).float())
        angle = normed @ self.omega + self.phase
        return torch.cos(angle) * sqrt(2 / self.omega.shape[1])

    def logit(self, features: Tensor) -> Tensor:
        """Return the logits (N,) of features (N, d)."""
        logit: Tensor = self.output(self.fourier(features)).squeeze(-1)
        return logit

    @torch.no_grad()
    def observe(self, features: Tensor) -> None:
        """Add Σ p(1−p)φφᵀ of a batch (N, d) to the precision."""
        phi = self.fourier(features)
        prob = torch.sigmoid(self.output(phi))  # (N, 1)
        self.precision += (phi.T @ (phi * prob * (1 - prob))).double()
        self._root = None

    @torch.no_grad()
    def posterior(self, features: Tensor) -> GaussianLogit:
        """Return N(φᵀβ, φᵀΣφ) for features (N, d)."""
        phi = self.fourier(features)
        return GaussianLogit(
            mean=self.output(phi).squeeze(-1).double().numpy(),
            variance=(phi @ self._covariance_root()).square().sum(-1).double().numpy(),
            factor=self.factor,
        )

    def _covariance_root(self) -> Tensor:
        """Return R (D, D) with RRᵀ = Σ; computed once for all batches."""
        if self._root is None:
            # In double precision: the eigenvalues range from the ridge to the size of the corpus.
            lower = torch.linalg.cholesky(self.precision)
            eye = torch.eye(len(lower), dtype=lower.dtype)
            self._root = torch.linalg.solve_triangular(lower, eye, upper=False).T.float()
        return self._root

    @torch.no_grad()
    def constrain(self) -> None:
        """Scale the dense layer down to the norm bound, with one step of power iteration."""
        weight = self.dense.weight  # (width, inputs)
        image = nn.functional.normalize(weight @ self._direction, dim=0)
        back = weight.T @ image
        self._direction = nn.functional.normalize(back, dim=0)
        weight.mul_(torch.clamp(self.norm_bound / back.norm(), max=1.0))


def build_head(inputs: int, width: int, recipe: Recipe) -> SNGPHead | DeterministicHead:
    """Return an untrained head for features of `inputs` dimensions."""
    if recipe.head == "sngp":
        return SNGPHead(inputs, width, recipe)
    return DeterministicHead(inputs, width, recipe)


def _quadrature(mean: Floats, variance: Floats) -> tuple[Floats, Floats]:
    """Return Var p and H(E p) − E H(p) of normal logits, each (N,), by Gauss–Hermite."""
    logit = mean[:, None] + np.sqrt(variance)[:, None] * _NODES  # (N, nodes)
    prob = _sigmoid(logit)
    expected = prob @ _WEIGHTS
    spread = (prob - expected[:, None]) ** 2 @ _WEIGHTS
    information = _entropy(expected) - _entropy(prob) @ _WEIGHTS
    return spread, np.maximum(information, 0.0)  # negative by rounding only


def _sigmoid(logit: Floats) -> Floats:
    return np.asarray(0.5 * (1 + np.tanh(0.5 * logit)))  # no overflow at either end


def _entropy(prob: Floats) -> Floats:
    """Return the entropy in nats of Bernoulli(prob)."""
    return np.asarray(-xlogy(prob, prob) - xlogy(1 - prob, 1 - prob))

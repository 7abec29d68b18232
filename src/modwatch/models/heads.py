"""Heads: from the features of a comment to a distribution over its logit.

A head is a function from features to logits for the training loss, and has three more methods:
`constrain`, called after each optimiser step and before each evaluation; `observe`, which adds
training features to the posterior of the weights; `posterior`, for predictions.
"""

from math import sqrt

import torch
from torch import Tensor, nn

from modwatch.common.errors import ModelError
from modwatch.models.recipe import Recipe

#: The diagonal of the precision grows at most this many times by ten, where it cannot be inverted.
_MOST_JITTER = 6


class Head(nn.Module):
    """A dense layer with GELU, common to both heads."""

    #: λ of the mean-field logit; without variance it has no effect.
    factor = 0.0

    def __init__(self, inputs: int, width: int, dropout: float) -> None:
        super().__init__()
        self.dense = nn.Linear(inputs, width)
        self.dropout_in = nn.Dropout(dropout)
        self.dropout_out = nn.Dropout(dropout)

    def hidden(self, features: Tensor) -> Tensor:
        """Return the output of the dense layer (N, width)."""
        hidden: Tensor = nn.functional.gelu(self.dense(self.dropout_in(features)))
        dropped: Tensor = self.dropout_out(hidden)
        return dropped

    def observe(self, features: Tensor) -> None:
        """Do nothing: the weights have no posterior."""

    def forget(self) -> None:
        """Do nothing: nothing was observed."""

    def constrain(self, *, exact: bool = False) -> None:
        """Do nothing: the weights have no constraint."""

    def logit_moments(self, features: Tensor) -> Tensor:
        """Return mean and variance (2, N) of the logits of features (N, d), on their device."""
        raise NotImplementedError


class DeterministicHead(Head):
    """A dense layer and a linear logit: p(x) = sigmoid(logit(x)), no weight uncertainty."""

    def __init__(self, inputs: int, width: int, recipe: Recipe) -> None:
        super().__init__(inputs, width, recipe.dropout)
        self.output = nn.Linear(width, 1)

    def forward(self, features: Tensor) -> Tensor:
        """Return the logits (N,) of features (N, d)."""
        logit: Tensor = self.output(self.hidden(features)).squeeze(-1)
        return logit

    @torch.no_grad()
    def logit_moments(self, features: Tensor) -> Tensor:
        """Return the logits of features (N, d), and zero variance."""
        mean: Tensor = self(features)
        return torch.stack([mean, torch.zeros_like(mean)])


class SNGPHead(Head):
    """Spectral-normalised Gaussian process head (Liu et al. 2020; Kivlichan et al. 2021).

    A dense layer of bounded spectral norm preserves distances; its output h of width w, after
    LayerNorm, enters a fixed map of D random Fourier features √(2/D)·cos(Ωh + b), the kernel
    approximation of Rahimi & Recht (2007). With `Recipe.linear_kernel` the features h/√w stand
    next to them, which adds the linear kernel hᵀh'/w to the Gaussian one: what is linear is learnt
    as fast as by a linear head. The logit is linear in all features φ. Laplace's method gives its
    weights the posterior covariance (τI + Σ p(1−p)φφᵀ)⁻¹ with ridge τ.

    The sum is over all training comments at the final weights (`observe`).
    """

    omega: Tensor
    phase: Tensor
    precision: Tensor
    direction: Tensor
    _root: Tensor | None = None

    def __init__(self, inputs: int, width: int, recipe: Recipe) -> None:
        super().__init__(inputs, width, recipe.dropout)
        size = recipe.random_features
        self.factor, self.norm_bound = recipe.mean_field_factor, recipe.norm_bound
        self.ridge = recipe.ridge
        self.norm = nn.LayerNorm(width, elementwise_affine=False)
        self.linear = recipe.linear_kernel
        features = size + width * self.linear
        self.output = nn.Linear(features, 1)
        # The output of LayerNorm has length √width, which is the length scale of this kernel.
        self.register_buffer("omega", torch.randn(width, size) / sqrt(width))
        self.register_buffer("phase", torch.rand(size) * 2 * torch.pi)
        self.register_buffer("precision", recipe.ridge * torch.eye(features, dtype=torch.float64))
        #: Of the power iteration: the input that the dense layer lengthens most.
        self.register_buffer("direction", torch.randn(inputs))

    def forward(self, features: Tensor) -> Tensor:
        """Return the logits (N,) of features (N, d)."""
        logit: Tensor = self.output(self.basis(features)).squeeze(-1)
        return logit

    def basis(self, features: Tensor) -> Tensor:
        """Return φ (N, D), or (N, D + w) with the linear kernel, of features (N, d), in fp32."""
        with torch.autocast(features.device.type, enabled=False):
            normed = self.norm(self.hidden(features.float()))
            angle = normed @ self.omega + self.phase
            waves = torch.cos(angle) * sqrt(2 / self.omega.shape[1])
            return torch.cat([waves, normed / sqrt(normed.shape[1])], 1) if self.linear else waves

    @torch.no_grad()
    def observe(self, features: Tensor) -> None:
        """Add Σ p(1−p)φφᵀ of a batch (N, d) to the precision."""
        phi = self.basis(features)
        prob = torch.sigmoid(self.output(phi))  # (N, 1)
        self.precision += (phi.T @ (phi * prob * (1 - prob))).double()
        self._root = None

    @torch.no_grad()
    def forget(self) -> None:
        """Set the precision to the ridge, as before the first batch."""
        self.precision.copy_(self.ridge * torch.eye(len(self.precision)))
        self._root = None

    @torch.no_grad()
    def logit_moments(self, features: Tensor) -> Tensor:
        """Return φᵀβ and φᵀΣφ for features (N, d)."""
        phi = self.basis(features)
        variance = (phi @ self._covariance_root()).square().sum(-1)
        return torch.stack([self.output(phi).squeeze(-1), variance])

    @torch.no_grad()
    def constrain(self, *, exact: bool = False) -> None:
        """Scale the dense layer down to the norm bound.

        Args:
            exact: divide by the spectral norm itself, not by the estimate of one step of power
                iteration. The estimate is cheap, but too small: while the weights change fast, the
                norm is above the bound.
        """
        weight = self.dense.weight  # (width, inputs)
        norm = torch.linalg.matrix_norm(weight.double(), 2) if exact else self._power_step()
        weight.mul_(torch.clamp(self.norm_bound / norm, max=1.0).to(weight))

    def _power_step(self) -> Tensor:
        """Return a lower bound of the spectral norm, by one step of power iteration."""
        weight = self.dense.weight
        image = nn.functional.normalize(weight @ self.direction, dim=0)
        back = weight.T @ image
        self.direction.copy_(nn.functional.normalize(back, dim=0))
        estimate: Tensor = back.norm()
        return estimate

    def _covariance_root(self) -> Tensor:
        """Return R (D, D) with RRᵀ = Σ; computed once for all batches."""
        if self._root is None:
            # In double precision: the eigenvalues range from the ridge to the size of the corpus.
            lower = _cholesky(self.precision)
            eye = torch.eye(len(lower), dtype=lower.dtype, device=lower.device)
            self._root = torch.linalg.solve_triangular(lower, eye, upper=False).T.float()
        return self._root

    def _load_from_state_dict(self, *args: object, **kwargs: object) -> None:
        """Load the weights, and forget what was computed from others."""
        self._root = None
        super()._load_from_state_dict(*args, **kwargs)


def build_head(inputs: int, width: int, recipe: Recipe) -> Head:
    """Return an untrained head for features of `inputs` dimensions."""
    return (SNGPHead if recipe.is_sngp else DeterministicHead)(inputs, width, recipe)


def _cholesky(precision: Tensor) -> Tensor:
    """Return the Cholesky factor of a precision (D, D), with a larger ridge where it has none.

    Raises:
        ModelError: the precision is not finite, or has no factor with any ridge.
    """
    scale = precision.diagonal().mean()
    eye = torch.eye(len(precision), dtype=precision.dtype, device=precision.device)
    for power in range(_MOST_JITTER + 1):
        jitter = 0 if power == 0 else scale * 1e-15 * 10**power
        lower: Tensor
        lower, failed = torch.linalg.cholesky_ex(precision + jitter * eye)
        if not failed and lower.isfinite().all():
            return lower
    raise ModelError(
        "the precision of the SNGP head cannot be inverted; train with a larger `ridge`"
    )

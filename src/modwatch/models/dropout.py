"""Monte Carlo dropout: the same S thinned networks for all comments.

A pass is one draw of the weights (Gal & Ghahramani 2016): its masks are the same for every comment
and every position. So a prediction depends on model and comment alone, and not on what shares the
batch. Dropout of attention weights, which has no mask of a fixed size, stays off.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor, nn


class MaskedDropout(nn.Module):
    """In place of a dropout layer: during a pass, a fixed mask over the last dimension."""

    def __init__(self, p: float) -> None:
        super().__init__()
        #: Read by attention layers, which apply dropout themselves during training.
        self.p = p
        self.number: int | None = None
        self.reseed(0, 0)

    def reseed(self, *seed: int) -> None:
        """Draw the masks from another seed."""
        self._seed = seed
        self._masks: dict[tuple[int, int], Tensor] = {}

    def forward(self, values: Tensor) -> Tensor:
        """Return `values`, masked during a pass, at random during training."""
        if self.number is None:
            return nn.functional.dropout(values, self.p, self.training)
        return values * self._mask(values.shape[-1]).to(values.device, values.dtype)

    def _mask(self, size: int) -> Tensor:
        key = (self.number or 0, size)
        if key not in self._masks:
            entropy = np.random.SeedSequence([*self._seed, key[0]]).generate_state(1, np.uint64)
            generator = torch.Generator().manual_seed(int(entropy[0]))
            kept = torch.rand(size, generator=generator) >= self.p
            self._masks[key] = kept / (1 - self.p)
        return self._masks[key]


def replace_dropout(module: nn.Module, *, seed: int) -> list[MaskedDropout]:
    """Replace every dropout layer within `module`; return all such layers."""
    for parent in list(module.modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, nn.Dropout) and child.p > 0:
                setattr(parent, name, MaskedDropout(child.p))
    layers = [layer for layer in module.modules() if isinstance(layer, MaskedDropout)]
    for place, layer in enumerate(layers):
        layer.reseed(seed, place)
    return layers


@contextmanager
def dropout_pass(layers: list[MaskedDropout], number: int) -> Iterator[None]:
    """Use the masks of one pass within the block."""
    for layer in layers:
        layer.number = number
    try:
        yield
    finally:
        for layer in layers:
            layer.number = None

"""Monte Carlo dropout: the same S thinned networks for all comments.

A pass is one draw of the weights (Gal & Ghahramani 2016): its masks are the same for every comment
and every position. So a prediction depends on model and comment alone, and not on what shares the
batch. Dropout of attention weights, which has no mask of a fixed size, stays off.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

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
        self._masks: dict[tuple[int, int, torch.device, torch.dtype], Tensor] = {}

    def forward(self, values: Tensor) -> Tensor:
        """Return `values`, masked during a pass, at random during training."""
        if self.number is None:
            return nn.functional.dropout(values, self.p, self.training)
        return values * self._mask(self.number, values)

    def _mask(self, number: int, values: Tensor) -> Tensor:
        """Return the mask (d,) of a pass for values (…, d), on their device and of their type."""
        key = (number, values.shape[-1], values.device, values.dtype)
        if key not in self._masks:
            entropy = np.random.SeedSequence([*self._seed, number]).generate_state(1, np.uint64)
            generator = torch.Generator().manual_seed(int(entropy[0]))
            kept = torch.rand(key[1], generator=generator) >= self.p
            self._masks[key] = (kept / (1 - self.p)).to(values.device, values.dtype)
        return self._masks[key]


def replace_dropout(module: nn.Module, *, seed: int) -> list[MaskedDropout]:
    """Replace every dropout layer within `module`; return all such layers."""
    for parent in list(module.modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, nn.Dropout) and child.p > 0:
                setattr(parent, name, MaskedDropout(child.p))
    layers = _masked(module)
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


@contextmanager
def shared_embeddings(encoder: nn.Module) -> Iterator[None]:
    """Compute embeddings once within the block, in which all passes are of the same batch.

    Up to their dropout, the last thing that most encoders do with them, the passes do not differ.
    Of another encoder, each pass computes its own.
    """
    embeddings: Any = getattr(encoder, "embeddings", nn.Identity())
    layers = _masked(embeddings)
    if len(layers) != 1:
        yield
        return
    (dropout,), compute, shared = layers, embeddings.forward, list[Tensor]()

    def forward(*args: Any, **kwargs: Any) -> Any:
        if shared:
            return dropout(shared[0])
        calls: list[tuple[Tensor, Tensor]] = []
        with dropout.register_forward_hook(
            lambda _, given, returned: calls.append((given[0], returned))
        ):
            output = compute(*args, **kwargs)
        shared.extend(given for given, returned in calls if returned is output)
        return output

    embeddings.forward = forward
    try:
        yield
    finally:
        del embeddings.forward


def _masked(module: nn.Module) -> list[MaskedDropout]:
    return [layer for layer in module.modules() if isinstance(layer, MaskedDropout)]

"""Linear layers for prediction in bfloat16 on a CPU: weights in the layout of oneDNN, with GELU."""

from itertools import product
from typing import Any

import torch
from torch import Tensor, nn
from transformers.activations import GELUActivation

#: Names that encoders of transformers give to a linear layer and to the activation behind it.
_FOLLOWED = (("dense", "intermediate_act_fn"), ("lin1", "activation"))


class PackedLinear(nn.Module):
    """A linear layer for prediction, with the exact GELU behind it or without.

    oneDNN multiplies by a weight in a layout of its own, which it otherwise makes in every call. It
    applies GELU to each block of the product while that is in the cache.
    """

    def __init__(self, layer: nn.Linear, *, gelu: bool = False) -> None:
        """Copy the weight of `layer`, in bfloat16 on a CPU, into the layout."""
        super().__init__()
        self.in_features, self.out_features = layer.in_features, layer.out_features
        #: Opaque (out_features, in_features); no parameter, since nothing trains or saves it.
        self.weight = torch.ops.mkldnn._reorder_linear_weight(layer.weight.detach())
        self.bias = layer.bias
        self._activation = "gelu" if gelu else "none"

    def forward(self, values: Tensor) -> Tensor:
        """Return the outputs (…, out_features) of values (…, in_features)."""
        result: Tensor = torch.ops.mkldnn._linear_pointwise(
            values, self.weight, self.bias, self._activation, [], "none"
        )
        return result


def can_pack() -> bool:
    """Return whether oneDNN has products in bfloat16 for this CPU."""
    available = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    return bool(available and torch.ops.mkldnn._is_mkldnn_bf16_supported())


def pack(module: nn.Module) -> None:
    """Replace the linear layers within `module`, in bfloat16 on a CPU, and the GELU behind them."""
    for parent, (linear, activation) in product(list(module.modules()), _FOLLOWED):
        layer, following = getattr(parent, linear, None), getattr(parent, activation, None)
        if type(layer) is nn.Linear and _is_exact_gelu(following):
            setattr(parent, linear, PackedLinear(layer, gelu=True))
            setattr(parent, activation, nn.Identity())
    for parent in list(module.modules()):
        for name, child in list(parent.named_children()):
            if type(child) is nn.Linear:  # no subclass: it may compute something else
                setattr(parent, name, PackedLinear(child))


def _is_exact_gelu(activation: Any) -> bool:
    return type(activation) is GELUActivation

"""Encoders in bfloat16: packed linear layers, faster attention, agreement with fp32."""

import copy
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.activations import GELUActivation
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from modwatch.statistics.decisions import is_flagged

#: Names of attentions among those of transformers.
_BLOCKED, _ASYNC = "modwatch_blocked", "modwatch_async"
#: Most attention scores at once: in bfloat16 half a megabyte, which stays in the second-level cache
#: between the two products and the softmax.
_SCORES = 262_144
#: PyTorch's private operators that `PackedLinear` calls; without them layers stay as they are.
_OPERATORS = ("_reorder_linear_weight", "_linear_pointwise", "_is_mkldnn_bf16_supported")
#: Share of the comments that is reviewed, for `reviewed_overlap`.
_REVIEWED = 0.1

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
    """Return whether oneDNN has products in bfloat16 for this CPU, and PyTorch the operators."""
    available = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    if not available or not all(hasattr(torch.ops.mkldnn, name) for name in _OPERATORS):
        return False
    return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


def pack(module: nn.Module) -> None:
    """Replace the linear layers within `module`, in bfloat16 on a CPU, and the GELU behind them."""
    for parent, (linear, activation) in product(list(module.modules()), _FOLLOWED):
        layer, following = getattr(parent, linear, None), getattr(parent, activation, None)
        if type(layer) is nn.Linear and type(following) is GELUActivation:
            setattr(parent, linear, PackedLinear(layer, gelu=True))
            setattr(parent, activation, nn.Identity())
    for parent in list(module.modules()):
        for name, child in list(parent.named_children()):
            if type(child) is nn.Linear:  # no subclass: it may compute something else
                setattr(parent, name, PackedLinear(child))


def in_bf16(encoder: PreTrainedModel) -> PreTrainedModel:
    """Return a copy of `encoder` with weights in bfloat16, for prediction.

    Attention, where transformers lets it be chosen, is in blocks on a CPU; on CUDA it is that of
    PyTorch, with a mask that is made without waiting for the device. On a CPU, linear layers have
    their weights in the layout of oneDNN (`PackedLinear`).
    """
    coarse: PreTrainedModel = copy.deepcopy(encoder).to(torch.bfloat16)
    device = next(coarse.parameters()).device
    if getattr(coarse, "_supports_sdpa", False):
        coarse.set_attn_implementation(_BLOCKED if device.type == "cpu" else _ASYNC)
    if device.type == "cpu" and can_pack():
        pack(coarse)
    return coarse


def blocked_attention(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    scaling: float | None = None,
    **others: Any,
) -> tuple[Tensor, None]:
    """Return scaled dot-product attention (N, T, heads, d/heads), for prediction.

    PyTorch's fused kernel is slower in bfloat16 on a CPU (`benchmarks/scoring.py --attention`).
    What it alone can do is left to it: causal attention, biases of positions, grouped queries.

    Args:
        module: the layer.
        query, key, value: (N, heads, T, d/heads).
        attention_mask: (N, 1, T, T), true where a position takes part; None: everywhere.
        scaling: of the scores; None: 1/√(d/heads).
        others: what else transformers passes to an attention.
    """
    if not _plain(module, query, key, attention_mask, others):
        given = module, query, key, value, attention_mask
        found: tuple[Tensor, None] = sdpa_attention_forward(*given, scaling=scaling, **others)
        return found
    rows, heads, length, width = query.shape
    scale = width**-0.5 if scaling is None else scaling
    output = query.new_empty(rows, length, heads, width)
    some = min(heads, max(1, _SCORES // length**2))  # heads of a block, and comments
    step = max(1, _SCORES // (heads * length**2))
    # Not -inf: padding outside a local window has no position at all, and NaN would spread.
    lowest = torch.finfo(query.dtype).min
    for row, head in product(range(0, rows, step), range(0, heads, some)):
        block = slice(row, row + step), slice(head, head + some)
        scores = query[block] @ key[block].transpose(2, 3)
        if attention_mask is None:
            scores.mul_(scale)
        else:  # scale and mask in one pass, which is three times as fast as `masked_fill_`
            bias = torch.where(attention_mask[block[0]], 0.0, lowest).to(scores.dtype)
            torch.add(bias, scores, alpha=scale, out=scores)
        output[block[0], :, block[1]] = (scores.softmax(-1) @ value[block]).transpose(1, 2)
    return output, None


def _plain(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    mask: Tensor | None,
    others: dict[str, Any],
) -> bool:
    """Return whether every position may look at every other that the mask does not exclude."""
    if mask is None and (others.get("is_causal") or getattr(module, "is_causal", True)):
        return False
    if mask is not None and (mask.dtype != torch.bool or mask.shape[:2] != (len(query), 1)):
        return False
    special = ("position_bias", "cache", "softcap")
    return query.shape == key.shape and all(others.get(name) is None for name in special)


def mask_without_waiting(*given: Any, **others: Any) -> Tensor | None:
    """Return the mask of transformers, also where nothing is padded.

    To leave it out there, transformers looks at its values, which waits for the device.
    """
    mask: Tensor | None = sdpa_mask(*given, **(others | {"allow_is_bidirectional_skip": False}))
    return mask


AttentionInterface.register(_BLOCKED, blocked_attention)
AttentionMaskInterface.register(_BLOCKED, sdpa_mask)
AttentionInterface.register(_ASYNC, sdpa_attention_forward)
AttentionMaskInterface.register(_ASYNC, mask_without_waiting)


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """What changes between two precisions of the same model."""

    #: Comments that were compared.
    comments: int
    #: Largest |Δp|, in [0, 1].
    largest_difference: float
    #: Share of the comments that only one of them flags, in [0, 1].
    decisions_changed: float
    #: Share of the tenth with the highest p(1−p) that both have in common, in [0, 1].
    reviewed_overlap: float

    @property
    def close(self) -> bool:
        """Whether one may stand for the other.

        No probability differs by more than 0.005, at most one decision in a thousand does, and at
        least 99 % of the reviewed comments are the same.
        """
        return (
            self.largest_difference <= 5e-3
            and self.decisions_changed <= 1e-3
            and self.reviewed_overlap >= 0.99
        )


def agreement(
    exact: NDArray[np.floating], coarse: NDArray[np.floating], *, threshold: float
) -> Agreement:
    """Return the agreement of the probabilities (n,) of the same comments, one at least.

    >>> agreement(np.array([0.2, 0.6]), np.array([0.201, 0.6]), threshold=0.5)
    Agreement(comments=2, largest_difference=0.001, decisions_changed=0.0, reviewed_overlap=1.0)
    """
    reviewed = max(1, round(_REVIEWED * len(exact)))
    first, second = (
        set(np.argsort(-prob * (1 - prob), kind="stable")[:reviewed].tolist())
        for prob in (exact, coarse)
    )
    return Agreement(
        comments=len(exact),
        largest_difference=round(float(np.abs(exact - coarse).max()), 6),
        decisions_changed=float(
            np.mean(is_flagged(exact, threshold) != is_flagged(coarse, threshold))
        ),
        reviewed_overlap=len(first & second) / reviewed,
    )

"""Encoders with weights in bfloat16, and the attention that is fastest for them on a device."""

import copy
from itertools import product
from typing import Any

import torch
from torch import Tensor
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask
from transformers.utils import is_flash_attn_2_available

from modwatch.models.packing import can_pack, pack

#: Names of attentions among those of transformers.
_BLOCKED, _ASYNC, _FLASH = "modwatch_blocked", "modwatch_async", "flash_attention_2"
#: Most attention scores at once: in bfloat16 half a megabyte, which stays in the second-level cache
#: between the two products and the softmax.
_SCORES = 262_144


def in_bf16(encoder: PreTrainedModel) -> PreTrainedModel:
    """Return a copy of `encoder` with weights in bfloat16, for prediction.

    Attention is that of `fastest_attention`, where transformers lets it be chosen. On a CPU, linear
    layers have their weights in the layout of oneDNN (`models.packing`).
    """
    coarse: PreTrainedModel = copy.deepcopy(encoder).to(torch.bfloat16)
    device = next(coarse.parameters()).device
    if getattr(coarse.config, "_attn_implementation", None) == "sdpa":
        coarse.set_attn_implementation(fastest_attention(coarse, device))
    if device.type == "cpu" and can_pack():
        pack(coarse)
    return coarse


def fastest_attention(encoder: PreTrainedModel, device: torch.device) -> str:
    """Return the attention, by its name in transformers, for an encoder in bfloat16 on `device`.

    On a CPU, attention in blocks. On CUDA, FlashAttention 2, which computes nothing for padding, if
    its package is installed and the encoder supports it: nothing is downloaded. Otherwise that of
    PyTorch, with a mask that is made without waiting for the device.
    """
    if device.type == "cpu":
        return _BLOCKED
    kernels = getattr(encoder, "_compatible_flash_implementations", None)
    supported = getattr(encoder, "_supports_flash_attn", False) and (
        kernels is None or _FLASH in kernels  # transformers would fetch another kernel
    )
    return _FLASH if device.type == "cuda" and supported and is_flash_attn_2_available() else _ASYNC


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
        query: (N, heads, T, d/heads), as are `key` and `value`.
        key: of the same shape.
        value: of the same shape.
        attention_mask: (N, 1, T, T), true where a position takes part; None: everywhere.
        scaling: of the scores; None: 1/√(d/heads).
        others: what transformers passes to an attention beside these.
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

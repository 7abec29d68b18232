"""Encoders with weights in bfloat16, and an attention for them that fits the caches of a CPU."""

import copy
from itertools import product
from typing import Any

import torch
from torch import Tensor
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

#: Name of the attention among those of transformers.
_BLOCKED = "modwatch_blocked"
#: Most attention scores at once: in bfloat16 half a megabyte, which stays in the second-level cache
#: between the two products and the softmax.
_SCORES = 262_144


def in_bf16(encoder: PreTrainedModel) -> PreTrainedModel:
    """Return a copy of `encoder` with weights in bfloat16.

    On a CPU, attention is computed in blocks, where transformers lets it be chosen.
    """
    coarse: PreTrainedModel = copy.deepcopy(encoder).to(torch.bfloat16)
    on_cpu = next(coarse.parameters()).device.type == "cpu"
    if on_cpu and getattr(coarse.config, "_attn_implementation", None) == "sdpa":
        coarse.set_attn_implementation(_BLOCKED)
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
        scores = (query[block] @ key[block].transpose(2, 3)).mul_(scale)
        if attention_mask is not None:
            scores.masked_fill_(~attention_mask[block[0]], lowest)
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


AttentionInterface.register(_BLOCKED, blocked_attention)
AttentionMaskInterface.register(_BLOCKED, sdpa_mask)

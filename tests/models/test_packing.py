"""Without PyTorch's private operators, linear layers stay those of PyTorch."""

import pytest
import torch
from transformers import BertConfig, BertModel

from modwatch.models import bfloat16


@pytest.mark.parametrize("missing", [True, False])
def test_an_encoder_in_bfloat16_needs_no_private_operator(missing, monkeypatch):
    if missing:
        monkeypatch.setattr(bfloat16, "_OPERATORS", ("no_such_operator",))
        assert not bfloat16.can_pack()
    config = BertConfig(
        vocab_size=20, hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=32,
    )  # fmt: skip
    torch.manual_seed(0)
    encoder = BertModel(config).eval()
    ids = torch.arange(12).reshape(2, 6)
    coarse = bfloat16.in_bf16(encoder)
    packed = [one for one in coarse.modules() if isinstance(one, bfloat16.PackedLinear)]
    assert bool(packed) is bfloat16.can_pack()
    with torch.inference_mode():
        found, expected = (one(ids).last_hidden_state.float() for one in (coarse, encoder))
    assert torch.allclose(found, expected, atol=0.1)

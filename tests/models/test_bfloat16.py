"""Encoders in bfloat16: attention in blocks is attention, and decisions stay."""

import copy
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention
from transformers import (
    BertConfig,
    BertModel,
    DistilBertConfig,
    DistilBertModel,
    ModernBertConfig,
    ModernBertModel,
)

from modwatch.models import bfloat16, training
from modwatch.models.batches import padded
from modwatch.models.bfloat16 import (
    Agreement,
    PackedLinear,
    agreement,
    blocked_attention,
    can_pack,
    in_bf16,
    pack,
)
from modwatch.models.classifier import build_classifier
from modwatch.models.recipe import Recipe
from modwatch.models.training import train

Corpus = tuple[list[str], list[int]]


def heads(rows: int, length: int, count: int = 2) -> torch.Tensor:
    return torch.randn(rows, count, length, 4)


@pytest.mark.parametrize("scores", [1, 300, 1 << 20])
@pytest.mark.parametrize("masked", [False, True])
def test_blocks_give_the_attention_of_pytorch(scores, masked, monkeypatch):
    monkeypatch.setattr(bfloat16, "_SCORES", scores)
    torch.manual_seed(0)
    query, key, value = heads(5, 7), heads(5, 7), heads(5, 7)
    kept = torch.arange(7) < torch.tensor([1, 3, 7, 2, 5])[:, None]
    mask = kept[:, None, None].expand(5, 1, 7, 7) if masked else None
    module = torch.nn.Module()
    module.is_causal = False  # type: ignore[assignment]
    found, _ = blocked_attention(module, query, key, value, mask, scaling=0.3)
    expected = scaled_dot_product_attention(query, key, value, attn_mask=mask, scale=0.3)
    assert torch.allclose(found, expected.transpose(1, 2), atol=1e-6)


def test_what_is_no_plain_attention_is_left_to_transformers():
    torch.manual_seed(0)
    query, key, value = heads(2, 3), heads(2, 3), heads(2, 3)
    module = torch.nn.Module()
    module.is_causal = True  # type: ignore[assignment]
    found, _ = blocked_attention(module, query, key, value, None)
    expected = scaled_dot_product_attention(query, key, value, is_causal=True)
    assert torch.allclose(found, expected.transpose(1, 2), atol=1e-6)


@pytest.mark.parametrize(
    "encoder",
    [
        BertModel(
            BertConfig(
                vocab_size=50,
                hidden_size=32,
                num_hidden_layers=2,
                num_attention_heads=4,
                intermediate_size=64,
            )
        ),
        DistilBertModel(
            DistilBertConfig(vocab_size=50, dim=32, n_layers=2, n_heads=4, hidden_dim=64)
        ),
        ModernBertModel(  # each position sees one on either side: some padding sees none
            ModernBertConfig(
                vocab_size=50,
                hidden_size=32,
                num_hidden_layers=3,
                num_attention_heads=4,
                intermediate_size=64,
                local_attention=2,
                pad_token_id=0,
            )
        ),
    ],
    ids=["bert", "distilbert", "modernbert"],
)
def test_an_encoder_in_bf16_is_a_copy_close_to_the_original(encoder):
    coarse = in_bf16(encoder.eval())
    assert {parameter.dtype for parameter in coarse.parameters()} == {torch.bfloat16}
    assert {parameter.dtype for parameter in encoder.parameters()} == {torch.float32}
    assert coarse.config._attn_implementation == "modwatch_blocked"
    assert encoder.config._attn_implementation == "sdpa"
    ids = torch.randint(1, 50, (3, 6))
    mask = torch.tensor([[1] * 6, [1, 1, 0, 0, 0, 0], [1] * 5 + [0]])
    with torch.inference_mode():
        exact, near = (value(ids, attention_mask=mask)[0] for value in (encoder, coarse))
    assert (exact - near.float())[mask.bool()].abs().max() < 0.06


@pytest.mark.parametrize(("attention", "waits"), [("modwatch_async", False), ("sdpa", True)])
def test_no_value_is_read_from_a_device_between_batches(attention, waits):
    """On the meta device there are no values: whoever reads one fails."""
    size = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}
    encoder = BertModel(BertConfig(vocab_size=9, intermediate_size=8, **size))
    coarse = in_bf16(encoder.eval().to("meta"))
    assert coarse.config._attn_implementation == "modwatch_async"
    coarse.set_attn_implementation(attention)
    classifier = build_classifier(coarse, Recipe(method="deterministic"))
    batch = padded([[1, 2], [3]], pad_id=0).to(torch.device("meta"))
    failure = pytest.raises(RuntimeError, match="meta") if waits else nullcontext()
    with torch.inference_mode(), failure:
        assert classifier.features(batch.ids, batch.mask).shape == (2, 8)


def test_the_mask_that_is_made_without_waiting_is_that_of_transformers():
    torch.manual_seed(0)
    size = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}
    encoder = BertModel(BertConfig(vocab_size=9, intermediate_size=8, **size)).eval()
    for lengths in ([3, 3], [1, 3]):
        batch = padded([[5] * length for length in lengths], pad_id=0)
        states = []
        for attention in ("sdpa", "modwatch_async"):
            encoder.set_attn_implementation(attention)
            with torch.inference_mode():
                found = encoder(input_ids=batch.ids, attention_mask=batch.mask).last_hidden_state
            states.append(found[batch.mask.bool()])
        assert torch.allclose(*states, atol=1e-6)


def test_agreement_counts_what_changes():
    exact = np.linspace(0.05, 0.55, 101)
    assert agreement(exact, exact, threshold=0.5) == Agreement(
        comments=101, largest_difference=0.0, decisions_changed=0.0, reviewed_overlap=1.0
    )
    moved = exact.copy()
    moved[91] -= 0.25  # 0.505: flagged, and among the ten that are reviewed
    found = agreement(exact, moved, threshold=0.5)
    assert found.largest_difference == pytest.approx(0.25)
    assert found.decisions_changed == pytest.approx(1 / 101)
    assert found.reviewed_overlap == 0.9
    assert not found.close


def test_one_difference_too_large_is_enough():
    within = Agreement(
        comments=1_000, largest_difference=0.005, decisions_changed=0.001, reviewed_overlap=0.99
    )
    assert within.close
    assert not replace(within, largest_difference=0.0051).close
    assert not replace(within, decisions_changed=0.0011).close
    assert not replace(within, reviewed_overlap=0.989).close


@pytest.mark.parametrize(("layers", "fast"), [(1, True), (0, True)])
def test_training_records_the_agreement_where_bf16_is_faster(
    layers, fast, corpus, tiny_recipe, monkeypatch
):
    monkeypatch.setattr(training, "has_bf16", lambda _: fast)
    recipe = replace(tiny_recipe, layers=layers, max_steps=2)
    facts = train(*corpus, recipe=recipe, seed=1).facts
    assert bool(facts.bf16) is bool(layers and fast)
    if facts.bf16:
        assert facts.bf16["comments"] == facts.validation["n"]
        assert facts.bf16["largest_difference"] < 0.05


pytestmark = pytest.mark.skipif(not can_pack(), reason="oneDNN has no bfloat16 for this CPU")


def close(found: torch.Tensor, expected: torch.Tensor) -> bool:
    return torch.allclose(found.float(), expected.float(), rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize(
    ("shape", "bias", "gelu"),
    [((1, 24), True, False), ((5, 24), False, True), ((3, 7, 24), True, True)],
)
@torch.inference_mode()
def test_a_layer(shape, bias, gelu):
    torch.manual_seed(0)
    layer = nn.Linear(24, 10, bias=bias)
    values = 3 * torch.randn(*shape)
    expected = nn.functional.gelu(layer(values)) if gelu else layer(values)
    found = PackedLinear(layer.to(torch.bfloat16), gelu=gelu)(values.to(torch.bfloat16))
    assert found.dtype == torch.bfloat16
    assert found.shape == expected.shape
    assert close(found, expected)


def bert(activation: str) -> nn.Module:
    size = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
    config = BertConfig(vocab_size=50, intermediate_size=64, hidden_act=activation, **size)
    return BertModel(config)


def distilbert(activation: str) -> nn.Module:
    size = {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64}
    return DistilBertModel(DistilBertConfig(vocab_size=50, activation=activation, **size))


@pytest.mark.parametrize("build", [bert, distilbert])
@pytest.mark.parametrize(
    ("activation", "in_the_product"), [("gelu", 2), ("gelu_new", 0), ("relu", 0)]
)
def test_an_encoder(build, activation, in_the_product):
    torch.manual_seed(0)
    plain = build(activation).eval().to(torch.bfloat16)
    with torch.no_grad():
        for parameter in plain.parameters():
            parameter.mul_(3)  # so that an activation matters
    packed = copy.deepcopy(plain)
    pack(packed)
    layers = [module for module in packed.modules() if isinstance(module, PackedLinear)]
    assert len(layers) == sum(type(module) is nn.Linear for module in plain.modules())
    assert sum(isinstance(module, nn.Identity) for module in packed.modules()) == in_the_product
    ids = torch.randint(1, 50, (3, 6))
    with torch.inference_mode():
        expected, found = (value(ids).last_hidden_state for value in (plain, packed))
    assert (found.float() - expected.float()).abs().max() < 0.25
    assert (found.float() - expected.float()).abs().mean() < 0.02


def test_what_may_compute_something_else_stays():
    class Doubled(nn.Linear):
        def forward(self, values: torch.Tensor) -> torch.Tensor:
            return 2 * super().forward(values)

    module = nn.Sequential(Doubled(4, 4), nn.Linear(4, 4)).to(torch.bfloat16)
    pack(module)
    assert [type(item) for item in module] == [Doubled, PackedLinear]

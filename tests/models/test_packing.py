"""Packed linear layers compute what the layers and activations that they replace compute."""

import copy

import pytest
import torch
from torch import nn
from transformers import BertConfig, BertModel, DistilBertConfig, DistilBertModel

from modwatch.models.packing import PackedLinear, can_pack, pack

pytestmark = pytest.mark.skipif(not can_pack(), reason="oneDNN has no bfloat16 for this CPU")


def close(found: torch.Tensor, expected: torch.Tensor) -> bool:
    return torch.allclose(found.float(), expected.float(), rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("gelu", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("shape", [(1, 24), (5, 24), (3, 7, 24)])
@torch.inference_mode()
def test_a_layer(shape: tuple[int, ...], bias: bool, gelu: bool) -> None:
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
def test_an_encoder(build: "type[nn.Module]", activation: str, in_the_product: int) -> None:
    torch.manual_seed(0)
    plain = build(activation).eval().to(torch.bfloat16)
    with torch.no_grad():
        for each in plain.parameters():
            each.mul_(3)  # so that an activation matters
    packed = copy.deepcopy(plain)
    pack(packed)
    layers = [each for each in packed.modules() if isinstance(each, PackedLinear)]
    assert len(layers) == sum(type(each) is nn.Linear for each in plain.modules())
    assert sum(isinstance(each, nn.Identity) for each in packed.modules()) == in_the_product
    ids = torch.randint(1, 50, (3, 6))
    with torch.inference_mode():
        expected, found = (each(ids).last_hidden_state for each in (plain, packed))
    assert (found.float() - expected.float()).abs().max() < 0.25
    assert (found.float() - expected.float()).abs().mean() < 0.02


def test_what_may_compute_something_else_stays() -> None:
    class Doubled(nn.Linear):
        def forward(self, values: torch.Tensor) -> torch.Tensor:
            return 2 * super().forward(values)

    module = nn.Sequential(Doubled(4, 4), nn.Linear(4, 4)).to(torch.bfloat16)
    pack(module)
    assert [type(each) for each in module] == [Doubled, PackedLinear]

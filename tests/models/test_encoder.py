from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import T5Config

from modwatch.errors import ModelError
from modwatch.models.encoder import (
    encoder_config,
    encoder_from_config,
    hidden_states,
    pool,
    saved_encoder,
    small_encoder,
)
from modwatch.models.recipe import Pooling, Recipe


@pytest.mark.parametrize("layers", [0, 2])
def test_small_encoder_gives_states(layers: int) -> None:
    recipe = Recipe(layers=layers, hidden_size=8, max_length=6)
    encoder = small_encoder(recipe, vocab_size=20, pad_id=0)
    ids = torch.ones(2, 6, dtype=torch.long)
    assert hidden_states(encoder, ids, ids).shape == (2, 6, 8)


@pytest.mark.parametrize("pooling", ["mean", "max", "mean-max"])
@given(padding=st.integers(1, 5), seed=st.integers(0, 99))
def test_pooling_ignores_padding(pooling: Pooling, padding: int, seed: int) -> None:
    states = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(seed))
    rubbish = torch.full((2, padding, 4), 1e9)
    mask = torch.ones(2, 3, dtype=torch.long)
    longer = torch.cat([mask, torch.zeros(2, padding, dtype=torch.long)], dim=1)
    plain = pool(states, mask, pooling)
    assert torch.allclose(pool(torch.cat([states, rubbish], 1), longer, pooling), plain)


def test_encoder_decoder_is_refused() -> None:
    config = T5Config(vocab_size=16, d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2)
    ids = torch.ones(1, 3, dtype=torch.long)
    with pytest.raises(ModelError, match=r"T5Model.*encoder-only"):
        hidden_states(encoder_from_config(config), ids, ids)


def test_folder_without_encoder_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=tmp_path.name):
        saved_encoder(tmp_path)
    with pytest.raises(ModelError, match=r"config\.json"):
        encoder_config(tmp_path)


def test_folder_asking_for_remote_code_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(
        '{"model_type": "evil", "auto_map": {"AutoConfig": "evil.Config", "AutoModel": "evil.M"}}'
    )
    (tmp_path / "evil.py").write_text("raise SystemExit('ran')")
    with pytest.raises(ModelError, match=r"config\.json"):
        encoder_config(tmp_path)
    with pytest.raises(ModelError):
        saved_encoder(tmp_path)

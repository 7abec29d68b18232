import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import BertConfig, BertModel, RobertaConfig, RobertaModel, T5Config, T5Model

from modwatch.common.errors import ModelError
from modwatch.models.encoder import (
    encode,
    hidden_states,
    longest_input,
    pool,
    pretrained_encoder,
    pretrained_tokenizer,
    small_encoder,
    train_tokenizer,
)
from modwatch.models.recipe import Pooling, Recipe


@pytest.mark.parametrize("layers", [0, 2])
def test_small_encoder_gives_states(layers: int) -> None:
    recipe = Recipe(layers=layers, hidden_size=8, max_length=6)
    encoder = small_encoder(recipe, vocab_size=20, pad_id=0)
    ids = torch.ones(2, 6, dtype=torch.long)
    assert hidden_states(encoder, ids, ids).shape == (2, 6, 8)


@pytest.mark.parametrize("pooling", ["mean", "max"])
@given(padding=st.integers(1, 5), seed=st.integers(0, 99))
def test_pooling_ignores_padding(pooling: Pooling, padding: int, seed: int) -> None:
    states = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(seed))
    rubbish = torch.full((2, padding, 4), 1e9)
    mask = torch.ones(2, 3, dtype=torch.long)
    longer = torch.cat([mask, torch.zeros(2, padding, dtype=torch.long)], dim=1)
    plain = pool(states, mask, pooling)
    assert torch.allclose(pool(torch.cat([states, rubbish], 1), longer, pooling), plain)


def test_encoder_decoder_is_refused(tmp_path: Path) -> None:
    config = T5Config(vocab_size=16, d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2)
    T5Model(config).save_pretrained(tmp_path)
    with pytest.raises(ModelError, match=r"is an encoder-decoder \(t5\); use an encoder-only"):
        pretrained_encoder(tmp_path)


def test_an_architecture_without_hidden_states_is_refused() -> None:
    ids = torch.ones(1, 3, dtype=torch.long)
    with pytest.raises(ModelError, match=r"Linear returns no hidden states.*encoder-only"):
        hidden_states(torch.nn.Linear(3, 3), ids, ids)  # type: ignore[arg-type]


def test_folder_without_encoder_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=tmp_path.name):
        pretrained_encoder(tmp_path)


def test_folder_asking_for_remote_code_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(
        '{"model_type": "evil", "auto_map": {"AutoConfig": "evil.Config", "AutoModel": "evil.M"}}'
    )
    (tmp_path / "evil.py").write_text("raise SystemExit('ran')")
    with pytest.raises(ModelError, match="runs without remote code"):
        pretrained_encoder(tmp_path)


def test_what_is_no_folder_and_no_name_of_the_hub_is_named() -> None:
    with pytest.raises(ModelError, match=r"'\./no/such/folder' could not be loaded"):
        pretrained_encoder("./no/such/folder")


def test_a_hub_that_cannot_be_reached_is_one_sentence(tmp_path: Path) -> None:
    """In a process of its own, since the library reads its settings when it is imported."""
    port = _closed_port()
    child = subprocess.run(
        [sys.executable, "-c", _UNREACHABLE],
        env={
            **os.environ,
            "HF_ENDPOINT": f"http://127.0.0.1:{port}",
            "HF_HOME": str(tmp_path),
            "HF_HUB_OFFLINE": "0",
        },
        check=True,
        capture_output=True,
        text=True,
    )
    printed = child.stdout.splitlines()
    assert len(printed) == 2
    for line, what in zip(printed, ("tokenizer", "encoder"), strict=True):
        assert line.startswith(f"{what} 'nobody/nothing' could not be loaded: the Hugging Face hub")
        assert "the Hugging Face hub cannot be reached" in line
        assert "check the network, or pass a folder" in line
    assert child.stderr == ""


#: Asks an unreachable hub, without the pauses of half a minute between attempts.
_UNREACHABLE = """
import time
time.sleep = lambda _: None
from modwatch.common.errors import ModelError
from modwatch.models.encoder import pretrained_encoder
from modwatch.models.encoder import pretrained_tokenizer
for load in (pretrained_tokenizer, pretrained_encoder):
    try:
        load("nobody/nothing")
    except ModelError as exc:
        print(exc)
"""


def _closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_positions_of_roberta_begin_behind_the_padding() -> None:
    sizes = {"hidden_size": 8, "num_hidden_layers": 0, "num_attention_heads": 1}
    config = RobertaConfig(vocab_size=9, max_position_embeddings=514, pad_token_id=1, **sizes)
    assert longest_input(RobertaModel(config)) == 512
    assert longest_input(BertModel(BertConfig(vocab_size=9, **sizes))) == 512


HOSTILE = ["", "\x00", "🙂🙃", "שלום עולם", "‮desrever", "   \n\t ", "a" * 50_000, "<script>"]


def test_every_text_has_subwords_and_no_more_than_asked(
    corpus: tuple[list[str], list[int]],
) -> None:
    tokenizer = train_tokenizer(corpus[0], Recipe(vocab_size=120))
    ids = encode(tokenizer, HOSTILE, max_length=12)
    assert len(ids) == len(HOSTILE)
    assert all(1 <= len(sequence) <= 12 for sequence in ids)
    assert tokenizer.pad_token_id != tokenizer.unk_token_id


def test_case_accents_and_spacing_are_folded(corpus: tuple[list[str], list[int]]) -> None:
    tokenizer = train_tokenizer(corpus[0], Recipe(vocab_size=120))
    one, other = encode(tokenizer, ["the gardén", " THE\n garden"], max_length=12)
    assert one == other


def test_same_texts_same_tokenizer(corpus: tuple[list[str], list[int]]) -> None:
    recipe = Recipe(vocab_size=120)
    first, second = (
        train_tokenizer(corpus[0], recipe).backend_tokenizer.to_str() for _ in range(2)
    )
    assert first == second


def test_no_texts_no_ids(corpus: tuple[list[str], list[int]]) -> None:
    assert encode(train_tokenizer(corpus[0], Recipe(vocab_size=120)), [], max_length=4) == []


def test_broken_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    for content in ("{", "[]", "\x00"):
        path.write_text(content)
        with pytest.raises(ModelError, match=r"not a Hugging Face tokenizer.*tokenizer\.json"):
            pretrained_tokenizer(tmp_path)

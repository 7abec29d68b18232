import os
import socket
import subprocess
import sys
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from tokenizers import processors
from transformers import (
    BertConfig,
    BertModel,
    RobertaConfig,
    RobertaModel,
    T5Config,
    T5Model,
)

from modwatch.common.errors import ModelError
from modwatch.common.text import visible
from modwatch.models import encoder as encoder_module
from modwatch.models.encoder import (
    encode,
    encode_passages,
    hidden_states,
    longest_input,
    pool,
    pretrained_encoder,
    pretrained_tokenizer,
    small_encoder,
    train_tokenizer,
)
from modwatch.models.networks import starting_point
from modwatch.models.recipe import Recipe


@pytest.mark.parametrize("layers", [0, 2])
def test_small_encoder_gives_states(layers):
    recipe = Recipe(layers=layers, hidden_size=8, max_length=6)
    encoder = small_encoder(recipe, vocab_size=20, pad_id=0)
    ids = torch.ones(2, 6, dtype=torch.long)
    assert hidden_states(encoder, ids, ids).shape == (2, 6, 8)


@pytest.mark.parametrize("pooling", ["mean", "max"])
@given(padding=st.integers(1, 5), seed=st.integers(0, 99))
def test_pooling_ignores_padding(pooling, padding, seed):
    states = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(seed))
    rubbish = torch.full((2, padding, 4), 1e9)
    mask = torch.ones(2, 3, dtype=torch.long)
    longer = torch.cat([mask, torch.zeros(2, padding, dtype=torch.long)], dim=1)
    plain = pool(states, mask, pooling)
    assert torch.allclose(pool(torch.cat([states, rubbish], 1), longer, pooling), plain)


def test_encoder_decoder_is_refused(tmp_path):
    config = T5Config(vocab_size=16, d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2)
    T5Model(config).save_pretrained(tmp_path)
    with pytest.raises(ModelError, match=r"is an encoder-decoder \(t5\); use an encoder-only"):
        pretrained_encoder(tmp_path)


def test_an_architecture_without_hidden_states_is_refused():
    ids = torch.ones(1, 3, dtype=torch.long)
    with pytest.raises(ModelError, match=r"Linear returns no hidden states.*encoder-only"):
        hidden_states(torch.nn.Linear(3, 3), ids, ids)  # type: ignore[arg-type]


def test_folder_without_encoder_is_named(tmp_path):
    with pytest.raises(ModelError, match=tmp_path.name):
        pretrained_encoder(tmp_path)


def test_folder_asking_for_remote_code_is_refused(tmp_path):
    (tmp_path / "config.json").write_text(
        '{"model_type": "evil", "auto_map": {"AutoConfig": "evil.Config", "AutoModel": "evil.M"}}'
    )
    (tmp_path / "evil.py").write_text("raise SystemExit('ran')")
    with pytest.raises(ModelError, match="runs without remote code"):
        pretrained_encoder(tmp_path)


def test_what_is_no_folder_and_no_name_of_the_hub_is_named():
    with pytest.raises(ModelError, match=r"'\./no/such/folder' could not be loaded"):
        pretrained_encoder("./no/such/folder")


def test_a_hub_that_cannot_be_reached_is_one_sentence(tmp_path):
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


def test_positions_of_roberta_begin_behind_the_padding():
    sizes = {"hidden_size": 8, "num_hidden_layers": 0, "num_attention_heads": 1}
    config = RobertaConfig(vocab_size=9, max_position_embeddings=514, pad_token_id=1, **sizes)
    assert longest_input(RobertaModel(config)) == 512
    assert longest_input(BertModel(BertConfig(vocab_size=9, **sizes))) == 512


HOSTILE = ["", "\x00", "🙂🙃", "שלום עולם", "‮desrever", "   \n\t ", "a" * 50_000, "<script>"]


def test_every_text_has_subwords_and_no_more_than_asked(corpus):
    tokenizer = train_tokenizer(corpus[0], Recipe(vocab_size=120))
    ids = encode(tokenizer, HOSTILE, max_length=12)
    assert len(ids) == len(HOSTILE)
    assert all(1 <= len(sequence) <= 12 for sequence in ids)
    assert tokenizer.pad_token_id != tokenizer.unk_token_id


@pytest.fixture(scope="module")
def tokenizers(corpus):
    """One without special tokens, and one that adds two."""
    plain, special = (train_tokenizer(corpus[0], Recipe(vocab_size=120)) for _ in range(2))
    special.add_special_tokens({"cls_token": "[CLS]", "sep_token": "[SEP]"})
    special.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        special_tokens=[("[CLS]", special.cls_token_id), ("[SEP]", special.sep_token_id)],
    )
    return [plain, special]


HIDDEN = st.characters(categories=["Cf"]) | st.sampled_from(
    "\x00\x07\x7f\u034f\u115f\u17b4\u180b\u3164\ufe0f\uffa0\U000e0101"
)
WORDS = st.sampled_from(["garden", "rain", "bridge", "漢字", "🙂", "unheard" * 60, "a\n", "."])


@given(words=st.lists(WORDS, max_size=60), length=st.integers(8, 40), at=st.sampled_from([0, 1]))
def test_passages_have_every_subword(tokenizers, words, length, at):
    tokenizer, specials = tokenizers[at], 2 * at
    (ids,) = encode(tokenizer, [" ".join(words)], max_length=10**6)
    ((passages, cut),) = encode_passages(tokenizer, [" ".join(words)], max_length=length)
    assert not cut
    if len(ids) <= length:
        assert passages == [ids]
        return
    assert all(len(passage) <= length // 2 for passage in passages)
    bare = [passage[at : len(passage) - at] for passage in passages]
    joined = bare[0]
    for part in bare[1:]:
        assert part[: length // 8] == joined[len(joined) - length // 8 :]
        joined = joined + part[length // 8 :]
    assert joined == ids[at : len(ids) - at]
    assert all(passage[:at] == ids[:at] for passage in passages)
    assert specials == 0 or all(passage[-1] == ids[-1] for passage in passages)


def test_the_end_of_a_text_beyond_the_bound_is_cut(tokenizers, monkeypatch):
    monkeypatch.setattr(encoder_module, "MOST_SUBWORDS", 60)
    texts = ["🙂 " * 50, "🙂 " * 90, "rain", ""]
    for tokenizer in tokenizers:
        found = encode_passages(tokenizer, texts, max_length=32)
        assert [cut for _, cut in found] == [False, True, False, False]
        assert len(found[1][0]) == 5  # 60 subwords are in steps of 12
    # A text whose characters are not all tokenised is cut, too, though it is short.
    monkeypatch.setattr(encoder_module, "_MOST_CHARACTERS", 30)
    for text in (" " * 40 + "rain", "rain" + " " * 30):
        ((passages, cut),) = encode_passages(tokenizers[0], [text], max_length=32)
        assert cut
        assert len(passages) == 1


def test_a_model_without_room_for_a_subword_reads_nothing_of_a_long_text(tokenizers):
    ((passages, cut),) = encode_passages(tokenizers[1], ["rain " * 9], max_length=4)
    assert cut
    assert [len(passage) for passage in passages] == [2]


@given(text=st.text(max_size=60), hidden=st.lists(st.tuples(st.integers(0, 60), HIDDEN)))
def test_invisible_characters_are_not_read(tokenizers, text, hidden):
    text = visible(text)
    spread = text
    for position, sign in hidden:
        spread = spread[:position] + sign + spread[position:]
    one, other = encode_passages(tokenizers[0], [text, spread], max_length=8)
    assert one == other


def test_a_tokenizer_learns_no_invisible_characters(corpus):
    texts = corpus[0]
    hidden = ["\xad".join(text) for text in texts]
    first, second = (
        train_tokenizer(given, Recipe(vocab_size=120)).backend_tokenizer.to_str()
        for given in (texts, hidden)
    )
    assert first == second


def test_case_accents_and_spacing_are_folded(corpus):
    tokenizer = train_tokenizer(corpus[0], Recipe(vocab_size=120))
    one, other = encode(tokenizer, ["the gardén", " THE\n garden"], max_length=12)
    assert one == other


def test_same_texts_same_tokenizer(corpus):
    recipe = Recipe(vocab_size=120)
    first, second = (
        train_tokenizer(corpus[0], recipe).backend_tokenizer.to_str() for _ in range(2)
    )
    assert first == second


def test_no_texts_no_ids(corpus):
    assert encode(train_tokenizer(corpus[0], Recipe(vocab_size=120)), [], max_length=4) == []


def test_broken_file_is_named(tmp_path):
    path = tmp_path / "tokenizer.json"
    for content in ("{", "[]", "\x00"):
        path.write_text(content)
        with pytest.raises(ModelError, match=r"not a Hugging Face tokenizer.*tokenizer\.json"):
            pretrained_tokenizer(tmp_path)


@pytest.fixture
def whole(tmp_path, corpus):
    """An encoder with its tokenizer, as a download leaves it."""
    recipe = Recipe(vocab_size=120, hidden_size=8, layers=1)
    tokenizer = train_tokenizer(corpus[0], recipe)
    tokenizer.save_pretrained(tmp_path)
    small_encoder(recipe, vocab_size=len(tokenizer), pad_id=0).save_pretrained(tmp_path)
    starting_point([], replace(recipe, encoder=str(tmp_path)))
    return tmp_path


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json"])
@pytest.mark.parametrize("kept", [None, 0, 0.5])
def test_half_a_download_is_named_with_its_file(whole, name, kept):
    path = whole / name
    content = path.read_bytes()
    path.unlink()
    if kept is not None:
        path.write_bytes(content[: int(kept * len(content))])
    with pytest.raises(ModelError) as caught:
        starting_point([], Recipe(encoder=str(whole)))
    state = "missing" if kept is None else "incomplete or not"
    assert f"{path} is {state}" in str(caught.value)
    assert "download the encoder again" in str(caught.value)


def test_a_part_of_the_weights_that_was_not_downloaded_is_named(whole):
    encoder = pretrained_encoder(whole)
    (whole / "model.safetensors").unlink()
    encoder.save_pretrained(whole, max_shard_size="4KB")
    pretrained_encoder(whole)
    part = sorted(whole.glob("model-*.safetensors"))[-1]
    part.unlink()
    with pytest.raises(ModelError, match=rf"{part.name} is missing.*download the encoder again"):
        pretrained_encoder(whole)


def test_weights_that_the_file_does_not_have_are_named(whole):
    path = whole / "model.safetensors"
    weights = load_file(path)
    del weights["encoder.layer.0.output.dense.weight"], weights["pooler.dense.weight"]
    save_file(weights, path, metadata={"format": "pt"})
    with pytest.raises(ModelError, match=r"lack 1 of those.*encoder\.layer\.0\.output\.dense"):
        pretrained_encoder(whole)


def test_a_tokenizer_with_more_ids_than_embeddings_is_refused(whole):
    tokenizer = pretrained_tokenizer(whole)
    tokenizer.add_tokens(["another"])
    tokenizer.save_pretrained(whole)
    with pytest.raises(ModelError, match=r"does not fit its encoder: it has ids up to \d+, and"):
        starting_point([], Recipe(encoder=str(whole)))


def test_dropout_of_an_encoder_can_be_replaced(whole):
    assert pretrained_encoder(whole).config.hidden_dropout_prob == 0.1
    encoder = pretrained_encoder(whole, dropout=0.0)
    layers = [part.p for part in encoder.modules() if isinstance(part, torch.nn.Dropout)]
    assert layers
    assert not any(layers)

from pathlib import Path

import pytest

from modwatch.common.errors import ModelError
from modwatch.models.recipe import Recipe
from modwatch.models.tokenizer import (
    encode,
    pretrained_tokenizer,
    train_tokenizer,
)

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

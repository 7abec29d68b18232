from pathlib import Path

import pytest

from modwatch.errors import ModelError
from modwatch.models.recipe import Recipe
from modwatch.models.tokenizer import (
    encode,
    load_tokenizer,
    mask_id,
    pad_id,
    train_tokenizer,
    unknown_id,
)

HOSTILE = ["", "\x00", "🙂🙃", "שלום עולם", "‮desrever", "   \n\t ", "a" * 50_000, "<script>"]


def test_every_text_has_subwords_and_no_more_than_asked(
    corpus: tuple[list[str], list[int]],
) -> None:
    tokenizer = train_tokenizer(corpus[0], Recipe(vocab_size=120))
    ids = encode(tokenizer, HOSTILE, max_length=12)
    assert len(ids) == len(HOSTILE)
    assert all(1 <= len(sequence) <= 12 for sequence in ids)
    assert len({pad_id(tokenizer), mask_id(tokenizer), unknown_id(tokenizer)}) == 3


def test_case_accents_and_doubled_quotes_are_folded(corpus: tuple[list[str], list[int]]) -> None:
    tokenizer = train_tokenizer([*corpus[0], '"x"'], Recipe(vocab_size=120))
    one, other = encode(tokenizer, ['"the gardén"', '""THE garden""'], max_length=12)
    assert one == other


def test_same_texts_same_tokenizer(corpus: tuple[list[str], list[int]]) -> None:
    recipe = Recipe(vocab_size=120)
    first, second = (train_tokenizer(corpus[0], recipe).to_str() for _ in range(2))
    assert first == second


def test_no_texts_no_ids(corpus: tuple[list[str], list[int]]) -> None:
    assert encode(train_tokenizer(corpus[0], Recipe(vocab_size=120)), [], max_length=4) == []


def test_broken_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    for content in ("{", "[]", "\x00"):
        path.write_text(content)
        with pytest.raises(ModelError, match=r"tokenizer\.json"):
            load_tokenizer(path)

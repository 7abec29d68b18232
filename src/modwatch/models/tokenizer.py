"""Text to subword ids: a tokenizer trained on the corpus, or that of a pretrained encoder."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

from modwatch.errors import ModelError
from modwatch.models.recipe import Recipe

PAD, UNKNOWN, MASK = "[PAD]", "[UNK]", "[MASK]"

#: Texts are cut to this many characters per subword before they are tokenised, so that very long
#: texts cost no more than long ones. The average in English is four or five.
_CHARACTERS_PER_TOKEN = 16


def train_tokenizer(texts: Iterable[str], recipe: Recipe) -> Tokenizer:
    """Return a byte-pair tokenizer trained on `texts`; the same texts give the same tokenizer.

    Byte-pair encoding is the only deterministic trainer of the library: WordPiece and Unigram
    number their subwords differently in each run.

    Case and accents are folded, whitespace only separates, and a doubled quotation mark (from CSV
    files) counts as one.
    """
    tokenizer = Tokenizer(models.BPE(unk_token=UNKNOWN))
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.NFKD(),
            normalizers.StripAccents(),
            normalizers.Lowercase(),
            normalizers.Replace('""', '"'),
        ]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.BpeTrainer(
        vocab_size=recipe.vocab_size,
        special_tokens=[PAD, UNKNOWN, MASK],
        min_frequency=2,
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def load_tokenizer(path: Path) -> Tokenizer:
    """Return the tokenizer of a tokenizer.json; ModelError when the file is invalid."""
    try:
        return Tokenizer.from_file(str(path))
    except Exception as exc:  # the Rust library raises bare Exception
        raise ModelError(
            f"{path} is not a tokenizer; save the fast tokenizer of the encoder there, or train "
            "the model again"
        ) from exc


def encode(tokenizer: Tokenizer, texts: Sequence[str], *, max_length: int) -> list[list[int]]:
    """Return the subword ids of each text, at most `max_length`, special tokens included.

    A text without subwords becomes one unknown subword.
    """
    if not texts:
        return []
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_length)
    encodings = tokenizer.encode_batch_fast(cut(texts, max_length=max_length))
    empty = [unknown_id(tokenizer)]
    return [encoding.ids or empty for encoding in encodings]


def cut(texts: Sequence[str], *, max_length: int) -> list[str]:
    """Return the beginning of each text, long enough for `max_length` subwords.

    >>> cut(["word " * 100], max_length=2)[0]
    'word word word word word word wo'
    """
    limit = max_length * _CHARACTERS_PER_TOKEN
    return [text[:limit] for text in texts]


def unknown_id(tokenizer: Tokenizer) -> int:
    """Return the id of the unknown subword; 0 when the vocabulary has none."""
    return _first_id(tokenizer, UNKNOWN, "<unk>") or 0


def mask_id(tokenizer: Tokenizer) -> int:
    """Return the id of the mask subword; the unknown one when the vocabulary has none."""
    mask = _first_id(tokenizer, MASK, "<mask>")
    return unknown_id(tokenizer) if mask is None else mask


def pad_id(tokenizer: Tokenizer) -> int:
    """Return the id for padding; 0 when the vocabulary has none."""
    return _first_id(tokenizer, PAD, "<pad>") or 0


def _first_id(tokenizer: Tokenizer, *tokens: str) -> int | None:
    """Return the id of the first of `tokens` that the vocabulary has."""
    ids = (tokenizer.token_to_id(token) for token in tokens)
    return next((int(each) for each in ids if each is not None), None)

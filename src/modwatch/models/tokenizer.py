"""Text to subword ids: a tokenizer trained on the corpus, or that of a pre-trained encoder."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from modwatch.common.errors import ModelError
from modwatch.models.encoder import reading
from modwatch.models.recipe import Recipe

_PAD, _UNKNOWN = "[PAD]", "[UNK]"

#: Texts are cut to this many characters per subword before they are tokenised, so that very long
#: texts cost no more than long ones. The average in English is four or five.
_CHARACTERS_PER_TOKEN = 16


def train_tokenizer(texts: Iterable[str], recipe: Recipe) -> PreTrainedTokenizerFast:
    """Return a byte-pair tokenizer trained on `texts`; the same texts give the same tokenizer.

    Byte-pair encoding is the only deterministic trainer of the library: WordPiece and Unigram
    number their subwords differently in each run. Case and accents are folded, and whitespace only
    separates.
    """
    tokenizer = Tokenizer(models.BPE(unk_token=_UNKNOWN))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase()]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.BpeTrainer(
        vocab_size=recipe.vocab_size,
        special_tokens=[_PAD, _UNKNOWN],
        min_frequency=2,
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=_PAD,
        unk_token=_UNKNOWN,
        model_max_length=recipe.max_length,
    )


def pretrained_tokenizer(source: str | Path) -> PreTrainedTokenizerFast:
    """Return the tokenizer in a folder or on the hub; ModelError when there is no fast one."""
    folder = Path(source)
    with reading(source, "tokenizer"):
        tokenizer = AutoTokenizer.from_pretrained(
            source, trust_remote_code=False, local_files_only=folder.is_dir()
        )
    if not getattr(tokenizer, "is_fast", False):
        raise ModelError(
            f"the tokenizer of {source} is not a fast one; save its tokenizer.json with "
            "`convert_slow_tokenizer` of transformers"
        )
    return tokenizer


def encode(
    tokenizer: PreTrainedTokenizerFast, texts: Sequence[str], *, max_length: int
) -> list[list[int]]:
    """Return the subword ids of each text, at most `max_length`, special tokens included.

    A text without subwords becomes one unknown subword.
    """
    if not texts:
        return []
    backend = tokenizer.backend_tokenizer
    backend.no_padding()
    backend.enable_truncation(max_length)
    encodings = backend.encode_batch_fast(cut(texts, max_length=max_length))
    empty = [0 if tokenizer.unk_token_id is None else int(tokenizer.unk_token_id)]
    return [encoding.ids or empty for encoding in encodings]


def cut(texts: Sequence[str], *, max_length: int) -> list[str]:
    """Return the beginning of each text, long enough for `max_length` subwords.

    >>> cut(["word " * 100], max_length=2)[0]
    'word word word word word word wo'
    """
    limit = max_length * _CHARACTERS_PER_TOKEN
    return [text[:limit] for text in texts]

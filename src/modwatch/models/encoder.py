"""Tokenizers and encoders (any Hugging Face `AutoModel`), and the pooling of hidden states."""

import json
import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from tokenizers import Encoding, Tokenizer, models, normalizers, pre_tokenizers, trainers
from torch import Tensor
from transformers import (
    AutoConfig,
    AutoModel,
    AutoTokenizer,
    BertConfig,
    BertModel,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)
from transformers.utils import logging as hf_logging

from modwatch.common.errors import ModelError
from modwatch.common.text import visible
from modwatch.models.recipe import MOST_SUBWORDS, Pooling, Recipe

_PAD, _UNKNOWN = "[PAD]", "[UNK]"
#: Longer texts are cut before they are tokenised. A subword of English has four or five characters.
_MOST_CHARACTERS = 16 * MOST_SUBWORDS

#: Names that architectures give to dropout in config.json.
_DROPOUT = ("hidden_dropout_prob", "attention_probs_dropout_prob", "dropout", "attention_dropout")
_DOWNLOAD = "download the encoder again, all its files"
_ENCODERS = "use an encoder-only architecture such as BERT, RoBERTa or DistilBERT"


def small_encoder(recipe: Recipe, *, vocab_size: int, pad_id: int) -> PreTrainedModel:
    """Return a BERT of the recipe's size; torch's seed determines its weights.

    Without layers it consists of embeddings, position embeddings and a LayerNorm.
    """
    config = BertConfig(
        vocab_size=vocab_size,
        hidden_size=recipe.hidden_size,
        num_hidden_layers=recipe.layers,
        num_attention_heads=recipe.attention_heads if recipe.layers else 1,
        intermediate_size=2 * recipe.hidden_size,
        max_position_embeddings=recipe.max_length,
        hidden_dropout_prob=recipe.dropout,
        attention_probs_dropout_prob=recipe.dropout,
        pad_token_id=pad_id,
    )
    return BertModel(config)


def pretrained_encoder(source: str | Path, *, dropout: float | None = None) -> PreTrainedModel:
    """Return the encoder in a folder (config.json and model.safetensors) or on the hub, in fp32.

    Runs no code of the source and unpickles nothing. `dropout` replaces that of its config.json.

    Raises:
        ModelError: there is no such encoder, it is of another architecture, a file of it is missing
            or damaged, weights are missing, or the hub cannot be reached.
    """
    with reading(source, "encoder"):
        local = Path(source).is_dir()
        config = AutoConfig.from_pretrained(source, trust_remote_code=False, local_files_only=local)
        if getattr(config, "is_encoder_decoder", False):
            raise ModelError(
                f"encoder {str(source)!r} is an encoder-decoder ({config.model_type}); {_ENCODERS}"
            )
        for name in _DROPOUT:
            if dropout is not None and hasattr(config, name):
                setattr(config, name, dropout)
        encoder: PreTrainedModel
        encoder, loaded = AutoModel.from_pretrained(
            source,
            config=config,
            trust_remote_code=False,
            use_safetensors=True,
            dtype=torch.float32,
            local_files_only=local,
            output_loading_info=True,
        )
    # The pooler, which is not used, is missing in encoders that were trained to fill gaps.
    missing = sorted(name for name in loaded["missing_keys"] if not name.startswith("pooler."))
    if missing:
        raise ModelError(
            f"the weights of encoder {str(source)!r} lack {len(missing)} of those that its "
            f"config.json asks for, such as {missing[0]}; {_DOWNLOAD}"
        )
    return encoder


@contextmanager
def reading(source: str | Path, what: str) -> Iterator[None]:
    """Raise ModelError where `source` has no such thing."""
    try:
        with quiet():
            yield
    except ModelError:
        raise
    except Exception as exc:  # of any class, from Python and Rust
        raise ModelError(_unreadable(source, what, exc)) from exc


@contextmanager
def quiet() -> Iterator[None]:
    """Keep Hugging Face's warnings and progress bars from the terminal."""
    level, bars = hf_logging.get_verbosity(), hf_logging.is_progress_bar_enabled()
    hub = logging.getLogger("huggingface_hub")
    hub_level = hub.level
    hf_logging.set_verbosity_error()  # it would warn of the weights of an unused head
    hub.setLevel(logging.ERROR)  # … and of each attempt to reach the hub
    hf_logging.disable_progress_bar()
    try:
        yield
    finally:
        hf_logging.set_verbosity(level)
        hub.setLevel(hub_level)
        if bars:
            hf_logging.enable_progress_bar()


def longest_input(encoder: PreTrainedModel) -> int | None:
    """Return the most subwords that the encoder has positions for; None if there is no limit.

    RoBERTa counts positions from behind the padding id.
    """
    positions = getattr(encoder.config, "max_position_embeddings", None)
    table = getattr(getattr(encoder, "embeddings", None), "position_embeddings", None)
    skipped = getattr(table, "padding_idx", None)
    if positions is None or positions <= 0:
        return None
    return int(positions) - (0 if skipped is None else int(skipped) + 1)


def hidden_states(encoder: PreTrainedModel, ids: Tensor, mask: Tensor) -> Tensor:
    """Return the last hidden states (N, T, d) of ids (N, T); ModelError when there are none."""
    try:
        states: Tensor = encoder(input_ids=ids, attention_mask=mask).last_hidden_state
    except (AttributeError, TypeError, ValueError) as exc:
        raise ModelError(
            f"{type(encoder).__name__} returns no hidden states for ids and a mask; {_ENCODERS}"
        ) from exc
    return states


def pool(states: Tensor, mask: Tensor, pooling: Pooling) -> Tensor:
    """Return features (N, d) of states (N, T, d) where mask (N, T) is 1.

    Padding has no influence; each comment requires at least one unmasked position.

    >>> states = torch.tensor([[[1.0], [3.0], [9.0]]])
    >>> mask = torch.tensor([[1, 1, 0]])
    >>> pool(states, mask, "mean").tolist(), pool(states, mask, "max").tolist()
    ([[2.0]], [[3.0]])
    """
    kept = mask.unsqueeze(-1).bool()  # (N, T, 1)
    if pooling == "max":
        return states.masked_fill(~kept, float("-inf")).amax(1)
    return states.masked_fill(~kept, 0).sum(1) / kept.sum(1)


def _unreadable(source: str | Path, what: str, exc: Exception) -> str:
    """Return the message for an encoder or tokenizer that cannot be read."""
    if Path(source).is_dir():
        damage = _damage(Path(source), what)
        return (
            f"{source} is not a Hugging Face {what}{f': {damage}' if damage else ''}; it requires "
            "config.json, model.safetensors and tokenizer.json of an encoder that runs without "
            f"remote code{f': {_DOWNLOAD}' if damage else ''}"
        )
    if isinstance(exc, OSError) and "connect" in str(exc).lower():
        return (
            f"{what} {str(source)!r} could not be loaded: the Hugging Face hub cannot be reached, "
            "and no folder has this name; check the network, or pass a folder"
        )
    return (
        f"{what} {str(source)!r} could not be loaded ({type(exc).__name__}): it is no folder, and "
        "the Hugging Face hub has no encoder of this name that runs without remote code"
    )


def _damage(folder: Path, what: str) -> str | None:
    """Return which file of the encoder or tokenizer is missing or not complete; None: no file."""
    index = folder / "model.safetensors.index.json"
    weights = [folder / "model.safetensors"] if what == "encoder" else []
    described = index if weights else folder / "tokenizer.json"
    for path in (folder / "config.json", described):
        try:
            content = json.loads(path.read_text("utf-8"))
        except FileNotFoundError:
            if path != index:
                return f"{path} is missing"
        except ValueError:
            return f"{path} is incomplete or not JSON"
        else:
            if path == index:
                weights = [folder / name for name in sorted({*content["weight_map"].values()})]
    for path in weights:
        try:
            with safe_open(path, "pt"):
                pass
        except FileNotFoundError:
            return f"{path} is missing"
        except SafetensorError:
            size = path.stat().st_size
            return f"{path} is incomplete or not a safetensors file ({size:,} bytes)"
    return None


def check_fit(encoder: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, source: str) -> None:
    """Raise ModelError if the tokenizer of `source` has ids that its encoder cannot embed."""
    rows = encoder.get_input_embeddings().num_embeddings
    largest = max(tokenizer.get_vocab().values(), default=0)
    if largest >= rows:
        raise ModelError(
            f"the tokenizer of {source} (tokenizer.json) does not fit its encoder: it has ids up "
            f"to {largest:,}, and the encoder has embeddings for {rows:,}; use tokenizer.json of "
            "the same encoder"
        )


def train_tokenizer(texts: Iterable[str], recipe: Recipe) -> PreTrainedTokenizerFast:
    """Return a byte-pair tokenizer trained on `texts`; the same texts give the same tokenizer.

    Byte-pair encoding is the only deterministic trainer of the library: WordPiece and Unigram
    number their subwords differently in each run. Case and accents are folded, whitespace only
    separates, and invisible characters are left out.
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
    tokenizer.train_from_iterator(map(visible, texts), trainer)
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
    """Return the first subword ids of each text, at most `max_length` with special tokens.

    A text without subwords becomes one unknown subword.
    """
    read = [visible(text) for text in texts]
    empty = [0 if tokenizer.unk_token_id is None else int(tokenizer.unk_token_id)]
    return [encoding.ids or empty for encoding in _encodings(tokenizer, read, max_length)]


def encode_passages(
    tokenizer: PreTrainedTokenizerFast, texts: Sequence[str], *, max_length: int
) -> list[tuple[list[list[int]], bool]]:
    """Return the subword ids of each text in passages, and whether its end was cut.

    A text of at most `max_length` subwords, special tokens included, is one passage, as `encode`
    returns it. The passages of a longer one have half that length, since an insult shows less the
    more there is around it. Each shares a quarter with the next, so that no phrase of that length
    is divided. Texts are cut beyond about `MOST_SUBWORDS`.
    """
    read = [visible(text) for text in texts]
    empty = [0 if tokenizer.unk_token_id is None else int(tokenizer.unk_token_id)]
    whole = _encodings(tokenizer, read, max_length)
    long = [text for text, encoding in zip(read, whole, strict=True) if encoding.overflowing]
    length, overlap = max_length // 2, max_length // 8
    most = -(-MOST_SUBWORDS // (length - overlap))
    divided = iter(_encodings(tokenizer, long, length, overlap=overlap))
    found = []
    for text, encoding in zip(read, whole, strict=True):
        passages = [encoding.ids or empty]
        if encoding.overflowing:
            first = next(divided)
            passages = [first.ids, *(passage.ids for passage in first.overflowing)]
        # Without room for a subword, the library returns the text as one passage of any length.
        kept = [ids for ids in passages[:most] if len(ids) <= max_length]
        found.append((kept, len(kept) < len(passages) or len(text) > _MOST_CHARACTERS))
    return found


def _encodings(
    tokenizer: PreTrainedTokenizerFast, texts: Sequence[str], length: int, *, overlap: int = 0
) -> list[Encoding]:
    """Return the encoding of each text, divided into parts of at most `length` subwords."""
    if not texts:
        return []
    backend = tokenizer.backend_tokenizer
    backend.no_padding()
    backend.enable_truncation(length, stride=overlap)
    encodings: list[Encoding] = backend.encode_batch_fast(
        [text[:_MOST_CHARACTERS] for text in texts]
    )
    return encodings

"""Encoders (any Hugging Face `AutoModel`), and the pooling of their hidden states."""

from pathlib import Path

import torch
from torch import Tensor
from transformers import AutoConfig, AutoModel, BertConfig, PretrainedConfig, PreTrainedModel
from transformers.utils import logging as hf_logging

from modwatch.errors import ModelError
from modwatch.models.recipe import Pooling, Recipe


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
    return encoder_from_config(config)


def encoder_from_config(config: PretrainedConfig) -> PreTrainedModel:
    """Return the randomly initialised encoder of a Hugging Face configuration."""
    return without_unused_pooler(AutoModel.from_config(config, trust_remote_code=False))


def saved_encoder(folder: Path) -> PreTrainedModel:
    """Return the encoder saved in `folder` (config.json and model.safetensors).

    Runs no code of the folder and unpickles nothing. ModelError when the folder has no such
    encoder.
    """
    quiet = hf_logging.get_verbosity()
    hf_logging.set_verbosity_error()  # it would warn of the weights of an unused head
    try:
        encoder = AutoModel.from_pretrained(
            folder, trust_remote_code=False, use_safetensors=True, local_files_only=True
        )
    except (OSError, ValueError, RuntimeError, KeyError) as exc:
        raise ModelError(
            f"{folder} is not a Hugging Face encoder; it requires config.json and "
            "model.safetensors of an architecture that runs without remote code"
        ) from exc
    finally:
        hf_logging.set_verbosity(quiet)
    return without_unused_pooler(encoder)


def encoder_config(path: Path) -> PretrainedConfig:
    """Return the Hugging Face configuration in the folder `path`; ModelError when invalid."""
    try:
        return AutoConfig.from_pretrained(path, trust_remote_code=False, local_files_only=True)
    except (OSError, ValueError, KeyError) as exc:
        raise ModelError(
            f"{path / 'config.json'} is not the configuration of an encoder that runs without "
            "remote code; train the model again or use another encoder"
        ) from exc


def without_unused_pooler(encoder: PreTrainedModel) -> PreTrainedModel:
    """Return the encoder without its pooler, which `pool` replaces."""
    if getattr(encoder, "pooler", None) is not None:
        encoder.pooler = None
    return encoder


def hidden_states(encoder: PreTrainedModel, ids: Tensor, mask: Tensor) -> Tensor:
    """Return the last hidden states (N, T, d) of ids (N, T); ModelError when there are none."""
    try:
        states: Tensor = encoder(input_ids=ids, attention_mask=mask).last_hidden_state
    except (AttributeError, TypeError, ValueError) as exc:
        raise ModelError(
            f"{type(encoder).__name__} returns no hidden states for ids and a mask; "
            "use an encoder-only architecture such as BERT, RoBERTa or DistilBERT"
        ) from exc
    return states


def pool(states: Tensor, mask: Tensor, pooling: Pooling) -> Tensor:
    """Return features (N, d), or (N, 2d) for mean-max, of states (N, T, d) where mask (N, T) is 1.

    Padding has no influence; each comment requires at least one unmasked position.

    >>> states = torch.tensor([[[1.0], [3.0], [9.0]]])
    >>> mask = torch.tensor([[1, 1, 0]])
    >>> pool(states, mask, "mean-max").tolist()
    [[2.0, 3.0]]
    """
    kept = mask.unsqueeze(-1).bool()  # (N, T, 1)
    parts = []
    if pooling != "max":
        parts.append(states.masked_fill(~kept, 0).sum(1) / kept.sum(1))
    if pooling != "mean":
        parts.append(states.masked_fill(~kept, float("-inf")).amax(1))
    return torch.cat(parts, dim=-1)

"""Encoders: any Hugging Face `AutoModel`, and the pooling that makes one vector of a comment."""

from pathlib import Path

import torch
from torch import Tensor
from transformers import AutoConfig, AutoModel, BertConfig, PretrainedConfig, PreTrainedModel
from transformers.utils import logging as hf_logging

from modwatch.errors import ModelError
from modwatch.models.recipe import Pooling, Recipe


def small_encoder(recipe: Recipe, *, vocab_size: int, pad_id: int) -> PreTrainedModel:
    """Return a randomly initialised BERT of the recipe's size; its weights come from torch's seed.

    With no layers it is embeddings, position embeddings and a LayerNorm.
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

    No code of the folder runs and nothing is unpickled. ModelError names the folder when it holds
    no such encoder.
    """
    quiet = hf_logging.get_verbosity()
    hf_logging.set_verbosity_error()  # a head's weights left aside are meant to be left aside
    try:
        encoder = AutoModel.from_pretrained(
            folder, trust_remote_code=False, use_safetensors=True, local_files_only=True
        )
    except (OSError, ValueError, RuntimeError, KeyError) as exc:
        raise ModelError(
            f"{folder}: no Hugging Face encoder can be loaded from it; it needs config.json and "
            "model.safetensors of one architecture that runs without remote code"
        ) from exc
    finally:
        hf_logging.set_verbosity(quiet)
    return without_unused_pooler(encoder)


def encoder_config(path: Path) -> PretrainedConfig:
    """Return the Hugging Face configuration in the folder `path`; ModelError when it is none."""
    try:
        return AutoConfig.from_pretrained(path, trust_remote_code=False, local_files_only=True)
    except (OSError, ValueError, KeyError) as exc:
        raise ModelError(
            f"{path / 'config.json'}: not the configuration of an encoder that runs without "
            "remote code; train the model again or take another encoder"
        ) from exc


def without_unused_pooler(encoder: PreTrainedModel) -> PreTrainedModel:
    """Return the encoder less the pooler it came with: features are pooled here, by `pool`."""
    if getattr(encoder, "pooler", None) is not None:
        encoder.pooler = None
    return encoder


def hidden_states(encoder: PreTrainedModel, ids: Tensor, mask: Tensor) -> Tensor:
    """Return the last hidden states (N, T, d) of ids (N, T); ModelError for a model without any."""
    try:
        states: Tensor = encoder(input_ids=ids, attention_mask=mask).last_hidden_state
    except (AttributeError, TypeError, ValueError) as exc:
        raise ModelError(
            f"{type(encoder).__name__} gives no hidden states for ids and a mask; "
            "choose an encoder-only architecture such as BERT, RoBERTa or DistilBERT"
        ) from exc
    return states


def pool(states: Tensor, mask: Tensor, pooling: Pooling) -> Tensor:
    """Return features (N, d), or (N, 2d) for mean-max, of states (N, T, d) where mask (N, T) is 1.

    Padding has no influence; a comment needs at least one unmasked position.

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

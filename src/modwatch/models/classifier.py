"""The classifier: encoder, pooling and head in one module, and its batches."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import Tensor, nn
from transformers import PreTrainedModel

from modwatch.models.encoder import hidden_states, pool
from modwatch.models.heads import DeterministicHead, SNGPHead, build_head
from modwatch.models.recipe import Recipe
from modwatch.models.tokenizer import pad_id


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Padded subword ids of N comments."""

    ids: Tensor  # (N, T) int64
    mask: Tensor  # (N, T) int64; 1 for subwords, 0 for padding


def padded(sequences: Sequence[Sequence[int]], pad_id: int) -> Batch:
    """Return sequences of ids as one batch, padded to the longest.

    >>> padded([[7, 8], [9]], pad_id=0).ids.tolist()
    [[7, 8], [9, 0]]
    """
    lengths = np.fromiter(map(len, sequences), dtype=np.int64, count=len(sequences))
    mask = np.arange(lengths.max()) < lengths[:, None]  # (N, T)
    ids = np.full(mask.shape, pad_id, dtype=np.int64)
    ids[mask] = np.fromiter(chain.from_iterable(sequences), dtype=np.int64, count=lengths.sum())
    return Batch(ids=torch.from_numpy(ids), mask=torch.from_numpy(mask.astype(np.int64)))


class Classifier(nn.Module):
    """Encoder → pooled features → head. Call `features`, then a method of the head."""

    def __init__(
        self, encoder: PreTrainedModel, head: SNGPHead | DeterministicHead, recipe: Recipe
    ):
        super().__init__()
        self.encoder, self.head, self.pooling = encoder, head, recipe.pooling

    def features(self, batch: Batch) -> Tensor:
        """Return the pooled features (N, d) float32 of a batch."""
        states = hidden_states(self.encoder, batch.ids, batch.mask)
        return pool(states, batch.mask, self.pooling).float()


def build_classifier(encoder: PreTrainedModel, recipe: Recipe) -> Classifier:
    """Return `encoder` with an untrained head; torch's seed determines its weights."""
    width = int(encoder.config.hidden_size)
    inputs = 2 * width if recipe.pooling == "mean-max" else width
    return Classifier(encoder, build_head(inputs, width, recipe), recipe)


def padding_id(encoder: PreTrainedModel, tokenizer: Tokenizer) -> int:
    """Return the id for padding: that of the encoder, or else of the tokenizer."""
    own = getattr(encoder.config, "pad_token_id", None)
    return pad_id(tokenizer) if own is None else int(own)

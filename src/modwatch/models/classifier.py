"""The classifier: encoder, pooling and head in one module; one or several make the predictor.

Monte Carlo dropout scores all comments with the same S thinned networks. A pass is one draw of the
weights (Gal & Ghahramani 2016): its masks are the same for every comment and every position, so a
prediction depends on model and comment alone, and not on what shares the batch. Dropout of
attention weights, which has no mask of a fixed size, stays off.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from modwatch.models.batches import Batch, length_buckets, on_device, padded
from modwatch.models.bfloat16 import in_bf16
from modwatch.models.encoder import hidden_states, pool
from modwatch.models.heads import Head, build_head
from modwatch.models.posterior import LogitPosterior
from modwatch.models.recipe import Recipe

#: Called with the batches that are done, and all.
OnBatch = Callable[[int, int], None]


class Classifier(nn.Module):
    """Encoder → pooled features → head."""

    def __init__(self, encoder: PreTrainedModel, head: Head, recipe: Recipe):
        super().__init__()
        self.encoder, self.head, self.pooling = encoder, head, recipe.pooling

    def features(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Return the pooled features (N, d) float32 of subword ids (N, T)."""
        return pool(hidden_states(self.encoder, ids, mask).float(), mask, self.pooling)

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Return the logits (N,), for training."""
        features = self.features(ids, mask)
        with torch.autocast(features.device.type, enabled=False):
            logit: Tensor = self.head(features)
            return logit


class Predictor:
    """The networks of a model, on one device: predicts the posterior of the logit.

    Comments are predicted in batches of similar length. The batching changes a probability by
    rounding only, and the same list gives exactly the same predictions.
    """

    def __init__(
        self,
        members: Sequence[Classifier],
        recipe: Recipe,
        *,
        pad_id: int,
        seed: int,
        device: torch.device | None = None,
        bf16: bool = False,
    ) -> None:
        """Prepare the networks; those in bfloat16 are copies.

        Args:
            members: one classifier, or those of an ensemble.
            recipe: of the training.
            pad_id: id for padding.
            seed: of the masks of Monte Carlo dropout.
            device: where to compute; None: where the members are.
            bf16: weights and activations of the encoder in bfloat16; the head always uses fp32.
        """
        self.device = device or next(members[0].parameters()).device
        self.members = [member.eval().to(self.device) for member in members]
        if bf16:
            self.members = [
                Classifier(in_bf16(member.encoder), member.head, recipe).eval()
                for member in self.members
            ]
        self.pad_id = pad_id
        self._passes = recipe.passes if recipe.method == "mc_dropout" else 0
        self._dropout = replace_dropout(self.members[0], seed=seed) if self._passes else []

    @torch.inference_mode()
    def logit_moments(self, batch: Batch) -> Tensor:
        """Return mean and variance (2, K, N) of the logits of a batch, on the device.

        There is a component for each member or pass.
        """
        batch = batch.to(self.device)
        if not self._passes:
            return torch.stack([_one(member, batch) for member in self.members], 1)
        parts = []
        for number in range(self._passes):
            with dropout_pass(self._dropout, number):
                parts.append(_one(self.members[0], batch))
        return torch.stack(parts, 1)

    def predict(
        self,
        ids: Sequence[Sequence[int]],
        *,
        batch_tokens: int,
        batch_size: int,
        report: OnBatch = lambda *_: None,
    ) -> LogitPosterior:
        """Return the posterior of comments, in order; one at least.

        A device waits for nothing between the batches: the next one is copied to it meanwhile, and
        results are copied from it at the end. `report` is called before the first batch, and after
        each one.
        """
        order = _buckets(ids, batch_tokens, batch_size)
        parts = [self.logit_moments(batch) for batch in self._batches(ids, order, report)]
        back = np.argsort(np.concatenate(order), kind="stable")
        return self.posterior(torch.cat(parts, 2)[:, :, back])

    def posterior(self, moments: Tensor) -> LogitPosterior:
        """Return the posterior with these mean and variance (2, K, N) of the logits."""
        mean, variance = moments.double().cpu().numpy()
        factor = self.members[0].head.factor
        return LogitPosterior(mean=mean, variance=variance, factor=factor)

    @torch.inference_mode()
    def observe(
        self,
        ids: Sequence[Sequence[int]],
        *,
        batch_tokens: int,
        batch_size: int,
        report: OnBatch = lambda *_: None,
    ) -> None:
        """Compute the posterior of each head from its training comments; `report` as above."""
        for member in self.members:
            member.head.forget()
        for batch in self._batches(ids, _buckets(ids, batch_tokens, batch_size), report):
            for member in self.members:
                member.head.observe(member.features(batch.ids, batch.mask))

    def _batches(
        self, ids: Sequence[Sequence[int]], order: Sequence[NDArray[np.intp]], report: OnBatch
    ) -> Iterator[Batch]:
        """Yield the batches with these rows, on the device."""
        batches = (padded([ids[i] for i in rows], self.pad_id) for rows in order)
        report(0, len(order))
        for done, batch in enumerate(on_device(batches, self.device), start=1):
            yield batch
            report(done, len(order))


def _one(member: Classifier, batch: Batch) -> Tensor:
    """Return mean and variance (2, N) of the logits."""
    return member.head.logit_moments(member.features(batch.ids, batch.mask))


def _buckets(
    ids: Sequence[Sequence[int]], batch_tokens: int, batch_size: int
) -> list[NDArray[np.intp]]:
    lengths = [len(sequence) for sequence in ids]
    return list(length_buckets(lengths, token_budget=batch_tokens, most=batch_size))


def build_classifier(encoder: PreTrainedModel, recipe: Recipe) -> Classifier:
    """Return `encoder` with an untrained head; torch's seed determines its weights."""
    width = int(encoder.config.hidden_size)
    return Classifier(encoder, build_head(width, width, recipe), recipe)


def padding_id(encoder: PreTrainedModel, tokenizer: PreTrainedTokenizerFast) -> int:
    """Return the id for padding: that of the encoder, or else of the tokenizer, or else 0."""
    for owner in (encoder.config, tokenizer):
        own = getattr(owner, "pad_token_id", None)
        if own is not None:
            return int(own)
    return 0


class MaskedDropout(nn.Module):
    """In place of a dropout layer: during a pass, a fixed mask over the last dimension."""

    def __init__(self, p: float) -> None:
        super().__init__()
        #: Read by attention layers, which apply dropout themselves during training.
        self.p = p
        self.number: int | None = None
        self.reseed(0, 0)

    def reseed(self, *seed: int) -> None:
        """Draw the masks from another seed."""
        self._seed = seed
        self._masks: dict[tuple[int, int, torch.device, torch.dtype], Tensor] = {}

    def forward(self, values: Tensor) -> Tensor:
        """Return `values`, masked during a pass, at random during training."""
        if self.number is None:
            return nn.functional.dropout(values, self.p, self.training)
        return values * self._mask(self.number, values)

    def _mask(self, number: int, values: Tensor) -> Tensor:
        """Return the mask (d,) of a pass for values (…, d), on their device and of their type."""
        key = (number, values.shape[-1], values.device, values.dtype)
        if key not in self._masks:
            entropy = np.random.SeedSequence([*self._seed, number]).generate_state(1, np.uint64)
            generator = torch.Generator().manual_seed(int(entropy[0]))
            kept = torch.rand(key[1], generator=generator) >= self.p
            self._masks[key] = (kept / (1 - self.p)).to(values.device, values.dtype)
        return self._masks[key]


def replace_dropout(module: nn.Module, *, seed: int) -> list[MaskedDropout]:
    """Replace every dropout layer within `module`; return all such layers."""
    for parent in list(module.modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, nn.Dropout) and child.p > 0:
                setattr(parent, name, MaskedDropout(child.p))
    layers = _masked(module)
    for place, layer in enumerate(layers):
        layer.reseed(seed, place)
    return layers


@contextmanager
def dropout_pass(layers: list[MaskedDropout], number: int) -> Iterator[None]:
    """Use the masks of one pass within the block."""
    for layer in layers:
        layer.number = number
    try:
        yield
    finally:
        for layer in layers:
            layer.number = None


def _masked(module: nn.Module) -> list[MaskedDropout]:
    return [layer for layer in module.modules() if isinstance(layer, MaskedDropout)]

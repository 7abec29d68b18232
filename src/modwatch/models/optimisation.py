"""Gradient descent on a classifier: steps, schedule, time limit."""

import logging
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer
from torch import Tensor, nn

from modwatch.models.classifier import Batch, Classifier, padded, padding_id
from modwatch.models.heads import GaussianLogit
from modwatch.models.recipe import Recipe
from modwatch.models.tokenizer import mask_id

logger = logging.getLogger(__name__)

Ids = list[list[int]]
Targets = NDArray[np.float32]

_WARM_UP = 0.1  # share of the steps with an increasing learning rate
_LENGTH_NOISE = 8  # subwords; varies which comments of similar length share a batch


@dataclass(frozen=True, kw_only=True)
class Progress:
    """State of a training run, for the progress callback after each step."""

    step: int
    steps: int
    loss: float


class Optimisation:
    """One run of gradient descent."""

    def __init__(
        self,
        classifier: Classifier,
        tokenizer: Tokenizer,
        recipe: Recipe,
        rng: np.random.Generator,
        clock: Callable[[], float],
        progress: Callable[[Progress], None] | None,
    ) -> None:
        self.classifier, self.recipe, self.rng = classifier, recipe, rng
        self.clock, self.progress = clock, progress
        self.pad_id = padding_id(classifier.encoder, tokenizer)
        self.mask_id = mask_id(tokenizer)
        self.step = 0

    def optimise(self, ids: Ids, target: Targets) -> bool:
        """Fit the classifier to `target`, p(y=1) each; return whether the time limit ended it."""
        steps = min(
            self.recipe.max_steps,
            self.recipe.epochs * math.ceil(len(ids) / self.recipe.batch_size),
        )
        optimiser = _optimiser(self.classifier, self.recipe)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, _triangle(steps))
        end = self.clock() + self.recipe.seconds
        self.classifier.train()
        for rows in self._epochs(ids):
            if self.step == steps or self.clock() > end:
                break
            loss = self._loss(self._masked(self._batch(ids, rows)), target[rows])
            optimiser.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(self.classifier.parameters(), 1.0)
            optimiser.step()
            schedule.step()
            self.classifier.head.constrain()
            self._report(steps, loss.item())
        if self.step < steps:
            logger.warning(
                "Training stopped at the time limit.",
                extra={"event": "training_stopped_early", "step": self.step, "steps": steps},
            )
        return self.step < steps

    @torch.no_grad()
    def learn_posterior(self, ids: Ids) -> None:
        """Compute the posterior of the head from every training comment, at the final weights."""
        self.classifier.eval()
        for rows in self._by_length(ids):
            self.classifier.head.observe(self.classifier.features(self._batch(ids, rows)))

    @torch.no_grad()
    def predict(self, ids: Ids) -> GaussianLogit:
        """Return the uncalibrated posterior of comments, in order."""
        self.classifier.eval()
        order = self._by_length(ids)
        parts = [
            self.classifier.head.posterior(self.classifier.features(self._batch(ids, rows)))
            for rows in order
        ]
        back = np.argsort(np.concatenate(order), kind="stable")
        return parts[0].join(parts, back)

    def _epochs(self, ids: Ids) -> Iterator[NDArray[np.intp]]:
        """Yield the rows of batches of similar length, without end."""
        length = np.array([len(sequence) for sequence in ids])
        while True:
            noisy = length + self.rng.uniform(0, _LENGTH_NOISE, len(ids))
            batches = _split(np.argsort(noisy, kind="stable"), self.recipe.batch_size)
            self.rng.shuffle(batches)
            yield from batches

    def _by_length(self, ids: Ids) -> list[NDArray[np.intp]]:
        length = np.array([len(sequence) for sequence in ids])
        return _split(np.argsort(length, kind="stable"), 4 * self.recipe.batch_size)

    def _batch(self, ids: Ids, rows: NDArray[np.intp]) -> Batch:
        return padded([ids[i] for i in rows], self.pad_id)

    def _masked(self, batch: Batch) -> Batch:
        """Return the batch with a random share of its subwords masked."""
        if not self.recipe.token_dropout:
            return batch
        drop = (torch.rand(batch.ids.shape) < self.recipe.token_dropout) & batch.mask.bool()
        return Batch(ids=batch.ids.masked_fill(drop, self.mask_id), mask=batch.mask)

    def _loss(self, batch: Batch, target: Targets) -> Tensor:
        logit = self.classifier.head.logit(self.classifier.features(batch))
        return nn.functional.binary_cross_entropy_with_logits(
            logit,
            torch.from_numpy(target).to(logit.dtype),
            pos_weight=torch.tensor(self.recipe.positive_weight),
        )

    def _report(self, steps: int, loss: float) -> None:
        self.step += 1
        if self.progress is not None:
            self.progress(Progress(step=self.step, steps=steps, loss=loss))


def _optimiser(classifier: Classifier, recipe: Recipe) -> torch.optim.Optimizer:
    """Return AdamW; the embeddings of a new encoder learn faster and do not decay."""
    embeddings = classifier.encoder.get_input_embeddings().weight
    others = [weight for weight in classifier.parameters() if weight is not embeddings]
    rate = recipe.learning_rate
    faster = recipe.embedding_rate if recipe.encoder is None else 1.0
    return torch.optim.AdamW(
        [
            {"params": [embeddings], "lr": rate * faster, "weight_decay": 0.0},
            {"params": others, "lr": rate, "weight_decay": recipe.weight_decay},
        ]
    )


def _triangle(steps: int) -> Callable[[int], float]:
    """Return the factor of the learning rate by step: linear warm-up, then linear decay to 0."""
    top = max(1.0, _WARM_UP * steps)
    return lambda step: min((step + 1) / top, 1.0) * max(0.0, 1 - step / steps)


def _split(order: NDArray[np.intp], size: int) -> list[NDArray[np.intp]]:
    return [order[start : start + size] for start in range(0, len(order), size)]

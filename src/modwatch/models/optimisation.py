"""Fits one network: transformers' `Trainer`, with checkpoints that survive a kill."""

import math
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits
from torch.utils.data import DataLoader
from transformers import (
    EarlyStoppingCallback,
    PreTrainedModel,
    Trainer,
    TrainerCallback,
    TrainerControl,
    TrainingArguments,
)
from transformers.trainer_callback import PrinterCallback, ProgressCallback

from modwatch.common.errors import ModelError
from modwatch.models.batches import ShuffledBuckets, padded
from modwatch.models.classifier import Classifier, Predictor
from modwatch.models.devices import BatchLimits, has_bf16, within_memory
from modwatch.models.encoder import quiet
from modwatch.models.recipe import Recipe

Ids = list[list[int]]
#: Called with phase, steps or batches that are done, and all of them.
Report = Callable[[str, int, int], None]
#: Of a curve: `step`, and `loss` with `learning_rate`, or `average_precision`, or all.
Point = dict[str, float]
#: Written last into a checkpoint, so that one without it is incomplete.
_COMPLETE = "complete"
#: Seconds between checkpoints, in addition to those of the evaluations.
_CHECKPOINT_SECONDS = 300.0
#: Most rows of a batch that a message names.
_NAMED = 8
#: Most subwords of a comment in training for which the attention is not the fused one on a CPU.
_SHORT = 128


def loss_of(recipe: Recipe, logit: Tensor, target: Tensor) -> Tensor:
    """Return the mean loss of the recipe over N comments.

    Focal loss (Lin et al. 2017, Eq. 5, without its constant; Kivlichan et al. 2021, section 5)
    multiplies the cross-entropy with |y − p|^γ, which is (1 − p_t)^γ for labels, so that easy
    comments count less. `positive_weight` multiplies the part of toxic comments.

    Args:
        logit: (N,).
        target: (N,) in [0, 1].

    >>> easy_and_hard = torch.tensor([4.0, -4.0]), torch.ones(2)
    >>> plain = loss_of(Recipe(loss="cross_entropy"), *easy_and_hard)
    >>> bool(loss_of(Recipe(loss="focal", focal_gamma=0.0), *easy_and_hard) == plain)
    True
    """
    weight = torch.tensor(recipe.positive_weight, device=logit.device)
    logit, target = logit.float(), target.float()
    loss = binary_cross_entropy_with_logits(logit, target, pos_weight=weight, reduction="none")
    if recipe.loss == "focal" and recipe.focal_gamma:
        loss = loss * (target - torch.sigmoid(logit)).abs() ** recipe.focal_gamma
    return loss.mean()


@dataclass(frozen=True, kw_only=True)
class Split:
    """Tokenised comments with targets."""

    ids: Ids
    #: (N,) in [0, 1].
    target: NDArray[np.float32]
    #: (N,) positions in the corpus, from 0.
    rows: NDArray[np.intp]


@dataclass(frozen=True, kw_only=True)
class Fit:
    """What is known about a fitted network."""

    steps: int
    #: Average precision of the held-out comments at the weights that were kept.
    average_precision: float
    #: The limits of a batch, smaller than those of the recipe after a lack of memory.
    batch_size: int
    batch_tokens: int
    curve: list[Point]


def fit(
    make: Callable[[], Classifier],
    train: Split,
    held: Split,
    *,
    recipe: Recipe,
    seed: int,
    pad_id: int,
    device: torch.device,
    folder: Path,
    progress: Report = lambda *_: None,
    log: Callable[[Point], None] = lambda _: None,
) -> tuple[Classifier, Fit]:
    """Return the classifier of `make` fitted to `train`, at its best weights by `held`.

    The run goes on from the last complete checkpoint in `folder`, and gives the same weights as an
    undisturbed one on the same machine. If memory runs out, it starts again with half the batch and
    twice the accumulation.

    Raises:
        ModelError: loss or weights are not finite, or one comment does not fit into the memory.
    """

    def attempt(limits: BatchLimits) -> tuple[Classifier, Fit]:
        smaller = replace(
            recipe,
            batch_size=limits.batch_size,
            batch_tokens=limits.batch_tokens,
            accumulation=recipe.accumulation * 2**limits.halvings,
        )
        own = folder / f"batch-{limits.batch_size}-{limits.batch_tokens}"
        with isolated_random(seed), _threads(recipe.threads), quiet():
            classifier = make()
            trainer = _Trainer(
                classifier, train, held, smaller, seed=seed, pad_id=pad_id, device=device,
                folder=own, progress=progress,
            )  # fmt: skip
            trainer.add_callback(_Report(progress, log))
            with _attention(classifier.encoder, device, recipe.max_length):
                trainer.train(resume_from_checkpoint=_last_complete(own))
        state = trainer.state
        return classifier, Fit(
            steps=int(state.global_step),
            average_precision=float(state.best_metric or math.nan),
            batch_size=limits.batch_size,
            batch_tokens=limits.batch_tokens,
            curve=_curve(state.log_history),
        )

    return within_memory(attempt, limits_of(recipe), work="training", device=device)


class _Trainer(Trainer):  # type: ignore[misc]
    """The Trainer with batches under a token budget, our losses, and the head's upkeep."""

    def __init__(
        self,
        classifier: Classifier,
        train: Split,
        held: Split,
        recipe: Recipe,
        *,
        seed: int,
        pad_id: int,
        device: torch.device,
        folder: Path,
        progress: Report,
    ) -> None:
        self._split, self._held, self._recipe, self._pad_id = train, held, recipe, pad_id
        self._progress = progress
        self._sampler = ShuffledBuckets(
            [len(sequence) for sequence in train.ids],
            token_budget=recipe.batch_tokens,
            most=recipe.batch_size,
            seed=seed,
        )
        super().__init__(
            classifier,
            _arguments(recipe, len(self._sampler), seed=seed, device=device, folder=folder),
            data_collator=self._collate,
            train_dataset=list(range(len(train.ids))),
            eval_dataset=list(range(len(held.ids))),
            callbacks=[
                EarlyStoppingCallback(recipe.patience),
                _Upkeep(classifier, recipe.epochs * recipe.evaluations),
            ],
        )
        for printing in (PrinterCallback, ProgressCallback):
            self.remove_callback(printing)

    def get_train_dataloader(self) -> DataLoader[Any]:
        """Return batches of similar length; the epoch and the seed determine them."""
        loader = DataLoader(
            self.train_dataset, batch_sampler=self._sampler, collate_fn=self.data_collator
        )
        return self.accelerator.prepare(loader)  # type: ignore[no-any-return]

    def create_optimizer(self, *_: Any, **__: Any) -> torch.optim.Optimizer:
        """Return AdamW; the head may learn faster."""
        rate, decay = self._recipe.learning_rate, self._recipe.weight_decay
        encoder, head = self.model.encoder, self.model.head
        plain = set(self.get_decay_parameter_names(self.model))
        groups = []
        for part, name, factor in (
            (encoder, "encoder", 1.0),
            (head, "head", self._recipe.head_rate),
        ):
            for decays in (True, False):
                weights = [
                    weight
                    for key, weight in part.named_parameters()
                    if weight.requires_grad and (f"{name}.{key}" in plain) == decays
                ]
                groups.append(
                    {"params": weights, "lr": rate * factor, "weight_decay": decay * decays}
                )
        self.optimizer = torch.optim.AdamW(
            [group for group in groups if group["params"]], fused=True
        )
        return self.optimizer

    def compute_loss(self, model: Any, inputs: dict[str, Tensor], *_: Any, **__: Any) -> Tensor:
        """Return the loss of the recipe; stop where it is not finite."""
        logit = model(inputs["ids"], inputs["mask"])
        loss = loss_of(self._recipe, logit, inputs["target"])
        if not torch.isfinite(loss):
            batch = self._split.rows[inputs["row"].cpu().numpy()]
            raise ModelError(
                f"training: the loss of step {self.state.global_step + 1} is not finite (batch of "
                f"{len(batch)} comments, rows {', '.join(map(str, batch[:_NAMED]))}"
                f"{', …' * (len(batch) > _NAMED)} of the corpus, counted from 0); use a smaller "
                "`learning_rate`"
            )
        return loss

    def evaluate(self, *_: Any, **__: Any) -> dict[str, float]:
        """Return the average precision of the held-out comments, of the network without passes.

        The weights that are evaluated, some of which are kept, have a norm within the bound. Saving
        alone does not change them, since its time is not that of another run.
        """
        if not all(weight.isfinite().all() for weight in self.model.parameters()):
            raise ModelError(
                f"training: the weights after step {self.state.global_step} are not finite; use a "
                "smaller `learning_rate`"
            )
        self.model.head.constrain(exact=True)
        recipe = replace(self._recipe, method="sngp" if self._recipe.is_sngp else "deterministic")
        predictor = Predictor(
            [self.model], recipe, pad_id=self._pad_id, seed=0, bf16=self.args.bf16
        )
        limits = limits_of(recipe).without_gradients(predictor.device)
        times = self._recipe.epochs * self._recipe.evaluations
        before = max(0, self.state.global_step * times // self.state.max_steps - 1)

        def report(done: int, batches: int) -> None:
            self._progress("evaluation", before * batches + done, times * batches)

        found = predictor.predict(self._held.ids, **limits.sizes(), report=report)
        precision = average_precision_score(self._held.target > 0.5, found.mean[0])
        metrics = {"eval_average_precision": float(precision)}
        self.log(metrics)
        self.control: TrainerControl = self.callback_handler.on_evaluate(
            self.args, self.state, self.control, metrics
        )
        return metrics

    def _collate(self, rows: Sequence[int]) -> dict[str, Tensor]:
        batch = padded([self._split.ids[row] for row in rows], self._pad_id)
        return {
            "ids": batch.ids,
            "mask": batch.mask,
            "target": torch.from_numpy(self._split.target[list(rows)]),
            "row": torch.tensor(rows),
        }


class _Upkeep(TrainerCallback):  # type: ignore[misc]
    """Keeps the norm of the SNGP head's dense layer within its bound; evaluates; saves."""

    def __init__(self, classifier: Classifier, evaluations: int) -> None:
        self._head, self._evaluations = classifier.head, evaluations
        self._saved = time.monotonic()

    def on_optimizer_step(self, *_: Any, **__: Any) -> None:
        """Constrain the head."""
        self._head.constrain()

    def on_step_end(self, _: Any, state: Any, control: Any, **__: Any) -> None:
        """Evaluate and save at equal distances, and at the end; save every few minutes, too."""
        done = state.global_step * self._evaluations
        due = done // state.max_steps > (done - self._evaluations) // state.max_steps
        control.should_evaluate, control.should_log = due, due or control.should_log
        control.should_save = due or time.monotonic() - self._saved > _CHECKPOINT_SECONDS

    def on_save(self, args: TrainingArguments, state: Any, _: Any, **__: Any) -> None:
        """Mark the checkpoint as complete."""
        self._saved = time.monotonic()
        (Path(args.output_dir) / f"checkpoint-{state.global_step}" / _COMPLETE).touch()


class _Report(TrainerCallback):  # type: ignore[misc]
    """Calls back after each step, and with each point of the curve."""

    def __init__(self, progress: Report, log: Callable[[Point], None]) -> None:
        self._progress, self._log = progress, log

    def on_train_begin(self, *given: Any, **_: Any) -> None:
        """Call back with the steps of an interrupted run, or 0."""
        self.on_step_end(*given)

    def on_step_end(self, _: Any, state: Any, __: Any, **___: Any) -> None:
        """Call back with step and steps."""
        self._progress("training", state.global_step, state.max_steps)

    def on_log(self, _: Any, state: Any, __: Any, **___: Any) -> None:
        """Call back with what was logged."""
        for point in _curve(state.log_history[-1:]):
            self._log(point)


def _arguments(
    recipe: Recipe, steps: int, *, seed: int, device: torch.device, folder: Path
) -> TrainingArguments:
    """Return the arguments of the Trainer; evaluations and checkpoints are those of `_Upkeep`."""
    total = steps_of(recipe, steps)
    never = 1_000_000_000
    arguments = TrainingArguments(
        output_dir=str(folder),
        seed=seed,
        max_steps=total,
        gradient_accumulation_steps=recipe.accumulation,
        lr_scheduler_type="linear",
        warmup_steps=math.ceil(recipe.warm_up * total),
        max_grad_norm=1.0,
        bf16=has_bf16(device),
        use_cpu=device.type == "cpu",
        eval_strategy="steps",
        eval_steps=never,
        save_strategy="steps",
        save_steps=never,
        save_total_limit=3,
        logging_strategy="steps",
        logging_steps=max(1, total // 200),
        logging_nan_inf_filter=False,
        load_best_model_at_end=True,
        metric_for_best_model="average_precision",
        greater_is_better=True,
        restore_callback_states_from_checkpoint=True,
        remove_unused_columns=False,
        report_to="none",
        disable_tqdm=True,
        dataloader_pin_memory=device.type == "cuda",
    )
    arguments._n_gpu = min(arguments.n_gpu, 1)
    return arguments


def steps_of(recipe: Recipe, batches: int) -> int:
    """Return the steps of a network, without early stopping, of `batches` an epoch."""
    total = recipe.epochs * math.ceil(batches / recipe.accumulation)
    return min(total, recipe.max_steps or total)


def _last_complete(folder: Path) -> str | None:
    """Return the newest checkpoint that was written to its end."""
    complete = [path.parent for path in folder.glob(f"checkpoint-*/{_COMPLETE}")]
    newest = max(complete, key=lambda path: int(path.name.partition("-")[2]), default=None)
    return None if newest is None else str(newest)


def _curve(history: Sequence[dict[str, float]]) -> list[Point]:
    """Return loss, learning rate and average precision by step."""
    names = {"loss": "loss", "learning_rate": "learning_rate"}
    names["eval_average_precision"] = "average_precision"
    points: dict[int, Point] = {}
    for log in history:
        known = {names[key]: float(value) for key, value in log.items() if key in names}
        if known:
            points.setdefault(int(log["step"]), {}).update(known)
    return [{"step": float(step), **values} for step, values in sorted(points.items())]


def limits_of(sizes: Recipe | Fit) -> BatchLimits:
    """Return the limits of a batch of training."""
    return BatchLimits(batch_size=sizes.batch_size, batch_tokens=sizes.batch_tokens)


@contextmanager
def isolated_random(seed: int) -> Iterator[None]:
    """Seed the random numbers of the block, and leave those of the caller as they were."""
    before = random.getstate(), np.random.get_state()  # noqa: NPY002 - the Trainer seeds them
    devices = list(range(torch.cuda.device_count())) if torch.cuda.is_available() else []
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(seed)
        try:
            yield
        finally:
            random.setstate(before[0])
            np.random.set_state(before[1])  # noqa: NPY002


@contextmanager
def _attention(encoder: PreTrainedModel, device: torch.device, longest: int) -> Iterator[None]:
    """Train an encoder of short comments on a CPU without PyTorch's fused attention.

    Without dropout its backward pass takes half of a step (`benchmarks/training_speed.py`).
    """
    fused = getattr(encoder.config, "_attn_implementation", None) == "sdpa"
    plain = fused and device.type == "cpu" and longest <= _SHORT
    if plain:
        encoder.set_attn_implementation("eager")
    try:
        yield
    finally:
        if plain:
            encoder.set_attn_implementation("sdpa")


@contextmanager
def _threads(count: int | None) -> Iterator[None]:
    """Set the threads of torch to `count`, and restore them afterwards."""
    before = torch.get_num_threads()
    torch.set_num_threads(count or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)

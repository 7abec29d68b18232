"""Training: a corpus and a recipe in, a calibrated model with a threshold out."""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.model_selection import train_test_split
from tokenizers import Tokenizer
from transformers import PreTrainedModel

from modwatch.errors import ModelError
from modwatch.models.calibration import (
    Calibration,
    best_f1_threshold,
    platt,
    prevalence_weights,
    prior_shift,
)
from modwatch.models.classifier import Classifier, build_classifier
from modwatch.models.encoder import saved_encoder, small_encoder
from modwatch.models.heads import GaussianLogit
from modwatch.models.optimisation import Optimisation, Progress
from modwatch.models.recipe import Recipe
from modwatch.models.teacher import teacher_predictions
from modwatch.models.tokenizer import cut, encode, load_tokenizer, pad_id, train_tokenizer

logger = logging.getLogger(__name__)

Labels = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class TrainingFacts:
    """Facts about a training run, for the artifact and the registry."""

    seed: int
    examples: int
    toxic: int
    #: Comments left out, because the corpus has more than `max_examples`.
    left_out: int
    steps: int
    #: The time limit ended the run before its last step.
    stopped_early: bool
    #: Held-out metrics at the prevalence of the corpus: n, auroc, average_precision, brier, ece.
    validation: dict[str, float]


@dataclass(frozen=True, kw_only=True)
class TrainedModel:
    """A trained model."""

    recipe: Recipe
    tokenizer: Tokenizer
    classifier: Classifier
    calibration: Calibration
    #: A comment with a higher probability is flagged.
    threshold: float
    facts: TrainingFacts


def train(
    texts: Sequence[str],
    labels: Sequence[int],
    *,
    recipe: Recipe,
    seed: int,
    progress: Callable[[Progress], None] | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> TrainedModel:
    """Return a classifier trained on `texts` with `labels` (1 toxic, 0 not), calibrated.

    A stratified share of the corpus is held out for calibration, threshold and validation. The
    same corpus, recipe and seed give the same model on the same machine, unless the time limit
    `seconds` is reached. ModelError when lengths differ, labels are not 0 or 1, or a class has
    fewer than ten comments.
    """
    label = _checked(texts, labels)
    with torch.random.fork_rng(devices=[]), _threads(recipe.threads):
        torch.manual_seed(seed)
        rng = np.random.default_rng(seed)
        kept = _drawn(len(texts), recipe.max_examples, rng)
        fit, held = train_test_split(
            kept, test_size=recipe.held_out, stratify=label[kept], random_state=seed
        )
        tokenizer, encoder = _start([texts[i] for i in fit], recipe)
        classifier = build_classifier(encoder, recipe)
        ids = encode(tokenizer, [texts[i] for i in fit], max_length=recipe.max_length)
        run = Optimisation(classifier, tokenizer, recipe, rng, clock, progress)
        stopped = run.optimise(ids, _targets([texts[i] for i in fit], label[fit], recipe, seed))
        run.learn_posterior(ids)
        held_ids = encode(tokenizer, [texts[i] for i in held], max_length=recipe.max_length)
        raw = run.predict(held_ids)
    calibration, threshold = _calibrated(raw, label[held], label[kept].mean(), recipe)
    facts = TrainingFacts(
        seed=seed,
        examples=len(kept),
        toxic=int(label[kept].sum()),
        left_out=len(texts) - len(kept),
        steps=run.step,
        stopped_early=stopped,
        validation=_validation(raw, label[held], calibration),
    )
    logger.info("Model trained.", extra={"event": "model_trained", **facts.validation})
    return TrainedModel(
        recipe=recipe,
        tokenizer=tokenizer,
        classifier=classifier,
        calibration=calibration,
        threshold=threshold,
        facts=facts,
    )


@contextmanager
def _threads(count: int) -> Iterator[None]:
    """Set the threads of torch to `count`, and restore them afterwards."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _checked(texts: Sequence[str], labels: Sequence[int]) -> Labels:
    if len(texts) != len(labels):
        raise ModelError(f"training: {len(texts)} texts but {len(labels)} labels; pass one each")
    label = np.asarray(labels)
    if not np.isin(label, (0, 1)).all():
        raise ModelError("training: labels must be 0 or 1; remove or decide the others")
    toxic = int(label.sum())
    if min(toxic, len(label) - toxic) < 10:
        raise ModelError(
            f"training: {toxic} toxic and {len(label) - toxic} other comments; "
            "at least ten of each are required"
        )
    return label.astype(np.int64)


def _drawn(n: int, most: int, rng: np.random.Generator) -> NDArray[np.intp]:
    return np.sort(rng.permutation(n)[:most])


def _start(texts: list[str], recipe: Recipe) -> tuple[Tokenizer, PreTrainedModel]:
    """Return tokenizer and encoder: from the folder of the recipe, or new."""
    if recipe.encoder is not None:
        folder = Path(recipe.encoder)
        return load_tokenizer(folder / "tokenizer.json"), saved_encoder(folder)
    tokenizer = train_tokenizer(texts, recipe)
    encoder = small_encoder(recipe, vocab_size=tokenizer.get_vocab_size(), pad_id=pad_id(tokenizer))
    return tokenizer, encoder


def _targets(texts: list[str], label: Labels, recipe: Recipe, seed: int) -> NDArray[np.float32]:
    """Return the training target, (N,): labels mixed with predictions of the teacher."""
    target = label.astype(np.float32)
    if not recipe.teacher_weight:
        return target
    prob = teacher_predictions(cut(texts, max_length=recipe.max_length), label, seed=seed)
    return (1 - recipe.teacher_weight) * target + recipe.teacher_weight * prob


def _calibrated(
    raw: GaussianLogit, label: Labels, corpus: float, recipe: Recipe
) -> tuple[Calibration, float]:
    """Return calibration and threshold from the held-out comments."""
    expected = recipe.expected_prevalence or corpus
    scale, shift = platt(raw, label)
    calibration = Calibration(scale=scale, shift=shift, prior_shift=prior_shift(corpus, expected))
    if recipe.threshold is not None:
        return calibration, recipe.threshold
    prob = calibration(raw).prob()
    return calibration, best_f1_threshold(prob, label, prevalence_weights(label, expected))


def _validation(raw: GaussianLogit, label: Labels, calibration: Calibration) -> dict[str, float]:
    """Return held-out metrics at the prevalence of the corpus.

    The two parameters of the calibration are fitted on the same comments, so Brier score and ECE
    are slightly optimistic.
    """
    prob = raw.affine(calibration.scale, calibration.shift).prob()
    return {
        "n": float(len(label)),
        "auroc": float(roc_auc_score(label, prob)),
        "average_precision": float(average_precision_score(label, prob)),
        "brier": float(np.mean((label - prob) ** 2)),
        "ece": _expected_calibration_error(prob, label),
    }


def _expected_calibration_error(prob: NDArray[np.float64], label: Labels, bins: int = 15) -> float:
    """Return ECE over equal bins of the confidence max(p, 1−p)."""
    confidence = np.maximum(prob, 1 - prob)
    correct = (prob > 0.5) == (label == 1)
    bin_of = np.minimum((confidence * bins).astype(int), bins - 1)
    gap = np.bincount(bin_of, weights=correct - confidence, minlength=bins)
    return float(np.abs(gap).sum() / len(label))

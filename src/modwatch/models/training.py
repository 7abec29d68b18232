"""Training: a corpus and a recipe in, a calibrated model with a threshold out."""

import hashlib
import importlib.metadata
import json
import logging
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split
from transformers import PreTrainedTokenizerFast

from modwatch import statistics as metrics
from modwatch.common.errors import ModelError
from modwatch.models.bfloat16 import Agreement, agreement
from modwatch.models.calibration import (
    METHODS,
    Calibration,
    CalibrationChoice,
    best_f1_threshold,
    choose_calibration,
    prevalence_weights,
    prior_shift,
)
from modwatch.models.classifier import Classifier, OnBatch, Predictor, padding_id
from modwatch.models.devices import BatchLimits, has_bf16, within_memory
from modwatch.models.encoder import encode
from modwatch.models.networks import COMPARED, OnPoint, OnStep, fit_networks, starting_point
from modwatch.models.optimisation import Ids, Split
from modwatch.models.posterior import LogitPosterior
from modwatch.models.progress import Progress
from modwatch.models.recipe import Recipe
from modwatch.models.reference import held_out_profile, to_json

logger = logging.getLogger(__name__)

Labels = NDArray[np.int64]
Shares = NDArray[np.float64]

#: A comment is toxic if more than this share of its annotators says so.
LABEL_THRESHOLD = 0.5
_LEAST_OF_A_CLASS = 10
_LIBRARIES = ("torch", "transformers", "accelerate", "tokenizers", "safetensors", "numpy")


@dataclass(frozen=True, kw_only=True)
class TrainingFacts:
    """Facts about a training run, for the artifact and the registry."""

    seed: int
    device: str
    #: Comments of the corpus that were used, and the toxic ones among them.
    examples: int
    toxic: int
    #: Comments left out: longer than `max_characters`, or more than `max_examples`.
    left_out: int
    #: Comments of `max_length` subwords or more, of which the rest was not used.
    truncated: int
    #: Other comments left out of training, because of `negatives_per_positive`.
    negatives_left_out: int
    #: One entry for each network: steps, average precision, limits of a batch, curve.
    networks: list[dict[str, Any]]
    #: Held-out metrics at the prevalence of the corpus: n, auroc, average_precision; brier, ece and
    #: calibration_auprc before and after calibration (cross-validated).
    validation: dict[str, float]
    #: Mean log loss of each method of calibration, cross-validated.
    calibration_log_loss: dict[str, float]
    #: `Agreement` of bfloat16 and fp32 on held-out comments; empty where it was not measured: the
    #: device has no fast bfloat16, or the encoder no layers.
    bf16: dict[str, float] = field(default_factory=dict)
    #: Held-out comments as the model scores them, from `reference.to_json`.
    reference: dict[str, Any] = field(default_factory=dict)

    @property
    def bf16_is_close(self) -> bool:
        """Whether predictions in bfloat16 were close to those in fp32."""
        return bool(self.bf16) and Agreement(**self.bf16).close  # type: ignore[arg-type]


@dataclass(frozen=True, kw_only=True)
class TrainedModel:
    """A trained model."""

    recipe: Recipe
    tokenizer: PreTrainedTokenizerFast
    #: One network, or the members of an ensemble.
    members: list[Classifier]
    calibration: Calibration
    #: A comment with a higher probability is flagged.
    threshold: float
    facts: TrainingFacts

    def predict(
        self, ids: Ids, *, bf16: bool = False, report: OnBatch = lambda *_: None
    ) -> LogitPosterior:
        """Return the posterior of tokenised comments, in batches that fit into the memory.

        `report` is called as by `Predictor.predict`. ModelError when not even one comment fits.
        """
        predictor, made = self.predictor(bf16=bf16), self.facts.networks
        fitted = BatchLimits(
            batch_size=min(network["batch_size"] for network in made),
            batch_tokens=min(network["batch_tokens"] for network in made),
        )
        return within_memory(
            lambda limits: predictor.predict(ids, **limits.sizes(), report=report),
            fitted.without_gradients(predictor.device),
            work="prediction",
            device=predictor.device,
        )

    def predictor(self, device: torch.device | None = None, *, bf16: bool = False) -> Predictor:
        """Return what predicts with this model on `device`; None: where it is."""
        return Predictor(
            self.members,
            self.recipe,
            pad_id=padding_id(self.members[0].encoder, self.tokenizer),
            seed=self.facts.seed,
            device=device,
            bf16=bf16,
        )


def train(
    texts: Sequence[str],
    labels: Sequence[float],
    *,
    recipe: Recipe,
    seed: int,
    devices: Sequence[torch.device] = (torch.device("cpu"),),
    checkpoints: Path | None = None,
    progress: OnStep = lambda _: None,
    log: OnPoint = lambda *_: None,
) -> TrainedModel:
    """Return a model trained on `texts`, calibrated.

    A stratified share of the corpus is held out for early stopping, calibration, threshold and
    validation. The same corpus, recipe and seed give the same model on the same machine.

    Args:
        texts: (n,) comments.
        labels: (n,) in [0, 1]: 1 toxic, 0 not, or the share who labelled it toxic. The loss
            uses the share; a comment is toxic if more than half did.
        recipe: hyperparameters.
        seed: of everything random.
        devices: where to train; the members of an ensemble side by side if there are several.
        checkpoints: folder of this run alone (`run_digest`), from which it goes on after an
            interruption; None: a temporary one.
        progress: called at the start of each phase, and after each step or batch.
        log: called with each point of a curve: network (1…networks), networks, point.

    Raises:
        ModelError: lengths differ, labels are outside [0, 1], a class has fewer than ten comments,
            the encoder cannot be loaded, loss or weights are not finite, or one comment does not
            fit into the memory.
    """
    given = len(texts)
    if recipe.max_characters is not None and given == len(labels):
        short = [row for row, text in enumerate(texts) if len(text) <= recipe.max_characters]
        texts, labels = [texts[row] for row in short], [labels[row] for row in short]
    target = checked(texts, labels)
    label = (target > LABEL_THRESHOLD).astype(np.int64)
    rng = np.random.default_rng(seed)
    kept = np.sort(rng.permutation(len(texts))[: recipe.max_examples])
    fitted, held = train_test_split(
        kept, test_size=recipe.held_out, stratify=label[kept], random_state=seed
    )
    used = _balanced(fitted, label, recipe, rng)
    progress(Progress(phase="tokenising"))
    start = starting_point([texts[i] for i in used], recipe)
    tokenizer, recipe = start.tokenizer, start.recipe
    train_split, held_split = (
        Split(
            ids=encode(tokenizer, [texts[i] for i in rows], max_length=recipe.max_length),
            target=target[rows].astype(np.float32),
            rows=rows,
        )
        for rows in (used, held)
    )
    progress(Progress(phase="tokenising", step=1))
    with ExitStack() as exits:
        folder = checkpoints or Path(exits.enter_context(tempfile.TemporaryDirectory()))
        folder.mkdir(parents=True, exist_ok=True)
        members, fits = fit_networks(
            start,
            train_split,
            held_split,
            seed=seed,
            devices=devices,
            folder=folder,
            progress=progress,
            log=log,
        )
    model = TrainedModel(
        recipe=recipe,
        tokenizer=tokenizer,
        members=members,
        calibration=Calibration(method="none"),
        threshold=0.5,
        facts=TrainingFacts(
            seed=seed,
            device=", ".join(str(device) for device in devices),
            examples=len(kept),
            toxic=int(label[kept].sum()),
            left_out=given - len(kept),
            truncated=sum(
                len(ids) == recipe.max_length for ids in (*train_split.ids, *held_split.ids)
            ),
            negatives_left_out=len(fitted) - len(used),
            networks=[asdict(made) for made in fits],
            validation={},
            calibration_log_loss={},
        ),
    )
    lengths = np.array([len(texts[i]) for i in held])
    corpus = float(label[kept].mean())
    return _calibrated(
        model, held_split.ids, label[held], lengths=lengths, corpus=corpus, progress=progress
    )


def checked(texts: Sequence[str], labels: Sequence[float]) -> Shares:
    """Return the labels as an array; ModelError when no model can be trained on the corpus."""
    if len(texts) != len(labels):
        raise ModelError(f"training: {len(texts)} texts but {len(labels)} labels; pass one each")
    target = np.asarray(labels, dtype=np.float64)
    if not ((target >= 0) & (target <= 1)).all():
        raise ModelError("training: labels must be between 0 and 1; remove or decide the others")
    toxic = int((target > LABEL_THRESHOLD).sum())
    if min(toxic, len(target) - toxic) < _LEAST_OF_A_CLASS:
        raise ModelError(
            f"training: {toxic} toxic and {len(target) - toxic} other comments; "
            "at least ten of each are required"
        )
    return target


def _balanced(
    rows: NDArray[np.intp], label: Labels, recipe: Recipe, rng: np.random.Generator
) -> NDArray[np.intp]:
    """Return the rows with at most `negatives_per_positive` others for each toxic comment."""
    if recipe.negatives_per_positive is None:
        return rows
    toxic, others = rows[label[rows] == 1], rows[label[rows] == 0]
    most = max(1, round(recipe.negatives_per_positive * len(toxic)))
    return np.sort(np.concatenate([toxic, rng.permutation(others)[:most]]))


def run_digest(texts: Sequence[str], labels: Sequence[float], recipe: Recipe, seed: int) -> str:
    """Return what determines the weights, as 16 hexadecimal digits: a name for its checkpoints."""
    content = json.dumps([recipe.to_json(), seed, [*map(float, labels)], library_versions()])
    corpus = hashlib.sha256(content.encode())
    for text in texts:
        corpus.update(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest())
    return corpus.hexdigest()[:16]


def library_versions() -> dict[str, str]:
    """Return the versions of the libraries that weights depend on, by name."""
    return {name: importlib.metadata.version(name) for name in _LIBRARIES}


def _calibrated(
    model: TrainedModel,
    ids: Ids,
    label: Labels,
    *,
    lengths: Labels,
    corpus: float,
    progress: OnStep,
) -> TrainedModel:
    """Return the model with what follows from n held-out comments.

    That is calibration, threshold, validation and the reference of drift. `label` and `lengths`, in
    characters, are (n,); `corpus` is the prevalence of the corpus.
    """
    recipe = model.recipe

    def report(phase: str, done: int, batches: int) -> None:
        progress(Progress(phase=phase, step=done, steps=batches))

    raw = model.predict(ids, report=partial(report, "prediction")).prob()
    report("calibration", 0, 1)
    methods = [method for method in METHODS if recipe.calibration in (None, method)]
    choice = choose_calibration(raw, label, seed=model.facts.seed, methods=methods)
    expected = recipe.expected_prevalence or corpus
    calibration = replace(choice.calibration, prior_shift=prior_shift(corpus, expected))
    weights, threshold = prevalence_weights(label, expected), recipe.threshold
    if threshold is None:
        threshold = best_f1_threshold(calibration(raw), label, weights)
    validation = _validation(raw, choice, label)
    model = replace(model, calibration=calibration, threshold=threshold)
    logger.info("Model trained.", extra={"event": "model_trained", **validation})
    report("calibration", 1, 1)
    facts = replace(
        model.facts,
        validation=validation,
        calibration_log_loss={str(name): loss for name, loss in choice.log_loss.items()},
        bf16=_bf16_agreement(model, ids[:COMPARED], raw[:COMPARED], partial(report, "comparison")),
        reference=to_json(
            held_out_profile(calibration(raw), weights, lengths=lengths, threshold=threshold)
        ),
    )
    return replace(model, facts=facts)


def _bf16_agreement(
    model: TrainedModel, ids: Ids, raw: Shares, report: OnBatch
) -> dict[str, float]:
    """Return the agreement with the probabilities `raw` in fp32, before calibration.

    Empty where bfloat16 is not used by default: it would not be faster.
    """
    encoder = model.members[0].encoder
    if not has_bf16(encoder.device) or not getattr(encoder.config, "num_hidden_layers", 1):
        return {}
    exact, coarse = (
        model.calibration(prob)
        for prob in (raw, model.predict(ids, bf16=True, report=report).prob())
    )
    return asdict(agreement(exact, coarse, threshold=model.threshold))


def _validation(raw: Shares, choice: CalibrationChoice, label: Labels) -> dict[str, float]:
    """Return held-out metrics at the prevalence of the corpus, before and after calibration."""
    found = {
        "n": float(len(label)),
        "auroc": metrics.auroc(label, raw),
        "average_precision": metrics.auprc(label, raw, interpolation="step"),
    }
    for prob, suffix in ((raw, "_before_calibration"), (choice.prob, "")):
        found[f"brier{suffix}"] = metrics.brier_score(label, prob)
        found[f"ece{suffix}"] = metrics.expected_calibration_error(label, prob)
        found[f"calibration_auprc{suffix}"] = metrics.calibration_auprc(label, prob)
    return {name: float(value) for name, value in found.items() if value is not None}

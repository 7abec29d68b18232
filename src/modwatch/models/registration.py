"""Trains a model and registers it, or registers one of others."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

import httpx
import torch
from huggingface_hub import HfApi, snapshot_download

from modwatch.common.errors import ModelError
from modwatch.data.lake.day_scores import ORIGIN
from modwatch.models.artifact import save
from modwatch.models.data_report import DataReport
from modwatch.models.progress import TrainingProgress
from modwatch.models.recipe import Recipe
from modwatch.models.registry import CLASS_TAG, SCRATCH, SOURCE_TAG, THRESHOLD_TAG, Registry
from modwatch.models.scoring.opening import open_scorer
from modwatch.models.training import checked, train
from modwatch.models.training_run import TrainingRun

#: What is fetched of a classifier: nothing that would be unpickled.
_FILES = ("*.json", "*.safetensors", "*.txt", "*.model")


def train_and_register(
    texts: Sequence[str],
    labels: Sequence[float],
    *,
    registry: Registry,
    recipe: Recipe,
    devices: Sequence[torch.device] = (torch.device("cpu"),),
    checkpoints: Path | None = None,
    seed: int = 0,
    report: DataReport | None = None,
    origin: str = "",
    request: str = "",
    progress: TrainingProgress | None = None,
) -> str:
    """Train a model and register it as a new version; return the version.

    Args:
        texts, labels, recipe, devices, checkpoints, seed: as in `training.train`.
        registry: of the model.
        report: on the data, stored with the run.
        origin: what pages say of the model wherever they show its figures; may be empty.
        request: kept with the version, for `Registry.version_of_request`.
        progress: shows what is done; None: nothing says it.

    Raises:
        ModelError: the corpus cannot be used, or training failed.
        TrackingError: MLflow cannot be reached.
    """
    checked(texts, labels)  # before there is a run, which would only say that it failed
    run = TrainingRun(registry.tracking_uri, name=registry.name, checkpoints=checkpoints)
    progress = progress or TrainingProgress()
    progress.say(f"training on {len(texts):,} comments; its curves: {run.url}")
    try:
        model = train(
            texts,
            labels,
            recipe=recipe,
            seed=seed,
            devices=devices,
            checkpoints=checkpoints,
            progress=progress,
            log=run.log,
        )
    except BaseException as exc:
        run.fail(exc)
        raise
    facts, recipe = model.facts, model.recipe
    facts.reference.update({ORIGIN: origin} if origin else {})
    run.finish([made["curve"] for made in facts.networks])
    with progress.phase("registration"), tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "artifact"
        digest = save(model, folder)
        return registry.register(
            folder,
            metrics=facts.validation,
            run_id=run.run_id,
            tags={
                "seed": str(facts.seed),
                "examples": str(facts.examples),
                "truncated": str(facts.truncated),
                "method": recipe.method,
                "loss": recipe.loss,
                "encoder": recipe.encoder or SCRATCH,
                "calibration": model.calibration.method,
            },
            digest=digest,
            report=None if report is None else report.to_json(),
            request=request,
        )


def register_foreign(
    model: str,
    *,
    registry: Registry,
    threshold: float | None = None,
    positive_class: str | None = None,
) -> str:
    """Register a Hugging Face classifier as it is, as a new version; return the version.

    Args:
        model: folder, or name on the Hugging Face hub, from which it is fetched now: scoring reads
            the registry.
        registry: of the model.
        threshold: comments with a higher probability are flagged; None: 0.5.
        positive_class: name of the class of toxic comments; None: the names of its classes tell.

    Raises:
        ModelError: there is no such model, or comments cannot be scored with it.
        TrackingError: MLflow cannot be reached.
    """
    with tempfile.TemporaryDirectory() as scratch:
        folder, source = Path(model).expanduser(), model
        if not folder.is_dir():
            folder, source = _fetched(model, Path(scratch))
        open_scorer(folder, model_version=model, threshold=threshold, stated_class=positive_class)
        tags = {THRESHOLD_TAG: threshold, CLASS_TAG: positive_class, SOURCE_TAG: source}
        given = {name: str(value) for name, value in tags.items() if value is not None}
        return registry.register_foreign(folder, tags=given)


def _fetched(name: str, folder: Path) -> tuple[Path, str]:
    """Fetch a model of the hub into `folder`; return the folder, and the name with the commit."""
    try:
        commit = HfApi().model_info(name).sha
        snapshot_download(name, revision=commit, local_dir=folder, allow_patterns=[*_FILES])
    except (OSError, ValueError, httpx.HTTPError) as exc:
        raise ModelError(
            f"{name} is no folder here, and cannot be fetched from the Hugging Face hub "
            f"({type(exc).__name__}); correct the name, or name a folder"
        ) from exc
    return folder, f"{name}@{commit}"

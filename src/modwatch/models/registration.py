"""Trains a model and registers it."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

import torch

from modwatch.data.lake.day_scores import ORIGIN
from modwatch.models.artifact import save
from modwatch.models.data_report import DataReport
from modwatch.models.progress import TrainingProgress
from modwatch.models.recipe import Recipe
from modwatch.models.registry import SCRATCH, Registry
from modwatch.models.training import checked, train
from modwatch.models.training_run import TrainingRun


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

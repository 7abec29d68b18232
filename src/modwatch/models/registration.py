"""Trains a model and registers it."""

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from modwatch.models.artifact import save
from modwatch.models.data_report import DataReport
from modwatch.models.recipe import Recipe
from modwatch.models.registry import SCRATCH, register
from modwatch.models.training import TrainedModel, checked, train
from modwatch.models.training_progress import TrainingProgress
from modwatch.models.training_run import TrainingRun


def train_and_register(
    texts: Sequence[str],
    labels: Sequence[float],
    *,
    name: str,
    tracking_uri: str,
    recipe: Recipe,
    devices: Sequence[torch.device] = (torch.device("cpu"),),
    checkpoints: Path | None = None,
    seed: int = 0,
    report: DataReport | None = None,
    request: str = "",
    progress: Callable[[str], None] = lambda _: None,
) -> str:
    """Train a model and register it as a new version of `name`; return the version.

    Args:
        texts, labels, recipe, devices, checkpoints, seed: as in `training.train`.
        name: of the model in the registry.
        tracking_uri: of MLflow.
        report: on the data, stored with the run.
        request: kept with the version, for `registry.version_of_request`.
        progress: called with a line now and then, if standard error is no terminal: a terminal
            has a progress bar.

    Raises:
        ModelError: the corpus cannot be used, or training failed.
        TrackingError: MLflow cannot be reached.
    """
    checked(texts, labels)  # before there is a run, which would only say that it failed
    run = TrainingRun(tracking_uri, name=name, checkpoints=checkpoints)
    progress(f"training on {len(texts):,} comments; its curves: {run.url}")
    try:
        with TrainingProgress(progress) as show:
            model = train(
                texts,
                labels,
                recipe=recipe,
                seed=seed,
                devices=devices,
                checkpoints=checkpoints,
                progress=show,
                log=run.log,
            )
    except BaseException as exc:
        run.fail(exc)
        raise
    progress("trained and calibrated; registering the model, about 10 s left")
    return register_model(
        model, name=name, tracking_uri=tracking_uri, run=run, report=report, request=request
    )


def register_model(
    model: TrainedModel,
    *,
    name: str,
    tracking_uri: str,
    run: TrainingRun | None = None,
    report: DataReport | None = None,
    request: str = "",
) -> str:
    """Register a trained model as a new version of `name`, with its curves; return the version.

    `run` is that of its training in MLflow; None: a new one.
    """
    facts, recipe = model.facts, model.recipe
    run = run or TrainingRun(tracking_uri, name=name)
    run.finish([made["curve"] for made in facts.networks])
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "artifact"
        digest = save(model, folder)
        return register(
            folder,
            name=name,
            metrics=facts.validation,
            run_id=run.run_id,
            tags={
                "seed": str(facts.seed),
                "examples": str(facts.examples),
                "method": recipe.method,
                "loss": recipe.loss,
                "encoder": recipe.encoder or SCRATCH,
                "calibration": model.calibration.method,
            },
            digest=digest,
            report=None if report is None else report.to_json(),
            request=request,
            tracking_uri=tracking_uri,
        )

"""Trains, saves and registers a model, and makes it the champion."""

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from modwatch.models.artifact import save
from modwatch.models.optimisation import Progress
from modwatch.models.recipe import Recipe, offline_recipe
from modwatch.models.registry import register, set_champion
from modwatch.models.training import TrainedModel, train


def train_champion(
    texts: Sequence[str],
    labels: Sequence[float],
    *,
    name: str,
    tracking_uri: str,
    recipe: Recipe | None = None,
    device: torch.device | None = None,
    checkpoints: Path | None = None,
    seed: int = 0,
    progress: Callable[[str], None] = lambda _: None,
) -> str:
    """Train a model, register it as champion of `name`; return its version.

    Args:
        texts, labels, device, checkpoints, seed: as in `training.train`.
        name: of the model in the registry.
        tracking_uri: of MLflow.
        recipe: None: the offline model.
        progress: called with a line now and then.

    Raises:
        ModelError: the corpus is too small or has invalid labels.
        TrackingError: MLflow cannot be reached.
    """
    progress(f"training on {len(texts):,} comments")
    model = train(
        texts,
        labels,
        recipe=recipe or offline_recipe(),
        seed=seed,
        device=device,
        checkpoints=checkpoints,
        progress=_tenths(progress),
    )
    version = register_model(model, name=name, tracking_uri=tracking_uri)
    set_champion(version, name=name, tracking_uri=tracking_uri)
    return version


def register_model(model: TrainedModel, *, name: str, tracking_uri: str) -> str:
    """Register a trained model as a new version of `name`, with its curves; return the version."""
    facts, recipe = model.facts, model.recipe
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "artifact"
        digest = save(model, folder)
        return register(
            folder,
            name=name,
            metrics=facts.validation,
            curves=[made["curve"] for made in facts.networks],
            tags={
                "seed": str(facts.seed),
                "examples": str(facts.examples),
                "method": recipe.method,
                "loss": recipe.loss,
                "encoder": recipe.encoder or "from scratch",
                "calibration": model.calibration.method,
            },
            digest=digest,
            tracking_uri=tracking_uri,
        )


def _tenths(progress: Callable[[str], None]) -> Callable[[Progress], None]:
    """Return a callback that reports the state of training ten times a network."""

    def report(state: Progress) -> None:
        if state.step % max(1, state.steps // 10) == 0:
            network = f"network {state.network} of {state.networks}, " * (state.networks > 1)
            progress(
                f"training: {network}step {state.step} of {state.steps}, loss {state.loss:.3f}"
            )

    return report

"""Trains, saves and registers the champion, `toxicity@champion` by default."""

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from modwatch.models.artifact import save
from modwatch.models.optimisation import Progress
from modwatch.models.recipe import Recipe
from modwatch.models.registry import register, set_champion
from modwatch.models.training import train


def train_champion(
    texts: Sequence[str],
    labels: Sequence[int],
    *,
    name: str,
    tracking_uri: str,
    expected_prevalence: float | None = None,
    seed: int = 0,
    progress: Callable[[str], None] = lambda _: None,
) -> str:
    """Train the offline model, register it as champion of `name`; return its version.

    Raises:
        ModelError: the corpus is too small or has invalid labels.
        TrackingError: MLflow cannot be reached.
    """
    recipe = Recipe(expected_prevalence=expected_prevalence)
    progress(f"training on {len(texts):,} comments, {int(sum(labels)):,} of them toxic")
    model = train(texts, labels, recipe=recipe, seed=seed, progress=_tenths(progress))
    facts = model.facts
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "artifact"
        digest = save(model, folder)
        version = register(
            folder,
            name=name,
            metrics=facts.validation,
            tags={"seed": str(facts.seed), "examples": str(facts.examples)},
            digest=digest,
            tracking_uri=tracking_uri,
        )
    set_champion(version, name=name, tracking_uri=tracking_uri)
    return version


def _tenths(progress: Callable[[str], None]) -> Callable[[Progress], None]:
    """Return a callback that reports the state of training ten times."""

    def report(state: Progress) -> None:
        if state.step % max(1, state.steps // 10) == 0:
            progress(f"training: step {state.step} of {state.steps}, loss {state.loss:.3f}")

    return report

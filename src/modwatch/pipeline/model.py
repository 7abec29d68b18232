"""The path of a model: from labelled comments to the alias that lets it score.

    report      what there is to train on
    train       a calibrated model, registered as a new version
    set_alias   champion, or challenger
    roll_back   to the champion before

`modwatch train` takes the first three steps.
"""

import hashlib
import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modwatch.ingest.corpora.corpus import LabelledTexts
    from modwatch.models.data_report import DataReport
    from modwatch.models.recipe import Recipe
    from modwatch.resources import Resources

#: Days of the stream that training data is compared with, and most comments of them.
_STREAM_DAYS, _STREAM_COMMENTS = 7, 50_000


def report(resources: "Resources", corpus: "LabelledTexts") -> "DataReport":
    """Return the data report, with the leaks into the newest days of the stream."""
    from modwatch.models.data_report import data_report

    return data_report(
        corpus.texts,
        corpus.labels,
        stream=_stream(resources) or None,
        languages=corpus.languages,
        left_out=corpus.left_out,
    )


def train(
    resources: "Resources",
    corpus: "LabelledTexts",
    *,
    recipe: "Recipe",
    seed: int = 0,
    report: "DataReport | None" = None,
    checkpoints: Path | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> str:
    """Train a model on the device of the settings, register it; return its version.

    An interrupted run of the same corpus, recipe and seed goes on; its checkpoints are removed at
    the end, unless the folder was named.

    Raises:
        ModelError: the corpus cannot be used, or training failed.
        TrackingError: MLflow cannot be reached.
    """
    from modwatch.models.devices import device_of
    from modwatch.models.registration import train_and_register

    settings = resources.settings
    digest = hashlib.sha256(json.dumps([recipe.to_json(), seed]).encode())
    for text in corpus.texts:
        digest.update(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest())
    folder = checkpoints or settings.home / "training" / digest.hexdigest()[:16]
    version = train_and_register(
        corpus.texts,
        corpus.labels.tolist(),
        name=settings.model_name,
        tracking_uri=settings.mlflow_url,
        recipe=recipe,
        device=device_of(settings.device),
        checkpoints=folder,
        seed=seed,
        report=report,
        progress=progress,
    )
    if checkpoints is None:
        shutil.rmtree(folder)
    return version


def set_alias(resources: "Resources", version: str, alias: str) -> None:
    """Give a version the alias champion or challenger.

    Raises:
        TrackingError: MLflow cannot be reached, or the version does not exist.
    """
    from modwatch.models import registry

    settings = resources.settings
    registry.set_alias(version, alias, name=settings.model_name, tracking_uri=settings.mlflow_url)


def roll_back(resources: "Resources") -> str:
    """Make the previous champion the champion again; return its version.

    Raises:
        NoChampionError: there is no previous champion.
        TrackingError: MLflow cannot be reached.
    """
    from modwatch.models import registry

    settings = resources.settings
    return str(registry.roll_back(settings.model_name, settings.mlflow_url))


def _stream(resources: "Resources") -> Sequence[str]:
    """Return comments of the newest days of the lake."""
    lake = resources.lake
    texts: list[str] = []
    for day in sorted(lake.days("comments"), reverse=True)[:_STREAM_DAYS]:
        for batch in lake.read("comments", day, columns=["text"]):
            texts += batch.column("text").to_pylist()
        if len(texts) >= _STREAM_COMMENTS:
            break
    return texts[:_STREAM_COMMENTS]

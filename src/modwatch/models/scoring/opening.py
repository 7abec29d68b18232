"""Opens the model in a folder, whoever trained it."""

from pathlib import Path

from modwatch.common.errors import ModelError
from modwatch.models.manifest import MANIFEST
from modwatch.models.scoring.foreign import HuggingFaceScorer, PyfuncScorer, is_classifier
from modwatch.models.scoring.local import LocalScorer, Precision
from modwatch.models.scoring.scorer import DEFAULT_THRESHOLD, Scorer

#: What MLflow writes next to every model.
_MLMODEL = "MLmodel"


def open_scorer(
    folder: Path,
    *,
    model_version: str,
    threshold: float | None = None,
    stated_class: str | None = None,
    device: str = "cpu",
    threads: int | None = None,
    precision: Precision = "auto",
) -> Scorer:
    """Return a scorer for the model in `folder`: ours, a Hugging Face classifier, or a pyfunc.

    Args:
        folder: from `models.registry.fetch`.
        model_version: in the registry.
        threshold: of a model that Modwatch did not train; None: 0.5.
        stated_class: name of the class of toxic texts of such a model; None: its names tell.
        device: auto, cpu, cuda or cuda:n.
        threads: torch threads of the process; None leaves them unchanged.
        precision: of the encoder, or of a Hugging Face classifier. `auto` is bfloat16 where the
            device is faster with it and the scores stay nearly the same.

    Raises:
        ModelError: the folder has none of them, or the model is not valid.
    """
    where = {"model_version": model_version, "device": device, "threads": threads}
    own = _first(folder, MANIFEST)
    if own is not None:
        return LocalScorer(own, precision=precision, **where)  # type: ignore[arg-type]
    foreign = {
        "threshold": DEFAULT_THRESHOLD if threshold is None else threshold,
        "stated_class": stated_class,
    }
    for config in sorted(folder.rglob("config.json")):
        if is_classifier(config.parent):
            return HuggingFaceScorer(config.parent, precision=precision, **foreign, **where)  # type: ignore[arg-type]
    pyfunc = _first(folder, _MLMODEL)
    if pyfunc is not None:
        return PyfuncScorer(pyfunc, model_version=model_version, **foreign)  # type: ignore[arg-type]
    raise ModelError(
        f"version {model_version} is no model that can be scored: it has neither {MANIFEST}, nor "
        f"a Hugging Face classifier, nor {_MLMODEL}; set the alias on another version"
    )


def _first(folder: Path, name: str) -> Path | None:
    """Return the folder of the first file of this name, `folder` itself before those within."""
    found = sorted(folder.rglob(name), key=lambda path: (len(path.parts), path))
    return found[0].parent if found else None

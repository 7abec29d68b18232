"""A model on disk: a self-contained folder of safetensors and JSON.

    modwatch.json       recipe, calibration, threshold, training facts, versions, digests
    config.json         the encoder's Hugging Face configuration
    tokenizer.json      the tokenizer
    model.safetensors   weights of encoder and head

It contains no code and no pickles.
"""

import hashlib
import importlib.metadata
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer

from modwatch.errors import ModelError
from modwatch.models.calibration import Calibration
from modwatch.models.classifier import Classifier, build_classifier
from modwatch.models.encoder import encoder_config, encoder_from_config
from modwatch.models.recipe import Recipe
from modwatch.models.tokenizer import load_tokenizer
from modwatch.models.training import TrainedModel

FORMAT = 1
MANIFEST = "modwatch.json"
_FILES = ("config.json", "tokenizer.json", "model.safetensors")
_LIBRARIES = ("torch", "transformers", "tokenizers", "safetensors", "numpy")
_AGAIN = "download the artifact again from the registry or train the model again"


@dataclass(frozen=True, kw_only=True)
class LoadedModel:
    """A model loaded from disk."""

    recipe: Recipe
    tokenizer: Tokenizer
    classifier: Classifier
    calibration: Calibration
    threshold: float
    #: SHA-256 of the artifact's files; the same model has the same digest everywhere.
    digest: str


def save(model: TrainedModel, folder: Path) -> str:
    """Write `model` to the empty or new `folder` and return its digest."""
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise ModelError(f"{folder} is not empty; save the model in an empty folder")
    model.classifier.encoder.config.save_pretrained(folder)
    model.tokenizer.no_padding()
    model.tokenizer.no_truncation()
    model.tokenizer.save(str(folder / "tokenizer.json"))
    weights = {name: value.contiguous() for name, value in model.classifier.state_dict().items()}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    manifest = _manifest(model, folder)
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=2, sort_keys=True) + "\n", "utf-8")
    return _digest(manifest)


def load(folder: Path) -> LoadedModel:
    """Return the model in `folder`; ModelError names the file that is missing or invalid."""
    manifest = read_manifest(folder)
    for name, digest in manifest["files"].items():
        if _sha256(folder / name) != digest:
            raise ModelError(f"{folder / name} differs from its digest in {MANIFEST}; {_AGAIN}")
    recipe = Recipe.from_json(manifest["recipe"], origin=folder / MANIFEST)
    encoder = encoder_from_config(encoder_config(folder))
    classifier = build_classifier(encoder, recipe)
    _fill(classifier, folder / "model.safetensors")
    classifier.eval()
    return LoadedModel(
        recipe=recipe,
        tokenizer=load_tokenizer(folder / "tokenizer.json"),
        classifier=classifier,
        calibration=Calibration(**manifest["calibration"]),
        threshold=manifest["threshold"],
        digest=_digest(manifest),
    )


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return modwatch.json of an artifact; ModelError when it is missing or invalid."""
    path = folder / MANIFEST
    try:
        manifest = json.loads(path.read_text("utf-8"))
        complete = set(_FILES) == set(manifest["files"]) and isinstance(manifest["recipe"], dict)
        complete &= set(manifest["calibration"]) == {"scale", "shift", "prior_shift"}
        complete &= isinstance(manifest["threshold"], float)
        known = manifest["format"] == FORMAT
    except OSError as exc:
        raise ModelError(f"{path} cannot be read; use the folder of a saved model") from exc
    except (ValueError, KeyError, TypeError) as exc:
        raise ModelError(f"{path} is not a manifest of a model; {_AGAIN}") from exc
    if not known or not complete:
        raise ModelError(f"{path} is not of format {FORMAT}; {_AGAIN}")
    return dict(manifest)


def _manifest(model: TrainedModel, folder: Path) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "recipe": model.recipe.to_json(),
        "calibration": asdict(model.calibration),
        "threshold": float(model.threshold),
        "training": asdict(model.facts),
        "libraries": {name: importlib.metadata.version(name) for name in _LIBRARIES},
        "files": {name: _sha256(folder / name) for name in _FILES},
    }


def _digest(manifest: dict[str, Any]) -> str:
    """Return the SHA-256 of everything that determines predictions."""
    kept = {key: manifest[key] for key in ("files", "recipe", "calibration", "threshold")}
    return hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()


def _sha256(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as exc:
        raise ModelError(f"{path} cannot be read; {_AGAIN}") from exc


def _fill(classifier: Classifier, path: Path) -> None:
    """Load all weights at `path` into `classifier`."""
    try:
        classifier.load_state_dict(load_file(path), strict=True)
    except (SafetensorError, OSError) as exc:
        raise ModelError(f"{path} is not a safetensors file; {_AGAIN}") from exc
    except RuntimeError as exc:
        raise ModelError(f"{path} does not fit config.json and {MANIFEST}; {_AGAIN}") from exc

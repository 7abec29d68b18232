"""A model on disk: a self-contained folder that Hugging Face's own classes can load, too.

    config.json, model.safetensors             the trained encoder: `AutoModel.from_pretrained`
    tokenizer.json, tokenizer_config.json      the tokenizer: `AutoTokenizer.from_pretrained`
    head.safetensors                           the head
    member-1/…                                 the same of each further member of an ensemble
    modwatch.json                              recipe, calibration, threshold, facts, digests
    README.md                                  the model card

It contains no code and no pickles.
"""

import hashlib
import importlib.metadata
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from modwatch.errors import ModelError
from modwatch.models.calibration import Calibration
from modwatch.models.classifier import Classifier, build_classifier
from modwatch.models.encoder import pretrained_encoder, quiet
from modwatch.models.model_card import model_card
from modwatch.models.recipe import Recipe
from modwatch.models.tokenizer import pretrained_tokenizer
from modwatch.models.training import TrainedModel, TrainingFacts

FORMAT = 2
MANIFEST = "modwatch.json"
_CARD = "README.md"
_HEAD = "head.safetensors"
_LIBRARIES = ("torch", "transformers", "tokenizers", "safetensors", "numpy")
_AGAIN = "download the artifact again from the registry or train the model again"


@dataclass(frozen=True, kw_only=True)
class LoadedModel(TrainedModel):
    """A model loaded from disk."""

    #: SHA-256 of what determines predictions; the same model has the same digest everywhere.
    digest: str


def save(model: TrainedModel, folder: Path) -> str:
    """Write `model` to the empty or new `folder` and return its digest.

    Raises:
        ModelError: the folder is not empty.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise ModelError(f"{folder} is not empty; save the model in an empty folder")
    model.tokenizer.backend_tokenizer.no_padding()
    model.tokenizer.backend_tokenizer.no_truncation()
    model.tokenizer.save_pretrained(folder)
    for number, member in enumerate(model.members):
        place = _place(folder, number)
        with quiet():
            member.encoder.save_pretrained(place)
        save_file(
            {name: value.cpu().contiguous() for name, value in member.head.state_dict().items()},
            place / _HEAD,
        )
    manifest = {
        "format": FORMAT,
        "recipe": model.recipe.to_json(),
        "calibration": asdict(model.calibration),
        "threshold": float(model.threshold),
        "training": asdict(model.facts),
        "libraries": {name: importlib.metadata.version(name) for name in _LIBRARIES},
        "files": {
            str(path.relative_to(folder)): _sha256(path)
            for path in sorted(folder.rglob("*"))
            if path.is_file()
        },
    }
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=2, sort_keys=True) + "\n", "utf-8")
    (folder / _CARD).write_text(model_card(model), "utf-8")
    return _digest(manifest)


def load(folder: Path) -> LoadedModel:
    """Return the model in `folder`, on the CPU; ModelError names the file that is not right."""
    manifest = read_manifest(folder)
    path = folder / MANIFEST
    for name, digest in manifest["files"].items():
        if _sha256(folder / name) != digest:
            raise ModelError(f"{folder / name} differs from its digest in {MANIFEST}; {_AGAIN}")
    recipe = Recipe.from_json(manifest["recipe"], origin=path)
    try:
        calibration = Calibration(
            **manifest["calibration"] | {"parameters": tuple(manifest["calibration"]["parameters"])}
        )
        facts = TrainingFacts(**manifest["training"])
    except (TypeError, KeyError) as exc:
        raise ModelError(f"{path} is not a manifest of a model; {_AGAIN}") from exc
    return LoadedModel(
        recipe=recipe,
        tokenizer=pretrained_tokenizer(folder),
        members=[_member(_place(folder, number), recipe) for number in range(recipe.networks)],
        calibration=calibration,
        threshold=manifest["threshold"],
        facts=facts,
        digest=_digest(manifest),
    )


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return modwatch.json of an artifact; ModelError when it is missing or invalid."""
    path = folder / MANIFEST
    try:
        manifest = json.loads(path.read_text("utf-8"))
        known = manifest["format"]
        complete = known != FORMAT or (
            {"config.json", "model.safetensors", "tokenizer.json", _HEAD} <= set(manifest["files"])
            and all(
                isinstance(manifest[key], dict) for key in ("recipe", "calibration", "training")
            )
            and isinstance(manifest["threshold"], float)
        )
    except OSError as exc:
        raise ModelError(f"{path} cannot be read; use the folder of a saved model") from exc
    except (ValueError, KeyError, TypeError) as exc:
        raise ModelError(f"{path} is not a manifest of a model; {_AGAIN}") from exc
    if known != FORMAT:
        raise ModelError(
            f"{path} has format {known!r}, and this version of Modwatch reads format {FORMAT}; "
            "train the model again"
        )
    if not complete:
        raise ModelError(f"{path} is not complete; {_AGAIN}")
    return dict(manifest)


def _place(folder: Path, number: int) -> Path:
    return folder / f"member-{number}" if number else folder


def _member(folder: Path, recipe: Recipe) -> Classifier:
    """Return the network in `folder`."""
    path = folder / _HEAD
    with torch.random.fork_rng(devices=[]):  # the new head draws weights that are replaced
        classifier = build_classifier(pretrained_encoder(folder), recipe)
    try:
        classifier.head.load_state_dict(load_file(path), strict=True)
    except (SafetensorError, OSError) as exc:
        raise ModelError(f"{path} is not a safetensors file; {_AGAIN}") from exc
    except RuntimeError as exc:
        raise ModelError(f"{path} does not fit config.json and {MANIFEST}; {_AGAIN}") from exc
    return classifier.eval()


def _digest(manifest: dict[str, Any]) -> str:
    """Return the SHA-256 of everything that determines predictions."""
    kept = {key: manifest[key] for key in ("files", "recipe", "calibration", "threshold")}
    kept["seed"] = manifest["training"]["seed"]  # of the masks of Monte Carlo dropout
    return hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()


def _sha256(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as exc:
        raise ModelError(f"{path} cannot be read; {_AGAIN}") from exc

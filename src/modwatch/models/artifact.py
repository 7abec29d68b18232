"""A model on disk: a self-contained folder that Hugging Face's own classes can load, too.

    config.json, model.safetensors             the trained encoder: `AutoModel.from_pretrained`
    tokenizer.json, tokenizer_config.json      the tokenizer: `AutoTokenizer.from_pretrained`
    head.safetensors                           the head
    member-1/…                                 the same of each further member of an ensemble
    modwatch.json                              recipe, calibration, threshold, facts, digests
    README.md                                  the model card

It contains no code and no pickles.
"""

import importlib.metadata
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from modwatch.common.errors import ModelError
from modwatch.models.calibration import Calibration
from modwatch.models.classifier import Classifier, build_classifier
from modwatch.models.encoder import pretrained_encoder, quiet
from modwatch.models.manifest import (
    AGAIN,
    HEAD,
    MANIFEST,
    check_files,
    model_digest,
    read_manifest,
    write_manifest,
)
from modwatch.models.model_card import model_card
from modwatch.models.recipe import Recipe
from modwatch.models.tokenizer import pretrained_tokenizer
from modwatch.models.training import TrainedModel, TrainingFacts

_CARD = "README.md"
_LIBRARIES = ("torch", "transformers", "tokenizers", "safetensors", "numpy")


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
            place / HEAD,
        )
    content = {
        "recipe": model.recipe.to_json(),
        "calibration": asdict(model.calibration),
        "threshold": float(model.threshold),
        "training": asdict(model.facts),
        "libraries": {name: importlib.metadata.version(name) for name in _LIBRARIES},
    }
    manifest = write_manifest(folder, content)
    (folder / _CARD).write_text(model_card(model), "utf-8")
    return model_digest(manifest)


def load(folder: Path) -> LoadedModel:
    """Return the model in `folder`, on the CPU; ModelError names the file that is not right."""
    manifest = read_manifest(folder)
    check_files(folder, manifest)
    path = folder / MANIFEST
    recipe = Recipe.from_json(manifest["recipe"], origin=path)
    calibration = Calibration.from_json(manifest["calibration"], origin=path)
    if not 0 <= manifest["threshold"] <= 1:
        raise ModelError(
            f"{path} has the threshold {manifest['threshold']}, which is no probability; {AGAIN}"
        )
    try:
        facts = TrainingFacts(**manifest["training"])
    except TypeError as exc:
        raise ModelError(f"{path} is not a manifest of a model; {AGAIN}") from exc
    return LoadedModel(
        recipe=recipe,
        tokenizer=pretrained_tokenizer(folder),
        members=[_member(_place(folder, number), recipe) for number in range(recipe.networks)],
        calibration=calibration,
        threshold=manifest["threshold"],
        facts=facts,
        digest=model_digest(manifest),
    )


def _place(folder: Path, number: int) -> Path:
    return folder / f"member-{number}" if number else folder


def _member(folder: Path, recipe: Recipe) -> Classifier:
    """Return the network in `folder`."""
    path = folder / HEAD
    with torch.random.fork_rng(devices=[]):  # the new head draws weights that are replaced
        classifier = build_classifier(pretrained_encoder(folder), recipe)
    try:
        classifier.head.load_state_dict(load_file(path), strict=True)
    except (SafetensorError, OSError) as exc:
        raise ModelError(f"{path} is not a safetensors file; {AGAIN}") from exc
    except RuntimeError as exc:
        raise ModelError(f"{path} does not fit config.json and {MANIFEST}; {AGAIN}") from exc
    return classifier.eval()

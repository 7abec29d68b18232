"""A model on disk: a self-contained folder that Hugging Face's own classes can load, too.

    config.json, model.safetensors             the trained encoder: `AutoModel.from_pretrained`
    tokenizer.json, tokenizer_config.json      the tokenizer: `AutoTokenizer.from_pretrained`
    head.safetensors                           the head
    member-1/…                                 the same of each further member of an ensemble
    modwatch.json                              recipe, calibration, threshold, facts, digests
    README.md                                  the model card

It contains no code and no pickles.
"""

from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from modwatch.common.errors import ModelError
from modwatch.data.lake.day_scores import ORIGIN
from modwatch.models.calibration import Calibration
from modwatch.models.classifier import Classifier, build_classifier
from modwatch.models.encoder import pretrained_encoder, pretrained_tokenizer, quiet
from modwatch.models.manifest import (
    AGAIN,
    HEAD,
    MANIFEST,
    check_files,
    model_digest,
    read_manifest,
    write_manifest,
)
from modwatch.models.recipe import Recipe
from modwatch.models.training import TrainedModel, TrainingFacts, library_versions

_NAMES = {
    "n": "Held-out comments",
    "auroc": "AUROC",
    "average_precision": "Average precision",
    "brier": "Brier score",
    "ece": "Expected calibration error",
    "calibration_auprc": "Calibration AUPRC",
}


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
        "libraries": library_versions(),
    }
    manifest = write_manifest(folder, content)
    (folder / "README.md").write_text(model_card(model), "utf-8")
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


def model_card(model: TrainedModel) -> str:
    """Return the card in Markdown, with the metadata of the Hugging Face hub."""
    recipe, facts = model.recipe, model.facts
    expected = recipe.expected_prevalence or facts.toxic / facts.examples
    origin = f"- **Origin**: {facts.reference[ORIGIN]}\n" if ORIGIN in facts.reference else ""
    rows = [
        f"| {label} | {_cell(facts.validation, name)} |"
        for name, label in _NAMES.items()
        if name in facts.validation
    ]
    return f"""---
library_name: transformers
tags:
- toxicity
- uncertainty
- modwatch
---

# Toxicity model, {recipe.method.replace("_", " ")}

The probability that a comment is toxic, with the model's uncertainty. Trained with Modwatch.

- **Encoder**: {recipe.encoder or "trained from scratch"}; `AutoModel.from_pretrained` loads the
  trained encoder, `modwatch.models.artifact.load` the whole model
- **Uncertainty**: {recipe.method}, {len(model.members)} network(s); loss: {recipe.loss}
{origin}- **Training data**: {facts.examples:,} comments, {facts.toxic:,} of them toxic; seed
  {facts.seed}; of {facts.truncated:,} only the first {recipe.max_length} subwords were used
- **Calibration**: {model.calibration.method}, for a prevalence of {expected:.4g}
- **Threshold**: comments above {model.threshold:.4g} are flagged

## Validation

On held-out comments of the training data, at their prevalence. Where there are two values, the
first is before calibration; the second is cross-validated.

| Metric | Value |
|---|---|
{chr(10).join(rows)}

## Use and limits

The model decides which comments people review; it is not meant to act alone. Comments with more
than {recipe.max_length} subwords are scored in passages, and the most toxic one counts. Texts
unlike the training data (other languages, topics, times) get less reliable scores: watch the live
estimates, and audit.
"""


def _cell(validation: dict[str, float], name: str) -> str:
    value = validation[name]
    if name == "n":
        return f"{value:,.0f}"
    before = validation.get(f"{name}_before_calibration")
    return f"{value:.4f}" if before is None else f"{before:.4f}, {value:.4f}"

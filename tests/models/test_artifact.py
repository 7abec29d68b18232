"""Save, load, refuse: the folder of safetensors and JSON."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers
from transformers import (
    AutoModel,
    AutoTokenizer,
    DistilBertConfig,
    PreTrainedTokenizerFast,
    RobertaConfig,
)

from modwatch.common.errors import ModelError
from modwatch.models.artifact import load, save
from modwatch.models.encoder import encode
from modwatch.models.manifest import read_manifest
from modwatch.models.recipe import Recipe
from modwatch.models.training import TrainedModel, train

Corpus = tuple[list[str], list[int]]
Copy = Callable[[], Path]


def predicted(model: TrainedModel, texts: list[str]) -> list[list[list[float]]]:
    ids = encode(model.tokenizer, texts, max_length=16)
    posterior = model.predictor().predict(ids, batch_tokens=1_000, batch_size=100)
    return [posterior.mean.tolist(), posterior.variance.tolist()]


def test_loaded_model_predicts_the_same_bits(tiny_model, tiny_artifact, corpus):
    loaded = load(tiny_artifact)
    assert loaded.recipe == tiny_model.recipe
    assert loaded.calibration == tiny_model.calibration
    assert loaded.threshold == tiny_model.threshold
    assert loaded.facts == tiny_model.facts
    texts = corpus[0][:20]
    assert predicted(loaded, texts) == predicted(tiny_model, texts)


@pytest.mark.parametrize("method", ["mc_dropout", "sngp_ensemble"])
def test_every_network_is_saved(method, corpus, tiny_recipe, tmp_path):
    recipe = replace(tiny_recipe, method=method, members=2, passes=3, epochs=1)  # type: ignore[arg-type]
    model = train(*corpus, recipe=recipe, seed=1)
    save(model, tmp_path / "saved")
    texts = corpus[0][:20]
    assert predicted(load(tmp_path / "saved"), texts) == predicted(model, texts)


def test_hugging_face_loads_the_trained_encoder(tiny_model, tiny_artifact, caplog):
    encoder = AutoModel.from_pretrained(tiny_artifact)
    trained = tiny_model.members[0].encoder.state_dict()
    assert all(torch.equal(value, trained[name]) for name, value in encoder.state_dict().items())
    assert "newly initialized" not in caplog.text
    tokenizer = AutoTokenizer.from_pretrained(tiny_artifact)
    text = "the garden needs fizzlewit"
    assert tokenizer(text)["input_ids"] == encode(tiny_model.tokenizer, [text], max_length=16)[0]


def test_the_model_card_tells_what_the_model_is(tiny_artifact):
    card = (tiny_artifact / "README.md").read_text("utf-8")
    assert card.startswith("---\nlibrary_name: transformers\n")
    assert "240 comments, 80 of them toxic" in card
    assert "| AUROC | 0." in card
    assert "None" not in card


def test_folder_holds_safetensors_and_json_only(tiny_artifact):
    names = {path.name for path in tiny_artifact.iterdir()}
    assert names == {
        "README.md",
        "config.json",
        "head.safetensors",
        "model.safetensors",
        "modwatch.json",
        "tokenizer.json",
        "tokenizer_config.json",
    }


def test_manifest_tells_how_the_model_came_to_be(tiny_artifact):
    manifest = read_manifest(tiny_artifact)
    assert manifest["training"]["seed"] == 1
    assert set(manifest["training"]["validation"]) >= {"auroc", "average_precision", "brier", "ece"}
    assert "torch" in manifest["libraries"]


def test_digest_is_the_same_for_the_same_model(tiny_model, tiny_artifact, tmp_path):
    assert save(tiny_model, tmp_path / "again") == load(tiny_artifact).digest
    other = replace(tiny_model, threshold=0.123)
    assert save(other, tmp_path / "other") != load(tiny_artifact).digest


def test_save_refuses_a_folder_in_use(tiny_model, tmp_path):
    (tmp_path / "note").write_text("mine")
    with pytest.raises(ModelError, match="not empty"):
        save(tiny_model, tmp_path)


def edited(
    change: Callable[[dict[str, Any]], None], *, rehashed: bool = True
) -> Callable[[Path], None]:
    """Return what edits the manifest in a folder, and its digest if `rehashed`."""

    def edit(folder: Path) -> None:
        path = folder / "modwatch.json"
        manifest = json.loads(path.read_text())
        change(manifest)
        if rehashed:
            del manifest["digest"]
            content = json.dumps(manifest, sort_keys=True)
            manifest["digest"] = hashlib.sha256(content.encode()).hexdigest()
        path.write_text(json.dumps(manifest, indent=2, sort_keys=True) + "\n")

    return edit


def calibrated(**change: Any) -> Callable[[Path], None]:
    return edited(lambda manifest: manifest["calibration"].update(change))


def replaced(name: str, content: bytes) -> Callable[[Path], None]:
    return lambda folder: (folder / name).write_bytes(content) and None


def cut(folder: Path) -> None:
    path = folder / "head.safetensors"
    path.write_bytes(path.read_bytes()[:100])


NAN = float("nan")
BROKEN: dict[str, tuple[Callable[[Path], None], str]] = {
    "no manifest": (lambda folder: (folder / "modwatch.json").unlink(), r"modwatch\.json"),
    "no weights": (lambda folder: (folder / "model.safetensors").unlink(), r"model\.safetensors"),
    "other config": (replaced("config.json", b"{} "), "config.json differs.*again"),
    "other tokenizer": (replaced("tokenizer.json", b"{} "), "tokenizer.json differs.*again"),
    "cut head": (cut, r"head\.safetensors differs from its digest"),
    "empty manifest": (replaced("modwatch.json", b""), r"modwatch\.json"),
    "list for a manifest": (replaced("modwatch.json", b"[]"), r"modwatch\.json"),
    "nothing in the manifest": (replaced("modwatch.json", b"{}"), r"modwatch\.json"),
    "another format": (
        edited(lambda manifest: manifest.update(format=9), rehashed=False),
        r"has format 9, and this version .* reads format 1",
    ),
    "another digest": (
        edited(lambda manifest: manifest.update(threshold=0.999), rehashed=False),
        r"modwatch\.json differs from its own digest; download",
    ),
    "unknown method": (calibrated(method="astrology"), "isotonic, got 'astrology'; download the"),
    "platt": (calibrated(method="platt", parameters=[1.0]), r"\(platt\) are invalid"),
    "isotonic": (calibrated(method="isotonic", parameters=[1.0]), r"\(isotonic\) are invalid"),
    "NaN": (calibrated(method="platt", parameters=[1.0, NAN]), r"\(platt\) are invalid"),
    "words": (calibrated(parameters="many"), "no valid calibration"),
    "unknown field": (calibrated(of="something"), "no valid calibration"),
    "threshold above 1": (
        edited(lambda manifest: manifest.update(threshold=1.5)),
        r"modwatch\.json has the threshold .* no probability",
    ),
    "threshold NaN": (
        edited(lambda manifest: manifest.update(threshold=NAN)),
        r"modwatch\.json has the threshold .* no probability",
    ),
    "another recipe": (
        edited(lambda manifest: manifest["recipe"].update(random_features=32)),
        r"head\.safetensors does not fit",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_broken_is_named(artifact_copy, name):
    damage, message = BROKEN[name]
    folder = artifact_copy()
    damage(folder)
    with pytest.raises(ModelError, match=message):
        load(folder)


DISTILBERT = DistilBertConfig(
    vocab_size=120, dim=16, n_layers=1, n_heads=2, hidden_dim=32, max_position_embeddings=32
)
ROBERTA = RobertaConfig(
    vocab_size=120,
    hidden_size=16,
    num_hidden_layers=1,
    num_attention_heads=2,
    intermediate_size=32,
    max_position_embeddings=40,
    pad_token_id=1,
)


@pytest.mark.parametrize("config", [DISTILBERT, ROBERTA], ids=["distilbert", "roberta"])
def test_any_hugging_face_encoder_goes_through(config, corpus, tmp_path):
    """A saved encoder with its own tokenizer is the start; the artifact predicts the same."""
    foreign = tmp_path / "foreign"
    torch.manual_seed(0)
    AutoModel.from_config(config).save_pretrained(foreign)
    PreTrainedTokenizerFast(
        tokenizer_object=foreign_tokenizer(corpus[0]),
        pad_token="<pad>",
        unk_token="<unk>",
    ).save_pretrained(foreign)
    recipe = Recipe(encoder=str(foreign), max_length=64, random_features=32, learning_rate=1e-3)
    model = train(*corpus, recipe=recipe, seed=3)
    assert model.recipe.max_length == {"distilbert": 32, "roberta": 38}[config.model_type]
    save(model, tmp_path / "saved")
    texts = corpus[0][:9]
    assert predicted(load(tmp_path / "saved"), texts) == predicted(model, texts)


def foreign_tokenizer(texts: list[str]) -> Tokenizer:
    """Return a RoBERTa-like tokenizer: other special tokens, in another order, put around."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    trainer = trainers.BpeTrainer(vocab_size=110, special_tokens=special, show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    return tokenizer

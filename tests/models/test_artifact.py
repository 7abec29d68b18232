"""Save, load, refuse: the folder of safetensors and JSON."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers
from transformers import AutoModel, DistilBertConfig, PretrainedConfig, RobertaConfig

from modwatch.errors import ModelError
from modwatch.models.artifact import load, read_manifest, save
from modwatch.models.classifier import Classifier, padded, padding_id
from modwatch.models.recipe import Recipe
from modwatch.models.tokenizer import encode
from modwatch.models.training import TrainedModel, train

Corpus = tuple[list[str], list[int]]
Copy = Callable[[], Path]


def means(classifier: Classifier, tokenizer: Tokenizer, texts: list[str]) -> list[float]:
    batch = padded(
        encode(tokenizer, texts, max_length=16), padding_id(classifier.encoder, tokenizer)
    )
    classifier.eval()
    with torch.no_grad():
        posterior = classifier.head.posterior(classifier.features(batch))
    return [*posterior.mean.tolist(), *posterior.variance.tolist()]


def test_loaded_model_predicts_the_same_bits(
    tiny_model: TrainedModel, tiny_artifact: Path, corpus: Corpus
) -> None:
    loaded = load(tiny_artifact)
    assert loaded.recipe == tiny_model.recipe
    assert loaded.calibration == tiny_model.calibration
    assert loaded.threshold == tiny_model.threshold
    texts = corpus[0][:20]
    saved = means(tiny_model.classifier, tiny_model.tokenizer, texts)
    assert means(loaded.classifier, loaded.tokenizer, texts) == saved


def test_folder_holds_safetensors_and_json_only(tiny_artifact: Path) -> None:
    names = {path.name for path in tiny_artifact.iterdir()}
    assert names == {"modwatch.json", "config.json", "tokenizer.json", "model.safetensors"}


def test_manifest_tells_how_the_model_came_to_be(tiny_artifact: Path) -> None:
    manifest = read_manifest(tiny_artifact)
    assert manifest["training"]["seed"] == 1
    assert set(manifest["training"]["validation"]) >= {"auroc", "average_precision", "brier", "ece"}
    assert "torch" in manifest["libraries"]


def test_digest_is_the_same_for_the_same_model(
    tiny_model: TrainedModel, tiny_artifact: Path, tmp_path: Path
) -> None:
    assert save(tiny_model, tmp_path / "again") == load(tiny_artifact).digest
    other = replace(tiny_model, threshold=0.123)
    assert save(other, tmp_path / "other") != load(tiny_artifact).digest


def test_save_refuses_a_folder_in_use(tiny_model: TrainedModel, tmp_path: Path) -> None:
    (tmp_path / "note").write_text("mine")
    with pytest.raises(ModelError, match="not empty"):
        save(tiny_model, tmp_path)


@pytest.mark.parametrize(
    "name", ["modwatch.json", "config.json", "tokenizer.json", "model.safetensors"]
)
def test_missing_file_is_named(artifact_copy: Copy, name: str) -> None:
    folder = artifact_copy()
    (folder / name).unlink()
    with pytest.raises(ModelError, match=name.replace(".", r"\.")):
        load(folder)


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "model.safetensors"])
def test_changed_file_is_named(artifact_copy: Copy, name: str) -> None:
    folder = artifact_copy()
    with (folder / name).open("ab") as file:
        file.write(b" ")
    with pytest.raises(ModelError, match=f"{name} differs.*again"):
        load(folder)


@pytest.mark.parametrize("content", ["", "[]", "{}", "null", '{"format": 1}'])
def test_broken_manifest_is_named(artifact_copy: Copy, content: str) -> None:
    folder = artifact_copy()
    (folder / "modwatch.json").write_text(content)
    with pytest.raises(ModelError, match=r"modwatch\.json"):
        load(folder)


def test_manifest_of_another_recipe_does_not_fit(artifact_copy: Copy) -> None:
    folder = artifact_copy()
    manifest = json.loads((folder / "modwatch.json").read_text())
    manifest["recipe"]["random_features"] = 32
    (folder / "modwatch.json").write_text(json.dumps(manifest))
    with pytest.raises(ModelError, match=r"model\.safetensors does not fit"):
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
def test_any_hugging_face_encoder_goes_through(
    config: PretrainedConfig, corpus: Corpus, tmp_path: Path
) -> None:
    """A saved encoder with its own tokenizer is the start; the artifact predicts the same."""
    foreign = tmp_path / "foreign"
    torch.manual_seed(0)
    AutoModel.from_config(config).save_pretrained(foreign)
    foreign_tokenizer(corpus[0]).save(str(foreign / "tokenizer.json"))
    recipe = Recipe(
        encoder=str(foreign), pooling="mean", epochs=1, max_length=16, random_features=32
    )
    model = train(*corpus, recipe=recipe, seed=3)
    save(model, tmp_path / "saved")
    loaded = load(tmp_path / "saved")
    texts = corpus[0][:9]
    saved = means(model.classifier, model.tokenizer, texts)
    assert means(loaded.classifier, loaded.tokenizer, texts) == saved


def foreign_tokenizer(texts: list[str]) -> Tokenizer:
    """Return a RoBERTa-like tokenizer: other special tokens, in another order, put around."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    trainer = trainers.BpeTrainer(vocab_size=110, special_tokens=special, show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    return tokenizer

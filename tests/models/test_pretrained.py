"""A real pre-trained encoder, where there is one: fine-tuned, saved, loaded by Hugging Face."""

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModel, AutoTokenizer

from models.conftest import tiny_corpus
from modwatch.models.artifact import load, save
from modwatch.models.encoder import encode
from modwatch.models.recipe import Recipe
from modwatch.models.scoring.local import LocalScorer
from modwatch.models.training import train

SHARED = Path(__file__).resolve().parents[3] / "shared" / "models"


@pytest.fixture(scope="module")
def encoder():
    folder = SHARED / "minilm-l6"
    if not folder.exists():
        pytest.skip(f"no pre-trained encoder in {folder}")
    return folder


def short(encoder: Path, **changes: object) -> Recipe:
    values = {"max_length": 16, "batch_size": 16, "max_steps": 6, "evaluations": 1, "threads": 1}
    return Recipe(encoder=str(encoder), **(values | changes))  # type: ignore[arg-type]


def test_hugging_face_loads_what_was_trained(encoder, tmp_path):
    texts, labels = tiny_corpus(96)
    model = train(texts, labels, recipe=short(encoder, learning_rate=1e-3), seed=0)
    folder = tmp_path / "artifact"
    save(model, folder)
    plain = AutoModel.from_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    ids = tokenizer(texts[:4], truncation=True, max_length=16)["input_ids"]
    assert ids == encode(model.tokenizer, texts[:4], max_length=16)
    ours = model.members[0].encoder.state_dict()
    assert all(torch.equal(value, ours[name]) for name, value in plain.state_dict().items())
    first = load_file(encoder / "model.safetensors")["embeddings.LayerNorm.weight"].float()
    assert not torch.equal(first, plain.embeddings.LayerNorm.weight)  # the encoder was trained
    scores = [
        item.predict(ids, batch_tokens=512, batch_size=8).moments(model.calibration).prob
        for item in (model.predictor(), load(folder).predictor())
    ]
    assert np.array_equal(*scores)
    daily = LocalScorer(folder, model_version="1", precision="fp32").score(texts[:4]).prob
    assert np.array_equal(daily, scores[0].astype(np.float32))


@pytest.mark.parametrize("method", ["sngp", "mc_dropout"])  # test_training.py trains all methods
def test_each_method_fine_tunes_it(encoder, method):
    texts, labels = tiny_corpus(64)
    recipe = short(encoder, method=method, members=2, passes=3, max_steps=2)
    model = train(texts, labels, recipe=recipe, seed=0)
    ids = encode(model.tokenizer, texts[:3], max_length=16)
    moments = model.predictor().predict(ids, batch_tokens=512, batch_size=8).moments()
    assert ((moments.prob > 0) & (moments.prob < 1)).all()
    assert (moments.variance > 0).all() == (method != "deterministic")

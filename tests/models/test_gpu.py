"""On a CUDA device: the same models as on the CPU, up to rounding."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from transformers import BertConfig, BertModel

from modwatch.models.artifact import load, save
from modwatch.models.batches import on_device, padded
from modwatch.models.bfloat16 import in_bf16
from modwatch.models.classifier import Predictor, build_classifier
from modwatch.models.devices import device_of, devices_of
from modwatch.models.encoder import encode
from modwatch.models.recipe import METHODS
from modwatch.models.training import train

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]

Corpus = tuple[list[str], list[int]]
CUDA = torch.device("cuda", 0)


@pytest.mark.parametrize("method", METHODS)
def test_trained_on_the_device_it_scores_the_same_on_the_cpu(method, corpus, tiny_recipe, tmp_path):
    recipe = replace(tiny_recipe, method=method, members=2, passes=3)  # type: ignore[arg-type]
    model = train(*corpus, recipe=recipe, seed=1, devices=[CUDA])
    assert model.facts.validation["auroc"] > 0.9
    save(model, tmp_path / "artifact")
    ids = encode(model.tokenizer, corpus[0][:64], max_length=recipe.max_length)
    there, here = (
        load(tmp_path / "artifact")
        .predictor(device)
        .predict(ids, batch_tokens=512, batch_size=32)
        .moments(model.calibration)
        .prob
        for device in (CUDA, torch.device("cpu"))
    )
    assert np.abs(there - here).max() < 5e-3


def test_company_does_not_change_a_score_on_the_device(corpus, tiny_recipe):
    recipe = replace(tiny_recipe, method="mc_dropout", passes=3)
    model = train(*corpus, recipe=recipe, seed=1, devices=[CUDA])
    ids = encode(model.tokenizer, corpus[0][:64], max_length=recipe.max_length)
    predictor = model.predictor(CUDA)
    alone = np.concatenate(
        [predictor.predict([id], batch_tokens=512, batch_size=1).prob() for id in ids]
    )
    together = predictor.predict(ids, batch_tokens=512, batch_size=32).prob()
    assert np.abs(alone - together).max() < 1e-4


def test_batches_copied_meanwhile_are_the_batches():
    rng = np.random.default_rng(0)
    here = [padded(rng.integers(1, 9_000, (64, 500)).tolist(), pad_id=0) for _ in range(40)]
    work = torch.randn(4_096, 4_096, device=CUDA)
    sums = []
    for batch in on_device(iter(here), CUDA):
        work = (work @ work).clamp(-1, 1)  # the copies run ahead of it
        sums.append((batch.ids * batch.mask).sum())
    assert torch.stack(sums).tolist() == [int(batch.ids.sum()) for batch in here]


def test_batches_in_bf16_do_not_wait_for_the_device(tiny_recipe):
    size = {"hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2}
    encoder = BertModel(BertConfig(vocab_size=50, **size)).eval().to(CUDA)
    recipe = replace(tiny_recipe, method="deterministic")
    classifier = build_classifier(in_bf16(encoder), recipe).eval().to(CUDA)
    predictor = Predictor([classifier], recipe, pad_id=0, seed=0)
    batches = [padded([[7] * 30, [8] * length], pad_id=0) for length in (3, 30)]
    for batch in on_device(iter(batches), CUDA):  # pins memory, loads kernels
        predictor.logit_moments(batch)
    torch.cuda.set_sync_debug_mode("error")
    try:
        parts = [predictor.logit_moments(batch) for batch in on_device(iter(batches), CUDA)]
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert torch.cat(parts, 2).isfinite().all()


def test_auto_is_every_device():
    assert device_of("auto") == CUDA
    assert len(devices_of("auto")) == torch.cuda.device_count()
    assert devices_of("cuda:0") == [CUDA]

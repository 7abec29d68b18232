"""On a CUDA device: the same models as on the CPU, up to rounding."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from modwatch.models.artifact import load, save
from modwatch.models.devices import device_of, devices_of
from modwatch.models.recipe import METHODS, Recipe
from modwatch.models.tokenizer import encode
from modwatch.models.training import train

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]

Corpus = tuple[list[str], list[int]]
CUDA = torch.device("cuda", 0)


@pytest.mark.parametrize("method", METHODS)
def test_trained_on_the_device_it_scores_the_same_on_the_cpu(
    method: str, corpus: Corpus, tiny_recipe: Recipe, tmp_path: Path
) -> None:
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


def test_company_does_not_change_a_score_on_the_device(corpus: Corpus, tiny_recipe: Recipe) -> None:
    recipe = replace(tiny_recipe, method="mc_dropout", passes=3)
    model = train(*corpus, recipe=recipe, seed=1, devices=[CUDA])
    ids = encode(model.tokenizer, corpus[0][:64], max_length=recipe.max_length)
    predictor = model.predictor(CUDA)
    alone = np.concatenate(
        [predictor.predict([each], batch_tokens=512, batch_size=1).prob() for each in ids]
    )
    together = predictor.predict(ids, batch_tokens=512, batch_size=32).prob()
    assert np.abs(alone - together).max() < 1e-4


def test_auto_is_every_device() -> None:
    assert device_of("auto") == CUDA
    assert len(devices_of("auto")) == torch.cuda.device_count()
    assert devices_of("cuda:0") == [CUDA]

"""Monte Carlo dropout: fixed networks, whatever shares the batch."""

from contextlib import nullcontext

import numpy as np
import pytest
import torch
from torch import nn
from transformers import AutoModel, BertConfig, BertModel, DistilBertConfig, RobertaConfig

from modwatch.models import classifier
from modwatch.models.batches import padded
from modwatch.models.classifier import (
    Predictor,
    build_classifier,
    dropout_pass,
    replace_dropout,
    shared_embeddings,
)
from modwatch.models.recipe import Recipe

SMALL = {
    "vocab_size": 50,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 32,
}


def predictor(method: str = "mc_dropout", *, dropout: float = 0.1, seed: int = 1) -> Predictor:
    torch.manual_seed(0)
    config = BertConfig(**SMALL, hidden_dropout_prob=dropout, attention_probs_dropout_prob=dropout)
    recipe = Recipe(method=method, passes=7, dropout=dropout)  # type: ignore[arg-type]
    member = build_classifier(BertModel(config), recipe)
    return Predictor([member], recipe, pad_id=0, seed=seed)


IDS = [[3, 4, 5], [6], [7, 8, 9, 10, 11], [12, 13]]
SIZE = {"batch_tokens": 100, "batch_size": 10}


def test_passes_differ_and_repeat():
    one, again = (predictor().predict(IDS, **SIZE) for _ in range(2))
    assert one.mean.shape == (7, 4)
    assert np.unique(one.mean[:, 0]).size == 7
    assert one.mean.tolist() == again.mean.tolist()
    assert predictor(seed=2).predict(IDS, **SIZE).mean.tolist() != one.mean.tolist()


def test_what_shares_the_batch_does_not_matter():
    together = predictor().predict(IDS, **SIZE).mean
    alone = np.concatenate([predictor().predict([ids], **SIZE).mean for ids in IDS], axis=1)
    assert together == pytest.approx(alone, abs=1e-5)


def test_without_dropout_it_is_the_deterministic_model():
    passes = predictor(dropout=0.0).predict(IDS, **SIZE)
    plain = predictor("deterministic", dropout=0.0).predict(IDS, **SIZE)
    assert np.ptp(passes.mean, axis=0).max() == 0
    assert passes.mean[0].tolist() == plain.mean[0].tolist()
    assert passes.moments().variance.max() < 1e-15


def test_masks_keep_the_mean():
    layers = replace_dropout(net := nn.Sequential(nn.Dropout(0.3)), seed=0)
    values = torch.ones(1, 5)
    found = []
    for number in range(4_000):
        with dropout_pass(layers, number):
            found.append(net(values))
    mean = torch.cat(found).mean(0)
    assert torch.allclose(mean, torch.ones(5), atol=0.05)
    assert torch.cat(found).unique().tolist() == pytest.approx([0.0, 1 / 0.7])


def test_outside_a_pass_it_is_plain_dropout():
    net = nn.Sequential(nn.Dropout(0.5))
    replace_dropout(net, seed=0)
    values = torch.ones(1_000)
    assert torch.equal(net.eval()(values), values)
    torch.manual_seed(3)
    random = net.train()(values)
    torch.manual_seed(3)
    assert torch.equal(random, nn.functional.dropout(values, 0.5))


CONFIGS = {
    "bert": BertConfig(**SMALL),
    "roberta": RobertaConfig(**SMALL),
    "distilbert": DistilBertConfig(
        vocab_size=50, dim=16, n_layers=2, n_heads=2, hidden_dim=32, max_position_embeddings=32
    ),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_embeddings_are_computed_once_and_the_scores_are_those_of_passes_with_their_own(
    name, monkeypatch
):
    torch.manual_seed(0)
    recipe, encoder = Recipe(method="mc_dropout", passes=7), AutoModel.from_config(CONFIGS[name])
    made = Predictor([build_classifier(encoder, recipe)], recipe, pad_id=0, seed=1)
    calls: list[object] = []
    encoder.embeddings.LayerNorm.register_forward_hook(lambda *given: calls.append(given))
    shared = made.predict(IDS, **SIZE).mean
    assert len(calls) == 1
    made.predict(IDS[:1], **SIZE)
    assert len(calls) == 2, "embeddings of another batch"
    monkeypatch.setattr(classifier, "shared_embeddings", lambda _: nullcontext())
    assert np.array_equal(made.predict(IDS, **SIZE).mean, shared)
    assert len(calls) == 2 + 7


@pytest.mark.parametrize("place", ["no embeddings", "in the middle"])
def test_embeddings_that_go_on_after_their_dropout_are_not_shared(place):
    class Embeddings(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.dropout = nn.Dropout(0.5)

        def forward(self, values: torch.Tensor) -> torch.Tensor:
            masked: torch.Tensor = self.dropout(values)
            return masked + 1

    encoder = nn.Module()
    setattr(encoder, "embeddings" if place == "in the middle" else "first", Embeddings())
    layers, found = replace_dropout(encoder, seed=0), []
    embeddings = next(encoder.children())
    with shared_embeddings(encoder):
        for number in range(5):
            with dropout_pass(layers, number):
                found.append(embeddings(torch.ones(1, 8)))
    assert {value for match in found for value in match.unique().tolist()} == {1.0, 3.0}
    assert len({tuple(match[0].tolist()) for match in found}) > 1


def test_a_padded_batch_gives_what_a_single_comment_gives():
    made = predictor()
    with torch.inference_mode():
        alone = made.logit_moments(padded([IDS[1]], 0))[0, :, 0]
        padded_too = made.logit_moments(padded(IDS, 0))[0, :, 1]
    assert padded_too.tolist() == pytest.approx(alone.tolist(), abs=1e-5)

"""Monte Carlo dropout: fixed networks, whatever shares the batch."""

import numpy as np
import pytest
import torch
from torch import nn
from transformers import BertConfig, BertModel

from modwatch.models.batches import padded
from modwatch.models.classifier import (
    Predictor,
    build_classifier,
    dropout_pass,
    replace_dropout,
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


def test_a_padded_batch_gives_what_a_single_comment_gives():
    made = predictor()
    with torch.inference_mode():
        alone = made.logit_moments(padded([IDS[1]], 0))[0, :, 0]
        padded_too = made.logit_moments(padded(IDS, 0))[0, :, 1]
    assert padded_too.tolist() == pytest.approx(alone.tolist(), abs=1e-5)

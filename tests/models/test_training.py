"""Training on a tiny corpus with an obvious rule."""

from dataclasses import replace
from itertools import count

import numpy as np
import pytest
import torch

from modwatch.errors import ModelError
from modwatch.models.optimisation import Progress
from modwatch.models.recipe import Recipe
from modwatch.models.training import TrainedModel, train

Corpus = tuple[list[str], list[int]]


def weights(model: TrainedModel) -> dict[str, torch.Tensor]:
    return dict(model.classifier.state_dict())


def test_learns_the_rule(tiny_model: TrainedModel) -> None:
    assert tiny_model.facts.validation["auroc"] > 0.95
    assert tiny_model.facts.examples == 240
    assert tiny_model.facts.toxic == 80
    assert 0 < tiny_model.threshold < 1
    assert not tiny_model.facts.stopped_early


def test_same_seed_same_model(
    corpus: Corpus, tiny_recipe: Recipe, tiny_model: TrainedModel
) -> None:
    again = train(*corpus, recipe=tiny_recipe, seed=1)
    assert again.facts == tiny_model.facts
    assert again.calibration == tiny_model.calibration
    for name, weight in weights(again).items():
        assert torch.equal(weight, weights(tiny_model)[name]), name


def test_another_seed_another_model(
    corpus: Corpus, tiny_recipe: Recipe, tiny_model: TrainedModel
) -> None:
    other = train(*corpus, recipe=tiny_recipe, seed=2)
    name = "head.output.weight"
    assert not torch.equal(weights(other)[name], weights(tiny_model)[name])


def test_leaves_torch_generator_as_it_was(corpus: Corpus, tiny_recipe: Recipe) -> None:
    torch.manual_seed(7)
    expected = torch.rand(1)
    torch.manual_seed(7)
    train(*corpus, recipe=replace(tiny_recipe, epochs=1), seed=1)
    assert torch.equal(torch.rand(1), expected)


def test_progress_counts_every_step(corpus: Corpus, tiny_recipe: Recipe) -> None:
    seen: list[Progress] = []
    model = train(*corpus, recipe=replace(tiny_recipe, epochs=1), seed=1, progress=seen.append)
    assert [one.step for one in seen] == list(range(1, seen[0].steps + 1))
    assert model.facts.steps == seen[-1].step


def test_max_steps_bound_the_run(corpus: Corpus, tiny_recipe: Recipe) -> None:
    model = train(*corpus, recipe=replace(tiny_recipe, max_steps=3), seed=1)
    assert model.facts.steps == 3
    assert not model.facts.stopped_early


def test_max_examples_are_counted_not_hidden(corpus: Corpus, tiny_recipe: Recipe) -> None:
    model = train(*corpus, recipe=replace(tiny_recipe, max_examples=200, epochs=1), seed=1)
    assert (model.facts.examples, model.facts.left_out) == (200, 40)


def test_clock_ends_the_run_with_a_usable_model(
    corpus: Corpus, tiny_recipe: Recipe, caplog: pytest.LogCaptureFixture
) -> None:
    ticks = count()
    recipe = replace(tiny_recipe, seconds=5)
    model = train(*corpus, recipe=recipe, seed=1, clock=lambda: float(next(ticks)))
    assert model.facts.stopped_early
    assert 0 < model.facts.steps < 10
    assert "training_stopped_early" in [getattr(record, "event", "") for record in caplog.records]


def test_expected_prevalence_shifts_probabilities(corpus: Corpus, tiny_recipe: Recipe) -> None:
    recipe = replace(tiny_recipe, expected_prevalence=0.01)
    model = train(*corpus, recipe=recipe, seed=1)
    assert model.calibration.prior_shift == pytest.approx(np.log(0.01 / 0.99 * 2))


def test_teacher_moves_the_model_the_same_way_each_time(
    corpus: Corpus, tiny_recipe: Recipe, tiny_model: TrainedModel
) -> None:
    taught, again = (
        train(*corpus, recipe=replace(tiny_recipe, teacher_weight=0.5), seed=1) for _ in range(2)
    )
    assert taught.facts.validation["auroc"] > 0.9
    name = "head.output.weight"
    assert torch.equal(weights(taught)[name], weights(again)[name])
    assert not torch.equal(weights(taught)[name], weights(tiny_model)[name])


def test_deterministic_head_trains_too(corpus: Corpus, tiny_recipe: Recipe) -> None:
    model = train(*corpus, recipe=replace(tiny_recipe, head="deterministic"), seed=1)
    assert model.facts.validation["auroc"] > 0.9


@pytest.mark.parametrize(
    ("texts", "labels", "message"),
    [
        (["a"], [0, 1], "1 texts but 2 labels"),
        (["a"] * 30, [2] * 30, "labels must be 0 or 1"),
        ([], [], "at least ten of each"),
        (["a"] * 30, [0] * 30, "at least ten of each"),
    ],
)
def test_unusable_corpora_are_refused(texts: list[str], labels: list[int], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        train(texts, labels, recipe=Recipe(), seed=0)

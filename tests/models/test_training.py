"""Training on a tiny corpus with an obvious rule."""

import random
import re
import signal
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np
import pytest
import torch
from killed_training import train_until_killed
from torch.nn.utils import parameters_to_vector

from modwatch.common.errors import ModelError
from modwatch.models import optimisation, training
from modwatch.models.batches import Batch
from modwatch.models.classifier import Classifier, Predictor, build_classifier
from modwatch.models.encoder import small_encoder
from modwatch.models.heads import SNGPHead
from modwatch.models.optimisation import Split
from modwatch.models.posterior import LogitPosterior
from modwatch.models.progress import Progress
from modwatch.models.recipe import METHODS, Recipe
from modwatch.models.training import TrainedModel, run_digest, train

Corpus = tuple[list[str], list[int]]


def weights(model: TrainedModel) -> dict[str, torch.Tensor]:
    return {
        f"{number}.{name}": value
        for number, member in enumerate(model.members)
        for name, value in member.state_dict().items()
    }


def same(one: TrainedModel, other: TrainedModel) -> bool:
    first, second = weights(one), weights(other)
    return first.keys() == second.keys() and all(
        torch.equal(first[name], second[name]) for name in first
    )


def test_learns_the_rule(tiny_model):
    assert tiny_model.facts.validation["auroc"] > 0.95
    assert tiny_model.facts.examples == 240
    assert tiny_model.facts.toxic == 80
    assert 0 < tiny_model.threshold < 1


@pytest.mark.parametrize(("linear_kernel", "learning_rate"), [(False, 5e-3), (True, 5e-2)])
def test_the_norm_of_the_kept_network_is_within_its_bound(
    linear_kernel, learning_rate, corpus, tiny_recipe
):
    recipe = replace(
        tiny_recipe, epochs=3, linear_kernel=linear_kernel, learning_rate=learning_rate
    )
    (member,) = train(*corpus, recipe=replace(recipe, head_rate=2.0), seed=1).members
    norm = torch.linalg.matrix_norm(member.head.dense.weight.detach().double(), 2)
    assert 0.9 < float(norm) <= recipe.norm_bound * (1 + 1e-6)


def test_calibration_is_measured_before_and_after(tiny_model):
    for name in ("brier", "ece", "calibration_auprc"):
        assert {name, f"{name}_before_calibration"} <= set(tiny_model.facts.validation)
    assert set(tiny_model.facts.calibration_log_loss) >= {"none", "platt", "isotonic"}


def test_same_seed_same_model(corpus, tiny_recipe, tiny_model):
    again = train(*corpus, recipe=tiny_recipe, seed=1)
    assert again.facts == tiny_model.facts
    assert again.calibration == tiny_model.calibration
    assert same(again, tiny_model)


def test_leaves_random_numbers_as_they_were(corpus, tiny_recipe):
    def draw() -> list[float]:
        return [float(torch.rand(1)), random.random(), float(np.random.random())]  # noqa: NPY002

    def seed() -> None:
        torch.manual_seed(7)
        random.seed(7)
        np.random.seed(7)  # noqa: NPY002

    seed()
    expected = draw()
    seed()
    train(*corpus, recipe=replace(tiny_recipe, epochs=1), seed=1)
    assert draw() == expected


def test_progress_counts_every_step(corpus, tiny_recipe):
    seen: list[Progress] = []
    recipe = replace(tiny_recipe, epochs=1, method="ensemble", members=2)
    model = train(*corpus, recipe=recipe, seed=1, progress=seen.append)
    steps = [made["steps"] for made in model.facts.networks]
    trained = [one for one in seen if one.phase == "training" and one.plan is None]
    assert [one.step for one in trained if one.network == 2] == list(range(steps[1] + 1))
    assert len(trained) == sum(steps) + 2


def test_max_examples_are_counted_not_hidden(corpus, tiny_recipe):
    recipe = replace(tiny_recipe, max_examples=200, max_steps=3, accumulation=2)
    model = train(*corpus, recipe=recipe, seed=2)
    assert (model.facts.examples, model.facts.left_out) == (200, 40)
    assert [made["steps"] for made in model.facts.networks] == [3]


def test_longer_comments_are_left_out(corpus, tiny_recipe):
    longest = sorted(map(len, corpus[0]))[200]
    short = [row for row, text in enumerate(corpus[0]) if len(text) <= longest]
    recipe = replace(tiny_recipe, epochs=1)
    model = train(*corpus, recipe=replace(recipe, max_characters=longest), seed=1)
    assert (model.facts.examples, model.facts.left_out) == (len(short), 240 - len(short))
    alone = train(*([part[row] for row in short] for part in corpus), recipe=recipe, seed=1)
    assert same(model, alone)


def test_other_comments_may_be_thinned_out(corpus, tiny_recipe):
    recipe = replace(tiny_recipe, negatives_per_positive=1)
    model = train(*corpus, recipe=recipe, seed=1)
    assert model.facts.negatives_left_out == 72  # 144 of the 216 are not toxic
    assert model.facts.validation["n"] == 24  # at the prevalence of the corpus


def test_it_stops_when_the_held_out_comments_gain_nothing(corpus, tiny_recipe):
    recipe = replace(tiny_recipe, epochs=50, patience=2)
    (made,) = train(*corpus, recipe=recipe, seed=1).facts.networks
    found = [point["average_precision"] for point in made["curve"] if "average_precision" in point]
    assert made["steps"] < 50 * 14 / 2
    assert found[-3] == max(found) == made["average_precision"]


def test_two_batches_accumulated_give_the_step_of_one_batch_of_both(
    tiny_recipe, tmp_path, monkeypatch
):
    """With plain gradient descent and gradients too small to be clipped, so that scale matters."""
    rng, loss_of = np.random.default_rng(0), optimisation.loss_of
    monkeypatch.setattr(optimisation, "loss_of", lambda *given: loss_of(*given) / 100)
    monkeypatch.setattr(torch.optim, "AdamW", torch.optim.SGD)
    data = Split(
        ids=rng.integers(2, 200, (16, 8)).tolist(),
        target=np.tile([0, 1], 8).astype(np.float32),
        rows=np.arange(16),
    )

    def step(batch_size: int, accumulation: int) -> torch.Tensor:
        recipe = replace(
            tiny_recipe,
            method="deterministic",
            batch_size=batch_size,
            accumulation=accumulation,
            max_steps=1,
            warm_up=0.0,
            dropout=0.0,
            learning_rate=1.0,
        )

        def make() -> Classifier:
            return build_classifier(small_encoder(recipe, vocab_size=200, pad_id=0), recipe)

        with optimisation.isolated_random(3):
            before = parameters_to_vector(make().parameters()).detach()
        place = {"device": torch.device("cpu"), "folder": tmp_path / f"{batch_size}"}
        made, facts = optimisation.fit(make, data, data, recipe=recipe, seed=3, pad_id=0, **place)
        assert facts.steps == 1
        return parameters_to_vector(made.parameters()).detach() - before

    twice, once = step(8, accumulation=2), step(16, accumulation=1)
    assert once.norm() > 1e-4
    assert torch.allclose(twice, once, rtol=1e-3, atol=1e-3 * float(once.abs().max()))


@pytest.mark.parametrize("bf16", [True, False])
def test_training_multiplies_in_bf16_where_the_device_is_faster_with_it(
    bf16, corpus, tiny_recipe, monkeypatch
):
    features, found = Classifier.features, dict[bool, set[torch.dtype]]()

    def watched(self: Classifier, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        product = torch.nn.functional.linear(torch.ones(1, 1), torch.ones(1, 1))
        found.setdefault(self.training, set()).add(product.dtype)
        return features(self, ids, mask)

    monkeypatch.setattr(Classifier, "features", watched)
    monkeypatch.setattr(optimisation, "has_bf16", lambda _: bf16)
    recipe = replace(tiny_recipe, layers=1, epochs=1, max_steps=4, method="deterministic")
    (member,) = train(*corpus, recipe=recipe, seed=1).members
    assert found[True] == {torch.bfloat16 if bf16 else torch.float32}
    assert {value.dtype for value in member.parameters()} == {torch.float32}


@pytest.mark.parametrize(("longest", "attention"), [(16, "eager"), (129, "sdpa")])
def test_short_comments_are_trained_without_fused_attention(
    longest, attention, corpus, tiny_recipe, monkeypatch
):
    features, found = Classifier.features, {True: set[str](), False: set[str]()}

    def watched(self: Classifier, *given: torch.Tensor) -> torch.Tensor:
        found[self.training].add(self.encoder.config._attn_implementation)
        return features(self, *given)

    monkeypatch.setattr(Classifier, "features", watched)
    monkeypatch.setattr(optimisation, "has_bf16", lambda _: True)
    recipe = replace(tiny_recipe, layers=1, epochs=1, max_steps=2, max_length=longest)
    (member,) = train(*corpus, recipe=recipe, seed=1).members
    assert found[True] == {attention}
    assert "modwatch_blocked" in found[False]  # evaluation, in bfloat16
    assert member.encoder.config._attn_implementation == "sdpa"


def test_expected_prevalence_shifts_probabilities(corpus, tiny_recipe):
    recipe = replace(tiny_recipe, expected_prevalence=0.01)
    model = train(*corpus, recipe=recipe, seed=1)
    assert model.calibration.prior_shift == pytest.approx(np.log(0.01 / 0.99 * 2))


@pytest.mark.parametrize("method", METHODS)
def test_every_method_learns(method, corpus, tiny_recipe):
    recipe = replace(tiny_recipe, method=method, members=2, passes=3, loss="focal")  # type: ignore[arg-type]
    model = train(*corpus, recipe=recipe, seed=1)
    assert model.facts.validation["auroc"] > 0.9
    assert len(model.members) == (2 if "ensemble" in method else 1)


def test_an_ensemble_of_one_is_the_deterministic_model(corpus, tiny_recipe):
    one, plain = (
        train(*corpus, recipe=replace(tiny_recipe, method=method, members=1), seed=1)  # type: ignore[arg-type]
        for method in ("ensemble", "deterministic")
    )
    assert same(one, plain)
    assert one.calibration == plain.calibration


def test_members_begin_differently(corpus, tiny_recipe):
    recipe = replace(tiny_recipe, method="ensemble", members=2, epochs=1)
    model = train(*corpus, recipe=recipe, seed=1)
    first, second = (member.state_dict() for member in model.members)
    assert not torch.equal(first["head.output.weight"], second["head.output.weight"])


@pytest.mark.parametrize(
    ("method", "steps"), [("sngp", 45), pytest.param("ensemble", 100, marks=pytest.mark.soak)]
)
def test_a_killed_run_goes_on_to_the_same_weights(method, steps, corpus, tiny_recipe, tmp_path):
    recipe = replace(tiny_recipe, method=method, members=2)  # type: ignore[arg-type]
    undisturbed = train(*corpus, recipe=recipe, seed=1)
    kills = 0
    for _ in range(20):
        status = train_until_killed(method, tmp_path / "run", steps)
        if status == 0:
            break
        assert status == -signal.SIGKILL
        kills += 1
    assert kills >= 2
    resumed = train(*corpus, recipe=recipe, seed=1, checkpoints=tmp_path / "run")
    assert same(resumed, undisturbed)
    assert resumed.facts.networks[0]["steps"] == undisturbed.facts.networks[0]["steps"]


def test_an_incomplete_checkpoint_is_passed_over(corpus, tiny_recipe, tmp_path):
    recipe = tiny_recipe
    undisturbed = train(*corpus, recipe=recipe, seed=1)

    class StopError(Exception):
        pass

    def stop(state: Progress) -> None:
        if state.step == 70:
            raise StopError

    with pytest.raises(StopError):
        train(*corpus, recipe=recipe, seed=1, checkpoints=tmp_path, progress=stop)
    newest = max(
        tmp_path.glob("network-0/*/checkpoint-*"), key=lambda path: int(path.name.split("-")[1])
    )
    (newest / "complete").unlink()
    (newest / "optimizer.pt").write_bytes(b"half")
    resumed = train(*corpus, recipe=recipe, seed=1, checkpoints=tmp_path)
    assert same(resumed, undisturbed)


def test_another_recipe_corpus_or_seed_is_another_run(corpus, tiny_recipe):
    runs = [
        (*corpus, tiny_recipe, 1),
        (*corpus, tiny_recipe, 2),
        (*corpus, replace(tiny_recipe, ridge=1.0), 1),
        (corpus[0], corpus[1][::-1], tiny_recipe, 1),
        (corpus[0][::-1], corpus[1], tiny_recipe, 1),
    ]
    assert len({run_digest(*run) for run in runs}) == len(runs)


def test_a_loss_that_is_not_finite_stops_with_the_step_and_the_rows_and_no_text(
    corpus, tiny_recipe, monkeypatch
):
    """The comments that ruin the loss carry a share of their own; their rows are named."""
    texts, labels = corpus
    ruinous = {30: 0.75, 31: 0.25}
    shares = [ruinous.get(row, label) for row, label in enumerate(labels)]
    loss_of = optimisation.loss_of

    def diverging(recipe: Recipe, logit: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        found = torch.isin(target, torch.tensor([0.25, 0.75])).any()
        return loss_of(recipe, logit, target) * (float("nan") if found else 1)

    monkeypatch.setattr(optimisation, "loss_of", diverging)
    recipe = replace(tiny_recipe, batch_size=4)
    message = r"loss of step \d+ is not finite \(batch of 4 comments, rows ([\d, ]+) of the corpus"
    with pytest.raises(ModelError, match=message) as caught:
        train(texts, shares, recipe=recipe, seed=1)
    found = re.search(message, str(caught.value))
    assert found is not None
    rows = [int(row) for row in found[1].split(", ")]
    assert len(rows) == 4
    assert ruinous.keys() & rows, "these are rows of the part that is not held out"
    assert not any(word in str(caught.value) for word in ("garden", "bridge", "fizzlewit"))


def test_weights_that_are_not_finite_stop_before_they_are_evaluated(
    corpus, tiny_recipe, monkeypatch
):
    loss_of, calls = optimisation.loss_of, count(1)

    def steep(recipe: Recipe, logit: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Return a finite loss, whose gradient is not at the fourth step."""
        cliff = (0 * logit.sum()).sqrt() if next(calls) == 4 else 0
        return loss_of(recipe, logit, target) + cliff

    monkeypatch.setattr(optimisation, "loss_of", steep)
    with pytest.raises(ModelError, match="the weights after step 4 are not finite"):
        train(*corpus, recipe=replace(tiny_recipe, max_steps=4, epochs=1, evaluations=1), seed=1)


def test_without_memory_the_batch_is_halved_and_reported(corpus, tiny_recipe, monkeypatch, caplog):
    loss_of, most = optimisation.loss_of, 5

    def scarce(recipe: Recipe, logit: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        if len(logit) > most:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return loss_of(recipe, logit, target)

    monkeypatch.setattr(optimisation, "loss_of", scarce)
    model = train(*corpus, recipe=replace(tiny_recipe, epochs=1), seed=1)
    assert model.facts.networks[0]["batch_size"] == 4
    assert [getattr(record, "event", "") for record in caplog.records].count("batch_halved") == 2
    assert "training starts again with half the batch, at most 4 comments and 4096" in caplog.text
    most = 0
    with pytest.raises(ModelError, match="batch of one comment"):
        train(*corpus, recipe=replace(tiny_recipe, epochs=1), seed=1)


def test_without_memory_for_the_posterior_its_batches_are_halved(
    corpus, tiny_recipe, tiny_model, monkeypatch, caplog
):
    observe, sizes = SNGPHead.observe, list[int]()

    def scarce(head: SNGPHead, features: torch.Tensor) -> None:
        sizes.append(len(features))
        if len(features) > 40 and len(sizes) > 1:  # the second batch of the first attempt
            raise torch.OutOfMemoryError("CUDA out of memory.")
        observe(head, features)

    monkeypatch.setattr(SNGPHead, "observe", scarce)
    model = train(*corpus, recipe=tiny_recipe, seed=1)
    assert "the posterior of the SNGP head starts again with half the batch" in caplog.text
    assert "at most 32 comments" in caplog.text
    ours, whole = (value.members[0].head.precision for value in (model, tiny_model))
    assert torch.allclose(ours, whole, rtol=1e-4), "comments were observed twice, or not at all"


def test_without_memory_to_calibrate_its_batches_are_halved(
    corpus, tiny_recipe, tiny_model, monkeypatch, caplog
):
    class Scarce(Predictor):
        def logit_moments(self, batch: Batch) -> torch.Tensor:
            if len(batch.ids) > 5:
                raise MemoryError
            return super().logit_moments(batch)

    monkeypatch.setattr(training, "Predictor", Scarce)
    model = train(*corpus, recipe=tiny_recipe, seed=1)
    assert "prediction starts again with half the batch, at most 4 comments" in caplog.text
    assert model.threshold == pytest.approx(tiny_model.threshold, abs=1e-4)


def test_calibration_begins_with_the_batch_that_training_fitted_into_the_memory(
    corpus, tiny_recipe, monkeypatch
):
    loss_of, sizes = optimisation.loss_of, list[tuple[int, int]]()

    def scarce(recipe: Recipe, logit: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        if len(logit) > 5:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return loss_of(recipe, logit, target)

    class Watched(Predictor):
        def predict(self, ids: Any, **given: Any) -> LogitPosterior:
            sizes.append((given["batch_size"], given["batch_tokens"]))
            return super().predict(ids, **given)

    monkeypatch.setattr(optimisation, "loss_of", scarce)
    monkeypatch.setattr(training, "Predictor", Watched)
    train(*corpus, recipe=replace(tiny_recipe, epochs=1), seed=1)
    assert sizes == [(8 * 4, 4_096)]  # on a CPU: more comments, not more subwords


@pytest.mark.parametrize(
    ("texts", "labels", "message"),
    [
        (["a"], [0, 1], "1 texts but 2 labels"),
        (["a"] * 30, [2] * 30, "between 0 and 1"),
        (["a"] * 30, [float("nan")] * 30, "between 0 and 1"),
        ([], [], "at least ten of each"),
        (["a"] * 30, [0] * 30, "at least ten of each"),
    ],
)
def test_unusable_corpora_are_refused(texts, labels, message):
    with pytest.raises(ModelError, match=message):
        train(texts, labels, recipe=Recipe(), seed=0)

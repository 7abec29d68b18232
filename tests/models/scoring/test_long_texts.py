"""Insults hidden in long texts, and invisible characters: the model sees them, or says it did not.

Source of the first: a text of 300 harmless words before an insult, of which the model read the
beginning, was never flagged, and its uncertainty was low.
"""

import json
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from modwatch.models import encoder
from modwatch.models.artifact import save
from modwatch.models.scoring.local import LocalScorer
from modwatch.models.training import train

INSULTS = ["grumblesnort", "the fizzlewit paint", "old bogwaddle birds"]
HARMLESS = ["the", "garden", "needs", "rain", "and", "old", "bridge", "paint", "birds", "sing"]


def words(n: int, seed: int = 0) -> str:
    return " ".join(np.random.default_rng(seed).choice(HARMLESS, n))


HIDDEN: dict[str, Callable[[str], str]] = {
    "before": lambda insult: f"{words(300)} {insult}",
    "after": lambda insult: f"{insult} {words(300)}",
    "in the middle": lambda insult: f"{words(150, 1)} {insult} {words(150, 2)}",
    "repetitions": lambda insult: f"{'needs rain ' * 2_000}{insult}",
    "no spaces": lambda insult: f"{'gardenrain' * 300} {insult}",
    "another script": lambda insult: f"{'漢字かな交じり文' * 60}。{insult}",
    "one very long word": lambda insult: f"{'x' * 5_000} {insult}",
    "lines": lambda insult: "\n".join([*["the garden sings"] * 200, insult]),
    "blanks": lambda insult: f"garden{' ' * 20_000}{insult}",
    "invisible characters": lambda insult: "garden " + "\u200b" * 20_000 + "\xad".join(insult),
}


@pytest.fixture(scope="module")
def folder(corpus, tiny_recipe, tmp_path_factory):
    """A model that knows the rule of the corpus by heart, and reads 32 subwords."""
    texts, labels = (5 * column for column in corpus)
    model = train(texts, labels, recipe=replace(tiny_recipe, max_length=32, hidden_size=32), seed=1)
    place = tmp_path_factory.mktemp("long") / "model"
    save(model, place)
    return place


@pytest.fixture(scope="module")
def scorer(folder):
    return LocalScorer(folder, model_version="7")


@pytest.mark.parametrize("name", HIDDEN)
def test_an_insult_in_a_long_text_is_flagged(scorer, name):
    assert (scorer.score(INSULTS).prob > scorer.threshold).all()
    found = scorer.score([HIDDEN[name](insult) for insult in INSULTS])
    assert (found.prob > scorer.threshold).all()
    assert not found.cut.any()


def test_an_insult_is_flagged_wherever_it_stands(scorer):
    """Also across the border of two passages, which have 16 subwords here."""
    around = words(80).split()
    texts = [" ".join([*around[:k], "old bogwaddle birds", *around[k:]]) for k in range(80)]
    assert (scorer.score(texts).prob > scorer.threshold).all()


def test_harmless_long_texts_are_not_all_flagged(scorer):
    found = scorer.score([words(300, seed) for seed in range(50)])
    assert (found.prob > scorer.threshold).mean() < 0.1


def test_what_is_not_read_has_the_highest_uncertainty(scorer, monkeypatch):
    monkeypatch.setattr(encoder, "MOST_SUBWORDS", 200)
    found = scorer.score([f"{words(300)} fizzlewit", words(100)])
    assert found.prob.max() < scorer.threshold
    assert found.cut.tolist() == [True, False]
    assert found.uncertainty[0] == 0.25


def test_the_three_numbers_are_of_one_passage(scorer):
    text = f"{words(60)} fizzlewit {words(60, 1)}"
    ((passages, _),) = encoder.encode_passages(scorer.tokenizer, [text], max_length=32)
    each = scorer._predict(passages).values
    found = scorer.score([text]).values
    assert np.abs(found - each[:, [each[0].argmax()]]).max() < 1e-6


def test_short_texts_are_scored_as_before(scorer, corpus):
    """Bit for bit: as the batches of their subwords are predicted."""
    texts = list(dict.fromkeys(corpus[0]))
    ids = encoder.encode(scorer.tokenizer, texts, max_length=10**6)
    assert max(map(len, ids)) <= 32
    assert np.array_equal(scorer.score(texts).values, scorer._predict(ids).values)


@given(
    text=st.lists(st.sampled_from([*HARMLESS, *INSULTS]), max_size=40).map(" ".join),
    signs=st.lists(
        st.tuples(st.integers(0, 300), st.characters(categories=["Cf"]) | st.just("\ufe0f")),
        max_size=20,
    ),
)
def test_invisible_characters_never_change_a_score(scorer, text, signs):
    spread = text
    for position, sign in signs:
        spread = spread[:position] + sign + spread[position:]
    assert np.array_equal(scorer.score([text]).values, scorer.score([spread]).values)


def test_soft_hyphens_flag_no_harmless_text(scorer):
    texts = [words(8, seed) for seed in range(40)]
    hidden = ["\xad".join(text) for text in texts]
    assert np.array_equal(scorer.score(texts).values, scorer.score(hidden).values)


def test_the_model_card_and_the_facts_count_truncated_texts(corpus, tiny_recipe, tmp_path):
    texts = [*corpus[0], *[words(40)] * 7]
    model = train(texts, [*corpus[1], *[0] * 7], recipe=replace(tiny_recipe, epochs=1), seed=0)
    ids = encoder.encode(model.tokenizer, texts, max_length=16)
    assert model.facts.truncated == sum(len(sequence) == 16 for sequence in ids) >= 7
    save(model, tmp_path / "model")
    facts = json.loads((tmp_path / "model" / "modwatch.json").read_text("utf-8"))["training"]
    assert facts["truncated"] == model.facts.truncated
    card = (tmp_path / "model" / "README.md").read_text("utf-8")
    assert f"of {model.facts.truncated} only the first 16 subwords were used" in card

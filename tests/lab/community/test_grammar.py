import string

import numpy as np
import pytest

from modwatch_lab.community.grammar import LEXICONS, write
from modwatch_lab.community.ground_truth import (
    KINDS,
    Latents,
    Mixture,
    draw_latents,
)
from modwatch_lab.community.lexicon import COINAGES, GROUPS, NEW_TOPICS, TOPICS


def drawn(size: int, **mixture: float) -> Latents:
    usual = {"prevalence": 0.3, "new_topics": 0.3, "coinages": 0.3}
    return draw_latents(size, Mixture(**{**usual, **mixture}), np.random.default_rng(0))


@pytest.mark.parametrize("lexicon", LEXICONS, ids=lambda lexicon: lexicon.language)
def test_every_slot_of_every_sentence_can_be_filled_on_every_topic(lexicon):
    assert {kind.name for kind in KINDS} | {"coined"} == set(lexicon.sentences)
    assert set(lexicon.topics) == {*TOPICS, *NEW_TOPICS}
    assert len(lexicon.groups) == len(GROUPS)
    sentences = [s for group in lexicon.sentences.values() for s in group]
    sentences += [*lexicon.fillers, *lexicon.belongings]
    slots = {slot for s in sentences for _, slot, _, _ in string.Formatter().parse(s) if slot}
    for topic in lexicon.topics.values():
        assert slots <= {*topic, *lexicon.words, "group", "disguised"}


def test_texts_are_finished():
    texts = write(drawn(3000), np.random.default_rng(1))
    assert all(text and "{" not in text for text in texts)


def test_groups_stand_in_the_text_where_they_are_mentioned():
    latents = drawn(3000)
    for text, mention, language in zip(
        write(latents, np.random.default_rng(1)), latents.mention, latents.language, strict=True
    ):
        named = [g for g in LEXICONS[language].groups if g.lower() in text.lower()]
        assert named == ([LEXICONS[language].groups[mention]] if mention >= 0 else [])


def test_coinages_are_read_only_after_a_drift():
    calm = " ".join(write(drawn(2000, coinages=0.0), np.random.default_rng(1))).lower()
    assert not any(word in calm for word in COINAGES)
    drifted = " ".join(write(drawn(2000, coinages=0.5), np.random.default_rng(1))).lower()
    assert any(word in drifted for word in COINAGES)

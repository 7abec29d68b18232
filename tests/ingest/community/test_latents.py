import numpy as np
import pytest

from modwatch.ingest.community.kinds import KINDS
from modwatch.ingest.community.latents import Climate, draw_latents
from modwatch.ingest.community.lexicon import TOPICS

CALM = Climate(prevalence=0.09, new_topics=0.0, coinages=0.0)


def test_no_comments():
    assert draw_latents(0, CALM, np.random.default_rng(0)).label.shape == (0,)


def test_prevalence_within_five_standard_errors():
    latents = draw_latents(200_000, CALM, np.random.default_rng(1))
    assert latents.label.mean() == pytest.approx(0.09, abs=5 * np.sqrt(0.09 * 0.91 / 200_000))


def test_label_and_difficulty_follow_from_toxicity():
    latents = draw_latents(1000, CALM, np.random.default_rng(2))
    assert ((latents.toxicity > 0.5) == latents.label).all()
    assert latents.difficulty == pytest.approx(1 - np.abs(2 * latents.toxicity - 1))
    assert ((latents.difficulty >= 0) & (latents.difficulty <= 1)).all()


def test_new_topics_and_coinages_come_only_when_asked_for():
    calm = draw_latents(2000, CALM, np.random.default_rng(3))
    assert (calm.topic < len(TOPICS)).all()
    assert not calm.coined.any()
    stirred = Climate(prevalence=0.3, new_topics=1.0, coinages=1.0)
    drifted = draw_latents(2000, stirred, np.random.default_rng(3))
    assert (drifted.topic >= len(TOPICS)).all()
    insults = {"insult", "disguised"}
    assert (drifted.coined == [KINDS[k].name in insults for k in drifted.kind]).all()


def test_comments_about_groups_mention_one():
    latents = draw_latents(2000, CALM, np.random.default_rng(4))
    about = np.array(["group" in KINDS[k].name for k in latents.kind])
    assert (latents.mention[about] >= 0).all()
    assert 0 < (latents.mention[~about] >= 0).mean() < 0.1

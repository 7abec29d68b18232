import numpy as np
import pytest

from modwatch.common.errors import SourceError
from modwatch_lab.community.ground_truth import (
    KINDS,
    Mixture,
    draw_latents,
    kind_shares,
    toxic_share,
)
from modwatch_lab.community.lexicon import TOPICS

CALM = Mixture(prevalence=0.09, new_topics=0.0, coinages=0.0)


def test_prevalence_within_five_standard_errors():
    latents = draw_latents(200_000, CALM, np.random.default_rng(1))
    assert latents.label.mean() == pytest.approx(0.09, abs=5 * np.sqrt(0.09 * 0.91 / 200_000))


def test_the_label_follows_from_toxicity():
    latents = draw_latents(1000, CALM, np.random.default_rng(2))
    assert ((latents.toxicity > 0.5) == latents.label).all()


def test_new_topics_and_coinages_come_only_when_asked_for():
    calm = draw_latents(2000, CALM, np.random.default_rng(3))
    assert (calm.topic < len(TOPICS)).all()
    assert not calm.coined.any()
    stirred = Mixture(prevalence=0.3, new_topics=1.0, coinages=1.0)
    drifted = draw_latents(2000, stirred, np.random.default_rng(3))
    assert (drifted.topic >= len(TOPICS)).all()
    insults = {"insult", "disguised"}
    assert (drifted.coined == [KINDS[k].name in insults for k in drifted.kind]).all()


@pytest.mark.parametrize("prevalence", [0.03, 0.09, 0.5])
def test_the_mixture_has_the_prevalence_asked_for(prevalence):
    shares = kind_shares(prevalence)
    assert shares.sum() == pytest.approx(1)
    assert shares @ np.array([toxic_share(k) for k in KINDS]) == pytest.approx(prevalence)


@pytest.mark.parametrize("prevalence", [0.0, 0.99, -1.0, float("nan")])
def test_a_prevalence_out_of_reach_is_rejected_with_the_range(prevalence):
    with pytest.raises(SourceError, match=r"must be in \[0.023, 0.875\], got"):
        kind_shares(prevalence)

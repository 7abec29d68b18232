"""The planted flip rates and opinions of the synthetic community are recovered."""

import numpy as np
import pytest
from disagreeing_community import community_labels

from modwatch.statistics import auroc
from modwatch.statistics.disagreement import (
    adjusted,
    adjusted_metrics,
    estimate_flip_rates,
    retest_flip_rates,
)
from modwatch_lab.community.annotators import annotators

_ITEMS, _PEOPLE = 4_000, 40


@pytest.mark.simulation
def test_flip_rates_are_within_a_hundredth_with_two_thousand_retests_a_stratum():
    misses = []
    for seed in range(8):
        people = annotators(_PEOPLE, seed)
        toxicity = np.random.default_rng([seed, 5]).beta(0.7, 1.5, _ITEMS)
        made = community_labels(people, toxicity, per_person=500, again=250, seed=seed)
        table = retest_flip_rates(made, by=toxicity[made.items], strata=5).table
        assert table["retests"].between(1_900, 2_100).all()
        planted = np.mean([person.flip_rate for person in people])
        misses.append(table["flip_rate"] - planted)
    assert np.abs(misses).mean() < 0.008
    assert np.abs(np.mean(misses, axis=0)).max() < 0.01


@pytest.mark.simulation
def test_the_auroc_of_opinions_is_recovered_where_raw_and_majority_miss_it():
    misses = []
    for seed in range(8):
        rng = np.random.default_rng([seed, 5])
        people = annotators(_PEOPLE, seed)
        toxicity = rng.beta(0.7, 1.5, _ITEMS)
        made = community_labels(people, toxicity, per_person=500, again=250, seed=seed)
        prob = np.clip(0.8 * toxicity + 0.05 + rng.normal(0, 0.15, _ITEMS), 0, 1)[made.items]
        threshold = np.array([person.threshold for person in people])[made.annotators]
        opinion = toxicity[made.items[made.item]] > threshold[made.annotator]
        of_item = made.item[made.first]
        share = np.bincount(of_item, opinion[made.first]) / np.bincount(of_item)
        table = adjusted_metrics(made, prob, estimate_flip_rates(made, by=prob))
        columns = ["adjusted", "raw", "majority"]
        misses.append(table.loc["auroc", columns].to_numpy(float) - adjusted(auroc, share, prob))
    ours, raw, majority = np.mean(misses, axis=0)
    assert abs(ours) < 0.01
    assert raw < -0.1
    assert majority < -0.02
    assert np.abs(misses)[:, 0].max() < 0.02

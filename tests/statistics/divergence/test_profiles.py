"""Profiles of annotators and their clusters."""

import numpy as np
import pytest
from divergent_crowd import Crowd, crowd
from scipy.spatial.distance import jensenshannon

from modwatch.common.errors import MetricInputError
from modwatch.statistics.disagreement import Annotations
from modwatch.statistics.divergence import (
    DemographicDivergence,
    Profiles,
    annotator_profiles,
    conformity_delta,
    demographic_divergence,
)


def test_each_delta_is_in_its_bin():
    """A probability p of the majority puts who differs at 2p − 1, the others at 0."""
    prob = np.array([0.0, 0.25, 0.5, 0.55, 0.7, 1.0])
    annotations = Annotations.from_columns(
        item=np.repeat(np.arange(6), 3), annotator=np.tile([0, 1, 2], 6), label=[1, 1, 0] * 6
    )
    found = annotator_profiles(conformity_delta(annotations, prob), minimum=1)
    assert found.share[:2].argmax(axis=1).tolist() == [20, 20]
    assert np.flatnonzero(found.share[2]).tolist() == [0, 10, 20, 22, 28, 39]
    assert found.share.sum(axis=1) == pytest.approx(1)


def test_annotators_with_few_labels_are_left_out_and_counted():
    made = crowd(0, people=20, per_person=30)
    conformity = conformity_delta(made.annotations, made.prob)
    found = annotator_profiles(conformity, minimum=20)
    sizes = np.bincount(conformity.annotator)
    assert found.annotator.tolist() == np.flatnonzero(sizes >= 20).tolist()
    assert found.left_out == ((sizes > 0) & (sizes < 20)).sum() > 0


def test_two_equal_clusters_have_the_square_of_scipys_distance():
    share = np.repeat(np.eye(40)[[0, 39]], 10, axis=0)
    group = np.array([0] * 7 + [1] * 3 + [0] * 2 + [1] * 8)
    found = demographic_divergence(
        Profiles(annotator=np.arange(20), share=share, left_out=0), group, clusters=2
    )
    assert found.value == pytest.approx(jensenshannon([0.7, 0.3], [0.2, 0.8]) ** 2)
    assert sorted(found.size.tolist()) == [10, 10]
    assert found.group_share.sum(axis=1) == pytest.approx(1)
    assert 0 <= found.low < found.value < found.high <= np.log(2)


def found_in(made: Crowd, seed: int) -> DemographicDivergence:
    profiles = annotator_profiles(conformity_delta(made.annotations, made.prob))
    group = made.groups.code[profiles.annotator]
    return demographic_divergence(profiles, group, draws=200, seed=seed)


def test_a_group_that_contradicts_the_model_is_in_clusters_of_its_own():
    """More than by chance; without one, seldom."""
    seeds = range(6)
    calm = [found_in(crowd(seed, people=60), seed) for seed in seeds]
    assert sum(found.p_value < 0.05 for found in calm) <= 1
    assert 0.3 < np.mean([found.p_value for found in calm]) < 0.7
    for seed in seeds:
        found = found_in(crowd(seed, people=60, bias=0.5), seed)
        assert found.p_value == 1 / 201
        assert found.low > max(item.value for item in calm)


@pytest.mark.simulation
def test_the_interval_covers_the_divergence_of_all_such_people():
    """Half of the people are in each cluster; of three groups, one is in either `apart`."""
    apart = 0.2
    table = np.array([[1 / 3 - apart, 1 / 3, 1 / 3 + apart], [1 / 3 + apart, 1 / 3, 1 / 3 - apart]])
    truth = float(jensenshannon(*table) ** 2)
    rng = np.random.default_rng(0)
    held = []
    for _ in range(60):
        cluster = rng.integers(0, 2, 120)
        group = (rng.random((120, 1)) > table[cluster].cumsum(axis=1)).sum(axis=1)
        profiles = Profiles(annotator=np.arange(120), share=np.eye(40)[cluster * 39], left_out=0)
        found = demographic_divergence(profiles, group, clusters=2, draws=1)
        held.append(found.low <= truth <= found.high)
    assert np.mean(held) >= 0.9


def test_fewer_annotators_than_clusters_are_an_error():
    profiles = Profiles(annotator=np.arange(3), share=np.eye(40)[:3], left_out=0)
    with pytest.raises(MetricInputError, match="3 annotators have a profile, fewer than 4"):
        demographic_divergence(profiles, [0, 0, 1])
    with pytest.raises(MetricInputError, match="groups has shape"):
        demographic_divergence(profiles, [0, 0], clusters=2)

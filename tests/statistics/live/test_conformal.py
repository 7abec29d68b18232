"""Conformal prediction: the guarantee over distributions, against the textbook's quantile."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from modwatch.statistics import conformal_prediction
from modwatch.statistics.live.conformal import crossed_sets
from modwatch.statistics.live.labelled_day import LabelledDay
from modwatch.statistics.live.sample import Sample

PROB = st.lists(st.integers(0, 20).map(lambda k: k / 20), min_size=1, max_size=40)


@given(prob=PROB, new=PROB, coverage=st.sampled_from([0.5, 0.8, 0.9, 0.97]), seed=st.integers(0, 9))
def test_equal_weights_are_the_textbooks_quantile(prob, new, coverage, seed):
    """A score at most the ⌈(m+1)·coverage⌉-th smallest of the label (Angelopoulos & Bates)."""
    label = np.random.default_rng(seed).integers(0, 2, len(prob))
    found = conformal_prediction(label, prob, new, coverage=coverage)
    for one in (0, 1):
        score, wanted = (np.abs(one - np.array(values)) for values in (prob, new))
        own = np.sort(score[label == one])
        rank = int(np.ceil(round((own.size + 1) * coverage, 9)))
        limit = own[rank - 1] if rank <= own.size else np.inf
        assert np.array_equal(found.contains[:, one], wanted <= limit)


def stream(rng: np.random.Generator, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return labels and probabilities."""
    severity = rng.beta(0.5, 2, size)
    label = (rng.random(size) < severity).astype(int)
    return label, np.clip(severity + rng.normal(0, 0.15, size), 0, 1)


@pytest.mark.simulation
def test_weights_make_up_for_a_design():
    """All comments near the threshold are labelled, and a fiftieth of the others."""
    weighted, plain = [], []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        y, p = stream(rng, 5_000)
        pi = np.where(np.abs(p - 0.5) < 0.1, 1.0, 0.05)
        labelled = rng.random(5_000) < pi
        new_y, new_p = stream(rng, 2_000)
        new_pi = np.where(np.abs(new_p - 0.5) < 0.1, 1.0, 0.05)
        for found, expected in (
            (weighted, {"sample_weight": 1 / pi[labelled], "new_weight": 1 / new_pi}),
            (plain, {}),
        ):
            sets = conformal_prediction(y[labelled], p[labelled], new_p, **expected)
            found.append(sets.contains[np.arange(2_000), new_y].mean())
    assert np.mean(weighted) == pytest.approx(0.9, abs=0.01)
    assert abs(np.mean(plain) - 0.9) > 0.03


def test_a_new_comment_without_weight_has_the_largest():
    y, p = [0, 0, 1, 1], [0.1, 0.2, 0.8, 0.9]
    whole = conformal_prediction(y, p, [0.0, 1.0])
    assert (whole.p_value > 0).all()
    assert (
        conformal_prediction(y, p, [0.0, 1.0], new_weight=[0, 0]).p_value == whole.p_value
    ).all()


def test_a_rows_set_is_the_one_that_all_others_make():
    """The most uncertain tenth has labels, and a twentieth of the others."""
    rng, size = np.random.default_rng(5), 1_000
    prob = rng.beta(0.5, 2, size)
    stratum = np.ones(size, int)
    stratum[np.argsort(-prob * (1 - prob))[: size // 10]] = 0
    labelled = stratum == 0
    labelled[rng.choice(np.flatnonzero(stratum), size // 20, replace=False)] = True
    day = LabelledDay(
        prob=prob, stratum=stratum, label=(rng.random(size) < prob).astype(int), labelled=labelled,
        population=np.bincount(stratum), sample=np.bincount(stratum[labelled]),
    )  # fmt: skip
    sample = Sample([day])
    toxic = np.random.default_rng(0).random(int(labelled.sum()))
    found = crossed_sets(sample, toxic)
    for row in range(0, toxic.size, 7):
        rest = np.delete(np.arange(toxic.size), row)
        part = toxic[rest], sample.prob[rest], sample.weight[rest]
        made = conformal_prediction(
            np.repeat([0, 1], rest.size), np.tile(part[1], 2), sample.prob[[row]],
            sample_weight=np.r_[part[2] * (1 - part[0]), part[2] * part[0]],
            new_weight=sample.weight[[row]],
        )  # fmt: skip
        assert made.contains[0].tolist() == found[row].tolist()

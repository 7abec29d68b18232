import numpy as np

from modwatch.monitoring.publishing.facts import ScoreHistogram
from modwatch.monitoring.publishing.figures.scores import score_histogram

PROB = np.array([0.0, 0.5, 1.0, 1.0], np.float32)


def histogram(**changes):
    return ScoreHistogram.of(PROB, **({"threshold": 0.5, "bins": 4} | changes))


def test_the_day_and_a_reference_of_any_size_share_one_scale():
    day = histogram()
    figure = score_histogram(histogram(references={"trailing": 1000 * day.counts}), title="")
    steps = [patch.get_data().values for patch in figure.axes[0].patches]
    np.testing.assert_array_equal(steps[0], [0.25, 0, 0.25, 0.5])
    np.testing.assert_array_equal(steps[0], steps[1])


def test_the_legend_counts_every_comment():
    figure = score_histogram(histogram(references={"fixed": np.full(4, 300)}), title="")
    labels = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert labels == ["this day (4 comments)", "fixed reference (1,200)"]


def test_a_single_comment_of_either_side_can_be_seen():
    figure = score_histogram(histogram(references={"fixed": np.array([9999, 0, 0, 1])}), title="")
    low, high = figure.axes[0].get_ylim()
    assert 0 < low < 1 / 10_000
    assert high > 0.9999


def test_constant_scores_and_thresholds_at_the_ends_can_be_drawn(draw):
    for prob, threshold in ((np.full(9, 0.3), 0.999), (np.zeros(1), 0.0), (np.ones(3), 1.0)):
        scores = ScoreHistogram.of(prob, threshold=threshold)
        assert draw(score_histogram(scores, title=""))

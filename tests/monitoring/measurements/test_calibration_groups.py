"""Which groups of comments get prediction sets of their own."""

import numpy as np
from lake_days import put_comments, put_scores

from installation import MONDAY, TUESDAY
from modwatch.monitoring.measurements.measurement import (
    MINIMUM_LABELS,
    calibration_groups,
)
from modwatch.statistics.live.labelled_day import fully_labelled

SIZE = 3 * MINIMUM_LABELS


def groups_of(lake, *days, **columns):
    """Return the groups of days whose comments have these columns, and all of them labels."""
    prob = np.linspace(0.01, 0.99, SIZE).astype(np.float32)
    for day in days:
        put_comments(lake, day, SIZE, **columns)
        put_scores(lake, day, prob)
    labelled = [fully_labelled(np.zeros(SIZE), prob) for _ in days]
    return calibration_groups(lake, days, labelled)


def test_platforms_come_first_the_largest_with_all_that_are_small(lake):
    platform = ["small", None, *["b"] * (SIZE // 3), *["a"] * (SIZE - SIZE // 3 - 2)]
    found = groups_of(lake, MONDAY, TUESDAY, platform=platform, language=["de", "en"] * (SIZE // 2))
    for of_day in found:
        assert of_day.tolist() == [0, 0, *[1] * (SIZE // 3), *[0] * (SIZE - SIZE // 3 - 2)]


def test_one_platform_leaves_the_languages(lake):
    language = ["de", "en", "en"] * (SIZE // 3)
    (found,) = groups_of(lake, MONDAY, platform="one", language=language)
    assert found.tolist() == [1, 0, 0] * (SIZE // 3)


def test_labels_of_the_window_count_together(lake):
    platform = ["b"] * (MINIMUM_LABELS // 2) + ["a"] * (SIZE - MINIMUM_LABELS // 2)
    assert groups_of(lake, MONDAY, platform=platform) is None
    assert groups_of(lake, MONDAY, TUESDAY, platform=platform) is not None


def test_without_names_there_is_one_group(lake):
    assert groups_of(lake, MONDAY, platform=None, language=None) is None
    assert groups_of(lake) is None


def test_groups_are_those_of_the_scored_comments_in_their_order(lake):
    prob = np.linspace(0.01, 0.99, SIZE).astype(np.float32)
    size = SIZE + 5  # some comments have no score
    names = [f"c{number}" for number in reversed(range(size))]
    platform = ["a" if number % 3 else "b" for number in reversed(range(size))]
    put_comments(lake, MONDAY, size, comment_id=names, platform=platform)
    put_scores(lake, MONDAY, prob)
    labelled = fully_labelled(np.zeros(SIZE), prob)
    (found,) = calibration_groups(lake, [MONDAY], [labelled])
    assert found.tolist() == [1, 0, 0] * (SIZE // 3)

"""What labelled rows represent when labels are missing, against closed forms and a simulation."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modwatch.common.errors import MetricInputError
from modwatch.statistics.live.labelled_day import LabelledDay
from modwatch.statistics.live.measure import measure_days
from modwatch.statistics.live.row_weights import row_weights
from modwatch.statistics.live.sample import Sample


def made_day(population, sample, labelled, missing, *, label=None, prob=0.5, draw=True):
    """Return a day whose strata have the first comments routed.

    Of these the last `missing` had no label; `labelled` are the first of the answered ones, and
    the first of the missing ones.
    """
    population, sample = np.array(population), np.array(sample)
    stratum = np.repeat(np.arange(population.size), population)
    place = np.concatenate([np.arange(size) for size in population])
    routed = place < sample[stratum]
    gone = routed & (place >= sample[stratum] - np.array(missing)[stratum])
    first = place - (sample - missing)[stratum]
    seen, followed = np.array(labelled).T
    has = routed & np.where(gone, first < followed[stratum], place < seen[stratum])
    return LabelledDay(
        prob=np.full(stratum.size, prob),
        stratum=np.where(routed, stratum, -1),
        label=np.zeros(stratum.size, int) if label is None else np.asarray(label),
        labelled=has,
        population=population,
        sample=sample,
        missing=np.where(gone, stratum, -1) if draw else None,
    )


def weights(*days):
    weight, followed, lacking = row_weights(days, [day.rows() for day in days])
    return SimpleNamespace(weight=weight, followed=followed, lacking=lacking)


def estimates(*days):
    found = measure_days(days, review_fractions=[], strategies=[])
    return found[found["alpha"].isna()].set_index("metric")


def test_answered_rows_of_the_top_represent_themselves_and_follow_ups_the_missing():
    found = weights(made_day([10], [10], [(6, 2)], [4]))
    assert found.weight.tolist() == [1] * 6 + [2, 2]
    assert found.followed.tolist() == [False] * 6 + [True] * 2
    assert found.lacking == {"top": "", "rest": ""}


def test_the_estimate_is_that_of_hansen_and_hurwitz():
    # 20 of 200 are sampled. Of 12 answered, 3 are toxic; of 2 followed up among 8 missing, 1 is.
    label = np.zeros(200, int)
    label[[0, 1, 2, 12]] = 1
    day = made_day([0, 200], [0, 20], [(0, 0), (12, 2)], [0, 8], label=label)
    value = estimates(day).loc["prevalence", "value"]
    assert value == pytest.approx((12 * 3 / 12 + 8 * 1 / 2) / 20)
    without = estimates(made_day([0, 200], [0, 20], [(0, 0), (12, 0)], [0, 8], label=label))
    assert without.loc["prevalence", "value"] == pytest.approx(3 / 12)


def test_where_all_was_missing_follow_ups_represent_all():
    found = weights(made_day([10, 90], [10, 9], [(0, 2), (0, 3)], [10, 9]))
    assert found.weight.tolist() == pytest.approx([5, 5, 30, 30, 30])
    assert found.followed.all()
    assert found.lacking == {"top": "", "rest": ""}


def test_without_answered_follow_ups_labels_are_missing_at_random():
    drawn = made_day([10, 90], [10, 9], [(6, 0), (3, 0)], [4, 6])
    plain = made_day([10, 90], [10, 9], [(6, 0), (3, 0)], [4, 6], draw=False)
    assert weights(drawn).weight.tolist() == weights(plain).weight.tolist()
    assert estimates(drawn).equals(estimates(plain))


def test_top_and_slice_are_followed_up_apart():
    found = weights(made_day([10, 90], [10, 9], [(6, 2), (3, 0)], [4, 6]))
    assert found.weight.tolist() == pytest.approx([1] * 6 + [2] * 2 + [30] * 3)


def test_follow_ups_of_other_days_represent_a_day_without_any():
    one = made_day([10], [10], [(6, 2)], [4])
    other = made_day([10], [10], [(6, 0)], [4])
    assert weights(one, other).weight.tolist() == [1] * 6 + [4, 4] + [1] * 6


def test_only_the_part_without_answers_is_missing_at_random():
    day = made_day([10], [10], [(4, 1)], [6])
    parts = np.full(10, -1)
    parts[[4, 5]], parts[6:] = 0, 1  # the only follow-up is comment 4
    found = weights(LabelledDay(**{**vars(day), "missing": parts}))
    assert found.weight.tolist() == [2] * 4 + [2]


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(st.integers(1, 30), st.integers(1, 12), st.integers(0, 12), st.integers(0, 12)),
        min_size=2,
        max_size=4,
    )
)
def test_rows_represent_all_comments_together(strata):
    population, sample, labelled, missing = [], [], [], []
    for number, (beyond, routed, lost, followed) in enumerate(strata):
        lost = min(lost, routed - 1)  # a label that came by itself in each stratum
        population.append(routed + (beyond if number else 0))
        sample.append(routed)
        missing.append(lost)
        labelled.append((routed - lost, min(followed, lost)))
    day = made_day(population, sample, labelled, missing)
    found = weights(day)
    assert found.weight.sum() == pytest.approx(sum(population))
    assert (found.weight >= 1 - 1e-9).all()
    assert Sample([day]).weight.sum() == pytest.approx(sum(population), rel=0.05)


def test_a_missing_comment_that_was_not_routed_is_refused():
    day = made_day([10, 90], [10, 9], [(6, 2), (3, 0)], [4, 6])
    with pytest.raises(MetricInputError, match="was not routed"):
        LabelledDay(**{**vars(day), "missing": np.zeros(100, int)})


def test_completion_leaves_out_labels_that_came_too_late():
    day = made_day([10], [10], [(6, 2)], [4])
    assert estimates(day).loc["completion", "value"] == 0.8
    late = LabelledDay(**{**vars(day), "late": 2})
    assert estimates(late).loc["completion", "value"] == 1.0

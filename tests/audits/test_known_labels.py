"""Labels of routed comments that a plan may use: whose, of which days, with which weights."""

import datetime

import numpy as np
import pytest
from lake_days import batch, put_comments, put_scores

from modwatch.audits.sources import known_labels, survey
from modwatch.data.lake.delta import Lake
from modwatch.data.lake.schemas import LABELS, ROUTED, ROUTING_DESIGN
from modwatch.statistics.audit.plan import PopulationDay

FIRST = datetime.date(2026, 3, 2)
SECOND = FIRST + datetime.timedelta(days=1)
PROB = np.linspace(0.01, 0.8, 100, dtype=np.float32)
#: The most uncertain ten are the top; of the other 90, nine are drawn.
ROUTES = dict.fromkeys([*range(61, 70), 71], 0) | dict.fromkeys(range(0, 90, 10), 1)


@pytest.fixture
def lake(tmp_path):
    made = Lake(root=str(tmp_path))
    for day in (FIRST, SECOND):
        put_comments(made, day, 100)
        put_scores(made, day, PROB)
    return made


def put_labels(lake: Lake, day: datetime.date, labels: dict[int, int], version: str = "3") -> None:
    """Route a day, and label some of its routed comments."""
    noon = datetime.datetime.combine(day, datetime.time(12), datetime.UTC)
    ids = [f"c{number}" for number in ROUTES]
    strata = np.array([*ROUTES.values()], dtype=np.int32)
    chance = np.where(strata == 0, 1.0, 0.1)
    routed = {
        "comment_id": ids, "stratum": strata, "inclusion_probability": chance,
        "reason": "random_slice", "rank": np.arange(1, len(ids) + 1), "review_score": 0.1,
        "model_version": version,
    }  # fmt: skip
    lake.replace("routed", day, [batch(ROUTED, len(ids), dt=day, **routed)])
    design = {
        "model_version": version, "strategy": "uncertainty", "review_fraction": 0.2,
        "stratum": [0, 1], "population": [10, 90], "sample": [10, 9],
    }  # fmt: skip
    lake.replace("routing_design", day, [batch(ROUTING_DESIGN, 2, dt=day, **design)])
    given = {
        "comment_id": [f"c{number}" for number in labels], "label": [*labels.values()],
        "moderator": "ann", "decided_at": noon,
    }  # fmt: skip
    lake.replace("labels", day, [batch(LABELS, len(labels), dt=day, **given)])


def surveyed(lake: Lake, *days: datetime.date) -> tuple[PopulationDay, ...]:
    return survey(lake, [*days])[0]


def test_labels_stand_for_the_comments_of_their_stratum(lake):
    put_labels(lake, FIRST, {number: int(number > 60) for number in ROUTES})
    known = known_labels(lake, surveyed(lake, FIRST, SECOND))
    every = np.concatenate([known[side].weight for side in ("flagged", "unflagged")])
    assert every.sum() == pytest.approx(100)
    assert sorted(set(every.tolist())) == [1.0, 10.0]
    unflagged = known["unflagged"]
    assert (unflagged.score <= 0.5).all()
    assert (known["flagged"].score > 0.5).all()
    assert known["flagged"].label.sum() == sum(number > 61 for number in ROUTES)
    assert unflagged.source == "labels of the comments routed from 2026-03-02 to 2026-03-03"


def test_the_labelled_of_a_stratum_stand_for_those_without_a_label(lake):
    put_labels(lake, FIRST, {0: 0, 10: 0, 20: 1, 65: 1})
    known = known_labels(lake, surveyed(lake, FIRST))
    assert known["unflagged"].weight.tolist() == [30.0] * 3
    assert known["flagged"].weight.tolist() == [10.0]


def test_days_before_the_period_are_used_where_it_has_no_label(lake):
    put_labels(lake, FIRST, {0: 0, 65: 1})
    known = known_labels(lake, surveyed(lake, SECOND))
    assert known["unflagged"].label.size == 1
    assert (
        known["unflagged"].source == "labels of the comments routed from 2026-02-03 to 2026-03-02"
    )
    put_labels(lake, SECOND, {0: 0, 10: 1, 65: 1})
    assert known_labels(lake, surveyed(lake, SECOND))["unflagged"].label.size == 2


def test_labels_of_another_model_say_nothing_of_these_scores(lake):
    put_labels(lake, FIRST, {0: 0, 65: 1}, version="2")
    assert known_labels(lake, surveyed(lake, FIRST)) == {}


def test_without_labels_nothing_is_known(lake):
    assert known_labels(lake, surveyed(lake, FIRST)) == {}
    put_labels(lake, FIRST, {})
    assert known_labels(lake, surveyed(lake, FIRST)) == {}


def test_a_label_of_a_comment_that_is_not_routed_any_more_is_left_out(lake):
    put_labels(lake, FIRST, {0: 0, 1: 1})
    assert known_labels(lake, surveyed(lake, FIRST))["unflagged"].label.tolist() == [0]

import dataclasses
import datetime as dt

import numpy as np
import pyarrow as pa
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from modwatch.common.errors import SourceError
from modwatch.data.lake.schemas import LANDED
from modwatch_lab.community import Community, Drift
from modwatch_lab.community.source import (
    HOURLY,
    WEEKLY,
    comment_ids,
    defective_batch,
    parse_id,
    times_of_day,
)

DAY = dt.date(2024, 3, 1)
WEEK = [DAY + dt.timedelta(days=n) for n in range(7)]
SMALL = Community(seed=1, comments_per_day=300, dirt_rate=0.02)


def landed(community: Community, day: dt.date = DAY) -> pa.Table:
    return pa.Table.from_batches(community.read(day), LANDED)


@examples(25)
@given(st.lists(st.dates(dt.date(1970, 1, 1), dt.date(2100, 1, 1)), min_size=1, max_size=4))
def test_a_day_does_not_depend_on_the_days_read_before_it(days):
    read = {day: landed(SMALL, day) for day in days}
    for day in reversed(days):
        assert landed(Community(seed=1, comments_per_day=300, dirt_rate=0.02), day) == read[day]


def test_comments_come_in_order_of_time_inside_their_day():
    rows = landed(Community(seed=1, comments_per_day=300)).to_pylist()
    times = [row["created_at"] for row in rows]
    assert times == sorted(times)
    assert {time.date() for time in times} == {DAY}
    by_id = {row["text"]: row for row in rows}
    for row in rows:
        if row["parent_text"]:
            assert by_id[row["parent_text"]]["created_at"] <= row["created_at"]


def test_every_block_has_its_share_of_defects():
    rows = landed(Community(seed=1, comments_per_day=12_000, dirt_rate=0.001))
    defects = rows.num_rows - len(set(rows["comment_id"].to_pylist()))
    assert defects == 4  # 12 defective rows: 10 in the first block of 10,000 and 2 in the second


def test_a_drift_changes_nothing_before_its_start():
    drift = Drift(start=WEEK[1], prevalence=0.3)
    drifting = Community(seed=1, comments_per_day=1000, drift=drift)
    assert landed(drifting) == landed(Community(seed=1, comments_per_day=1000))
    assert np.mean(landed(drifting, WEEK[1])["label"].to_pylist()) == pytest.approx(0.3, abs=0.06)


def test_a_drift_on_a_new_platform_leaves_the_others_alone():
    drift = Drift(start=WEEK[1], prevalence=0.4, platform="app", share=0.3)
    usual = Community(seed=1, comments_per_day=1000)
    drifting = dataclasses.replace(usual, drift=drift)
    assert landed(drifting) == landed(usual)
    before, after = (landed(value, WEEK[1]).to_pandas() for value in (usual, drifting))
    new = after["platform"] == "app"
    assert new.mean() == pytest.approx(0.3, abs=0.05)
    assert after[new]["label"].mean() == pytest.approx(0.4, abs=0.1)
    columns = ["comment_id", "language", "label", "platform"]
    assert after[~new][columns].equals(before[~new][columns])
    labels = drifting.label(drifting.moderators[0], after["comment_id"].tolist())
    assert (labels == after["label"]).mean() > 0.9  # people read what is there


def test_people_label_as_judge_says_and_know_no_other_ids():
    person = SMALL.moderators[0]
    rows = landed(SMALL).slice(0, 302)  # before the defects
    ids = rows["comment_id"].to_pylist()
    labels = SMALL.label(person, ids)
    assert labels.tolist() == [SMALL.label(person, [c])[0] for c in ids]
    assert (labels == rows["label"].to_numpy()).mean() > 0.9
    assert (labels != SMALL.label(person, ids, round_number=1)).any()
    for wrong in ("c20240301-9999999", "x20240301-0000000", "x20240301-9999999", "nobody"):
        with pytest.raises(SourceError, match=f"'{wrong}' is not of community:1"):
            SMALL.label(person, [wrong])


def test_training_comments_come_from_before_the_stream():
    history = SMALL.training_comments(500)
    assert len(history.texts) == len(history.labels) == 500
    assert SMALL.training_comments(500).texts == history.texts
    assert "texts" not in repr(history)
    even = Community(seed=1, prevalence=0.5).training_comments(2000)
    assert even.labels.mean() == pytest.approx(0.5, abs=0.06)
    assert SMALL.training_comments(0).labels.shape == (0,)


@pytest.mark.parametrize(
    "options", [{"seed": -1}, {"comments_per_day": -1}, {"dirt_rate": 2.0}, {"prevalence": 1.0}]
)
def test_an_impossible_community_is_refused(options):
    with pytest.raises(SourceError, match="community"):
        Community(**options)


def test_a_small_model_learns_it_but_not_all_of_it_and_a_drift_hurts():
    community = Community(seed=5, comments_per_day=1500, drift=Drift(start=WEEK[2]))
    history = community.training_comments(5000)
    vectoriser = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, min_df=2)
    model = LogisticRegression(C=10).fit(vectoriser.fit_transform(history.texts), history.labels)

    strict, lenient = (
        dataclasses.replace(
            community.moderators[0], group="elsewhere", threshold=threshold, flip_rate=0.0
        )
        for threshold in (0.25, 0.75)
    )

    def performance(days: list[dt.date]) -> tuple[float, float, float]:
        rows = pa.concat_tables([landed(community, day) for day in days])
        ids, label = rows["comment_id"].to_pylist(), rows["label"].to_numpy()
        hard = community.label(strict, ids) != community.label(lenient, ids)
        prob = model.predict_proba(vectoriser.transform(rows["text"].to_pylist()))[:, 1]
        wrong = (prob > 0.5) != label
        return float(roc_auc_score(label, prob)), wrong[hard].mean(), wrong[~hard].mean()

    auroc, wrong_on_hard, wrong_on_easy = performance(WEEK[:2])
    assert 0.9 < auroc < 0.98
    assert wrong_on_hard > 5 * wrong_on_easy
    assert performance(WEEK[2:4])[0] < auroc - 0.01


def test_each_defect_in_turn():
    clean = next(Community(seed=1, comments_per_day=50).read(DAY)).slice(0, 8)
    defects = defective_batch(DAY, 50, clean).to_pylist()
    whole = clean.to_pylist()
    assert [row["row"] for row in defects] == list(range(50, 58))
    twice, empty, outside, greeting = defects[:4]
    assert {**twice, "row": 0} == whole[0]
    assert empty["text"] == ""
    assert outside["created_at"].date() == DAY + dt.timedelta(days=1)
    assert (greeting["language"], greeting["label"], greeting["groups"]) == ("he", 0, [])
    assert len({row["comment_id"] for row in (*defects, *whole)}) == 14


def test_a_week_holds_seven_mean_days():
    assert sum(WEEKLY) == pytest.approx(7)
    assert len(HOURLY) == 24


def test_times_follow_the_hours_and_stay_inside_the_day():
    times = times_of_day((np.arange(100_000) + 0.5) / 100_000)
    assert (np.diff(times) >= 0).all()
    hours = np.bincount(times // 3_600_000_000, minlength=24)
    assert hours / 100_000 == pytest.approx(np.array(HOURLY) / sum(HOURLY), abs=1e-4)
    assert times_of_day(np.array([np.nextafter(1, 0)]))[0] < 24 * 3_600_000_000


DAY = dt.date(2024, 3, 1)


def test_ids_tell_their_day_and_row():
    assert [parse_id(c) for c in comment_ids(DAY, 9_999_999, 2)] == [
        ("c", DAY, 9_999_999),
        ("c", DAY, 10_000_000),
    ]


@pytest.mark.parametrize(
    "wrong", ["", "c1", "c20240301-", "a20240301-0000001", "c20240230-0000001"]
)
def test_other_ids_are_none(wrong):
    with pytest.raises(ValueError):  # noqa: PT011 – the caller says what it means
        parse_id(wrong)

import datetime
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from estimates import put_estimates
from lake_days import batch as batch_of

from modwatch.common.errors import RoutingOutdatedError
from modwatch.data.lake.day_scores import DayScores, day_scores
from modwatch.data.lake.delta import Lake
from modwatch.data.lake.schemas import (
    COMMENTS,
    CONFIRMATIONS,
    LABELS,
    ROUTED,
    ROUTING_DESIGN,
    SCORES,
)
from modwatch.monitoring.measurements import tables
from modwatch.routing import routed as routing_rows
from modwatch.routing.design import RoutingPolicy, design_routing
from modwatch.statistics import fully_labelled, review_scores
from modwatch.statistics.label_truth import GivenLabels
from modwatch.statistics.live.measure import measure_days
from modwatch.statistics.recalibration import Calibration, Recalibration, VarianceCalibration

DAY = datetime.date(2026, 1, 5)
NOON = datetime.datetime(2026, 1, 5, 12, tzinfo=datetime.UTC)
POLICY = RoutingPolicy(review_fraction=0.5, slice_share=0.4, strata=2)


def batch(schema: pa.Schema, **columns: object) -> pa.RecordBatch:
    """Return rows of a table; a single value stands for a whole column."""
    size = max(len(v) for v in columns.values() if isinstance(v, list | np.ndarray))
    return batch_of(schema, size, **columns)


def ids(size: int) -> list[str]:
    return [f"c{number:03}" for number in range(size)]


@pytest.fixture
def scored(lake):
    """Publish scores 0, 1/n, … of a day of n comments, and read them back."""

    def publish(size: int) -> DayScores:
        prob = np.arange(size, dtype=np.float32) / max(size, 1)
        rows = batch(
            SCORES,
            dt=DAY,
            comment_id=ids(size),
            model_version="3",
            role="champion",
            prob=prob,
            uncertainty=prob * (1 - prob),
            cut=False,
            flagged=prob > 0.25,
            threshold=0.25,
        )
        lake.replace("scores", DAY, [rows])
        return day_scores(lake, DAY)

    return publish


def route(lake: Lake, scores: DayScores, policy: RoutingPolicy = POLICY) -> pa.RecordBatch:
    """Route the day as the pipeline does; return the routed rows."""
    keys = routing_rows.sampling_keys(scores, day=DAY, policy=policy, salt="salt")
    routing = design_routing(scores.prob, keys, policy, flagged=scores.flagged, cut=scores.cut)
    recent = routing_rows.recent_labels(lake, [DAY])
    routed = routing_rows.routed_rows(DAY, scores, policy, routing, toxic_labels=recent)
    routed = routing_rows.as_routed_before(lake, DAY, routed)
    design = routing_rows.design_rows(DAY, scores, policy, routing, keys, Recalibration())
    lake.replace("routing_design", DAY, [design])
    lake.replace("routed", DAY, [routed])
    return routed


def label(
    lake: Lake,
    labels: dict[str, int],
    *,
    moderator: str = "ann",
    corrected: dict[str, int] | None = None,
) -> None:
    """Write the first labels; lea replaced those that were `corrected`."""
    corrected = corrected or {}
    now = {comment: corrected.get(comment, given) for comment, given in labels.items()}
    by = ["lea" if comment in corrected else moderator for comment in labels]
    first = {"first_label": list(labels.values()), "first_moderator": moderator}
    lake.replace("labels", DAY, [label_rows(LABELS, now, by, **first)])


def confirm(lake: Lake, *rounds: tuple[str, dict[str, int]]) -> None:
    """Write the labels of further people: name and labels of each round from the second."""
    rows = [
        label_rows(CONFIRMATIONS, labels, moderator, round=number, first_label=1)
        for number, (moderator, labels) in enumerate(rounds, start=2)
    ]
    lake.replace("confirmations", DAY, rows)


def label_rows(
    schema: pa.Schema, labels: dict[str, int], moderator: str | list[str], **more: object
) -> pa.RecordBatch:
    return batch(
        schema,
        dt=DAY,
        comment_id=list(labels),
        label=list(labels.values()),
        moderator=moderator,
        decided_at=NOON,
        seconds=1.0,
        **more,
    )


def test_scores_come_back_as_arrays_without_those_of_a_challenger(lake, scored):
    scored(4)
    other = batch(
        SCORES, dt=DAY, comment_id=ids(2), model_version="4", role="challenger",
        prob=[0.9, 0.9], uncertainty=[0.1, 0.1], cut=False, flagged=True, threshold=0.1,
    )  # fmt: skip
    lake.replace("scores", DAY, [other], role="challenger")
    scores = day_scores(lake, DAY)
    assert scores.comment_id.to_pylist() == ids(4)
    assert scores.prob.tolist() == [0, 0.25, 0.5, 0.75]
    assert scores.flagged.tolist() == [False, False, True, True]
    assert (scores.threshold, scores.model_version) == (0.25, "3")


def test_an_empty_day_has_no_scores_and_routes_nothing(lake):
    scores = day_scores(lake, DAY)
    assert len(scores.prob) == len(scores.comment_id) == 0
    assert (scores.threshold, scores.model_version) == (0.5, "")
    routed = route(lake, scores)
    assert (routed.num_rows, routed.schema) == (0, ROUTED)
    assert list(routing_rows.queue_items(lake, DAY, routed, scores)) == []
    labelled = tables.labelled_day(lake, DAY, scores, POLICY)
    assert len(labelled.prob) == 0
    assert tables.is_unmeasured(lake, DAY) == bool(lake.count("routing_design", DAY))


def test_keys_do_not_depend_on_the_chunks(scored):
    scores = scored(50)
    keys = routing_rows.sampling_keys(scores, day=DAY, policy=POLICY, salt="salt")
    whole = scores.comment_id.combine_chunks()
    parts = pa.chunked_array([whole[:7], whole[7:7], whole[7:]])
    cut = DayScores(**{**scores.__dict__, "comment_id": parts})
    assert keys.dtype == np.uint64
    assert (routing_rows.sampling_keys(cut, day=DAY, policy=POLICY, salt="salt") == keys).all()
    assert (routing_rows.sampling_keys(scores, day=DAY, policy=POLICY, salt="other") != keys).any()


def test_routed_rows_and_design_agree(lake, scored):
    scores = scored(40)
    routed = route(lake, scores).to_pandas()
    kept = lake.table("routing_design", DAY).to_pandas().set_index("stratum")
    assert kept["population"].sum() == 40
    assert kept["sample"].sum() == len(routed) == 20
    assert routed["rank"].tolist() == list(range(1, 21))
    for number, rows in routed.groupby("stratum"):
        assert len(rows) == kept.loc[number, "sample"]
        share = kept.loc[number, "sample"] / kept.loc[number, "population"]
        assert rows["inclusion_probability"].to_numpy() == pytest.approx(share)
    prob = dict(zip(ids(40), scores.prob.astype(float), strict=True))
    wanted = [p if p <= 0.25 else 1 - p for p in map(prob.get, routed["comment_id"])]
    assert routed["review_score"].to_numpy() == pytest.approx(wanted, abs=1e-6)
    assert set(routed["model_version"]) == {"3"}
    assert lake.table("routing_design", DAY).schema.names == ROUTING_DESIGN.names


def test_queue_items_carry_the_texts_of_the_routed(lake, scored):
    scores = scored(10)
    texts = [f"invented text {number}" for number in range(10)]
    comments = batch(COMMENTS, dt=DAY, comment_id=ids(10), created_at=NOON, text=texts, label=1)
    lake.replace("comments", DAY, [comments.slice(5), comments.slice(0, 5)])
    routed = route(lake, scores)
    items = {item.comment_id: item for item in routing_rows.queue_items(lake, DAY, routed, scores)}
    assert sorted(items) == sorted(routed.column("comment_id").to_pylist())
    for row in routed.to_pylist():
        item = items[row["comment_id"]]
        number = int(row["comment_id"][1:])
        assert item.text == texts[number]
        assert item.prob == pytest.approx(number / 10)
        assert item.uncertainty == pytest.approx(item.prob * (1 - item.prob))
        assert (item.rank, item.stratum) == (row["rank"], row["stratum"])
        assert item.inclusion_probability == row["inclusion_probability"]


def test_a_comment_that_was_cut_is_queued_first_with_the_highest_uncertainty(lake, scored):
    scores = replace(scored(40), cut=np.arange(40) == 1)
    comments = batch(COMMENTS, dt=DAY, comment_id=ids(40), created_at=NOON, text="invented")
    lake.replace("comments", DAY, [comments])
    routed = route(lake, scores)
    first, *_ = sorted(routed.to_pylist(), key=lambda row: row["rank"])
    assert (first["comment_id"], first["stratum"]) == ("c001", 0)
    assert first["inclusion_probability"] == 1
    items = {item.comment_id: item for item in routing_rows.queue_items(lake, DAY, routed, scores)}
    assert items["c001"].uncertainty == 0.25
    grouped = tables.grouped_day(lake, DAY, scores, POLICY)
    assert grouped.stratum[1] == 0


def test_confirmations_of_the_routed_are_copies_but_for_their_place(lake, scored):
    scores, policy = scored(40), replace(POLICY, confirmation_share=0.5)
    comments = batch(COMMENTS, dt=DAY, comment_id=ids(40), created_at=NOON, text="invented")
    lake.replace("comments", DAY, [comments])
    routed = route(lake, scores, policy)
    again = routing_rows.confirmations(DAY, routed, policy=policy, salt="salt")
    assert again == routing_rows.confirmations(DAY, routed, policy=policy, salt="salt")
    assert again != routing_rows.confirmations(DAY, routed, policy=policy, salt="other")
    items = list(routing_rows.queue_items(lake, DAY, routed, scores, again))
    first = {item.comment_id: item for item in items if item.kind == "review"}
    for number in routing_rows.ROUNDS:
        later = {item.comment_id: item for item in items if item.round == number}
        assert later.keys() == again.keys()
        for comment, item in later.items():
            assert 1 <= item.rank <= 20
            assert item.confirms
            own = {"kind", *again[comment][0]}
            same = {name: getattr(first[comment], name) for name in own}
            assert replace(item, **same) == replace(first[comment], **same)
        first |= later
    assert len(items) == 20 + 2 * len(again)
    none = replace(policy, confirmation_share=0)
    routed = route(lake, scores, none)
    assert routing_rows.confirmations(DAY, routed, policy=none, salt="salt") == {}


def test_labels_that_came_in_since_do_not_change_what_is_confirmed(lake, scored):
    scores, policy = scored(200), replace(POLICY, confirmation_share=0.5)
    before = route(lake, scores, policy)
    every = before.column("comment_id").to_pylist()
    label(lake, dict.fromkeys(every, 0))
    assert route(lake, scores, policy) == before
    off = route(lake, scores, replace(policy, confirmation_share=0))
    assert off != before
    on = route(lake, scores, policy)
    assert on not in (off, before)  # the labels count now
    label(lake, dict.fromkeys(every, 1))
    assert route(lake, scores, policy) == on


def test_confirmations_count_next_to_a_first_label_by_someone_else(lake, scored):
    scores = scored(40)
    a, b, c, d = route(lake, scores).column("comment_id").to_pylist()[:4]
    label(lake, {a: 1, b: 1, c: 0})
    none = tables.labelled_day(lake, DAY, scores, POLICY).confirmations
    assert none is not None
    assert none.row.size == 0
    # d has no first label, and ann gave the first one of c: of b, ben answered twice.
    confirm(lake, ("ben", {a: 0, b: 0, d: 1}), ("cem", {a: 1}))
    rows = lake.table("confirmations", DAY).to_batches()
    twice = label_rows(CONFIRMATIONS, {b: 1}, "ben", round=3, first_label=1)
    own = label_rows(CONFIRMATIONS, {c: 1}, "ann", round=2, first_label=0)
    lake.replace("confirmations", DAY, [*rows, twice, own])
    day = tables.labelled_day(lake, DAY, scores, POLICY)
    at = {comment: number for number, comment in enumerate(ids(40))}
    given, toxic = day.given(np.array([at[a], at[b], at[c]]))
    assert given.tolist() == [3, 2, 1]
    assert toxic.tolist() == [2, 1, 0]


def test_a_corrected_label_counts_as_it_was_given(lake, scored):
    """A lead corrects what a confirmation overturned, also their own: no evidence goes with it."""
    scores = scored(40)
    routed = route(lake, scores).column("comment_id").to_pylist()
    given = dict.fromkeys(routed, 1)
    label(lake, given)
    confirm(lake, ("lea", dict.fromkeys(routed[:4], 0)), ("ben", dict.fromkeys(routed[:4], 0)))
    before = tables.labelled_day(lake, DAY, scores, POLICY)
    label(lake, given, corrected=dict.fromkeys(routed[:4], 0))
    after = tables.labelled_day(lake, DAY, scores, POLICY)
    rows = np.flatnonzero(before.labelled)
    assert before.label[rows].tolist() == after.label[rows].tolist()
    for one, other in zip(before.given(rows), after.given(rows), strict=True):
        assert one.tolist() == other.tolist()


def test_labels_of_an_earlier_version_count_as_they_are(lake, scored):
    scores = scored(20)
    routed = route(lake, scores).column("comment_id").to_pylist()
    lake.replace("labels", DAY, [label_rows(LABELS, dict.fromkeys(routed, 1), "ann")])
    confirm(lake, ("ann", {routed[0]: 0}), ("ben", {routed[1]: 0}))
    day = tables.labelled_day(lake, DAY, scores, POLICY)
    assert day.label[day.labelled].tolist() == [1] * len(routed)
    assert day.confirmations is not None
    assert day.confirmations.label.size == 1


def test_a_labelled_day_is_the_whole_population(lake, scored):
    scores = scored(20)
    routed = route(lake, scores).to_pandas()
    first, second = routed["comment_id"][:2]
    stray = next(comment for comment in ids(20) if comment not in set(routed["comment_id"]))
    label(lake, {first: 1, second: 0, stray: 1, "unheard of": 1})  # the last two count nowhere
    day = tables.labelled_day(lake, DAY, scores, POLICY)
    at = {comment: number for number, comment in enumerate(ids(20))}
    assert day.labelled.sum() == 2
    assert day.labelled[[at[first], at[second]]].all()
    assert day.label[at[first]] == 1
    assert (day.stratum >= 0).sum() == len(routed)
    stratum = dict(zip(routed["comment_id"], routed["stratum"], strict=True))
    assert all(day.stratum[at[comment]] == number for comment, number in stratum.items())


def test_a_day_with_other_comments_than_were_routed_says_what_to_do(lake, scored):
    route(lake, scored(20))
    with pytest.raises(RoutingOutdatedError, match=f"{DAY}.*route"):
        tables.labelled_day(lake, DAY, scored(10), POLICY)


def test_the_digest_changes_with_all_that_is_measured_and_nothing_else(lake, scored):
    routed = route(lake, scored(20)).column("comment_id").to_pylist()
    digests = [tables.labels_digest(lake, DAY)]
    for labels in ({routed[0]: 1}, {routed[0]: 0}, {routed[0]: 0, routed[1]: 0}):
        label(lake, labels)
        digests.append(tables.labels_digest(lake, DAY))
    for labels in ({routed[0]: 1}, {routed[0]: 0}):
        confirm(lake, ("ben", labels))
        digests.append(tables.labels_digest(lake, DAY))
    assert len(set(digests)) == 6
    rows = lake.table("routed", DAY)
    lake.replace("routed", DAY, [*rows.slice(5).to_batches(), *rows.slice(0, 5).to_batches()])
    assert tables.labels_digest(lake, DAY) == digests[-1]


def test_a_day_is_unmeasured_until_its_labels_are_measured(lake, scored):
    assert not tables.is_unmeasured(lake, DAY)
    scores = scored(20)
    routed = route(lake, scores).column("comment_id").to_pylist()
    assert tables.is_unmeasured(lake, DAY)
    label(lake, dict.fromkeys(routed, 1))
    measured = measure_days(
        [tables.labelled_day(lake, DAY, scores, POLICY)], review_fractions=[0.5]
    )
    digest = tables.labels_digest(lake, DAY)
    tables.replace_estimates(lake, DAY, (measured, measured), digest)
    assert tables.measured_digest(lake, DAY) == digest
    assert not tables.is_unmeasured(lake, DAY)
    label(lake, dict.fromkeys(routed[1:], 1))
    assert tables.is_unmeasured(lake, DAY)


def test_what_is_insufficient_is_null_in_the_table(lake):
    measured = pd.DataFrame(
        {
            "metric": ["accuracy"], "strategy": [None], "alpha": [pd.NA], "value": [pd.NA],
            "low": [pd.NA], "high": [pd.NA], "n": [0], "effective_n": [0.0],
            "status": ["insufficient"], "reason": ["no label"],
        }
    ).astype(dict.fromkeys(("alpha", "value", "low", "high"), "Float64"))  # fmt: skip
    tables.replace_estimates(lake, DAY, (measured, measured), "digest")
    for row in lake.table("estimates", DAY).to_pylist():
        assert [row[name] for name in ("strategy", "alpha", "value", "low", "high")] == [None] * 5


def test_estimates_of_a_day_and_of_its_window_are_replaced_apart(lake):
    made = measure_days([fully_labelled([1, 0], [0.9, 0.6])], review_fractions=[0.5])
    other = made.assign(n=7)
    tables.replace_estimates(lake, DAY, (made, other), "day")
    tables.replace_estimates(lake, DAY, (made, other), "window", window=True)
    tables.replace_estimates(lake, DAY, (made, other), "again")
    rows = lake.table("estimates", DAY).to_pandas()
    assert rows.groupby(["window", "design"]).size().tolist() == [len(made)] * 4
    assert set(rows.loc[rows["design"], "n"]) == {7}
    assert tables.measured_digest(lake, DAY) == "again"
    assert tables.measured_digest(lake, DAY, window=True) == "window"
    lake.replace("estimates", DAY, [], window=True)
    assert tables.measured_digest(lake, DAY, window=True) is None
    assert tables.measured_digest(lake, DAY) == "again"


def test_labels_come_back_as_history_of_the_same_model_without_comments(lake):
    days = [DAY + datetime.timedelta(days=k) for k in (0, 1, 2, 60)]
    for day, version in zip(days, ("6", "7", "7", "7"), strict=True):
        rows = batch(ROUTING_DESIGN, dt=[day] * 2, model_version=version, strategy="uncertainty",
                     review_fraction=0.1, stratum=[0, 1], population=9, sample=1)  # fmt: skip
        lake.replace("routing_design", day, [rows])
    labels = GivenLabels(
        prob=np.array([0.3, 0.3001, 1.0, 0.0]),
        group=np.array([0, 0, 1, 1]),
        given=np.array([1, 1, 3, 2]),
        toxic=np.array([1, 1, 2, 0]),
    )
    for day in days[:2]:
        lake.replace("label_counts", day, [tables.label_counts(day, labels)])
    counts = lake.table("label_counts", days[0]).to_pandas()
    assert sorted(counts["comments"]) == [1, 1, 2], "scores that are alike are counted together"
    assert not {"comment_id", "text"} & set(counts.columns)
    assert tables.earlier_labels(lake, days[1]) is None
    found = tables.earlier_labels(lake, days[2])
    assert found is not None
    assert sorted(zip(found.group, found.given, found.toxic, strict=True)) == sorted(
        zip(labels.group, labels.given, labels.toxic, strict=True)
    )
    assert np.sort(found.prob) == pytest.approx(np.sort(labels.prob), abs=0.01)
    assert tables.earlier_labels(lake, days[3]) is None, "too long ago"


def test_the_days_that_each_version_scored(lake):
    days = [DAY + datetime.timedelta(days=k) for k in range(4)]
    assert tables.served_days(lake) == {}
    for day, version in zip(days, ("6", "7", "6", "7"), strict=True):
        rows = batch(ROUTING_DESIGN, dt=[day] * 2, model_version=version, strategy="uncertainty",
                     review_fraction=0.1, stratum=[0, 1], population=9, sample=1)  # fmt: skip
        lake.replace("routing_design", day, [rows])
    assert tables.served_days(lake) == {"6": days[::2], "7": days[1::2]}


def windows_with(lake: Lake, *days: tuple[datetime.date, str, float | None]) -> None:
    """Store days that a version scored, each with the recalibration of the window that it ends."""
    for day, version, slope in days:
        design = {"review_fraction": 0.1, "strategy": "uncertainty", "stratum": 0}
        rows = batch(
            ROUTING_DESIGN, dt=day, model_version=[version], population=9, sample=9, **design
        )
        lake.replace("routing_design", day, [rows])
        names = ["accuracy", *(tables.RECALIBRATION if slope else ())]
        values = [0.9, -1.0, slope][: len(names)]
        found = ({"metric": name, "value": at} for name, at in zip(names, values, strict=True))
        put_estimates(lake, day, *found, window=True)


def test_the_newest_window_of_the_model_before_a_day_recalibrates_it(lake):
    one_day = datetime.timedelta(days=1)
    windows_with(
        lake,
        (DAY - 3 * one_day, "3", 0.5),
        (DAY - 2 * one_day, "3", 0.7),
        (DAY - one_day, "4", 0.9),
    )
    found = tables.recalibration(lake, DAY, "3")
    assert found == Recalibration(by_score=Calibration(intercept=-1.0, slope=0.7))
    assert tables.recalibration(lake, DAY, "5") == Recalibration()
    windows_with(lake, (DAY + one_day, "3", 0.2))
    assert tables.recalibration(lake, DAY, "3") == found
    windows_with(lake, (DAY - one_day, "3", None))  # whose labels contradict nothing
    assert tables.recalibration(lake, DAY, "3") == Recalibration()


def test_a_day_that_is_routed_again_is_ordered_as_before(lake, scored):
    scores, line = scored(200), Calibration(intercept=-1.0, slope=0.5)
    known = Recalibration(
        by_score=line, by_variance=VarianceCalibration(coefficients=(-1.0, 0.5, 0.25, 2.0))
    )
    keys = routing_rows.sampling_keys(scores, day=DAY, policy=POLICY, salt="salt")
    calibrated = line.probability(scores.prob)
    score = review_scores(scores.prob, flagged=scores.flagged, calibrated=calibrated)
    routing = design_routing(scores.prob, keys, POLICY, flagged=scores.flagged, y_score=score)
    lake.replace("routed", DAY, [routing_rows.routed_rows(DAY, scores, POLICY, routing)])
    design = routing_rows.design_rows(DAY, scores, POLICY, routing, keys, known)
    lake.replace("routing_design", DAY, [design])
    assert tables.recalibration(lake, DAY, "3") == known
    grouped = tables.grouped_day(lake, DAY, scores, POLICY)
    assert (grouped.stratum[routing.row] == routing.stratum).all()
    assert grouped.labelled.calibrated.tolist() == calibrated.tolist()

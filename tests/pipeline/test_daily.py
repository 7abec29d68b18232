"""The whole path in process, with real parts: Delta, PostgreSQL, MLflow, a trained model."""

import datetime
import itertools
import math
import re
from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from databases import empty
from estimates import read_estimates

from installation import (
    FROM_THE_QUEUE,
    MONDAY,
    TO_THE_QUEUE,
    TUESDAY,
    Installation,
    assert_same,
    copy_home,
    picture_of,
    published,
    review,
    table_rows,
)
from modwatch.data.lake.day_scores import day_scores
from modwatch.data.lake.schemas import COMMENTS
from modwatch.installation.resources import open_resources
from modwatch.monitoring.measurements.tables import grouped_day
from modwatch.pipeline import daily
from modwatch.review.queue.metrics import counts
from modwatch.statistics import review_scores
from modwatch.statistics.collaboration.review_strategies import REVIEW_SCORES

# MLflow 3.17 uses a loader strategy that SQLAlchemy 2.1 deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")

Install = Callable[..., Installation]
DAYS = (MONDAY, TUESDAY)

#: Steps that settings of routing, review and windows do not change.
TO_THE_SCORES = ("ingest", "check_comments", "score", "check_scores")


@pytest.fixture
def install(install):
    """The same, with a window in which nearly every day is one of the tests."""
    return partial(install, window_days=3)


@pytest.fixture(scope="module")
def scored_homes(make_installation, migrated_queue_url, queue_owner, tmp_path_factory):
    """The folders of an installation that has scored all days up to a day, by that day."""
    empty(queue_owner)
    folder = tmp_path_factory.mktemp("scored")
    home = make_installation(folder, database_url=migrated_queue_url)
    kept = {}
    for day in DAYS:
        home.run(*TO_THE_SCORES, day=day)
        kept[day] = copy_home(home.home, folder / f"to-{day}")
    return kept


@pytest.fixture
def scored(install, scored_homes):
    """Return a function that makes an installation whose days up to a day are scored."""

    def make(last: datetime.date = MONDAY, **changes: object) -> Installation:
        home = install(**changes)
        copy_home(scored_homes[last], home.home)
        return home

    return make


@pytest.fixture
def routed(scored):
    """Return a function that makes an installation whose days up to a day wait for reviews."""

    def make(last: datetime.date = MONDAY, **changes: object) -> Installation:
        home = scored(last, **changes)
        for day in DAYS[: DAYS.index(last) + 1]:
            home.run("route", day=day)
        return home

    return make


def test_nothing_is_lost_between_steps(install):
    installed = install()
    for day in DAYS:
        landed, good, scored, published_scores, queued, _ = installed.run(*TO_THE_QUEUE, day=day)
        with open_resources(installed.settings) as resources:
            refused = resources.lake.count("quarantine", day)
            assert landed == resources.lake.count("landed", day) == good + refused
            assert scored == published_scores == resources.lake.count("scores", day) == good
            assert queued == resources.lake.count("routed", day) == math.floor(0.1 * good)
            design = resources.lake.table("routing_design", day).to_pandas()
            assert design["population"].sum() == good
            assert design["sample"].sum() == queued
            state = counts(resources.database, day)
            assert state.waiting == queued
            assert state.blocked % 2 == 0  # rounds 2 and 3 of the same comments
            assert 0 < state.blocked <= 2 * queued
    assert review(installed) == sum(_counted(installed, "routed"))
    for day in DAYS:
        installed.run(*FROM_THE_QUEUE, day=day)
    assert _counted(installed, "labels") == _counted(installed, "routed")
    assert all(_counted(installed, "estimates"))
    names = [line.split("'")[1] for line in published(installed.settings.mlflow_url)]
    days, timelines = names[:2], names[2:]
    assert days == [MONDAY.isoformat(), TUESDAY.isoformat()]
    assert timelines == ["timeline"]


def _counted(installed: Installation, table: str) -> list[int]:
    with open_resources(installed.settings) as resources:
        return [resources.lake.count(table, day) for day in DAYS]


def test_every_comment_keeps_its_words_on_the_way(routed):
    """From the source to the queue no text, id or time of a sound comment changes."""
    home = routed()
    with open_resources(home.settings) as resources:
        came = pd.concat(batch.to_pandas() for batch in resources.source.read(MONDAY))
        kept = resources.lake.table("comments", MONDAY).to_pandas()
        came = came.drop_duplicates("comment_id").set_index("comment_id").loc[kept["comment_id"]]
        for column in ("text", "created_at", "label"):
            assert (came[column].to_numpy() == kept[column].to_numpy()).all()
        with resources.database.connect() as connection:
            queued = pd.read_sql("SELECT comment_id, text FROM review_item", connection)
        assert (came.loc[queued["comment_id"], "text"].to_numpy() == queued["text"]).all()


def test_labels_of_the_data_reach_neither_scores_nor_routing(routed):
    home = routed()
    before = picture_of(home)
    with open_resources(home.settings) as resources:
        rows = resources.lake.table("comments", MONDAY)
        known = rows.column("label").to_numpy()
        labels = pa.array(1 - known, pa.int8())
        other = rows.set_column(
            rows.schema.get_field_index("label"), COMMENTS.field("label"), labels
        )
        resources.lake.replace("comments", MONDAY, other.to_batches())
    home.run("score", "check_scores", "route")
    after = picture_of(home)
    assert before.pop("comments") != after.pop("comments")
    assert_same(before, after)


@pytest.mark.soak  # a whole day is run again below, and each step after a kill
def test_every_step_twice_leaves_the_same(routed):
    home = routed()
    for step in TO_THE_QUEUE:
        once = home.run(step, day=TUESDAY), picture_of(home)
        twice = home.run(step, day=TUESDAY), picture_of(home)
        assert once[0] == twice[0]
        assert_same(once[1], twice[1])
    review(home)
    for step in FROM_THE_QUEUE:
        home.run(step, day=TUESDAY)
        once = picture_of(home), published(home.settings.mlflow_url)
        again = home.run(step, day=TUESDAY)
        assert_same(once[0], picture_of(home))
        assert once[1] == published(home.settings.mlflow_url)
        if step not in ("collect_labels", "detect_drift"):  # these look again
            assert again == [0], f"{step} did again what was done"


def test_an_earlier_step_again_leaves_what_people_did(routed):
    """Clearing the whole day after the review changes nothing, least of all decisions."""
    home = routed()
    review(home, limit=12)
    home.run(*FROM_THE_QUEUE)
    before = picture_of(home)
    home.run(*TO_THE_QUEUE, *FROM_THE_QUEUE)
    assert_same(before, picture_of(home))


def test_fewer_shards_leave_no_old_one(scored):
    home = scored()
    with open_resources(home.settings) as resources:
        staged = resources.lake.table("staged_scores", MONDAY, columns=["shard"]).to_pandas()
        assert set(staged["shard"]) == {0, 1, 2, 3}
    home.but(shard_tokens=100_000).run("score", "check_scores")
    with open_resources(home.settings) as resources:
        staged = resources.lake.table("staged_scores", MONDAY, columns=["shard"]).to_pandas()
        assert set(staged["shard"]) == {0}
        assert resources.lake.count("scores", MONDAY) == resources.lake.count("comments", MONDAY)


def test_a_shard_is_what_xcom_can_carry(scored):
    home = scored()
    with open_resources(home.settings) as resources:
        parts = daily.plan_shards(resources, MONDAY)
        bounds = [parts[0]["first"], *(part["end"] for part in parts)]
        assert parts == [
            {"model_version": "1", "shard": k, "first": first, "end": end}
            for k, (first, end) in enumerate(itertools.pairwise(bounds))
        ]
        assert len(parts) == 4
        sizes = [daily.score_shard(resources, MONDAY, **part) for part in parts]
        assert sum(sizes) == resources.lake.count("comments", MONDAY)
        assert min(sizes) > 0


def test_a_model_is_fetched_once_for_all_tasks_and_opened_once_for_all_shards(scored):
    home = scored()
    for _ in range(2):
        with open_resources(home.settings) as resources:
            version = resources.registry.champion_version()
            first, again = resources.scorer(version), resources.scorer(version)
            assert first is again
            assert first.model_version == version
            assert len(list(resources.settings.models_folder.iterdir())) == 1


def test_late_labels_measure_their_day_again_and_replace_its_run(routed):
    home = routed(TUESDAY)
    review(home, limit=5)
    assert home.run("collect_labels", "measure", "publish", day=TUESDAY)[1:] == [2, 2]
    early = published(home.settings.mlflow_url)
    review(home)
    assert home.run("collect_labels", "measure", "publish", day=TUESDAY)[1:] == [2, 2]
    late = published(home.settings.mlflow_url)
    assert len(early) == len(late) == 3
    assert not set(early) & set(late)
    labelled = [match for line in late if (match := re.search(r"'labels', '(.*?) of (.*?)'", line))]
    assert [match[1] == match[2] for match in labelled] == [True, True]


def test_late_labels_are_measured_with_the_settings_that_their_day_was_routed_with(routed):
    home = routed(review_fraction=0.3, strategy="hybrid")
    review(home)
    home = home.but(review_fraction=0.25, strategy="uncertainty")
    home.run("collect_labels", "measure")
    with open_resources(home.settings) as resources:
        for window in (False, True):
            rows = read_estimates(resources.lake, MONDAY, window=window)
            as_routed = rows[(rows["strategy"] == "hybrid") & (rows["alpha"] == 0.3)]
            assert "oc_accuracy" in set(as_routed["metric"]), window


@pytest.mark.parametrize("strategy", ["cost", "mutual_information", "expected_error"])
def test_a_day_is_routed_and_measured_by_its_strategy(routed, strategy):
    costs = {"false_negative_cost": 5, "false_positive_cost": 1}
    home = routed(strategy=strategy, platform_costs={"x": 2}, **costs)
    review(home)
    home.run("collect_labels", "measure")
    with open_resources(home.settings) as resources:
        lake, policy = resources.lake, resources.policy
        scores, sent = day_scores(lake, MONDAY), lake.table("routed", MONDAY).to_pandas()
        assert set(sent["reason"]) == {strategy, "random_slice"}
        threshold = scores.threshold or 0.5
        options = {"costs": (5, 1), "columns": scores.columns}
        expected = review_scores(scores.prob, strategy, threshold=threshold, **options)
        top = sent[sent["stratum"] == 0]["review_score"]
        assert np.sort(top) == pytest.approx(np.sort(expected)[-len(top) :])
        rows = read_estimates(lake, MONDAY)
        found = rows[(rows["strategy"] == strategy) & (rows["metric"] == "remaining_cost")]
        assert (found["status"] == "ok").all()
        grouped = grouped_day(lake, MONDAY, scores, policy)  # its strata are those of the design
        assert grouped.routed.sum() == len(sent)


def test_copies_do_not_fill_the_top_and_count_in_the_figures(scored):
    home = scored()
    with open_resources(home.settings) as resources:
        lake, policy = resources.lake, resources.policy
        scores = day_scores(lake, MONDAY)
        order = np.argsort(-review_scores(scores.prob, flagged=scores.flagged), kind="stable")
        spam = set(scores.comment_id.take(pa.array(order[:40])).to_pylist())
        comments = lake.table("comments", MONDAY)
        texts = pa.array(
            f"Buy the best watches of the town, here and today, at shop {row}"
            if id_ in spam
            else text
            for row, (id_, text) in enumerate(
                zip(comments["comment_id"].to_pylist(), comments["text"].to_pylist(), strict=True)
            )
        )
        column = comments.schema.get_field_index("text")
        comments = comments.set_column(column, comments.schema.field("text"), texts)
        lake.replace("comments", MONDAY, comments.to_batches())
        home.run("route")
        sent = lake.table("routed", MONDAY).to_pandas()
        copies = set(lake.table("copies", MONDAY).column("comment_id").to_pylist())
        top = set(sent.loc[sent["stratum"] == 0, "comment_id"])
        assert len(top & spam) == 1
        assert len(copies & spam) == 39
        assert not top & copies
        review(home)
        home.run("collect_labels", "measure")
        grouped = grouped_day(lake, MONDAY, scores, policy)
        assert grouped.routed.sum() == len(sent)
    before = picture_of(home)
    assert home.run("route")
    assert_same(before, picture_of(home))


def test_windows_are_measured_once_their_labels_are_in(routed):
    home = routed(TUESDAY)
    home.run("collect_labels", "measure", day=TUESDAY)
    with open_resources(home.settings) as resources:
        assert read_estimates(resources.lake, TUESDAY, window=True).empty
    review(home)
    home.run("collect_labels", "measure", day=TUESDAY)
    with open_resources(home.settings) as resources:
        monday, both = (read_estimates(resources.lake, day, window=True) for day in DAYS)
        alone = [read_estimates(resources.lake, day) for day in DAYS]
    compared = {name for name, score in REVIEW_SCORES.items() if score.compared}
    assert set(both["strategy"].dropna()) == compared
    assert _labels(monday) == _labels(alone[0])
    assert _labels(both) == _labels(alone[0]) + _labels(alone[1])
    before = _windows(home)
    assert home.run("measure", day=TUESDAY) == [0]
    assert _windows(home) == before


def _windows(home: Installation) -> list[str]:
    with open_resources(home.settings) as resources:
        return table_rows(resources.lake, "estimates")


def _labels(table: pd.DataFrame) -> int:
    return int(table.set_index("metric").loc["accuracy", "n"])


def test_confirmations_are_labelled_by_others_and_enter_no_label(routed):
    home = routed(confirmation_share=0.5)
    routed = review(home)
    assert home.run("collect_labels", "measure") == [routed, 1]
    with open_resources(home.settings) as resources:
        before = table_rows(resources.lake, "labels")
        assert resources.lake.count("confirmations", MONDAY) == 0
    confirmed = review(home, name="ben")
    assert confirmed > 0
    assert home.run("collect_labels", "measure") == [routed, 1]
    with open_resources(home.settings) as resources:
        assert table_rows(resources.lake, "labels") == before
        given = resources.lake.table("confirmations", MONDAY).to_pandas()
        measured = read_estimates(resources.lake, MONDAY).set_index("metric")
    assert len(given) == confirmed
    assert given["label"].tolist() == given["first_label"].tolist()
    assert measured.loc["overturned", ["n", "value"]].tolist() == [confirmed, 0]
    assert set(given["moderator"]) == {"ben"}
    assert set(given["round"]) == {2}  # nobody errs
    assert home.run("collect_labels", "measure") == [routed, 0]


def test_confirmations_of_days_before_the_window_are_asked_for_no_more(routed):
    home = routed(window_days=1, confirmation_share=0.5)
    review(home)
    review(home, name="ben", limit=1)
    home.run("collect_labels", day=MONDAY)
    with open_resources(home.settings) as resources:
        state = counts(resources.database)
        assert state.waiting > 0
        assert state.blocked > 0
    home.run("collect_labels", day=TUESDAY)
    with open_resources(home.settings) as resources:
        state = counts(resources.database)
        assert (state.waiting, state.blocked) == (0, 0)
        assert resources.lake.count("confirmations", MONDAY) == 1
    assert review(home, name="ben") == 0

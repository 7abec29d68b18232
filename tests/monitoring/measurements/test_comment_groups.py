"""Groups of comments, compared every day and published."""

from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from mlflow import MlflowClient

from installation import FROM_THE_QUEUE, MONDAY, TUESDAY, config_with, review
from modwatch.installation.resources import open_resources
from modwatch.monitoring.incidents.metrics import metric_values
from modwatch.monitoring.measurements import comment_groups
from modwatch.pipeline import daily
from modwatch.statistics.live.group_estimates import COVERAGES, LABEL_METRICS, SCORE_METRICS

# MLflow 3.17 uses a loader strategy that SQLAlchemy 2.1 deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")


@pytest.fixture
def labels_compared_on():
    """The weekday of an installation, which is no Monday."""
    return daily._LABELS_COMPARED_ON


@pytest.fixture(autouse=True)
def small_groups(labels_compared_on, monkeypatch):
    monkeypatch.setattr(comment_groups, "MINIMUM_COMMENTS", 20)
    monkeypatch.setattr(daily, "_LABELS_COMPARED_ON", MONDAY.isoweekday())


def rows_of(home, scope, day=MONDAY):
    with open_resources(home.settings) as resources:
        return resources.lake.table("comment_groups", day, scope=scope).to_pandas()


def change_comments(at, day=MONDAY, /, **columns):
    """Replace columns of the comments; each value is a function of the row's number."""
    table = at.lake.table("comments", day)
    for name, of in columns.items():
        field = table.schema.field(name)
        values = pa.array([of(row) for row in range(len(table))], field.type)
        table = table.set_column(table.schema.get_field_index(name), field, values)
    at.lake.replace("comments", day, table.to_batches())


@pytest.fixture
def home(install_routed):
    """Monday in the queue, with two platforms and two identities."""
    home = install_routed()
    with open_resources(home.settings) as resources:
        change_comments(
            resources,
            platform=lambda row: f"p{row % 2}",
            groups=lambda row: [["x"], ["x", "y"], [], None][row % 4],
        )
    return home


def comments_of(at):
    comments = at.lake.table("comments", MONDAY).to_pandas()
    scores = at.lake.table("scores", MONDAY, role="champion").to_pandas()
    return scores.merge(comments[["comment_id", "platform", "language", "groups"]], on="comment_id")


def test_the_groups_of_a_day_are_compared_by_scores_and_routing(home):
    (number,) = home.run("compare_groups")
    rows = rows_of(home, "day")
    assert len(rows) == number * len(SCORE_METRICS)
    assert set(rows["attribute"]) == {"platform", "language", "identity"}
    with open_resources(home.settings) as resources:
        comments = comments_of(resources)
        top = resources.lake.table("routed", MONDAY).to_pandas().query("stratum == 0")["comment_id"]
    found = rows.set_index(["attribute", "group", "metric"]).sort_index()
    for name, inside in comments.groupby("platform"):
        row = found.loc[("platform", name)]
        assert row.loc["mean_uncertainty", "value"] == pytest.approx(
            inside["uncertainty"].mean(), rel=1e-5
        )
        assert row.loc["flagged_share", "value"] == pytest.approx(inside["flagged"].mean())
        assert row.loc["reviewed_share", "value"] == pytest.approx(
            inside["comment_id"].isin(top).mean()
        )
        assert (row["comments"] == len(inside)).all()
    named = comments.explode("groups").groupby("groups")["comment_id"].nunique()
    identity = rows[rows["attribute"] == "identity"].drop_duplicates("group")
    assert identity.set_index("group")["comments"].to_dict() == named[named >= 20].to_dict()

    # Rows of scores that left since are not counted.
    with open_resources(home.settings) as resources:
        batches = [
            batch.slice(0, len(batch) // 2) for batch in resources.lake.read("scores", MONDAY)
        ]
        resources.lake.replace("scores", MONDAY, batches, role="champion")
    home.run("compare_groups")
    both = rows.merge(rows_of(home, "day"), on=["attribute", "group"], suffixes=("", "_after"))
    assert np.all(both["comments_after"] < both["comments"])


def test_the_window_is_compared_on_sundays_by_its_labels_and_not_twice(
    home, labels_compared_on, monkeypatch
):
    review(home)
    with monkeypatch.context() as sunday:
        sunday.setattr(daily, "_LABELS_COMPARED_ON", labels_compared_on)
        home.run("collect_labels", "measure", "compare_groups")
    assert rows_of(home, "window").empty
    home.run("compare_groups")
    rows = rows_of(home, "window")
    gaps = [f"{metric}_gap" for metric in COVERAGES]
    assert set(rows["metric"]) == {*LABEL_METRICS, *gaps}
    everybody = rows[rows["group"].isna()].fillna({"attribute": ""})
    everybody = everybody.set_index(["attribute", "metric"])
    assert everybody.index.tolist() == [
        *product(("platform", "language", "identity"), gaps),
        *(("", metric) for metric in (*COVERAGES, "unsure_share")),
    ]
    assert set(rows["status"]) <= {"ok", "insufficient"}
    assert rows.loc[rows["status"] != "ok", "reason"].str.len().min() > 0
    measured = []
    real = comment_groups.measure_groups
    monkeypatch.setattr(
        comment_groups, "measure_groups", lambda *a, **k: measured.append(a) or real(*a, **k)
    )
    home.run("compare_groups")
    assert not measured
    pd.testing.assert_frame_equal(rows_of(home, "window"), rows)


def test_words_name_the_identities_where_the_source_does_not(home, tmp_path):
    terms = '[identities]\nvowels = ["a", "the", "you", "is"]\n'
    home = home.but(config=config_with(tmp_path, {"identities.toml": terms}))
    home.run("compare_groups")
    assert set(rows_of(home, "day").query("attribute == 'identity'")["group"]) == {"x", "y"}
    with open_resources(home.settings) as resources:
        change_comments(
            resources, groups=lambda _: None, text=lambda row: "Is it?" if row % 3 else "nothing"
        )
    home.run("compare_groups")
    rows = rows_of(home, "day").query("attribute == 'identity'")
    assert set(rows["group"]) == {"vowels"}


def test_columns_without_values_or_with_one_make_no_groups(home):
    for changes in (
        {"platform": lambda _: "one"},
        {name: lambda _: None for name in ("platform", "language", "groups")},
    ):
        with open_resources(home.settings) as resources:
            change_comments(resources, **changes)
        home.run("compare_groups")
        attributes = set(rows_of(home, "day")["attribute"])
        assert attributes <= {"language", "identity"}
    assert attributes <= {"identity"}


def test_an_empty_day_has_no_groups(install):
    home = install()
    with open_resources(home.settings) as resources:
        assert daily.compare_groups(resources, TUESDAY) == 0


def test_alerts_see_differences_and_chance_as_none(home):
    home.run("compare_groups")
    with open_resources(home.settings) as resources:
        values = metric_values(resources.lake, resources.checks, MONDAY, MONDAY)
    rows = rows_of(home, "day").set_index(["attribute", "group", "metric"]).sort_index()
    seen = [value for value in values if value.metric == "group_flagged_share_difference"]
    assert seen
    for value in seen:
        attribute, _, group = value.feature.partition(" ")
        row = rows.loc[(attribute, group, "flagged_share")]
        assert value.value == pytest.approx(row["difference"])
        if row["p_holm"] >= 0.05:
            assert value.low <= 0 <= value.high
        else:
            assert value.low == pytest.approx(row["difference_low"])


def test_mlflow_shows_groups_on_the_day_and_over_the_days(home):
    review(home)
    home.run(*FROM_THE_QUEUE)
    client = MlflowClient(home.settings.mlflow_url)
    (day,) = client.search_runs(
        [client.get_experiment_by_name("modwatch").experiment_id],
        filter_string=f"tags.day = '{MONDAY}'",
    )
    paths = {artifact.path for artifact in client.list_artifacts(day.info.run_id, "figures")}
    assert "figures/comment_groups.png" in paths
    assert "groups of comments" in day.data.tags["mlflow.note.content"]
    (timeline,) = client.search_runs(
        [client.get_experiment_by_name("modwatch").experiment_id],
        filter_string="tags.kind = 'timeline'",
    )
    page = Path(client.download_artifacts(timeline.info.run_id, "timeline.html")).read_text("utf-8")
    platforms = rows_of(home, "day").query("attribute == 'platform'")["group"].unique()
    for name in platforms:
        assert f"<figcaption>platform {name}: mean uncertainty</figcaption>" in page
        assert f"<figcaption>platform {name}: mean uncertainty less all others</figcaption>" in page
    assert home.run("publish") == [0]
    assert client.get_run(timeline.info.run_id).info.lifecycle_stage == "active"


def test_the_largest_groups_are_compared():
    sizes = {("platform", f"p{number:02}"): 20 + number for number in range(14)}
    positions = {group: np.arange(size) for group, size in sizes.items()}
    day = comment_groups._DayGroups(size=1_000, positions=positions)
    largest = [("platform", f"p{number:02}") for number in range(2, 14)]
    assert comment_groups._largest([day]) == largest

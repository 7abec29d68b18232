"""Labels of the queue as a long table, and the weekly report of it."""

import datetime
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from mlflow import MlflowClient
from moderator_groups import put_moderator_groups
from sqlalchemy import text

from installation import MONDAY, known_labels, review, take_one
from modwatch.data.lake.schemas import ANNOTATIONS
from modwatch.installation.resources import open_resources
from modwatch.monitoring.annotation_report import render_page
from modwatch.monitoring.annotation_report.figures import report_figures
from modwatch.monitoring.measurements import opinions as monitoring
from modwatch.monitoring.publishing.runs import GROUP_EXPERIMENT
from modwatch.pipeline import opinions
from modwatch.review.people.accounts import create_moderator
from modwatch.review.people.changes import describe_group
from modwatch.review.quality_control.agreement import GroupAgreement
from modwatch.review.queue.deciding import undo
from modwatch.statistics.disagreement import Annotations
from modwatch.statistics.estimate import Estimate

# MLflow 3.17 uses a loader strategy that SQLAlchemy 2.1 deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")


def today():
    return datetime.datetime.now(datetime.UTC).date()


@pytest.fixture
def reviewed(install_routed, monkeypatch):
    """Monday, labelled by ann and confirmed by bob."""
    monkeypatch.setattr(monitoring, "MINIMUM_ANNOTATIONS", 4)
    home = install_routed()
    review(home, name="ann")
    with open_resources(home.settings) as resources:  # bob disagrees with every other label
        truth = {
            comment: label ^ (number % 2)
            for number, (comment, label) in enumerate(known_labels(resources.lake))
        }
        while take_one(resources, truth, "bob")():
            pass
    review(home, name="cem")
    return home


def runs_in(home):
    client = MlflowClient(home.settings.mlflow_url)
    experiment = client.get_experiment_by_name(GROUP_EXPERIMENT)
    return [] if experiment is None else client.search_runs([experiment.experiment_id])


def files_of(client, run, folder):
    """Return the names of a run's files in a folder."""
    return {Path(artifact.path).name for artifact in client.list_artifacts(run.info.run_id, folder)}


def table_of(client, run, name):
    return pd.read_csv(client.download_artifacts(run.info.run_id, f"tables/{name}.csv"))


def test_labels_are_kept_and_reported_once_with_page_tables_and_few_keys(reviewed):
    """Every independent label is in the long table; one that was undone leaves it."""
    with open_resources(reviewed.settings) as resources:
        number = opinions.collect_annotations(resources, today())
        rows = resources.lake.table("annotations", today()).to_pandas()
        query = "SELECT count(*) FROM decision WHERE action = 'label'"
        with resources.database.connect() as connection:
            assert number == len(rows) == connection.execute(text(query)).scalar() > 0
        assert set(rows["source"]) >= {"review"}
        assert set(rows["comment_dt"]) == {MONDAY}
        assert set(rows["annotator"]) <= {"ann", "bob", "cem"}
        assert opinions.collect_annotations(resources, today()) == number
        reported = opinions.publish_opinions(resources, today())
        assert reported >= 4
        opinions.publish_opinions(resources, today())  # once
    (run,) = runs_in(reviewed)
    assert run.info.run_name == f"opinions {today()}"
    assert run.data.metrics["disagreement/annotations"] == reported
    assert len(run.data.metrics) <= 60
    client = MlflowClient(reviewed.settings.mlflow_url)
    paths = {artifact.path for artifact in client.list_artifacts(run.info.run_id)}
    assert "report.html" in paths
    assert files_of(client, run, "tables") == {"metrics.csv"}
    metrics = table_of(client, run, "metrics").set_index("metric")
    assert run.data.metrics["disagreement/model_raw"] == pytest.approx(
        metrics.loc["accuracy", "raw"]
    )
    page = Path(client.download_artifacts(run.info.run_id, "report.html"))
    assert "ann" not in page.read_text("utf-8").split()
    assert "labels" in run.data.tags["mlflow.note.content"]

    newest = (
        "SELECT d.id AS decision_id, d.moderator_id FROM decision d JOIN review_item i "
        "ON i.id = d.item_id WHERE d.action = 'label' AND i.kind = 'review' "
        "ORDER BY d.id DESC LIMIT 1"
    )
    with open_resources(reviewed.settings) as resources:
        with resources.database.connect() as connection:
            (last,) = connection.execute(text(newest)).mappings()
        undo(resources.database, **last, idempotency_key="u")
        gone = today() - datetime.timedelta(days=1)  # the log has no labels of it any more
        kept = resources.lake.table("annotations", today()).to_pylist()
        rows = pa.RecordBatch.from_pylist([row | {"dt": gone} for row in kept], ANNOTATIONS)
        resources.lake.replace("annotations", gone, [rows])
        assert opinions.collect_annotations(resources, today()) == number - 1
        assert resources.lake.count("annotations", gone) == 0


@pytest.fixture
def grouped(small_home, unmanned, tmp_path, monkeypatch):
    """Labels of three large groups and of a small one, on a day that ends weeks of groups."""
    monkeypatch.setattr(opinions, "ends_group_weeks", lambda _: True)
    home = small_home.but(mlflow_url=unmanned.copy(tmp_path / "mlflow"))
    with open_resources(home.settings) as resources:
        put_moderator_groups(resources, MONDAY, {"north": 14, "south": 13, "west": 12, "east": 4})
        opinions.publish_opinions(resources, MONDAY)
    return home


def test_groups_are_published_with_forest_plot_heat_map_strata_and_tables(grouped):
    client = MlflowClient(grouped.settings.mlflow_url)
    runs = {run.info.run_name: run for run in runs_in(grouped)}
    run = runs[f"groups of moderators {MONDAY}"]
    page = Path(client.download_artifacts(run.info.run_id, "report.html")).read_text("utf-8")
    assert page.count('src="data:image/svg+xml') == 3
    assert files_of(client, run, "tables") >= {
        "metrics.csv", "flip_rates.csv", "groups_group.csv", "kappa_group.csv"
    }  # fmt: skip
    table = table_of(client, run, "groups_group")
    assert set(table["group"]) == {"north", "south"}
    assert set(table["annotators"]) == {10}, "numbers of people are rounded down to tens"
    rows = table[table["metric"] == "agreement"].set_index("group")
    assert (rows["low"] < rows["value"]).all()
    assert (rows["value"] < rows["high"]).all()
    assert rows.loc["south", "difference"] < -0.05
    assert rows.loc["south", "p_holm"] < 0.05
    assert run.data.tags["groups"] == "significant"
    metrics = run.data.metrics
    assert metrics["groups_group/largest_difference"] == rows["difference"].abs().max()
    divergences = table.loc[table["metric"] == "uncertainty_divergence", "value"]
    assert metrics["groups_group/largest_uncertainty_divergence"] == divergences.max() > 0
    kappa = table_of(client, run, "kappa_group")
    pairs = [("north", "north"), ("north", "south"), ("south", "south")]
    assert list(kappa[["group", "other"]].itertuples(index=False, name=None)) == pairs
    assert (kappa["low"] < kappa["kappa"]).all()
    assert (kappa["kappa"] < kappa["high"]).all()
    strata = table_of(client, run, "flip_rates")
    assert len(strata) > 1
    assert (strata["flip_rate_low"] <= strata["flip_rate_high"]).all()
    page = Path(client.download_artifacts(run.info.run_id, "report.html")).read_text("utf-8")
    assert page.count("<img") + page.count("<svg") >= 3
    cells = [f"{kappa.loc[1, name]:.3f}" for name in ("kappa", "low", "high")]
    assert re.search(
        r"north</th>\s*<td>south</td>\s*" + r"\s*".join(f"<td>{figure}</td>" for figure in cells),
        page,
    ), "κ between the groups has its interval on the page"
    # The small group, and another one from which it would follow.
    assert not re.search(r"\b(east|west)\b", page)


def test_what_was_published_raises_one_alert_and_names_no_small_group(grouped):
    with open_resources(grouped.settings) as resources:
        stored = resources.lake.table("annotator_groups", MONDAY).to_pandas()
        figures = stored[stored["metric"] != monitoring.COMPARED]
        assert len(stored) == len(figures) + 1, "and the mark that there was a comparison"
        assert set(figures["group"]) == {"north", "south"}
        assert set(figures["annotators"]) == {10}
        assert opinions.raise_alerts(resources, MONDAY) == 1
        assert opinions.raise_alerts(resources, MONDAY) == 0
        with resources.database.connect() as connection:
            (payload,) = connection.execute(text("SELECT payload FROM outbox_message")).scalars()
    assert (payload["facts"]["rule"], payload["facts"]["subject"]) == (
        "annotator_agreement_low", "moderators south"
    )  # fmt: skip
    assert payload["facts"]["figure"]["n"] == 10


def test_few_labels_are_not_reported(install_routed):
    home = install_routed()
    review(home, limit=3)
    with open_resources(home.settings) as resources:
        opinions.collect_annotations(resources, today())
        assert opinions.publish_opinions(resources, today()) == 0
    assert not runs_in(home)


def test_groups_are_compared_in_every_fourth_week_only(reviewed, monkeypatch):
    with open_resources(reviewed.settings) as resources:
        for number in range(7):  # who labelled nothing
            create_moderator(resources.database, f"person {number}", "moderator")
        with resources.database.connect() as connection:
            people = connection.execute(text("SELECT id, pseudonym FROM moderator")).all()
        for person in people:
            describe_group(resources.database, person.id, f"group of {person.pseudonym}")
        opinions.collect_annotations(resources, today())
        monkeypatch.setattr(opinions, "ends_group_weeks", lambda _: False)
        opinions.publish_opinions(resources, today())
        assert [run.info.run_name for run in runs_in(reviewed)] == [f"opinions {today()}"]
        monkeypatch.setattr(opinions, "ends_group_weeks", lambda _: True)
        opinions.publish_opinions(resources, today())
    name = f"groups of moderators {today()}"
    of_groups = {run.info.run_name: run for run in runs_in(reviewed)}[name]
    client = MlflowClient(reviewed.settings.mlflow_url)
    page = Path(client.download_artifacts(of_groups.info.run_id, "report.html"))
    content = page.read_text("utf-8")
    assert "group of ann" not in content
    assert "no group has 10 annotators" in content
    with open_resources(reviewed.settings) as resources:
        describe_group(resources.database, people[0].id, None)
        opinions.publish_opinions(resources, today())
    again = {run.info.run_name: run for run in runs_in(reviewed)}[name]
    assert again.info.run_id == of_groups.info.run_id, "it shows who left a group meanwhile"


def test_one_person_more_changes_no_number_of_people_of_a_group():
    """A page, a table or a picture of 27 people shows the same of 28."""
    rng = np.random.default_rng(0)
    people, items = 40, 40
    label = (rng.random((items, people)) < 0.4).astype(int)
    prob = rng.random(items)
    annotations = Annotations.from_columns(
        item=np.repeat(np.arange(items), people), annotator=np.tile(np.arange(people), items),
        label=label.ravel(),
    )  # fmt: skip
    labels = monitoring.LabelledComments(
        annotations=annotations, y_prob=prob, weight=np.ones(items), threshold=0.5
    )
    reports = []
    for members in (13, 14):
        groups = {person: "a" if person < members else "b" for person in range(27)}
        report = monitoring.opinion_report(labels, groups, minimum=10)
        (grouping,) = report.groupings
        assert set(grouping.table["annotators"]) == {10}
        assert not (grouping.table["annotations"] % 10).any()
        assert not (grouping.kappa["items"] % 10).any()
        figures = grouping.kappa[["kappa", "low", "high"]]
        pd.testing.assert_frame_equal(figures, figures.round(3))
        figures = grouping.table.drop(columns=["p_value", "p_holm"])
        pd.testing.assert_frame_equal(figures, figures.round(3))
        page = render_page(report)
        assert "33% of the people count in a group that was drawn at random" in page
        assert "10 annotators have no group" in page
        figures = report_figures(report)
        ticks = [label.get_text() for label in figures["kappa_group"].axes[0].get_yticklabels()]
        assert ticks == ["a (10)", "b (10)"]
        reports.append((sorted(figures), re.findall(r"(\d+) annotators", page)))
    assert reports[0] == reports[1]


def test_gold_and_retests_by_group_are_a_section_and_a_table(tmp_path):
    few = Estimate.insufficient("too few people contributed", n=0)
    accuracy = Estimate.from_interval(0.9, (0.8, 0.95), n=120)
    by_group = [
        GroupAgreement(group="north", people=10, gold_accuracy=accuracy, retest_consistency=few)
    ]
    rng = np.random.default_rng(0)
    annotations = Annotations.from_columns(
        item=np.repeat(np.arange(40), 6), annotator=np.tile(np.arange(6), 40),
        label=(rng.random(240) < 0.4).astype(int),
    )  # fmt: skip
    labels = monitoring.LabelledComments(
        annotations=annotations, y_prob=rng.random(40), weight=np.ones(40), threshold=0.5
    )
    url = f"sqlite:///{tmp_path}/mlflow.db"
    MlflowClient(url).create_experiment(GROUP_EXPERIMENT, str(tmp_path / "artifacts"))
    report = monitoring.opinion_report(labels, {}, minimum=10)
    run = monitoring.publish(
        report, "groups", MONDAY, title="Groups", tracking_uri=url, agreement=by_group
    )
    client = MlflowClient(url)
    page = Path(client.download_artifacts(run, "report.html")).read_text(encoding="utf-8")
    assert "Do gold comments and retests mean the same" in page
    assert re.search("north.*0.900 \\(0.800 to 0.950\\).*120.*–", page, re.S)
    table = pd.read_csv(client.download_artifacts(run, "tables/gold_and_retests.csv"))
    assert table["gold_accuracy.n"].tolist() == [120]

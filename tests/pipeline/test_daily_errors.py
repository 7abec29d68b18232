"""A day that people labelled with errors: the headline is the corrected figure, everywhere."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from estimates import read_estimates
from mlflow import MlflowClient

from installation import MONDAY, TO_THE_QUEUE, config_with, known_labels
from modwatch.data.lake.day_scores import day_scores
from modwatch.installation.resources import Resources, open_resources
from modwatch.monitoring.incidents.metrics import metric_values
from modwatch.monitoring.measurements.tables import labelled_day
from modwatch.review.people.accounts import create_moderator
from modwatch.review.queue.deciding import decide
from modwatch.review.queue.leases import lease
from modwatch.statistics.collaboration.what_if import OUTCOMES
from modwatch.statistics.label_truth import MINIMUM_CONFIRMED
from modwatch.statistics.live.figures import title_of
from modwatch.statistics.live.measure import measure_days, reliability_estimates
from modwatch_lab.simulated import SimulatedModerator

# MLflow 3.17 uses a loader strategy that SQLAlchemy 2.1 deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")

ALPHA = 0.3
RATES = {"false_positive_rate": 0.05, "false_negative_rate": 0.2}
HEADLINE = ("accuracy", "oc_accuracy", "oc_auroc", "review_efficiency")
ENDS = ["value", "low", "high"]

#: An alert that is always active, to read the value that it is about.
RULES = """
keep_defaults = false
[[rules]]
name = "accuracy"
severity = "info"
metric = "window_accuracy"
direction = "above"
open = { bound = 0.0, compare = "value" }
close = { bound = 0.0, compare = "value" }
look_at = "Nothing."
"""


def label_with_errors(resources: Resources) -> None:
    """Let three people label all that waits: first labels, confirmations, third labels."""
    truth = dict(known_labels(resources.lake))
    for seed, name in enumerate(("ann", "bob", "cem")):
        person = create_moderator(resources.database, name, "moderator")
        simulated = SimulatedModerator(token="", seed=seed, **RATES)
        while (held := lease(resources.database, person.id)) is not None:
            comment_id = held.item.comment_id
            decide(
                resources.database, moderator_id=person.id, item_id=held.item.id,
                lease_token=held.token, seconds=3.0,
                label=simulated.label(comment_id, truth[comment_id]),
                idempotency_key=held.token,
            )  # fmt: skip


@pytest.fixture(scope="module")
def home(make_installation, tmp_path_factory):
    """An installation with one day, measured and published."""
    folder = tmp_path_factory.mktemp("errors")
    home = make_installation(
        folder,
        source={"kind": "community", "seed": 7, "comments_per_day": 900},
        **{"review_fraction": ALPHA, "confirmation_share": 0.2, "retest_share": 0, "gold_share": 0},
        config=config_with(folder, {"alerts.toml": RULES}),
    )
    home.run(*TO_THE_QUEUE)
    with open_resources(home.settings) as resources:
        label_with_errors(resources)
    home.run("collect_labels", "measure", "raise_alerts", "publish")
    return home


@pytest.fixture
def resources(home):
    with open_resources(home.settings) as opened:
        yield opened


@pytest.fixture
def day(resources):
    return labelled_day(
        resources.lake, MONDAY, day_scores(resources.lake, MONDAY), resources.policy
    )


@pytest.fixture
def headline(resources):
    """The estimates of the window as deployed, by metric."""
    return deployed(read_estimates(resources.lake, MONDAY, window=True))


def deployed(table: pd.DataFrame) -> pd.DataFrame:
    at = table["alpha"].isna() | ((table["strategy"] == "uncertainty") & (table["alpha"] == ALPHA))
    return table[at].set_index("metric")


def test_the_headline_is_corrected_and_says_what_it_supposes(resources, day, headline):
    assert headline.loc["overturned", "n"] > MINIMUM_CONFIRMED
    policy = resources.policy
    supposed = headline.loc[["shared_false_positive", "shared_false_negative"], "value"]
    assert supposed.tolist() == [policy.shared_false_positive, policy.shared_false_negative]
    first = measure_days(
        [replace(day, confirmations=None)],
        review_fractions=[ALPHA],
        threshold=day_scores(resources.lake, MONDAY).threshold,
    )
    off = (headline["value"] - deployed(first)["value"]).loc[list(HEADLINE)]
    assert off.abs().max() > 0.002


def test_independent_confirmations_raise_no_alarm(resources):
    table = resources.lake.table("assumption_checks", MONDAY).to_pandas().set_index("check")
    assert table.loc[["pairs of people", "people"], "tested"].tolist() == [1, 1]
    assert not table["found"].any()
    assert table["power"].between(0, 1).any()


def test_the_reliability_diagram_is_corrected(resources, day):
    columns = ["positive_rate", "low", "high"]
    curve = resources.lake.table("reliability", MONDAY).to_pandas()[columns].to_numpy()
    corrected, first = (
        reliability_estimates([value])[columns].to_numpy(float)
        for value in (day, replace(day, confirmations=None))
    )
    assert curve == pytest.approx(corrected, nan_ok=True)
    assert np.nanmax(np.abs(curve - first)) > 0.01


def test_alerts_watch_the_corrected_figure(resources, headline):
    values = {
        item.metric: item
        for item in metric_values(resources.lake, resources.checks, MONDAY, MONDAY)
    }
    for metric in HEADLINE:
        watched = values[f"window_{metric}"]
        assert [watched.value, watched.low, watched.high] == headline.loc[metric, ENDS].tolist()
    value, low, high = headline.loc["accuracy", ENDS]
    (alert,) = resources.lake.table("alerts", MONDAY).to_pylist()
    assert f"is {value:.4g} (95% CI {low:.4g} to {high:.4g}" in alert["description"]


def test_mlflow_and_its_what_if_table_show_the_corrected_figure(resources, headline, tmp_path):
    client = MlflowClient(resources.settings.mlflow_url)
    experiment = client.get_experiment_by_name("modwatch").experiment_id
    (run,) = client.search_runs([experiment], f"run_name = '{MONDAY}'")
    for metric in HEADLINE:
        group = "model_window" if metric == "accuracy" else "collaboration_window"
        value = headline.loc[metric, "value"]
        assert run.data.metrics[f"{group}/{metric}"] == pytest.approx(value)
        assert f"{title_of(metric)} {value:.3f} (" in run.data.tags["mlflow.note.content"]
    path = client.download_artifacts(run.info.run_id, "tables/what_if.csv", str(tmp_path))
    choices = pd.read_csv(path)
    (choice,) = choices[choices["deployed"]].to_dict("records")
    for metric in OUTCOMES:
        shown = [choice[f"{metric}{end}"] for end in ("", "_low", "_high")]
        assert shown == pytest.approx(headline.loc[metric, ENDS].tolist())

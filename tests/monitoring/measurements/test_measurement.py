"""What a day's measuring plans and finds, on a whole installation."""

import datetime

import pandas as pd
import pyarrow as pa
import pytest
from estimates import read_estimates

from installation import FROM_THE_QUEUE, MONDAY, TUESDAY, copy_home, known_labels, review
from modwatch.data.lake.delta import Lake
from modwatch.data.lake.schemas import CONFIRMATIONS
from modwatch.installation.resources import open_resources
from modwatch.monitoring.measurements.measurement import error_evidence
from modwatch.pipeline.daily import plan_labels
from modwatch.review.people.accounts import create_moderator
from modwatch.review.quality_control.gold import GoldComment, add_gold, retire_gold
from modwatch.review.queue.deciding import decide
from modwatch.review.queue.items import content_of
from modwatch.review.queue.leases import lease
from modwatch.routing import RoutingPolicy

# MLflow 3.17 uses a loader strategy that SQLAlchemy 2.1 deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")


@pytest.mark.soak  # tests/routing/test_label_plan.py
def test_the_slice_is_planned_from_the_labels_of_the_window(install_routed):
    home = install_routed()
    with open_resources(home.settings) as resources:
        assert plan_labels(resources, MONDAY).empty  # nothing was measured yet
    review(home)
    home.run(*FROM_THE_QUEUE[:3])
    with open_resources(home.settings) as resources:
        plan = plan_labels(resources, MONDAY, widths=[1.0, 0.001])
        design = resources.lake.table("routing_design", MONDAY).to_pandas()
    accuracy = plan[plan["metric"] == "accuracy"].set_index("width")
    assert accuracy.loc[1.0, "labels_now"] == design.loc[design["stratum"] > 0, "sample"].sum()
    assert accuracy.loc[1.0, "labels"] <= accuracy.loc[1.0, "labels_now"]
    assert pd.isna(accuracy.loc[0.001, "labels"])  # not even sixteen times as many would do


def test_gold_that_people_answer_otherwise_changes_the_error_rates_and_is_measured_once(
    install, two_scored_days
):
    home = install(gold_share=0.5, retest_share=0, review_fraction=0.3)
    copy_home(two_scored_days.home, home.home)
    home.run("route")
    review(home)
    home.run(*FROM_THE_QUEUE[:3])
    with open_resources(home.settings) as resources:
        monday = resources.lake.table("comments", MONDAY).to_pylist()
        panel = [
            GoldComment(label=k % 2, source="panel", **content_of({**row, "comment_id": f"g{k}"}))
            for k, row in enumerate(monday)
        ]
        add_gold(resources.database, panel)
    home.run("route", day=TUESDAY)
    with open_resources(home.settings) as resources:
        answered, contradicted = answer(resources, {gold.comment_id: gold.label for gold in panel})
    assert answered > 30
    assert home.run(*FROM_THE_QUEUE[:3], day=TUESDAY)[2] == 1
    wrong = rates(home, TUESDAY)
    assert home.run(*FROM_THE_QUEUE[:3], day=TUESDAY)[2] == 0
    with open_resources(home.settings) as resources:
        assert retire_gold(resources.database, contradicted) == 2
    assert home.run(*FROM_THE_QUEUE[:3], day=TUESDAY)[2] == 1
    right = rates(home, TUESDAY)
    for metric, value in wrong.items():
        assert right[metric] < value


def test_wrongly_keyed_gold_is_left_out(tmp_path, caplog):
    lake = Lake(root=str(tmp_path))
    noon = datetime.datetime(2026, 1, 5, 12, tzinfo=datetime.UTC)
    rows = {"dt": MONDAY, "round": 0, "moderator": "ann", "decided_at": noon}
    for contradicted, used in ((2, True), (30, False)):
        answers = [
            {
                **rows,
                "comment_id": f"g{k}",
                "label": k % 2,
                "first_label": k % 2 ^ (k < contradicted),
            }
            for k in range(60)
        ]
        batch = pa.RecordBatch.from_pylist(answers, schema=CONFIRMATIONS)
        lake.replace("confirmations", MONDAY, [batch])
        found = error_evidence(lake, [MONDAY], RoutingPolicy(review_fraction=0.1))
        assert (sum(kind.answers for kind in found.kinds) == 60) == used
    assert "gold_contradicted" in [record.event for record in caplog.records]


def answer(at, gold):
    """Let ann label all that waits, but the first gold item of either label contrary to `gold`.

    Return how many gold items she met, and those two.
    """
    truth, person = dict(known_labels(at.lake)), create_moderator(at.database, "ann", "moderator")
    met, contradicted = 0, {}
    while (held := lease(at.database, person.id)) is not None:
        name = held.item.comment_id
        value = gold[name] if name in gold else truth[name]
        if name in gold:
            met += 1
            value ^= contradicted.setdefault(value, name) == name
        decide(
            at.database, moderator_id=person.id, item_id=held.item.id, lease_token=held.token,
            label=value, idempotency_key=held.token,
        )  # fmt: skip
    return met, list(contradicted.values())


def rates(home, day):
    """Return the estimated error rates of the window that ends with the day."""
    with open_resources(home.settings) as resources:
        table = read_estimates(resources.lake, day, window=True).set_index("metric")
    names = ["annotator_false_positive_rate", "annotator_false_negative_rate"]
    return table.loc[names, "value"].to_dict()

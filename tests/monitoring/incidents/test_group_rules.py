"""The rules of Modwatch on groups, of comments every day and of moderators every fourth week."""

import datetime

import pyarrow as pa
import pytest
from receivers import Webhook

from modwatch.data.lake.schemas import ANNOTATOR_GROUPS, COMMENT_GROUPS
from modwatch.installation.resources import Resources
from modwatch.monitoring.incidents.rules import load_rules
from modwatch.pipeline import daily, opinions
from modwatch.review.people.groups import KEPT

# MLflow 3.17 uses a loader strategy that SQLAlchemy 2.1 deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")

SUNDAY = datetime.date(2026, 1, 4)
NEXT = SUNDAY + datetime.timedelta(days=28)

#: Metric of `comment_groups`, and a difference that is large on the side that the rule watches.
DAILY = {
    "group_accuracy_low": ("accuracy", -0.1),
    "group_overestimated": ("calibration_error", 0.1),
    "group_uncertain": ("mean_uncertainty", 0.1),
}
#: Metric of `annotator_groups`, and such a difference.
WEEKLY = {
    "annotator_agreement_low": ("agreement", -0.04),
    "annotator_agreement_high": ("agreement", 0.04),
    "annotator_uncertainty_diverges": ("uncertainty_divergence", 0.026),
}


def put_comments(
    resources: Resources, differences: dict[str, float], *, day: datetime.date, p_holm: float
) -> None:
    """Keep a group of comments for each metric, which differs, give or take a hundredth."""
    rows = [
        {
            "dt": day, "scope": "day", "attribute": "platform", "group": f"forum {metric}",
            "metric": metric, "value": 0.5, "low": 0.4, "high": 0.6, "difference": difference,
            "difference_low": difference - 0.01, "difference_high": difference + 0.01,
            "p_value": p_holm, "p_holm": p_holm, "n": 900, "comments": 900, "status": "ok",
            "reason": "", "digest": "",
        }
        for metric, difference in differences.items()
    ]  # fmt: skip
    batch = pa.RecordBatch.from_pylist(rows, schema=COMMENT_GROUPS)
    resources.lake.replace("comment_groups", day, [batch])


def put_annotators(
    resources: Resources,
    metric: str,
    differences: dict[str, float],
    *,
    day: datetime.date = SUNDAY,
    p_holm: float = 0.01,
) -> None:
    """Keep the comparison of groups of moderators, each with its difference."""
    rows = [
        {
            "dt": day, "group": group, "metric": metric, "value": difference,
            "difference": difference, "p_holm": p_holm, "annotators": 20, "annotations": 900,
        }
        for group, difference in differences.items()
    ]  # fmt: skip
    batch = pa.RecordBatch.from_pylist(rows, schema=ANNOTATOR_GROUPS)
    resources.lake.replace("annotator_groups", day, [batch])


def sent(resources: Resources, server: Webhook) -> list[tuple[str, str, str]]:
    """Deliver what is pending; return event, rule and subject of each alert that arrived."""
    before = len(server.requests)
    daily.deliver_alerts(resources, SUNDAY)
    arrived = [request.json for request in server.requests[before:]]
    return [(facts["event"], facts["rule"], facts["subject"]) for facts in arrived]


def test_every_rule_on_groups_is_tried_here():
    on_groups = {
        rule.name for rule in load_rules() if rule.metric.startswith(("group_", "annotators_"))
    }
    assert on_groups == {*DAILY, *WEEKLY}


def test_five_points_between_chosen_groups_are_less_between_those_that_people_count_in():
    bounds = {rule.name: rule.open.bound for rule in load_rules() if rule.name in WEEKLY}
    assert bounds == {
        "annotator_agreement_low": pytest.approx(-0.05 * KEPT, abs=5e-4),
        "annotator_agreement_high": pytest.approx(0.05 * KEPT, abs=5e-4),
        "annotator_uncertainty_diverges": pytest.approx(0.05 * KEPT**2, abs=5e-4),
    }


def test_groups_of_comments_open_an_incident_a_rule_if_they_differ_by_much_and_not_by_chance(
    by_defaults, server
):
    large = dict(DAILY.values())
    small = {metric: difference / 2 for metric, difference in large.items()}
    none = dict.fromkeys(large, 0.0)
    subjects = [(rule, f"platform forum {metric}") for rule, (metric, _) in DAILY.items()]
    number = 0
    for differences, p_holm, event in (
        (large, 0.2, ""),
        (small, 0.001, ""),
        (large, 0.001, "opened"),
        (none, 0.001, "recovered"),
    ):
        for _ in range(2):
            day = SUNDAY + datetime.timedelta(days=number)
            put_comments(by_defaults, differences, day=day, p_holm=p_holm)
            daily.raise_alerts(by_defaults, day)
            number += 1
        expected = [(event, *subject) for subject in subjects] if event else []
        assert sorted(sent(by_defaults, server)) == sorted(expected)


@pytest.mark.parametrize("rule", WEEKLY)
def test_a_group_of_moderators_opens_one_incident_a_rule(by_defaults, server, rule):
    metric, difference = WEEKLY[rule]
    before = SUNDAY - datetime.timedelta(days=28)
    for times, p_holm in ((1, 0.06), (0.8, 0.01)):  # by chance, or small
        groups = {"north": times * difference, "south": 0.0, "west": 0.0}
        put_annotators(by_defaults, metric, groups, day=before, p_holm=p_holm)
        assert opinions.raise_alerts(by_defaults, before) == 0
    put_annotators(by_defaults, metric, {"north": difference, "south": 0.01, "west": 0.0})
    assert opinions.raise_alerts(by_defaults, SUNDAY) == 1
    assert opinions.raise_alerts(by_defaults, SUNDAY) == 0
    assert sent(by_defaults, server) == [("opened", rule, "moderators north")]
    [request] = server.requests
    assert request.json["figure"]["value"] == difference
    assert "tags.day%20%3D%20%272026-01-04%27" in request.json["links"]["MLflow"]
    assert request.json["links"]["Airflow"].endswith("/dags/monitor_disagreement/runs")
    week = SUNDAY + datetime.timedelta(days=7)
    assert opinions.raise_alerts(by_defaults, week) == 0
    put_annotators(by_defaults, metric, {"north": 0.0, "south": 0.01, "west": 0.0}, day=NEXT)
    assert opinions.raise_alerts(by_defaults, NEXT) == 1
    assert sent(by_defaults, server) == [("recovered", rule, "moderators north")]


def test_two_groups_of_moderators_are_one_incident(by_defaults, server):
    put_annotators(by_defaults, "agreement", {"north": -0.2, "south": 0.2})
    opinions.raise_alerts(by_defaults, SUNDAY)
    assert sent(by_defaults, server) == [("opened", "annotator_agreement_low", "moderators north")]


def test_days_of_comments_and_weeks_of_labels_leave_each_other_alone(by_defaults, server):
    """Comments of years ago may be labelled today."""
    long_ago = datetime.date(2017, 3, 6)
    put_comments(by_defaults, {"accuracy": -0.1}, day=long_ago, p_holm=0.001)
    put_annotators(by_defaults, "agreement", {"north": -0.2, "south": 0.1, "west": 0.1})
    for _ in range(2):
        daily.raise_alerts(by_defaults, long_ago)
        opinions.raise_alerts(by_defaults, SUNDAY)
    assert sorted(sent(by_defaults, server))[:2] == [
        ("opened", "annotator_agreement_high", "moderators south"),
        ("opened", "annotator_agreement_high", "moderators west"),
    ]
    assert {request.json["event"] for request in server.requests} == {"opened"}
    daily.raise_alerts(by_defaults, long_ago + datetime.timedelta(days=1))
    assert sent(by_defaults, server) == []

import datetime

import pytest

from modwatch.monitoring.incidents.incidents import LevelChange, MetricValue
from modwatch.monitoring.incidents.messages.findings import (
    describe_finding,
    describe_value,
)
from modwatch.monitoring.incidents.rules import load_rules
from modwatch.statistics.drift.daily_levels import Level

DAY = datetime.date(2026, 1, 5)
RULES = {rule.name: rule for rule in load_rules()}


def test_every_rule_has_a_title_without_the_name_of_its_metric():
    before, after = (Level(value=at, low=at - 0.01, high=at + 0.01) for at in (0.965, 0.715))
    fall = LevelChange(day=DAY, day_low=DAY, day_high=DAY, before=before, after=after, evidence=900)
    for rule in RULES.values():
        change = fall if rule.watches_changes else None
        value = MetricValue(day=DAY, metric=rule.metric, value=0.7123456, n=2000, change=change)
        text = describe_finding(rule, "prob,trailing", value)
        assert rule.title
        assert rule.metric not in text
        assert rule.name not in text
        assert "{" not in text


def test_words_fit_what_is_known():
    rule = RULES["estimates_missing"]
    unknown = MetricValue(day=DAY, metric=rule.metric, value=None, n=3, status="insufficient")
    assert describe_value(rule, unknown) == (
        "Accuracy with review over the window could not be estimated (n = 3)"
    )
    bare = MetricValue(day=DAY, metric="queue_age_oldest_hours", feature="queue", value=100.0, n=7)
    assert describe_value(RULES["queue_old"], bare) == (
        "The waiting time of the oldest comment, in hours, is 100 (n = 7); threshold: > 96"
    )


@pytest.mark.parametrize("rule", [rule for rule in RULES.values() if not rule.watches_changes])
def test_a_value_is_given_in_plain_words(rule):
    value = MetricValue(day=DAY, metric=rule.metric, feature=rule.feature, value=1.0, n=1129)
    text = describe_value(rule, value)
    assert "_" not in text
    assert "(prob" not in text
    is_state = rule.metric.startswith(("checks_", "log_", "rows_"))
    has_bound = not is_state and rule.open.compare != "insufficient"
    assert ("threshold" in text) == has_bound


@pytest.mark.parametrize(
    ("rule", "value", "text"),
    [
        ("checks_rejected", 1.0, "Data validation rejected the day (n = 500)"),
        ("checks_rejected", 0.0, "Data validation did not reject the day (n = 500)"),
        ("decision_log_altered", 3.0, "The decision log has problems: 3 (n = 500)"),
        (
            "decision_log_unwitnessed",
            1.0,
            "No witness of the decision log was written (n = 500)",
        ),
        ("volume_low", 0.25, "0.25 times the usual volume (n = 500); threshold: upper bound < 1"),
        ("volume_low", 0.0, "0 times the usual volume (n = 500); threshold: upper bound < 1"),
        (
            "scores_shifted",
            0.31,
            "The population stability index (scores, against the fixed reference) is 0.31 "
            "(n = 500); threshold: lower bound > 0.2",
        ),
    ],
)
def test_values_as_receivers_read_them(rule, value, text):
    known = RULES[rule]
    found = MetricValue(
        day=DAY,
        metric=known.metric,
        feature=known.feature,
        reference=known.reference or ("trailing" if known.cause == "volume" else None),
        value=value,
        n=500,
    )
    assert describe_value(known, found) == text


def test_a_volume_is_reported_with_that_of_other_days():
    found = MetricValue(
        day=DAY, metric="volume_ratio", feature="comments", value=0.46, low=0.23, high=0.92, n=500
    )
    text = describe_value(RULES["volume_low"], found)
    assert text == "0.46 times the usual volume (n = 500); on other days 0.5 to 2 times"


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ("accuracy_fell_far", "The model's accuracy fell"),
        ("volume_low", "Few comments"),
        ("oc_accuracy_low", "Accuracy with review is low"),
        ("queue_old", "Comments have waited in the queue"),
        ("labels_missing", "No comment of the day is labelled"),
    ],
)
def test_a_headline_without_its_value_says_what_happened(rule, text):
    unchanged = MetricValue(day=DAY, metric=RULES[rule].metric, value=None, n=9)
    assert describe_finding(RULES[rule], "", None) == text
    assert describe_finding(RULES[rule], "", unchanged) == text


def test_a_title_that_is_nothing_without_its_value_falls_back_to_the_name():
    rule = RULES["queue_old"].model_copy(update={"title": "{value} hours in the queue"})
    assert describe_finding(rule, "", None) == "Queue old"

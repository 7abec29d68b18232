import datetime

from modwatch.alerts.incidents import LevelChange, MetricValue
from modwatch.alerts.messages.findings import describe_finding, describe_value
from modwatch.alerts.rules import load_rules
from modwatch.metrics.changes import Level

DAY = datetime.date(2026, 1, 5)
RULES = {rule.name: rule for rule in load_rules()}


def test_every_rule_has_a_title_without_the_name_of_its_metric() -> None:
    before, after = (Level(value=at, low=at - 0.01, high=at + 0.01) for at in (0.965, 0.715))
    fall = LevelChange(day=DAY, day_low=DAY, day_high=DAY, before=before, after=after)
    for rule in RULES.values():
        change = fall if rule.watches_changes else None
        value = MetricValue(day=DAY, metric=rule.metric, value=0.7123456, n=2000, change=change)
        said = describe_finding(rule, "prob,trailing", value)
        assert rule.title
        assert rule.metric not in said
        assert rule.name not in said
        assert "{" not in said


def test_words_fit_what_is_known() -> None:
    rule = RULES["estimates_missing"]
    unknown = MetricValue(day=DAY, metric=rule.metric, value=None, n=3, status="insufficient")
    assert describe_value(rule, unknown) == "window_oc_accuracy could not be estimated (n = 3)"
    bare = MetricValue(day=DAY, metric="queue_age_oldest_hours", value=100.0, n=7)
    assert describe_value(RULES["queue_old"], bare) == (
        "queue_age_oldest_hours is 100 (n = 7); threshold: > 96"
    )

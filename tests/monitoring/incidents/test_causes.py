"""Evening by evening: one cause has one incident, whichever of its rules see it."""

import datetime
import itertools
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import pytest

from modwatch.monitoring.incidents.causes import Cause, evaluate_rules
from modwatch.monitoring.incidents.incidents import MetricValue
from modwatch.monitoring.incidents.rules import AlertRule, load_rules
from modwatch.monitoring.incidents.store import IncidentChange, IncidentRecord

FIRST = datetime.date(2026, 3, 1)
RULES = load_rules()
WINDOW = 14
Known = Callable[[int], Sequence[MetricValue]]


def day(number: int) -> datetime.date:
    return FIRST + datetime.timedelta(days=number)


class Receiver:
    """Gets the messages of evening after evening."""

    def __init__(self, rules: Sequence[AlertRule] = RULES) -> None:
        self.rules = rules
        self.known: dict[str, IncidentRecord] = {}
        self.causes: list[Cause] = []
        self.heard: list[IncidentChange] = []

    def evening(self, number: int, values: Sequence[MetricValue]) -> list[IncidentChange]:
        """Evaluate the rules up to a day; the same again must say nothing."""
        for new in (True, False):
            self.causes, changes = evaluate_rules(
                self.rules, values, self.known, day(number), window_days=WINDOW
            )
            assert new or changes == []
            if new:
                heard = changes
            self.known |= {change.record.name: change.record for change in changes}
        self.heard += heard
        return heard

    def evenings(self, numbers: Iterable[int], values: Sequence[MetricValue]) -> None:
        for number in numbers:
            self.evening(number, [value for value in values if value.day <= day(number)])

    @property
    def events(self) -> list[tuple[str, str, int]]:
        """Cause, event and number of the day of each message."""
        return [
            (change.record.name, change.event, (change.record.notified_on - FIRST).days)
            for change in self.heard
        ]


def estimates(
    levels: Sequence[float | None], metric: str = "accuracy", margin: float = 0.03
) -> list[MetricValue]:
    return [
        MetricValue(
            day=day(number),
            metric=metric,
            value=level,
            low=level - margin,
            high=min(level + margin, 1.0),
            n=200,
        )
        for number, level in enumerate(levels)
        if level is not None
    ]


def windows(levels: Sequence[float], metric: str = "accuracy") -> list[MetricValue]:
    """Return the means of trailing windows."""
    means = [
        sum(levels[max(0, end - WINDOW) : end]) / min(end, WINDOW)
        for end in range(1, len(levels) + 1)
    ]
    return estimates(means, f"window_{metric}", margin=0.01)


FALLEN = [0.965] * 20 + [0.715] * 15 + [0.965] * 25


def test_a_fall_overnight_is_one_critical_message_on_its_day_with_its_day():
    receiver = Receiver()
    receiver.evenings(range(18, 60), [*estimates(FALLEN), *windows(FALLEN)])
    assert receiver.events[0] == ("quality", "opened", 20)
    opened = receiver.heard[0]
    assert opened.record.severity == opened.alert.facts["severity"] == "critical"
    assert opened.alert.facts["since"] == str(opened.record.since) == "2026-03-21"
    assert opened.alert.title == (
        "[critical] The model's accuracy fell from 0.965 to 0.715, since 21 March 2026"
    )
    assert [event for _, event, _ in receiver.events] == ["opened", "recovered"]
    assert 35 < receiver.events[1][2] <= 45
    assert "fell from 0.965 to 0.715" in receiver.heard[1].alert.title


def test_a_day_without_an_estimate_has_the_headline_of_the_days_before():
    receiver = Receiver()
    receiver.evenings(range(18, 26), estimates([0.965] * 20 + [0.715] * 3 + [None, None, 0.715]))
    quality = next(cause for cause in receiver.causes if cause.name == "quality")
    alerts = [quality.alert_on(day(number)) for number in (22, 23, 24)]
    fell = "The model's accuracy fell from 0.965 to 0.715"
    assert [alert and alert.headline for alert in alerts] == [fell] * 3
    assert [bool(alert and alert.description) for alert in alerts] == [True, False, False]


def test_the_window_says_nothing_while_it_contains_a_fall_that_was_reported():
    """Its mean is low for two weeks after the recovery, too."""
    window = windows(FALLEN)
    assert any(value.high is not None and value.high < 0.8 for value in window)
    receiver = Receiver()
    receiver.evenings(range(18, 60), [*estimates(FALLEN), *window])
    assert {name for name, _, _ in receiver.events} == {"quality"}
    assert len(receiver.events) == 2
    alone = Receiver()
    alone.evenings(range(18, 60), window)
    assert [event for _, event, _ in alone.events] == ["opened", "recovered"]
    assert alone.events[0][2] > 25


def test_a_fall_that_grows_escalates_the_same_incident():
    levels = [0.965] * 20 + [0.91] * 12 + [0.7] * 8
    receiver = Receiver()
    receiver.evenings(range(18, 40), estimates(levels, margin=0.02))
    (opened, escalated) = receiver.heard
    assert [change.event for change in (opened, escalated)] == ["opened", "escalated"]
    assert [change.record.severity for change in (opened, escalated)] == ["warning", "critical"]
    assert opened.record.name == escalated.record.name == "quality"
    assert escalated.alert.title.startswith("[critical] Worse: The model's accuracy fell from")
    assert escalated.record.since == opened.record.since
    assert escalated.record.opened == opened.record.opened
    assert escalated.record.first_headline == opened.record.headline
    assert set(escalated.record.members) == {"accuracy_fell", "accuracy_fell_far"}


def test_a_fault_that_began_at_noon_is_one_fault():
    receiver = Receiver()
    levels = [0.965] * 20 + [0.87] + [0.7] * 15
    receiver.evenings(range(18, len(levels)), estimates(levels, margin=0.02))
    assert [event for _, event, _ in receiver.events] == ["opened", "escalated"]
    assert [change.record.severity for change in receiver.heard] == ["warning", "critical"]


def test_a_further_fall_in_a_critical_incident_is_its_headline_and_no_message():
    receiver = Receiver()
    levels = [0.965] * 20 + [0.8] * 12 + [0.65] * 15
    receiver.evenings(range(18, len(levels)), estimates(levels))
    assert receiver.events == [("quality", "opened", 20)]
    quality = next(cause for cause in receiver.causes if cause.name == "quality")
    found = [quality.alert_on(day(number)) for number in (30, 40)]
    assert [alert and alert.headline for alert in found] == [
        "The model's accuracy fell from 0.965 to 0.800",
        "The model's accuracy fell from 0.965 to 0.650",
    ]


def test_accuracy_and_accuracy_with_review_are_one_cause():
    receiver = Receiver()
    both = [*estimates(FALLEN), *estimates([accuracy + 0.02 for accuracy in FALLEN], "oc_accuracy")]
    receiver.evenings(range(18, 30), both)
    assert receiver.events == [("quality", "opened", 20)]
    assert "Also: Accuracy with review fell from 0.985 to 0.735." in receiver.heard[0].alert.text


def test_late_labels_that_weaken_a_fall_do_not_withdraw_it():
    """The first evening saw -0.16; all labels say -0.09: a warning, and the same incident."""
    receiver = Receiver()
    for number in range(21):
        levels = [0.965] * 20 + [0.8]
        receiver.evening(number, estimates(levels[: number + 1], margin=0.03))
    revised = [0.965] * 20 + [0.875] * 10
    for number in range(21, 30):
        receiver.evening(number, estimates(revised[: number + 1], margin=0.03))
    assert receiver.events == [("quality", "opened", 20)]


def test_late_labels_that_move_the_change_day_do_not_withdraw_it():
    receiver = Receiver()
    receiver.evenings(range(18, 21), estimates([0.965] * 20 + [0.75]))
    moved = [0.965] * 19 + [0.8, 0.75, 0.75]
    receiver.evening(21, estimates(moved))
    later = [0.965] * 21 + [0.75, 0.75]
    receiver.evening(22, estimates(later))
    assert receiver.events == [("quality", "opened", 20)]
    (cause,) = receiver.causes
    alert = cause.alert_on(day(22))
    assert alert is not None
    assert alert.since == day(21)  # the day's page has the day as it is known now


def test_labels_that_refute_a_fall_withdraw_it():
    receiver = Receiver()
    receiver.evenings(range(18, 21), estimates([0.965] * 20 + [0.75]))
    receiver.evening(21, estimates([0.965] * 22))
    assert [event for _, event, _ in receiver.events] == ["opened", "withdrawn"]


def completion(levels: Sequence[float]) -> list[MetricValue]:
    return [
        MetricValue(day=day(number), metric="completion", value=level, n=200)
        for number, level in enumerate(levels)
    ]


def test_labels_that_come_end_an_incident_of_missing_labels_which_was_true():
    receiver = Receiver()
    receiver.evening(3, completion([1, 1, 0, 0]))
    receiver.evening(4, completion([1, 1, 0.9, 0.9, 0]))
    assert receiver.events == [("queue", "opened", 2), ("queue", "recovered", 4)]
    opened, ended = (change.alert for change in receiver.heard)
    assert opened.title == "[critical] No comment of the day is labelled, since 3 March 2026"
    assert ended.title.startswith("[critical] Recovered: No comment of the day is labelled")
    assert "do not meet the condition" not in ended.text


def test_a_day_that_was_routed_today_is_not_without_labels_yet():
    """Such as one of a backfill, whose comments were written long ago."""
    for routed, missing in (({day(2): 0}, False), ({day(2): 1}, True), ({}, True)):
        _, changes = evaluate_rules(RULES, completion([1, 1, 0]), {}, day(9), routed=routed)
        assert [change.record.rule for change in changes] == ["labels_missing"] * missing


def rejections(states: Sequence[int]) -> list[MetricValue]:
    return [
        MetricValue(day=day(number), metric="checks_rejected", value=float(state), n=500)
        for number, state in enumerate(states)
    ]


def test_the_end_of_a_rejection_names_the_days_that_are_still_not_published():
    receiver = Receiver()
    receiver.evening(3, rejections([0, 1, 1, 1]))
    receiver.evening(4, rejections([0, 1, 0, 1, 0]))  # 3 March was repaired
    _, ended = (change.alert for change in receiver.heard)
    assert ended.title == (
        "[critical] Recovered, but 2 days are not published: "
        "Data validation rejected the day, since 2 March 2026"
    )
    assert ended.text.splitlines()[-1] == (
        "Rejected and not published since: 2 March 2026, 4 March 2026. "
        "Fix the source or the model, then repair each day."
    )


def test_a_repaired_day_is_recovered():
    receiver = Receiver()
    receiver.evening(1, rejections([0, 1]))
    receiver.evening(1, rejections([0, 0]))
    assert [event for _, event, _ in receiver.events] == ["opened", "recovered"]
    assert receiver.heard[-1].alert.title == (
        "[critical] Recovered: Data validation rejected the day, since 2 March 2026"
    )


def test_gaps_and_days_delivered_again_change_nothing_about_an_incident():
    receiver = Receiver()
    levels: list[float | None] = [0.965] * 20 + [0.75] * 3 + [None] * 30 + [0.75] * 60
    receiver.evenings([*range(19, 26), *range(50, 60), *range(100, 113)], estimates(levels))
    assert receiver.events == [("quality", "opened", 20)]
    again = Receiver()
    again.evenings(range(18, 22), estimates([0.965] * 20 + [0.75] * 2))
    assert again.evening(21, estimates([0.965] * 20 + [0.75, 0.77])) == []
    assert again.evening(21, estimates([0.965] * 20 + [0.77, 0.75])) == []


# Grouping of other rules


def drift(
    metric: str, feature: str, size: float, number: int, reference: str = "trailing"
) -> MetricValue:
    return MetricValue(
        day=day(number), metric=metric, feature=feature, reference=reference, value=size,
        low=size - 0.01, high=size + 0.01, n=2000,
    )  # fmt: skip


def test_drift_of_scores_and_flagged_share_is_one_incident():
    values = [
        part
        for number in range(8)
        for bad in [number >= 3]
        for part in (
            drift("psi", "prob", 0.4 if bad else 0.01, number),
            drift("psi", "prob", 0.4 if bad else 0.01, number, "fixed"),
            drift("flagged_share_change", "flagged", 0.1 if bad else 0.0, number),
        )
    ]
    receiver = Receiver()
    receiver.evenings(range(8), values)
    assert receiver.events == [("scores", "opened", 3)]
    message = receiver.heard[0].alert
    assert message.title == (
        "[warning] The scores differ from those of the days before, since 4 March 2026"
    )
    assert "Also: More comments are flagged than on the days before." in message.text
    (alert,) = [found for cause in receiver.causes if (found := cause.alert_on(day(7)))]
    assert alert.rule == "scores_shifted"


def test_a_day_on_which_every_comment_is_flagged_is_critical_at_once():
    """Also the first day, which has no days before it."""
    shared = {"day": day(0), "reference": "fixed", "n": 900}
    values = [
        MetricValue(metric="psi", feature="prob", value=6.3, low=6.1, high=6.5, **shared),
        MetricValue(
            metric="flagged_share_excess", feature="flagged", value=0.91, low=0.9, **shared
        ),
    ]
    receiver = Receiver()
    receiver.evening(0, values)
    assert receiver.events == [("scores", "opened", 0)]
    assert receiver.heard[0].record.severity == "critical"
    assert "The scores hardly resemble" in receiver.heard[0].alert.text


def test_rules_without_a_cause_open_an_incident_for_each_subject():
    receiver = Receiver()
    values = [
        drift("missing_share_change", feature, 0.5, 0) for feature in ("language", "platform")
    ]
    receiver.evenings([0], values)
    assert [name for name, _, _ in receiver.events] == [
        "missing_share_changed[language,trailing]",
        "missing_share_changed[platform,trailing]",
    ]


def test_rules_on_each_group_of_comments_have_an_incident_a_group():
    values = [
        MetricValue(
            day=FIRST, metric=f"group_{metric}_difference", feature=group, value=size,
            low=size - 0.01, high=size + 0.01, n=900,
        )
        for metric, size in (("accuracy", -0.2), ("calibration_error", 0.2))
        for group in ("topic sports", "topic news")
    ]  # fmt: skip
    receiver = Receiver()
    receiver.evening(0, values)
    assert [name for name, _, _ in receiver.events] == [
        "comment_group[topic_sports]",
        "comment_group[topic_news]",
    ]
    assert "comments of topic sports" in receiver.heard[0].alert.title


def test_an_incident_of_a_rule_that_has_a_cause_now_is_handed_over():
    (rule,) = (rule for rule in RULES if rule.name == "accuracy_low")
    receiver = Receiver([rule.model_copy(update={"cause": None})])
    receiver.evenings([20], windows([0.7] * 21))
    receiver.rules = RULES
    receiver.evenings([21], windows([0.7] * 22))
    assert receiver.events == [
        ("accuracy_low", "opened", 0),
        ("quality", "opened", 0),
        ("accuracy_low", "withdrawn", 21),
    ]
    assert "belongs to the incident quality now" in receiver.heard[-1].alert.text


@pytest.mark.simulation
def test_an_incident_does_not_end_and_open_again_from_evening_to_evening():
    """Small falls near the threshold, whose labels come in over two evenings."""
    for seed in range(2):
        rng = np.random.default_rng(seed)
        right = rng.binomial(100, np.where(np.arange(50) < 20, 0.93, 0.87)) / 100
        first_look = rng.binomial(60, right) / 60
        receiver = Receiver()
        for number in range(50):
            known = [*right[:number], first_look[number]]
            receiver.evening(number, estimates(known, margin=0.055))
        events = [(event, number) for _, event, number in receiver.events]
        for (end, at_end), (again, at_start) in itertools.pairwise(events):
            if end in ("recovered", "withdrawn") and again == "opened":
                assert at_start - at_end > 3, (seed, events)
        assert len(events) <= 4, (seed, events)

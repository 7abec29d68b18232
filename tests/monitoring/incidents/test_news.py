"""What happens in an incident that receivers know of: one message, if it is something else."""

import datetime
from dataclasses import replace

import pytest

from modwatch.monitoring.incidents.incidents import Incident, MetricValue, news
from modwatch.monitoring.incidents.rules import load_rules
from monitoring.incidents.test_causes import Receiver, day, drift, estimates, windows

RULES = {rule.name: rule for rule in load_rules()}


def test_a_second_fall_in_a_critical_incident_is_notified_once():
    receiver = Receiver()
    levels = [0.965] * 20 + [0.8] * 12 + [0.65] * 15
    receiver.evenings(range(18, len(levels)), estimates(levels, margin=0.03))
    assert receiver.events == [("quality", "opened", 20), ("quality", "escalated", 33)]
    worse = receiver.heard[1].alert
    assert worse.title == (
        "[critical] Worse: The model's accuracy fell from 0.800 to 0.650, since 2 April 2026"
    )
    assert worse.text.splitlines()[1:3] == [
        "Since 2 April 2026; the incident began on 21 March 2026.",
        "Also: The model's accuracy fell from 0.965 to 0.650.",
    ]
    facts = worse.facts
    assert facts["headline"] == "The model's accuracy fell from 0.965 to 0.650"
    assert (facts["since"], facts["news_since"]) == ("2026-03-21", "2026-04-02")
    assert facts["opened"] == "2026-03-21"
    assert facts["figure"]["change"]["day"] == "2026-04-02"
    assert facts["figure"]["value"] == pytest.approx(-0.15)


def test_a_fall_in_an_incident_of_the_window_is_reported():
    """The window was low, and critical, before anything fell."""
    levels = [0.82] * 30 + [0.6] * 10
    both = [*estimates(levels), *windows(levels, "oc_accuracy")]
    receiver = Receiver()
    receiver.evenings(range(29, len(levels)), both)
    assert [event for _, event, _ in receiver.events] == ["opened", "escalated"]
    opened, worse = (change.alert for change in receiver.heard)
    assert opened.title.startswith("[critical] Accuracy with review is low")
    assert worse.title == (
        "[critical] Worse: The model's accuracy fell from 0.820 to 0.600, since 31 March 2026"
    )


def test_accuracy_with_review_that_falls_two_weeks_later_is_reported():
    receiver = Receiver()
    review = [0.98] * 34 + [0.85] * 6
    fallen = [0.965] * 20 + [0.75] * 20
    receiver.evenings(range(18, 40), [*estimates(fallen), *estimates(review, "oc_accuracy")])
    assert receiver.events == [("quality", "opened", 20), ("quality", "escalated", 34)]
    assert "Worse: Accuracy with review fell" in receiver.heard[1].alert.title


def test_a_fault_that_began_at_noon_is_one_fault():
    receiver = Receiver()
    levels = [0.965] * 20 + [0.87] + [0.7] * 15
    receiver.evenings(range(18, len(levels)), estimates(levels, margin=0.02))
    assert [event for _, event, _ in receiver.events] == ["opened", "escalated"]
    assert [change.record.severity for change in receiver.heard] == ["warning", "critical"]


def scores(psi: list[float], flagged: list[float]) -> list[MetricValue]:
    """Return PSI against the fixed reference, and changes of the flagged share."""
    return [
        part
        for number, (size, change) in enumerate(zip(psi, flagged, strict=True))
        for part in (
            drift("psi", "prob", size, number, "fixed"),
            drift("flagged_share_change", "flagged", change, number),
        )
    ]


def test_more_flags_weeks_after_the_scores_shifted_are_notified_once():
    receiver = Receiver()
    receiver.evenings(range(25), scores([0.01] * 3 + [0.4] * 22, [0.0] * 15 + [0.12] * 10))
    assert receiver.events == [("scores", "opened", 4), ("scores", "escalated", 15)]
    assert receiver.heard[1].alert.title == (
        "[warning] Also: More comments are flagged than on the days before, since 16 March 2026"
    )
    facts = receiver.heard[1].alert.facts
    assert facts["headline"] == "The scores differ from those of their reference"
    members = receiver.heard[1].record.members
    assert set(members) == {"scores_shifted[prob,fixed]", "flagged_more[flagged,trailing]"}
    assert members["flagged_more[flagged,trailing]"]["figure"]["value"] == 0.12


def test_another_platform_that_is_flagged_more_is_notified_once():
    """The rule has an incident already; its value moves by as much again."""
    receiver = Receiver()
    receiver.evenings(range(20), scores([0.01] * 20, [0.0] * 3 + [0.1] * 9 + [0.22] * 8))
    assert receiver.events == [("scores", "opened", 3), ("scores", "escalated", 12)]
    assert receiver.heard[1].alert.title.startswith("[warning] Worse: More comments")


def test_rules_that_see_one_fault_on_different_days_are_no_news():
    receiver = Receiver()
    slow = [0.0] * 3 + [0.01 * number for number in range(1, 18)]
    receiver.evenings(range(20), scores([4 * share for share in slow], slow))
    assert [event for _, event, _ in receiver.events] == ["opened"]
    sudden = Receiver()
    sudden.evenings(range(10), scores([0.01] * 3 + [0.4] * 7, [0.0] * 5 + [0.1] * 5))
    assert sudden.events == [("scores", "opened", 4)]


def test_news_of_a_silenced_evening_are_notified_on_the_next():
    receiver = Receiver()
    receiver.evenings([*range(18, 30), 40], estimates([0.965] * 20 + [0.8] * 12 + [0.65] * 15))
    assert receiver.events == [("quality", "opened", 20), ("quality", "escalated", 40)]


def test_an_end_after_news_names_the_whole_fall():
    receiver = Receiver()
    levels = [0.965] * 20 + [0.8] * 12 + [0.65] * 10 + [0.965] * 15
    receiver.evenings(range(18, len(levels)), estimates(levels, margin=0.03))
    assert [event for _, event, _ in receiver.events] == ["opened", "escalated", "recovered"]
    assert "fell from 0.965 to 0.650" in receiver.heard[-1].alert.title


def test_values_without_an_interval_and_what_is_info_are_no_news():
    values = [drift("psi", "prob", size, number) for number, size in enumerate([0.3, 0.3, 0.9])]
    at = Incident(since=day(0), opened=day(0))
    long_ago = day(0) - datetime.timedelta(days=9)
    rule = RULES["scores_jumped"]
    assert news(rule, values, at, notified_on=long_ago, today=day(2)) is not None
    info = rule.model_copy(update={"severity": "info"})
    assert news(info, values, at, notified_on=long_ago, today=day(2)) is None
    plain = [MetricValue(day=value.day, metric="psi", value=value.value, n=900) for value in values]
    assert news(rule, plain, at, notified_on=long_ago, today=day(2)) is None


def counted(metric: str, values: list[float], **names: str) -> list[MetricValue]:
    """Return values without an interval, a day each."""
    return [
        MetricValue(day=day(number), metric=metric, value=value, n=2000, **names)
        for number, value in enumerate(values)
    ]


def volumes(ratios: list[float]) -> list[MetricValue]:
    """Return volumes of a platform that varies by a factor of 1.6."""
    values = counted("volume_ratio", ratios, feature="comments", reference="trailing")
    return [replace(value, low=value.value / 1.6, high=value.value * 1.6) for value in values]


SHIFTED = [
    drift("psi", "prob", size, at, "fixed") for at, size in enumerate([0.01] * 3 + [0.4] * 40)
]

#: Values, the day of the second fault, and how the message about it begins.
LATER_FAULTS = {
    "the decision log is altered again": (
        counted("log_problems", [0] * 5 + [1] * 30 + [3] * 3),
        (35, "[critical] Worse: The decision log was altered"),
    ),
    "data validation warns of the scores": (
        [*SHIFTED, *counted("score_checks_warned", [0] * 30 + [1] * 13)],
        (31, "[warning] Also: Data validation warned about the scores"),
    ),
    "the queue grows old slowly": (
        [
            *counted("completion", [0.9] * 5 + [0.3] * 50),
            *counted("queue_age_oldest_hours", [24] * 20 + [24 + 3 * n for n in range(35)]),
        ],
        (45, "[warning] Also: Comments have waited in the queue for 99 hours"),
    ),
    "most of the comments that were left are lost": (
        volumes([1.0] * 10 + [0.4] * 30 + [0.03] * 3),
        (40, "[critical] Worse: Few comments: 0.03 times"),
    ),
}


@pytest.mark.parametrize(("values", "expected"), LATER_FAULTS.values(), ids=LATER_FAULTS)
def test_a_long_open_incident_does_not_swallow(values, expected):
    receiver = Receiver()
    last = max(value.day for value in values) - day(0)
    receiver.evenings(range(last.days + 1), values)
    (_, opened, _), (_, escalated, number) = receiver.events
    assert (opened, escalated, number) == ("opened", "escalated", expected[0])
    assert receiver.heard[1].alert.title.startswith(expected[1])


def test_a_rule_that_opens_again_and_again_in_an_incident_is_news_once():
    """The flagged share passes between the bounds whenever it rises."""
    rises = [0.0, 0.03, 0.07, 0.07, 0.03, 0.0, 0.03] * 17
    values = [drift("psi", "prob", 0.4 if at > 2 else 0.01, at, "fixed") for at in range(119)]
    values += [
        drift("flagged_share_change", "flagged", share if at > 20 else 0.0, at)
        for at, share in enumerate(rises)
    ]
    receiver = Receiver()
    receiver.evenings(range(119), values)
    assert [event for _, event, _ in receiver.events] == ["opened", "escalated"]


def test_volumes_that_vary_as_usual_in_an_incident_are_no_news():
    receiver = Receiver()
    receiver.evenings(range(60), volumes([1.0] * 10 + [0.4, 0.3, 0.45, 0.25, 0.35] * 10))
    assert [event for _, event, _ in receiver.events] == ["opened"]

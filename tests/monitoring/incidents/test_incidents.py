"""Series of values to incidents and transitions, first by hand, then as properties."""

import itertools
from collections.abc import Sequence
from datetime import date, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modwatch.monitoring.incidents.incidents import (
    Incident,
    MetricValue,
    Transition,
    incidents,
    merged,
    reconciled_incidents,
    transitions,
    watched,
)
from modwatch.monitoring.incidents.rules import AlertRule

FIRST = date(2026, 1, 1)
NONE = None


def day(number: int) -> date:
    """Return the day on which the value `number`, from 0, was seen."""
    return FIRST + timedelta(days=number)


def rule(**changes: Any) -> AlertRule:
    """Return a rule that opens above 10 and closes at 5."""
    plain = {
        "name": "r", "severity": "warning", "metric": "m", "direction": "above",
        "open": {"bound": 10}, "close": {"bound": 5}, "minimum_n": 100, "look_at": "it",
    }  # fmt: skip
    return AlertRule(**{**plain, **changes})


def series(values: Sequence[float | None], n: int = 100, **more: Any) -> list[MetricValue]:
    """Return one figure a day; None is an insufficient one."""
    return [
        MetricValue(
            day=day(number),
            metric="m",
            value=value,
            low=None if value is None else value - 2,
            high=None if value is None else value + 2,
            n=n,
            status="insufficient" if value is None else "ok",
            **more,
        )
        for number, value in enumerate(values)
    ]


def spans(found: Sequence[Incident]) -> list[tuple[int, int, int | None]]:
    """Return since, opened and recovered as numbers of days."""

    def number(when: date | None) -> int | None:
        return None if when is None else (when - FIRST).days

    return [(number(i.since), number(i.opened), number(i.recovered)) for i in found]  # type: ignore[misc]


@pytest.mark.parametrize(
    ("opens_after", "closes_after", "values", "expected"),
    [
        (1, 1, [], []),
        (1, 1, [1, 10, 10, 9], []),  # the bound itself is not beyond it
        (1, 1, [11], [(0, 0, NONE)]),
        (1, 1, [1, 11, 9, 6, 11, 6], [(1, 1, NONE)]),  # inside the band nothing changes
        (1, 1, [11, 5, 6, 10, 11], [(0, 0, 1), (4, 4, NONE)]),
        (1, 1, [NONE, 9, NONE], []),
        (1, 1, [11, NONE, 5], [(0, 0, 2)]),
        (2, 3, [11, 11], [(0, 1, NONE)]),
        (2, 3, [11, 9, 11, 9, 11], []),
        (2, 3, [11, NONE, 11], [(0, 2, NONE)]),  # passed over, not interrupted
        (2, 3, [9, 11, 12, 4, 4, 4], [(1, 2, 5)]),
        (2, 3, [11, 11, 4, 4, 6, 4, 4, 4], [(0, 1, 7)]),
        (2, 3, [11, 11, 4, NONE, 4, NONE, 4, 11], [(0, 1, 6)]),
    ],
)
def test_so_many_days_open_and_so_many_close(opens_after, closes_after, values, expected):
    patient = patient_rule({"open": opens_after, "close": closes_after})
    assert spans(incidents(patient, series(values))) == expected


def test_below_is_above_upside_down():
    low = rule(direction="below", open={"bound": -10}, close={"bound": -5})
    values = [1, 11, 6, 5, 12]
    upside_down = incidents(low, series([-value for value in values]))
    assert (
        spans(upside_down) == spans(incidents(rule(), series(values))) == [(1, 1, 3), (4, 4, None)]
    )


def test_an_interval_that_reaches_the_bound_or_is_missing_opens_nothing():
    careful = rule(open={"bound": 10, "compare": "low"})
    assert spans(incidents(careful, series([11, 12]))) == []
    assert spans(incidents(careful, series([11, 13]))) == [(1, 1, None)]
    assert incidents(careful, [MetricValue(day=FIRST, metric="m", value=99, n=500)]) == []


def test_few_comments_are_no_evidence_either_way():
    assert incidents(rule(), series([99], n=99)) == []
    standing = [*series([99]), *series([99, 1], n=99)[1:]]
    assert spans(incidents(rule(), standing)) == [(0, 0, None)]


def test_that_nothing_can_be_reported_may_be_an_incident_itself():
    end = {"bound": 0.5, "compare": "insufficient"}
    missing = rule(open={**end, "days": 3}, close=end)
    values = [NONE, NONE, 7, NONE, NONE, NONE, NONE, 7]
    assert spans(incidents(missing, series(values, n=0))) == [(3, 5, 7)]


def test_an_incident_stands_until_the_day_on_which_it_recovers():
    (found,) = incidents(rule(), series([1, 11, 8, 5]))
    assert [found.is_active_on(day(number)) for number in range(4)] == [False, True, True, False]


def test_each_feature_has_a_series_of_its_own():
    def of(feature: str, reference: str, number: int = 0) -> MetricValue:
        return MetricValue(
            day=day(number), metric="m", feature=feature, reference=reference, value=1, n=1
        )

    prob = [of("prob", "fixed", 1), of("prob", "fixed"), of("prob", "trailing")]
    seen = [*prob, of("language", "fixed"), MetricValue(day=FIRST, metric="other", value=1, n=1)]
    every = watched(rule(), seen)
    assert set(every) == {"prob,fixed", "prob,trailing", "language,fixed"}
    assert [figure.day for figure in every["prob,fixed"]] == [day(0), day(1)]
    assert list(watched(rule(feature="prob", reference="fixed"), seen)) == ["prob,fixed"]


# What receivers are notified of, and what late labels change


def changes_since(values: Sequence[float | None], notified: Incident | None) -> list[Transition]:
    days = series(values)
    found = reconciled_incidents(rule(), days, notified)
    return transitions(notified, found, today=day(len(values) - 1))


TOLD = Incident(since=day(1), opened=day(1))


def test_a_repaired_day_that_would_open_nothing_ends_its_incident():
    """Labels may move an estimate to between the bounds; a comparison of days has no labels."""
    for reference, expected in ((None, [TOLD]), ("trailing", [])):
        days = series([1, 8], reference=reference)
        assert spans(reconciled_incidents(rule(), days, TOLD)) == spans(expected)


@pytest.mark.parametrize(
    ("values", "notified", "expected"),
    [
        ([1, 11], None, [("opened", 1)]),
        ([1, 11, 8], TOLD, []),  # still standing: no second message
        ([1, 11, 8, 4], TOLD, [("recovered", 3)]),
        ([1, 8, 8], TOLD, []),  # late labels weaken it: not evidence against it
        ([1, 8, 8, 4], TOLD, [("recovered", 3)]),
        ([1, 5, 8, 8], TOLD, [("withdrawn", 3)]),  # late labels refute it: it never was
        ([1, 8, 11], TOLD, []),  # it began a day later: the same incident
        ([1, 11, 4, 11], TOLD, [("recovered", 2), ("opened", 3)]),
        ([1, 11, 4], None, []),  # over before anybody heard of it
        ([1, None, 8], TOLD, []),  # its evidence is gone, but nothing speaks against it
        ([1, None, 4], TOLD, [("recovered", 2)]),
        ([11, 4, 8], TOLD, [("withdrawn", 2)]),  # what ended before is another one
    ],
)
def test_what_is_reported(values, notified, expected):
    changes = changes_since(values, notified)
    assert [(transition.kind, (transition.day - FIRST).days) for transition in changes] == expected


def test_work_that_was_done_since_is_no_error_of_the_incident():
    (end,) = transitions(TOLD, [], today=day(3), unsupported="recovered")
    assert (end.kind, end.since, end.day) == ("recovered", day(1), day(3))


def test_an_incident_older_than_what_is_looked_at_goes_on_and_ends():
    old = Incident(since=day(-90), opened=day(-89))
    assert changes_since([8, 8], old) == []
    (end,) = changes_since([8, 4], old)
    assert (end.kind, end.since, end.day) == ("recovered", day(-90), day(1))
    assert changes_since([None, None], old) == []


def test_a_rising_severity_is_notified_once_for_the_same_incident():
    notified = Incident(since=day(1), opened=day(1), severity="warning")
    worse = Incident(since=day(1), opened=day(1), severity="critical")
    (escalated,) = transitions(notified, [worse], today=day(4))
    assert (escalated.kind, escalated.since, escalated.severity) == (
        "escalated",
        day(1),
        "critical",
    )
    assert transitions(worse, [worse], today=day(4)) == []
    assert transitions(worse, [notified], today=day(4)) == []  # better is no news


SPANS = st.builds(
    lambda opened, length, severity: Incident(
        since=day(opened),
        opened=day(opened),
        recovered=None if length is None else day(opened + length),
        severity=severity,
    ),
    st.integers(0, 30),
    st.none() | st.integers(1, 10),
    st.sampled_from(["info", "warning", "critical"]),
)


@given(st.lists(SPANS, max_size=12))
def test_merged_incidents_are_active_when_one_of_them_is(spanning):
    joined = merged(spanning)
    for number in range(50):
        active = [incident for incident in spanning if incident.is_active_on(day(number))]
        now = [incident for incident in joined if incident.is_active_on(day(number))]
        assert len(now) <= 1
        assert bool(active) <= bool(now)  # two that meet have no day between them
    ends = [(incident.opened, incident.recovered or date.max) for incident in joined]
    assert all(first[1] < second[0] for first, second in itertools.pairwise(ends))


VALUES = st.lists(st.none() | st.floats(0, 20), max_size=25)
CONDITIONS = st.builds(lambda o, c: {"open": o, "close": c}, st.integers(1, 3), st.integers(1, 3))


def patient_rule(days: dict[str, int]) -> AlertRule:
    return rule(open={"bound": 10, "days": days["open"]}, close={"bound": 5, "days": days["close"]})


@given(VALUES, CONDITIONS, st.data())
def test_insufficient_days_make_no_difference(values, days, data):
    """Days without a figure may be put in anywhere: the same figures open and close."""
    where = data.draw(st.sets(st.integers(0, len(values))))
    mixed: list[float | None] = []
    for number, value in enumerate(values):
        mixed += [None, value] if number in where else [value]

    def moved(seen: list[float | None]) -> list[tuple[float | None, float | None]]:
        """Return the values that opened and closed each incident."""
        known = series(seen)
        by_day = {value.day: value.value for value in known}
        return [
            (by_day[found.opened], by_day[found.recovered] if found.recovered else None)
            for found in incidents(patient_rule(days), known)
        ]

    assert moved(values) == moved(mixed)


class Receiver:
    """Somebody who gets the news day after day, and knows what stands."""

    def __init__(self, watching: AlertRule) -> None:
        self.rule = watching
        self.notified: Incident | None = None
        self.heard: list[str] = []

    def judge(self, values: Sequence[float | None]) -> list[Transition]:
        days = series(values)
        found = reconciled_incidents(self.rule, days, self.notified)
        changes = transitions(self.notified, found, today=day(len(values)))
        for transition in changes:
            self.heard.append(transition.kind)
            opened = transition.kind == "opened"
            self.notified = (
                Incident(since=transition.since, opened=transition.day) if opened else None
            )
        return changes


@given(VALUES, CONDITIONS)
def test_day_by_day_every_incident_is_reported_once(values, days):
    """Also when each day is judged twice, as a task is that is cleared and run again."""
    receiver = Receiver(patient_rule(days))
    for count in range(1, len(values) + 1):
        receiver.judge(values[:count])
        assert receiver.judge(values[:count]) == []
    found = incidents(patient_rule(days), series(values))
    expected = [
        kind for i in found for kind in ("opened", "recovered") if i.recovered or kind == "opened"
    ]
    assert receiver.heard == expected


@given(st.lists(VALUES, min_size=2, max_size=6), CONDITIONS)
def test_whatever_becomes_of_history_nothing_opens_twice(histories, days):
    """What the receivers hear alternates, and what they believe to stand is not contradicted."""
    receiver = Receiver(patient_rule(days))
    for values in histories:
        receiver.judge(values)
        assert receiver.judge(values) == []
        assert receiver.judge([None] * 25) == []  # what is insufficient says nothing
        opened = [kind == "opened" for kind in receiver.heard]
        assert all(opened[0::2])
        assert not any(opened[1::2])
        found = incidents(receiver.rule, series(values))
        if found and found[-1].recovered is None:
            assert receiver.notified is not None

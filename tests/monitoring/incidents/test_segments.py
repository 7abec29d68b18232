"""Where a fall of accuracy is: asked for once, and named in the message."""

import datetime
from dataclasses import replace

import pytest

from modwatch.monitoring.incidents.evaluation import with_segment
from modwatch.monitoring.incidents.messages.alert import Alert
from modwatch.monitoring.incidents.store import IncidentChange, IncidentRecord
from modwatch.statistics.live.group_falls import FallenGroup

FIGURE = {"value": -0.06}
DAY = datetime.date(2026, 3, 4)
APP = FallenGroup(
    name="platform=app", n=310, share=0.2, value=0.67, low=0.6, high=0.73, others=0.953,
    value_before=0.951, others_before=0.96,
)  # fmt: skip


def change(**facts: object) -> IncidentChange:
    known = {"event": "opened", "metric": "accuracy_change", "subject": "", "figure": FIGURE}
    record = IncidentRecord(
        name="quality",
        severity="warning",
        since=datetime.date(2026, 3, 2),
        opened=DAY,
        notified_on=DAY,
        headline="Accuracy fell",
        first_headline="Accuracy fell",
        text="Accuracy fell.",
    )
    alert = Alert(key="quality/1", title="", text="Accuracy fell.", facts=known | facts)
    return IncidentChange(alert=alert, record=record)


def test_the_group_is_named_and_kept(lake):
    asked = []
    named = with_segment(lake, change(), lambda *given: asked.append(given) or APP)
    assert asked == [(datetime.date(2026, 3, 2), DAY, 0.06)]
    assert named.alert.text == named.record.text
    assert named.alert.text == f"Accuracy fell.\nMost of it: {APP.sentence()}."
    assert named.alert.facts["segment"]["name"] == "platform=app"
    assert named.alert.facts["segment"]["sentence"] == named.record.segment == APP.sentence()


def test_other_messages_and_ends_ask_nothing(lake):
    for facts in (
        {"metric": "accuracy"},  # a level
        {"metric": "psi", "subject": "language"},
        {"figure": None},
    ):
        plain = change(**facts)
        assert with_segment(lake, plain, lambda *_: pytest.fail("asked")) == plain
    opened = change(event="recovered")
    ended = replace(opened, record=opened.record.ended_by("recovered", opened.alert, DAY))
    assert with_segment(lake, ended, lambda *_: pytest.fail("asked")) == ended


def test_a_fall_of_all_comments_has_no_group(lake):
    plain = change()
    assert with_segment(lake, plain, lambda *_: None) == plain
    assert with_segment(lake, plain) == plain

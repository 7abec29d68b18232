"""Where a fall of accuracy is: asked for once, and told in the message."""

import datetime
from pathlib import Path

import pytest

from modwatch.data.lake.delta import Lake
from modwatch.monitoring.incidents.segments import with_segment
from modwatch.review.outbox.messages import OutboxMessage
from modwatch.statistics.live.group_falls import FallenGroup

DAY = datetime.date(2026, 3, 4)
APP = FallenGroup(
    name="platform=app",
    n=310,
    comments=1_240,
    share=0.2,
    value=0.67,
    low=0.6,
    high=0.73,
    others=0.953,
    value_before=0.951,
    others_before=0.96,
    excess=-0.274,
    p_holm=1e-9,
)


def message(**facts: object) -> OutboxMessage:
    known = {
        "event": "opened",
        "metric": "accuracy_change",
        "since": "2026-03-02",
        "figure": {"value": -0.06},
    }
    return OutboxMessage(
        topic="incident",
        series="quality",
        sequence=1,
        key="quality/1",
        dt=DAY,
        payload={"text": "Accuracy fell.", "facts": known | facts},
    )


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(root=str(tmp_path))


def test_the_group_is_told_and_kept(lake: Lake) -> None:
    asked = []
    told = with_segment(lake, message(), lambda *each: asked.append(each) or APP)
    assert asked == [(datetime.date(2026, 3, 2), DAY, 0.06)]
    assert told.payload["text"] == f"Accuracy fell.\nMost of it: {APP.sentence()}."
    assert told.payload["facts"]["segment"]["name"] == "platform=app"
    assert told.payload["facts"]["segment"]["sentence"] == APP.sentence()


@pytest.mark.parametrize(
    "facts",
    [
        {"event": "recovered"},
        {"metric": "accuracy"},
        {"metric": "psi", "subject": "language"},
        {"figure": None},
    ],
    ids=["recovered", "a level", "another metric", "no value"],
)
def test_other_messages_ask_nothing(lake: Lake, facts: dict[str, object]) -> None:
    plain = message(**facts)
    assert with_segment(lake, plain, lambda *_: pytest.fail("asked")) == plain


def test_a_fall_of_all_comments_has_no_group(lake: Lake) -> None:
    plain = message()
    assert with_segment(lake, plain, lambda *_: None) == plain
    assert with_segment(lake, plain) == plain

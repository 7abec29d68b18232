"""What people do about incidents, in a real database, and what receivers are notified of."""

import datetime
import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from receivers import Webhook, webhook

from conftest import Registry
from installation import Installation
from modwatch.common.errors import IncidentError
from modwatch.installation.resources import Resources, open_resources
from modwatch.monitoring.incidents.actions import (
    Action,
    accept,
    history,
    open_incidents,
    record,
)
from modwatch.monitoring.incidents.delivery import deliver
from modwatch.pipeline import daily
from monitoring.incidents.test_evaluation import day, judge, measure, put, to

# MLflow 3.17 uses a loader strategy that SQLAlchemy 2.1 deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")

SECRET = "you are all idiots"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Webhook]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with webhook() as running:
        yield running


@pytest.fixture
def resources(
    tmp_path: Path, queue_url: str, unmanned: Registry, server: Webhook
) -> Iterator[Resources]:
    """An installation with the default rules, whose alerts go to `server`."""
    home = Installation(
        values={
            "home": tmp_path / "home",
            "source": {"kind": "community"},
            "database_url": queue_url,
            "mlflow_url": unmanned.copy(tmp_path / "mlflow"),
            **to(server),
        }
    )
    with open_resources(home.settings) as opened:
        yield opened


def fall(resources: Resources, last: int = 22, low: float = 0.7) -> None:
    """Measure days, low from the 20th on, and notify receivers of the incident."""
    for number in range(last + 1):
        measure(resources, number, 0.96 if number < 20 else low)
    judge(resources, last)


def sent(server: Webhook) -> list[str]:
    return [request.json["event"] for request in server.requests]


def level(resources: Resources, incident: str, *, last: datetime.date, **given: Any) -> None:
    """Accept a level; days are measured from number 0 on."""
    given["measured"] = [day(0), last]
    accept(resources.database, resources.alert_channels, incident, person="lea", **given)


def accepted(resources: Resources, last: int, note: str = "new platform") -> None:
    level(resources, "quality", note=note, last=day(last))
    deliver(resources.database, resources.alert_channels)


def test_an_incident_has_a_person_and_a_history(resources: Resources, server: Webhook) -> None:
    fall(resources)
    for action in (
        Action(incident="quality", action="acknowledge", person="lea"),
        Action(incident="quality", action="assign", person="lea", assignee="tim"),
        Action(incident="quality", action="comment", person="tim", note="labels look right"),
    ):
        record(resources.database, action)
    (incident,) = open_incidents(resources.database)
    assert (incident.name, incident.severity) == ("quality", "critical")
    assert (incident.acknowledged_by, incident.assignee) == ("lea", "tim")
    assert incident.since == day(20)
    assert [
        (entry.what, entry.text) for entry in history(resources.database, "quality").entries
    ] == [
        ("opened", server.requests[0].json["title"]),
        ("acknowledge", "by lea"),
        ("assign", "by lea, to tim"),
        ("comment", "by tim: labels look right"),
    ]
    assert history(resources.database, "scores").entries == []
    assert sent(server) == ["opened"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"incident": "scores"}, "no incident 'scores' is active"),
        ({"person": " "}, "person must have 1 to 80"),
        ({"person": "x" * 81}, "person must have 1 to 80"),
        ({"note": "two\nlines"}, "note must have"),
        ({"action": "comment", "note": ""}, "note must have"),
        ({"action": "assign", "assignee": "\x1b[2J"}, "assignee must have"),
    ],
)
def test_bad_input_is_refused_and_stores_nothing(
    resources: Resources, changes: dict[str, str], message: str
) -> None:
    fall(resources)
    plain = {"incident": "quality", "action": "acknowledge", "person": "lea"}
    with pytest.raises(IncidentError, match=message):
        record(resources.database, Action(**{**plain, **changes}))  # type: ignore[arg-type]
    assert [entry.what for entry in history(resources.database).entries] == ["opened"]


def test_a_silenced_incident_is_reported_of_when_the_silence_is_over(
    resources: Resources, server: Webhook
) -> None:
    fall(resources)
    today = datetime.datetime.now(datetime.UTC).date()
    for until in (today, today + datetime.timedelta(days=3)):
        record(
            resources.database,
            Action(incident="quality", action="silence", person="lea", until=until),
        )
    for number in range(23, 41):
        measure(resources, number, 0.96)
    assert judge(resources, 40) == (0, 0)
    (incident,) = open_incidents(resources.database)
    assert incident.silent_until == today + datetime.timedelta(days=3)
    over = today - datetime.timedelta(days=1)
    record(
        resources.database, Action(incident="quality", action="silence", person="lea", until=over)
    )
    assert judge(resources, 40) == (1, 1)
    assert sent(server) == ["opened", "recovered"]
    assert open_incidents(resources.database) == []


def test_an_accepted_level_ends_the_incident_and_is_the_reference(
    resources: Resources, server: Webhook
) -> None:
    fall(resources)
    accepted(resources, 22)
    assert sent(server) == ["opened", "accepted"]
    opened, ended = (request.json["links"] for request in server.requests)
    assert ended == opened
    assert {"Modwatch", "MLflow", "validation"} < set(ended)
    assert judge(resources, 22) == (0, 0)  # the same evening evaluated again
    for number in range(23, 40):
        measure(resources, number, 0.7)
        assert judge(resources, number) == (0, 0)
    measure(resources, 40, 0.45)
    assert judge(resources, 40) == (1, 1)
    assert "fell from 0.700 to 0.450" in server.requests[-1].json["title"]
    assert server.requests[-1].json["since"] == str(day(40))


def test_an_acceptance_names_who_and_when_and_keeps_the_note_inside(
    resources: Resources, server: Webhook, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    fall(resources)
    accepted(resources, 22, note=SECRET)
    payload = server.requests[-1].json
    assert payload["title"] == (
        "[critical] Accepted as the new normal: The model's accuracy fell from 0.960 to 0.700"
    )
    assert payload["person"] == "lea"
    assert SECRET not in str([request.body for request in server.requests])
    assert SECRET not in caplog.text
    last = history(resources.database).entries[-2:]
    assert [entry.what for entry in last] == ["accept", "accepted"]
    assert last[0].text == f"by lea, level since {day(20)}, from {day(23)}: {SECRET}"
    with pytest.raises(IncidentError, match="no incident 'quality' is active"):
        accepted(resources, 22)


def test_a_level_from_the_future_or_without_a_reason_is_refused(resources: Resources) -> None:
    fall(resources)
    with pytest.raises(IncidentError, match="note must have"):
        accepted(resources, 22, note="")
    with pytest.raises(IncidentError, match="is later than"):
        level(resources, "quality", note="why", last=day(22), level_since=day(23))
    assert [incident.name for incident in open_incidents(resources.database)] == ["quality"]


@pytest.mark.parametrize(
    ("first", "since", "reason"),
    [
        (0, -1, f"is before {day(0)}, the first measured day; name {day(0)} or a later day"),
        (-50, -12, f"more than 31 days before the incident began on {day(20)}; name {day(-11)}"),
    ],
)
def test_a_level_long_before_the_incident_is_refused(
    first: int, since: int, reason: str, resources: Resources
) -> None:
    fall(resources)
    given = {"person": "lea", "note": "why", "measured": [day(first), day(22)]}
    with pytest.raises(IncidentError, match=re.escape(reason)):
        accept(resources.database, (), "quality", **given, level_since=day(since))
    accept(resources.database, (), "quality", **given, level_since=day(since + 1))
    assert open_incidents(resources.database) == []


def test_an_accepted_shift_of_scores_is_reported_of_again_after_a_good_day(
    resources: Resources, server: Webhook
) -> None:
    """A rule on a level has no reference to move: it waits for a good value."""
    for number in range(2):
        put(resources, number, 0.5)
    judge(resources, 1)
    assert sent(server) == ["opened"]
    level(resources, "scores", note="new topic", last=day(1))
    for number in range(2, 6):
        put(resources, number, 0.5)
        assert daily_new(resources, number) == 0
    for number in (6, 7):
        put(resources, number, 0.0)
    for number in (8, 9):
        put(resources, number, 0.5)
    assert daily_new(resources, 9) == 1


def daily_new(resources: Resources, number: int) -> int:
    return daily.raise_alerts(resources, day(number))

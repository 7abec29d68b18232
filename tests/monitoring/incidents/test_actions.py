"""What people do about incidents, in a real database, and what receivers are notified of."""

import datetime
import logging
import re
from typing import Any

import pytest
from receivers import Webhook

from modwatch.common.errors import IncidentError
from modwatch.installation.resources import Resources
from modwatch.monitoring.incidents.actions import (
    Action,
    accept,
    history,
    open_incidents,
    record,
)
from modwatch.monitoring.incidents.delivery import deliver
from modwatch.pipeline import daily
from monitoring.incidents.evenings import day, judge, measure, put

# MLflow 3.17 uses a loader strategy that SQLAlchemy 2.1 deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")

SECRET = "you are all idiots"


def fall(by_defaults: Resources, last: int = 22, low: float = 0.7) -> None:
    """Measure days, low from the 20th on, and notify receivers of the incident."""
    for number in range(last + 1):
        measure(by_defaults, number, 0.96 if number < 20 else low)
    judge(by_defaults, last)


def sent(server: Webhook) -> list[str]:
    return [request.json["event"] for request in server.requests]


def level(by_defaults: Resources, incident: str, *, last: datetime.date, **given: Any) -> None:
    """Accept a level; days are measured from number 0 on."""
    given["measured"] = [day(0), last]
    accept(by_defaults.database, by_defaults.alert_channels, incident, person="lea", **given)


def accepted(by_defaults: Resources, last: int, note: str = "new platform") -> None:
    level(by_defaults, "quality", note=note, last=day(last))
    deliver(by_defaults.database, by_defaults.alert_channels)


def test_an_incident_has_a_person_and_a_history(by_defaults, server):
    fall(by_defaults)
    for person, note in (("tim", ""), ("lea", "labels look right")):
        action = Action(incident="quality", action="acknowledge", person=person, note=note)
        record(by_defaults.database, action)
    (incident,) = open_incidents(by_defaults.database)
    assert (incident.name, incident.severity) == ("quality", "critical")
    assert incident.acknowledged_by == "lea"
    assert incident.since == day(20)
    assert [
        (entry.what, entry.text) for entry in history(by_defaults.database, "quality").entries
    ] == [
        ("opened", server.requests[0].json["title"]),
        ("acknowledge", "by tim"),
        ("acknowledge", "by lea: labels look right"),
    ]
    assert history(by_defaults.database, "scores").entries == []
    assert sent(server) == ["opened"]


def test_bad_input_is_refused_and_stores_nothing(by_defaults):
    fall(by_defaults)
    plain = {"incident": "quality", "action": "acknowledge", "person": "lea"}
    for changes, message in (
        ({"incident": "scores"}, "no incident 'scores' is active"),
        ({"person": " "}, "person must have 1 to 80"),
        ({"person": "x" * 81}, "person must have 1 to 80"),
        ({"note": "two\nlines"}, "note must have"),
        ({"person": "\x1b[2J"}, "person must have"),
    ):
        with pytest.raises(IncidentError, match=message):
            record(by_defaults.database, Action(**{**plain, **changes}))  # type: ignore[arg-type]
    assert [entry.what for entry in history(by_defaults.database).entries] == ["opened"]


def test_a_silenced_incident_is_reported_of_when_the_silence_is_over(by_defaults, server):
    fall(by_defaults)
    today = datetime.datetime.now(datetime.UTC).date()
    silence = {"incident": "quality", "action": "silence", "person": "lea"}
    for until in (today, today + datetime.timedelta(days=3)):
        record(by_defaults.database, Action(**silence, until=until))
    for number in range(23, 41):
        measure(by_defaults, number, 0.96)
    assert judge(by_defaults, 40) == (0, 0)
    (incident,) = open_incidents(by_defaults.database)
    assert incident.silent_until == today + datetime.timedelta(days=3)
    over = today - datetime.timedelta(days=1)
    record(by_defaults.database, Action(**silence, until=over))
    assert judge(by_defaults, 40) == (1, 1)
    assert sent(server) == ["opened", "recovered"]
    assert open_incidents(by_defaults.database) == []


def test_an_accepted_level_ends_the_incident_and_is_the_reference(by_defaults, server):
    fall(by_defaults)
    accepted(by_defaults, 22)
    assert sent(server) == ["opened", "accepted"]
    opened, ended = (request.json["links"] for request in server.requests)
    assert ended == opened
    assert {"Modwatch", "MLflow", "validation"} < set(ended)
    assert judge(by_defaults, 22) == (0, 0)  # the same evening evaluated again
    for number in range(23, 40):
        measure(by_defaults, number, 0.7)
        assert judge(by_defaults, number) == (0, 0)
    measure(by_defaults, 40, 0.45)
    assert judge(by_defaults, 40) == (1, 1)
    assert "fell from 0.700 to 0.450" in server.requests[-1].json["title"]
    assert server.requests[-1].json["since"] == str(day(40))


def test_an_acceptance_names_who_and_when_and_keeps_the_note_inside(by_defaults, server, caplog):
    caplog.set_level(logging.DEBUG)
    fall(by_defaults)
    accepted(by_defaults, 22, note=SECRET)
    payload = server.requests[-1].json
    assert payload["title"] == (
        "[critical] Accepted as the new normal: The model's accuracy fell from 0.960 to 0.700"
    )
    assert payload["person"] == "lea"
    assert SECRET not in str([request.body for request in server.requests])
    assert SECRET not in caplog.text
    last = history(by_defaults.database).entries[-2:]
    assert [entry.what for entry in last] == ["accept", "accepted"]
    assert last[0].text == f"by lea, level since {day(20)}, from {day(23)}: {SECRET}"
    with pytest.raises(IncidentError, match="no incident 'quality' is active"):
        accepted(by_defaults, 22)


def test_a_level_that_is_no_reference_is_refused(by_defaults):
    """From the future, without a reason, before the days or long before the incident."""
    fall(by_defaults)
    with pytest.raises(IncidentError, match="note must have"):
        accepted(by_defaults, 22, note="")
    with pytest.raises(IncidentError, match="is later than"):
        level(by_defaults, "quality", note="why", last=day(22), level_since=day(23))
    for first, since, reason in (
        (0, -1, f"is before {day(0)}, the first measured day; name {day(0)} or a later day"),
        (-50, -12, f"more than 31 days before the incident began on {day(20)}; name {day(-11)}"),
    ):
        given = {"person": "lea", "note": "why", "measured": [day(first), day(22)]}
        with pytest.raises(IncidentError, match=re.escape(reason)):
            accept(by_defaults.database, (), "quality", **given, level_since=day(since))
    assert [incident.name for incident in open_incidents(by_defaults.database)] == ["quality"]
    accept(by_defaults.database, (), "quality", **given, level_since=day(-11))
    assert open_incidents(by_defaults.database) == []


def test_an_accepted_shift_of_scores_is_reported_of_again_after_a_good_day(by_defaults, server):
    """A rule on a level has no reference to move: it waits for a good value."""
    for number in range(2):
        put(by_defaults, number, 0.5)
    judge(by_defaults, 1)
    assert sent(server) == ["opened"]
    level(by_defaults, "scores", note="new topic", last=day(1))
    for number in range(2, 6):
        put(by_defaults, number, 0.5)
        assert daily.raise_alerts(by_defaults, day(number)) == 0
    for number in (6, 7):
        put(by_defaults, number, 0.0)
    for number in (8, 9):
        put(by_defaults, number, 0.5)
    assert daily.raise_alerts(by_defaults, day(9)) == 1

"""Incidents by command line."""

import datetime
import re

import pytest
from estimates import put_estimates

from modwatch.cli.main import main
from modwatch.common.errors import IncidentError
from modwatch.installation.resources import open_resources
from modwatch.monitoring.incidents.actions import check_silence
from modwatch.pipeline import daily

# MLflow 3.17 uses a loader strategy that SQLAlchemy 2.1 deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")

FIRST = datetime.date(2026, 3, 1)
LAST = FIRST + datetime.timedelta(days=22)
TITLE = "The model's accuracy fell from 0.960 to 0.700"


def accuracy(value: float, **ends: float) -> dict[str, object]:
    return {"metric": "accuracy", "value": value, **ends, "n": 200, "status": "ok"}


@pytest.fixture
def home(install, monkeypatch):
    """An installation whose accuracy fell on its 21st day."""
    made = install()
    for name, value in made.env.items():
        monkeypatch.setenv(name, value)
    with open_resources() as resources:
        for number in range(23):
            value = 0.96 if number < 20 else 0.7
            ends = {"low": value - 0.05, "high": min(value + 0.04, 1.0)}
            day = FIRST + datetime.timedelta(days=number)
            put_estimates(resources.lake, day, accuracy(value, **ends))
        daily.raise_alerts(resources, LAST)
    return made


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    status = main(["alerts", *words])
    printed = capsys.readouterr()
    return status, printed.out, printed.err


def test_an_incident_from_its_opening_to_its_acceptance(home, capsys):
    assert run(capsys, "list")[1] == f"1 quality: [critical] {TITLE}, since 2026-03-21\n"
    assert run(capsys, "acknowledge", "1", "--by", "tim", "--note", "new forum")[0] == 0
    soon = str(datetime.datetime.now(datetime.UTC).date() + datetime.timedelta(days=60))
    assert run(capsys, "silence", "quality", "--by", "lea", "--until", soon)[0] == 0
    assert run(capsys, "list")[1].rstrip().split("; ")[1:] == [
        *("acknowledged by tim", f"silent until {soon}"),
    ]
    assert run(capsys, "accept", "quality", "--by", "lea", "--note", "it stays")[0] == 0
    assert run(capsys, "list")[1] == "no incident is active\n"
    lines = run(capsys, "history", "quality")[1].splitlines()
    assert all(re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC  quality  ", line) for line in lines)
    assert [line.split("  ")[2] for line in lines] == [
        *("opened", "acknowledge", "silence", "accept", "accepted"),
    ]
    assert lines[1].endswith("by tim: new forum")
    assert lines[3].endswith("by lea, level since 2026-03-21, from 2026-03-24: it stays")


def test_lists_end_at_a_limit_and_count_the_rest(home, capsys, monkeypatch):
    monkeypatch.setenv("MODWATCH_ALERT_MEASURED_BY", "0")
    assert run(capsys, "check-heartbeat")[0] == 1
    for number in range(3):
        run(capsys, "acknowledge", "quality", "--by", "lea", "--note", f"note {number}")
    whole = run(capsys, "list")[1].splitlines()
    assert [line.partition(":")[0] for line in whole] == ["1 quality", "2 heartbeat"]
    assert run(capsys, "list", "--limit", "2")[1].splitlines() == whole
    assert run(capsys, "list", "--limit", "1")[1].splitlines() == [
        whole[0],
        "1 more; --limit 2 prints all",
    ]
    lines = run(capsys, "history")[1].splitlines()
    assert len(lines) == 5
    assert run(capsys, "history", "--limit", "5")[1].splitlines() == lines
    assert run(capsys, "history", "--limit", "2")[1].splitlines() == [
        "3 earlier; --limit 5 prints all",
        *lines[-2:],
    ]
    for words in (("list", "--limit", "0"), ("history", "--limit", "few")):
        with pytest.raises(SystemExit, match="2"):
            main(["alerts", *words])


def test_the_list_says_what_the_newest_day_says_and_what_was_reported_at_first(home, capsys):
    with open_resources() as resources:
        for number in range(1, 9):
            day = LAST + datetime.timedelta(days=number)
            put_estimates(resources.lake, day, accuracy(0.8, low=0.75, high=0.84))
            daily.raise_alerts(resources, day)
    assert run(capsys, "list")[1] == (
        "1 quality: [critical] The model's accuracy fell from 0.960 to 0.772, since 2026-03-21; "
        f"at first: {TITLE}\n"
    )


def test_a_second_acknowledgement_names_the_first_and_both_are_kept(home, capsys):
    assert run(capsys, "acknowledge", "quality", "--by", "lea") == (0, "", "")
    assert run(capsys, "acknowledge", "quality", "--by", "tim")[:2] == (
        0,
        "already acknowledged by lea; `modwatch alerts history` has both\n",
    )
    lines = run(capsys, "history", "quality")[1].splitlines()
    assert [line.split("  ")[-1] for line in lines[1:3]] == ["by lea", "by tim"]


def test_an_empty_history_says_so(install, monkeypatch, capsys):
    for name, value in install().env.items():
        monkeypatch.setenv(name, value)
    message = "no message or action is stored\n"
    assert run(capsys, "history") == (0, message, "")


def test_a_silence_lasts_ninety_days_at_most():
    today = datetime.date(2026, 1, 1)
    check_silence(datetime.date(2026, 4, 1), today)
    check_silence(datetime.date(2025, 1, 1), today)  # ends a silence
    for until in (datetime.date(2026, 4, 2), datetime.date.max):
        with pytest.raises(IncidentError, match="90 days ahead; silence until 2026-04-01 at most"):
            check_silence(until, today)


def test_an_unknown_incident_is_one_sentence(home, capsys):
    status, out, err = run(capsys, "acknowledge", "qualty", "--by", "lea")
    assert (status, out) == (1, "")
    assert err == (
        "modwatch: no incident 'qualty' is active; `modwatch alerts list` names those that are\n"
    )
    assert run(capsys, "history", "qualty")[0] == 1
    status, out, err = run(capsys, "silence", "quality", "--by", "lea", "--until", "9999-12-31")
    assert (status, out) == (1, "")
    assert "is more than 90 days ahead" in err


def test_the_status_says_whether_the_due_day_is_measured(home, capsys, monkeypatch):
    monkeypatch.setenv("MODWATCH_ALERT_MEASURED_BY", "0")
    status, out, _ = run(capsys, "check-heartbeat")
    assert status == 1
    assert out.endswith("is not measured; the last measured day: 2026-03-23\n")
    yesterday = datetime.datetime.now(datetime.UTC).date() - datetime.timedelta(days=1)
    with open_resources() as resources:
        put_estimates(resources.lake, yesterday, accuracy(0.7, low=0.65, high=0.74))
    assert run(capsys, "check-heartbeat") == (0, f"{yesterday} is measured\n", "")

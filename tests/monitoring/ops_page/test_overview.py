"""The heading of the page: the worst that is open, then the newest day, and how old it is."""

import datetime
from collections.abc import Sequence
from dataclasses import replace

import pytest

from modwatch.common.addresses import Site
from modwatch.monitoring.incidents.actions import OpenIncident
from modwatch.monitoring.ops_page.page import render_overview, worst_open
from modwatch.monitoring.publishing.days import Day

DAY = datetime.date(2026, 10, 20)
NEXT = datetime.datetime(2026, 10, 21, 9, tzinfo=datetime.UTC)
LATER = datetime.datetime(2026, 11, 25, 9, tzinfo=datetime.UTC)


def incident(severity: str, since: int = 20) -> OpenIncident:
    first = datetime.date(2026, 10, since)
    return OpenIncident(
        number=since,
        name=f"{severity}{since}",
        headline="h",
        severity=severity,
        since=first,
        opened=first,
    )


def page(
    incidents: Sequence[OpenIncident] | None, *, days: bool | None = True, now: datetime.datetime
) -> str:
    """Return the page of a normal day; `days` None: not known, False: none."""
    return render_overview(
        week=None if days is None else [Day(day=DAY, checks="passed")] * days,
        incidents=incidents,
        queue=([], [], 0),
        audit=None,
        audit_unknown=days is None,
        site=Site(mlflow_url="http://m", console_url="http://c", airflow_url="http://a"),
        problems=[],
        now=now,
    )


def parts(text: str) -> tuple[str, str, str]:
    """Return title, heading, and what is below up to the incidents."""
    title = text.partition("<title>")[2].partition("</title>")[0]
    heading, _, rest = text.partition("<h1>")[2].partition("</h1>")
    return title, heading, rest.partition("<h2>")[0]


def test_the_worst_open_incidents_are_counted_from_the_oldest():
    known = [incident("critical", 21), incident("critical", 20), incident("warning", 3)]
    assert worst_open(known) == (
        "critical",
        "2 critical incidents are open, since 2026-10-20",
    )
    assert worst_open([incident("warning", 3)]) == (
        "warning",
        "1 warning incident is open, since 2026-10-03",
    )
    assert worst_open([incident("info")]) is None


@pytest.mark.parametrize(("severity", "mark"), [("critical", "bad"), ("warning", "warn")])
def test_a_normal_day_is_not_green_while_an_incident_is_open(severity, mark):
    title, heading, below = parts(page([incident(severity)], now=LATER))
    sentence = f"1 {severity} incident is open, since 2026-10-20"
    assert title == f"Modwatch: {sentence}"
    assert heading == f'<span class="{mark}">{sentence}</span>'
    assert 'The newest day is 2026-10-20: <span class="">normal</span>' in below
    assert '<span class="warn">36 days old</span>' in below


def test_a_day_before_today_without_incidents_is_green_and_an_older_one_is_not():
    title, heading, below = parts(page([incident("info")], now=NEXT))
    assert title == "Modwatch: normal"
    assert heading == '2026-10-20: <span class="good">normal</span>'
    assert "days old" not in below
    old = parts(page([], now=LATER))[1]
    assert 'class="good"' not in old
    assert "36 days old" in old


def test_nothing_is_green_while_incidents_are_not_known():
    title, heading, below = parts(page(None, now=NEXT))
    assert title == "Modwatch: not known"
    assert "Not known whether incidents are open" in heading
    assert '<span class="">normal</span>' in below


def test_an_incident_is_shown_as_it_is_now_and_as_it_was_reported_at_first():
    fallen = replace(incident("critical"), first_headline="fell to 0.777", headline="fell to 0.859")
    shown = page([replace(fallen, newest_value="0.859 (0.824 to 0.890)", evaluated=DAY)], now=NEXT)
    assert "fell to 0.859<br><small>At first: fell to 0.777</small>" in shown
    assert "<p>2026-10-20: 0.859 (0.824 to 0.890).</p>" in shown
    same = page([replace(fallen, first_headline="fell to 0.859")], now=NEXT)
    assert "At first" not in same


def test_without_a_day_the_heading_says_so():
    assert parts(page([], days=False, now=NEXT))[1] == "No day is published yet"
    assert "Not known whether the newest day is normal" in parts(page([], days=None, now=NEXT))[1]
    below = parts(page([incident("critical")], days=False, now=NEXT))[2]
    assert "No day is published yet." in below

"""The tasks of `monitor_disagreement`: which days, which path."""

import datetime
from contextlib import nullcontext
from itertools import pairwise

import pytest

from modwatch.pipeline import opinions as path
from modwatch.pipeline.airflow import opinions
from modwatch.pipeline.airflow.opinions import (
    FORM,
    collect_annotations,
    publish_opinions,
    raise_alerts,
)

MONDAY = datetime.datetime(2026, 1, 12, 7, tzinfo=datetime.UTC)


@pytest.fixture
def called(monkeypatch):
    """Return what the tasks call, in place of calling it."""
    calls = []
    for name in ("collect_annotations", "publish_opinions", "publish_file", "raise_alerts"):
        monkeypatch.setattr(path, name, lambda *given, name=name: calls.append((name, *given[1:])))
    monkeypatch.setattr("modwatch.installation.resources.open_resources", nullcontext)
    return calls


@pytest.mark.parametrize(
    ("form", "moment", "last"),
    [
        ({}, MONDAY, datetime.date(2026, 1, 11)),
        ({}, MONDAY + datetime.timedelta(days=3), datetime.date(2026, 1, 11)),
        ({}, MONDAY + datetime.timedelta(days=6), datetime.date(2026, 1, 11)),
        ({"last": "2025-12-28"}, MONDAY, datetime.date(2025, 12, 28)),
    ],
)
def test_a_report_ends_with_the_sunday_before_or_the_day_of_the_form(form, moment, last):
    params = {name: param.value for name, param in FORM.items()} | form
    assert opinions._last(params, moment) == last


def test_four_weeks_of_groups_follow_each_other_without_overlap():
    days = [datetime.date(2026, 1, 1) + datetime.timedelta(days=number) for number in range(400)]
    ends = [day for day in days if path.ends_group_weeks(day)]
    gaps = {(after - before).days for before, after in pairwise(ends)}
    assert gaps == {7 * path.GROUP_WEEKS}
    assert {day.isoweekday() for day in ends} == {7}


def test_a_file_takes_the_place_of_the_queue(called):
    params = {"last": None, "file": "/data/mine.csv", "groups": ["country"]}
    assert collect_annotations.function(params=params, data_interval_end=MONDAY) == 0
    publish_opinions.function(params=params, data_interval_end=MONDAY)
    assert raise_alerts.function(params=params, data_interval_end=MONDAY) == 0
    ((name, file, groups),) = called
    assert (name, str(file), groups) == ("publish_file", "/data/mine.csv", ["country"])
    called.clear()
    params = {"last": None, "file": None, "groups": []}
    collect_annotations.function(params=params, data_interval_end=MONDAY)
    publish_opinions.function(params=params, data_interval_end=MONDAY)
    raise_alerts.function(params=params, data_interval_end=MONDAY)
    sunday = datetime.date(2026, 1, 11)
    assert called == [
        (name, sunday) for name in ("collect_annotations", "publish_opinions", "raise_alerts")
    ]

"""The tasks of `monitor_disagreement`: which days, which path."""

import datetime
from contextlib import nullcontext
from itertools import pairwise

import pytest

from modwatch.pipeline import opinions as path
from modwatch.pipeline.airflow import opinions
from modwatch.pipeline.airflow.opinions import FORM

MONDAY = datetime.datetime(2026, 1, 12, 7, tzinfo=datetime.UTC)


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


def test_a_file_takes_the_place_of_the_queue(monkeypatch):
    called = []
    monkeypatch.setattr("modwatch.installation.resources.open_resources", nullcontext)
    monkeypatch.setattr(path, "publish_file", lambda _, *given: called.append(given))

    def step(_, day):
        called.append(day)
        return 7

    of_queue, always = opinions._task(step), opinions._task(step, None)
    form = {"last": None, "file": "/data/mine.csv", "groups": ["country"]}
    assert of_queue.function(params=form, data_interval_end=MONDAY) == 0
    assert called == []
    opinions.publish_opinions.function(params=form, data_interval_end=MONDAY)
    ((file, groups),) = called
    assert (str(file), groups) == ("/data/mine.csv", ["country"])
    called.clear()
    assert always.function(params=form, data_interval_end=MONDAY) == 7
    form = {"last": None, "file": None, "groups": []}
    assert of_queue.function(params=form, data_interval_end=MONDAY) == 7
    assert called == [datetime.date(2026, 1, 11)] * 2

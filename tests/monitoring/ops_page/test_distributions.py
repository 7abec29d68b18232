"""The page that shows a day next to the days before."""

import datetime

import numpy as np
from lake_days import put_comments, put_profile, put_scores

from modwatch.data.lake.delta import Lake
from modwatch.monitoring.measurements.references import ReferencePlan
from modwatch.monitoring.ops_page.distributions import distribution_page, distributions

FIRST = datetime.date(2026, 1, 5)
PLAN = ReferencePlan(rules=[], trailing_days=14, fixed_days=14)
HOSTILE = "<script>alert(1)</script>"


def put(lake: Lake, number: int, prob: float, **columns: object) -> datetime.date:
    day = FIRST + datetime.timedelta(days=number)
    put_comments(lake, day, 300, text="a private text", **columns)
    put_scores(lake, day, np.full(300, prob, np.float32))
    put_profile(lake, day)
    return day


def test_scores_and_mixes_are_shown_before_and_now(lake, checks):
    for number in range(4):
        put(lake, number, 0.12, language="de", platform="forum")
    day = put(lake, 4, 0.93, language="fr", platform=["forum"] * 150 + [HOSTILE] * 150)
    found = {one.feature: one for one in distributions(lake, checks, day, plan=PLAN)}
    assert found["score"].rows[2] == ("0.10 to 0.15", 1.0, 0.0)
    assert found["score"].rows[18] == ("0.90 to 0.95", 0.0, 1.0)
    assert {name: rest for name, *rest in found["language"].rows} == {
        "de": [1.0, 0.0],
        "fr": [0.0, 1.0],
    }
    assert (found["platform"].before_total, found["platform"].total) == (1_200, 300)
    page = distribution_page(lake, checks, day, plan=PLAN, console_url="http://console/")
    assert page is not None
    assert "http://console/search?day=2026-01-09" in page
    assert "<script>" not in page
    assert "private" not in page


def test_without_a_day_or_days_before_there_is_nothing(lake, checks):
    assert [*distributions(lake, checks, FIRST, plan=PLAN)] == []
    day = put(lake, 0, 0.12)
    assert distribution_page(lake, checks, day, plan=PLAN, console_url="http://console") is None


def test_many_categories_are_cut(lake, checks):
    names = [f"platform {number % 60}" for number in range(300)]
    for number in range(4):
        day = put(lake, number, 0.5, platform=names)
    found = {one.feature: one for one in distributions(lake, checks, day, plan=PLAN)}
    assert len(found["platform"].rows) <= 15

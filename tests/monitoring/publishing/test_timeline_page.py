"""The timeline's page: what is estimated has its interval, and no line joins days."""

import re
from dataclasses import replace
from datetime import date, timedelta
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from modwatch.common.mlflow_client import connect, experiment_id, runs_tagged
from modwatch.monitoring.incidents.messages.incidents import ActiveAlert
from modwatch.monitoring.incidents.rules import load_rules
from modwatch.monitoring.publishing.days import Day, KeyFigure
from modwatch.monitoring.publishing.keys import COUNTED, KEYS
from modwatch.monitoring.publishing.timeline import publish_timeline
from modwatch.monitoring.publishing.timeline_page import thresholds, timeline_page

FIRST = date(2026, 1, 5)
KEY = "single_day/accuracy"


def days_of(levels, **of_the_last):
    """Make days whose accuracy has these levels, each ± 0.03, and a count of comments."""
    noise = np.random.default_rng(3).normal(0, 0.012, len(levels))
    made = []
    for number, (level, error) in enumerate(zip(levels, noise, strict=True)):
        value = float(np.clip(level + error, 0, 1))
        made.append(
            {
                "day": FIRST + timedelta(days=number),
                "checks": "passed",
                "figures": {
                    KEY: KeyFigure(
                        value=value, low=max(value - 0.03, 0.0), high=min(value + 0.03, 1.0)
                    ),
                    "day/comments": KeyFigure(value=2000.0 + number),
                },
                "model_version": "1",
            }
        )
    made[-1] |= of_the_last
    return [Day(**fields) for fields in made]


def alert(rule, severity="critical"):
    """Return an alert since the last of six days."""
    since = FIRST + timedelta(days=5)
    return ActiveAlert(rule=rule, subject="", severity=severity, since=since, description="")


class Elements(HTMLParser):
    """Counts elements by tag and class."""

    def __init__(self, page):
        super().__init__()
        self.counts = {}
        self.tags = set()
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        name = (tag, dict(attributes).get("class"))
        self.counts[name] = self.counts.get(name, 0) + 1
        self.tags.add(tag)


def test_noise_is_dots_with_intervals_and_no_line():
    page = timeline_page(days_of([0.95] * 20), ())
    counts = Elements(page).counts
    assert counts["line", "interval"] == counts["circle", "dot"] == 20
    assert "polyline" not in page
    assert "<path" not in page


def test_what_is_counted_is_columns_without_intervals():
    counts = Elements(timeline_page(days_of([0.95] * 3), ())).counts
    assert counts["line", "column"] == 3


def test_models_incidents_and_rejected_days_are_on_every_chart():
    volume = (alert("volume_low"),)
    days = days_of([0.95] * 6, model_version="2", alerts=volume)
    gone = Day(
        day=FIRST + timedelta(days=7),
        checks="rejected",
        reason="volume low",
        figures={"day/alerts": KeyFigure(value=1.0)},
        alerts=volume,
    )
    page = timeline_page([*days, gone], ())
    counts = Elements(page).counts
    panels = counts["figure", None]
    assert panels == 3
    assert counts["line", "model"] == panels
    assert counts["rect", "unmeasured"] == panels
    assert counts["rect", "critical"] == panels + 2, "on every chart, and two days of the incident"
    assert "2026-01-12: rejected" in page


def test_eight_figures_are_shown_and_the_others_folded():
    figures = {key: KeyFigure(value=1.0) for key in KEYS}
    page = timeline_page([Day(day=FIRST, checks="passed", figures=figures)], load_rules())
    shown, folded, rest = page.partition("<details>")
    assert folded
    assert shown.count("<figure>") == 8
    assert re.findall("<figcaption>([^<(]*) ", shown)[:2] == ["Comments", "Flagged share"]
    assert rest.count("<figure>") == len(KEYS) - 8


def test_days_that_were_not_run_are_grey():
    days = [Day(day=FIRST, checks=checks, reason="x") for checks in ("not run", "none")]
    for day in days:
        assert 'class="unmeasured"' in timeline_page([replace_figures(day)], [])
        assert 'class="critical"' not in timeline_page([replace_figures(day)], [])
    assert [(day.status, day.is_bad) for day in days] == [("not run", False), ("failed", True)]


def replace_figures(day):
    """Return a day with a figure, so that there is a chart."""
    return replace(day, figures={"day/alerts": KeyFigure(value=0.0)})


def test_the_origin_of_a_model_is_said_where_its_figures_are():
    days = days_of([0.9] * 3, model_origin="demonstration model")
    assert "Model 1 (demonstration model)." in timeline_page(days, [])


def test_the_bounds_of_the_alert_rules_are_drawn():
    bounds = thresholds(load_rules())
    assert bounds["collaboration_window/oc_accuracy"] == [(0.85, "oc accuracy low")]
    assert {key for key in bounds if key.startswith("drift/")} >= {"drift/score_psi"}
    accuracy = KeyFigure(value=0.97, low=0.95, high=0.98)
    day = Day(day=FIRST, checks="passed", figures={"collaboration_window/oc_accuracy": accuracy})
    page = timeline_page([day], load_rules())
    assert Elements(page).counts["line", "threshold"] == 1
    assert "oc accuracy low: 0.85" in page


def test_a_hostile_name_is_text_and_nothing_runs():
    days = days_of(
        [0.95] * 3,
        model_version="<script>alert(1)</script>",
        alerts=(alert("<img src=x>", "warning"),),
    )
    page = timeline_page(days, ())
    tags = Elements(page).tags
    assert not tags & {"script", "img", "link", "iframe"}
    assert "default-src 'none'" in page


@pytest.fixture
def publish(mlflow_url, experiment):
    """Publish days as the timeline."""

    def publish_these(days):
        return publish_timeline(days, (), {}, tracking_uri=mlflow_url, experiment=experiment)

    return publish_these


def test_the_page_is_the_first_artifact_and_estimates_are_no_points(
    mlflow_url, experiment, publish, tmp_path
):
    run_id = publish(days_of([0.95] * 9))
    with connect(mlflow_url) as client:
        [run] = runs_tagged(client, experiment_id(client, experiment), {"kind": "timeline"})
        assert set(run.data.metrics) <= set(COUNTED)
        assert run.data.tags["mlflow.note.content"].startswith("[Timeline](<http")
        assert [file.path for file in client.list_artifacts(run_id)] == ["timeline.html"]
        assert publish(days_of([0.95] * 9)) == run_id
        changed_run = publish(days_of([0.95] * 8 + [0.6]))
        assert changed_run != run_id, "the counts are the same, an estimate is not"
        path = client.download_artifacts(changed_run, "timeline.html", str(tmp_path))
    changed = timeline_page(days_of([0.95] * 8 + [0.6]), ())
    assert Path(path).read_text("utf-8") == changed, "an estimate that changed is drawn again"

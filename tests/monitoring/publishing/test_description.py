import dataclasses
from datetime import date
from pathlib import Path

import pandas as pd

from modwatch.data.lake.schemas import ESTIMATES
from modwatch.monitoring.incidents.messages.incidents import (
    ActiveAlert,
    most_severe_first,
)
from modwatch.monitoring.publishing import description
from modwatch.monitoring.publishing.content import DayTables
from modwatch.monitoring.publishing.days import KeyFigure
from modwatch.monitoring.publishing.description import alert_tag

DAY = date(2026, 1, 5)
GOLDEN = Path(__file__).parent / "golden"


LINKS = {
    "Validation page": "http://localhost:8000/checks/2026-01-05.html",
    "Review queue": "http://localhost:8000/queue",
    "Airflow run": "http://localhost:8080/dags/monitor_collaboration/runs/a(1)",
}


def describe_day(tables, facts, links=LINKS):
    return description.describe_day(facts, tables, links)


def follow_ups(**counts):
    return {f"review/{name}": KeyFigure(value=float(count)) for name, count in counts.items()}


def test_a_day_reads_as_in_the_golden_file(full_tables, facts):
    tables = full_tables(DAY)
    absent = (tables.estimates["metric"] == "review_efficiency") & (
        tables.estimates["alpha"] == 0.02
    )
    tables.estimates.loc[absent, ["status", "reason"]] = ["insufficient", "no label in the top"]
    assert describe_day(tables, facts) + "\n" == (GOLDEN / "day.md").read_text("utf-8")


def test_a_bad_day_reads_as_in_the_golden_file(full_tables, facts):
    names = ("queue_old", "scores_jumped", "scores_shifted", "volume_high", "volume_low")
    standing = tuple(
        ActiveAlert(
            rule=name,
            subject="",
            severity="warning",
            since=DAY,
            description="psi 0.3 of 0.2",
            headline="More comments are flagged" if name == "scores_jumped" else "",
            segment="platform=[app](http://x): flagged 8.0 % → 37.0 %" * (name == "scores_jumped"),
        )
        for name in names
    )
    missing = follow_ups(missing_escalated=1, missing_skipped=3, missing_waiting=2,
                         follow_ups=4, follow_ups_answered=3, late_labels=2)  # fmt: skip
    day = dataclasses.replace(facts, alerts=standing, checks="passed", figures=missing)
    text = describe_day(full_tables(DAY, -0.2), day)
    assert text + "\n" == (GOLDEN / "bad_day.md").read_text("utf-8")


def test_an_empty_day_reads_as_in_the_golden_file(facts):
    nothing = DayTables(estimates=ESTIMATES.empty_table().to_pandas())
    counts = ("comments", "quarantined", "flagged", "routed", "labelled", "pooled_days")
    empty = dataclasses.replace(facts, **dict.fromkeys(counts, 0))
    assert describe_day(nothing, empty, {}) + "\n" == (GOLDEN / "empty_day.md").read_text("utf-8")


def test_without_answered_follow_ups_missing_labels_may_be_unlike_others(full_tables, facts):
    supposed = "Missing labels may be toxic more or less often than others"
    days = {
        answered: dataclasses.replace(
            facts,
            figures=follow_ups(
                missing_dismissed=1,
                missing_skipped=1,
                follow_ups=1,
                follow_ups_answered=answered,
                late_labels=0,
            ),
        )
        for answered in (0, 1)
    }
    texts = {answered: describe_day(full_tables(DAY), day) for answered, day in days.items()}
    assert supposed in texts[0]
    assert supposed not in texts[1]
    assert "(1 dismissed, 1 skipped)" in texts[1]
    complete = dataclasses.replace(facts, labelled=facts.routed)
    assert supposed not in describe_day(full_tables(DAY), complete)


def test_it_says_in_six_lines_what_there_is(full_tables, facts):
    """Before any prose: whether the day is normal, and the links."""
    lines = describe_day(full_tables(DAY), facts).splitlines()
    starts = ("**Normal**. Active", "[Validation page]", "2,000 comments", "With rev")
    assert all(line.startswith(start) for line, start in zip(lines, starts, strict=False))
    assert len(lines) == 6


def test_checks_are_named_with_their_power_and_what_they_found(full_tables, facts):
    rows = [
        ("pairs of people", 2, 0.00041, 0.2),
        ("people", 0, 0.2, 0.61),
        ("quick confirmations", 1, 0.003, 0.7),
        ("misses by score", 0, 0.3, 0.09),
        ("estimates by score", 0, None, 0.999),
    ]
    found = pd.DataFrame(rows, columns=["check", "found", "p_value", "power"])
    tables = full_tables(DAY)
    text = describe_day(dataclasses.replace(tables, assumption_checks=found), facts)
    [line] = [line for line in text.splitlines() if line.startswith("Checked")]
    seen, unseen, warned = line.rstrip().split(". ", 1)[0], *line.split(". ", 1)[1].split(". ")[:2]
    assert seen == (
        "Checked (chance to see it): half of the second labels of a pair of people copied (20%): "
        "**yes**; half of the second labels of a person copied (61%): no; half of the second "
        "labels that came soonest copied (70%): **yes**; prevalence by score 50% off (100%): no"
    )
    assert unseen == (
        "Not checked: misses at low scores with 2 times the odds (9%); copying by all alike (0%)"
    )
    assert warned.startswith(
        "**Confirmations are not independent** (pairs of people: 2, quick confirmations: 1; "
        "p = 0.0004): they agree with first labels more often than error rates explain"
    )
    assert "Checked" not in describe_day(tables, facts)


def error_lines(text):
    return [line for line in text.splitlines() if line.startswith("Allowing for moderators'")]


def test_errors_of_the_moderators_are_described_by_the_labels_of_the_day(measure, facts):
    table = measure(DAY).assign(n=1)
    (line,) = error_lines(describe_day(DayTables(estimates=table), facts))
    assert "1 label confirmed by further people, 0 of them overturned" in line
    none = table[table["metric"] != "overturned"].assign(n=0)
    (line,) = error_lines(describe_day(DayTables(estimates=none), facts))
    assert "0 labels confirmed by further people, 0 of them overturned; false-positive" in line
    infallible = table[~table["metric"].str.startswith("annotator")]
    assert not error_lines(describe_day(DayTables(estimates=infallible), facts))


def test_it_stays_under_the_length_that_mlflow_takes(measure, facts):
    table = measure(DAY)
    table = table.assign(status="insufficient", reason=[f"{n}" * 60 for n in range(len(table))])
    assert len(describe_day(DayTables(estimates=table), facts)) < 8000


def active(rule, severity):
    return ActiveAlert(rule=rule, subject="", severity=severity, since=DAY, description="")


def test_the_tag_says_what_each_alert_says_the_worst_first_and_stays_short():
    headlines = [("info", "Odd"), ("warning", "Late"), ("warning", "Few: 0.1 times")]
    found = [
        dataclasses.replace(active("rule", severity), headline=text) for severity, text in headlines
    ]
    worst_first = most_severe_first(found)
    assert [alert.severity for alert in worst_first] == ["warning", "warning", "info"]
    assert alert_tag(worst_first) in (
        "warning: Late; Few: 0.1 times; info: Odd",
        "warning: Few: 0.1 times; Late; info: Odd",
    )
    many = [active(f"rule_{n:050}", "info") for n in range(999)]
    assert len(alert_tag(many)) < 4000
    shown = alert_tag(many).split("; ")
    assert shown[-1] == f"{999 - len(shown[:-1])} more"


def test_where_the_design_excludes_the_scores_both_intervals_stand_there(full_tables, facts):
    tables = full_tables(DAY)
    here = tables.window["metric"] == "accuracy"
    tables.window.loc[here, ["low", "high"]] = [0.7, 0.99]
    line = next(line for line in describe_day(tables, facts).split("\n") if "Model alone" in line)
    assert "Accuracy 0.960 (0.700 to 0.990; by the design alone 0.930 to 0.980)" in line
    assert line.count("by the design alone") == 1

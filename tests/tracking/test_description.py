import dataclasses
from datetime import date
from pathlib import Path

import pandas as pd

from modwatch.records import MEASUREMENTS
from modwatch.tracking.description import describe_day
from modwatch.tracking.keys import checked

DAY = date(2026, 1, 5)
GOLDEN = Path(__file__).parent / "golden"


def test_a_day_reads_as_in_the_golden_file(measure, facts):
    table = measure(DAY)
    absent = (table["metric"] == "review_efficiency") & (table["alpha"] == 0.02)
    table.loc[absent, ["status", "reason"]] = ["insufficient", "2 of 4 strata have no label"]
    assert describe_day(DAY, table, facts) + "\n" == (GOLDEN / "day.md").read_text("utf-8")


def test_an_empty_day_reads_as_in_the_golden_file(facts):
    nothing = checked(pd.DataFrame(columns=MEASUREMENTS.names))
    empty = dataclasses.replace(
        facts,
        comments=0,
        quarantined=0,
        flagged=0,
        routed=0,
        labelled=0,
        check_page_url=None,
        queue_url=None,
        airflow_run_url=None,
    )
    assert describe_day(DAY, nothing, empty) + "\n" == (GOLDEN / "empty_day.md").read_text("utf-8")


def test_it_stays_under_the_length_that_mlflow_takes(measure, facts):
    table = measure(DAY).assign(status="insufficient", reason="r" * 60)
    assert len(describe_day(DAY, table, facts)) < 8000

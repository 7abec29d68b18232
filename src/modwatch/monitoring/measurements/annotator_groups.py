"""Stores the comparison of groups of moderators, for the alert rules."""

import datetime

import pandas as pd

from modwatch.data.lake.delta import Lake
from modwatch.data.lake.frames import as_batch
from modwatch.data.lake.schemas import ANNOTATOR_GROUPS
from modwatch.monitoring.annotation_report import AnnotationReport


def store_comparison(lake: Lake, day: datetime.date, report: AnnotationReport) -> int:
    """Store the figures of the groups that a report shows; return how many figures.

    `report` is what is published: it has no figure of a suppressed group, and its numbers of people
    are rounded.
    """
    tables = [each.table for each in report.groupings if each.table is not None]
    if not tables:
        return lake.replace("annotator_groups", day, [])
    shown = pd.concat(tables, ignore_index=True).dropna(subset=["metric"])
    whole = dict.fromkeys(("annotators", "annotations"), "int64")
    rows = as_batch(shown.astype(whole).assign(dt=day), ANNOTATOR_GROUPS)
    return lake.replace("annotator_groups", day, [rows])

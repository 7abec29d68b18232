"""Both parts of a transparency report, from an audit in memory."""

import csv
import io
from collections.abc import Mapping
from dataclasses import replace
from datetime import date, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from audit_making import CONFIRMED, Auditor, days_of, make_comments, make_plan

from modwatch.audits.dsa.from_audit import Measures, automated_means
from modwatch.audits.dsa.qualitative import qualitative
from modwatch.audits.verify import read_evidence
from modwatch.statistics.audit.plan import AuditPlan, PopulationDay
from modwatch.statistics.audit.results import computed
from modwatch.statistics.audit.share_interval import IntervalOptions

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "dsa"

#: Of the made-up comments: 1,714 or so in each of de, en, fr, and the rest in none.
MEASURES = {
    "": Measures(comments=858, decided=858, solely=20, not_solely=4, reviewed=9),
    "de": Measures(comments=1714, decided=1714, solely=40, not_solely=10, reviewed=30),
    "en": Measures(comments=1714, decided=1714, solely=41, not_solely=11, reviewed=31),
    "fr": Measures(comments=1694, decided=1694, solely=42, not_solely=12, reviewed=32),
    "nb": Measures(comments=20, decided=20, solely=5, not_solely=1, reviewed=3),
}


def half_year(days: tuple[PopulationDay, ...]) -> tuple[PopulationDay, ...]:
    """Return these days and the rest of the half-year around them, without comments."""
    known = {day.day: day for day in days}
    first = date(2026, 1, 1)
    empty = {"comments": 0, "flagged": 0, "model_version": "", "threshold": 0.5}
    every = (first + timedelta(days=number) for number in range(181))
    return tuple(
        known.get(day) or PopulationDay(day=day, digest="00", texts="", **empty) for day in every
    )


@cache
def audited(kind: str = "ordinary") -> tuple[AuditPlan, dict[str, Any]]:
    """Return plan and result of an audit of 6,000 comments."""
    comments = make_comments()
    changes: dict[str, Any] = {}
    if kind == "insufficient":
        comments = replace(comments, truth=dict.fromkeys(comments.truth, 0))
    if kind == "no language":
        parts = tuple(replace(part, traits={}) for part in comments.parts)
        comments = replace(comments, parts=parts)
    if kind == "confirmed":
        changes["confirmations"] = CONFIRMED
    if kind == "one-sided":
        changes["rule"] = IntervalOptions(sides="lower", level=0.9)
    population = half_year(days_of(comments.parts, comments.threshold))
    auditor = Auditor(comments=comments, plan=make_plan(comments, population=population, **changes))
    auditor.begin()
    auditor.draw_and_label()
    return auditor.plan, computed(read_evidence(auditor.folder))


def cells(content: bytes) -> dict[tuple[str, str], dict[str, str]]:
    rows = csv.DictReader(io.StringIO(content.decode(), newline=""))
    return {(row["Scope"], row["Indicator"].rpartition(" - ")[2]): row for row in rows}


def part_8(
    kind: str = "ordinary", measures: Mapping[str, Measures] = MEASURES, service: str = "Forum"
) -> bytes:
    return automated_means(*audited(kind), measures, service=service)


def part_11(kind: str = "ordinary", service: str = "Forum") -> bytes:
    return qualitative(*audited(kind), MEASURES, service=service)

"""Turns rows of the lake into profiles of days, and what they tell into rows of drift.

A day is read once, batch by batch, and kept as some thousands of counts at most. References are put
together from these: no earlier day is read again.
"""

import datetime
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import reduce
from itertools import chain

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import Engine

from modwatch.lake.delta import Lake
from modwatch.lake.schemas import DRIFT, PROFILES
from modwatch.metrics.drift import Finding, Reference
from modwatch.metrics.health import Queue, queue_health
from modwatch.metrics.profile import BINS, RANGES, Counts, Profile, histogram, pooled
from modwatch.review.queue.health import day_queue

#: Columns that a comment may lack; an empty string is as good as none.
OPTIONAL_COLUMNS = ("platform", "thread_id", "parent_text", "language", "author_id", "groups")

#: What comments are told apart by, and the category of those that do not say: for languages the
#: "undetermined" of ISO 639.
_CATEGORIES = {"language": "und", "platform": "(none)"}

#: Categories kept of a feature; the rarest beyond are counted together.
MOST_CATEGORIES = 100

_OTHERS = "(other)"


def make_profile(lake: Lake, day: datetime.date) -> Profile:
    """Return the profile of `day` from its comments and the champion's scores, and keep it.

    Of a day without comments it is all zeros, kept too: that the day was empty is known then.
    """
    comments = lake.read("comments", day, columns=list(OPTIONAL_COLUMNS))
    columns = [*RANGES, "flagged", "model_version"]
    scores = lake.read("scores", day, columns=columns, role="champion")
    parts = chain(map(_of_comments, comments), map(_of_scores, scores))
    refused = lake.count("quarantine", day, stage="comments")
    nothing = Profile(quarantined=refused, missing=dict.fromkeys(OPTIONAL_COLUMNS, 0))
    made = reduce(lambda total, part: pooled([total, part]), parts, nothing)
    lake.replace("profiles", day, [profile_rows(day, made)])
    return read_profile(lake, day)


def read_profile(lake: Lake, day: datetime.date) -> Profile:
    """Return the profile of `day` that was kept; all zeros when there is none."""
    rows = lake.table("profiles", day).to_pandas()
    total, versions = _counts(rows, "rows"), rows["model_version"].dropna().unique().tolist()
    return Profile(
        comments=total.get("comments", 0),
        quarantined=total.get("quarantined", 0),
        missing=_counts(rows, "missing"),
        categories={feature: _counts(rows, feature) for feature in _CATEGORIES},
        scores={feature: _histogram(rows, feature) for feature in RANGES},
        flagged=int(rows.loc[rows["feature"] == "flagged", "count"].sum()),
        model_version=versions[0] if versions else None,
    )


def references(
    lake: Lake, *, fixed: Sequence[datetime.date], trailing: Sequence[datetime.date]
) -> list[Reference]:
    """Return the two references, as far as their days have a profile.

    Days that have scores and no profile yet, as before the first comparison, get theirs.
    """
    scored, kept = set(lake.days("scores")), set(lake.days("profiles"))
    known = {
        day: read_profile(lake, day) if day in kept else make_profile(lake, day)
        for day in sorted((scored | kept) & {*fixed, *trailing})
    }
    return [
        Reference(name="fixed", days=[known[day] for day in fixed if day in known]),
        Reference(name="trailing", days=[known[day] for day in trailing if day in known]),
    ]


def queue_findings(engine: Engine, day: datetime.date) -> list[Finding]:
    """Return the health of the queue of `day`, at this moment."""
    return list(queue_health(Queue(**asdict(day_queue(engine, day)))))


def profile_rows(day: datetime.date, made: Profile) -> pa.RecordBatch:
    """Return the profile of `day` as rows of PROFILES."""
    counted = {
        "rows": {"comments": made.comments, "quarantined": made.quarantined},
        "missing": made.missing,
        **{feature: _most(counts) for feature, counts in made.categories.items()},
    }
    rows: list[dict[str, object]] = [
        {"feature": feature, "category": category, "count": count}
        for feature, counts in counted.items()
        for category, count in counts.items()
    ]
    scored: list[dict[str, object]] = [{"feature": "flagged", "count": made.flagged}]
    for feature, counts in made.scores.items():
        filled = np.flatnonzero(counts)
        pairs = zip(filled.tolist(), counts[filled].tolist(), strict=True)
        scored += [{"feature": feature, "bin": at, "count": count} for at, count in pairs]
    rows += [row | {"model_version": made.model_version} for row in scored]
    return pa.RecordBatch.from_pylist([row | {"dt": day} for row in rows], schema=PROFILES)


def drift_rows(day: datetime.date, findings: Iterable[Finding]) -> pa.RecordBatch:
    """Return findings about `day` as rows of DRIFT."""
    rows = [{**asdict(found), "dt": day, "status": found.status} for found in findings]
    return pa.RecordBatch.from_pylist(rows, schema=DRIFT)


def _of_comments(batch: pa.RecordBatch) -> Profile:
    """Return what a batch of comments adds to the profile of its day."""
    columns = {name: batch.column(name) for name in OPTIONAL_COLUMNS}
    return Profile(
        comments=batch.num_rows,
        missing={name: _absent(column).true_count for name, column in columns.items()},
        categories={feature: _mix(columns[feature], feature) for feature in _CATEGORIES},
    )


def _of_scores(batch: pa.RecordBatch) -> Profile:
    """Return what a batch of scores adds to the profile of its day."""
    version = batch.column("model_version")
    return Profile(
        scores={name: histogram(batch.column(name), upper) for name, upper in RANGES.items()},
        flagged=batch.column("flagged").true_count,
        model_version=version[0].as_py() if len(version) else None,
    )


def _absent(column: pa.Array) -> pa.Array:
    """Return (k,) bool: null, or an empty string."""
    if column.type != pa.string():
        return column.is_null()
    return pc.fill_null(pc.equal(column, ""), True)


def _mix(column: pa.Array, feature: str) -> dict[str, int]:
    """Return how many comments are of each category; languages without region, in lower case."""
    names = pc.if_else(_absent(column), _CATEGORIES[feature], column)
    if feature == "language":
        names = pc.utf8_lower(pc.replace_substring_regex(names, pattern="-.*", replacement=""))
    return {each["values"]: each["counts"] for each in pc.value_counts(names).to_pylist()}


def _most(counts: Mapping[str, int]) -> dict[str, int]:
    """Return the most frequent categories, by name among equals, and the others as one."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    kept = Counter(dict(ordered[:MOST_CATEGORIES]))
    kept[_OTHERS] += sum(count for _, count in ordered[MOST_CATEGORIES:])
    return dict(+kept)


def _counts(rows: pd.DataFrame, feature: str) -> dict[str, int]:
    """Return the counts of a feature by category."""
    found = rows[rows["feature"] == feature]
    return dict(zip(found["category"], found["count"].tolist(), strict=True))


def _histogram(rows: pd.DataFrame, feature: str) -> Counts:
    """Return the histogram (BINS,) of a feature."""
    found = rows[rows["feature"] == feature]
    counts = np.zeros(BINS, np.int64)
    counts[found["bin"].astype(np.int64)] = found["count"]
    return counts

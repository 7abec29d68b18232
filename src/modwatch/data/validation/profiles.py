"""The profile of a day: made once, when the day is validated, and kept in the lake.

Data validation, drift and MLflow all read these counts, so they show the same numbers. Rules on
the trailing days judge the findings of drift (`trailing_findings`).
"""

import datetime
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from modwatch.common import days
from modwatch.common.columns import Column, grouped, profiled
from modwatch.data.lake.delta import Lake
from modwatch.data.lake.schemas import PROFILES, schema_of
from modwatch.data.validation.languages import languages, scripts
from modwatch.data.validation.result import InvalidRows, Measure
from modwatch.data.validation.rows import absent, columns_of, is_valid
from modwatch.statistics.drift.day_comparison import Finding, Reference, compare, day_metrics
from modwatch.statistics.drift.profile import (
    BINS,
    OTHERS,
    RANGES,
    Counts,
    Profile,
    histogram,
    length_counts,
    pooled,
)
from modwatch.statistics.drift.seasons import WEEKS, Volume, year_before

#: What a missing value counts as; for languages it is the "undetermined" of ISO 639.
_NONE, _UNDETERMINED = "(none)", "und"

#: What is counted besides the values of columns: the length of the text in bands, and what the
#: texts show: the script, and the language where the source names none.
_OF_TEXTS = ("length", "script", "detected_language")

#: Features of a profile that are no mixes.
_NO_MIX = ("rows", "missing")

#: Rows of a day, at most and about, whose texts are looked at for script and language.
LOOKED_AT = 2000

#: Categories kept of a column; the rarest beyond are counted together.
MOST_CATEGORIES = 1000


def profile_comments(
    landed: Iterable[pa.RecordBatch], invalid: InvalidRows, own: Sequence[Column] = ()
) -> Profile:
    """Return the profile of a day's valid comments, from one pass over its landed rows.

    Memory holds one batch and the counts.

    Args:
        landed: batches with `row`, `text` and the columns `profiled`; a missing one of the latter
            counts as null.
        invalid: the rows to leave out.
        own: the columns of the platform.

    Raises:
        CheckError: the batches are not those that were validated.

    >>> none = InvalidRows(day=datetime.date(2026, 1, 5), reason=np.zeros(0, np.int16), reasons=())
    >>> profile_comments([], none).missing["language"]
    0
    """
    nothing = Profile(
        quarantined=invalid.count,
        missing=dict.fromkeys(profiled(own), 0),
        categories={name: {} for name in (*grouped(own), *_OF_TEXTS)},
    )
    parts = (_of_batch(batch, invalid, own) for batch in landed)
    total = reduce(lambda before, part: pooled([before, part]), parts, nothing)
    mixes = {name: _most_frequent(counts) for name, counts in total.categories.items()}
    return replace(total, categories=mixes)


def profile_scores(
    prob: NDArray[np.float32], flagged: NDArray[np.bool_], model_versions: Sequence[str]
) -> Profile:
    """Return the profile of a day's valid scores (n,): probabilities, and which are flagged.

    >>> profile_scores(np.array([0.2, 0.9], np.float32), np.array([False, True]), ["1"]).flagged
    1
    """
    p = prob.astype(np.float64)
    values = {"prob": p, "uncertainty": p * (1 - p)}
    return Profile(
        scores={name: histogram(values[name], upper) for name, upper in RANGES.items()},
        flagged=int(flagged.sum()),
        model_version=model_versions[0] if len(model_versions) == 1 else None,
    )


def save_profile(
    lake: Lake,
    day: datetime.date,
    *,
    comments: Profile | None = None,
    scores: Profile | None = None,
) -> None:
    """Keep the comments, or the scores, of a profile; the other part of the day stays as it is."""
    stored = read_profile(lake, day)
    made = (comments or stored).with_scores_of(scores or stored)
    lake.replace("profiles", day, [profile_rows(day, made)], held_out=False)


def read_profile(lake: Lake, day: datetime.date) -> Profile:
    """Return the profile of `day`; all zeros when there is none."""
    return read_profiles(lake, [day]).get(day, Profile())


def read_profiles(
    lake: Lake, days: Collection[datetime.date], *, held_out: bool = False
) -> dict[datetime.date, Profile]:
    """Return the profiles of those `days` that have one, in order.

    `held_out`: of held-out comments of the model that scored the day.
    """
    return _profiles(lake.table("profiles", days, held_out=held_out))


def earlier_ids(lake: Lake, day: datetime.date) -> Iterator[pa.Array]:
    """Yield the ids of the comments of all days before `day`."""
    (yesterday,) = days.before(day, 1)
    ids = lake.read_between("comments", datetime.date.min, yesterday, columns=["comment_id"])
    return (batch.column("comment_id") for batch in ids)


def later_ids(lake: Lake, day: datetime.date) -> Iterator[tuple[datetime.date, pa.Array]]:
    """Yield the ids of the comments of all days after `day`, with their day."""
    for later in lake.days("comments"):
        for batch in lake.read("comments", later, columns=["comment_id"]) if later > day else ():
            yield later, batch.column("comment_id")


def profile_rows(day: datetime.date, made: Profile, *, held_out: bool = False) -> pa.RecordBatch:
    """Return the profile of `day`, or of held-out comments, as rows of PROFILES."""
    counted = {
        "rows": {"comments": made.comments, "quarantined": made.quarantined},
        "missing": made.missing,
        **made.categories,
    }
    rows: list[dict[str, object]] = [
        {"feature": feature, "category": category, "count": count}
        for feature, counts in counted.items()
        for category, count in counts.items()
    ]
    scored: list[dict[str, object]] = [{"feature": "flagged", "count": made.flagged}]
    for feature, histogram_ in made.scores.items():
        filled = np.flatnonzero(histogram_)
        pairs = zip(filled.tolist(), histogram_[filled].tolist(), strict=True)
        scored += [{"feature": feature, "bin": at, "count": count} for at, count in pairs]
    rows += [row | {"model_version": made.model_version} for row in scored]
    shared = {"dt": day, "held_out": held_out}
    return pa.RecordBatch.from_pylist([row | shared for row in rows], schema=PROFILES)


def _profiles(rows: pa.Table) -> dict[datetime.date, Profile]:
    """Return the profile of each day of these rows of PROFILES, in order of the days."""
    counts: dict[datetime.date, dict[str, dict[str, int]]] = {}
    flagged: dict[datetime.date, tuple[int, str | None]] = {}
    for row in rows.filter(pc.is_null(rows["bin"])).to_pylist():
        if row["feature"] == "flagged":
            flagged[row["dt"]] = row["count"], row["model_version"]
            continue
        of_day = counts.setdefault(row["dt"], {})
        of_day.setdefault(row["feature"], {})[row["category"]] = row["count"]
    scores = {feature: _histograms(rows, feature, sorted(counts)) for feature in RANGES}
    return {
        day: Profile(
            comments=counts[day]["rows"]["comments"],
            quarantined=counts[day]["rows"]["quarantined"],
            missing=counts[day].get("missing", {}),
            categories={
                feature: counts[day].get(feature, {})
                for feature in dict.fromkeys((*grouped()[::-1], *_OF_TEXTS, *counts[day]))
                if feature not in _NO_MIX
            },
            scores={feature: scores[feature][number] for feature in RANGES},
            flagged=flagged[day][0],
            model_version=flagged[day][1],
        )
        for number, day in enumerate(sorted(counts))
    }


def _histograms(rows: pa.Table, feature: str, days: list[datetime.date]) -> Counts:
    """Return the histogram of a feature on each day (days, BINS)."""
    binned = rows.filter(pc.and_(pc.equal(rows["feature"], feature), pc.is_valid(rows["bin"])))
    counts = np.zeros((len(days), BINS), np.int64)
    at = pc.index_in(binned["dt"], pa.array(days, pa.date32())).to_numpy()
    counts[at, binned["bin"].to_numpy()] = binned["count"].to_numpy()
    return counts


def _of_batch(batch: pa.RecordBatch, invalid: InvalidRows, own: Sequence[Column]) -> Profile:
    """Return the profile of the valid rows of a batch."""
    valid, stored = pa.array(is_valid(batch, invalid)), schema_of("comments", own)
    wanted = pa.schema([stored.field(name) for name in (*profiled(own), "text")])
    columns = {n: column.filter(valid) for n, column in columns_of(batch, wanted).items()}
    # Knuth's multiplicative hash: some rows of a day, without a period that a source may have.
    rows = batch.column("row").filter(valid).to_numpy().astype(np.uint64)
    some = pa.array(rows * 2_654_435_761 % 2**32 < 2**32 * LOOKED_AT / max(len(invalid.reason), 1))
    texts, unnamed = columns["text"].filter(some), absent(columns["language"].filter(some))
    return Profile(
        comments=valid.true_count,
        missing={name: absent(columns[name]).true_count for name in profiled(own)},
        categories={
            **{feature: _mix(columns[feature], feature) for feature in grouped(own)},
            "length": length_counts(pc.fill_null(pc.utf8_length(columns["text"]), 0).to_numpy()),
            "script": Counter(scripts(texts)),
            "detected_language": Counter(languages(texts.filter(unnamed))),
        },
    )


def category_names(column: pa.Array, feature: str) -> pa.Array:
    """Return the category of each comment by a column of `grouped`.

    Languages are without region and in lower case; what is missing has a name of its own, and a
    name that is one of ours stands in quotation marks.

    >>> category_names(pa.array(["de-AT", "en_GB", None]), "language").to_pylist()
    ['de', 'en', 'und']
    >>> category_names(pa.array(["app", "(none)", None]), "channel").to_pylist()
    ['app', '"(none)"', '(none)']
    """
    column = column.cast(pa.string())
    ours = pc.is_in(column, pa.array([_NONE, OTHERS]))
    quoted = pc.if_else(ours, pc.binary_join_element_wise('"', column, '"', ""), column)
    names = pc.if_else(absent(column), _UNDETERMINED if feature == "language" else _NONE, quoted)
    if feature == "language":
        names = pc.utf8_lower(pc.replace_substring_regex(names, pattern="[-_].*", replacement=""))
    return names


def _mix(column: pa.Array, feature: str) -> dict[str, int]:
    """Return the number of comments by category."""
    counts = pc.value_counts(category_names(column, feature))
    return {row["values"]: row["counts"] for row in counts.to_pylist()}


def _most_frequent(counts: Mapping[str, int]) -> dict[str, int]:
    """Return the most frequent categories, by name among equals, and the others as one."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    kept = Counter(dict(ordered[:MOST_CATEGORIES]))
    kept[OTHERS] += sum(count for _, count in ordered[MOST_CATEGORIES:])
    return dict(+kept)


def skipped(reason: str) -> Measure:
    """Return a measure without a value.

    >>> skipped("no scores").observed
    'skipped: no scores'
    """
    return Measure(value=None, observed=f"skipped: {reason}")


def measure_of(finding: Finding, observed: Callable[[float], str]) -> Measure:
    """Return the measure of a finding; `observed` describes its value.

    A difference whose interval includes 0 may be chance, and is judged as 0.

    >>> finding = Finding(metric="psi", feature="prob", value=0.25, low=0.1, high=0.4, n=900)
    >>> measure_of(finding, lambda value: f"PSI {value:.3f}")
    Measure(value=0.25, observed='PSI 0.250')
    """
    if finding.value is None:
        return skipped(finding.reason)
    low, high, text = finding.low, finding.high, observed(finding.value)
    if low is not None and high is not None and low <= 0 <= high:
        return Measure(value=0.0, observed=f"{text}; within sampling noise")
    return Measure(value=finding.value, observed=text)


def trailing_findings(
    today: Profile, trailing: Sequence[Profile]
) -> dict[tuple[str, str], Finding]:
    """Return what drift finds on a day against the trailing days, by metric and feature.

    >>> trailing_findings(Profile(comments=5), [])["volume_ratio", "comments"].reason
    '0 trailing days; 3 are needed'
    """
    reference = Reference.from_days("trailing", trailing)
    findings = chain(compare(today, [reference]), day_metrics(today, trailing))
    return {(finding.metric, finding.feature): finding for finding in findings}


def too_few_days(days: Sequence[Profile], needed: int, scope: str = "") -> Measure | None:
    """Return a measure without a value when there are too few trailing days, else None."""
    if len(days) >= needed:
        return None
    return skipped(f"{len(days)} trailing days{scope}; {needed} are needed")


def seasonal_volumes(
    lake: Lake, first: datetime.date, last: datetime.date
) -> dict[datetime.date, Volume]:
    """Return the known volumes that the seasons of the days `first` … `last` need.

    These are the volumes of the five weeks before `first`, of the days up to `last`, and of the
    same weeks a year before.
    """
    recent = read_volumes(lake, first - datetime.timedelta(weeks=WEEKS), last)
    return recent | read_volumes(lake, min(year_before(first)), max(year_before(last)))


def read_volumes(
    lake: Lake, first: datetime.date, last: datetime.date
) -> dict[datetime.date, Volume]:
    """Return the known volumes of the days `first` … `last`, both included."""
    columns = ["dt", "metric", "value", "n"]
    return {
        row["dt"]: Volume(rows=row["n"], ratio=row["value"])
        for row in lake.rows_between("drift", first, last, columns)
        if row["metric"] == "volume_ratio"
    }

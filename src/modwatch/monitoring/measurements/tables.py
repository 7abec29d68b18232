"""Turns rows of the lake into the arrays that `metrics` takes, and its results into rows.

Only columns that a function needs are loaded, so that a day of millions stays small in memory.
"""

import datetime
import hashlib
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from scipy import special

from modwatch.common.errors import RoutingOutdatedError
from modwatch.data.lake.day_scores import DayScores
from modwatch.data.lake.delta import Lake, as_batch
from modwatch.data.lake.schemas import ESTIMATES, LABEL_COUNTS
from modwatch.routing.design import RoutingPolicy, strata_of
from modwatch.routing.follow_ups import PARTS, drawn_follow_ups
from modwatch.routing.ordering import review_inputs, stored_copies
from modwatch.statistics.label_truth import ErrorEvidence, GivenLabels, KnownErrors
from modwatch.statistics.live.group_estimates import GroupedDay
from modwatch.statistics.live.labelled_day import Confirmations, LabelledDay
from modwatch.statistics.recalibration import Calibration, Recalibration, VarianceCalibration

#: Labels of a day that the test of dependent confirmations takes.
MOST_PAIRS = 3_000
#: Days before a window whose labels tell P(toxic | score).
HISTORY = 46

#: Metrics of a window whose labels show that the scores are off: the line of the true logit, and
#: the coefficients of `VarianceCalibration`.
RECALIBRATION = ("recalibration_intercept", "recalibration_slope")
BY_VARIANCE = tuple(f"variance_{name}" for name in ("intercept", "slope", "shift", "tilt"))

#: Largest P(a second person makes an error of a first one) that intervals of a window allow for.
SHARED_ERRORS = ("shared_false_positive", "shared_false_negative")

#: Logits of scores are rounded to this, and scores nearer to 0 or 1 count as this near.
_ROUNDED, _NEAREST = 0.05, 1e-12


def served_days(
    lake: Lake, *, since: datetime.date = datetime.date.min
) -> dict[str, list[datetime.date]]:
    """Return the days that each model version scored and that were routed, in order."""
    days = [day for day in lake.days("routing_design") if day >= since]
    rows = lake.table("routing_design", days, columns=["dt", "model_version"]).to_pylist()
    served: dict[str, list[datetime.date]] = {}
    for day, version in {row["dt"]: row["model_version"] for row in rows}.items():
        served.setdefault(version, []).append(day)
    return served


def labelled_day(
    lake: Lake, day: datetime.date, scores: DayScores, policy: RoutingPolicy
) -> LabelledDay:
    """Return the whole population of `day` with the labels that people have given so far.

    Errors cost what they cost by the policy. Labels count as they were given first. Which ones are
    corrected depends on their confirmations: leads look at those that were overturned, and people
    would seem to err less than they do.

    Raises:
        RoutingOutdatedError: comments were routed that the day does not have any more.
    """
    design = lake.table("routing_design", day).sort_by("stratum")
    routed = lake.table("routed", day, columns=["comment_id", "stratum"])
    labels = _first_labels(lake, day)
    if not pc.all(pc.is_in(routed.column("comment_id"), scores.comment_id), min_count=0).as_py():
        raise RoutingOutdatedError(
            f"other comments of {day} are scored than were routed; route that day again"
        )
    stratum = np.full(len(scores.prob), -1, np.int32)
    stratum[_positions(routed, scores)] = routed.column("stratum").to_numpy()
    # A label of a comment that is routed no more (the day was routed again) estimates nothing.
    labels = labels.filter(pc.is_in(labels.column("comment_id"), routed.column("comment_id")))
    follow_ups = drawn_follow_ups(lake, day)
    others = follow_ups.filter(pc.invert(follow_ups.column("drawn"))).column("comment_id")
    late = pc.is_in(labels.column("comment_id"), others)
    labels = labels.filter(pc.invert(late))
    missing = np.full(len(scores.prob), -1, np.int8)
    part = pc.index_in(follow_ups.column("part"), pa.array(PARTS))
    missing[_positions(follow_ups, scores)] = part.to_numpy()
    label = np.zeros(len(scores.prob), np.int8)
    labelled = np.zeros(len(scores.prob), np.bool_)
    at = _positions(labels, scores)
    label[at], labelled[at] = labels.column("label").to_numpy(), True
    return LabelledDay(
        prob=scores.prob,
        stratum=stratum,
        label=label,
        labelled=labelled,
        population=design.column("population").to_numpy(),
        sample=design.column("sample").to_numpy(),
        flagged=scores.flagged,
        **review_inputs(lake, day, scores, policy, _routed_by(design)),
        copies=stored_copies(lake, day, scores),
        confirmations=_confirmations(lake, day, scores, labels),
        missing=missing if len(follow_ups) else None,
        late=pc.sum(late).as_py() or 0,
    )


def grouped_day(
    lake: Lake, day: datetime.date, scores: DayScores, policy: RoutingPolicy
) -> GroupedDay:
    """Return the day with the stratum of every comment.

    Raises:
        DesignError: the day was routed by other scores or another policy.
    """
    labelled = labelled_day(lake, day, scores, policy)
    columns = ["stratum", "lower", "upper", "flagged", "population"]
    design = lake.table("routing_design", day, columns=columns).sort_by("stratum").to_pandas()
    strategy, _ = deployed(lake, day)
    score = labelled.review_scores(strategy, threshold=0.5)
    stratum = strata_of(score, design, labelled.stratum == 0, flagged=scores.flagged)
    return GroupedDay(labelled=labelled, stratum=stratum, routed=labelled.stratum >= 0)


def _first_labels(lake: Lake, day: datetime.date) -> pa.Table:
    """Return `comment_id`, `label` and `moderator` of the first labels, as they were given."""
    columns = ["comment_id", "label", "moderator", "first_label", "first_moderator"]
    labels = lake.table("labels", day, columns=columns)
    first = {
        name: pc.coalesce(labels.column(f"first_{name}"), labels.column(name))
        for name in ("label", "moderator")
    }
    return pa.table({"comment_id": labels.column("comment_id"), **first})


def label_pairs(lake: Lake, day: datetime.date, scores: DayScores) -> pd.DataFrame:
    """Return the first labels of `day` with their confirmations, as `dependence_table` takes them.

    At most `MOST_PAIRS`, evenly spread. The time of a first label that was corrected is unknown.
    """
    columns = ["comment_id", "label", "moderator", "decided_at"]
    current = lake.table("labels", day, columns=columns).to_pandas()
    first = _first_labels(lake, day).to_pandas().merge(current, how="left")
    second = lake.table("confirmations", day, columns=columns, round=2).to_pandas()
    pairs: pd.DataFrame = first.merge(
        second, how="left", on="comment_id", suffixes=("_first", "_second")
    )
    at = _positions(pa.Table.from_pandas(pairs[["comment_id"]]), scores)
    own = pairs["moderator_first"] == pairs["moderator_second"]
    kept = pairs.assign(prob=scores.prob[at])[(at >= 0) & ~own]
    return kept.iloc[:: len(kept) // MOST_PAIRS + 1]


def _confirmations(
    lake: Lake, day: datetime.date, scores: DayScores, labels: pa.Table
) -> Confirmations:
    """Return the further labels of the comments with a first one, each by another person."""
    first = labels.select(["comment_id", "moderator"]).to_pandas()
    columns = ["comment_id", "round", "label", "moderator"]
    given = lake.table("confirmations", day, columns=columns).to_pandas()
    given = given[given["round"] > 0].merge(first, on="comment_id", suffixes=("", "_first"))
    # The queue serves no moderator a comment twice; two labels by one person are not independent.
    given = given[given["moderator"] != given["moderator_first"]].sort_values("round")
    given = given.drop_duplicates(["comment_id", "moderator"])
    rows = _positions(pa.Table.from_pandas(given[["comment_id"]]), scores)
    return Confirmations(row=rows, label=given["label"].to_numpy(np.int8))


def gold_answers(lake: Lake, days: Sequence[datetime.date], stated: ErrorEvidence) -> ErrorEvidence:
    """Return what is `stated`, with how people together answered the gold items of `days`.

    Of an item that several people answered, each wrong answer is compared with the others. Items
    that all fail count as few comparisons: effective number (Σw)²/Σw² for w wrong answers each.
    """
    columns = ["comment_id", "label", "first_label"]
    answers = lake.table("confirmations", days, columns=columns, round=0).to_pandas()
    answers["wrong"] = answers["first_label"] != answers["label"]
    items = (
        answers.groupby(["first_label", "comment_id"])["wrong"].agg(["size", "sum"]).reset_index()
    )
    found = list[KnownErrors]()
    for known, kind in enumerate(stated.kinds):
        mine = items[items["first_label"] == known]
        compared = mine[mine["size"] > 1]
        given, wrong = (compared[name].to_numpy(np.float64) for name in ("size", "sum"))
        effective = float(wrong.sum() ** 2 / max((wrong**2).sum(), 1.0))
        again = float((wrong * (wrong - 1) / (given - 1)).sum() / max(wrong.sum(), 1.0))
        of_all = {"answers": float(mine["size"].sum()), "wrong": float(mine["sum"].sum())}
        found.append(replace(kind, **of_all, compared=effective, repeated=effective * again))
    return ErrorEvidence(*found)


def label_counts(day: datetime.date, labels: GivenLabels) -> pa.RecordBatch:
    """Return the labels of a day as rows of LABEL_COUNTS."""
    prob = np.clip(labels.prob, _NEAREST, 1 - _NEAREST)
    logit = np.round(special.logit(prob) / _ROUNDED) * _ROUNDED
    frame = pd.DataFrame({"kind": labels.group, "given": labels.given, "toxic": labels.toxic})
    frame = frame.assign(prob=special.expit(logit))
    counts = frame.value_counts(sort=False).rename("comments").reset_index()
    return as_batch(counts.assign(dt=day), LABEL_COUNTS)


def earlier_labels(lake: Lake, day: datetime.date) -> GivenLabels | None:
    """Return the labels of `HISTORY` days before a day that its model scored; None without any."""
    served = served_days(lake, since=day - datetime.timedelta(HISTORY))
    days = [one for mine in served.values() if day in mine for one in mine if one < day]
    rows = lake.table("label_counts", days).to_pandas() if days else pd.DataFrame()
    if rows.empty:
        return None
    rows = rows.loc[rows.index.repeat(rows["comments"])]
    return GivenLabels(
        prob=rows["prob"].to_numpy(np.float64),
        group=rows["kind"].to_numpy(np.int64),
        given=rows["given"].to_numpy(np.int64),
        toxic=rows["toxic"].to_numpy(np.int64),
    )


def deployed(lake: Lake, day: datetime.date) -> tuple[str, float]:
    """Return the strategy and the review fraction that `day` was routed with."""
    design = lake.table("routing_design", day, columns=["strategy", "review_fraction"])
    return str(design.column(0)[0]), float(design.column(1)[0])


def recalibration(lake: Lake, day: datetime.date, version: str) -> Recalibration:
    """Return how the order of a day's scores is recalibrated, as far as labels ask for it.

    As the day was routed before; else by the newest window before it that the version scored.
    """
    if _version(lake, day) == version:
        return _routed_by(lake.table("routing_design", day))
    earlier = (last for last in reversed(lake.days("estimates")) if last < day)
    found = next(
        filter(None, (headline(lake, last) for last in earlier if _version(lake, last) == version)),
        dict[str, float | None](),
    )
    by_variance = [found.get(name) for name in BY_VARIANCE]
    intercept, slope = map(found.get, RECALIBRATION)
    return _recalibration(intercept, slope, by_variance)


def headline(lake: Lake, last: datetime.date) -> dict[str, float | None]:
    """Return the estimates of the model alone, over the window to `last`, by metric."""
    columns = ["metric", "value", "strategy"]
    rows = lake.table("estimates", last, columns=columns, window=True, design=False).to_pylist()
    return {row["metric"]: row["value"] for row in rows if row["strategy"] is None}


def _version(lake: Lake, day: datetime.date) -> str | None:
    """Return the model version that scored the routed comments of a day; None: none was routed."""
    versions = lake.table("routing_design", day, columns=["model_version"]).column(0)
    return versions[0].as_py() if len(versions) else None


def _routed_by(design: pa.Table) -> Recalibration:
    """Return by what the scores of a day were recalibrated when it was routed."""
    first = design.slice(0, 1).to_pylist()
    names = ("intercept", "slope", "by_variance")
    return _recalibration(*(first[0][name] for name in names)) if first else Recalibration()


def _recalibration(
    intercept: float | None, slope: float | None, by_variance: Sequence[float | None] | None
) -> Recalibration:
    by_score = given = None
    if intercept is not None and slope is not None:
        by_score = Calibration(intercept=intercept, slope=slope)
    if by_variance is not None and (known := [one for one in by_variance if one is not None]):
        given = VarianceCalibration(coefficients=(known[0], known[1], known[2], known[3]))
    return Recalibration(by_score=by_score, by_variance=given)


def labels_digest(lake: Lake, day: datetime.date) -> str:
    """Return a hash of all that measurements take of a day: design, routed rows, answers."""
    digest = hashlib.sha256()
    for table, columns in (
        ("routing_design", ["model_version", "stratum", "population", "sample", "scores_digest"]),
        ("routed", ["comment_id", "stratum"]),
        ("labels", ["comment_id", "label", "first_label", "first_moderator"]),
        ("confirmations", ["comment_id", "round", "label", "moderator", "first_label"]),
        ("follow_ups", ["comment_id", "part", "drawn", "routed_digest"]),
    ):
        rows = sorted(
            tuple(row.values()) for row in lake.table(table, day, columns=columns).to_pylist()
        )
        digest.update(repr((table, rows)).encode())
    return digest.hexdigest()


def measured_digest(lake: Lake, day: datetime.date, *, window: bool = False) -> str | None:
    """Return what the estimates of `day`, or of its window, were made of; None without any."""
    digests = lake.table("estimates", day, columns=["digest"], window=window)
    return digests.column(0)[0].as_py() if digests.num_rows else None


def is_unmeasured(lake: Lake, day: datetime.date) -> bool:
    """Return whether `day` was routed and its labels, as they are now, are not measured."""
    if not lake.count("routing_design", day):
        return False
    return measured_digest(lake, day) != labels_digest(lake, day)


def replace_estimates(
    lake: Lake,
    day: datetime.date,
    tables: tuple[pd.DataFrame, pd.DataFrame],
    digest: str,
    *,
    window: bool = False,
) -> None:
    """Replace the estimates of a day, or of its window, by those of `Measured.tables`."""
    rows = pd.concat([table.assign(design=k == 1) for k, table in enumerate(tables)])
    rows = rows.assign(dt=day, window=window, digest=digest)
    lake.replace("estimates", day, [as_batch(rows, ESTIMATES)], window=window)


def _positions(rows: pa.Table, scores: DayScores) -> NDArray[np.int64]:
    """Return where in the day's scores each row's comment stands, (m,)."""
    return scores.positions(rows.column("comment_id").chunks)

"""What moderators' labels of some weeks show about people: slips, opinions, groups."""

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from modwatch.common.days import between
from modwatch.data.lake.day_scores import day_scores
from modwatch.data.lake.delta import Lake, as_batch
from modwatch.data.lake.schemas import ANNOTATOR_GROUPS, CONFIRMATION_PROBABILITIES
from modwatch.monitoring.annotation_report import (
    AnnotationReport,
    Section,
    Table,
    annotation_report,
    render_page,
)
from modwatch.monitoring.publishing.runs import publish_report
from modwatch.review.people.groups import KEPT
from modwatch.review.quality_control.agreement import GroupAgreement
from modwatch.statistics.disagreement import Annotations
from modwatch.statistics.estimate import Estimate

#: Labels without which there is no report.
MINIMUM_ANNOTATIONS = 100

#: Metric of the row of `annotator_groups` that marks a comparison.
COMPARED = "compared"

_ITEM = ["comment_dt", "comment_id"]

#: What a page says of the groups of moderators.
_DRAWN = (
    f"{1 - KEPT:.0%} of the people count in a group that was drawn at random, so that no one’s "
    f"group follows for certain from these figures. Differences are about {KEPT:.0%} of those "
    "between the groups that people chose."
)


@dataclass(frozen=True, kw_only=True)
class LabelledComments:
    """The labels of a period, of comments that have a score and several labels."""

    annotations: Annotations
    #: (I,) in [0, 1]; None where the source brought decisions that no threshold of it gives.
    y_prob: NDArray[np.float64] | None
    #: (I,) 1 / probability that the comment was routed and its first label confirmed; 1 where it
    #: was not routed by a design, 0 where all labels are of one person.
    weight: NDArray[np.float64]
    threshold: float


def labels_between(
    lake: Lake, first: datetime.date, last: datetime.date
) -> LabelledComments | None:
    """Return the labels given from `first` to `last`; None if they are too few, or alike.

    A comment without a score, such as a gold comment of elsewhere, is left out, and so is one with
    a single label: it tells neither of slips nor of disagreement.
    """
    labels = lake.table("annotations", between(first, last)).to_pandas()
    if labels.empty:
        return None
    labels = labels.sort_values("decided_at", kind="stable")
    columns = ["comment_id", "inclusion_probability", *CONFIRMATION_PROBABILITIES]
    parts = []
    thresholds: list[float | None] = [0.5]
    for day, of_day in labels.groupby("comment_dt")["comment_id"]:
        scores = day_scores(lake, day)
        # A day has millions of comments, and labels of hundreds.
        labelled = pc.is_in(scores.comment_id, pa.array(of_day.unique(), pa.string()))
        known = pd.DataFrame(
            {
                "comment_id": scores.comment_id.filter(labelled).to_pandas(),
                "prob": scores.prob[labelled.to_numpy()],
                "flagged": scores.flagged[labelled.to_numpy()],
            }
        )
        chances = lake.table("routed", day, columns=columns).to_pandas()
        parts.append(known.merge(chances, on="comment_id", how="left").assign(comment_dt=day))
        if len(scores.prob):
            thresholds.append(scores.threshold)
    labels = labels.merge(pd.concat(parts, ignore_index=True), on=_ITEM)
    of_comment = labels.groupby(_ITEM)["annotator"]
    labels = labels.assign(people=of_comment.transform("nunique"))
    labels = labels[of_comment.transform("size") > 1]
    if len(labels) < MINIMUM_ANNOTATIONS or labels["label"].nunique() < 2:
        return None
    if labels["people"].max() < 2:
        return None
    item = labels["comment_dt"].astype(str) + " " + labels["comment_id"]
    annotations = Annotations.from_columns(
        item=item, annotator=labels["annotator"], label=labels["label"], classes=(0, 1)
    )
    of_items = labels.assign(item=item).drop_duplicates("item")
    prob = of_items["prob"].to_numpy(np.float64)
    threshold = thresholds[-1]
    if None in thresholds:
        threshold = _threshold_of(prob, of_items["flagged"].to_numpy(bool))
    return LabelledComments(
        annotations=annotations,
        y_prob=None if threshold is None else prob,
        weight=(of_items["people"] > 1) / _probability(of_items),
        threshold=0.5 if threshold is None else threshold,
    )


def _threshold_of(prob: NDArray[np.float64], flagged: NDArray[np.bool_]) -> float | None:
    """Return a threshold that gives these decisions (I,); None if there is none.

    >>> _threshold_of(np.array([0.2, 0.4, 0.6]), np.array([False, False, True]))
    0.4
    >>> _threshold_of(np.array([0.2, 0.6]), np.array([True, False])) is None
    True
    """
    highest = float(prob[~flagged].max(initial=0.0))
    return highest if highest < prob[flagged].min(initial=np.inf) else None


def _probability(first: pd.DataFrame) -> NDArray[np.float64]:
    """Return the probability (I,) that comments were routed, and their first labels confirmed."""
    by_label = first[list(CONFIRMATION_PROBABILITIES)].to_numpy(np.float64)
    confirmed = by_label[np.arange(len(first)), first["label"].to_numpy(np.int64)]
    routed = first["inclusion_probability"].to_numpy(np.float64)
    # Missing: not routed by a design; 0: labelled for another reason, such as a retest.
    chance = np.nan_to_num(routed, nan=1.0) * np.nan_to_num(confirmed, nan=1.0)
    return np.asarray(np.where(chance > 0, chance, 1.0))


def opinion_report(
    labels: LabelledComments, groups: Mapping[str, str], *, minimum: int
) -> AnnotationReport:
    """Return the report of moderators' labels, weighted to represent all comments.

    `groups` is the group that each moderator counts in (`people.groups.counted_groups`). Groups of
    fewer than `minimum` people are not shown, and numbers of people and labels of a group are
    multiples of it, rounded down: one person more or less is not seen.
    """
    report = annotation_report(
        labels.annotations,
        y_prob=labels.y_prob,
        groups={"group": groups} if groups else None,
        threshold=labels.threshold,
        minimum=minimum,
        sample_weight=labels.weight,
    )
    rounded = [replace(grouping.rounded(minimum), note=_DRAWN) for grouping in report.groupings]
    return replace(report, groupings=tuple(rounded))


def publish(
    report: AnnotationReport,
    name: str,
    day: datetime.date,
    *,
    title: str,
    tracking_uri: str,
    agreement: Sequence[GroupAgreement] = (),
    more: Sequence[Section] = (),
) -> str:
    """Publish a report as a run in MLflow, dated `day`, in place of one of that name.

    `agreement` of groups of moderators becomes a section of the page, and a table; `more` are
    further sections.
    """
    tables = report.tables()
    if agreement:
        tables["gold_and_retests"] = pd.json_normalize([asdict(group) for group in agreement])
    return publish_report(
        name,
        day=day,
        metrics=report.metrics(),
        tags={"groups": "significant" if _differing(report) else "none significant"},
        description=describe(report),
        page=render_page(report, title=title, more=[*_checks(agreement), *more]),
        tables=tables,
        tracking_uri=tracking_uri,
    )


def _checks(agreement: Sequence[GroupAgreement]) -> list[Section]:
    """Return the section about gold comments and retests; none without groups."""
    if not agreement:
        return []
    rows = tuple(
        (row.group, *_cells(row.gold_accuracy), *_cells(row.retest_consistency), f"{row.people}")
        for row in agreement
    )
    table = Table(
        caption="Answers to gold comments and to comments shown again, with 95 % intervals",
        columns=("Group", "Gold accuracy", "Answers", "Same label again", "Retests", "Annotators"),
        rows=rows,
    )
    return [
        Section(
            question="Do gold comments and retests mean the same to all groups?",
            answers=(
                "Gold accuracy is the share of gold comments that got their known label; people "
                "who are shown a comment again give it the same label so often.",
                _DRAWN,
            ),
            tables=(table,),
            limits="A lower gold accuracy of one group may mean that the gold labels are the "
            "opinion of the others.",
        )
    ]


def _cells(estimate: Estimate) -> tuple[str, str]:
    """Return an estimate with its interval, and n; a dash where there is none."""
    if estimate.value is None:
        return "–", f"{estimate.n:,}"
    return f"{estimate.value:.3f} ({estimate.low:.3f} to {estimate.high:.3f})", f"{estimate.n:,}"


def describe(report: AnnotationReport) -> str:
    """Return the report in a few lines of Markdown."""
    lines = [
        f"**{report.annotations:,} labels** of {report.items:,} comments by "
        f"{report.annotators:,} people, {report.retests:,} given again.",
        f"Slips: {report.slips()} of the labels ({report.reason}).",
        *(
            f"The {name} equals {report.share(who, 'raw')} of the labels, and agrees with "
            f"{report.share(who, 'adjusted')} of the opinions."
            for who, name in (("model", "model"), ("majority", "majority of the other people"))
            if (who, "raw") in report.agreement
        ),
        f"Groups: {_groups(report)} The page in plain words: Artifacts, `report.html`.",
    ]
    return "  \n".join(lines)


def _groups(report: AnnotationReport) -> str:
    if not report.groupings:
        return "not compared."
    differing = _differing(report)
    return f"{differing} differ by more than chance." if differing else "none differs by more."


def _differing(report: AnnotationReport) -> int:
    return sum(len(grouping.significant()) for grouping in report.groupings)


def store_comparison(lake: Lake, day: datetime.date, report: AnnotationReport) -> int:
    """Store the figures of the groups that a report shows, for the alert rules; return how many.

    `report` is what is published: it has no figure of a suppressed group, and its numbers of people
    are rounded. A row of the metric `COMPARED` marks that there was a comparison.
    """
    tables = [grouping.table for grouping in report.groupings if grouping.table is not None]
    mark = {"group": "", "metric": COMPARED, "annotators": 0, "annotations": 0}
    shown = pd.concat([*tables, pd.DataFrame([mark])], ignore_index=True).dropna(subset=["metric"])
    whole = dict.fromkeys(("annotators", "annotations"), "int64")
    columns = shown.reindex(columns=ANNOTATOR_GROUPS.names).astype(whole).assign(dt=day)
    return lake.replace("annotator_groups", day, [as_batch(columns, ANNOTATOR_GROUPS)]) - 1

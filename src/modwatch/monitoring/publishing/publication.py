"""Publishes a day: its result to the table `days`, and from there to MLflow.

MLflow is written and never read: it is asked only which runs to replace. So days whose runs were
lost or deleted are published again from the tables.
"""

import datetime
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import pyarrow.compute as pc

from modwatch.common.addresses import Site, day_url
from modwatch.common.days import trailing
from modwatch.data.lake.day_scores import model_origin
from modwatch.data.lake.delta import Lake
from modwatch.data.validation.result import CheckStore, ValidationResult
from modwatch.monitoring.incidents.rules import AlertRule, in_words
from modwatch.monitoring.measurements.references import ReferencePlan, references
from modwatch.monitoring.measurements.windows import windows
from modwatch.monitoring.publishing import runs
from modwatch.monitoring.publishing.content import DayContent, read_content, read_shown
from modwatch.monitoring.publishing.days import (
    NO_COMMENTS,
    NOT_RUN,
    NOT_VALIDATED,
    Day,
    KeyFigure,
    read_days,
    recorded_digests,
    save_day,
)
from modwatch.monitoring.publishing.keys import key_figures
from modwatch.monitoring.publishing.timeline import publish_timeline
from modwatch.monitoring.publishing.timeline_charts import read_charts
from modwatch.monitoring.publishing.view import days_url
from modwatch.routing.follow_ups import drawn_follow_ups

#: What was not done on a day if these tables are empty; the first of them counts.
_MISSING = {
    "landed": "no comments were ingested",
    "comments": "the comments were not validated",
    "scores": "the comments were not scored",
    "routed": "nothing was routed",
}


def publish_days(
    lake: Lake,
    checks: CheckStore,
    day: datetime.date,
    *,
    plan: ReferencePlan,
    window_days: int,
    keep_runs: int,
    rules: Sequence[AlertRule],
    site: Site,
    failed: Mapping[datetime.date, str] = MappingProxyType({}),
) -> int:
    """Publish the days that are new or changed, up to `day`; return how many.

    Days that were rejected or failed are published as such.

    Args:
        lake, checks: of the installation.
        day: the last day whose result is recorded, with the other days of its window.
        plan: how the references are chosen that scores are compared with.
        window_days: length of the trailing window.
        keep_runs: days up to the last recorded one that have a run in MLflow; others have none.
        rules: the alert rules, whose bounds the timeline shows.
        site: MLflow, and the pages to link.
        failed: which task failed on a day, and why, as a sentence.
    """
    record_days(lake, checks, day, window_days=window_days, failed=failed)
    days = read_days(lake)
    kept = [one for one in days if (days[-1].day - one.day).days < keep_runs]
    outdated = runs.outdated_days(kept, tracking_uri=site.mlflow_url)
    for shown in outdated:
        window = trailing(shown.day, window_days)
        compared = references(lake, checks, shown.day, plan=plan) if shown.is_measured else []
        runs.publish_day(
            shown,
            read_shown(lake, shown, window, compared) if shown.is_measured else None,
            check_page=checks.read_page(shown.day),
            links={
                "Review queue": site.console_url,
                "Airflow run": day_url(site.airflow_url, shown.day, "airflow"),
            },
            tracking_uri=site.mlflow_url,
        )
    if days:
        days_url(site.mlflow_url)  # saves the view of the days
        publish_timeline(days, rules, read_charts(lake), tracking_uri=site.mlflow_url)
    return len(outdated)


def record_days(
    lake: Lake,
    checks: CheckStore,
    last: datetime.date,
    *,
    window_days: int,
    failed: Mapping[datetime.date, str] = MappingProxyType({}),
) -> list[datetime.date]:
    """Bring the table `days` up to date for the window that ends with `last`; return what changed.

    Days before the first that was ever ingested did not fail, and have no row.
    """
    spans = [trailing(day, window_days) for day in trailing(last, window_days)]
    begun = min([*checks.days()[:1], *lake.days("landed")[:1], last])
    stored = recorded_digests(lake, spans[0][-1], last)
    changed = []
    for span, window in zip(spans, windows(lake, spans), strict=True):
        content = read_content(lake, checks, span, window)
        known = stored.get(content.day)
        found = None
        if content.is_measured:
            found = measured_day(lake, content) if content.digest != known else None
        elif content.day >= begun:
            found = unmeasured_day(lake, content, failed.get(content.day))
        if found is not None and found.digest != known:
            save_day(lake, found)
            changed.append(content.day)
    return changed


def measured_day(lake: Lake, content: DayContent) -> Day:
    """Return the result of a day that was measured."""
    day = content.day
    # Not `data.lake.day_scores`, which also loads the ids of all comments.
    columns = ["flagged", "model_variance", "model_version"]
    scores = lake.table("scores", day, columns=columns, role="champion")
    design = lake.table("routing_design", day, columns=["strategy", "review_fraction"])
    varies = bool(pc.any(pc.greater(scores.column("model_variance"), 0)).as_py())
    landed = lake.count("landed", day)
    counted = Day(
        day=day,
        checks=content.checks if landed else NO_COMMENTS,
        landed=landed,
        comments=len(scores),
        quarantined=lake.count("quarantine", day),
        flagged=pc.sum(scores.column("flagged")).as_py() or 0,
        routed=lake.count("routed", day),
        labelled=lake.count("labels", day),
        model_version=scores.column("model_version")[0].as_py() if len(scores) else "",
        model_origin=model_origin(lake, day),
        deterministic=len(scores) > 0 and not varies,
        **design.slice(0, 1).to_pylist()[0],
        pooled_days=content.pooled_days,
        window_days=content.window_days,
        alerts=content.alerts,
        digest=content.digest,
    )
    figures = key_figures(content.tables, counted) | _follow_ups(lake, day)
    return replace(counted, figures=figures)


def _follow_ups(lake: Lake, day: datetime.date) -> dict[str, KeyFigure]:
    """Return the figures `keys.FOLLOW_UPS`; none before the review of the day is over."""
    missing = drawn_follow_ups(lake, day).to_pandas()
    if missing.empty:
        return {}
    labels = lake.table("labels", day, columns=["comment_id"]).column("comment_id")
    labelled, drawn = missing["comment_id"].isin(labels.to_pandas()), missing["drawn"]
    counts = missing["reason"].value_counts().add_prefix("missing_").to_dict()
    answered, late = (drawn & labelled).sum(), (labelled & ~drawn).sum()
    counts |= {"follow_ups": drawn.sum(), "follow_ups_answered": answered, "late_labels": late}
    return {f"review/{name}": KeyFigure(value=float(count)) for name, count in counts.items()}


def unmeasured_day(lake: Lake, content: DayContent, failed: str | None) -> Day | None:
    """Return why a day has no estimates; None if it is to be measured yet.

    `failed` names the failed task and its error, if that is known.
    """
    rejected = [result for result in content.results if result.rejected]
    names = (name for name in _MISSING if not lake.count(name, content.day))
    missing = next(names, None)
    if not rejected and missing is None:
        return None
    idle = not failed and missing == "landed"
    found = Day(
        day=content.day,
        checks="rejected" if rejected else NOT_RUN if idle else NOT_VALIDATED,
        reason=_failed_rules(rejected[0])
        if rejected
        else failed or f"{_MISSING[str(missing)]}; open the Airflow run",
        landed=lake.count("landed", content.day),
        alerts=content.alerts,
        figures={"day/alerts": KeyFigure(value=float(len(content.alerts)))},
    )
    text = repr((found.checks, found.reason, found.landed, found.alerts))
    return replace(found, digest=hashlib.sha256(text.encode()).hexdigest())


def _failed_rules(result: ValidationResult) -> str:
    """Return the rules that failed a day, and what they found, in Markdown."""
    failed = (rule for rule in result.failed_of("day") if rule.severity == "critical")
    return "; ".join(
        f"{in_words(rule.name)}: {rule.observed}, allowed: {rule.allowed}" for rule in failed
    )

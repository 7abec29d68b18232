"""Publishes a day: its result to the table `days`, and from there to MLflow.

MLflow is written and never read: it is asked only which runs to replace. So days whose runs were
lost or deleted are published again from the tables.
"""

import datetime
import hashlib
from collections.abc import Sequence
from dataclasses import replace

from modwatch.common.addresses import Site, day_url
from modwatch.common.days import trailing
from modwatch.data.lake.delta import Lake
from modwatch.data.validation.result import Status, ValidationResult
from modwatch.data.validation.store import CheckStore
from modwatch.monitoring.incidents.evaluation import active_alerts
from modwatch.monitoring.incidents.rules import AlertRule, in_words
from modwatch.monitoring.measurements.references import ReferencePlan, references
from modwatch.monitoring.measurements.windows import windows
from modwatch.monitoring.publishing import runs, timeline
from modwatch.monitoring.publishing.content import read_shown, read_tables
from modwatch.monitoring.publishing.days import NOT_VALIDATED, Day, KeyFigure, read_days, save_day
from modwatch.monitoring.publishing.keys import key_figures
from modwatch.monitoring.publishing.view import days_url

_WORST: tuple[Status, ...] = ("rejected", "warned", "passed")

#: What was not done on a day of which these tables are empty; the first of them counts.
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
    rules: Sequence[AlertRule],
    site: Site,
) -> int:
    """Publish the days that are new or changed, up to `day`; return how many.

    Days that were rejected or failed are published as such.

    Args:
        lake, checks: of the installation.
        day: the last day whose result is recorded, with the other days of its window.
        plan: how the references are chosen that scores are compared with.
        window_days: length of the trailing window.
        rules: the alert rules, whose bounds the timeline shows.
        site: MLflow, and the pages to link.
    """
    record_days(lake, checks, day, window_days=window_days)
    days = read_days(lake)
    outdated = runs.outdated_days(days, tracking_uri=site.mlflow_url)
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
        timeline.publish_days(days, rules, tracking_uri=site.mlflow_url)
    timeline.publish_groups(lake, tracking_uri=site.mlflow_url)
    return len(outdated)


def record_days(
    lake: Lake, checks: CheckStore, last: datetime.date, *, window_days: int
) -> list[datetime.date]:
    """Bring the table `days` up to date for the window that ends with `last`; return what changed.

    Days before the first that was ever ingested did not fail, and have no row.
    """
    days = trailing(last, window_days)
    begun = min([*checks.days()[:1], *lake.days("landed")[:1], last])
    stored = {
        row["dt"]: row["digest"]
        for batch in lake.read_between("days", days[0], last, columns=["dt", "digest"])
        for row in batch.to_pylist()
    }
    changed = []
    for past in days:
        if lake.count("measurements", past):
            found = _measured(lake, checks, past, trailing(past, window_days), stored.get(past))
        else:
            found = _unmeasured(lake, checks, past) if past >= begun else None
        if found is not None and found.digest != stored.get(past):
            save_day(lake, found)
            changed.append(past)
    return changed


def _measured(
    lake: Lake,
    checks: CheckStore,
    day: datetime.date,
    window: Sequence[datetime.date],
    digest: str | None,
) -> Day | None:
    """Return the result of a day that was measured; None if it is the one with this digest."""
    tables = read_tables(lake, day, window)
    results = (checks.load("comments", day), checks.load("scores", day))
    statuses = {result.status for result in results if result is not None}
    status = next((status for status in _WORST if status in statuses), "passed")
    alerts = active_alerts(lake.table("alerts", day))
    newest = tables.digest(more=(status, alerts))
    if newest == digest:
        return None
    (measured,) = windows(lake, [window])
    counted = Day(
        day=day,
        checks=status,
        landed=lake.count("landed", day),
        quarantined=lake.count("quarantine", day),
        routed=lake.count("routed", day),
        labelled=lake.count("labels", day),
        pooled_days=len(measured.days),
        window_days=len(window),
        alerts=alerts,
        digest=newest,
    )
    columns = ["strategy", "review_fraction"]
    [design] = lake.table("routing_design", day, columns=columns).slice(0, 1).to_pylist()
    scored = replace(_scored(lake, counted), **design)
    return replace(scored, figures=key_figures(tables, scored))


def _scored(lake: Lake, day: Day) -> Day:
    """Return the day with what its scores say."""
    # Not `data.lake.day_scores`, which also loads the ids of all comments.
    columns = ["flagged", "model_variance", "model_version"]
    comments, flagged, varies, version = 0, 0, False, ""
    for batch in lake.read("scores", day.day, columns=columns, role="champion"):
        comments += batch.num_rows
        flagged += int(batch.column("flagged").to_numpy(zero_copy_only=False).sum())
        varies |= bool(batch.column("model_variance").to_numpy(zero_copy_only=False).any())
        version = version or batch.column("model_version")[0].as_py()
    deterministic = comments > 0 and not varies
    return replace(
        day,
        comments=comments,
        flagged=flagged,
        deterministic=deterministic,
        model_version=version,
    )


def _unmeasured(lake: Lake, checks: CheckStore, day: datetime.date) -> Day | None:
    """Return why a day has no measurements; None if it is to be measured yet."""
    results = [checks.load("comments", day), checks.load("scores", day)]
    rejected = [result for result in results if result is not None and result.rejected]
    missing = next((text for name, text in _MISSING.items() if not lake.count(name, day)), None)
    if not rejected and missing is None:
        return None
    found = Day(
        day=day,
        checks="rejected" if rejected else NOT_VALIDATED,
        reason=_failed_rules(rejected[0]) if rejected else f"{missing}; open the Airflow run",
        landed=lake.count("landed", day),
        alerts=active_alerts(lake.table("alerts", day)),
    )
    content = repr((found.checks, found.reason, found.landed, found.alerts))
    return replace(
        found,
        figures={"day/alerts": KeyFigure(value=float(len(found.alerts)))},
        digest=hashlib.sha256(content.encode()).hexdigest(),
    )


def _failed_rules(result: ValidationResult) -> str:
    """Return the rules that failed a day, and what they found, in Markdown."""
    failed = (rule for rule in result.failed_of("day") if rule.severity == "critical")
    return "; ".join(
        f"{in_words(rule.name)}: {rule.observed}, allowed: {rule.allowed}" for rule in failed
    )

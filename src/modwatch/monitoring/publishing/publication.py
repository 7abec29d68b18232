"""Publishes a day: its result to the table `days`, and from there to MLflow.

MLflow is written and never read: it is asked only which runs to replace. So days whose runs were
lost or deleted are published again from the tables.
"""

import datetime
from collections.abc import Sequence

from modwatch.common.addresses import Site, day_url
from modwatch.common.days import trailing
from modwatch.data.lake.delta import Lake
from modwatch.data.validation.store import CheckStore
from modwatch.monitoring.incidents.rules import AlertRule
from modwatch.monitoring.measurements.references import ReferencePlan, references
from modwatch.monitoring.measurements.windows import windows
from modwatch.monitoring.publishing import runs, timeline
from modwatch.monitoring.publishing.content import read_content, read_shown
from modwatch.monitoring.publishing.days import read_days, recorded_digests, save_day
from modwatch.monitoring.publishing.results import measured_day, unmeasured_day
from modwatch.monitoring.publishing.view import days_url


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
    spans = [trailing(day, window_days) for day in trailing(last, window_days)]
    begun = min([*checks.days()[:1], *lake.days("landed")[:1], last])
    stored = recorded_digests(lake, spans[0][-1], last)
    changed = []
    for span, window in zip(spans, windows(lake, spans), strict=True):
        content = read_content(lake, checks, span, window)
        known = stored.get(content.day)
        if content.is_measured and content.digest != known:
            save_day(lake, measured_day(lake, content))
        elif not content.is_measured and content.day >= begun:
            found = unmeasured_day(lake, content)
            if found is None or found.digest == known:
                continue
            save_day(lake, found)
        else:
            continue
        changed.append(content.day)
    return changed

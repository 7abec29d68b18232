"""The path of opinions, as the DAG `monitor_disagreement` takes it every week.

    collect_annotations → publish_opinions → raise_alerts → deliver_alerts
    measure_blindness

The labels of twelve weeks tell of slips, of opinions, and of the model's agreement with them.
Groups of moderators, which these choose themselves, are compared over four weeks that no other
report compares: no difference of two reports is about few people. Alerts are raised of what this
comparison found, and delivered as those of a day are.
"""

import datetime
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from modwatch.common.days import trailing

if TYPE_CHECKING:
    from modwatch.installation.resources import Resources

#: Days whose labels a report is made of.
DAYS = 84

#: Weeks whose labels are compared by group, in one report and never again.
GROUP_WEEKS = 4

#: Members of a group that is shown.
MINIMUM_MEMBERS = 10


def collect_annotations(resources: "Resources", last: datetime.date) -> int:
    """Copy the labels given in the twelve weeks to the day `last`; return how many there are."""
    from modwatch.review.log.labels import annotation_days, given_labels

    lake, database, period = resources.lake, resources.database, trailing(last, DAYS)
    days = set(annotation_days(database, period[0], last))
    stored = set(lake.days("annotations"))
    return sum(
        lake.replace("annotations", day, given_labels(database, day) if day in days else [])
        for day in period
        if day in days | stored
    )


def publish_opinions(resources: "Resources", last: datetime.date) -> int:
    """Publish the report of the twelve weeks to `last` to MLflow; return how many labels it has.

    Groups are compared in a run of their own if `last` ends four weeks of groups, once: with the
    same labels compared again, who joined or left a group would show in the difference.
    """
    from modwatch.monitoring.measurements.opinions import labels_between, opinion_report, publish

    lake, url = resources.lake, resources.settings.mlflow_url
    labels = labels_between(lake, trailing(last, DAYS)[0], last)
    if labels is None:
        return 0
    report = opinion_report(labels, {}, minimum=MINIMUM_MEMBERS)
    publish(report, f"opinions {last}", last, title="Moderators", tracking_uri=url)
    if ends_group_weeks(last):
        _publish_groups(resources, last)
    return report.annotations


def _publish_groups(resources: "Resources", last: datetime.date) -> None:
    """Publish the comparison of groups over the four weeks to `last`, unless it is published."""
    from modwatch.monitoring.measurements.opinions import (
        labels_between,
        opinion_report,
        publish,
        store_comparison,
    )
    from modwatch.review.people.groups import counted_groups
    from modwatch.review.quality_control.agreement import agreement_by_group

    name, url = f"groups of moderators {last}", resources.settings.mlflow_url
    if last in resources.lake.days("annotator_groups"):
        return
    first = trailing(last, 7 * GROUP_WEEKS)[0]
    labels = labels_between(resources.lake, first, last)
    groups = counted_groups(resources.database)
    if labels is not None and groups:
        report = opinion_report(labels, groups, minimum=MINIMUM_MEMBERS)
        gold = agreement_by_group(resources.database, first, last, least_people=MINIMUM_MEMBERS)
        publish(report, name, last, title=name.capitalize(), tracking_uri=url, agreement=gold)
        # At the end: a stored comparison is not made again.
        store_comparison(resources.lake, last, report)


def measure_blindness(resources: "Resources", last: datetime.date) -> int:
    """Publish how well measurements are told from ordinary items, over the four weeks to `last`.

    Returns the number of kinds that are recognised, which leads see on their page of the team.
    """
    from modwatch.monitoring.publishing.runs import publish_report
    from modwatch.review.quality_control.blindness import measure_blindness, recognised

    found = measure_blindness(resources.database, last)
    known = {kind: auc.known for kind, auc in found.items() if auc.status == "ok"}
    kinds = recognised(found)
    names = ("auc", "auc_low", "auc_high")
    publish_report(
        f"blind integrity {last}",
        day=last,
        metrics={
            f"blindness.{kind}.{name}": value
            for kind, values in known.items()
            for name, value in zip(names, values, strict=True)
        },
        tags={"recognised": ", ".join(kinds) or "none"},
        description="How well a classifier tells what is served to measure people from the rest.",
        page="",
        tables={},
        tracking_uri=resources.settings.mlflow_url,
    )
    return len(kinds)


def raise_alerts(resources: "Resources", last: datetime.date) -> int:
    """Evaluate the alert rules on groups up to the day `last`; return how many alerts are new."""
    from modwatch.common.mlflow_client import alert_links
    from modwatch.monitoring.incidents.evaluation import evaluate_annotators
    from modwatch.monitoring.publishing.runs import GROUP_EXPERIMENT

    return evaluate_annotators(
        resources.lake,
        resources.database,
        last,
        rules=resources.alert_rules,
        channels=resources.alert_channels,
        links=alert_links(resources.site, experiment=GROUP_EXPERIMENT, dag="monitor_disagreement"),
    )


def publish_file(resources: "Resources", path: Path, groups: Sequence[str]) -> int:
    """Publish the report of a file with one row an annotation to MLflow; return how many labels.

    Raises:
        SourceError: the file cannot be read, or contradicts itself.
        MetricInputError: its labels are no annotations.
    """
    from modwatch.monitoring.annotation_report import report_of_file, rows_section
    from modwatch.monitoring.measurements.opinions import publish

    table, report = report_of_file(path, groups)
    today = datetime.datetime.now(datetime.UTC).date()
    url = resources.settings.mlflow_url
    publish(
        report,
        f"annotations {path.stem}",
        today,
        title=path.stem,
        tracking_uri=url,
        more=[rows_section(table)],
    )
    return report.annotations


def ends_group_weeks(last: datetime.date) -> bool:
    """Return whether `last` is the Sunday that ends four weeks whose groups are compared.

    >>> [ends_group_weeks(datetime.date(2026, 1, day)) for day in (4, 11, 18, 25)]
    [True, False, False, False]
    """
    weeks, day = divmod(last.toordinal(), 7)
    return day == 0 and weeks % GROUP_WEEKS == 0


def last_sunday(moment: datetime.datetime) -> datetime.date:
    """Return the last Sunday before a moment, in UTC.

    >>> last_sunday(datetime.datetime(2026, 1, 12, 7, tzinfo=datetime.UTC))
    datetime.date(2026, 1, 11)
    """
    day = moment.astimezone(datetime.UTC).date()
    return day - datetime.timedelta(days=day.isoweekday())

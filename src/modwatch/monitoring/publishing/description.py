"""The text of a run's page in MLflow: its description in Markdown and its tags."""

import math
from collections.abc import Mapping, Sequence
from datetime import date, timedelta

import pandas as pd

from modwatch.common.markdown import markdown_text
from modwatch.monitoring.incidents.messages.incidents import ActiveAlert
from modwatch.monitoring.incidents.rules import in_words
from modwatch.monitoring.publishing.changes import COMPARED, Change, changes
from modwatch.monitoring.publishing.facts import DayFacts, DayTables, UnmeasuredDay
from modwatch.monitoring.publishing.groups import describe_groups
from modwatch.monitoring.publishing.keys import (
    RULES_TAG,
    DeployedEstimates,
    Row,
    metric_title,
)
from modwatch.monitoring.publishing.status import NORMAL, day_status

# Few: MLflow hides what goes beyond some five lines.
_TOGETHER = ("oc_accuracy", "oc_auroc", "review_efficiency")
_ALONE = ("accuracy",)
_COMPARED = ("accuracy", "oc_accuracy", "oc_auroc", "review_efficiency")
_MAX_ALERTS = 3

#: Estimates that the list of runs shows, by their tag.
_COLUMNS = {"accuracy": "accuracy", "OC-Acc": "oc_accuracy", "RE": "review_efficiency"}
_ONE_DAY = timedelta(days=1)

#: Characters of the tag with the alerts; MLflow rejects tags of several thousand.
_MAX_TAG = 3000
#: Alerts whose rules the timeline shows.
_MAX_TAG_ALERTS = 30


def describe_day(
    day: date,
    facts: DayFacts,
    estimates: DeployedEstimates,
    drift: tuple[str, str],
    tables: DayTables | None = None,
) -> str:
    """Return the description of one day in a few lines of Markdown, with 95 % intervals.

    Whether the day is normal, and its alerts; significant changes; links; volume, validation and
    drift; the main estimates; people's errors, which these allow for; the queue and what could not
    be estimated, with reasons; of the tables, if they are given, the challenger and the groups of
    comments. `drift` is what
    `effects.drift_status` returns.
    """
    challenger = None if tables is None else tables.challenger
    groups = None if tables is None else tables.comment_groups
    lines = [
        f"{_headline(day_status(facts.checks, facts.alerts))}. {_alerts(facts.alerts)}",
        _changed(day, estimates),
        _links(facts),
        _volume(facts, drift),
        _quality(estimates, facts),
        _people(estimates),
        _queue(facts) + _missing(estimates),
        describe_challenger(challenger) if challenger is not None and len(challenger) else "",
        describe_groups(groups) if groups is not None and len(groups) else "",
    ]
    return "  \n".join(line for line in lines if line)  # Markdown breaks a line at two spaces


def describe_timeline(first: date, last: date, days: int, *, page_url: str | None = None) -> str:
    """Return the description of the timeline run in Markdown.

    `page_url` is the address of its page: None without a page, empty if it has no address.

    >>> print(describe_timeline(date(2026, 1, 5), date(2026, 1, 6), 2))
    **2026-01-05 to 2026-01-06**, 2 days; one point per day, updated while labels come in.
    <BLANKLINE>
    Step 0 is 2026-01-05. To show dates on the charts: Model metrics, gear, x-axis "Time (wall)".
    The same charts with 95 % intervals: Artifacts, `figures/timeline.png`.
    """
    noun = "day" if days == 1 else "days"
    head = f"**{first} to {last}**, {days} {noun}; one point per day, updated while labels come in."
    if page_url is not None:
        page = f"[Timeline](<{page_url}>)" if page_url else "Artifacts, `timeline.html`"
        return (
            f"{page}: estimates with intervals, thresholds, models, incidents.\n\n{head} "
            "The charts of this run show counts only, which have no intervals."
        )
    return (
        f"{head}"
        f"\n\nStep 0 is {first}. To show dates on the charts: Model metrics, gear, x-axis "
        '"Time (wall)".\nThe same charts with 95 % intervals: Artifacts, `figures/timeline.png`.'
    )


def describe_unmeasured(day: UnmeasuredDay) -> str:
    """Return the description of a day without measurements in Markdown.

    >>> day = UnmeasuredDay(day=date(2026, 1, 5), status="rejected", landed=3,
    ...                     reason="volume low: 3 rows, allowed: at least 100")
    >>> print(describe_unmeasured(day))
    **REJECTED**: volume low: 3 rows, allowed: at least 100. Active alerts: none.
    """
    first = f"{_headline(day.status)}: {day.reason}. {_alerts(day.alerts)}"
    return "  \n".join(line for line in (first, _links(day)) if line)


def day_tags(facts: DayFacts, estimates: DeployedEstimates, drift: str) -> dict[str, str]:
    """Return the tags by which an ops engineer sorts and filters the list of runs.

    The estimates are those of the window, as in the description.
    """
    rows = estimates.day if estimates.window is None else estimates.window
    missing = len(estimates.missing) + estimates.missing_elsewhere
    return {
        "status": day_status(facts.checks, facts.alerts),
        "checks": facts.checks,
        "comments": f"{facts.comments:,}",
        "labels": f"{facts.labelled:,} of {facts.routed:,}",
        **{name: _in_short(rows.get(metric)) for name, metric in _COLUMNS.items()},
        "estimates": f"{missing} insufficient" if missing else "ok",
        "window": f"{facts.pooled_days} of {facts.window_days} days",
        "drift": drift,
        "alerts": alert_tag(facts.alerts),
        RULES_TAG: rule_tag(facts.alerts),
        "digest": facts.digest,
    }


def unmeasured_tags(day: UnmeasuredDay) -> dict[str, str]:
    """Return the tags of a day without measurements; those of its estimates are absent.

    >>> day = UnmeasuredDay(day=date(2026, 1, 5), status="rejected", landed=1129, reason="")
    >>> unmeasured_tags(day)["comments"]
    '1,129 landed'
    """
    return {
        "status": day.status,
        "checks": day.status if day.status == "rejected" else "none",
        "comments": f"{day.landed:,} landed" if day.landed else "not known",
        "alerts": alert_tag(day.alerts),
        RULES_TAG: rule_tag(day.alerts),
        "digest": day.digest,
    }


def _in_short(row: Row | None) -> str:
    """Return an estimate and its interval in as few characters as possible."""
    if row is None:
        return "insufficient"
    if math.isnan(row["low"]) or math.isnan(row["high"]):
        return f"{row['value']:.3f}"
    return f"{row['value']:.3f} ({row['low']:.2f}–{row['high']:.2f})"


def alert_tag(alerts: Sequence[ActiveAlert]) -> str:
    """Return what the active alerts say, which come in order of severity, by severity.

    >>> one = ActiveAlert(rule="queue_old", subject="", severity="warning",
    ...                   since=date(2026, 1, 5), description="",
    ...                   headline="Comments have waited in the queue for 50 hours")
    >>> alert_tag([one]), alert_tag([])
    ('warning: Comments have waited in the queue for 50 hours', 'none')
    """
    severity, parts, length = None, list[str](), 0
    for number, alert in enumerate(alerts):
        part = alert.said if alert.severity == severity else f"{alert.severity}: {alert.said}"
        severity, length = alert.severity, length + len(part) + 2
        if length > _MAX_TAG:
            parts.append(f"{len(alerts) - number} more")
            break
        parts.append(part)
    return "; ".join(parts) or "none"


def rule_tag(alerts: Sequence[ActiveAlert]) -> str:
    """Return the rules of the active alerts, which come in order of severity, by severity.

    >>> one = ActiveAlert(rule="queue_old", subject="", severity="warning",
    ...                   since=date(2026, 1, 5), description="")
    >>> rule_tag([one]), rule_tag([])
    ('warning: queue old', 'none')
    """
    by_severity: dict[str, dict[str, None]] = {}
    for alert in alerts[:_MAX_TAG_ALERTS]:
        by_severity.setdefault(alert.severity, {})[in_words(alert.rule)] = None
    return "; ".join(f"{name}: {', '.join(rules)}" for name, rules in by_severity.items()) or "none"


def _headline(status: str) -> str:
    """Return the status of a day so that it is seen first.

    >>> _headline("normal"), _headline("critical since 2026-01-05")
    ('**Normal**', '**CRITICAL** since 2026-01-05')
    """
    word, _, since = status.partition(" ")
    name = word.capitalize() if status == NORMAL else word.upper()
    return f"**{name}**{since and f' {since}'}"


def _alerts(active: Sequence[ActiveAlert]) -> str:
    lines = [_alert(alert) for alert in active[:_MAX_ALERTS]]
    if more := len(active) - len(lines):
        lines.append(f"{more} more")
    return f"Active alerts: {'; '.join(lines) or 'none'}."


def _alert(alert: ActiveAlert) -> str:
    """Return an alert in Markdown: what happened, since when, and where most of it is.

    >>> print(_alert(ActiveAlert(rule="flagged_more", subject="", severity="warning",
    ...     since=date(2026, 1, 5), description="", headline="More comments are flagged",
    ...     segment="platform=app: flagged 8.0 % → 37.0 %")))
    **warning**: More comments are flagged, since 2026-01-05 (platform=app: flagged 8.0 % → 37.0 %)
    """
    where = f" ({markdown_text(alert.segment)})" if alert.segment else ""
    return f"**{alert.severity}**: {markdown_text(alert.said)}, since {alert.since}{where}"


def _volume(facts: DayFacts, drift: tuple[str, str]) -> str:
    status, feature = drift
    return (
        f"{facts.comments:,} comments, "
        f"{facts.quarantined:,} quarantined"
        f"{_share(facts.quarantined, facts.comments + facts.quarantined)}, "
        f"{facts.flagged:,} flagged{_share(facts.flagged, facts.comments)}. "
        f"Validation: {facts.checks}. Drift: {status}{feature and f' ({feature})'}."
    )


def _changed(day: date, estimates: DeployedEstimates) -> str:
    """List the changes against the day before and its window, which rest on other labels."""
    among = 2 * len(COMPARED)
    compared = {
        str(day - _ONE_DAY): changes(estimates.day, estimates.day_before, among=among),
        "the window before": changes(estimates.day, estimates.window_before, among=among),
    }
    changed = {name: moved for name, (count, moved) in compared.items() if count}
    if not changed:
        return "Changes: no earlier estimates to compare with."
    if not any(changed.values()):
        return f"Changes: none significant against {' or '.join(changed)}."
    parts = (
        f"against {name} {', '.join(map(_change, moved)) or 'none significant'}"
        for name, moved in changed.items()
    )
    return f"Changes: {'; '.join(parts)}."


def _change(change: Change) -> str:
    return f"**{metric_title(change.metric)} {change.before:.3f} → {change.now:.3f}**"


def _quality(estimates: DeployedEstimates, facts: DayFacts) -> str:
    """Give the estimates of the window, or of the day when there is no window."""
    rows, over = estimates.window, f"{facts.pooled_days} of {facts.window_days} days"
    if rows is None:
        rows, over = estimates.day, "the day"
    return f"With review ({over}): {_listed(rows, _TOGETHER)} Model alone: {_listed(rows, _ALONE)}"


def _people(estimates: DeployedEstimates) -> str:
    """Tell how many labels were confirmed and overturned, and how often people err."""
    rows = estimates.day if estimates.window is None else estimates.window
    names = ("annotator_false_positive_rate", "annotator_false_negative_rate")
    if not all(name in rows for name in names):
        return ""
    false_positive, false_negative = (_percent(rows[name]) for name in names)
    confirmed = int(rows[names[0]]["n"])
    overturned = round(confirmed * rows["overturned"]["value"]) if "overturned" in rows else 0
    noun = "label" if confirmed == 1 else "labels"
    return (
        f"Allowing for moderators' errors: {confirmed:,} {noun} confirmed by further people, "
        f"{overturned:,} of them overturned; false-positive rate {false_positive}, "
        f"false-negative rate {false_negative}."
    )


def _percent(row: Row) -> str:
    return f"{row['value']:.1%} ({row['low']:.1%} to {row['high']:.1%})"


def _queue(facts: DayFacts) -> str:
    kind = " (deterministic: uncertainty p(1−p))" * facts.deterministic
    return (
        f"Model {facts.model_version}{kind}; "
        f"{facts.routed:,} comments routed by {facts.strategy} "
        f"(review fraction {facts.review_fraction:.3g}), "
        f"{facts.labelled:,} labelled{_share(facts.labelled, facts.routed)}."
    )


def _share(part: int, whole: int) -> str:
    return f" ({100 * part / whole:.3g} %)" if whole else ""


def _listed(rows: Mapping[str, Row], metrics: Sequence[str]) -> str:
    """Return the estimates of these metrics, in this order."""
    estimates = [_estimate(rows[metric]) for metric in metrics if metric in rows]
    return f"{', '.join(estimates)}." if estimates else "not enough data."


def _estimate(row: Row) -> str:
    text = f"{metric_title(row['metric'])} {row['value']:.3f}"
    if math.isnan(row["low"]) or math.isnan(row["high"]):
        return text
    return f"{text} ({row['low']:.3f} to {row['high']:.3f})"


def _missing(estimates: DeployedEstimates) -> str:
    """List what could not be estimated of the day as deployed, by reason, and count the rest."""
    reasons: dict[str, list[str]] = {}
    for row in estimates.missing:
        reasons.setdefault(str(row["reason"]), []).append(metric_title(row["metric"]))
    named = [
        f"{', '.join(metrics)}{reason and f' ({reason})'}" for reason, metrics in reasons.items()
    ]
    if others := estimates.missing_elsewhere:
        noun = "estimate" if others == 1 else "estimates"
        named.append(f"{others} {noun} at other settings (`tables/measurements.json`)")
    return f" **Insufficient** on the day: {'; '.join(named)}." if named else ""


def describe_challenger(table: pd.DataFrame) -> str:
    """Return how the challenger differs from the champion; `table`: `lake.schemas.CHALLENGER`."""
    rows: dict[str, Row] = {str(row["metric"]): row for row in table.to_dict("records")}
    alike = " and ".join(
        f"{rows[name]['value']:.1%} {what}"
        for name, what in (
            ("same_decision", "of the decisions"),
            ("same_reviewed", "of the reviewed comments"),
        )
        if name in rows
    )
    gains = ", ".join(
        f"{metric_title(name)} {rows[name]['value']:+.3f} "
        f"({rows[name]['low']:+.3f} to {rows[name]['high']:+.3f})"
        for name in _COMPARED
        if name in rows and rows[name]["status"] == "ok"
    )
    first = next(iter(rows.values()))
    days = f"{first['days']} day{'s' * (first['days'] != 1)}"
    return (
        f"Challenger {first['challenger_version']} in shadow ({days}): {alike} are the same; "
        f"challenger less champion: {gains or 'not enough data'}."
    )


def _links(facts: DayFacts | UnmeasuredDay) -> str:
    pages = {
        "Validation page": facts.check_page_url,
        "Review queue": facts.queue_url,
        "Airflow run": facts.airflow_run_url,
    }
    return " · ".join(f"[{name}](<{url}>)" for name, url in pages.items() if url)

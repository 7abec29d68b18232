"""The text of a run's page in MLflow: its description in Markdown and its tags."""

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import pandas as pd

from modwatch.common.text import markdown_text
from modwatch.monitoring.incidents.messages.alert import remedy
from modwatch.monitoring.incidents.messages.incidents import ActiveAlert
from modwatch.monitoring.measurements.tables import HISTORY, SHARED_ERRORS
from modwatch.monitoring.publishing.assumptions import describe_checks
from modwatch.monitoring.publishing.content import DayTables
from modwatch.monitoring.publishing.days import NORMAL, Day
from modwatch.monitoring.publishing.keys import (
    FOLLOW_UPS,
    DeployedEstimates,
    Row,
    deployed_estimates,
)
from modwatch.statistics.estimate import SIGNIFICANT
from modwatch.statistics.live.census import OWN_PART, contradicted
from modwatch.statistics.live.figures import ALONE, TOGETHER, keys, title_of

# Few: MLflow hides what goes beyond some five lines.
_TOGETHER, _ALONE = (keys(headline=True, group=group) for group in (TOGETHER, ALONE))
_MAX_ALERTS = 3

#: Characters of the tag with the alerts; MLflow rejects tags of several thousand.
_MAX_TAG = 3000

#: Metrics by which groups of comments are compared, and significant differences that are listed.
_GROUP_METRICS = {"mean_uncertainty": "uncertainty", "accuracy": "accuracy (window)"}
_MOST_GROUPS = 3


def describe_day(
    day: Day, tables: DayTables | None, links: Mapping[str, str] = MappingProxyType({})
) -> str:
    """Return the description of a day in a few lines of Markdown, with 95 % intervals.

    Whether the day is normal, and its alerts; links; volume and validation; the main estimates;
    moderators' errors, which these allow for, and checks of what they suppose; the queue and what
    could not be estimated, with reasons; the challenger and the groups of comments. Of a day
    without estimates (`tables` is None), the reason.

    >>> from datetime import date
    >>> day = Day(day=date(2026, 1, 5), checks="rejected", landed=3,
    ...           reason="volume low: 3 rows, allowed: at least 100")
    >>> print(describe_day(day, None).partition(" Then")[0])
    **REJECTED**: volume low: 3 rows, allowed: at least 100.
    """
    pages = " · ".join(f"[{name}](<{url}>)" for name, url in links.items())
    if tables is None:
        why = f"{_headline(day.status)}: {day.reason}. {remedy(day.day)}"
        lines = [f"{why} {_alerts(day.alerts)}", pages]
    else:
        estimates = deployed_estimates(tables, day)
        lines = [
            f"{_headline(day.status)}. {_alerts(day.alerts)}",
            pages,
            _volume(day),
            _quality(day, estimates),
            _people(estimates),
            describe_checks(tables.assumption_checks),
            _queue(day) + _missing(estimates),
            describe_challenger(tables.challenger),
            describe_groups(tables.comment_groups),
        ]
    return "  \n".join(line for line in lines if line)  # Markdown breaks a line at two spaces


def day_tags(day: Day, tables: DayTables | None) -> dict[str, str]:
    """Return the tags by which an ops engineer sorts and filters the list of runs.

    The estimates are those of the window, as in the description; a day without estimates
    (`tables` is None) has none.

    >>> from datetime import date
    >>> day = Day(day=date(2026, 1, 5), checks="rejected", landed=1129, reason="volume low")
    >>> day_tags(day, None)["comments"]
    '1,129 landed'
    """
    tags = {
        "status": day.status,
        "checks": day.checks,
        "alerts": alert_tag(day.alerts),
        "digest": day.digest,
        **day.columns,
    }
    if tables is None:
        return tags
    estimates = deployed_estimates(tables, day)
    missing = len(estimates.missing) + estimates.missing_elsewhere
    return tags | {
        "estimates": f"{missing} insufficient" if missing else "ok",
        "window": f"{day.pooled_days} of {day.window_days} days",
    }


def alert_tag(alerts: Sequence[ActiveAlert]) -> str:
    """Return what the active alerts say, which come in order of severity, by severity.

    >>> from datetime import date
    >>> one = ActiveAlert(rule="queue_old", subject="", severity="warning",
    ...                   since=date(2026, 1, 5), description="",
    ...                   headline="Comments have waited in the queue for 50 hours")
    >>> alert_tag([one]), alert_tag([])
    ('warning: Comments have waited in the queue for 50 hours', 'none')
    """
    severity, parts, length = None, list[str](), 0
    for number, alert in enumerate(alerts):
        part = alert.title if alert.severity == severity else f"{alert.severity}: {alert.title}"
        severity, length = alert.severity, length + len(part) + 2
        if length > _MAX_TAG:
            parts.append(f"{len(alerts) - number} more")
            break
        parts.append(part)
    return "; ".join(parts) or "none"


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

    >>> from datetime import date
    >>> print(_alert(ActiveAlert(rule="flagged_more", subject="", severity="warning",
    ...     since=date(2026, 1, 5), description="", headline="More comments are flagged",
    ...     segment="platform=app: flagged 8.0 % → 37.0 %")))
    **warning**: More comments are flagged, since 2026-01-05 (platform=app: flagged 8.0 % → 37.0 %)
    """
    where = f" ({markdown_text(alert.segment)})" if alert.segment else ""
    return f"**{alert.severity}**: {markdown_text(alert.title)}, since {alert.since}{where}"


def _volume(day: Day) -> str:
    return (
        f"{day.comments:,} comments, "
        f"{day.quarantined:,} quarantined"
        f"{_share(day.quarantined, day.comments + day.quarantined)}, "
        f"{day.flagged:,} flagged{_share(day.flagged, day.comments)}. "
        f"Validation: {day.checks}."
    )


def _quality(day: Day, estimates: DeployedEstimates) -> str:
    """Give the estimates of the window, or of the day when there is no window."""
    rows, own, over = estimates.day, estimates.own, "the day"
    if estimates.window is not None:
        rows, own = estimates.window, estimates.window_own
        over = f"{day.pooled_days} of {day.window_days} days"
    together, alone = (_listed(rows, own, metrics) for metrics in (_TOGETHER, _ALONE))
    return f"With review ({over}): {together} Model alone: {alone}"


def _people(estimates: DeployedEstimates) -> str:
    """Return how many labels were confirmed and overturned, and moderators' error rates."""
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
        f"false-negative rate {false_negative}.{_shared(rows)} Estimates average P(toxic | "
        f"score) over all comments, from these labels and those of {HISTORY} days before; "
        f"intervals hold {OWN_PART:.0%} of either side of the random slice's own. Where that "
        "excludes the average, estimates are the slice's."
    )


def _shared(rows: Mapping[str, Row]) -> str:
    """Return up to which share people may repeat the errors of others."""
    if not all(name in rows for name in SHARED_ERRORS):
        return ""
    up, down = (f"{rows[name]['value']:.0%}" for name in SHARED_ERRORS)
    return (
        f" Intervals hold if a second person repeats up to {up} (false positives) and {down} "
        "(false negatives) of the errors of a first. Misses may be more frequent where scores are "
        "low, and false positives where they are high."
    )


def _percent(row: Row) -> str:
    return f"{row['value']:.1%} ({row['low']:.1%} to {row['high']:.1%})"


def _queue(day: Day) -> str:
    kind = " (deterministic: uncertainty p(1−p))" * day.deterministic
    return (
        f"Model {day.model}{kind}; "
        f"{day.routed:,} comments routed by {day.strategy} "
        f"(review fraction {day.review_fraction:.3g}), "
        f"{day.labelled:,} labelled{_share(day.labelled, day.routed)}."
        f"{_followed_up(day)}"
    )


def _followed_up(day: Day) -> str:
    """Return what labels are missing, and what the estimates suppose of them."""
    unlike = (
        " Missing labels may be toxic more or less often than others of the same score: the "
        "intervals, but for those by the design alone, allow for about eight times the odds."
    )
    counts = {key: int(day.figures[key].value) for key in FOLLOW_UPS if key in day.figures}
    if not counts:
        return unlike if day.labelled < day.routed else ""
    drawn, answered, late = (counts.pop(key) for key in FOLLOW_UPS[-3:])
    reasons = ", ".join(f"{n:,} {key.rpartition('_')[2]}" for key, n in counts.items())
    return (
        f" {sum(counts.values()):,} had no label when their review was over ({reasons}): "
        f"{drawn:,} followed up, {answered:,} of them answered"
        f"{f'; {late:,} later labels of others are left out' * (late > 0)}."
        f"{unlike * (not answered)}"
    )


def _share(part: int, whole: int) -> str:
    return f" ({100 * part / whole:.3g} %)" if whole else ""


def _listed(rows: Mapping[str, Row], own: Mapping[str, Row], metrics: Sequence[str]) -> str:
    estimates = [_estimate(rows[name], own.get(name)) for name in metrics if name in rows]
    return f"{', '.join(estimates)}." if estimates else "not enough data."


def _estimate(row: Row, own: Row | None) -> str:
    text = f"{title_of(row['metric'])} {row['value']:.3f}"
    if math.isnan(row["low"]) or math.isnan(row["high"]):
        return text
    alone = ""
    if own is not None and contradicted(row, own):
        alone = f"; by the design alone {own['low']:.3f} to {own['high']:.3f}"
    return f"{text} ({row['low']:.3f} to {row['high']:.3f}{alone})"


def _missing(estimates: DeployedEstimates) -> str:
    """List what could not be estimated of the day as deployed, by reason, and count the rest."""
    reasons: dict[str, list[str]] = {}
    for row in estimates.missing:
        reasons.setdefault(str(row["reason"]), []).append(title_of(row["metric"]))
    named = [
        f"{', '.join(metrics)}{reason and f' ({reason})'}" for reason, metrics in reasons.items()
    ]
    if others := estimates.missing_elsewhere:
        noun = "estimate" if others == 1 else "estimates"
        named.append(f"{others} {noun} at other settings (`tables/estimates.json`)")
    return f" **Insufficient** on the day: {'; '.join(named)}." if named else ""


def describe_challenger(table: pd.DataFrame | None) -> str:
    """Return how the challenger differs from the champion; without one, an empty text."""
    if table is None or table.empty:
        return ""
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
        f"{title_of(name)} {rows[name]['value']:+.3f} "
        f"({rows[name]['low']:+.3f} to {rows[name]['high']:+.3f})"
        for name in (*_ALONE, *_TOGETHER)
        if name in rows and rows[name]["status"] == "ok"
    )
    first = next(iter(rows.values()))
    days = f"{first['days']} day{'s' * (first['days'] != 1)}"
    return (
        f"Challenger {first['challenger_version']} in shadow ({days}): {alike} are the same; "
        f"challenger less champion: {gains or 'not enough data'}."
    )


def describe_groups(table: pd.DataFrame | None) -> str:
    """Return the significant differences of the groups of a day in one line of Markdown.

    Without a comparison, an empty text.

    >>> row = {"metric": "accuracy", "status": "insufficient", "p_holm": None, "group": "app"}
    >>> describe_groups(pd.DataFrame([row]))
    'Groups of comments: none is large enough to compare.'
    """
    if table is None or table.empty:
        return ""
    known = table[table["metric"].isin(_GROUP_METRICS) & (table["status"] == "ok")]
    if known.empty:
        return "Groups of comments: none is large enough to compare."
    groups = known[["attribute", "group"]].drop_duplicates()
    parts = []
    for metric, name in _GROUP_METRICS.items():
        of_metric = known[known["metric"] == metric]
        if of_metric.empty:  # groups are not compared by labels every day
            continue
        rows = of_metric[of_metric["p_holm"] < SIGNIFICANT]
        rows = rows.reindex(rows["difference"].abs().sort_values(ascending=False).index)
        listed = [
            f"{row['attribute']} {row['group']} {row['difference']:+.3f} "
            f"({row['difference_low']:+.3f} to {row['difference_high']:+.3f})"
            for row in rows.head(_MOST_GROUPS).to_dict("records")
        ]
        more = [f"{len(rows) - _MOST_GROUPS} more"] if len(rows) > _MOST_GROUPS else []
        parts.append(f"{name} {', '.join([*listed, *more]) or 'none'}")
    return (
        f"{len(groups)} groups of comments, each less all others, significant differences only: "
        f"{'; '.join(parts)}."
    )

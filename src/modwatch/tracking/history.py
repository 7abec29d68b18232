"""The published days as the timeline page draws them: figures, intervals, status, incidents."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING

from modwatch.alerts.rules import AlertRule
from modwatch.tracking.keys import COUNTED, INTERVALS_TAG, KEYS, Interval, threshold_rows

if TYPE_CHECKING:
    from mlflow.entities import Run


@dataclass(frozen=True, kw_only=True)
class PublishedDay:
    """One day's run in MLflow."""

    day: date
    #: Values by key, all of them in `keys.KEYS`.
    metrics: Mapping[str, float]
    #: 95 % intervals of those that are estimates.
    intervals: Mapping[str, Interval] = field(default_factory=dict)
    #: As `status.day_status` returns it, or `failed`.
    status: str = "normal"
    #: Names of the rules of the active alerts, by severity.
    alerts: Mapping[str, Sequence[str]] = field(default_factory=dict)
    #: Empty on a day without scores.
    model_version: str = ""

    @property
    def counted(self) -> dict[str, float]:
        """The metrics that have no interval because they are counted."""
        return {key: value for key, value in self.metrics.items() if key in COUNTED}

    @classmethod
    def of(cls, run: "Run") -> "PublishedDay":
        """Return the day of a run; keys of earlier versions are left out."""
        tags, params = run.data.tags, run.data.params
        intervals = json.loads(tags.get(INTERVALS_TAG, "{}"))
        return cls(
            day=date.fromisoformat(tags["day"]),
            metrics={key: value for key, value in run.data.metrics.items() if key in KEYS},
            intervals={key: (low, high) for key, (low, high) in intervals.items()},
            status=tags.get("status", ""),
            alerts=_rules_by_severity(tags.get("alerts", "none")),
            model_version=params.get("model_version", ""),
        )


def _rules_by_severity(tag: str) -> dict[str, list[str]]:
    """Return the rules that `description.alert_tag` lists.

    >>> _rules_by_severity("critical: volume_low; warning: queue_old, scores_jumped")
    {'critical': ['volume_low'], 'warning': ['queue_old', 'scores_jumped']}
    >>> _rules_by_severity("none")
    {}
    """
    parts = [part.partition(": ") for part in tag.split("; ")]
    return {severity: rules.split(", ") for severity, colon, rules in parts if colon}


def thresholds(rules: Sequence[AlertRule]) -> dict[str, list[tuple[float, str]]]:
    """Return the bounds at which alerts open, and the rules' names, by metric key."""
    found: dict[str, list[tuple[float, str]]] = {}
    for rule in (rule for rule in rules if rule.open.compare != "insufficient"):
        for key in threshold_rows(rule.metric, rule.feature, rule.reference):
            found.setdefault(key, []).append((rule.open.bound, rule.name))
    return found

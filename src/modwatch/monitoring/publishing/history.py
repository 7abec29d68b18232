"""The published days as the timeline page draws them: figures, intervals, status, incidents."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING

from modwatch.monitoring.incidents.rules import AlertRule, in_words
from modwatch.monitoring.publishing.keys import (
    COUNTED,
    INTERVALS_TAG,
    KEYS,
    LABELS_TAG,
    RULES_TAG,
    Interval,
    threshold_rows,
)
from modwatch.monitoring.publishing.status import is_bad

if TYPE_CHECKING:
    from mlflow.entities import Run

_COLUMNS = ("comments", "labels", "accuracy", "OC-Acc", "RE")

_AUDITED = ("precision", "recall")


@dataclass(frozen=True, kw_only=True)
class PublishedAudit:
    """An audit's run in MLflow."""

    name: str
    period: str
    #: Precision and recall with their intervals, as text; insufficient ones are absent.
    figures: Sequence[str]

    @classmethod
    def of(cls, run: "Run") -> "PublishedAudit":
        """Return the audit of a run."""
        found = run.data.metrics
        keys = {name: (name, f"{name}_low", f"{name}_high") for name in _AUDITED}
        figures = [
            "{} {:.3f} ({:.3f} to {:.3f})".format(name, *(found[key] for key in three))
            for name, three in keys.items()
            if all(key in found for key in three)
        ]
        tags = run.data.tags
        return cls(name=tags["audit"], period=tags.get("period", ""), figures=figures)


@dataclass(frozen=True, kw_only=True)
class PublishedDay:
    """One day's run in MLflow."""

    day: date
    #: Values by key, all of them in `keys.KEYS`.
    metrics: Mapping[str, float]
    #: 95 % intervals of those that are estimates.
    intervals: Mapping[str, Interval] = field(default_factory=dict)
    #: Labels behind the estimates of the day, by key; empty in runs of earlier versions.
    labels: Mapping[str, float] = field(default_factory=dict)
    #: As `status.day_status` returns it, or `failed`.
    status: str = "normal"
    #: Names of the rules of the active alerts, by severity.
    alerts: Mapping[str, Sequence[str]] = field(default_factory=dict)
    #: Empty on a day without scores.
    model_version: str = ""
    #: What the list of runs shows of the day, by column; estimates with their intervals.
    columns: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_bad(self) -> bool:
        """Whether the day is marked in red."""
        return is_bad(self.status)

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
            labels=json.loads(tags.get(LABELS_TAG, "{}")),
            status=tags.get("status", ""),
            # Runs of earlier versions have the rules in the tag that people read.
            alerts=_rules_by_severity(tags.get(RULES_TAG) or tags.get("alerts", "none")),
            model_version=params.get("model_version", ""),
            columns={name: tags[name] for name in _COLUMNS if name in tags},
        )


def _rules_by_severity(tag: str) -> dict[str, list[str]]:
    """Return the rules that `description.rule_tag` lists.

    >>> _rules_by_severity("critical: volume low; warning: queue old, scores jumped")
    {'critical': ['volume low'], 'warning': ['queue old', 'scores jumped']}
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
            found.setdefault(key, []).append((rule.open.bound, in_words(rule.name)))
    return found

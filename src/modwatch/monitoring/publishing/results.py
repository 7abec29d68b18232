"""The result of a day, from its content and from what is counted in the lake."""

import hashlib
from dataclasses import replace

import pyarrow.compute as pc

from modwatch.data.lake.delta import Lake
from modwatch.data.validation.result import ValidationResult
from modwatch.monitoring.incidents.rules import in_words
from modwatch.monitoring.publishing.content import DayContent
from modwatch.monitoring.publishing.days import NOT_VALIDATED, Day, KeyFigure
from modwatch.monitoring.publishing.keys import key_figures

#: What was not done on a day of which these tables are empty; the first of them counts.
_MISSING = {
    "landed": "no comments were ingested",
    "comments": "the comments were not validated",
    "scores": "the comments were not scored",
    "routed": "nothing was routed",
}


def measured_day(lake: Lake, content: DayContent) -> Day:
    """Return the result of a day that was measured."""
    day = content.day
    # Not `data.lake.day_scores`, which also loads the ids of all comments.
    columns = ["flagged", "model_variance", "model_version"]
    scores = lake.table("scores", day, columns=columns, role="champion")
    design = lake.table("routing_design", day, columns=["strategy", "review_fraction"])
    varies = bool(scores.column("model_variance").to_numpy().any())
    counted = Day(
        day=day,
        checks=content.checks,
        landed=lake.count("landed", day),
        comments=len(scores),
        quarantined=lake.count("quarantine", day),
        flagged=pc.sum(scores.column("flagged")).as_py() or 0,
        routed=lake.count("routed", day),
        labelled=lake.count("labels", day),
        model_version=scores.column("model_version")[0].as_py() if len(scores) else "",
        deterministic=len(scores) > 0 and not varies,
        **design.slice(0, 1).to_pylist()[0],
        pooled_days=content.pooled_days,
        window_days=content.window_days,
        alerts=content.alerts,
        digest=content.digest,
    )
    return replace(counted, figures=key_figures(content.tables, counted))


def unmeasured_day(lake: Lake, content: DayContent) -> Day | None:
    """Return why a day has no measurements; None if it is to be measured yet."""
    rejected = [result for result in content.results if result.rejected]
    names = (name for name in _MISSING if not lake.count(name, content.day))
    missing = next(names, None)
    if not rejected and missing is None:
        return None
    found = Day(
        day=content.day,
        checks="rejected" if rejected else NOT_VALIDATED,
        reason=_failed_rules(rejected[0])
        if rejected
        else f"{_MISSING[str(missing)]}; open the Airflow run",
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

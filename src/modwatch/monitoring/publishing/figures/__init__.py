"""The charts of a day and of the timeline.

Every chart names its day and model and draws intervals; an estimate without enough data is omitted
or hatched, with a note. matplotlib is used through its objects: no global state, no display.
"""

from datetime import date

from matplotlib.figure import Figure

from modwatch.monitoring.publishing.facts import DayFacts, DayTables
from modwatch.monitoring.publishing.figures.challenger import differences
from modwatch.monitoring.publishing.figures.groups import group_differences
from modwatch.monitoring.publishing.figures.scores import reliability, score_histogram
from modwatch.monitoring.publishing.figures.strategies import collaboration, what_if
from modwatch.monitoring.publishing.figures.trailing_days import (
    drift_strip,
    queue_health,
)


def day_figures(day: date, tables: DayTables, facts: DayFacts) -> dict[str, Figure]:
    """Return the figures of a day by name; those without data are left out."""
    title = f"{day}, model {facts.model_version or 'unknown'}"
    window = f"{facts.pooled_days} of the {facts.window_days} days to {title}"
    figures = {"collaboration": collaboration(tables.measurements, facts, title=title)}
    if len(tables.window):
        figures["collaboration_window"] = collaboration(tables.window, facts, title=window)
    if tables.reliability is not None:
        figures["reliability"] = reliability(tables.reliability, title=window)
    if tables.scores is not None:
        figures["scores"] = score_histogram(tables.scores, title=title)
    if len(tables.drift):
        figures["drift"] = drift_strip(tables.drift, tables.measurements, title=title)
    if tables.drift["metric"].str.startswith("queue_").any():
        figures["queue"] = queue_health(tables.drift, title=str(day))
    if tables.what_if is not None and len(tables.what_if):
        figures["what_if"] = what_if(tables.what_if, title=window)
    if tables.challenger is not None and len(tables.challenger):
        version = tables.challenger["challenger_version"].iloc[0]
        beside = f"Challenger {version} beside champion {facts.model_version}"
        figures["challenger"] = differences(
            tables.challenger, title=f"{beside}: {tables.challenger['days'].iloc[0]} days to {day}"
        )
    groups = tables.comment_groups
    if groups is not None and (groups["scope"] == "day").any():
        figures["comment_groups"] = group_differences(groups, title=title)
    return figures

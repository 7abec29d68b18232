"""Volumes that a season explains are watched by no rule."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date

from modwatch.monitoring.incidents.incidents import MetricValue
from modwatch.statistics.drift.seasons import Volume, season

_METRIC = "volume_ratio"


def without_seasons(
    values: Sequence[MetricValue], earlier: Mapping[date, Volume] | None = None
) -> list[MetricValue]:
    """Return values in which a volume that a season explains is insufficient.

    Args:
        values: of any metrics and days; `n` of a volume ratio is the volume. Values of other
            metrics are returned as they are.
        earlier: volumes of other days, such as those of the year before.

    >>> days = [date(2026, 1, day) for day in range(5, 12)]
    >>> volumes = [1000, 1000, 1000, 1000, 1000, 310, 60]
    >>> ratios = [MetricValue(day=day, metric="volume_ratio", value=n / 1000, n=n)
    ...           for day, n in zip(days, volumes)]
    >>> [each.status for each in without_seasons(ratios)][-2:]
    ['insufficient', 'ok']
    """
    known = {
        each.day: Volume(rows=each.n, ratio=each.value) for each in values if each.metric == _METRIC
    }
    past = {**(earlier or {}), **known}
    return [
        replace(each, status="insufficient")
        if each.metric == _METRIC and season(each.day, known[each.day], past)
        else each
        for each in values
    ]

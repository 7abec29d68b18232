"""Volumes of weekends whose weekday is not known yet.

A day is compared with the same weekdays as soon as there are three of them (`metrics.drift`); until
then with the days before, most of which are no weekend. On many platforms fewer people write on
weekends, which is no alarm.
"""

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median

from modwatch.alerts.incidents import MetricValue
from modwatch.metrics.drift import MINIMUM_DAYS

#: Volume of a weekend day over that of the days before, until one has been seen.
WEEKEND_SHARE = 0.3

#: A weekend day with less than this part of what is expected of it counts as low.
_LOW = 1 / 3

#: Weeks in which the same weekday is looked for, as for the trailing reference.
_WEEKS = 5

_SATURDAY = 5
_METRIC = "volume_ratio"


def with_unknown_weekends(values: Sequence[MetricValue]) -> list[MetricValue]:
    """Return values in which the volume of a weekend whose weekday is not known is insufficient.

    It stays as it is on an empty or tiny day: under a third of the same weekdays seen so far, or of
    `WEEKEND_SHARE` of the days before if none was. Other values are returned as they are.

    Args:
        values: of any metrics and days; `n` of a volume ratio is the volume.

    >>> days = [datetime.date(2026, 1, day) for day in range(5, 12)]
    >>> volumes = [1000, 1000, 1000, 1000, 1000, 310, 60]
    >>> ratios = [MetricValue(day=day, metric="volume_ratio", value=n / 1000, n=n)
    ...           for day, n in zip(days, volumes)]
    >>> [each.status for each in with_unknown_weekends(ratios)][-2:]
    ['insufficient', 'ok']
    """
    volumes = {each.day: each.n for each in values if each.metric == _METRIC}
    return [
        replace(each, status="insufficient")
        if each.metric == _METRIC and _is_unknown(each, volumes)
        else each
        for each in values
    ]


def _is_unknown(ratio: MetricValue, volumes: Mapping[datetime.date, int]) -> bool:
    if ratio.day.weekday() < _SATURDAY or not ratio.value or ratio.value >= 1:
        return False
    weeks = (ratio.day - datetime.timedelta(weeks=week) for week in range(1, _WEEKS + 1))
    seen = [volumes[day] for day in weeks if day in volumes]
    if len(seen) >= MINIMUM_DAYS:
        return False
    usual = ratio.n / ratio.value
    expected = min(median(seen), usual) if seen else WEEKEND_SHARE * usual
    return ratio.n >= _LOW * expected

"""When an incident opens and closes: pure functions from a series of figures to incidents.

A series is what one rule watches of one feature, a figure a day. `incidents` folds it, day after
day, into the incidents that it holds; `news` compares them with what the receivers were told last
and returns what they have to be told now. Both depend on their arguments alone: the same figures
give the same incidents, whenever and however often they are looked at.

A figure that cannot be judged (insufficient, too few comments, no interval) is passed over: it
opens nothing, closes nothing and interrupts nothing.
"""

import datetime
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from modwatch.alerts.rules import Condition, Rule

Kind = Literal["opened", "recovered", "withdrawn"]


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One figure of one day, from whichever table."""

    day: datetime.date
    metric: str
    feature: str | None = None
    #: fixed | trailing | None
    reference: str | None = None
    #: None when the figure is insufficient.
    value: float | None
    #: 95 % interval; None where there is none.
    low: float | None = None
    high: float | None = None
    #: Comments, labels or items behind it.
    n: int
    #: ok | insufficient
    status: str = "ok"

    @property
    def subject(self) -> str:
        """What the figure is of: feature and reference, or nothing.

        >>> day = datetime.date(2026, 1, 5)
        >>> Figure(day=day, metric="psi", feature="prob", reference="fixed", value=0, n=9).subject
        'prob,fixed'
        """
        return ",".join(part for part in (self.feature, self.reference) if part)


@dataclass(frozen=True, kw_only=True)
class Incident:
    """A stretch of days on which something was wrong."""

    #: The first bad day.
    since: datetime.date
    #: The day on which enough bad days had been seen.
    opened: datetime.date
    #: The day on which enough good days had been seen; None while it stands.
    recovered: datetime.date | None = None
    #: The figures that opened and closed it; None where they lie further back than one looked.
    at_opening: Figure | None = None
    at_recovery: Figure | None = None

    def stands_on(self, day: datetime.date) -> bool:
        """Return whether the incident was open at the end of `day`."""
        return self.opened <= day and (self.recovered is None or day < self.recovered)


@dataclass(frozen=True, kw_only=True)
class News:
    """What has to be told of an incident."""

    kind: Kind
    #: First bad day of the incident, as it was told when it opened.
    since: datetime.date
    #: The day on which it happened.
    day: datetime.date
    #: The figure that made it happen, if there is one.
    figure: Figure | None


def watched(rule: Rule, figures: Iterable[Figure]) -> dict[str, list[Figure]]:
    """Return the series that the rule watches by subject, each in order of days."""
    series: dict[str, list[Figure]] = {}
    for figure in sorted(figures, key=lambda figure: figure.day):
        if (
            figure.metric == rule.metric
            and rule.feature in (None, figure.feature)
            and rule.reference in (None, figure.reference)
        ):
            series.setdefault(figure.subject, []).append(figure)
    return series


def exceeds(rule: Rule, condition: Condition, figure: Figure) -> bool | None:
    """Return whether the figure lies beyond the condition's bound; None: it cannot be judged."""
    if condition.compare == "insufficient":
        return rule.exceeds(float(figure.status != "ok"), condition)
    seen: float | None = getattr(figure, condition.compare)
    if figure.status != "ok" or figure.n < rule.minimum_n or seen is None:
        return None
    return rule.exceeds(seen, condition)


def incidents(
    rule: Rule, series: Iterable[Figure], *, standing: Incident | None = None
) -> list[Incident]:
    """Return the incidents of a series, in order; only the last may still stand.

    Args:
        rule: what opens and closes an incident.
        series: at most one figure a day, in order of days.
        standing: an incident that was open when the series begins.

    >>> rule = Rule(name="r", severity="info", metric="m", direction="above", look_at="it",
    ...             open={"bound": 5}, close={"bound": 3})
    >>> days = [datetime.date(2026, 1, day) for day in range(1, 7)]
    >>> values = [1, 6, 4, 6, 3, 4]
    >>> series = [Figure(day=d, metric="m", value=v, n=9) for d, v in zip(days, values)]
    >>> [(found.opened.day, found.recovered.day) for found in incidents(rule, series)]
    [(2, 5)]
    """
    ended: list[Incident] = []
    streak: list[Figure] = []
    for figure in series:
        condition = rule.close if standing else rule.open
        bad = exceeds(rule, condition, figure)
        if bad is None:
            continue
        streak = [*streak, figure] if bad == (standing is None) else []
        if len(streak) < condition.days:
            continue
        if standing is None:
            standing = Incident(since=streak[0].day, opened=figure.day, at_opening=figure)
        else:
            ended.append(replace(standing, recovered=figure.day, at_recovery=figure))
            standing = None
        streak = []
    return [*ended, standing] if standing else ended


def in_hindsight(rule: Rule, series: Sequence[Figure], told: Incident | None) -> list[Incident]:
    """Return the incidents of a series, given the one that the receivers believe to stand.

    Labels come late and figures change, so that the series may no longer show what was told. If a
    figure now speaks against it, it never was. If none does, because the figures of its first days
    have become insufficient or lie before the series, it goes on standing.
    """
    found = incidents(rule, series)
    if told is None or _same(told, found) or _is_refuted(rule, series, told):
        return found
    return incidents(rule, [each for each in series if each.day > told.opened], standing=told)


def news(
    told: Incident | None, found: Sequence[Incident], *, today: datetime.date, now: Figure | None
) -> list[News]:
    """Return what to tell the receivers, who believe `told` to stand, when `found` is the truth.

    They hear of every standing incident once, and once of its end: by itself (*recovered*), or
    because in hindsight it never was (*withdrawn*, told on `today` with the figure `now` of the day
    on which it was opened). An incident that is first seen when it is over is not told: there is
    nothing to be done about it any more.
    """
    standing = found[-1] if found and found[-1].recovered is None else None
    same = _same(told, found) if told else None
    if same is not None and same is standing:
        return []
    ended: list[News] = []
    if told and same and same.recovered:
        ended = [_news("recovered", told.since, same.recovered, same.at_recovery)]
    elif told:
        ended = [_news("withdrawn", told.since, today, now)]
    if standing is None:
        return ended
    return [*ended, _news("opened", standing.since, standing.opened, standing.at_opening)]


def _news(kind: Kind, since: datetime.date, day: datetime.date, figure: Figure | None) -> News:
    return News(kind=kind, since=since, day=day, figure=figure)


def _same(told: Incident, found: Sequence[Incident]) -> Incident | None:
    """Return the incident that was told, as it is known now: the first that had not ended then."""
    return next((i for i in found if i.recovered is None or i.recovered > told.since), None)


def _is_refuted(rule: Rule, series: Sequence[Figure], told: Incident) -> bool:
    """Return whether a figure of the days that opened the incident is now not bad enough."""
    first = (each for each in series if told.since <= each.day <= told.opened)
    return any(exceeds(rule, rule.open, each) is False for each in first)

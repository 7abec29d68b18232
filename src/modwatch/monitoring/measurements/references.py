"""What a day is compared with: its fixed and its trailing reference.

A reference must not absorb what it is there to show. Days that a rule on the trailing days, or data
validation, found different are in no trailing reference, so an incident lasts as long as its cause
or until a person accepts the new level.
"""

import datetime
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from itertools import islice
from typing import Literal, get_args

from modwatch.common import days
from modwatch.data.lake.delta import Lake
from modwatch.data.validation.profiles import read_profile, read_profiles
from modwatch.data.validation.result import CheckStore, Suite, ValidationResult
from modwatch.data.validation.rules import MISSING_SHARE
from modwatch.monitoring.incidents.causes import Acceptances
from modwatch.monitoring.incidents.incidents import MetricValue, incidents, watched
from modwatch.monitoring.incidents.rules import AlertRule
from modwatch.statistics.drift.day_comparison import MINIMUM_COMMENTS, MINIMUM_DAYS, Reference
from modwatch.statistics.drift.profile import RANGES, Profile
from modwatch.statistics.drift.seasons import NO_CALENDAR, Calendar

#: Weeks before a day whose same weekdays it is compared with, if `MINIMUM_DAYS` of them can be.
WEEKS = 5

#: Longest incident, in days, that counts as a weekly pattern when it comes back each week.
_RECURRING_DAYS = 3

#: Days before a day in which reference days are looked for.
_LOOK_BACK = 120

_NO_HELD_OUT = "first days: the model stores too few held-out scores"

_ONE_DAY = datetime.timedelta(days=1)

#: Parts of a profile: either may be compared with days with which the other is not.
Part = Literal["comments", "scores"]
PARTS: tuple[Part, ...] = ("comments", "scores")

#: The metrics of `drift` against a reference that depend on the scores whatever their feature.
_SCORE_METRICS = ("psi", "flagged_share_change")

#: All metrics of `drift` against a reference.
_DRIFT_METRICS = (
    *_SCORE_METRICS,
    *("jensen_shannon", "volume_ratio", "missing_share_change", "quarantined_share_change"),
)

#: Rules of data validation that compare a day with the trailing days, but for MISSING_SHARE.
_COMPARING: dict[str, Part] = {
    "score_shift": "scores",
    "flagged_shift": "scores",
    "language_shift": "comments",
    "detected_language_shift": "comments",
    "script_shift": "comments",
    "volume_shift": "comments",
}


@dataclass(frozen=True, kw_only=True)
class AcceptedLevel:
    """A change that a person accepted: from its first day on, it is what days are compared with."""

    part: Part
    #: The first day of the new level.
    first: datetime.date
    #: The day on which it was accepted: what was found up to it is no reason to leave a day out.
    accepted: datetime.date


def accepted_levels(rules: Sequence[AlertRule], accepted: Acceptances) -> list[AcceptedLevel]:
    """Return what people have accepted as the new normal, of the incidents that are about drift.

    An incident has the name of a cause, or of a rule and its subject.
    """
    parts = {
        name: _part_of(rule.metric, rule.feature)
        for rule in rules
        if rule.metric in _DRIFT_METRICS
        for name in (rule.cause, rule.name)
        if name
    }
    return [
        AcceptedLevel(part=parts[rule], first=since, accepted=from_day - _ONE_DAY)
        for incident, levels in accepted.items()
        if (rule := incident.partition("[")[0]) in parts
        for from_day, since in levels
    ]


@dataclass(frozen=True, kw_only=True)
class ReferencePlan:
    """How the reference days of an installation are chosen."""

    #: Their rules on drift decide which days are in an incident.
    rules: Sequence[AlertRule]
    #: Days of the trailing reference: two of each weekday.
    trailing_days: int = 14
    #: Days of the fixed reference, where the model brings none; likewise.
    fixed_days: int = 14
    #: First day of the fixed reference; None: held-out comments of the model, or the first days.
    fixed_first: datetime.date | None = None
    #: At most one counts for a part: the last.
    accepted: Sequence[AcceptedLevel] = ()
    #: Its days are in no reference of comments.
    calendar: Calendar = NO_CALENDAR

    def accepted_level(self, part: Part, day: datetime.date) -> AcceptedLevel | None:
        """Return the level of a part that was accepted last, up to the eve of `day`."""
        known = [level for level in self.accepted if level.part == part and level.accepted < day]
        return max(known, key=lambda level: level.accepted, default=None)


def references(
    lake: Lake, checks: CheckStore, day: datetime.date, *, plan: ReferencePlan
) -> list[Reference]:
    """Return the fixed and the trailing reference of `day`, from what is known of earlier days.

    The trailing reference has the same weekdays of the last `WEEKS` weeks or, where fewer than
    `MINIMUM_DAYS` of them can be used, the last days; days in an incident and rejected days are
    passed over. The fixed one has held-out comments of the model, or the first days outside any
    incident. Where both would have the same days, the fixed one leaves them out.

    Args:
        lake, checks: of the installation.
        day: the day to compare; it need not have a profile yet.
        plan: how days are chosen.
    """
    version = read_profile(lake, day).model_version
    history = _History(lake=lake, checks=checks, day=day, plan=plan, version=version)
    trailing = {part: history.trailing(part) for part in PARTS}
    held_out = history.held_out
    wanted = [part for part in PARTS if part == "comments" or held_out is None]
    fixed = {part: history.first_days(part) for part in wanted}
    distinct = {
        part: None if [*chosen] == [*trailing[part]] else [*chosen.values()]
        for part, chosen in fixed.items()
    }
    return [
        Reference(
            name="fixed",
            comments=distinct["comments"],
            scores=[held_out] if held_out else distinct["scores"],
            mixes=held_out.categories if held_out else {},
            note=_NO_HELD_OUT if history.lacks_held_out else "",
        ),
        Reference(
            name="trailing",
            comments=[*trailing["comments"].values()],
            scores=[*trailing["scores"].values()],
        ),
    ]


def trailing_days(
    lake: Lake,
    checks: CheckStore,
    day: datetime.date,
    part: Part,
    *,
    plan: ReferencePlan,
    model_version: str | None = None,
) -> dict[datetime.date, Profile]:
    """Return one part of the trailing reference of `day`, as `references` does, oldest first."""
    history = _History(lake=lake, checks=checks, day=day, plan=plan, version=model_version)
    return history.trailing(part)


def model_reference(lake: Lake, day: datetime.date) -> Profile | None:
    """Return held-out comments as the model of `day` scores them.

    None: it stores none, or fewer than `MINIMUM_COMMENTS`.
    """
    stored = read_profiles(lake, [day], held_out=True).get(day)
    return stored if stored and stored.scored >= MINIMUM_COMMENTS else None


@dataclass(frozen=True, kw_only=True)
class _History:
    """The days before a day, and which of them it may be compared with."""

    lake: Lake
    checks: CheckStore
    day: datetime.date
    plan: ReferencePlan
    #: Of the model that scored the day; None: not known, or not scored.
    version: str | None
    #: What was read, since most of it is asked for several times.
    _profiles_read: dict[datetime.date, Profile | None] = field(default_factory=dict)

    def trailing(self, part: Part) -> dict[datetime.date, Profile]:
        """Return the trailing reference of a part, oldest day first."""
        usual = self._usable(part, self._recent)
        same = [self.day - 7 * week * _ONE_DAY for week in range(WEEKS, 0, -1)]
        for chosen in (
            [past for past in same if usual(past)],
            [past for past in same if usual(past) or self._recurs(past, usual)],
        ):
            weekdays = self._profiles(chosen, part, same_model=True)
            if len(weekdays) >= MINIMUM_DAYS:
                return weekdays
        latest = islice(filter(usual, reversed(self._look_back)), self.plan.trailing_days)
        return self._profiles(sorted(latest), part)

    def first_days(self, part: Part) -> dict[datetime.date, Profile]:
        """Return the first days outside any incident; of scores, those of the model version."""
        level = self.plan.accepted_level(part, self.day)
        start = level.first if level else self.plan.fixed_first or datetime.date.min
        known = [past for past in self._known if past >= start]
        if part == "scores":
            scored = self._scored_versions(known)
            known = [past for past in known if past in scored and scored[past] == self.version]
        if not known:
            return {}
        last = min(self.day - _ONE_DAY, known[0] + _LOOK_BACK * _ONE_DAY)
        usable = self._usable(part, self._found(known[0], last), fixed=True)
        chosen = (past for past in known if past <= last and usable(past))
        return self._profiles([*islice(chosen, self.plan.fixed_days)], part)

    @cached_property
    def held_out(self) -> Profile | None:
        """The reference that the model brings, unless other days were chosen."""
        return model_reference(self.lake, self.day) if self._wants_held_out else None

    @property
    def lacks_held_out(self) -> bool:
        """Whether the model should have brought a reference."""
        return self._wants_held_out and self.held_out is None

    @cached_property
    def _wants_held_out(self) -> bool:
        level = self.plan.accepted_level("scores", self.day)
        # Of another model, a level that was accepted says nothing.
        chosen = level and read_profile(self.lake, level.first).model_version == self.version
        return self.version is not None and not self.plan.fixed_first and not chosen

    @cached_property
    def _look_back(self) -> list[datetime.date]:
        return days.before(self.day, _LOOK_BACK)

    @cached_property
    def _known(self) -> list[datetime.date]:
        """The past days with a profile."""
        return [past for past in self.lake.days("profiles") if past < self.day]

    @cached_property
    def _recent(self) -> "_Found":
        first, last = self._look_back[0], self._look_back[-1]
        return self._found(max([first, *self._known[:1]]), last)

    @cached_property
    def _found(self) -> "Callable[[datetime.date, datetime.date], _Found]":
        """What was found from one day to another; read once."""
        return cache(partial(_Found.between, self.lake, self.plan))

    def _usable(
        self, part: Part, found: "_Found", *, fixed: bool = False
    ) -> Callable[[datetime.date], bool]:
        """Return whether a past day may be a reference of a part."""
        level = self.plan.accepted_level(part, self.day)
        in_incident = found.days(part, fixed=fixed, after=level.accepted if level else None)

        def usable(past: datetime.date) -> bool:
            if part == "comments" and past in self.plan.calendar.days:
                return False
            if level and past < level.first:
                return False
            differs = self._warned(past) if not level or past > level.accepted else frozenset()
            return (
                past not in in_incident and part not in differs and not self._rejected(past, part)
            )

        return usable

    def _recurs(self, past: datetime.date, usual: Callable[[datetime.date], bool]) -> bool:
        """Return whether a day was in a short incident, such as that of each weekend."""
        block = [past]
        for step in (-_ONE_DAY, _ONE_DAY):
            near = past + step
            while near < self.day and not usual(near) and len(block) <= _RECURRING_DAYS:
                block.append(near)
                near += step
        return len(block) <= _RECURRING_DAYS and not self._rejected(past, "comments")

    def _rejected(self, past: datetime.date, part: Part) -> bool:
        suites: tuple[Suite, ...] = ("comments",) if part == "comments" else ("comments", "scores")
        results = (self._result(suite, past) for suite in suites)
        return any(result.rejected for result in results if result)

    def _warned(self, past: datetime.date) -> frozenset[Part]:
        """Return the parts that data validation found different from the trailing days."""
        results = (self._result(suite, past) for suite in get_args(Suite))
        failed = {rule.name for result in results if result for rule in result.failed_of("day")}
        parts = (
            "comments" if name.startswith(MISSING_SHARE) else _COMPARING.get(name)
            for name in failed
        )
        return frozenset(part for part in parts if part)

    @cached_property
    def _result(self) -> Callable[[Suite, datetime.date], ValidationResult | None]:
        """The result of a suite on a past day; read once."""
        return cache(self.checks.load)

    def _profiles(
        self, chosen: Sequence[datetime.date], part: Part, *, same_model: bool = False
    ) -> dict[datetime.date, Profile]:
        """Return the profiles of the chosen days that have the part."""
        found = self._read(chosen)
        if part == "comments":
            return found
        return {
            past: profile
            for past, profile in found.items()
            if profile.scored and (not same_model or profile.model_version == self.version)
        }

    def _read(self, chosen: Sequence[datetime.date]) -> dict[datetime.date, Profile]:
        """Return the profiles of the chosen days that have one, and read each day once."""
        unread = set(chosen) - self._profiles_read.keys()
        self._profiles_read.update(dict.fromkeys(unread))
        self._profiles_read.update(read_profiles(self.lake, unread))
        found = ((past, self._profiles_read[past]) for past in chosen)
        return {past: profile for past, profile in found if profile}

    def _scored_versions(self, known: Sequence[datetime.date]) -> Mapping[datetime.date, str]:
        columns = ["dt", "model_version"]
        rows = self.lake.table(
            "profiles", known, columns=columns, feature="flagged", held_out=False
        )
        found = rows.to_pylist()
        return {row["dt"]: row["model_version"] for row in found if row["model_version"]}


@dataclass(frozen=True, kw_only=True)
class _Span:
    """The days of an incident of drift, both included."""

    part: Part
    #: What the rule compares with.
    reference: str | None
    since: datetime.date
    until: datetime.date


@dataclass(frozen=True, kw_only=True)
class _Found:
    """What the alert rules on drift found in a range of days."""

    spans: Sequence[_Span]
    #: The days by the version that scored them at the first day of an incident.
    replaced: Mapping[datetime.date, frozenset[datetime.date]]

    @classmethod
    def between(
        cls, lake: Lake, plan: ReferencePlan, first: datetime.date, last: datetime.date
    ) -> "_Found":
        """Return what was found from `first` to `last`, both included."""
        found = [*_spans(lake, plan.rules, first, last)]
        return cls(spans=found, replaced=_replaced(lake, found))

    def days(self, part: Part, *, fixed: bool, after: datetime.date | None) -> set[datetime.date]:
        """Return the days in an incident of a part.

        Without `fixed` only incidents against the trailing days count; with `after` only those that
        began later. A day that another model scored than the first day is in no incident of scores.
        """
        return {
            past
            for span in self.spans
            if span.part == part
            and (fixed or span.reference == "trailing")
            and (after is None or span.since > after)
            for past in days.between(span.since, span.until)
            if past not in self.replaced.get(span.since, ()) or part == "comments"
        }


def _spans(
    lake: Lake, rules: Sequence[AlertRule], first: datetime.date, last: datetime.date
) -> Iterator[_Span]:
    """Yield the incidents of the rules on drift against a reference."""
    values: dict[str, list[MetricValue]] = {}
    for value in _drift_values(lake, first, last):
        values.setdefault(value.metric, []).append(value)
    for rule in rules:
        for series in watched(rule, values.get(rule.metric, [])).values():
            for incident in incidents(rule, series):
                yield _Span(
                    part=_part_of(series[0].metric, series[0].feature),
                    reference=series[0].reference,
                    since=incident.since,
                    until=incident.recovered - _ONE_DAY if incident.recovered else last,
                )


def _drift_values(lake: Lake, first: datetime.date, last: datetime.date) -> Iterator[MetricValue]:
    names = ("metric", "feature", "reference", "value", "low", "high", "n", "status")
    for row in lake.rows_between("drift", first, last, ["dt", *names]):
        if row["reference"]:
            yield MetricValue(day=row["dt"], **{name: row[name] for name in names})


def _part_of(metric: str, feature: str | None) -> Part:
    return "scores" if metric in _SCORE_METRICS or feature in RANGES else "comments"


def _replaced(lake: Lake, spans: Sequence[_Span]) -> dict[datetime.date, frozenset[datetime.date]]:
    """Return the days of each incident of scores that another model scored than its first day."""
    until: dict[datetime.date, datetime.date] = {}
    for span in spans:
        if span.part == "scores":
            until[span.since] = max(span.until, until.get(span.since, span.until))
    if not until:
        return {}
    known = read_profiles(lake, days.between(min(until), max(until.values())))
    versions = {past: profile.model_version for past, profile in known.items() if profile.scored}
    return {
        since: frozenset(
            past
            for past in days.between(since, last)
            if {past, since} <= versions.keys() and versions[past] != versions[since]
        )
        for since, last in until.items()
    }

"""Which days a day is compared with, and that a reference does not absorb what it should show."""

import datetime
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np
import pytest

from modwatch.data.lake.delta import Lake
from modwatch.data.validation.profiles import profile_rows, profile_scores, save_profile
from modwatch.data.validation.result import CheckStore, RuleResult, ValidationResult
from modwatch.monitoring.incidents.incidents import (
    Incident,
    MetricValue,
    incidents,
    watched,
)
from modwatch.monitoring.incidents.metrics import with_usual_volumes
from modwatch.monitoring.incidents.rules import load_rules
from modwatch.monitoring.measurements.drift import drift_rows
from modwatch.monitoring.measurements.references import (
    AcceptedLevel,
    ReferencePlan,
    accepted_levels,
    model_reference,
    references,
    trailing_days,
)
from modwatch.statistics.drift.day_comparison import Finding, Reference, compare, day_metrics
from modwatch.statistics.drift.profile import Profile
from modwatch.statistics.drift.seasons import Calendar

MONDAY = datetime.date(2026, 1, 5)
ONE_DAY = datetime.timedelta(days=1)
PLAN = ReferencePlan(rules=load_rules(), trailing_days=14, fixed_days=14)


def day(number: int) -> datetime.date:
    return MONDAY + number * ONE_DAY


def profile(
    number: int, *, mean: float = 0.1, size: int = 600, version: str = "3", language: str = "de"
) -> Profile:
    """Return a day; its scores have the mean `mean`."""
    rng = np.random.default_rng([number, size])
    prob = rng.beta(6 * mean / (1 - mean), 6, size).astype(np.float32)
    scores = profile_scores(prob, prob > 0.3, [version])
    categories = {"language": {language: size}, "platform": {"forum": size}}
    return Profile(comments=size, categories=categories).with_scores_of(scores)


def verdict(
    past: datetime.date, suite: str, rule: str = "schema", severity: str | None = None
) -> ValidationResult:
    """Return a result; with a severity the rule failed."""
    texts = dict.fromkeys(("observed", "allowed", "expectation", "remedy"), "")
    failed = RuleResult(
        name=rule,
        level="day",
        severity=severity or "warning",  # type: ignore[arg-type]
        value=0.0,
        passed=severity is None,
        **texts,
    )
    return ValidationResult(
        suite=suite,  # type: ignore[arg-type]
        day=past,
        rows=3,
        valid=3,
        results=(failed,),
        quarantined={},
    )


def run(
    lake: Lake,
    checks: CheckStore,
    days: Iterable[tuple[datetime.date, Profile]],
    plan: ReferencePlan = PLAN,
) -> None:
    """Keep and compare one day after the other, as the daily job does."""
    for today, made in days:
        save_profile(lake, today, comments=made, scores=made)
        lake.replace("drift", today, [drift_rows(today, findings(lake, checks, today, made, plan))])


def findings(
    lake: Lake, checks: CheckStore, today: datetime.date, made: Profile, plan: ReferencePlan = PLAN
) -> list[Finding]:
    found = references(lake, checks, today, plan=plan)
    return [*chain(compare(made, found), day_metrics(made, found[1].comments or ()))]


def found_incidents(lake: Lake, name: str) -> list[Incident]:
    (rule,) = (rule for rule in PLAN.rules if rule.name == name)
    names = ("metric", "feature", "reference", "value", "low", "high", "n", "status")
    rows = (
        row
        for batch in lake.read_between("drift", datetime.date.min, datetime.date.max)
        for row in batch.to_pylist()
    )
    values = [MetricValue(day=row["dt"], **{n: row[n] for n in names}) for row in rows]
    return [
        incident
        for series in watched(rule, with_usual_volumes(values)).values()
        for incident in incidents(rule, series)
    ]


def dates_of(lake: Lake, chosen: Sequence[Profile] | None) -> list[datetime.date]:
    """Return the days of profiles, each of which has a size of its own."""
    sizes = {}
    for batch in lake.read_between("profiles", datetime.date.min, datetime.date.max):
        for row in batch.to_pylist():
            if row["feature"] == "rows" and row["category"] == "comments":
                sizes[row["count"]] = row["dt"]
    return [sizes[profile.comments] for profile in chosen or ()]


def put(lake: Lake, numbers: Iterable[int], version: str = "3") -> None:
    """Keep days that differ in size by a comment."""
    for number in numbers:
        made = profile(number, size=600 + number, version=version)
        save_profile(lake, day(number), comments=made, scores=made)


def put_held_out(lake: Lake, today: datetime.date, *, mean: float = 0.1, size: int = 900) -> None:
    made = profile(999, mean=mean, size=size).with_scores_of(profile(999, mean=mean, size=size))
    held = Profile(comments=size, categories={"length": {"0-49": size}}).with_scores_of(made)
    lake.replace("profiles", today, [profile_rows(today, held, held_out=True)], held_out=True)


def by_name(found: Sequence[Reference]) -> dict[str, Reference]:
    return {reference.name: reference for reference in found}


def test_the_fixed_reference_is_the_held_out_comments_of_the_model_from_day_one(lake, checks):
    put(lake, [0])
    put_held_out(lake, day(0))
    fixed = by_name(references(lake, checks, day(0), plan=PLAN))["fixed"]
    assert fixed.scores is not None
    assert [profile.scored for profile in fixed.scores] == [900]
    rows = {(f.metric, f.feature): f for f in compare(profile(0), [fixed])}
    assert rows["psi", "prob"].status == "ok"
    assert rows["psi", "prob"].reference_n == 900
    assert rows["psi", "prob"].reason == ""


@pytest.mark.parametrize("size", [0, 199])
def test_without_held_out_comments_the_first_days_are_used_and_this_is_stated(lake, checks, size):
    put(lake, range(20))
    if size:
        put_held_out(lake, day(19), size=size)
    assert model_reference(lake, day(19)) is None
    fixed = by_name(references(lake, checks, day(19), plan=PLAN))["fixed"]
    assert dates_of(lake, fixed.comments) == [day(number) for number in range(14)]
    psi = next(f for f in compare(profile(19), [fixed]) if f.metric == "psi")
    assert psi.reason == "first days: the model stores too few held-out scores"


def test_equal_references_give_one_row_each(lake, checks):
    put(lake, range(20))
    for number in (1, 5, 14):
        found = findings(lake, checks, day(number), profile(number))
        against = {f.reference for f in found if f.metric in ("psi", "jensen_shannon")}
        assert against == {"trailing"}, number
    found = findings(lake, checks, day(19), profile(19))
    assert {f.reference for f in found if f.metric == "psi"} == {"fixed", "trailing"}


def test_a_new_model_without_held_out_comments_starts_its_own_first_days(lake, checks):
    put(lake, range(20))
    put(lake, range(20, 40), version="4")
    fixed = by_name(references(lake, checks, day(39), plan=PLAN))["fixed"]
    assert dates_of(lake, fixed.scores) == [day(number) for number in range(20, 34)]
    assert dates_of(lake, fixed.comments) == [day(number) for number in range(14)]


def test_a_first_day_in_the_settings_replaces_the_held_out_comments(lake, checks):
    put(lake, range(30))
    put_held_out(lake, day(29))
    plan = ReferencePlan(rules=PLAN.rules, trailing_days=14, fixed_days=3, fixed_first=day(4))
    fixed = by_name(references(lake, checks, day(29), plan=plan))["fixed"]
    assert dates_of(lake, fixed.scores) == [day(4), day(5), day(6)]
    assert fixed.note == ""


def test_holidays_are_in_no_reference_of_comments(lake, checks):
    put(lake, range(6))
    plan = replace(PLAN, calendar=Calendar(days={day(2): ("holiday", 0.3)}))
    for found in references(lake, checks, day(6), plan=plan):
        assert dates_of(lake, found.comments) in ([day(n) for n in (0, 1, 3, 4, 5)], [])
        assert day(2) in dates_of(lake, found.scores) or not found.scores
    trailing = trailing_days(lake, checks, day(6), "comments", plan=plan)
    assert [*trailing] == [day(n) for n in (0, 1, 3, 4, 5)]


def test_rejected_days_and_days_that_validation_warned_about_are_no_reference(lake, checks):
    put(lake, range(6))
    checks.save(verdict(day(1), "comments", severity="critical"))
    checks.save(verdict(day(2), "scores", severity="critical"))
    checks.save(verdict(day(3), "comments", "language_shift", "warning"))
    checks.save(verdict(day(4), "scores", "score_shift", "warning"))
    checks.save(verdict(day(5), "scores", "unscored", "warning"))
    trailing = by_name(references(lake, checks, day(6), plan=PLAN))["trailing"]
    assert dates_of(lake, trailing.comments) == [day(n) for n in (0, 2, 4, 5)]
    assert dates_of(lake, trailing.scores) == [day(n) for n in (0, 3, 5)]
    # What validation is given is the same.
    for part, chosen in (("comments", trailing.comments), ("scores", trailing.scores)):
        days = trailing_days(lake, checks, day(6), part, plan=PLAN, model_version="3")  # type: ignore[arg-type]
        assert [*days] == dates_of(lake, chosen)


def fault(first: int, last: int, **drifted: object) -> Callable[[int], Profile]:
    """Return what makes days that differ from `first` to `last`, both included."""

    def made(number: int) -> Profile:
        return profile(number, **(drifted if first <= number <= last else {}))  # type: ignore[arg-type]

    return made


def test_an_incident_lasts_as_long_as_the_fault(lake, checks):
    made = fault(5, 20, mean=0.3, language="xx")
    for number in range(25):
        put_held_out(lake, day(number))
        run(lake, checks, [(day(number), made(number))])
    for name in ("scores_jumped", "flagged_more", "scores_shifted"):
        (found,) = found_incidents(lake, name)
        assert found.since == day(5), name
        assert found.recovered is not None
        assert day(20) < found.recovered <= day(23), name


def test_another_distribution_is_an_incident_at_once_and_a_weekend_is_not(lake, checks):
    for number in range(21):
        put_held_out(lake, day(number))
        run(lake, checks, [(day(number), weekly(number))])
    assert not found_incidents(lake, "scores_shifted_far")
    put_held_out(lake, day(21))
    run(lake, checks, [(day(21), profile(21, mean=0.8))])
    (found,) = found_incidents(lake, "scores_shifted_far")
    assert (found.since, found.opened) == (day(21), day(21))


def test_an_accepted_level_ends_the_incident_and_is_the_reference(lake, checks):
    made = fault(15, 60, mean=0.3)
    run(lake, checks, ((day(n), made(n)) for n in range(20)))
    level = AcceptedLevel(part="scores", first=day(15), accepted=day(19))
    plan = ReferencePlan(rules=PLAN.rules, trailing_days=14, fixed_days=14, accepted=[level])
    run(lake, checks, ((day(n), made(n)) for n in range(20, 24)), plan)
    for name in ("scores_jumped", "flagged_more"):
        (found,) = found_incidents(lake, name)
        assert found.recovered == day(20), name
    # The old level would be an incident now.
    run(lake, checks, [(day(24), profile(24))], plan)
    assert found_incidents(lake, "flagged_less")[-1].since == day(24)
    # Days before the acceptance are compared as they were.
    before = by_name(references(lake, checks, day(19), plan=plan))["trailing"]
    assert len(before.scores or ()) == 14


def test_accepted_incidents_of_drift_are_levels_of_a_part():
    accepted = {
        "scores": [(day(20), day(15))],
        "volume": [(day(9), day(8))],
        "missing_share_changed[language,trailing]": [(day(7), day(6))],
        "quality": [(day(5), day(4))],
        "a rule that is gone": [(day(3), day(2))],
    }
    assert accepted_levels(PLAN.rules, accepted) == [
        AcceptedLevel(part="scores", first=day(15), accepted=day(19)),
        AcceptedLevel(part="comments", first=day(8), accepted=day(8)),
        AcceptedLevel(part="comments", first=day(6), accepted=day(6)),
    ]


def test_a_model_change_in_an_incident_starts_a_reference_of_its_own(lake, checks):
    made = fault(15, 60, mean=0.3)
    run(lake, checks, ((day(n), made(n)) for n in range(20)))
    changed = fault(0, 60, mean=0.3, version="4")
    run(lake, checks, ((day(n), changed(n)) for n in range(20, 25)))
    trailing = by_name(references(lake, checks, day(25), plan=PLAN))["trailing"]
    assert [profile.model_version for profile in trailing.scores or ()][-5:] == ["4"] * 5
    (found,) = found_incidents(lake, "scores_jumped")
    assert found.recovered == day(21), "the first day with a reference of the new model"


def test_same_weekdays_are_the_reference_once_there_are_three(lake, checks):
    put(lake, range(42))
    for number, weeks in ((20, None), (21, 3), (28, 4), (35, 5), (42, 5)):
        trailing = by_name(references(lake, checks, day(number), plan=PLAN))["trailing"]
        expected = (
            [day(n) for n in range(number - 14, number)]
            if weeks is None
            else [day(number - 7 * week) for week in range(weeks, 0, -1)]
        )
        if number == 42:
            save_profile(lake, day(42), scores=profile(42))
        assert dates_of(lake, trailing.comments) == expected, number


def weekly(number: int) -> Profile:
    """Return a day of a platform where weekends are small, ruder and in another language."""
    weekend = day(number).isoweekday() >= 6
    return (
        profile(number, mean=0.25, size=300, language="xx")
        if weekend
        else profile(number, mean=0.1, size=1_200)
    )


@pytest.mark.soak  # `incidents/test_volume.py` has weekends
def test_a_weekly_pattern_is_no_incident_after_three_weeks(lake, checks):
    run(lake, checks, ((day(n), weekly(n)) for n in range(36)))
    for name in ("volume_low", "volume_high", "scores_jumped", "flagged_more", "flagged_less"):
        late = [incident for incident in found_incidents(lake, name) if incident.opened >= day(21)]
        assert not late, name
    # A Saturday as on other days is one.
    run(lake, checks, [(day(40), profile(40, mean=0.1, size=1_200))])
    assert found_incidents(lake, "volume_high")[-1].opened == day(40)
    assert found_incidents(lake, "flagged_less")[-1].opened == day(40)


def test_a_month_of_missing_days(lake, checks):
    run(lake, checks, ((day(n), profile(n)) for n in range(5)))
    found = {(f.metric, f.reference): f for f in findings(lake, checks, day(35), profile(35))}
    assert found["psi", "trailing"].status == "insufficient"
    assert found["volume_ratio", "trailing"].reason == "0 trailing days; 3 are needed"


def test_a_day_delivered_twice_with_other_content(lake, checks):
    run(lake, checks, ((day(n), profile(n)) for n in range(10)))
    run(lake, checks, [(day(10), profile(10, mean=0.3))])
    assert found_incidents(lake, "scores_jumped")
    run(lake, checks, [(day(10), profile(10))])
    assert not found_incidents(lake, "scores_jumped")
    trailing = by_name(references(lake, checks, day(11), plan=PLAN))["trailing"]
    assert len(trailing.scores or ()) == 11, "the day is in the reference of the next"


def test_days_out_of_order_give_the_same_comparison(tmp_path, checks):
    made = [*((day(n), profile(n, size=600 + n)) for n in range(16))]
    ordered, shuffled = (Lake(root=str(tmp_path / name)) for name in ("ordered", "shuffled"))
    run(ordered, checks, made)
    run(shuffled, checks, [made[n] for n in (7, 15, 0, 3, 1, 2, 14, 6, 5, 4, 9, 8, 13, 12, 11, 10)])
    run(shuffled, checks, made)  # as the days are run again, in order
    assert findings(ordered, checks, day(16), profile(16)) == findings(
        shuffled, checks, day(16), profile(16)
    )


def test_constant_scores(lake, checks):
    prob = np.full(600, 0.05, np.float32)
    scores = profile_scores(prob, prob > 0.3, ["3"])
    made = Profile(comments=600, categories={"language": {"de": 600}}).with_scores_of(scores)
    run(lake, checks, ((day(n), made) for n in range(8)))
    found = [f for f in findings(lake, checks, day(8), made) if f.reference == "trailing"]
    assert {f.value for f in found if f.metric == "psi"} == {0.0}
    run(lake, checks, [(day(8), profile(8))])
    assert found_incidents(lake, "scores_jumped")[-1].since == day(8)


def test_the_history_is_read_once(lake, checks):
    run(lake, checks, ((day(n), profile(n)) for n in range(8)))
    again = Lake(root=lake.root)
    references(again, checks, day(8), plan=PLAN)
    rows = {table: sum(lake.count(table, day(n)) for n in range(8)) for table in again.traffic.read}
    assert again.traffic.read["drift"] == rows["drift"] > 0
    # The model version of each day once more, from one row.
    assert again.traffic.read["profiles"] <= rows["profiles"] + 8

"""Draws: those of smallest key in each stratum, whatever the order of the stream."""

import datetime
import hashlib
import tracemalloc
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations, pairwise

import numpy as np
import pytest
from audit_making import FIRST, SEED, make_comments, make_plan, plan_of
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from modwatch.common.errors import AuditError, MetricInputError
from modwatch.statistics.audit.draw import Scored, ScoreHistogram, day_digest, strata_of
from modwatch.statistics.audit.draw import draw as draw_sample
from modwatch.statistics.audit.draw import keys_of as keys_by
from modwatch.statistics.audit.plan import AuditPlan, planned_strata
from modwatch.statistics.audit.sample_design import ScoreCounts, design

draw, keys_of = partial(draw_sample, seed=SEED), partial(keys_by, seed=SEED)

TINY = 1e-45  # the smallest subnormal float32

#: With surrogates, which an id in JSON may hold, and whatever else is odd.
IDS = st.text(st.characters(), max_size=4) | st.sampled_from(["", "\ud800", "\0", "a\n", "=1+1"])
SCORES = st.sampled_from([0.0, 1.0, TINY, 0.5, 0.25, 0.75]) | st.floats(0, 1, width=32)
TRAITS = st.lists(st.sampled_from(["de", "en", ""]), max_size=3).map(tuple)


@dataclass(frozen=True)
class Row:
    day: int
    comment_id: str
    prob: float
    values: tuple[str, ...] = ()


def parts_of(rows: Sequence[Row], cuts: Sequence[int] = ()) -> list[Scored]:
    """Return the comments in parts, each of one day; some parts may be empty."""
    bounds = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    parts = []
    for first, last in pairwise(bounds):
        for day in (0, 1):
            mine = [row for row in rows[first:last] if row.day == day]
            prob = np.array([row.prob for row in mine], dtype=np.float32)
            parts.append(
                Scored(
                    day=FIRST + datetime.timedelta(days=day),
                    comment_id=[row.comment_id for row in mine],
                    prob=prob,
                    flagged=prob > 0.5,
                    traits={"language": [row.values for row in mine]},
                )
            )
    return parts


@st.composite
def streams(draw: st.DrawFn) -> tuple[list[Row], AuditPlan]:
    named = draw(st.sets(st.tuples(st.integers(0, 1), IDS), min_size=1, max_size=25))
    rows = [Row(*entry, np.float32(draw(SCORES)).item(), draw(TRAITS)) for entry in sorted(named)]
    edges = {}
    for side, flagged in (("flagged", True), ("unflagged", False)):
        scores = sorted({row.prob for row in rows if (row.prob > 0.5) == flagged})[1:]
        edges[side] = draw(st.sets(st.sampled_from(scores), max_size=3)) if scores else ()
    labels = draw(st.integers(1, 10))
    return rows, plan_of(parts_of(rows), edges, labels)


def sizes_of(plan: AuditPlan) -> list[int]:
    return [stratum.labels for stratum in plan.strata]


def stratum_of(plan: AuditPlan, row: Row) -> int:
    for number, item in enumerate(plan.strata):
        lower = 0 if item.lower is None else item.lower
        upper = 2 if item.upper is None else item.upper
        if (item.side == "flagged") == (row.prob > 0.5) and lower <= row.prob < upper:
            return number
    raise AssertionError


@given(streams(), st.randoms(use_true_random=False), st.lists(st.integers(0, 25), max_size=6))
def test_it_is_a_plain_sort_by_key_in_any_order_and_in_any_parts(stream, random, cuts):
    rows, plan = stream
    expected = []
    for number, planned in enumerate(plan.strata):
        mine = []
        for row in rows:
            if stratum_of(plan, row) == number:
                day = FIRST + datetime.timedelta(days=row.day)
                mine.append((int(keys_of(plan, day, [row.comment_id])[0]), day, row))
        assert len(mine) == planned.population
        mine.sort(key=lambda entry: entry[:2])
        expected += [(key, day, number, row) for key, day, row in mine[: planned.labels]]
    expected.sort(key=lambda item: item[:2])
    shuffled = [*rows]
    random.shuffle(shuffled)
    found = draw(plan, parts_of(shuffled, cuts), sizes_of(plan))
    assert [
        (
            comment.key,
            comment.day,
            comment.stratum,
            comment.comment_id,
            comment.score,
            comment.traits["language"],
        )
        for comment in found.comments
    ] == [
        (key, day, number, row.comment_id, row.prob, tuple(dict.fromkeys(row.values)))
        for key, day, number, row in expected
    ]
    stands_for = Counter(
        ("language", value, stratum_of(plan, row)) for row in rows for value in {*row.values}
    )
    assert found.population == stands_for


@given(streams(), st.data())
def test_a_second_stage_goes_on_where_the_first_ended(stream, data):
    rows, plan = stream
    more = [data.draw(st.integers(0, item.population)) for item in plan.strata]
    sizes = [data.draw(st.integers(0, size)) for size in more]
    first, second = (draw(plan, parts_of(rows), value).comments for value in (sizes, more))
    for number, size in enumerate(sizes):
        mine = [item for item in second if item.stratum == number]
        assert mine[:size] == [item for item in first if item.stratum == number]
        assert len(mine) == more[number]


ROWS = [Row(0, f"c{number}", number / 40) for number in range(40)]
PARTS = parts_of(ROWS)
#: Of `a_plan`, in its order.
STRATA = [range(21, 30), range(30, 40), range(10), range(10, 21)]


def a_plan(**changes: object) -> AuditPlan:
    return plan_of(PARTS, {"unflagged": [0.25], "flagged": [0.75]}, 4, **changes)


def test_every_sample_of_a_stratum_is_as_likely():
    """Simple random sampling without replacement: all pairs of a stratum are drawn as often."""
    times, plan = 600, a_plan()
    drawn, pairs = Counter[str](), Counter[frozenset[str]]()
    for seed in range(times):
        found = draw(plan, PARTS, sizes_of(plan), seed=f"seed {seed}").comments
        for number in range(len(STRATA)):
            ids = [match.comment_id for match in found if match.stratum == number]
            drawn.update(ids)
            pairs.update(map(frozenset, combinations(ids, 2)))
    squares, freedom = 0.0, 0
    for rows in STRATA:
        names, chance = [f"c{number}" for number in rows], 4 / len(rows)
        error = np.sqrt(times * chance * (1 - chance))
        z = np.array([drawn[name] - times * chance for name in names]) / error
        assert np.abs(z).max() < 4
        squares, freedom = squares + (z**2).mean() * (len(rows) - 1), freedom + len(rows) - 1
        chance *= 3 / (len(rows) - 1)
        error = np.sqrt(times * chance * (1 - chance))
        both = [pairs[frozenset(pair)] - times * chance for pair in combinations(names, 2)]
        assert np.abs(both).max() < 4.5 * error
    assert stats.chi2.ppf(0.001, freedom) < squares < stats.chi2.ppf(0.999, freedom)


def test_memory_holds_the_sample_and_one_part():
    size, part = 400_000, 10_000

    def stream() -> Iterator[Scored]:
        for first in range(0, size, part):
            if first == size // 2:  # tracing is slow: the last half tells
                tracemalloc.start()
            numbers = np.arange(first, first + part)
            prob = (numbers % 1000 / 1000).astype(np.float32)
            yield Scored(
                day=FIRST,
                comment_id=[f"c{number}" for number in numbers.tolist()],
                prob=prob,
                flagged=prob > 0.5,
            )

    plan, times = plan_of([next(stream())], {}, 500), size // part
    day = plan.population[0]
    plan = replace(
        plan,
        population=(replace(day, comments=size, flagged=day.flagged * times),),
        strata=tuple(replace(item, population=item.population * times) for item in plan.strata),
    )
    try:
        drawn = draw(plan, stream(), sizes_of(plan))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(drawn.comments) == 1000
    assert peak < 5_000_000  # the ids of that half alone would be twice as much


def without(number: int) -> list[Row]:
    return [row for row in ROWS if row.comment_id != f"c{number}"]


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        (without(5), r"2026-01-05 has \(19, 20\) comments and \(19, 21\)"),
        ([*ROWS, Row(0, "new", 0.9)], r"has \(20, 21\) comments"),
        ([*without(5), replace(ROWS[5], day=1)], r"2026-01-05 has \(19, 20\) comments"),
        ([*ROWS, Row(1, "other day", 0.1)], r"2026-01-06 has \(0, 1\) comments"),
        ([], "2026-01-05 has"),
        ([*without(5), replace(ROWS[5], prob=0.3)], "stratum 2 has 9 comments and 10 in the plan"),
        ([*without(5), replace(ROWS[5], prob=0.9)], r"has \(20, 20\) comments"),
    ],
)
def test_another_stream_than_was_planned_with_is_refused(rows, why):
    with pytest.raises(AuditError, match=f"{why}.*scores changed since"):
        draw(a_plan(), parts_of(rows), [4] * 4)


def test_a_stream_that_contradicts_its_plan_or_itself_is_refused():
    with pytest.raises(AuditError, match="comment 'c6' of 2026-01-05 occurs twice"):
        draw(a_plan(), parts_of([*without(5), ROWS[6]]), [9, 10, 10, 11])
    [part] = [part for part in PARTS if part.prob.size]
    turned = replace(part, flagged=part.flagged ^ (np.arange(40) == 3))
    with pytest.raises(AuditError, match="decisions of 2026-01-05 do not follow"):
        draw(a_plan(), [turned], [4] * 4)
    unflagged = plan_of(parts_of([row for row in ROWS if row.prob <= 0.5]), {}, 4)
    with pytest.raises(AuditError, match="has flagged comments and had none"):
        draw(unflagged, PARTS, [4])


@given(st.lists(st.tuples(IDS, SCORES), max_size=12), st.randoms(use_true_random=False))
def test_the_digest_of_a_day_does_not_depend_on_order_or_parts(comments, random):
    rows = [Row(0, *comment) for comment in comments]
    expected = hashlib.sha256(
        b"".join(
            sorted(
                hashlib.sha256(
                    np.float32(row.prob).astype("<f4").tobytes()
                    + (b"1" if row.prob > 0.5 else b"0")
                    + row.comment_id.encode(errors="surrogatepass")
                ).digest()
                for row in rows
            )
        )
    ).hexdigest()
    random.shuffle(rows)
    assert day_digest(parts_of(rows, [random.randrange(13), random.randrange(13)])) == expected


def test_the_digest_of_a_day_changes_with_each_id_score_and_decision():
    [part] = [part for part in PARTS if part.prob.size]
    digests = {day_digest([part]), day_digest([part, part]), day_digest([])}
    assert day_digest([part]) == day_digest(PARTS)
    twice = Row(0, "c3", 3 / 40)
    digests.add(day_digest(parts_of([*ROWS, twice])))
    digests.add(day_digest(parts_of([*ROWS, twice, twice])))
    for row in range(40):
        ids, prob, flagged = [*part.comment_id], part.prob.copy(), part.flagged.copy()
        ids[row] += "x"
        prob[row] = np.nextafter(prob[row], np.float32(2 if row < 39 else 0))
        flagged[row] ^= True
        for changes in ({"comment_id": ids}, {"prob": prob}, {"flagged": flagged}):
            digests.add(day_digest([replace(part, **changes)]))  # type: ignore[arg-type]
    swapped = [*part.comment_id]
    swapped[0], swapped[1] = swapped[1], swapped[0]
    digests.add(day_digest([replace(part, comment_id=swapped)]))
    assert len(digests) == 5 + 3 * 40 + 1


@given(st.lists(SCORES, min_size=1, max_size=60), st.integers(1, 3))
def test_a_histogram_counts_each_score_in_a_class_hardly_wider_than_it(scores, parts):
    prob = np.array(scores, dtype=np.float32)
    counts = ScoreHistogram()
    for part in np.array_split(prob, parts):
        counts.add(part)
    found = counts.counts()
    value, number = np.unique(prob.astype(np.float64), return_counts=True)
    where = np.searchsorted(found.score, value, side="right") - 1
    assert (np.diff(found.score) > 0).all()
    np.testing.assert_array_equal(np.bincount(where, weights=number), found.count)
    width = np.maximum(value * 2.0**-11, 2.0**-137)
    assert (value - found.score[where] >= 0).all()
    assert (value - found.score[where] <= width).all()


def test_a_histogram_takes_zeros_of_either_sign_and_refuses_what_is_no_score():
    counts = ScoreHistogram()
    counts.add(np.array([-0.0, 0.0, 1.0], np.float32))
    counts.add(np.array([], np.float32))
    found = counts.counts()
    assert (found.score.tolist(), found.count.tolist()) == ([0.0, 1.0], [2, 1])
    for score in (np.nan, -1.0, 1.5):
        with pytest.raises(MetricInputError):
            counts.add(np.array([score], np.float32))


def test_edges_from_a_histogram_hold_exactly_the_comments_of_the_plan():
    comments = make_comments(5_000, score="dull")
    sides = ScoreHistogram(), ScoreHistogram()
    for part in comments.parts:
        for histogram, inside in zip(sides, (part.flagged, ~part.flagged), strict=True):
            histogram.add(part.prob[inside])
    made = design(sides[0].counts(), sides[1].counts(), 200)
    plan = replace(make_plan(comments, 200), strata=planned_strata(made))
    found: Mapping[int, int] = Counter(
        number for part in comments.parts for number in strata_of(plan, part).tolist()
    )
    assert [found[number] for number in range(len(plan.strata))] == [
        stratum.population for stratum in plan.strata
    ]
    exact = np.concatenate([part.prob[~part.flagged] for part in comments.parts])
    assert sides[1].counts().comments == ScoreCounts.from_scores(exact).comments
    assert len(draw(plan, comments.parts, sizes_of(plan)).comments) == 200

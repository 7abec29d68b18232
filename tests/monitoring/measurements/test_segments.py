"""Segments of a day in the lake: counted from comments and scores, ranked against earlier days."""

import datetime
from dataclasses import asdict

import numpy as np
import pytest
from lake_days import put_comments, put_profile, put_scores

from modwatch.data.lake.day_scores import day_scores
from modwatch.data.lake.delta import Lake
from modwatch.data.validation.result import CheckStore
from modwatch.monitoring.incidents.rules import load_rules
from modwatch.monitoring.measurements.references import ReferencePlan
from modwatch.monitoring.measurements.segments import (
    KEPT_IDENTITIES,
    KEPT_THREADS,
    MOST_VALUES,
    count_cells,
    day_segments,
    segment_findings,
)

MONDAY = datetime.date(2026, 1, 5)
DAYS = [MONDAY + datetime.timedelta(days=number) for number in range(5)]
TODAY = DAYS[-1]
PLAN = ReferencePlan(rules=load_rules(), trailing_days=14, fixed_days=14)
SIZE = 1_200
#: Of comment n: one of two platforms, three languages, four lengths; the combinations are equal.
PLATFORM = [("forum", "news")[n % 2] for n in range(SIZE)]
LANGUAGE = [("de", "en-GB", None)[n // 2 % 3] for n in range(SIZE)]
TEXT = ["x" * (10, 60, 300, 2_000)[n // 6 % 4] for n in range(SIZE)]


def put(
    lake: Lake,
    day: datetime.date,
    *,
    version: str = "3",
    drifted: bool = False,
    hot: np.ndarray | None = None,
    **columns: object,
) -> None:
    """Put a day; comments that are `hot` (SIZE,) are flagged in 70 %."""
    given = {"platform": PLATFORM, "language": LANGUAGE, "text": TEXT, **columns}
    put_comments(lake, day, SIZE, **given)
    rng = np.random.default_rng(day.toordinal())
    rate = np.full(SIZE, 0.1)
    if drifted:
        rate[[p == "forum" and q == "de" for p, q in zip(PLATFORM, LANGUAGE, strict=True)]] = 0.6
    if hot is not None:
        rate[hot] = 0.7
    put_scores(lake, day, np.where(rng.random(SIZE) < rate, 0.9, 0.1).astype(np.float32))
    if version != "3":
        put_scores(lake, day, np.full(SIZE, 0.9, np.float32), version=version)
    put_profile(lake, day)


def explain(
    lake: Lake, checks: CheckStore, day: datetime.date, measure: str = "flagged"
) -> list[dict[str, object]]:
    """Run the step; return its segments of one measure, and which one is stored."""
    found = day_segments(lake, checks, day, plan=PLAN)
    stored = {(one.metric, one.feature): one.reason for one in segment_findings(found)}
    return [
        {
            **asdict(one),
            "sentence": one.sentence(),
            "leading": stored.get((f"segment_{measure}", one.name)) == one.sentence(),
        }
        for one in found[measure]
    ]


def test_comments_and_flags_by_combination(lake):
    put(lake, MONDAY)
    cells = count_cells(lake, MONDAY, day_scores(lake, MONDAY))
    assert len(cells) == 2 * 3 * 4
    assert set(cells["comments"]) == {SIZE // 24}
    assert cells["flagged"].sum() == day_scores(lake, MONDAY).flagged.sum()
    assert set(cells["language"]) == {"de", "en", "und"}
    assert set(cells["length"]) == {"0-49", "50-199", "200-999", "1000+"}


def test_the_drifted_segment_leads(lake, checks):
    for day in DAYS[:-1]:
        put(lake, day)
        assert not any(row["leading"] for row in explain(lake, checks, day))
    put(lake, TODAY, drifted=True)
    (first, *others) = explain(lake, checks, TODAY)
    assert first["name"] == "platform=forum, language=de"
    assert first["leading"]
    assert not any(row["leading"] for row in others)
    assert first["n"] == SIZE // 6
    assert first["reference_n"] == 4 * SIZE // 6
    assert str(first["sentence"]).startswith("platform=forum, language=de: flagged ")
    assert explain(lake, checks, TODAY) == [first, *others], "run again, it is the same"


def test_a_new_platform_and_a_vanished_language(lake, checks):
    for day in DAYS[:-1]:
        put(lake, day)
        explain(lake, checks, day)
    new = ["chat" if n % 3 == 0 else "news" for n in range(SIZE)]
    put(lake, TODAY, platform=new, language=["de"] * SIZE)
    prob = np.where([p == "chat" for p in new], 0.9, 0.1).astype(np.float32)
    put_scores(lake, TODAY, prob)
    (first, *_) = explain(lake, checks, TODAY)
    assert first["name"] == "platform=chat"
    assert (first["reference_n"], first["reference_rate"]) == (0, None)


def test_days_of_another_model_are_no_reference(lake, checks):
    for day in DAYS[:-1]:
        put(lake, day)
        explain(lake, checks, day)
    put(lake, TODAY, version="4")
    assert explain(lake, checks, TODAY) == []


def test_an_empty_day(lake, checks):
    assert explain(lake, checks, TODAY) == []
    assert lake.table("segment_counts", TODAY).num_rows == 0


def test_many_and_hostile_names(lake, checks):
    for day in DAYS[:2]:
        put(lake, day, platform=[f"p{n % 150}" for n in range(SIZE)])
        explain(lake, checks, day)
    assert len(set(lake.table("segment_counts", DAYS[0]).column("platform").to_pylist())) == 101
    rows = explain(lake, checks, DAYS[1])
    assert len({str(row["name"]) for row in rows if "platform" in str(row["name"])}) <= MOST_VALUES
    put(lake, TODAY, platform=["\r\nBcc: all\u202e" + "x" * 100] * SIZE)
    explain(lake, checks, TODAY)
    (name,) = set(lake.table("segment_counts", TODAY).column("platform").to_pylist())
    assert name.startswith("??Bcc: all?")
    assert len(name) == 40


def test_a_segment_whose_scores_rise_and_whose_flags_do_not(lake, checks):
    """What moves below the threshold shows in the mean score only."""
    for day in DAYS:
        put(lake, day)
        rng = np.random.default_rng(day.toordinal())
        prob = rng.beta(1, 9, SIZE)
        if day == TODAY:
            prob[[language == "de" for language in LANGUAGE]] += 0.15
        put_scores(lake, day, np.minimum(prob, 0.49).astype(np.float32))
        flags, means = (explain(lake, checks, day, measure) for measure in ("flagged", "prob"))
        assert flags == []
        assert (day == TODAY) == any(row["leading"] for row in means)
    first = means[0]
    assert (first["name"], first["n"]) == ("language=de", SIZE // 3)
    assert float(first["low"]) > 0
    assert str(first["sentence"]).startswith("language=de: mean score 0.1")


def threads(day: datetime.date) -> list[str]:
    """Return sixty threads of 20 comments, and one of them of 80 more."""
    names = [f"t{day:%d}-{n % 60}" for n in range(SIZE)]
    return [f"t{day:%d}-7" if n < 85 else name for n, name in enumerate(names)]


def test_a_hot_thread_leads_and_a_usual_one_of_its_size_does_not(lake, checks):
    for day in DAYS[:-1]:
        put(lake, day, thread_id=threads(day))
        assert not any(row["leading"] for row in explain(lake, checks, day))
    put(lake, TODAY, thread_id=threads(TODAY))
    assert not any(row["leading"] for row in explain(lake, checks, TODAY))
    put(lake, TODAY, thread_id=threads(TODAY), hot=np.arange(SIZE) < 85)
    for measure in ("flagged", "prob"):
        (first, *_) = explain(lake, checks, TODAY, measure)
        assert first["name"] == "thread=t09-7"
        assert first["leading"]
        assert (first["n"], first["reference_rate"]) == (103, None)
    kept = lake.table("segment_counts", TODAY).column("thread").to_pylist()
    assert len({*kept}) == KEPT_THREADS + 1


def test_threads_that_always_differ_explain_nothing(lake, checks):
    """On each day another thread of a hundred comments is hot."""
    for number, day in enumerate(DAYS):
        put(lake, day, thread_id=threads(day), hot=np.arange(SIZE) < 85)
        rows = explain(lake, checks, day)
        assert not number or not any("thread" in str(r["name"]) and r["leading"] for r in rows)


@pytest.mark.parametrize(
    ("thread", "shown"),
    [
        ("3f9a8b7c-12ab-4cde-8f01-23456789abcd", "thread=3f9a8b7c-12ab-4cde-8f01-23456789abcd"),
        ("r/news/123", "thread=r/news/123"),
        ("you-are-an-invented-fool-2", "thread=sha256:"),
        ("9" * 41, "thread=sha256:"),
        ("<b>1</b>\r\n", "thread=sha256:"),
        ("invented", "thread=sha256:"),
    ],
)
def test_a_thread_is_named_by_its_id_and_never_by_a_text(lake, checks, thread, shown):
    """The last one would pass for an id; a comment has the same text."""
    hot = np.arange(SIZE) < 150
    for day in DAYS[:2]:
        text = ["invented " if n == 900 else "x" * 60 for n in range(SIZE)]
        mine = [thread if day == DAYS[1] and n < 150 else f"{day}{n % 300}" for n in range(SIZE)]
        if thread == "invented":
            mine[900] = thread
        put(lake, day, thread_id=mine, text=text, hot=hot if day == DAYS[1] else None)
        (first, *_) = explain(lake, checks, day) or [{}]
    assert str(first["name"]).startswith(shown)
    assert len(str(first["name"])) <= len("thread=") + 40
    if shown.endswith(":"):
        stored = repr(lake.table("segment_counts", DAYS[1]).to_pylist()) + repr(first)
        assert thread not in stored


def test_a_day_delivered_again_replaces_its_counts(lake, checks):
    for day in DAYS[:-1]:
        put(lake, day)
        explain(lake, checks, day)
    before = lake.table("segment_counts", DAYS[-2])
    put(lake, DAYS[-2], platform=["news"] * SIZE)
    explain(lake, checks, DAYS[-2])
    put(lake, DAYS[-2])
    explain(lake, checks, DAYS[-2])
    assert lake.table("segment_counts", DAYS[-2]) == before
    put(lake, TODAY, drifted=True)
    (first, *_) = explain(lake, checks, TODAY)
    assert first["reference_n"] == 4 * SIZE // 6, "no comment counts twice"


def test_no_text_gets_into_the_tables(lake, checks):
    for day in DAYS[:2]:
        put(lake, day, text="an invented text", drifted=day == DAYS[1])
        explain(lake, checks, day)
        stored = lake.table("segment_counts", day).to_pylist()
        assert "invented" not in repr([*stored, *explain(lake, checks, day)])


def test_the_identity_that_is_flagged_more_leads(lake, checks):
    """Mentions are named by the source; half of those of women also mention men."""
    groups = [[["women"], ["men", "women"], None, None][n % 4] for n in range(SIZE)]
    about_women = np.array([bool(names) and "women" in names for names in groups])
    for day in DAYS[:-1]:
        put(lake, day, groups=groups)
        assert not any(row["leading"] for row in explain(lake, checks, day))
    put(lake, TODAY, groups=groups, hot=about_women)
    (first, *_) = explain(lake, checks, TODAY)
    assert (first["name"], first["leading"]) == ("identity=women", True)
    assert (first["n"], first["reference_n"]) == (SIZE // 2, 4 * SIZE // 2)


def test_identities_are_found_by_their_words_where_the_source_names_none(lake):
    texts = [
        ("about women", "about men and women; or not", "about nobody")[n % 3] for n in range(9)
    ]
    put_comments(lake, MONDAY, 9, text=texts)
    put_scores(lake, MONDAY, np.full(9, 0.9, np.float32))
    terms = {"women": ["women"], "men": ["men"], "": ["nobody"]}
    cells = count_cells(lake, MONDAY, day_scores(lake, MONDAY), terms)
    assert cells.groupby("identity")["comments"].sum().to_dict() == {
        "(none)": 3,
        "men; women": 3,
        "women": 3,
    }


def test_the_most_frequent_identities_are_kept(lake):
    groups = [[f"group {min(n, 10 * (n % 40))}; <b>\n"] for n in range(SIZE)]
    put(lake, MONDAY, groups=groups)
    cells = count_cells(lake, MONDAY, day_scores(lake, MONDAY))
    named = set(cells["identity"]) - {"(none)"}
    assert len(named) == KEPT_IDENTITIES
    assert all(name.endswith(", <b>?") for name in named)
    assert cells["comments"].sum() == SIZE


def test_identities_that_are_printed_alike_are_one(lake):
    """Names are cut and their separators replaced: a comment counts once for what is left."""
    long = "x" * 40
    put_comments(lake, MONDAY, 4, groups=[[long + "1", long + "2"], ["a;b", "a,b"], None, ["a;b"]])
    put_scores(lake, MONDAY, np.full(4, 0.9, np.float32))
    cells = count_cells(lake, MONDAY, day_scores(lake, MONDAY))
    found = cells.groupby("identity")["comments"].sum().to_dict()
    assert found == {long: 1, "a,b": 2, "(none)": 1}

"""Segments of a day in the lake: counted from comments and scores, ranked against earlier days."""

import datetime

import numpy as np
from lake_days import put_comments, put_profile, put_scores

from modwatch.alerts.rules import load_rules
from modwatch.lake.day_scores import day_scores
from modwatch.lake.delta import Lake
from modwatch.monitoring.references import ReferencePlan
from modwatch.monitoring.segments import MOST_VALUES, count_cells, explain_day
from modwatch.quality.store import CheckStore

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
    lake: Lake, day: datetime.date, *, version: str = "3", drifted: bool = False, **columns: object
) -> None:
    given = {"platform": PLATFORM, "language": LANGUAGE, "text": TEXT, **columns}
    put_comments(lake, day, SIZE, **given)
    rng = np.random.default_rng(day.toordinal())
    rate = np.full(SIZE, 0.1)
    if drifted:
        rate[[p == "forum" and q == "de" for p, q in zip(PLATFORM, LANGUAGE, strict=True)]] = 0.6
    put_scores(lake, day, np.where(rng.random(SIZE) < rate, 0.9, 0.1).astype(np.float32))
    if version != "3":
        put_scores(lake, day, np.full(SIZE, 0.9, np.float32), version=version)
    put_profile(lake, day)


def explain(lake: Lake, checks: CheckStore, day: datetime.date) -> list[dict[str, object]]:
    count = explain_day(lake, checks, day, plan=PLAN)
    rows = sorted(lake.table("segments", day).to_pylist(), key=lambda row: row["rank"])
    assert len(rows) == count
    return rows


def test_comments_and_flags_by_combination(lake: Lake) -> None:
    put(lake, MONDAY)
    cells = count_cells(lake, MONDAY, day_scores(lake, MONDAY))
    assert len(cells) == 2 * 3 * 4
    assert set(cells["comments"]) == {SIZE // 24}
    assert cells["flagged"].sum() == day_scores(lake, MONDAY).flagged.sum()
    assert set(cells["language"]) == {"de", "en", "und"}
    assert set(cells["length"]) == {"0-49", "50-199", "200-999", "1000+"}


def test_the_drifted_segment_leads(lake: Lake, checks: CheckStore) -> None:
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


def test_a_new_platform_and_a_vanished_language(lake: Lake, checks: CheckStore) -> None:
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


def test_days_of_another_model_are_no_reference(lake: Lake, checks: CheckStore) -> None:
    for day in DAYS[:-1]:
        put(lake, day)
        explain(lake, checks, day)
    put(lake, TODAY, version="4")
    assert explain(lake, checks, TODAY) == []


def test_an_empty_day(lake: Lake, checks: CheckStore) -> None:
    assert explain(lake, checks, TODAY) == []
    assert lake.table("segment_counts", TODAY).num_rows == 0


def test_many_and_hostile_names(lake: Lake, checks: CheckStore) -> None:
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


def test_no_text_gets_into_the_tables(lake: Lake, checks: CheckStore) -> None:
    for day in DAYS[:2]:
        put(lake, day, text="an invented text", drifted=day == DAYS[1])
        explain(lake, checks, day)
    for table in ("segment_counts", "segments"):
        assert "invented" not in repr(lake.table(table, DAYS[1]).to_pylist())

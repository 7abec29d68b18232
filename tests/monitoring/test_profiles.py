import datetime
from pathlib import Path

import numpy as np
import pytest
from lake_days import batch, put_comments, put_scores

from modwatch.lake.delta import Lake
from modwatch.lake.schemas import DRIFT, PROFILES, QUARANTINE
from modwatch.metrics.drift import Finding, Reference
from modwatch.metrics.profile import Profile, histogram
from modwatch.monitoring import profiles

MONDAY = datetime.date(2026, 1, 5)
TUESDAY = datetime.date(2026, 1, 6)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(root=str(tmp_path))


def assert_same(one: Profile, other: Profile) -> None:
    for name in ("comments", "quarantined", "missing", "categories", "flagged", "model_version"):
        assert getattr(one, name) == getattr(other, name), name
    for name, counts in one.scores.items():
        assert (counts == other.scores[name]).all()


def test_a_day_in_counts(lake: Lake) -> None:
    put_comments(
        lake,
        MONDAY,
        4,
        language=["de-AT", "DE", "", None],
        platform=["forum", "forum", None, "chat"],
        parent_text=["an invented answer", "", None, None],
        groups=[["women"], [], None, None],
        author_id="a",
    )
    prob = np.array([0.0, 0.2, 0.7, 1.0], np.float32)
    put_scores(lake, MONDAY, prob)
    put_scores(lake, MONDAY, np.full(4, 0.5, np.float32), version="9", role="challenger")
    for stage, count in (("comments", 2), ("scores", 3)):
        refused = batch(QUARANTINE, count, dt=MONDAY, stage=stage, rule="blank_text")
        lake.replace("quarantine", MONDAY, [refused], stage=stage)
    made = profiles.make_profile(lake, MONDAY)
    assert made.comments == 4
    assert made.quarantined == 2
    assert made.categories == {
        "language": {"de": 2, "und": 2},
        "platform": {"forum": 2, "chat": 1, "(none)": 1},
    }
    assert made.missing == {
        "platform": 1,
        "thread_id": 4,
        "parent_text": 3,
        "language": 2,
        "author_id": 0,
        "groups": 2,
    }
    assert (made.scores["prob"] == histogram(prob, 1.0)).all()
    assert (made.scores["uncertainty"] == histogram(prob * (1 - prob), 0.25)).all()
    assert (made.flagged, made.model_version) == (2, "3")
    assert_same(profiles.read_profile(lake, MONDAY), made)


def test_many_batches_are_one_day(lake: Lake) -> None:
    size = 25_000  # the lake hands over 10,000 rows at a time
    put_comments(lake, MONDAY, size, language=["de", "en"] * (size // 2))
    prob = np.random.default_rng(0).random(size).astype(np.float32)
    put_scores(lake, MONDAY, prob)
    made = profiles.make_profile(lake, MONDAY)
    assert made.comments == made.scored == size
    assert made.categories["language"] == {"de": size // 2, "en": size // 2}
    assert (made.scores["prob"] == histogram(prob, 1.0)).all()


def test_an_empty_day_is_kept_as_empty(lake: Lake) -> None:
    made = profiles.make_profile(lake, MONDAY)
    assert (made.comments, made.scored, made.model_version) == (0, 0, None)
    assert set(made.missing) == set(profiles.OPTIONAL_COLUMNS)
    assert lake.days("profiles") == [MONDAY]
    assert_same(profiles.read_profile(lake, MONDAY), made)


def test_a_profile_has_no_more_categories_than_can_be_read(lake: Lake) -> None:
    names = ["forum"] * 10 + [f"platform {number:03}" for number in range(150)]
    put_comments(lake, MONDAY, len(names), platform=names)
    kept = profiles.make_profile(lake, MONDAY).categories["platform"]
    assert len(kept) == profiles.MOST_CATEGORIES + 1
    assert (kept["forum"], kept["platform 000"], kept["(other)"]) == (10, 1, 51)


def test_references_get_the_profiles_that_they_lack(lake: Lake) -> None:
    for day, size in ((MONDAY, 3), (TUESDAY, 5)):
        put_comments(lake, day, size)
        put_scores(lake, day, np.full(size, 0.5, np.float32))
    sunday = MONDAY - datetime.timedelta(days=1)
    fixed, trailing = profiles.references(lake, fixed=[MONDAY], trailing=[sunday, MONDAY, TUESDAY])
    assert [day.scored for day in fixed.days] == [3]
    assert [day.scored for day in trailing.days] == [3, 5]
    assert lake.days("profiles") == [MONDAY, TUESDAY]


def test_references_do_not_read_a_day_again(lake: Lake) -> None:
    put_comments(lake, MONDAY, 3)
    put_scores(lake, MONDAY, np.full(3, 0.5, np.float32))
    profiles.make_profile(lake, MONDAY)
    put_comments(lake, MONDAY, 8)
    (reference, _) = profiles.references(lake, fixed=[MONDAY], trailing=[])
    assert reference.days[0].comments == 3


def test_no_references(lake: Lake) -> None:
    found = profiles.references(lake, fixed=[], trailing=[MONDAY])
    assert found == [Reference(name="fixed", days=[]), Reference(name="trailing", days=[])]


def test_rows_have_their_schemas(lake: Lake) -> None:
    rows = profiles.profile_rows(MONDAY, Profile(comments=3))
    assert rows.schema == PROFILES
    found = [
        Finding(metric="psi", feature="prob", reference="fixed", value=0.1, n=5, reference_n=9),
        Finding(metric="flagged_share", feature="flagged", value=None, n=0, reason="an empty day"),
    ]
    drift = profiles.drift_rows(MONDAY, found)
    assert drift.schema == DRIFT
    assert drift.column("status").to_pylist() == ["ok", "insufficient"]
    assert drift.column("value").to_pylist() == [0.1, None]
    assert lake.replace("drift", MONDAY, [drift]) == 2

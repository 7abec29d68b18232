"""The segments that explain a change of the flagged share."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from modwatch.common.errors import MetricInputError
from modwatch.statistics.drift.shift_segments import (
    COUNTS,
    MINIMUM_COMMENTS,
    explain_shift,
    leading,
)

FACTORS = ["platform", "language"]
FLAGGED = COUNTS["flagged"]


def cells(rows: dict[tuple[str, str], tuple[int, int, int, int]]) -> pd.DataFrame:
    """Return a table of platform, language and counts of flags."""
    table = pd.DataFrame([[*key, *counts] for key, counts in rows.items()])
    return table.set_axis([*FACTORS, *FLAGGED], axis=1)


USUAL = {
    ("forum", "de"): (1_000, 80, 14_000, 1_120),
    ("forum", "en"): (1_000, 80, 14_000, 1_120),
    ("news", "de"): (1_000, 80, 14_000, 1_120),
    ("news", "en"): (1_000, 80, 14_000, 1_120),
}


def test_a_pair_a_value_and_the_whole_day():
    pair = explain_shift(cells({**USUAL, ("forum", "de"): (1_000, 370, 14_000, 1_120)}), FACTORS)
    assert pair[0].name == "platform=forum, language=de"
    assert (pair[0].rate, pair[0].reference_rate) == (0.37, 0.08)
    assert pair[0].effect == pytest.approx(0.25 * 0.29)
    assert pair[0].behaviour == pytest.approx(0.25 * 0.29)
    assert pair[0].composition == 0
    assert pair[0].explained == pytest.approx(1.0)
    assert leading(pair) is pair[0]

    both = {key: (1_000, 370, 14_000, 1_120) for key in USUAL if key[0] == "forum"}
    value = explain_shift(cells({**USUAL, **both}), FACTORS)
    assert value[0].name == "platform=forum"

    every = dict.fromkeys(USUAL, (1_000, 370, 14_000, 1_120))
    assert leading(explain_shift(cells(every), FACTORS)) is None
    assert explain_shift(cells(USUAL), FACTORS) == [], "nothing has changed"


def test_a_larger_share_of_a_rude_platform_is_composition():
    before = {("forum", "de"): (1_000, 300, 14_000, 4_200), ("news", "de"): USUAL["news", "de"]}
    after = {**before, ("forum", "de"): (3_000, 900, 14_000, 4_200)}
    (first, *_) = explain_shift(cells(after), FACTORS)
    assert first.name == "platform=forum"
    assert first.behaviour == pytest.approx(0, abs=1e-12)
    assert first.composition == pytest.approx(first.effect)
    assert (first.reference_share, first.share) == (0.5, 0.75)


def test_a_larger_share_without_another_rate_explains_nothing():
    grown = {**USUAL, ("forum", "de"): (3_000, 240, 14_000, 1_120)}
    drifted = {**grown, ("news", "en"): (1_000, 370, 14_000, 1_120)}
    (first, *_) = explain_shift(cells(drifted), FACTORS)
    assert first.name == "platform=news, language=en"


def test_day_and_reference_exchanged_turn_every_sign():
    rng = np.random.default_rng(3)
    counts = [(int(n), int(rng.integers(0, n))) for n in rng.integers(200, 2_000, 18)]
    rows = {(f"p{c % 3}", f"l{c // 3}"): (*counts[c], *counts[c + 9]) for c in range(9)}
    turned = {key: (*sides[2:], *sides[:2]) for key, sides in rows.items()}
    there, back = (explain_shift(cells(value), FACTORS) for value in (rows, turned))
    assert there
    assert [(s.name, s.effect, s.composition) for s in there] == [
        (s.name, pytest.approx(-s.effect), pytest.approx(-s.composition)) for s in back
    ]


def test_new_and_vanished_values():
    new = {**USUAL, ("chat", "de"): (500, 250, 0, 0)}
    (first, *_) = explain_shift(cells(new), FACTORS)
    assert first.name == "platform=chat"
    assert (first.reference_rate, first.behaviour) == (None, 0.0)
    assert first.sentence().startswith("platform=chat (new): flagged 50.0 %, 11.1 % of comments, n")
    gone = {**USUAL, ("chat", "de"): (0, 0, 7_000, 3_500)}
    (first, *_) = explain_shift(cells(gone), FACTORS)
    assert first.name == "platform=chat"
    assert first.rate is None
    assert first.sentence().startswith("platform=chat (gone; as it was): flagged 50.0 %, ")


def test_small_segments_are_left_out():
    few = {**USUAL, ("chat", "fr"): (MINIMUM_COMMENTS - 1, MINIMUM_COMMENTS - 1, 0, 0)}
    names = [segment.name for segment in explain_shift(cells(few), FACTORS)]
    assert names
    assert not [name for name in names if "chat" in name or "fr" in name]


@pytest.mark.parametrize(
    "counts",
    [(0, 0, 100, 10), (100, 10, 0, 0), (100, 0, 100, 0)],
    ids=["empty day", "empty reference", "nothing flagged"],
)
def test_nothing_to_compare(counts):
    assert explain_shift(cells({("a", "x"): counts, ("b", "y"): counts}), FACTORS) == []


def test_a_platform_of_one_language_is_named_by_its_shorter_name():
    rows = {
        ("forum", "de"): (1_000, 370, 14_000, 1_120),
        ("news", "en"): (1_000, 80, 14_000, 1_120),
    }
    assert [s.name for s in explain_shift(cells(rows), FACTORS)] == ["platform=forum"]


def test_impossible_counts_and_sums_are_refused():
    for counts in ((10, 11, 10, 1), (10, -1, 10, 1)):
        with pytest.raises(MetricInputError):
            explain_shift(cells({("a", "x"): counts}), FACTORS)
    table = scored(np.random.default_rng(7), 100, {"a": 0.2, "b": 0.1})
    table = table.join(table.add_prefix("reference_")).reset_index()
    for wrong in (np.nan, -1.0, 101.0):
        with pytest.raises(MetricInputError):
            explain_shift(table.assign(prob=wrong), ["platform"], measure="prob")


def test_scores_of_0_and_1_are_flags():
    rng = np.random.default_rng(5)
    counts = [(int(n), int(rng.integers(0, n))) for n in rng.integers(200, 2_000, 18)]
    flags = cells({(f"p{c % 3}", f"l{c // 3}"): (*counts[c], *counts[c + 9]) for c in range(9)})
    sums = {
        f"{side}{name}": flags[f"{side}flagged"]
        for side in ("", "reference_")
        for name in ("prob", "prob_square")
    }
    one = explain_shift(flags, FACTORS)
    other = explain_shift(flags.assign(**sums), FACTORS, measure="prob")
    assert one
    assert [replace(item, measure="flagged") for item in other] == one


def scored(rng: np.random.Generator, size: int, means: dict[str, float]) -> pd.DataFrame:
    """Return sums of scores of a beta distribution by platform."""
    drawn = {name: rng.beta(4 * mean, 4 * (1 - mean), size) for name, mean in means.items()}
    return pd.DataFrame(
        [(name, size, item.sum(), (item**2).sum()) for name, item in drawn.items()],
        columns=["platform", "comments", "prob", "prob_square"],
    ).set_index("platform")


@pytest.mark.simulation
def test_intervals_of_mean_scores_hold_and_nothing_is_named_by_chance():
    rng = np.random.default_rng(6)
    held, named = [], []
    for number in range(160):
        moved = number % 2 == 0
        today = scored(rng, 500, {"a": 0.2 if moved else 0.1, "b": 0.1, "c": 0.3})
        before = scored(rng, 2_000, {"a": 0.1, "b": 0.1, "c": 0.3}).add_prefix("reference_")
        found = explain_shift(today.join(before).reset_index(), ["platform"], measure="prob")
        if moved:
            assert found[0].name == "platform=a"
            usual = (0.6 / 3 + 0.5 / 3) / 2
            held.append(found[0].low <= ((0.2 - usual) - (0.1 - usual)) / 3 <= found[0].high)
        else:
            named.append(leading(found) is not None)
    assert np.mean(held) >= 0.9
    assert np.mean(named) <= 0.075


@pytest.mark.simulation
@pytest.mark.parametrize(("rates", "days"), [("beta", 14), ("few hot ones", 1)])
def test_threads_that_differ_as_always_are_not_named(rates, days):
    rng = np.random.default_rng([8, days])
    named = []
    for _ in range(30):
        table = thread_cells(rng, rates, days)
        first = leading(explain_shift(table, ["platform"], transient=["thread"]))
        named.append(first is not None and "thread" in first.name)
    assert np.mean(named) <= 0.1


def test_a_hot_thread_among_threads_that_differ_is_named():
    rng = np.random.default_rng(9)
    for _ in range(3):
        table = thread_cells(rng, "beta", 14)
        hot = pd.DataFrame(
            {"platform": ["p0"], "thread": ["hot"], "comments": [600], "flagged": [480]}
        )
        table = pd.concat([table, hot], ignore_index=True).fillna(0)
        found = explain_shift(table, ["platform"], transient=["thread"])
        assert found[0].name == "thread=hot"
        assert leading(found) is found[0]


def thread_cells(rng: np.random.Generator, rates: str, days: int) -> pd.DataFrame:
    """Return fifty threads of a day and of each of so many days before, a few of them large."""
    number = 50 * (days + 1)
    size = np.clip(rng.pareto(1.2, number) * 15 + 2, 2, 400).astype(int)
    rate = {
        "beta": rng.beta(1.15, 10.35, number),
        "few hot ones": np.where(rng.random(number) < 0.06, 0.45, 0.08),
    }[rates]
    flagged, today = rng.binomial(size, rate), np.arange(number) < 50
    table = pd.DataFrame({"platform": [f"p{n % 2}" for n in range(number)]})
    table["thread"] = [f"t{n}" for n in range(number)]
    for prefix, here in (("", today), ("reference_", ~today)):
        table[f"{prefix}comments"] = np.where(here, size, 0)
        table[f"{prefix}flagged"] = np.where(here, flagged, 0)
    return table


def test_labels_are_segments_alone_and_a_comment_may_have_several():
    cells = pd.DataFrame(
        {
            "platform": ["forum", "forum", "news", "news"],
            "identity": ["(none)", "men; women", "(none)", "women"],
            "comments": [1000, 200, 1000, 300],
            "flagged": [80, 120, 80, 150],
            "reference_comments": [10_000, 2_000, 10_000, 3_000],
            "reference_flagged": [800, 160, 800, 240],
        }
    )
    found = {item.name: item for item in explain_shift(cells, ["platform"], labels=["identity"])}
    women, men = found["identity=women"], found["identity=men"]
    assert next(iter(found)) == "identity=women"
    assert (women.n, men.n, women.reference_n) == (500, 200, 5_000)
    assert women.rate == pytest.approx(270 / 500)
    assert women.explained == pytest.approx(1.0)
    assert women.stands_out
    assert "identity=(none)" not in found
    assert not any("identity" in name and "platform" in name for name in found)

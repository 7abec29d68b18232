"""Whether confirmations are independent: no false alarms, copying is found, counts add up."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simulated_dependence import label_pairs

from modwatch.statistics.dependence import KINDS, MINIMUM_CONFIRMATIONS, dependence_table


def dependent(**simulated):
    """Return how many sets of each kind agree too often."""
    table = dependence_table(label_pairs(**simulated))
    return table.set_index("check")["found"].to_dict()


@pytest.mark.parametrize(
    "people",
    [
        {},
        {"hard": 1.0},
        {"rates": [(0, 0), (0, 0.02), (0.1, 0.4), (0.08, 0.35), (0.25, 0.1)]},
        {"rates": [(0.02, 0.2)] * 4 + [(0, 1)]},
        {"shift": 1.0, "people": 8},
    ],
    ids=["own rates", "hard comments", "extreme rates", "one is lazy", "two teams"],
)
def test_independent_labels_raise_no_alarm(people):
    for seed in range(2):
        assert not any(dependent(seed=seed, **people).values())


def test_copying_is_found_where_it_is():
    alike = {"rates": [(0.05, 0.2)] * 5, "m": 30_000}
    for kind, copied in zip(KINDS, ("pair", "person", "quick"), strict=True):
        assert dependent(seed=0, copied=copied, **alike) == {**dict.fromkeys(KINDS, 0), kind: 1}


def test_power_is_how_often_copying_is_found():
    """Of one person who copies half, by the power that independent labels have."""
    alike = {"rates": [(0.05, 0.2)] * 4, "people": 4, "m": 6_000}
    tables = {
        copied: pd.concat(
            dependence_table(label_pairs(seed, copied=copied, **alike)) for seed in range(6)
        )
        for copied in (None, "person")
    }
    power, found = (table[table["check"] == "people"] for table in tables.values())
    assert found["found"].mean() == pytest.approx(power["power"].mean(), abs=0.35)
    assert 0.2 < power["power"].mean() < 0.8
    few = dependence_table(label_pairs(0, **{**alike, "m": 1_000}))
    assert few["power"].max() < 0.2


@given(m=st.integers(0, 300), people=st.integers(2, 6), seed=st.integers(0, 100))
@settings(max_examples=15, deadline=None)
def test_sets_and_their_confirmations_are_counted(m, people, seed):
    labels = label_pairs(seed, m=m, people=people)
    table = dependence_table(labels)
    assert table["check"].tolist() == list(KINDS)
    confirmed = labels["moderator_second"].notna().sum()
    assert (table["n"] <= confirmed).all()
    assert (table["n"] >= MINIMUM_CONFIRMATIONS * table["tested"]).all()
    assert (table["found"] <= table["tested"]).all()
    assert (table["tested"] <= [people * (people - 1) / 2, people, 1]).all()
    assert ((table["tested"] == 0) == table["p_value"].isna()).all()
    for column in ("p_value", "power"):
        assert table[column].dropna().between(0, 1).all()


@given(seed=st.integers(0, 100))
@settings(max_examples=4, deadline=None)
def test_neither_order_nor_names_matter(seed):
    labels = label_pairs(seed, m=400)
    names = {f"m{person}": f"x{9 - person}" for person in range(5)}
    columns = ["moderator_first", "moderator_second"]
    renamed = labels.assign(**{name: labels[name].map(names) for name in columns})
    shuffled = renamed.sample(frac=1, random_state=seed)
    pd.testing.assert_frame_equal(
        dependence_table(labels), dependence_table(shuffled), check_exact=False, rtol=1e-6
    )


def test_unknown_times_are_not_tested():
    labels = label_pairs(0, m=2_000, copied="quick").assign(decided_at_first=pd.NaT)
    labels["decided_at_first"] = labels["decided_at_first"].dt.tz_localize("UTC")
    quick = dependence_table(labels).iloc[2]
    assert (quick["tested"], quick["n"]) == (0, 0)
    assert np.isnan(quick["p_value"])

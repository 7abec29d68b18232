"""Groups of comments against all others: closed forms, and simulated weeks."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from sklearn import metrics as sk

from modwatch.common.errors import MetricInputError
from modwatch.statistics.estimate import Estimate, difference
from modwatch.statistics.live.census import reconciled
from modwatch.statistics.live.conformal import crossed_sets
from modwatch.statistics.live.group_estimates import (
    COVERAGES,
    LABEL_METRICS,
    SCORE_METRICS,
    GroupedDay,
    compare_scores,
    measure_groups,
)
from modwatch.statistics.live.labelled_day import Confirmations, LabelledDay, fully_labelled
from modwatch.statistics.live.sample import Sample

GROUP = ("identity", "x")


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def everything_labelled(rng, size=400, days=2):
    """Return days whose comments all have their true label, and which are members."""
    made, members, truth = [], [], []
    for _ in range(days):
        prob = rng.random(size)
        label = (rng.random(size) < prob).astype(int)
        day = fully_labelled(label, prob)
        routed = np.ones(size, bool)
        made.append(GroupedDay(labelled=day, stratum=np.zeros(size, int), routed=routed))
        members.append(rng.random(size) < 0.3)
        truth.append((prob, label))
    prob, label = (np.concatenate(part) for part in zip(*truth, strict=True))
    return made, members, prob, label


def sampled(rng, members, prob, label, *, confirmed=True):
    """Return a day of which the most uncertain 80 and 60 random comments have labels."""
    size = prob.size
    order = np.argsort(-prob * (1 - prob), kind="stable")
    stratum = np.ones(size, int)
    stratum[order[:80]] = 0
    stratum[order[80 + (size - 80) // 2 :]] = 2
    routed = stratum == 0
    for part in (1, 2):
        routed[rng.choice(np.flatnonzero(stratum == part), 30, replace=False)] = True
    rows = np.flatnonzero(routed & (label == 1))
    day = LabelledDay(
        prob=prob,
        stratum=np.where(routed, stratum, -1),
        label=label,
        labelled=routed,
        population=np.bincount(stratum),
        sample=np.bincount(stratum[routed]),
        confirmations=Confirmations(row=rows, label=label[rows]) if confirmed else None,
    )
    return GroupedDay(labelled=day, stratum=stratum, routed=routed)


def by_metric(table):
    return table.set_index("metric")


def test_of_labelled_comments_the_figures_are_those_of_the_comments(rng):
    days, members, prob, label = everything_labelled(rng)
    inside = np.concatenate(members)
    table = by_metric(measure_groups(days, [(GROUP, members)]))
    own, others = (prob[inside], label[inside]), (prob[~inside], label[~inside])

    def accuracy(p, y):
        return ((p > 0.5) == y).mean()

    gaps = [f"{metric}_gap" for metric in COVERAGES]
    assert table.index.tolist() == [*LABEL_METRICS, *gaps, *COVERAGES, "unsure_share"]
    table = table[table["group"] == "x"]
    assert table.loc["accuracy", "value"] == pytest.approx(accuracy(*own))
    gap = accuracy(*own) - accuracy(*others)
    for name in ("difference", "difference_low", "difference_high"):
        assert table.loc["accuracy", name] == pytest.approx(gap)
    assert table.loc["auroc", "value"] == pytest.approx(sk.roc_auc_score(*own[::-1]))
    assert table.loc["calibration_error", "value"] == pytest.approx(own[0].mean() - own[1].mean())
    for metric, toxic_inside in (("bpsn_auc", False), ("bnsp_auc", True)):
        rows = inside == ((label == 1) == toxic_inside)
        ranked = sk.roc_auc_score(label[rows], prob[rows])
        assert table.loc[metric, "value"] == pytest.approx(ranked)
    assert (table["comments"] == inside.sum()).all()


def test_people_overturn_the_wrong_decisions_among_the_reviewed(rng):
    prob = rng.beta(0.4, 2, 3_000)
    label = (rng.random(3_000) < prob).astype(int)
    inside = rng.random(3_000) < 0.5
    day = sampled(rng, None, prob, label, confirmed=False)
    row = by_metric(measure_groups([day], [(GROUP, [inside])])).loc["overturn_rate"]
    reviewed = day.stratum == 0
    wrong = (prob > 0.5) != label
    assert row["value"] == pytest.approx(wrong[reviewed & inside].mean())
    gap = row["value"] - wrong[reviewed & ~inside].mean()
    assert row["difference"] == pytest.approx(gap)
    assert row["n"] == (reviewed & inside).sum()
    # For the stream of which the reviewed are a sample, although all of them have labels.
    assert row["low"] < row["value"] - 0.05
    none_reviewed = measure_groups([day], [(GROUP, [inside & ~reviewed])])
    assert by_metric(none_reviewed).loc["overturn_rate", "status"] == "insufficient"


def test_people_who_err_overturn_fewer_decisions_than_their_labels_say(rng):
    """False positives contradict decisions that are right."""
    prob = rng.beta(0.4, 2, 6_000)
    truth = (rng.random(6_000) < prob).astype(int)
    labels = np.where(rng.random(6_000) < 0.15, 1, truth)
    again = np.where(rng.random(6_000) < 0.15, 1, truth)
    day = sampled(rng, None, prob, labels)
    rows = day.labelled.confirmations.row
    confirmed = replace(
        day,
        labelled=replace(day.labelled, confirmations=Confirmations(row=rows, label=again[rows])),
    )
    members = [(GROUP, [np.arange(6_000) % 2 == 0])]
    naive, corrected = (
        by_metric(measure_groups([value], members, threshold=0.9)).loc["overturn_rate", "value"]
        for value in (replace(day, labelled=replace(day.labelled, confirmations=None)), confirmed)
    )
    assert corrected < naive - 0.02


def test_prediction_sets_fall_short_where_the_model_is_wrong(rng):
    days, members, *_ = everything_labelled(rng, size=1_500)
    turned = []
    for day, inside in zip(days, members, strict=True):
        flip = inside & (rng.random(inside.size) < 0.4)
        label = np.where(flip, 1 - day.labelled.label, day.labelled.label)
        turned.append(replace(day, labelled=replace(day.labelled, label=label)))
    others = [~inside for inside in members]
    groups = [(("platform", "a"), members), (("platform", "b"), others)]
    table = measure_groups(turned, groups).fillna({"group": ""}).set_index(["group", "metric"])
    assert table.loc[("a", "set_coverage"), "value"] < 0.85
    assert table.loc[("a", "set_coverage"), "p_holm"] < 0.01
    assert table.loc[("b", "set_coverage"), "value"] > 0.9
    assert table.loc[("", "set_coverage"), "value"] == pytest.approx(0.9, abs=0.02)
    gap = table.loc[("", "set_coverage_gap")]
    pair = abs(table.loc[("a", "set_coverage"), "difference"])
    assert gap["value"] == pytest.approx(pair)
    # Every comment has its label: nothing is estimated.
    assert (gap["low"], gap["high"]) == (pytest.approx(pair), pytest.approx(pair))


def test_the_gap_of_many_groups_is_wider_than_of_two(rng):
    days, places = [], []
    for _ in range(4):
        prob = rng.beta(0.4, 2, 2_000)
        label = (rng.random(2_000) < prob).astype(int)
        days.append(sampled(rng, None, prob, label, confirmed=False))
        places.append(rng.integers(0, 3, 2_000))
    groups = [
        (("platform", name), [place == code for place in places]) for code, name in enumerate("abc")
    ]
    table = measure_groups(days, groups)
    gap = by_metric(table).loc["set_coverage_gap"]
    covered = table[(table["metric"] == "set_coverage") & (table["attribute"] == "platform")]
    assert gap["value"] == pytest.approx(covered["value"].max() - covered["value"].min())
    assert gap["low"] == 0
    estimates = [
        Estimate.from_interval(row["value"], (row["low"], row["high"]), n=row["n"])
        for row in covered.to_dict("records")
    ]
    of_pairs = [difference(one, other) for one, other in permutations(estimates, 2)]
    widest = max(pair[2] for pair in of_pairs)
    # Three pairs at once, so that the normal quantile is 2.39 in place of 1.96.
    assert widest * 1.1 < gap["high"] < widest * 2.394 / 1.96 + gap["value"]
    first = measure_groups(days, groups[:2])
    pair = [row for row in first.to_dict("records") if row["metric"] == "set_coverage"][:2]
    one, other = (
        Estimate.from_interval(row["value"], (row["low"], row["high"]), n=1) for row in pair
    )
    ends = [abs(end) for end in difference(one, other)[1:3]]
    assert by_metric(first).loc["set_coverage_gap", "high"] == pytest.approx(max(ends))
    alone = by_metric(measure_groups(days, groups[:1])).loc["set_coverage_gap"]
    assert (alone["status"], alone["reason"]) == (
        "insufficient", "fewer than two groups have a coverage"
    )  # fmt: skip


def test_coverage_by_label_is_that_of_the_comments_with_it(rng):
    """Of all comments with labels; the coverage of all is their mean."""
    days, members, prob, label = everything_labelled(rng)
    table = measure_groups(days, [(GROUP, members)])
    everybody = by_metric(table[table["attribute"].isna()])
    day = fully_labelled(label, prob)
    sets = crossed_sets(Sample([day]), label.astype(float))
    for number, name in enumerate(("harmless", "toxic")):
        row = everybody.loc[f"set_coverage_{name}"]
        assert row["n"] == (label == number).sum()
        assert row["value"] == pytest.approx(sets[label == number, number].mean(), abs=1e-9)
        assert row["low"] == row["value"] == row["high"]
        assert row["value"] == pytest.approx(0.9, abs=0.01)
    share = label.mean()
    mean = np.dot(everybody.loc[["set_coverage_harmless", "set_coverage_toxic"], "value"],
                  [1 - share, share])  # fmt: skip
    assert everybody.loc["set_coverage", "value"] == pytest.approx(mean)
    assert everybody.loc["set_coverage", "reason"] == "sets at 90 % for each label"


def test_sets_need_labels(rng):
    prob = rng.beta(0.4, 2, 2_000)
    day = sampled(rng, None, prob, (rng.random(2_000) < prob).astype(int), confirmed=False)
    few = [rng.random(2_000) < 0.1]
    table = measure_groups([day], [(GROUP, few)])
    row = by_metric(table[table["group"] == "x"]).loc["set_coverage"]
    assert (row["status"], row["reason"]) == ("insufficient", "fewer than 30 effective labels")


def test_a_group_without_labels_is_insufficient_and_says_why(rng):
    prob = rng.beta(0.4, 2, 2_000)
    day = sampled(rng, None, prob, (rng.random(2_000) < prob).astype(int))
    table = by_metric(measure_groups([day], [(GROUP, [~day.routed])]))
    table = table[table["group"].notna()]
    assert (table["status"] == "insufficient").all()
    assert table["reason"].str.len().min() > 0
    assert table[["value", "difference", "p_holm"]].isna().all(axis=None)


def test_a_small_group_borrows_from_all_others_as_far_as_it_is_like_them(rng, monkeypatch):
    """Of a blind group the scores say nothing: labels of the others must not say otherwise."""
    monkeypatch.setattr(f"{reconciled.__module__}.OWN_PART", 0.0)
    prob = rng.beta(0.4, 2, 20_000)
    label = (rng.random(prob.size) < prob).astype(int)
    inside = rng.random(prob.size) < 0.1
    prob[inside] = rng.permutation(prob[inside])
    labelled = [
        sampled(rng, None, *parts)
        for parts in zip(*(np.split(part, 5) for part in (prob, label)), strict=True)
    ]
    members = np.split(inside, 5)
    found = by_metric(measure_groups(labelled, [(GROUP, members)])).loc["accuracy"]
    truth = ((prob > 0.5) == label)[inside].mean()
    assert found["low"] < truth < found["high"]
    assert found["high"] - found["low"] < 0.2


def test_a_group_of_all_comments_has_figures_and_no_difference(rng):
    prob = rng.beta(0.4, 2, 2_000)
    day = sampled(rng, None, prob, (rng.random(2_000) < prob).astype(int))
    table = by_metric(measure_groups([day], [(GROUP, [np.ones(2_000, bool)])])).loc["accuracy"]
    assert table["status"] == "ok"
    assert np.isnan(table["difference"])


def test_no_group_gives_an_empty_table_and_one_of_other_comments_is_refused(rng):
    days, members, *_ = everything_labelled(rng)
    assert measure_groups(days, []).empty
    assert compare_scores(np.ones(3), np.ones(3, bool), np.ones(3, bool), {}).empty
    with pytest.raises(MetricInputError, match="3 memberships for 400 comments"):
        measure_groups(days, [(GROUP, [np.ones(3, bool), members[1]])])


def test_scores_of_groups_are_exact(rng):
    prob = rng.random(500)
    inside, reviewed = rng.random(500) < 0.2, rng.random(500) < 0.1
    table = by_metric(compare_scores(prob, prob > 0.7, reviewed, {GROUP: inside}))
    assert table.index.tolist() == list(SCORE_METRICS)
    assert table.loc["mean_uncertainty", "value"] == pytest.approx(
        (prob * (1 - prob))[inside].mean()
    )
    assert table.loc["flagged_share", "value"] == pytest.approx((prob > 0.7)[inside].mean())
    gap = reviewed[inside].mean() - reviewed[~inside].mean()
    assert table.loc["reviewed_share", "difference"] == pytest.approx(gap)
    assert (table["n"] == inside.sum()).all()
    alone = by_metric(compare_scores(prob, prob > 0.7, reviewed, {GROUP: np.arange(500) == 0}))
    assert alone.loc["mean_uncertainty", "status"] == "insufficient"

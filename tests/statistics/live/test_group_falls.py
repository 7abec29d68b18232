"""The group that a fall of accuracy is in: named where it is, and hardly ever by chance."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from modwatch.statistics.live.group_falls import fallen_group

GROUPS = {"app": 0.2, "forum": 0.5, "news": 0.3}
COMMENTS = 4_000


def table(
    rng: np.random.Generator, labels: int, accuracy: dict[str, float], *without: str
) -> pd.DataFrame:
    """Return estimates of each group from its share of the labels, as `measure_groups` does."""
    rows = []
    for name in (group for group in GROUPS if group not in without):
        inside = round(labels * GROUPS[name])
        others = {group: GROUPS[group] for group in GROUPS if group != name}
        rest = sum(accuracy[item] * share for item, share in others.items()) / sum(others.values())
        value = rng.binomial(inside, accuracy[name]) / inside
        other = rng.binomial(labels - inside, rest) / (labels - inside)
        variances = [p * (1 - p) / n for p, n in ((value, inside), (other, labels - inside))]
        error = np.sqrt(sum(variances) + 1e-6)
        rows.append(
            {
                "attribute": "platform",
                "group": name,
                "metric": "accuracy",
                "value": value,
                "low": value - 1.96 * np.sqrt(variances[0] + 1e-6),
                "high": value + 1.96 * np.sqrt(variances[0] + 1e-6),
                "difference": value - other,
                "difference_low": value - other - 1.96 * error,
                "difference_high": value - other + 1.96 * error,
                "p_value": 2 * norm.sf(abs(value - other) / error),
                "n": inside,
                "comments": round(COMMENTS * GROUPS[name]),
                "status": "ok",
            }
        )
    return pd.DataFrame(rows)


def mean(accuracy: dict[str, float]) -> float:
    return sum(share * accuracy[name] for name, share in GROUPS.items())


GOOD = {"app": 0.95, "forum": 0.96, "news": 0.97}
FALLEN = GOOD | {"app": 0.66}


def test_the_group_that_fell_is_named_and_not_one_that_is_always_worse():
    rng, before = np.random.default_rng(0), GOOD | {"news": 0.8}
    after = before | {"app": 0.66}
    right = 0
    for _ in range(40):
        found = fallen_group(
            table(rng, 3_000, before),
            table(rng, 600, after),
            comments=COMMENTS,
            fall=mean(before) - mean(after),
        )
        right += found is not None and found.name == "platform=app"
    assert right >= 38


@pytest.mark.simulation
def test_where_all_groups_fell_alike_none_is_named():
    rng, after = np.random.default_rng(1), {name: level - 0.1 for name, level in GOOD.items()}
    named = sum(
        fallen_group(table(rng, 3_000, GOOD), table(rng, 600, after), comments=COMMENTS, fall=0.1)
        is not None
        for _ in range(120)
    )
    assert named <= 0.05 * 120


def test_a_new_group_is_compared_with_all_others():
    rng = np.random.default_rng(2)
    found = fallen_group(
        table(rng, 3_000, GOOD, "app"), table(rng, 600, FALLEN), comments=COMMENTS, fall=0.06
    )
    assert found is not None
    assert (found.name, found.value_before) == ("platform=app", None)
    assert found.sentence().startswith("platform=app (too few labels before): accuracy 6")


def test_a_group_that_explains_little_of_the_fall_is_not_named():
    rng = np.random.default_rng(3)
    one, other = table(rng, 3_000, GOOD), table(rng, 600, FALLEN)
    assert fallen_group(one, other, comments=COMMENTS, fall=0.06) is not None
    assert fallen_group(one, other, comments=COMMENTS, fall=0.4) is None


def test_estimates_without_a_difference_are_left_out():
    rng = np.random.default_rng(4)
    after = table(rng, 600, FALLEN)
    for blank in (
        after.assign(status="insufficient"),
        after.assign(metric="brier"),
        after.assign(difference_low=np.nan),
        after.iloc[:0],
    ):
        assert fallen_group(table(rng, 3_000, GOOD), blank, comments=COMMENTS, fall=0.06) is None


@pytest.mark.parametrize(("errors", "named"), [(2.1, True), (1.9, False)])
def test_a_group_is_named_from_two_standard_errors_on(errors, named):
    """The interval of its difference is 1.96 standard errors to either side."""
    fallen = {
        "attribute": "platform", "group": "app", "metric": "accuracy", "value": 0.6, "low": 0.5,
        "high": 0.7, "difference": -0.1 * errors, "difference_low": -0.1 * (errors + 1.96),
        "difference_high": -0.1 * (errors - 1.96), "n": 100, "comments": 2_000, "status": "ok",
    }  # fmt: skip
    after = pd.DataFrame([fallen])
    found = fallen_group(after.iloc[:0], after, comments=4_000, fall=0.1)
    assert (found is not None) == named

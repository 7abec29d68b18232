"""Data validation does not warn of normal days."""

from datetime import date, timedelta

import numpy as np
import pytest

from modwatch.data.validation.comments import validate_comments
from modwatch.data.validation.rows import valid_rows
from modwatch.data.validation.scores import validate_scores
from modwatch_lab.community import Community

FIRST = date(2026, 1, 5)


def scores_of(batch, scores, rng, day):
    """Return scores of the comments, as of a model that knows their labels well."""
    toxic = batch["label"].to_numpy() == 1
    prob = np.where(toxic, rng.beta(5, 2, batch.num_rows), rng.beta(0.5, 6, batch.num_rows))
    return scores(batch["comment_id"].to_pylist(), prob, dt=day)


@pytest.mark.simulation
def test_normal_days_of_a_community_pass_without_a_warning(scores):
    rng, community = np.random.default_rng(0), Community(seed=8, comments_per_day=600)
    trailing, failed, compared = [], [], 0
    for day in (FIRST + timedelta(days=number) for number in range(10)):
        landed = list(community.read(day))
        comments = validate_comments(lambda landed=landed, **_: landed, day=day, trailing=trailing)
        good = list(valid_rows(landed, comments.invalid))
        validated = validate_scores(
            [scores_of(batch, scores, rng, day) for batch in good],
            day=day,
            comment_ids=[batch["comment_id"] for batch in good],
            trailing=trailing,
        )
        rules = [*comments.result.results, *validated.result.results]
        failed += [(day, rule.name) for rule in rules if rule.level == "day" and not rule.passed]
        compared += {"score_shift", "language_shift"} <= {
            rule.name for rule in rules if rule.value is not None
        }
        trailing = [*trailing, comments.profile.with_scores_of(validated.profile)][-14:]
    assert failed == []
    assert compared == 7

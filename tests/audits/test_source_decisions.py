"""Audits of decisions that the source brought: no threshold of the score gives them."""

import json

import numpy as np
import pytest
from audit_path import STEPS, go_to
from lake_days import put_scores

from installation import MONDAY, TUESDAY
from modwatch.audits import files
from modwatch.common.errors import AuditError
from modwatch.installation.resources import open_resources
from modwatch.statistics.audit.plan import AuditPlan

SIZE = 400
SCORES = np.arange(SIZE, dtype=np.float32) / SIZE + 0.001

#: Every fifth comment is decided against its score.
FLAGGED = (SCORES > 0.5) ^ (np.arange(SIZE) % 5 == 0)


@pytest.fixture
def own(small_home):
    """The small lake, with decisions of the source."""
    with open_resources(small_home.settings) as resources:
        for day in (MONDAY, TUESDAY):
            put_scores(resources.lake, day, SCORES, flagged=FLAGGED)
        yield resources


def test_an_audit_from_plan_to_report(own):
    """The labels of `label_everything` are known of all comments, and so are both rates."""
    go_to(own, "publish")
    audit = own.audit("small")
    assert audit.verify() == []
    plan = audit.plan
    assert AuditPlan.from_json(plan.to_json()) == plan
    assert plan.threshold is None
    assert [day.flagged for day in plan.population] == [int(FLAGGED.sum())] * 2
    drawn = files.read_sample(audit.folder[files.sample_file(1)])
    sides = [plan.strata[comment.stratum].side == "flagged" for comment in drawn]
    assert sides == [bool(FLAGGED[int(comment.comment_id[1:])]) for comment in drawn]
    against = [flagged != (item.score > 0.5) for flagged, item in zip(sides, drawn, strict=True)]
    assert 0 < sum(against) < len(drawn)
    report = audit.folder[files.REPORT].decode()
    assert "none: comments are flagged as the source decided, whatever the score" in report

    number = np.arange(SIZE)
    toxic = (number > 150) & (number % 3 > 0)
    truth = {"precision": toxic[FLAGGED].mean(), "recall": FLAGGED[toxic].mean()}
    result = json.loads(audit.folder[files.RESULT])
    figures = {figure["metric"]: figure for figure in result["figures"]}
    for metric, value in truth.items():
        assert figures[metric]["low"] <= value <= figures[metric]["high"]
    by_score = (SCORES > 0.5)[toxic].mean()
    assert not figures["recall"]["low"] <= by_score <= figures["recall"]["high"]


def test_decisions_swapped_since_planning_are_refused(own):
    """Two decisions swap within one stratum of either side: every count stays the same."""
    for name in ("plan", "approve"):
        STEPS[name](own)
    plan = own.audit("small").plan
    edge = {side: plan.edges(side).edges for side in ("flagged", "unflagged")}
    one = next(i for i in range(SIZE - 1) if FLAGGED[i] and not FLAGGED[i + 1] and not _between(
        SCORES[i], SCORES[i + 1], (*edge["flagged"], *edge["unflagged"])))  # fmt: skip
    swapped = FLAGGED.copy()
    swapped[[one, one + 1]] = swapped[[one + 1, one]]
    put_scores(own.lake, MONDAY, SCORES, flagged=swapped)
    with pytest.raises(AuditError, match=f"scores or decisions of {MONDAY} changed since planning"):
        own.audit("small").draw()
    problems = own.audit("small").verify()
    assert any("ids, scores or decisions differ from the plan" in problem for problem in problems)


def _between(lower: float, upper: float, edges: tuple[float, ...]) -> bool:
    return any(lower < edge <= upper for edge in edges)

"""An audit is held against the lake: what its files alone cannot tell is found."""

from dataclasses import replace
from typing import Any

import audit_forger
import numpy as np
import pytest
from lake_days import put_scores
from small_audits import ADAPTIVE, REQUEST, plan_audit, seal

from installation import MONDAY, TUESDAY
from modwatch.audits import files, verification
from modwatch.audits.verify import verify
from modwatch.installation.resources import Resources
from modwatch.statistics.audit.plan import AuditPlan


def forge(resources: Resources, **changes: Any) -> AuditPlan:
    """Freeze another plan than the scores give, and draw by it; return it."""
    honest = plan_audit(resources, replace(REQUEST, audit="honest"), actor="eva")
    forged = replace(honest, audit="forged", **changes)
    content = {files.PLAN: forged.to_json().encode()}
    resources.audit_store.record("forged", "planned", actor="eva", content=content)
    resources.audit("forged").approve(actor="eve")
    resources.audit("forged").draw()
    return forged


def test_another_plan_than_the_scores_give_is_named(small):
    """Of days and strata; `test_consistency` has every difference."""
    honest = plan_audit(small, replace(REQUEST, audit="honest"), actor="eva")
    *others, last = honest.strata
    population = tuple(replace(day, model_version="9", digest="00") for day in honest.population)
    forge(small, population=population, strata=(*others, replace(last, score=last.score / 2)))
    assert verify(small.audit_store.read("forged")) == []
    *of_days, of_stratum = small.audit("forged").verify()
    assert of_days == [
        sentence
        for day in (MONDAY, TUESDAY)
        for sentence in (
            f"{day}: the model is 3, but 9 in the plan",
            f"{day}: ids, scores or decisions differ from the plan",
        )
    ]
    assert of_stratum.startswith(f"stratum {len(others)}: the mean score is ")
    assert small.audit("honest").verify() == []


def test_both_stages_are_held_against_the_lake(small):
    """Their samples are drawn anew, and their numbers of comments counted."""
    seal(small, ADAPTIVE)
    small.audit("small").draw()
    assert small.audit("small").verify() == []
    folder = small.audit_store.read("small")
    for stage in (1, 2):
        assert verification.redrawn(small.lake, folder, stage) == folder[files.sample_file(stage)]
    changes = {}
    for name in (files.population_file(1), files.population_file(2)):
        counts = files.read_population(folder[name])
        counts["language", "de", 0] -= 1
        changes[name] = files.write_population(counts)
    audit_forger.forge(small, changes)
    assert verify(small.audit_store.read("small")) == []
    assert audit_forger.problems(small, "lake") == [
        f"{name} does not match the numbers of comments" for name in changes
    ]


@pytest.mark.parametrize(
    ("scores", "words"),
    [
        (lambda prob: prob[:-1], "has 400 comments and 399 scores"),
        (lambda prob: prob - np.float32(0.002), "the number of flagged comments is 199, but"),
        (lambda prob: np.nextafter(prob, np.float32(1)), "ids, scores or decisions differ"),
    ],
)
def test_scores_that_changed_after_the_draw_are_reported_in_words(after, scores, words):
    small = after("draw")
    prob = np.arange(400, dtype=np.float32) / 400 + np.float32(0.001)
    assert small.audit("small").verify() == []
    put_scores(small.lake, MONDAY, np.maximum(scores(prob), 0))
    problems = small.audit("small").verify()
    assert str(MONDAY) in problems[0]
    assert any(words in problem for problem in problems)

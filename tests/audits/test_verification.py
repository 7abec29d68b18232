"""An audit is held against the lake: what its files alone cannot tell is found."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from lake_days import put_scores
from small_audits import ADAPTIVE, REQUEST, begin, plan_audit, seal

from installation import MONDAY, TUESDAY
from modwatch.audits import evidence, files, verification
from modwatch.audits.verify import verify
from modwatch.installation.resources import Resources
from modwatch.statistics.audit.plan import AuditPlan, PlannedStratum, PopulationDay


def forge(resources: Resources, **changes: Any) -> AuditPlan:
    """Freeze another plan than the scores give, and draw by it; return it."""
    honest = plan_audit(resources, replace(REQUEST, audit="honest"), actor="eva")
    forged = replace(honest, audit="forged", **changes)
    content = {files.PLAN: forged.to_json().encode()}
    resources.audit_store.record("forged", "planned", actor="eva", content=content)
    resources.audit("forged").approve(actor="eve")
    resources.audit("forged").draw()
    return forged


def of_days(
    resources: Resources, change: Callable[[PopulationDay], PopulationDay]
) -> dict[str, Any]:
    honest = plan_audit(resources, replace(REQUEST, audit="honest"), actor="eva")
    return {"population": tuple(change(day) for day in honest.population)}


def test_a_digest_that_is_not_that_of_the_day_is_named(small: Resources) -> None:
    forge(small, **of_days(small, lambda day: replace(day, digest="00")))
    assert verify(small.audit_store.read("forged")) == []
    assert small.audit("forged").verify() == [
        f"{day}: ids, scores or decisions differ from the plan" for day in (MONDAY, TUESDAY)
    ]
    assert small.audit("honest").verify() == []


def test_another_model_than_that_of_the_scores_is_named(small: Resources) -> None:
    forge(small, **of_days(small, lambda day: replace(day, model_version="9")))
    assert small.audit("forged").verify() == [
        f"{day}: the model is 3, but 9 in the plan" for day in (MONDAY, TUESDAY)
    ]


def test_a_mean_score_that_is_not_that_of_the_stratum_is_named(small: Resources) -> None:
    honest = plan_audit(small, replace(REQUEST, audit="honest"), actor="eva")

    def halved(item: PlannedStratum) -> PlannedStratum:
        return replace(item, score=item.score / 2) if item == honest.strata[-1] else item

    forge(small, strata=tuple(map(halved, honest.strata)))
    [problem] = small.audit("forged").verify()
    assert problem.startswith(f"stratum {len(honest.strata) - 1}: the mean score is ")


def test_numbers_of_comments_are_held_against_those_in_the_lake(small: Resources) -> None:
    seal(small, ADAPTIVE)
    small.audit("small").draw()
    assert small.audit("small").verify() == []
    changes = {}
    for name in (files.population_file(1), files.population_file(2)):
        counts = files.read_population(small.audit_store.read("small")[name])
        counts["language", "de", 0] -= 1
        changes[name] = files.write_population(counts)
    reseal(small, changes)
    assert verify(small.audit_store.read("small")) == []
    lake = next(level for level in small.audit("small").levels() if level.name == "lake")
    assert lake.problems == [f"{name} does not match the numbers of comments" for name in changes]


def reseal(resources: Resources, changes: dict[str, bytes]) -> None:
    """Write files as a forger does who makes the chain anew."""
    home = resources.settings.home / "lake" / "_audits" / "small"
    chain: list[evidence.Event] = []
    for event in resources.audit_store.chain("small"):
        digests = {
            name: evidence.file_digest(changes[name]) if name in changes else digest
            for name, digest in event.files.items()
        }
        previous = chain[-1].digest if chain else evidence.START
        chain.append(replace(event, files=digests, previous=previous))
    for name, content in (changes | {files.CHAIN: evidence.written(chain).encode()}).items():
        (home / name).write_bytes(content)


@pytest.mark.parametrize(
    ("scores", "words"),
    [
        (lambda prob: prob[:-1], "has 400 comments and 399 scores"),
        (lambda prob: prob - np.float32(0.002), "the number of flagged comments is 199, but"),
        (lambda prob: np.nextafter(prob, np.float32(1)), "ids, scores or decisions differ"),
    ],
)
def test_scores_that_changed_after_the_draw_are_reported_in_words(
    small: Resources, scores: Callable[[np.ndarray], np.ndarray], words: str
) -> None:
    begin(small)
    prob = np.arange(400, dtype=np.float32) / 400 + np.float32(0.001)
    assert small.audit("small").verify() == []
    put_scores(small.lake, MONDAY, np.maximum(scores(prob), 0))
    problems = small.audit("small").verify()
    assert str(MONDAY) in problems[0]
    assert any(words in problem for problem in problems)


def test_both_stages_are_drawn_anew(small: Resources) -> None:
    seal(small, ADAPTIVE)
    small.audit("small").draw()
    folder = small.audit_store.read("small")
    for stage in (1, 2):
        assert verification.redrawn(small.lake, folder, stage) == folder[files.sample_file(stage)]

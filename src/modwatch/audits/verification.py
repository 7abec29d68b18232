"""What can be told of an audit with the lake and the log of decisions beside its files."""

from collections.abc import Iterator, Mapping

from modwatch.audit import files
from modwatch.audit.draw import Drawn, draw
from modwatch.audit.plan import AuditPlan
from modwatch.audit.replanning import plan_problems
from modwatch.audit.verify import planned_sizes, verify
from modwatch.audits.auditing import store
from modwatch.audits.population import survey
from modwatch.audits.sources import changed_labels, population
from modwatch.errors import ModwatchError
from modwatch.resources import Resources


def check(at: Resources, audit: str, *, with_scores: bool = True) -> list[str]:
    """Return what is wrong with an audit: its files, its plan, its draw, and its labels since.

    `with_scores` surveys the period anew, as for the plan, draws the samples anew from the lake,
    and compares the sealed labels with the log of decisions: only when the files are sound.
    """
    folder = store(at).read(audit)
    problems = verify(folder)
    if problems or not with_scores:
        return problems
    try:
        for problem in _of_scores(at, folder):
            problems.append(problem)  # what is found before a refusal is kept
    except ModwatchError as exc:
        problems = problems or [str(exc)]  # what the plan differs in is why it cannot be drawn
    words = changed_labels(at, audit, folder)
    return [*problems, words] if words else problems


def redrawn(at: Resources, folder: Mapping[str, bytes], stage: int = 1) -> bytes:
    """Return the file of a stage's sample, drawn anew from the scores by the plan in `folder`."""
    return files.write_sample(_drawn(at, folder, stage).comments)


def _of_scores(at: Resources, folder: Mapping[str, bytes]) -> Iterator[str]:
    """Yield what is not as the scores in the lake make it."""
    plan = _plan(folder)
    yield from plan_problems(plan, *survey(at.lake, [day.day for day in plan.population]))
    for stage in (1, 2):
        if files.sample_file(stage) not in folder:
            continue
        drawn = _drawn(at, folder, stage)
        if files.write_sample(drawn.comments) != folder[files.sample_file(stage)]:
            yield f"{files.sample_file(stage)} is not what the plan draws from the scores"
        if files.write_population(drawn) != folder[files.population_file(stage)]:
            yield f"{files.population_file(stage)} does not hold the numbers of comments there are"


def _drawn(at: Resources, folder: Mapping[str, bytes], stage: int) -> Drawn:
    plan = _plan(folder)
    return draw(plan, population(at, plan), planned_sizes(plan, folder, stage))


def _plan(folder: Mapping[str, bytes]) -> AuditPlan:
    return AuditPlan.from_json(folder[files.PLAN].decode())

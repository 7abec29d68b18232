"""What the lake and the decision log show about an audit, beside its files."""

from collections.abc import Iterator, Mapping

from sqlalchemy import Engine

from modwatch.audit import files
from modwatch.audit.consistency import plan_problems
from modwatch.audit.draw import Drawn, draw
from modwatch.audit.plan import AuditPlan
from modwatch.audit.verify import planned_sizes, verify
from modwatch.audits import sources
from modwatch.errors import ModwatchError
from modwatch.lake.delta import Lake


def problems_of(
    audit: str,
    folder: Mapping[str, bytes],
    lake: Lake,
    database: Engine,
    *,
    with_scores: bool = True,
) -> list[str]:
    """Return what is wrong with an audit: its files, its plan, its draw, and its labels since.

    `with_scores` surveys the period again as for the plan, draws the samples again from the lake,
    and compares the sealed labels with the decision log; only when the files are valid.
    """
    problems = verify(folder)
    if problems or not with_scores:
        return problems
    try:
        for problem in _problems_with_scores(lake, folder):
            problems.append(problem)  # keep what was found before an error
    except ModwatchError as exc:
        problems = problems or [str(exc)]  # a difference from the plan explains the failed draw
    changed = sources.changed_labels(database, audit, folder)
    return [*problems, changed] if changed else problems


def redrawn(lake: Lake, folder: Mapping[str, bytes], stage: int = 1) -> bytes:
    """Return the file of a stage's sample, drawn again from the scores by the plan in `folder`."""
    return files.write_sample(_drawn(lake, folder, stage).comments)


def _problems_with_scores(lake: Lake, folder: Mapping[str, bytes]) -> Iterator[str]:
    plan = _plan(folder)
    yield from plan_problems(plan, *sources.survey(lake, [day.day for day in plan.population]))
    for stage in (1, 2):
        if files.sample_file(stage) not in folder:
            continue
        drawn = _drawn(lake, folder, stage)
        if files.write_sample(drawn.comments) != folder[files.sample_file(stage)]:
            yield f"{files.sample_file(stage)} is not what the plan draws from the scores"
        if files.write_population(drawn.population) != folder[files.population_file(stage)]:
            yield f"{files.population_file(stage)} does not match the numbers of comments"


def _drawn(lake: Lake, folder: Mapping[str, bytes], stage: int) -> Drawn:
    plan = _plan(folder)
    return draw(plan, sources.population(lake, plan), planned_sizes(plan, folder, stage))


def _plan(folder: Mapping[str, bytes]) -> AuditPlan:
    return AuditPlan.from_json(folder[files.PLAN].decode())

"""Checks a finished audit, or what there is of an unfinished one, from its files alone."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from modwatch.audit import evidence, files
from modwatch.audit.draw import DrawnComment, Scored, draw, keys_of
from modwatch.audit.labels import AuditLabel, final_labels
from modwatch.audit.plan import AuditPlan
from modwatch.audit.results import Evidence, computed, second_stage, to_json
from modwatch.errors import AuditError


def verify(folder: Mapping[str, bytes]) -> list[str]:
    """Return what is wrong with the files of an audit, in words; empty when all is well.

    Chain and hashes, the plan's form, that each drawn comment has the number and the stratum that
    the plan gives it, that there are as many of each stratum as planned, that labels are of drawn
    comments and of one person each, and that the result follows from them to the last digit.
    Whether *other* comments should have been drawn only a `redraw` from the scores can tell.
    """
    problems: list[str] = []
    try:
        chain = evidence.read(_text(folder, files.CHAIN))
        problems += evidence.file_problems(chain, folder)
        if problems or not chain:
            return problems or ["the chain is empty"]
        plan = AuditPlan.from_json(_text(folder, files.PLAN))
        if plan.audit != chain[0].audit:
            return ["the plan is of another audit than the chain"]
        for problem in _contents(plan, chain, folder):
            problems.append(problem)  # what is found before a refusal is kept
    except AuditError as exc:
        problems.append(str(exc))
    return problems


def redraw(plan: AuditPlan, population: Iterable[Scored], sizes: Sequence[int]) -> bytes:
    """Return the file of the sample as the plan draws it from the scores."""
    return files.write_sample(draw(plan, population, sizes).comments)


def read_evidence(folder: Mapping[str, bytes]) -> Evidence:
    """Return what an audit was made of; AuditError when a file is missing or cannot be read."""
    plan = AuditPlan.from_json(_text(folder, files.PLAN))
    stages = _stages(folder)
    return Evidence(
        plan=plan,
        samples=[files.read_sample(folder[files.sample_file(stage)]) for stage in stages],
        population=files.read_population(folder[files.population_file(stages[-1])]),
        labels=files.read_labels(folder[files.labels_file(stages[-1])]),
    )


def planned_sizes(plan: AuditPlan, folder: Mapping[str, bytes], stage: int) -> list[int]:
    """Return how many comments of each stratum (H,) are to be drawn up to a stage."""
    if stage == 1:
        return [stratum.labels for stratum in plan.strata]
    drawn = files.read_sample(folder[files.sample_file(1)])
    return second_stage(plan, drawn, files.read_labels(folder[files.labels_file(1)]))


def _contents(
    plan: AuditPlan, chain: Sequence[evidence.Event], folder: Mapping[str, bytes]
) -> Iterable[str]:
    """Yield what does not follow from the plan."""
    actions = [event.action for event in chain]
    for stage in range(1, actions.count("drawn") + 1):
        drawn = files.read_sample(folder[files.sample_file(stage)])
        yield from _sample(plan, drawn, planned_sizes(plan, folder, stage), stage)
        if actions.count("labelled") >= stage:
            labels = files.read_labels(folder[files.labels_file(stage)])
            final_labels(drawn, labels)  # refuses what cannot be
            yield from _kept(files.labels_file(stage), labels, folder, stage)
    if "estimated" in actions:
        redone = to_json(computed(read_evidence(folder)))
        if redone != folder[files.RESULT]:
            yield f"{files.RESULT} does not follow from the sample and the labels"


def _kept(
    name: str, labels: Sequence[AuditLabel], folder: Mapping[str, bytes], stage: int
) -> Iterable[str]:
    """Yield whether labels of the first stage were changed in the second."""
    if stage > 1:
        earlier = set(files.read_labels(folder[files.labels_file(1)]))
        if not earlier <= set(labels):
            yield f"{name} does not hold all labels of the stage before"


def _sample(
    plan: AuditPlan, drawn: Sequence[DrawnComment], sizes: Sequence[int], stage: int
) -> Iterable[str]:
    name = files.sample_file(stage)
    ids = [(each.day, each.comment_id) for each in drawn]
    if len(set(ids)) < len(ids):
        yield f"{name} holds a comment twice"
    if [each.key for each in drawn] != sorted(each.key for each in drawn):
        yield f"{name} is not in the order of its keys"
    counts = np.bincount([each.stratum for each in drawn], minlength=len(plan.strata)).tolist()
    if counts != list(sizes):
        yield f"{name} does not hold as many comments of each stratum as the plan says"
    for day in sorted({each.day for each in drawn}):
        mine = [each for each in drawn if each.day == day]
        keys = keys_of(plan, day, [each.comment_id for each in mine]).tolist()
        if keys != [each.key for each in mine]:
            yield f"{name}: a comment of {day} does not have the number that the plan gives it"
    for each in drawn:
        if each.stratum >= len(plan.strata) or not _within(plan, each):
            yield f"{name}: the score of a comment of {each.day} is outside its stratum"
            return


def _within(plan: AuditPlan, each: DrawnComment) -> bool:
    stratum = plan.strata[each.stratum]
    lower = -np.inf if stratum.lower is None else stratum.lower
    upper = np.inf if stratum.upper is None else stratum.upper
    return bool(lower <= each.score < upper)


def _stages(folder: Mapping[str, bytes]) -> list[int]:
    stages = [stage for stage in (1, 2) if files.sample_file(stage) in folder]
    if not stages:
        raise AuditError("there is no sample; draw it first")
    return stages


def _text(folder: Mapping[str, bytes], name: str) -> str:
    if name not in folder:
        raise AuditError(f"{name} is missing")
    try:
        return folder[name].decode()
    except UnicodeDecodeError:
        raise AuditError(f"{name} is no text in UTF-8") from None

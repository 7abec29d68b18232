"""Checks a finished audit, or what there is of an unfinished one, from its files alone."""

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from modwatch.audit import evidence, files
from modwatch.audit.draw import DrawnComment, Scored, draw
from modwatch.audit.labels import AuditLabel, Key, final_labels, key_of
from modwatch.audit.plan import AuditPlan
from modwatch.audit.plausibility import label_problems, population_problems, sample_problems
from modwatch.audit.results import Evidence, computed, to_json
from modwatch.audit.tallies import second_stage
from modwatch.errors import AuditError, ModwatchError

#: Numbers of a result may differ by so much, absolutely or of their size: processors round
#: otherwise, and their ends are found by bisection.
_ROUNDING = 1e-6

#: Files that are made when the service is named.
_OPTIONAL = (files.AUTOMATED_MEANS_FILE, files.QUALITATIVE_FILE)


def verify(folder: Mapping[str, bytes]) -> list[str]:
    """Return what is wrong with the files of an audit, in words; empty when all is well.

    The chain: order, hashes, times that do not run backwards; each step sealed its files, each
    once, and nothing else lies there. The plan: its form, its strata, its stages. Each sample: as
    many comments of each stratum as planned, each with the number that the plan gives it and a
    score of its stratum, numbers as small as the smallest of so many are, and the second stage
    going on where the first ended. Numbers of comments: that they can be, and could show such a
    sample. Labels: of drawn comments, one a person, at a time between draw and sealing, and those
    of the first stage kept. The result: that it follows from all this.

    Who can write all files anew can still, as far as files alone tell:

    - put the next ones in the place of a few drawn comments, be it of all that were missed where
      they are rare; change scores within the stratum; change traits and numbers of comments by as
      little as chance does, or the numbers of the plan before it draws: a `redraw` from the scores
      finds it. `Drawn.population` of the same draw is to be compared as well; digests of days and
      mean scores in the plan `replanning.plan_problems` holds against the scores;
    - write another report: what it says is to be compared with the result;
    - change, leave out or invent labels, and who gave them when: only the log of decisions, whose
      hashes they hold, tells; of labels left out the result says how many comments have none;
    - plan and draw again with other seeds until a result pleases, or cut steps off the end of the
      chain: only a witness who was given the hash of the plan before the draw, and of the last
      event after it, tells; so does a seed from a public source that came after the plan's strata.
    """
    problems: list[str] = []
    try:
        chain = evidence.read(_text(folder, files.CHAIN))
        if not chain:
            return ["the chain is empty"]
        problems += evidence.file_problems(chain, folder)
        problems += _sealing(chain, folder)
        if problems:
            return problems
        plan = AuditPlan.from_json(_text(folder, files.PLAN))
        if plan.audit != chain[0].audit:
            return ["the plan is of another audit than the chain"]
        for problem in _contents(plan, chain, folder):
            problems.append(problem)  # what is found before a refusal is kept
        if not problems and any(event.action == "estimated" for event in chain):
            problems += _result(folder)
    except ModwatchError as exc:
        problems.append(str(exc))
    return problems


def redraw(plan: AuditPlan, population: Iterable[Scored], sizes: Sequence[int]) -> bytes:
    """Return the file of the sample as the plan draws it from the scores."""
    return files.write_sample(draw(plan, population, sizes).comments)


def read_evidence(folder: Mapping[str, bytes]) -> Evidence:
    """Return what an audit was made of.

    An audit of two stages that somebody stopped after the first is made of that one alone. Its
    estimate is free of bias if they did not look at the labels before they stopped it.

    Raises:
        AuditError: a stage is not labelled and nobody stopped the audit, or a file is missing or
            cannot be read.
    """
    plan = AuditPlan.from_json(_text(folder, files.PLAN))
    chain = evidence.read(_text(folder, files.CHAIN))
    done = sum(event.action == "labelled" for event in chain)
    if not _enough(plan, chain):
        raise AuditError(
            f"audit {plan.audit!r}: {done} of {plan.stages} stages are labelled, and nobody "
            "stopped the labelling; draw the next stage, and stop it if it is not wanted"
        )
    return Evidence(
        plan=plan,
        samples=[_drawn(folder, stage) for stage in range(1, done + 1)],
        population=_population(folder, done),
        labels=_labels(folder, done),
    )


def planned_sizes(plan: AuditPlan, folder: Mapping[str, bytes], stage: int) -> list[int]:
    """Return how many comments of each stratum (H,) are to be drawn up to a stage.

    Raises:
        AuditError: the first stage is not labelled yet, or its files cannot be read.
    """
    if stage == 1:
        return [stratum.labels for stratum in plan.strata]
    return second_stage(plan, _drawn(folder, 1), _labels(folder, 1))


def _enough(plan: AuditPlan, chain: Sequence[evidence.Event]) -> bool:
    """Return whether all stages are labelled, or as many as somebody waited for."""
    done = sum(event.action == "labelled" for event in chain)
    return done >= plan.stages or evidence.stopped(chain)


def _step_files(action: str, stage: int) -> tuple[str, ...]:
    """Return the files that a step may make when it is taken for the `stage`th time."""
    made = {
        "planned": (files.PLAN,),
        "drawn": (files.sample_file(stage), files.population_file(stage)),
        "labelled": (files.labels_file(stage),),
        "estimated": (files.RESULT,),
        "published": (files.REPORT, *_OPTIONAL),
    }
    return made.get(action, ())


def _sealing(chain: Sequence[evidence.Event], folder: Mapping[str, bytes]) -> Iterator[str]:
    """Yield which files are not sealed by their step, and which by none."""
    done = Counter[str]()
    for event in chain:
        done[event.action] += 1
        for name in _step_files(event.action, done[event.action]):
            if name not in event.files and name not in _OPTIONAL:
                yield f"{name} was not sealed when the audit was {event.action}"
    begun = {
        name
        for action in evidence.FOLLOWS[chain[-1].action]
        for name in _step_files(action, done[action] + 1)
    }
    for name in sorted(folder.keys() - evidence.sealed_files(chain).keys() - {files.CHAIN}):
        if name in begun:
            yield f"{name} is there and not sealed: its step was begun, not finished; take it again"
        else:
            yield f"{name} is there, and no step has sealed it"


def _contents(
    plan: AuditPlan, chain: Sequence[evidence.Event], folder: Mapping[str, bytes]
) -> Iterator[str]:
    """Yield what does not follow from the plan."""
    draws = [event for event in chain if event.action == "drawn"]
    seals = [event for event in chain if event.action == "labelled"]
    if len(draws) > plan.stages:
        yield f"the audit was drawn {len(draws)} times; {plan.stages} were planned"
        return
    if not _enough(plan, chain) and any(event.action == "estimated" for event in chain):
        yield f"the audit was estimated after {len(seals)} of {plan.stages} stages"
    drawn_at: dict[Key, str] = {}
    people = set[str]()
    earlier: tuple[DrawnComment, ...] = ()
    for stage, event in enumerate(draws, 1):
        drawn = _drawn(folder, stage)
        yield from _sample(plan, folder, stage, earlier)
        for each in drawn:
            drawn_at.setdefault(key_of(each), event.at)
        if stage <= len(seals):
            labels = _labels(folder, stage)
            final_labels(drawn, labels)  # refuses what cannot be
            before = _labels(folder, stage - 1) if stage > 1 else []
            for problem in label_problems(labels, before, drawn_at, seals[stage - 1].at):
                yield f"{files.labels_file(stage)} {problem}"
            people |= {label.labeller for label in labels}
        earlier = drawn
    for event in chain:
        if event.action == "signed_off" and event.actor in people:
            yield "whoever signed the result had labelled for it"


def _sample(
    plan: AuditPlan, folder: Mapping[str, bytes], stage: int, earlier: Sequence[DrawnComment]
) -> Iterator[str]:
    """Yield what is wrong with the sample of a stage, and with what it stands for."""
    drawn, population = _drawn(folder, stage), _population(folder, stage)
    for problem in sample_problems(plan, drawn, planned_sizes(plan, folder, stage), earlier):
        yield f"{files.sample_file(stage)} {problem}"
    for problem in population_problems(plan, drawn, population):
        yield f"{files.population_file(stage)} {problem}"
    if stage > 1 and population != _population(folder, stage - 1):
        yield f"{files.population_file(stage)} differs from that of the stage before"


def _result(folder: Mapping[str, bytes]) -> Iterator[str]:
    """Yield whether the result is another than the rest gives."""
    told, redone = folder[files.RESULT], to_json(computed(read_evidence(folder)))
    if told != redone and not _rounded(told, redone):
        yield f"{files.RESULT} does not follow from the sample and the labels"


def _rounded(told: bytes, redone: bytes) -> bool:
    """Return whether a result differs from another by the last digits of its numbers alone."""
    try:
        found = json.loads(told)
        return to_json(found) == told and _close(found, json.loads(redone))
    except (ValueError, RecursionError):
        return False


def _close(one: Any, other: Any) -> bool:
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_close(one[name], other[name]) for name in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_close, one, other))
    if isinstance(one, float):
        return math.isclose(one, other, rel_tol=_ROUNDING, abs_tol=_ROUNDING**2)
    return bool(one == other)


def _drawn(folder: Mapping[str, bytes], stage: int) -> tuple[DrawnComment, ...]:
    return files.read_sample(_content(folder, files.sample_file(stage)))


def _population(folder: Mapping[str, bytes], stage: int) -> dict[tuple[str, str, int], int]:
    return files.read_population(_content(folder, files.population_file(stage)))


def _labels(folder: Mapping[str, bytes], stage: int) -> list[AuditLabel]:
    return files.read_labels(_content(folder, files.labels_file(stage)))


def _text(folder: Mapping[str, bytes], name: str) -> str:
    try:
        return _content(folder, name).decode()
    except UnicodeDecodeError:
        raise AuditError(f"{name} is no text in UTF-8") from None


def _content(folder: Mapping[str, bytes], name: str) -> bytes:
    if name not in folder:
        raise AuditError(f"{name} is missing")
    return folder[name]

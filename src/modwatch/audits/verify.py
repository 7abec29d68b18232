"""Verifies an audit, finished or not, from its files alone."""

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from modwatch.audits import identities
from modwatch.audits.consistency import (
    confirmation_problems,
    label_problems,
    outcome_problems,
    population_problems,
    sample_problems,
)
from modwatch.audits.evidence import (
    FOLLOWS,
    Event,
    all_of,
    file_problems,
    first_of,
    sealed_files,
    stopped,
    written_notes,
)
from modwatch.audits.files import (
    AUTOMATED_MEANS_FILE,
    CHAIN,
    NOTES,
    PLAN,
    PUBLICATION,
    QUALITATIVE_FILE,
    REPORT,
    RESULT,
    labels_file,
    outcomes_file,
    population_file,
    read_labels,
    read_population,
    read_sample,
    sample_file,
    witnessed_steps,
)
from modwatch.audits.folder import AuditFolder
from modwatch.audits.seeds import LOG, NUMBER, seed_of
from modwatch.common.errors import AuditError, ModwatchError
from modwatch.statistics.audit.draw import DrawnComment
from modwatch.statistics.audit.labels import (
    AuditLabel,
    Key,
    Outcome,
    final_labels,
    in_order,
    key_of,
    labels_demanded,
)
from modwatch.statistics.audit.plan import AuditPlan
from modwatch.statistics.audit.results import Evidence, computed, to_json
from modwatch.statistics.audit.stages import second_stage

#: Tolerated difference of the numbers of a result, absolute or relative: processors round
#: differently, and ends of intervals come from bisection.
_ROUNDING = 1e-6

#: The same where true labels were drawn from a posterior, whose mode an optimiser finds.
_DRAWS_ROUNDING = 1e-3

#: Files that are only published for a named service.
_OPTIONAL = (AUTOMATED_MEANS_FILE, QUALITATIVE_FILE)


def verify(folder: Mapping[str, bytes]) -> list[str]:
    """Return the problems of the files of an audit; empty when there are none.

    Verifies the chain: order, hashes, times that do not go backwards; each step sealed its files,
    each once, and there are no others. The plan: format, strata, stages. Each sample: the planned
    number of comments of each stratum, each with the random number that the plan gives it and a
    score of its stratum, random numbers as small as the smallest of so many, and the second stage
    continuing the first. Numbers of comments: possible, and likely given the sample. Labels: of
    drawn comments, one per person, given between draw and sealing, and those of the first stage
    kept; of every drawn comment, what became of it, and as many labels as that says; further labels
    of the comments whose confirmation the plan demands, and of no others. The people: whether those
    who planned, approved, labelled and signed were allowed to. The result: that it follows
    from all of this; `publication.publication_problems` goes on to what was published.

    Files alone do not detect an attacker who rewrites all of them and:

    - replaces a few drawn comments with the next ones, which may be all missed positives where they
      are rare; changes scores within the stratum; changes traits and numbers of comments within
      chance, or the numbers of the plan before the draw. `draw.draw` from the scores detects it.
      Compare `Drawn.population` of the same draw too; `consistency.plan_problems` compares digests
      of days and mean scores of the plan with the scores;
    - replaces texts: only the lake shows it, whose texts the plan has a digest of;
    - changes, omits or invents labels, their labellers or times, or what became of a comment: only
      the decision log shows it, whose hashes the labels contain; `remarks` counts the comments
      without a label;
    - tries random numbers in the approval until a result pleases: only the database shows it;
    - changes names and times, or cuts steps off the end of the chain: signatures and timestamps
      show the former, and the register of audits both.
    """
    problems: list[str] = []
    folder = AuditFolder(folder)
    try:
        chain = folder.chain
        if not chain:
            return ["the chain is empty"]
        problems += file_problems(chain, folder)
        if problems:
            return problems
        plan = folder.plan
        problems += _sealing(chain, folder)
        if problems:
            return problems
        if plan.audit != chain[0].audit:
            return ["the plan is of another audit than the chain"]
        for problem in _contents(plan, chain, folder):
            problems.append(problem)  # kept when a later one raises
        if not problems and any(event.action == "estimated" for event in chain):
            sealed, follows = folder[RESULT], recomputed(folder)
            if sealed != follows and not _equal_but_rounding(sealed, follows):
                problems.append(f"{RESULT} does not follow from the sample and the labels")
    except ModwatchError as exc:
        problems.append(str(exc))
    return problems


def remarks(folder: AuditFolder) -> list[str]:
    """Return what an auditor should know of valid files: what they do not show, and why.

    Raises:
        AuditError: the files are not valid; see `verify`.
    """
    plan, stage = folder.plan, folder.times("labelled")
    found = []
    if not plan.four_eyes:
        found.append(
            "the plan does not require four eyes: planner, approver and signer may be one person, "
            "and no one else answers for the audit"
        )
    approved = first_of(folder.chain, "approved")
    if approved and not all(plausible(approved.facts.get(name, "")) for name in (LOG, NUMBER)):
        found.append(
            "the approval fixes values that are not SHA-256 hashes or random numbers of anything: "
            "someone made them up, and with them the seed"
        )
    if stage:
        found += _made_up(folder.labels(stage))
        found += _without_label(folder.outcomes(stage))
        found += _without_confirmation(plan, folder.sample(stage), folder.labels(stage))
    return found


def read_evidence(folder: Mapping[str, bytes]) -> Evidence:
    """Return the evidence from which the result is computed.

    If an audit of two stages was stopped after the first, it is that one alone. The estimate is
    unbiased if the decision to stop did not depend on the labels.

    Raises:
        AuditError: a stage is not labelled and the labelling was not stopped, or a file is missing
            or cannot be read.
    """
    return _evidence(_evidence_files(folder))


def recomputed(folder: Mapping[str, bytes]) -> bytes:
    """Return the result that follows from the other files.

    A process computes it once for the same files: the intervals take a second.

    Raises:
        AuditError: see `read_evidence`.
    """
    return _recomputed(_evidence_files(folder))


@lru_cache(maxsize=8)
def _recomputed(contents: tuple[bytes, ...]) -> bytes:
    return to_json(computed(_evidence(contents)))


def _evidence_files(folder: Mapping[str, bytes]) -> tuple[bytes, ...]:
    """Return what the result follows from: plan, each sample, numbers of comments, and labels."""
    folder = AuditFolder(folder)
    plan, done = folder.plan, folder.times("labelled")
    if not _enough(plan, folder.chain):
        raise AuditError(
            f"audit {plan.audit!r}: {done} of {plan.stages} stages are labelled, and the labelling "
            "was not stopped; draw the next stage, or stop the labelling"
        )
    names = [PLAN, *map(sample_file, range(1, done + 1)), population_file(done), labels_file(done)]
    return tuple(map(folder.content, names))


def _evidence(contents: tuple[bytes, ...]) -> Evidence:
    plan, *samples, population, labels = contents
    return Evidence(
        plan=AuditPlan.from_json(plan.decode()),
        samples=[read_sample(sample) for sample in samples],
        population=read_population(population),
        labels=read_labels(labels),
    )


def planned_sizes(plan: AuditPlan, folder: Mapping[str, bytes], stage: int) -> list[int]:
    """Return the number of comments (H,) of each stratum to draw up to a stage.

    Raises:
        AuditError: the first stage is not labelled, or its files cannot be read.
    """
    if stage == 1:
        return [stratum.labels for stratum in plan.strata]
    folder = AuditFolder(folder)
    return second_stage(plan, folder.sample(1), folder.labels(1))


def _enough(plan: AuditPlan, chain: Sequence[Event]) -> bool:
    """Return whether all stages are labelled, or the labelling was stopped."""
    return len(all_of(chain, "labelled")) >= plan.stages or stopped(chain)


def _step_files(action: str, stage: int) -> tuple[str, ...]:
    """Return the files that a step may seal when it is taken for the `stage`th time."""
    by_action = {
        "planned": (PLAN,),
        "drawn": (sample_file(stage), population_file(stage)),
        "labelled": (labels_file(stage), outcomes_file(stage)),
        "estimated": (RESULT,),
        "published": (REPORT, PUBLICATION, *_OPTIONAL),
    }
    return by_action.get(action, ())


def _sealing(chain: Sequence[Event], folder: Mapping[str, bytes]) -> Iterator[str]:
    """Yield the files that their step did not seal, and those that no step sealed."""
    done = Counter[str]()
    for event in chain:
        done[event.action] += 1
        for name in _step_files(event.action, done[event.action]):
            if name not in event.files and name not in _OPTIONAL:
                yield f"{name} was not sealed when the audit was {event.action}"
    next_files = {
        name
        for action in FOLLOWS[chain[-1].action]
        for name in _step_files(action, done[action] + 1)
    }
    if folder.get(NOTES, written_notes(chain)) != written_notes(chain):
        yield f"{NOTES} has a note of no step; if a step was started and not finished, run it again"
    for name in sorted(folder.keys() - sealed_files(chain).keys() - {CHAIN, NOTES}):
        if steps := witnessed_steps(name):
            if steps > len(chain):
                yield f"{name} is of {steps} steps, and the chain has {len(chain)}: its end is cut"
        elif name in next_files:
            yield f"{name} is not sealed: its step was started and not finished; run it again"
        else:
            yield f"{name} was not sealed by any step"


def _contents(plan: AuditPlan, chain: Sequence[Event], folder: AuditFolder) -> Iterator[str]:
    """Yield contradictions to the plan."""
    draws, seals = all_of(chain, "drawn"), all_of(chain, "labelled")
    if len(draws) > plan.stages:
        yield f"the audit was drawn {len(draws)} times; {plan.stages} were planned"
        return
    if not _enough(plan, chain) and any(event.action == "estimated" for event in chain):
        yield f"the audit was estimated after {len(seals)} of {plan.stages} stages"
    drawn_at: dict[Key, str] = {}
    people = set[str]()
    earlier: tuple[DrawnComment, ...] = ()
    for stage, event in enumerate(draws, 1):
        drawn = folder.sample(stage)
        yield from _sample(plan, chain, folder, stage, earlier)
        if any(not 0 <= comment.stratum < len(plan.strata) for comment in drawn):
            return  # which the sample's problems name
        for comment in drawn:
            drawn_at.setdefault(key_of(comment), event.at)
        if stage <= len(seals):
            labels = folder.labels(stage)
            final_labels(drawn, labels)  # raises AuditError for invalid labels
            before = folder.labels(stage - 1) if stage > 1 else []
            for problem in label_problems(labels, before, drawn_at, seals[stage - 1].at):
                yield f"{labels_file(stage)} {problem}"
            over = stopped(chain[: seals[stage - 1].position])
            outcomes = folder.outcomes(stage)
            for problem in outcome_problems(outcomes, drawn, labels, stopped=over):
                yield f"{outcomes_file(stage)} {problem}"
            for problem in confirmation_problems(plan, drawn, labels, outcomes):
                yield f"{labels_file(stage)} {problem}"
            people |= {label.labeller for label in labels}
        earlier = drawn
    yield from identities.conflicts(chain, four_eyes=plan.four_eyes, labellers=people)


def _sample(
    plan: AuditPlan,
    chain: Sequence[Event],
    folder: AuditFolder,
    stage: int,
    earlier: Sequence[DrawnComment],
) -> Iterator[str]:
    """Yield the problems of the sample of a stage and its population."""
    drawn, population = folder.sample(stage), folder.population(stage)
    sizes = planned_sizes(plan, folder, stage)
    for problem in sample_problems(plan, drawn, sizes, earlier, seed=seed_of(plan, chain)):
        yield f"{sample_file(stage)} {problem}"
    for problem in population_problems(plan, drawn, population):
        yield f"{population_file(stage)} {problem}"
    if stage > 1 and population != folder.population(stage - 1):
        yield f"{population_file(stage)} differs from that of the previous stage"


def plausible(digest: str) -> bool:
    """Return whether 256 bits, in hexadecimal, can be a hash or a random number.

    Of 32 random bytes, 19 or more differ but for one case in 100 billion.

    >>> plausible(64 * "0"), plausible("0123" * 16), plausible(bytes(range(32)).hex())
    (False, False, True)
    """
    try:
        return len(digest) == 64 and len({*bytes.fromhex(digest)}) > 18
    except ValueError:
        return False


def _made_up(labels: Sequence[AuditLabel]) -> Iterator[str]:
    """Yield how many labels name a decision that cannot be one, or that of another label."""
    if number := sum(not plausible(label.decision) for label in labels):
        yield (
            f"{number} of {len(labels)} labels name decisions that are not SHA-256 hashes of "
            "anything: someone made them up, or the decision log shows otherwise"
        )
    if number := len(labels) - len({label.decision for label in labels}):
        yield f"{number} labels name the decision of another label: no two labels are one decision"


def _without_label(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Yield how many drawn comments have no label, and why."""
    number = Counter(outcome.outcome for outcome in outcomes if not outcome.labels)
    if number:
        reasons = ", ".join(f"{count} {outcome}" for outcome, count in sorted(number.items()))
        yield (
            f"{number.total()} of {len(outcomes)} drawn comments have no label ({reasons}): the "
            "decision log shows whether that is so"
        )


def _without_confirmation(
    plan: AuditPlan, drawn: Sequence[DrawnComment], labels: Sequence[AuditLabel]
) -> Iterator[str]:
    """Yield how many labels the plan wanted confirmed and are not, and how many were corrected."""
    if not plan.confirmations:
        yield "the plan has no confirmations: the figures do not include annotator errors"
    given = in_order(labels)
    mine = [(comment, given[key_of(comment)]) for comment in drawn if key_of(comment) in given]
    short = sum(len(labels) < labels_demanded(plan, comment, labels) for comment, labels in mine)
    corrected = sum(label.action == "correct" for _, labels in mine for label in labels)
    if short:
        yield (
            f"{short} comments lack a further label that the plan demands, because a lead "
            "adjudicated them or the labelling was stopped: the decision log shows whether that "
            "is so"
        )
    if corrected:
        yield (
            f"{corrected} labels were corrected by who gave them: only the decision log shows "
            "whether the plan confirms the label before"
        )


def _equal_but_rounding(sealed: bytes, follows: bytes) -> bool:
    """Return whether two results differ only by rounding."""
    try:
        document = json.loads(sealed)
        drawn = b'"label_errors"' in follows
        tolerance = _DRAWS_ROUNDING if drawn else _ROUNDING
        return to_json(document) == sealed and _close(document, json.loads(follows), tolerance)
    except (ValueError, RecursionError):
        return False


def _close(sealed: Any, follows: Any, tolerance: float) -> bool:
    if type(sealed) is not type(follows):
        return False
    if isinstance(sealed, dict):
        return sealed.keys() == follows.keys() and all(
            _close(sealed[name], follows[name], tolerance) for name in sealed
        )
    if isinstance(sealed, list):
        return len(sealed) == len(follows) and all(
            _close(one, other, tolerance) for one, other in zip(sealed, follows, strict=True)
        )
    if isinstance(sealed, float):
        return math.isclose(sealed, follows, rel_tol=tolerance, abs_tol=tolerance**2)
    return bool(sealed == follows)

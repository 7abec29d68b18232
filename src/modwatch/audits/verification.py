"""What files, witnesses, lake, decision log and register each show about an audit."""

import datetime
import json
from collections.abc import Callable, Iterator, Sequence
from itertools import chain

from sqlalchemy import Engine

from modwatch.audits import files, register, sources
from modwatch.audits.consistency import day_problems, plan_problems
from modwatch.audits.dsa.from_audit import Measures
from modwatch.audits.dsa_files import period_measures
from modwatch.audits.evidence import Event, all_of, moment
from modwatch.audits.folder import AuditFolder
from modwatch.audits.publication import Level, Publication, level_of_files
from modwatch.audits.register import Entry
from modwatch.audits.seeds import seed_of
from modwatch.audits.store import AuditStore
from modwatch.audits.verify import planned_sizes
from modwatch.audits.witnesses import Witnesses
from modwatch.common.errors import AuditError, ModwatchError
from modwatch.data.lake.delta import Lake
from modwatch.data.lake.erasure import recorded
from modwatch.review.log.verification import MALFORMED
from modwatch.review.log.witnesses import Newest
from modwatch.review.queue.intake import recorded_erasures
from modwatch.statistics.audit.draw import Drawn, draw


def levels_of(
    audit: str,
    store: AuditStore,
    lake: Lake,
    database: Engine,
    witnesses: Witnesses,
    newest: Newest,
) -> list[Level]:
    """Return what each level of verification shows of an audit; see `docs/auditors.md`.

    The lake: the period is surveyed again as for the plan, and the samples are drawn again. The
    decision log: labels, queue and texts. The register: other audits of the period, and the steps
    as the database has them. The witness: the whole log, against `newest`. Only files without
    problems are compared. Of an audit without a folder, register, database and log are.
    """
    witness = [] if newest.unused else [_witness(database, newest)]
    try:
        folder = store.read(audit)
    except AuditError as exc:
        missing = Level(name="files", shows="", problems=[str(exc)])
        return [missing, _others(store, database), *witness]
    of_files = level_of_files(folder)
    if of_files.problems:
        return [of_files, *witness]
    gone = sources.removed_days(database, lake, folder.plan)
    return [
        of_files,
        *witnesses.levels(folder),
        Level(
            name="lake",
            shows="scores, texts and numbers of comments are those that were planned with, and the "
            "sample is what plan and seed draw from them",
            problems=_found(lambda: _with_lake(lake, database, folder, gone)),
            remarks=[*_no_longer_kept(gone), *_found(lambda: _erased(lake, folder))],
        ),
        Level(
            name="decision log",
            shows="every label is a decision of the log, none that was given is left out, and "
            "people were shown the comments of the sample with the words of the lake",
            problems=_found(
                lambda: chain(
                    sources.label_problems(database, audit, folder),
                    sources.queue_problems(database, lake, audit, folder),
                )
            ),
            remarks=[
                *([] if gone else _found(lambda: _measures(lake, database, folder))),
                *([newest.sentence] if newest.unused else []),
            ],
        ),
        _register(store, database, folder),
        *witness,
    ]


def redrawn(lake: Lake, folder: AuditFolder, stage: int = 1) -> bytes:
    """Return the file of a stage's sample, drawn again from the scores by the plan in `folder`.

    Raises:
        AuditError: comments of the period are not kept any more.
    """
    if absent := sources.absent_days(lake, folder.plan):
        raise AuditError(
            f"the lake has no comments of {absent[0]} any more, nor of {len(absent) - 1} other "
            "days of the period: the sample cannot be drawn again"
        )
    return files.write_sample(_drawn(lake, folder, stage).comments)


def _found(problems: Callable[[], Iterator[str]]) -> list[str]:
    """Return problems, and as the last one why they could not all be looked for."""
    found: list[str] = []
    try:
        for problem in problems():
            found.append(problem)  # noqa: PERF402 - kept when a later one raises
    except ModwatchError as exc:
        if not found:  # a difference from the plan explains the failed draw
            found.append(str(exc))
    except MALFORMED as exc:
        found.append(f"a row cannot be read ({type(exc).__name__})")
    return found


def _no_longer_kept(gone: list[datetime.date]) -> Iterator[str]:
    if gone:
        yield (
            "days of the period that are no longer kept (MODWATCH_KEEP_COMMENTS): "
            f"{len(gone)}, from {gone[0]} to {gone[-1]}; the sample cannot be drawn again"
        )


def _erased(lake: Lake, folder: AuditFolder) -> Iterator[str]:
    if number := len(recorded(lake, [day.day for day in folder.plan.population])):
        yield (
            f"{number:,} texts of the period were erased: the plan binds them as before, and "
            "nobody can read them"
        )


def _with_lake(
    lake: Lake, database: Engine, folder: AuditFolder, gone: list[datetime.date]
) -> Iterator[str]:
    plan = folder.plan
    erased = recorded(lake, [day.day for day in plan.population])
    if erased and (number := len(erased.keys() - recorded_erasures(database).keys())):
        yield (
            f"{number:,} texts of the period are marked as erased, and no erasure of the log names "
            "them: their words may have been others"
        )
    kept = [planned for planned in plan.population if planned.day not in gone]
    days, *scores = sources.survey(lake, [planned.day for planned in kept])
    if gone:
        yield from day_problems(kept, days)
        return
    yield from plan_problems(plan, days, *scores)
    for stage in range(1, folder.times("drawn") + 1):
        drawn = _drawn(lake, folder, stage)
        if files.write_sample(drawn.comments) != folder[files.sample_file(stage)]:
            yield f"{files.sample_file(stage)} is not what the plan draws from the scores"
        if files.write_population(drawn.population) != folder[files.population_file(stage)]:
            yield f"{files.population_file(stage)} does not match the numbers of comments"


def _witness(database: Engine, newest: Newest) -> Level:
    return Level(
        name="witness",
        shows="no entry of the decision log was changed, removed or reordered since the witness: "
        "no audit was erased that it covers",
        problems=_found(lambda: iter(newest.report(database).problems)),
        remarks=[] if newest.invalid else [newest.sentence],
    )


def _others(store: AuditStore, database: Engine) -> Level:
    """Return what the register shows of an audit that has no folder."""

    def problems() -> Iterator[str]:
        entries = register.read(database)
        yield from _missing(store, entries, "")
        yield from register.removed(entries, store.names())

    return Level(
        name="register",
        shows="the database has every step of the audits, and each has its folder",
        problems=_found(problems),
    )


def _register(store: AuditStore, database: Engine, folder: AuditFolder) -> Level:
    plan, chain = folder.plan, folder.chain

    def problems() -> Iterator[str]:
        entries = register.read(database)
        yield from register.step_problems(entries, chain, plan)
        yield from register.approval_problems(database, chain, plan)
        yield from _missing(store, entries, plan.audit)
        if files.PUBLICATION in folder:
            published = Publication.from_json(folder[files.PUBLICATION])
            yield from _trend(store, published)
            yield from _same_days(store, entries, folder, published)

    return Level(
        name="register",
        shows="no step of the audit was changed, cut or taken again since, the seed is the one "
        "that was fixed when the plan was approved, and other audits of the period are named below",
        problems=_found(problems),
        remarks=_found(lambda: register.remarks(register.read(database), plan, store.names())),
    )


def _missing(store: AuditStore, entries: Sequence[Entry], audit: str) -> Iterator[str]:
    """Yield the audits besides `audit` with steps that are not in the register."""
    chains: dict[str, list[Event]] = {}
    for name in store.names():
        if name != audit:
            try:
                chains[name] = store.chain(name)
            except AuditError as exc:
                yield f"the steps of audit {name!r} cannot be compared: {exc}"
    yield from register.missing(entries, chains)


def _trend(store: AuditStore, published: Publication) -> Iterator[str]:
    """Yield the audits in the trend of a report whose results are other ones."""
    for result in published.earlier:
        try:
            sealed = json.loads(store.file(str(result["audit"]), files.RESULT))
        except (AuditError, ValueError):
            sealed = None
        if sealed != result:
            yield (
                f"the trend of the report shows audit {result['audit']!r} with another result than "
                "its evidence has"
            )


def _same_days(
    store: AuditStore, entries: Sequence[Entry], folder: AuditFolder, published: Publication
) -> Iterator[str]:
    """Yield the audits of the same days that the report leaves out, or shows otherwise.

    By their steps before the signature: others may come in while the report is written.
    """
    [signed] = all_of(folder.chain, "signed_off")
    before = [entry for entry in entries if moment(entry.at) < moment(signed.at)]
    shown = {other.audit: (other.action, other.labels) for other in published.others}
    for name, steps in register.same_days(before, folder.plan).items():
        action, labels = shown.get(name, ("", None))
        cancelled = steps[-1].step == "cancelled"
        sealed = store.cancelled_labels(name) if cancelled else None
        if not action or cancelled > (action == "cancelled") or sealed not in (None, labels):
            yield (
                f"the report leaves out audit {name!r} of the same days, or shows another state or "
                "number of labels than its steps have"
            )


def _measures(lake: Lake, database: Engine, folder: AuditFolder) -> Iterator[str]:
    """Yield whether the measures of the period differ from the published ones."""
    if files.PUBLICATION not in folder:
        return
    published = Publication.from_json(folder[files.PUBLICATION]).measures
    if published is None:
        return
    now = period_measures(folder.plan, lake, database)
    if now != published:
        then, today = (sum(measures.values(), Measures()) for measures in (published, now))
        yield (
            f"{files.AUTOMATED_MEANS_FILE} counts {then.solely:,} measures by the model alone and "
            f"{then.not_solely:,} by people; lake and log now have {today.solely:,} and "
            f"{today.not_solely:,}. Decisions since the publication explain a difference, or "
            "someone wrote other numbers"
        )


def _drawn(lake: Lake, folder: AuditFolder, stage: int) -> Drawn:
    plan = folder.plan
    return draw(
        plan,
        sources.population(lake, plan),
        planned_sizes(plan, folder, stage),
        seed_of(plan, folder.chain),
    )

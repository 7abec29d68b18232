"""Tasks of a Label Studio file; those that cannot be used are refused, by number and reason."""

import datetime as dt
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from modwatch.common import days
from modwatch.common.account import Account
from modwatch.common.errors import QueueError, SettingsError
from modwatch.common.text import folded
from modwatch.data.sources.timestamps import read_moment
from modwatch.data.sources.values import number_of, object_of, plain, text_of
from modwatch.review.queue.comments import comment_of
from modwatch.review.queue.items import content_of

#: The choices of the labelling configuration in docs/moderators.md.
LABELS = {"Toxic": 1, "Not toxic": 0}

#: In bytes; a file is parsed in memory.
LARGEST_FILE = 100_000_000


@dataclass(frozen=True, kw_only=True)
class Annotation:
    """One person's annotation of a task."""

    #: The person's id in Label Studio.
    annotator: int
    label: int
    #: In seconds.
    lead_time: float | None
    #: None: not in the file.
    created_at: dt.datetime | None


@dataclass(frozen=True, kw_only=True)
class Task:
    """One task."""

    #: Position in the file, from 1.
    number: int
    dt: dt.date
    comment_id: str
    text: str = field(repr=False)
    parent_text: str | None = field(repr=False)
    #: See `queue.items.content_of`.
    shown: Mapping[str, Any] = field(repr=False)
    #: The annotations that are not ground truth, one of each person.
    opinions: tuple[Annotation, ...]
    #: The label of the ground truth, if there is one.
    answer: int | None
    #: Number of cancelled and of empty annotations.
    cancelled: int
    #: Number of annotations that repeat the label of another one.
    repeated: int

    @property
    def queued(self) -> bool:
        """Whether it becomes an item: it has labels of people, or no answer yet."""
        return bool(self.opinions) or self.answer is None

    @property
    def content(self) -> tuple[object, ...]:
        """What two tasks of one comment must have in common: texts and labels."""
        opinions = frozenset((one.annotator, one.label) for one in self.opinions)
        shown = frozenset(self.shown.items())
        return self.text, self.parent_text, shown, self.answer, opinions


@dataclass(kw_only=True)
class TaskFile:
    """The tasks of a file: each is used, merged with another one, or refused."""

    account: Account
    #: Those that are used.
    tasks: list[Task] = field(default_factory=list)
    #: Numbers of the refused tasks, by a key of `REASONS`.
    refused: dict[str, list[int]] = field(default_factory=dict)

    def refuse(self, reasons: Mapping[int, str]) -> None:
        """Refuse tasks, by their numbers."""
        self.tasks = [task for task in self.tasks if task.number not in reasons]
        for number, reason in reasons.items():
            self.refused.setdefault(reason, []).append(number)
            self.account.count(reason, where=f"task {number}")

    def close(self) -> Account:
        """Return where the tasks ended, all of them."""
        self.account.count("used", len(self.tasks))
        self.account.close("the file")
        return self.account


def read_tasks(
    content: bytes | Iterable[bytes], *, day: dt.date | None, first_day: dt.date
) -> TaskFile:
    """Return the tasks of a file; `day` is that of tasks without a day.

    Raises `QueueError` if the file is not a JSON list.
    """
    values = _parsed(content)
    file = TaskFile(account=Account(read=len(values)))
    known: dict[tuple[dt.date, str], Task] = {}
    reasons = {}
    for number, value in enumerate(values, 1):
        try:
            task = _task(number, value, day, first_day)
        except _RefusedError as refused:
            reasons[number] = str(refused)
            continue
        first = known.setdefault((task.dt, task.comment_id), task)
        if first.content != task.content:
            reasons[number] = "different_copy"
        elif first is not task:
            file.account.count("merged")
    file.tasks = list(known.values())
    file.refuse(reasons)
    return file


class _RefusedError(QueueError):
    """A task is refused; the message is the reason, a key of `REASONS`."""


def _parsed(content: bytes | Iterable[bytes]) -> list[Any]:
    whole = bytearray()
    for part in [content] if isinstance(content, bytes) else content:
        whole += part
        if len(whole) > LARGEST_FILE:
            raise QueueError(
                f"the file is larger than {LARGEST_FILE // 1_000_000} MB; export the tasks from "
                "Label Studio in several files"
            )
    try:
        # Bytes that are not text make their task invalid, not the file.
        text = bytes(whole).decode(json.detect_encoding(bytes(whole)), "surrogateescape")
        tasks = json.loads(text, parse_constant=lambda _: None, object_pairs_hook=object_of)
    except (ValueError, RecursionError):
        tasks = None  # not chained: the original error contains the whole file
    if not isinstance(tasks, list):
        raise QueueError(
            "the file is not a JSON list of tasks; export it from Label Studio as JSON"
        )
    if tasks and all(isinstance(task, dict) and "annotation_id" in task for task in tasks):
        raise QueueError("the file is JSON-MIN of Label Studio; export the tasks as JSON")
    return tasks


def _task(number: int, task: object, day: dt.date | None, first_day: dt.date) -> Task:
    whole = task if isinstance(task, dict) else {}
    # Label Studio before 1.0 wrote `completions`.
    data, every = whole.get("data"), whole.get("annotations") or whole.get("completions") or []
    if not isinstance(data, dict) or not isinstance(every, list):
        raise _RefusedError("malformed_record")
    given = {name: value for name, value in data.items() if plain(value) not in (None, "")}
    # Ids of projects overlap, so the text is included.
    key = json.dumps([text_of(value)[0] for value in (whole.get("id"), given.get("text"))]).encode()
    made = {"comment_id": f"label-studio-{hashlib.sha256(key).hexdigest()[:32]}"}
    texts, problem = comment_of(made | given)
    if problem:
        raise _RefusedError(problem)
    annotations = [one if isinstance(one, dict) else {} for one in every]
    # Whoever submits a task without choosing anything leaves an empty result.
    kept = [
        one
        for one in annotations
        if one.get("was_cancelled") is not True and one.get("result") != []
    ]
    first = _distinct(kept)
    return Task(
        number=number,
        dt=_day(given.get("dt"), day, first_day),
        opinions=tuple(one for person, one in first.items() if person is not None),
        answer=first[None].label if None in first else None,
        cancelled=len(every) - len(kept),
        repeated=len(kept) - len(first),
        **content_of(texts),
    )


def _day(value: object, default: dt.date | None, first: dt.date) -> dt.date:
    day = default if value is None else read_moment(value, dt.UTC).day
    if day is None:
        raise _RefusedError("missing_day" if value is None else "unreadable_day")
    try:
        days.require_possible(day, first)
    except SettingsError:
        raise _RefusedError("impossible_day") from None
    return day


def _annotation(values: Mapping[str, Any]) -> Annotation:
    person = values.get("completed_by")
    # It may be the person's whole account.
    name, wrong = text_of(person.get("id") if isinstance(person, dict) else person)
    label = _label(values.get("result"))
    seconds, problem = number_of(values.get("lead_time"))
    given = plain(values.get("created_at"))
    at = read_moment(given, dt.UTC).created_at
    numbered = name is not None and name.isascii() and name.isdecimal() and int(name) < 2**63
    lasted = problem is None and (seconds is None or 0 <= seconds < 2**53)
    timed = given is None or at is not None
    if name is None or label is None or wrong or not (numbered and lasted and timed):
        raise _RefusedError("malformed_annotation")
    if at and at > dt.datetime.now(dt.UTC) + dt.timedelta(days=1):
        raise _RefusedError("future_annotation")
    return Annotation(annotator=int(name), label=label, lead_time=seconds, created_at=at)


def _label(results: object) -> int | None:
    """Return the label of the results of an annotation, which must have one choice."""
    every = results if isinstance(results, list) else [None]
    choices = [one for one in every if not isinstance(one, dict) or one.get("type") == "choices"]
    match choices:
        case [{"value": {"choices": [str(choice)]}}]:
            return {folded(name): label for name, label in LABELS.items()}.get(folded(choice))
    return None


def _distinct(annotations: Iterable[Mapping[str, Any]]) -> dict[int | None, Annotation]:
    """Return the first annotation of each person, and the first ground truth as that of None."""
    first: dict[int | None, Annotation] = {}
    for raw in annotations:
        one = _annotation(raw)
        person = None if raw.get("ground_truth") is True else one.annotator
        if first.setdefault(person, one).label != one.label:
            raise _RefusedError("contradictory_labels")
    return first

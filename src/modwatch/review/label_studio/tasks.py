"""Tasks of a Label Studio file, validated; errors name the task by its number."""

import datetime as dt
import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from modwatch.common.errors import QueueError
from modwatch.review.queue.items import LONGEST_ID, storable

#: The choices of `transfer.LABELING_CONFIG`.
LABELS = {"Toxic": 1, "Not toxic": 0}

#: In bytes; a file is parsed in memory.
LARGEST_FILE = 100_000_000

#: In characters, as for other sources of comments.
LONGEST_TEXT = 50_000

#: In characters, of a language or a platform.
LONGEST_WORD = 100


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
    #: Whether it is marked as ground truth.
    ground_truth: bool


@dataclass(frozen=True, kw_only=True)
class Task:
    """One task."""

    #: Position in the file, from 1.
    number: int
    dt: dt.date
    comment_id: str
    text: str = field(repr=False)
    parent_text: str | None = field(repr=False)
    language: str | None
    platform: str | None
    annotations: tuple[Annotation, ...]
    #: Number of cancelled annotations.
    cancelled: int

    @property
    def opinions(self) -> tuple[Annotation, ...]:
        """The annotations that are not ground truth."""
        return tuple(each for each in self.annotations if not each.ground_truth)

    @property
    def answer(self) -> int | None:
        """The label of the ground truth, if there is one."""
        return next((each.label for each in self.annotations if each.ground_truth), None)


def read_tasks(content: bytes | Iterable[bytes], day: dt.date | None) -> list[Task]:
    """Return the tasks of a file; `day` is that of tasks without a day.

    Raises `QueueError` naming the first invalid task, never its text.
    """
    tasks = [_task(number, each, day) for number, each in enumerate(_parsed(content), 1)]
    seen: dict[tuple[dt.date, str], int] = {}
    for task in tasks:
        first = seen.setdefault((task.dt, task.comment_id), task.number)
        if first != task.number:
            raise invalid(task.number, f"has the same comment as task {first}", "keep one of them")
    return tasks


def invalid(number: int, problem: str, remedy: str) -> QueueError:
    """Return the error of an invalid task."""
    return QueueError(f"task {number} {problem}; {remedy} (nothing was imported)")


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
        tasks = json.loads(whole)
    except (ValueError, RecursionError):
        tasks = None  # not chained: the original error contains the whole file
    if not isinstance(tasks, list):
        raise QueueError(
            "the file is not a JSON list of tasks; export it from Label Studio as JSON"
        )
    return tasks


def _task(number: int, task: object, day: dt.date | None) -> Task:
    if not isinstance(task, dict) or not isinstance(task.get("data"), dict):
        raise invalid(number, "has no `data`", "export the tasks as JSON, not JSON-MIN")
    data = task["data"]
    content = _text(number, data, "text", LONGEST_TEXT)
    if content is None:
        raise invalid(number, "has no text", "name the field of the comment `text`")
    given = [_an_object(number, each) for each in _list(number, task, "annotations")]
    kept = [each for each in given if each.get("was_cancelled") is not True]
    return Task(
        number=number,
        dt=_day(number, data, day),
        comment_id=_text(number, data, "comment_id", LONGEST_ID) or _made_id(task, content),
        text=content,
        parent_text=_text(number, data, "parent_text", LONGEST_TEXT),
        language=_text(number, data, "language", LONGEST_WORD),
        platform=_text(number, data, "platform", LONGEST_WORD),
        annotations=_annotations(number, kept),
        cancelled=len(given) - len(kept),
    )


def _text(number: int, data: Mapping[str, Any], name: str, longest: int) -> str | None:
    value = data.get(name)
    if value is None or value == "":
        return None
    if not isinstance(value, str):
        raise invalid(number, f"has a {name} that is not a string", "write it in quotation marks")
    if len(value) > longest:
        raise invalid(number, f"has a {name} of {len(value)} characters", f"allowed are {longest}")
    return storable(value, name, f"task {number}")


def _made_id(task: Mapping[str, Any], content: str) -> str:
    """Return the same id for the same task; ids of projects overlap, so the text is included."""
    task_key = json.dumps([task.get("id"), content]).encode()
    return f"label-studio-{hashlib.sha256(task_key).hexdigest()[:32]}"


def _day(number: int, data: Mapping[str, Any], day: dt.date | None) -> dt.date:
    value = data.get("dt")
    if value is None and day is not None:
        return day
    try:
        return dt.date.fromisoformat(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise invalid(
            number,
            "has no valid day in `dt`",
            "write it as 2026-01-31, or give a day for all tasks",
        ) from None


def _list(number: int, owner: Mapping[str, Any], name: str) -> list[Any]:
    value = owner.get(name)
    if value is None:
        return []
    if not isinstance(value, list):
        raise invalid(number, f"has `{name}` that is not a list", "export it again as JSON")
    return value


def _an_object(number: int, value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise invalid(number, "has an annotation that is not an object", "export it again as JSON")
    return value


def _annotations(number: int, given: Sequence[Mapping[str, Any]]) -> tuple[Annotation, ...]:
    annotations = tuple(
        Annotation(
            annotator=_annotator(number, each.get("completed_by")),
            label=_label(number, each),
            lead_time=_lead_time(number, each.get("lead_time")),
            created_at=_moment(number, each.get("created_at")),
            ground_truth=each.get("ground_truth") is True,
        )
        for each in given
    )
    people = [each.annotator for each in annotations if not each.ground_truth]
    if len(set(people)) < len(people):
        raise invalid(number, "was annotated twice by one person", "delete one annotation")
    if len({each.label for each in annotations if each.ground_truth}) > 1:
        raise invalid(number, "has contradictory ground truths", "mark only one of them")
    return annotations


def _annotator(number: int, value: object) -> int:
    person = value.get("id") if isinstance(value, dict) else value
    if type(person) is not int or not 0 <= person < 2**63:
        raise invalid(
            number, "has an annotation without a person", "set completed_by to a user's id"
        )
    return person


def _label(number: int, annotation: Mapping[str, Any]) -> int:
    choices: list[Any] = []
    for result in _list(number, annotation, "result"):
        if isinstance(result, dict) and result.get("type") == "choices":
            value = result.get("value")
            made = value.get("choices") if isinstance(value, dict) else None
            choices += made if isinstance(made, list) else [None]
    if len(choices) != 1 or not isinstance(choices[0], str) or choices[0] not in LABELS:
        named = " or ".join(LABELS)
        raise invalid(
            number, f"has an annotation that does not choose {named}", "label it so, or cancel it"
        )
    return LABELS[choices[0]]


def _lead_time(number: int, value: object) -> float | None:
    if value is None:
        return None
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    if not plain or not 0 <= value < 2**53 or math.isnan(value):  # type: ignore[operator, arg-type]
        raise invalid(number, "has a lead_time that is not a number of seconds", "leave it out")
    return float(value)  # type: ignore[arg-type]


def _moment(number: int, value: object) -> dt.datetime | None:
    if value is None:
        return None
    try:
        moment = dt.datetime.fromisoformat(value)  # type: ignore[arg-type]
        known = moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)
        return known.astimezone(dt.UTC)
    except (TypeError, ValueError, OverflowError):
        raise invalid(
            number, "has a created_at that is not a time", "write it as 2026-01-31T12:00:00Z"
        ) from None

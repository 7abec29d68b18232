"""What a file of Label Studio tasks says; anything else than expected is refused by task number."""

import datetime as dt
import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from modwatch.errors import QueueError
from modwatch.review.queue.items import LONGEST_ID, storable

#: The choices, as `label_studio.LABELING_CONFIG` names them.
LABELS = {"Toxic": 1, "Not toxic": 0}

#: Bytes; a file is parsed in memory.
LARGEST_FILE = 100_000_000

#: Characters, as for comments from any other source.
LONGEST_TEXT = 50_000

#: Characters of a language or a platform.
LONGEST_WORD = 100


@dataclass(frozen=True, kw_only=True)
class Annotation:
    """What one person said of one task."""

    #: The person's number in Label Studio.
    annotator: int
    label: int
    #: Seconds.
    lead_time: float | None
    #: None: the file does not say.
    created_at: dt.datetime | None
    #: Whether it is flagged as the right answer.
    ground_truth: bool


@dataclass(frozen=True, kw_only=True)
class Task:
    """One task."""

    #: In the file, from 1.
    number: int
    dt: dt.date
    comment_id: str
    text: str = field(repr=False)
    parent_text: str | None = field(repr=False)
    language: str | None
    platform: str | None
    annotations: tuple[Annotation, ...]
    #: Annotations that somebody cancelled there.
    cancelled: int

    @property
    def opinions(self) -> tuple[Annotation, ...]:
        """What people said, without the right answers."""
        return tuple(each for each in self.annotations if not each.ground_truth)

    @property
    def answer(self) -> int | None:
        """The right answer, if it is known."""
        return next((each.label for each in self.annotations if each.ground_truth), None)


def read_tasks(content: bytes | Iterable[bytes], day: dt.date | None) -> list[Task]:
    """Return the tasks of a file; those that name no day are of `day`.

    Raises `QueueError` naming the first task that cannot be, and never its text.
    """
    tasks = [_task(number, each, day) for number, each in enumerate(_parsed(content), 1)]
    seen: dict[tuple[dt.date, str], int] = {}
    for task in tasks:
        first = seen.setdefault((task.dt, task.comment_id), task.number)
        if first != task.number:
            raise refusal(task.number, f"is the comment of task {first} again", "keep one of them")
    return tasks


def refusal(number: int, problem: str, remedy: str) -> QueueError:
    """Return the error that refuses a file for one task."""
    return QueueError(f"task {number} {problem}; {remedy} (nothing of the file was imported)")


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
        tasks = None  # not chained: the foreign error carries the whole file
    if not isinstance(tasks, list):
        raise QueueError("the file is no JSON list of tasks; export it from Label Studio as JSON")
    return tasks


def _task(number: int, task: object, day: dt.date | None) -> Task:
    if not isinstance(task, dict) or not isinstance(task.get("data"), dict):
        raise refusal(number, "has no `data`", "export as JSON, not JSON-MIN")
    data = task["data"]
    content = _text(number, data, "text", LONGEST_TEXT)
    if content is None:
        raise refusal(number, "has no text", "name the column with the comment `text`")
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
        raise refusal(number, f"has a {name} that is no string", "write it in quotation marks")
    if len(value) > longest:
        raise refusal(number, f"has a {name} of {len(value)} characters", f"{longest} at most")
    return storable(value, name, f"task {number}")


def _made_id(task: Mapping[str, Any], content: str) -> str:
    """Return the same id for the same task; projects count theirs from 1, so the text counts."""
    told = json.dumps([task.get("id"), content]).encode()
    return f"label-studio-{hashlib.sha256(told).hexdigest()[:32]}"


def _day(number: int, data: Mapping[str, Any], day: dt.date | None) -> dt.date:
    told = data.get("dt")
    if told is None and day is not None:
        return day
    try:
        return dt.date.fromisoformat(told)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise refusal(
            number, "has no day in `dt`", "write it as 2026-01-31, or say a day for all tasks"
        ) from None


def _list(number: int, owner: Mapping[str, Any], name: str) -> list[Any]:
    value = owner.get(name)
    if value is None:
        return []
    if not isinstance(value, list):
        raise refusal(number, f"has `{name}` that are no list", "export it again as JSON")
    return value


def _an_object(number: int, value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise refusal(number, "has an annotation that is no object", "export it again as JSON")
    return value


def _annotations(number: int, given: Sequence[Mapping[str, Any]]) -> tuple[Annotation, ...]:
    found = tuple(
        Annotation(
            annotator=_annotator(number, each.get("completed_by")),
            label=_label(number, each),
            lead_time=_lead_time(number, each.get("lead_time")),
            created_at=_moment(number, each.get("created_at")),
            ground_truth=each.get("ground_truth") is True,
        )
        for each in given
    )
    people = [each.annotator for each in found if not each.ground_truth]
    if len(set(people)) < len(people):
        raise refusal(number, "was annotated twice by one person", "delete one annotation")
    if len({each.label for each in found if each.ground_truth}) > 1:
        raise refusal(number, "has two ground truths that differ", "flag one of them only")
    return found


def _annotator(number: int, told: object) -> int:
    person = told.get("id") if isinstance(told, dict) else told
    if type(person) is not int or not 0 <= person < 2**63:
        raise refusal(number, "has an annotation by nobody", "put a user's number in completed_by")
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
        raise refusal(
            number, f"has an annotation that does not choose {named}", "label it so, or cancel it"
        )
    return LABELS[choices[0]]


def _lead_time(number: int, told: object) -> float | None:
    if told is None:
        return None
    plain = isinstance(told, int | float) and not isinstance(told, bool)
    if not plain or not 0 <= told < 2**53 or math.isnan(told):  # type: ignore[operator, arg-type]
        raise refusal(number, "has a lead_time that is no number of seconds", "leave it out")
    return float(told)  # type: ignore[arg-type]


def _moment(number: int, told: object) -> dt.datetime | None:
    if told is None:
        return None
    try:
        moment = dt.datetime.fromisoformat(told)  # type: ignore[arg-type]
        known = moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)
        return known.astimezone(dt.UTC)
    except (TypeError, ValueError, OverflowError):
        raise refusal(
            number, "has a created_at that is no time", "write it as 2026-01-31T12:00:00Z"
        ) from None

"""Tasks of a Label Studio file, validated; errors name the task by its number, never its text."""

import datetime as dt
import hashlib
import json
from collections.abc import Callable, Iterable
from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from modwatch.common.errors import QueueError
from modwatch.review.queue.items import LONGEST_ID, storable

#: The choices of `transfer.LABELING_CONFIG`.
LABELS = {"Toxic": 1, "Not toxic": 0}

#: In bytes; a file is parsed in memory.
LARGEST_FILE = 100_000_000

#: In characters, as for other sources of comments.
LONGEST_TEXT = 50_000


def _label(results: object) -> int:
    """Return the label of the results of an annotation, which must have one choice."""
    if not isinstance(results, list):
        raise ValueError("it must be a list")  # noqa: TRY004 - pydantic reports it
    values = [result.get("value") for result in results if _is_choice(result)]
    choices = [value.get("choices") if isinstance(value, dict) else None for value in values]
    for name, label in LABELS.items():
        if choices == [[name]]:
            return label
    raise ValueError(f"it must choose either {' or '.join(LABELS)}")


def _is_choice(result: object) -> bool:
    return isinstance(result, dict) and result.get("type") == "choices"


def _iso(parse: Callable[[str], dt.date]) -> BeforeValidator:
    def validated(value: Any) -> dt.date | None:
        try:
            return None if value is None else parse(value)
        except (TypeError, ValueError, OverflowError):
            raise ValueError("it must be in the format of ISO 8601") from None

    return BeforeValidator(validated)


def _in_utc(text: str) -> dt.datetime:
    moment = dt.datetime.fromisoformat(text)
    return (moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)).astimezone(dt.UTC)


#: Only `true` counts as true.
_Flag = Annotated[bool, BeforeValidator(lambda value: value is True)]
_Word = Annotated[str, Field(max_length=100)]
_Text = Annotated[str, Field(max_length=LONGEST_TEXT)]


class Annotation(BaseModel):
    """One person's annotation of a task."""

    model_config = ConfigDict(frozen=True, strict=True, allow_inf_nan=False)

    #: The person's id in Label Studio.
    annotator: Annotated[
        int,
        BeforeValidator(lambda value: value.get("id") if isinstance(value, dict) else value),
        Field(alias="completed_by", ge=0, lt=2**63),
    ]
    label: Annotated[int, BeforeValidator(_label), Field(alias="result")]
    #: In seconds.
    lead_time: Annotated[float, Field(ge=0, lt=2**53)] | None = None
    #: None: not in the file.
    created_at: Annotated[dt.datetime | None, _iso(_in_utc)] = None
    #: Whether it is marked as ground truth.
    ground_truth: _Flag = False


class Task(BaseModel):
    """One task."""

    model_config = ConfigDict(frozen=True, strict=True)

    #: Position in the file, from 1.
    number: int
    dt: Annotated[dt.date, _iso(dt.date.fromisoformat)]
    comment_id: Annotated[str, Field(max_length=LONGEST_ID)]
    text: _Text = Field(repr=False)
    parent_text: _Text | None = Field(None, repr=False)
    language: _Word | None = None
    platform: _Word | None = None
    annotations: list[Annotation]
    #: Number of cancelled annotations.
    cancelled: int

    @model_validator(mode="after")
    def _annotations_agree(self) -> Self:
        people = [annotation.annotator for annotation in self.opinions]
        if len(set(people)) < len(people):
            raise ValueError("it was annotated twice by one person")
        truths = {annotation.label for annotation in self.annotations if annotation.ground_truth}
        if len(truths) > 1:
            raise ValueError("it has contradictory ground truths")
        return self

    @property
    def opinions(self) -> tuple[Annotation, ...]:
        """The annotations that are not ground truth."""
        return tuple(one for one in self.annotations if not one.ground_truth)

    @property
    def answer(self) -> int | None:
        """The label of the ground truth, if there is one."""
        return next((one.label for one in self.annotations if one.ground_truth), None)


def read_tasks(content: bytes | Iterable[bytes], day: dt.date | None) -> list[Task]:
    """Return the tasks of a file; `day` is that of tasks without a day.

    Raises `QueueError` naming the first invalid task, never its text.
    """
    tasks = [_task(number, task, day) for number, task in enumerate(_parsed(content), 1)]
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
    given = {name: value for name, value in task["data"].items() if value not in (None, "")}
    # Ids of projects overlap, so the text is included.
    key = json.dumps([task.get("id"), given.get("text")]).encode()
    made = {"comment_id": f"label-studio-{hashlib.sha256(key).hexdigest()[:32]}"}
    default = {} if day is None else {"dt": str(day)}
    kept, cancelled = task.get("annotations"), 0
    if isinstance(kept, list | None):
        every = kept or []
        kept = [one for one in every if not _is_cancelled(one)]
        cancelled = len(every) - len(kept)
    values = {**made, **default, **given, "annotations": kept}
    try:
        valid = Task.model_validate(values | {"number": number, "cancelled": cancelled})
    except ValidationError as exc:
        error = exc.errors(include_input=False, include_url=False)[0]
    else:
        for name in ("comment_id", "text", "parent_text", "language", "platform"):
            storable(getattr(valid, name), name, f"task {number}")
        return valid
    # Raised outside the handler, because the original error contains the values.
    where = ".".join(str(part) for part in error["loc"])
    problem = error["msg"].removeprefix("Value error, ")
    raise invalid(number, f"is invalid{' in ' if where else ''}{where} ({problem})", "correct it")


def _is_cancelled(annotation: object) -> bool:
    return isinstance(annotation, dict) and annotation.get("was_cancelled") is True

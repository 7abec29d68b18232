import json
import tracemalloc
import xml.etree.ElementTree as ET
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime
from typing import Any

import pytest
from sqlalchemy import Engine, func, select, text

from modwatch.common.errors import LeaseConflictError, QueueError
from modwatch.review import queue
from modwatch.review.label_studio import tasks as label_studio_tasks
from modwatch.review.label_studio import transfer as label_studio
from modwatch.review.label_studio.tasks import LABELS
from modwatch.review.label_studio.transfer import (
    LABELING_CONFIG,
    Imported,
    export_tasks,
    import_tasks,
)
from modwatch.review.people import Moderator
from modwatch.review.queue.deciding import undo
from modwatch.review.tables import decision, gold_comment, metadata, moderator, review_item
from review.labelling import decide_all

Fill = Callable[[int], None]
DAY = date(2026, 1, 1)


def annotation(label: str = "Toxic", by: object = 7, **more: object) -> dict[str, Any]:
    return {
        "completed_by": by,
        "result": [{"type": "choices", "value": {"choices": [label]}, "from_name": "t"}],
        "was_cancelled": False,
        "ground_truth": False,
        "lead_time": 4.5,
        "created_at": "2026-01-03T04:05:06.789Z",
    } | more


def task(comment_id: str = "c1", *annotations: object, **data: object) -> dict[str, Any]:
    given = {"text": f"invented {comment_id}", "comment_id": comment_id, "dt": "2026-01-01"} | data
    return {"id": 1, "data": given, "annotations": list(annotations), "predictions": []}


def load(engine: Engine, *tasks: object, **more: Any) -> Imported:
    return import_tasks(engine, json.dumps(tasks).encode(), **more)


def rows(engine: Engine, table: Any) -> list[dict[str, Any]]:
    with engine.connect() as connection:
        return [dict(row) for row in connection.execute(select(table)).mappings()]


def everything(engine: Engine) -> dict[str, list[str]]:
    return {
        name: sorted(str(row) for row in rows(engine, table))
        for name, table in metadata.tables.items()
    }


def test_a_task_without_labels_waits(engine: Engine, ann: Moderator) -> None:
    done = load(engine, task(parent_text="before", language="en", platform="forum"))
    assert done == Imported(tasks=1, items=1, labels=0, gold=0, cancelled=0, left=0)
    (item,) = rows(engine, review_item)
    assert (item["kind"], item["reason"], item["prob"], item["review_score"]) == (
        "imported", "imported", 0.5, 0.0,
    )  # fmt: skip
    lease = queue.lease(engine, ann.id)
    assert lease is not None
    assert (lease.item.text, lease.item.parent_text) == ("invented c1", "before")
    assert (lease.item.language, lease.item.platform) == ("en", "forum")


def test_labels_become_decisions_of_accounts_that_cannot_log_in(engine: Engine) -> None:
    done = load(engine, task("c1", annotation()), task("c2", annotation("Not toxic", {"id": 8})))
    assert (done.items, done.labels) == (2, 2)
    first, second = sorted(rows(engine, decision), key=lambda row: row["comment_id"])
    assert (first["label"], first["seconds"], first["reason"]) == (1, 4.5, "imported")
    assert first["decided_at"] == datetime(2026, 1, 3, 4, 5, 6, 789_000, UTC)
    assert second["label"] == 0
    people = {row["pseudonym"]: row for row in rows(engine, moderator)}
    assert set(people) == {"label-studio-7", "label-studio-8"}
    assert all(row["disabled_at"] and not row["password_hash"] for row in people.values())
    assert {row["status"] for row in rows(engine, review_item)} == {"decided"}
    assert queue.verify_log(engine).problems == ()
    (batch,) = queue.current_labels(engine, DAY, kind="imported")
    assert batch.column("label").to_pylist() == [1, 0]
    assert list(queue.current_labels(engine, DAY)) == []  # in no estimate of the day


def test_a_task_on_which_people_differ_goes_to_a_lead(engine: Engine, ben: Moderator) -> None:
    load(engine, task("c1", annotation(by=1), annotation("Not toxic", by=2)))
    assert [row["status"] for row in rows(engine, review_item)] == ["escalated"]
    lease = queue.lease_escalated(engine, ben.id)
    assert lease is not None
    assert [opinion.label for opinion in lease.opinions] == [1, 0]


def test_the_same_file_again_changes_nothing(engine: Engine) -> None:
    tasks = [
        task("c1", annotation(), annotation(by=8, created_at=None)),
        task("c2"),
        task("c3", annotation(ground_truth=True)),
        task("c4", annotation("Not toxic", was_cancelled=True)),
        {"data": {"text": "no id"}},
    ]
    first = load(engine, *tasks, day=DAY)
    assert first == Imported(tasks=5, items=4, labels=2, gold=1, cancelled=1, left=0)
    before = everything(engine)
    again = load(engine, *tasks[::-1], day=DAY)
    assert again == Imported(tasks=5, items=0, labels=0, gold=0, cancelled=1, left=0)
    assert everything(engine) == before


def test_files_add_up(engine: Engine) -> None:
    load(engine, task("c1"), task("c2", annotation()))
    done = load(
        engine, task("c3"), task("c1", annotation()), task("c2", annotation("Not toxic", 9))
    )
    assert (done.items, done.labels) == (1, 2)
    status = {row["comment_id"]: row["status"] for row in rows(engine, review_item)}
    assert status == {"c1": "decided", "c2": "escalated", "c3": "waiting"}
    assert queue.verify_log(engine).problems == ()


def test_two_imports_of_one_file_at_once_are_one(engine: Engine) -> None:
    tasks = [task(f"c{i}", annotation()) for i in range(20)]
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda _: load(engine, *tasks), range(4)))
    assert sorted(item.labels for item in done) == [0, 0, 0, 20]
    assert queue.verify_log(engine).problems == ()


def test_what_people_here_did_is_left_to_them(engine: Engine, ann: Moderator) -> None:
    load(engine, task("c1"))
    decide_all(engine, [ann])
    done = load(engine, task("c1", annotation()))
    assert (done.labels, done.left) == (0, 1)
    (batch,) = queue.current_labels(engine, DAY, kind="imported")
    assert batch.column("label").to_pylist() == [0]


def test_a_label_ends_the_lease_of_whoever_reads_the_item(engine: Engine, ann: Moderator) -> None:
    load(engine, task("c1"))
    lease = queue.lease(engine, ann.id)
    assert lease is not None
    load(engine, task("c1", annotation()))
    with pytest.raises(LeaseConflictError):
        queue.decide(
            engine, moderator_id=ann.id, item_id=lease.item.id, lease_token=lease.token, label=0,
            idempotency_key="k",
        )  # fmt: skip


def test_a_ground_truth_is_a_gold_comment(engine: Engine) -> None:
    toxic = annotation(ground_truth=True)
    other = annotation("Not toxic", ground_truth=True)
    done = load(engine, task("c1", toxic), task("c2", other, annotation()))
    assert (done.gold, done.items, done.labels) == (2, 1, 1)
    gold = {row["comment_id"]: row for row in rows(engine, gold_comment)}
    assert (gold["c1"]["label"], gold["c2"]["label"]) == (1, 0)
    assert gold["c1"]["source"] == "label-studio"
    with pytest.raises(QueueError, match="task 1 is already a gold comment"):
        load(engine, task("c1", annotation("Not toxic", ground_truth=True)))


def test_imported_items_of_others_are_not_withdrawn(engine: Engine, new_item: Any) -> None:
    queue.enqueue(engine, [new_item("c0", kind="imported")], DAY, kinds=["imported"])
    load(engine, task("c1"))
    assert queue.counts(engine).waiting == 2


def deep(levels: int) -> bytes:
    return b"[" * levels + b"]" * levels


SECRET = "a private word"
WRONG = [
    ({"annotations": []}, "has no `data`"),
    ("x", "has no `data`"),
    (task(text=None), "in text (Field required)"),
    (task(text=""), "in text (Field required)"),
    (task(text=["a"]), "in text (Input should be a valid string)"),
    (task(text=SECRET * 80_000), "in text (String should have at most 50000 characters)"),
    (task(text=f"{SECRET}\0"), "the text of task 2 contains NUL"),
    (task(text=f"{SECRET}\ud800"), "unable to parse raw data as a unicode string"),
    (task(parent_text=3), "in parent_text (Input should be a valid string)"),
    (task("c" * 513), "in comment_id (String should have at most 512 characters)"),
    (task(comment_id=5), "in comment_id (Input should be a valid string)"),
    (task(dt="yesterday"), "in dt (it must be in the format of ISO 8601)"),
    (task(dt=20260101), "in dt (it must be in the format of ISO 8601)"),
    (task(dt=None), "in dt (Field required)"),
    (task() | {"annotations": {}}, "in annotations (Input should be a valid list)"),
    (task("c1", SECRET), "in annotations.0 (Input should be a valid dictionary"),
    (task("c1", annotation(SECRET)), "must choose either Toxic or Not toxic"),
    (task("c1", annotation(result=[])), "must choose"),
    (task("c1", annotation(result=5)), "in annotations.0.result (it must be a list)"),
    (task("c1", annotation(result=annotation()["result"] * 2)), "must choose"),
    (task("c1", annotation(result=[{"type": "choices", "value": SECRET}])), "must choose"),
    (task("c1", annotation(by=None)), "in annotations.0.completed_by"),
    (task("c1", annotation(by=True)), "in annotations.0.completed_by"),
    (task("c1", annotation(by=-1)), "in annotations.0.completed_by"),
    (task("c1", annotation(by=10**30)), "in annotations.0.completed_by"),
    (task("c1", annotation(), annotation("Not toxic")), "was annotated twice by one person"),
    (task("c1", annotation(lead_time="5")), "in annotations.0.lead_time"),
    (task("c1", annotation(lead_time=-1)), "in annotations.0.lead_time"),
    (task("c1", annotation(lead_time=float("nan"))), "in annotations.0.lead_time"),
    (task("c1", annotation(lead_time=float("inf"))), "in annotations.0.lead_time"),
    (task("c1", annotation(lead_time=10**400)), "in annotations.0.lead_time"),
    (task("c1", annotation(created_at="soon")), "in annotations.0.created_at"),
    (task("c1", annotation(created_at=5)), "in annotations.0.created_at"),
    (task("c1", annotation(created_at="0001-01-01T00:00:00+14:00")), "in annotations.0.created_at"),
    (task("c1", annotation(created_at="9999-01-01T00:00:00Z")), "was annotated in the future"),
    (task("c1", *(annotation(label, ground_truth=True) for label in LABELS)), "contradictory"),
    (task("c0"), "has the same comment as task 1; keep one of them"),
]  # fmt: skip


@pytest.mark.parametrize(("wrong", "finding"), WRONG)
def test_what_cannot_be_is_refused_by_its_number(
    engine: Engine, wrong: object, finding: str
) -> None:
    before = everything(engine)
    with pytest.raises(QueueError) as refused:
        load(engine, task("c0", annotation(by=3)), wrong)
    message = str(refused.value)
    assert finding in message
    assert "task 2" in message
    assert SECRET not in message
    assert everything(engine) == before


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"x", b"\xff\xfe", deep(100_000), b"[" + b"1" * 5_000 + b"]"]
)
def test_what_is_no_list_of_tasks_is_refused(engine: Engine, content: bytes) -> None:
    with pytest.raises(QueueError, match=r"list of tasks|has no `data`"):
        import_tasks(engine, content)


def test_a_deep_task_is_read_or_refused(engine: Engine) -> None:
    one = json.dumps(task()).encode()
    with pytest.raises(QueueError, match="not a JSON list of tasks"):
        import_tasks(engine, b"[" + one[:-1] + b', "meta": ' + deep(5_000) + b"}]")


def test_a_file_that_is_too_large_is_refused(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(label_studio_tasks, "LARGEST_FILE", 1_000_000)
    with pytest.raises(QueueError, match="larger than 1 MB"):
        import_tasks(engine, (b" " * 1_000 for _ in range(1_001)))


def test_another_label_or_text_than_before_is_refused(engine: Engine) -> None:
    load(engine, task("c1", annotation()))
    before = everything(engine)
    with pytest.raises(QueueError, match="task 1 was imported before with another label"):
        load(engine, task("c1", annotation("Not toxic")))
    with pytest.raises(QueueError, match="task 1 has another text than the item"):
        load(engine, task("c1", text="something else"))
    assert everything(engine) == before


def test_an_account_that_can_log_in_takes_no_labels(engine: Engine) -> None:
    load(engine, task("c1", annotation()))
    with engine.begin() as connection:
        connection.execute(text("UPDATE moderator SET disabled_at = NULL"))
    with pytest.raises(QueueError, match=r"label-studio-7 .* is enabled; disable it"):
        load(engine, task("c2", annotation()))


def exported(engine: Engine, **chosen: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(b"".join(export_tasks(engine, **chosen)))
    return found


def test_an_export_holds_the_labels_that_stand(
    engine: Engine, ann: Moderator, ben: Moderator, fill: Fill
) -> None:
    assert exported(engine) == []
    fill(3)
    decide_all(engine, [ann, ben])
    undo(engine, moderator_id=ben.id, decision_id=2, idempotency_key="u")
    first, second, third = exported(engine)
    assert first["data"] == {
        "text": "invented text of c0", "parent_text": "", "comment_id": "c0", "dt": "2026-01-01",
        "language": None, "platform": None,
    }  # fmt: skip
    (result,) = first["annotations"]
    assert result["completed_by"] == ann.id
    assert result["result"][0]["value"] == {"choices": ["Not toxic"]}
    assert result["lead_time"] >= 0
    assert datetime.fromisoformat(result["created_at"]).tzinfo is not None
    assert second["annotations"] == []
    assert len(third["annotations"]) == 1


def test_days_and_kinds_are_chosen(engine: Engine, fill: Fill, new_item: Any) -> None:
    fill(2)
    queue.enqueue(engine, [new_item("g", kind="gold")], DAY, kinds=["gold"])
    queue.enqueue(engine, [new_item("c9")], date(2026, 1, 2))

    def ids(**chosen: Any) -> list[str]:
        return [item["data"]["comment_id"] for item in exported(engine, **chosen)]

    assert ids() == ["c0", "c1", "c9"]
    assert ids(last=DAY) == ["c0", "c1"]
    assert ids(first=date(2026, 1, 2)) == ["c9"]
    assert ids(kinds=["gold"]) == ["g"]


def test_what_was_exported_can_be_imported(engine: Engine, ann: Moderator, fill: Fill) -> None:
    fill(5)
    decide_all(engine, [ann])
    content = b"".join(export_tasks(engine))
    done = import_tasks(engine, [content[:100], content[100:]])
    assert (done.items, done.labels) == (5, 5)
    (mine,) = queue.current_labels(engine, DAY)
    (theirs,) = queue.current_labels(engine, DAY, kind="imported")
    for column in ("comment_id", "label", "decided_at", "seconds"):
        assert mine.column(column).to_pylist() == theirs.column(column).to_pylist()
    assert set(mine.column("moderator").to_pylist()) == {"ann"}
    assert set(theirs.column("moderator").to_pylist()) == {f"label-studio-{ann.id}"}


def test_memory_does_not_grow_with_the_export(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(label_studio, "_BATCH", 100)

    def peak(n: int) -> int:
        load(engine, *(task(f"{n} {i}", text="x" * 1_000) for i in range(n)))
        tracemalloc.start()
        try:
            assert sum(len(part) for part in export_tasks(engine)) > 1_000 * n
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    small = peak(300)
    assert peak(3_000) < 2 * small


def test_a_hostile_text_goes_there_and_back(engine: Engine) -> None:
    hostile = '</script>\u2028\u202e"\\ {{7*7}} =1+1 😀\x01\r\n'
    load(engine, task("c1", text=hostile))
    (item,) = exported(engine)
    assert item["data"]["text"] == hostile


def test_the_labelling_configuration_offers_the_labels() -> None:
    view = ET.fromstring(LABELING_CONFIG)
    assert [choice.get("value") for choice in view.iter("Choice")] == list(LABELS)
    assert {item.get("value") for item in view.iter("Text")} == {"$text", "$parent_text"}
    assert view.find("Choices").get("toName") == "text"  # type: ignore[union-attr]


def test_an_import_is_on_record(engine: Engine, ann: Moderator) -> None:
    load(engine, task("c1", annotation()), actor_id=ann.id)
    with engine.connect() as connection:
        found = connection.execute(
            text("SELECT actor_id, details FROM event WHERE action = 'import_label_studio'")
        ).one()
        assert connection.scalar(select(func.count()).select_from(decision)) == 1
    assert found.actor_id == ann.id
    assert found.details["labels"] == 1

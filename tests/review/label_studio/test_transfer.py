import contextlib
import json
import tracemalloc
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from databases import execute
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Engine, func, select, text

from modwatch.common.account import Account
from modwatch.common.columns import shown
from modwatch.common.errors import LeaseConflictError, QueueError
from modwatch.review.label_studio import tasks as label_studio_tasks
from modwatch.review.label_studio import transfer as label_studio
from modwatch.review.label_studio.tasks import LABELS
from modwatch.review.label_studio.transfer import Imported, export_tasks, import_tasks
from modwatch.review.log import labels, verification
from modwatch.review.queue import intake
from modwatch.review.queue.comments import REASONS
from modwatch.review.queue.deciding import undo
from modwatch.review.tables import decision, gold_comment, metadata, moderator, review_item
from review.labelling import decide_all, held, held_escalated, label

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
    return import_tasks(engine, json.dumps(tasks).encode(), first_day=DAY, **more)


def counts(done: Imported) -> tuple[int, ...]:
    """Return the new items, labels and gold comments, and what was skipped."""
    return done.items, done.labels, done.gold, done.cancelled, done.repeated, done.left


def rows(engine: Engine, table: Any) -> list[dict[str, Any]]:
    with engine.connect() as connection:
        return [dict(row) for row in connection.execute(select(table)).mappings()]


def everything(engine: Engine) -> dict[str, list[str]]:
    return {
        name: sorted(str(row) for row in rows(engine, table))
        for name, table in metadata.tables.items()
    }


def test_a_task_without_labels_waits(engine, ann):
    done = load(engine, task(parent_text="before", language="en", platform="forum"))
    assert (counts(done), done.refused) == ((1, 0, 0, 0, 0, 0), {})
    assert done.account == Account(read=1, places=Counter(used=1))
    (item,) = rows(engine, review_item)
    assert (item["kind"], item["reason"], item["prob"], item["review_score"]) == (
        "imported", "imported", 0.5, 0.0,
    )  # fmt: skip
    lease = held(engine, ann)
    assert (lease.item.text, lease.item.parent_text) == ("invented c1", "before")
    assert lease.item.shown == {"language": "en", "platform": "forum"}


def test_labels_become_decisions_of_accounts_that_cannot_log_in(engine):
    done = load(engine, task("c1", annotation()), task("c2", annotation("NOT TOXIC ", {"id": 8})))
    assert (done.items, done.labels) == (2, 2)
    first, second = sorted(rows(engine, decision), key=lambda row: row["comment_id"])
    assert (first["label"], first["seconds"], first["reason"]) == (1, 4.5, "imported")
    assert first["decided_at"] == datetime(2026, 1, 3, 4, 5, 6, 789_000, UTC)
    assert second["label"] == 0
    people = {row["pseudonym"]: row for row in rows(engine, moderator)}
    assert set(people) == {"label-studio-7", "label-studio-8"}
    assert all(row["disabled_at"] and not row["password_hash"] for row in people.values())
    assert {row["status"] for row in rows(engine, review_item)} == {"decided"}
    assert verification.verify_log(engine).problems == ()
    (batch,) = labels.current_labels(engine, DAY, kind="imported")
    assert batch.column("label").to_pylist() == [1, 0]
    assert list(labels.current_labels(engine, DAY)) == []  # in no estimate of the day


def test_a_task_on_which_people_differ_goes_to_a_lead(engine, ben):
    load(engine, task("c1", annotation(by=1), annotation("Not toxic", by=2)))
    assert [row["status"] for row in rows(engine, review_item)] == ["escalated"]
    lease = held_escalated(engine, ben)
    assert [opinion.label for opinion in lease.opinions] == [1, 0]


def test_the_same_file_again_changes_nothing(engine):
    tasks = [
        task("c1", annotation(), annotation(by=8, created_at=None)),
        task("c2"),
        task("c3", annotation(ground_truth=True)),
        task("c4", annotation("Not toxic", was_cancelled=True), annotation(by=2, result=[])),
        {"data": {"text": "no id"}},
    ]
    first = load(engine, *tasks, day=DAY)
    assert counts(first) == (4, 2, 1, 2, 0, 0)
    before = everything(engine)
    again = load(engine, *tasks[::-1], day=DAY)
    assert counts(again) == (0, 0, 0, 2, 0, 0)
    assert again.account == first.account
    assert everything(engine) == before


def test_files_add_up(engine, new_item):
    intake.enqueue(engine, [new_item("c0", kind="imported")], DAY, kinds=["imported"])
    load(engine, task("c1"), task("c2", annotation()))
    done = load(
        engine, task("c3"), task("c1", annotation()), task("c2", annotation("Not toxic", 9))
    )
    assert (done.items, done.labels) == (1, 2)
    status = {row["comment_id"]: row["status"] for row in rows(engine, review_item)}
    assert status == {"c0": "waiting", "c1": "decided", "c2": "escalated", "c3": "waiting"}
    assert verification.verify_log(engine).problems == ()


def test_two_imports_of_one_file_at_once_are_one(engine):
    tasks = [task(f"c{i}", annotation()) for i in range(20)]
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda _: load(engine, *tasks), range(4)))
    assert sorted(item.labels for item in done) == [0, 0, 0, 20]
    assert verification.verify_log(engine).problems == ()


def test_what_people_here_did_is_left_to_them(engine, ann):
    load(engine, task("c1"), task("c2"))
    done_here, reading = held(engine, ann), held(engine, ann)
    assert done_here.item.comment_id == "c1"
    label(engine, ann, done_here, 0)
    done = load(engine, task("c1", annotation()), task("c2", annotation()))
    assert (done.labels, done.left) == (1, 1)
    (batch,) = labels.current_labels(engine, DAY, kind="imported")
    assert batch.column("label").to_pylist() == [0, 1]
    with pytest.raises(LeaseConflictError):  # a label ends the lease of whoever reads the item
        label(engine, ann, reading, 0)


def test_a_ground_truth_is_a_gold_comment(engine):
    toxic = annotation(ground_truth=True)
    other = annotation("Not toxic", ground_truth=True)
    done = load(engine, task("c1", toxic), task("c2", other, annotation()))
    assert (done.gold, done.items, done.labels) == (2, 1, 1)
    gold = {row["comment_id"]: row for row in rows(engine, gold_comment)}
    assert (gold["c1"]["label"], gold["c2"]["label"]) == (1, 0)
    assert gold["c1"]["source"] == "label-studio"
    again = load(engine, task("c1", annotation("Not toxic", ground_truth=True)), task("c3"))
    assert (again.refused, again.gold, again.items) == ({"other_gold": [1]}, 0, 1)


def deep(levels: int) -> bytes:
    return b"[" * levels + b"]" * levels


SECRET = "a private word"
SOON = str(datetime.now(UTC).date() + timedelta(days=2))  # midnight may pass before the test
REFUSED = [
    ({"annotations": []}, "malformed_record"),
    ("x", "malformed_record"),
    (task() | {"data": None}, "malformed_record"),
    (task() | {"annotations": {SECRET: 1}}, "malformed_record"),
    *((task(**data), "malformed_record") for data in (
        {"text": [SECRET]}, {"text": True}, {"parent_text": {SECRET: SECRET}},
        {"comment_id": False}, {"comment_id": 1e300},
    )),
    *((task(text=blank), "blank_text") for blank in (
        None, "", float("nan"), "\u200b \u200b", "\u202e\u2066\u2069",
        "\U000e0068\U000e0069\U000e007f", "\u2800\u3164",
    )),
    (task(text=SECRET * 80_000), "long_text"),
    (task(text=f"{SECRET}\0"), "nul_byte"),
    (task(parent_text=f"{SECRET}\0"), "nul_byte"),
    (task(platform=f"{SECRET}\0"), "nul_byte"),
    (task(text=f"{SECRET}\ud800"), "undecodable_text"),
    (task(comment_id=f"{SECRET}\udfff"), "undecodable_text"),
    (task(language=SECRET), "malformed_language"),
    (task("c" * 257), "long_id"),
    (task(comment_id="\u200b"), "missing_id"),
    (task(comment_id=" "), "missing_id"),
    (task(dt="yesterday"), "unreadable_day"),
    (task(dt=[SECRET]), "unreadable_day"),
    (task(dt=None), "missing_day"),
    (task(dt=float("nan")), "missing_day"),
    (task(dt="1899-01-01"), "impossible_day"),
    (task(dt="2099-01-01"), "impossible_day"),
    (task(dt="2025-12-31"), "impossible_day"),
    (task(dt=SOON), "impossible_day"),
    (task("c1", SECRET), "malformed_annotation"),
    (task("c1", annotation(SECRET)), "malformed_annotation"),
    *((task("c1", annotation(**{name: value})), "malformed_annotation") for name, value in (
        ("result", None), ("result", 5), ("result", annotation()["result"] * 2),
        ("result", [{"type": "choices", "value": SECRET}]),
        ("by", None), ("by", True), ("by", -1), ("by", 10**30), ("by", 2.0**60),
        ("by", {"email": SECRET}),
        ("lead_time", "soon"), ("lead_time", -1), ("lead_time", 10**400),
        ("created_at", "soon"), ("created_at", True), ("created_at", "0001-01-01T00:00:00+14:00"),
    )),
    (task("c1", annotation(created_at="9999-01-01T00:00:00Z")), "future_annotation"),
    (task("c1", annotation(), annotation("Not toxic")), "contradictory_labels"),
    (
        task("c1", *(annotation(label, by, ground_truth=True) for by, label in enumerate(LABELS))),
        "contradictory_labels",
    ),
    (task("c0", text="another"), "different_copy"),
    (task("c0", annotation("Not toxic", by=3)), "different_copy"),
    (task("c0", annotation(by=3), annotation(by=4)), "different_copy"),
]  # fmt: skip


def test_tasks_are_refused_by_number_and_reason_and_the_rest_imported(engine, caplog):
    """A file with every fault: the numbers of the tasks are listed by reason."""
    expected: dict[str, list[int]] = {}
    for number, (_, reason) in enumerate(REFUSED, start=2):
        expected.setdefault(reason, []).append(number)
    wrong = [task_ for task_, _ in REFUSED]
    with caplog.at_level("INFO"):
        done = load(engine, task("c0", annotation(by=3)), *wrong, task("c9"))
    assert done.refused == expected
    assert expected.keys() <= set(REASONS)
    assert ("blank_text", 7, "task 11") in done.account.rows()
    assert done.account.rows()[-1] == ("Used records", 2, "")
    assert sorted(row["comment_id"] for row in rows(engine, review_item)) == ["c0", "c9"]
    assert SECRET not in caplog.text + str(done) + str(rows(engine, metadata.tables["event"]))


CONVERTED: list[tuple[dict[str, Any], str, object]] = [
    ({"comment_id": 17}, "comment_id", "17"),
    ({"comment_id": 17.0}, "comment_id", "17"),
    ({"text": 17}, "text", "17"),
    ({"language": float("nan")}, "shown", {}),
    ({"language": "pt-BR"}, "shown", {"language": "pt-BR"}),
    ({"platform": ""}, "shown", {}),
    ({"dt": "2026-01-02T23:30:00-02:00"}, "dt", date(2026, 1, 3)),
]


def test_values_are_converted_as_those_of_the_daily_job():
    for change, column, stored in CONVERTED:
        content = json.dumps([task(**{"comment_id": "c1"} | change)]).encode()
        (read,) = label_studio_tasks.read_tasks(content, day=None, first_day=DAY).tasks
        assert getattr(read, column) == stored


def test_an_annotation_that_is_exported_twice_is_one(engine):
    twice = [annotation(), annotation(), annotation(by={"id": 7}, created_at="2026-01-04T00:00Z")]
    twice += [annotation(by="8", lead_time=float("nan")), annotation(by=8.0, lead_time="2")]
    done = load(engine, task("c1", *twice))
    assert (done.labels, done.repeated, done.account.places["used"]) == (2, 3, 1)
    found = {row["pseudonym"] for row in rows(engine, moderator)}
    assert found == {"label-studio-7", "label-studio-8"}
    truths = [annotation(by=by, ground_truth=True) for by in (1, 2)]
    assert (load(engine, task("c2", *truths)).gold, len(rows(engine, decision))) == (1, 2)


def test_a_task_that_is_in_the_file_twice_is_one(engine):
    first, again = annotation(by=1), annotation(by=1, created_at=None, lead_time=9)
    tasks = [task("c1", first), task("c1", again), task("c1", first, again), task("c2"), task("c2")]
    done = load(engine, *tasks)
    assert (done.items, done.labels, done.refused) == (2, 1, {})
    assert done.account == Account(read=5, places=Counter(used=2, merged=3))
    assert load(engine, *tasks).account == done.account


def test_a_valid_task_counts_where_an_earlier_copy_is_refused(engine):
    tasks = [task("c1", annotation(SECRET)), task("c1", annotation()), task("c2", text="caf?")]
    content = json.dumps(tasks).encode().replace(b"caf?", b"caf\xe9")  # bytes that are no text
    done = import_tasks(engine, content, first_day=DAY)
    assert done.refused == {"malformed_annotation": [1], "undecodable_text": [3]}
    assert (done.items, done.labels) == (1, 1)


BROKEN = [wrong for wrong, reason in REFUSED if reason != "different_copy" and wrong != "x"]
MADE = st.builds(
    task,
    st.sampled_from(["c1", "c2", "c3"]),
    text=st.sampled_from(["one", "two"]),
    language=st.sampled_from([None, "de", float("nan")]),
)


def is_made(value: Any) -> bool:
    data = value.get("data") if isinstance(value, dict) else None
    return isinstance(data, dict) and data.get("text") in ("one", "two")


@given(st.lists(MADE | st.sampled_from(BROKEN) | st.integers() | st.none(), max_size=12))
def test_every_task_of_a_file_is_accounted_for(values):
    file = label_studio_tasks.read_tasks(json.dumps(values).encode(), day=None, first_day=DAY)
    places = file.close().places
    assert places.total() == len(values)
    valid = {n: value for n, value in enumerate(values, 1) if is_made(value)}
    assert {task.number for task in file.tasks} <= set(valid)
    for task_ in file.tasks:
        data = valid[task_.number]["data"]
        assert (task_.comment_id, task_.text) == (data["comment_id"], data["text"])
    first = {value["data"]["comment_id"]: n for n, value in reversed(valid.items())}
    assert {task_.comment_id: task_.number for task_ in file.tasks} == first


def test_what_is_no_list_of_tasks_is_refused(engine):
    number = b"[" + b"1" * 5_000 + b"]"
    for content in (b"", b"{}", b"x", b"\xff\xfe", deep(100_000), number):
        with pytest.raises(QueueError, match="list of tasks"):
            import_tasks(engine, content, first_day=DAY)
    minimal = {"id": 1, "text": SECRET, "toxicity": "Toxic", "annotator": 1, "annotation_id": 1}
    with pytest.raises(QueueError, match="is JSON-MIN of Label Studio; export the tasks as JSON"):
        load(engine, minimal, minimal)


def test_a_task_with_a_key_twice_is_refused(engine):
    for part, twice, reason in (
        ('"text":', '"text": "another", "text" :', "malformed_record"),
        ('"data":', '"data" : {}, "data":', "malformed_record"),
        ('"completed_by":', '"completed_by": 4, "completed_by":', "malformed_annotation"),
        ('"choices":', '"choices": ["Toxic"], "choices" :', "malformed_annotation"),
        ('"type":', '"type": "rating", "type":', "malformed_annotation"),
    ):
        content = json.dumps([task("c1", annotation()), task("c2")]).replace(part, twice, 1)
        done = import_tasks(engine, content.encode(), first_day=DAY)
        assert (done.refused, done.labels) == ({reason: [1]}, 0), part


def test_completions_of_old_versions_are_annotations(engine):
    old = task("c1", annotation(by=3))
    old["completions"] = old.pop("annotations")
    assert load(engine, old).labels == 1


def test_a_deep_task_is_read_or_refused(engine):
    one = json.dumps(task()).encode()
    for levels in range(900, 1_000, 7):
        content = f'[{{"data": {{"text": {deep(levels).decode()}}}}}]'.encode()
        with contextlib.suppress(QueueError):
            done = import_tasks(engine, content, first_day=DAY)
            assert done.refused == {"malformed_record": [1]}
    with pytest.raises(QueueError, match="not a JSON list of tasks"):
        import_tasks(engine, b"[" + one[:-1] + b', "meta": ' + deep(5_000) + b"}]", first_day=DAY)


def test_a_file_that_is_too_large_is_refused(engine, monkeypatch):
    monkeypatch.setattr(label_studio_tasks, "LARGEST_FILE", 1_000_000)
    with pytest.raises(QueueError, match="larger than 1 MB"):
        import_tasks(engine, (b" " * 1_000 for _ in range(1_001)), first_day=DAY)


def test_another_label_or_text_than_before_is_refused(engine):
    load(engine, task("c1", annotation()))
    before = everything(engine)
    more = [annotation("Not toxic", by=9), annotation(by=9, ground_truth=True)]
    done = load(engine, task("c1", annotation("Not toxic"), *more))
    assert done.refused == {"other_label": [1]}
    assert load(engine, task("c1", text="something else")).refused == {"other_text": [1]}
    assert everything(engine) == before


def test_an_account_that_can_log_in_takes_no_labels(engine):
    load(engine, task("c1", annotation()))
    execute(engine, "UPDATE moderator SET disabled_at = NULL")
    with pytest.raises(QueueError, match=r"label-studio-7 .* is enabled; disable it"):
        load(engine, task("c2", annotation()))


def exported(engine: Engine, **chosen: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(b"".join(export_tasks(engine, **chosen)))
    return found


def test_an_export_holds_the_labels_that_stand(engine, ann, ben, fill):
    assert exported(engine) == []
    fill(3)
    decide_all(engine, [ann, ben])
    undo(engine, moderator_id=ben.id, decision_id=2, idempotency_key="u")
    first, second, third = exported(engine)
    assert first["data"] == {
        "text": "invented text of c0", "parent_text": "", "comment_id": "c0", "dt": "2026-01-01",
        **{column.name: None for column in shown()},
    }  # fmt: skip
    (result,) = first["annotations"]
    assert result["completed_by"] == ann.id
    assert result["result"][0]["value"] == {"choices": ["Not toxic"]}
    assert result["lead_time"] >= 0
    assert datetime.fromisoformat(result["created_at"]).tzinfo is not None
    assert second["annotations"] == []
    assert len(third["annotations"]) == 1


def test_kinds_are_chosen(engine, fill, new_item):
    fill(2)
    intake.enqueue(engine, [new_item("g", kind="gold")], DAY, kinds=["gold"])

    def ids(**chosen: Any) -> list[str]:
        return [item["data"]["comment_id"] for item in exported(engine, **chosen)]

    assert ids() == ["c0", "c1"]
    assert ids(kinds=["gold"]) == ["g"]


def test_what_was_exported_can_be_imported(engine, ann, new_item, day):
    hostile = '</script>\u2028\u202e"\\ {{7*7}} =1+1 😀\x01\r\n'
    texts = ("one", "two", "three", hostile)
    intake.enqueue(engine, [new_item(f"c{n}", n, text=words) for n, words in enumerate(texts)], day)
    decide_all(engine, [ann])
    content = b"".join(export_tasks(engine))
    done = import_tasks(engine, [content[:100], content[100:]], first_day=DAY)
    assert (done.items, done.labels) == (4, 4)
    assert [row["text"] for row in rows(engine, review_item)].count(hostile) == 2
    (mine,) = labels.current_labels(engine, DAY)
    (theirs,) = labels.current_labels(engine, DAY, kind="imported")
    for column in ("comment_id", "label", "decided_at", "seconds"):
        assert mine.column(column).to_pylist() == theirs.column(column).to_pylist()
    assert set(mine.column("moderator").to_pylist()) == {"ann"}
    assert set(theirs.column("moderator").to_pylist()) == {f"label-studio-{ann.id}"}


def test_memory_does_not_grow_with_the_export(engine, monkeypatch):
    monkeypatch.setattr(label_studio, "_BATCH", 100)

    def peak(n: int) -> int:
        load(engine, *(task(f"{n} {i}", text="x" * 1_000) for i in range(n)))
        tracemalloc.start()
        try:
            assert sum(len(part) for part in export_tasks(engine)) > 1_000 * n
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    small = peak(200)
    assert peak(1_200) < 2 * small


def test_the_labelling_configuration_offers_the_labels():
    docs = (Path(__file__).parents[3] / "docs" / "moderators.md").read_text("utf-8")
    view = ET.fromstring(docs.partition("```xml\n")[2].partition("```")[0])
    assert [choice.get("value") for choice in view.iter("Choice")] == list(LABELS)
    assert {item.get("value") for item in view.iter("Text")} == {"$text", "$parent_text"}
    assert view.find("Choices").get("toName") == "text"  # type: ignore[union-attr]


def test_an_import_is_on_record(engine, ann):
    load(engine, task("c1", annotation(), annotation()), task("c2", text=""), actor_id=ann.id)
    with engine.connect() as connection:
        found = connection.execute(
            text("SELECT actor_id, details FROM event WHERE action = 'import_label_studio'")
        ).one()
        assert connection.scalar(select(func.count()).select_from(decision)) == 1
    assert found.actor_id == ann.id
    assert (found.details["labels"], found.details["repeated"]) == (1, 1)
    assert (found.details["read"], found.details["tasks"]) == (2, {"used": 1, "blank_text": 1})

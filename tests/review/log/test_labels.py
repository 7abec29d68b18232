from collections.abc import Callable
from datetime import date

import pyarrow as pa

from modwatch.data.lake.schemas import LABELS
from modwatch.review.log import labels
from modwatch.review.queue import intake
from review.labelling import decide_all, held, skip

Fill = Callable[[int], None]


def test_standing_labels_come_as_batches(engine, ann, ben, fill, day):
    fill(5)
    decide_all(engine, [ann, ben])
    batches = list(labels.current_labels(engine, day))
    table = pa.Table.from_batches(batches, schema=LABELS)
    assert table.column("comment_id").to_pylist() == ["c0", "c1", "c2", "c3", "c4"]
    assert table.column("label").to_pylist() == [0, 1, 0, 1, 0]
    assert table.column("moderator").to_pylist() == ["ann", "ben", "ann", "ben", "ann"]
    assert list(labels.current_labels(engine, date(2026, 1, 2))) == []


def test_skips_and_items_of_other_kinds_are_no_labels(engine, ann, fill, day, new_item):
    fill(1)
    lease = held(engine, ann)
    skip(engine, ann, lease)
    gold = new_item("c0", kind="gold")
    intake.enqueue(engine, [gold], day, kinds=["gold"])  # type: ignore[list-item]
    decide_all(engine, [ann])
    assert list(labels.current_labels(engine, day)) == []

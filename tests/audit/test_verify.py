"""A finished audit is checked from its files alone: whatever is changed in them is found."""

import dataclasses
import json
import random

import numpy as np
import pytest

from audit.making import Auditor, finished, make_comments, make_plan
from modwatch.audit import evidence, files
from modwatch.audit.verify import planned_sizes, redraw, verify


@pytest.fixture(scope="module")
def done() -> Auditor:
    return finished()


@pytest.fixture(scope="module")
def adaptive() -> Auditor:
    return finished(stages=2)


def resealed(auditor: Auditor, name: str, content: bytes) -> dict[str, bytes]:
    """Return the folder with a file changed, and a chain that was made anew to fit it."""
    folder = auditor.folder | {name: content}
    chain: list[evidence.Event] = []
    for event in auditor.chain:
        digests = {each: evidence.file_digest(folder[each]) for each in event.files}
        previous = chain[-1].digest if chain else evidence.START
        chain.append(dataclasses.replace(event, files=digests, previous=previous))
    return folder | {files.CHAIN: evidence.written(chain).encode()}


def test_an_audit_that_nobody_touched_is_right(done: Auditor, adaptive: Auditor) -> None:
    assert verify(done.folder) == []
    assert verify(adaptive.folder) == []
    assert json.loads(adaptive.folder[files.RESULT])["drawn"] == 600


def test_the_interval_holds_the_truth(done: Auditor, adaptive: Auditor) -> None:
    for auditor in (done, adaptive):
        figures = {
            each["metric"]: each for each in json.loads(auditor.folder[files.RESULT])["figures"]
        }
        recall = figures["recall"]
        assert recall["low"] <= auditor.comments.recall <= recall["high"]


def test_the_same_comments_are_drawn_again_from_the_scores_in_any_order(
    done: Auditor, adaptive: Auditor
) -> None:
    for auditor, stage in ((done, 1), (adaptive, 2)):
        parts = list(auditor.comments.parts)
        random.Random(3).shuffle(parts)
        sizes = planned_sizes(auditor.plan, auditor.folder, stage)
        again = redraw(auditor.plan, parts, sizes)
        # The second stage goes on where the first ended.
        assert again == auditor.folder[files.sample_file(stage)]


def test_the_first_stage_is_part_of_the_second(adaptive: Auditor) -> None:
    first, second = (
        {each.comment_id for each in files.read_sample(adaptive.folder[files.sample_file(stage)])}
        for stage in (1, 2)
    )
    assert first < second


@pytest.mark.parametrize("name", ["plan.json", "sample-1.csv", "labels-1.csv", "result.json"])
def test_a_changed_file_is_named(done: Auditor, name: str) -> None:
    changed = bytearray(done.folder[name])
    changed[len(changed) // 2] ^= 1
    assert verify(done.folder | {name: bytes(changed)}) == [
        f"{name} was changed after it was sealed"
    ]
    missing = {each: content for each, content in done.folder.items() if each != name}
    assert verify(missing) == [f"{name} is missing"]


@pytest.mark.parametrize("position", range(7))
def test_a_changed_or_missing_event_is_found(done: Auditor, position: int) -> None:
    lines = done.folder[files.CHAIN].decode().splitlines(keepends=True)
    forged = [*lines]
    forged[position] = forged[position].replace('"eva"', '"eve"')
    assert verify(done.folder | {files.CHAIN: "".join(forged).encode()})
    if position < len(lines) - 1:  # a chain cut at its end is that of an unfinished audit
        del lines[position]
        assert verify(done.folder | {files.CHAIN: "".join(lines).encode()})


def test_a_label_changed_together_with_the_chain_no_longer_gives_the_result(done: Auditor) -> None:
    labels = files.read_labels(done.folder["labels-1.csv"])
    single = next(
        each for each in labels if [e.comment_id for e in labels].count(each.comment_id) == 1
    )
    turned = [
        dataclasses.replace(each, label=1 - each.label) if each == single else each
        for each in labels
    ]
    folder = resealed(done, "labels-1.csv", files.write_labels(turned))
    assert verify(folder) == ["result.json does not follow from the sample and the labels"]


def test_a_comment_put_in_by_hand_does_not_have_the_right_number(done: Auditor) -> None:
    drawn = list(files.read_sample(done.folder["sample-1.csv"]))
    drawn[5] = dataclasses.replace(drawn[5], comment_id="c-of-my-choice")
    rows = files.write_sample(drawn)
    problems = verify(resealed(done, "sample-1.csv", rows))
    assert "does not have the number that the plan gives it" in problems[0]


def test_a_comment_left_out_is_missed(done: Auditor) -> None:
    drawn = list(files.read_sample(done.folder["sample-1.csv"]))
    problems = verify(resealed(done, "sample-1.csv", files.write_sample(drawn[:-1])))
    assert "as many comments of each stratum" in problems[0]


def test_another_seed_draws_others() -> None:
    comments = make_comments(2000)
    one, other = (make_plan(comments, 200, seed=seed) for seed in ("one", "other"))
    sizes = [stratum.labels for stratum in one.strata]
    first, second = (
        {each.comment_id for each in files.read_sample(redraw(plan, comments.parts, sizes))}
        for plan in (one, other)
    )
    assert len(first & second) < np.sqrt(len(first)) * 5


def test_garbage_is_refused_in_words() -> None:
    assert verify({}) == ["chain.jsonl is missing"]
    assert verify({files.CHAIN: b"\xff"}) == ["chain.jsonl is no text in UTF-8"]
    assert verify({files.CHAIN: b"{}\n"}) == ["line 1 of the chain is no event"]
    assert verify({files.CHAIN: b""}) == ["the chain is empty"]

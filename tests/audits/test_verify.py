"""A finished audit is checked from its files alone: whatever is changed in them is found."""

import json
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from audit_making import (
    NOW,
    Auditor,
    finished,
    make_comments,
    make_plan,
    outcomes_of,
)

from modwatch.audits import evidence, files
from modwatch.audits.verify import planned_sizes, read_evidence, verify
from modwatch.common.errors import AuditError
from modwatch.statistics.audit.draw import DrawnComment, Scored, draw
from modwatch.statistics.audit.labels import AuditLabel
from modwatch.statistics.audit.results import computed, to_json

Folder = dict[str, bytes]


@pytest.fixture(scope="module")
def done():
    return finished()


@pytest.fixture(scope="module")
def adaptive():
    return finished(stages=2)


def resealed(auditor: Auditor, changes: Mapping[str, bytes], *, result: bool = False) -> Folder:
    """Return the folder that a forger makes: files changed and hashes made anew, with the result
    when that is asked for.
    """
    folder = auditor.folder | changes
    if result:
        folder[files.RESULT] = to_json(computed(read_evidence(folder)))
    chain: list[evidence.Event] = []
    for event in auditor.chain:
        digests = {file: evidence.file_digest(folder[file]) for file in event.files}
        previous = chain[-1].digest if chain else evidence.START
        chain.append(replace(event, files=digests, previous=previous))
    return folder | {files.CHAIN: evidence.written(chain).encode()}


def rechained(auditor: Auditor, change: Callable[[list[evidence.Event]], object]) -> Folder:
    """Return the folder with another chain, whose hashes and positions were made anew."""
    events, chain = [*auditor.chain], list[evidence.Event]()
    change(events)
    for event in events:
        previous = chain[-1].digest if chain else evidence.START
        chain.append(replace(event, position=len(chain) + 1, previous=previous))
    return auditor.folder | {files.CHAIN: evidence.written(chain).encode()}


def changed(
    drawn: Sequence[DrawnComment], change: Callable[[DrawnComment], dict[str, Any]]
) -> bytes:
    """Return the file of a sample of which each comment was changed."""
    return files.write_sample([replace(comment, **change(comment)) for comment in drawn])


def sample(auditor: Auditor, stage: int = 1) -> list[DrawnComment]:
    return list(files.read_sample(auditor.folder[files.sample_file(stage)]))


def labels(auditor: Auditor, stage: int = 1) -> list[AuditLabel]:
    return files.read_labels(auditor.folder[files.labels_file(stage)])


def population(auditor: Auditor) -> dict[tuple[str, str, int], int]:
    return files.read_population(auditor.folder[files.population_file(1)])


def redraw(
    auditor: Auditor, sizes: Sequence[int], population: Iterable[Scored] | None = None
) -> bytes:
    return files.write_sample(redrawn(auditor, sizes, population))


def redrawn(
    auditor: Auditor, sizes: Sequence[int], population: Iterable[Scored] | None = None
) -> tuple[DrawnComment, ...]:
    """Return the sample of a stage with other sizes, or from other scores."""
    parts = auditor.comments.parts if population is None else population
    return draw(auditor.plan, parts, sizes, auditor.seed).comments


def relabelled(
    auditor: Auditor,
    stage: int,
    labels: Iterable[AuditLabel],
    drawn: Sequence[DrawnComment] | None = None,
) -> Folder:
    """Return the files of other labels of a stage, and of what became of the comments."""
    given = list(labels)
    outcomes = outcomes_of(drawn or sample(auditor, stage), given)
    return {
        files.labels_file(stage): files.write_labels(given),
        files.outcomes_file(stage): files.write_outcomes(outcomes),
    }


def test_an_audit_that_no_one_touched_is_right(done, adaptive):
    assert verify(done.folder) == []
    assert verify(adaptive.folder) == []
    assert json.loads(adaptive.folder[files.RESULT])["drawn"] == 600


def test_the_interval_holds_the_truth():
    auditor = finished(stages=2)
    assert verify(auditor.folder) == []
    figures = json.loads(auditor.folder[files.RESULT])["figures"]
    recall = next(figure for figure in figures if figure["metric"] == "recall")
    assert recall["low"] <= auditor.comments.recall <= recall["high"]


def test_the_same_comments_are_drawn_again_from_the_scores_in_any_order(done, adaptive):
    for auditor, stage in ((done, 1), (adaptive, 2)):
        parts = list(auditor.comments.parts)
        random.Random(3).shuffle(parts)
        sizes = planned_sizes(auditor.plan, auditor.folder, stage)
        again = redraw(auditor, sizes, parts)
        # The second stage goes on where the first ended.
        assert again == auditor.folder[files.sample_file(stage)]


def test_the_first_stage_is_part_of_the_second(adaptive):
    first, second = ({item.comment_id for item in sample(adaptive, stage)} for stage in (1, 2))
    assert first < second


@pytest.mark.parametrize("name", ["plan.json", "sample-1.csv", "labels-1.csv", "result.json"])
def test_a_changed_file_is_named(done, name):
    changed = bytearray(done.folder[name])
    changed[len(changed) // 2] ^= 1
    assert verify(done.folder | {name: bytes(changed)}) == [
        f"{name} was changed after it was sealed"
    ]
    missing = {item: content for item, content in done.folder.items() if item != name}
    assert verify(missing) == [f"{name} is missing"]


def test_a_changed_or_missing_event_is_found(done):
    """A chain that is cut at its end is that of an unfinished audit."""
    lines = done.folder[files.CHAIN].splitlines(keepends=True)
    changed = lines[3].replace(b'"actor":"', b'"actor":"x')
    for forged in ([*lines[:3], changed, *lines[4:]], [*lines[:3], *lines[4:]]):
        assert verify(done.folder | {files.CHAIN: b"".join(forged)})


def turned(auditor: Auditor) -> bytes:
    """Return the labels, of which one that stands alone is turned round."""
    there = labels(auditor)
    ids = [item.comment_id for item in there]
    single = next(item for item in there if ids.count(item.comment_id) == 1)
    other = replace(single, label=1 - single.label)
    return files.write_labels([other if item == single else item for item in there])


def test_a_label_changed_together_with_the_chain_no_longer_gives_the_result(done):
    folder = resealed(done, {"labels-1.csv": turned(done)})
    assert verify(folder) == ["result.json does not follow from the sample and the labels"]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda drawn: drawn[:-1], "the planned number of comments of each stratum"),
        (lambda drawn: [], "the planned number of comments of each stratum"),
        (lambda drawn: [drawn[0], *drawn[:-1]], "contains a comment twice"),
        (lambda drawn: drawn[::-1], "is not sorted by random number"),
        (lambda drawn: [replace(drawn[0], comment_id="mine"), *drawn[1:]],
         "with another random number than the plan gives it"),
        (lambda drawn: [replace(drawn[0], key=drawn[0].key - 1), *drawn[1:]],
         "with another random number than the plan gives it"),
        (lambda drawn: [replace(drawn[0], day=NOW.date()), *drawn[1:]],
         "a comment of 2026-02-01, which is not in the plan"),
        *((lambda drawn, n=n: [replace(drawn[0], stratum=n), *drawn[1:]],
           "a stratum that is not in the plan") for n in (-1, 99)),
        *((lambda drawn, n=n: [replace(drawn[0], key=n), *drawn[1:]],
           "an invalid random number") for n in (-1, 2**64)),
        *((lambda drawn, n=n: [*drawn[:-1], replace(drawn[-1], score=n)],
           "whose score is outside its stratum")
          for n in (-1e-9, 1.1, float("nan"))),
    ],
)  # fmt: skip
def test_a_sample_that_the_plan_does_not_draw_is_found(done, change, why):
    content = files.write_sample(change(sample(done)))
    problems = verify(resealed(done, {"sample-1.csv": content}))
    assert any(problem.startswith("sample-1.csv ") and why in problem for problem in problems), (
        problems
    )


def test_a_score_on_the_other_side_of_the_threshold_or_an_edge_is_found(done):
    threshold, numbers = done.comments.threshold, done.plan.of_side("unflagged")
    for number, score in (
        (done.plan.of_side("flagged")[0], threshold),
        (numbers[-1], float(np.nextafter(np.float32(threshold), np.float32(1)))),
        (numbers[1], float(np.nextafter(done.plan.strata[numbers[1]].lower, 0))),
        (numbers[1], done.plan.strata[numbers[1]].upper),
    ):
        content = changed(
            sample(done),
            lambda item, n=number, s=score: {"score": s} if item.stratum == n else {},
        )
        problems = verify(resealed(done, {"sample-1.csv": content}))
        assert problems
        assert all("whose score is outside its stratum" in problem for problem in problems)


def carried_out_with(auditor: Auditor, drawn: Sequence[DrawnComment]) -> Folder:
    """Return the files of an audit that was carried out with another sample."""
    other = replace(auditor, folder={}, chain=[])
    other.begin()
    other.draw_and_label(1, files.write_sample(drawn))
    other.finish()
    return other.folder


def test_comments_chosen_among_twice_as_many_are_found(done):
    """Who draws more and keeps those that please has larger numbers than chance gives."""
    sizes = [min(2 * row.labels, row.population) for row in done.plan.strata]
    twice, kept = redrawn(done, sizes), list[DrawnComment]()
    for number, planned in enumerate(done.plan.strata):
        mine = [row for row in twice if row.stratum == number]
        kept += random.Random(number).sample(mine, planned.labels)
    kept.sort(key=lambda item: item.key)
    assert verify(carried_out_with(done, kept)) == [
        "sample-1.csv does not contain the comments with the smallest random numbers: some "
        "were left out or added"
    ]


def test_what_only_a_redraw_finds(done):
    """The files alone do not tell of one comment left out, or of scores within the stratum."""
    sizes = planned_sizes(done.plan, done.folder, 1)
    more = [size + (number == 5) for number, size in enumerate(sizes)]
    drawn = list(redrawn(done, more))
    drawn.remove(next(comment for comment in drawn if comment.stratum == 5))
    moved = changed(
        sample(done), lambda item: {"score": done.plan.strata[item.stratum].lower or item.score}
    )
    for folder in (
        carried_out_with(done, drawn),
        resealed(done, {"sample-1.csv": moved}, result=True),
    ):
        assert verify(folder) == []
        assert redraw(done, sizes) != folder["sample-1.csv"]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda whole: {key: 2 * size for key, size in whole.items()}, "does not match the sample"),
        (lambda whole: {key: size // 20 + 1 for key, size in whole.items()}, "fewer comments with"),
        (lambda whole: dict.fromkeys(whole, 5000), "a value with more comments than the stratum"),
        (lambda whole: dict.fromkeys(whole, 0), "than the stratum has, or none"),
        (lambda whole: {}, "fewer comments with or without a value"),
        (None, "fewer comments with or without a value than were drawn"),  # all of the stratum
        (lambda whole: whole | {("language", "eo", 99): 5}, "a stratum that is not in the plan"),
        (lambda whole: whole | {("language", "eo", 4): 500}, "does not match the sample"),
    ],
)
def test_numbers_of_comments_that_cannot_be_are_found(done, change, why):
    whole = {key: done.plan.strata[key[2]].population for key in population(done)}
    content = files.write_population(change(population(done)) if change else whole)
    problems = verify(resealed(done, {"population-1.csv": content}))
    assert len(problems) == 1
    assert problems[0].startswith("population-1.csv ")
    assert why in problems[0]


def test_a_stage_that_does_not_go_on_where_the_first_ended_is_found(adaptive):
    first, second = sample(adaptive, 1), sample(adaptive, 2)
    beyond = redrawn(
        adaptive, [size + 1 for size in planned_sizes(adaptive.plan, adaptive.folder, 2)]
    )
    gone = first[0]
    [new] = [item for item in beyond if item.stratum == gone.stratum and item not in second]
    rest = sorted([*(item for item in second if item != gone), new], key=lambda item: item.key)
    kept = [label for label in labels(adaptive, 2) if label.comment_id != gone.comment_id]
    problems = verify(
        resealed(
            adaptive,
            {"sample-2.csv": files.write_sample(rest), **relabelled(adaptive, 2, kept, rest)},
        )
    )
    assert problems == [
        f"sample-2.csv does not continue the previous stage in stratum {gone.stratum}",
        "labels-2.csv does not contain all labels of the previous stage",
        "outcomes-2.csv contains undecided comments, although the labelling was not stopped",
    ]


def test_the_second_stage_is_allotted_by_the_labels_of_the_first(adaptive):
    forged = [
        replace(item, label=int(item.comment_id.endswith("7"))) for item in labels(adaptive, 1)
    ]
    problems = verify(resealed(adaptive, {"labels-1.csv": files.write_labels(forged)}))
    assert "sample-2.csv does not contain the planned number of comments of each" in problems[0]


def test_the_first_stage_keeps_its_labels(adaptive):
    first = labels(adaptive, 1)[0]
    later = labels(adaptive, 2)
    left = [item for item in later if item != first]
    turned = [replace(item, label=1 - item.label) for item in later]
    lacks = "labels-2.csv does not contain all labels of the previous stage"
    assert verify(resealed(adaptive, relabelled(adaptive, 2, turned))) == [lacks]
    # What became of the comment does not fit either.
    counts = "outcomes-2.csv counts other labels than were sealed: labels were left out or added"
    fewer = {"labels-2.csv": files.write_labels(left)}
    assert verify(resealed(adaptive, fewer)) == [lacks, counts]


def test_both_stages_stand_for_the_same_comments(adaptive):
    whole = population(adaptive)
    whole[next(iter(whole))] += 1
    problems = verify(resealed(adaptive, {"population-2.csv": files.write_population(whole)}))
    assert problems == ["population-2.csv differs from that of the previous stage"]


@pytest.mark.parametrize(
    ("decided_at", "why"),
    [
        (NOW - timedelta(minutes=6), "contains a label of 2026-01-05 from before the comment was"),
        (NOW + timedelta(minutes=6), "contains a label of 2026-01-05 from after the labels were"),
        (NOW + timedelta(minutes=4), None),
        ("2026-02-01T00:00:00", "A time is not in ISO 8601"),
    ],
)
def test_labels_are_given_between_draw_and_sealing(done, decided_at, why):
    at = decided_at if isinstance(decided_at, str) else decided_at.isoformat()
    content = files.write_labels(replace(label, decided_at=at) for label in labels(done))
    problems = verify(resealed(done, {"labels-1.csv": content}, result=True))
    assert len(problems) == (why is not None)
    assert why is None or why in problems[0]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"comment_id": "other"}, "refers to a comment that was not drawn"),
        ({"label": 2}, "is neither 0 nor 1"),
        ({"action": "skip"}, "has the action 'skip'"),
    ],
)
def test_labels_that_cannot_be_are_found(done, change, why):
    first, *rest = labels(done)
    content = files.write_labels([replace(first, **change), *rest])  # type: ignore[arg-type]
    problems = verify(resealed(done, {"labels-1.csv": content}))
    assert len(problems) == 1
    assert why in problems[0]


def test_files_that_no_step_sealed_are_named(done):
    assert verify(done.folder | {"sample-2.csv": done.folder["sample-1.csv"]}) == [
        "sample-2.csv was not sealed by any step"
    ]
    unsealed = rechained(done, lambda chain: chain.__setitem__(3, replace(chain[3], files={})))
    assert verify(unsealed) == [
        "labels-1.csv was not sealed when the audit was labelled",
        "outcomes-1.csv was not sealed when the audit was labelled",
        "labels-1.csv was not sealed by any step",
        "outcomes-1.csv was not sealed by any step",
    ]
    without_report = rechained(
        done, lambda chain: chain.__setitem__(6, replace(chain[6], files={}))
    )
    del without_report[files.REPORT], without_report[files.PUBLICATION]
    assert verify(without_report) == [
        f"{name} was not sealed when the audit was published"
        for name in (files.REPORT, files.PUBLICATION)
    ]


@pytest.mark.parametrize(
    ("steps", "names"),
    [
        (2, ["population-1.csv", "sample-1.csv"]),
        (3, ["labels-1.csv", "outcomes-1.csv"]),
        (4, ["population-2.csv", "sample-2.csv"]),
        (5, ["labels-2.csv", "outcomes-2.csv"]),
        (6, ["result.json"]),
        (8, ["dsa-automated-means.csv", "dsa-qualitative.csv", "publication.json", "report.html"]),
    ],
)
def test_a_step_that_was_begun_and_not_finished_is_to_be_taken_again(adaptive, steps, names):
    folder = rechained(adaptive, lambda chain: chain.__delitem__(slice(steps, None)))
    sealed = evidence.sealed_files(adaptive.chain[:steps]).keys()
    begun = dict.fromkeys(names, b"")
    assert verify({name: folder[name] for name in {*sealed, files.CHAIN}} | begun) == [
        f"{name} is not sealed: its step was started and not finished; run it again"
        for name in names
    ]


def test_a_file_is_sealed_once_and_by_its_own_step(done):
    def swap(chain: list[evidence.Event]) -> None:
        chain[3], chain[4] = (
            replace(one, files=other.files)
            for one, other in ((chain[3], chain[4]), (chain[4], chain[3]))
        )

    assert verify(rechained(done, swap)) == [
        "labels-1.csv was not sealed when the audit was labelled",
        "outcomes-1.csv was not sealed when the audit was labelled",
        "result.json was not sealed when the audit was estimated",
    ]

    def again(chain: list[evidence.Event]) -> None:
        chain[4] = replace(chain[4], files={**chain[3].files, **chain[4].files})

    assert verify(rechained(done, again)) == [
        f"{name} was sealed more than once" for name in ("labels-1.csv", "outcomes-1.csv")
    ]


def stopped(*, stop: bool) -> Auditor:
    """Return an audit of two planned stages that was finished after the first."""
    made = begun(second_stage_labels=200, first_stage_share=0.6)
    made.begin()
    made.draw_and_label(1, stop=stop)
    made.finish()
    return made


def begun(**changes: object) -> Auditor:
    comments = make_comments()
    return Auditor(comments=comments, plan=make_plan(comments, **changes))


def test_a_stopped_audit_is_estimated_from_its_first_stage(done):
    made = stopped(stop=True)
    assert verify(made.folder) == []
    result, whole = (json.loads(value.folder[files.RESULT]) for value in (made, done))
    assert (result["stages"], result["stages_planned"]) == (1, 2)
    assert (whole["stages"], whole["stages_planned"]) == (1, 1)
    # As an audit of one stage would be, had it drawn the same comments.
    one = replace(made.plan, second_stage_labels=0, first_stage_share=1.0)
    alone = replace(read_evidence(made.folder), plan=one)
    assert computed(alone)["figures"] == result["figures"]
    with pytest.raises(
        AuditError, match="1 of 2 stages are labelled, and the labelling was not stopped"
    ):
        stopped(stop=False)
    unsaid = rechained(made, lambda chain: chain.__setitem__(3, replace(chain[3], facts={})))
    assert verify(unsaid) == ["the audit was estimated after 1 of 2 stages"]


def test_an_audit_is_drawn_as_often_as_planned(done, adaptive):
    def without_second(chain: list[evidence.Event]) -> None:
        del chain[4:6]

    folder = rechained(adaptive, without_second)
    for name in ("sample-2.csv", "population-2.csv", "labels-2.csv", "outcomes-2.csv"):
        del folder[name]
    assert verify(folder) == ["the audit was estimated after 1 of 2 stages"]
    with pytest.raises(
        AuditError, match="1 of 2 stages are labelled, and the labelling was not stopped"
    ):
        read_evidence(folder)

    more = {
        f"{name}-2.csv": done.folder[f"{name}-1.csv"]
        for name in ("sample", "population", "labels", "outcomes")
    }
    sealed = {name: evidence.file_digest(content) for name, content in more.items()}

    def with_second(chain: list[evidence.Event]) -> None:
        drawn = {name: sealed[name] for name in ("sample-2.csv", "population-2.csv")}
        chain[4:4] = [
            replace(chain[2], files=drawn),
            replace(
                chain[3], files={name: sealed[name] for name in ("labels-2.csv", "outcomes-2.csv")}
            ),
        ]

    assert verify(rechained(done, with_second) | more) == [
        "the audit was drawn 2 times; 1 were planned"
    ]


def test_an_unfinished_audit_is_checked_as_far_as_it_went(adaptive):
    """After each step, a file changed by a forger who makes the chain anew is found."""
    for length in (1, 3, 4, 6, len(adaptive.chain)):
        there = {name for event in adaptive.chain[:length] for name in event.files}
        folder = {name: adaptive.folder[name] for name in there}
        half = replace(adaptive, folder=folder, chain=adaptive.chain[:length])
        folder[files.CHAIN] = evidence.written(half.chain).encode()
        assert verify(folder) == []
        for name in there - {files.RESULT, files.REPORT, files.PUBLICATION}:
            assert verify(resealed(half, {name: folder[name][:-3]}))


def test_another_plan_than_the_one_that_was_drawn_from_is_found(done):
    other = replace(done.plan, deadline_days=3)
    problems = verify(resealed(done, {"plan.json": other.to_json().encode()}))
    assert any(
        "with another random number than the plan gives it" in problem for problem in problems
    )
    named = replace(done.plan, audit="other")
    assert verify(resealed(done, {"plan.json": named.to_json().encode()})) == [
        "the plan is of another audit than the chain"
    ]


def edited_result(done: Auditor, change: Callable[[dict[str, Any]], object]) -> Folder:
    fields = json.loads(done.folder[files.RESULT])
    change(fields)
    return resealed(done, {files.RESULT: to_json(fields)})


def test_the_last_digits_of_a_result_may_differ_by_the_processor(done):
    def scaled(factor: float) -> Callable[[dict[str, Any]], object]:
        def change(fields: dict[str, Any]) -> None:
            for figure in fields["figures"]:
                if figure["high"] is not None:
                    figure["high"] *= factor

        return change

    wrong = ["result.json does not follow from the sample and the labels"]
    assert verify(edited_result(done, scaled(1 + 1e-9))) == []
    assert verify(edited_result(done, scaled(1 - 1e-4))) == wrong
    for change in (
        lambda fields: fields.update(labelled=fields["labelled"] + 1),
        lambda fields: fields.update(labelled=float(fields["labelled"])),
        lambda fields: fields.update(more=1),
        lambda fields: fields.pop("domains"),
        lambda fields: fields["domains"].pop(),
        lambda fields: fields["figures"][0].update(status="insufficient"),
        lambda fields: fields["figures"][0].update(value=None),
        lambda fields: fields.update(figures={}),
    ):
        assert verify(edited_result(done, change)) == wrong
    text = done.folder[files.RESULT]
    for content in (b"", b"{", b"\xff", b"NaN", b"[" * 100_000, text[:-1], text + b"\n",
                    text.replace(b"\n", b"\r\n")):  # fmt: skip
        assert verify(resealed(done, {files.RESULT: content})) == wrong


@pytest.mark.parametrize(
    "name", ["plan.json", "sample-1.csv", "population-1.csv", "labels-1.csv", "labels-2.csv"]
)
def test_garbage_in_any_file_is_reported_in_words(adaptive, name):
    for garbage in (b"", b"\xff", b"{}", b"[" * 100_000, b'"'):
        [problem, *_] = verify(resealed(adaptive, {name: garbage}))
        assert name.partition("-")[0].replace("plan.json", "plan") in problem


def test_garbage_is_refused_in_words():
    assert verify({}) == ["chain.jsonl is missing"]
    assert verify({files.CHAIN: b"\xff"}) == ["chain.jsonl is not UTF-8"]
    assert verify({files.CHAIN: b"{}\n"}) == ["line 1 of the chain is not an entry"]
    assert verify({files.CHAIN: b""}) == ["the chain is empty"]

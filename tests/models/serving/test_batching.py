"""Common batches: order, turns, refusals, failures, cancellations."""

import asyncio
import threading
from collections.abc import Coroutine, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from model_servers import LengthScorer

from modwatch.common.errors import ModelError
from modwatch.models.scoring.scorer import Predictions
from modwatch.models.serving import batching
from modwatch.models.serving.batching import Batcher, OnBatch, OverloadedError


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(asyncio.wait_for(work, timeout=60))


def lengths(texts: list[str]) -> list[float]:
    return pytest.approx([len(text) / 1_000 for text in texts])  # type: ignore[return-value]


def batcher_of(
    scorer: LengthScorer,
    *,
    most_waiting: int = 10_000,
    most_characters: int = 10_000_000,
    report: OnBatch = lambda *_: None,
) -> Batcher:
    return Batcher(
        scorer, most_waiting=most_waiting, most_characters=most_characters, report=report
    )


async def held_up(
    texts: list[str], **limits: int
) -> tuple[LengthScorer, Batcher, asyncio.Task[Predictions]]:
    """Return a scorer that waits for `go` with the first of `texts`, and the task of these."""
    scorer = LengthScorer("1")
    batcher = batcher_of(scorer, **limits)
    scorer.go.clear()
    task = asyncio.create_task(batcher.score(texts))
    await asyncio.to_thread(scorer.begun.wait, 30)
    return scorer, batcher, task


def test_requests_share_a_batch_and_get_their_own_texts_back():
    async def work() -> None:
        scorer, batcher, first = await held_up(["first"], most_waiting=1_000)
        requests = [["a" * k] * k for k in range(1, 6)]
        tasks = [asyncio.create_task(batcher.score(request)) for request in requests]
        await asyncio.sleep(0)
        assert batcher.waiting == 15
        scorer.go.set()
        found = await asyncio.gather(first, *tasks)
        assert found[0].prob.tolist() == lengths(["first"])
        for texts, item in zip(requests, found[1:], strict=True):
            assert item.prob.tolist() == lengths(texts)
            assert item.further["model_variance"].tolist() == pytest.approx(item.prob / 10)
            assert item.further["mutual_information"].tolist() == pytest.approx(item.prob / 5)
        assert len(scorer.batches) == 2
        assert batcher.waiting == 0

    run(work())


def test_a_large_request_does_not_hold_up_a_small_one():
    async def work() -> None:
        scorer, batcher, large = await held_up(["x" * 500] * 5_000, most_waiting=10_000)
        small = asyncio.create_task(batcher.score(["y"]))
        await asyncio.sleep(0)
        scorer.go.set()
        assert (await small).prob.tolist() == lengths(["y"])
        assert not large.done()
        assert len(scorer.batches) <= 3
        assert (await large).prob.tolist() == lengths(["x" * 500] * 5_000)

    run(work())


def test_no_texts_no_batch():
    async def work() -> None:
        batcher = batcher_of(LengthScorer("1"), most_waiting=10)
        assert (await batcher.score([])).prob.tolist() == []
        await batcher.close()

    run(work())


def test_too_many_waiting_texts_are_refused_until_they_are_scored():
    async def work() -> None:
        scorer, batcher, first = await held_up(["a"], most_waiting=10)
        second = asyncio.create_task(batcher.score(["b"] * 8))
        await asyncio.sleep(0)
        with pytest.raises(OverloadedError) as refused:
            await batcher.score(["c"] * 3)
        assert refused.value.seconds >= 1
        scorer.go.set()
        await asyncio.gather(first, second)
        assert len((await batcher.score(["c"] * 3)).prob) == 3

    run(work())


class ClockedScorer(LengthScorer):
    """A batch takes 50 ms, and half a millisecond more for each text."""

    clock = 0.0

    def score(self, texts: Sequence[str]) -> Predictions:
        found = super().score(texts)
        self.clock += 0.05 + 0.0005 * len(texts)
        return found


def test_the_time_to_wait_is_that_of_the_waiting_texts(monkeypatch):
    scorer = ClockedScorer("1")
    monkeypatch.setattr(batching, "time", SimpleNamespace(perf_counter=lambda: scorer.clock))

    async def refused(batcher: Batcher) -> int:
        scorer.begun.clear()
        scorer.go.clear()
        running = asyncio.create_task(batcher.score(["a" * 60] * 20_001))
        await asyncio.to_thread(scorer.begun.wait, 30)
        with pytest.raises(OverloadedError) as overloaded:
            await batcher.score(["b"])
        scorer.go.set()
        await running
        return overloaded.value.seconds

    async def work() -> None:
        batcher = batcher_of(scorer, most_waiting=18_000, most_characters=10**9)
        for _ in range(50):  # 20 texts a second: each is alone in its batch
            await batcher.score(["a" * 60])
        assert await refused(batcher) == 10  # no batch has told
        for _ in range(50):
            await batcher.score(["a" * 60])
        began = scorer.clock
        waited = await refused(batcher)
        assert waited == pytest.approx(scorer.clock - began, abs=1)  # 10 s, not 900

    run(work())


def test_too_many_waiting_characters_are_refused_until_they_are_scored():
    async def work() -> None:
        scorer, batcher, first = await held_up(["a"], most_characters=1_000)
        second = asyncio.create_task(batcher.score(["b" * 400] * 2))
        left = asyncio.create_task(batcher.score(["l" * 150]))
        await asyncio.sleep(0)
        with pytest.raises(OverloadedError):
            await batcher.score(["c" * 51])
        fits = asyncio.create_task(batcher.score(["d" * 50]))
        await asyncio.sleep(0)
        left.cancel()
        scorer.go.set()
        await asyncio.gather(first, second, fits)
        scorer.go.clear()
        scorer.begun.clear()
        again = asyncio.create_task(batcher.score(["e"]))
        await asyncio.to_thread(scorer.begun.wait, 30)
        waits = asyncio.create_task(batcher.score(["f"]))
        fills = asyncio.create_task(batcher.score(["g" * 999]))  # all of it is free again
        await asyncio.sleep(0)
        scorer.go.set()
        assert [len(item.prob) for item in await asyncio.gather(again, waits, fills)] == [1] * 3

    run(work())


def test_a_request_alone_may_be_larger_than_what_may_wait():
    async def work() -> None:
        batcher = batcher_of(LengthScorer("1"), most_waiting=10, most_characters=50)
        assert len((await batcher.score(["a"] * 100)).prob) == 100

    run(work())


def test_a_failure_is_that_of_its_batch_alone():
    async def work() -> None:
        scorer = LengthScorer("1")
        batcher = batcher_of(scorer, most_waiting=1_000)
        with pytest.raises(ModelError, match="broken"):
            await batcher.score(["broken"] + ["x" * 2_000] * 200)
        assert batcher.waiting == 0 or (await batcher.score(["a"])).prob.size == 1
        assert (await batcher.score(["fine"])).prob.tolist() == lengths(["fine"])
        assert batcher.waiting == 0

    run(work())


def test_texts_that_no_one_waits_for_any_more_are_not_scored():
    async def work() -> None:
        scorer, batcher, first = await held_up(["first"], most_waiting=1_000)
        left = asyncio.create_task(batcher.score(["left"] * 5))
        await asyncio.sleep(0)
        left.cancel()
        await asyncio.sleep(0)
        scorer.go.set()
        await first
        await batcher.score(["last"])
        assert scorer.batches == [["first"], ["last"]]
        assert batcher.waiting == 0

    run(work())


def test_closing_waits_for_what_was_accepted():
    async def work() -> None:
        scorer, batcher, asked = await held_up(["a"], most_waiting=1_000)
        closing = asyncio.create_task(batcher.close())
        await asyncio.sleep(0.05)
        assert not closing.done()
        scorer.go.set()
        await closing
        assert (await asked).prob.size == 1

    run(work())


class Overlapping(LengthScorer):
    """Holds each batch up until another one began; `most` is how many were in progress."""

    overlaps = True

    def __init__(self, model_version: str) -> None:
        super().__init__(model_version)
        self.together = threading.Barrier(2)
        self.most = self.now = 0

    def score(self, texts: Sequence[str]) -> Predictions:
        self.now += 1
        self.most = max(self.most, self.now)
        if len(texts) > 1:
            self.together.wait(timeout=60)
        found = super().score(texts)
        self.now -= 1
        return found


def test_a_full_batch_is_tokenized_while_another_one_is_predicted():
    async def work() -> None:
        scorer, reports = Overlapping("1"), list[tuple[int, int, float]]()
        batcher = batcher_of(scorer, report=lambda *given: reports.append(given))
        texts = ["x" * 1_000] * 512  # four batches
        assert (await batcher.score(texts)).prob.tolist() == lengths(texts)
        assert scorer.most == 2
        assert len(scorer.batches) == 4
        assert sum(report[1] for report in reports) == 512_000
        await batcher.close()

    run(work())


def test_a_batch_that_is_not_full_waits_for_the_one_in_progress():
    async def work() -> None:
        scorer = Overlapping("1")
        batcher = batcher_of(scorer)
        scorer.go.clear()
        first = asyncio.create_task(batcher.score(["a"]))
        await asyncio.to_thread(scorer.begun.wait, 30)
        second = asyncio.create_task(batcher.score(["b"]))
        await asyncio.sleep(0)
        scorer.go.set()
        await asyncio.gather(first, second)
        assert scorer.most == 1
        await batcher.close()

    run(work())


def test_batches_are_reported():
    async def work() -> None:
        reports = list[tuple[int, int, float]]()
        batcher = batcher_of(LengthScorer("1"), most_waiting=9, report=lambda *a: reports.append(a))
        await batcher.score(["a", "bcd"])
        ((texts, subwords, seconds),) = reports
        assert (texts, subwords) == (2, 4)
        assert seconds >= 0

    run(work())

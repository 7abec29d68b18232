"""Progress of a training: its phases, the time left, and a line every 20 seconds."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import pairwise

import pytest
import torch

from modwatch.models import networks
from modwatch.models.progress import Plan, Progress, TrainingProgress
from modwatch.models.training import train

Corpus = tuple[list[str], list[int]]


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Watched:
    """A progress whose clock is moved by hand; each tick is a second."""

    clock: Clock = field(default_factory=Clock)
    lines: list[tuple[float, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.show = TrainingProgress(
            lambda line: self.lines.append((self.clock.now, line)), clock=self.clock
        )

    def wait(self, seconds: float) -> None:
        """Let time pass, as the thread of the progress sees it."""
        end = self.clock.now + seconds
        while self.clock.now + 1 < end:
            self.clock.now += 1
            self.show.tick()
        self.clock.now = end

    def work(self, phase: str, batches: int, seconds: float, **at: int) -> None:
        """Carry out a phase."""
        self.show(Progress(phase=phase, steps=batches, **at))  # type: ignore[arg-type]
        for batch in range(1, batches + 1):
            self.wait(seconds)
            self.show(Progress(phase=phase, step=batch, steps=batches, **at))  # type: ignore[arg-type]

    @property
    def texts(self) -> list[str]:
        return [line for _, line in self.lines]


UNITS = {("training", 1): 1_000.0, ("evaluation", 1): 40.0, ("posterior", 1): 200.0}
UNITS |= {("prediction", 0): 100.0, ("comparison", 0): 5.0}
AT = {"network": 1, "networks": 1}


def run(watched: Watched, *, evaluation: float, posterior: float, prediction: float) -> None:
    """Carry out a run of 1,000 s of training; other phases take these seconds."""
    show = watched.show
    show(Progress(plan=Plan(units=UNITS)))
    show(Progress(**AT, steps=250))  # type: ignore[arg-type]
    for step in range(1, 251):
        watched.wait(4)
        show(Progress(**AT, step=step, steps=250))  # type: ignore[arg-type]
        if step % 125 == 0:
            for batch in range(11):
                if batch:
                    watched.wait(evaluation / 20)
                done = (step // 125 - 1) * 10 + batch
                show(Progress(phase="evaluation", **AT, step=done, steps=20))  # type: ignore[arg-type]
    watched.work("posterior", 10, posterior / 10, **AT)
    watched.work("prediction", 5, prediction / 5)
    watched.work("calibration", 1, 3)
    watched.work("comparison", 2, 3)
    watched.work("registration", 1, 8)


@pytest.mark.parametrize("slower", [0.5, 1.0, 2.0])
def test_the_estimate_is_within_a_half_after_a_tenth_of_the_time(slower):
    """Where phases take other times than those planned, by the machine or the encoder."""
    watched = Watched()
    estimates: list[tuple[float, float]] = []
    tick = watched.show.tick

    def look() -> None:
        left = watched.show.seconds_left()
        if left is not None:
            estimates.append((watched.clock.now, left))
        tick()

    watched.show.tick = look  # type: ignore[method-assign]
    run(watched, evaluation=40 * slower, posterior=200 * slower, prediction=100 * slower)
    end = watched.clock.now
    left = [seconds / (end - now) for now, seconds in estimates if end / 10 <= now <= end / 4]
    whole = [(seconds + now) / end for now, seconds in estimates if end / 10 <= now]
    assert len(left) > 100
    assert min(left + whole) >= 1 / 1.5
    assert max(left + whole) <= 1.5


def test_no_phase_is_silent_for_half_a_minute():
    """Not even where one batch takes ten minutes, or a phase has no batches."""
    watched = Watched()
    watched.work("reading", 1, 90)
    watched.work("data report", 1, 45)
    watched.work("tokenising", 1, 100)
    run(watched, evaluation=2_400, posterior=6_000, prediction=500)
    times = [0.0, *(at for at, _ in watched.lines), watched.clock.now]
    assert max(after - before for before, after in pairwise(times)) <= 30
    assert "reading, 0:00:20 so far" in watched.texts
    assert any(line.startswith("posterior: batch 0 of 10, ") for line in watched.texts)
    assert any(line.startswith("evaluation: batch 1 of 20, ") for line in watched.texts)


def test_each_phase_tells_its_time_and_memory():
    watched = Watched()
    run(watched, evaluation=40, posterior=200, prediction=100)
    took = [line for line in watched.texts if "took" in line]
    assert [line.partition(" GiB")[0].rpartition(" ")[0] for line in took] == [
        f"{phase} took {time}; peak memory so far"
        for phase, time in (
            ("training", "0:16:40"),
            ("evaluation", "0:00:40"),
            ("posterior", "0:03:20"),
            ("prediction", "0:01:40"),
            ("calibration", "0:00:03"),
            ("comparison", "0:00:06"),
            ("registration", "0:00:08"),
        )
    ]


def test_a_run_that_goes_on_counts_its_own_steps():
    watched = Watched()
    watched.show(Progress(plan=Plan(units={("training", 1): 1_000.0})))
    for step in (900, 901, 910):
        watched.show(Progress(**AT, step=step, steps=1_000))  # type: ignore[arg-type]
        watched.wait(50)
    assert watched.show.seconds_left() == pytest.approx(90 * 10 + 10, rel=0.02)


def test_a_run_that_starts_again_counts_from_there():
    watched = Watched()
    watched.show(Progress(plan=Plan(units={("training", 1): 1_000.0})))
    for step, steps in ((0, 1_000), (500, 1_000), (0, 2_000), (100, 2_000)):
        watched.clock.now += 100
        watched.show(Progress(**AT, step=step, steps=steps))  # type: ignore[arg-type]
    assert watched.show.seconds_left() == pytest.approx(1_900 + 10)


def test_networks_side_by_side_share_the_time_left():
    watched = Watched()
    units = {("training", network): 100.0 for network in (1, 2)}
    watched.show(Progress(plan=Plan(units=units, workers=2)))
    for step in range(11):
        watched.clock.now += 1
        for network in (1, 2):
            watched.show(Progress(network=network, networks=2, step=step, steps=100))
    assert watched.show.seconds_left() == pytest.approx(90 + 10)
    watched.wait(20)
    assert watched.texts[0].startswith("training: network 2 of 2, step 10 of 100, ")


def test_a_stopped_network_is_complete_when_its_posterior_begins():
    watched = Watched()
    watched.show(Progress(plan=Plan(units={("training", 1): 100.0, ("posterior", 1): 10.0})))
    for step in (0, 10):
        watched.clock.now += 10
        watched.show(Progress(**AT, step=step, steps=100))  # type: ignore[arg-type]
    watched.show(Progress(phase="posterior", **AT, steps=5))  # type: ignore[arg-type]
    assert watched.show.seconds_left() == pytest.approx(10 + 10)


@pytest.mark.parametrize("method", ["sngp", "ensemble"])
def test_every_batch_of_every_phase_is_reported(corpus, tiny_recipe, method):
    recipe = replace(tiny_recipe, method=method, members=2, passes=3, layers=1)
    states: list[Progress] = []
    train(*corpus, recipe=recipe, seed=1, progress=states.append)
    plan = next(state.plan for state in states if state.plan is not None)
    shown: dict[tuple[str, int], list[Progress]] = {}
    for state in states:
        if state.plan is None:
            shown.setdefault((state.phase, state.network), []).append(state)
    for key, found in shown.items():
        steps = [state.step for state in found]
        assert steps[0] == 0, key
        assert steps[-1] == found[-1].steps, key
        assert all(0 <= after - before <= 1 for before, after in pairwise(steps)), key
    assert set(shown) - {("tokenising", 0), ("calibration", 0)} == set(plan.units)
    assert Counter(network for phase, network in shown if phase == "training") == Counter(
        range(1, recipe.networks + 1)
    )


def test_a_network_of_an_earlier_run_is_not_in_the_plan(corpus, tiny_recipe, tmp_path):
    recipe = replace(tiny_recipe, method="ensemble", members=2)
    train(*corpus, recipe=recipe, seed=1, checkpoints=tmp_path)
    (tmp_path / "network-1.json").unlink()
    states: list[Progress] = []
    train(*corpus, recipe=recipe, seed=1, checkpoints=tmp_path, progress=states.append)
    plan = next(state.plan for state in states if state.plan is not None)
    assert {network for _, network in plan.units} == {0, 2}


def test_memory_that_runs_out_shows_the_phase_from_its_start(corpus, tiny_recipe, monkeypatch):
    real: Callable[..., None] = networks.Predictor.observe
    failed: list[int] = []

    def once(predictor: networks.Predictor, ids: list[list[int]], **given: object) -> None:
        if not failed:
            failed.append(1)
            given["report"](1, 2)  # type: ignore[operator]
            raise torch.OutOfMemoryError
        real(predictor, ids, **given)

    monkeypatch.setattr(networks.Predictor, "observe", once)
    states: list[Progress] = []
    train(*corpus, recipe=tiny_recipe, seed=1, progress=states.append)
    assert [s.step for s in states if s.phase == "posterior"][:3] == [1, 0, 1]

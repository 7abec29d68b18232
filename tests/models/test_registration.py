"""Progress of a training: bars on a terminal, lines elsewhere, both with the time left."""

import io
import re
from collections.abc import Iterator
from itertools import count

from modwatch.models.optimisation import Progress
from modwatch.models.recipe import Recipe
from modwatch.models.registration import TrainingProgress
from modwatch.models.training import train


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def state(step: int, steps: int = 100, network: int = 1, networks: int = 1) -> Progress:
    return Progress(network=network, networks=networks, step=step, steps=steps, loss=0.5)


def lines(states: list[Progress], clock: Iterator[float]) -> list[str]:
    result: list[str] = []
    with TrainingProgress(result.append, clock=lambda: next(clock)) as show:
        for item in states:
            show(item)
    return result


def every(seconds: float) -> Iterator[float]:
    return (number * seconds for number in count())


def test_lines_come_after_each_tenth() -> None:
    result = lines([state(step) for step in range(1, 101)], every(0.1))
    assert result[0] == "training: step 10 of 100, 0:00:09 left"
    assert result[-2] == "training: step 90 of 100, 0:00:01 left"
    assert result[-1] == "training: step 100 of 100; calibration follows, about 0:00:06 left"
    assert len(result) == 10


def test_a_long_training_has_its_first_line_within_half_a_minute() -> None:
    result = lines([state(step, 100_000) for step in range(1, 200)], every(1))
    assert result == ["training: step 20 of 100000, 1 day, 3:46:20 left"]


def test_a_slow_first_step_has_a_line_without_the_time_left() -> None:
    result = lines([state(step) for step in (1, 2, 3)], every(60))
    assert result == ["training: step 1 of 100", "training: step 2 of 100, 1:38:00 left"]


def test_each_network_of_an_ensemble_has_its_lines() -> None:
    states = [state(step, 1_000, network, 2) for network in (1, 2) for step in range(1, 30)]
    assert lines(states, every(2)) == [
        "training: network 1 of 2, step 10 of 1000, 0:33:00 left",
        "training: network 2 of 2, step 11 of 1000, 0:32:58 left",
    ]


def test_a_run_that_goes_on_counts_its_own_steps() -> None:
    result = lines([state(step, 1_000) for step in (901, 902, 910)], iter([0, 10, 20, 110]))
    assert result == ["training: step 902 of 1000, 0:16:20 left"]


def test_a_run_that_starts_again_counts_from_there() -> None:
    before, after = [state(1, 1_000), state(50, 1_000)], [state(n, 2_000) for n in (1, 3, 5)]
    assert lines(before + after, every(10)) == [
        "training: step 50 of 1000, 0:03:14 left",
        "training: step 5 of 2000, 2:46:15 left",
    ]


def test_a_terminal_has_a_bar_with_the_time_left(
    corpus: tuple[list[str], list[int]], tiny_recipe: Recipe
) -> None:
    terminal, result = Terminal(), list[str]()
    with TrainingProgress(result.append, terminal=terminal) as show:
        train(*corpus, recipe=tiny_recipe, seed=1, progress=show)
    assert result == []
    drawn = terminal.getvalue()
    assert re.search(r"Training:.*\d+/112 \[00:\d\d<00:\d\d, .*step/s, loss=0\.\d+\]", drawn)
    assert "112/112" in drawn
    assert drawn.endswith("\n")


def test_a_bar_follows_a_run_that_starts_again() -> None:
    terminal = Terminal()
    with TrainingProgress(print, terminal=terminal) as show:
        for value in (state(1), state(60), state(1, 200), state(200, 200)):
            show(value)
    assert terminal.getvalue().rstrip().rpartition("\r")[2].count("200/200") == 1


def test_members_side_by_side_have_a_bar_each() -> None:
    terminal = Terminal()
    with TrainingProgress(print, terminal=terminal) as show:
        for step in (1, 2):
            for network in (1, 2):
                show(state(step, network=network, networks=2))
    assert "Network 1 of 2" in terminal.getvalue()
    assert "Network 2 of 2" in terminal.getvalue()

"""Limits of batches that last: halved by a shortage of memory, doubled when it is over."""

import pytest
import torch

from modwatch.common.errors import ModelError
from modwatch.models import devices
from modwatch.models.devices import BatchLimits, LastingLimits

CPU = torch.device("cpu")
MOST = BatchLimits(batch_size=15, batch_tokens=1_001)


class Machine:
    """Has memory for batches of some comments."""

    def __init__(self, fits: int) -> None:
        self.fits = fits
        self.tried: list[int] = []

    def __call__(self, limits: BatchLimits) -> int:
        self.tried.append(limits.batch_size)
        if limits.batch_size > self.fits:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return limits.batch_size

    def work(self, limits: LastingLimits, pieces: int = 1) -> list[int]:
        return [limits.run(self, work="scoring", device=CPU) for _ in range(pieces)]


@pytest.fixture
def limits(monkeypatch):
    monkeypatch.setattr(devices, "_SUCCESSES", 3)
    return LastingLimits(MOST)


def test_they_double_when_the_shortage_is_over_and_not_beyond_the_first(limits):
    machine = Machine(fits=5)
    assert machine.work(limits) == [3]
    assert machine.tried == [15, 7, 3]
    machine.fits = 100
    assert machine.work(limits, 12) == [3, 3, 7, 7, 7, *[15] * 7]
    assert limits.current == MOST


def test_a_shortage_that_lasts_is_met_once_in_some_pieces(limits):
    machine = Machine(fits=7)
    assert machine.work(limits, 9) == [7] * 9
    assert machine.tried == [15, 7, 7, 7] * 3


def test_the_successes_before_a_shortage_do_not_count(limits):
    machine = Machine(fits=7)
    machine.work(limits, 2)
    machine.fits = 3
    assert machine.work(limits, 3) == [3, 3, 3]
    assert machine.work(limits, 1) == [3]
    assert machine.tried[-2:] == [7, 3]


def test_without_room_for_one_comment_it_fails_and_goes_on_later(limits):
    machine = Machine(fits=0)
    with pytest.raises(ModelError, match="one comment"):
        machine.work(limits)
    machine.fits = 100
    assert machine.work(limits, 10)[-1] == 15

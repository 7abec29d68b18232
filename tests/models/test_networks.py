"""Members of an ensemble side by side: two processes on the CPU stand for two devices."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
import torch

from modwatch.common.errors import ModelError
from modwatch.models.progress import Progress
from modwatch.models.training import train

Corpus = tuple[list[str], list[int]]
TWO = [torch.device("cpu")] * 2


@pytest.fixture(scope="module")
def ensemble(tiny_recipe):
    return replace(tiny_recipe, method="sngp_ensemble", members=3)


@pytest.fixture(scope="module")
def alone(corpus, ensemble):
    """The ensemble, its members fitted one after another."""
    return train(*corpus, recipe=ensemble, seed=1)


def test_side_by_side_gives_the_weights_of_one_after_another(corpus, ensemble, alone):
    steps: list[Progress] = []
    points: list[tuple[int, int]] = []
    processes: list[int] = []

    def progress(step: Progress) -> None:
        steps.append(step)
        processes.append(len(_trainers(psutil.Process())))

    together = train(
        *corpus,
        recipe=ensemble,
        seed=1,
        devices=TWO,
        progress=progress,
        log=lambda network, networks, _: points.append((network, networks)),
    )
    for one, other in zip(together.members, alone.members, strict=True):
        ours, theirs = one.state_dict(), other.state_dict()
        assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
    assert together.facts.networks == alone.facts.networks
    assert together.calibration == alone.calibration
    assert {step.network for step in steps} == {0, 1, 2, 3}
    assert max(processes) == 2, "they were not fitted at a time"
    assert set(points) == {(1, 3), (2, 3), (3, 3)}


def test_a_member_that_fails_stops_the_others(corpus, ensemble, tmp_path):
    (tmp_path / "network-1").write_text("where a folder of checkpoints should be", "utf-8")
    endless = replace(ensemble, epochs=1_000, max_steps=None)
    with pytest.raises(NotADirectoryError):
        train(*corpus, recipe=endless, seed=1, devices=TWO, checkpoints=tmp_path)
    assert _trainers(psutil.Process()) == []


@pytest.mark.soak  # a member that fails stops the others, a killed run goes on
def test_a_process_killed_from_outside_is_reported_and_made_good(corpus, ensemble, alone, tmp_path):
    """Made good with fewer devices, as the message advises."""

    def kill(_: Progress) -> None:
        for child in _trainers(psutil.Process())[:1]:
            with suppress(psutil.Error):
                child.kill()

    with pytest.raises(ModelError, match="was killed, perhaps for lack of memory"):
        train(*corpus, recipe=ensemble, seed=1, devices=TWO, checkpoints=tmp_path, progress=kill)
    resumed = train(*corpus, recipe=ensemble, seed=1, checkpoints=tmp_path)
    assert resumed.calibration == alone.calibration


def test_no_process_outlives_the_one_that_started_it(tmp_path):
    child = subprocess.Popen(
        [sys.executable, "-c", _ORPHANS, str(tmp_path)],
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(__file__).parent)},
    )
    deadline = time.monotonic() + 120
    while not (tmp_path / "begun").exists():
        assert child.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    left = _trainers(psutil.Process(child.pid))
    assert len(left) == 2
    child.send_signal(signal.SIGKILL)
    child.wait()
    gone, alive = psutil.wait_procs(left, timeout=30)
    assert (len(gone), alive) == (2, [])


#: Trains for ever in two processes.
_ORPHANS = """
import sys
from dataclasses import replace
from pathlib import Path
import torch
from conftest import TINY, tiny_corpus
from modwatch.models.training import train
folder = Path(sys.argv[1])
networks = set()
def begun(state):
    networks.add(state.network)
    if len(networks) == 2:
        (folder / "begun").touch()
if __name__ == "__main__":
    recipe = replace(TINY, method="ensemble", members=2, epochs=1_000, max_steps=None)
    train(*tiny_corpus(), recipe=recipe, seed=1, devices=[torch.device("cpu")] * 2, progress=begun)
"""


def _trainers(process: psutil.Process) -> list[psutil.Process]:
    """Return the living processes of a pool, without the one that only tracks resources."""
    found = []
    for child in process.children():
        with suppress(psutil.Error):  # it has just ended
            if "spawn_main" in " ".join(child.cmdline()):
                found.append(child)
    return found

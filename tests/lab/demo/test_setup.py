"""The memory of a demo, and who may read its texts."""

import stat
import sys
import time
from types import SimpleNamespace
from typing import Any

from modwatch.installation.stack.supervisor import Service, Stack
from modwatch_lab.demo.setup import MemoryGauge, _write_labelled


def test_the_gauge_sees_the_memory_of_a_service(tmp_path):
    hungry = [sys.executable, "-c", "import time; block = b'x' * 200_000_000; time.sleep(60)"]
    with Stack(logs=tmp_path) as stack, MemoryGauge(stack, every=0.1) as gauge:
        assert _wait_until(lambda: gauge.peak_bytes > 0)
        before = gauge.peak_bytes
        stack.start(Service(name="hungry", command=hungry))
        assert _wait_until(lambda: gauge.peak_bytes > before + 150_000_000)


def test_texts_are_for_nobody_else(tmp_path):
    path = tmp_path / "training.jsonl"
    corpus: Any = SimpleNamespace(texts=("one", "two"), labels=(0, 1), groups=())
    for mode in (None, 0o644):  # a new file, and that of an earlier run
        if mode:
            path.chmod(mode)
        _write_labelled(path, corpus)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert len(path.read_text().splitlines()) == 2


def _wait_until(condition, seconds: float = 10) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.05)
    return False

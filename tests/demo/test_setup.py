"""The memory of a demo."""

import sys
import time
from pathlib import Path

from modwatch.demo.setup import MemoryGauge
from modwatch.installation.stack.supervisor import Service, Stack


def test_the_gauge_sees_the_memory_of_a_service(tmp_path: Path) -> None:
    hungry = [sys.executable, "-c", "import time; block = b'x' * 200_000_000; time.sleep(60)"]
    with Stack(logs=tmp_path) as stack, MemoryGauge(stack, every=0.1) as gauge:
        assert _wait_until(lambda: gauge.peak_bytes > 0)
        before = gauge.peak_bytes
        stack.start(Service(name="hungry", command=hungry))
        assert _wait_until(lambda: gauge.peak_bytes > before + 150_000_000)


def _wait_until(condition, seconds: float = 10) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.05)
    return False

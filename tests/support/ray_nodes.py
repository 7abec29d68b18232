"""Nodes of a Ray cluster on this machine, each a group of processes that can be killed."""

import contextlib
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from modwatch.common.connections import listen

#: `ray start` replaces 127.0.0.1 by an address that other machines reach.
_ON_LOOPBACK = """
from ray._private import services
services.resolve_ip_for_localhost = lambda host: host
from ray.scripts.scripts import main
main()
"""
#: Metrics are exported every three seconds, nothing is reported, and a busy machine is no fault.
QUIET = {
    "OMP_NUM_THREADS": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_metrics_report_interval_ms": "3000",
    "RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S": "120",
    "RAY_SERVE_PROXY_HEALTH_CHECK_TIMEOUT_S": "120",
}

#: Failures of nodes are seen in seconds.
FAST = {
    **QUIET,
    "RAY_health_check_period_ms": "500",
    "RAY_health_check_timeout_ms": "1000",
    "RAY_health_check_failure_threshold": "4",
}


def free_port() -> int:
    with listen("127.0.0.1", 0) as listener:
        number: int = listener.getsockname()[1]
    return number


def until(true: Callable[[], object], seconds: float = 600) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.1)


@dataclass(frozen=True, kw_only=True)
class Group:
    """A process and its descendants."""

    process: subprocess.Popen[bytes]
    #: Where a node exports its metrics.
    metrics_port: int = 0

    def members(self) -> list[psutil.Process]:
        with contextlib.suppress(psutil.NoSuchProcess):
            root = psutil.Process(self.process.pid)
            return [root, *root.children(recursive=True)]
        return []

    def replicas(self) -> list[psutil.Process]:
        """Return the processes of the model's replicas."""
        return [member for member in self.members() if "ServeReplica:modwatch" in title(member)]

    def hang(self) -> None:
        """Stop the replicas, by SIGSTOP, until they hold requests that they do not answer."""
        for replica in self.replicas():
            replica.suspend()
        time.sleep(1)

    def kill(self) -> None:
        """Kill all of them, by SIGKILL."""
        members = self.members()
        for member in members:
            with contextlib.suppress(psutil.NoSuchProcess):
                member.kill()
        psutil.wait_procs(members, timeout=10)
        self.process.wait(timeout=10)


def title(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return ""


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """A head node and a worker node."""

    address: str
    env: Mapping[str, str]
    head: Group
    worker: Group


@contextmanager
def cluster(folder: Path, env: Mapping[str, str]) -> Iterator[Cluster]:
    """Start two nodes with a CPU each, which listen on the loopback interface alone."""
    secret = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    # As docs/deploy.md asks for on every node.
    proxy = {
        "RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH": "modwatch.installation.ray_proxy.middlewares"
    }
    shared = {**os.environ, **FAST, **proxy, **secret, **env}
    address = f"127.0.0.1:{free_port()}"
    # Sockets below it have names of at most 107 characters.
    head = ["--head", "--port", address.partition(":")[2], "--temp-dir", str(folder)]
    head += ["--include-dashboard=false", "--ray-client-server-port", str(free_port())]
    groups = list[Group]()
    try:
        groups.append(_node(head, shared))
        until(lambda: _answers(address))
        groups.append(_node(["--address", address], shared))
        # What connects from this machine is on loopback, too.
        own = {**shared, "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
        yield Cluster(address=address, env=own, head=groups[0], worker=groups[1])
    finally:
        for group in reversed(groups):
            group.kill()


def _node(arguments: list[str], env: Mapping[str, str]) -> Group:
    common = ["--node-ip-address", "127.0.0.1", "--num-cpus", "1", "--block"]
    common += ["--object-store-memory", "100000000", "--disable-usage-stats"]
    metrics_port = free_port()
    common += ["--metrics-export-port", str(metrics_port)]
    common += ["--dashboard-agent-listen-port", str(free_port())]
    program = [sys.executable, "-c", _ON_LOOPBACK, "start", *arguments, *common]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(program, env=dict(env), **quiet)
    return Group(process=process, metrics_port=metrics_port)


def _answers(address: str) -> bool:
    host, _, port = address.partition(":")
    try:
        listen(host, int(port)).close()
    except Exception:  # noqa: BLE001 - it is taken
        return True
    return False

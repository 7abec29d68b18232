"""The application of Ray Serve without a cluster: options, what is deployed, the health check."""

import asyncio
import os
import subprocess
import sys
from typing import Any

import pytest
from model_servers import LengthScorer, Registry, served
from pydantic import ValidationError

from modwatch.common.errors import ModelError
from modwatch.installation.ray_app import ModelReplica, RayOptions, build
from modwatch.models.serving.ray_environment import prepare_ray


def deployed(**options: Any) -> Any:
    return build(RayOptions(**options))._bound_deployment


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ({"replicas": 0}, "greater than or equal to 1"),
        ({"replicas": 4, "max_replicas": 2}, r"max_replicas \(2\) must be at least replicas \(4\)"),
        ({"gpus_per_replica": 1.5}, "must be a whole number above 1"),
        ({"gpus_per_replica": -1}, "greater than or equal to 0"),
        (
            {"target_ongoing_requests": 9, "max_ongoing_requests": 8},
            "must be at most max_ongoing_requests",
        ),
        ({"replica": 2}, "Extra inputs are not permitted"),
    ],
)
def test_impossible_options_are_refused(options: dict[str, Any], fault: str) -> None:
    with pytest.raises(ValidationError, match=fault):
        RayOptions(**options)


def test_a_number_of_replicas_is_kept() -> None:
    found = deployed(replicas=3, gpus_per_replica=0.5, max_replicas_per_node=2, drain_seconds=9)
    assert (found.num_replicas, found._deployment_config.autoscaling_config) == (3, None)
    assert found.ray_actor_options == {"num_cpus": 1.0, "num_gpus": 0.5}
    assert found._deployment_config.graceful_shutdown_timeout_s == 9
    assert found._replica_config.max_replicas_per_node == 2
    assert found.max_ongoing_requests == 256


def test_a_number_of_replicas_follows_the_load() -> None:
    scaling = deployed(
        replicas=2, max_replicas=8, target_ongoing_requests=6
    )._deployment_config.autoscaling_config
    assert (scaling.min_replicas, scaling.max_replicas) == (2, 8)
    assert scaling.target_ongoing_requests == 6


class Sick(LengthScorer):
    """Fails a number of times."""

    failures = 0

    def score(self, texts: Any) -> Any:
        if self.failures:
            self.failures -= 1
            raise RuntimeError(f"CUDA error near {texts}")
        return super().score(texts)


async def ready_replica(scorer: Sick, **limits: int) -> ModelReplica:
    registry = Registry("1")
    registry.scorers["1"] = scorer
    replica = ModelReplica(RayOptions())
    replica._model, replica._telemetry = served(registry, **limits)
    await replica._model.refresh()
    return replica


def check(failures: int) -> None:
    async def work() -> None:
        scorer = Sick("1")
        scorer.failures = failures
        await (await ready_replica(scorer)).check_health()

    asyncio.run(asyncio.wait_for(work(), 60))


def test_a_model_that_scores_is_healthy() -> None:
    check(failures=0)


def test_one_batch_that_fails_does_not_make_a_replica_unhealthy() -> None:
    check(failures=1)


def test_a_model_that_fails_is_unhealthy_and_no_text_is_told() -> None:
    with pytest.raises(ModelError) as failed:
        check(failures=99)
    assert str(failed.value) == "the model fails to score: RuntimeError, RuntimeError"
    assert failed.value.__cause__ is None


def test_a_model_that_has_scored_is_not_asked() -> None:
    async def work() -> None:
        scorer = Sick("1")
        replica = await ready_replica(scorer)
        _, batcher = await replica._model.get(None)
        await batcher.score(["a comment"])
        scorer.failures = 99
        await replica.check_health()
        with pytest.raises(ModelError):
            await replica.check_health()

    asyncio.run(asyncio.wait_for(work(), 60))


@pytest.mark.parametrize("limits", [{}, {"most_waiting": 2}])
def test_a_replica_that_scores_many_requests_is_healthy_and_one_that_hangs_is_not(
    limits: dict[str, int],
) -> None:
    async def work() -> None:
        scorer = Sick("1")
        replica = await ready_replica(scorer, **limits)
        _, batcher = await replica._model.get(None)
        scorer.go.clear()
        first = asyncio.create_task(batcher.score(["a comment"]))
        await asyncio.to_thread(scorer.begun.wait, 30)
        second = asyncio.create_task(batcher.score(["a comment"] * 2))
        await asyncio.sleep(0)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(replica.check_health(), 1)
        checking = asyncio.create_task(replica.check_health())
        await asyncio.sleep(0.1)
        scorer.go.set()
        await checking
        await asyncio.gather(first, second)

    asyncio.run(asyncio.wait_for(work(), 60))


@pytest.fixture
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("RAY_"):
            monkeypatch.delenv(name)


@pytest.mark.usefixtures("no_variables")
def test_a_ray_of_this_machine_is_closed_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", dict(os.environ))
    prepare_ray(None)
    assert os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] == "0"
    assert os.environ["RAY_AUTH_MODE"] == "token"
    assert len(os.environ["RAY_AUTH_TOKEN"]) == 64
    assert os.environ["RAY_USAGE_STATS_ENABLED"] == "0"


@pytest.mark.usefixtures("no_variables")
def test_what_is_set_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", {"RAY_USAGE_STATS_ENABLED": "1"})
    prepare_ray("10.0.0.7:6379")
    assert os.environ == {"RAY_USAGE_STATS_ENABLED": "1"}


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        (["--gpus-per-replica", "1"], "--gpus-per-replica is an option of --replicas"),
        (["--replicas", "3", "--max-replicas", "2"], "max_replicas (2) must be at least"),
        (["--replicas", "2", "--host", "0.0.0.0"], "MODWATCH_SCORER_TOKEN"),
    ],
)
@pytest.mark.usefixtures("services")
def test_the_command_names_impossible_options(options: list[str], fault: str) -> None:
    program = "from modwatch.cli.main import program; program()"
    env = {name: value for name, value in os.environ.items() if "MODWATCH" not in name}
    done = subprocess.run(
        [sys.executable, "-c", program, "serve", *options],
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert fault in done.stderr
    assert "Traceback" not in done.stderr

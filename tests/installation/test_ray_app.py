"""The application of Ray Serve without a cluster: options, what is deployed, the health check."""

import asyncio
import os
import subprocess
import sys
from typing import Any

import httpx
import pytest
from model_servers import LengthScorer, Registry, served
from pydantic import ValidationError
from ray.serve._private.utils import call_function_from_import_path
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.testclient import TestClient
from starlette.types import Receive, Scope, Send

from modwatch.common.errors import ModelError
from modwatch.installation import ray_proxy
from modwatch.installation.model_server import prepare_ray
from modwatch.installation.ray_app import Admission, ModelReplica, RayOptions, build


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
def test_impossible_options_are_refused(options, fault):
    with pytest.raises(ValidationError, match=fault):
        RayOptions(**options)


def test_a_number_of_replicas_is_kept():
    found = deployed(replicas=3, gpus_per_replica=0.5, max_replicas_per_node=2, drain_seconds=9)
    assert (found.num_replicas, found._deployment_config.autoscaling_config) == (3, None)
    assert found.ray_actor_options == {"num_cpus": 1.0, "num_gpus": 0.5}
    assert found._deployment_config.graceful_shutdown_timeout_s == 9
    assert found._replica_config.max_replicas_per_node == 2
    assert found.max_ongoing_requests == 256


def test_a_number_of_replicas_follows_the_load():
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


def test_a_model_that_scores_is_healthy():
    check(failures=0)


def test_one_batch_that_fails_does_not_make_a_replica_unhealthy():
    check(failures=1)


def test_a_model_that_fails_is_unhealthy_and_no_text_is_reported():
    with pytest.raises(ModelError) as failed:
        check(failures=99)
    assert str(failed.value) == "the model fails to score: RuntimeError, RuntimeError"
    assert failed.value.__cause__ is None


def test_a_model_that_has_scored_is_not_asked():
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
def test_a_replica_that_scores_many_requests_is_healthy_and_one_that_hangs_is_not(limits):
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
def no_variables(monkeypatch):
    for name in list(os.environ):
        if name.startswith("RAY_"):
            monkeypatch.delenv(name)


@pytest.mark.usefixtures("no_variables")
def test_a_ray_of_this_machine_is_closed_to_others(monkeypatch):
    monkeypatch.setattr(os, "environ", dict(os.environ))
    prepare_ray(None)
    assert os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] == "0"
    assert os.environ["RAY_AUTH_MODE"] == "token"
    assert len(os.environ["RAY_AUTH_TOKEN"]) == 64
    assert os.environ["RAY_USAGE_STATS_ENABLED"] == "0"
    path = os.environ["RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH"]
    assert call_function_from_import_path(path)[0].cls is ray_proxy.ReadyFirst


def test_a_proxy_answers_503_until_a_replica_is_ready(monkeypatch):
    async def rays(scope: Scope, receive: Receive, send: Send) -> None:
        known = {"/v2": JSONResponse({}), "/v2/no": JSONResponse({"error": "no"}, 404)}
        answer = known.get(scope["path"], PlainTextResponse("Path not found", 404))
        await answer(scope, receive, send)

    client = TestClient(ray_proxy.ReadyFirst(rays))

    def asked(path: str) -> tuple[int, str | None]:
        answer = client.get(path)
        return answer.status_code, answer.headers.get("Retry-After")

    running = [False, True, False]
    monkeypatch.setattr(ray_proxy, "_replica_runs", lambda: running.pop(0))
    assert asked("/-/healthz") == (404, None)  # Ray's own
    assert asked("/v2") == (503, "1")
    assert asked("/v2") == (200, None)
    assert asked("/v2/no") == (404, None)
    assert asked("/other") == (503, "1")  # Ray knows no application, or no more
    assert running == [False]  # it is not asked again


@pytest.mark.usefixtures("no_variables")
def test_what_is_set_stays(monkeypatch):
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
def test_the_command_names_impossible_options(options, fault):
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


class Held:
    """An application that answers when it may."""

    def __init__(self) -> None:
        self.go, self.asked = asyncio.Event(), asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.asked.set()
        if Request(scope).url.path == "/fails":
            raise ValueError("the application fails")
        await self.go.wait()
        await PlainTextResponse("done")(scope, receive, send)


def client(app: Any) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test")


def test_a_drain_ends_when_the_requests_that_were_taken_are_answered():
    async def work() -> None:
        inner = Held()
        admission = Admission(inner)
        async with client(admission) as asking:
            taken = asyncio.create_task(asking.get("/v2"))
            await inner.asked.wait()
            draining = asyncio.create_task(admission.drain())
            await asyncio.sleep(0)
            refused = await asking.get("/v2")
            assert (refused.status_code, refused.headers["Retry-After"]) == (503, "1")
            assert [*refused.json()] == ["error"]
            assert not draining.done()
            inner.go.set()
            assert (await taken).status_code == 200
            await asyncio.wait_for(draining, 10)
            assert (await asking.get("/v2/health/live")).status_code == 200
            assert (await asking.get("/v2/health/ready")).status_code == 503

    asyncio.run(work())


def test_a_request_that_fails_is_not_waited_for():
    async def work() -> None:
        admission = Admission(Held())
        async with client(admission) as asking:
            with pytest.raises(ValueError, match="the application fails"):
                await asking.get("/fails")
            await asyncio.wait_for(admission.drain(), 10)

    asyncio.run(work())


def test_an_idle_application_is_drained_at_once():
    async def work() -> None:
        await asyncio.wait_for(Admission(Held()).drain(), 10)

    asyncio.run(work())

"""The model server over HTTP: the protocol, versions, refusals, metrics."""

import gzip
import json
import re
import threading
import time
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import httpx
import numpy as np
import pytest
import tritonclient.http as triton
from model_servers import LengthScorer, Registry, running

from modwatch.models.serving import app as serving_app

TOKEN = "open-sesame"
MODEL = "/v2/models/toxicity"


@pytest.fixture
def registry():
    return Registry("1", "2", "3")


@pytest.fixture
def client(registry):
    with running(registry) as url, httpx.Client(base_url=url, timeout=60) as opened:
        yield opened


def body(*texts: str) -> dict[str, object]:
    tensor = {"name": "text", "datatype": "BYTES", "shape": [len(texts)], "data": list(texts)}
    return {"inputs": [tensor]}


def until(true: object, seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not true():  # type: ignore[operator]
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_health_server_and_model(client):
    assert client.get("/v2/health/live").status_code == 200
    assert client.get("/v2/health/ready").status_code == 200
    assert client.get("/v2").json()["extensions"] == ["binary_tensor_data", "classification"]
    assert client.get(f"{MODEL}/ready").status_code == 200
    assert client.get(f"{MODEL}/versions/1/ready").status_code == 200
    assert client.get(f"{MODEL}/versions/2/ready").status_code == 503
    found = client.get(MODEL).json()
    assert (found["name"], found["versions"]) == ("toxicity", ["1"])
    assert found["inputs"] == [{"name": "text", "datatype": "BYTES", "shape": [-1]}]
    assert [output["name"] for output in found["outputs"]] == [
        "prob", "uncertainty", "model_variance", "mutual_information", "cut",
    ]  # fmt: skip


def test_before_a_champion_exists_the_server_lives_and_is_not_ready():
    with running(Registry()) as url, httpx.Client(base_url=url, timeout=60) as client:
        assert client.get("/v2/health/live").status_code == 200
        assert client.get("/v2/health/ready").status_code == 503
        answer = client.post(f"{MODEL}/infer", json=body("a"))
        assert answer.status_code == 503
        assert "loaded yet" in answer.json()["error"]


def test_predictions_are_in_the_order_of_the_texts(client):
    found = client.post(f"{MODEL}/infer", json=body("a", "abc", "")).json()
    assert found["model_version"] == "1"
    columns = {output["name"]: output["data"] for output in found["outputs"]}
    assert columns["prob"] == pytest.approx([0.001, 0.003, 0])
    assert columns["uncertainty"] == pytest.approx([0.001 * 0.999, 0.003 * 0.997, 0])


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nowhere", 404),
        ("GET", f"{MODEL}/infer", 405),
        ("GET", "/v2/models/other", 404),
        ("POST", "/v2/models/other/infer", 404),
        ("GET", f"{MODEL}/versions/9", 404),
        ("POST", f"{MODEL}/versions/9/infer", 404),
    ],
)
def test_what_is_not_there_is_an_error_of_the_protocol(client, method, path, status):
    answer = client.request(method, path, json=body("a") if method == "POST" else None)
    assert answer.status_code == status
    assert [*answer.json()] == ["error"]


def test_ten_megabytes_and_ten_thousand_texts_more_than_allowed_are_refused(client):
    answer = client.post(f"{MODEL}/infer", content=b"x" * 10_000_000)
    assert answer.status_code == 413
    many = client.post(f"{MODEL}/infer", json=body(*["a"] * 10_001))
    assert many.status_code == 413
    assert len(client.post(f"{MODEL}/infer", json=body(*["a"] * 10_000)).json()["outputs"]) == 5


@pytest.mark.parametrize("pack", [gzip.compress, zlib.compress])
def test_a_body_may_be_compressed(client, pack):
    packed = pack(json.dumps(body("a", "abc" * 1_000)).encode())
    encoding = {"Content-Encoding": "gzip" if pack is gzip.compress else "deflate"}

    def send(content: bytes, **headers: str) -> httpx.Response:
        parts = (content[i : i + 10] for i in range(0, len(content), 10))
        return client.post(f"{MODEL}/infer", content=parts, headers=encoding | headers)

    assert send(packed).json()["outputs"][0]["data"] == pytest.approx([0.001, 3])
    for broken in (packed[:-3], packed[:20], packed + packed, b"{}"):
        answer = send(broken)
        assert (answer.status_code, [*answer.json()]) == (400, ["error"])
    assert send(packed, **{"Content-Encoding": "br"}).status_code == 415


def test_a_decompression_bomb_is_refused_before_it_is_unpacked(client, monkeypatch):
    made = list[int]()

    class Unpacking:
        def __init__(self, wbits: int) -> None:
            self.inner = zlib.decompressobj(wbits)

        def decompress(self, data: bytes, most: int) -> bytes:
            found: bytes = self.inner.decompress(data, most)
            made.append(len(found))
            return found

    stub = SimpleNamespace(decompressobj=Unpacking, MAX_WBITS=zlib.MAX_WBITS, error=zlib.error)
    monkeypatch.setattr(serving_app, "zlib", stub)
    bomb = gzip.compress(b" " * 1_000_000_000, 1)
    assert len(bomb) < serving_app.BODY_LIMIT
    headers = {"Content-Encoding": "gzip"}
    assert client.post(f"{MODEL}/infer", content=bomb, headers=headers).status_code == 413
    assert sum(made) == serving_app.BODY_LIMIT + 1


def test_the_client_of_triton_compresses_and_asks_for_classes(registry):
    text = triton.InferInput("text", [2], "BYTES")
    text.set_data_from_numpy(np.array([b"a" * 900, b"b" * 100], object))
    with running(registry) as url:
        client = triton.InferenceServerClient(url.removeprefix("http://"))
        for binary, packed in ((True, "gzip"), (False, "deflate"), (True, None)):
            wanted = triton.InferRequestedOutput("prob", binary_data=binary, class_count=2)
            found = client.infer(
                "toxicity", [text], outputs=[wanted], request_compression_algorithm=packed
            ).as_numpy("prob")
            assert [[str(v, "ascii") if binary else v for v in row] for row in found] == [
                ["0.900000:1:toxic", "0.100000:0:not toxic"],
                ["0.900000:0:not toxic", "0.100000:1:toxic"],
            ]
        client.close()


def test_a_request_that_does_not_arrive_in_time_is_refused(client, monkeypatch):
    monkeypatch.setattr(serving_app, "BODY_SECONDS", 0.2)

    def slowly() -> Iterator[bytes]:
        yield b"{"
        time.sleep(1)
        yield b"}"

    answer = client.post(f"{MODEL}/infer", content=slowly())
    assert (answer.status_code, [*answer.json()]) == (408, ["error"])
    assert client.post(f"{MODEL}/infer", json=body("a")).status_code == 200


def test_a_failing_model_is_a_500_without_texts_and_leaves_the_server_alive(client):
    answer = client.post(f"{MODEL}/infer", json=body("broken"))
    assert answer.status_code == 500
    assert "broken" not in answer.text
    assert client.post(f"{MODEL}/infer", json=body("a")).status_code == 200


def test_an_error_that_no_one_expects_is_a_500_and_no_text_of_it_is_logged(
    registry, monkeypatch, caplog
):
    def fail(texts: list[str]) -> None:
        raise RuntimeError(f"cannot read {texts}")

    monkeypatch.setattr(registry.scorers["1"], "score", fail)
    with running(registry) as url, httpx.Client(base_url=url, timeout=60) as client:
        answer = client.post(f"{MODEL}/infer", json=body("a secret comment"))
        assert (answer.status_code, "error" in answer.json()) == (500, True)
        assert "modwatch_failed_requests_total 1.0" in client.get("/metrics").text
    assert "RuntimeError" in caplog.text
    assert "secret" not in answer.text + caplog.text


def test_texts_of_clients_that_have_left_are_not_scored(registry):
    scorer = registry.scorers["1"]
    scorer.go.clear()
    with running(registry) as url, httpx.Client(base_url=url, timeout=60) as client:
        with ThreadPoolExecutor(1) as pool:
            first = pool.submit(client.post, f"{MODEL}/infer", json=body("first"))
            assert scorer.begun.wait(timeout=60)
            with pytest.raises(httpx.ReadTimeout):
                httpx.post(f"{url}{MODEL}/infer", json=body("left"), timeout=0.2)
            time.sleep(0.2)  # the server sees that the connection is closed
            scorer.go.set()
            assert first.result().status_code == 200
        assert client.post(f"{MODEL}/infer", json=body("last")).status_code == 200
    assert scorer.batches == [["first"], ["last"]]


def test_a_token_is_asked_for_except_by_health(registry):
    with (
        running(registry, token=TOKEN) as url,
        httpx.Client(base_url=url, timeout=60) as client,
    ):
        assert client.get("/v2/health/ready").status_code == 200
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": TOKEN}):
            for path in (MODEL, "/metrics", f"{MODEL}/ready"):
                assert client.get(path, headers=headers).status_code == 401
            answer = client.post(f"{MODEL}/infer", json=body("a"), headers=headers)
            assert answer.status_code == 401
            assert "error" in answer.json()
        right = {"Authorization": f"Bearer {TOKEN}"}
        assert client.post(f"{MODEL}/infer", json=body("a"), headers=right).status_code == 200


def test_under_load_requests_are_refused_with_a_time_to_wait(registry):
    scorer = registry.scorers["1"]
    scorer.go.clear()
    with running(registry, most_waiting=5) as url, ThreadPoolExecutor(2) as pool:
        asked = pool.submit(httpx.post, f"{url}{MODEL}/infer", json=body("a"), timeout=60)
        assert scorer.begun.wait(30)
        waits = pool.submit(httpx.post, f"{url}{MODEL}/infer", json=body(*["b"] * 5), timeout=60)
        until(
            lambda: "modwatch_waiting_texts 5.0" in httpx.get(f"{url}/metrics", verify=False).text
        )
        refused = httpx.post(f"{url}{MODEL}/infer", json=body("c"), timeout=60)
        assert refused.status_code == 429
        assert int(refused.headers["Retry-After"]) >= 1
        scorer.go.set()
        assert asked.result().status_code == waits.result().status_code == 200


def test_the_alias_moves_without_a_failed_request(registry, monkeypatch):
    monkeypatch.setattr(serving_app, "_FOLLOW_SECONDS", 0.05)
    stop, answers = threading.Event(), list[tuple[int, str]]()
    with running(registry) as url:

        def ask() -> None:
            with httpx.Client(base_url=url, timeout=60) as client:
                while not stop.is_set():
                    answer = client.post(f"{MODEL}/infer", json=body("a"))
                    answers.append((answer.status_code, answer.json().get("model_version")))

        with ThreadPoolExecutor(3) as pool:
            for _ in range(3):
                pool.submit(ask)
            for version in ("2", "3", "1"):
                registry.champion = version
                until(lambda v=version: bool(answers) and answers[-1][1] == v)
            stop.set()
    assert {status for status, _ in answers} == {200}
    seen = [version for _, version in answers]
    assert {*seen} == {"1", "2", "3"}


def test_a_day_planned_with_a_version_is_scored_by_it_after_the_alias_has_moved(
    registry, monkeypatch
):
    monkeypatch.setattr(serving_app, "_FOLLOW_SECONDS", 0.05)
    with running(registry) as url, httpx.Client(base_url=url, timeout=60) as client:
        for champion in ("2", "3"):
            registry.champion = champion
            until(lambda c=champion: client.get(MODEL).json()["versions"][-1] == c)
        found = client.post(f"{MODEL}/versions/1/infer", json=body("a")).json()
        assert found["model_version"] == "1"
        assert client.get(MODEL).json()["versions"][-1] == "3"
        assert len(client.get(MODEL).json()["versions"]) == 2


def test_a_champion_that_cannot_be_loaded_leaves_the_current_one(registry, monkeypatch):
    monkeypatch.setattr(serving_app, "_FOLLOW_SECONDS", 0.05)
    with running(registry) as url, httpx.Client(base_url=url, timeout=60) as client:
        registry.champion = "9"
        until(lambda: registry.opened.count("9") >= 2)
        assert client.post(f"{MODEL}/infer", json=body("a")).json()["model_version"] == "1"
        assert client.get("/v2/health/ready").status_code == 200


def test_a_champion_whose_loading_fails_in_any_way_does_not_end_the_following(
    registry, monkeypatch
):
    monkeypatch.setattr(serving_app, "_FOLLOW_SECONDS", 0.05)
    opened = registry.open

    def fail_at_first(version: str) -> LengthScorer:
        scorer = opened(version)
        if registry.opened.count("2") == 1:
            raise OSError("no space left on the device")
        return scorer

    monkeypatch.setattr(registry, "open", fail_at_first)
    with running(registry) as url, httpx.Client(base_url=url, timeout=60) as client:
        registry.champion = "2"
        until(lambda: client.get(MODEL).json()["versions"][-1] == "2")


def test_metrics_count_texts_subwords_and_requests(client):
    client.post(f"{MODEL}/infer", json=body("a", "bcd"))
    client.post(f"{MODEL}/infer", json=body("broken"))
    text = client.get("/metrics").text
    values = dict(re.findall(r"^(\w+) ([\d.e+-]+)$", text, re.MULTILINE))
    assert float(values["modwatch_texts_total"]) == 2
    assert float(values["modwatch_subwords_total"]) == 4
    assert float(values["modwatch_failed_requests_total"]) == 1
    assert float(values["modwatch_infer_seconds_count"]) == 1
    assert "bcd" not in text

"""The remote scorer against three servers: Modwatch's, an independent one, and faulty ones."""

import json
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import numpy as np
import pytest
import tritonclient.http as triton
from model_servers import THRESHOLD, Registry, running

from modwatch.common.errors import ModelError
from modwatch.installation.resources import open_resources
from modwatch.models.scoring import remote
from modwatch.models.scoring.remote import RemoteScorer
from modwatch.models.scoring.scorer import Scorer
from modwatch.settings import Settings

TOKEN = "open-sesame"
#: More than a request holds, of many lengths.
TEXTS = ["x" * (k % 37) for k in range(700)]
SECRET = "a secret comment"


@pytest.fixture(autouse=True)
def hurry(monkeypatch):
    monkeypatch.setattr(remote, "_PAUSE", 0.01)
    monkeypatch.setattr(remote, "_LONGEST_PAUSE", 0.05)


@pytest.fixture
def registry():
    return Registry("1", "2", "3")


def expected(texts: list[str]) -> list[float]:
    return pytest.approx([len(text) / 1_000 for text in texts])  # type: ignore[return-value]


def test_modwatch_s_own_server(registry):
    with running(registry) as url, RemoteScorer(url, model="toxicity") as remote_scorer:
        scorer: Scorer = remote_scorer
        assert scorer.model_version == "1"
        found = scorer.score(TEXTS)
        assert found.prob.tolist() == expected(TEXTS)
        assert found.further["model_variance"].tolist() == pytest.approx(found.prob / 10)
        assert found.further["mutual_information"].tolist() == pytest.approx(found.prob / 5)
        assert scorer.threshold == THRESHOLD
        assert scorer.score([]).prob.tolist() == []


def test_a_planned_version_scores_whatever_the_alias_says(registry):
    with running(registry) as url:
        with RemoteScorer(url, model="toxicity", model_version="2") as scorer:
            assert scorer.score(["abc"]).prob.size == 1
            assert scorer.model_version == "2"
        assert [len(batch) for batch in registry.scorers["2"].batches] == [1]
        assert registry.scorers["1"].batches == []


def test_a_version_that_is_not_there_is_no_day(registry):
    with running(registry) as url, pytest.raises(ModelError, match="404"):
        RemoteScorer(url, model="toxicity", model_version="9")


def test_the_token_is_sent_and_a_wrong_one_fails_at_once(registry):
    with running(registry, token=TOKEN) as url:
        with RemoteScorer(url, model="toxicity", token=TOKEN) as scorer:
            assert scorer.score(["ab"]).prob.tolist() == expected(["ab"])
        for token in (None, "wrong"):
            with pytest.raises(ModelError, match="MODWATCH_SCORER_TOKEN"):
                RemoteScorer(url, model="toxicity", token=token)


def test_a_busy_server_is_asked_again(registry):
    scorer = registry.scorers["1"]
    scorer.go.clear()
    with running(registry, most_waiting=130) as url:
        with RemoteScorer(url, model="toxicity", concurrency=6) as client:
            threading.Timer(0.5, scorer.go.set).start()
            assert client.score(TEXTS).prob.tolist() == expected(TEXTS)
        refused = httpx.get(f"{url}/metrics").text
    assert "modwatch_refused_requests_total 0.0" not in refused


class Script:
    """A minimal V2 server of its own: one answer a request, by a function."""

    def __init__(self, answer: Callable[["Script", str, dict[str, Any] | None], Any]) -> None:
        self.answer = answer
        self.asked: list[str] = []
        #: The header of the last request.
        self.authorization = ""
        self.lock = threading.Lock()


@contextmanager
def independent(script: Script, port: int = 0) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            """Say nothing."""

        def do_GET(self) -> None:
            self._answer(None)

        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            self._answer(json.loads(self.rfile.read(length)))

        def _answer(self, content: dict[str, Any] | None) -> None:
            with script.lock:
                script.asked.append(f"{self.command} {self.path}")
                script.authorization = self.headers.get("Authorization", "")
                found = script.answer(script, self.path, content)
            if found is None:  # breaks the connection
                self.close_connection = True
                self.connection.close()
                return
            status, answer = found if isinstance(found, tuple) else (200, found)
            body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def foreign(**changes: Any) -> dict[str, Any]:
    """Return the metadata of someone else's model."""
    return {
        "name": "hate",
        "versions": ["3", "4"],
        "platform": "pytorch",
        "inputs": [{"name": "TEXT", "datatype": "BYTES", "shape": [-1, 1]}],
        "outputs": [{"name": "scores", "datatype": "FP32", "shape": [-1, 2]}],
    } | changes


def two_columns(content: dict[str, Any]) -> dict[str, Any]:
    """Return probabilities of two classes, as Triton does: flat, with a shape."""
    (tensor,) = content["inputs"]
    prob = [len(text) / 100 for text in tensor["data"]]
    flat = [value for p in prob for value in (1 - p, p)]
    output = {"name": "scores", "datatype": "FP32", "shape": [len(prob), 2], "data": flat}
    return {"model_name": "hate", "model_version": "4", "outputs": [output]}


def plain(_: Script, path: str, content: dict[str, Any] | None) -> Any:
    return foreign() if content is None else two_columns(content)


def test_anybody_s_server_is_a_deterministic_scorer():
    script = Script(plain)
    with independent(script) as url, RemoteScorer(url, model="hate", threshold=0.2) as scorer:
        assert scorer.model_version == "4"
        assert scorer.threshold == 0.2
        found = scorer.score(TEXTS)
    assert found.prob.tolist() == pytest.approx([len(text) / 100 for text in TEXTS])
    assert not found.further
    assert {path for path in script.asked if "infer" in path} == {
        "POST /v2/models/hate/versions/4/infer"
    }


def test_a_server_says_which_comments_were_cut():
    def answer(_: Script, path: str, content: dict[str, Any] | None) -> Any:
        cut = {"name": "cut", "datatype": "BOOL", "shape": [-1]}
        known = foreign()
        if content is None:
            return known | {"outputs": [*known["outputs"], cut]}
        assert [output["name"] for output in content["outputs"]] == ["scores", "cut"]
        found = two_columns(content)
        rows = len(content["inputs"][0]["data"])
        data = [row == 1 for row in range(rows)]
        return found | {"outputs": [*found["outputs"], cut | {"shape": [rows], "data": data}]}

    with independent(Script(answer)) as url, RemoteScorer(url, model="hate") as scorer:
        found = scorer.score(["a", "bc"])
    assert found.cut.tolist() == [False, True]
    assert found.uncertainty[1] == 0.25
    assert not found.further


def test_a_server_gets_no_invisible_characters():
    with (
        independent(Script(plain)) as url,
        RemoteScorer(url, model="hate", threshold=0.2) as scorer,
    ):
        found = scorer.score(["a\u200bb\xad", "ab"])
    assert found.prob[0] == found.prob[1]


def test_a_server_that_returns_labels_is_refused():
    def answer(_: Script, path: str, content: dict[str, Any] | None) -> Any:
        if content is None:
            return foreign()
        found = two_columns(content)
        found["outputs"][0]["data"] = [
            value for text in content["inputs"][0]["data"] for value in (1, int("a" in text))
        ]
        return found

    with independent(Script(answer)) as url, RemoteScorer(url, model="hate") as scorer:
        assert scorer.score(["a", "b"]).prob.tolist() == [1, 0]  # too few to tell
        with pytest.raises(ModelError, match=r"returns labels, 0 and 1.* predict_proba"):
            scorer.score(["a", "b"] * 5)


def test_a_server_without_versions_is_asked_without():
    def answer(script: Script, path: str, content: dict[str, Any] | None) -> Any:
        if content is None:
            return foreign(versions=None)
        return {key: value for key, value in two_columns(content).items() if "version" not in key}

    script = Script(answer)
    for planned in (None, "1"):  # as by `plan_shards`, and by `score_shard`
        with (
            independent(script) as url,
            RemoteScorer(url, model="hate", model_version=planned) as scorer,
        ):
            assert scorer.model_version == "1"
            assert scorer.threshold == remote.DEFAULT_THRESHOLD
            scorer.score(["ab"])
    assert {path for path in script.asked if "infer" in path} == {"POST /v2/models/hate/infer"}
    assert not any("/versions/" in path for path in script.asked)


def silent_about_versions(script: Script, path: str, content: dict[str, Any] | None) -> Any:
    """Answer as MLServer does: its metadata name no versions, its answers do."""
    if "/versions/" in path and "/versions/v2.1" not in path:
        return 404, {"error": "not found"}
    if content is None:
        return foreign(versions=[])
    return two_columns(content) | {"model_version": "v2.1"}


def test_a_server_that_names_versions_in_its_answers_alone_needs_the_setting(tmp_path):
    script = Script(silent_about_versions)
    with independent(script) as url:
        settings = Settings(home=tmp_path, scorer=f"{url}/v2/models/hate")
        with open_resources(settings) as resources:
            version = resources.planned_version()
            with pytest.raises(ModelError, match=r"version v2\.1.*MODWATCH_SCORER if"):
                resources.scorer(version).score(["ab"])
        script.asked.clear()
        result = settings.model_copy(update={"scorer": f"{settings.scorer}/versions/v2.1"})
        with open_resources(result) as resources:  # as `plan_shards` and `score_shard` do
            version = resources.planned_version()
            found = resources.scorer(version).score(["ab"])
    assert version == "v2.1"
    assert found.prob.tolist() == pytest.approx([0.02])
    assert {path.partition("/infer")[0] for path in script.asked} == {
        "GET /v2/models/hate/versions/v2.1",
        "POST /v2/models/hate/versions/v2.1",
    }


def test_a_version_that_the_server_does_not_have_is_no_plan(tmp_path):
    with independent(Script(silent_about_versions)) as url:
        settings = Settings(home=tmp_path, scorer=f"{url}/v2/models/hate/versions/v3")
        with open_resources(settings) as resources, pytest.raises(ModelError, match="v3 with 404"):
            resources.planned_version()


def test_the_password_of_the_url_is_sent_and_neither_logged_nor_shown(caplog):
    given = list[str]()

    def answer(script: Script, path: str, content: dict[str, Any] | None) -> Any:
        given.append(script.authorization)
        return foreign() if content is None else (422, {})

    with independent(Script(answer)) as url:
        mine = url.replace("//", "//mod:hunter2@") + "/"
        with (
            caplog.at_level(logging.DEBUG),
            RemoteScorer(mine, model="hate") as scorer,
            pytest.raises(ModelError, match="refuses") as failed,
        ):
            scorer.score(["ab"])
    assert {*given} == {"Basic bW9kOmh1bnRlcjI="}
    assert "hunter2" not in str(failed.value) + caplog.text


@pytest.mark.parametrize("url", ["http://mod:hunt/er2@host", "http://[::1"])
def test_what_is_no_url_is_named_but_not_shown(url):
    with pytest.raises(ModelError, match="MODWATCH_SCORER is no URL") as failed:
        RemoteScorer(url, model="hate")
    assert "hunt" not in str(failed.value)


@pytest.mark.parametrize("fault", [(500, {}), (503, b"down"), (429, {"error": "busy"}), None])
def test_passing_faults_lose_nothing_and_score_nothing_twice(fault):
    scored = list[str]()

    def answer(script: Script, path: str, content: dict[str, Any] | None) -> Any:
        if content is None:
            return foreign()
        if len(script.asked) % 3:
            return fault
        scored.extend(content["inputs"][0]["data"])
        return two_columns(content)

    with independent(Script(answer)) as url, RemoteScorer(url, model="hate") as scorer:
        found = scorer.score(TEXTS)
    assert found.prob.tolist() == pytest.approx([len(text) / 100 for text in TEXTS])
    assert sorted(scored) == sorted(TEXTS)


def test_a_server_that_is_started_again_is_found_again():
    script, found = Script(plain), list[Any]()
    with independent(script) as url:
        port = int(url.rsplit(":", 1)[1])
        scorer = RemoteScorer(url, model="hate", patience=60)
        script.answer = lambda *_: None  # breaks its open connections
    with scorer:
        asking = threading.Thread(target=lambda: found.append(scorer.score(TEXTS)))
        asking.start()
        time.sleep(0.3)
        assert not found
        with independent(Script(plain), port):
            asking.join(timeout=60)
    assert found[0].prob.tolist() == pytest.approx([len(text) / 100 for text in TEXTS])


def test_a_lasting_fault_ends_with_a_sentence():
    def answer(_: Script, path: str, content: dict[str, Any] | None) -> Any:
        return foreign() if content is None else (503, SECRET.encode())

    with (
        independent(Script(answer)) as url,
        RemoteScorer(url, model="hate", patience=0.2) as scorer,
        pytest.raises(ModelError, match=r"answers 503.*start the server again") as failed,
    ):
        scorer.score([SECRET] * 500)
    assert SECRET not in str(failed.value)


@pytest.mark.parametrize("status", [400, 404, 413, 422, 301])
def test_a_refusal_fails_at_once_and_quotes_nothing(status, caplog):
    def answer(_: Script, path: str, content: dict[str, Any] | None) -> Any:
        return foreign() if content is None else (status, {"error": SECRET})

    caplog.set_level(logging.DEBUG, logger="modwatch")
    script = Script(answer)
    with (
        independent(script) as url,
        RemoteScorer(url, model="hate", concurrency=1) as scorer,
        pytest.raises(ModelError, match=f"with {status}") as failed,
    ):
        scorer.score([SECRET])
    assert len(script.asked) == 3
    assert SECRET not in str(failed.value) + caplog.text


def changed(**fields: Any) -> Callable[..., Any]:
    """Return a server whose output has other fields."""

    def answer(_: Script, path: str, content: dict[str, Any] | None) -> Any:
        if content is None:
            return foreign()
        right = two_columns(content)
        return right | {"outputs": [right["outputs"][0] | fields]}

    return answer


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (changed(data=[0.1]), "one value of `scores` for each text"),
        (changed(shape=[2]), "one value of `scores` for each text"),
        (changed(shape=None), "one value of `scores` for each text"),
        (changed(name="other"), "one value of `scores` for each text"),
        (changed(data=[0.5, 1.5]), r"outside \[0, 1\]"),
        (changed(data=[0.5, float("nan")]), r"outside \[0, 1\]"),
        (changed(data=[0, 10**400]), "one value of `scores` for each text"),
        (
            lambda _s, _p, content: (
                foreign()
                if content is None
                else {"parameters": [1], "outputs": ["scores"], "model_version": "4"}
            ),
            "one value of `scores` for each text",
        ),
        (changed(data=["a", "b"]), "one value of `scores` for each text"),
        (lambda _s, _p, content: foreign() if content is None else [], "JSON"),
        (lambda _s, _p, content: foreign() if content is None else b"<html>", "JSON"),
        (
            lambda _s, _p, content: (
                foreign() if content is None else two_columns(content) | {"model_version": "5"}
            ),
            "version 5 in place of 4",
        ),
    ],
)
def test_a_wrong_answer_is_named(answer, message):
    with (
        independent(Script(answer)) as url,
        RemoteScorer(url, model="hate") as scorer,
        pytest.raises(ModelError, match=message),
    ):
        scorer.score([SECRET])


@pytest.mark.parametrize(
    "changes",
    [
        {"inputs": [{"name": "ids", "datatype": "INT64", "shape": [-1, 128]}]},
        {"inputs": []},
        {"inputs": foreign()["inputs"] + [{"name": "lang", "datatype": "BYTES", "shape": [-1]}]},
        {"outputs": [{"name": "label", "datatype": "BYTES", "shape": [-1]}]},
        {"outputs": None},
        {"outputs": "scores"},
        {"inputs": ["TEXT"], "versions": "4"},
        {
            "outputs": [
                {"name": "a", "datatype": "FP32", "shape": [-1]},
                {"name": "b", "datatype": "FP32", "shape": [-1]},
            ]
        },
    ],
)
def test_a_model_that_takes_no_texts_or_gives_no_probability_is_refused(changes):
    script = Script(lambda *_: foreign(**changes))
    with independent(script) as url, pytest.raises(ModelError, match="must have one input"):
        RemoteScorer(url, model="hate")


def test_an_unreachable_server_is_named(free_tcp_port):
    with pytest.raises(ModelError, match="cannot be reached"):
        RemoteScorer(f"http://127.0.0.1:{free_tcp_port}", model="hate", patience=0.1)


@pytest.fixture
def free_tcp_port():
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        return int(server.server_port)


def test_long_texts_are_sent_in_several_requests():
    sizes = list[int]()

    def answer(_: Script, path: str, content: dict[str, Any] | None) -> Any:
        if content is None:
            return foreign()
        sizes.append(sum(map(len, content["inputs"][0]["data"])))
        (tensor,) = content["inputs"]
        count = len(tensor["data"])
        output = {"name": "scores", "datatype": "FP32", "shape": [count], "data": [0.5] * count}
        return {"model_name": "hate", "model_version": "4", "outputs": [output]}

    texts = ["x" * 90_000] * 7 + ["y" * 300_000]
    with independent(Script(answer)) as url, RemoteScorer(url, model="hate") as scorer:
        assert scorer.score(texts).prob.tolist() == [0.5] * 8
    assert sorted(sizes) == [90_000, 180_000, 180_000, 180_000, 300_000]


def test_triton_s_client_drives_modwatch_s_server(registry):
    with running(registry) as url:
        client = triton.InferenceServerClient(url.removeprefix("http://"))
        try:
            assert client.is_server_live()
            assert client.is_server_ready()
            assert client.is_model_ready("toxicity")
            assert client.get_model_metadata("toxicity")["versions"] == ["1"]
            assert client.get_server_metadata()["name"] == "modwatch"
            texts = np.array(["abc", "", "שלום 🙂"], dtype=object)
            for binary in (True, False):
                given = triton.InferInput("text", [3], "BYTES")
                given.set_data_from_numpy(texts, binary_data=binary)
                wanted = [
                    triton.InferRequestedOutput(name, binary_data=binary)
                    for name in ("prob", "uncertainty")
                ]
                for outputs in (wanted, None):
                    found = client.infer("toxicity", [given], outputs=outputs, request_id="7")
                    assert found.as_numpy("prob").tolist() == pytest.approx([0.003, 0, 0.006])
                    assert found.get_response()["id"] == "7"
            wrong = triton.InferInput("comment", [1], "BYTES")
            wrong.set_data_from_numpy(np.array(["a"], dtype=object))
            with pytest.raises(triton.InferenceServerException, match="name `text`"):
                client.infer("toxicity", [wrong])
        finally:
            client.close()

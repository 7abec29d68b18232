"""Messages of the protocol: texts in JSON and binary, bad requests, responses."""

import json
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from modwatch.models.scoring.scorer import Predictions
from modwatch.models.serving.v2 import JSON_LENGTH, RequestError, parse_request, response

TEXTS = ["a", "", "two\nlines", "שלום 🙂"]


def predictions(n: int) -> Predictions:
    prob = np.linspace(0, 1, n, dtype=np.float32)
    more = {"model_variance": prob / 8, "mutual_information": prob / 2}
    return Predictions.of(prob, more, cut=prob == 1)


def request(texts: list[str], **changes: object) -> dict[str, object]:
    tensor = {"name": "text", "datatype": "BYTES", "shape": [len(texts)], "data": texts}
    return {"inputs": [tensor | changes]}


def parsed(content: object, most: int = 100) -> list[str]:
    return parse_request(json.dumps(content).encode(), None, most=most).texts


def binary(texts: list[bytes], size: int | None = None) -> tuple[bytes, str]:
    data = b"".join(struct.pack("<I", len(text)) + text for text in texts)
    tensor = {"name": "text", "datatype": "BYTES", "shape": [len(texts)]}
    tensor["parameters"] = {"binary_data_size": len(data) if size is None else size}
    header = json.dumps({"inputs": [tensor]}).encode()
    return header + data, str(len(header))


@given(texts=st.lists(st.text(st.characters(codec="utf-8")), max_size=5))
def test_texts_come_in_json_and_binary(texts):
    assert parsed(request(texts)) == texts
    body, length = binary([text.encode() for text in texts])
    assert parse_request(body, length, most=100).texts == texts


def test_a_column_of_texts_is_a_list():
    column = request(TEXTS, shape=[4, 1], data=[[text] for text in TEXTS])
    assert parsed(column) == parsed(request(TEXTS, shape=[4, 1])) == TEXTS


SECRET = "a secret comment"


def classes(name: str, count: object) -> dict[str, object]:
    return {"name": name, "parameters": {"classification": count}}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([], "object"),
        ({}, "inputs"),
        ({"inputs": []}, "inputs"),
        ({"inputs": [1]}, "inputs"),
        ({"inputs": request(["a"])["inputs"] * 2}, "one tensor"),
        (request([SECRET], name="comment"), "name `text`"),
        (request([SECRET], datatype="FP32"), "BYTES"),
        (request([SECRET], shape=[2]), "1 texts"),
        (request([SECRET], shape=[]), "shape"),
        (request([SECRET], shape=[-1]), "shape"),
        (request([SECRET], shape=[True]), "shape"),
        (request([SECRET], shape=[1, 2]), "shape"),
        (request([SECRET], shape="1"), "shape"),
        (request([SECRET], data=None), "data"),
        (request([SECRET], data=[1]), "strings"),
        (request([SECRET], data=[["a", "b"]]), "strings"),
        (request([SECRET + "\ud800"]), "Unicode"),
        (request([SECRET], parameters=3), "parameters"),
        (request([SECRET], parameters={"binary_data_size": 3}), "binary_data_size"),
        (request([SECRET]) | {"id": 3}, "id"),
        (request([SECRET]) | {"outputs": ["prob"]}, "outputs"),
        (request([SECRET]) | {"outputs": [{"name": "logit"}]}, "prob, uncertainty"),
        (request([SECRET]) | {"outputs": [classes("cut", 1)]}, "of the output `prob`"),
        (request([SECRET]) | {"outputs": [classes("prob", "2")]}, "a number of classes"),
    ],
)
def test_what_is_no_request_is_refused_without_its_texts(content, message):
    with pytest.raises(RequestError, match=message) as refused:
        parsed(content)
    assert refused.value.status == 400
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize("body", [b"", b"{", b"\xff\xfe", b"[" * 100_000])
def test_what_is_no_json_is_refused(body):
    with pytest.raises(RequestError, match="JSON in UTF-8"):
        parse_request(body, None, most=1)


@pytest.mark.parametrize(
    ("texts", "size", "message"),
    [([b"\xff"], None, "not valid UTF-8"), ([b"abc"], 3, "binary_data_size")],
)
def test_bad_binary_texts_are_refused(texts, size, message):
    body, length = binary(texts, size)
    with pytest.raises(RequestError, match=message):
        parse_request(body, length, most=10)


@pytest.mark.parametrize("kept", [1, 2, 3, 5])
def test_binary_texts_that_end_early_are_refused(kept):
    data = (struct.pack("<I", 9) + b"too short")[:kept]
    tensor = {"name": "text", "datatype": "BYTES", "shape": [1]}
    tensor["parameters"] = {"binary_data_size": kept}
    header = json.dumps({"inputs": [tensor]}).encode()
    with pytest.raises(RequestError, match="end within a text"):
        parse_request(header + data, str(len(header)), most=10)


@pytest.mark.parametrize("length", ["-1", "x", "1000000", "9" * 5_000])
def test_a_wrong_length_of_the_header_is_refused(length):
    with pytest.raises(RequestError, match=JSON_LENGTH):
        parse_request(b"{}", length, most=1)


def test_too_many_texts_are_refused():
    with pytest.raises(RequestError, match="at most 2") as refused:
        parsed(request(["a"] * 3), most=2)
    assert refused.value.status == 413


def answered(content: dict[str, object], n: int = 3) -> tuple[dict[str, object], bytes]:
    body = json.dumps(content).encode()
    wanted = parse_request(body, None, most=10, columns=predictions(0).names)
    body, headers = response(wanted, predictions(n), model="toxicity", version="7", threshold=0.25)
    length = int(headers.get(JSON_LENGTH, len(body)))
    return json.loads(body[:length]), body[length:]


def test_a_response_has_every_output_unless_some_are_wanted():
    found, rest = answered(request(["a", "b", "c"]) | {"id": "42"})
    assert rest == b""
    assert {key: found[key] for key in ("model_name", "model_version", "id", "parameters")} == {
        "model_name": "toxicity",
        "model_version": "7",
        "id": "42",
        "parameters": {"threshold": 0.25},
    }
    columns = {output["name"]: output["data"] for output in found["outputs"]}  # type: ignore[attr-defined]
    assert columns == {
        "prob": [0, 0.5, 1],
        "uncertainty": [0, 0.25, 0.25],
        "model_variance": [0, 0.0625, 0.125],
        "mutual_information": [0, 0.25, 0.5],
        "cut": [False, False, True],
    }
    few, _ = answered(request(["a", "b", "c"]) | {"outputs": [{"name": "uncertainty"}]})
    assert [output["name"] for output in few["outputs"]] == ["uncertainty"]  # type: ignore[attr-defined]
    assert "id" not in few


def test_outputs_may_be_binary():
    wanted = [{"name": "prob", "parameters": {"binary_data": True}}, {"name": "uncertainty"}]
    found, rest = answered(request(["a", "b", "c"]) | {"outputs": wanted})
    assert np.frombuffer(rest, "<f4").tolist() == [0, 0.5, 1]
    first, second = found["outputs"]  # type: ignore[misc]
    assert first["parameters"] == {"binary_data_size": 12}
    assert "data" not in first
    assert second["data"] == [0, 0.25, 0.25]
    everything = {"parameters": {"binary_data_output": True}}
    _, rest = answered(request(["a", "b", "c"]) | everything)
    assert len(rest) == 4 * 12 + 3
    assert np.frombuffer(rest[-3:], bool).tolist() == [False, False, True]

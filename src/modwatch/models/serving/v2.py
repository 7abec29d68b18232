"""Messages of the Open Inference Protocol, version 2: texts in, predictions out.

Source: the protocol's HTTP/REST interface, and two extensions of Triton. Its clients use that for
binary tensors by default: a JSON header, whose length a header of HTTP states, and the tensors'
bytes behind it. By that for classification, `prob` is returned as classes with their values.
"""

import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from modwatch.models.scoring.scorer import PLAIN, Predictions

#: Header with the length of the JSON before binary tensors.
JSON_LENGTH = "Inference-Header-Content-Length"
_MOST_DIGITS = 12  # of that length; Python reads no number of thousands of digits

#: The one input.
INPUT = {"name": "text", "datatype": "BYTES", "shape": [-1]}
EXTENSIONS = ("binary_tensor_data", "classification")
#: The classes of `prob`, the toxic one last.
_CLASSES = "0:not toxic", "1:toxic"
#: Elements of a binary tensor, by datatype.
_BINARY = {"FP32": "<f4", "BOOL": "?"}


class RequestError(Exception):
    """A request that is answered with an error; the message is the client's to read.

    It never contains a text.
    """

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, kw_only=True)
class InferRequest:
    """A request for predictions."""

    texts: list[str]
    #: As the client gave it, and gets it back.
    id: str | None
    #: Names of the outputs, and whether each is binary.
    outputs: dict[str, bool]
    #: How many classes of `prob` are wanted, the most probable first; 0: its value.
    classes: int


def datatypes(columns: Sequence[str]) -> dict[str, str]:
    """Return the outputs of a model whose predictions have these columns, with their datatypes.

    In the order of a response to a request that names none.

    >>> datatypes(("prob", "cut", "model_variance"))
    {'prob': 'FP32', 'uncertainty': 'FP32', 'model_variance': 'FP32', 'cut': 'BOOL'}
    """
    names = ("prob", "uncertainty", *(name for name in columns if name not in PLAIN))
    return dict.fromkeys(names, "FP32") | {"cut": "BOOL"}


def parse_request(
    body: bytes, json_length: str | None, *, most: int, columns: Sequence[str] = PLAIN
) -> InferRequest:
    """Return the request in a body.

    Args:
        body: of the HTTP request.
        json_length: header `JSON_LENGTH`; None: all of the body is JSON.
        most: texts of a request.
        columns: of the model's predictions.

    Raises:
        RequestError: it is no request, or has too many texts.

    >>> body = '{"inputs": [{"name": "text", "datatype": "BYTES", "shape": [1], "data": ["a"]}]}'
    >>> parse_request(body.encode(), None, most=10).texts
    ['a']
    """
    header, binary = _split(body, json_length)
    try:
        given = json.loads(header)
    except (ValueError, RecursionError) as exc:
        raise RequestError("the request must be JSON in UTF-8") from exc
    if not isinstance(given, dict):
        raise RequestError("the request must be an object with `inputs`")
    inputs = given.get("inputs")
    if not isinstance(inputs, list) or len(inputs) != 1 or not isinstance(inputs[0], dict):
        raise RequestError("`inputs` must have the one tensor `text`")
    identifier = given.get("id")
    if identifier is not None and not isinstance(identifier, str):
        raise RequestError("`id` must be a string")
    outputs, classes = _outputs(given, [*datatypes(columns)])
    return InferRequest(
        texts=_texts(inputs[0], binary, most), id=identifier, outputs=outputs, classes=classes
    )


def response(
    request: InferRequest, found: Predictions, *, model: str, version: str, threshold: float
) -> tuple[bytes, dict[str, str]]:
    """Return body and headers of a response; `threshold` is among its parameters."""
    tensors, parts = [], []
    columns, kinds = found.by_name, datatypes(found.names)
    for name, binary in request.outputs.items():
        values, kind = columns[name], kinds[name]
        if name == "prob" and request.classes:
            values, kind = _classified(values, request.classes), "BYTES"
        tensor: dict[str, Any] = {"name": name, "datatype": kind, "shape": [*values.shape]}
        if binary:
            parts.append(_packed(values, kind))
            tensor["parameters"] = {"binary_data_size": len(parts[-1])}
        else:
            tensor["data"] = values.ravel().tolist()
        tensors.append(tensor)
    content: dict[str, Any] = {
        "model_name": model,
        "model_version": version,
        "parameters": {"threshold": threshold},
        "outputs": tensors,
    }
    if request.id is not None:
        content["id"] = request.id
    header = json.dumps(content).encode()
    if not parts:
        return header, {"Content-Type": "application/json"}
    headers = {"Content-Type": "application/octet-stream", JSON_LENGTH: str(len(header))}
    return header + b"".join(parts), headers


def metadata(model: str, versions: Sequence[str], columns: Sequence[str]) -> dict[str, Any]:
    """Return the metadata of a model, `versions` with the current one last.

    `columns` are those of its predictions.
    """
    return {
        "name": model,
        "versions": list(versions),
        "platform": "modwatch",
        "inputs": [INPUT],
        "outputs": [
            {"name": name, "datatype": kind, "shape": [-1]}
            for name, kind in datatypes(columns).items()
        ],
    }


def _split(body: bytes, json_length: str | None) -> tuple[bytes, bytes]:
    if json_length is None:
        return body, b""
    readable = json_length.isdecimal() and len(json_length) <= _MOST_DIGITS
    if not readable or int(json_length) > len(body):
        raise RequestError(f"the header {JSON_LENGTH} must be the length of the JSON")
    return body[: int(json_length)], body[int(json_length) :]


def _texts(tensor: Mapping[str, Any], binary: bytes, most: int) -> list[str]:
    """Return the texts of the input tensor."""
    if tensor.get("name") != INPUT["name"]:
        raise RequestError("the input must have the name `text`")
    if tensor.get("datatype") != INPUT["datatype"]:
        raise RequestError("the input `text` must have the datatype BYTES")
    rows = _rows(tensor.get("shape"))
    if rows > most:
        raise RequestError(f"{rows} texts are too many; send at most {most} in a request", 413)
    size = _parameters(tensor).get("binary_data_size")
    texts = _flat(tensor.get("data")) if size is None else _decoded(binary, size)
    if len(texts) != rows:
        raise RequestError(f"the input has {len(texts)} texts, but its shape says {rows}")
    return texts


def _rows(shape: object) -> int:
    """Return N of a shape [N] or [N, 1]."""
    if (
        not isinstance(shape, list)
        or not shape
        or len(shape) > 2
        or any(type(size) is not int or size < 0 for size in shape)
        or shape[1:] not in ([], [1])
    ):
        raise RequestError("the input must have the shape [N] or [N, 1]")
    return int(shape[0])


def _flat(data: object) -> list[str]:
    """Return texts in a list, or each in a list of its own."""
    if not isinstance(data, list):
        raise RequestError("the input must have `data`, a list of strings")
    texts = [text[0] if isinstance(text, list) and len(text) == 1 else text for text in data]
    if not all(isinstance(text, str) for text in texts):
        raise RequestError("`data` must be a list of strings")
    try:
        "".join(texts).encode()
    except UnicodeEncodeError as exc:  # the half of a surrogate pair, which JSON allows
        raise RequestError("a text is not valid Unicode") from exc
    return texts


def _decoded(binary: bytes, size: object) -> list[str]:
    """Return texts in bytes, each after its length in four bytes, little-endian."""
    if size != len(binary):
        raise RequestError("`binary_data_size` is not the number of bytes after the JSON")
    texts, at = [], 0
    while at < len(binary):
        length = struct.unpack_from("<I", binary, at)[0] if at + 4 <= len(binary) else len(binary)
        at += 4
        if at + length > len(binary):
            raise RequestError("the binary data end within a text")
        try:
            texts.append(binary[at : at + length].decode())
        except UnicodeDecodeError as exc:
            raise RequestError(f"text {len(texts)} is not valid UTF-8") from exc
        at += length
    return texts


def _classified(prob: NDArray[np.float32], count: int) -> NDArray[np.object_]:
    """Return `value:index:label` (N, count) of the most probable classes.

    >>> _classified(np.array([0.25]), 2).tolist()
    [['0.750000:0:not toxic', '0.250000:1:toxic']]
    """
    both = np.stack([1 - prob, prob], axis=1)
    order = np.argsort(-both, axis=1, kind="stable")[:, :count]
    rows = [[f"{row[i]:f}:{_CLASSES[i]}" for i in of] for row, of in zip(both, order, strict=True)]
    return np.array(rows, object).reshape(order.shape)


def _packed(values: NDArray[Any], kind: str) -> bytes:
    """Return the elements of a binary tensor."""
    if kind in _BINARY:
        return values.astype(_BINARY[kind]).tobytes()
    return b"".join(struct.pack("<I", len(text)) + text.encode() for text in values.ravel())


def _outputs(given: Mapping[str, Any], known: Sequence[str]) -> tuple[dict[str, bool], int]:
    """Return which of the known outputs are wanted, whether as binary, and how many classes."""
    everything = _parameters(given).get("binary_data_output") is True
    wanted = given.get("outputs")
    if not wanted:
        return dict.fromkeys(known, everything), 0
    if not isinstance(wanted, list) or not all(isinstance(output, dict) for output in wanted):
        raise RequestError("`outputs` must be a list of objects with a name")
    found, classes = {}, 0
    for output in wanted:
        if output.get("name") not in known:
            raise RequestError(f"the outputs are {', '.join(known)}")
        parameters, name = _parameters(output), str(output["name"])
        found[name] = parameters.get("binary_data", everything) is True
        count = parameters.get("classification", 0)
        if type(count) is not int or count < 0 or (count and name != "prob"):
            raise RequestError("`classification` must be a number of classes, of the output `prob`")
        classes = min(classes or count, len(_CLASSES))
    return found, classes


def _parameters(given: Mapping[str, Any]) -> dict[str, Any]:
    parameters = given.get("parameters")
    if parameters is None:
        return {}
    if not isinstance(parameters, dict):
        raise RequestError("`parameters` must be an object")
    return parameters

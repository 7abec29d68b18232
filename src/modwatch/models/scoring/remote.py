"""A scorer on a server that speaks the Open Inference Protocol V2, such as `modwatch serve`."""

import math
import random
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import quote

import httpx
import numpy as np
from numpy.typing import NDArray

from modwatch.common.errors import ModelError
from modwatch.common.text import visible
from modwatch.models.scoring.scorer import (
    DEFAULT_THRESHOLD,
    PLAIN,
    LabelsCheck,
    Predictions,
    check_finite,
)
from modwatch.statistics.collaboration.review_strategies import score_columns

#: What a model is called on a server that knows no versions.
_NO_VERSION = "1"

#: Names of outputs that hold the probability, the first that the server has.
_PROBABILITIES = ("prob", "probability", "probabilities", "toxicity", "score", "scores", "output")
_FLOATS = ("FP64", "FP32", "FP16", "BF16")

#: Most texts and characters of a request.
_TEXTS, _CHARACTERS = 128, 200_000

#: Seconds before the second attempt; they double, up to the most.
_PAUSE, _LONGEST_PAUSE = 0.5, 30.0
_TIMEOUT = httpx.Timeout(connect=10.0, read=300.0, write=60.0, pool=300.0)


class _RetryableError(Exception):
    """The server may answer a later attempt."""

    def __init__(self, message: str, seconds: float = 0.0) -> None:
        super().__init__(message)
        self.seconds = seconds


@dataclass(frozen=True, kw_only=True)
class _Tensors:
    """Names of the tensors of a model."""

    text: str
    #: By column of the predictions, that are asked for.
    outputs: dict[str, str]


class RemoteScorer:
    """Scores on a server; satisfies `scoring.scorer.Scorer`. Use it as a context manager.

    Texts are sent in several requests at a time. A request is repeated when the server is busy
    (429), fails (5xx) or cannot be reached, and not when it is refused (other 4xx).

    The model of the server has one input of texts (BYTES) and an output with the probability, of
    shape (N,), (N, 1) or (N, 2): called `prob`, or the only one of floating-point numbers. Further
    outputs are read where a review score needs a column of their name, such as `model_variance`.
    Without `cut`, comments are taken as read to the end. No invisible characters are sent.
    """

    def __init__(
        self,
        url: str,
        *,
        model: str,
        model_version: str | None = None,
        threshold: float | None = None,
        token: str | None = None,
        concurrency: int = 4,
        patience: float = 600.0,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        """Ask the server for its model.

        Args:
            url: of the server, without `/v2`. A user and password in it are sent by Basic
                authentication, in place of the token, and are shown nowhere.
            model: name of the model.
            model_version: that scores; None: the last that the server names, its newest.
            threshold: comments with a higher probability are flagged; None: what the server says
                with its predictions, or else 0.5.
            token: sent as `Authorization: Bearer …`.
            concurrency: requests at a time.
            patience: seconds after which a request is not repeated any more.
            transport: of httpx; None: the network.

        Raises:
            ModelError: the server cannot be reached, does not have the model, or the model does not
                take texts and return probabilities.
        """
        self._url, account = _without_account(url)
        self._patience = patience
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._client = httpx.Client(
            headers=headers, auth=account, timeout=_TIMEOUT, transport=transport
        )
        self._concurrency, self._gave_up = concurrency, threading.Event()
        self._labels = LabelsCheck()
        self._model = f"{self._url}/v2/models/{quote(model, safe='')}"
        self.threshold = DEFAULT_THRESHOLD if threshold is None else threshold
        self._fixed_threshold = threshold is not None
        try:
            if model_version in (None, _NO_VERSION):
                versions = self._asked("GET", self._model).get("versions")
                listed = versions if isinstance(versions, list) else []
                named = [version for version in listed if version]
                model_version = model_version or (str(named[-1]) if named else _NO_VERSION)
            else:
                named = [model_version]
            if named:
                self._model += f"/versions/{quote(model_version, safe='')}"
            self._tensors = _tensors(self._asked("GET", self._model), self._url)
        except BaseException:
            self.close()
            raise
        self.columns = tuple(dict.fromkeys((*PLAIN, *self._tensors.outputs)))
        #: As the registry or the server calls it; "1" on a server that knows no versions.
        self.model_version = model_version

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def score(self, texts: Sequence[str]) -> Predictions:
        """Return predictions for `texts`, in their order.

        Raises:
            ModelError: the server refuses a request, fails for longer than the patience, answers
                with another version, or returns no probability for each text, or only 0 and 1.
        """
        values = np.zeros((len(self.columns), len(texts)), np.float32)
        texts = [visible(text) for text in texts]
        parts = list(_parts(texts))
        self._gave_up.clear()
        with ThreadPoolExecutor(self._concurrency) as pool:
            try:
                found = pool.map(self._infer, (texts[rows] for rows in parts))
                for rows, part in zip(parts, found, strict=True):
                    values[:, rows] = part
            except BaseException:
                self._gave_up.set()  # the other requests need no further attempt
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        if self._labels.only(values[0]):
            raise ModelError(
                f"{self._url} returns labels, 0 and 1, which cannot order comments for review; let "
                "it serve probabilities, such as the output predict_proba of scikit-learn"
            )
        return Predictions(names=self.columns, values=values)

    def _infer(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the values (K, n) of the predictions."""
        names = self._tensors
        content = {
            "inputs": [
                {"name": names.text, "datatype": "BYTES", "shape": [len(texts)], "data": [*texts]}
            ],
            "outputs": [{"name": name} for name in names.outputs.values()],
        }
        answer = self._asked("POST", f"{self._model}/infer", json=content)
        version = answer.get("model_version")
        if version is not None and str(version) not in ("", self.model_version):
            raise ModelError(
                f"{self._url} answered with version {str(version)[:40]} in place of "
                f"{self.model_version}; a day is scored by one version: let the server keep it, or "
                "add /v2/models/NAME/versions/VERSION to MODWATCH_SCORER if it names no versions"
            )
        parameters = answer.get("parameters")
        threshold = parameters.get("threshold") if isinstance(parameters, dict) else None
        if not self._fixed_threshold and isinstance(threshold, int | float) and 0 <= threshold <= 1:
            self.threshold = float(threshold)
        found = np.zeros((len(self.columns), len(texts)), np.float32)
        given = _by_name(answer.get("outputs"))
        for row, column in enumerate(self.columns):
            if name := names.outputs.get(column):
                found[row] = self._column(given.get(name, {}), name, len(texts))
        prob = found[0]
        if not ((prob >= 0) & (prob <= 1)).all():  # NaN fails, too
            raise ModelError(
                f"{self._url} returns values outside [0, 1]; it must return the probability that a "
                "comment is toxic"
            )
        check_finite(self.columns, found, self._url)
        return found

    def _column(self, tensor: Mapping[str, Any], name: str, rows: int) -> NDArray[np.float64]:
        """Return the values (rows,) of an output; the last column if there are two."""
        try:
            shape = [int(size) for size in tensor["shape"]]
            values = np.asarray(tensor["data"], np.float64).reshape(shape)
        except (KeyError, TypeError, ValueError, OverflowError):
            values = np.zeros(0)
        if values.ndim == 2 and values.shape[1] in (1, 2):
            values = values[:, -1]
        if values.shape != (rows,):
            raise ModelError(
                f"{self._url} must return one value of `{name}` for each text, as JSON numbers of "
                "the shape [N], [N, 1] or [N, 2]"
            )
        return values

    def _asked(self, method: str, url: str, **content: Any) -> dict[str, Any]:
        """Return the answer of the server, asked again while that may help."""
        deadline, pause = time.monotonic() + self._patience, _PAUSE
        while True:
            try:
                return self._once(method, url, **content)
            except _RetryableError as exc:
                wait = max(exc.seconds, pause * random.uniform(0.5, 1.0))  # noqa: S311 - spreads load
                if time.monotonic() + wait > deadline or self._gave_up.wait(wait):
                    raise ModelError(
                        f"{self._url} {exc}, and did so for {self._patience:.0f} s; start the "
                        "server again, or set MODWATCH_SCORER to local"
                    ) from exc
                pause = min(2 * pause, _LONGEST_PAUSE)

    def _once(self, method: str, url: str, **content: Any) -> dict[str, Any]:
        try:
            response = self._client.request(method, url, **content)
        except httpx.HTTPError as exc:
            # Its message has no text, but may have a URL with a password.
            raise _RetryableError(f"cannot be reached ({type(exc).__name__})") from None
        status = response.status_code
        if status == httpx.codes.TOO_MANY_REQUESTS or status >= 500:
            raise _RetryableError(f"answers {status}", _retry_after(response))
        if status in (401, 403):
            raise ModelError(f"{self._url} answers {status}; set MODWATCH_SCORER_TOKEN")
        if status >= 300:
            # The server's own words may quote a comment.
            raise ModelError(f"{self._url} refuses {url.removeprefix(self._url)} with {status}")
        try:
            answer = response.json()
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise ModelError(f"{self._url} does not answer in JSON; is it a V2 inference server?")
        return answer


def _tensors(metadata: Mapping[str, Any], url: str) -> _Tensors:
    """Return which tensors of a model are text and probability."""
    inputs, outputs = (
        {name: str(tensor.get("datatype")) for name, tensor in _by_name(metadata.get(kind)).items()}
        for kind in ("inputs", "outputs")
    )
    texts = [name for name, kind in inputs.items() if kind == "BYTES"]
    floats = [name for name, kind in outputs.items() if kind in _FLOATS]
    named = [name for name in _PROBABILITIES if name in floats]
    if len(texts) != 1 or len(inputs) != 1 or not (named or len(floats) == 1):
        raise ModelError(
            f"the model on {url} must have one input, of texts (BYTES), and an output `prob` of "
            f"floating-point numbers; it has {', '.join(inputs) or 'none'} and "
            f"{', '.join(outputs) or 'none'}"
        )
    asked = {"prob": (named or floats)[0]}
    if outputs.get("cut") == "BOOL":
        asked["cut"] = "cut"
    asked |= {name: name for name in score_columns() if name in floats}
    return _Tensors(text=texts[0], outputs=asked)


def _by_name(tensors: object) -> dict[str, dict[str, Any]]:
    """Return the tensors of an answer by their names; what is none is left out."""
    listed = tensors if isinstance(tensors, list) else []
    return {str(tensor.get("name")): tensor for tensor in listed if isinstance(tensor, dict)}


def _without_account(url: str) -> tuple[str, tuple[str, str] | None]:
    """Return a URL without its user and password, which would be logged with it; and these."""
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL:  # its message may quote a password
        raise ModelError(
            "MODWATCH_SCORER is no URL of a server; set it to http://host:port, with special "
            "characters of a password as %xx"
        ) from None
    account = (parsed.username, parsed.password) if parsed.userinfo else None
    return str(parsed.copy_with(userinfo=b"")).rstrip("/"), account


def _parts(texts: Sequence[str]) -> Iterator[slice]:
    """Yield the rows of each request.

    >>> [(rows.start, rows.stop) for rows in _parts(["a"] * 130)]
    [(0, 128), (128, 130)]
    """
    start = size = 0
    for row, text in enumerate(texts):
        if row > start and (row - start == _TEXTS or size + len(text) > _CHARACTERS):
            yield slice(start, row)
            start, size = row, 0
        size += len(text)
    if start < len(texts):
        yield slice(start, len(texts))


def _retry_after(response: httpx.Response) -> float:
    """Return the seconds that the server asks to wait, at most the longest pause."""
    try:
        seconds = float(response.headers.get("Retry-After", 0))
    except ValueError:  # a date
        return 0.0
    return min(max(seconds, 0.0), _LONGEST_PAUSE) if math.isfinite(seconds) else 0.0

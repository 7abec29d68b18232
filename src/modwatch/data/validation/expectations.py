"""Evaluates expectations with Great Expectations: quiet, offline, and without values in results.

It gets columns of the day, texts among them. Its ordinary results quote values, so only these are
requested: whether an expectation holds, how many rows fail it, and at which positions.
"""

import logging
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from modwatch.common.errors import CheckError
from modwatch.data.validation.result import Measure, RuleResult
from modwatch.data.validation.rules import Rule

#: Rows that are evaluated at once, and the bytes of their columns: this bounds the memory of a day
#: of any size, and of one on which every row fails.
CHUNK_ROWS = 100_000
_CHUNK_BYTES = 64_000_000

_POSITIONS = {
    "result_format": "COMPLETE",
    "exclude_unexpected_values": True,
    "partial_unexpected_count": 0,
    "return_unexpected_index_query": False,
}
_COUNTS = _POSITIONS | {"result_format": "BASIC"}

Columns = Mapping[str, pa.Array]


def chunks(batches: Iterable[Columns]) -> Iterator[dict[str, pa.Array]]:
    """Yield the columns of several batches as one, as many as are evaluated at once."""
    kept: list[Columns] = []
    rows = size = 0
    for batch in batches:
        kept.append(batch)
        rows += len(next(iter(batch.values())))
        size += sum(column.nbytes for column in batch.values())
        if rows >= CHUNK_ROWS or size >= _CHUNK_BYTES:
            yield _joined(kept)
            kept, rows, size = [], 0, 0
    if kept:
        yield _joined(kept)


def _joined(batches: Sequence[Columns]) -> dict[str, pa.Array]:
    return {name: pa.concat_arrays([batch[name] for batch in batches]) for name in batches[0]}


def failing_rows(
    frame: pd.DataFrame, rules: Sequence[Rule], parameters: Mapping[str, Any]
) -> list[NDArray[np.int64]]:
    """Return the positions of the rows that fail each rule, ascending.

    Args:
        frame: the columns that the rules read, under their names.
        rules: expectations on single rows, or on the uniqueness of values.
        parameters: the values of what the rules refer to as `$PARAMETER`.

    Raises:
        CheckError: Great Expectations could not evaluate a rule.
    """
    failing = [np.empty(0, dtype=np.int64) for _ in rules]
    at = [number for number, held in enumerate(holding(frame, rules, parameters)) if not held]
    results = _evaluate(frame, [rules[number] for number in at], _POSITIONS, parameters)
    for number, result in zip(at, results, strict=True):
        found = _known(result, rules[number]).result["unexpected_index_list"]
        failing[number] = np.asarray(found, dtype=np.int64)
    return failing


def holding(
    frame: pd.DataFrame, rules: Sequence[Rule], parameters: Mapping[str, Any]
) -> list[bool]:
    """Return whether each rule holds on the frame; arguments and errors as of `failing_rows`."""
    results = _evaluate(frame, rules, "BOOLEAN_ONLY", parameters)
    return [bool(_known(result, rule).success) for result, rule in zip(results, rules, strict=True)]


def judged_day(
    rules: Sequence[Rule],
    measures: Mapping[str, Measure],
    parameters: Mapping[str, Any],
    frames: Mapping[str, pd.DataFrame],
) -> list[RuleResult]:
    """Return the outcome of each rule of the day; one whose measure has no value is skipped.

    `measures` are by name of the rule, `frames` by name of the batch. Raises as `failing_rows`.
    """
    of_day = [rule for rule in rules if rule.level == "day"]
    held: dict[Rule, bool] = {}
    for batch, frame in frames.items():
        known = [r for r in of_day if r.batch == batch and measures[r.name].value is not None]
        held |= zip(known, holding(frame, known, parameters), strict=True)
    return [rule.result(measures[rule.name], passed=held.get(rule, True)) for rule in of_day]


def counted(frame: pd.DataFrame, rules: Sequence[Rule], parameters: Mapping[str, Any]) -> list[Any]:
    """Return the result of each rule with counts and without values; None: it has no result."""
    results = _evaluate(frame, rules, _COUNTS, parameters)
    return [None if _has_raised(result) else result for result in results]


def _evaluate(
    frame: pd.DataFrame,
    rules: Sequence[Rule],
    result_format: str | dict[str, Any],
    parameters: Mapping[str, Any],
) -> list[Any]:
    """Return what Great Expectations finds for each rule."""
    if not rules:
        return []
    gx = great_expectations()
    configs = [
        {"type": rule.type, "kwargs": dict(rule.kwargs), "meta": {"number": number}}
        for number, rule in enumerate(rules)
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        suite = gx.ExpectationSuite(name="modwatch", expectations=configs)
        batch = _batch_definition().get_batch({"dataframe": frame})
        found = batch.validate(
            suite, result_format=result_format, expectation_parameters=dict(parameters)
        )
    return sorted(found.results, key=lambda result: result.expectation_config.meta["number"])


def _known(result: Any, rule: Rule) -> Any:
    if _has_raised(result):
        raise CheckError(
            f"Great Expectations could not evaluate the rule {rule.name} ({rule.type}); check that "
            "requirements.txt is installed as pinned and run the check again."
        )
    return result


def _has_raised(result: Any) -> bool:
    """Return whether an evaluation failed: Great Expectations keeps its exceptions in results."""
    info = result.exception_info or {}
    single = info.get("raised_exception")
    return bool(single) or any(
        isinstance(part, dict) and part.get("raised_exception") for part in info.values()
    )


@cache
def _batch_definition() -> Any:
    """Return a batch definition in a context in memory, without progress bars."""
    context = great_expectations().get_context(mode="ephemeral")
    context.enable_analytics(False)
    context.variables.progress_bars = {"globally": False}
    asset = context.data_sources.add_pandas("memory").add_dataframe_asset("day")
    return asset.add_batch_definition_whole_dataframe("whole")


@cache
def great_expectations() -> ModuleType:
    """Return the library, imported on first use: it takes seconds and 200 MB.

    Its import raises deprecation warnings of other libraries and sends `warnings` to logging for
    the whole process; both are undone. Its logs hold nothing that its results do not.
    """
    logger = logging.getLogger("great_expectations")
    logger.propagate = False
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())
    captured_before = warnings.showwarning.__module__ == "logging"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import great_expectations as gx
        import great_expectations.expectations
    if not captured_before:
        logging.captureWarnings(False)
    module: ModuleType = gx
    return module

"""Great Expectations as Modwatch uses it: quiet, offline, and never shown a text or an id.

Results of Great Expectations hold values of the validated column. Only flags and numbers go in
(`rows.py`, `scores.py`), so only flags and numbers can come out.
"""

import logging
import warnings
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from modwatch.common.errors import CheckError
from modwatch.data.validation.result import Measure, RuleResult, ValidationRule

#: Rows given to Great Expectations at once. Its results list every failing row as a Python
#: object, so this bounds the memory of a day on which everything fails.
CHUNK_ROWS = 250_000

_RESULT_FORMAT = {
    "result_format": "COMPLETE",
    "partial_unexpected_count": 0,
    "return_unexpected_index_query": False,
}


def validate_rows(
    frame: pd.DataFrame, rules: Sequence[ValidationRule]
) -> tuple[NDArray[np.int16], tuple[RuleResult, ...]]:
    """Return the first rule that each of n rows fails, and the result of every rule.

    The first is (n,) int16: 0 passed all, k failed `rules[k-1]` first. Raises as `failing_rows`.
    """
    failing = failing_rows(frame, rules)
    first = np.zeros(len(frame), dtype=np.int16)
    for number, rule in reversed(list(enumerate(rules, start=1))):
        first[failing[rule.name]] = number
    counts = {name: len(rows) for name, rows in failing.items()}
    observed = {name: Measure.of_rows(count, len(frame)) for name, count in counts.items()}
    return first, tuple(RuleResult.of(r, observed[r.name], failing=counts[r.name]) for r in rules)


def validate_day(
    measures: Mapping[str, Measure], rules: Sequence[ValidationRule]
) -> tuple[RuleResult, ...]:
    """Return the result of every rule on the measure of its name. Raises as `failing_rows`."""
    values = {rule.name: measures[rule.name].value for rule in rules}
    failing = failing_rows(pd.DataFrame([values], dtype=np.float64), rules)
    return tuple(RuleResult.of(r, measures[r.name], failing=len(failing[r.name])) for r in rules)


def failing_rows(
    frame: pd.DataFrame, rules: Sequence[ValidationRule]
) -> dict[str, NDArray[np.int64]]:
    """Return the positions of the rows of `frame` that fail each rule, ascending, by rule name.

    Args:
        frame: one column per rule, named as the rule: flags (bool) or numbers.
        rules: validated in this order.

    Raises:
        CheckError: Great Expectations could not evaluate a rule.
    """
    gx = great_expectations()
    suite = gx.ExpectationSuite(name="rules", expectations=[_expectation(gx, r) for r in rules])
    definition = _batch_definition(gx)
    failing: dict[str, list[NDArray[np.int64]]] = {rule.name: [] for rule in rules}
    for start in range(0, len(frame), CHUNK_ROWS):
        chunk = frame.iloc[start : start + CHUNK_ROWS].reset_index(drop=True)
        batch = definition.get_batch({"dataframe": chunk})
        for result in batch.validate(suite, result_format=_RESULT_FORMAT).results:
            name, rows = _failing(result)
            failing[name].append(rows + start)
    none = np.empty(0, dtype=np.int64)
    return {name: np.concatenate([none, *parts]) for name, parts in failing.items()}


def _failing(result: Any) -> tuple[str, NDArray[np.int64]]:
    """Return the rule's name and the failing positions within the chunk, from one result."""
    name = str(result.expectation_config.meta["rule"])
    rows = (result.result or {}).get("unexpected_index_list")
    if rows is None or result.success != (len(rows) == 0):
        raise CheckError(
            f"Great Expectations could not evaluate the rule {name}; check that "
            "requirements.txt is installed as pinned and run the check again."
        )
    return name, np.asarray(rows, dtype=np.int64)


def _expectation(gx: ModuleType, rule: ValidationRule) -> Any:
    """Return the expectation for one rule, with the rule's name and severity."""
    common = {"column": rule.name, "severity": rule.severity, "meta": {"rule": rule.name}}
    if rule.minimum is None and rule.maximum is None:
        return gx.expectations.ExpectColumnValuesToBeInSet(value_set=[False], **common)
    return gx.expectations.ExpectColumnValuesToBeBetween(
        min_value=rule.minimum, max_value=rule.maximum, **common
    )


def _batch_definition(gx: ModuleType) -> Any:
    """Return a batch definition in a new context in memory, without progress bars."""
    context = gx.get_context(mode="ephemeral")
    context.enable_analytics(False)
    context.variables.progress_bars = {"globally": False}
    asset = context.data_sources.add_pandas("memory").add_dataframe_asset("profile")
    return asset.add_batch_definition_whole_dataframe("whole")


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

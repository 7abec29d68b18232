"""Great Expectations as Modwatch uses it: quiet, offline, and never shown a text or an id.

Results of Great Expectations hold values of the checked column. Only flags and numbers go in
(`profile.py`, `scores.py`), so only flags and numbers can come out.
"""

import logging
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from modwatch.errors import CheckError
from modwatch.quality.verdict import Level, RuleResult, Severity

#: Rows given to Great Expectations at once. Its results list every failing row as a Python
#: object, so this bounds the memory of a day on which everything fails.
CHUNK_ROWS = 250_000

_RESULT_FORMAT = {
    "result_format": "COMPLETE",
    "partial_unexpected_count": 0,
    "return_unexpected_index_query": False,
}


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One rule on the column of the same name: a flag that must be false, or a closed range."""

    #: Named after the fault that the rule looks for; also the column of the checked frame.
    name: str
    level: Level
    severity: Severity
    #: What is allowed, in words.
    bound: str
    #: What the rule asks for, in words.
    asks: str
    #: What to do when it fails, in words.
    remedy: str
    #: Smallest value allowed; with neither bound, the column is a flag that must be false.
    minimum: float | None = None
    #: Largest value allowed. A null is not judged.
    maximum: float | None = None

    def result(self, failing: int, observed: str, *, judged: bool = True) -> RuleResult:
        """The result of this rule, given how many rows failed it and what was seen."""
        return RuleResult(
            name=self.name,
            level=self.level,
            severity=self.severity,
            judged=judged,
            passed=failing == 0,
            failing=failing,
            observed=observed,
            bound=self.bound,
            asks=self.asks,
            remedy=self.remedy,
        )


def failing_rows(frame: pd.DataFrame, rules: Sequence[Rule]) -> dict[str, NDArray[np.int64]]:
    """Positions of the rows of `frame` that fail each rule, ascending, by the rule's name.

    Args:
        frame: one column per rule, named as the rule: flags (bool) or numbers.
        rules: what to judge it by.

    Raises:
        CheckError: Great Expectations could not evaluate a rule.
    """
    gx = _great_expectations()
    suite = gx.ExpectationSuite(name="rules", expectations=[_expectation(gx, r) for r in rules])
    definition = _batch_definition(gx)
    found: dict[str, list[NDArray[np.int64]]] = {rule.name: [] for rule in rules}
    for start in range(0, len(frame), CHUNK_ROWS):
        chunk = frame.iloc[start : start + CHUNK_ROWS].reset_index(drop=True)
        batch = definition.get_batch({"dataframe": chunk})
        for result in batch.validate(suite, result_format=_RESULT_FORMAT).results:
            name, rows = _failing(result)
            found[name].append(rows + start)
    none = np.empty(0, dtype=np.int64)
    return {name: np.concatenate([none, *parts]) for name, parts in found.items()}


def _failing(result: Any) -> tuple[str, NDArray[np.int64]]:
    """The rule's name and the failing positions within the chunk, from one result."""
    name = str(result.expectation_config.meta["rule"])
    rows = (result.result or {}).get("unexpected_index_list")
    if rows is None or result.success != (len(rows) == 0):
        raise CheckError(
            f"the rule {name} could not be evaluated by Great Expectations; check that "
            "requirements.txt is installed as pinned and run the check again"
        )
    return name, np.asarray(rows, dtype=np.int64)


def _expectation(gx: ModuleType, rule: Rule) -> Any:
    """The expectation for one rule, carrying the rule's name and severity."""
    common = {"column": rule.name, "severity": rule.severity, "meta": {"rule": rule.name}}
    if rule.minimum is None and rule.maximum is None:
        return gx.expectations.ExpectColumnValuesToBeInSet(value_set=[False], **common)
    return gx.expectations.ExpectColumnValuesToBeBetween(
        min_value=rule.minimum, max_value=rule.maximum, **common
    )


def _batch_definition(gx: ModuleType) -> Any:
    """A fresh context in memory, without progress bars, ready to be handed frames."""
    context = gx.get_context(mode="ephemeral")
    context.enable_analytics(False)
    context.variables.progress_bars = {"globally": False}
    asset = context.data_sources.add_pandas("memory").add_dataframe_asset("profile")
    return asset.add_batch_definition_whole_dataframe("whole")


def _great_expectations() -> ModuleType:
    """The library, imported on first use: it takes seconds and 200 MB.

    Its import deprecates its way through other libraries and switches `warnings` over to
    logging for the whole process; neither may leak into ours. What it logs says nothing that its
    results do not.
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

import subprocess
import sys
from datetime import date

import pandas as pd
import pytest

from modwatch.common.errors import CheckError
from modwatch.data.lake.schemas import LANDED, SCORES
from modwatch.data.validation.expectations import failing_rows, great_expectations, holding
from modwatch.data.validation.rules import Rule, Thresholds, day_parameters, suite_rules


def rule(kind, **kwargs):
    texts = dict.fromkeys(("allowed", "expectation", "remedy"), "")
    return Rule(name="rule", type=kind, kwargs=kwargs, severity="critical", batch="rows", **texts)


def between(minimum, maximum):
    return rule(
        "expect_column_values_to_be_between", column="n", min_value=minimum, max_value=maximum
    )


NOT_NULL = rule("expect_column_values_to_not_be_null", column="n")


def test_range_is_closed_and_null_is_skipped():
    frame = pd.DataFrame({"n": [0.9, 1, 2, 2.1, None]})
    limits = {"least": 1, "most": 2}

    found = failing_rows(
        frame, [between({"$PARAMETER": "least"}, {"$PARAMETER": "most"}), NOT_NULL], limits
    )

    assert [rows.tolist() for rows in found] == [[0, 3], [4]]
    assert holding(frame[1:3], [between(1, 2), NOT_NULL], {}) == [True, True]


def test_no_rows_fail_nothing():
    assert failing_rows(pd.DataFrame({"n": []}), [NOT_NULL], {})[0].size == 0


@pytest.mark.parametrize("evaluate", [failing_rows, holding])
def test_a_rule_that_cannot_be_evaluated_is_an_error_not_a_pass(evaluate):
    with pytest.raises(CheckError, match="could not evaluate the rule rule"):
        evaluate(pd.DataFrame({"other": [True]}), [NOT_NULL], {})


@pytest.mark.parametrize(("suite", "table"), [("comments", LANDED), ("scores", SCORES)])
def test_the_suites_are_those_of_great_expectations_and_of_the_tables(suite, table):
    gx = great_expectations()
    rules = suite_rules(suite, Thresholds())

    configs = [{"type": item.type, "kwargs": dict(item.kwargs)} for item in rules]
    assert len(gx.ExpectationSuite(name=suite, expectations=configs).expectations) == len(rules)
    schema = [item for item in rules if item.name == "schema"]
    parameters = day_parameters(date(2026, 1, 5), Thresholds(), table)
    assert holding(pd.DataFrame(columns=table.names), schema, parameters) == [True]
    for name in table.names:
        others = pd.DataFrame(columns=[other for other in table.names if other != name])
        assert holding(others, schema, parameters) == [False]
    assert all("{" not in item.allowed for item in rules)


PROBE = """
import logging, socket, sys, warnings
logging.basicConfig(level=logging.DEBUG)
def refuse(*_, **__): raise SystemExit("a connection was opened")
socket.socket.connect = refuse
socket.getaddrinfo = refuse
import modwatch.data.validation.comments
assert "great_expectations" not in sys.modules, "imported at the top"
import pandas as pd
from modwatch.data.validation.expectations import failing_rows
from modwatch.data.validation.rules import Rule
logging.getLogger("matplotlib").setLevel(logging.ERROR)
texts = dict.fromkeys(("allowed", "expectation", "remedy"), "")
kwargs = {"column": "text", "regex": "(x)"}
kind = "expect_column_values_to_match_regex"
rule = Rule(name="x", type=kind, kwargs=kwargs, severity="critical", batch="rows", **texts)
before = warnings.showwarning, list(warnings.filters)
found = failing_rows(pd.DataFrame({"text": ["a secret", "x"]}), [rule], {})
assert found[0].tolist() == [0]
assert (warnings.showwarning, list(warnings.filters)) == before, "warnings were changed"
"""


def test_nothing_is_imported_early_sent_out_or_left_behind():
    done = subprocess.run(
        [sys.executable, "-c", PROBE], capture_output=True, text=True, timeout=120, check=False
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")

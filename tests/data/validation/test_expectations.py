import subprocess
import sys

import pandas as pd
import pytest

from modwatch.common.errors import CheckError
from modwatch.data.validation.expectations import CHUNK_ROWS, failing_rows
from modwatch.data.validation.result import ValidationRule


def flag(name):
    return ValidationRule(
        name=name, level="row", severity="critical", allowed="", expectation="", remedy=""
    )


def between(name, minimum, maximum):
    return ValidationRule(
        name=name,
        level="row",
        severity="warning",
        allowed="",
        expectation="",
        remedy="",
        minimum=minimum,
        maximum=maximum,
    )


def test_rows_that_fail_are_found_across_chunks():
    frame = pd.DataFrame({"bad": [False] * (CHUNK_ROWS + 2)})
    frame.loc[[0, CHUNK_ROWS - 1, CHUNK_ROWS + 1], "bad"] = True

    found = failing_rows(frame, [flag("bad")])

    assert found["bad"].tolist() == [0, CHUNK_ROWS - 1, CHUNK_ROWS + 1]


def test_range_is_closed_and_null_is_skipped():
    frame = pd.DataFrame({"n": [0.9, 1, 2, 2.1, None]})

    assert failing_rows(frame, [between("n", 1, 2)])["n"].tolist() == [0, 3]


def test_no_rows_fail_nothing():
    assert failing_rows(pd.DataFrame({"bad": []}), [flag("bad")])["bad"].size == 0


def test_a_rule_that_cannot_be_evaluated_is_an_error_not_a_pass():
    with pytest.raises(CheckError, match="could not evaluate the rule absent"):
        failing_rows(pd.DataFrame({"bad": [True]}), [flag("absent")])


PROBE = """
import logging, socket, sys, warnings
logging.basicConfig(level=logging.DEBUG)
def refuse(*_, **__): raise SystemExit("a connection was opened")
socket.socket.connect = refuse
socket.getaddrinfo = refuse
import modwatch.data.validation
assert "great_expectations" not in sys.modules, "imported at the top"
import pandas as pd
from modwatch.data.validation.expectations import failing_rows
from modwatch.data.validation.result import ValidationRule
logging.getLogger("matplotlib").setLevel(logging.ERROR)
rule = ValidationRule(
    name="bad", level="row", severity="critical", allowed="", expectation="", remedy=""
)
before = warnings.showwarning, list(warnings.filters)
found = failing_rows(pd.DataFrame({"bad": [True]}), [rule])
assert found["bad"].tolist() == [0]
assert (warnings.showwarning, list(warnings.filters)) == before, "warnings were changed"
"""


def test_nothing_is_imported_early_sent_out_or_left_behind():
    done = subprocess.run(
        [sys.executable, "-c", PROBE], capture_output=True, text=True, timeout=120, check=False
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")

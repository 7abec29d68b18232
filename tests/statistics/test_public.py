"""The public surface of `modwatch.statistics` and `modwatch.routing`."""

import inspect
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from modwatch import routing
from modwatch import statistics as metrics
from modwatch.common.errors import MetricInputError
from modwatch.statistics import audit

HEAVY = (
    *("airflow", "alembic", "deltalake", "fsspec", "great_expectations", "jinja2", "matplotlib"),
    *("mlflow", "pyarrow", "pydantic", "sqlalchemy", "torch", "transformers"),
    *("modwatch.data.lake.schemas", "modwatch.review", "modwatch.settings"),
)
FUNCTIONS = [
    getattr(package, name)
    for package in (metrics, routing)
    for name in package.__all__
    if inspect.isfunction(getattr(package, name))
]
LABEL, PROB, SCORE = [0, 1, 1, 0, 1], [0.2, 0.7, 0.4, 0.6, 0.9], [1, 5, 3, 2, 2]
WEIGHT, AT = [1, 2.5, 1, 0, 3], {"review_fraction": 0.4}
CALLS = {
    "accuracy": ([LABEL, PROB], {}),
    "auroc": ([LABEL, PROB], {}),
    "brier_score": ([LABEL, PROB], {}),
    "collaboration_curve": ([LABEL, PROB], {}),
    "expected_calibration_error": ([LABEL, PROB], {}),
    "oc_auprc": ([LABEL, PROB, SCORE], AT),
    "prevalence": ([LABEL], {}),
    "review_efficiency": ([LABEL, PROB, SCORE], AT),
    "reliability_curve": ([LABEL, PROB], {}),
    "review_scores": ([PROB, "hybrid"], {}),
}


def test_importing_loads_nothing_heavy():
    script = (
        "import numpy, pandas, scipy, sklearn, sys; allowed = set(sys.modules);"  # pandas: pyarrow
        "import modwatch.statistics, modwatch.routing;"
        f"print(*(set({HEAVY!r}) & sys.modules.keys() - allowed));"
        "import modwatch.statistics.audit, modwatch.audits.dsa;"
        f"print(*(set({HEAVY!r}) & sys.modules.keys() - allowed - {{'pydantic'}}))"  # for records
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.split() == []


def test_every_exported_name_exists_once():
    for package in (metrics, routing, audit):
        assert len({*package.__all__}) == len(package.__all__)
        assert all(getattr(package, name) is not None for name in package.__all__)


@pytest.mark.parametrize("package", [metrics, routing])
def test_the_docstring_lists_every_function(package):
    listed = set(re.findall(r"\w+", package.__doc__))
    assert {f.__name__ for f in FUNCTIONS if hasattr(package, f.__name__)} <= listed


def test_signatures_follow_scikit_learn():
    old = {"label", "prob", "weight", "weights", "review_score", "alpha", "alphas", "bins"}
    options = {"sample_weight", "review_fraction", "threshold", "label_threshold"}
    for function in FUNCTIONS:
        parameters = inspect.signature(function).parameters
        keywords = {n for n, p in parameters.items() if p.kind is inspect.Parameter.KEYWORD_ONLY}
        assert not old & parameters.keys(), function
        assert options & parameters.keys() <= keywords, function
        positional = [name for name in parameters if name not in keywords]
        columns = [name for name in ("y_true", "y_prob", "y_score") if name in positional]
        assert columns == positional[: len(columns)], function
        assert ">>>" in function.__doc__ or "Args:" in function.__doc__, function


def from_polars(values):
    return pytest.importorskip("polars").Series(values, strict=False)


def chunked(values):
    return pa.chunked_array([values[:2], values[2:]])


KINDS = (np.array, lambda values: pd.Series(values, index=[9, 3, 3, 0, 1]), pa.array, chunked)


@pytest.mark.parametrize("kind", [*KINDS, from_polars])
def test_columns_of_each_library_are_those_of_lists(kind):
    for name, (columns, options) in CALLS.items():
        results = []
        for make in (list, kind):
            args = [values if isinstance(values, str) else make(values) for values in columns]
            result = getattr(metrics, name)(*args, sample_weight=make(WEIGHT), **options)
            results.append(result if isinstance(result, pd.DataFrame) else pd.DataFrame([result]))
        assert results[1].equals(results[0]), name


@pytest.mark.parametrize("make", [pa.array, chunked, from_polars])
def test_missing_values_of_other_libraries_are_refused(make):
    for labels in ([0, 1, None, 0, 1], [False, True, None, True, False]):
        with pytest.raises(MetricInputError, match="y_true"):
            metrics.auroc(make(labels), PROB)

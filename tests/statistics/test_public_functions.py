"""Whatever arrays they get, public functions answer or raise MetricInputError.

Those of the packages below it raise what is derived from ModwatchError.
"""

import inspect
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import modwatch.statistics as s
from modwatch.common.errors import MetricInputError, ModwatchError
from modwatch.statistics import audit, disagreement, divergence

FUNCTIONS = {
    name: getattr(s, name)
    for name in s.__all__
    if inspect.isfunction(getattr(s, name)) and name != "what_if_table"
}
#: Those of whole plans, results and profiles, and of files, have tests of their own.
BELOW = {
    f.__name__: f
    for f in (
        audit.neyman, audit.shift_to_mean, audit.stratify,
        disagreement.adjusted_metrics,
        disagreement.agreement_with_people, disagreement.fixed_flip_rate, disagreement.flip_rate,
        disagreement.primary_labels,
        disagreement.primary_shares, disagreement.retest_flip_rates,
        divergence.conformity_delta, divergence.group_report,
        divergence.kappa_table, divergence.shared_items,
    )
}  # fmt: skip
DEAR = ("group_report", "measure_days", "reliability_estimates", "true_labels")
NUMBERS = [0, 1, 0.5, 0.8, 1e-300, 5e-324, 1e-9, 1 - 1e-16, 2, -1, 1e300, math.nan, math.inf]
ORDINARY = NUMBERS[:4]
KINDS = [np.float64, np.float32, np.int8, np.int64, np.uint16, np.bool_]


@st.composite
def columns(draw: st.DrawFn, size: int) -> Any:
    """Return an array of `size` numbers, mostly, in one of the kinds that users have."""
    wild = draw(st.integers(0, 5)) == 0
    values = draw(
        st.lists(st.sampled_from(NUMBERS if wild else ORDINARY), min_size=size, max_size=size)
    )
    kind = draw(st.sampled_from(KINDS))
    with np.errstate(all="ignore"):
        array = np.array(values).astype(kind) if wild else np.array(values, kind)
    shape = draw(st.integers(0, 30))
    if shape == 0:
        return array[:-1]
    if shape == 1:
        return array[:, None]
    if shape == 2:
        return pd.Series(array.astype(object)).mask(np.arange(size) == 0, None)
    if shape == 3:
        return array.astype(str)
    return draw(st.sampled_from([array, list(array), pd.Series(array)]))


def groups(size: int) -> st.SearchStrategy[Any]:
    names = st.sampled_from(["a", "all", "", 1, "1", 1.0, True, None, math.nan, pd.NA])
    return st.one_of(st.none(), st.lists(names, min_size=size, max_size=size))


def annotations(size: int) -> st.SearchStrategy[Any]:
    """Return labels of a few items by a few people, or of columns of any kind."""
    few = st.lists(st.integers(0, 2), min_size=size, max_size=size)
    columns_of = {name: st.one_of(few, columns(size)) for name in ("item", "annotator", "label")}
    return st.builds(disagreement.Annotations.from_columns, **columns_of)


@st.composite
def days(draw: st.DrawFn, size: int) -> list[s.LabelledDay]:
    label, prob = (draw(columns(size)) for _ in range(2))
    labelled = s.fully_labelled(label, prob)
    return draw(st.sampled_from([[labelled], [labelled, labelled], []]))


def arguments_of(draw: st.DrawFn, function: Any) -> dict[str, Any]:
    """Return values of the parameters, drawn by their names and defaults."""
    size = draw(st.sampled_from([0, 1, 2, 3, 12]))
    wild = st.sampled_from([*NUMBERS, 0.95, 30])
    special = {
        "days": days(size),
        "labels": columns(size),
        "rng": st.just(np.random.default_rng(0)),
        "resamples": st.just(20),
        "seed": st.just(0),
        "minimum": st.integers(-1, 40),
        "n_bins": st.integers(-1, 20),
        "population": st.one_of(st.none(), st.integers(-1, 10**9)),
        "review_fractions": st.lists(wild, max_size=3),
        "strategies": st.lists(st.sampled_from([*s.STRATEGIES, "none"]), max_size=2),
        "strategy": st.sampled_from([*s.STRATEGIES, "none"]),
        "interpolation": st.sampled_from(["davis-goadrich", "step", "none"]),
        "costs": st.one_of(st.none(), st.tuples(wild, wild)),
        "by_label": st.booleans(),
        "groups": groups(size),
        "new_groups": groups(size),
        "known": st.none(),
        "history": st.none(),
        "moved": st.just((0.15, 0.03)),
        "flagged": st.one_of(st.none(), columns(size)),
    }
    if function.__name__ in BELOW:
        labelled = "annotations" in inspect.signature(function).parameters
        made = draw(annotations(size)) if labelled else None
        special |= {
            "annotations": st.just(made),
            "rates": st.builds(disagreement.fixed_flip_rate, st.just(made), wild),
            "groups": st.builds(
                divergence.Groups.from_annotations,
                st.just(made),
                st.dictionaries(st.integers(0, 2), st.sampled_from("ab")),
                minimum=st.just(1),
            ),
            "labels": st.integers(-1, 50),
            "bins": st.integers(-1, 5),
            "draws": st.integers(1 if function is divergence.group_report else -1, 5),
            "comments": st.tuples(st.integers(-1, 9), st.integers(-1, 9)),
            "errors": st.lists(st.tuples(wild, wild), max_size=2),
            "population": columns(size),
            "strata": st.one_of(st.none(), st.integers(-1, 4)),
            "bound": st.sampled_from([None, "low", "high"]),
            "observed": wild,
            "rate": wild if function is disagreement.fixed_flip_rate else columns(size),
            "classes": st.integers(-1, 3),
        }
    if function is s.true_labels:
        special["labels"] = st.builds(
            s.GivenLabels, **{part: columns(size) for part in ("given", "toxic", "prob", "group")}
        )
    values = {}
    for name, parameter in inspect.signature(function).parameters.items():
        scalar = isinstance(parameter.default, float | int) or "float" in str(parameter.annotation)
        given_by = special.get(name, wild if scalar else columns(size))
        if parameter.default is inspect.Parameter.empty or draw(st.booleans()):
            values[name] = draw(given_by)
    return values


@pytest.mark.parametrize("name", [*FUNCTIONS, *BELOW])
def test_it_answers_or_names_the_argument(name):
    examples = 10 if name in DEAR else 40

    # The same inputs each time: a verdict is not by chance. More examples search further.
    @settings(
        max_examples=examples,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
        deadline=None,
    )
    @given(data=st.data())
    def answers(data: st.DataObject) -> None:
        answer_or_refuse((FUNCTIONS | BELOW)[name], data)

    answers()


def answer_or_refuse(function: Any, data: st.DataObject) -> None:
    try:
        answer = function(**data.draw(st.composite(arguments_of)(function)))
        found = list(answer) if isinstance(answer, Iterator) else [answer]
    except MetricInputError:
        return
    except ModwatchError:
        if function.__name__ in BELOW:
            return
        raise
    for estimate in found:
        if isinstance(estimate, s.Estimate) and estimate.value is not None:
            assert estimate.low <= estimate.value <= estimate.high
        if isinstance(estimate, float):
            assert not math.isnan(estimate)

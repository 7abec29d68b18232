import numpy as np
import pandas as pd
import pytest

from modwatch.demo import summary
from modwatch.metrics.agreement import gold_accuracy
from modwatch.settings import Settings
from modwatch.wiring import open_wiring

ROW = {"metric": "oc_accuracy", "strategy": "uncertainty", "alpha": 0.1, "low": 0.8, "high": 1.0}


def table(value: object, **changes: object) -> pd.DataFrame:
    return pd.DataFrame([{**ROW, "value": value, **changes}])


def cell(measured: pd.DataFrame, truth: pd.DataFrame, *, by_alpha: bool = True) -> str:
    with open_wiring(Settings(review_fraction=0.1)) as at:
        return summary._cell(measured, truth, at, "oc_accuracy", by_alpha)


def test_an_estimate_stands_with_its_interval_and_the_truth() -> None:
    assert cell(table(0.9), table(0.95)) == "0.900 [0.800, 1.000] (0.950)"


def test_an_insufficient_estimate_is_no_number() -> None:
    assert cell(table(pd.NA), table(0.95)) == "insufficient (0.950)"
    assert cell(table(np.nan), table(np.nan)) == "insufficient"
    assert cell(table(0.9).iloc[:0], table(0.95)) == "insufficient (0.950)"


@pytest.mark.parametrize("changes", [{"alpha": 0.2}, {"strategy": "toxicity"}, {"metric": "re"}])
def test_only_the_deployed_design_is_shown(changes: dict[str, object]) -> None:
    assert cell(table(0.9, **changes), table(0.95)) == "insufficient (0.950)"


def test_the_quality_of_a_perfect_ranking_is_one() -> None:
    label, prob = np.array([0, 0, 1], np.int8), np.array([0.1, 0.2, 0.9])
    assert summary._quality("perfect", label, prob) == ["perfect", "1.000", "1.000", "3", "1"]


def test_the_quality_without_any_toxic_comment_is_insufficient() -> None:
    name, area, precision, n, toxic = summary._quality(
        "x", np.zeros(2, np.int8), np.array([0, 1.0])
    )
    assert (name, area, n, toxic) == ("x", "insufficient", "2", "0")
    assert precision == "insufficient"


def test_columns_line_up() -> None:
    lines = summary.markdown_table(
        ["day", "n"], [["2026-01-05", "1"], ["all", "1,000"]]
    ).splitlines()
    assert lines == [
        "| day        | n     |",
        "| ---------- | ----- |",
        "| 2026-01-05 | 1     |",
        "| all        | 1,000 |",
    ]


def test_the_desk_is_told_in_a_line(queue_url: str) -> None:
    with open_wiring(Settings(database_url=queue_url)) as at:
        assert summary._desk(at.database) == (
            "The desk: 0 decisions, 0 escalations settled by a lead. Gold answered rightly: "
            "insufficient (0 pairs of labels; 30 are needed). Second opinions like the first: "
            "insufficient (0 pairs of labels; 30 are needed). verify-log: intact."
        )


def test_a_figure_of_agreement_stands_with_its_interval() -> None:
    assert summary._agreement(gold_accuracy(np.ones(50), np.ones(50))) == (
        "100.0% (94.2% to 100.0%) of 50"
    )

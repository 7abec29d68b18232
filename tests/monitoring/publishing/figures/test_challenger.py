"""The challenger beside the champion, as ops see it."""

import pandas as pd
import pytest

from modwatch.monitoring.publishing.description import describe_challenger
from modwatch.monitoring.publishing.figures.challenger import differences


def rows(**changes):
    def row(metric, value, low, high, *, both=True, status="ok"):
        models = {"champion": 0.8, "challenger": 0.8 + value} if both else {}
        ends = {"value": value, "low": low, "high": high} if status == "ok" else {}
        return {"metric": metric, "status": status, **models, **ends}

    table = pd.DataFrame(
        [
            row("same_decision", 0.972, 0.972, 0.972, both=False),
            row("same_reviewed", 0.81, 0.81, 0.81, both=False),
            row("accuracy", 0.01, 0.004, 0.02),
            row("oc_auroc", -0.02, -0.03, -0.01),
            row("auroc", 0.001, -0.01, 0.02),
            row("review_efficiency", 0, 0, 0, status="insufficient"),
        ]
    )
    return table.assign(**{"challenger_version": "7", "days": 3, **changes})


def test_the_line_of_a_challenger():
    assert describe_challenger(rows()) == (
        "Challenger 7 in shadow (3 days): 97.2% of the decisions and 81.0% of the reviewed "
        "comments are the same; challenger less champion: Accuracy +0.010 (+0.004 to +0.020), "
        "OC-AUROC -0.020 (-0.030 to -0.010)."
    )


def test_a_challenger_of_one_day_without_estimates():
    table = rows(days=1)
    text = describe_challenger(table[table["metric"].str.startswith("same")])
    assert "(1 day)" in text
    assert text.endswith("challenger less champion: not enough data.")


def test_the_figure_draws_what_has_an_interval(draw, words):
    figure = differences(rows(), title="Challenger 7")
    [axes] = figure.axes
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert labels == ["Accuracy", "OC-AUROC", "AUROC"]
    ends = [line.get_xdata() for line in axes.lines if len(line.get_xdata()) == 2]
    assert list(ends[0]) == pytest.approx([0.004, 0.02])
    assert draw(figure)
    empty = differences(rows().iloc[:2], title="Challenger 7")
    assert "not enough data" in words(empty)
    assert draw(empty)

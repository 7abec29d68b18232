"""How groups of comments differ from all others, drawn."""

import pandas as pd

from modwatch.monitoring.publishing.figures.groups import group_differences


def row(group, metric="mean_uncertainty", *, gap=0.02, p_holm=0.5):
    return {
        "scope": "day" if metric == "mean_uncertainty" else "window", "attribute": "platform",
        "group": group, "metric": metric, "difference": gap, "difference_low": gap - 0.01,
        "difference_high": gap + 0.01, "p_holm": p_holm, "comments": 500,
    }  # fmt: skip


def test_the_figure_has_a_row_a_group_and_draws(words, draw):
    table = pd.DataFrame(
        [row("a", p_holm=0.01), row("b"), row("a", "accuracy", gap=-0.1, p_holm=0.01)]
    )
    figure = group_differences(table, title="2026-01-05")
    assert "2026-01-05" in words(figure)
    assert [text.get_text() for text in figure.axes[0].get_yticklabels()] == [
        "platform a (500)", "platform b (500)",
    ]  # fmt: skip
    assert "not enough labels" in words(figure)
    days = group_differences(table[table["scope"] == "day"], title="2026-01-05")
    assert len(days.axes) == 2
    assert draw(figure)

"""The pictures of a report."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from modwatch.common import charts
from modwatch.monitoring.annotation_report.contents import (
    AnnotationReport,
    Clusters,
    GroupingReport,
)
from modwatch.statistics.estimate import SIGNIFICANT


def report_figures(report: AnnotationReport) -> dict[str, Figure]:
    """Return the figures by name: `flip_rates`, and by grouping `agreement_…`, `kappa_…`,
    `clusters_…`; those without data are left out.
    """
    figures = {}
    rates = report.rates
    if rates is not None and len(rates.table) > 1:
        figures["flip_rates"] = _flip_rates(rates.table)
    for grouping in report.groupings:
        if grouping.groups is None:
            continue
        if grouping.table is not None:
            figures[f"agreement_{grouping.name}"] = _agreement(grouping)
        if grouping.kappa is not None and len(grouping.groups.names) > 1:
            figures[f"kappa_{grouping.name}"] = _kappa(grouping)
        if grouping.clusters is not None:
            figures[f"clusters_{grouping.name}"] = _clusters(grouping, grouping.clusters)
    return figures


def _flip_rates(table: pd.DataFrame) -> Figure:
    """Return the flip rate of each stratum with its 90 % bounds."""
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    axes = figure.subplots()
    middle = (table["low"] + table["high"]) / 2
    columns = {"flip_rate": "value", "flip_rate_low": "low", "flip_rate_high": "high"}
    rates = table[[*columns]].rename(columns=columns)
    charts.error_bars(axes, middle, rates, fmt="o", color=charts.BLUE, capsize=2)
    axes.set(xlabel="share of labels that are not the majority's, or rank", ylabel="flip rate")
    axes.set_ylim(0, None)
    axes.grid(visible=True, color=charts.GRID)
    charts.plain(axes)
    return figure


def _agreement(grouping: GroupingReport) -> Figure:
    """Return the agreement of each group with its interval, and the shrunk estimate."""
    assert grouping.table is not None  # noqa: S101
    rows = grouping.table[grouping.table["metric"] == "agreement"].to_dict("records")
    figure = Figure(figsize=(10, 1.4 + 0.42 * max(len(rows), 3)), layout="constrained")
    axes = figure.subplots()
    places = range(len(rows) - 1, -1, -1)
    colours = [
        charts.sign_colour(row["difference"], row["difference"])
        if row["p_holm"] < SIGNIFICANT
        else charts.GREY
        for row in rows
    ]
    ends = [(row["value"], row["low"], row["high"]) for row in rows]
    charts.interval_rows(axes, ends, colours=colours)
    shrunk = [row["shrunk"] for row in rows]
    axes.plot(shrunk, places, marker="D", color="black", markersize=4, linestyle="none")
    labels = [f"{charts.shortened(str(row['group']))} ({row['annotators']:.0f})" for row in rows]
    axes.set_yticks(places, labels)
    axes.set_ylim(-0.6, len(rows) - 0.4)
    axes.set_xlabel(
        "share of the group's labels that the model's decision equals, with 95 % interval\n"
        "(coloured: differs from all others by more than chance; ◆: shrunk towards all)"
    )
    return figure


def _kappa(grouping: GroupingReport) -> Figure:
    """Return Cohen's κ of each pair of groups as a heat map, with the number of shared items."""
    assert grouping.kappa is not None  # noqa: S101
    assert grouping.groups is not None  # noqa: S101
    size = len(grouping.groups.names)
    matrix, shared = np.empty((size, size)), np.empty((size, size), np.int64)
    one, other = np.triu_indices(size)  # the order of the rows
    for square, name in ((matrix, "kappa"), (shared, "items")):
        square[one, other] = square[other, one] = grouping.kappa[name]
    figure = Figure(figsize=(11, 1.6 + 0.36 * size), layout="constrained")
    axes = figure.subplots()
    axes.imshow(np.nan_to_num(matrix), cmap="cividis", vmin=0, vmax=1, aspect="auto")
    for row in range(size):
        for column in range(size):
            value = matrix[row, column]
            text = "" if np.isnan(value) else f"{value:.2f} ({shared[row, column]:,})"
            ink = "white" if np.nan_to_num(value) < 0.6 else "black"
            axes.text(column, row, text, ha="center", va="center", color=ink, fontsize=8)
    names = [charts.shortened(name, 22) for name in grouping.groups.names]
    labels = [f"{name} ({number})" for name, number in zip(names, grouping.annotators, strict=True)]
    axes.set_yticks(range(size), labels)
    axes.set_xticks(range(size), names, rotation=45, ha="right")
    return figure


def _clusters(grouping: GroupingReport, clusters: Clusters) -> Figure:
    """Return the mean profile of each cluster, and the groups in it (Urbinati et al., Figure 1)."""
    assert grouping.groups is not None  # noqa: S101
    number = len(clusters.found.size)
    figure = Figure(figsize=(12, 2.1 * number), layout="constrained")
    panels = figure.subplots(number, 2, squeeze=False)
    middle = np.linspace(-1, 1, clusters.profile.shape[1] + 1)
    middle = (middle[:-1] + middle[1:]) / 2
    names = grouping.groups.names
    for cluster, (left, right) in enumerate(panels):
        left.bar(middle, clusters.profile[cluster], width=2 / len(middle), color=charts.BLUE)
        left.set_yscale("symlog", linthresh=0.01)
        left.set_title(f"{clusters.found.size[cluster]} annotators", loc="left", fontsize=10)
        share = clusters.found.group_share[cluster]
        hidden = np.isnan(share)
        right.barh(range(len(share)), np.where(hidden, 0, share), color=charts.ORANGE)
        labels = [charts.shortened(str(name), 22) for name in names[: len(share)]]
        for place in np.flatnonzero(hidden):
            labels[place] += ": not shown"
        right.set_yticks(range(len(share)), labels, fontsize=8)
        right.set_xlim(0, 1)
        charts.plain(left, right)
    left, right = panels[-1]
    left.set_xlabel("conformity δ: below 0 closer to the annotator, above 0 to the majority")
    right.set_xlabel("share of the cluster's annotators")
    return figure

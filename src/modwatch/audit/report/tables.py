"""The tables of the report: captions, columns and cells as text."""

from dataclasses import dataclass

from modwatch.audit.intervals import IntervalRule
from modwatch.audit.report import words
from modwatch.audit.report.figures import (
    METRICS,
    Result,
    by_column,
    history,
    in_order,
    of_metric,
    title,
)
from modwatch.audit.report.pictures import range_of, stratum_share
from modwatch.audit.required import LABELS_AN_HOUR

#: A column of a table has no longer title.
_HEADING = 40

_CORRECTED_METRICS = ("recall", "precision", "prevalence_unflagged")
_DOMAIN_METRICS = (*_CORRECTED_METRICS, "accuracy")


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table; the first cell of a row is its heading."""

    caption: str
    #: Title of each column.
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    #: Numbers of the columns that hold numbers, aligned to the right.
    numbers: frozenset[int] = frozenset()


def of_figures(result: Result, rule: IntervalRule) -> Table:
    """Return every figure on the whole period."""
    return Table(
        caption="All figures of the period",
        columns=("Figure", "Value", _capital(words.level(rule)), "Labels", "Positives"),
        rows=tuple(
            (
                _with_meaning(figure["metric"]),
                words.value_of(figure, rule),
                words.ends_of(figure, rule),
                words.whole(figure["labels"]),
                words.whole(figure["positives"]),
            )
            for figure in in_order(result["figures"])
        ),
        numbers=frozenset({1, 3, 4}),
    )


def of_strata(result: Result) -> Table:
    """Return the strata: what they hold, and what their labels showed."""
    rows = []
    for stratum in result["strata"]:
        share = stratum_share(stratum)
        rows.append(
            (
                range_of(stratum),
                words.score(stratum["score"]),
                words.whole(stratum["population"]),
                words.whole(stratum["drawn"]),
                words.whole(stratum["labels"]),
                words.whole(stratum["positives"]),
                words.NONE if share is None else share.text,
            )
        )
    return Table(
        caption="Strata: ranges of the model's score; the share with its own 95\u00a0% interval",
        columns=(
            "Scores", "Mean score", "Comments", "Drawn", "Labelled", "Positives",
            "Share of positives",
        ),
        rows=tuple(rows),
        numbers=frozenset(range(1, 6)),
    )  # fmt: skip


def of_domains(result: Result, rule: IntervalRule) -> list[Table]:
    """Return a table for each column by which comments differ."""
    tables = []
    for column, domains in by_column(result).items():
        rows = []
        for domain in domains:
            figures = [of_metric(domain["figures"], metric) for metric in _DOMAIN_METRICS]
            rows.append(
                (
                    words.name(domain["value"]),
                    words.whole(domain["comments"]),
                    words.whole(figures[0]["labels"]),
                    words.whole(figures[0]["positives"]),
                    *(_with_ends(figure, rule) for figure in figures),
                )
            )
        heading = words.heading(column)
        tables.append(
            Table(
                caption=f"{heading}: each figure with its {words.level(rule)}",
                columns=(
                    heading if len(heading) <= _HEADING else "Value",
                    "Comments", "Labels", "Positives", *map(title, _DOMAIN_METRICS),
                ),
                rows=tuple(rows),
                numbers=frozenset({1, 2, 3}),
            )
        )  # fmt: skip
    return tables


def of_labelling(result: Result) -> Table:
    """Return what was drawn and labelled, and by how many."""
    open_ = result["drawn"] - result["labelled"]
    flagged, comments = result["flagged"], result["comments"]
    rows = (
        ("Comments of the period", comments),
        ("of them flagged", flagged),
        ("of them not flagged", comments - flagged),
        ("Comments drawn", result["drawn"]),
        ("of them with a label that counts", result["labelled"]),
        ("of them without: nobody labelled them, or people disagree", open_),
        ("with fewer labels than planned", result["short_of_labels"]),
        ("Decisions by people, second opinions and settlements included", result["decisions"]),
        ("People who labelled", result["labellers"]),
    )
    return Table(
        caption="What was drawn and labelled",
        columns=("What", "Number"),
        rows=tuple((what, words.whole(number)) for what, number in rows),
        numbers=frozenset({1}),
    )


def of_agreement(result: Result) -> Table:
    """Return how far people agreed before anybody settled it."""
    names = {
        "observed": "Same label by both people",
        "krippendorff_alpha": "Krippendorff's α (1 is full agreement, 0 is chance)",
    }
    rows = []
    for each in result["agreement"]:
        value, ends = words.NONE, each["reason"]
        if each["value"] is not None and each["metric"] == "observed":
            places = words.decimals(each["value"], each["low"], each["high"])
            value = words.percent(each["value"], places)
            ends = words.ends(each["low"], each["high"], places, "both")
        elif each["value"] is not None:
            value, ends = f"{each['value']:.2f}", f"{each['low']:.2f} to {each['high']:.2f}"
        name = names.get(each["metric"], title(each["metric"]))
        rows.append((name, value, ends, words.whole(each["n"])))
    return Table(
        caption="Agreement of people who labelled the same comment without knowing of each other",
        columns=("Measure", "Value", "95\u00a0% interval", "Comments"),
        rows=tuple(rows),
        numbers=frozenset({1, 3}),
    )


def of_sensitivity(result: Result, rule: IntervalRule) -> Table | None:
    """Return the figures as they would be if people erred; None when there are none to correct."""
    if not result["sensitivity"]:
        return None
    rows = []
    for row in result["sensitivity"]:
        shares = []
        for metric in _CORRECTED_METRICS:
            figure = of_metric(result["figures"], metric)
            places = 0 if figure["value"] is None else words.told_decimals(figure, rule)
            shares.append(words.percent(row[metric], places))
        rows.append(
            (
                row["source"].capitalize(),
                words.rate(row["false_positive"]),
                words.rate(row["false_negative"]),
                *shares,
                "cut to 0 or 100\u00a0%: so many errors do not fit the labels"
                if row["cut"]
                else "",
            )
        )
    return Table(
        caption="The figures if people who label err at these rates",
        columns=(
            "Rates", "Harmless called positive", "Positive called harmless",
            *map(title, _CORRECTED_METRICS), "Remark",
        ),
        rows=tuple(rows),
        numbers=frozenset(range(1, 6)),
    )  # fmt: skip


def of_cost(result: Result) -> Table:
    """Return the labels of the audit, and of a random sample that tells as much."""
    missed = of_metric(result["figures"], "prevalence_unflagged")
    rows = [
        ("This audit, all decisions by people", result["decisions"]),
        ("This audit, comments with a label", result["labelled"]),
        ("of them not flagged", missed["labels"]),
    ]
    if result["random_labels"] is not None:
        rows.append(
            ("Random sample of unflagged comments, same standard error", result["random_labels"])
        )
    return Table(
        caption=f"Labels, and hours if a person gives {LABELS_AN_HOUR:,} labels an hour",
        columns=("What", "Labels", "Hours"),
        rows=tuple((what, words.whole(n), f"{n / LABELS_AN_HOUR:,.1f}") for what, n in rows),
        numbers=frozenset({1, 2}),
    )


def of_history(result: Result, earlier: tuple[Result, ...], rule: IntervalRule) -> Table | None:
    """Return the audits over time; None when there is no earlier one."""
    audits = history(result, earlier)
    if len(audits) == 1:
        return None
    rows = tuple(
        (
            words.name(each["audit"]) + (" (this audit)" if each is result else ""),
            f"{each['first_day']} to {each['last_day']}",
            words.name(each["model_version"]),
            words.score(each["threshold"]),
            words.whole(each["labelled"]),
            *(
                _with_ends(of_metric(each["figures"], metric), rule)
                for metric in ("recall", "precision")
            ),
        )
        for each in audits
    )
    return Table(
        caption="Audits, oldest first, each figure with the interval of its audit",
        columns=("Audit", "Period", "Model", "Threshold", "Labels", "Recall", "Precision"),
        rows=rows,
        numbers=frozenset({3, 4}),
    )


def _with_meaning(metric: str) -> str:
    meaning = METRICS.get(metric, ("", ""))[1]
    return f"{title(metric)}: {meaning}" if meaning else title(metric)


def _with_ends(figure: Result, rule: IntervalRule) -> str:
    if figure["value"] is None:
        return words.lacking_briefly(figure)
    return f"{words.value_of(figure, rule)} ({words.ends_of(figure, rule)})"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]

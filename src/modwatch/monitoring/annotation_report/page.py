"""The report as a self-contained HTML page in plain words, and its tables as files."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from modwatch.common import charts as style
from modwatch.common.charts import svg_uri
from modwatch.common.html import render_html
from modwatch.common.text import neutral_csv
from modwatch.monitoring.annotation_report.contents import AnnotationReport, GroupingReport
from modwatch.monitoring.annotation_report.figures import report_figures
from modwatch.monitoring.annotation_report.table import AnnotationTable
from modwatch.statistics.divergence.group_agreement import MINIMUM_SHARED
from modwatch.statistics.estimate import SIGNIFICANT
from modwatch.statistics.live.figures import title_of

#: Labels that are listed, and characters of a name in a table.
_MOST_LABELS, _WIDEST = 10, 60


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table: headings of the columns, and rows of texts, the first their heading."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    #: Whether the rows are shown before a reader asks for them.
    is_open: bool = False


@dataclass(frozen=True, kw_only=True)
class Section:
    """A question, its answer in sentences, what shows it, and what must not be concluded."""

    question: str
    answers: tuple[str, ...]
    tables: tuple[Table, ...] = ()
    #: Source, text alternative and caption of each picture.
    pictures: tuple[tuple[str, str, str], ...] = ()
    limits: str = ""


def render_page(
    report: AnnotationReport, *, title: str = "Annotations", more: Sequence[Section] = ()
) -> str:
    """Return the page; it names no item and no annotator, and loads nothing.

    `more` are sections below those of the report.
    """
    figures = report_figures(report)
    sections = [_slips(report, figures), _model(report)]
    sections += [_groups(grouping, figures) for grouping in report.groupings]
    sections += more
    return render_html(
        "modwatch.monitoring.annotation_report",
        "report.html",
        title=title,
        facts=_facts(report),
        sections=sections,
    )


def rows_section(table: AnnotationTable) -> Section:
    """Return where the rows of a file ended, and what readers must know of how they were read."""
    account = table.account
    shown = Table(
        caption="Rows of the file",
        columns=("Rows", "Number", "The first"),
        rows=tuple((title_of(name), f"{n:,}", first) for name, n, first in account.rows()),
        is_open=True,
    )
    labels, again = account.places["used"], table.annotations.retests.item.size
    answer = f"Of {account.read:,} rows, {labels:,} are labels, {again:,} of them given again."
    return Section(question="Where the rows went", answers=(answer, *table.notes), tables=(shown,))


def write_report(
    report: AnnotationReport,
    folder: Path,
    *,
    title: str = "Annotations",
    more: Sequence[Section] = (),
) -> Path:
    """Write `report.html` and the tables as CSV files to a folder; return the page's path."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, table in report.tables().items():
        (folder / f"{name}.csv").write_text(neutral_csv(table), encoding="utf-8", newline="")
    page = folder / "report.html"
    page.write_text(render_page(report, title=title, more=more), encoding="utf-8")
    return page


def _facts(report: AnnotationReport) -> list[tuple[str, str]]:
    return [
        ("Items", f"{report.items:,}"),
        ("Annotators", f"{report.annotators:,}"),
        ("Annotations", f"{report.annotations:,}, the first label of each annotator and item"),
        ("Labels given again", f"{report.retests:,}"),
        ("Labels", _labels(report)),
    ]


def _labels(report: AnnotationReport) -> str:
    """Return the labels, and the one that the probabilities are for."""
    shown = [style.shortened(str(name), 40) for name in report.classes[:_MOST_LABELS]]
    more = len(report.classes) - len(shown)
    text = ", ".join(shown) + (f", and {more} more" if more else "")
    if len(report.classes) == 2:
        text += f"; {shown[-1]} is the positive one"
        if report.metrics_table is not None:
            text += ", for which the model gives the probability"
    return text


def _slips(report: AnnotationReport, figures: dict[str, Figure]) -> Section:
    question = "How often is a label a slip?"
    limits = (
        "A slip is a label that its annotator would not give most often. Opinions that few people "
        "hold are no slips, but without labels given again the two are hard to tell apart. Do not "
        "compare rates that were estimated in different ways."
    )
    if report.rates is None:
        answer = f"The data do not tell: {report.reason}. Below, every label counts as an opinion."
        return Section(question=question, answers=(answer,), limits=limits)
    rates = report.rates
    answers: tuple[str, ...] = (
        f"{report.slips().capitalize()} of the labels are slips.",
        f"How this was estimated: {rates.reason}.",
    )
    if report.at_most:
        answers += (
            "A label held out is mispredicted at least as often as it is a slip. How many of the "
            "mispredicted labels are opinions instead is unknown without labels given again.",
        )
    pictures: tuple[tuple[str, str, str], ...] = ()
    if "flip_rates" in figures:
        caption = "Flip rate of each stratum of items, with its bounds."
        pictures = ((svg_uri(figures["flip_rates"]), caption, caption),)
    return Section(question=question, answers=answers, pictures=pictures, limits=limits)


def _model(report: AnnotationReport) -> Section:
    counts = f"{report.annotations:,} labels of {report.items:,} items"
    answers: tuple[str, ...] = (
        "The majority of the other annotators of an item equals "
        f"{report.share('majority', 'raw')} of all labels ({counts}); slips taken out, it agrees "
        f"with {report.share('majority', 'adjusted')} of people's opinions.",
        f"No decision, by a model or a person, can equal more than {report.most:.1%} of these "
        "labels. The majority of all of them reaches it, and equals fewer labels of other people.",
    )
    tables: tuple[Table, ...] = ()
    question = "How far do people agree?"
    if report.metrics_table is not None:
        question = "Does the model agree with people, or with a majority vote?"
        row = report.metrics_table.loc["accuracy"]
        answers = (
            f"The model's decision equals {report.share('model', 'raw')} of all labels, and "
            f"{row['majority']:.1%} of the majority labels.",
            f"Slips taken out, it agrees with {report.share('model', 'adjusted')} of people's "
            "opinions.",
            *answers,
        )
        if not report.at_most:
            answers += (
                f"The model's agreement is {row['normalised']:.1%} of that majority's. More than "
                "100 % is possible: a few people decide worse than many.",
            )
        tables = (_metrics(report.metrics_table),)
    return Section(
        question=question,
        answers=answers,
        tables=tables,
        limits="A high agreement with the majority says nothing about those who are outvoted. The "
        "intervals hold for items and people of whom these are a random sample, not for others.",
    )


def _metrics(table: pd.DataFrame) -> Table:
    titles = {
        "majority": "majority label", "raw": "all labels", "adjusted": "opinions",
        "low": "low", "high": "high", "oracle": "majority of the others",
    }  # fmt: skip
    rows = tuple(
        (title_of(str(metric)), *(_number(values[name]) for name in titles))
        for metric, values in table.iterrows()
    )
    return Table(
        caption="Metrics against the majority label, all labels, and opinions (slips taken out; "
        "low and high are for the flip rates alone), and those of the majority of the others",
        columns=("Metric", *titles.values()),
        rows=rows,
    )


def _groups(grouping: GroupingReport, figures: dict[str, Figure]) -> Section:
    by = "" if grouping.name == "group" else f" by {_spoken(grouping.name)}"
    question = f"Do groups differ{by}?"
    if grouping.groups is None:
        return Section(question=question, answers=(f"Not shown: {grouping.reason}.",))
    answers = [*_answers(grouping), *_suppressed(grouping), *filter(None, [grouping.note])]
    pictures = []
    for kind, caption in (
        ("agreement", "Agreement of the model with each group, with 95 % intervals."),
        (
            "kappa",
            "Cohen’s κ within and between groups: 1 is full agreement, 0 chance; in brackets, the "
            "items that both labelled.",
        ),
        (
            "clusters",
            "Annotators by how the model treats their labels, and the groups among them. Shares "
            "that could identify a few people are not shown.",
        ),
    ):
        figure = figures.get(f"{kind}_{grouping.name}")
        if figure is not None:
            pictures.append((svg_uri(figure), f"{caption} The values are in the tables.", caption))
    return Section(
        question=question,
        answers=tuple(answers),
        tables=_group_tables(grouping),
        pictures=tuple(pictures),
        limits="A difference says that the model’s decisions are closer to the labels of some "
        "people than to those of others, on the items that each of them got. It does not say why, "
        "and nothing about any person of a group. Read small groups by the shrunk figure. Two such "
        "pages of nearly the same people reveal the few who differ: publish one.",
    )


def _answers(grouping: GroupingReport) -> list[str]:
    assert grouping.groups is not None  # noqa: S101
    number = len(grouping.groups.names)
    answers = []
    if grouping.table is None and grouping.kappa is not None:
        noun = "group is" if number == 1 else "groups are"
        return [
            f"{number} {noun} large enough; there is no model’s probability to compare with.",
            _agreement_within(grouping.kappa),
        ]
    significant = grouping.significant()
    if number == 1:
        answers.append("One group is large enough, and there is no other to compare it with.")
    elif significant.empty:
        answers.append(
            f"Among {number} groups, the model’s agreement differs from that with all others "
            "by no more than chance."
        )
    for row in significant.head(5).to_dict("records"):
        more = "more" if row["difference"] > 0 else "less"
        answers.append(
            f"The model agrees {more} with annotators of the group {row['group']}: "
            f"{row['value']:.1%} "
            f"({row['low']:.1%} to {row['high']:.1%}; {row['annotators']:.0f} annotators, "
            f"{row['annotations']:,.0f} labels), {100 * abs(row['difference']):.1f} points {more} "
            f"than with all others (p = {_p(row['p_holm'])}, corrected for all comparisons)."
        )
    if grouping.clusters is not None:
        found = grouping.clusters.found
        matters = found.p_value < SIGNIFICANT
        answers.append(
            "Sorted by how close the model is to their labels, annotators "
            + ("are of different groups, more than by chance" if matters else "are of all groups")
            + f" (demographic divergence {found.value:.3f}, {found.low:.3f} to {found.high:.3f}, "
            f"p = {_p(found.p_value)})."
        )
    return answers


def _agreement_within(kappa: pd.DataFrame) -> str:
    """Return how far people of one group agree, in a sentence."""
    within = kappa[(kappa["group"] == kappa["other"]) & kappa["kappa"].notna()]
    if within.empty:
        return (
            f"In no group did people label {MINIMUM_SHARED} of the same items with more than one "
            "label, so that nothing tells how far they agree."
        )
    ends = within.sort_values("kappa", kind="stable").iloc[[0, -1]].drop_duplicates()
    values = (
        f"{_number(row['kappa'])} ({_number(row['low'])} to {_number(row['high'])}) in the group "
        f"{row['group']}"
        for row in ends.to_dict("records")
    )
    return f"People of one group agree with each other by κ = {' to '.join(values)}."


def _suppressed(grouping: GroupingReport) -> list[str]:
    assert grouping.groups is not None  # noqa: S101
    number = len(grouping.groups.suppressed)
    notes = []
    if number:
        noun = "group is" if number == 1 else "groups are"
        notes.append(f"{number} {noun} not shown, since figures of so few could identify people.")
    if grouping.without:
        notes.append(f"{grouping.without:,} annotators have no group and are left out here.")
    return notes


def _group_tables(grouping: GroupingReport) -> tuple[Table, ...]:
    tables = []
    if grouping.table is not None:
        rows = grouping.table[grouping.table["metric"].notna()]
        columns = {
            "value": "Value", "low": "Low", "high": "High", "difference": "Less all others",
            "difference_low": "Difference, low", "difference_high": "Difference, high",
            "p_holm": "p (Holm)", "shrunk": "Shrunk",
        }  # fmt: skip
        tables.append(
            Table(
                caption=f"Figures by {_spoken(grouping.name)}, with 95 % intervals",
                columns=("Group", "Metric", *columns.values(), "Annotators", "Labels"),
                rows=tuple(
                    (
                        _short(row["group"]),
                        title_of(str(row["metric"])),
                        *(_number(row[name]) for name in columns),
                        f"{row['annotators']:.0f}",
                        f"{row['annotations']:,.0f}",
                    )
                    for row in rows.to_dict("records")
                ),
            )
        )
    if grouping.kappa is not None:
        tables.append(
            Table(
                caption="Cohen’s κ within and between groups, with 95 % intervals",
                columns=("Group", "With", "κ", "Low", "High", "Items of both"),
                rows=tuple(
                    (
                        _short(row["group"]),
                        "itself" if row["group"] == row["other"] else _short(row["other"]),
                        *(_number(row[name]) for name in ("kappa", "low", "high")),
                        f"{row['items']:,}",
                    )
                    for row in grouping.kappa.to_dict("records")
                ),
            )
        )
    return tuple(tables)


def _spoken(grouping: str) -> str:
    """Return the name of a grouping in a sentence.

    >>> _spoken("gender,age")
    'gender and age'
    """
    return grouping.replace(",", " and ")


def _short(group: object) -> str:
    return style.shortened(str(group), _WIDEST)


def _number(value: float) -> str:
    """Return a figure as text; a dash where there is none."""
    return "–" if np.isnan(value) else f"{value:.3f}".replace("-", "−")


def _p(value: float) -> str:
    """Return a p-value as text.

    >>> _p(0.0004), _p(0.03)
    ('under 0.001', '0.030')
    """
    return "under 0.001" if value < 0.001 else f"{value:.3f}"

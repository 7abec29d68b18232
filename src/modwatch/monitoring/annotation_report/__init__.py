"""A page about annotations in plain words, from a long table.

table     read_annotations: a file with one row an annotation, and where its rows went
contents  annotation_report: all figures of a set of annotations
released  report_of_file: those of a file, and which groups were shown of it
figures   report_figures
page      render_page: the figures as sentences, tables and pictures

modwatch annotations report FILE
"""

from modwatch.monitoring.annotation_report.contents import AnnotationReport, annotation_report
from modwatch.monitoring.annotation_report.page import (
    Section,
    Table,
    render_page,
    rows_section,
    write_report,
)
from modwatch.monitoring.annotation_report.released import report_of_file
from modwatch.monitoring.annotation_report.table import AnnotationTable, read_annotations

__all__ = [
    "AnnotationReport",
    "AnnotationTable",
    "Section",
    "Table",
    "annotation_report",
    "read_annotations",
    "render_page",
    "report_of_file",
    "rows_section",
    "write_report",
]

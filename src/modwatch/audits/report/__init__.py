"""The report of an audit: one self-contained HTML page, printable and without network access."""

from modwatch.audits.report.page import render_report

__all__ = ["render_report"]

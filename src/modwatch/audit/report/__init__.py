"""The auditor's report: one page of HTML that holds everything, prints, and needs no network."""

from modwatch.audit.report.page import render_report

__all__ = ["render_report"]

"""Recall audits as work: evidence, labelling, reports, and the Digital Services Act's files."""

from modwatch.audits.evidence import Event
from modwatch.audits.verify import read_evidence
from modwatch.audits.verify import verify as verify_evidence

__all__ = ["Event", "read_evidence", "verify_evidence"]

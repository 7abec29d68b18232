"""Recall audits: how much of what should be flagged is flagged, with intervals that hold."""

from modwatch.audit.required import required_labels, required_labels_stratified

__all__ = ["required_labels", "required_labels_stratified"]

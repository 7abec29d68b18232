"""Recall audits: how much of what should be flagged is flagged, with intervals that hold."""

"""Disagreement among annotators."""

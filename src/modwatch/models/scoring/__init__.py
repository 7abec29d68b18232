"""Predictions for comments: the `Scorer` interface and its implementations."""

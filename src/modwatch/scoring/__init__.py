"""Predictions for comments: one interface, whatever runs behind it."""

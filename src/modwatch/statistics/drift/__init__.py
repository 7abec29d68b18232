"""Comparison of a day with earlier ones: distances, drift, changes of level, segments."""

"""Measures the days in the lake, compares them with reference days, and publishes both."""

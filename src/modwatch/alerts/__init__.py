"""Evaluates alert rules, keeps incidents, and delivers notifications."""

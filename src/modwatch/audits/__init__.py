"""Carries out recall audits: lake, review queue and evidence around the statistics of `audit`."""

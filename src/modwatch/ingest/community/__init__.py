"""The synthetic community: seeded comments, annotators and ground truth."""

from modwatch.ingest.community.annotators import Person, simulate_labels
from modwatch.ingest.community.lexicon import GROUPS
from modwatch.ingest.community.source import Community, Drift

__all__ = ["GROUPS", "Community", "Drift", "Person", "simulate_labels"]

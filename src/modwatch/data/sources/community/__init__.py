"""The synthetic community: seeded comments, annotators and ground truth."""

from modwatch.data.sources.community.annotators import Person, simulate_labels
from modwatch.data.sources.community.lexicon import GROUPS
from modwatch.data.sources.community.source import Community, Drift

__all__ = ["GROUPS", "Community", "Drift", "Person", "simulate_labels"]

"""The synthetic community: seeded comments, annotators and ground truth."""

from modwatch_lab.community.annotators import Person, simulate_labels
from modwatch_lab.community.lexicon import GROUPS
from modwatch_lab.community.source import Community, Drift

__all__ = ["GROUPS", "Community", "Drift", "Person", "simulate_labels"]

"""The synthetic community: seeded comments, people and ground truth, written for this project."""

from modwatch.ingest.community.lexicon import GROUPS
from modwatch.ingest.community.people import Person, judge
from modwatch.ingest.community.stream import Community, Drift
from modwatch.ingest.community.truth import TRUTH

__all__ = ["GROUPS", "TRUTH", "Community", "Drift", "Person", "judge"]

"""What a person may see of others' work, by their scopes."""

from modwatch.review.people import Moderator
from modwatch.review.reporting.search import Viewer


def viewer_of(person: Moderator) -> Viewer:
    """Return how `search` shows the queue to `person`: scores for leads and admins alone."""
    return Viewer(
        moderator_id=person.id,
        everybody=person.may("decisions:read"),
        scores=person.may("lead") or person.may("admin"),
        reviews=person.may("review"),
        audits=person.may("audit"),
        queues=person.queues,
    )

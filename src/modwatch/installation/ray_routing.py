"""Which replica a proxy sends a request to."""

import random

from ray.serve.request_router import (
    FIFOMixin,
    PendingRequest,
    RequestRouter,
    RunningReplica,
)


class AnyNodeRouter(FIFOMixin, RequestRouter):  # type: ignore[misc]  # Ray has no types
    """Chooses among the replicas of all nodes: of two at random, the one with fewer requests.

    By default a proxy sends requests to other nodes only when no replica of its own takes any
    more. To score takes longer than to send, so the replicas of the others would be idle.
    """

    async def choose_replicas(
        self,
        candidate_replicas: list[RunningReplica],
        pending_request: PendingRequest | None = None,  # noqa: ARG002 - as Ray calls it
    ) -> list[list[RunningReplica]]:
        """Return two of the replicas, or the only one; Ray takes the one with fewer requests."""
        return [random.sample(candidate_replicas, min(2, len(candidate_replicas)))]

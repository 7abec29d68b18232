"""Which replica a proxy sends a request to."""

from typing import Any

from ray.serve._private.request_router.pow_2_router import PowerOfTwoChoicesRequestRouter


class AnyNodeRouter(PowerOfTwoChoicesRequestRouter):  # type: ignore[misc]  # Ray has no types
    """Chooses among the replicas of all nodes: of two at random, the one with fewer requests.

    By default a proxy sends requests to other nodes only when no replica of its own takes any
    more. To score takes longer than to send, so the replicas of the others would be idle.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(
            *args,
            **{**options, "prefer_local_node_routing": False, "prefer_local_az_routing": False},
        )

"""Which comments people see, and with what probability."""

from modwatch.routing.keys import random_keys
from modwatch.routing.policy import RoutingPolicy

__all__ = ["RoutingPolicy", "random_keys"]

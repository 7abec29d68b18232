"""The routing policy, set by a lead."""

import json
from dataclasses import asdict, dataclass
from hashlib import sha256

from modwatch.common.errors import DesignError
from modwatch.statistics.collaboration.strategies import STRATEGIES


@dataclass(frozen=True, kw_only=True)
class RoutingPolicy:
    """How many comments of a day are reviewed, and how they are chosen.

    >>> RoutingPolicy(review_fraction=0.1).slice_share
    0.1
    """

    #: α in (0, 1]: ⌊αn⌋ of the day's n comments are reviewed.
    review_fraction: float
    #: ρ in [0, 1): share of the capacity for the random slice.
    slice_share: float = 0.1
    #: Review strategy of the top: uncertainty, toxicity or hybrid.
    strategy: str = "uncertainty"
    #: Of the strategy hybrid, in [0, 1]: share of the capacity for the most toxic comments.
    toxic_share: float = 0.5
    #: Maximum number of strata outside the top; at least 1.
    strata: int = 5
    #: Minimum number of comments drawn from a stratum that has as many; at least 1.
    minimum: int = 2
    #: Expected number of confirmations over that of the routed comments, in [0, 1]; on top of α.
    confirmation_share: float = 0.13

    def __post_init__(self) -> None:
        _reject(
            not 0 < self.review_fraction <= 1, "review_fraction", self.review_fraction, "(0, 1]"
        )
        _reject(not 0 <= self.slice_share < 1, "slice_share", self.slice_share, "[0, 1)")
        _reject(not 0 <= self.toxic_share <= 1, "toxic_share", self.toxic_share, "[0, 1]")
        _reject(self.strategy not in STRATEGIES, "strategy", self.strategy, str(STRATEGIES))
        _reject(self.strata < 1, "strata", self.strata, "[1, ∞)")
        _reject(self.minimum < 1, "minimum", self.minimum, "[1, ∞)")
        share = self.confirmation_share
        _reject(not 0 <= share <= 1, "confirmation_share", share, "[0, 1]")

    @property
    def digest(self) -> str:
        """Hash of the policy, part of the random keys.

        Changes with every value except the share of confirmations, which can be changed without
        drawing another slice.

        >>> policy = RoutingPolicy(review_fraction=0.1)
        >>> policy.digest == RoutingPolicy(review_fraction=0.1).digest
        True
        """
        values = asdict(self)
        del values["confirmation_share"]
        return sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def _reject(wrong: bool, name: str, value: object, allowed: str) -> None:
    """Raise DesignError if `wrong`."""
    if wrong:
        raise DesignError(f"{name} of the routing policy must be in {allowed}, got {value!r}")

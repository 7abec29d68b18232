"""What a lead decides about routing."""

import json
from dataclasses import asdict, dataclass
from hashlib import sha256

from modwatch.errors import DesignError
from modwatch.metrics.collaborative import STRATEGIES


@dataclass(frozen=True, kw_only=True)
class RoutingPolicy:
    """How many comments of a day people review, and how those are chosen.

    >>> RoutingPolicy(review_fraction=0.1).slice_share
    0.1
    """

    #: α in (0, 1]: ⌊αn⌋ of the day's n comments are reviewed.
    review_fraction: float
    #: ρ in [0, 1): share of the capacity spent on the random slice.
    slice_share: float = 0.1
    #: Which comments come first: uncertainty, toxicity or hybrid.
    strategy: str = "uncertainty"
    #: Share in [0, 1] of the capacity that `hybrid` gives to the most toxic.
    toxic_share: float = 0.5
    #: Strata of the comments outside the top, at most; at least 1.
    strata: int = 5
    #: Comments drawn from a stratum, at least, where it has as many; at least 1.
    minimum: int = 2

    def __post_init__(self) -> None:
        _refuse(
            not 0 < self.review_fraction <= 1, "review_fraction", self.review_fraction, "(0, 1]"
        )
        _refuse(not 0 <= self.slice_share < 1, "slice_share", self.slice_share, "[0, 1)")
        _refuse(not 0 <= self.toxic_share <= 1, "toxic_share", self.toxic_share, "[0, 1]")
        _refuse(self.strategy not in STRATEGIES, "strategy", self.strategy, str(STRATEGIES))
        _refuse(self.strata < 1, "strata", self.strata, "[1, ∞)")
        _refuse(self.minimum < 1, "minimum", self.minimum, "[1, ∞)")

    @property
    def digest(self) -> str:
        """Hash of the policy: it goes into the random keys, and changes with every value.

        >>> policy = RoutingPolicy(review_fraction=0.1)
        >>> policy.digest == RoutingPolicy(review_fraction=0.1).digest
        True
        """
        return sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()


def _refuse(wrong: bool, name: str, value: object, allowed: str) -> None:
    """Raise DesignError when `wrong`."""
    if wrong:
        raise DesignError(f"{name} of the routing policy is {value!r}; it must lie in {allowed}")

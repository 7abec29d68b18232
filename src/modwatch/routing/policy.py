"""What a lead decides about routing."""

import json
from dataclasses import asdict, dataclass
from hashlib import sha256

from modwatch.errors import DesignError
from modwatch.metrics.strategies import STRATEGIES


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
    #: Share in [0, 1] of the reviewed comments that a second person labels too; on top of α.
    second_opinion_share: float = 0.05

    def __post_init__(self) -> None:
        _refuse(
            not 0 < self.review_fraction <= 1, "review_fraction", self.review_fraction, "(0, 1]"
        )
        _refuse(not 0 <= self.slice_share < 1, "slice_share", self.slice_share, "[0, 1)")
        _refuse(not 0 <= self.toxic_share <= 1, "toxic_share", self.toxic_share, "[0, 1]")
        _refuse(self.strategy not in STRATEGIES, "strategy", self.strategy, str(STRATEGIES))
        _refuse(self.strata < 1, "strata", self.strata, "[1, ∞)")
        _refuse(self.minimum < 1, "minimum", self.minimum, "[1, ∞)")
        again = self.second_opinion_share
        _refuse(not 0 <= again <= 1, "second_opinion_share", again, "[0, 1]")

    @property
    def digest(self) -> str:
        """Hash of what decides who is reviewed: it goes into the random keys.

        It changes with every value but the share of second opinions, which come on top and may
        be switched on without another slice being drawn.

        >>> policy = RoutingPolicy(review_fraction=0.1)
        >>> policy.digest == RoutingPolicy(review_fraction=0.1).digest
        True
        """
        values = asdict(self)
        del values["second_opinion_share"]
        return sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def _refuse(wrong: bool, name: str, value: object, allowed: str) -> None:
    """Raise DesignError when `wrong`."""
    if wrong:
        raise DesignError(f"{name} of the routing policy is {value!r}; it must lie in {allowed}")

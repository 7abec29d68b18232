"""Real ratings of comments, which simulated moderators give instead of simulated errors."""

import hashlib
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Ratings:
    """The ratings of some comments by people without names, handed out to simulated people.

    Everybody gives one rating of a comment, and the same one every time. The first k people, by
    number, give different ones of its k ratings, in a random order of the comment's own; further
    people give any of the k. So the rating of a person depends neither on who labelled before nor
    on the order of the work, and each is equally likely to be anybody's.

    >>> ratings = Ratings(by_comment={"c": [0, 0, 1]})
    >>> sorted(ratings.of("c", person) for person in range(3))
    [0, 0, 1]
    """

    #: The ratings of each comment, 0 or 1; at least one each.
    by_comment: Mapping[str, Sequence[int]] = field(repr=False)
    seed: int = 0

    def __contains__(self, comment_id: object) -> bool:
        """Return whether the comment has ratings."""
        return comment_id in self.by_comment

    def of(self, comment_id: str, person: int) -> int:
        """Return the rating of the comment by the person of this number, from 0.

        Raises KeyError for a comment without ratings.
        """
        ratings = self.by_comment[comment_id]
        order = self._chance(comment_id).sample(ratings, len(ratings))
        if person < len(order):
            return order[person]
        return self._chance(f"{comment_id} {person}").choice(order)

    def _chance(self, name: str) -> random.Random:
        digest = hashlib.blake2b(f"{self.seed} {name}".encode(), digest_size=8).digest()
        return random.Random(int.from_bytes(digest))  # noqa: S311 - a simulation

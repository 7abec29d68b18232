"""People and items in the review database of the session, which is empty before every test."""

from review_fixtures import (
    ann,
    ben,
    day,
    engine,
    fast_hashes,
    fill,
    new_item,
    random_numbers,
    session_engine,
)

__all__ = [
    "ann",
    "ben",
    "day",
    "engine",
    "fast_hashes",
    "fill",
    "new_item",
    "random_numbers",
    "session_engine",
]

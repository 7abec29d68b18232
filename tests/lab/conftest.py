"""People and items in the review database of the session, for simulated people."""

from review_fixtures import day, engine, fast_hashes, fill, new_item, random_numbers, session_engine

__all__ = ["day", "engine", "fast_hashes", "fill", "new_item", "random_numbers", "session_engine"]

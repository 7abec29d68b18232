"""People and items in the review database of the session, which is empty before every test."""

from review_fixtures import ann, ben, engine, new_item, session_engine

__all__ = ["ann", "ben", "engine", "new_item", "session_engine"]

"""People and items in the review database of the session, which is empty before every test."""

from review_fixtures import ann, ben, engine, new_item, session_engine

from monitoring.publishing.conftest import experiment, free_port, mlflow_url

__all__ = [
    "ann",
    "ben",
    "engine",
    "experiment",
    "free_port",
    "mlflow_url",
    "new_item",
    "session_engine",
]

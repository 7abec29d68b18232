"""What a task of Airflow calls its host in tests: the name of its worker."""

import os


def name() -> str:
    return os.environ.get("WORKER_NAME", "localhost")

"""A real PostgreSQL for the session, and an empty, migrated database for every test."""

import tempfile
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path

import pytest
from databases import empty, owner_url
from sqlalchemy import Engine, text

from modwatch.lake.schemas import CONFIRMATION_PROBABILITIES
from modwatch.review import people, queue
from modwatch.review.database import connect
from modwatch.review.embedded import APPLICATION, EmbeddedServer, embedded
from modwatch.review.migrate import upgrade
from modwatch.review.people import Moderator
from modwatch.review.queue.items import NewItem


@pytest.fixture(scope="session")
def postgres(services: None) -> Iterator[EmbeddedServer]:
    # Not pytest's folder: each start of pytest closes it to other users, and the server of a root
    # has a user of its own.
    with tempfile.TemporaryDirectory() as folder, embedded(Path(folder)) as server:
        maintenance = connect(server.server_url, pool_size=1)
        with maintenance.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            # What a power cut would leave of the tests, nobody needs. `test_embedded` has its own.
            connection.execute(text("ALTER SYSTEM SET fsync = off"))
            connection.execute(text("SELECT pg_reload_conf()"))
        maintenance.dispose()
        yield server


@pytest.fixture(scope="session")
def migrated_url(postgres: EmbeddedServer) -> str:
    url = postgres.application_url("review")
    upgrade(owner_url(url), application=APPLICATION)
    return url


@pytest.fixture
def database_url(migrated_url: str) -> str:
    empty(migrated_url)
    return migrated_url


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    engine = connect(database_url)
    yield engine
    engine.dispose()


@pytest.fixture
def day() -> date:
    return date(2026, 1, 1)


@pytest.fixture
def new_item() -> Callable[..., NewItem]:
    def make(comment_id: str, rank: int = 1, **fields: object) -> NewItem:
        content: dict[str, object] = {
            "comment_id": comment_id,
            "rank": rank,
            "text": f"invented text of {comment_id}",
            "reason": "uncertainty",
            "stratum": 0,
            "inclusion_probability": 1.0,
            "review_score": 0.2,
            "prob": 0.3,
            "uncertainty": 0.21,
            "model_version": "1",
        }
        if fields.get("kind") == "confirmation":  # of any first label, for sure
            probabilities = dict.fromkeys(CONFIRMATION_PROBABILITIES, 1.0)
            content |= {"round": 2, "confirms": [0, 1], **probabilities}
        return NewItem(**(content | fields))  # type: ignore[arg-type]

    return make


@pytest.fixture
def fill(engine: Engine, new_item: Callable[..., NewItem], day: date) -> Callable[[int], None]:
    def put(n: int) -> None:
        queue.enqueue(engine, [new_item(f"c{i}", i + 1) for i in range(n)], day)

    return put


@pytest.fixture
def ann(engine: Engine) -> Moderator:
    return people.create_moderator(engine, "ann", "moderator")


@pytest.fixture
def ben(engine: Engine) -> Moderator:
    return people.create_moderator(engine, "ben", "moderator")

from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import text

from modwatch.common.errors import DatabaseError
from modwatch.review.database import connect, create_database
from modwatch.review.embedded import EmbeddedServer


@pytest.mark.parametrize("scheme", ["postgresql", "postgresql+psycopg"])
def test_socket_urls_connect_in_utc(path_server: EmbeddedServer, scheme: str) -> None:
    address = path_server.server_url.split("://", 1)[1]
    engine = connect(f"{scheme}://{address}")
    with engine.connect() as connection:
        assert connection.scalar(text("SHOW timezone")) == "UTC"
    engine.dispose()


def test_unreachable_server_is_named_without_its_password() -> None:
    with pytest.raises(DatabaseError) as refused:
        connect("postgresql://someone:secret-word@127.0.0.1:1/queue")
    assert "'queue'" in str(refused.value)
    assert "127.0.0.1" in str(refused.value)
    assert "MODWATCH_DATABASE_URL" in str(refused.value)
    assert "secret-word" not in str(refused.value)


@pytest.mark.parametrize("url", ["sqlite:///queue.db", "mysql://host/queue", "not a url"])
def test_other_databases_are_refused(url: str) -> None:
    with pytest.raises(DatabaseError, match="postgresql://"):
        connect(url)


def test_a_connection_that_breaks_is_a_database_error(path_server: EmbeddedServer) -> None:
    engine = connect(path_server.server_url)
    with engine.connect() as connection, pytest.raises(DatabaseError, match="cannot be reached"):
        connection.execute(text("SELECT pg_terminate_backend(pg_backend_pid())"))
    with engine.connect() as connection:  # and the pool goes on
        assert connection.scalar(text("SELECT 1")) == 1
    engine.dispose()


def test_two_processes_may_create_one_database(path_server: EmbeddedServer) -> None:
    with ThreadPoolExecutor(4) as pool:
        urls = set(pool.map(lambda _: create_database(path_server.server_url, "mlflow"), range(4)))
    assert len(urls) == 1
    engine = connect(urls.pop())
    with engine.connect() as connection:
        assert connection.scalar(text("SELECT current_database()")) == "mlflow"
    engine.dispose()


def test_a_database_may_have_a_hostile_name(path_server: EmbeddedServer) -> None:
    name = 'a"; DROP DATABASE postgres; --'
    engine = connect(create_database(path_server.server_url, name))
    with engine.connect() as connection:
        assert connection.scalar(text("SELECT current_database()")) == name
    engine.dispose()

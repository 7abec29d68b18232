from concurrent.futures import ThreadPoolExecutor

import pytest
from databases import scalar
from sqlalchemy import text

from modwatch.common.errors import DatabaseError
from modwatch.review.database import connect, create_database


def test_socket_urls_connect_in_utc_and_others_are_refused(path_server):
    address = path_server.server_url.split("://", 1)[1]
    for scheme in ("postgresql", "postgresql+psycopg"):
        engine = connect(f"{scheme}://{address}")
        assert scalar(engine, "SHOW timezone") == "UTC"
        engine.dispose()
    for url in ("sqlite:///queue.db", "mysql://host/queue", "not a url"):
        with pytest.raises(DatabaseError, match="postgresql://"):
            connect(url)


def test_unreachable_server_is_named_without_its_password():
    with pytest.raises(DatabaseError) as refused:
        connect("postgresql://someone:secret-word@127.0.0.1:1/queue")
    assert "'queue'" in str(refused.value)
    assert "127.0.0.1" in str(refused.value)
    assert "MODWATCH_DATABASE_URL" in str(refused.value)
    assert "secret-word" not in str(refused.value)


def test_a_connection_that_breaks_is_a_database_error(path_server):
    engine = connect(path_server.server_url)
    with engine.connect() as connection, pytest.raises(DatabaseError, match="cannot be reached"):
        connection.execute(text("SELECT pg_terminate_backend(pg_backend_pid())"))
    # and the pool goes on
    assert scalar(engine, "SELECT 1") == 1
    engine.dispose()


def test_two_processes_may_create_one_database(path_server):
    for name in ("mlflow", 'a"; DROP DATABASE postgres; --'):
        with ThreadPoolExecutor(4) as pool:
            asked = [path_server.server_url] * 4, [name] * 4
            (url,) = set(pool.map(create_database, *asked))
        engine = connect(url)
        assert scalar(engine, "SELECT current_database()") == name
        engine.dispose()

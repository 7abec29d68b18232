"""An application that the first request opens."""

from contextlib import ExitStack

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from modwatch.installation.mounted import MountedApplication
from modwatch.installation.resources import Resources


class Counted(MountedApplication):
    """Counts how often it is opened; says when it was closed."""

    opened, closed = 0, False

    def _create(self, resources: Resources, exits: ExitStack) -> FastAPI:
        exits.callback(setattr, self, "closed", True)
        self.opened += 1
        return FastAPI()


@pytest.fixture(autouse=True)
def _settings(monkeypatch, tmp_path):
    monkeypatch.setenv("MODWATCH_HOME", str(tmp_path))


def test_the_first_request_opens_it_and_later_ones_nothing_more():
    server, inside = FastAPI(), Counted()
    server.mount("/inside", inside)
    with TestClient(server) as client:
        assert not inside.opened, "at rest it takes no memory"
        for _ in range(2):
            assert client.get("/inside/x").status_code == client.get("/x").status_code == 404
    assert inside.opened == 1
    inside.close()
    assert inside.closed

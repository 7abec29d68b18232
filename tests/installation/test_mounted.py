"""An application that is opened while the server around it starts."""

import threading
from contextlib import ExitStack

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from modwatch.installation.mounted import MountedApplication, OpenedEarly
from modwatch.installation.resources import Resources


class Counted(MountedApplication):
    """Counts how often it is opened; says when it is."""

    opened = 0

    def __init__(self) -> None:
        super().__init__()
        self.ready = threading.Event()

    def _create(self, resources: Resources, exits: ExitStack) -> FastAPI:
        exits.callback(self.ready.clear)
        self.opened += 1
        self.ready.set()
        return FastAPI()


@pytest.fixture(autouse=True)
def _settings(monkeypatch, tmp_path):
    monkeypatch.setenv("MODWATCH_HOME", str(tmp_path))


def test_the_start_of_the_server_opens_it_and_requests_open_nothing_more():
    server, inside = FastAPI(), Counted()
    server.mount("/inside", inside)
    server.add_middleware(OpenedEarly, application=inside)
    assert not inside.ready.is_set(), "loading the plugin opens nothing"
    with TestClient(server) as client:
        assert inside.ready.wait(timeout=60), "no request was made"
        assert client.get("/inside/x").status_code == client.get("/x").status_code == 404
    assert inside.opened == 1
    inside.close()
    assert not inside.ready.is_set()

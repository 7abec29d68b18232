"""A tab of the console with a script, as the server sees it."""

import re
from typing import Any

from fastapi.testclient import TestClient
from sqlalchemy import Engine

from modwatch.review.console.request_context import csrf_of
from modwatch.review.people import access_tokens, sessions
from modwatch.review.people.accounts import Moderator


class Tab:
    def __init__(self, client: TestClient, engine: Engine, person: Moderator) -> None:
        token = access_tokens.issue_token(engine, person.id)
        self.session = sessions.open_session(engine, token)
        self.client = client

    def post(self, path: str, csrf: str | None = None, **body: Any) -> Any:
        cookies = {"Cookie": f"modwatch_session={self.session}"}
        proof = self.client.get("/api/v1/me", headers=cookies).json()["csrf"]
        headers = {
            **cookies,
            "X-Modwatch-CSRF": proof if csrf is None else csrf,
            "X-Modwatch-Fragment": "1",
        }
        return self.client.post(path, json=body, headers=headers)

    def undo(self, decision_id: int) -> Any:
        """Undo a decision, as the script asks for it."""
        headers = {"Cookie": f"modwatch_session={self.session}", "X-Modwatch-Fragment": "1"}
        form = {"csrf": csrf_of(self.session), "decision_id": decision_id}
        return self.client.post("/undo", data=form, headers=headers)

    def hold(self, count: int = 1, held: Any = ()) -> list[dict[str, Any]]:
        page = self.post("/next", held=list(held), count=count).text
        found = re.findall(r'data-item="(\d+)" data-token="([^"]*)"', page)
        return [{"item_id": int(item), "lease_token": token} for item, token in found]

"""A lead who wants to know what the model or others say of a comment before labelling it.

Leads search, read histories and label. What they label must be their own opinion, and nothing may
tell an ordinary item from a confirmation, whose figures rest on nobody's knowing.
"""

import datetime as dt
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from typing import Any

import numpy as np
import pytest
from sqlalchemy import Engine, text

from modwatch.common.errors import ItemNotFoundError
from modwatch.review import search
from modwatch.review.console.request_context import csrf_of
from modwatch.review.console.search import viewer_of
from modwatch.review.people import access_tokens, accounts, sessions
from modwatch.review.queue import dismissal, intake, leases
from modwatch.review.queue.dismissal import Criteria
from modwatch.review.queue.items import NewItem
from modwatch.review.search import Found, SearchQuery, Viewer
from modwatch.review.tables import STATUSES
from modwatch.routing.confirmation_design import draw_confirmations
from review.console.visiting import by_cookie
from review.labelling import a_later_day, label_next


def everything(engine: Engine, viewer: Viewer, item_id: int, comment_id: str) -> list[Any]:
    """Return all that a lead can read of a comment; an error stands for itself."""
    searches = [{}, *({"status": status} for status in STATUSES)]
    with pytest.raises(ItemNotFoundError) as hidden:
        search.history(engine, viewer, item_id)
    return [
        str(hidden.value),
        *(
            search.find(engine, SearchQuery(comment_id=comment_id, **more), viewer)
            for more in searches
        ),
        dismissal.matching(engine, Criteria(comment_ids=("no such comment",))),
    ]


@pytest.mark.parametrize("number", [2, 3])
def test_an_ordinary_item_and_a_confirmation_look_alike(
    engine, lea, ann, ben,
    new_item, day, number
):  # fmt: skip
    more = [{"kind": "confirmation", "round": value} for value in (2, 3)]
    items = [new_item("both", prob=0.345, **value) for value in ({}, *more)]
    intake.enqueue(engine, items, day)
    label_next(engine, ann, 1, note="toxic, clearly")
    if number == 3:
        label_next(engine, ben, 0, note="a joke")
    intake.enqueue(engine, [new_item("plain", prob=0.345)], day + dt.timedelta(days=1))
    for _ in range(2):  # held, and again after it was given back
        held = {}
        for _ in range(2):
            lease = leases.lease(engine, lea.id)
            assert lease is not None
            held[lease.item.comment_id] = lease
        second, ordinary = (
            everything(engine, viewer_of(lea), held[name].item.id, name)
            for name in ("both", "plain")
        )
        assert second == ordinary
        assert ordinary[1] == Found(items=(), cursor=None)
        for each in held.values():
            leases.release(engine, lea.id, each.item.id, each.token)


def test_a_token_of_fewer_scopes_does_not_show_more(engine, client, lea, new_item, day):
    """A lead who holds an item in the browser, and asks with a token that may not review."""
    intake.enqueue(engine, [new_item("held", prob=0.345), new_item("open", 2, prob=0.345)], day)
    assert leases.lease(engine, lea.id) is not None
    token = access_tokens.issue_token(engine, lea.id, scopes=["lead", "decisions:read"])
    session = sessions.open_session(engine, token)
    headers = by_cookie(session)
    form = {"csrf": csrf_of(session), "format": "csv"}
    for comment_id in ("held", "open"):
        asked = form | {"comment_id": comment_id}
        found = client.post("/search", data=asked, headers=headers)
        assert "No results." in found.text
    for item_id in (1, 2):
        assert client.get(f"/items/{item_id}", headers=headers).status_code == 404
    assert client.post("/records/export", data=form, headers=headers).status_code == 403


#: Comments of a day.
SIZE = 100


@pytest.mark.usefixtures("random_numbers")
def test_neither_number_nor_order_tells_a_confirmation(engine, client, new_item, day):
    """A team that keeps all that it is served, and looks what confirmations have in common."""
    kinds = _routed(engine, new_item, day)
    team = [accounts.create_moderator(engine, f"p{n}", "moderator") for n in range(4)]
    tokens = [access_tokens.issue_token(engine, person.id) for person in team]
    rng = np.random.default_rng(5)
    seen: list[dict[str, Any]] = []
    last, idle = [0] * 4, 0
    while idle < 4:
        turn = len(seen) % 4 if not idle else (len(seen) + idle) % 4
        bearer = {"Authorization": f"Bearer {tokens[turn]}"}
        answer = client.post("/api/v1/leases", json={}, headers=bearer)
        if answer.status_code == 204:
            idle += 1
            continue
        idle, lease = 0, answer.json()
        item = lease["item"]
        seen.append({**item, "back": item["id"] < last[turn], "kind": kinds(item["id"])})
        last[turn] = item["id"]
        body = {"lease_token": lease["token"], "action": "label", "label": int(rng.random() < 0.4)}
        key = {"Idempotency-Key": lease["token"]}
        path = f"/api/v1/items/{item['id']}/decisions"
        assert client.post(path, json=body, headers=bearer | key).status_code == 201
    ordinary = [row for row in seen if row["kind"] == "review"]
    confirmations = [row for row in seen if row["kind"] != "review"]
    assert len(ordinary) == SIZE
    assert len(confirmations) > SIZE / 2
    assert len({frozenset(row) for row in seen}) == 1
    own = {"id", "text", "version", "back", "kind"}
    for name in set(seen[0]) - own:
        assert len({str(row[name]) for row in seen}) == 1, name
    # An item with a lower number than the last one is no sign of a confirmation: they are random.
    # Four standard deviations of the difference of two shares of a half; a tell would differ by it.
    back = [np.mean([row["back"] for row in rows]) for rows in (ordinary, confirmations)]
    assert abs(back[0] - back[1]) < 4 * (0.25 / SIZE + 0.25 / len(confirmations)) ** 0.5, back


def _routed(engine: Engine, new_item: Callable[..., NewItem], day: date) -> Callable[[int], str]:
    """Queue a day as `route` does, half of it confirmed; return what an item is."""
    rng = np.random.default_rng(3)
    keys, rank_keys = rng.integers(0, 2**64, (2, SIZE), dtype=np.uint64)
    drawn = draw_confirmations(np.full((SIZE, 2), 0.5), keys, rank_keys)
    items = [
        new_item(f"c{n}", n + 1, reason=rng.choice(["uncertainty", "random_slice"]))
        for n in range(SIZE)
    ]
    further = [
        replace(
            items[row], kind="confirmation", round=number, rank=rank, confirms=[0, 1],
            confirmation_probability_0=0.5, confirmation_probability_1=0.5,
        )
        for row, ranks in zip(drawn.row, drawn.rank.tolist(), strict=True)
        for number, rank in zip((2, 3), ranks, strict=True)
    ]  # fmt: skip
    intake.enqueue(engine, [*items, *further], day)
    a_later_day(engine)
    with engine.connect() as connection:
        rows = connection.execute(text("SELECT id, kind, round FROM review_item")).all()
    names = {row.id: row.kind if row.round == 1 else f"{row.kind} {row.round}" for row in rows}
    return names.__getitem__

"""The API keeps to its own description, whatever is sent and whoever sends it."""

import secrets
from collections import defaultdict
from collections.abc import MutableMapping
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import APIOperation, Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.python.asgi import ASGIClient, get_client
from schemathesis.specs.openapi import checks
from sqlalchemy import Engine

from modwatch.review.console.app import create_app
from modwatch.review.people import access_tokens, accounts
from modwatch.review.people.accounts import ROLE_SCOPES, Moderator
from modwatch.review.queue import deciding, intake, leases

#: Stands in comments, notes and lease tokens, and so in no answer that refuses.
PRIVATE = "what no refusal may repeat"
_PRIVATE_FIELDS = ("note", "lease_token")

#: Examples of an operation that the role may not use, of one that it may, and of one that has
#: refused all of those.
FEW, SOME, MANY = 2, 4, 100

OPEN = {"/livez", "/readyz"}

#: Of one operation, sound ones and others.
Requests = st.SearchStrategy[Case]
Described = tuple[APIOperation, Requests]

BOUNDED = settings(
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)

CHECKS: list[Any] = [
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
]


@pytest.fixture(scope="module")
def operations(session_engine):
    """What there is, and requests of it; to make those takes longer than to send them."""
    schema = schemathesis.openapi.from_asgi("/api/v1/openapi.json", create_app(session_engine))
    found = [result.ok() for result in schema.get_all_operations()]
    return [(operation, cases(operation)) for operation in found]


@pytest.fixture
def in_use(engine, new_item, day, ann, ben):
    """A queue in which some of everything has happened."""
    items = [new_item(f"c{i}", i + 1, text=f"{PRIVATE} {i}") for i in range(400)]
    intake.enqueue(engine, items, day)
    cora = accounts.create_moderator(engine, "cora", "lead")
    for person, does, more in (
        (ann, deciding.decide, {"label": 1, "policy_code": "threat"}),
        (ann, deciding.decide, {"label": 0}),
        (ben, deciding.skip, {"reason": "language"}),
        (ben, deciding.escalate, {"reason": "legal"}),
        (cora, deciding.decide, {"label": 1}),
    ):
        lease = leases.lease(engine, person.id)
        assert lease is not None
        done = {"item_id": lease.item.id, "lease_token": lease.token, "note": PRIVATE}
        key = secrets.token_hex(8)
        does(engine, moderator_id=person.id, idempotency_key=key, **done, **more)
    leases.lease(engine, ann.id)


def test_the_description_is_whole(app):
    operations = app.openapi()["paths"]
    assert len(operations) == 8
    for path, methods in operations.items():
        for method, message in methods.items():
            where = f"{method} {path}"
            assert message.get("summary"), where
            assert message.get("description"), where
            assert bool(message.get("security")) == (path not in OPEN), where
            if path not in OPEN:
                assert {"401", "503"} <= set(message["responses"]), where
            if "requestBody" in message:
                assert {"413", "422"} <= set(message["responses"]), where
            for status, answer in message["responses"].items():
                if int(status) >= 400:
                    shape = answer["content"]["application/json"]["schema"]
                    assert shape == {"$ref": "#/components/schemas/ErrorSchema"}, where


@pytest.mark.parametrize(
    "role",
    [
        role if role == "moderator" else pytest.param(role, marks=pytest.mark.soak)
        for role in ROLE_SCOPES
    ],
)
def test_answers_are_as_described(engine, app, operations, in_use, role):
    person = accounts.create_moderator(engine, f"the {role}", role)
    seen: dict[str, set[int]] = defaultdict(set)
    with get_client(app) as client:
        for operation, requests in operations:
            answers = seen[operation.label] = explore(engine, client, requests, person, FEW)
            if not is_forbidden(answers):
                answers |= explore(engine, client, requests, person, SOME)
                if min(answers) >= 300:
                    answers |= explore(engine, client, requests, person, MANY)
    # Nothing is proved of an endpoint that refuses all that it is asked.
    assert {
        name: statuses
        for name, statuses in seen.items()
        if min(statuses) >= 300 and not is_forbidden(statuses)
    } == {}


def is_forbidden(statuses: set[int]) -> bool:
    """Return whether these are the answers to a role that may not; some bodies nobody can read."""
    return 403 in statuses and statuses <= {400, 403, 422}


def explore(
    engine: Engine, client: ASGIClient, requests: Requests, person: Moderator, examples: int
) -> set[int]:
    """Return the statuses with which `requests` are answered to `person`, all of them described."""
    seen: set[int] = set()

    @settings(BOUNDED, max_examples=examples)
    @given(case=requests, real=st.booleans(), mark=st.booleans())
    def answers(case: Case, real: bool, mark: bool) -> None:
        if mark:
            fill(case.body, dict.fromkeys(_PRIVATE_FIELDS, PRIVATE))
        if real:
            make_real(engine, case, person)
        # A new one each time: some operations end the old.
        token = access_tokens.issue_token(engine, person.id)
        answer = case.call(session=client, headers={"Authorization": f"Bearer {token}"})
        case.validate_response(answer, checks=CHECKS)
        seen.add(answer.status_code)
        if answer.status_code >= 400:
            assert_one_shape(answer)
            assert token not in answer.text

    answers()
    return seen


def make_real(engine: Engine, case: Case, person: Moderator) -> None:
    """Put what there is in place of what was made up."""
    if person.reviews and "item_id" in case.path_parameters:
        lease = leases.lease(engine, person.id)
        assert lease is not None
        fill(case.headers, {"X-Lease-Token": lease.token})
        fill(case.path_parameters, {"item_id": lease.item.id})
        fields = {"lease_token": lease.token, "version": lease.item.version}
        fill(case.body, {"policy_code": None, **fields})
    fill(case.query, {"after": None})


def fill(target: Any, values: dict[str, Any]) -> None:
    """Replace those fields of `target` that it has; None takes them out."""
    if isinstance(target, MutableMapping):
        for name in target.keys() & values.keys():
            if values[name] is None:
                del target[name]
            else:
                target[name] = values[name]


def cases(operation: APIOperation) -> Requests:
    made = [operation.as_strategy(generation_mode=GenerationMode.POSITIVE)]
    if list(operation.iter_parameters()) or operation.body:
        made.append(operation.as_strategy(generation_mode=GenerationMode.NEGATIVE))
    return st.one_of(made)


def assert_one_shape(answer: Any) -> None:
    content = answer.json()
    assert set(content) == {"error"}
    assert set(content["error"]) == {"code", "message"}
    assert all(isinstance(value, str) and value for value in content["error"].values())
    assert PRIVATE not in answer.text

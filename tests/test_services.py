"""`make check` starts no servers: whatever starts one requests the fixture `services`."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

#: Calls that start a server or a browser.
_STARTS = {"Popen", "daily_job", "embedded", "launch"}


def fixtures() -> Iterator[tuple[str, ast.FunctionDef]]:
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef) and any(
                "fixture" in ast.dump(each) for each in node.decorator_list
            ):
                yield f"{path.name}:{node.name}", node


def starts_something(fixture: ast.FunctionDef) -> bool:
    calls = [node.func for node in ast.walk(fixture) if isinstance(node, ast.Call)]
    names = {
        call.attr if isinstance(call, ast.Attribute) else getattr(call, "id", "") for call in calls
    }
    return bool(names & _STARTS)


@pytest.mark.parametrize(
    "fixture", [pytest.param(node, id=name) for name, node in fixtures() if starts_something(node)]
)
def test_a_fixture_that_starts_something_requests_services(fixture: ast.FunctionDef) -> None:
    wanted = {"services", "engine", "database_url", "queue_url", "make_installation"}
    assert wanted & {each.arg for each in fixture.args.args}, "request the fixture `services`"

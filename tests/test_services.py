"""`make check` starts no servers: whatever starts one requests the fixture `services`."""

import ast
from collections.abc import Iterator
from pathlib import Path

#: Calls that start a server or a browser.
_STARTS = {"Popen", "daily_job", "embedded", "launch"}

#: Fixtures of which one is enough: the marker itself, or those that request it.
_MARKED = {"services", "engine", "database_url", "queue_url", "make_installation"}


def starting_fixtures() -> Iterator[tuple[str, ast.FunctionDef]]:
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if (
                isinstance(node, ast.FunctionDef)
                and any("fixture" in ast.unparse(item) for item in node.decorator_list)
                and starts_something(node)
            ):
                yield f"{path}:{node.name}", node


def starts_something(fixture: ast.FunctionDef) -> bool:
    calls = [node.func for node in ast.walk(fixture) if isinstance(node, ast.Call)]
    names = {
        call.attr if isinstance(call, ast.Attribute) else getattr(call, "id", "") for call in calls
    }
    return bool(names & _STARTS)


def test_a_fixture_that_starts_something_requests_services():
    starting = dict(starting_fixtures())
    unmarked = {
        name
        for name, fixture in starting.items()
        if not _MARKED & {item.arg for item in fixture.args.args}
    }
    assert len(starting) >= 8
    assert unmarked == set(), "request the fixture `services`"

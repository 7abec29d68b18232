"""Each extra brings what its part of the package imports, and a missing one is named."""

import ast
import re
import sys
from pathlib import Path

import pytest

from extras import PROJECT, ROOT, own_requirements, run_with
from modwatch.common import installed

#: Each test starts an interpreter, and some import torch.
pytestmark = pytest.mark.usefixtures("services")

# Left out: the embedded server, and programs that MLflow and Alembic run.
_IMPORT_ALL = """
import importlib, pkgutil
for top in {packages}:
    package = importlib.import_module(top)
    for each in pkgutil.walk_packages(getattr(package, "__path__", []), top + "."):
        if not each.name.endswith((".embedded", ".pyfunc", ".migrations.env")):
            importlib.import_module(each.name)
"""
_COMMAND = """
import importlib
sys.argv = ["modwatch", *{arguments}]
module, _, function = "{script}".partition(":")
getattr(importlib.import_module(module), function)()
"""


def command(extras: list[str], *arguments: str) -> "tuple[int, str, str]":
    script = PROJECT["project"]["scripts"]["modwatch"]
    done = run_with(extras, _COMMAND.format(arguments=list(arguments), script=script))
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    ("extras", "packages"),
    [
        ("", ["statistics", "routing.design", "routing.confirmation_design", "routing.label_plan"]),
        ("console", ["review"]),
        ("pipeline", ["data", "routing"]),
        pytest.param("console,mlflow,pipeline", ["monitoring"], marks=pytest.mark.soak),
        pytest.param(
            "models,mlflow,pipeline",
            ["models.training", "models.scoring", "models.registry"],
            marks=pytest.mark.soak,
        ),
        ("serving", ["models", "installation.model_server"]),
        pytest.param("ray", ["models.serving", "installation.ray_server"], marks=pytest.mark.soak),
        ("airflow,celery,pipeline", ["pipeline.airflow"]),
        pytest.param("lab", ["modwatch_lab.benchmark"], marks=pytest.mark.soak),
    ],
)
def test_an_extra_brings_what_its_packages_import(extras, packages):
    packages = [
        name if name.startswith("modwatch_lab") else f"modwatch.{name}" for name in packages
    ]
    done = run_with(extras.split(",") if extras else [], _IMPORT_ALL.format(packages=packages))
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["settings"]])
def test_without_extras_the_command_line_works(arguments):
    status, out, err = command([], *arguments)
    assert (status, err) == (0, "")
    assert out


@pytest.mark.parametrize(
    ("extras", "arguments", "extra"),
    [
        ([], ["console"], "console"),
        ([], ["run", "ingest", "2026-01-05"], "pipeline"),
        ([], ["audit", "status"], "pipeline"),
        ([], ["queue", "verify-log"], "console"),
        (["console"], ["serve"], "serving"),
        (["serving"], ["serve", "--replicas", "2"], "ray"),
        ([], ["demo", "--once"], "local"),
        (["pipeline"], ["demo", "--once"], "local"),
        ([], ["benchmark", "cotomod"], "models"),
    ],
)
def test_a_missing_extra_is_named(extras, arguments, extra):
    assert command(extras, *arguments) == (
        1,
        "",
        f'modwatch: "{arguments[0]}" needs extra dependencies; '
        f"run pip install 'modwatch[{extra}]'\n",
    )


def test_another_missing_module_is_no_missing_extra():
    for name in ("modwatch.nothing", "nothing", None):
        assert installed.missing_extra(ModuleNotFoundError(name=name), "run") is None


def test_a_missing_object_store_is_found_in_the_cause():
    error = ImportError("Install s3fs to access S3")
    error.__cause__ = ModuleNotFoundError(name="s3fs")
    assert installed.missing_extra(error, "run") == "s3"


def test_every_import_outside_the_base_belongs_to_an_extra():
    """Otherwise a user who lacks the package would read a traceback."""
    known = {*installed._EXTRA_OF, *installed._SHARED}
    base = {requirement.name.lower() for requirement in own_requirements([])} | {"pydantic_core"}
    base |= {name.replace("-", "_").replace("scikit_learn", "sklearn") for name in base}
    unknown = {
        name
        for path in sorted((ROOT / "src").rglob("*.py"))
        for name in _imported(path)
        if name not in known | base | {"modwatch", "modwatch_lab"} | set(sys.stdlib_module_names)
    }
    # Come with MLflow, with Airflow and with the development tools.
    assert unknown <= {"requests", "asgiref"}


def _imported(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {item.name.partition(".")[0] for item in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.partition(".")[0])
    return names


def test_no_distribution_is_named_twice():
    project = PROJECT["project"]
    parts = [project["dependencies"], *project["optional-dependencies"].values()]
    names = [re.split(r"[\[<>=]", text)[0] for part in parts for text in part]
    own = [name for name in names if name != "modwatch"]
    assert sorted(own) == sorted(set(own))

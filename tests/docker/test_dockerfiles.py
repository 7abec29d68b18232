"""The Dockerfiles, held to rules; no Docker engine is needed.

A rule takes a Dockerfile's instructions and returns its breaches, each a sentence. Every rule is
shown to fail on a small bad example.
"""

import json
import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCKERFILES = sorted((ROOT / "docker").glob("*.Dockerfile"))

#: Build contexts that compose.yaml names (`additional_contexts`): built here, never pulled.
NAMED_CONTEXTS = {"modwatch-base"}

SECRET_NAME = re.compile(
    r"PASSWORD|PASSWD|SECRET|TOKEN|SALT|CREDENTIAL|(^|_)KEY$|SQL_ALCHEMY_CONN$|DATABASE_URL$"
)


@dataclass(frozen=True, kw_only=True)
class Instruction:
    name: str
    argument: str


def parse(text: str) -> list[Instruction]:
    """Return the instructions of a Dockerfile, with continued lines joined."""
    lines = [
        line for line in text.splitlines() if line.strip() and not line.strip().startswith("#")
    ]
    joined = re.sub(r"\\\n\s*", " ", "\n".join(lines))
    parted = [line.partition(" ") for line in joined.splitlines()]
    return [Instruction(name=n.upper(), argument=a.strip()) for n, _, a in parted]


def arguments(instructions: list[Instruction], *names: str) -> list[str]:
    return [i.argument for i in instructions if i.name in names]


def exact_base_images(instructions: list[Instruction]) -> list[str]:
    stages = {a.split()[2] for a in arguments(instructions, "FROM") if len(a.split()) == 3}
    images = [a.split()[0] for a in arguments(instructions, "FROM")]
    exact = re.compile(r"[\w./-]+:\d+\.\d+\.\d+[\w.-]*(@sha256:[0-9a-f]{64})?")
    return [
        f"FROM {image}: name an exact version, such as python:3.11.15-slim-bookworm"
        for image in images
        if image not in NAMED_CONTEXTS | stages and not exact.fullmatch(image)
    ]


def numeric_user_at_the_end(instructions: list[Instruction]) -> list[str]:
    names = [i.name for i in instructions]
    users = arguments(instructions, "USER")
    if not users or not re.fullmatch(r"[1-9]\d*:[1-9]\d*", users[-1]):
        return ["the last USER is not a number above 0, with its group"]
    last_user = len(names) - names[::-1].index("USER")
    late = {"RUN", "COPY", "ADD", "FROM"} & set(names[last_user:])
    return [f"{name} stands after the last USER" for name in sorted(late)]


def has_healthcheck(instructions: list[Instruction]) -> list[str]:
    checks = arguments(instructions, "HEALTHCHECK")
    return [] if len(checks) == 1 else ["there is not exactly one HEALTHCHECK; NONE counts"]


def adds_nothing(instructions: list[Instruction]) -> list[str]:
    return [f"ADD {a}: use COPY" for a in arguments(instructions, "ADD")]


def apt_is_lean(instructions: list[Instruction]) -> list[str]:
    runs = [run for run in arguments(instructions, "RUN") if "apt-get install" in run]
    wanted = ("apt-get update", "--no-install-recommends", "rm -rf /var/lib/apt/lists")
    return [f"apt-get install without {w}" for run in runs for w in wanted if w not in run]


def pip_is_lean_and_pinned(instructions: list[Instruction]) -> list[str]:
    installs = [run for run in arguments(instructions, "RUN") if "pip install" in run]
    commands = [part for run in installs for part in run.split("&&") if "pip install" in part]
    pinned = ("--constraint requirements.txt", "--requirement requirements.txt", "--no-deps")
    loose = [command for command in commands if not any(option in command for option in pinned)]
    cached = [command for command in commands if "--no-cache-dir" not in command]
    return [f"{run}: keeps pip's cache" for run in cached] + [
        f"{run}: installs something that requirements.txt does not pin" for run in loose
    ]


def exec_form(instructions: list[Instruction]) -> list[str]:
    commands = arguments(instructions, "CMD", "ENTRYPOINT")
    commands += [
        check.partition("CMD ")[2]
        for check in arguments(instructions, "HEALTHCHECK")
        if check != "NONE"
    ]
    return [f"{c}: write it as a JSON list" for c in commands if not _is_json_list(c)] + (
        [] if arguments(instructions, "CMD") else ["there is no CMD"]
    )


def _is_json_list(text: str) -> bool:
    try:
        return isinstance(json.loads(text), list)
    except json.JSONDecodeError:
        return False


def copies_what_exists(instructions: list[Instruction]) -> list[str]:
    return [
        f"COPY {source}: there is no such file in the repository"
        for source in sources(instructions)
        if not (ROOT / source).exists()
    ]


def sources(instructions: list[Instruction]) -> list[str]:
    """Return what is copied from the repository, not from another stage."""
    copies = [a.split() for a in arguments(instructions, "COPY") if not a.startswith("--from=")]
    return [word for words in copies for word in words[:-1] if not word.startswith("--")]


def no_secrets(instructions: list[Instruction]) -> list[str]:
    pairs = " ".join(arguments(instructions, "ENV", "ARG"))
    names = re.findall(r"(?:^|\s)(\w+)(?==|\s|$)", pairs)
    return [f"{name} looks like a secret" for name in names if SECRET_NAME.search(name)]


def labelled(instructions: list[Instruction]) -> list[str]:
    labels = " ".join(arguments(instructions, "LABEL"))
    wanted = ("title", "description", "version")
    return [f"no label {w}" for w in wanted if f"org.opencontainers.image.{w}=" not in labels]


Rule = Callable[[list[Instruction]], list[str]]
#: Each rule with an example that breaches it.
RULES: list[tuple[Rule, str]] = [
    (exact_base_images, "FROM python:latest"),
    (exact_base_images, "FROM python"),
    (exact_base_images, "FROM python:3.11-slim"),
    (exact_base_images, "FROM someones/modwatch-base"),
    (numeric_user_at_the_end, 'FROM modwatch-base\nCMD ["x"]'),
    (numeric_user_at_the_end, "USER root"),
    (numeric_user_at_the_end, "USER 0:0"),
    (numeric_user_at_the_end, "USER 10001:10001\nUSER 0:0"),
    (numeric_user_at_the_end, "USER 10001:10001\nRUN make"),
    (numeric_user_at_the_end, "USER 10001:10001\nFROM modwatch-base"),
    (has_healthcheck, "FROM modwatch-base"),
    (adds_nothing, "ADD https://example.org/x /x"),
    (apt_is_lean, "RUN apt-get update && apt-get install -y --no-install-recommends git"),
    (apt_is_lean, "RUN apt-get update && \\\n apt-get install git && rm -rf /var/lib/apt/lists/*"),
    (pip_is_lean_and_pinned, "RUN pip install --requirement requirements.txt"),
    (pip_is_lean_and_pinned, "RUN pip install --no-cache-dir mlflow"),
    (pip_is_lean_and_pinned, "RUN pip install --no-cache-dir --no-deps . && pip install mlflow"),
    (exec_form, "CMD mlflow server"),
    (exec_form, "FROM modwatch-base"),
    (exec_form, 'HEALTHCHECK --timeout=5s CMD curl http://127.0.0.1\nCMD ["x"]'),
    (copies_what_exists, "COPY nowhere/ src/ ./"),
    (no_secrets, "ENV A=1 \\\n    AIRFLOW_ADMIN_PASSWORD=hunter2"),
    (no_secrets, "ARG REGISTRY_TOKEN"),
    (no_secrets, "ENV AIRFLOW__CORE__FERNET_KEY=x"),
    (labelled, 'LABEL org.opencontainers.image.title="x"'),
]


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.stem)
@pytest.mark.parametrize("rule", dict.fromkeys(rule for rule, _ in RULES), ids=lambda r: r.__name__)
def test_dockerfile_keeps_rule(path, rule):
    assert rule(parse(path.read_text())) == []


@pytest.mark.parametrize(("rule", "example"), RULES)
def test_rule_finds_breach(rule, example):
    assert rule(parse(example))


def test_the_images_have_the_version_and_extras_of_the_package():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    texts = [path.read_text() for path in (*DOCKERFILES, ROOT / "docker" / "compose.yaml")]
    versions = re.findall(r'image\.version="([^"]+)"|image: modwatch/\w+:(\S+)', "\n".join(texts))
    assert {"".join(version) for version in versions} == {project["version"]}
    [extras] = re.findall(r"\.\[([\w,]+)\]", "\n".join(texts))
    assert set(extras.split(",")) <= set(project["optional-dependencies"]) - {"all", "demo"}
    assert set(extras.split(",")) >= {"airflow", "celery", "console", "mlflow"}, "docs/deploy.md"


def test_airflow_looks_for_dags_where_the_package_has_them():
    texts = {path.stem: path.read_text() for path in DOCKERFILES}
    [python] = set(re.findall(r"FROM python:(\d+\.\d+)", texts["base"]))
    folder = f"/opt/venv/lib/python{python}/site-packages/modwatch/dags"
    assert f"DAGS_FOLDER={folder} " in texts["airflow"]


def test_every_image_has_a_dockerfile():
    names = {path.stem for path in DOCKERFILES}
    assert names >= {"base", "airflow", "console", "mlflow"}


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.stem)
def test_builder_is_sent_what_is_copied_and_no_more(path):
    """What the ignore file lets through is what the Dockerfile copies."""
    lines = path.with_name(f"{path.name}.dockerignore").read_text().splitlines()
    assert "*" in lines, "start from nothing"
    let_through = {line[1:] for line in lines if line.startswith("!")}
    assert let_through == {source.rstrip("/") for source in sources(parse(path.read_text()))}

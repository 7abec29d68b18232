"""`docker/compose.yaml`, held to rules; no Docker engine is needed.

A rule takes the parsed file and returns its breaches, each a sentence. Every rule is shown to fail
on a small bad example.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

DOCKER = Path(__file__).parents[2] / "docker"
BASE = (DOCKER / "base.Dockerfile").read_text()
Compose = dict[str, Any]
SECRET_NAME = re.compile(
    r"PASSWORD(?!S_FILE)|SECRET|TOKEN|SALT|(^|_)KEY$|SQL_ALCHEMY_CONN$|DATABASE_URL$|STORE_URI$"
)


def load(text: str) -> Compose:
    return dict(yaml.safe_load(text))


@pytest.fixture(scope="module")
def compose():
    return load((DOCKER / "compose.yaml").read_text())


def services(compose: Compose) -> Iterator[tuple[str, dict[str, Any]]]:
    yield from compose["services"].items()


def runs_once(service: dict[str, Any]) -> bool:
    return bool(service.get("restart") == "no")


def dockerfile(service: dict[str, Any]) -> str:
    """Return the text of the Dockerfile that builds the service's image, or nothing."""
    name = service.get("build", {}).get("dockerfile")
    return (DOCKER.parent / name).read_text() if name else ""


def has_healthcheck(compose: Compose) -> list[str]:
    return [
        f"{name} has no health check and is no one-shot"
        for name, service in services(compose)
        if not runs_once(service)
        and "test" not in service.get("healthcheck", {})
        and not re.search(r"^HEALTHCHECK --", dockerfile(service), re.MULTILINE)
    ]


def loopback_only(compose: Compose) -> list[str]:
    return [
        f"{name} publishes {port} beyond 127.0.0.1"
        for name, service in services(compose)
        for port in service.get("ports", [])
        if not str(port).startswith("127.0.0.1:")
    ] + [f"{name} uses the host's network" for name, s in services(compose) if "network_mode" in s]


def images_pinned(compose: Compose) -> list[str]:
    exact = re.compile(r"[\w./-]+:\d+\.\d+[\w.-]*(@sha256:[0-9a-f]{64})?")
    return [
        f"{name}: image {service.get('image')} names no exact version"
        for name, service in services(compose)
        if not exact.fullmatch(service.get("image", ""))
    ]


def own_images_never_pulled(compose: Compose) -> list[str]:
    """A public registry might hold a stranger's image under our name."""
    return [
        f"{name} might pull {service['image']}: set pull_policy to build"
        for name, service in services(compose)
        if "build" in service and service.get("pull_policy") != "build"
    ]


def confined(compose: Compose) -> list[str]:
    wanted = {
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges:true"],
        "read_only": True,
    }
    lacking = [
        f"{name}: {key} is not {value}"
        for name, service in services(compose)
        for key, value in wanted.items()
        if service.get(key) != value
    ]
    loosened = [
        f"{name}: {key} loosens what the image is allowed"
        for name, service in services(compose)
        for key in ("privileged", "cap_add", "pid", "ipc", "devices")
        if key in service
    ]
    rooted = [
        f"{name}: user {service['user']} is root"
        for name, service in services(compose)
        if re.match(r"(0|root)(:|$)", str(service.get("user", "image")))
    ]
    return lacking + loosened + rooted


def limited(compose: Compose) -> list[str]:
    found = {
        name: service.get("deploy", {}).get("resources", {}).get("limits", {})
        for name, service in services(compose)
    }
    return [f"{n}: no limit on {w}" for n, f in found.items() for w in _LIMITS if w not in f] + [
        f"{name}: {limit['cpus']} processors, which small machines do not have"
        for name, limit in found.items()
        if float(limit.get("cpus", 0)) > 2
    ]


_LIMITS = ("cpus", "memory", "pids")


def restarts(compose: Compose) -> list[str]:
    return [
        f"{name} has no restart policy"
        for name, service in services(compose)
        if service.get("restart") not in ("no", "unless-stopped", "always", "on-failure")
    ]


def no_plain_secrets(compose: Compose) -> list[str]:
    """A secret is `${NAME:?…}`; inside a URL, its password is."""
    return [
        f"{name}: {key} holds a secret, or a default for one"
        for name, service in services(compose)
        for key, value in service.get("environment", {}).items()
        if (SECRET_NAME.search(key) or re.search(r"://[^/@]*:[^/@]*@", str(value)))
        and value is not None
        and not re.search(r"^\$\{\w+:\?[^}]+\}$|:\$\{\w+:\?[^}]+\}@", str(value))
    ]


def depends_on_what_exists(compose: Compose) -> list[str]:
    wrong = []
    for name, service in services(compose):
        for other, how in service.get("depends_on", {}).items():
            target = compose["services"].get(other)
            if target is None:
                wrong.append(f"{name} depends on {other}, which does not exist")
            elif (how["condition"] == "service_completed_successfully") != runs_once(target):
                wrong.append(f"{name} waits for {other} to {how['condition']}")
    return wrong


def volumes_declared(compose: Compose) -> list[str]:
    mounts = [(n, str(v).split(":")[0]) for n, s in services(compose) for v in s.get("volumes", [])]
    return [
        f"{name} mounts {source}, which is neither declared nor a file in docker/"
        for name, source in mounts
        if (
            not (DOCKER / source).is_file()
            if source.startswith(".")
            else source not in compose.get("volumes", {})
        )
    ]


def named_contexts_built(compose: Compose) -> list[str]:
    """`FROM modwatch-base` without this context would ask a registry for that name."""
    return [
        f"{name}: modwatch-base does not come from a service that builds it"
        for name, service in services(compose)
        if "FROM modwatch-base" in dockerfile(service)
        and not _builds_base(compose, service["build"].get("additional_contexts", {}))
    ]


def _builds_base(compose: Compose, contexts: dict[str, str]) -> bool:
    maker = contexts.get("modwatch-base", "").removeprefix("service:")
    return "base.Dockerfile" in str(compose["services"].get(maker, {}).get("build"))


def addresses_reached(compose: Compose) -> list[str]:
    """A program that calls MLflow by this machine's loopback address would call itself."""
    names = set(compose["services"])
    for _, service in services(compose):
        networks = service.get("networks", {})
        names |= {alias for network in networks.values() for alias in network["aliases"]}
    return [
        f"{name} calls MLflow at {url}, which is no container"
        for name, service in services(compose)
        if (url := service.get("environment", {}).get("MODWATCH_MLFLOW_URL"))
        and re.match(r"http://([\w.-]+)", url)[1] not in names
    ]


def pages_have_what_they_show(compose: Compose) -> list[str]:
    """Airflow's server has *Review* and the page Modwatch: they read the database and the lake."""
    return [
        f"{name} serves pages without {part}"
        for name, service in services(compose)
        if "ports" in service and "airflow.Dockerfile" in str(service.get("build"))
        for part, there in {
            "the review database": "MODWATCH_DATABASE_URL" in service.get("environment", {}),
            "MLflow": "MODWATCH_MLFLOW_URL" in service.get("environment", {}),
            "the lake": "modwatch:/var/lib/modwatch:ro" in service.get("volumes", []),
        }.items()
        if not there
    ]


def volumes_writable(compose: Compose) -> list[str]:
    """A volume takes over the owner of the folder it is mounted on; without one, it is root's."""
    install = re.search(r"install --directory --owner 10001 [^&\n]*\\\n([^&]*?)\n\n", BASE)
    folders = install[1].split() if install else []
    return [
        f"{name}: base.Dockerfile does not make {folder}, which would be root's"
        for name, service in services(compose)
        if "build" in service
        for volume in service.get("volumes", [])
        if (folder := volume.split(":")[1]) not in folders
    ]


Rule = Callable[[Compose], list[str]]
#: Each rule with a service `a` that breaches it.
RULES: list[tuple[Rule, str]] = [
    (has_healthcheck, "image: x"),
    (has_healthcheck, "build: {dockerfile: docker/base.Dockerfile}"),
    (loopback_only, 'ports: ["8080:8080"]'),
    (loopback_only, 'ports: ["0.0.0.0:8080:8080"]'),
    (loopback_only, "ports: [8080]"),
    (loopback_only, "network_mode: host"),
    (images_pinned, "image: postgres"),
    (images_pinned, "image: postgres:latest"),
    (images_pinned, "image: postgres:16"),
    (own_images_never_pulled, "{build: ., image: x/y:0.1.0}"),
    (confined, "{cap_drop: [ALL], read_only: true}"),
    (confined, "{security_opt: ['no-new-privileges:true'], read_only: true}"),
    (confined, "{cap_drop: [ALL], security_opt: ['no-new-privileges:true']}"),
    (
        confined,
        "{cap_drop: [ALL], security_opt: ['no-new-privileges:true'], read_only: true, "
        "privileged: true}",
    ),
    (
        confined,
        "{cap_drop: [ALL], security_opt: ['no-new-privileges:true'], read_only: true, user: '0:0'}",
    ),
    (limited, "deploy: {resources: {limits: {cpus: '1', memory: 1g}}}"),
    (limited, "deploy: {resources: {limits: {cpus: '8', memory: 1g, pids: 9}}}"),
    (restarts, "image: x"),
    (no_plain_secrets, "environment: {POSTGRES_PASSWORD: hunter2}"),
    (no_plain_secrets, "environment: {POSTGRES_PASSWORD: '${POSTGRES_PASSWORD:-hunter2}'}"),
    (no_plain_secrets, "environment: {POSTGRES_PASSWORD: '${POSTGRES_PASSWORD}'}"),
    (no_plain_secrets, "environment: {WHERE: 'postgresql://me:hunter2@postgres/x'}"),
    (no_plain_secrets, "environment: {MODWATCH_DATABASE_URL: 'postgresql://me:${P}@postgres/x'}"),
    (depends_on_what_exists, "depends_on: {b: {condition: service_healthy}}"),
    (depends_on_what_exists, "depends_on: {a: {condition: service_completed_successfully}}"),
    (volumes_declared, 'volumes: ["lake:/lake"]'),
    (volumes_declared, 'volumes: ["./nowhere.sql:/x:ro"]'),
    (volumes_writable, '{build: ., volumes: ["modwatch:/var/lib/elsewhere"]}'),
    (
        named_contexts_built,
        "build: {dockerfile: docker/mlflow.Dockerfile, "
        "additional_contexts: {modwatch-base: 'service:gone'}}",
    ),
    (named_contexts_built, "build: {dockerfile: docker/mlflow.Dockerfile}"),
    (addresses_reached, "environment: {MODWATCH_MLFLOW_URL: 'http://127.0.0.1:5000'}"),
    (
        pages_have_what_they_show,
        "{build: {dockerfile: docker/airflow.Dockerfile}, ports: ['127.0.0.1:8080:8080'], "
        "environment: {MODWATCH_MLFLOW_URL: x}, volumes: ['modwatch:/var/lib/modwatch:ro']}",
    ),
]


@pytest.mark.parametrize("rule", dict.fromkeys(rule for rule, _ in RULES), ids=lambda r: r.__name__)
def test_compose_keeps_rule(compose, rule):
    assert rule(compose) == []


@pytest.mark.parametrize(("rule", "service"), RULES)
def test_rule_finds_breach(rule, service):
    assert rule({"services": {"a": load(service)}})

"""`docker/rayservice.yaml`: a configuration that Ray reads, of an image and settings that exist."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from ray._common.utils import import_attr
from ray.serve.schema import ServeDeploySchema

from modwatch.installation.ray_app import RayOptions, build
from modwatch.settings import Settings

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def service():
    return dict(yaml.safe_load((ROOT / "docker" / "rayservice.yaml").read_text()))


@pytest.fixture(scope="module")
def config(service):
    return ServeDeploySchema.model_validate(yaml.safe_load(service["spec"]["serveConfigV2"]))


def pods(service: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    cluster = service["spec"]["rayClusterConfig"]
    yield "head", cluster["headGroupSpec"]["template"]["spec"]
    for group in cluster["workerGroupSpecs"]:
        yield group["groupName"], group["template"]["spec"]


def test_the_application_is_loaded_and_takes_its_arguments(config):
    [application] = config.applications
    assert import_attr(application.import_path) is build
    options = RayOptions.model_validate(application.args)
    assert options.require_token
    deployment = build(options)._bound_deployment
    assert deployment.ray_actor_options["num_gpus"] == 1
    assert deployment._deployment_config.autoscaling_config.max_replicas == 4


def test_there_is_a_node_for_every_replica(service, config):
    options = RayOptions.model_validate(config.applications[0].args)
    [group] = service["spec"]["rayClusterConfig"]["workerGroupSpecs"]
    assert (group["minReplicas"], group["maxReplicas"]) == (options.replicas, options.max_replicas)
    [container] = group["template"]["spec"]["containers"]
    resources = container["resources"]
    assert int(resources["limits"]["nvidia.com/gpu"]) == options.gpus_per_replica
    assert int(resources["requests"]["cpu"]) > options.cpus_per_replica  # the proxy, too
    assert group["template"]["spec"]["terminationGracePeriodSeconds"] > options.drain_seconds


def test_the_image_is_built_here_and_has_ray(service):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    images = {container["image"] for _, pod in pods(service) for container in pod["containers"]}
    assert images == {f"modwatch/serving:{project['version']}"}
    assert (ROOT / "docker" / "serving.Dockerfile").is_file()
    [extras] = re.findall(r"\.\[([\w,]+)\]", (ROOT / "docker" / "base.Dockerfile").read_text())
    assert "ray" in extras.split(",")
    [version] = re.findall(r"^ray==(\S+)$", (ROOT / "requirements.txt").read_text(), re.MULTILINE)
    assert service["spec"]["rayClusterConfig"]["rayVersion"] == version


def test_pods_set_real_settings_and_no_secret(service):
    known = {f"MODWATCH_{name.upper()}" for name in Settings.model_fields}
    for name, pod in pods(service):
        for container in pod["containers"]:
            variables = {item["name"]: item for item in container["env"]}
            assert set(variables) <= known, name
            assert "MODWATCH_SCORER_TOKEN" in variables
            secrets = [
                variable for variable in variables if re.search("TOKEN|SECRET|PASSWORD", variable)
            ]
            assert all("secretKeyRef" in variables[secret]["valueFrom"] for secret in secrets)


def test_pods_are_confined_and_limited(service):
    for name, pod in pods(service):
        user = pod["securityContext"]
        assert user["runAsNonRoot"], name
        assert user["runAsUser"] == 10001  # of base.Dockerfile
        for container in pod["containers"]:
            context = container["securityContext"]
            assert context["readOnlyRootFilesystem"]
            assert not context["allowPrivilegeEscalation"]
            assert context["capabilities"] == {"drop": ["ALL"]}
            assert "memory" in container["resources"]["limits"]
            mounts = {volumeMount["name"] for volumeMount in container["volumeMounts"]}
            assert mounts == {volume["name"] for volume in pod["volumes"]}


def test_probes_ask_by_a_program_of_the_image(service):
    copied = (ROOT / "docker" / "base.Dockerfile").read_text()
    for _, pod in pods(service):
        for container in pod["containers"]:
            for probe in ("livenessProbe", "readinessProbe"):
                program, script, url = container[probe]["exec"]["command"]
                assert (program, url[:17]) == ("python", "http://127.0.0.1:")
                assert f"docker/{script} /opt/modwatch/" in copied


def test_the_cluster_asks_for_its_token(service):
    assert service["spec"]["rayClusterConfig"]["authOptions"] == {"mode": "token"}

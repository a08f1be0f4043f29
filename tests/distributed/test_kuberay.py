"""The manifest for Kubernetes, as far as it can be checked without a cluster."""

import shlex

import pytest
from typer.main import get_command

from hcpf.cli.app import app
from pages import DOCS, ROOT

yaml = pytest.importorskip("yaml")
jsonschema = pytest.importorskip("jsonschema")

MANIFEST = DOCS / "examples" / "kuberay.yaml"

# The part of KubeRay's RayJob (ray.io/v1) that the manifest uses; anything else is a typing error.
_RESOURCES = {
    "type": "object",
    "required": ["cpu", "memory"],
    "additionalProperties": False,
    "properties": {
        "cpu": {"type": "string", "pattern": r"^\d+(\.\d+|m)?$"},
        "memory": {"type": "string", "pattern": r"^\d+[KMGT]i$"},
    },
}
_POD = {
    "type": "object",
    "required": ["spec"],
    "additionalProperties": False,
    "properties": {
        "spec": {
            "type": "object",
            "required": ["containers", "volumes"],
            "additionalProperties": False,
            "properties": {
                "containers": {
                    "type": "array",
                    "minItems": 1,
                    "items": {
                        "type": "object",
                        "required": ["name", "image", "resources", "volumeMounts"],
                        "additionalProperties": False,
                        "properties": {
                            "name": {"type": "string"},
                            "image": {"type": "string"},
                            "resources": {
                                "type": "object",
                                "required": ["requests", "limits"],
                                "additionalProperties": False,
                                "properties": {"requests": _RESOURCES, "limits": _RESOURCES},
                            },
                            "volumeMounts": {"type": "array"},
                        },
                    },
                },
                "volumes": {"type": "array"},
            },
        }
    },
}
_START = {"type": "object", "additionalProperties": {"type": "string"}}
SCHEMA = {
    "type": "object",
    "required": ["apiVersion", "kind", "metadata", "spec"],
    "additionalProperties": False,
    "properties": {
        "apiVersion": {"const": "ray.io/v1"},
        "kind": {"const": "RayJob"},
        "metadata": {
            "properties": {"name": {"type": "string", "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"}}
        },
        "spec": {
            "type": "object",
            "required": ["entrypoint", "rayClusterSpec"],
            "additionalProperties": False,
            "properties": {
                "entrypoint": {"type": "string"},
                "submissionMode": {"enum": ["K8sJobMode", "HTTPMode", "SidecarMode"]},
                "shutdownAfterJobFinishes": {"type": "boolean"},
                "ttlSecondsAfterFinished": {"type": "integer"},
                "rayClusterSpec": {
                    "type": "object",
                    "required": ["rayVersion", "headGroupSpec", "workerGroupSpecs"],
                    "additionalProperties": False,
                    "properties": {
                        "rayVersion": {"type": "string"},
                        "authOptions": {
                            "additionalProperties": False,
                            "properties": {"mode": {"enum": ["token", "disabled"]}},
                        },
                        "headGroupSpec": {
                            "type": "object",
                            "required": ["rayStartParams", "template"],
                            "additionalProperties": False,
                            "properties": {"rayStartParams": _START, "template": _POD},
                        },
                        "workerGroupSpecs": {
                            "type": "array",
                            "minItems": 1,
                            "items": {
                                "type": "object",
                                "required": ["groupName", "rayStartParams", "template"],
                                "additionalProperties": False,
                                "properties": {
                                    "groupName": {"type": "string"},
                                    "replicas": {"type": "integer"},
                                    "minReplicas": {"type": "integer"},
                                    "maxReplicas": {"type": "integer"},
                                    "rayStartParams": _START,
                                    "template": _POD,
                                },
                            },
                        },
                    },
                },
            },
        },
    },
}


@pytest.fixture(scope="module")
def manifest():
    return yaml.safe_load(MANIFEST.read_text())


def pods(manifest):
    cluster = manifest["spec"]["rayClusterSpec"]
    groups = [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]
    return [group["template"]["spec"] for group in groups]


def test_structure(manifest):
    jsonschema.validate(manifest, SCHEMA)
    assert manifest["spec"]["rayClusterSpec"]["authOptions"] == {"mode": "token"}


def test_all_pods_have_the_same_image_and_mount_the_volume(manifest):
    containers = [container for pod in pods(manifest) for container in pod["containers"]]
    assert len({container["image"] for container in containers}) == 1
    for pod in pods(manifest):
        names = {volume["name"] for volume in pod["volumes"]}
        for container in pod["containers"]:
            assert {mount["name"] for mount in container["volumeMounts"]} <= names


def test_the_command_is_one_of_ours_and_fits_the_cluster(manifest):
    program, name, *arguments = shlex.split(manifest["spec"]["entrypoint"])
    command = get_command(app).commands[name]
    context = command.make_context(name, arguments)
    given = context.params
    cluster = manifest["spec"]["rayClusterSpec"]
    group = cluster["workerGroupSpecs"][0]
    cpus = group["template"]["spec"]["containers"][0]["resources"]["limits"]["cpu"]
    assert program == "hcpf"
    assert (given["engine"], given["address"]) == ("ray", "auto")
    assert given["workers"] == group["replicas"] == group["minReplicas"]
    assert given["threads"] == int(cpus)
    mount = cluster["headGroupSpec"]["template"]["spec"]["containers"][0]["volumeMounts"][0]
    for option in ("checkpoint", "output"):
        assert str(given[option]).startswith(mount["mountPath"])


def test_the_version_of_ray_is_the_one_tested(manifest):
    pins = (ROOT / "constraints.txt").read_text().splitlines()
    version = manifest["spec"]["rayClusterSpec"]["rayVersion"]
    assert f"ray=={version}" in pins
    assert f"rayproject/ray:{version}-py" in MANIFEST.read_text()

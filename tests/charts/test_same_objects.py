"""An installation by Helm has the objects of one by the Pulumi component, given the same settings."""

import json
from typing import Any

import pytest

from localenv.labs.helm_chart import values_of_the_stack
from tests.components.conftest import CONFIG, program
from tests.components.recorder import Recorder, ensure_event_loop, run

pytestmark = pytest.mark.cluster

#: Parts of an object that tell who installed it, or that both derive in their own way from equal things.
_OF_THE_INSTALLER = ("helm.sh/chart", "app.kubernetes.io/version", "app.kubernetes.io/managed-by")
_CHECKSUMS = ("checksum/settings", "checksum/identity")
#: The namespace is Helm's to make; guard and hold are the stack's; pools are data.
_NOT_IN_THE_CHART = {"Namespace"}


@pytest.fixture(scope="module")
def component() -> dict[tuple[str, str, str], dict[str, Any]]:
    """The controller's Kubernetes objects of the program of infra/."""
    ensure_event_loop()
    recorder: Recorder = run(program, config=CONFIG)
    found = {}
    for resource in recorder.resources.values():
        if (
            not resource.token.startswith("kubernetes:")
            or "::nodeless:index:Controller$" not in f"::{resource.urn}"
        ):
            continue
        document = resource.inputs
        if "metadata" not in document or document.get("kind") in (None, "CustomResourceDefinition"):
            continue
        metadata = document["metadata"]
        found[document["kind"], metadata.get("namespace") or "", metadata["name"]] = document
    return {name: each for name, each in found.items() if name[0] not in _NOT_IN_THE_CHART}


def test_both_have_the_same_objects(charts, component):
    made = {name: comparable(each) for name, each in charts.render(values_of(component)).items()}
    assert set(made) == set(component)
    for name, document in component.items():
        for part, value in comparable(document).items():
            assert made[name].get(part) == value, (name, part)
        assert made[name].keys() == comparable(document).keys(), name


def values_of(component):
    """The values that give the chart the component's settings, as the demo's lab finds them."""
    return values_of_the_stack(
        component["ConfigMap", "karpenter", "karpenter-global-settings"],
        component["ServiceAccount", "karpenter", "karpenter"],
        component["Deployment", "karpenter", "karpenter"],
    )


def comparable(document):
    """An object without what tells its installer, and with what the API server takes for equal."""
    metadata = document["metadata"]
    labels = {key: value for key, value in metadata.get("labels", {}).items() if key not in _OF_THE_INSTALLER}
    annotations = {
        key: value
        for key, value in (metadata.get("annotations") or {}).items()
        if not key.startswith("pulumi.com/")
    }
    result = {
        **{key: value for key, value in document.items() if key not in ("metadata", "apiVersion")},
        "apiVersion": document["apiVersion"],
        "metadata": {
            "name": metadata["name"],
            "namespace": metadata.get("namespace") or "",
            "labels": labels,
            "annotations": annotations,
        },
    }
    if document["kind"] == "ConfigMap":
        result["data"] = {
            key: _value(key, value) for key, value in document["data"].items() if _is_told(key, value)
        }
    if document["kind"] == "Deployment":
        template = result["spec"] = json.loads(json.dumps(document["spec"]))
        del template["template"]["metadata"]["annotations"]
        pod = template["template"]["spec"]
        pod["containers"][0]["env"].sort(key=lambda each: each["name"])
        template["strategy"].pop("type", None)
    return _without_empty(result)


#: Settings for which the chart gives the controller's own default.
_DEFAULTS = {
    "nodeless.amiRefreshInterval": "1m",
    "nodeless.eksControlPlane": "true",
    "nodeless.disableDryRun": "false",
    "nodeless.zonalShift": "false",
    "nodeless.reservedENIs": "0",
    "nodeless.preferencePolicy": "Respect",
    "nodeless.minValuesPolicy": "Strict",
    "nodeless.terminateFirstDrift": "false",
    "nodeless.terminateFirstRepair": "false",
    "nodeless.nodeRepair": "false",
    "nodeless.capacityBuffers": "false",
    "nodeless.nodeOverlays": "false",
    "nodeless.provisioningRequests": "false",
    "nodeless.spotToSpotConsolidation": "false",
    "nodeless.subnetRefreshInterval": "1m",
}


def _is_told(key, value):
    return value != "" and _DEFAULTS.get(key) != value


def _value(key, value):
    return json.loads(value) if key in ("zap-logger-config", "aws.tags") else value


def _without_empty(value):
    if isinstance(value, dict):
        cleaned = {key: _without_empty(each) for key, each in value.items()}
        return {key: each for key, each in cleaned.items() if each not in (None, {}, [], "")}
    return [_without_empty(each) for each in value] if isinstance(value, list) else value

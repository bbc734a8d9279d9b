"""The package's face: exported names, and components that other languages can use."""

import importlib
import importlib.metadata
import importlib.util
import json
from pathlib import Path

import pulumi_nodeless
from pulumi_nodeless.host import ComponentHost
from tests.components.conftest import ROOT

COMPONENTS = [
    "AdoptedNetwork",
    "Capacity",
    "Cluster",
    "Controller",
    "ControllerIdentity",
    "ControllerImage",
    "Environment",
    "FargateProfiles",
    "InterruptionQueue",
    "LoadBalancerController",
    "Network",
    "NodeAccess",
    "NodeIdentity",
    "PodExecutionRole",
    "TeardownGuard",
]


def test_every_exported_name_is_there() -> None:
    assert pulumi_nodeless.__all__ == sorted(pulumi_nodeless.__all__)
    for name in pulumi_nodeless.__all__:
        assert getattr(pulumi_nodeless, name).__name__ == name


def test_the_distribution_says_that_it_is_no_plugin_to_download() -> None:
    """Pulumi's language host looks for this file where the package is imported from, also in a checkout.

    Without it a distribution whose name begins with pulumi- has a plugin of its version, to be downloaded.
    """
    module = importlib.metadata.distribution("pulumi-nodeless").metadata["Name"].replace("-", "_")
    spec = importlib.util.find_spec(module)
    assert spec is not None
    (place,) = spec.submodule_search_locations or ()
    assert json.loads(Path(place, "pulumi-plugin.json").read_text()) == {"resource": False}


def test_components_have_a_schema_for_other_languages() -> None:
    host = importlib.import_module("pulumi.provider.experimental.component")
    classes = [getattr(pulumi_nodeless, name) for name in COMPONENTS]
    schema = json.loads(host.ComponentProvider(classes, "nodeless", None, "0.1.0").schema)
    resources = schema["resources"]
    assert set(resources) == {f"nodeless:index:{name}" for name in COMPONENTS}
    network = resources["nodeless:index:Network"]
    assert network["inputProperties"]["zoneCount"]["type"] == "integer"
    assert "clusterName" in network["requiredInputs"]
    for name, resource in resources.items():
        for field in resource["inputProperties"] | resource["properties"]:
            described = (resource["inputProperties"] | resource["properties"])[field]
            assert described.get("description"), f"{name}.{field} has no description"


def test_the_component_host_answers_with_the_committed_schema() -> None:
    committed = json.loads((ROOT / "components" / "schema.json").read_text())
    assert json.loads(ComponentHost().schema or "") == committed
    indented = [token for token, found in committed["resources"].items() if "\n " in found["description"]]
    assert not indented, "Markdown renders indented paragraphs as code"

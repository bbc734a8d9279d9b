"""The custom resource definitions, generated from the typed definitions.

`crd_files` gives the text of the files that are checked in, so that a test and
`nodeless crds --check` can tell when they are out of date. Nothing here touches a file.
"""

from copy import deepcopy
from typing import Any

import yaml

from nodeless.api.aws_node_template import AwsNodeTemplate
from nodeless.api.ec2_node_class import Ec2NodeClass
from nodeless.api.kinds import (
    ALL,
    AWS_NODE_TEMPLATE,
    EC2_NODE_CLASS,
    NODE_CLAIM,
    NODE_OVERLAY,
    NODE_POOL,
    PROVISIONER,
    Kind,
)
from nodeless.api.metav1 import Definition
from nodeless.api.node_claim import NodeClaim
from nodeless.api.node_overlay import NodeOverlay
from nodeless.api.node_pool import NodePool
from nodeless.api.provisioner import Provisioner
from nodeless.api.schema import Schema, root_schema_of
from nodeless.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, ZONE
from nodeless.model.labels import NODE_POOL as NODE_POOL_LABEL

DEFINITIONS: dict[Kind, type[Definition]] = {
    PROVISIONER: Provisioner,
    AWS_NODE_TEMPLATE: AwsNodeTemplate,
    NODE_POOL: NodePool,
    EC2_NODE_CLASS: Ec2NodeClass,
    NODE_CLAIM: NodeClaim,
    NODE_OVERLAY: NodeOverlay,
}
"""What each kind looks like."""

_HEADER = "# Generated from the definitions in nodeless/api by `nodeless crds`. Do not edit.\n"


def _label(key: str) -> str:
    return rf".metadata.labels.{key}".replace(".", r"\.").replace(
        r"\.metadata\.labels\.", ".metadata.labels."
    )


def _column(name: str, path: str, kind: str = "string", *, wide: bool = False) -> dict[str, Any]:
    column: dict[str, Any] = {"name": name, "type": kind, "jsonPath": path}
    return column | ({"priority": 1} if wide else {})


def _condition(type_: str) -> str:
    return f'.status.conditions[?(@.type=="{type_}")].status'


_AGE = _column("Age", ".metadata.creationTimestamp", "date")
_COLUMNS: dict[Kind, list[dict[str, Any]]] = {
    PROVISIONER: [],
    AWS_NODE_TEMPLATE: [],
    NODE_POOL: [
        _column("NodeClass", ".spec.template.spec.nodeClassRef.name"),
        _column("Nodes", ".status.nodes"),
        _column("Ready", _condition("Ready")),
        _AGE,
        _column("Weight", ".spec.weight", "integer", wide=True),
        _column("CPU", ".status.resources.cpu", wide=True),
        _column("Memory", ".status.resources.memory", wide=True),
    ],
    EC2_NODE_CLASS: [
        _column("Ready", _condition("Ready")),
        _AGE,
        _column("Role", ".spec.role", wide=True),
    ],
    NODE_CLAIM: [
        _column("Type", _label(INSTANCE_TYPE)),
        _column("Capacity", _label(CAPACITY_TYPE)),
        _column("Zone", _label(ZONE)),
        _column("Node", ".status.nodeName"),
        _column("Ready", _condition("Ready")),
        _AGE,
        _column("ImageID", ".status.imageID", wide=True),
        _column("ID", ".status.providerID", wide=True),
        _column("NodePool", _label(NODE_POOL_LABEL), wide=True),
        _column("NodeClass", ".spec.nodeClassRef.name", wide=True),
        _column("Drifted", _condition("Drifted"), wide=True),
    ],
    NODE_OVERLAY: [
        _column("Ready", _condition("Ready")),
        _AGE,
        _column("Weight", ".spec.weight", "integer", wide=True),
    ],
}
_SCALE = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.nodes"}


def crd(kind: Kind) -> dict[str, Any]:
    """The custom resource definition of one kind: a new document each time."""
    version: dict[str, Any] = {
        "name": kind.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": deepcopy(schema(kind))},
        "subresources": {"status": {}},
    }
    if kind is NODE_POOL:
        version["subresources"]["scale"] = dict(_SCALE)
    if columns := _COLUMNS[kind]:
        version["additionalPrinterColumns"] = deepcopy(columns)
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": kind.crd_name},
        "spec": {
            "group": kind.group,
            "names": {
                "categories": ["karpenter"],
                "kind": kind.kind,
                "listKind": f"{kind.kind}List",
                "plural": kind.plural,
                **({"shortNames": [*kind.short_names]} if kind.short_names else {}),
                "singular": kind.singular,
            },
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "versions": [version],
        },
    }


def schema(kind: Kind, *, described: bool = True) -> Schema:
    """The OpenAPI schema of one kind; the caller must not change it."""
    return root_schema_of(DEFINITIONS[kind], described=described)


def all_crds() -> list[dict[str, Any]]:
    """The custom resource definitions of every kind that we serve."""
    return [crd(kind) for kind in ALL]


def crd_files() -> dict[str, str]:
    """File name to YAML text of each custom resource definition."""
    return {
        f"{kind.group}_{kind.plural}.yaml": _HEADER
        + yaml.dump(crd(kind), Dumper=_Dumper, sort_keys=False, width=110)
        for kind in ALL
    }


class _Dumper(yaml.SafeDumper):
    """Writes repeated parts out in full: YAML anchors are no use to a reader."""

    def ignore_aliases(self, _data: Any) -> bool:
        return True

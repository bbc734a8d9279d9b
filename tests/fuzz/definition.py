"""The definition of capacity buffers as the cluster autoscaler publishes it, as far as it is read."""

from __future__ import annotations

from typing import Any

from nodeless.model.buffers import API_VERSION

GROUP, _, VERSION = API_VERSION.partition("/")
_STRING: dict[str, Any] = {"type": "string"}
_COUNT = {"type": "integer", "format": "int32", "minimum": 0}
_QUANTITY = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "pattern": r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$",  # noqa: E501
    "x-kubernetes-int-or-string": True,
}


def _object(*required: str, **properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties} | ({"required": list(required)} if required else {})


_NAMED = _object("name", name=_STRING)
_CONDITION = _object(
    "type",
    "status",
    "lastTransitionTime",
    "message",
    "reason",
    type=_STRING | {"maxLength": 316},
    status=_STRING | {"enum": ["True", "False", "Unknown"]},
    lastTransitionTime=_STRING | {"format": "date-time"},
    message=_STRING | {"maxLength": 32768},
    reason=_STRING | {"maxLength": 1024, "minLength": 1},
    observedGeneration={"type": "integer", "format": "int64", "minimum": 0},
)
_SCHEMA = _object(
    spec=_object(
        podTemplateRef=_NAMED,
        scalableRef=_object("apiGroup", "kind", "name", apiGroup=_STRING, kind=_STRING, name=_STRING),
        replicas=_COUNT,
        percentage=_COUNT,
        provisioningStrategy=_STRING,
        limits={"type": "object", "additionalProperties": _QUANTITY},
    ),
    status=_object(
        conditions={"type": "array", "items": _CONDITION},
        podTemplateRef=_NAMED,
        podTemplateGeneration={"type": "integer", "format": "int64"},
        provisioningStrategy=_STRING,
        replicas={"type": "integer", "format": "int32"},
    ),
)
DEFINITION: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"capacitybuffers.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {"kind": "CapacityBuffer", "plural": "capacitybuffers"},
        "versions": [
            {
                "name": VERSION,
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": _SCHEMA},
            }
        ],
    },
}

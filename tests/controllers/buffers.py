"""Capacity buffers as users write them, and their definition as the cluster autoscaler brings it."""

GROUP = "autoscaling.x-k8s.io"
DEFINITION = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/capacitybuffers.{GROUP}"
OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def a_definition():
    """The definition, as far as it matters here."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"capacitybuffers.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"kind": "CapacityBuffer", "plural": "capacitybuffers"},
            "versions": [
                {
                    "name": "v1beta1",
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "properties": {"spec": OPEN, "status": OPEN},
                        }
                    },
                }
            ],
        },
    }


def a_buffer(namespace, **spec):
    return {
        "apiVersion": f"{GROUP}/v1beta1",
        "kind": "CapacityBuffer",
        "metadata": {"name": "spare", "namespace": namespace},
        "spec": {"podTemplateRef": {"name": "chunk"}, **spec},
    }


def a_pod_template(namespace):
    requests = {"requests": {"cpu": "900m"}}
    containers = [{"name": "c", "image": "registry.example/app", "resources": requests}]
    return {
        "apiVersion": "v1",
        "kind": "PodTemplate",
        "metadata": {"name": "chunk", "namespace": namespace},
        "template": {"spec": {"containers": containers}},
    }

"""VerticalPodAutoscalers as users write them, and their definition as the autoscaler brings it."""

GROUP = "autoscaling.k8s.io"
DEFINITION = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/verticalpodautoscalers.{GROUP}"
_OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def a_vertical_definition():
    """The definition, as far as it matters here."""
    schema = {"type": "object", "properties": {"spec": _OPEN, "status": _OPEN}}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": schema},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"verticalpodautoscalers.{GROUP}",
            "annotations": {
                "api-approved.kubernetes.io": "https://github.com/kubernetes/kubernetes/pull/63797"
            },
        },
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"kind": "VerticalPodAutoscaler", "plural": "verticalpodautoscalers"},
            "versions": [version],
        },
    }


def a_vertical_autoscaler(namespace, target, kind="Deployment", mode=None, **containers):
    """One of a workload, with what it recommends by container: `c={"cpu": "3"}`."""
    policy = {} if mode is None else {"updatePolicy": {"updateMode": mode}}
    recommended = [{"containerName": name, "target": amounts} for name, amounts in containers.items()]
    reference = {"apiVersion": "apps/v1", "kind": kind, "name": target}
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "VerticalPodAutoscaler",
        "metadata": {"name": target, "namespace": namespace},
        "spec": {"targetRef": reference, **policy},
        "status": {"recommendation": {"containerRecommendations": recommended}},
    }

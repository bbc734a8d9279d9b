"""Provisioning requests as Kueue and users write them."""

GROUP = "autoscaling.x-k8s.io"
DEFINITION = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/provisioningrequests.{GROUP}"
CHECK = f"check-capacity.{GROUP}"
ATOMIC = f"best-effort-atomic-scale-up.{GROUP}"


def a_request(namespace, name="job", count=2, class_name=ATOMIC, version="v1", **spec):
    sets = [{"podTemplateRef": {"name": "chunk"}, "count": count}]
    return {
        "apiVersion": f"{GROUP}/{version}",
        "kind": "ProvisioningRequest",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"provisioningClassName": class_name, "podSets": sets, **spec},
    }

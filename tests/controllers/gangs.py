"""The definitions of others that say how many pods run together, as far as a cluster has to serve them."""

POD_GROUP = "scheduling.x-k8s.io"
_SERVED = (
    (POD_GROUP, "v1alpha1", "PodGroup", "podgroups"),
    ("jobset.x-k8s.io", "v1alpha2", "JobSet", "jobsets"),
)
PATHS = tuple(
    f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{plural}.{group}"
    for group, _, _, plural in _SERVED
)


def gang_definitions():
    """Those of PodGroups and JobSets."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return [
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{plural}.{group}"},
            "spec": {
                "group": group,
                "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
                "scope": "Namespaced",
                "versions": [
                    {"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
                ],
            },
        }
        for group, version, kind, plural in _SERVED
    ]

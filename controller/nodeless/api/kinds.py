"""Names and API paths of the kinds that we serve."""

from dataclasses import dataclass
from typing import Final

from nodeless.model.labels import AWS_GROUP, CORE_GROUP


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of the Kubernetes API, served in one version."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = False
    short_names: tuple[str, ...] = ()

    @property
    def api_version(self) -> str:
        """As in a manifest: `karpenter.sh/v1`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def singular(self) -> str:
        return self.kind.lower()

    @property
    def crd_name(self) -> str:
        """Name of the custom resource definition."""
        return f"{self.plural}.{self.group}"

    def path(self, name: str = "", namespace: str = "", subresource: str = "") -> str:
        """The path of the collection, of one object, or of a subresource of it."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        place = ("namespaces", namespace) if self.namespaced and namespace else ()
        return "/".join(part for part in (root, *place, self.plural, name, subresource) if part)

    def describes(self, manifest: object) -> bool:
        """Whether a manifest says that it is of this kind and version."""
        return (
            isinstance(manifest, dict)
            and manifest.get("apiVersion") == self.api_version
            and manifest.get("kind") == self.kind
        )


PROVISIONER: Final = Kind(CORE_GROUP, "v1alpha5", "provisioners", "Provisioner")
AWS_NODE_TEMPLATE: Final = Kind(AWS_GROUP, "v1alpha1", "awsnodetemplates", "AWSNodeTemplate")
NODE_POOL: Final = Kind(CORE_GROUP, "v1", "nodepools", "NodePool")
EC2_NODE_CLASS: Final = Kind(
    AWS_GROUP, "v1", "ec2nodeclasses", "EC2NodeClass", short_names=("ec2nc", "ec2ncs")
)
NODE_CLAIM: Final = Kind(CORE_GROUP, "v1", "nodeclaims", "NodeClaim")
NODE_OVERLAY: Final = Kind(CORE_GROUP, "v1alpha1", "nodeoverlays", "NodeOverlay", short_names=("overlays",))

ALL: Final = (PROVISIONER, AWS_NODE_TEMPLATE, NODE_POOL, EC2_NODE_CLASS, NODE_CLAIM, NODE_OVERLAY)
"""Every kind that has a custom resource definition of ours."""

NODE_POOL_V1BETA1: Final = Kind(CORE_GROUP, "v1beta1", "nodepools", "NodePool")
NODE_CLAIM_V1BETA1: Final = Kind(CORE_GROUP, "v1beta1", "nodeclaims", "NodeClaim")
EC2_NODE_CLASS_V1BETA1: Final = Kind(AWS_GROUP, "v1beta1", "ec2nodeclasses", "EC2NodeClass")

V1BETA1: Final = (NODE_POOL_V1BETA1, EC2_NODE_CLASS_V1BETA1, NODE_CLAIM_V1BETA1)
"""The kinds of Karpenter v0.32 to v0.37, which are read from files by converting them, and never served."""

KIND_OF_NAME: Final = {kind.kind: kind for kind in ALL}
"""Each kind by the name that manifests give it."""

GROUP_OF_KIND: Final = {
    "Provisioner": CORE_GROUP,
    "NodePool": CORE_GROUP,
    "AWSNodeTemplate": AWS_GROUP,
    "EC2NodeClass": AWS_GROUP,
}
"""API group of each kind that a claim refers to."""

VERSION_OF_KIND: Final = {
    "Provisioner": "v1alpha5",
    "NodePool": "v1",
    "AWSNodeTemplate": "v1alpha1",
    "EC2NodeClass": "v1",
}
"""API version of each kind that a claim refers to."""

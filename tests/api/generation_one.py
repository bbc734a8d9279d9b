"""Rules of the v1 kinds as a table: (row of docs/acceptance/admission.md, manifest, path of the fault).

One table for `validate` and for the real API server, which must give the same verdicts.
An empty path means: accepted.
"""

from __future__ import annotations

from typing import Any

from tests.api.manifests import SELECTOR, ec2_node_class, node_pool, requirement

Case = tuple[str, dict[str, Any], str]
_T = "spec.template.spec"


def wanting(*entries: dict[str, Any]) -> dict[str, Any]:
    return node_pool(template={"requirements": [*entries]})


def labeled(key: str, value: str = "x") -> dict[str, Any]:
    return node_pool(metadata={"labels": {key: value}})


def pointing(**members: Any) -> dict[str, Any]:
    whole = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default", **members}
    return node_pool(template={"nodeClassRef": {k: v for k, v in whole.items() if v is not None}})


def budget(**members: Any) -> dict[str, Any]:
    return node_pool(disruption={"budgets": [members]})


def images(*terms: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return ec2_node_class(amiSelectorTerms=[*terms], **spec)


def disk(**ebs: Any) -> dict[str, Any]:
    return ec2_node_class(blockDeviceMappings=[{"deviceName": "/dev/xvda", "ebs": ebs}])


def minimum(entry: dict[str, Any], least: int) -> dict[str, Any]:
    return {**entry, "minValues": least}


ZONES = ("topology.kubernetes.io/zone", "In", "a", "b")
CARD = {"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "interface"}
EFA = {"networkCardIndex": 0, "deviceIndex": 1, "interfaceType": "efa-only"}

NODE_POOLS: list[Case] = [
    ("7.2 minimal", node_pool(), ""),
    ("7.1 requirements required", node_pool(template={"requirements": None}), f"{_T}.requirements"),
    ("7.1 requirements at most 100", wanting(*[requirement(*ZONES)] * 101), f"{_T}.requirements"),
    ("7.1 nodeClassRef required", node_pool(template={"nodeClassRef": None}), f"{_T}.nodeClassRef"),
    ("7.2 nodeClassRef name empty", pointing(name=""), f"{_T}.nodeClassRef.name"),
    ("7.2 nodeClassRef kind empty", pointing(kind=""), f"{_T}.nodeClassRef.kind"),
    ("7.2 nodeClassRef group empty", pointing(group=""), f"{_T}.nodeClassRef.group"),
    ("7.1 nodeClassRef group with version", pointing(group="a.b/v1"), f"{_T}.nodeClassRef.group"),
    ("7.2 label of our domain", labeled("karpenter.sh/custom"), "spec.template.metadata.labels"),
    (
        "7.2 label in a domain that ends like ours",
        labeled("akarpenter.sh/x"),
        "spec.template.metadata.labels",
    ),
    ("7.2 label capacity-type", labeled("karpenter.sh/capacity-type", "spot"), ""),
    ("7.2 label nodepool", labeled("karpenter.sh/nodepool"), "spec.template.metadata.labels"),
    ("7.2 label hostname", labeled("kubernetes.io/hostname"), "spec.template.metadata.labels"),
    ("7.2 label of the AWS domain", labeled("karpenter.k8s.aws/x"), "spec.template.metadata.labels"),
    ("7.2 label known of the AWS domain", labeled("karpenter.k8s.aws/instance-family", "m5"), ""),
    ("7.2 label kubernetes.io is free", labeled("foo.kubernetes.io/x"), ""),
    ("7.2 label value", labeled("team", "a b"), "spec.template.metadata.labels.team"),
    ("7.2 label value too long", labeled("team", "a" * 64), "spec.template.metadata.labels.team"),
    (
        "7.1 labels at most 100",
        node_pool(metadata={"labels": {f"a{n}": "b" for n in range(101)}}),
        "spec.template.metadata.labels",
    ),
    ("7.2 key of our domain", wanting(requirement("karpenter.sh/x", "Exists")), f"{_T}.requirements[0].key"),
    (
        "7.2 key nodepool",
        wanting(requirement("karpenter.sh/nodepool", "Exists")),
        f"{_T}.requirements[0].key",
    ),
    (
        "7.2 key hostname",
        wanting(requirement("kubernetes.io/hostname", "Exists")),
        f"{_T}.requirements[0].key",
    ),
    (
        "7.2 key of the AWS domain",
        wanting(requirement("karpenter.k8s.aws/y", "Exists")),
        f"{_T}.requirements[0].key",
    ),
    ("7.2 key with blanks", wanting(requirement(" a", "Exists")), f"{_T}.requirements[0].key"),
    ("7.2 key too long", wanting(requirement("a" * 317, "Exists")), f"{_T}.requirements[0].key"),
    ("7.2 operator unknown", wanting(requirement("a", "Is", "b")), f"{_T}.requirements[0].operator"),
    ("7.2 operator Gte", wanting(requirement("a", "Gte", "3")), ""),
    ("7.2 operator Lte", wanting(requirement("a", "Lte", "3")), ""),
    ("7.2 In without values", wanting(requirement("a", "In")), f"{_T}.requirements"),
    ("7.2 Gt without a value", wanting(requirement("a", "Gt")), f"{_T}.requirements"),
    ("7.2 Gt with two values", wanting(requirement("a", "Gt", "1", "2")), f"{_T}.requirements"),
    ("7.2 Lt negative", wanting(requirement("a", "Lt", "-1")), f"{_T}.requirements"),
    ("7.2 Gte no number", wanting(requirement("a", "Gte", "x")), f"{_T}.requirements"),
    ("7.2 Lte fraction", wanting(requirement("a", "Lte", "1.5")), f"{_T}.requirements"),
    ("7.2 minValues beyond the values", wanting(minimum(requirement(*ZONES), 3)), f"{_T}.requirements"),
    ("7.2 minValues met", wanting(minimum(requirement(*ZONES), 2)), ""),
    (
        "7.1 minValues above 50",
        wanting(minimum(requirement("a", "Exists"), 51)),
        f"{_T}.requirements[0].minValues",
    ),
    (
        "7.1 taint without effect",
        node_pool(template={"taints": [{"key": "a", "effect": ""}]}),
        f"{_T}.taints[0].effect",
    ),
    (
        "7.1 taint key",
        node_pool(template={"startupTaints": [{"key": "a b", "effect": "NoExecute"}]}),
        f"{_T}.startupTaints[0].key",
    ),
    (
        "7.1 taint value",
        node_pool(template={"taints": [{"key": "a", "value": "x y", "effect": "NoExecute"}]}),
        f"{_T}.taints[0].value",
    ),
    ("7.1 expireAfter Never", node_pool(template={"expireAfter": "Never"}), ""),
    ("7.1 expireAfter", node_pool(template={"expireAfter": "30 days"}), f"{_T}.expireAfter"),
    (
        "7.1 terminationGracePeriod",
        node_pool(template={"terminationGracePeriod": "Never"}),
        f"{_T}.terminationGracePeriod",
    ),
    ("7.1 terminationGracePeriod in groups", node_pool(template={"terminationGracePeriod": "1h30m"}), ""),
    ("7.1 weight", node_pool(weight=101), "spec.weight"),
    ("7.1 limits", node_pool(limits={"cpu": "many"}), "spec.limits.cpu"),
    (
        "7.2 consolidationPolicy",
        node_pool(disruption={"consolidationPolicy": "Sometimes"}),
        "spec.disruption.consolidationPolicy",
    ),
    (
        "7.2 consolidateAfter",
        node_pool(disruption={"consolidateAfter": "soon"}),
        "spec.disruption.consolidateAfter",
    ),
    ("7.2 consolidateAfter Never", node_pool(disruption={"consolidateAfter": "Never"}), ""),
    (
        "7.2 budgets at most 50",
        node_pool(disruption={"budgets": [{"nodes": "1"}] * 51}),
        "spec.disruption.budgets",
    ),
    ("7.2 budget nodes", budget(nodes="101%"), "spec.disruption.budgets[0].nodes"),
    ("7.2 budget reasons", budget(nodes="1", reasons=["Bored"]), "spec.disruption.budgets[0].reasons[0]"),
    ("7.2 budget schedule alone", budget(nodes="1", schedule="@daily"), "spec.disruption.budgets"),
    ("7.2 budget duration alone", budget(nodes="1", duration="1h"), "spec.disruption.budgets"),
    ("7.2 budget schedule and duration", budget(nodes="1", schedule="@daily", duration="1h30m"), ""),
    (
        "7.2 budget duration in seconds",
        budget(nodes="1", schedule="@daily", duration="90s"),
        "spec.disruption.budgets[0].duration",
    ),
    ("7.2 replicas with limits", node_pool(replicas=2, limits={"cpu": "1"}), "spec"),
    ("7.2 replicas with weight", node_pool(replicas=2, weight=1), "spec"),
    ("7.2 replicas negative", node_pool(replicas=-1), "spec.replicas"),
    ("7.1 template required", node_pool() | {"spec": {}}, "spec.template"),
]

_SUBNETS, _GROUPS, _IMAGES = (f"spec.{what}SelectorTerms" for what in ("subnet", "securityGroup", "ami"))
_BOTH = {"tags": SELECTOR, "id": "sg-1"}

NODE_CLASSES: list[Case] = [
    ("7.4 minimal", ec2_node_class(), ""),
    ("7.4 role", ec2_node_class(role="nodes", instanceProfile=None), ""),
    ("7.4 role and instanceProfile", ec2_node_class(role="nodes"), "spec"),
    ("7.4 neither role nor instanceProfile", ec2_node_class(instanceProfile=None), "spec"),
    ("7.4 role empty", ec2_node_class(role="", instanceProfile=None), "spec.role"),
    ("7.4 instanceProfile empty", ec2_node_class(instanceProfile=""), "spec.instanceProfile"),
    ("7.4 amiFamily unknown", ec2_node_class(amiFamily="Ubuntu"), "spec.amiFamily"),
    ("7.4 amiFamily against the alias", ec2_node_class(amiFamily="AL2"), "spec"),
    ("7.4 amiFamily Custom beside an alias", ec2_node_class(amiFamily="Custom"), ""),
    ("7.4 amiFamily of the alias", images({"alias": "bottlerocket@latest"}, amiFamily="Bottlerocket"), ""),
    ("7.4 no amiFamily and no alias", images({"id": "ami-1"}), "spec"),
    ("7.4 amiFamily without alias", images({"id": "ami-1"}, amiFamily="AL2"), ""),
    ("7.4 no subnet terms", ec2_node_class(subnetSelectorTerms=[]), _SUBNETS),
    ("7.4 subnet terms missing", ec2_node_class(subnetSelectorTerms=None), _SUBNETS),
    ("7.4 31 subnet terms", ec2_node_class(subnetSelectorTerms=[{"id": "subnet-1"}] * 31), _SUBNETS),
    ("7.4 empty subnet term", ec2_node_class(subnetSelectorTerms=[{}]), _SUBNETS),
    (
        "7.4 subnet id with tags",
        ec2_node_class(subnetSelectorTerms=[{"id": "subnet-1", "tags": SELECTOR}]),
        _SUBNETS,
    ),
    (
        "7.4 one good subnet term slips through",
        ec2_node_class(subnetSelectorTerms=[{"id": "subnet-1", "tags": SELECTOR}, {"id": "subnet-2"}]),
        "",
    ),
    ("7.4 subnet id", ec2_node_class(subnetSelectorTerms=[{"id": "net-1"}]), f"{_SUBNETS}[0].id"),
    ("7.4 empty tag value", ec2_node_class(subnetSelectorTerms=[{"tags": {"a": ""}}]), f"{_SUBNETS}[0].tags"),
    (
        "7.4 21 tags",
        ec2_node_class(subnetSelectorTerms=[{"tags": {f"a{n}": "b" for n in range(21)}}]),
        f"{_SUBNETS}[0].tags",
    ),
    ("7.4 no group terms", ec2_node_class(securityGroupSelectorTerms=[]), _GROUPS),
    ("7.4 group id with tags", ec2_node_class(securityGroupSelectorTerms=[_BOTH]), _GROUPS),
    (
        "7.4 group name with tags",
        ec2_node_class(securityGroupSelectorTerms=[{"name": "a", "tags": SELECTOR}]),
        _GROUPS,
    ),
    ("7.4 group name", ec2_node_class(securityGroupSelectorTerms=[{"name": "a"}]), ""),
    ("7.4 empty group term", ec2_node_class(securityGroupSelectorTerms=[{}]), _GROUPS),
    ("7.4 no image terms", images(), _IMAGES),
    ("7.4 empty image term", images({}, amiFamily="AL2"), _IMAGES),
    ("7.4 image owner alone", images({"owner": "self"}, amiFamily="AL2"), _IMAGES),
    (
        "7.4 image id in any term",
        images({"id": "ami-1", "tags": SELECTOR}, {"id": "ami-2"}, amiFamily="AL2"),
        _IMAGES,
    ),
    ("7.4 alias with owner", images({"alias": "al2@latest", "owner": "self"}), _IMAGES),
    ("7.4 alias beside another term", images({"alias": "al2@latest"}, {"id": "ami-1"}), _IMAGES),
    ("7.4 alias without version", images({"alias": "al2"}), f"{_IMAGES}[0].alias"),
    ("7.4 alias family", images({"alias": "ubuntu@latest"}), f"{_IMAGES}[0].alias"),
    ("7.4 alias in capitals", images({"alias": "AL2@latest"}), f"{_IMAGES}[0].alias"),
    ("7.4 alias of Windows with a version", images({"alias": "windows2022@v1"}), f"{_IMAGES}[0].alias"),
    ("7.4 alias of Windows", images({"alias": "windows2025@latest"}), ""),
    ("7.4 alias too long", images({"alias": "al2@" + "v" * 27}), f"{_IMAGES}[0].alias"),
    ("7.4 image id", images({"id": "i-1"}, amiFamily="AL2"), f"{_IMAGES}[0].id"),
    ("7.4 ssmParameter", images({"ssmParameter": "/my/image"}, amiFamily="AL2"), ""),
    ("7.4 tag key empty", ec2_node_class(tags={"": "x"}), "spec.tags"),
    *[
        (f"7.4 tag {key}", ec2_node_class(tags={key: "x"}), "spec.tags")
        for key in (
            "eks:eks-cluster-name",
            "kubernetes.io/cluster/x",
            "karpenter.sh/nodepool",
            "karpenter.sh/nodeclaim",
            "karpenter.k8s.aws/ec2nodeclass",
        )
    ],
    ("7.4 tag of one's own", ec2_node_class(tags={"team": "a"}), ""),
    (
        "7.4 kubeReserved key",
        ec2_node_class(kubelet={"kubeReserved": {"disk": "1"}}),
        "spec.kubelet.kubeReserved",
    ),
    (
        "7.4 systemReserved sign",
        ec2_node_class(kubelet={"systemReserved": {"cpu": "-1"}}),
        "spec.kubelet.systemReserved",
    ),
    (
        "7.4 reserved values are strings",
        ec2_node_class(kubelet={"systemReserved": {"cpu": 1}}),
        "spec.kubelet.systemReserved.cpu",
    ),
    (
        "7.4 evictionHard key",
        ec2_node_class(kubelet={"evictionHard": {"mem": "1Gi"}}),
        "spec.kubelet.evictionHard",
    ),
    (
        "7.4 evictionSoft without period",
        ec2_node_class(kubelet={"evictionSoft": {"memory.available": "1Gi"}}),
        "spec.kubelet",
    ),
    (
        "7.4 period without evictionSoft",
        ec2_node_class(kubelet={"evictionSoftGracePeriod": {"memory.available": "1m"}}),
        "spec.kubelet",
    ),
    (
        "7.4 soft pair",
        ec2_node_class(
            kubelet={
                "evictionSoft": {"memory.available": "1Gi"},
                "evictionSoftGracePeriod": {"memory.available": "1m"},
            }
        ),
        "",
    ),
    (
        "7.4 image thresholds equal",
        ec2_node_class(kubelet={"imageGCHighThresholdPercent": 80, "imageGCLowThresholdPercent": 80}),
        "spec.kubelet",
    ),
    ("7.4 maxPods", ec2_node_class(kubelet={"maxPods": -1}), "spec.kubelet.maxPods"),
    ("7.4 volume without size", disk(volumeType="gp3"), "spec.blockDeviceMappings[0].ebs"),
    ("7.4 volume of a snapshot", disk(snapshotID="snap-1"), ""),
    ("7.4 volume size bare", disk(volumeSize="100"), "spec.blockDeviceMappings[0].ebs.volumeSize"),
    ("7.4 volume size too big", disk(volumeSize="65T"), "spec.blockDeviceMappings[0].ebs.volumeSize"),
    ("7.4 volume size", disk(volumeSize="58Ti"), ""),
    (
        "7.4 volume type",
        disk(volumeSize="1Gi", volumeType="gp9"),
        "spec.blockDeviceMappings[0].ebs.volumeType",
    ),
    (
        "7.4 initialization without snapshot",
        disk(volumeSize="1Gi", volumeInitializationRate=100),
        "spec.blockDeviceMappings[0].ebs",
    ),
    (
        "7.4 two root volumes",
        ec2_node_class(blockDeviceMappings=[{"rootVolume": True}] * 2),
        "spec.blockDeviceMappings",
    ),
    (
        "7.4 51 volumes",
        ec2_node_class(blockDeviceMappings=[{"deviceName": "a"}] * 51),
        "spec.blockDeviceMappings",
    ),
    (
        "7.4 hop limit",
        ec2_node_class(metadataOptions={"httpPutResponseHopLimit": 65}),
        "spec.metadataOptions.httpPutResponseHopLimit",
    ),
    (
        "7.4 tokens",
        ec2_node_class(metadataOptions={"httpTokens": "maybe"}),
        "spec.metadataOptions.httpTokens",
    ),
    ("7.4 instanceStorePolicy", ec2_node_class(instanceStorePolicy="RAID5"), "spec.instanceStorePolicy"),
    (
        "7.4 reservation term empty",
        ec2_node_class(capacityReservationSelectorTerms=[{}]),
        "spec.capacityReservationSelectorTerms",
    ),
    (
        "7.4 reservation id with owner",
        ec2_node_class(capacityReservationSelectorTerms=[{"id": "cr-1", "ownerID": "012345678901"}]),
        "spec.capacityReservationSelectorTerms",
    ),
    ("7.4 no reservation terms", ec2_node_class(capacityReservationSelectorTerms=[]), ""),
    (
        "7.4 reservation owner",
        ec2_node_class(capacityReservationSelectorTerms=[{"id": "cr-1", "ownerID": "1"}]),
        "spec.capacityReservationSelectorTerms[0].ownerID",
    ),
    (
        "7.4 placement group",
        ec2_node_class(placementGroupSelector={"name": "a", "id": "pg-1"}),
        "spec.placementGroupSelector",
    ),
    ("7.4 placement group empty", ec2_node_class(placementGroupSelector={}), "spec.placementGroupSelector"),
    ("7.4 interfaces without the first", ec2_node_class(networkInterfaces=[EFA]), "spec.networkInterfaces"),
    ("7.4 interfaces at one place", ec2_node_class(networkInterfaces=[CARD, CARD]), "spec.networkInterfaces"),
    (
        "7.4 two efa-only on a card",
        ec2_node_class(networkInterfaces=[CARD, EFA, {**EFA, "deviceIndex": 2}]),
        "spec.networkInterfaces",
    ),
    ("7.4 interfaces", ec2_node_class(networkInterfaces=[CARD, EFA]), ""),
    ("7.4 connectionTracking empty", ec2_node_class(connectionTracking={}), "spec.connectionTracking"),
    (
        "7.4 udpTimeout",
        ec2_node_class(connectionTracking={"udpTimeout": 61}),
        "spec.connectionTracking.udpTimeout",
    ),
    ("7.4 connectionTracking", ec2_node_class(connectionTracking={"tcpEstablishedTimeout": 432000}), ""),
    ("7.4 ipPrefixCount", ec2_node_class(ipPrefixCount=-1), "spec.ipPrefixCount"),
]
CASES = [*NODE_POOLS, *NODE_CLASSES]
IDS = [f"{manifest['kind']}-{row}" for row, manifest, _ in CASES]

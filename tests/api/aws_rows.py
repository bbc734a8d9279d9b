"""Rules for node templates and inline providers as tables, as in `provisioner_rows`.

The ids are the rows of the rule tables of Karpenter v0.27 (N: templates, A: inline providers).
"""

from __future__ import annotations

from typing import Any

from tests.api.manifests import inline, node_template

DISK = {"deviceName": "/dev/xvda", "ebs": {"volumeSize": "20Gi"}}


def disk(**ebs: Any) -> dict[str, Any]:
    return node_template(blockDeviceMappings=[DISK | {"ebs": ebs}])


def options(**members: Any) -> dict[str, Any]:
    return node_template(metadataOptions=members)


def template(**spec: Any) -> dict[str, Any]:
    return node_template(launchTemplate="mine", securityGroupSelector=None, **spec)


EBS = "spec.blockDeviceMappings[0].ebs"
REFUSED = [
    ("N-0", node_template() | {"metadata": {"name": "A"}}, ["metadata.name"]),
    ("N-1", node_template(subnetSelector=None), ["spec.subnetSelector"]),
    ("N-1 with launchTemplate", template(subnetSelector=None), ["spec.subnetSelector"]),
    ("N-2 key", node_template(subnetSelector={"": "x"}), ["spec.subnetSelector"]),
    ("N-2 value", node_template(subnetSelector={"a": ""}), ["spec.subnetSelector.a"]),
    ("N-3", node_template(subnetSelector={"aws-ids": "subnet-1,sg-1"}), ['spec.subnetSelector["aws-ids"]']),
    ("N-4", node_template(securityGroupSelector=None), ["spec.securityGroupSelector"]),
    ("N-5", node_template(securityGroupSelector={"a": ""}), ["spec.securityGroupSelector.a"]),
    (
        "N-6",
        node_template(securityGroupSelector={"aws-ids": "subnet-1"}),
        ['spec.securityGroupSelector["aws-ids"]'],
    ),
    ("N-7 groups", node_template(launchTemplate="mine"), ["spec.securityGroupSelector"]),
    ("N-7 family", template(amiFamily="AL2"), ["spec.amiFamily"]),
    ("N-7 profile", template(instanceProfile="p"), ["spec.instanceProfile"]),
    ("N-7 metadata", template(metadataOptions={}), ["spec.metadataOptions"]),
    ("N-7 disks", template(blockDeviceMappings=[DISK]), ["spec.blockDeviceMappings"]),
    ("N-8", node_template(tags={"": "x"}), ["spec.tags"]),
    ("N-9", node_template(amiFamily="al2"), ["spec.amiFamily"]),
    ("N-10", options(httpEndpoint="on"), ["spec.metadataOptions.httpEndpoint"]),
    ("N-11", options(httpProtocolIPv6="on"), ["spec.metadataOptions.httpProtocolIPv6"]),
    ("N-12", options(httpPutResponseHopLimit=65), ["spec.metadataOptions.httpPutResponseHopLimit"]),
    ("N-13", options(httpTokens="never"), ["spec.metadataOptions.httpTokens"]),
    (
        "N-14 empty",
        node_template(blockDeviceMappings=[{}]),
        ["spec.blockDeviceMappings[0].deviceName", EBS],
    ),
    ("N-14 type", disk(volumeSize="20Gi", volumeType="gp4"), [f"{EBS}.volumeType"]),
    ("N-15 none", disk(), [f"{EBS}.volumeSize"]),
    ("N-15 bytes", disk(volumeSize=100), [f"{EBS}.volumeSize"]),
    ("N-15 small beside a snapshot", disk(volumeSize="1M", snapshotID="snap-1"), [f"{EBS}.volumeSize"]),
    ("N-15 large", disk(volumeSize="65T"), [f"{EBS}.volumeSize"]),
    ("N-16", template(userData="x"), ["spec.userData"]),
    ("N-17", node_template(amiSelector={"a": ""}), ["spec.amiSelector.a"]),
    ("N-18", template(amiSelector={"a": "b"}), ["spec.amiSelector"]),
    ("N-19", node_template(amiSelector={"aws-ids": "x"}), ['spec.amiSelector["aws-ids"]']),
    ("N-20", node_template(amiFamily="Custom"), ["spec.amiSelector"]),
    ("A-1 unknown member", inline(subnetSelektor={}), ["spec.provider.subnetSelektor"]),
    ("A-1 template-only member", inline(userData="x"), ["spec.provider.userData"]),
    ("A-1 wrong type", inline(tags=[]), ["spec.provider.tags"]),
    (
        "A-1 wrong kind",
        inline(apiVersion="extensions.karpenter.sh/v1alpha1", kind="GCP"),
        ["spec.provider.kind"],
    ),
    ("A-1 half a kind", inline(kind="AWS"), ["spec.provider.apiVersion"]),
    (
        "A-2",
        inline(subnetSelector=None, securityGroupSelector=None),
        ["spec.provider.securityGroupSelector", "spec.provider.subnetSelector"],
    ),
    ("A-2 family", inline(amiFamily="Windows"), ["spec.provider.amiFamily"]),
]

ACCEPTED = [
    ("N-1 empty selector", node_template(subnetSelector={})),
    ("N-3 list with blanks", node_template(subnetSelector={"aws-ids": "subnet-1, subnet-2"})),
    ("N-4 launchTemplate", template()),
    ("N-7 no disks", template(blockDeviceMappings=[])),
    ("N-12 bounds", options(httpPutResponseHopLimit=64)),
    ("N-15 snapshot", disk(snapshotID="snap-1")),
    ("N-15 bounds", disk(volumeSize="1G")),
    ("N-15 bounds, large", disk(volumeSize="64T")),
    ("N-19 aws::ids", node_template(amiSelector={"aws::ids": "anything"})),
    ("N-20", node_template(amiFamily="Custom", amiSelector={"aws-ids": "ami-1"})),
    ("A-1 whole kind", inline(apiVersion="extensions.karpenter.sh/v1alpha1", kind="AWS")),
    (
        "3.7 tag keys",
        node_template(tags={"kubernetes.io/cluster/x": "owned", "aws:x": "y", "karpenter.sh/z": ""}),
    ),
    ("3.7 many tags", node_template(tags={f"key-{number}": "x" for number in range(51)})),
    ("3.7 volume figures", disk(volumeSize="20Gi", volumeType="gp3", iops=1, throughput=10**6)),
    ("3.7 encrypted snapshot", disk(snapshotID="snap-1", encrypted=True)),
    ("1.9 Custom inline", inline(amiFamily="Custom")),
]

"""What Karpenter v1.14 leaves in a cluster with one node: its objects as that release writes them."""

from __future__ import annotations

from tests.controllers.world import CLUSTER, DISCOVERY

POOLS = "/apis/karpenter.sh/v1/nodepools"
NODE_CLASSES = "/apis/karpenter.k8s.aws/v1/ec2nodeclasses"
CLAIM = "default-x7k2p"
_HASHES = {"karpenter.sh/nodepool-hash": "10", "karpenter.sh/nodepool-hash-version": "v3"}
_CLASS_HASHES = {
    "karpenter.k8s.aws/ec2nodeclass-hash": "20",
    "karpenter.k8s.aws/ec2nodeclass-hash-version": "v4",
}
_REFERENCE = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
_REQUIREMENTS = [
    {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["m5.large", "m5.xlarge"]},
    {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
]


def a_node_pool():
    template = {"spec": {"nodeClassRef": _REFERENCE, "requirements": _REQUIREMENTS, "expireAfter": "720h"}}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "default", "annotations": _HASHES},
        "spec": {
            "template": template,
            "disruption": {"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "1h"},
        },
    }


def a_node_class():
    return {
        "apiVersion": "karpenter.k8s.aws/v1",
        "kind": "EC2NodeClass",
        "metadata": {
            "name": "default",
            "annotations": _CLASS_HASHES,
            "finalizers": ["karpenter.k8s.aws/termination"],
        },
        "spec": {
            "amiSelectorTerms": [{"alias": "al2023@latest"}],
            "instanceProfile": "nodes",
            "subnetSelectorTerms": [{"tags": DISCOVERY}],
            "securityGroupSelectorTerms": [{"tags": DISCOVERY}],
        },
    }


def an_overlay():
    """Of a kind that the two have in common, of a definition that was Karpenter's."""
    return {
        "apiVersion": "karpenter.sh/v1alpha1",
        "kind": "NodeOverlay",
        "metadata": {"name": "discount"},
        "spec": {
            "requirements": [
                {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]}
            ],
            "priceAdjustment": "-10%",
        },
    }


def launch(network, image):
    """An instance as Karpenter has it launched and tagged, once it runs."""
    filters = [
        {"Name": "vpc-id", "Values": [network.vpc]},
        {"Name": "availability-zone", "Values": ["us-east-1a"]},
    ]
    subnet = network.ec2.describe_subnets(Filters=filters)["Subnets"][0]["SubnetId"]
    tags = {
        f"kubernetes.io/cluster/{CLUSTER}": "owned",
        "eks:eks-cluster-name": CLUSTER,
        "karpenter.sh/nodepool": "default",
        "karpenter.sh/nodeclaim": CLAIM,
        "karpenter.k8s.aws/ec2nodeclass": "default",
        "Name": "karpenter-made",
    }
    described = [{"Key": key, "Value": value} for key, value in tags.items()]
    answer = network.ec2.run_instances(
        ImageId=image,
        InstanceType="m5.large",
        MinCount=1,
        MaxCount=1,
        SubnetId=subnet,
        IamInstanceProfile={"Name": "nodes"},
        TagSpecifications=[{"ResourceType": "instance", "Tags": described}],
    )
    return answer["Instances"][0]


def _labels():
    return {
        "karpenter.sh/nodepool": "default",
        "karpenter.k8s.aws/ec2nodeclass": "default",
        "karpenter.sh/capacity-type": "on-demand",
        "node.kubernetes.io/instance-type": "m5.large",
        "topology.kubernetes.io/zone": "us-east-1a",
        "topology.kubernetes.io/region": "us-east-1",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
    }


def a_claim(pool):
    """The NodeClaim of a pool, and the status that its instance gave it is `a_claim_status`."""
    owner = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "name": "default",
        "uid": pool["metadata"]["uid"],
        "blockOwnerDeletion": True,
    }
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {
            "name": CLAIM,
            "labels": _labels(),
            "annotations": {**_HASHES, **_CLASS_HASHES, "karpenter.k8s.aws/tagged": "true"},
            "finalizers": ["karpenter.sh/termination"],
            "ownerReferences": [owner],
        },
        "spec": {
            "nodeClassRef": _REFERENCE,
            "requirements": _REQUIREMENTS,
            "expireAfter": "720h",
            "resources": {"requests": {"cpu": "1", "pods": "1"}},
        },
    }


def a_claim_status(instance, now):
    resources = {"cpu": "2", "memory": "7Gi", "pods": "29", "ephemeral-storage": "18Gi"}
    conditions = ("Launched", "Registered", "Initialized", "Ready", "ConsistentStateFound")
    return {
        "providerID": _provider_id(instance),
        "nodeName": instance["PrivateDnsName"],
        "imageID": instance["ImageId"],
        "capacity": resources,
        "allocatable": resources,
        "conditions": [
            {"type": each, "status": "True", "reason": each, "message": "", "lastTransitionTime": now}
            for each in conditions
        ],
    }


def a_node(instance, claim):
    resources = {"cpu": "2", "memory": "7Gi", "pods": "29", "ephemeral-storage": "18Gi"}
    name = instance["PrivateDnsName"]
    owner = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "name": CLAIM,
        "uid": claim["metadata"]["uid"],
        "blockOwnerDeletion": True,
    }
    marks = {"karpenter.sh/registered": "true", "karpenter.sh/initialized": "true"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {**_labels(), **marks, "kubernetes.io/hostname": name},
            "annotations": {**_HASHES, **_CLASS_HASHES},
            "finalizers": ["karpenter.sh/termination"],
            "ownerReferences": [owner],
        },
        "spec": {"providerID": _provider_id(instance)},
        "status": {"capacity": resources, "allocatable": resources, "nodeInfo": {"bootID": "1"}},
    }


def _provider_id(instance):
    return f"aws:///{instance['Placement']['AvailabilityZone']}/{instance['InstanceId']}"

"""Machines that a managed node group brings into a cluster, beside those that the controller makes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from botocore.exceptions import BotoCoreError, ClientError

from localenv.environment import Environment

#: Of its nodes, by EKS.
LABEL = "eks.amazonaws.com/nodegroup"


@contextmanager
def node_group(environment: Environment, name: str, size: int, taint: str = "") -> Iterator[None]:
    """Let machines join as soon as the stack has made what they need: profile, cluster, tagged subnets.

    They bear the environment's node role, whose access entry lets them in.

    Args:
        environment: That is brought up in the block.
        name: Of the group.
        size: Its machines.
        taint: What the machines are tainted with, as `key=value:Effect`; nothing when empty.
    """
    over = threading.Event()

    def launch() -> None:
        while not over.wait(0.5):
            try:
                if _launch_nodes(environment, name, size, taint):
                    return
            except (BotoCoreError, ClientError):
                continue  # not there yet

    launching = threading.Thread(target=launch, name=f"node group {name}")
    launching.start()
    try:
        yield
    finally:
        over.set()
        launching.join()


def _launch_nodes(environment: Environment, name: str, size: int, taint: str) -> bool:
    aws, cluster = environment.aws, environment.options.cluster_name
    described = aws.client("eks").describe_cluster(name=cluster)["cluster"]
    profile = f"KarpenterNodeInstanceProfile-{cluster}"
    aws.client("iam").get_instance_profile(InstanceProfileName=profile)
    discovery = {"Name": "tag:karpenter.sh/discovery", "Values": [cluster]}
    ec2 = aws.client("ec2")
    subnets = ec2.describe_subnets(Filters=[discovery])["Subnets"]
    images = ec2.describe_images(Owners=["amazon"])["Images"]
    if described["status"] != "ACTIVE" or not subnets:
        return False
    arguments = f"--node-labels={LABEL}={name}" + (f" --register-with-taints={taint}" if taint else "")
    ec2.run_instances(
        ImageId=min(image["ImageId"] for image in images if image["Architecture"] == "x86_64"),
        InstanceType="m5.large",
        MinCount=size,
        MaxCount=size,
        SubnetId=subnets[0]["SubnetId"],
        IamInstanceProfile={"Name": profile},
        UserData=f"#!/bin/bash\n/etc/eks/bootstrap.sh '{cluster}' --kubelet-extra-args '{arguments}'\n",
    )
    return True

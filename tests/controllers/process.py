"""The controller as a process of its own: its environment, its settings, and what it answers on its ports."""

import base64
import json
import os
import subprocess
import sys
import urllib.request
from pathlib import Path

from localenv.ports import free_port
from tests.controllers.world import CLUSTER
from tests.rights import as_the_controller

NODELESS = Path(sys.executable).with_name("nodeless")
LEASE = "karpenter-leader-election"
TRUST = json.dumps(
    {
        "Version": "2012-10-17",
        "Statement": [
            {"Effect": "Allow", "Principal": {"Service": "eks.amazonaws.com"}, "Action": "sts:AssumeRole"}
        ],
    }
)


def environment(control_plane, aws, namespace, identity="first", **more):
    return {
        **os.environ,
        **aws.environment(),
        "KUBECONFIG": str(as_the_controller(control_plane, namespace)),
        "SYSTEM_NAMESPACE": namespace,
        "POD_NAME": identity,
        "POD_IP": "127.0.0.1",
        "METRICS_PORT": str(free_port()),
        "HEALTH_PROBE_PORT": str(free_port()),
        "DISABLE_WEBHOOK": "true",
        **more,
    }


def settings(namespace, **data):
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "karpenter-global-settings", "namespace": namespace},
        "data": {
            "aws.clusterName": CLUSTER,
            "aws.clusterEndpoint": "https://demo.example",
            "aws.defaultInstanceProfile": "nodes",
            "batchIdleDuration": "100ms",
            **data,
        },
    }


def refused(env):
    """The one line that a process leaves that cannot start."""
    ended = subprocess.run(
        [NODELESS, "run"], env=env, capture_output=True, text=True, timeout=240, check=False
    )
    assert ended.returncode == 2, ended.stderr
    (line,) = ended.stderr.splitlines()
    assert line.startswith("nodeless: ")
    return line


def lease_path(namespace):
    return f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{LEASE}"


def leads(api, namespace, identity):
    api.wait(
        lease_path(namespace),
        lambda lease: lease is not None and lease["spec"].get("holderIdentity") == identity,
        timeout=40,
        what=f"{identity} to lead",
    )


class Replicas:
    """Starts replicas by identity. Each knows its log, its environment and its ports."""

    def __init__(self, control_plane, aws, namespace, directory):
        self.started = []
        self._around = (control_plane, aws, namespace)
        self._directory = directory

    def __call__(self, identity, *arguments, **more):
        env = environment(*self._around, identity, **more)
        log = self._directory / f"{identity}.log"
        with log.open("w") as file:
            process = subprocess.Popen(
                [NODELESS, "run", *arguments], env=env, stdout=file, stderr=subprocess.STDOUT
            )
        process.log, process.env = log, env
        self.started.append(process)
        return process

    def end(self):
        for process in self.started:
            process.kill()
            process.wait(timeout=120)


def lines(process):
    """What a replica has logged, as JSON; a line that it is still writing is none yet."""
    *whole, _ = process.log.read_text().split("\n")
    return [json.loads(line) for line in whole if line.startswith("{")]


def says(process, part):
    """Whether a replica has logged a line with this text, under whatever key config-logging puts messages."""
    return any(part in str(value) for line in lines(process) for value in line.values())


def scrape(process):
    """The series of a replica by name and labels as written, with their values."""
    url = f"http://127.0.0.1:{process.env['METRICS_PORT']}/metrics"
    with urllib.request.urlopen(url, timeout=120) as answer:
        text = answer.read().decode()
    found = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            name, _, value = line.rpartition(" ")
            found[name] = float(value)
    return found


def a_cluster(control_plane, aws, network):
    """Let AWS know the cluster that the replicas are to serve."""
    role = aws.client("iam").create_role(RoleName="cluster", AssumeRolePolicyDocument=TRUST)["Role"]["Arn"]
    aws.set_cluster(
        endpoint=control_plane.endpoint,
        certificate_authority_data=base64.b64encode(
            control_plane.certificate_authority.read_bytes()
        ).decode(),
        issuer=control_plane.issuer,
    )
    found = network.ec2.describe_subnets(Filters=[{"Name": "vpc-id", "Values": [network.vpc]}])["Subnets"]
    subnets = [subnet["SubnetId"] for subnet in found]
    aws.client("eks").create_cluster(
        name=CLUSTER, version="1.32", roleArn=role, resourcesVpcConfig={"subnetIds": subnets}
    )

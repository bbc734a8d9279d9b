"""The third article's two tests, first run: the fewest nodes, then the cheapest type that holds the pods.

A t3a.medium stands there from the beginning (static capacity, not ours), with a system pod
on it that leaves less than one CPU free, but more than half of one. Between the two tests
the first one's node goes because it is empty.
"""

from __future__ import annotations

from typing import Any

from localenv.labs.run import DEPLOYMENTS, Lab

STATIC_TYPE = "t3a.medium"
#: On a t3a.medium 1930 millicores are allocatable; the daemons take 150, this the most of the rest.
SYSTEM_CPU = "1"


class FewestNodes(Lab):
    name = "fewest-nodes"
    title = "Fewest nodes: five pods of one CPU, then of half a CPU, beside a t3a.medium"
    provisioner = "fewest-nodes/provisioner.yaml"

    def steps(self) -> None:
        self.begin()
        self.five_pods("1")
        self.expect(
            "test 1: one new t3a.2xlarge carries all five, the t3a.medium none",
            lambda: self._pods_by_type() == {STATIC_TYPE: 0, "t3a.2xlarge": 5},
            seconds=5,
        )
        self.empty("the t3a.2xlarge goes when it is empty")
        self.five_pods("500m")
        self.expect(
            "test 2: one pod on the t3a.medium, four on one new t3a.xlarge",
            lambda: self._pods_by_type() == {STATIC_TYPE: 1, "t3a.xlarge": 4},
            seconds=5,
        )

    def begin(self) -> None:
        """The t3a.medium and the pool."""
        self._static = self._start_static_node()
        self.apply("nodeless/awsnodetemplate.yaml")
        self.apply(self.provisioner)

    def five_pods(self, cpu: str) -> None:
        """Run five pods that request so much CPU each."""
        self.run_pods("fewest-nodes/inflate.yaml", "inflate", 5, template=_with_cpu(cpu))

    def empty(self, promise: str) -> None:
        """Take the pods away, and wait until only the t3a.medium is left."""
        self.api.scale(f"{DEPLOYMENTS}/inflate", 0)
        self.expect(promise, lambda: self._pods_by_type() == {STATIC_TYPE: 0}, seconds=90)

    def _pods_by_type(self) -> dict[str, int]:
        """The lab's pods on each node, by instance type; two nodes of one type would be counted apart."""
        counts: dict[str, int] = {}
        for node in self.view().instances:
            key = (
                node.instance_type
                if node.instance_type not in counts
                else f"{node.instance_type} ({node.name})"
            )
            counts[key] = sum(name.startswith("inflate-") for name in node.pods)
        return counts

    def _start_static_node(self) -> str:
        """Launch the t3a.medium as an administrator would, and put the system pod on it; its instance id."""
        environment = self.environment
        outputs = environment.stack.outputs()
        ec2, cluster = environment.aws.client("ec2"), self._cluster()
        image = environment.aws.client("ssm").get_parameter(
            Name=f"/aws/service/bottlerocket/aws-k8s-{cluster['version']}/x86_64/latest/image_id"
        )
        launched = ec2.run_instances(
            ImageId=image["Parameter"]["Value"],
            InstanceType=STATIC_TYPE,
            MinCount=1,
            MaxCount=1,
            SubnetId=outputs["privateSubnetIds"][0],
            IamInstanceProfile={"Name": outputs["instanceProfileName"]},
            UserData=(
                "[settings.kubernetes]\n"
                f'cluster-name = "{cluster["name"]}"\n'
                f'api-server = "{cluster["endpoint"]}"\n'
                f'cluster-certificate = "{cluster["certificateAuthority"]["data"]}"\n'
            ),
        )
        instance: str = launched["Instances"][0]["InstanceId"]
        node = self.expect(
            "a t3a.medium that is not ours is part of the cluster",
            lambda: next((row.name for row in self.view().instances if row.state == "Ready"), ""),
        )
        self.api.create(_system_pod(node))
        return instance

    def _cluster(self) -> dict[str, Any]:
        eks = self.environment.aws.client("eks")
        found: dict[str, Any] = eks.describe_cluster(name=self.environment.options.cluster_name)["cluster"]
        return found

    def clean_up(self) -> None:
        super().clean_up()
        self.api.delete("/api/v1/namespaces/default/pods/system", missing_ok=True)
        static = getattr(self, "_static", None)
        if static is not None:
            self.environment.aws.client("ec2").terminate_instances(InstanceIds=[static])
            self.api.wait(lambda: not self.view().instances, timeout=60, what="the t3a.medium to go")


def _system_pod(node: str) -> dict[str, Any]:
    resources = {"requests": {"cpu": SYSTEM_CPU}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "system", "namespace": "default"},
        "spec": {
            "nodeName": node,
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "system", "image": "system", "resources": resources}],
        },
    }


def _with_cpu(request: str) -> dict[str, Any]:
    """The pod template of the example with another CPU request."""
    container = {
        "name": "inflate",
        "image": "public.ecr.aws/eks-distro/kubernetes/pause:3.2",
        "resources": {"requests": {"cpu": request}},
    }
    return {
        "metadata": {"labels": {"app": "inflate"}},
        "spec": {"terminationGracePeriodSeconds": 0, "containers": [container]},
    }

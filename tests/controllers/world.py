"""The controller's loops in the test's own event loop, on the real API server and the local AWS.

`Rig` holds the controllers as the process wires them (`controllers.wiring`); `Kubelets` act as the kubelets
of the instances that are launched: they join as Nodes, run the pods bound to them, and delete those that
leave.
"""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, fields
from datetime import UTC, datetime
from types import SimpleNamespace

import msgspec
import structlog

from localenv.kubelets.device_drivers import drivers_of
from localenv.kubelets.devices import Hardware, find_devices, resource_slices
from localenv.kubelets.nodes import read_instance
from localenv.kubelets.objects import Container
from localenv.kubernetes import ApiError, ApiUnreachable
from nodeless.cloudprovider.aws import AwsProvider, AwsSettings
from nodeless.controllers.wiring import build_controllers
from nodeless.kube.event_recorder import Recorder
from nodeless.operator.event_reasons import undeclared_reason
from nodeless.operator.metrics import Metrics
from nodeless.operator.settings import GlobalSettings
from nodeless.operator.timing import TIMING
from pulumi_nodeless.interruption import RULES
from tests.lent_facts import keep_catalogs, lend

CLUSTER = "demo"
DISCOVERY = {"karpenter.sh/discovery": CLUSTER}
CLAIMS = "/apis/karpenter.sh/v1/nodeclaims"
POOLS = "/apis/karpenter.sh/v1alpha5/provisioners"
TEMPLATES = "/apis/karpenter.k8s.aws/v1alpha1/awsnodetemplates"
NODES = "/api/v1/nodes"
RESOURCE_CLAIMS = "/apis/resource.k8s.io/v1/namespaces/{}/resourceclaims"
OVERLAYS = "/apis/karpenter.sh/v1alpha1/nodeoverlays"
#: Seconds within which what must come true does, also on a machine that does much else.
PATIENCE = 400
AWS_SETTINGS = AwsSettings(
    cluster_name=CLUSTER,
    cluster_endpoint="https://demo.example",
    default_instance_profile="nodes",
    certificate_authority="Q0E=",
    kubernetes_version="1.29",
)


class Network:
    """Tagged subnets in two zones, a security group, an instance profile."""

    def __init__(self, aws, security_group=True):
        self.ec2, self.reboots = aws.client("ec2"), aws.reboots
        self._every_instance = aws.instances
        tags = [{"Key": key, "Value": value} for key, value in DISCOVERY.items()]
        self.vpc = self.ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
        for number, zone in enumerate("ab"):
            self.ec2.create_subnet(
                VpcId=self.vpc,
                CidrBlock=f"10.0.{number * 16}.0/20",
                AvailabilityZone=f"us-east-1{zone}",
                TagSpecifications=[{"ResourceType": "subnet", "Tags": tags}],
            )
        aws.client("iam").create_instance_profile(InstanceProfileName="nodes")
        if security_group:
            self.add_security_group()

    def add_security_group(self):
        tags = [{"Key": key, "Value": value} for key, value in DISCOVERY.items()]
        self.ec2.create_security_group(
            GroupName="nodes",
            Description="nodes",
            VpcId=self.vpc,
            TagSpecifications=[{"ResourceType": "security-group", "Tags": tags}],
        )

    def instances(self, *states):
        """Instances by id, by default those that live."""
        wanted = states or ("pending", "running", "stopping", "stopped", "shutting-down")
        return {i["InstanceId"]: i for i in self._every_instance() if i["State"]["Name"] in wanted}

    def terminate(self, *ids):
        self.ec2.terminate_instances(InstanceIds=[*ids])

    def hardware(self, node, instance):
        """What drivers of devices find on an instance."""
        name = instance["InstanceType"]
        (record,) = self.ec2.describe_instance_types(InstanceTypes=[name])["InstanceTypes"]
        described = self.ec2.describe_instances(InstanceIds=[instance["InstanceId"]])
        interfaces = read_instance(described["Reservations"][0]["Instances"][0]).efa_interfaces
        return Hardware(node, name, record, interfaces)


def a_provisioner(name="default", **spec):
    types = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["m5.large", "m5.xlarge"]}
    capacity = {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]}
    body = {"providerRef": {"name": "default"}, "requirements": [types, capacity], **spec}
    return {
        "apiVersion": "karpenter.sh/v1alpha5",
        "kind": "Provisioner",
        "metadata": {"name": name},
        "spec": {key: value for key, value in body.items() if value is not None},
    }


def a_tight_pool(**spec):
    """A pool of one instance type, of which a test may say how many there are (`a_part`)."""
    large = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["m5.large"]}
    capacity = {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]}
    return a_provisioner(requirements=[large, capacity], **spec)


def a_part(number):
    """Faults by which EC2 has so many instances of that type and no more."""
    left = {"us-east-1a": number, "us-east-1b": 0, "us-east-1c": 0}
    return [{"instanceType": "m5.large", "zone": zone, "remaining": some} for zone, some in left.items()]


def a_template(**spec):
    body = {"subnetSelector": DISCOVERY, "securityGroupSelector": DISCOVERY, **spec}
    return {
        "apiVersion": "karpenter.k8s.aws/v1alpha1",
        "kind": "AWSNodeTemplate",
        "metadata": {"name": "default"},
        "spec": body,
    }


def a_pod(name, namespace, cpu="1", **spec):
    container = {"name": "c", "image": "pause", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": {"app": name}},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 1, **spec},
    }


def a_budget(name, namespace, app):
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": app}}},
    }


def an_interruption_queue(aws, name):
    """The queue that the component's rules fill; gives back its URL."""
    sqs, events = aws.client("sqs"), aws.client("events")
    url = sqs.create_queue(QueueName=name)["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    for rule, pattern in RULES.items():
        events.put_rule(Name=rule, EventPattern=json.dumps(pattern))
        events.put_targets(Rule=rule, Targets=[{"Id": "queue", "Arn": arn}])
    return url


class Kubelets:
    """Kubelets of all instances; an instance in `silent` runs none.

    One that is seen while not `joining` is silent from then on.
    """

    def __init__(self, api, network):
        self.silent = set()
        #: While false, machines boot and never join.
        self.joining = True
        #: What kubelets report; the disk of the default block device is planned as 20 GiB.
        self.ephemeral_storage = "18Gi"
        #: Resources of device plugins that nodes report from the first moment.
        self.devices = {}
        #: Names of pods whose containers do not end, terminating or not.
        self.busy = set()
        #: So many devices of each driver are not found on nodes.
        self.lost_devices = 0
        self._api = api
        self._network = network
        self._joined = {}
        self._boots = {}
        self._beat = 0.0

    async def run(self):
        while True:
            # A kubelet that is refused, or hears nothing, tries again.
            with suppress(ApiError, ApiUnreachable):
                await asyncio.to_thread(self.turn)
            await asyncio.sleep(0.1)

    def turn(self):
        for instance in self._network.instances("running").values():
            identifier = instance["InstanceId"]
            if identifier in self._joined or identifier in self.silent:
                continue
            if self.joining:
                self._join(instance)
            else:
                self.silent.add(identifier)
        for identifier, number in self._network.reboots().items():
            if identifier in self._joined and self._boots.get(identifier, 0) < number:
                self._reboot(identifier, number)
        beating = time.monotonic() - self._beat > 5
        # At once: in a long story those of machines that ended, too, would be asked for one by one.
        pods = self._api.list("/api/v1/pods") if self._joined else ()
        for identifier, name in self._joined.items():
            if identifier in self.silent:
                continue
            for pod in pods:
                if pod["spec"].get("nodeName") == name:
                    self._run_pod(pod)
            if beating:
                self._report_ready(name)
        if beating:
            self._beat = time.monotonic()

    def _join(self, instance):
        zone, name = instance["Placement"]["AvailabilityZone"], instance["PrivateDnsName"]
        cpus = {"m5.large": "2", "m5.xlarge": "4", "g4dn.12xlarge": "48", "p5.48xlarge": "192"}
        cpu = cpus[instance["InstanceType"]]
        resources = {"cpu": cpu, "memory": "7Gi", "pods": "29", "ephemeral-storage": self.ephemeral_storage}
        resources |= self.devices
        node = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
            "spec": {
                "providerID": f"aws:///{zone}/{instance['InstanceId']}",
                "taints": [{"key": "karpenter.sh/unregistered", "effect": "NoExecute"}],
            },
            "status": {
                "capacity": resources,
                "allocatable": resources,
                "nodeInfo": {"bootID": f"{instance['InstanceId']}-0"},
            },
        }
        with suppress(ApiError):
            self._api.create(node)
        self._joined[instance["InstanceId"]] = name
        self._report_ready(name)

    def _reboot(self, identifier, number):
        """Off, and on again with another boot id; a silent machine stays off."""
        path = f"{NODES}/{self._joined[identifier]}"
        off = {"status": {"conditions": [{"type": "Ready", "status": "False", "reason": "KubeletNotReady"}]}}
        on = {"status": {"nodeInfo": {"bootID": f"{identifier}-{number}"}}}
        with suppress(ApiError):
            self._api.patch(path, off, kind="strategic", subresource="status")
            if identifier not in self.silent:
                self._api.patch(path, on, kind="strategic", subresource="status")
                self._report_ready(self._joined[identifier])
            self._boots[identifier] = number

    def _report_ready(self, name):
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": now}
        with suppress(ApiError):
            self._api.patch(
                f"{NODES}/{name}", {"status": {"conditions": [ready]}}, kind="strategic", subresource="status"
            )

    def _publish(self, pod):
        """What the pod's drivers find on its node; a pod that is no driver finds nothing."""
        name, containers = (
            pod["spec"]["nodeName"],
            msgspec.convert(pod["spec"]["containers"], list[Container]),
        )
        for driver in drivers_of(containers):
            node = self._api.get(f"{NODES}/{name}")
            instance = self._network.instances()[node["spec"]["providerID"].rpartition("/")[2]]
            found = find_devices(driver, self._network.hardware(name, instance))
            if found is not None:
                devices = found[: max(0, len(found) - self.lost_devices)]
                for one in resource_slices(driver, name, node["metadata"]["uid"], devices):
                    self._api.apply(one, field_manager=driver)

    def _may_start(self, pod):
        """Whether the claims of a pod are allocated to it."""
        made = {
            each["name"]: each.get("resourceClaimName")
            for each in pod["status"].get("resourceClaimStatuses", ())
        }
        for named in pod["spec"].get("resourceClaims", ()):
            name = named.get("resourceClaimName") or made.get(named["name"])
            claim = self._api.find(f"{RESOURCE_CLAIMS.format(pod['metadata']['namespace'])}/{name}")
            reserved = (claim or {}).get("status", {}).get("reservedFor", ())
            if pod["metadata"]["uid"] not in {each["uid"] for each in reserved}:
                return False
        return True

    def _run_pod(self, pod):
        metadata = pod["metadata"]
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
        running = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        with suppress(ApiError):
            if metadata.get("deletionTimestamp"):
                if metadata["name"] in self.busy:
                    return
                self._api.delete(path, grace_seconds=0, uid=metadata["uid"])
            elif not any(
                c["type"] == "Ready" and c["status"] == "True" for c in pod["status"].get("conditions", ())
            ):
                if not self._may_start(pod):
                    return
                self._publish(pod)
                self._api.patch(path, {"status": running}, kind="strategic", subresource="status")


class StrictRecorder(Recorder):
    """Takes no event that contradicts the table of events, from which the reference page is made."""

    def publish(self, event):
        assert not undeclared_reason(event), undeclared_reason(event)
        return super().publish(event)


def _innermost(task):
    """The line that a task waits in, through all that it awaits."""
    where, awaited = "?", task.get_coro()
    while awaited is not None:
        if frame := getattr(awaited, "cr_frame", None):
            where = f"{frame.f_code.co_qualname}:{frame.f_lineno}"
        awaited = getattr(awaited, "cr_await", None)
    return where


class Rig(SimpleNamespace):
    """The parts by name, and words for what a scenario does with them."""

    async def until(self, look, predicate=bool, seconds=PATIENCE):
        """Wait until what a blocking call sees fulfils a predicate; gives it back."""
        seen = None
        try:
            async with asyncio.timeout(seconds):
                while not predicate(seen := await asyncio.to_thread(look)):
                    self.check()
                    await asyncio.sleep(0.05)
                return seen
        except TimeoutError as error:
            waiting = "\n".join(f"{task.get_name()} waits in {_innermost(task)}" for task in self.tasks)
            raise AssertionError(f"after {seconds} s there is still {seen!r}\n{waiting}") from error

    def check(self):
        """A part never ends by itself: show why it did."""
        for task in self.tasks:
            if task.done():
                task.result()

    async def until_gone(self, path, seconds=PATIENCE, of=None):
        """Wait until nothing is at the path; with `of`, a node of another claim may have taken the name."""

        def gone(found):
            if found is None:
                return True
            labels = found["metadata"].get("labels", {})
            return of is not None and labels.get("karpenter.sh/nodeclaim") != of["metadata"]["name"]

        await self.until(lambda: self.api.find(path), gone, seconds)

    async def create(self, *documents):
        for document in documents:
            await asyncio.to_thread(self.api.create, document)

    async def claim(self, condition="Initialized"):
        """The one claim, as the API server has it, once a condition is true."""

        def true(claims):
            return len(claims) == 1 and condition in {
                each["type"]
                for each in claims[0].get("status", {}).get("conditions", ())
                if each["status"] == "True"
            }

        return (await self.until(lambda: self.api.list(CLAIMS), true))[0]

    async def running(self, namespace, *names):
        """Wait until the pods run; gives back the name of the node of the first."""
        for name in names:
            path = f"/api/v1/namespaces/{namespace}/pods/{name}"
            await self.until(
                lambda path=path: self.api.find(path),
                lambda pod: pod is not None and pod["status"].get("phase") == "Running",
            )
        return self.api.get(f"/api/v1/namespaces/{namespace}/pods/{names[0]}")["spec"]["nodeName"]

    async def event(self, namespace, name, reason, about=""):
        """Wait for an event about an object with `about` in its message (names of nodes come again)."""

        def found():
            events = self.api.events(namespace, name)
            return [e for e in events if e["reason"] == reason and about in e["message"]]

        return (await self.until(found))[0]


def changeable(timing):
    """The same times, which a test may change while the controllers run."""
    values = {each.name: getattr(timing, each.name) for each in fields(timing)}
    return SimpleNamespace(**values | {"claims": SimpleNamespace(**asdict(timing.claims))})


@asynccontextmanager
async def a_rig(
    client,
    api,
    network,
    namespace,
    *,
    cloud=None,
    act=True,
    clock=time.time,
    record=None,
    settings=(),
    timing=TIMING,
):
    """The controllers of a leader, the usual ones running (unless `act` is false: then only the watches).

    `settings` are fields of `GlobalSettings` that differ from a test's usual ones; `timing` may be
    `changeable`.
    """
    metrics = Metrics()
    cloud = cloud or AwsProvider(AWS_SETTINGS, structlog.get_logger(), clock=clock)
    lend(cloud)
    usual = {"batch_idle_seconds": 0.1, "batch_max_seconds": 1.0}
    recorder = StrictRecorder(client, "test")
    invalid = []
    controllers = build_controllers(
        client,
        cloud,
        recorder,
        metrics,
        GlobalSettings(CLUSTER, **usual | dict(settings)),
        namespace,
        report_invalid=lambda _manifest, error: invalid.append(str(error)),
        record=record,
        timing=timing,
    )
    kubelets = Kubelets(api, network)
    acting = ("nominator", "provisioning", "claims", "pools", "disruption", "drift") if act else ()
    acting += tuple(
        name for name in ("overlays", "request_nodes") if act and getattr(controllers, name) is not None
    )
    parts = (recorder, kubelets, *(getattr(controllers, name) for name in acting))
    tasks = [asyncio.create_task(part.run(), name=type(part).__name__) for part in parts]
    tasks.append(asyncio.create_task(controllers.watch(), name="watches"))
    try:
        await controllers.cluster.wait_for_sync()
        # As in the manager: a look at gangs before pods are listed would forget their pauses.
        if act:
            tasks.append(asyncio.create_task(controllers.gangs.run(), name="GangLoop"))
        rig = Rig(
            tasks=tasks,
            api=api,
            cloud=cloud,
            kubelets=kubelets,
            network=network,
            invalid=invalid,
            metrics=metrics,
            **{each.name: getattr(controllers, each.name) for each in fields(controllers)},
        )
        yield rig
        rig.check()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        keep_catalogs(cloud)
        await cloud.close()

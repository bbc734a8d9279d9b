"""Runs a Pulumi program without an engine and records what it registers.

Answers like the providers would as far as the components read outputs, and keeps what the SDK's own mocks
hide: dependencies, parents and providers of every resource. Every resource's inputs are checked against
the SDK on the way, so no test can pass on inputs that AWS would never see.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import pulumi
from pulumi.runtime import mocks as sdk_mocks
from pulumi.runtime.stack import run_pulumi_func
from pulumi.runtime.sync_await import _sync_await

from localenv.pulumi.input_check import SECRET, check_inputs

SIGNATURE_RESOURCE = "5cf8f73096256a8f31e491e813e4eb8e"
ISSUER = "oidc.eks.us-east-1.amazonaws.com/id/EXAMPLE"
ACCOUNT = "123456789012"
ARN_KINDS = {
    "aws:iam/role:Role": "arn:aws:iam::{account}:role/{name}",
    "aws:iam/policy:Policy": "arn:aws:iam::{account}:policy/{name}",
    "aws:iam/instanceProfile:InstanceProfile": "arn:aws:iam::{account}:instance-profile/{name}",
    "aws:sqs/queue:Queue": "arn:aws:sqs:us-east-1:{account}:{name}",
    "aws:cloudwatch/eventRule:EventRule": "arn:aws:events:us-east-1:{account}:rule/{name}",
}
FUNCTIONS: dict[str, dict[str, Any]] = {
    # The engine's own: the stack has had no update.
    "pulumi:pulumi:readStackOutputs": {"outputs": {}},
    "aws:ecr/getAuthorizationToken:getAuthorizationToken": {
        "authorizationToken": "QVdTOnB3",
        "userName": "AWS",
        "password": "pw",
        "proxyEndpoint": f"https://{ACCOUNT}.dkr.ecr.us-east-1.amazonaws.com",
        "expiresAt": "",
        "id": "us-east-1",
    },
    "aws:eks/getCluster:getCluster": {
        "id": "demo",
        "name": "demo",
        "version": "1.34",
        "vpcConfig": {"clusterSecurityGroupId": "sg-cluster"},
    },
    "aws:eks/getAddonVersion:getAddonVersion": {"id": "coredns", "version": "v1.12.1-eksbuild.2"},
    "aws:eks/getClusterVersions:getClusterVersions": {
        "id": "us-east-1",
        "region": "us-east-1",
        "clusterVersions": [
            {"clusterVersion": f"1.{minor}", "versionStatus": "STANDARD_SUPPORT"} for minor in range(30, 37)
        ],
    },
    "aws:index/getAvailabilityZones:getAvailabilityZones": {
        "names": ["us-east-1a", "us-east-1b", "us-east-1c", "us-east-1d"],
        "zoneIds": [],
        "id": "us-east-1",
        "groupNames": [],
        "region": "us-east-1",
    },
    "aws:index/getPartition:getPartition": {
        "partition": "aws",
        "dnsSuffix": "amazonaws.com",
        "id": "aws",
        "reverseDnsPrefix": "com.amazonaws",
    },
    "aws:index/getCallerIdentity:getCallerIdentity": {
        "accountId": ACCOUNT,
        "arn": f"arn:aws:iam::{ACCOUNT}:user/tester",
        "id": ACCOUNT,
        "userId": "tester",
    },
    "aws:index/getRegion:getRegion": {
        "region": "us-east-1",
        "description": "",
        "endpoint": "",
        "id": "us-east-1",
    },
}


OTHER_STACK: dict[str, Any] = {
    "outputs": {"instanceProfileName": "KarpenterNodeInstanceProfile-dev", "kubeconfig": {"clusters": []}},
    "secretOutputNames": ["kubeconfig"],
}
"""What a stack that is referred to has put out."""


def reveal(value: Any) -> Any:
    """The value with secrets unwrapped, at any depth."""
    if isinstance(value, Mapping):
        if SECRET in value:
            return reveal(value["value"])
        return {key: reveal(item) for key, item in value.items()}
    return [reveal(item) for item in value] if isinstance(value, list) else value


@dataclass(slots=True)
class Registered:
    """One resource as the program registered it."""

    token: str
    name: str
    urn: str
    inputs: dict[str, Any]
    custom: bool
    parent: str = ""
    provider: str = ""
    dependencies: set[str] = field(default_factory=set)
    ignored_timeouts: str = ""
    delete_timeout: str = ""
    delete_before_replace: bool = False
    protect: bool = False
    retained: bool = False


class Recorder(sdk_mocks.Mocks):
    """What a program registered, and the answers it was given."""

    def __init__(self) -> None:
        self.resources: dict[str, Registered] = {}
        self.faults: list[str] = []
        self.invoked: list[str] = []
        self.lock = Lock()

    def call(self, args: sdk_mocks.MockCallArgs) -> Any:
        self.invoked.append(args.token)
        return dict(FUNCTIONS[args.token])

    def new_resource(self, args: sdk_mocks.MockResourceArgs) -> tuple[str | None, dict[str, Any]]:
        inputs = reveal(args.inputs)
        with self.lock:
            self.faults += check_inputs(args.typ, inputs)
        state = dict(inputs)
        if pattern := ARN_KINDS.get(args.typ):
            state["arn"] = pattern.format(account=ACCOUNT, name=inputs.get("name", args.name))
            state.setdefault("name", args.name)
        if args.typ == "aws:sqs/queue:Queue":
            state["url"] = f"https://sqs.us-east-1.amazonaws.com/{ACCOUNT}/{inputs['name']}"
        if args.typ == "aws:ecr/repository:Repository":
            state["registryId"] = ACCOUNT
            state["repositoryUrl"] = f"{ACCOUNT}.dkr.ecr.us-east-1.amazonaws.com/{inputs['name']}"
        if args.typ == "docker-build:index:Image":
            state["digest"] = f"sha256:{'a' * 64}"
        if args.typ == "pulumi:pulumi:StackReference":
            return inputs["name"], {"name": inputs["name"], **OTHER_STACK}
        if args.typ == "eks:index:Cluster":
            return None, self._cluster(args.name, inputs)
        return (f"{args.name}-id" if args.custom else None), state

    def _cluster(self, name: str, inputs: dict[str, Any]) -> dict[str, Any]:
        urn = f"urn:pulumi:test::nodeless::eks:index:Cluster$aws:eks/cluster:Cluster::{name}-eksCluster"
        state = {
            "name": inputs["name"],
            "arn": f"arn:aws:eks:us-east-1:{ACCOUNT}:cluster/{inputs['name']}",
            "version": inputs.get("version", "1.36"),
            "endpoint": "https://ABC.gr7.us-east-1.eks.amazonaws.com",
            "certificateAuthority": {"data": "Q0E="},
            "vpcConfig": {"clusterSecurityGroupId": "sg-cluster", "vpcId": inputs["vpcId"], "subnetIds": []},
        }
        self.monitor.resources[urn] = sdk_mocks.MockMonitor.ResourceRegistration(urn, inputs["name"], state)
        reference = {SECRET: SIGNATURE_RESOURCE, "urn": urn, "id": inputs["name"], "packageVersion": ""}
        return {
            **inputs,
            "eksCluster": reference,
            "oidcProviderArn": f"arn:aws:iam::{ACCOUNT}:oidc-provider/{ISSUER}",
            "oidcProviderUrl": f"https://{ISSUER}",
            "oidcIssuer": ISSUER,
        }

    def attach(self, monitor: "RecordingMonitor") -> None:
        self.monitor = monitor

    def of(self, token: str) -> list[Registered]:
        """Resources of one token, in order of their names."""
        found = [resource for resource in self.resources.values() if resource.token == token]
        return sorted(found, key=lambda each: each.name)

    def one(self, token: str, object_name: str = "") -> Registered:
        """The only resource of a token, or the only one whose object has this name."""
        found = [
            each
            for each in self.of(token)
            if not object_name or each.inputs.get("metadata", {}).get("name", each.name) == object_name
        ]
        assert len(found) == 1, f"{len(found)} resources of {token} {object_name}"
        return found[0]

    def everything_behind(self, resource: Registered) -> set[str]:
        """URNs of all resources that must stand while this one does."""
        seen: set[str] = set()
        waiting = [resource.urn]
        while waiting:
            urn = waiting.pop()
            if urn in seen:
                continue
            seen.add(urn)
            if (found := self.resources.get(urn)) is not None:
                provider = found.provider.rpartition("::")[0]
                waiting.extend([*found.dependencies, *([provider] if provider else [])])
        return seen - {resource.urn}

    def custom(self) -> Iterator[Registered]:
        return (resource for resource in self.resources.values() if resource.custom)


class RecordingMonitor(sdk_mocks.MockMonitor):
    """The SDK's mock monitor, keeping what it hides from `new_resource`."""

    def RegisterResource(self, request: Any) -> Any:  # noqa: N802 - the SDK's name
        answer = super().RegisterResource(request)
        if request.type == "pulumi:pulumi:Stack":
            return answer
        inputs = reveal(sdk_mocks.rpc.deserialize_properties(request.object))
        dependencies = set(request.dependencies)
        for property_dependency in request.propertyDependencies.values():
            dependencies |= set(property_dependency.urns)
        recorder: Recorder = self.mocks
        with recorder.lock:
            assert answer.urn not in recorder.resources, f"registered twice: {answer.urn}"
            recorder.resources[answer.urn] = Registered(
                token=request.type,
                name=request.name,
                urn=answer.urn,
                inputs=inputs,
                custom=request.custom,
                parent=request.parent,
                provider=request.provider,
                dependencies=dependencies,
                delete_timeout=request.customTimeouts.delete,
                delete_before_replace=request.deleteBeforeReplace,
                protect=request.protect,
                retained=request.retainOnDelete,
            )
        return answer


def ensure_event_loop() -> None:
    """The SDK takes the thread's current event loop; tests of other rooms leave none, or a closed one."""
    try:
        usable = not asyncio.get_event_loop_policy().get_event_loop().is_closed()
    except RuntimeError:
        usable = False
    if not usable:
        asyncio.set_event_loop(asyncio.new_event_loop())


def run(
    program: Callable[[], Any],
    *,
    config: Mapping[str, str] | None = None,
    recorder: Recorder | None = None,
    preview: bool = False,
    project: str = "nodeless",
) -> Recorder:
    """Runs a program to its end and returns what it registered; its errors are raised."""
    ensure_event_loop()
    recorder = recorder or Recorder()
    monitor = RecordingMonitor(recorder)
    recorder.attach(monitor)
    pulumi.runtime.set_mocks(recorder, project, "test", preview, monitor=monitor)
    pulumi.runtime.set_all_config(dict(config or {}))
    sdk_mocks.SETTINGS.rpc_manager.clear()
    sdk_mocks.SETTINGS.outputs.clear()

    async def done() -> None:
        program()

    _sync_await(run_pulumi_func(lambda: _sync_await(done())))
    return recorder

"""What the AWS provider costs: calls and time of a cold start, calls of a thousand launches, its memory.

`python -m bench.cloud_provider` prints the figures, and `missed:` below one that is beyond its bound;
`make bench` does so too. All is measured on a local
AWS of its own, whose time is in the figures, but for the first time that it renders its long lists; calls
count every page and every retry.
"""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import tempfile
import time
import tracemalloc
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import structlog

from localenv.aws import LocalAws
from nodeless.cloudprovider.aws import AwsProvider, AwsSettings
from nodeless.launch.claims import labels_of
from nodeless.launch.groups import group_claims
from nodeless.model.labels import ARCH, CAPACITY_TYPE, INSTANCE_TYPE, ON_DEMAND, SPOT
from nodeless.model.nodes import NodeClaim
from nodeless.model.pools import AWS_NODE_TEMPLATE, PROVISIONER, NodeClass, Pool, Reference, SelectorTerm
from nodeless.model.requirements import Requirement, Requirements

LAUNCHES = 1000
#: Seconds that a cold start may take on two cores.
MOST_SECONDS = 3.0
_CLUSTER = "bench"
_ZONES = "abcdef"
_MIB = 2**20
_DISCOVERY = (SelectorTerm(tags=(("karpenter.sh/discovery", (_CLUSTER,)),)),)
_CLASS = NodeClass(Reference(AWS_NODE_TEMPLATE, "bench"), subnets=_DISCOVERY, security_groups=_DISCOVERY)
_SETTINGS = AwsSettings(
    cluster_name=_CLUSTER,
    cluster_endpoint="https://bench.example",
    default_instance_profile="nodes",
    certificate_authority="Q0E=",
    kubernetes_version="1.29",
)


def run() -> str:
    """Measure, and say what was found."""
    with tempfile.TemporaryDirectory() as folder, LocalAws.start(Path(folder)) as aws, _found_by_boto3(aws):
        _network(aws)
        return asyncio.run(_measure(aws))


async def _measure(aws: LocalAws) -> str:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    everything = _pool("everything")
    await _render_catalog(everything)
    provider = AwsProvider(_SETTINGS)
    try:
        aws.forget_calls()
        began = time.perf_counter()
        await provider.start()
        await provider.warm(everything, _CLASS)
        started, calls = time.perf_counter() - began, _calls(aws)
        lines = told_start(started, calls)
        aws.forget_calls()
        began = time.perf_counter()
        made = await _launch(provider, _pool("large", "m5.large"))
        lines.append(
            f"{made} launches of one shape: {time.perf_counter() - began:.1f} s, {_listed_calls(_calls(aws))}"
        )
    finally:
        await provider.close()
    return "\n".join([*lines, await _memory(everything)])


def told_start(seconds: float, calls: Counter[str]) -> list[str]:
    """What a cold start took, and that it took too long if it did."""
    taken = (
        f"cold start of the provider: {seconds:.1f} s, {sum(calls.values())} calls ({_listed_calls(calls)})"
    )
    if seconds <= MOST_SECONDS:
        return [taken]
    return [taken, f"    missed: takes {seconds:.1f} s, not {MOST_SECONDS:g}"]


async def _render_catalog(pool: Pool) -> None:
    provider = AwsProvider(_SETTINGS)
    try:
        await provider.catalog(pool, _CLASS)
    finally:
        await provider.close()


async def _launch(provider: AwsProvider, pool: Pool) -> int:
    claim = NodeClaim(
        "large",
        pool.reference,
        _CLASS.reference,
        requirements=pool.requirements,
        labels=labels_of(pool.requirements, pool),
    )
    claims = group_claims(
        [
            NodeClaim(f"large-{n}", claim.pool, claim.node_class, claim.requirements, labels=claim.labels)
            for n in range(LAUNCHES)
        ]
    )
    made = await asyncio.gather(*(provider.launch(claim, pool, _CLASS, first=True) for claim in claims))
    return len({each.id for each in made})


async def _memory(pool: Pool) -> str:
    """What a provider keeps for a pool of every type: facts, prices, catalog."""
    gc.collect()
    tracemalloc.start()
    provider = AwsProvider(_SETTINGS)
    try:
        await provider.start()
        empty, _ = tracemalloc.get_traced_memory()
        types = await provider.catalog(pool, _CLASS)
        gc.collect()
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        await provider.close()
    offerings = sum(len(type_.offerings) for type_ in types)
    return (
        f"catalog of {len(types)} types in {len(_ZONES)} zones, {offerings} offerings: "
        f"{(held - empty) / _MIB:.0f} MiB, with the clients that fetched it"
    )


def _pool(name: str, *types: str) -> Pool:
    requirements = [
        Requirement.of(ARCH, "In", ["amd64", "arm64"]),
        Requirement.of(CAPACITY_TYPE, "In", [ON_DEMAND] if types else [SPOT, ON_DEMAND]),
        *([Requirement.of(INSTANCE_TYPE, "In", types)] if types else []),
    ]
    return Pool(Reference(PROVISIONER, name), _CLASS.reference, requirements=Requirements(requirements))


def _calls(aws: LocalAws) -> Counter[str]:
    return Counter(str(call["action"]) for call in aws.calls())


def _listed_calls(calls: Counter[str]) -> str:
    return ", ".join(f"{count} {action}" for action, count in sorted(calls.items()))


def _network(aws: LocalAws) -> None:
    """Tagged subnets in six zones, a security group and an instance profile."""
    ec2, iam = aws.client("ec2"), aws.client("iam")
    tags = [{"Key": "karpenter.sh/discovery", "Value": _CLUSTER}]
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    for number, zone in enumerate(_ZONES):
        ec2.create_subnet(
            VpcId=vpc,
            CidrBlock=f"10.0.{number * 16}.0/20",
            AvailabilityZone=f"{aws.region}{zone}",
            TagSpecifications=[{"ResourceType": "subnet", "Tags": tags}],
        )
    ec2.create_security_group(
        GroupName="nodes",
        Description="nodes",
        VpcId=vpc,
        TagSpecifications=[{"ResourceType": "security-group", "Tags": tags}],
    )
    iam.create_instance_profile(InstanceProfileName="nodes")


@contextmanager
def _found_by_boto3(aws: LocalAws) -> Iterator[None]:
    """The environment with which boto3's ordinary chain finds the local AWS."""
    before = dict(os.environ)
    os.environ.update(aws.environment())
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


if __name__ == "__main__":
    sys.stdout.write(run() + "\n")

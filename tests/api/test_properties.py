"""What holds for every input, not only for those we thought of."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as some

from nodeless.api.defaulting import default
from nodeless.api.errors import InvalidObject
from nodeless.api.kinds import AWS_NODE_TEMPLATE, NODE_CLAIM, PROVISIONER
from nodeless.api.reading import read_claim, read_node_class, read_pool
from nodeless.api.times import format_time, parse_time
from nodeless.api.validation import validate, warnings
from nodeless.api.writing import claim_status, write_claim
from nodeless.model.nodes import Condition, NodeClaim
from nodeless.model.pools import Reference
from nodeless.model.requirements import Requirement, Requirements
from nodeless.model.taints import Taint
from tests.api.manifests import article, article_corrected, inline, node_template, provisioner, requirement

#: Other tests share the machine: how long one example takes says nothing.
UNHURRIED = settings(deadline=None)

JSON = some.recursive(
    some.none() | some.booleans() | some.integers() | some.floats(allow_nan=False) | some.text(max_size=8),
    lambda inner: some.lists(inner, max_size=4) | some.dictionaries(some.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
FULL = provisioner(
    labels={"team": "a"},
    taints=[{"key": "team", "effect": "NoSchedule"}],
    requirements=[requirement("team", "In", "a"), requirement("cpu", "Gt", "3")],
    kubeletConfiguration={
        "maxPods": 3,
        "evictionHard": {"memory.available": "5%"},
        "evictionSoft": {"memory.available": "6%"},
        "evictionSoftGracePeriod": {"memory.available": "1m"},
        "kubeReserved": {"cpu": "1"},
        "imageGCHighThresholdPercent": 80,
    },
    limits={"resources": {"cpu": "10"}},
    consolidation={"enabled": False},
)
TEMPLATE = node_template(
    amiSelector={"aws-ids": "ami-1"},
    tags={"a": "b"},
    metadataOptions={"httpTokens": "required"},
    blockDeviceMappings=[{"deviceName": "/dev/xvda", "ebs": {"volumeSize": "20Gi"}}],
)
READERS = {PROVISIONER: read_pool, AWS_NODE_TEMPLATE: read_node_class, NODE_CLAIM: read_claim}
VALID = [FULL, TEMPLATE, article_corrected(), inline()]


def places(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """The path of every value in a document."""
    members: list[tuple[str | int, Any]] = []
    if isinstance(value, dict):
        members = list(value.items())
    elif isinstance(value, list):
        members = list(enumerate(value))
    return [path, *(found for key, inner in members for found in places(inner, (*path, key)))]


@some.composite
def damaged(draw: some.DrawFn) -> Any:
    """A valid manifest in which one or two values have become something else."""
    manifest = deepcopy(draw(some.sampled_from(VALID)))
    for _ in range(draw(some.integers(1, 2))):
        path = draw(some.sampled_from(places(manifest)[1:]))
        holder = manifest
        for key in path[:-1]:
            holder = holder[key]
        holder[path[-1]] = draw(JSON)
        if not isinstance(manifest.get("spec"), dict):
            break
    return manifest


@UNHURRIED
@given(JSON | damaged())
def test_anything_at_all_can_be_validated(document: Any) -> None:
    errors = validate(document)
    faults = warnings(document)

    assert all(error.path and error.message and str(error) for error in errors)
    assert all(isinstance(fault, str) for fault in faults)


@UNHURRIED
@given(damaged())
def test_what_validation_accepts_can_be_read_and_nothing_else(document: dict[str, Any]) -> None:
    for kind, read in READERS.items():
        if kind.describes(document):
            try:
                read(document)
            except InvalidObject as error:
                assert error.errors
                assert validate(document)
            else:
                assert not [fault for fault in validate(document) if not fault.warning]


@UNHURRIED
@given(damaged() | some.sampled_from([*VALID, article()]))
def test_defaults_fill_in_once(document: Any) -> None:
    before = json.dumps(document)
    once = default(document)

    assert default(once) == once
    assert json.dumps(document) == before


NAMES = some.text(some.sampled_from("abcxyz019"), min_size=1, max_size=8)
AMOUNTS = some.dictionaries(some.sampled_from(["cpu", "memory", "pods"]), some.integers(0, 2**50), max_size=3)
TAINTS = some.builds(Taint, NAMES, some.sampled_from(["NoSchedule", "NoExecute"]), NAMES | some.just(""))
REQUIREMENTS = some.one_of(
    some.builds(Requirement.of, NAMES, some.sampled_from(["In", "NotIn"]), some.lists(NAMES, min_size=1)),
    some.builds(Requirement.of, NAMES, some.sampled_from(["Exists", "DoesNotExist"])),
    some.builds(
        Requirement.of,
        NAMES,
        some.sampled_from(["Gt", "Lt"]),
        some.lists(some.integers(0, 500).map(str), min_size=1, max_size=1),
        some.none() | some.integers(1, 50),
    ),
)
CONDITIONS = some.builds(
    Condition,
    NAMES,
    some.sampled_from(["True", "False", "Unknown"]),
    NAMES,
    some.text(max_size=20),
    some.integers(0, 2**31).map(float),
)
POOL = Reference("Provisioner", "default", "u-1")
CLAIMS = some.builds(
    NodeClaim,
    name=NAMES,
    pool=some.just(POOL),
    node_class=some.sampled_from([POOL, Reference("AWSNodeTemplate", "x"), Reference("EC2NodeClass", "x")]),
    requirements=some.builds(Requirements, some.lists(REQUIREMENTS, max_size=6)),
    requests=AMOUNTS,
    labels=some.dictionaries(NAMES, NAMES).map(
        lambda labels: {**labels, "karpenter.sh/provisioner-name": "default"}
    ),
    annotations=some.dictionaries(NAMES, some.text(max_size=8)),
    taints=some.lists(TAINTS, max_size=3).map(tuple),
    startup_taints=some.lists(TAINTS, max_size=3).map(tuple),
    finalizers=some.just(("karpenter.sh/termination",)),
    conditions=some.lists(CONDITIONS, max_size=3).map(tuple),
    provider_id=NAMES | some.just(""),
    node_name=NAMES | some.just(""),
    image_id=NAMES | some.just(""),
    capacity=AMOUNTS,
    allocatable=AMOUNTS,
    expire_after=some.none() | some.integers(0, 10**7),
)


@UNHURRIED
@given(CLAIMS)
def test_a_claim_survives_writing_and_reading(claim: NodeClaim) -> None:
    manifest = json.loads(json.dumps({**write_claim(claim), "status": claim_status(claim)}))

    read = read_claim(manifest)

    assert read == claim
    assert read.pool.uid == claim.pool.uid


@UNHURRIED
@given(some.integers(0, 2**33))
def test_times_survive_writing_and_reading(seconds: int) -> None:
    assert parse_time(format_time(seconds)) == seconds

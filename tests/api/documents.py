"""Random objects out of the OpenAPI schemas of our kinds: some legal, most nearly so.

A valid manifest gets one to three of its members made anew from the schema, and now and then something that
the schema does not know. So an example comes past the first fault and reaches the rules behind it.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from hypothesis import strategies as some

from nodeless.api.crds import schema
from nodeless.api.kinds import AWS_NODE_TEMPLATE, EC2_NODE_CLASS, NODE_POOL, PROVISIONER, Kind
from nodeless.model.labels import WELL_KNOWN
from tests.api.manifests import (
    SELECTOR,
    article_corrected,
    ec2_node_class,
    inline,
    node_pool,
    node_template,
    provisioner,
    requirement,
)

Schema = dict[str, Any]
#: Texts that mean something to some rule, or nearly.
WORDS = [
    *("", "a", "team", "x y", " a", "a/b", "example.com/team", "A_b.c", "-a", "a" * 64, "ä", "a\n"),
    *("1", "0", "-1", "007", "+3", "3.5", "99999999999999999999", "5%", "101%", "x%", "1e3", "1e400", "1_0%"),
    *("100Mi", "20Gi", "500m", "1G", "65T", "-1Gi", ".5", "1.", "٣", "0x1", "nan%", "inf%", " 5%"),
    *("30s", "1h30m", "720h", "Never", "90s", "1h30m0s"),
    *("@daily", "@often", "* * * * *", "0 9 * * mon-fri", "61 * * * *"),
    *("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte", "in", "Equals"),
    *("NoSchedule", "NoExecute", "PreferNoSchedule", "NoSchedul"),
    *("cpu", "memory", "ephemeral-storage", "pid", "nodes", "gpu"),
    *("memory.available", "nodefs.available", "pid.available", "imagefs.inodesFree"),
    *("aws-ids", "aws::ids", "aws::name", "aws::owners"),
    *("subnet-1", "sg-1", "ami-1", "subnet-1,subnet-2", "xsubnet-1!"),
    *("AL2", "AL2023", "Bottlerocket", "Ubuntu", "Custom"),
    *("al2@latest", "al2023@v1", "windows2022@latest", "windows2022@v1"),
    *("enabled", "disabled", "required", "optional", "gp3", "gp9", "/dev/xvda", "snap-1"),
    *("extensions.karpenter.sh/v1alpha1", "AWS", "karpenter.k8s.aws", "EC2NodeClass"),
    *("spot", "on-demand", "reserved", "2026-01-01T00:00:00Z"),
    *("karpenter.sh/x", "karpenter.sh/nodepool", "karpenter.sh/provisioner-name", "kubernetes.io/hostname"),
    *("foo.kubernetes.io/x", "node.kubernetes.io/x", "karpenter.k8s.aws/x", "beta.kubernetes.io/arch"),
    *("kubernetes.io/cluster/x", "eks:eks-cluster-name", "karpenter.k8s.aws/ec2nodeclass"),
    *sorted(WELL_KNOWN)[:8],
]
_WORD = some.sampled_from(WORDS) | some.text(max_size=6)
_NUMBER = some.sampled_from(
    [-1, 0, 1, 2, 30, 50, 51, 64, 65, 80, 100, 101, 300, 432000, 2**31, 2**53, 2**63 - 1]
)
#: Whole ones as manifests are read, and as the API server reads `2.0`: as whole numbers.
_FLOAT = some.floats(-1e6, 1e6).map(lambda x: round(x, 2)).map(lambda x: int(x) if x.is_integer() else x)
_ANYTHING = some.recursive(
    some.none() | some.booleans() | _NUMBER | _FLOAT | _WORD,
    lambda inner: some.lists(inner, max_size=2) | some.dictionaries(_WORD, inner, max_size=2),
    max_leaves=4,
)


def conforming(wanted: Schema) -> some.SearchStrategy[Any]:
    """Values of the right form; rules beyond the form may break."""
    if wanted.get("x-kubernetes-int-or-string"):
        return some.sampled_from([0, 1, 100, "1", "500m", "2Gi", "20Gi", "-1", "1e3", "100M", "65T"])
    match wanted["type"]:
        case "object":
            return _object(wanted)
        case "array":
            most = min(wanted.get("maxItems", 3), 3)
            return some.lists(conforming(wanted["items"]), max_size=most)
        case "string":
            return _string(wanted)
        case "integer":
            return some.integers(wanted.get("minimum", -5), wanted.get("maximum", 200)) | _NUMBER
        case "boolean":
            return some.booleans()
    raise AssertionError(wanted)


def _object(wanted: Schema) -> some.SearchStrategy[Any]:
    if "properties" in wanted:
        members = {name: conforming(inner) for name, inner in wanted["properties"].items()}
        required = {name: members.pop(name) for name in wanted.get("required", ())}
        return some.fixed_dictionaries(required, optional=members).flatmap(_thinned(set(required)))
    if "additionalProperties" in wanted:
        return some.dictionaries(_WORD, conforming(wanted["additionalProperties"]), max_size=3)
    return some.dictionaries(_WORD, _ANYTHING, max_size=3)


def _thinned(required: set[str]) -> Any:
    """Few members at once, so that faults seldom hide one another."""

    def thin(whole: dict[str, Any]) -> some.SearchStrategy[dict[str, Any]]:
        optional = sorted(set(whole) - required)
        kept = some.lists(some.sampled_from(optional), unique=True, max_size=3) if optional else some.just([])
        return kept.map(
            lambda names: {name: whole[name] for name in whole if name in required or name in names}
        )

    return thin


def _string(wanted: Schema) -> some.SearchStrategy[str]:
    choices: list[some.SearchStrategy[str]] = [_WORD]
    if "enum" in wanted:
        choices += [some.sampled_from(wanted["enum"])] * 3
    if "pattern" in wanted:
        choices += [some.from_regex(wanted["pattern"], fullmatch=True, alphabet=_ASCII)] * 2
    return some.one_of(choices)


_ASCII = some.characters(min_codepoint=32, max_codepoint=126)
_BASES: dict[Kind, list[dict[str, Any]]] = {
    PROVISIONER: [
        provisioner(
            labels={"team": "a"},
            taints=[{"key": "team", "effect": "NoSchedule"}],
            requirements=[requirement("team", "In", "a")],
            kubeletConfiguration={"maxPods": 3, "evictionHard": {"memory.available": "5%"}},
            limits={"resources": {"cpu": "10"}},
        ),
        inline(tags={"a": "b"}),
        article_corrected(),
        provisioner(),
    ],
    AWS_NODE_TEMPLATE: [
        node_template(
            amiSelector={"aws-ids": "ami-1"},
            metadataOptions={"httpTokens": "required"},
            blockDeviceMappings=[{"deviceName": "/dev/xvda", "ebs": {"volumeSize": "20Gi"}}],
        ),
        node_template(launchTemplate="mine", securityGroupSelector=None),
    ],
    NODE_POOL: [
        node_pool(
            template={
                "requirements": [requirement("team", "In", "a")],
                "taints": [{"key": "team", "effect": "NoSchedule"}],
            },
            metadata={"labels": {"team": "a"}},
            disruption={"budgets": [{"nodes": "1", "schedule": "@daily", "duration": "1h"}]},
            limits={"cpu": "10"},
        ),
        node_pool(replicas=1),
    ],
    EC2_NODE_CLASS: [
        ec2_node_class(
            kubelet={"maxPods": 3, "evictionHard": {"memory.available": "5%"}, "kubeReserved": {"cpu": "1"}},
            blockDeviceMappings=[{"deviceName": "/dev/xvda", "ebs": {"volumeSize": "20Gi"}}],
            tags={"a": "b"},
        ),
        ec2_node_class(
            amiFamily="AL2",
            amiSelectorTerms=[{"id": "ami-1"}],
            subnetSelectorTerms=[{"tags": SELECTOR}, {"id": "subnet-1"}],
        ),
    ],
}
_NAMES = some.sampled_from(["default", "a.b", "1a", "Default", "a" * 64, "a-", ""]) | some.just("default")
_METADATA = some.fixed_dictionaries(
    {"name": _NAMES},
    optional={
        "labels": some.dictionaries(_WORD, _WORD, max_size=2),
        "annotations": some.dictionaries(_WORD, _WORD, max_size=2),
        "finalizers": some.lists(_WORD, max_size=2),
    },
)


@some.composite
def documents(draw: some.DrawFn) -> dict[str, Any]:
    """An object of one of the four kinds that users write."""
    kind = draw(some.sampled_from(list(_BASES)))
    manifest = deepcopy(draw(some.sampled_from(_BASES[kind])))
    wanted = schema(kind)["properties"]["spec"]
    for _ in range(draw(some.integers(1, 3))):
        _remake(draw, manifest["spec"], wanted)
    chance = draw(some.integers(0, 9))
    if chance == 0:
        manifest["metadata"] = draw(_METADATA)
    elif chance == 1:
        _damage(draw, manifest)
    return manifest


def _remake(draw: some.DrawFn, holder: Any, wanted: Schema) -> None:
    """Make one member anew, somewhere below the holder."""
    properties = wanted.get("properties")
    while properties and isinstance(holder, dict):
        name = draw(some.sampled_from(sorted(properties)))
        inner = properties[name]
        if isinstance(holder.get(name), dict) and inner.get("properties") and draw(some.booleans()):
            holder, properties = holder[name], inner["properties"]
            continue
        holder[name] = draw(conforming(inner))
        return


def _damage(draw: some.DrawFn, manifest: dict[str, Any]) -> None:
    """Anything at all, anywhere in the spec."""
    holder: Any = manifest
    key: Any = "spec"
    while isinstance(holder[key], dict | list) and holder[key] and draw(some.integers(0, 4)):
        holder = holder[key]
        key = draw(
            some.sampled_from(sorted(holder) if isinstance(holder, dict) else list(range(len(holder))))
        )
    if isinstance(holder, dict) and draw(some.booleans()):
        key = draw(_WORD)
    holder[key] = draw(_ANYTHING)

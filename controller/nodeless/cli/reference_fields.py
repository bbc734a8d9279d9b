"""The reference of every field of every kind, out of the schemas of the custom resource definitions."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from nodeless.api.crds import crd_files
from nodeless.cli.reference_text import code, listed, page, plain

_Schema = Mapping[str, Any]
#: What all objects of Kubernetes have.
_COMMON = frozenset({"apiVersion", "kind", "metadata"})
#: A manifest of each kind to begin with; the tests hold that `nodeless validate` accepts it.
_EXAMPLES = {
    "Provisioner": """apiVersion: karpenter.sh/v1alpha5
kind: Provisioner
metadata:
  name: default
spec:
  requirements:
    - key: karpenter.sh/capacity-type
      operator: In
      values: [spot, on-demand]
  limits:
    resources:
      cpu: "1000"
  consolidation:
    enabled: true
  providerRef:
    name: default""",
    "AWSNodeTemplate": """apiVersion: karpenter.k8s.aws/v1alpha1
kind: AWSNodeTemplate
metadata:
  name: default
spec:
  amiFamily: Bottlerocket
  instanceProfile: KarpenterNodeInstanceProfile-demo
  subnetSelector:
    karpenter.sh/discovery: demo
  securityGroupSelector:
    karpenter.sh/discovery: demo""",
    "NodePool": """apiVersion: karpenter.sh/v1
kind: NodePool
metadata:
  name: default
spec:
  template:
    spec:
      nodeClassRef:
        group: karpenter.k8s.aws
        kind: EC2NodeClass
        name: default
      requirements:
        - key: karpenter.sh/capacity-type
          operator: In
          values: [spot, on-demand]
  limits:
    cpu: "1000"
  disruption:
    consolidationPolicy: WhenEmptyOrUnderutilized
    consolidateAfter: 1m""",
    "EC2NodeClass": """apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata:
  name: default
spec:
  role: KarpenterNodeRole-demo
  amiSelectorTerms:
    - alias: al2023@latest
  subnetSelectorTerms:
    - tags: {karpenter.sh/discovery: demo}
  securityGroupSelectorTerms:
    - tags: {karpenter.sh/discovery: demo}""",
    "NodeClaim": """apiVersion: karpenter.sh/v1
kind: NodeClaim
metadata:
  generateName: one-node-
spec:
  nodeClassRef:
    group: karpenter.k8s.aws
    kind: EC2NodeClass
    name: default
  requirements:
    - key: node.kubernetes.io/instance-type
      operator: In
      values: [m7i.large, m6i.large]
  resources:
    requests:
      cpu: "1\"""",
    "NodeOverlay": """apiVersion: karpenter.sh/v1alpha1
kind: NodeOverlay
metadata:
  name: time-sliced-gpus
spec:
  requirements:
    - key: karpenter.k8s.aws/instance-gpu-count
      operator: In
      values: ["1"]
  capacity:
    nvidia.com/gpu: "4\"""",
}
_BOUNDS = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "minProperties": "at least {} members",
    "maxProperties": "at most {} members",
    "format": "format `{}`",
}
_INTRODUCTIONS = {
    "NodeOverlay": "A NodeOverlay changes what nodeless takes for price or capacity of instance types. "
    "It is read where the gate `NodeOverlay` is on ([overlays](../guides/node-overlays.md)).",
    "NodeClaim": "nodeless makes a NodeClaim for each node that it launches. Read it to see how far a node "
    "is. You can create one yourself for a single node that belongs to no pool.",
}


def field_pages() -> dict[str, str]:
    """The pages by file name, `api/KIND.md`, and the list of them."""
    definitions = [yaml.safe_load(text) for text in crd_files().values()]
    made = {
        f"api/{definition['spec']['names']['kind'].lower()}.md": _page(definition)
        for definition in definitions
    }
    lines = []
    for definition in definitions:
        kind, group = definition["spec"]["names"]["kind"], definition["spec"]["group"]
        (version,) = definition["spec"]["versions"]
        what = version["schema"]["openAPIV3Schema"]["description"]
        lines.append(f"- [{kind}]({kind.lower()}.md), `{group}/{version['name']}`: {plain(what)}")
    introduction = (
        "Every field of every kind, made from the schemas that the API server checks with. "
        "`kubectl explain KIND.spec` shows the same in a cluster."
    )
    return made | {"api/README.md": page("Kinds and fields", introduction, "\n".join(lines))}


def _page(definition: _Schema) -> str:
    kind, group = definition["spec"]["names"]["kind"], definition["spec"]["group"]
    (version,) = definition["spec"]["versions"]
    schema = version["schema"]["openAPIV3Schema"]
    parts = [f"`{group}/{version['name']}`. {plain(schema['description'])}", _INTRODUCTIONS.get(kind, "")]
    parts += [f"```yaml\n{_EXAMPLES[kind]}\n```"]
    parts += [
        part
        for name, below in sorted(schema["properties"].items())
        if name not in _COMMON
        for part in _fields(name, below)
    ]
    return page(kind, *filter(None, parts))


def _fields(path: str, schema: _Schema, *, required: bool = False) -> Iterator[str]:
    """A field and all below it: heading, what it may hold, what it means, the rules."""
    level = "##" if "." not in path else "###"
    yield f"{level} `{path}`"
    yield _facts(schema, required=required)
    if schema.get("description"):
        yield plain(schema["description"])
    rules = [*_rules(schema)]
    if rules:
        yield "\n".join(f"- {rule}" for rule in rules)
    yield from _below(path, schema)


def _below(path: str, schema: _Schema) -> Iterator[str]:
    needed = schema.get("required", ())
    for name, below in sorted(
        schema.get("properties", {}).items(), key=lambda pair: (pair[0] not in needed, pair[0])
    ):
        yield from _fields(f"{path}.{name}", below, required=name in needed)
    if "items" in schema:
        yield from _below(f"{path}[]", schema["items"])
    if isinstance(schema.get("additionalProperties"), Mapping):
        yield from _below(f"{path}.*", schema["additionalProperties"])


def _facts(schema: _Schema, *, required: bool) -> str:
    facts = [_type(schema)]
    if required:
        facts.append("required")
    if "default" in schema:
        facts.append(f"default {code(json.dumps(schema['default']))}")
    for shape in (schema, schema.get("items", {}), schema.get("additionalProperties") or {}):
        if isinstance(shape, Mapping) and "enum" in shape:
            facts.append(f"one of {listed(str(value) for value in shape['enum'])}")
    for key, plural in _BOUNDS.items():
        if key in schema:
            words = plural.removesuffix("s") if schema[key] == 1 else plural
            facts.append(words.format(schema[key]))
    if "pattern" in schema:
        facts.append(_pattern(schema["pattern"]))
    return "*" + facts[0] + "*" + "".join(f"; {fact}" for fact in facts[1:]) + "."


def _pattern(pattern: str) -> str:
    if "](" in pattern:
        # The long one of Kubernetes, which would also be taken for a link.
        return "a qualified name (`team`, `example.com/team`)"
    return f"matches ``{pattern}``" if "`" in pattern else f"matches `{pattern}`"


def _type(schema: _Schema) -> str:
    if schema.get("x-kubernetes-int-or-string"):
        return "number or string"
    if "items" in schema:
        return f"list of {_type(schema['items'])}s"
    if isinstance(schema.get("additionalProperties"), Mapping):
        return f"map of string to {_type(schema['additionalProperties'])}"
    kind: str = schema.get("type", "any value")
    return kind


def _rules(schema: _Schema) -> Iterator[str]:
    """What CEL rules of the field, or of its items or members, refuse."""
    seen = set()
    members = schema.get("additionalProperties")
    for shape in (schema, schema.get("items", {}), members if isinstance(members, Mapping) else {}):
        for rule in shape.get("x-kubernetes-validations", ()):
            message = rule.get("message", "")
            if message and message not in seen:
                seen.add(message)
                yield f"Refused with: {plain(message)}"

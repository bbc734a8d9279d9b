"""From generation v1 to v1alpha5, as far as it can say it. Everything else is listed as a loss."""

from collections.abc import Iterable, Mapping
from copy import deepcopy
from typing import Any

from nodeless.api.conversion import Conversion
from nodeless.api.conversion_accelerators import accelerator_losses
from nodeless.api.defaulting import missing_requirements
from nodeless.api.drop_nulls import drop_nulls
from nodeless.api.ec2_node_class import METADATA_DEFAULT_V1
from nodeless.api.errors import ABSENT, FieldError, at
from nodeless.api.kinds import AWS_NODE_TEMPLATE, EC2_NODE_CLASS, NODE_POOL, PROVISIONER
from nodeless.api.rule_codes import RuleCode
from nodeless.api.times import parse_life_span
from nodeless.api.validation import subject_of
from nodeless.model.labels import INSTANCE_CATEGORY, INSTANCE_GENERATION, INSTANCE_TYPE

_METADATA = ("name", "generateName", "labels", "annotations", "finalizers")
_FAMILY_OF_ALIAS = {"al2@latest": "AL2", "bottlerocket@latest": "Bottlerocket"}
_FAMILIES = ("AL2", "Bottlerocket", "Custom")
_SAME = ("userData", "tags", "detailedMonitoring", "context", "instanceProfile")
_CONVERTED = {
    *_SAME,
    "metadataOptions",
    "subnetSelectorTerms",
    "securityGroupSelectorTerms",
    "amiSelectorTerms",
    "amiFamily",
    "kubelet",
    "blockDeviceMappings",
}
_TYPE_DEFAULTS = (INSTANCE_CATEGORY, INSTANCE_GENERATION)
_EXPRESSED = "cannot be said in v1alpha5"


def convert_to_v1alpha5(manifests: Iterable[Mapping[str, Any]]) -> Conversion:
    """Provisioners and AWSNodeTemplates that mean what the given NodePools and EC2NodeClasses mean.

    Args:
        manifests: Valid objects; other kinds are not looked at.
    """
    result, given = Conversion(), [drop_nulls(manifest) for manifest in manifests]
    kubelets: dict[str, Any] = {}
    for manifest in given:
        if EC2_NODE_CLASS.describes(manifest):
            spec = manifest["spec"]
            kubelets[manifest["metadata"].get("name", "")] = spec.get("kubelet") or {}
            losses: list[FieldError] = []
            converted = _manifest(AWS_NODE_TEMPLATE, manifest, _template_spec(spec, losses))
            result.add(subject_of(manifest), converted, losses)
    for manifest in given:
        if NODE_POOL.describes(manifest):
            name = manifest["spec"]["template"]["spec"]["nodeClassRef"]["name"]
            losses = []
            converted = _provisioner_spec(manifest["spec"], losses)
            if kubelets.get(name):
                converted["kubeletConfiguration"] = deepcopy(kubelets[name])
            if name not in kubelets:
                text = (
                    f"EC2NodeClass/{name} is not among the given objects: its kubelet settings are not known"
                )
                result.notes.append((subject_of(manifest), text))
            result.add(subject_of(manifest), _manifest(PROVISIONER, manifest, converted), losses)
            if (expiry := converted.get("ttlSecondsUntilExpired")) is not None:
                result.changes.append((subject_of(manifest), _no_final_expiry(expiry)))
    return result


def _no_final_expiry(expiry: int) -> FieldError:
    return FieldError(
        "spec.template.spec.expireAfter",
        f"{expiry}s",
        "is not final in v1alpha5: a node is kept until its replacement is there, and pods may keep it",
        code=RuleCode.CHANGED_BY_CONVERSION,
    )


def _manifest(kind: Any, source: Mapping[str, Any], spec: dict[str, Any]) -> dict[str, Any]:
    metadata = {name: source["metadata"][name] for name in _METADATA if source["metadata"].get(name)}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, "spec": spec}


def _loss(path: str, value: Any, hint: str = "", message: str = _EXPRESSED) -> FieldError:
    return FieldError(path, value, message, hint, code=RuleCode.NOT_CONVERTIBLE)


def _provisioner_spec(spec: Mapping[str, Any], losses: list[FieldError]) -> dict[str, Any]:
    template = spec["template"]
    inner, metadata = template["spec"], template.get("metadata") or {}
    converted: dict[str, Any] = {"providerRef": {"name": inner["nodeClassRef"]["name"]}}
    for name in ("labels", "annotations"):
        if metadata.get(name):
            converted[name] = dict(metadata[name])
    requirements = []
    for position, requirement in enumerate(inner.get("requirements") or ()):
        where = at("spec.template.spec.requirements", position)
        kept = {name: value for name, value in requirement.items() if name != "minValues"}
        if requirement.get("minValues") is not None:
            losses.append(_loss(f"{where}.minValues", requirement["minValues"]))
        bound = {"Gte": ("Gt", -1), "Lte": ("Lt", 1)}.get(requirement["operator"])
        if bound is not None:
            number = int(requirement["values"][0]) + bound[1]
            if number < 0:
                kept = {"key": requirement["key"], "operator": "Exists"}
            else:
                kept |= {"operator": bound[0], "values": [str(number)]}
        requirements.append(kept)
    losses += accelerator_losses(inner.get("requirements") or (), "spec.template.spec.requirements")
    converted["requirements"] = requirements
    requirements += _without_defaults(converted)
    for name in ("taints", "startupTaints"):
        if inner.get(name):
            converted[name] = deepcopy(inner[name])
    expiry = parse_life_span(inner.get("expireAfter") or "720h")
    if expiry is not None:
        converted["ttlSecondsUntilExpired"] = expiry
    if inner.get("terminationGracePeriod") is not None:
        losses.append(_loss("spec.template.spec.terminationGracePeriod", inner["terminationGracePeriod"]))
    converted |= _disruption(spec.get("disruption") or {}, losses)
    if spec.get("limits") is not None:
        converted["limits"] = {"resources": dict(spec["limits"])}
    if spec.get("weight") is not None:
        converted["weight"] = spec["weight"]
    if spec.get("replicas") is not None:
        losses.append(_loss("spec.replicas", spec["replicas"]))
    return converted


def _without_defaults(spec: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Requirements that keep admission from narrowing a Provisioner; v1 has no such defaults."""
    provisioner = {"apiVersion": PROVISIONER.api_version, "kind": PROVISIONER.kind, "spec": spec}
    # Every type has a name, but not every one a category and a generation.
    keys = {
        INSTANCE_TYPE if requirement["key"] in _TYPE_DEFAULTS else requirement["key"]: None
        for requirement in missing_requirements(provisioner)
    }
    return [{"key": key, "operator": "Exists"} for key in keys]


def _disruption(disruption: Mapping[str, Any], losses: list[FieldError]) -> dict[str, Any]:
    after = parse_life_span(disruption.get("consolidateAfter") or "0s")
    budgets = disruption.get("budgets", [{"nodes": "10%"}]) or []
    for position, budget in enumerate(budgets):
        if budget.get("nodes") != "100%":
            hint = "v1alpha5 has no limit to disruption at the same time"
            losses.append(_loss(at("spec.disruption.budgets", position), budget.get("nodes"), hint))
    if after is None:
        return {}
    if disruption.get("consolidationPolicy") == "WhenEmpty":
        return {"ttlSecondsAfterEmpty": after}
    if disruption.get("consolidationPolicy") == "Balanced":
        hint = "v1alpha5 weighs no saving against the disturbance"
        losses.append(_loss("spec.disruption.consolidationPolicy", "Balanced", hint))
    if after:
        losses.append(_loss("spec.disruption.consolidateAfter", disruption["consolidateAfter"], "write 0s"))
    return {"consolidation": {"enabled": True}}


def _template_spec(spec: Mapping[str, Any], losses: list[FieldError]) -> dict[str, Any]:
    converted: dict[str, Any] = {}
    for name, prefix in (("subnet", "subnet"), ("securityGroup", "sg")):
        path = f"spec.{name}SelectorTerms"
        converted[f"{name}Selector"] = _selector(spec[f"{name}SelectorTerms"], path, prefix, losses)
    _images(spec, converted, losses)
    converted |= {name: deepcopy(spec[name]) for name in _SAME if spec.get(name) is not None}
    # Left out, these would be others in v1alpha5: two hops without any, EC2's own without some.
    converted["metadataOptions"] = {**METADATA_DEFAULT_V1, **(spec.get("metadataOptions") or {})}
    disks = []
    for position, mapping in enumerate(spec.get("blockDeviceMappings") or ()):
        where = at("spec.blockDeviceMappings", position)
        if mapping.get("rootVolume"):
            losses.append(_loss(f"{where}.rootVolume", True))
        ebs = dict(mapping.get("ebs") or {})
        if ebs.pop("volumeInitializationRate", None) is not None:
            losses.append(_loss(f"{where}.ebs.volumeInitializationRate", ABSENT))
        disks.append({"deviceName": mapping.get("deviceName"), "ebs": ebs})
    if disks:
        converted["blockDeviceMappings"] = disks
    for name in spec:
        if name not in _CONVERTED and spec[name] not in (None, [], {}):
            hint = "name an instance profile that has the role" if name == "role" else ""
            losses.append(_loss(f"spec.{name}", spec[name], hint))
    return converted


def _selector(
    terms: list[Mapping[str, Any]], path: str, prefix: str, losses: list[FieldError]
) -> dict[str, str]:
    """Ids become a list; terms that differ in the value of one tag become a list of values."""
    if all(set(term) == {"id"} for term in terms):
        return {"aws-ids": ",".join(term["id"] for term in terms)}
    tags = [dict(term.get("tags") or {}) for term in terms]
    same_keys = len({frozenset(tag) for tag in tags}) == 1 and all(set(term) == {"tags"} for term in terms)
    values = {key: list(dict.fromkeys(tag[key] for tag in tags)) for key in tags[0]} if same_keys else {}
    count = 1
    for listed in values.values():
        count *= len(listed)
    plain = not any(
        "," in value or (value == "*" and len(each) > 1) for each in values.values() for value in each
    )
    if same_keys and count == len(terms) and plain:
        return {key: ",".join(listed) for key, listed in values.items()}
    losses.append(_loss(path, ABSENT, f"one list of ids ({prefix}-...), or terms with the same tag keys"))
    return {key: value for key, value in tags[0].items() if "," not in value}


def _images(spec: Mapping[str, Any], converted: dict[str, Any], losses: list[FieldError]) -> None:
    terms, family = spec["amiSelectorTerms"], spec.get("amiFamily")
    alias = terms[0].get("alias")
    if alias is not None:
        if alias in _FAMILY_OF_ALIAS and family in (None, _FAMILY_OF_ALIAS[alias]):
            converted["amiFamily"] = _FAMILY_OF_ALIAS[alias]
        else:
            losses.append(
                _loss("spec.amiSelectorTerms[0].alias", alias, "al2@latest and bottlerocket@latest can")
            )
        return
    if family in _FAMILIES:
        converted["amiFamily"] = family
    else:
        losses.append(_loss("spec.amiFamily", family))
    if all(set(term) == {"id"} for term in terms):
        converted["amiSelector"] = {"aws-ids": ",".join(term["id"] for term in terms)}
        return
    first = terms[0]
    what = {name: value for name, value in first.items() if name != "owner"}
    alike = all({n: v for n, v in term.items() if n != "owner"} == what for term in terms)
    if not alike or "ssmParameter" in what or "id" in what:
        losses.append(
            _loss("spec.amiSelectorTerms", ABSENT, "use ids, or terms that differ in their owner only")
        )
    selector = dict(first.get("tags") or {})
    if first.get("name"):
        selector["aws::name"] = first["name"]
    owners = [term["owner"] for term in terms if term.get("owner")]
    if owners and owners != ["self", "amazon"]:
        selector["aws::owners"] = ",".join(owners)
    converted["amiSelector"] = selector

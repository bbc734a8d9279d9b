"""The AWS side of the conversion to v1: selectors, images, disks, metadata options, kubelet."""

import re
from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import product
from math import ceil
from typing import Any

from nodeless.api.ec2_hardware import VOLUME_SIZE
from nodeless.api.ec2_node_class import CLUSTER_PREFIX, RESERVED_TAGS
from nodeless.api.errors import ABSENT, FieldError, at
from nodeless.api.rule_codes import RuleCode
from nodeless.model.quantity import parse_units

_MOST_TERMS = 30
_GIB = 2**30
_MOST_GIBIBYTES = 59_000
_PUBLISHED = {"AL2": "al2@latest", "Bottlerocket": "bottlerocket@latest"}
#: What absent metadata options mean in v1alpha5; v1 would give one hop.
_METADATA_ABSENT = {
    "httpEndpoint": "enabled",
    "httpProtocolIPv6": "disabled",
    "httpPutResponseHopLimit": 2,
    "httpTokens": "required",
}
#: What EC2 fills in when the block is there and a member is not; v1 would require tokens.
_METADATA_PARTIAL = {**_METADATA_ABSENT, "httpPutResponseHopLimit": 1, "httpTokens": "optional"}
#: What an image of Ubuntu had where no disk was given.
_UBUNTU_DISK = {
    "deviceName": "/dev/sda1",
    "ebs": {"volumeSize": "20Gi", "volumeType": "gp3", "encrypted": True},
}
_KEPT = ("userData", "detailedMonitoring", "context")
_IMAGE_IDS = ("aws-ids", "aws::ids")

Converted = tuple[dict[str, Any], list[FieldError], list[str]]


@dataclass(frozen=True, slots=True)
class ClassContext:
    """Settings of the controller that have no counterpart in v1 and go into the objects.

    Attributes:
        default_instance_profile: `aws.defaultInstanceProfile`.
        tags: `aws.tags`.
        role: IAM role for the classes that name no instance profile, which the controller then makes: v1's
            own way, in place of `default_instance_profile`.
    """

    default_instance_profile: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)
    role: str = ""


def convert_settings(settings: Mapping[str, Any], path: str, context: ClassContext) -> Converted:
    """The spec of an EC2NodeClass, what of it v1 cannot say, and notes."""
    losses: list[FieldError] = []
    notes: list[str] = []
    spec: dict[str, Any] = {}
    for name in ("subnet", "securityGroup"):
        selector, where = settings.get(f"{name}Selector"), at(path, f"{name}Selector")
        spec[f"{name}SelectorTerms"] = list(_terms(selector or {}, where, losses))
    _convert_images(settings, path, spec, losses, notes)
    profile = settings.get("instanceProfile") or context.default_instance_profile
    if profile:
        spec["instanceProfile"] = profile
    elif context.role:
        spec["role"] = context.role
    else:
        hint = (
            "name the nodes' IAM role with --role NAME, and the controller makes the instance profile, "
            "or the profile that aws.defaultInstanceProfile named with --default-instance-profile NAME"
        )
        losses.append(
            FieldError(
                at(path, "instanceProfile"),
                ABSENT,
                "or a role is needed in v1",
                hint,
                code=RuleCode.NOT_CONVERTIBLE,
            )
        )
    if settings.get("launchTemplate") is not None:
        fault = "has no counterpart in v1"
        hint = "say what the template says in the EC2NodeClass: images, disks, user data"
        losses.append(
            FieldError(
                at(path, "launchTemplate"),
                settings["launchTemplate"],
                fault,
                hint,
                code=RuleCode.NOT_CONVERTIBLE,
            )
        )
    spec |= {name: settings[name] for name in _KEPT if settings.get(name) is not None}
    _convert_tags({**context.tags, **(settings.get("tags") or {})}, at(path, "tags"), spec, losses)
    options = settings.get("metadataOptions")
    spec["metadataOptions"] = (
        dict(_METADATA_ABSENT)
        if options is None
        else _METADATA_PARTIAL | {name: value for name, value in options.items() if value is not None}
    )
    disks = [_disk(mapping) for mapping in settings.get("blockDeviceMappings") or ()]
    if disks:
        spec["blockDeviceMappings"] = disks
    if settings.get("amiFamily") == "Ubuntu":
        convert_ubuntu_disks(spec)
    return spec, losses, notes


def convert_ubuntu_disks(spec: dict[str, Any]) -> None:
    """Ubuntu's disks for family AL2, which would make others and has the kubelet's directory elsewhere."""
    mappings = spec.setdefault("blockDeviceMappings", []) or [deepcopy(_UBUNTU_DISK)]
    spec["blockDeviceMappings"] = mappings
    disks = [disk for disk in mappings if isinstance(disk, dict)] if isinstance(mappings, list) else []
    if not any(disk.get("rootVolume") for disk in disks):
        for disk in disks:
            if disk.get("deviceName") == _UBUNTU_DISK["deviceName"]:
                disk["rootVolume"] = True


def _split_list(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _terms(selector: Mapping[str, str], path: str, losses: list[FieldError]) -> Iterable[dict[str, Any]]:
    """A list for one tag becomes one term for each of its values; ids stand alone in v1."""
    ids = _split_list(selector.get("aws-ids", ""))
    tags = {key: value for key, value in selector.items() if key != "aws-ids"}
    if ids and tags:
        fault = "cannot be combined with tags in v1, where an id must be alone"
        losses.append(
            FieldError(
                at(path, "aws-ids"),
                selector["aws-ids"],
                fault,
                "select by one of the two",
                code=RuleCode.NOT_CONVERTIBLE,
            )
        )
        return []
    terms = [{"id": id_} for id_ in ids] or _products(tags)
    if not selector:
        losses.append(
            FieldError(
                path,
                {},
                "selects nothing, which v1 cannot say",
                "select by tags",
                code=RuleCode.NOT_CONVERTIBLE,
            )
        )
    return _limit_terms(terms, path, losses)


def _products(tags: Mapping[str, str]) -> list[dict[str, Any]]:
    choices = [[(key, value) for value in _split_list(text)] for key, text in tags.items()]
    return [{"tags": dict(chosen)} for chosen in product(*choices)] if tags else []


def _limit_terms(terms: list[dict[str, Any]], path: str, losses: list[FieldError]) -> list[dict[str, Any]]:
    if len(terms) <= _MOST_TERMS:
        return terms
    fault = f"needs {len(terms)} terms; v1 allows {_MOST_TERMS}"
    losses.append(
        FieldError(
            path, ABSENT, fault, "tag the objects with one tag in common", code=RuleCode.NOT_CONVERTIBLE
        )
    )
    return terms[:_MOST_TERMS]


def _convert_images(
    settings: Mapping[str, Any], path: str, spec: dict[str, Any], losses: list[FieldError], notes: list[str]
) -> None:
    family, selector = settings.get("amiFamily") or "AL2", settings.get("amiSelector") or {}
    where = at(path, "amiSelector")
    if not selector:
        if family in _PUBLISHED:
            spec["amiSelectorTerms"] = [{"alias": _PUBLISHED[family]}]
            return
        fault = f"is required in v1 with amiFamily {family}"
        losses.append(
            FieldError(
                where, ABSENT, fault, "select your images by id, name or tags", code=RuleCode.NOT_CONVERTIBLE
            )
        )
        spec["amiSelectorTerms"] = []
    else:
        spec["amiSelectorTerms"] = _limit_terms(_image_terms(selector, where, losses), where, losses)
    spec["amiFamily"] = "AL2" if family == "Ubuntu" else family
    if family == "Ubuntu":
        notes.append("amiFamily Ubuntu is gone in v1: AL2 makes the same user data")
    if family == "Custom":
        notes.append(
            "user data of family Custom must register the node with the taint "
            "karpenter.sh/unregistered:NoExecute"
        )


def _image_terms(selector: Mapping[str, str], path: str, losses: list[FieldError]) -> list[dict[str, Any]]:
    ids = list(dict.fromkeys(each for key in _IMAGE_IDS for each in _split_list(selector.get(key, ""))))
    owners = _split_list(selector.get("aws::owners", ""))
    name = selector.get("aws::name")
    tags = {key: value for key, value in selector.items() if not key.startswith("aws::") and key != "aws-ids"}
    if ids:
        for key in (*tags, *(("aws::name",) if name else ())):
            fault = "cannot be combined with ids in v1, where an id must be alone"
            losses.append(
                FieldError(
                    at(path, key),
                    selector[key],
                    fault,
                    "select by one of the two",
                    code=RuleCode.NOT_CONVERTIBLE,
                )
            )
        return [{"id": id_} for id_ in ids]
    what = ({"name": name} if name else {}) | ({"tags": tags} if tags else {})
    if not what:
        fault = "cannot select images alone in v1"
        losses.append(
            FieldError(
                at(path, "aws::owners"),
                ",".join(owners),
                fault,
                "add a name or tags",
                code=RuleCode.NOT_CONVERTIBLE,
            )
        )
        return []
    if not owners and tags and not name:
        owners = ["self", "amazon"]
    return [{**what, "owner": owner} for owner in owners] or [what]


def _convert_tags(tags: Mapping[str, str], path: str, spec: dict[str, Any], losses: list[FieldError]) -> None:
    kept = {}
    for key, value in tags.items():
        if key in RESERVED_TAGS or key.startswith(CLUSTER_PREFIX):
            fault = "is set by the controller itself in v1"
            losses.append(
                FieldError(at(path, key), value, fault, "leave it out", code=RuleCode.NOT_CONVERTIBLE)
            )
        else:
            kept[key] = value
    if kept:
        spec["tags"] = kept


def _disk(mapping: Mapping[str, Any]) -> dict[str, Any]:
    ebs = {name: value for name, value in (mapping.get("ebs") or {}).items() if value is not None}
    if "volumeSize" in ebs:
        ebs["volumeSize"] = _volume_size(ebs["volumeSize"])
    return {"deviceName": mapping.get("deviceName"), "ebs": ebs}


def _volume_size(size: Any) -> str:
    """A size as v1 spells it: kept where it can be, else rounded up, beyond 59000Gi in T."""
    if re.search(VOLUME_SIZE, str(size)):
        return str(size)
    gibibytes = ceil(parse_units(size) / _GIB)
    return f"{gibibytes}Gi" if gibibytes <= _MOST_GIBIBYTES else f"{ceil(parse_units(size) / 10**12)}T"


def kubelet_to_v1(kubelet: Mapping[str, Any], path: str) -> tuple[dict[str, Any], list[FieldError]]:
    """Kubelet settings as an EC2NodeClass takes them; amounts become strings."""
    losses = []
    converted = {name: value for name, value in kubelet.items() if value is not None}
    runtime = converted.pop("containerRuntime", None)
    if runtime not in (None, "containerd"):
        hint = "use containerd"
        losses.append(
            FieldError(
                at(path, "containerRuntime"),
                runtime,
                "cannot be chosen in v1",
                hint,
                code=RuleCode.NOT_CONVERTIBLE,
            )
        )
    for name in ("systemReserved", "kubeReserved"):
        if name in converted:
            converted[name] = {key: str(value) for key, value in converted[name].items()}
    high, low = (converted.get(f"imageGC{which}ThresholdPercent") for which in ("High", "Low"))
    if high is not None and high == low:
        where = at(path, "imageGCHighThresholdPercent")
        fault = "must be above imageGCLowThresholdPercent in v1"
        losses.append(FieldError(where, high, fault, "raise it by one", code=RuleCode.NOT_CONVERTIBLE))
    return converted, losses

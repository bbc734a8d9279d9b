"""From generation v1beta1 to v1, with the same meaning (Karpenter's guide for the upgrade to v1).

Conversion takes anything: what has not the form of v1beta1 stays as it is, so that validation of the result
finds it. Objects are joined as those of v1alpha5 are: the kubelet's settings move from a NodePool to its
EC2NodeClass.
"""

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from nodeless.api.conversion import Conversion, Manifest, class_names, convert_to_v1, final_expiry
from nodeless.api.conversion_classes import ClassContext, convert_ubuntu_disks
from nodeless.api.drop_nulls import drop_nulls
from nodeless.api.errors import ABSENT, FieldError, at
from nodeless.api.kinds import (
    EC2_NODE_CLASS,
    EC2_NODE_CLASS_V1BETA1,
    NODE_CLAIM,
    NODE_CLAIM_V1BETA1,
    NODE_POOL,
    NODE_POOL_V1BETA1,
    V1BETA1,
    Kind,
)
from nodeless.api.rule_codes import RuleCode
from nodeless.api.v1beta1 import DEFAULT_EXPIRE_AFTER, DEFAULT_POLICY, METADATA_DEFAULT
from nodeless.api.validation import subject_of
from nodeless.model.labels import NODE_POOL as NODE_POOL_LABEL

#: Kept from an object's metadata; what the server owns is not.
_METADATA = ("name", "generateName", "labels", "annotations", "finalizers")
_DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"
_RENAMED = ("karpenter.sh/do-not-consolidate", "karpenter.sh/do-not-evict")
#: Hashes that the controller of the time left, and what its conversion noted for itself.
_DROPPED = (
    "karpenter.sh/nodepool-hash",
    "karpenter.k8s.aws/ec2nodeclass-hash",
    "compatibility.karpenter.sh/v1beta1-",
)
#: Each kind of v1beta1 in v1.
V1_OF = {
    NODE_POOL_V1BETA1: NODE_POOL,
    EC2_NODE_CLASS_V1BETA1: EC2_NODE_CLASS,
    NODE_CLAIM_V1BETA1: NODE_CLAIM,
}
#: Families of which AWS publishes no image under an alias of v1.
_WITHOUT_ALIAS = ("Ubuntu", "Custom")
#: Where the settings of the kubelet are in v1beta1.
KUBELET_PATH = {NODE_POOL_V1BETA1: "spec.template.spec.kubelet", NODE_CLAIM_V1BETA1: "spec.kubelet"}
_REFERENCE_PATH = {
    NODE_POOL_V1BETA1: "spec.template.spec.nodeClassRef",
    NODE_CLAIM_V1BETA1: "spec.nodeClassRef",
}


@dataclass(slots=True)
class ConvertedObject:
    """One object of v1beta1 as v1 says it.

    Attributes:
        manifest: The object of v1, without the kubelet's settings of a pool or claim.
        kubelet: These settings, for its node class; None when it has none.
        losses: What v1 cannot say.
        changes: What is not kept as it was, and behaves differently.
    """

    manifest: Manifest
    kubelet: Any = None
    losses: list[FieldError] = field(default_factory=list)
    changes: list[FieldError] = field(default_factory=list)


def kind_v1beta1(manifest: Any) -> Kind | None:
    """The kind of v1beta1 that a manifest is of."""
    return next((kind for kind in V1BETA1 if kind.describes(manifest)), None)


def convert_object(manifest: Mapping[str, Any], kind: Kind) -> ConvertedObject:
    """One object by itself, of any form; `kind` is what `kind_v1beta1` says of it."""
    given, served = drop_nulls(dict(manifest)), V1_OF[kind]
    made = ConvertedObject({"apiVersion": served.api_version, "kind": served.kind})
    metadata = given.get("metadata")
    if isinstance(metadata, Mapping):
        kept = {name: deepcopy(metadata[name]) for name in _METADATA if name in metadata}
        _convert_annotations(kept, "metadata", made)
        made.manifest["metadata"] = kept
    elif metadata is not None:
        made.manifest["metadata"] = metadata
    spec = deepcopy(given.get("spec"))
    if isinstance(spec, dict):
        if kind is NODE_POOL_V1BETA1:
            _convert_pool(spec, made)
        elif kind is EC2_NODE_CLASS_V1BETA1:
            _convert_class(spec, made)
        else:
            _convert_claim(spec, made)
    if spec is not None:
        made.manifest["spec"] = spec
    return made


def path_v1beta1(path: str, manifest: Mapping[str, Any], kind: Kind) -> str:
    """Where the field at `path` of the converted object is in the object of v1beta1 that it was made from."""
    if kind is NODE_POOL_V1BETA1 and path == "spec.template.spec.expireAfter":
        return "spec.disruption.expireAfter"
    reference = _REFERENCE_PATH.get(kind)
    if reference and path == f"{reference}.group":
        return f"{reference}.apiVersion"
    if kind is EC2_NODE_CLASS_V1BETA1 and path.startswith("spec.amiSelectorTerms"):
        spec = _member(manifest, "spec")
        given = spec.get("amiSelectorTerms") or spec.get("amiFamily") in _WITHOUT_ALIAS
        return path if given else "spec.amiFamily"
    return path


def convert_any_to_v1(
    manifests: Iterable[Mapping[str, Any]], context: ClassContext | None = None
) -> Conversion:
    """Objects of every generation as v1 says them; those of v1 come out as they are.

    Args:
        manifests: Valid objects; other kinds are not looked at.
        context: Settings of the controller that v1 has no counterpart for.
    """
    given = list(manifests)
    result = convert_to_v1(given, context)
    for manifest in given:
        if any(kind.describes(manifest) for kind in V1_OF.values()):
            result.add(subject_of(manifest), dict(manifest))
    convert_v1beta1(given, result)
    return result


def convert_v1beta1(manifests: Iterable[Mapping[str, Any]], result: Conversion) -> None:
    """Add what objects of v1beta1 convert to; those of v1 among them are looked at, and not added.

    Args:
        manifests: Objects of v1beta1 without a fault, and others of any form.
        result: What is added to.
    """
    _Joining(list(manifests), result).convert()


class _Joining:
    """Pools and claims of v1beta1 with the node classes that get their kubelet's settings."""

    def __init__(self, given: Sequence[Mapping[str, Any]], result: Conversion) -> None:
        self._given = given
        self._result = result
        self._objects = [
            (manifest, kind, convert_object(manifest, kind))
            for manifest in given
            if (kind := kind_v1beta1(manifest)) is not None
        ]
        self._served: dict[Any, Any] = {
            name: _member(manifest, "spec").get("kubelet")
            for manifest in given
            if EC2_NODE_CLASS.describes(manifest)
            and isinstance(name := _member(manifest, "metadata").get("name"), str)
        }
        self._classes: dict[Any, dict[Any, Any]] = {
            made.manifest["metadata"].get("name"): class_names(made.manifest["metadata"].get("name"), [])
            for _, kind, made in self._objects
            if kind is EC2_NODE_CLASS_V1BETA1
        }
        for name in self._classes:
            self._classes[name] = class_names(name, self._kubelets_of(name))

    def convert(self) -> None:
        """Add every object of v1beta1 to the result: node classes first, as those of v1alpha5."""
        expiry = self._expiry_of_pools()
        for manifest, kind, made in self._objects:
            if kind is EC2_NODE_CLASS_V1BETA1:
                for name, kubelet in self._classes[made.manifest["metadata"].get("name")].items():
                    copy = deepcopy(made.manifest)
                    copy["metadata"]["name"] = name
                    if name is None:
                        del copy["metadata"]["name"]
                    if kubelet:
                        copy["spec"]["kubelet"] = deepcopy(kubelet)
                    self._result.add(subject_of(manifest), copy, made.losses)
                self._tell(manifest, made)
        for manifest, kind, made in self._objects:
            if kind is EC2_NODE_CLASS_V1BETA1:
                continue
            if kind is NODE_CLAIM_V1BETA1:
                _set_expiry(made, expiry)
            self._place_kubelet(made, kind)
            self._result.add(subject_of(manifest), made.manifest, made.losses)
            self._tell(manifest, made)

    def _tell(self, manifest: Mapping[str, Any], made: ConvertedObject) -> None:
        self._result.changes.extend((subject_of(manifest), change) for change in made.changes)

    def _kubelets_of(self, name: str) -> list[Any]:
        """The different settings that pools and claims of a node class have, in order of appearance."""
        listed: list[Any] = []
        for _, kind, made in self._objects:
            reference = _reference(made.manifest, kind)
            if reference.get("name") == name and _is_ours(reference) and (made.kubelet or {}) not in listed:
                listed.append(made.kubelet or {})
        return listed

    def _place_kubelet(self, made: ConvertedObject, kind: Kind) -> None:
        reference, kubelet = _reference(made.manifest, kind), made.kubelet or {}
        name, path = reference.get("name"), KUBELET_PATH[kind]
        if _is_ours(reference) and name in self._classes:
            chosen = next(key for key, settings in self._classes[name].items() if settings == kubelet)
            if chosen != name:
                reference["name"] = chosen
                fault = (
                    f"differs from the settings of others that use EC2NodeClass/{name}, which holds them in "
                    f"v1: EC2NodeClass/{chosen} is made for these"
                )
                made.changes.append(FieldError(path, ABSENT, fault, code=RuleCode.CHANGED_BY_CONVERSION))
        elif kubelet and not (_is_ours(reference) and self._served.get(name) == kubelet):
            fault = "moves to the node class in v1, and its EC2NodeClass of v1beta1 is not among the objects"
            hint = f"convert it together with EC2NodeClass/{name}, or write it there as spec.kubelet"
            made.losses.append(FieldError(path, ABSENT, fault, hint, code=RuleCode.NOT_CONVERTIBLE))

    def _expiry_of_pools(self) -> dict[Any, Any]:
        pools = [made.manifest for _, kind, made in self._objects if kind is NODE_POOL_V1BETA1]
        pools += [dict(manifest) for manifest in self._given if NODE_POOL.describes(manifest)]
        return {
            name: _member(pool, "spec", "template", "spec").get("expireAfter", DEFAULT_EXPIRE_AFTER)
            for pool in pools
            if isinstance(name := _member(pool, "metadata").get("name"), str)
        }


def _member(document: Any, *path: str) -> Mapping[str, Any]:
    """The object at a path; empty when there is none."""
    for name in path:
        document = document.get(name) if isinstance(document, Mapping) else None
    return document if isinstance(document, Mapping) else {}


def _is_ours(reference: Mapping[str, Any]) -> bool:
    return (reference.get("group"), reference.get("kind")) == (EC2_NODE_CLASS.group, EC2_NODE_CLASS.kind)


def _reference(manifest: Mapping[str, Any], kind: Kind) -> Any:
    """The reference to the node class in a converted pool or claim; empty for a node class."""
    if kind is NODE_POOL_V1BETA1:
        return manifest["spec"]["template"]["spec"]["nodeClassRef"]
    return manifest["spec"]["nodeClassRef"] if kind is NODE_CLAIM_V1BETA1 else {}


def _convert_annotations(holder: dict[str, Any], path: str, made: ConvertedObject) -> None:
    annotations = holder.get("annotations")
    if not isinstance(annotations, dict):
        return
    for key, value in [(key, value) for key, value in annotations.items() if isinstance(key, str)]:
        where = at(f"{path}.annotations", key)
        if key in _RENAMED:
            del annotations[key]
            annotations.setdefault(_DO_NOT_DISRUPT, value)
            made.changes.append(
                FieldError(where, value, f"is {_DO_NOT_DISRUPT} in v1", code=RuleCode.CHANGED_BY_CONVERSION)
            )
        elif key.startswith(_DROPPED):
            del annotations[key]
            made.changes.append(
                FieldError(
                    where,
                    ABSENT,
                    "is left out: controllers write it for themselves",
                    code=RuleCode.CHANGED_BY_CONVERSION,
                )
            )
    if not annotations:
        del holder["annotations"]


def _convert_pool(spec: dict[str, Any], made: ConvertedObject) -> None:
    disruption = spec.get("disruption", {})
    expiry = DEFAULT_EXPIRE_AFTER
    if isinstance(disruption, dict):
        expiry = disruption.pop("expireAfter", DEFAULT_EXPIRE_AFTER)
        policy = disruption.get("consolidationPolicy", DEFAULT_POLICY)
        if policy == "WhenUnderutilized":
            policy = "WhenEmptyOrUnderutilized"
        after = disruption.get("consolidateAfter", "0s")
        spec["disruption"] = {**disruption, "consolidationPolicy": policy, "consolidateAfter": after}
    template = spec.get("template")
    if not isinstance(template, dict):
        return
    if isinstance(template.get("metadata"), dict):
        _convert_annotations(template["metadata"], "spec.template.metadata", made)
    inner = template.get("spec")
    if not isinstance(inner, dict):
        return
    made.kubelet = inner.pop("kubelet", None)
    if inner.get("resources") == {}:
        del inner["resources"]
    _convert_reference(inner)
    inner.setdefault("expireAfter", expiry)
    if expiry != "Never":
        made.changes.append(final_expiry("spec.disruption.expireAfter", expiry))


def _convert_reference(holder: dict[str, Any]) -> None:
    reference = holder.get("nodeClassRef")
    if not isinstance(reference, dict):
        return
    version = reference.pop("apiVersion", None) or f"{EC2_NODE_CLASS.group}/"
    group = version.partition("/")[0] if isinstance(version, str) else version
    kind = reference.pop("kind", None) or EC2_NODE_CLASS.kind
    holder["nodeClassRef"] = {"group": group, "kind": kind, **reference}


def _convert_class(spec: dict[str, Any], made: ConvertedObject) -> None:
    family, terms = spec.get("amiFamily"), spec.get("amiSelectorTerms")
    if family in _WITHOUT_ALIAS and not terms:
        fault = f"is required in v1 with amiFamily {family}"
        hint = "select your images by id, name or tags"
        made.losses.append(
            FieldError("spec.amiSelectorTerms", ABSENT, fault, hint, code=RuleCode.NOT_CONVERTIBLE)
        )
    elif isinstance(family, str) and not terms and (terms is None or terms == []):
        spec["amiSelectorTerms"] = [{"alias": f"{family.lower()}@latest"}]
        del spec["amiFamily"]
    if family == "Ubuntu":
        spec["amiFamily"] = "AL2"
        message = "is gone in v1: AL2 makes the same user data"
        hint = "the image is what amiSelectorTerms selects, and is not updated by itself"
        made.changes.append(
            FieldError("spec.amiFamily", family, message, hint, code=RuleCode.CHANGED_BY_CONVERSION)
        )
        convert_ubuntu_disks(spec)
    options = spec.get("metadataOptions", {})
    if isinstance(options, dict):
        spec["metadataOptions"] = METADATA_DEFAULT | options


def _convert_claim(spec: dict[str, Any], made: ConvertedObject) -> None:
    made.kubelet = spec.pop("kubelet", None)
    _convert_reference(spec)
    message = "asks for a new node when it is applied: the status, with the instance, is not part of it"
    hint = "do not apply it for a node that runs"
    made.changes.append(
        FieldError("metadata.name", ABSENT, message, hint, code=RuleCode.CHANGED_BY_CONVERSION)
    )


def _set_expiry(made: ConvertedObject, expiry: Mapping[Any, Any]) -> None:
    """v1 holds a claim's life span in the claim, v1beta1 in its pool; a claim without a pool had none."""
    labels = made.manifest["metadata"].get("labels") or {}
    pool = labels.get(NODE_POOL_LABEL)
    life = "Never" if pool is None else expiry.get(pool, DEFAULT_EXPIRE_AFTER)
    made.manifest["spec"]["expireAfter"] = life
    if pool is not None and pool not in expiry:
        message = f"is v1's own default, for NodePool/{pool} is not among the objects"
        hint = "convert it together with its pool"
        made.changes.append(
            FieldError("spec.expireAfter", life, message, hint, code=RuleCode.CHANGED_BY_CONVERSION)
        )

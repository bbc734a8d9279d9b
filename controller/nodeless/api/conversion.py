"""From generation v1alpha5 to v1: a Provisioner and its node template become a NodePool and an EC2NodeClass.

The result means the same to the controller. What v1 cannot say is a loss: it is listed, with the
exact field, and never dropped in silence. The way back is in `conversion_back`.

Every object is converted by itself, so that a file can be; two things join them: a NodePool
points to the EC2NodeClass of its template's name, and the kubelet's settings move from the
Provisioner to that class. Given together, they are joined (`convert_all`).
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

from nodeless.api.conversion_accelerators import accelerator_losses
from nodeless.api.conversion_classes import ClassContext, convert_settings, kubelet_to_v1
from nodeless.api.defaulting import default
from nodeless.api.drop_nulls import drop_nulls
from nodeless.api.errors import ABSENT, FieldError
from nodeless.api.kinds import AWS_NODE_TEMPLATE, EC2_NODE_CLASS, NODE_POOL, PROVISIONER
from nodeless.api.requirements_v1 import in_aws_domain, in_core_domain
from nodeless.api.rule_codes import RuleCode
from nodeless.api.validation import validate

Manifest = dict[str, Any]
#: Kept from an object's metadata; what the server owns is not.
_METADATA = ("name", "generateName", "labels", "annotations", "finalizers")


@dataclass(frozen=True, slots=True)
class Conversion:
    """What became of some manifests.

    Attributes:
        manifests: The converted objects.
        subjects: The object that each of them was made from.
        losses: What could not be said in the other generation, each with the object it was in.
        notes: What means the same and still deserves a look.
        changes: What does not mean quite the same, each at its field.
    """

    manifests: list[Manifest] = field(default_factory=list)
    subjects: list[str] = field(default_factory=list)
    losses: list[tuple[str, FieldError]] = field(default_factory=list)
    notes: list[tuple[str, str]] = field(default_factory=list)
    changes: list[tuple[str, FieldError]] = field(default_factory=list)

    def add(self, subject: str, manifest: Manifest, losses: Iterable[FieldError] = ()) -> None:
        """Take in a converted object; what would refuse it, when no loss is listed, is a loss too.

        So is a name that another object has already: applied one after the other, the first would be gone.
        """
        if (former := self._namesake(manifest)) is not None:
            if former != manifest:
                name, kind = manifest["metadata"]["name"], manifest["kind"]
                fault = f"would name a second {kind} that differs from the first"
                self.losses.append(
                    (
                        subject,
                        FieldError(
                            "metadata.name", name, fault, "rename one of them", code=RuleCode.NOT_CONVERTIBLE
                        ),
                    )
                )
            return
        listed = list(losses) or [
            replace(fault, message=f"as converted, {fault.message}")
            for fault in validate(manifest)
            if not fault.warning
        ]
        self.manifests.append(manifest)
        self.subjects.append(subject)
        self.losses.extend((subject, loss) for loss in listed)

    def _namesake(self, manifest: Manifest) -> Manifest | None:
        """The object of the same kind and name that was made before."""
        name = manifest["metadata"].get("name")
        alike = (other for other in self.manifests if other["kind"] == manifest["kind"])
        return next(
            (manifest for manifest in alike if name and manifest["metadata"].get("name") == name), None
        )


def convert_to_v1(manifests: Iterable[Mapping[str, Any]], context: ClassContext | None = None) -> Conversion:
    """NodePools and EC2NodeClasses that mean what the given Provisioners and AWSNodeTemplates mean.

    Args:
        manifests: Valid objects; other kinds are not looked at.
        context: Settings of the controller that v1 has no counterpart for.
    """
    result, known = Conversion(), context or ClassContext()
    given = [drop_nulls(manifest) for manifest in manifests]
    templates = [manifest for manifest in given if AWS_NODE_TEMPLATE.describes(manifest)]
    names = {_name(template) for template in templates}
    kubelets = _kubelets_by_template(manifest for manifest in given if PROVISIONER.describes(manifest))
    for template in templates:
        name = _name(template)
        for class_name, kubelet in class_names(name, kubelets.get(name, [])).items():
            spec = template.get("spec") or {}
            _add_class(result, template, spec, "spec", class_name, kubelet, known)
    for provisioner in given:
        if PROVISIONER.describes(provisioner):
            _add_pool(result, provisioner, kubelets, names, known)
    return result


def _kubelets_by_template(provisioners: Iterable[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """The different kubelet settings of the pools of each template, in order of appearance."""
    found: dict[str, list[Any]] = {}
    for provisioner in provisioners:
        spec = provisioner.get("spec") or {}
        reference = spec.get("providerRef")
        if isinstance(reference, Mapping):
            listed = found.setdefault(reference.get("name", ""), [])
            kubelet = spec.get("kubeletConfiguration") or {}
            if kubelet not in listed:
                listed.append(kubelet)
    return found


def class_names(template: str, kubelets: Sequence[Any]) -> dict[str, Any]:
    """Each class that a template or class becomes, and its kubelet settings: the first keeps the name."""
    return {
        template if position == 0 else f"{template}-{position + 1}": kubelet
        for position, kubelet in enumerate(kubelets or [{}])
    }


def _add_class(
    result: Conversion,
    source: Mapping[str, Any],
    settings: Mapping[str, Any],
    path: str,
    name: str,
    kubelet: Mapping[str, Any],
    context: ClassContext,
) -> None:
    subject = f"{source['kind']}/{_name(source)}"
    spec, losses, notes = convert_settings(settings, path, context)
    if kubelet:
        converted, kubelet_losses = kubelet_to_v1(kubelet, "spec.kubeletConfiguration")
        losses = [*losses, *kubelet_losses]
        if converted:
            spec["kubelet"] = converted
    result.notes.extend((subject, note) for note in notes)
    metadata = _metadata(source) | {"name": name}
    if source["kind"] == PROVISIONER.kind:
        metadata = {"name": name}
    made = {"apiVersion": EC2_NODE_CLASS.api_version, "kind": EC2_NODE_CLASS.kind, "metadata": metadata}
    result.add(subject, made | {"spec": spec}, losses)


def _add_pool(
    result: Conversion,
    provisioner: Mapping[str, Any],
    kubelets: Mapping[str, list[Any]],
    templates: Collection[str],
    context: ClassContext,
) -> None:
    subject, spec = f"Provisioner/{_name(provisioner)}", default(provisioner).get("spec") or {}
    kubelet = spec.get("kubeletConfiguration") or {}
    reference = spec.get("providerRef")
    if isinstance(reference, Mapping):
        template = str(reference.get("name", ""))
        classes = class_names(template, kubelets.get(template, []))
        class_name = next(name for name, settings in classes.items() if settings == kubelet)
        if kubelet and template not in templates:
            fault = "moves to the EC2NodeClass, and its AWSNodeTemplate is not among the given objects"
            hint = f"convert it together with AWSNodeTemplate/{template}"
            result.losses.append(
                (
                    subject,
                    FieldError(
                        "spec.kubeletConfiguration", ABSENT, fault, hint, code=RuleCode.NOT_CONVERTIBLE
                    ),
                )
            )
    else:
        class_name = _name(provisioner)
        _add_class(
            result, provisioner, spec.get("provider") or {}, "spec.provider", class_name, kubelet, context
        )
    result.notes.append(
        (
            subject,
            "workloads that select karpenter.sh/provisioner-name must select karpenter.sh/nodepool; "
            "pods annotated karpenter.sh/do-not-evict need karpenter.sh/do-not-disrupt",
        )
    )
    result.notes.append(
        (
            subject,
            "its running nodes are not converted: apply the NodePool, then let them drain by deleting the "
            "Provisioner, or keep new pods off them with a taint until they are empty",
        )
    )
    result.notes.append(
        (
            subject,
            "nodes of a NodePool are replaced when they drift, for example from a newer image, also where "
            "featureGates.driftEnabled is false",
        )
    )
    if (expiry := spec.get("ttlSecondsUntilExpired")) is not None:
        result.changes.append((subject, final_expiry("spec.ttlSecondsUntilExpired", expiry)))
    made = {
        "apiVersion": NODE_POOL.api_version,
        "kind": NODE_POOL.kind,
        "metadata": _metadata(provisioner),
        "spec": _pool_spec(spec, class_name),
    }
    result.add(subject, made, _pool_losses(spec))


def final_expiry(path: str, value: Any) -> FieldError:
    """What becomes of a life span in v1."""
    return FieldError(
        path,
        value,
        "is final in v1: neither spec.disruption.budgets nor a replacement that is not there yet delay it",
        "write a longer one, or Never, where that is too early",
        code=RuleCode.CHANGED_BY_CONVERSION,
    )


def _pool_spec(spec: Mapping[str, Any], class_name: str) -> dict[str, Any]:
    expiry = spec.get("ttlSecondsUntilExpired")
    template: dict[str, Any] = {
        "nodeClassRef": {"group": EC2_NODE_CLASS.group, "kind": EC2_NODE_CLASS.kind, "name": class_name},
        "requirements": deepcopy(spec.get("requirements") or []),
        "expireAfter": "Never" if expiry is None else f"{expiry}s",
    }
    for name in ("taints", "startupTaints"):
        if spec.get(name):
            template[name] = [
                {key: value for key, value in taint.items() if value is not None} for taint in spec[name]
            ]
    metadata = {name: dict(spec[name]) for name in ("labels", "annotations") if spec.get(name)}
    limits = (spec.get("limits") or {}).get("resources")
    return {
        "template": ({"metadata": metadata} if metadata else {}) | {"spec": template},
        "disruption": _disruption(spec),
        **({"limits": dict(limits)} if limits is not None else {}),
        **({"weight": spec["weight"]} if spec.get("weight") is not None else {}),
    }


def _disruption(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Budgets are new in v1, and their default of 10% would slow down what had no limit before."""
    empty = spec.get("ttlSecondsAfterEmpty")
    if (spec.get("consolidation") or {}).get("enabled"):
        policy, after = "WhenEmptyOrUnderutilized", "0s"
    else:
        policy, after = "WhenEmpty", "Never" if empty is None else f"{empty}s"
    return {"consolidationPolicy": policy, "consolidateAfter": after, "budgets": [{"nodes": "100%"}]}


def _pool_losses(spec: Mapping[str, Any]) -> Iterable[FieldError]:
    for name in ("taints", "startupTaints"):
        for position, taint in enumerate(spec.get(name) or ()):
            if not taint.get("effect"):
                yield FieldError(
                    f"spec.{name}[{position}].effect",
                    taint.get("effect"),
                    "means every effect, which v1 cannot say",
                    "write one taint for each effect",
                    code=RuleCode.NOT_CONVERTIBLE,
                )
    keys = [(f"spec.labels.{key}", key) for key in spec.get("labels") or ()]
    keys += [
        (f"spec.requirements[{position}].key", requirement["key"])
        for position, requirement in enumerate(spec.get("requirements") or ())
    ]
    for path, key in keys:
        if in_core_domain(key) or in_aws_domain(key):
            yield FieldError(
                path,
                key,
                "is in a domain that is closed in v1",
                "use a domain of your own",
                code=RuleCode.NOT_CONVERTIBLE,
            )
    yield from accelerator_losses(spec.get("requirements") or (), "spec.requirements")


def _metadata(manifest: Mapping[str, Any]) -> dict[str, Any]:
    metadata = manifest.get("metadata") or {}
    return {name: deepcopy(metadata[name]) for name in _METADATA if metadata.get(name)}


def _name(manifest: Mapping[str, Any]) -> str:
    return str((manifest.get("metadata") or {}).get("name") or "")

"""Pools and node classes of either generation as resources of the stack.

The manifests are computed by `pools` and `pools_v1`, and checked by the controller's own rules of admission
before anything is registered: a preview already says what the webhook would. The resources must depend on
everything that the controller needs, best on the `TeardownGuard`, which does: their deletion waits until the
controller has removed their nodes. A pool goes before its node class, without which its nodes could not be
described any more.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NotRequired, TypedDict

import pulumi
import pulumi_kubernetes as k8s

from nodeless.api.validation import validate
from nodeless.model.labels import OWNER
from pulumi_nodeless import names, pools, pools_v1, shapes
from pulumi_nodeless.arguments import ArgumentReader
from pulumi_nodeless.foresight import Declaration, LiveCluster, foretell
from pulumi_nodeless.ordering import child_after
from pulumi_nodeless.pools import NodeTemplateArgs, ProvisionerArgs
from pulumi_nodeless.pools_v1 import NodeClassArgs, NodePoolArgs


class CapacityArgs(TypedDict):
    """Which pools a cluster has."""

    cluster_name: str
    """Name of the cluster: the value of the discovery tag by which node classes select subnets and security
    groups."""
    node_templates: NotRequired[Sequence[NodeTemplateArgs]]
    """AWSNodeTemplates: how the nodes of Provisioners are launched."""
    provisioners: NotRequired[Sequence[ProvisionerArgs]]
    """Provisioners: which nodes may be launched."""
    node_classes: NotRequired[Sequence[NodeClassArgs]]
    """EC2NodeClasses: how the nodes of NodePools are launched."""
    node_pools: NotRequired[Sequence[NodePoolArgs]]
    """NodePools: which nodes may be launched, in the v1 API."""
    subnet_ids: NotRequired[Sequence[str]]
    """IDs of the subnets of node classes that select none. Default: the subnets with the discovery tag of the
    cluster."""
    instance_profile: NotRequired[pulumi.Input[str]]
    """Instance profile of node classes that set none."""
    timeout_minutes: NotRequired[int]
    """How many minutes the deletion of a pool waits for its nodes to terminate. Default: 30."""
    preview_kubeconfig: NotRequired[pulumi.Input[Any]]
    """Kubeconfig, as text or as a document, with which a preview asks the live cluster what a change of pools
    would do to its nodes. Default: a preview does not ask."""
    preview_plan: NotRequired[bool]
    """Whether a preview asks the live cluster at all. Default: true."""
    controller_namespace: NotRequired[str]
    """Namespace of the controller and its settings, for previews. Default: karpenter."""
    region: NotRequired[pulumi.Input[str]]
    """Region of the cluster, for previews. Default: the region of the AWS SDK's configuration."""


@dataclass(frozen=True, slots=True)
class _Generation:
    """The arguments that make pools and node classes of one generation, and what they become."""

    classes: str
    class_shape: Any
    class_kind: tuple[str, str]
    class_resource: str
    pools: str
    pool_shape: Any
    pool_kind: tuple[str, str]
    pool_resource: str
    #: Member of a pool's arguments that names its node class.
    reference: str
    pool_spec: Callable[[Mapping[str, Any]], dict[str, Any]]


#: Stands for a value that only the engine will know, while rules are checked.
_STAND_IN: Final = "known-later"
#: Kinds of members that go into manifests as they are, known or not.
_LATER: Final = (str, bool, Mapping)
_GENERATIONS: Final = (
    _Generation(
        "node_templates",
        Sequence[NodeTemplateArgs],
        (pools.NODE_TEMPLATE_API, "AWSNodeTemplate"),
        "node-template",
        "provisioners",
        Sequence[ProvisionerArgs],
        (pools.PROVISIONER_API, "Provisioner"),
        "provisioner",
        "node_template",
        pools.provisioner_spec,
    ),
    _Generation(
        "node_classes",
        Sequence[NodeClassArgs],
        (pools_v1.NODE_CLASS_API, "EC2NodeClass"),
        "node-class",
        "node_pools",
        Sequence[NodePoolArgs],
        (pools_v1.NODE_POOL_API, "NodePool"),
        "node-pool",
        "node_class",
        pools_v1.node_pool_spec,
    ),
)


@dataclass(frozen=True, slots=True)
class ClassDefaults:
    """What node classes and templates have that say nothing else.

    Attributes:
        discovery: Tag by which they find subnets and security group.
        subnet_ids: Their subnets, instead of those with the tag; empty: those with the tag.
        instance_profile: Their instance profile.
    """

    discovery: Mapping[str, str]
    subnet_ids: Sequence[str]
    instance_profile: Any


class Capacity(pulumi.ComponentResource):
    """The pools a stack declares."""

    provisioner_names: pulumi.Output[Sequence[str]]
    """Names of the Provisioners."""
    node_pool_names: pulumi.Output[Sequence[str]]
    """Names of the NodePools."""

    def __init__(self, name: str, args: CapacityArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        self._name, self._given_options = name, opts
        self._owner = f"{pulumi.get_project()}/{pulumi.get_stack()}/{name}"
        reader = ArgumentReader("Capacity", args, CapacityArgs)
        self._defaults = ClassDefaults(
            {names.DISCOVERY_TAG: reader.cluster_name()},
            reader.texts("subnet_ids"),
            reader.value("instance_profile"),
        )
        self._timeout = f"{reader.integer('timeout_minutes', 30, 1, 24 * 60)}m"
        self._manifests: list[Mapping[str, Any]] = []
        self._pools: list[pulumi.Resource] = []
        cluster = LiveCluster(
            reader.value("preview_kubeconfig"),
            reader.value("region", ""),
            reader.text("controller_namespace", "karpenter"),
        )
        asks = reader.flag("preview_plan", True) and cluster.kubeconfig is not None
        given = read_pools(reader, self._defaults)
        reader.check()
        super().__init__("nodeless:index:Capacity", name, {}, opts)
        for generation in _GENERATIONS:
            self._make(generation, given[generation.classes], given[generation.pools])
        foretell(
            Declaration(self, name, self._owner, self._manifests, self._pools, cluster if asks else None)
        )
        self.provisioner_names = pulumi.Output.from_input(
            [provisioner["name"] for provisioner in given["provisioners"]]
        )
        self.node_pool_names = pulumi.Output.from_input(
            [node_pool["name"] for node_pool in given["node_pools"]]
        )
        self.register_outputs(
            {"provisionerNames": self.provisioner_names, "nodePoolNames": self.node_pool_names}
        )

    def _make(
        self,
        generation: _Generation,
        classes: Sequence[Mapping[str, Any]],
        pool_args: Sequence[Mapping[str, Any]],
    ) -> None:
        made = {
            pod_class["name"]: self._resource(
                generation.class_resource,
                generation.class_kind,
                {"name": pod_class["name"]},
                _class_spec(pod_class, generation, self._defaults),
            )
            for pod_class in classes
        }
        for pool_arg in pool_args:
            pool = self._resource(
                generation.pool_resource,
                generation.pool_kind,
                # For people, and for a later preview where the engine does not tell what the stack had.
                {"name": pool_arg["name"], "annotations": {OWNER: self._owner}},
                generation.pool_spec(pool_arg),
                made[pool_arg[generation.reference]],
            )
            self._pools.append(pool)

    def _resource(
        self,
        resource: str,
        kind: tuple[str, str],
        metadata: Mapping[str, Any],
        spec: Mapping[str, Any],
        *after: pulumi.Resource,
    ) -> pulumi.Resource:
        self._manifests.append({"apiVersion": kind[0], "kind": kind[1], "metadata": metadata, "spec": spec})
        return k8s.apiextensions.CustomResource(
            f"{self._name}-{resource}-{metadata['name']}",
            api_version=kind[0],
            kind=kind[1],
            metadata=k8s.meta.v1.ObjectMetaArgs(**metadata),
            spec=spec,
            opts=child_after(self, self._given_options, list(after), delete_timeout=self._timeout),
        )


def read_pools(reader: ArgumentReader, defaults: ClassDefaults) -> dict[str, list[dict[str, Any]]]:
    """Pools and node classes by the name of their argument, in one way of writing.

    Reports faults of form, of references, and those that the controller's webhook would find.

    Args:
        reader: of the arguments; takes the faults.
        defaults: what node classes have that say nothing else.
    """
    given: dict[str, list[dict[str, Any]]] = {}
    for generation in _GENERATIONS:
        classes, sound = _read_form(reader, generation.classes, generation.class_shape, ("name",))
        for path, item in sound.items():
            spec = _class_spec(item, generation, defaults)
            _check_rules(reader, path, generation.class_kind, item, spec)
        names_given = ("name", generation.reference)
        pool_args, sound = _read_form(reader, generation.pools, generation.pool_shape, names_given)
        _check_references(reader, generation, pool_args, classes)
        for path, item in sound.items():
            _check_rules(reader, path, generation.pool_kind, item, generation.pool_spec(item))
        given |= {generation.classes: classes, generation.pools: pool_args}
    return given


def _check_references(
    reader: ArgumentReader,
    generation: _Generation,
    pool_args: Sequence[Mapping[str, Any]],
    classes: Sequence[Mapping[str, Any]],
) -> None:
    """Reports pools whose node class is not declared beside them."""
    known = [item["name"] for item in classes if isinstance(item.get("name"), str)]
    for index, item in enumerate(pool_args):
        name = item.get(generation.reference)
        if isinstance(name, str) and name not in known:
            reader.report(
                f"{generation.pools}[{index}].{generation.reference}",
                f"{name!r} is not declared here",
                f"declared are {', '.join(known) or 'none'}",
            )


def _class_spec(args: Mapping[str, Any], generation: _Generation, defaults: ClassDefaults) -> dict[str, Any]:
    discovery, subnets = dict(defaults.discovery), defaults.subnet_ids
    if generation.classes == "node_templates":
        return pools.node_template_spec(args, discovery, subnets)
    return pools_v1.node_class_spec(args, discovery, defaults.instance_profile, subnets)


def _read_form(
    reader: ArgumentReader, field: str, shape: Any, names_given: Sequence[str]
) -> tuple[list[dict[str, Any]], dict[str, dict[str, Any]]]:
    """All items of an argument, and by their paths those without a fault of form.

    Reports members that are unknown, missing or of another kind, names that are not known yet, and names
    that are used twice.
    """
    faults = len(reader.problems)
    items: list[dict[str, Any]] = shapes.read(reader, field, reader.value(field, ()), shape, _LATER)
    paths = {f"{field}[{index}]": item for index, item in enumerate(items)}
    seen: set[object] = set()
    for path, item in paths.items():
        for member in names_given:
            shapes.check_known(reader, f"{path}.{member}", item.get(member))
        name = item.get("name")
        if name is not None and name in seen:
            reader.report(f"{path}.name", f"{name!r} is used twice")
        seen.add(name)
    faulty = tuple(problem.path + "." for problem in reader.problems[faults:])
    sound = {
        path: item for path, item in paths.items() if not any(each.startswith(f"{path}.") for each in faulty)
    }
    return items, sound


def _check_rules(
    reader: ArgumentReader,
    path: str,
    kind: tuple[str, str],
    args: Mapping[str, Any],
    spec: Mapping[str, Any],
) -> None:
    """Reports what the webhook would refuse, by the path in the manifest."""
    manifest = {"apiVersion": kind[0], "kind": kind[1], "metadata": {"name": args["name"]}}
    for fault in validate({**manifest, "spec": _with_stand_ins(spec)}):
        if not fault.warning and fault.value != _STAND_IN:
            text = str(fault).removesuffix(f"; hint: {fault.hint}")
            reader.report(path, f"{kind[1]} {args['name']}: {text}", fault.hint)


def _with_stand_ins(value: Any) -> Any:
    """The value with a text wherever it is not known yet."""
    if isinstance(value, Mapping):
        return {key: _with_stand_ins(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_with_stand_ins(each) for each in value]
    return _STAND_IN if isinstance(value, pulumi.Output) else value

"""A migration worked out: groups read, pools proposed, both bills, by the solver on the pods of the input."""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from nodeless.api.conversion_classes import ClassContext
from nodeless.api.conversion_v1beta1 import convert_any_to_v1, kind_v1beta1
from nodeless.api.drop_nulls import drop_nulls
from nodeless.api.kinds import PROVISIONER
from nodeless.api.validation import subject_of, validate
from nodeless.api.validation_v1beta1 import validate_v1beta1
from nodeless.cli.commands.migration_input import (
    MigrationInput,
    proposed_document,
    read_migration,
    templates_of,
)
from nodeless.cli.commands.output import TABLE, refuse_faults
from nodeless.cli.commands.terms import refuse, remark
from nodeless.cli.manifests.documents import BadManifests, FaultLine
from nodeless.cli.manifests.members import metadata_of
from nodeless.cli.manifests.reading import FileContents, read_documents
from nodeless.cli.manifests.skipped import skipped_lines
from nodeless.cloudprovider.aws.catalog_file import CatalogFile
from nodeless.cloudprovider.aws.offline_catalogs import offline_catalogs
from nodeless.explain.decisions import Situation
from nodeless.explain.migration.autoscaler import Autoscaler
from nodeless.explain.migration.behavior import PoolLabels, differences, with_pool_labels
from nodeless.explain.migration.groups import read_groups
from nodeless.explain.migration.ledger import Ledger
from nodeless.explain.migration.node_group import NodeGroup
from nodeless.explain.migration.proposals import Proposals, TypeSize, propose
from nodeless.explain.migration.report import Migration, PricedNode, bill_of
from nodeless.explain.migration.steps import ProposedObjects, Step, steps_from_groups, steps_from_karpenter
from nodeless.explain.report import Report, report
from nodeless.explain.what_if import without_nodes
from nodeless.explain.words import count, listed
from nodeless.model import events
from nodeless.model.labels import (
    CAPACITY_TYPE,
    EKS_CAPACITY_TYPE,
    NODE_POOL,
    ON_DEMAND,
    PROVISIONER_NAME,
    RESERVED,
    SPOT,
    ZONE,
)
from nodeless.model.nodes import Node
from nodeless.model.plan import Plan
from nodeless.model.pods import Pod
from nodeless.model.snapshot import Snapshot
from nodeless.model.workloads import Workload, workload_of
from nodeless.scheduling import Policy
from nodeless.state import apply

Manifest = dict[str, Any]
_SCALE_DOWN_DISABLED = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
_SERVERS = (
    "creationTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
    "finalizers",
)
_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_LIFECYCLES = {"SPOT": SPOT, "spot": SPOT, "Ec2Spot": SPOT, "ON_DEMAND": ON_DEMAND, "on-demand": ON_DEMAND}


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line says."""

    files: Sequence[str]
    role: str = ""
    any_type: bool = False
    zones: tuple[str, ...] = ()
    """Of the subnets, where the input does not say it."""
    output: str = TABLE
    """The form of the answer; faults of the input are in it, too, where it is one of findings."""


@dataclass(frozen=True, slots=True)
class _Pools:
    """What is proposed, whatever it was made of."""

    manifests: list[Manifest]
    origins: list[tuple[str, str]]
    groups: list[NodeGroup]
    renamed: dict[str, str]
    """The pool of each group, by all of its names."""
    older: bool
    beta: bool
    proposed: ProposedObjects

    @property
    def labels(self) -> PoolLabels:
        """What labels of groups are called on nodes of the pools."""
        templates = [one["spec"]["template"] for one in self.manifests if one["kind"] == "NodePool"]
        own = {key for one in templates for key in (one.get("metadata") or {}).get("labels") or {}}
        return PoolLabels(self.renamed, frozenset(own))


def migration_of(options: Options, sold: CatalogFile) -> Migration:
    """The migration; ends the command with every fault of every file where the input cannot be used."""
    ledger = Ledger()
    given = read_migration(options.files, ledger)
    for line in given.remarks:
        remark(f"nodeless: note: {line}")
    autoscaler = given.autoscaler(ledger)
    sizes = type_sizes(sold)
    given.answers.sold = sizes.keys()
    read = read_groups(given.answers, autoscaler, ledger)
    names = {str(metadata_of(document.value).get("name")) for document in given.pools}
    made = propose(
        read.served, autoscaler, sizes, ledger, role=options.role, any_type=options.any_type, names=names
    )
    _end_with([*given.faults, *read.faults, *made.faults], options.output)
    pools = _with_karpenter(given, made, options, ledger)
    if not pools.manifests:
        refuse(
            "neither a node group nor a pool in the input; hint: add the answer of aws eks "
            "describe-nodegroup or "
            "aws autoscaling describe-auto-scaling-groups, or the pools of Karpenter"
        )
    wider = [] if options.any_type else _wider(read.served, autoscaler, sizes, options, names)
    return _Migrating(given, autoscaler, pools, ledger, sold, options).result(wider)


def type_sizes(sold: CatalogFile) -> dict[str, TypeSize]:
    """What each type of a catalog has."""
    return {facts.name: TypeSize(facts.cpus, facts.memory_mib, facts.architecture) for facts in sold.facts}


def _wider(
    groups: Iterable[NodeGroup],
    autoscaler: Autoscaler,
    sizes: Mapping[str, TypeSize],
    options: Options,
    names: Iterable[str],
) -> list[Manifest]:
    """The same with any current type; of no account, for it is one figure and no proposal."""
    made = propose(groups, autoscaler, sizes, Ledger(), role=options.role, any_type=True, names=names)
    return made.manifests


def _end_with(faults: Sequence[str], output: str) -> None:
    if faults:
        refuse_faults(faults, "the input", output)


def _with_karpenter(given: MigrationInput, made: Proposals, options: Options, ledger: Ledger) -> _Pools:
    """Proposals for groups, and Karpenter's pools as v1 says them."""
    renamed: dict[str, str] = {}
    origins = []
    for proposal in made.proposals:
        origins.append((proposal.pool_name, proposal.group.subject))
        renamed |= dict.fromkeys(proposal.group.label_names, proposal.pool_name)
    manifests = [_cleaned(document.value) for document in given.pools]
    faults = [
        FaultLine.of(f"{document.at(fault.path)}: {subject_of(document.value)}: {fault}", fault.code)
        for document in given.pools
        for fault in (validate_v1beta1 if kind_v1beta1(document.value) else validate)(document.value)
        if not fault.warning
    ]
    _end_with(faults, options.output)
    result = convert_any_to_v1(manifests, ClassContext(role=options.role))
    places = {subject_of(document.value): document for document in given.pools}
    _end_with(
        [
            FaultLine.of(f"{places[subject].at(loss.path)}: {subject}: not converted: {loss}", loss.code)
            for subject, loss in result.losses
        ],
        options.output,
    )
    for subject, note in result.notes:
        ledger.leave(subject, "conversion", "", note)
    for subject, change in result.changes:
        ledger.leave(
            subject,
            change.path,
            change.value if change.value is not None else "",
            f"{change.message}; hint: {change.hint}",
        )
    for subject, manifest in zip(result.subjects, result.manifests, strict=True):
        ledger.carry(subject, "spec", f"{manifest['kind']}/{manifest['metadata'].get('name')}")
        if manifest["kind"] == "NodePool":
            origins.append((str(manifest["metadata"].get("name")), subject))
    older = any(PROVISIONER.describes(document.value) for document in given.pools)
    beta = any(kind_v1beta1(document.value) for document in given.pools)
    groups = [proposal.group for proposal in made.proposals]
    proposed = [*made.manifests, *result.manifests]
    return _Pools(proposed, origins, groups, renamed, older, beta, _split(proposed, given))


def _split(manifests: Iterable[Manifest], given: MigrationInput) -> ProposedObjects:
    """Which of the manifests the input has already, in whatever version, and which are new."""
    known = {_kubectl_name(document.value) for document in given.pools}
    names = [_kubectl_name(manifest) for manifest in manifests]
    return ProposedObjects(
        tuple(name for name in names if name in known), tuple(name for name in names if name not in known)
    )


def _kubectl_name(manifest: Mapping[str, Any]) -> str:
    return f"{str(manifest['kind']).lower()}/{manifest['metadata'].get('name')}"


def _cleaned(manifest: Manifest) -> Manifest:
    """Without what the API server writes, as it would be applied."""
    cleaned: Manifest = drop_nulls({name: value for name, value in manifest.items() if name != "status"})
    metadata = cleaned.get("metadata")
    if isinstance(metadata, dict):
        kept = {name: value for name, value in metadata.items() if name not in _SERVERS}
        annotations = kept.get("annotations")
        if isinstance(annotations, dict):
            kept["annotations"] = {name: text for name, text in annotations.items() if name != _APPLIED}
        cleaned = {**cleaned, "metadata": {name: value for name, value in kept.items() if value != {}}}
    return cleaned


class _Migrating:
    """The parts of a migration, each worked out once."""

    def __init__(
        self,
        given: MigrationInput,
        autoscaler: Autoscaler,
        pools: _Pools,
        ledger: Ledger,
        sold: CatalogFile,
        options: Options,
    ) -> None:
        self._given, self._autoscaler, self._pools = given, autoscaler, pools
        self._ledger, self._sold, self._options = ledger, sold, options
        self._notes: list[str] = []
        #: Of nodes as the pools in their place would have them, by source, type, zone and capacity type.
        self._bills: dict[tuple[str, str, str, str], float] = {}

    def result(self, wider: list[Manifest]) -> Migration:
        """The migration; `wider`: pools of any type, for one more figure."""
        contents = self._read(self._pools.manifests)
        before = contents.snapshot
        self._bills = self._bills_by_source(before)
        priced = self._priced(before)
        replaced = [node.name for node in priced if node.source and node.name in before.nodes]
        self._account_for_nodes(before, frozenset(replaced))
        after, concerned = self._emptied(before, replaced)
        planned = self._planned(after) if concerned else None
        cheaper = self._cost_of(wider, replaced) if wider and concerned else None
        wide = {group.subject for group in self._pools.groups if len(group.zones) > 1}
        spread = frozenset(node.name for node in priced if node.source in wide)
        templates = templates_of(self._given.objects, before)
        # Pods that wait, such as a CronJob's next, are in neither bill, and will ask for the same.
        told = concerned | frozenset(key for key, pod in before.pods.items() if pod.provisionable)
        differing = differences(before, templates, self._autoscaler, self._pools.labels, told, spread)
        bill = bill_of(priced, None if planned is None else planned.cost.added, cheaper)
        return Migration(
            tuple(self._pools.manifests),
            tuple(self._pools.origins),
            bill,
            tuple(priced),
            differing,
            tuple(self._ledger.carried),
            tuple(self._ledger.left),
            self._steps(differing, priced),
            _with_before(planned, bill.before),
            (*self._offer_notes(), *contents.assumed, *skipped_lines(contents.skipped), *self._notes),
        )

    def _read(self, manifests: Iterable[Manifest]) -> FileContents:
        proposed = [proposed_document(manifest) for manifest in manifests]
        try:
            return read_documents([*self._given.planned, *proposed])
        except BadManifests as error:
            _end_with(error.faults, self._options.output)
            raise

    @property
    def _zones(self) -> tuple[str, ...]:
        """Zones of subnets: as given, else those of the groups, else the first three that are sold."""
        if self._options.zones:
            return self._options.zones
        known = {zone for group in self._pools.groups for zone in group.zones}
        sold = self._sold.all_zones
        if known and not known & set(sold):
            refuse(
                f"the catalog of {self._sold.region} has none of the groups' zones "
                f"({', '.join(sorted(known))}); "
                "hint: give --catalog with the output of `nodeless catalog` in their region"
            )
        everywhere = all(group.zones for group in self._pools.groups)
        return tuple(sorted(known & set(sold) | (set() if known and everywhere else set(sold[:3]))))

    def _offer_notes(self) -> list[str]:
        spot = (
            f", spot assumed to cost {self._sold.spot_percent:g} % of it"
            if self._sold.spot_percent is not None
            else ""
        )
        return [
            f"list prices of {self._sold.region}, {self._sold.date}{spot}; zones {', '.join(self._zones)}"
        ]

    def _situation(self, snapshot: Snapshot) -> Situation:
        catalog, problems = offline_catalogs(self._sold, snapshot, self._zones)
        return Situation(snapshot, catalog, Policy(pool_problems=problems), time.time())

    def _planned(self, snapshot: Snapshot) -> Report:
        """What would be launched; for pods without a place, with what would help."""
        situation = self._situation(snapshot)
        plan = situation.plan()
        wider = None
        if plan.refusals:
            wider, _ = offline_catalogs(self._sold, snapshot, self._zones, allowed_only=False)
        return report(situation, plan, (), wider)

    def _emptied(self, before: Snapshot, replaced: Sequence[str]) -> tuple[Snapshot, frozenset[str]]:
        """The cluster without the nodes that go, and the pods that look for a place then.

        Where nodes are known, pods that were pending before are left out: the bill before has no nodes for
        them.
        """
        after = without_nodes(before, replaced)
        if replaced:
            waiting = [key for key, pod in before.pods.items() if pod.provisionable]
            for key in waiting:
                after = apply(after, events.PodGone(key))
            for key in [key for key, pod in after.pods.items() if self._is_autoscaler(pod)]:
                after = apply(after, events.PodGone(key))
            if waiting:
                self._notes.append(
                    f"{count(len(waiting), 'pending pod')} of the input: not included in either bill"
                )
        concerned = frozenset(key for key, pod in after.pods.items() if pod.provisionable)
        return with_pool_labels(after, sorted(concerned), self._pools.labels), concerned

    def _is_autoscaler(self, pod: Pod) -> bool:
        """Whether a pod is the autoscaler's own, which goes with the last group."""
        namespace, _, name = self._autoscaler.deployment.partition("/")
        return bool(name) and workload_of(pod) == Workload(namespace, "Deployment", name)

    def _cost_of(self, manifests: list[Manifest], replaced: Sequence[str]) -> float | None:
        """What the plan costs with other pools; None where it has no place for a pod."""
        others = [one for one in self._pools.manifests if one not in manifests]
        kept = {(one["kind"], one["metadata"]["name"]) for one in manifests}
        others = [one for one in others if (one["kind"], one["metadata"]["name"]) not in kept]
        snapshot, _ = self._emptied_quietly(self._read([*manifests, *others]).snapshot, replaced)
        plan: Plan = self._situation(snapshot).plan()
        return None if plan.refusals else plan.cost_per_hour

    def _emptied_quietly(self, before: Snapshot, replaced: Sequence[str]) -> tuple[Snapshot, frozenset[str]]:
        noted = list(self._notes)
        result = self._emptied(before, replaced)
        self._notes = noted
        return result

    def _bills_by_source(self, snapshot: Snapshot) -> dict[tuple[str, str, str, str], float]:
        """What nodes of groups cost with volumes and the like: both bills have the same parts."""
        catalogs, _ = offline_catalogs(self._sold, snapshot, self._sold.all_zones, allowed_only=False)
        bills: dict[tuple[str, str, str, str], float] = {}
        for pool, source in self._pools.origins:
            for instance_type in catalogs.get(f"NodePool/{pool}", ()):
                for offering in instance_type.offerings:
                    if offering.priced and not offering.reservation:
                        key = (source, instance_type.name, offering.zone, offering.capacity_type)
                        bills[key] = offering.price
        return bills

    def _priced(self, snapshot: Snapshot) -> list[PricedNode]:
        """The nodes of the cluster, else the groups' own instances, else as many as are desired."""
        if snapshot.nodes:
            return [self._priced_node(node) for _, node in sorted(snapshot.nodes.items())]
        found: list[PricedNode] = []
        for group in self._pools.groups:
            capacity = group.capacity_types[0] if len(group.capacity_types) == 1 else ON_DEMAND
            if group.instances:
                found += [
                    self._named(one.id, group.subject, one.instance_type, one.zone, capacity)
                    for one in group.instances
                ]
                continue
            kind = group.types[0] if group.types else ""
            zones = group.zones or self._zones
            for number in range(group.desired):
                name = f"{group.subject}-{number + 1}"
                found.append(self._named(name, group.subject, kind, zones[number % len(zones)], capacity))
        if found:
            self._notes.append(
                "no nodes in the input: the bill before counts the groups' instances, or the desired "
                "number of their first type"
            )
        return found

    def _priced_node(self, node: Node) -> PricedNode:
        group = self._group_of(node)
        labels = node.labels
        told = (
            labels.get(CAPACITY_TYPE)
            or labels.get(EKS_CAPACITY_TYPE)
            or labels.get("node.kubernetes.io/lifecycle", "")
        )
        capacity = _LIFECYCLES.get(told, told)
        if not capacity:
            capacity = group.capacity_types[0] if group and len(group.capacity_types) == 1 else ON_DEMAND
        source = group.subject if group is not None else self._pool_of(node)
        return self._named(node.name, source, node.instance_type, labels.get(ZONE, ""), capacity)

    def _pool_of(self, node: Node) -> str:
        """What made a node of Karpenter's, where that is among the objects that are migrated."""
        for key, kinds in ((NODE_POOL, ("NodePool",)), (PROVISIONER_NAME, ("Provisioner",))):
            subjects = [f"{kind}/{node.labels[key]}" for kind in kinds if key in node.labels]
            if found := [origin for _, origin in self._pools.origins if origin in subjects]:
                return found[0]
        return ""

    def _named(self, name: str, source: str, kind: str, zone: str, capacity: str) -> PricedNode:
        spot = capacity == SPOT
        price = self._sold.spot.get((kind, zone)) if spot else self._sold.on_demand.get(kind)
        price = self._bills.get((source, kind, zone, SPOT if spot else ON_DEMAND), price)
        return PricedNode(
            name, source, kind, zone, capacity if capacity in (SPOT, RESERVED) else ON_DEMAND, price
        )

    def _group_of(self, node: Node) -> NodeGroup | None:
        instance = node.provider_id.rpartition("/")[2]
        for group in self._pools.groups:
            if instance and any(instance == one.id for one in group.instances):
                return group
            named = node.labels.get("eks.amazonaws.com/nodegroup") or node.labels.get(
                "alpha.eksctl.io/nodegroup-name"
            )
            if named and named in group.label_names:
                return group
        return None

    def _account_for_nodes(self, snapshot: Snapshot, replaced: frozenset[str]) -> None:
        unknown: dict[str, int] = {}
        for name, node in snapshot.nodes.items():
            group = node.labels.get("eks.amazonaws.com/nodegroup")
            if group and name not in replaced:
                unknown[group] = unknown.get(group, 0) + 1
        for group, number in sorted(unknown.items()):
            reason = f"is not in the input; hint: add aws eks describe-nodegroup --nodegroup-name {group}"
            self._ledger.leave(f"nodegroup/{group}", count(number, "node"), "", reason)
        for document in self._given.objects:
            metadata = document.value.get("metadata") or {}
            annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
            if (
                document.value["kind"] == "Node"
                and isinstance(annotations, dict)
                and _SCALE_DOWN_DISABLED in annotations
            ):
                self._ledger.leave(
                    f"Node/{metadata.get('name')}",
                    _SCALE_DOWN_DISABLED,
                    annotations[_SCALE_DOWN_DISABLED],
                    "is on a node that will be removed; hint: protect pods with karpenter.sh/do-not-disrupt",
                )

    def _steps(self, differing: Any, priced: Sequence[PricedNode]) -> tuple[Step, ...]:
        if not self._pools.groups:
            return steps_from_karpenter(
                differing, self._pools.proposed, older=self._pools.older, beta=self._pools.beta
            )
        nodes: dict[str, tuple[str, ...]] = {}
        for node in priced:
            if node.source and not node.name.startswith(("i-", node.source)):
                nodes[node.source] = (*nodes.get(node.source, ()), node.name)
        return steps_from_groups(self._pools.groups, self._autoscaler, differing, nodes, self._pools.proposed)


def _with_before(told: Report | None, before: float) -> Report | None:
    """The report of the plan with the bill of the nodes that go as its cost before."""
    if told is None:
        return None
    added = told.cost.added - before
    return replace(
        told,
        cost=replace(
            told.cost, before=before, added=added, lower_bound=None, gap=None, proved_cheapest=False
        ),
    )


def origin_lines(migration: Migration) -> list[str]:
    """`web from nodegroup/web`, for notes."""
    return [listed([f"{pool} from {origin}" for pool, origin in migration.origins], 8)]

"""The executor: carries out instructions, and only while this replica leads.

Each instruction is idempotent; what the world answers comes back as events. A refused
call raises, and whoever gave the instruction tries again later with fresh eyes; only what is
refused for one pod of a drain is tried again on its own (`evictions`).
"""

import asyncio
from collections.abc import Iterable
from itertools import groupby
from typing import Any

from nodeless.api.kinds import KIND_OF_NAME, NODE_CLAIM
from nodeless.api.reading import read_any_claim
from nodeless.cloudprovider import CloudProvider
from nodeless.controllers.executor.claim_writes import ClaimWriter
from nodeless.controllers.executor.deletions import DeletionCounts
from nodeless.controllers.executor.evictions import Evictions, PodRequest
from nodeless.controllers.executor.failed_checks import FailedChecks
from nodeless.controllers.executor.instances import Instances
from nodeless.controllers.executor.teardown_guard import GUARD_NAME, Guard
from nodeless.kube import ApiClient, ApiError
from nodeless.kube.cluster import Cluster
from nodeless.kube.decoding import decode_node_document
from nodeless.kube.event_recorder import Recorder
from nodeless.kube.leader_election import Leadership
from nodeless.model import instructions as do
from nodeless.model.events import ClaimGone, ClaimSeen, NodeGone, NodeSeen
from nodeless.model.labels import TEARDOWN_FINALIZER
from nodeless.model.nodes import Node
from nodeless.operator.failpoints import Failpoint, Moment, pass_by
from nodeless.operator.logs import logger
from nodeless.operator.metrics import Metrics
from nodeless.operator.timing import TIMING, Timing


class InstructionExecutor:
    """Carries out instructions on the API server and the cloud. Launches have a module of their own."""

    def __init__(
        self,
        client: ApiClient,
        cloud: CloudProvider,
        cluster: Cluster,
        leadership: Leadership | None,
        recorder: Recorder,
        metrics: Metrics,
        namespace: str,
        failpoint: Failpoint = pass_by,
        timing: Timing = TIMING,
    ) -> None:
        self.failpoint = failpoint
        self.claims = ClaimWriter(client, cluster)
        self.instances = Instances(cloud, cluster, self.assert_leading)
        self.failed_checks = FailedChecks(recorder, metrics.nodes.consistency_errors)
        self.evictions = Evictions(
            client, recorder, metrics, self.failed_checks, self.assert_leading, timing.longest_eviction_wait
        )
        self.surges, self.checkpoints = self.evictions.surges, self.evictions.checkpoints
        self._deletions = DeletionCounts(cluster, metrics)
        self.guard = Guard(client, recorder, namespace)
        self._client = client
        self._cloud = cloud
        self._cluster = cluster
        self._leadership = leadership
        self._recorder = recorder
        self._metrics = metrics
        self._namespace = namespace
        self._log = logger("executor")

    async def carry_out(self, instructions: Iterable[do.Instruction]) -> None:
        """Carry out in order.

        Raises:
            NotLeadingError: The lease is lost; this process must end.
            ApiError, ApiUnavailable, CloudError, StillThereError: The rest was not carried out; try later.
                An ApiError never comes from what is asked for one pod of a drain: that is kept to the pod.
        """
        for leaving, group in groupby(instructions, lambda each: isinstance(each, PodRequest)):
            if leaving:
                some = [each for each in group if isinstance(each, PodRequest)]
                self._pass("before", some)
                self.assert_leading()
                await self.evictions.carry_out(some)
                self._pass("after", some)
                continue
            for instruction in group:
                self.failpoint("before", instruction)
                self.assert_leading()
                await self._carry_out(instruction)
                self.failpoint("after", instruction)

    async def carry_out_side_by_side(self, sequences: Iterable[Iterable[do.Instruction]]) -> None:
        """Carry out sequences at the same time, each in its order.

        Raises the first failure, as `carry_out` does, once all have ended.
        """
        outcomes = await asyncio.gather(*map(self.carry_out, sequences), return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome

    def _pass(self, moment: Moment, instructions: Iterable[do.Instruction]) -> None:
        for instruction in instructions:
            self.failpoint(moment, instruction)

    def assert_leading(self) -> None:
        """Raises NotLeadingError when the lease is not held."""
        if self._leadership is not None:
            self._leadership.assert_leading()

    async def _carry_out(self, instruction: do.Instruction) -> None:  # noqa: PLR0912 - a branch a kind
        match instruction:
            case do.CreateClaim(_, claim):
                await self.claims.create(claim)
            case do.UpdateClaimStatus(_, name, conditions, node_name, last_pod_event):
                await self.claims.set_conditions(name, conditions, node_name, last_pod_event)
            case do.AnnotateClaim(_, name, annotations):
                await self.claims.annotate(name, annotations)
            case do.LabelClaim(_, name, labels):
                await self.claims.label(name, labels)
            case do.AddFinalizer(_, kind, name, finalizer):
                await self._edit_finalizers(_path(kind, name), finalizer, present=True)
            case do.RemoveFinalizer(_, kind, name, finalizer, uid):
                await self._remove_finalizer(kind, name, finalizer, uid)
            case do.UpdateNode():
                await self._update_node(instruction)
            case do.DeleteNode(_, name, reason, uid):
                await self._delete_node(name, reason, uid)
            case do.DeleteClaim(_, name, reason):
                await self._delete_claim(name, reason)
            case do.EvictPod() | do.DeletePod() | do.RequestCheckpoint() | do.RestartDeployment():
                await self.evictions.carry_out((instruction,))
            case do.TerminateInstance() | do.RebootInstance() | do.CheckInstance() | do.TerminateEverything():
                await self.instances.carry_out(instruction)
            case do.DeletePool(_, pool):
                await self._delete(KIND_OF_NAME[pool.kind].path(pool.name))
                self._log.info("deleted pool", pool=str(pool))
            case do.DeleteLaunchTemplates():
                count = await self._cloud.delete_launch_templates()
                self._log.info("deleted launch templates", count=count)
            case do.CleanUpNodeClass(_, node_class):
                count = await self._cloud.clean_up(node_class)
                self._log.info(
                    "deleted the resources of a node class", node_class=node_class.key, profiles=count
                )
            case do.DeleteInstanceProfiles():
                count = await self._cloud.delete_instance_profiles()
                self._log.info("deleted instance profiles", count=count)
            case do.ReleaseGuard():
                path = f"/api/v1/namespaces/{self._namespace}/configmaps/{GUARD_NAME}"
                if await self._edit_finalizers(path, TEARDOWN_FINALIZER, present=False, deleted=True):
                    self._log.info("released the teardown guard")
            case do.PublishEvent():
                self._recorder.publish(instruction)
            case do.ReportFailedCheck():
                self.failed_checks.report(instruction)
            case do.LaunchInstance():
                raise TypeError("launches are carried out by Launcher")

    async def _update_node(self, update: do.UpdateNode) -> None:
        node = self._cluster.snapshot.nodes.get(update.name)
        if node is None:
            return
        if update.taints is not None and node.taints != update.taints_before:
            # The whole list is written, and its version is newer than the decision: it would not guard it.
            raise ApiError(409, "Conflict", f"taints of node {node.name} have changed since the decision")
        body = _node_patch(self._cluster.newest(node), update)
        try:
            document = await self._client.patch(f"/api/v1/nodes/{update.name}", body)
        except ApiError as error:
            if error.status == 404:
                return
            raise
        self._cluster.handle(NodeSeen(decode_node_document(document)))
        if update.stage:
            self._log.info(update.stage, node=update.name)

    async def _remove_finalizer(self, kind: str, name: str, finalizer: str, of: str) -> None:
        """The last finalizer of a deleted object takes the object along: the snapshot learns that at once.

        Unless it has learnt it from the watch meanwhile, and of another object of that name after it: EC2
        gives addresses again, and nodes are called by them.
        """
        metadata = await self._edit_finalizers(_path(kind, name), finalizer, present=False, uid=of)
        if metadata is None:
            return
        gone = bool(metadata.get("deletionTimestamp")) and not metadata.get("finalizers")
        snapshot, uid = self._cluster.snapshot, metadata["uid"]
        if kind == "Node":
            self._log.info("deleted node", node=name)
            node = snapshot.nodes.get(name)
            if gone and node is not None and node.uid == uid:
                self._cluster.handle(NodeGone(name))
        elif kind == NODE_CLAIM.kind:
            self._log.info("deleted claim", claim=name)
            claim = snapshot.claims.get(name)
            if gone and claim is not None and claim.uid == uid:
                self._cluster.handle(ClaimGone(name))

    async def _edit_finalizers(
        self, path: str, finalizer: str, *, present: bool, uid: str = "", deleted: bool = False
    ) -> dict[str, Any] | None:
        """Add or remove one entry, whatever others do at the same time (the version guards the list).

        With a `uid` only of that object, not of another one that has come under its name; with `deleted` only
        of one that is being deleted. Gives back the metadata written; None when there was nothing to change.
        """
        try:
            document = await self._client.get(path)
            metadata = document["metadata"]
            finalizers = metadata.get("finalizers") or []
            if uid and metadata.get("uid", uid) != uid:
                return None
            if deleted and not metadata.get("deletionTimestamp"):
                return None
            if (finalizer in finalizers) == present or (present and metadata.get("deletionTimestamp")):
                return None
            others = [entry for entry in finalizers if entry != finalizer]
            wanted = [*others, finalizer] if present else others
            version = {"resourceVersion": metadata["resourceVersion"], "finalizers": wanted}
            written: dict[str, Any] = (await self._client.patch(path, {"metadata": version}))["metadata"]
        except ApiError as error:
            if error.status != 404:
                raise
            return None
        return written

    async def _delete(self, path: str, uid: str | None = None) -> dict[str, Any] | None:
        """The answer (the object itself while finalizers hold it), or None when it was gone already."""
        try:
            return await self._client.delete(path, uid=uid)
        except ApiError as error:
            if error.status in (404, 409):
                return None
            raise

    async def _delete_node(self, name: str, reason: str, uid: str) -> None:
        """Delete the node that was meant, not another one that has come under its name."""
        document = await self._delete(f"/api/v1/nodes/{name}", uid or None)
        if document is None:
            return
        if document.get("kind") == "Node":
            self._cluster.handle(NodeSeen(decode_node_document(document)))
        self._log.info("triggered termination of node", node=name, **_if_set(reason=reason))

    async def _delete_claim(self, name: str, reason: str) -> None:
        claim = self._cluster.snapshot.claims.get(name)
        if claim is None:
            return
        document = await self._delete(NODE_CLAIM.path(name), claim.uid or None)
        if document is None:
            return
        if document.get("kind") == NODE_CLAIM.kind:
            self._cluster.handle(ClaimSeen(read_any_claim(document)))
        self._deletions.note(claim, reason)
        self._log.info("deleting claim", claim=name, reason=reason, node=claim.node_name)


def _path(kind: str, name: str) -> str:
    return f"/api/v1/nodes/{name}" if kind == "Node" else KIND_OF_NAME[kind].path(name)


def _node_patch(node: Node, update: do.UpdateNode) -> dict[str, object]:
    """A merge patch; lists are whole, so the version guards them."""
    metadata: dict[str, object] = {"labels": dict(update.labels), "annotations": dict(update.annotations)}
    spec: dict[str, object] = {}
    guarded = False
    if update.unschedulable is not None:
        spec["unschedulable"] = update.unschedulable
    if update.taints is not None:
        spec["taints"] = [{"key": t.key, "effect": t.effect, **_if_set(value=t.value)} for t in update.taints]
        guarded = True
    if update.add_finalizer is not None and update.add_finalizer not in node.finalizers:
        metadata["finalizers"] = [*node.finalizers, update.add_finalizer]
        guarded = True
    if update.owner_claim is not None:
        metadata["ownerReferences"] = [
            {
                "apiVersion": NODE_CLAIM.api_version,
                "kind": NODE_CLAIM.kind,
                "name": update.owner_claim.name,
                "uid": update.owner_claim.uid,
                "blockOwnerDeletion": True,
            }
        ]
    if guarded:
        metadata["resourceVersion"] = node.resource_version
    return {"metadata": metadata, **({"spec": spec} if spec else {})}


def _if_set(**values: str) -> dict[str, str]:
    """The values that are not empty."""
    return {name: value for name, value in values.items() if value}

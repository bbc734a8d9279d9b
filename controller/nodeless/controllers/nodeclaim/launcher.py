"""Launch the instance of a claim, and say what became of it.

A launch that fails leaves the claim with a condition and its pods with an event, and is
tried again; when the capacity does not exist, or the node class cannot be used, the claim is
given up and the pods are planned anew without the offerings that failed, or by another pool.
"""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext

from nodeless.cloudprovider import (
    CloudError,
    CloudProvider,
    InsufficientCapacity,
    NodeClassUnresolved,
)
from nodeless.controllers.executor.executor import InstructionExecutor
from nodeless.controllers.tracing.pod_traces import PodTraces
from nodeless.kube.cluster import Cluster
from nodeless.kube.event_recorder import Recorder
from nodeless.model.instructions import DeleteClaim, LaunchInstance, PublishEvent, UpdateClaimStatus
from nodeless.model.labels import CAPACITY_TYPE, DISRUPTION_REASON_ANNOTATION
from nodeless.model.nodes import LAUNCHED, READY, Condition, Instance, NodeClaim
from nodeless.operator.clock import wall_clock
from nodeless.operator.disruption_metrics import method_and_action
from nodeless.operator.logs import logger
from nodeless.operator.metrics import Metrics
from nodeless.state import PoolUnusable, usable_for


class RetryLaterError(Exception):
    """The launch did not happen; it has been reported and is to be tried again."""


class Launcher:
    """Carries out LaunchInstance."""

    def __init__(
        self,
        executor: InstructionExecutor,
        cloud: CloudProvider,
        cluster: Cluster,
        recorder: Recorder,
        metrics: Metrics,
        pods_of: Callable[[str], tuple[str, ...]],
        *,
        resource_names: bool = False,
        traces: PodTraces | None = None,
    ) -> None:
        self._traces = traces
        self._executor = executor
        self._cloud = cloud
        self._cluster = cluster
        self._recorder = recorder
        self._metrics = metrics
        self._pods_of = pods_of
        #: Nodes are called as their instances (aws.nodeNameConvention), not by private address.
        self._resource_names = resource_names
        self._log = logger("launcher")

    async def launch(
        self, claim: NodeClaim, waiting: Callable[[], AbstractAsyncContextManager[None]] = nullcontext
    ) -> None:
        """Launch and adopt; `waiting` is entered while nothing but the cloud's answer is waited for.

        Raises RetryLaterError, NotLeadingError, ApiError, ApiUnavailable.
        """
        try:
            pool, node_class = usable_for(self._cluster.snapshot, claim)
        except PoolUnusable as error:
            await self._give_up_class(claim, str(error))
            return
        launch = LaunchInstance(f"claim:{claim.name}", claim)
        self._executor.failpoint("before", launch)
        self._executor.assert_leading()
        asked = wall_clock()
        try:
            first = self._executor.claims.first_try(claim.name)
            claimed = self._cluster.snapshot.claim_names
            async with waiting():
                instance = await self._cloud.launch(claim, pool, node_class, first=first, claimed=claimed)
        except InsufficientCapacity as error:
            self._trace(claim, asked, None, str(error))
            await self._give_up(claim, error)
            return
        except NodeClassUnresolved as error:
            self._trace(claim, asked, None, str(error))
            await self._give_up_class(claim, str(error), error.evidence)
            return
        except CloudError as error:
            self._trace(claim, asked, None, str(error))
            await self._record_failure(claim, error.reason, str(error), error.evidence)
            raise RetryLaterError from error
        self._trace(claim, asked, instance)
        self._executor.failpoint("unrecorded", launch)
        self._metrics.nodes.created.labels(_purpose(claim), claim.pool.name).inc()
        # Without the lease the other replica adopts it: it finds the instance by its tag.
        self._executor.assert_leading()
        await self._executor.claims.adopt(claim, instance, wall_clock())
        self._executor.failpoint("after", launch)
        message = f"instance {instance.id}, {instance.instance_type} in {instance.zone}"
        cause = f"claim:{claim.name}"
        self._recorder.publish(
            PublishEvent(cause, "NodeClaim", claim.name, "Normal", LAUNCHED, message, uid=claim.uid)
        )
        self._log.info(
            "launched instance",
            claim=claim.name,
            instance=instance.id,
            hostname=await self._hostname(instance),
            type=instance.instance_type,
            zone=instance.zone,
            **{"capacity-type": instance.labels.get(CAPACITY_TYPE, instance.capacity_type)},
        )

    def _trace(self, claim: NodeClaim, asked: float, instance: Instance | None, error: str = "") -> None:
        if self._traces is not None:
            self._traces.note_launch(claim, asked, wall_clock(), instance, error)

    async def _hostname(self, instance: Instance) -> str:
        """What the node will be called; empty when it cannot be had.

        A fleet's answer does not carry the private name.
        """
        if self._resource_names:
            return instance.id
        if instance.private_dns_name:
            return instance.private_dns_name
        try:
            described = await self._cloud.find(instance.id)
        except CloudError:
            return ""
        return described.private_dns_name if described is not None else ""

    async def _give_up(self, claim: NodeClaim, error: InsufficientCapacity) -> None:
        self._log.warning(f"no capacity: {error}", claim=claim.name, reason=error.reason)
        self._tell_pods(claim, "InsufficientCapacity", f"{error}; other capacity is being planned")
        cause = f"claim:{claim.name}"
        await self._executor.carry_out((DeleteClaim(cause, claim.name, "insufficient_capacity"),))

    async def _give_up_class(self, claim: NodeClaim, message: str, evidence: str = "") -> None:
        """The class may be unusable for long, and other pools may serve the pods meanwhile."""
        self._log_failure(claim, message, evidence)
        self._tell_pods(claim, "FailedLaunch", f"{message}; other capacity is being planned")
        told = _failure_event(claim, "NodeClassNotReady", message)
        deletion = DeleteClaim(told.cause, claim.name, "nodeclass_not_ready")
        await self._executor.carry_out((told, deletion))

    async def _record_failure(self, claim: NodeClaim, reason: str, message: str, evidence: str = "") -> None:
        self._log_failure(claim, message, evidence)
        self._tell_pods(
            claim, "FailedLaunch", f"launch of claim {claim.name} failed, trying again: {message}"
        )
        told = _failure_event(claim, reason, message)
        present = claim.condition(LAUNCHED)
        since = present.last_transition_time if present and present.status == "False" else wall_clock()
        launched = Condition(LAUNCHED, "False", reason, message, since)
        ready = Condition(READY, "False", f"{LAUNCHED}False", message, since)
        status = UpdateClaimStatus(told.cause, claim.name, (launched, ready))
        await self._executor.carry_out((status, told))

    def _log_failure(self, claim: NodeClaim, message: str, evidence: str) -> None:
        details = {"evidence": evidence} if evidence else {}
        self._log.error(f"launch failed: {message}", claim=claim.name, **details)

    def _tell_pods(self, claim: NodeClaim, reason: str, message: str) -> None:
        for key in self._pods_of(claim.name):
            pod = self._cluster.snapshot.pods.get(key)
            if pod is not None and not pod.node_name:
                self._recorder.publish(
                    PublishEvent(
                        f"claim:{claim.name}",
                        "Pod",
                        pod.name,
                        "Warning",
                        reason,
                        message,
                        pod.namespace,
                        pod.uid,
                    )
                )


def _purpose(claim: NodeClaim) -> str:
    """Why a node is made, as `karpenter_nodes_created` tells it."""
    if not claim.replaces:
        return "provisioning"
    return method_and_action(claim.annotations.get(DISRUPTION_REASON_ANNOTATION, ""), replaced=True)


def _failure_event(claim: NodeClaim, reason: str, message: str) -> PublishEvent:
    cause = f"claim:{claim.name}"
    return PublishEvent(cause, "NodeClaim", claim.name, "Warning", reason, message, uid=claim.uid)

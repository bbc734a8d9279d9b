"""Writes to NodeClaim objects: create, adopt the launched instance, set conditions.

Each answer of the API server enters the snapshot at once.
"""

from collections.abc import Mapping
from dataclasses import replace

from nodeless.api.kinds import NODE_CLAIM
from nodeless.api.reading import read_any_claim
from nodeless.api.writing import claim_status, conditions_to_api, write_claim
from nodeless.kube import ApiClient, ApiError
from nodeless.kube.cluster import Cluster
from nodeless.model.events import ClaimSeen
from nodeless.model.labels import INSTANCE_PROFILE, LONGEST_LABEL_VALUE
from nodeless.model.labels import NODE_CLAIM as NODE_CLAIM_LABEL
from nodeless.model.nodes import LAUNCHED, REGISTERED_CONDITION, Condition, Instance, NodeClaim
from nodeless.model.pools import EC2_NODE_CLASS
from nodeless.nodeclaim.registration import NOT_JOINED


class ClaimWriter:
    """Writes claims through the API server into the snapshot."""

    def __init__(self, client: ApiClient, cluster: Cluster) -> None:
        self._client = client
        self._cluster = cluster
        #: Claims that this process has just written and not tried to launch yet: no instance can exist.
        self._untried: set[str] = set()

    async def create(self, claim: NodeClaim) -> NodeClaim:
        """Write the object; one that exists under the name is taken as ours."""
        try:
            # Noted before the write: the watch may bring the claim back sooner than the answer comes.
            self._untried.add(claim.name)
            written = await self._client.create(NODE_CLAIM.path(), write_claim(claim))
        except ApiError as error:
            self._untried.discard(claim.name)
            if error.status != 409:
                raise
            written = await self._client.get(NODE_CLAIM.path(claim.name))
        return self._record(written)

    async def list_claims(self) -> list[NodeClaim]:
        """All claims as the API server has them now, whatever a watch has told. Raises ApiError."""
        return [read_any_claim(each) for each in await self._client.list(NODE_CLAIM.path())]

    async def offer(self, claim: NodeClaim) -> None:
        """Ask whether the API server would take the object; nothing is written. Raises ApiError when not."""
        await self._client.request("POST", NODE_CLAIM.path(), write_claim(claim), query={"dryRun": "All"})

    def first_try(self, name: str) -> bool:
        """Whether nobody can have launched the claim yet; true once for each that this process wrote."""
        first = name in self._untried
        self._untried.discard(name)
        return first

    async def adopt(self, claim: NodeClaim, instance: Instance, now: float) -> NodeClaim:
        """Record the launched instance: labels first, then status, so that Launched implies labels."""
        labels = {**instance.labels, **claim.requirements.single_values(), **claim.labels}
        labels |= instance.labels
        if len(claim.name) <= LONGEST_LABEL_VALUE:
            labels[NODE_CLAIM_LABEL] = claim.name
        path = NODE_CLAIM.path(claim.name)
        metadata: dict[str, object] = {"labels": labels}
        if instance.instance_profile and claim.node_class.kind == EC2_NODE_CLASS:
            metadata["annotations"] = {INSTANCE_PROFILE: instance.instance_profile}
        labeled = read_any_claim(await self._client.patch(path, {"metadata": metadata}))
        launched = replace(
            labeled,
            provider_id=instance.provider_id,
            image_id=instance.image_id,
            capacity={name: amount for name, amount in instance.capacity.items() if amount},
            allocatable={name: amount for name, amount in instance.allocatable.items() if amount},
            conditions=_merge_conditions(labeled.conditions, _launch_conditions(labeled, now)),
        )
        return self._record(await self._client.patch(f"{path}/status", {"status": claim_status(launched)}))

    async def annotate(self, name: str, annotations: Mapping[str, str | None]) -> None:
        """Merge annotations into the claim; a claim that is gone needs none."""
        await self._merge(name, {"annotations": dict(annotations)})

    async def label(self, name: str, labels: Mapping[str, str | None]) -> None:
        """Merge labels into the claim; a claim that is gone needs none."""
        await self._merge(name, {"labels": dict(labels)})

    async def _merge(self, name: str, metadata: Mapping[str, object]) -> None:
        try:
            self._record(await self._client.patch(NODE_CLAIM.path(name), {"metadata": metadata}))
        except ApiError as error:
            if error.status != 404:
                raise

    async def set_conditions(
        self,
        name: str,
        conditions: tuple[Condition, ...],
        node_name: str | None = None,
        last_pod_event: float | None = None,
    ) -> None:
        """Merge conditions into the claim's status; a claim that is gone needs none."""
        claim = self._cluster.snapshot.claims.get(name)
        if claim is None:
            return
        changed = replace(
            claim,
            conditions=_merge_conditions(claim.conditions, conditions),
            node_name=claim.node_name if node_name is None else node_name,
            last_pod_event=claim.last_pod_event if last_pod_event is None else last_pod_event,
        )
        if changed == claim:
            return
        body = {
            # The version makes the merge safe: a concurrent change is a conflict, and the step is taken anew.
            "metadata": {"resourceVersion": claim.resource_version},
            # Of a claim that cannot be read nothing else is known: what stands there stays.
            "status": {"conditions": conditions_to_api(changed.conditions)}
            if claim.invalid
            else claim_status(changed),
        }
        try:
            self._record(await self._client.patch(f"{NODE_CLAIM.path(name)}/status", body))
        except ApiError as error:
            if error.status != 404:
                raise

    async def show_conditions(self, claim: NodeClaim, conditions: tuple[Condition, ...]) -> None:
        """Write the conditions of a claim and nothing else of its status: the rest may be unreadable."""
        body = {
            "metadata": {"resourceVersion": claim.resource_version},
            "status": {"conditions": conditions_to_api(conditions)},
        }
        self._record(await self._client.patch(f"{NODE_CLAIM.path(claim.name)}/status", body))

    def _record(self, document: dict[str, object]) -> NodeClaim:
        claim = read_any_claim(document)
        self._cluster.handle(ClaimSeen(claim))
        return claim


def _launch_conditions(claim: NodeClaim, now: float) -> tuple[Condition, ...]:
    """What holds of a claim from its launch on; that its node is to come is said with it, in one write."""
    launched = Condition(LAUNCHED, "True", LAUNCHED, "", now)
    if claim.condition(REGISTERED_CONDITION) is not None:
        return (launched,)
    return launched, Condition(REGISTERED_CONDITION, "Unknown", *NOT_JOINED, now)


def _merge_conditions(
    present: tuple[Condition, ...], changed: tuple[Condition, ...]
) -> tuple[Condition, ...]:
    by_type = {condition.type: condition for condition in present}
    for condition in changed:
        by_type[condition.type] = condition
    return tuple(by_type.values())

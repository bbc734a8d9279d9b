"""Instances in EC2: found by id, by claim, by cluster; rebooted; ended. Calls of many askers are joined."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from nodeless.cloudprovider import CloudUnavailable
from nodeless.cloudprovider.aws.batching import Batcher, BatchObserver
from nodeless.cloudprovider.aws.errors import AwsCallRefused
from nodeless.cloudprovider.aws.session import AwsSession
from nodeless.launch.tags import tag_list
from nodeless.model.labels import CLUSTER_TAG_PREFIX, LAUNCH_GROUP, NODE_CLAIM

Record = Mapping[str, Any]

_NOT_FOUND = frozenset({"InvalidInstanceID.NotFound", "InvalidInstanceID.Malformed"})
_USABLE_STATES = ["pending", "running", "stopping", "stopped"]
_LIVE_STATES = [*_USABLE_STATES, "shutting-down"]
_ENDING = frozenset({"shutting-down", "terminated"})
#: Seconds that a call waits for more of its kind. A launch waits for its look-up: keep that short.
_IDLE = 0.05
_IDLE_BY_CLAIM = 0.002
#: EC2's limit of values in one filter.
_FILTER_VALUES = 200


class Instances:
    """Describes, reboots and terminates."""

    def __init__(self, session: AwsSession, cluster: str, observe: BatchObserver | None = None) -> None:
        self._session = session
        self._owned = {"Name": f"tag:{CLUSTER_TAG_PREFIX}{cluster}", "Values": ["owned"]}
        self._by_id: Batcher[None, Record | None] = Batcher(
            "describe_instances", self._describe_living, None, idle=_IDLE, observe=observe
        )
        self._in_any_state: Batcher[None, Record | None] = Batcher(
            "describe_instances_in_any_state", self._describe, None, idle=_IDLE, observe=observe
        )
        self._by_claim: Batcher[None, Record | None] = Batcher(
            "describe_instances_of_claims",
            self._describe_claims,
            None,
            idle=_IDLE_BY_CLAIM,
            limit=_FILTER_VALUES,
            observe=observe,
        )
        self._living_by_claim: Batcher[None, tuple[Record, ...]] = Batcher(
            "describe_living_instances_of_claims",
            self._describe_living_of_claims,
            (),
            idle=_IDLE,
            limit=_FILTER_VALUES,
            observe=observe,
        )
        self._terminations: Batcher[None, bool] = Batcher(
            "terminate_instances", self._terminate, False, idle=_IDLE, observe=observe
        )

    async def find(self, instance_id: str) -> Record | None:
        """EC2's record, or None for an instance that is terminated or unknown."""
        return await self._by_id.ask(instance_id, None)

    async def state_of(self, instance_id: str) -> str:
        """EC2's state of an instance; empty for one that it does not know (yet, or any more)."""
        record = await self._in_any_state.ask(instance_id, None)
        return "" if record is None else str(record["State"]["Name"])

    async def of_claim(self, claim: str) -> Record | None:
        """The record of the instance that was launched for a claim and lives, or None."""
        return await self._by_claim.ask(claim, None)

    async def living_of_claim(self, claim: str) -> tuple[Record, ...]:
        """The records of the instances that bear a claim's name and are not terminated yet."""
        return await self._living_by_claim.ask(claim, None)

    async def of_group(self, group: str) -> list[Record]:
        """The records of the living instances that were launched for a group of claims."""
        wanted = {"Name": f"tag:{LAUNCH_GROUP}", "Values": [group]}
        return await self._list([self._owned, wanted], _USABLE_STATES)

    async def list_owned(self) -> list[Record]:
        """Every live instance that the controller of this cluster launched."""
        marks = (NODE_CLAIM, LAUNCH_GROUP)
        records = await self._list([self._owned, {"Name": "tag-key", "Values": [*marks]}], _LIVE_STATES)
        for record in records:
            # Such an instance would pass for one that no claim knows.
            if not any(tag["Key"] in marks for tag in record.get("Tags", ())):
                text = f"ec2:DescribeInstances returned {record['InstanceId']} without the filtered tag"
                raise CloudUnavailable("ec2", text, "nodeless asks again")
        return records

    async def terminate(self, instance_id: str) -> bool:
        """Whether the instance is ending, has ended, or is not there."""
        return await self._terminations.ask(instance_id, None)

    async def reboot(self, instance_id: str) -> None:
        """Ask for a reboot; EC2 takes the request, and does it within the next minutes (RebootInstances)."""
        await self._session.call("ec2", "reboot_instances", {"InstanceIds": [instance_id]})

    async def tag(self, instance_id: str, tags: Mapping[str, str]) -> None:
        """Add tags to an instance, or replace those of the same keys (CreateTags)."""
        request = {"Resources": [instance_id], "Tags": tag_list(tags)}
        await self._session.call("ec2", "create_tags", request)

    async def _list(self, filters: Sequence[Mapping[str, Any]], states: Sequence[str]) -> list[Record]:
        state = {"Name": "instance-state-name", "Values": list(states)}
        request = {"Filters": [*filters, state], "MaxResults": 1000}
        reservations = await self._session.pages("ec2", "describe_instances", request, "Reservations")
        return [record for reservation in reservations for record in reservation.get("Instances", ())]

    async def _describe_claims(self, claims: Iterable[str]) -> Mapping[str, Record | None]:
        found = await self._list_of_claims(claims, _USABLE_STATES)
        return {claim: records[0] for claim, records in found.items()}

    async def _describe_living_of_claims(self, claims: Iterable[str]) -> Mapping[str, tuple[Record, ...]]:
        return await self._list_of_claims(claims, _LIVE_STATES)

    async def _list_of_claims(
        self, claims: Iterable[str], states: Sequence[str]
    ) -> dict[str, tuple[Record, ...]]:
        """The records of the instances of each claim that has any, the oldest first."""
        wanted = {"Name": f"tag:{NODE_CLAIM}", "Values": list(claims)}
        records = await self._list([self._owned, wanted], states)
        found: dict[str, tuple[Record, ...]] = {}
        for record in sorted(records, key=lambda record: (record["LaunchTime"], record["InstanceId"])):
            tags = {tag["Key"]: tag["Value"] for tag in record.get("Tags", ())}
            found[tags[NODE_CLAIM]] = (*found.get(tags[NODE_CLAIM], ()), record)
        return found

    async def _describe_living(self, asked: Iterable[str]) -> Mapping[str, Record | None]:
        return await self._describe(asked, ({"Name": "instance-state-name", "Values": _LIVE_STATES},))

    async def _describe(
        self, asked: Iterable[str], filters: Sequence[Mapping[str, Any]] = ()
    ) -> Mapping[str, Record | None]:
        ids = list(asked)
        request: dict[str, Any] = {"InstanceIds": ids, **({"Filters": list(filters)} if filters else {})}
        try:
            reservations = await self._session.pages("ec2", "describe_instances", request, "Reservations")
        except AwsCallRefused as error:
            if error.code not in _NOT_FOUND:
                raise
            # One unknown id fails the whole call: ask for each alone.
            return {} if len(ids) == 1 else await _each(ids, lambda id_: self._describe(id_, filters))
        return {
            record["InstanceId"]: record
            for reservation in reservations
            for record in reservation.get("Instances", ())
        }

    async def _terminate(self, asked: Iterable[str]) -> Mapping[str, bool]:
        ids = list(asked)
        try:
            answer = await self._session.call("ec2", "terminate_instances", {"InstanceIds": ids})
        except AwsCallRefused as error:
            if len(ids) > 1:
                return await _each(ids, self._terminate)
            # EC2 has words of its own for an instance on its way out: what counts is whether it is there.
            if error.code not in _NOT_FOUND and await self.find(ids[0]) is not None:
                raise
            return {ids[0]: True}
        return {
            terminating_instance["InstanceId"]: terminating_instance["CurrentState"]["Name"] in _ENDING
            for terminating_instance in answer.get("TerminatingInstances", ())
        }


async def _each(ids: Sequence[str], ask: Any) -> dict[str, Any]:
    """Ask for each alone: an answer, or the exception of that one."""
    answers = await asyncio.gather(*(ask([id_]) for id_ in ids), return_exceptions=True)
    result: dict[str, Any] = {}
    for key, answer in zip(ids, answers, strict=True):
        result.update({key: answer} if isinstance(answer, BaseException) else answer)
    return result

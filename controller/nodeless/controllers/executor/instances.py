"""Instances that are rebooted, and those that end: asked to, watched until gone, remembered as gone.

`Hands` gives the instructions here. That an instance is gone is a fact the snapshot does
not hold: it is kept here for as long as the claim exists.
"""

from collections.abc import Callable

from nodeless.cloudprovider import CloudProvider
from nodeless.kube.cluster import Cluster
from nodeless.model.events import ClaimGone, Event
from nodeless.model.instructions import (
    CheckInstance,
    RebootInstance,
    TerminateEverything,
    TerminateInstance,
)
from nodeless.model.snapshot import Snapshot
from nodeless.operator.logs import logger


class StillThereError(Exception):
    """What an instruction is to end still lives: what follows must wait."""


class Instances:
    """Reboots and ends instances through the cloud."""

    def __init__(self, cloud: CloudProvider, cluster: Cluster, assert_leading: Callable[[], None]) -> None:
        """`assert_leading` raises when this replica may not act any more."""
        self._assert_leading = assert_leading
        self._cloud = cloud
        self._cluster = cluster
        self._log = logger("executor")
        #: Known claims (by name) of which the cloud has confirmed that no instance lives.
        self.gone: set[str] = set()
        cluster.listen(self._on_event)

    def _on_event(self, event: Event, _before: Snapshot, _after: Snapshot) -> None:
        match event:
            case ClaimGone(name):
                self.gone.discard(name)

    async def carry_out(
        self, instruction: TerminateInstance | RebootInstance | CheckInstance | TerminateEverything
    ) -> None:
        """Raises CloudError; StillThereError when everything is to end and something lives.

        Several instances end one after the other, as long as this replica leads.
        """
        match instruction:
            case TerminateInstance():
                await self._terminate(instruction)
            case RebootInstance(_, name, instance_id):
                await self._cloud.reboot(instance_id)
                self._log.info("rebooting instance", instance=instance_id, claim=name)
            case CheckInstance(_, name, instance_id):
                if await self._cloud.find(instance_id) is None:
                    self._note_gone(name)
            case TerminateEverything():
                await self._terminate_everything()

    async def _terminate(self, instruction: TerminateInstance) -> None:
        """Ask for the end of the claim's instances, and note when none lives any more."""
        name = instruction.claim_name
        ids = [instruction.instance_id] if instruction.instance_id else await self._ids_of_claim(name)
        living = []
        for instance_id in ids:
            if await self._cloud.find(instance_id) is None:
                continue
            self._assert_leading()
            if await self._cloud.terminate(instance_id):
                self._log.info("terminating instance", instance=instance_id, claim=name)
            if await self._cloud.find(instance_id) is not None:
                living.append(instance_id)
        if not living:
            self._note_gone(name)

    def _note_gone(self, claim_name: str) -> None:
        # The name of a claim that went meanwhile would never be taken out again.
        if claim_name in self._cluster.snapshot.claims:
            self.gone.add(claim_name)

    async def _ids_of_claim(self, claim_name: str) -> list[str]:
        return [instance.id for instance in await self._cloud.instances_of(claim_name)]

    async def _terminate_everything(self) -> None:
        instances = await self._cloud.instances()
        for instance in instances:
            self._assert_leading()
            await self._cloud.terminate(instance.id)
            self._log.info("terminating instance without a NodeClaim", instance=instance.id)
        if instances:
            names = ", ".join(instance.id for instance in instances)
            raise StillThereError(f"waiting for instances to terminate: {names}")

"""Pods with rules that select the pods of a DaemonSet called agent, and what the tests of these share."""

from collections.abc import Mapping

from nodeless.model.instance_types import InstanceType
from nodeless.model.labels import ARCH, HOSTNAME, PROVISIONER_NAME, REGISTERED, ZONE
from nodeless.model.plan import Plan
from nodeless.model.taints import Toleration
from nodeless.scheduling import Policy
from tests.scheduling.factories import FAMILY, beside, needs, plan, pool

DISK = "example.com/disk"
APART = {"anti_affinity": (beside(HOSTNAME, "agent"),)}
NEAR = {"affinity": (beside(HOSTNAME, "agent"),)}
EVERYWHERE = (Toleration("", "Exists"),)
#: Labels of a node of pool default that boots.
BOOTING: Mapping[str, str] = {
    PROVISIONER_NAME: "default",
    REGISTERED: "true",
    ZONE: "z1",
    ARCH: "amd64",
}
#: A pool whose nodes have one of two kinds of disk, by which a DaemonSet may select them.
DISKS = pool("default", needs(DISK, "In", "fast", "slow"))


def planned(
    packing: str, *things: object, types: tuple[InstanceType, ...] = FAMILY, as_bound: bool = False
) -> Plan:
    """The plan for these things, without a search for a cheaper one."""
    return plan(*things, types=types, policy=Policy(packing=packing, time_box=0, as_bound=as_bound))

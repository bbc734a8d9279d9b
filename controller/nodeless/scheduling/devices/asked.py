"""How many devices a pod asks for."""

from math import inf

from nodeless.model.devices import ClaimedDevices
from nodeless.model.pods import Pod
from nodeless.model.snapshot import Snapshot
from nodeless.scheduling.devices.extended_resources import serving_classes


def devices_asked(snapshot: Snapshot, pod: Pod) -> float:
    """How many devices a pod asks for, in its claims and by extended resources that devices serve.

    Of a request the first alternative counts; all devices of a node are infinitely many, and a claim that is
    not there is none.
    """
    asked = 0.0
    made = dict(pod.generated_claims)
    for named in pod.shape.resource_claims:
        claim = snapshot.resource_claims.get(f"{pod.namespace}/{named.claim or made.get(named.name, '')}")
        template = snapshot.resource_claim_templates.get(f"{pod.namespace}/{named.template}")
        found = claim or template
        asked += _counted(found.devices) if found is not None else 0
    extended = [(name, amount) for name, amount in pod.shape.requests if "/" in name]
    serving = serving_classes(snapshot) if extended else {}
    return asked + sum(amount for name, amount in extended if name in serving)


def _counted(claimed: ClaimedDevices) -> float:
    firsts = (request.alternatives[0] for request in claimed.requests if request.alternatives)
    return sum(inf if first.count is None else first.count for first in firsts)

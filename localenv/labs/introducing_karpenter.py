"""The first article: a Provisioner with mistakes in it, ten pods, an empty node, a deleted node."""

from __future__ import annotations

import time
from typing import Any

from localenv.kubernetes import ApiError
from localenv.labs.run import DEPLOYMENTS, PROVISIONERS, Lab
from nodeless.api.times import parse_time

TTL_SECONDS = 30
EMPTINESS = "karpenter.sh/emptiness-timestamp"
FINALIZER = "karpenter.sh/termination"
#: What the refusal of the Provisioner as printed must name.
FAULTS = (
    "node.k8s.aws/instance-type",
    "spec.requirements[2].operator",
    '" karpenter.sh/capacity-type"',
    "spec.provider.subnetSelector",
    "spec.provider.securityGroupSelector",
)


class IntroducingKarpenter(Lab):
    name = "introducing-karpenter"
    title = "Introducing Karpenter: one pool, ten pods, an empty node, a deleted node"

    def steps(self) -> None:
        self.expect("the Provisioner as printed is refused, every fault named", self._refusal)
        self.apply("introducing-karpenter/provisioner.yaml")
        self.expect("the corrected one is accepted", lambda: bool(self.api.list(PROVISIONERS)))
        self.run_pods("introducing-karpenter/inflate.yaml", "inflate", 10)
        self.expect(
            "they share one node of the pool",
            lambda: [node for node in self.view().instances if len(node.pods) == 10],
            detail=lambda nodes: f"{nodes[0].instance_type}, {nodes[0].capacity_type}",
        )
        self._delete_the_node()
        self._empty_the_node()

    def _refusal(self) -> str:
        try:
            self.apply("introducing-karpenter/provisioner-as-printed.yaml")
        except ApiError as error:
            missing = [fault for fault in FAULTS if fault not in error.message]
            return "" if missing else error.message.partition(": ")[2]
        return ""

    def _node(self) -> dict[str, Any]:
        name = next(node.name for node in self.view().instances)
        return self.api.get(f"/api/v1/nodes/{name}")

    def _delete_the_node(self) -> None:
        node = self._node()
        name, instance = node["metadata"]["name"], node["spec"]["providerID"].rpartition("/")[2]
        answer = self.api.request("DELETE", f"/api/v1/nodes/{name}")
        self.expect(
            "a node deleted with kubectl stays until it is drained: its finalizer holds it",
            lambda: (
                isinstance(answer, dict)
                and "deletionTimestamp" in answer["metadata"]
                and FINALIZER in answer["metadata"]["finalizers"]
            ),
        )
        self.expect("then its instance is terminated", lambda: instance not in self.live_instances())
        self.expect(
            "and its pods run on a new one",
            lambda: (
                (self.api.get(f"{DEPLOYMENTS}/inflate")["status"].get("availableReplicas") == 10)
                and bool(self.live_instances())
            ),
            seconds=90,
        )

    def _empty_the_node(self) -> None:
        began = time.time()
        self.api.delete(f"{DEPLOYMENTS}/inflate")
        stamp = self.expect(
            "without pods the node is marked empty",
            lambda: self._node()["metadata"].get("annotations", {}).get(EMPTINESS),
        )
        self.expect(
            f"after {TTL_SECONDS} s it is cordoned, drained and terminated",
            lambda: not self.claims() and not self.view().instances,
            seconds=TTL_SECONDS + 60,
        )
        self.expect("not a second earlier", lambda: time.time() >= parse_time(str(stamp)) + TTL_SECONDS)
        self.expect("the log tells it in the article's stages", lambda: self._has_logged(began))
        self.expect("no instance is left", lambda: not self.live_instances())

    def _has_logged(self, since: float) -> bool:
        messages = [line["message"] for line in self.log_lines(since)]
        stages = ("added TTL to empty node", "triggered termination", "cordoned node", "deleted node")
        return all(any(message.startswith(stage) for message in messages) for stage in stages)

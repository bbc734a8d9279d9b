"""The second article: control pods on Fargate, and the seven steps from a pending pod to a running one."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from localenv.environment import NAMESPACE
from localenv.labs.run import TEMPLATES, Lab, join_names
from nodeless.api.times import parse_time


class NodelessSeries(Lab):
    name = "nodeless-series"
    title = "The NodeLess series: no node at all, then one for the pods, in seven steps"

    def steps(self) -> None:
        self.expect("the controller's two pods run on Fargate nodes", self._on_fargate, detail=join_names)
        self.expect("the cluster has no EC2 instance", lambda: not self.view().instances)
        self.apply("nodeless/awsnodetemplate.yaml")
        self.apply("nodeless/provisioner.yaml")
        self.expect(
            "the node template finds the stack's subnets and security group",
            lambda: (self.api.get(f"{TEMPLATES}/default").get("status") or {}).get("subnets"),
            detail=lambda subnets: join_names(subnet["zone"] for subnet in subnets or ()),
        )
        self._began = time.time()
        self.run_pods("nodeless/web.yaml", "web", 3)
        for step, look in self._seven_steps().items():
            self.expect(step, look, detail=str, seconds=20)

    def _on_fargate(self) -> list[str]:
        pods = self.api.list(
            f"/api/v1/namespaces/{NAMESPACE}/pods", label_selector="app.kubernetes.io/name=karpenter"
        )
        nodes = sorted({pod["spec"].get("nodeName", "") for pod in pods})
        return nodes if len(nodes) == 2 and all(node.startswith("fargate-ip-") for node in nodes) else []

    def _seven_steps(self) -> dict[str, Callable[[], str]]:
        """Each step of the article's flow, and where it is to be seen."""
        return {
            "1 the pod is pending": lambda: self._event("Pod", "FailedScheduling", "default-scheduler"),
            # Perhaps of fewer than three: those of a second batch have room on the node that is on its way.
            "2 its requirements are analyzed": lambda: self._log("found "),
            "3 a provisioner is chosen": lambda: self._log("launching a node of", "provisioner"),
            "4 with its node template": lambda: self._log("launching a node of", "node_template"),
            "5 a node is launched by the EC2 API": lambda: (
                self._log("launched instance", "instance") and self._event("NodeClaim", "Launched")
            ),
            "6 the node registers": lambda: (
                self._log("registered node", "node") and self._event("Node", "Registered")
            ),
            "7 the scheduler runs the pod there": lambda: self._event(
                "Pod", "Scheduled", "default-scheduler"
            ),
        }

    def _log(self, beginning: str, member: str = "message") -> str:
        lines = (line for line in self.log_lines(self._began) if line["message"].startswith(beginning))
        line: dict[str, Any] | None = next(lines, None)
        return "" if line is None else f"log: {line.get(member, '')}"

    def _event(self, kind: str, reason: str, component: str = "karpenter") -> str:
        for event in self.api.list("/api/v1/events"):
            if _when(event) < int(self._began):
                continue
            reporter = event.get("reportingComponent") or event.get("source", {}).get("component")
            if (event["involvedObject"]["kind"], event["reason"], reporter) == (kind, reason, component):
                return f"event: {event['message']}"
        return ""


def _when(event: dict[str, Any]) -> float:
    """When an event was last told, to the second."""
    text = event.get("lastTimestamp") or event.get("eventTime") or event["metadata"]["creationTimestamp"]
    return parse_time(text)

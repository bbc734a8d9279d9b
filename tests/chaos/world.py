"""A cluster to ill-treat: kubelets, an observer of AWS, a leader that is restarted, words for a story."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from localenv.aws import LocalAws
from localenv.control_plane import ControlPlane
from localenv.kubernetes import ApiError, ApiUnreachable, KubernetesApi
from nodeless.nodeclaim.deadlines import DEADLINES
from nodeless.operator.failpoints import boundaries
from tests.chaos.invariants import CLAIM_TAG, Watcher, instance_of
from tests.chaos.supervisor import LOST
from tests.controllers.process import environment, settings
from tests.controllers.test_generation_one import a_class, a_node_pool
from tests.controllers.world import CLAIMS, NODES, Kubelets, a_budget, a_pod, a_provisioner, a_template

#: Leaders that die at each boundary.
DEATHS = int(os.environ.get("CHAOS_DEATHS", "1"))
#: How long a pod may wait that could have a node; generous, since every wait of a controller starts anew when
#: it dies.
LONGEST_WAIT = 240.0 * DEATHS
#: For what must come true at last, on a slow machine, too.
PATIENCE = 600.0 * DEATHS


class Observer:
    """Instances as EC2 holds them, whatever faults show to others."""

    def __init__(self, aws: LocalAws) -> None:
        self._aws, self.reboots = aws, aws.reboots

    def instances(self, *states: str) -> dict[str, dict[str, Any]]:
        """By id; by default those that live."""
        wanted = states or ("pending", "running", "stopping", "stopped", "shutting-down")
        return {i["InstanceId"]: i for i in self._aws.instances() if i["State"]["Name"] in wanted}


class Machines(Kubelets):  # type: ignore[misc] # the module of rigs is not annotated
    """Kubelets in a thread of their own; they survive what happens to the API server."""

    def __init__(self, api: KubernetesApi, observer: Observer) -> None:
        super().__init__(api, observer)
        self._machines = api
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._keep_turning, name="kubelets", daemon=True)

    def __enter__(self) -> Machines:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._ended.set()
        self._thread.join(timeout=30)

    def _keep_turning(self) -> None:
        while not self._ended.wait(0.2):
            with suppress(ApiError, ApiUnreachable, OSError):
                self.turn()

    def _run_pod(self, pod: dict[str, Any]) -> None:
        ends = pod["metadata"].get("deletionTimestamp")
        # A pod uses the whole of its grace period: so it is seen while it leaves.
        if ends and datetime.fromisoformat(ends) > datetime.now(UTC):
            return
        super()._run_pod(pod)

    def _join(self, instance: dict[str, Any]) -> None:
        name = instance["PrivateDnsName"]
        # A name comes again while the node that had it before is still leaving: wait for it.
        if self._machines.find(f"{NODES}/{name}") is None:
            # The machine that had the name before is gone: nobody beats for this one but itself.
            self._joined = {each: other for each, other in self._joined.items() if other != name}
            super()._join(instance)


class World:
    """What a story acts on."""

    def __init__(self, plane: ControlPlane, aws: LocalAws, namespace: str, directory: Path) -> None:
        self.plane, self.aws, self.namespace, self.directory = plane, aws, namespace, directory
        self.api = plane.client()
        self.observer = Observer(aws)
        self.machines = Machines(plane.client(), self.observer)
        self.watcher = Watcher(plane.client(), aws, namespace, LONGEST_WAIT)
        #: Where leaders died, and which faults there were.
        self.story: list[str] = []
        #: What the leaders' settings say beyond the usual.
        self.settings: dict[str, str] = {}
        self._leaders: list[Lives] = []

    @property
    def broken(self) -> list[str]:
        return self.watcher.found.broken

    def report(self) -> str:
        """Each invariant's worst, and what was done to the leaders meanwhile."""
        return "\n".join([self.watcher.found.report(), f"{len(self.story)} faults: {', '.join(self.story)}"])

    # What a user does

    def pools(self, **provisioner: object) -> None:
        """A Provisioner for everything, and a NodePool `bounded` whose nodes end whatever holds them."""
        self.api.create(a_template())
        self.api.create(a_provisioner(**provisioner))

    def bounded_pool(self, grace: str) -> None:
        """NodePool `default`, for the pods that choose it: its drains end after `grace`.

        Its node class names a role, for which the controller makes an instance profile.
        """
        self.aws.client("iam").create_role(RoleName=ROLE, AssumeRolePolicyDocument=TRUST)
        self.api.create(a_class(role=ROLE, instanceProfile=None))
        pool = a_node_pool(terminationGracePeriod=grace, taints=[BOUNDED_TAINT])
        self.api.create(pool)

    def deploy(self, name: str, replicas: int = 1, cpu: str = "500m", **pod: object) -> None:
        """A Deployment."""
        annotations = pod.pop("annotations", {})
        body = a_pod(name, self.namespace, cpu=cpu, **pod)
        labels = {"app": name}
        self.api.create(
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": name, "namespace": self.namespace},
                "spec": {
                    "replicas": replicas,
                    "selector": {"matchLabels": labels},
                    "template": {
                        "metadata": {"labels": labels, "annotations": annotations},
                        "spec": body["spec"],
                    },
                },
            }
        )

    def scale(self, name: str, replicas: int) -> None:
        path = f"/apis/apps/v1/namespaces/{self.namespace}/deployments/{name}"
        self.api.patch(path, {"spec": {"replicas": replicas}})

    def guard(self, name: str, least: int = 1) -> None:
        """A disruption budget for the pods of a Deployment."""
        budget = a_budget(name, self.namespace, app=name)
        budget["spec"]["minAvailable"] = least
        self.api.create(budget)

    def remove(self, name: str) -> None:
        """Delete a Deployment with its budget, and every claim; wait until all has ended."""
        self.remove_pods(name)
        budget = f"/apis/policy/v1/namespaces/{self.namespace}/poddisruptionbudgets/{name}"
        self.api.delete(budget, missing_ok=True)
        claims = self.claims()
        for claim in claims:
            self.api.delete(f"{CLAIMS}/{claim}", missing_ok=True)
        self.gone(*claims)

    def remove_pods(self, name: str) -> None:
        """Delete a Deployment, and wait until its pods are gone."""
        # In the foreground: a ReplicaSet that lives on would make pods for which new nodes come.
        path = f"/apis/apps/v1/namespaces/{self.namespace}/deployments/{name}"
        self.api.delete(path, propagation="Foreground")
        self.until(lambda: not self.pods(name), f"the pods of {name} are gone")

    def node_of(self, name: str) -> tuple[str, dict[str, Any]]:
        """The claim and the node that the first running pod of a Deployment is on, once it is on one."""

        def found() -> tuple[str, dict[str, Any]] | None:
            hosts = [pod["spec"]["nodeName"] for pod in self.running(name)][:1]
            return next(((c, n) for c, n in self.nodes().items() if n["metadata"]["name"] in hosts), None)

        claim, node = self.until(found, f"a pod of {name} runs on a node")
        return claim, node

    def restart_api_server(self) -> None:
        """Kill the API server and start it again; those of Kubernetes that depend on it start anew, too.

        They were refused while it read its roles, and would try again only after a growing while.
        """
        for program in ("kube-apiserver", "kube-scheduler", "kube-controller-manager"):
            self.plane.restart(program)

    # What is seen

    def claims(self) -> dict[str, dict[str, Any]]:
        return {each["metadata"]["name"]: each for each in self.api.list(CLAIMS)}

    def profiles(self) -> list[list[str]]:
        """The roles of each instance profile that was made for a node class."""
        pages = self.aws.client("iam").get_paginator("list_instance_profiles")
        return [
            [role["RoleName"] for role in profile["Roles"]]
            for page in pages.paginate(PathPrefix="/karpenter/")
            for profile in page["InstanceProfiles"]
        ]

    def nodes(self) -> dict[str, dict[str, Any]]:
        """Those with a claim, by the claim's name."""
        nodes = self.api.list(NODES)
        return {
            name: node for node in nodes if (name := node["metadata"].get("labels", {}).get(CLAIM_TAG, ""))
        }

    def pods(self, name: str) -> list[dict[str, Any]]:
        """Pods of a Deployment."""
        pods = self.api.list(f"/api/v1/namespaces/{self.namespace}/pods")
        return [pod for pod in pods if pod["metadata"]["labels"].get("app") == name]

    def running(self, name: str) -> list[dict[str, Any]]:
        """Those that run and stay."""
        return [
            pod
            for pod in self.pods(name)
            if pod["status"].get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]
        ]

    def until(self, look: Callable[[], object], what: str, seconds: float = PATIENCE) -> Any:
        """Wait for something to be so, past an API server that is away."""
        deadline = time.monotonic() + seconds
        while True:
            with suppress(ApiError, ApiUnreachable):
                if found := look():
                    return found
            if time.monotonic() > deadline:
                raise AssertionError(f"after {seconds:.0f} s still not: {what}\n{self._situation()}")
            for each in self._leaders:
                if each.process.poll() != LOST:
                    each.check()
            time.sleep(0.2)

    def runs(self, **replicas: int) -> None:
        """Wait until so many pods of each Deployment run, each on a node that has its instance."""
        for name, number in replicas.items():
            self.until(
                lambda name=name, number=number: len(self.running(name)) == number,  # type: ignore[misc]
                f"{number} pods of {name} run",
            )

    def gone(self, *claims: str) -> None:
        """Wait until these claims, their nodes and their instances are no more."""

        def away() -> bool:
            # Read before the claims: no claim takes the name of its instance along unseen.
            living = self.observer.instances()
            there = self.claims()
            known = {instance_of(claim): name for name, claim in there.items()}
            known |= self.watcher.invariants.claim_of
            tagged = {
                each["Value"]
                for instance in living.values()
                for each in instance.get("Tags", ())
                if each["Key"] == CLAIM_TAG
            }
            owners = tagged | {known[key] for key in living if key in known}
            return not set(claims) & (set(there) | set(self.nodes()) | owners)

        self.until(away, f"claims {', '.join(claims)} are gone with node and instance")

    def _situation(self) -> str:
        pods = self.api.list(f"/api/v1/namespaces/{self.namespace}/pods")
        lines = [
            f"pod {p['metadata']['name']} {p['status'].get('phase')} on {p['spec'].get('nodeName')}"
            for p in pods
        ]
        for name, claim in self.claims().items():
            conditions = claim.get("status", {}).get("conditions", ())
            said = {each["type"]: each["status"] for each in conditions}
            lines.append(f"claim {name} {said} {claim['metadata'].get('deletionTimestamp', '')}")
        return "\n".join([*lines, self.watcher.found.report()])

    # Who leads

    @contextmanager
    def leaders(self, **how: object) -> Iterator[Lives]:
        """Leaders, one after the other; see `Lives`."""
        with suppress(ApiError):
            self.api.create(settings(self.namespace, **self.settings))
        lives = Lives(self, **how)  # type: ignore[arg-type] # handed on
        self._leaders.append(lives)
        try:
            yield lives
        finally:
            self._leaders.remove(lives)
            lives.end()
            self.story += [f"killed {place}" for place in lives.died_at]


ROLE, TRUST = "nodes", '{"Version": "2012-10-17", "Statement": []}'
BOUNDED_TAINT = {"key": "bounded", "effect": "NoSchedule"}
BOUNDED = {
    "tolerations": [{"key": "bounded", "operator": "Exists"}],
    "nodeSelector": {"karpenter.sh/nodepool": "default"},
}


class Lives:
    """A supervisor as a process; where its leaders died, and what is done to them meanwhile.

    Each leader dies at the first of the `deadly` boundaries at which fewer than `deaths` have died yet;
    `stop_at` and the clock are told in `tests.chaos.supervisor`. `more` are environment variables.
    """

    def __init__(
        self,
        world: World,
        name: str = "leader",
        *,
        deadly: Collection[str] = (),
        deaths: int = 1,
        stop_at: str = "",
        **more: str,
    ) -> None:
        self._folder = world.directory / name
        self._folder.mkdir()
        self.log = self._folder / "log"
        self._died_before = [each for each in boundaries() if each not in deadly] * deaths
        self._write("deaths", str(deaths))
        self._write("boundaries", "".join(f"{each}\n" for each in self._died_before))
        self._write("clock", "0")
        self._write("patience", str(DEADLINES.registration))
        self._write("disorder", "0")
        self._write("poison", "off")
        if stop_at:
            self._write("stop-at", stop_at)
        env = environment(world.plane, world.aws, world.namespace, name, **{"LEADER_ELECT": "false", **more})
        command = [sys.executable, "-m", "tests.chaos.supervisor", str(self._folder)]
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                command, env=env, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )

    def _write(self, name: str, text: str) -> None:
        (self._folder / name).write_text(text)

    @property
    def pid(self) -> int:
        """The process that leads."""
        return int((self._folder / "pid").read_text())

    @property
    def died_at(self) -> list[str]:
        """Boundaries in the order of the deaths (or of the one stop)."""
        return (self._folder / "boundaries").read_text().splitlines()[len(self._died_before) :]

    def set_clock(self, seconds: float) -> None:
        """Let the leader's clock be wrong by so much from now on."""
        self._write("clock", str(seconds))
        os.kill(self.pid, signal.SIGUSR1)

    def set_patience(self, seconds: float = DEADLINES.registration) -> None:
        """Within so much time machines must have joined; by default what production gives them."""
        self._write("patience", str(seconds))
        os.kill(self.pid, signal.SIGUSR1)

    def set_disorder(self, seconds: float) -> None:
        """Let news of some kinds come up to so much later than others, those of claims and nodes twice."""
        self._write("disorder", str(seconds))
        os.kill(self.pid, signal.SIGUSR1)

    def set_poison(self, state: str) -> None:
        """`on`: what is called `poison-reader`, `poison-step` or `poison-writer` makes the leader fail."""
        self._write("poison", state)
        os.kill(self.pid, signal.SIGUSR1)

    def check(self) -> None:
        """Raise when a leader ended by itself."""
        assert self.process.poll() is None, self.log.read_text()[-4000:]

    def end(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(timeout=120)

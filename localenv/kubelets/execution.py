"""Pods that are really executed: each container of a listed image becomes a process of this machine.

For pods whose wiring is the point (the controller's): what the Deployment says in command, arguments,
variables, volumes and probes is what runs. There is no image and no namespace: the program comes from this
environment's own `bin`, mounted paths are rewritten (`mounts`), the cluster is found through KUBECONFIG with
the pod's own token.

Under the directory: `logs/<pod>.log`, and per pod `pods/<namespace>_<name>/` with `pid` (of the first
executed container), `kubeconfig` and `volumes/`. One process follows: `containers`.
"""

import asyncio
import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from localenv import processes
from localenv.kubelets.addresses import local_address
from localenv.kubelets.clock import timestamp
from localenv.kubelets.containers import Container, StartError, container_status
from localenv.kubelets.mounts import Mounts
from localenv.kubelets.objects import Pod
from localenv.kubelets.registry import Registry, Tasks
from localenv.kubelets.variables import (
    MissingReferenceError,
    container_variables,
    expand,
    references,
    values_of,
)
from localenv.kubelets.volumes import Volumes
from localenv.kubernetes import ApiError, ApiUnreachable
from localenv.kubernetes.aio import AsyncKubernetesApi, ignoring, persist
from localenv.kubernetes.connection import kubeconfig

log = logging.getLogger(__name__)

_REFRESH_SECONDS = 1.0
_TOKEN_MOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
_PLURALS = {"ConfigMap": "configmaps", "Secret": "secrets"}


def is_executed(image: str, repositories: Sequence[str]) -> bool:
    """Return whether an image is of one of these repositories (or below one), whatever its tag or digest."""
    return any(
        image == repository or image.startswith((f"{repository}:", f"{repository}@", f"{repository}/"))
        for repository in repositories
    )


class Executor:
    """All executed pods.

    Args:
        directory: where logs and the pods' files go.
        repositories: images to execute.
    """

    def __init__(
        self, api: AsyncKubernetesApi, registry: Registry, directory: Path, repositories: Sequence[str]
    ) -> None:
        self._api = api
        self._registry = registry
        self._directory = directory
        self._repositories = tuple(repositories)
        self._pods: dict[str, ExecutedPod] = {}
        self._tasks = Tasks()

    def wants(self, pod: Pod) -> bool:
        """Whether any container of the pod is to be executed."""
        return any(is_executed(container.image, self._repositories) for container in pod.spec.containers)

    async def start(self, pod: Pod, ip: str, host_ip: str) -> None:
        """Begin to run a pod; its status tells how that goes."""
        document = await persist(lambda: ignoring(self._api.get(pod.path), 404))
        if document is None or document["metadata"]["uid"] != pod.metadata.uid:
            return
        document["status"] |= {"podIP": ip, "hostIP": host_ip}
        executed = ExecutedPod(self._api, self._registry, document, self._directory, self._is_executed)
        self._pods[pod.metadata.uid] = executed
        executed.task = self._tasks.start(executed.run(), f"pod {pod.path}")

    def _is_executed(self, container: Mapping[str, Any]) -> bool:
        return is_executed(container["image"], self._repositories)

    async def stop(self, uid: str, grace_seconds: float) -> None:
        """End a pod's processes and remove its files."""
        if (executed := self._pods.get(uid)) is not None:
            await executed.stop(grace_seconds)
            self._pods.pop(uid, None)

    def say_again(self, uid: str) -> None:
        """Write a pod's status once more: somebody wrote another one."""
        if (executed := self._pods.get(uid)) is not None:
            executed.say_again()

    async def stop_all(self) -> None:
        """End everything at once: the simulator itself ends."""
        await asyncio.gather(*(self.stop(uid, 0) for uid in list(self._pods)))


class ExecutedPod:
    """One pod: its files, its containers, its status."""

    def __init__(
        self,
        api: AsyncKubernetesApi,
        registry: Registry,
        pod: dict[str, Any],
        directory: Path,
        executed: Callable[[Mapping[str, Any]], bool],
    ) -> None:
        self._api = api
        self._registry = registry
        self._pod = pod
        metadata = pod["metadata"]
        self._path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
        self._home = directory / "pods" / f"{metadata['namespace']}_{metadata['name']}"
        self._log = directory / "logs" / f"{metadata['name']}.log"
        self._volumes = Volumes(api, pod, self._home / "volumes")
        self._executed = executed
        self._changed = asyncio.Event()
        self._conditions: dict[str, dict[str, str]] = {}
        self._started_at = pod["status"].get("startTime") or timestamp()
        self._containers = self._made_containers()
        self.task: asyncio.Task[None] | None = None

    def _made_containers(self) -> list[Container]:
        counts = {
            container_status["name"]: container_status["restartCount"] + 1
            for container_status in self._pod["status"].get("containerStatuses") or []
        }
        address = local_address(self._pod["status"]["podIP"])
        return [
            Container(
                spec,
                address=address,
                restart_policy=self._pod["spec"].get("restartPolicy", "Always"),
                launch=partial(self._launch, spec),
                on_change=self._changed.set,
                restarts=counts.get(spec["name"], 0),
            )
            for spec in self._pod["spec"]["containers"]
            if self._executed(spec)
        ]

    async def run(self) -> None:
        """Run until cancelled."""
        self._prepare()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._report())
            await self._mount()
            for container in self._containers:
                group.create_task(container.run())
            group.create_task(self._keep_volumes_fresh())

    def _prepare(self) -> None:
        self._home.mkdir(parents=True, exist_ok=True)
        self._log.parent.mkdir(parents=True, exist_ok=True)
        log.info("%s is executed; its log is %s", self._path, self._log)

    async def _mount(self) -> None:
        last = ""
        while True:
            try:
                await self._volumes.refresh()
                return
            except (MissingReferenceError, ApiError, ApiUnreachable) as error:
                if str(error) != last:
                    last = str(error)
                    log.warning("%s: FailedMount: %s", self._path, error)
            await asyncio.sleep(_REFRESH_SECONDS)

    async def _keep_volumes_fresh(self) -> None:
        while True:
            await asyncio.sleep(_REFRESH_SECONDS)
            try:
                await self._volumes.refresh()
            except (MissingReferenceError, ApiError, ApiUnreachable) as error:
                log.info("%s: volumes stay as they are: %s", self._path, error)

    async def _launch(self, spec: Mapping[str, Any]) -> subprocess.Popen[bytes]:
        try:
            variables = await self._variables(spec)
        except (MissingReferenceError, ValueError) as error:
            raise StartError("CreateContainerConfigError", str(error)) from None
        except (ApiError, ApiUnreachable) as error:
            raise StartError("ContainerCreating", f"the API server does not answer: {error!r}") from None
        mounts = Mounts(spec, self._volumes.places)
        command = [
            mounts.rewrite(expand(word, variables))
            for word in [*(spec.get("command") or []), *(spec.get("args") or [])]
        ]
        if not spec.get("command"):
            raise StartError(
                "CreateContainerError", "no command; hint: an image's own entrypoint is unknown here"
            )
        environment = self._base_variables(mounts) | {
            name: mounts.rewrite(value) for name, value in variables.items()
        }
        if shutil.which(command[0], path=environment["PATH"]) is None:
            raise StartError(
                "RunContainerError", f"exec: {command[0]!r}: not found in PATH {environment['PATH']}"
            )
        cwd = Path(mounts.rewrite(spec.get("workingDir") or "")) if spec.get("workingDir") else self._home
        child = await asyncio.to_thread(
            self._spawn, command, environment, cwd if cwd.is_dir() else self._home
        )
        self._remember(spec, child.pid)
        return child

    def _spawn(
        self, command: Sequence[str], environment: Mapping[str, str], cwd: Path
    ) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as output:
            return processes.spawn(command, cwd=cwd, environment=environment, stdout=output)

    def _remember(self, spec: Mapping[str, Any], pid: int) -> None:
        (self._home / f"{spec['name']}.pid").write_text(f"{pid}\n")
        first = next(container for container in self._pod["spec"]["containers"] if self._executed(container))
        if spec["name"] == first["name"]:
            (self._home / "pid").write_text(f"{pid}\n")

    async def _variables(self, spec: Mapping[str, Any]) -> dict[str, str]:
        namespace = self._pod["metadata"]["namespace"]
        objects: dict[tuple[str, str], Mapping[str, str] | None] = {}
        for kind, name in references(spec):
            path = f"/api/v1/namespaces/{namespace}/{_PLURALS[kind]}/{name}"
            document = await ignoring(self._api.get(path), 404)
            objects[kind, name] = None if document is None else values_of(document)
        node = self._registry.get(self._pod["spec"]["nodeName"])
        return container_variables(spec, self._pod, objects, node.allocatable if node else {})

    def _base_variables(self, mounts: Mounts) -> dict[str, str]:
        """What a container finds without asking; nothing of this process's own variables."""
        host, _, port = self._api.endpoint.removeprefix("https://").partition(":")
        variables = {
            "PATH": f"{Path(sys.executable).parent}:{os.defpath}",
            "HOME": str(self._home),
            "HOSTNAME": self._pod["metadata"]["name"],
            "LANG": "C.UTF-8",
            "KUBERNETES_SERVICE_HOST": host,
            "KUBERNETES_SERVICE_PORT": port,
            "KUBERNETES_SERVICE_PORT_HTTPS": port,
        }
        scratch = mounts.place("/tmp")
        if scratch is not None:
            variables["TMPDIR"] = str(scratch)
        token_directory = mounts.place(_TOKEN_MOUNT)
        if token_directory is not None:
            variables["KUBECONFIG"] = str(self._write_kubeconfig(token_directory))
        return variables

    def _write_kubeconfig(self, token_directory: Path) -> Path:
        path = self._home / "kubeconfig"
        user, namespace = {"tokenFile": str(token_directory / "token")}, self._pod["metadata"]["namespace"]
        document = kubeconfig(self._api.endpoint, self._api.authority, user, namespace)
        path.write_text(yaml.safe_dump(document))
        return path

    async def _report(self) -> None:
        self._changed.set()
        while True:
            await self._changed.wait()
            self._changed.clear()
            body = {"metadata": {"uid": self._pod["metadata"]["uid"]}, "status": self._status()}
            await self._write(body)

    async def _write(self, body: dict[str, Any]) -> None:
        path = f"{self._path}/status"
        await persist(lambda: ignoring(self._api.patch(path, body, kind="strategic"), 404, 409))

    def say_again(self) -> None:
        """Have the status written once more."""
        self._changed.set()

    def _status(self) -> dict[str, Any]:
        statuses = [container.status for container in self._containers] + [
            container_status(spec["name"], spec["image"], {"running": {"startedAt": self._started_at}})
            for spec in self._pod["spec"]["containers"]
            if not self._executed(spec)
        ]
        ready = all(status["ready"] for status in statuses)
        ip, host_ip = self._pod["status"]["podIP"], self._pod["status"]["hostIP"]
        return {
            "phase": self._phase(statuses),
            "podIP": ip,
            "podIPs": [{"ip": ip}],
            "hostIP": host_ip,
            "hostIPs": [{"ip": host_ip}],
            "startTime": self._started_at,
            "conditions": [
                self._condition("PodReadyToStartContainers", True),
                self._condition("Initialized", True),
                self._condition("ContainersReady", ready),
                self._condition("Ready", ready),
            ],
            "containerStatuses": statuses,
        }

    def _phase(self, statuses: Sequence[Mapping[str, Any]]) -> str:
        codes = [container.ended for container in self._containers]
        if all(code is not None for code in codes) and len(codes) == len(statuses):
            return "Succeeded" if all(code == 0 for code in codes) else "Failed"
        created = all(
            (status["state"].get("waiting") or {}).get("reason") in (None, "CrashLoopBackOff")
            for status in statuses
        )
        return "Running" if created else "Pending"

    def _condition(self, kind: str, holds: bool) -> dict[str, str]:
        status = "True" if holds else "False"
        known = self._conditions.get(kind)
        if known is None or known["status"] != status:
            known = {"type": kind, "status": status, "lastTransitionTime": timestamp()}
            self._conditions[kind] = known
        return known

    async def stop(self, grace_seconds: float) -> None:
        """End the processes, then forget the files; the log stays."""
        if self.task is not None:
            self.task.cancel()
            await asyncio.wait([self.task])
        await asyncio.gather(*(container.stop(grace_seconds) for container in self._containers))
        await asyncio.to_thread(shutil.rmtree, self._home, ignore_errors=True)

"""Start and stop the simulated kubelets as a child process."""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol, Self

from localenv.kubelets.addresses import shifted_address
from localenv.kubelets.simulator import READY_FILE
from localenv.processes import Processes
from pulumi_nodeless.names import IMAGE_REPOSITORY

#: Repositories whose containers are executed unless the environment says otherwise.
EXECUTED_IMAGES = (IMAGE_REPOSITORY,)
_READY_SECONDS = 180.0
_ROOT = Path(__file__).resolve().parents[2]


class HasKubeconfig(Protocol):
    """What is needed of the control plane."""

    @property
    def kubeconfig(self) -> Path: ...


class HasEndpoint(Protocol):
    """What is needed of the local AWS."""

    @property
    def endpoint_url(self) -> str: ...

    def environment(self) -> Mapping[str, str]: ...


class Kubelets:
    """The child process.

    Attributes:
        directory: its files: `kubelets.log`, `logs/<pod>.log`, `pods/<namespace>_<name>/pid`.
        processes: the process, for who wants to kill or restart it.
    """

    def __init__(self, directory: Path, processes: Processes) -> None:
        self.directory = directory
        self.processes = processes

    @classmethod
    def start(
        cls,
        directory: Path,
        control_plane: HasKubeconfig,
        aws: HasEndpoint,
        *,
        boot_seconds: float = 2.0,
        proxy_socket: Path,
        executed_images: Sequence[str] = EXECUTED_IMAGES,
    ) -> "Kubelets":
        """Start the kubelets and wait until they act.

        Args:
            directory: for logs and the files of executed pods; made if missing.
            control_plane: the cluster.
            aws: the local AWS.
            boot_seconds: from an instance's launch to a node that is Ready.
            proxy_socket: where the API server's egress selector connects.
            executed_images: image repositories whose containers are really executed.

        Raises:
            ProcessDied: if the process ends at once; the message carries the end of its log.
            NotReady: if it does not get ready.
        """
        directory.mkdir(parents=True, exist_ok=True)
        (directory / READY_FILE).unlink(missing_ok=True)
        environment = dict(aws.environment())
        command = [
            sys.executable,
            "-m",
            "localenv.kubelets",
            f"--kubeconfig={control_plane.kubeconfig}",
            f"--aws-endpoint={aws.endpoint_url}",
            f"--region={environment.get('AWS_REGION', 'us-east-1')}",
            f"--directory={directory}",
            f"--proxy-socket={proxy_socket}",
            f"--boot-seconds={boot_seconds}",
            *(f"--execute={repository}" for repository in executed_images),
        ]
        children = Processes(directory)
        # The child stands in its own directory: the checkout is found by PYTHONPATH.
        child_environment = os.environ | environment | {"PYTHONPATH": str(_ROOT)}
        children.start("kubelets", command, cwd=directory, environment=child_environment)
        kubelets = cls(directory, children)
        try:
            kubelets._wait_until_ready()
        except BaseException:
            kubelets.stop()
            raise
        return kubelets

    def _wait_until_ready(self) -> None:
        ready = self.directory / READY_FILE
        self.processes.wait_until(ready.exists, what="the kubelets to be ready", timeout=_READY_SECONDS)

    def restart(self) -> None:
        """Start again, whether they still run or were killed, and wait until they act."""
        (self.directory / READY_FILE).unlink(missing_ok=True)
        self.processes.restart("kubelets")
        self._wait_until_ready()

    def local_address(self, pod_ip: str) -> str:
        """Return the address at which one of their pods is reached on this machine."""
        return shifted_address(pod_ip, int((self.directory / READY_FILE).read_text()))

    def log_of(self, pod: str) -> Path:
        """Return the file with the output of an executed pod."""
        return self.directory / "logs" / f"{pod}.log"

    def pid_of(self, namespace: str, pod: str) -> int:
        """Return the process id of an executed pod's first container.

        Raises:
            FileNotFoundError: if that pod is not executed here.
        """
        return int((self.directory / "pods" / f"{namespace}_{pod}" / "pid").read_text())

    def stop(self) -> None:
        """End the process and all that it executes."""
        self.processes.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

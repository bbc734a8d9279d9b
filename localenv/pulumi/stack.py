"""`Stack`: up, preview, destroy and outputs of the project's program on the local parts.

Each operation starts the attached providers, runs the engine through Pulumi's Automation
API with the program inside this process, and stops the providers again. The state stays
in the folder, so another process may go on with the same stack.
"""

from __future__ import annotations

import json
import os
import runpy
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pulumi import automation
from pulumi.automation._stack import StackInitMode  # of a stack's constructor, and not exported

from localenv.binaries import pulumi_engine
from localenv.processes import SELDOM_COLLECTED
from localenv.pulumi.aws.clients import AwsEndpoint
from localenv.pulumi.aws.provider import RESOURCES, AwsProvider
from localenv.pulumi.docker_build.provider import IMAGE, DockerBuildProvider
from localenv.pulumi.eks.cluster import TOKEN as EKS_CLUSTER
from localenv.pulumi.eks.provider import EksProvider
from localenv.pulumi.input_check import HELM_RELEASE, load_arguments
from localenv.pulumi.kubernetes.provider import KubernetesEndpoint, KubernetesProvider
from localenv.pulumi.program import InlineProgram
from localenv.pulumi.progress import OnStep, Progress
from localenv.pulumi.project import ROOT, Project
from localenv.pulumi.provider import AttachedProvider

#: Guards the process-wide settings of the Pulumi SDK: one program at a time.
_ONE_PROGRAM = threading.Lock()
#: The state of a local stack is no more secret than the folder it lies in.
_PASSPHRASE = "nodeless-local"
#: Lines of the engine's own output shown when it says nothing better.
_LAST_LINES = 15


class StackFailed(RuntimeError):
    """An operation on a stack failed.

    Attributes:
        operation: up, preview or destroy.
        causes: `type 'name': cause` for each resource that failed, or the program's error.
    """

    def __init__(self, operation: str, causes: list[str]) -> None:
        self.operation = operation
        self.causes = causes
        super().__init__(f"{operation} failed: " + "\n".join(causes))


class _Operations(automation.Stack):
    """Operations alone, without what is known or not asked for.

    The Automation API selects the stack before each operation, and asks for the outputs, with secrets and
    without, and for the history after it: four further runs of the engine that take twice as long as the
    operation of a small program itself. Each command names its stack.
    """

    def outputs(self) -> automation.OutputMap:
        """None: `Stack.outputs` asks for them."""
        return {}

    def info(self, show_secrets: bool = True) -> automation.UpdateSummary:
        """No more than that it ended well, which the engine's exit code says."""
        return automation.UpdateSummary("update", datetime.now(UTC), "", {}, {}, "succeeded")


class _Workspace(automation.LocalWorkspace):
    """A workspace in which a stack that was made or selected once stays selected."""

    is_selected = False

    def select_stack(self, stack_name: str) -> None:
        """As the Automation API does, the first time."""
        if not self.is_selected:
            super().select_stack(stack_name)


class Stack:
    """One stack of the project on one machine."""

    def __init__(
        self,
        directory: Path,
        control_plane: KubernetesEndpoint,
        aws: AwsEndpoint,
        *,
        stack: str = "local",
        config: Mapping[str, str] | None = None,
        root: Path = ROOT,
        program: Callable[[], None] | None = None,
        plugins: Path | None = None,
        faults: Callable[[str], None] | None = None,
    ) -> None:
        """Prepare the stack's folder; nothing is started yet.

        Args:
            directory: State and settings lie below it; made when missing.
            control_plane: The API server that kubernetes:* goes to.
            aws: The endpoint that aws:* goes to.
            stack: Name of the stack; its settings are those of the template of that name.
            config: `namespace:key` -> text, laid over those settings; JSON text for objects.
            root: The Pulumi project; this checkout by default.
            program: Instead of the project's `__main__.py`.
            plugins: Folder with further providers, as programs named `pulumi-resource-<package>`.
            faults: Called with the URN before each resource is made; what it raises fails that resource,
                while the operation goes on with those that do not depend on it.
        """
        self.name = stack
        self._control_plane = control_plane
        self._aws = aws
        self._plugins = plugins
        self._faults = faults
        self.project = Project.prepare(directory.absolute(), root, stack, config or {})
        self._program = InlineProgram(program or self._run_main)
        #: What the program told in the last operation, by `pulumi.log.info`.
        self.told: list[str] = []
        self._engine: automation.PulumiCommand | None = None
        self._is_selected = False
        self._serving: list[AttachedProvider] = []

    def up(self, on_event: OnStep | None = None, **options: Any) -> dict[str, int]:
        """Make the cloud what the program says; give the number of resources per operation.

        Args:
            on_event: Called when a resource's step begins and when it is over.
            options: As the Automation API has them: `target`, `replace`, `exclude` and the like.

        Raises:
            StackFailed: Some resource or the program failed; what was made is recorded.
        """
        return self._operate("up", on_event, options).changes

    def preview(self, on_event: OnStep | None = None) -> dict[str, int]:
        """Say what `up` would do, per operation, and do nothing. Errors as for `up`."""
        return self._operate("preview", on_event).changes

    def refresh(self, on_event: OnStep | None = None) -> dict[str, int]:
        """Read every resource back into the state. Errors as for `up`."""
        return self._operate("refresh", on_event).changes

    def destroy(self, on_event: OnStep | None = None, **options: Any) -> dict[str, int]:
        """Delete every resource, dependents first. Options and errors as for `up`."""
        return self._operate("destroy", on_event, options).changes

    def interrupt(self) -> None:
        """End what the operation under way waits for, as an interrupt does; called from another thread."""
        for served in [*self._serving]:
            served.provider.cancelled.set()

    def run(self, *arguments: str) -> str:
        """Run a command of the engine on this stack, such as `state delete URN`, and give what it prints.

        Raises:
            StackFailed: The command failed.
        """
        with _ONE_PROGRAM, self._serve_providers() as attached, self._workspace(attached) as stack:
            return self._tell(stack, *arguments)

    def urns(self) -> dict[str, str]:
        """The URNs in the state by the name of their resource."""
        with self._workspace() as stack:
            resources = (stack.export_stack().deployment or {}).get("resources") or []
        return {resource["urn"].rsplit("::", 1)[1]: resource["urn"] for resource in resources}

    def outputs(self) -> dict[str, Any]:
        """The stack's outputs, secrets in clear."""
        with self._workspace() as stack:
            told = self._tell(stack, "stack", "output", "--json", "--show-secrets")
        outputs: dict[str, Any] = json.loads(told)
        return outputs

    def _tell(self, stack: automation.Stack, *arguments: str) -> str:
        try:
            # The Automation API has no public way to run what it has no function for.
            return str(stack._run_pulumi_cmd_sync([*arguments, "--stack", self.name]).stdout)
        except automation.CommandError as error:
            raise StackFailed(arguments[0], [str(error)]) from None

    def _operate(
        self, operation: str, on_event: OnStep | None, options: Mapping[str, Any] | None = None
    ) -> Progress:
        progress = Progress(on_event)
        self.told = progress.told
        output: list[str] = []
        with (
            _ONE_PROGRAM,
            self._program,
            self._serve_providers() as attached,
            self._workspace(attached) as stack,
        ):
            try:
                self._run(stack, operation, progress, output.append, options or {})
            except automation.CommandError as error:
                causes = progress.causes() or ["\n".join(output[-_LAST_LINES:]) or str(error)]
                raise StackFailed(operation, causes) from None
        return progress

    def _run(
        self,
        stack: automation.Stack,
        operation: str,
        progress: Progress,
        on_output: Callable[[str], None],
        options: Mapping[str, Any],
    ) -> None:
        act: dict[str, Callable[..., Any]] = {
            "up": stack.up,
            "preview": stack.preview,
            "refresh": stack.refresh,
            "destroy": stack.destroy,
        }
        if operation in ("up", "preview"):
            load_arguments([*RESOURCES, EKS_CLUSTER, HELM_RELEASE, IMAGE])
        further = {"continue_on_error": True} if operation == "up" and self._faults else {}
        act[operation](
            on_event=progress, on_output=on_output, on_error=on_output, color="never", **further, **options
        )

    @contextmanager
    def _serve_providers(self) -> Iterator[dict[str, str]]:
        """The providers, serving; gives the environment that tells the engine of them."""
        with ExitStack() as closing:
            aws = AwsProvider(self._aws)
            kubernetes = KubernetesProvider(self._control_plane)
            closing.callback(kubernetes.close)
            closing.callback(self._serving.clear)
            images = DockerBuildProvider(self._aws)
            closing.callback(aws.close)
            closing.callback(images.close)
            ports = []
            for provider in (aws, kubernetes, EksProvider(), images):
                if self._faults is not None:
                    provider.before_create = self._faults
                served = AttachedProvider(provider)
                self._serving.append(served)
                closing.callback(served.stop)
                ports.append(f"{provider.package}:{served.port}")
            search = {"PATH": f"{self._plugins}:{os.environ['PATH']}"} if self._plugins else {}
            yield {"PULUMI_DEBUG_PROVIDERS": ",".join(ports)} | search

    @contextmanager
    def _workspace(self, environment: Mapping[str, str] | None = None) -> Iterator[automation.Stack]:
        variables = {
            "PULUMI_BACKEND_URL": self.project.state.as_uri(),
            "PULUMI_CONFIG_PASSPHRASE": _PASSPHRASE,
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
        }
        variables |= SELDOM_COLLECTED | dict(environment or {})
        workspace = _Workspace(
            work_dir=str(self.project.work),
            pulumi_home=str(self.project.home),
            program=self._program,
            env_vars=variables,
            pulumi_command=self._command(),
        )
        workspace.is_selected = self._is_selected
        stack = _Operations(self.name, workspace, StackInitMode.CREATE_OR_SELECT)
        self._is_selected = True
        yield stack

    def _command(self) -> automation.PulumiCommand:
        if self._engine is None:
            link = self.project.home / "engine" / "bin" / "pulumi"  # where the Automation API looks
            link.parent.mkdir(parents=True, exist_ok=True)
            link.unlink(missing_ok=True)
            link.symlink_to(pulumi_engine())
            root = str(link.parent.parent)
            self._engine = automation.PulumiCommand(root, skip_version_check=True)
        return self._engine

    def _run_main(self) -> None:
        runpy.run_path(str(self.project.main), run_name="__main__")

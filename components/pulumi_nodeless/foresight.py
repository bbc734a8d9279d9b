"""A preview that thinks: what a change of pools would do to the nodes that stand, told by `pulumi preview`.

The answer is the controller's own: `nodeless drift` on the manifests that the stack would apply, as a process
of its own (the components know the controller's rules, not its clients). It reads the cluster by the
kubeconfig and AWS by the ordinary chain of credentials, and changes nothing. Where either cannot be reached,
the preview goes on with a note.
"""

import asyncio
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import pulumi
from pulumi.output import contains_unknowns

PATIENCE: Final = 120.0
"""Seconds for the answer."""


def foretell(
    component: pulumi.Resource,
    kubeconfig: pulumi.Input[Any],
    region: pulumi.Input[str],
    namespace: str,
    owner: str,
    manifests: Sequence[Mapping[str, Any]],
) -> None:
    """During a preview, reports what applying the manifests would do to the cluster's nodes.

    Pools of the owner that the manifests lack leave the stack: they are planned as removed.

    Args:
        component: what the report is attached to.
        kubeconfig: of the cluster, as text or as a document.
        region: of the cluster.
        namespace: of the controller.
        owner: what the pools of this component are annotated with.
        manifests: pools and node classes as they shall be; their values may be outputs.
    """
    if not pulumi.runtime.is_dry_run():
        return

    async def report(values: Any) -> Any:
        if contains_unknowns(values):
            lines = ["not planned against the cluster: it is not there yet"]
        else:
            config, where, documents = values
            lines = await asyncio.to_thread(answer, config, where, namespace, owner, documents)
        pulumi.log.info("\n".join(f"pools: {line}" for line in lines), component)

    known: pulumi.Output[Any] = pulumi.Output.all(kubeconfig, region, list(manifests))
    known.apply(report, run_with_unknowns=True)


def answer(
    kubeconfig: str | Mapping[str, Any],
    region: str,
    namespace: str,
    owner: str,
    manifests: Sequence[Mapping[str, Any]],
) -> list[str]:
    """What would happen, line by line; or one line that says why that is not known."""
    with TemporaryDirectory(prefix="nodeless-") as directory:
        file = Path(directory) / "kubeconfig"
        file.touch(mode=0o600)
        file.write_text(kubeconfig if isinstance(kubeconfig, str) else json.dumps(kubeconfig))
        command = [sys.executable, "-m", "nodeless", "drift", "-", "--json", "--kubeconfig", str(file)]
        command += ["--namespace", namespace, "--owner", owner, *(["--region", region] if region else [])]
        document = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(manifests)})
        try:
            done = subprocess.run(
                command, input=document, capture_output=True, text=True, timeout=PATIENCE, check=False
            )
        except subprocess.TimeoutExpired:
            return [f"not planned against the cluster: no answer within {PATIENCE:.0f} s"]
    if done.returncode:
        said = done.stderr.strip().splitlines() or ["the command `nodeless` cannot be run"]
        reason = said[-1].removeprefix("nodeless: ").partition("; or give --snapshot")[0]
        return [f"not planned against the cluster: {reason}"]
    lines: list[str] = json.loads(done.stdout)["lines"]
    return lines

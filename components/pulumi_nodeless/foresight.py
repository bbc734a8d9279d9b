"""A preview that thinks: what a change of pools would do to the nodes that stand, told by `pulumi preview`.

The answer is the controller's own: `nodeless drift` on the manifests that the stack would apply, as a process
of its own (the components know the controller's rules, not its clients). It reads the cluster by the
kubeconfig and AWS by the ordinary chain of credentials, and changes nothing. Where either cannot be reached,
the preview goes on with a note.

The components of a program that have the same cluster are planned together, once the program has ended: what
one takes away another may make up for. Pools of the last update (`last_update`) that no component declares
any more are planned as removed, those of a component that has left the program included. For programs in
other languages each component is a call of its own, which knows nothing of the others: there it is planned
alone, and what leaves with a whole component is not told.
"""

import asyncio
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from weakref import WeakKeyDictionary

import pulumi
from pulumi.output import contains_unknowns
from pulumi.runtime.settings import get_monitor

from pulumi_nodeless.last_update import RecordedPool, recorded_pools

PATIENCE: Final = 120.0
"""Seconds for the answer."""


@dataclass(frozen=True, slots=True)
class LiveCluster:
    """Where the answer is to be had. The values may be outputs."""

    kubeconfig: pulumi.Input[Any]
    """As text or as a document."""
    region: pulumi.Input[str]
    namespace: str
    """Of the controller."""


@dataclass(frozen=True, slots=True)
class Declaration:
    """What a component declares."""

    component: pulumi.Resource
    """What the report is attached to."""
    name: str
    owner: str
    """What its pools are annotated with."""
    manifests: Sequence[Mapping[str, Any]]
    """Pools and node classes as they shall be; their values may be outputs."""
    pools: Sequence[pulumi.Resource]
    """The resources of its pools."""
    cluster: LiveCluster | None
    """None: nothing is asked."""


def foretell(declaration: Declaration) -> None:
    """During a preview, reports what applying the manifests would do to the cluster's nodes."""
    if not pulumi.runtime.is_dry_run():
        return
    # One connection to the engine for each program, and for each call that makes a component.
    monitor = get_monitor()
    _PREVIEWS.setdefault(monitor, _Preview(pulumi.runtime.get_root_resource())).add(declaration)


@dataclass(frozen=True, slots=True)
class Question:
    """What `nodeless drift` is asked about one cluster."""

    kubeconfig: str | Mapping[str, Any]
    region: str
    namespace: str
    manifests: Sequence[Mapping[str, Any]]
    owners: Sequence[str] = ()
    """Whose pools are removed unless the manifests have them."""
    removed: Sequence[str] = ()
    """Uids of pools that are removed unless the manifests have them."""


def answer(question: Question) -> list[str]:
    """What would happen, line by line; or one line that says why that is not known."""
    if not (question.manifests or question.owners or question.removed):
        return ["none is declared, and none leaves"]
    with TemporaryDirectory(prefix="nodeless-") as directory:
        file = Path(directory) / "kubeconfig"
        file.touch(mode=0o600)
        given = question.kubeconfig
        file.write_text(given if isinstance(given, str) else json.dumps(given))
        command = [sys.executable, "-m", "nodeless", "drift", "-", "--json", "--kubeconfig", str(file)]
        command += ["--controller-namespace", question.namespace]
        command += ["--region", question.region] if question.region else []
        command += [word for owner in question.owners for word in ("--owner", owner)]
        command += [word for uid in question.removed for word in ("--removed", uid)]
        document = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(question.manifests)})
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


class _Preview:
    """The components of one program.

    Args:
        stack: The program's root; None where a component is made for a program in another language.
    """

    def __init__(self, stack: pulumi.Resource | None) -> None:
        self._stack = stack
        self._declared: list[Declaration] = []
        self._known: list[tuple[Declaration, Any]] = []
        self._awaited = 0

    def add(self, declaration: Declaration) -> None:
        """Takes a component in; its report comes when the program has ended."""
        self._declared.append(declaration)
        if (cluster := declaration.cluster) is not None:
            self._awaited += 1
            values: pulumi.Output[Any] = pulumi.Output.all(
                cluster.kubeconfig, cluster.region, list(declaration.manifests)
            )
            values.apply(partial(self._learn, declaration), run_with_unknowns=True)

    async def _learn(self, declaration: Declaration, values: Any) -> Any:
        self._known.append((declaration, values))
        self._awaited -= 1
        # Its root has the outputs when a program is over. While it waits for a function, the loop turns.
        while not getattr(self._stack, "_outputs_registered", True):  # noqa: ASYNC110 - the SDK has no event
            await asyncio.sleep(0.02)
        if not self._awaited and self._known:
            known, self._known = self._known, []
            await self._report(known)

    async def _report(self, known: Sequence[tuple[Declaration, Any]]) -> None:
        recorded = await recorded_pools()
        removed = None if recorded is None else await self._removed_pools(recorded)
        clusters: dict[str, list[tuple[Declaration, Any]]] = {}
        for declaration, values in known:
            if contains_unknowns(values):
                _tell(declaration, ["not planned against the cluster: it is not there yet"])
                continue
            cluster = declaration.cluster
            place = json.dumps([*values[:2], cluster.namespace if cluster else ""], sort_keys=True)
            clusters.setdefault(place, []).append((declaration, values))
        for together in clusters.values():
            question = _question(together, removed)
            _tell(together[0][0], await asyncio.to_thread(answer, question))

    async def _removed_pools(self, recorded: Sequence[RecordedPool]) -> list[str]:
        """Uids of the pools that were declared at the last update and are not now."""
        urns = {await pool.urn.future() for each in self._declared for pool in each.pools}
        if self._stack is None:
            own = [(str(await each.component.urn.future()), each.name) for each in self._declared]
            recorded = [pool for pool in recorded if any(pool.may_be_of(*each) for each in own)]
        return [pool.uid for pool in recorded if pool.urn not in urns]


_PREVIEWS: Final[WeakKeyDictionary[Any, _Preview]] = WeakKeyDictionary()


def _question(together: Sequence[tuple[Declaration, Any]], removed: Sequence[str] | None) -> Question:
    (first, (kubeconfig, region, _)) = together[0]
    return Question(
        kubeconfig,
        region,
        first.cluster.namespace if first.cluster else "",
        [manifest for _, values in together for manifest in values[2]],
        # Without the state the annotation tells, of those that are still declared.
        [each.owner for each, _ in together] if removed is None else (),
        removed or (),
    )


def _tell(declaration: Declaration, lines: Sequence[str]) -> None:
    pulumi.log.info("\n".join(f"pools: {line}" for line in lines), declaration.component)

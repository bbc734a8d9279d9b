"""`nodeless sweep`: end what a controller that is gone left in AWS."""

import asyncio
import time
from typing import TYPE_CHECKING, Annotated

import typer

from nodeless.cli.commands.inputs import CONTROLLER_NAMESPACE, Kubeconfig, OwnNamespace
from nodeless.cli.commands.terms import refuse, remark
from nodeless.explain.words import count

if TYPE_CHECKING:
    from nodeless.cloudprovider.aws.orphans import Orphans

sweeping = typer.Typer()

#: Seconds between two passes while instances are going.
_LOOK_AGAIN = 5.0


@sweeping.command(rich_help_panel="The controller")
def sweep(
    cluster: Annotated[str, typer.Option(help="Name of the cluster whose nodes to terminate.")],
    yes: Annotated[
        bool, typer.Option("--yes", help="Do it. Without this option, only list what is there.")
    ] = False,
    region: Annotated[
        str, typer.Option(help="AWS region. If not set, boto3 determines it.", envvar="AWS_REGION")
    ] = "",
    timeout: Annotated[float, typer.Option(help="Seconds to wait until everything is gone.")] = 600.0,
    finalizers: Annotated[
        bool,
        typer.Option(
            "--finalizers",
            help="Afterwards, also release the cluster's objects: delete the dead controller's webhooks, and "
            "remove its finalizers from pools, NodeClaims, node classes, nodes and the teardown guard.",
        ),
    ] = False,
    kubeconfig: Kubeconfig = "",
    namespace: OwnNamespace = CONTROLLER_NAMESPACE,
) -> None:
    """Terminate, without draining, the nodes of a cluster whose controller is gone, and clean up after them.

    Finds instances, network interfaces that the VPC CNI left behind, launch templates and instance profiles
    by the controller's own tags and paths. Run it when `pulumi destroy` cannot continue because the
    controller is dead. While a controller runs, it would only launch new nodes. With --finalizers, a waiting
    `pulumi destroy` then continues by itself. Exit code 1: something was found without --yes, or is still
    there.
    """
    # Imported here: the other commands need neither AWS nor the cluster.
    from nodeless.cli.kubeconfig import ClusterUnreadable, use_kubeconfig  # noqa: PLC0415
    from nodeless.cloudprovider import CloudError  # noqa: PLC0415
    from nodeless.kube import ApiError, ApiUnavailable  # noqa: PLC0415

    try:
        if finalizers:
            use_kubeconfig(kubeconfig)
        left = asyncio.run(_both(cluster, yes, region, timeout, namespace if finalizers else ""))
    except (CloudError, ApiError, ApiUnavailable, ClusterUnreadable) as error:
        refuse(str(error))
    if left:
        raise typer.Exit(1)


async def _both(cluster: str, yes: bool, region: str, patience: float, namespace: str) -> bool:
    """Sweeps AWS and then, where a namespace is given, the cluster; whether something is left."""
    if not namespace:
        return bool(await _sweep(cluster, yes, region, patience))
    # Imported here: most sweeps do not need the cluster.
    from nodeless.cli.remove_finalizers import held, living_leader, remove_finalizers  # noqa: PLC0415
    from nodeless.kube import ApiClient  # noqa: PLC0415

    client = await ApiClient.connect()
    try:
        if yes and (leader := await living_leader(client, namespace)):
            refuse(
                f"a controller leads: {leader}; hint: let it terminate everything itself; otherwise "
                f"kubectl -n {namespace} scale deployment karpenter --replicas 0"
            )
        if await _sweep(cluster, yes, region, patience) and yes:
            remark(
                "the cluster's objects still have finalizers; hint: they are removed when no instance is left"
            )
            return True
        found = await (remove_finalizers if yes else held)(client, namespace)
    finally:
        await client.close()
    if found:
        typer.echo(f"{'finalizers removed' if yes else 'finalizers left'}: {', '.join(found)}")
    return bool(found) and not yes


async def _sweep(cluster: str, yes: bool, region: str, patience: float) -> "Orphans":
    from nodeless.cloudprovider.aws.orphans import Sweeper  # noqa: PLC0415
    from nodeless.cloudprovider.aws.session import AwsSession  # noqa: PLC0415

    session = AwsSession(region)
    sweeper = Sweeper(session, time.time, cluster)
    deadline = time.monotonic() + patience
    try:
        found = await sweeper.find()
        _show(cluster, found)
        if found and not yes:
            remark("nothing was changed; hint: --yes terminates and deletes all of it")
            return found
        while found and time.monotonic() < deadline:
            await sweeper.remove(found)
            found = await sweeper.find()
            if found.instances:
                remark(f"waiting for {count(len(found.instances), 'instance')} to go")
                await asyncio.sleep(_LOOK_AGAIN)
        if found:
            remark(f"after {patience:.0f} s there is still: {_summary(found)}; hint: run it again")
        elif yes:
            remark(f"nothing of cluster {cluster} is left")
    finally:
        await session.close()
    return found


def _show(cluster: str, found: "Orphans") -> None:
    if not found:
        typer.echo(f"cluster {cluster}: nothing is left")
        return
    typer.echo(f"cluster {cluster}: {_summary(found)}")
    for instance, described in sorted(found.instances.items()):
        typer.echo(f"  {instance}  {described}")
    for name in (*found.interfaces, *found.templates, *found.profiles):
        typer.echo(f"  {name}")


def _summary(found: "Orphans") -> str:
    parts = (
        (found.instances, "instance"),
        (found.interfaces, "network interface"),
        (found.templates, "launch template"),
        (found.profiles, "instance profile"),
    )
    return ", ".join(count(len(some), word) for some, word in parts if some)

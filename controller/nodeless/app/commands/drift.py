"""`nodeless drift`: what applying pools and node classes would do to the nodes that stand."""

import asyncio
import json
from typing import TYPE_CHECKING, Annotated

import typer

from nodeless.app.commands.files import Offer, applied, with_files
from nodeless.app.commands.inputs import Kubeconfig, Namespace, Region, Snapshot, Source, situation_of
from nodeless.app.commands.terms import refuse, remark

if TYPE_CHECKING:
    from nodeless.explain.foresight import Foresight

changes = typer.Typer()


@changes.command(rich_help_panel="Plans")
def drift(
    files: Annotated[
        list[str], typer.Argument(metavar="FILE...|DIR|-", help="Pools and node classes as they shall be")
    ],
    snapshot: Snapshot = "",
    kubeconfig: Kubeconfig = "",
    namespace: Namespace = "karpenter",
    region: Region = "",
    owner: Annotated[
        str,
        typer.Option(
            help="Whose manifests these are (annotation nodeless.dev/owner): its pools in the cluster that "
            "the files lack count as removed"
        ),
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="The answer as JSON on stdout")] = False,
) -> None:
    """Show which nodes would drift if these manifests were applied, what replaces them, and what it costs.

    Asks the cluster and AWS, changes nothing. With --snapshot neither is asked: then images, subnets and
    security groups are not compared. Exit code 0: answered; 2: the input cannot be used.

    nodeless drift pools.yaml

    kubectl get nodepools -o yaml | sed s/al2023@v20250101/al2023@latest/ | nodeless drift -
    """
    if snapshot and owner:
        refuse("--owner asks the cluster; hint: leave --snapshot out")
    told = _of_snapshot(files, snapshot) if snapshot else _live(files, kubeconfig, namespace, region, owner)
    if as_json:
        typer.echo(json.dumps(told.to_json(), indent=2, ensure_ascii=False))
        return
    for line in (*told.notes, *told.lines()):
        typer.echo(line)


def _of_snapshot(files: list[str], snapshot: str) -> "Foresight":
    # Imported here: other commands do not need the solver.
    from nodeless.cloud.aws.catalogue_file import bundled_catalogue  # noqa: PLC0415
    from nodeless.explain.foresight import foresee  # noqa: PLC0415

    before, _, notes = situation_of(Source(snapshot=snapshot))
    sold = bundled_catalogue()
    after = with_files(before, files, Offer(sold, sold.all_zones[:3]), notes)
    return foresee(before, after, notes=notes)


def _live(files: list[str], kubeconfig: str, namespace: str, region: str, owner: str) -> "Foresight":
    # Imported here: commands on files need neither AWS nor the cluster.
    from nodeless.app import logs  # noqa: PLC0415
    from nodeless.app.live import ClusterUnreadable, live_change, use_kubeconfig  # noqa: PLC0415
    from nodeless.cloud import CloudError  # noqa: PLC0415
    from nodeless.explain.foresight import foresee, without_pools_of  # noqa: PLC0415
    from nodeless.watch import ApiError, ApiUnavailable  # noqa: PLC0415

    logs.only_errors()
    use_kubeconfig(kubeconfig)
    notes: list[str] = []
    try:
        change = asyncio.run(
            live_change(
                namespace,
                region,
                remark,
                lambda seen: applied(files, without_pools_of(owner, seen), notes, may_be_empty=bool(owner)),
            )
        )
    except (ApiUnavailable, ApiError, ClusterUnreadable, CloudError) as error:
        refuse(f"{error}; or give --snapshot, which needs no cluster")
    return foresee(
        change.before,
        change.after,
        change.looked,
        provisioners_drift=change.provisioners_drift,
        notes=notes,
    )

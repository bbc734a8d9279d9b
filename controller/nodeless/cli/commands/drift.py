"""`nodeless drift`: what applying pools and node classes would do to the nodes that stand."""

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer

from nodeless.cli.commands.files import Offer, ReadAs, applied, with_files
from nodeless.cli.commands.inputs import (
    CONTROLLER_NAMESPACE,
    CatalogOption,
    ControllerNamespace,
    Kubeconfig,
    Namespace,
    Region,
    Snapshot,
    Source,
    SpotPercent,
    catalog_of,
    situation_of,
)
from nodeless.cli.commands.output import (
    DOCUMENTS,
    FINDINGS,
    PLAIN,
    TABLE,
    AsJson,
    format_of,
    output_option,
    write_document,
    write_findings,
)
from nodeless.cli.commands.terms import refuse, remark
from nodeless.cli.completion import POOLS, object_names
from nodeless.cli.folding import echo_folded
from nodeless.cli.progress import working

if TYPE_CHECKING:
    from nodeless.explain.drift_preview import DriftPreview
    from nodeless.model.snapshot import Snapshot as ClusterSnapshot

changes = typer.Typer()
_FORMS = (*PLAIN, *FINDINGS)


@changes.command(rich_help_panel="Plans")
def drift(
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="FILE...|DIR|-", help="Pools and node classes as you want to apply them."),
    ] = None,
    snapshot: Snapshot = "",
    kubeconfig: Kubeconfig = "",
    namespace: Namespace = "",
    controller_namespace: ControllerNamespace = CONTROLLER_NAMESPACE,
    region: Region = "",
    owner: Annotated[
        list[str] | None,
        typer.Option(
            help="Owner of these manifests (annotation nodeless.dev/owner). Its pools that are in the "
            "cluster but not in the files count as removed. Repeatable."
        ),
    ] = None,
    removed: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KIND/NAME",
            help="A pool (or its UID) that would be deleted, unless the files contain it. Repeatable.",
            autocompletion=object_names(POOLS),
        ),
    ] = None,
    catalog: CatalogOption = "",
    spot_percent: SpotPercent = 40.0,
    output: Annotated[str, output_option(*_FORMS)] = TABLE,
    as_json: AsJson = False,
) -> None:
    """Show which nodes would drift if you applied these manifests, what would replace them, and the cost.

    Reads the cluster and AWS, and changes nothing. With --snapshot, it reads neither of them, and does not
    compare images, subnets and security groups; give --catalog for a cluster outside us-east-1. Exit code 0:
    success. 2: the input cannot be used.

    nodeless drift pools.yaml

    kubectl get ec2nodeclasses -o yaml | sed s/al2023@v20250101/al2023@latest/ | nodeless drift -

    nodeless drift --removed NodePool/old
    """
    output = format_of(output, as_json=as_json, formats=_FORMS)
    read_as = ReadAs(namespace=namespace, output=output, documents=[])
    leaving, given = _Leaving(tuple(owner or ()), tuple(removed or ())), files or []
    if not given and not leaving:
        refuse("nothing to compare; hint: give files, or --removed")
    source = Source(snapshot=snapshot, catalog=catalog, spot_percent=spot_percent)
    if catalog and not snapshot:
        refuse("--catalog needs --snapshot; hint: without --snapshot, AWS is asked for types and prices")
    with working("comparing the cluster with the files"):
        preview = (
            _of_snapshot(given, source, leaving, read_as)
            if snapshot
            else _live(given, kubeconfig, controller_namespace, region, leaving, read_as)
        )
    if output in DOCUMENTS:
        write_document("DriftReport", preview.to_json(), output)
        return
    if output in FINDINGS:
        # Imported here: most calls do without it.
        from nodeless.cli.commands.plan_findings import drift_findings  # noqa: PLC0415

        write_findings(drift_findings(preview, read_as.documents or ()), (), output)
        return
    for line in (*preview.notes, *preview.lines()):
        echo_folded(line)


@dataclass(frozen=True, slots=True)
class _Leaving:
    """Which pools go unless the files have them."""

    owners: tuple[str, ...]
    named: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.owners or self.named)

    def gone(self, snapshot: "ClusterSnapshot") -> "ClusterSnapshot":
        """The snapshot without them; ends the command when one that is named is not there."""
        # Imported here: other commands do not need the solver.
        from nodeless.explain.drift_preview import without_pools, without_pools_of  # noqa: PLC0415

        for owner in self.owners:
            snapshot = without_pools_of(owner, snapshot)
        try:
            return without_pools(self.named, snapshot)
        except KeyError as error:
            there = ", ".join(sorted(snapshot.pools)) or "none"
            refuse(f"--removed {error.args[0]}: there is no such pool; hint: there are {there}")


def _of_snapshot(files: list[str], source: Source, leaving: _Leaving, read_as: ReadAs) -> "DriftPreview":
    # Imported here: other commands do not need the solver.
    from nodeless.explain.drift_preview import preview_drift  # noqa: PLC0415

    before, _, notes = situation_of(source)
    sold = catalog_of(source.catalog, source.spot_percent)
    left = replace(before, snapshot=leaving.gone(before.snapshot))
    offer = Offer(sold, sold.all_zones[:3])
    after = with_files(left, files, offer, notes, read_as=read_as, may_be_empty=bool(leaving))
    return preview_drift(before, after, notes=notes)


def _live(
    files: list[str], kubeconfig: str, namespace: str, region: str, leaving: _Leaving, read_as: ReadAs
) -> "DriftPreview":
    # Imported here: commands on files need neither AWS nor the cluster.
    from nodeless.cli.kubeconfig import ClusterUnreadable, use_kubeconfig  # noqa: PLC0415
    from nodeless.cli.live_cluster import live_change  # noqa: PLC0415
    from nodeless.cloudprovider import CloudError  # noqa: PLC0415
    from nodeless.explain.drift_preview import preview_drift  # noqa: PLC0415
    from nodeless.kube import ApiError, ApiUnavailable  # noqa: PLC0415
    from nodeless.operator import logs  # noqa: PLC0415

    logs.only_errors()
    notes: list[str] = []
    try:
        use_kubeconfig(kubeconfig)
        change = asyncio.run(
            live_change(
                namespace,
                region,
                remark,
                lambda seen: applied(
                    files, leaving.gone(seen), notes, read_as=read_as, may_be_empty=bool(leaving)
                ),
            )
        )
    except (ApiUnavailable, ApiError, ClusterUnreadable, CloudError) as error:
        refuse(f"{error}; or give --snapshot, which needs no cluster")
    return preview_drift(
        change.before,
        change.after,
        change.observations,
        provisioners_drift=change.provisioners_drift,
        notes=notes,
    )

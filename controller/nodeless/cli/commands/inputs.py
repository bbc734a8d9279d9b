"""Where a situation comes from: manifests, a saved snapshot, or the cluster; options that commands share."""

import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

import typer

from nodeless.cli.bounded_files import STDIN
from nodeless.cli.commands.files import Offer, ReadAs, known_zones, situation_of_files, with_files
from nodeless.cli.commands.output import TABLE
from nodeless.cli.commands.terms import content_of, from_cluster, refuse, saved_situation
from nodeless.cli.completion import NODES, changes, object_names
from nodeless.cli.progress import nothing_shown, working

if TYPE_CHECKING:
    from collections.abc import Callable

    from nodeless.cli.manifests.documents import Document
    from nodeless.cloudprovider.aws.catalog_file import CatalogFile
    from nodeless.cloudprovider.billing.terms import BillTerms
    from nodeless.explain.decisions import Situation
    from nodeless.explain.preference_costs import Trying
    from nodeless.model.instance_types import Catalog, InstanceType
    from nodeless.model.snapshot import Snapshot as Seen

#: Where the controller is, unless something else is said.
CONTROLLER_NAMESPACE = "karpenter"
_REPLICAS = ("min", "current", "max")
_INPUT, _CLUSTER, _CATALOG = "What is planned", "Which cluster", "What may be bought"

NamesAndFiles = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[KIND/NAME|FILE|DIR|-]",
        help="Nodes, NodeClaims and pools to which to limit the list, or manifests. Without manifests, the "
        "cluster of the kubeconfig.",
        autocompletion=object_names(NODES, beside_files=True),
    ),
]
Files = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[FILE...|DIR|-]", help="Manifests. If there are none, the cluster of the kubeconfig."
    ),
]
Snapshot = Annotated[
    str,
    typer.Option("--snapshot", metavar="FILE", help="A file from nodeless snapshot.", rich_help_panel=_INPUT),
]
WhatIf = Annotated[
    list[str] | None,
    typer.Option(
        "--what-if",
        metavar="CHANGE",
        help="Plan with a change: add=FILE (pods, workloads, pools), scale=deploy/web:20, remove=deploy/web, "
        "without-pool=P, without-node=N, without-type=m5.*, only-type=m5.*, with-zone=Z, "
        "without-zone=Z, without-spot, price=m5.large:0.05, price=c5.*:-20%, limit=POOL:cpu=100, "
        "packing=fewest-nodes, node-fee=0.01. Repeatable. Changes apply in the given order.",
        rich_help_panel=_INPUT,
        autocompletion=changes,
    ),
]
Replicas = Annotated[
    str,
    typer.Option(
        metavar="min|current|max",
        help="How many pods to plan for workloads with an autoscaler among the manifests, and how many "
        "workers for Ray clusters that scale themselves: replicas, limited to the autoscaler's range "
        "(current), or one end of that range (min, max).",
        rich_help_panel=_INPUT,
    ),
]
Strict = Annotated[
    bool,
    typer.Option(
        "--strict",
        help="Exit with code 2 if an object that may change the plan is ignored.",
        rich_help_panel=_INPUT,
    ),
]
Kubeconfig = Annotated[
    str,
    typer.Option(
        help="Path of a kubeconfig. If not set, $KUBECONFIG, then ~/.kube/config.", rich_help_panel=_CLUSTER
    ),
]
_OF_CONTROLLER = "Namespace of the controller and its settings."
ControllerNamespace = Annotated[
    str, typer.Option("--controller-namespace", help=_OF_CONTROLLER, rich_help_panel=_CLUSTER)
]
#: Of commands that ask about the controller alone: -n is its namespace.
OwnNamespace = Annotated[
    str,
    typer.Option(
        "--controller-namespace", "--namespace", "-n", help=_OF_CONTROLLER, rich_help_panel=_CLUSTER
    ),
]
Namespace = Annotated[
    str,
    typer.Option(
        "--namespace",
        "-n",
        help="Namespace for names and manifests that specify none.",
        rich_help_panel=_INPUT,
    ),
]
Region = Annotated[
    str,
    typer.Option(
        help="AWS region of the cluster. If not set, boto3 determines it.",
        envvar="AWS_REGION",
        rich_help_panel=_CLUSTER,
    ),
]
CatalogOption = Annotated[
    str,
    typer.Option(
        metavar="FILE",
        help="A file from nodeless catalog. If not set, the bundled catalog.",
        rich_help_panel=_CATALOG,
    ),
]
Zones = Annotated[
    str,
    typer.Option(
        metavar="ZONE,...",
        help="Zones of the subnets. If not set, the first three.",
        rich_help_panel=_CATALOG,
    ),
]
SpotPercent = Annotated[
    float,
    typer.Option(
        help="Spot price as a percentage of the on-demand price, if the catalog has no spot price.",
        min=1,
        max=100,
        rich_help_panel=_CATALOG,
    ),
]
PreferenceCostsOption = Annotated[
    str,
    typer.Option(
        "--preference-costs",
        metavar="auto|always|never",
        help="Whether to plan again without each kind of soft rule, to show what the rule costs. With auto, "
        "only as far as that is quick.",
        rich_help_panel="Output",
    ),
]


@dataclass(frozen=True, slots=True)
class Source:
    """The options by which a situation is found.

    With `wide`, a cloud is asked what pools might buy if they allowed it, too; files tell that anyway.
    `namespace` is that of names and manifests without one. `output` is the form of the answer, and
    `documents` gets the objects of the files.
    """

    files: Sequence[str] = ()
    snapshot: str = ""
    what_if: Sequence[str] = ()
    kubeconfig: str = ""
    controller_namespace: str = CONTROLLER_NAMESPACE
    region: str = ""
    catalog: str = ""
    zones: str = ""
    spot_percent: float = 40.0
    replicas: str = "current"
    strict: bool = False
    ends: bool = False
    wide: bool = False
    namespace: str = ""
    output: str = TABLE
    documents: "list[Document]" = field(default_factory=list)

    @property
    def read_as(self) -> ReadAs:
        """How the manifests are read."""
        ends = self.ends and not self.what_if
        return ReadAs(self.replicas, self.strict, ends, self.namespace, self.output, self.documents)


def situation_of(source: Source) -> "tuple[Situation, Catalog, list[str]]":
    """The situation, what pools might buy if they allowed it, and notes; or the end of the command."""
    # Imported here: other commands do not need the solver.
    from nodeless.cloudprovider.aws.offline_catalogs import offline_catalogs  # noqa: PLC0415
    from nodeless.cloudprovider.billing.terms import terms_of  # noqa: PLC0415
    from nodeless.explain.lost_work import invalid_lost_work_notes  # noqa: PLC0415

    if source.files and source.snapshot:
        refuse("manifests and --snapshot exclude each other; hint: leave one of them out")
    if source.replicas not in _REPLICAS:
        refuse(f"--replicas {source.replicas!r} is not known; hint: {', '.join(_REPLICAS)}")
    if (source.strict or source.replicas != "current") and not source.files:
        refuse("--replicas and --strict apply only to manifests; hint: give the files, or leave them out")
    sold = catalog_of(source.catalog, source.spot_percent)
    offer = Offer(sold, zones_of(sold, source.zones))
    notes: list[str] = []
    wider: dict[str, tuple[InstanceType, ...]] = {}
    with _shown(source):
        if source.snapshot:
            situation = saved_situation(source.snapshot).situation
        elif source.files:
            situation = situation_of_files(source.files, offer, notes, source.read_as)
        else:
            situation = _from_cluster(source, offer, notes, wider)
        for change in source.what_if:
            situation = _as_if(situation, change, offer, notes, source)
        if source.files:
            terms = terms_of(situation.prices)
            wider, _ = offline_catalogs(sold, situation.snapshot, offer.zones, terms, allowed_only=False)
    notes.extend(invalid_lost_work_notes(situation.snapshot))
    return situation, wider, notes


def trying_of(text: str) -> "Trying":
    """What `--preference-costs` says; ends the command where it says nothing that is known."""
    from nodeless.explain.preference_costs import Trying  # noqa: PLC0415

    try:
        return Trying(text)
    except ValueError:
        refuse(f"--preference-costs {text!r} is not known; hint: {', '.join(Trying)}")


def _shown(source: Source) -> AbstractContextManager[object]:
    """The line on a terminal meanwhile; none where somebody types the input there."""
    if STDIN in source.files and sys.stdin.isatty():
        return nothing_shown()
    return working("reading the files" if source.files or source.snapshot else "asking the cluster and AWS")


def _as_if(
    situation: "Situation", change: str, offer: Offer, notes: list[str], source: Source
) -> "Situation":
    from nodeless.explain.what_if import BadChange, changed  # noqa: PLC0415

    word, _, file = change.partition("=")
    notes.append(f"as if: {change}")
    if word == "add" and file:
        return with_files(situation, (file,), offer, notes, read_as=source.read_as)
    try:
        return changed(situation, change, source.namespace)
    except BadChange as error:
        refuse(str(error))


def catalog_of(file: str, spot_percent: float) -> "CatalogFile":
    """The catalog of a file, or the bundled one; ends the command where it cannot be used."""
    from nodeless.cloudprovider.aws.catalog_file import bundled_catalog, read_catalog  # noqa: PLC0415
    from nodeless.state.saving import SavedFormatError  # noqa: PLC0415

    if not file:
        return bundled_catalog().with_spot_percent(spot_percent)
    try:
        return read_catalog(content_of(file).decode("utf-8", "replace")).with_spot_percent(spot_percent)
    except SavedFormatError as error:
        refuse(f"{file}: {error}")


def zones_of(sold: "CatalogFile", text: str) -> tuple[str, ...]:
    """Zones as `--zones` has them, else the first three; ends the command where one is not sold in."""
    zones = tuple(zone.strip() for zone in text.split(",") if zone.strip()) or sold.all_zones[:3]
    unknown = [zone for zone in zones if zone not in sold.all_zones]
    if unknown:
        refuse(
            f"--zones: {unknown[0]!r} is not a zone of the catalog; hint: {', '.join(sold.all_zones)}, "
            "or make a catalog of your region with `nodeless catalog`"
        )
    return zones


def _from_cluster(
    source: Source, offer: Offer, notes: list[str], wider: "dict[str, tuple[InstanceType, ...]]"
) -> "Situation":
    """The situation of a running cluster; `wider` gets what pools might buy, where the source asks for it."""
    offline = without_aws(source, offer, notes, wider)
    offered = wider.update if source.wide else None
    return from_cluster(source.kubeconfig, source.controller_namespace, source.region, offline, offered)


def without_aws(
    source: Source, offer: Offer, notes: list[str], wider: "dict[str, tuple[InstanceType, ...]]"
) -> "Callable[[Seen, BillTerms], tuple[Catalog, dict[str, str]]]":
    """What pools of a cluster may buy by the offer where AWS cannot be asked.

    It ends the command where the offer is one of another region; `notes` and `wider` get more.
    """
    from nodeless.cloudprovider.aws.offline_catalogs import offline_catalogs  # noqa: PLC0415

    def offline(seen: "Seen", terms: "BillTerms") -> "tuple[Catalog, dict[str, str]]":
        known_zones({node.zone for node in seen.nodes.values() if node.zone}, offer, "without AWS")
        notes.extend(offer.notes())
        if source.wide:
            wider.update(offline_catalogs(offer.sold, seen, offer.zones, terms, allowed_only=False)[0])
        return offline_catalogs(offer.sold, seen, offer.zones, terms)

    return offline

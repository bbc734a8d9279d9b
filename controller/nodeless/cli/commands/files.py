"""Manifests as a situation, and manifests added to one that there is."""

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from nodeless.cli.bounded_files import UnreadableFileError
from nodeless.cli.commands.output import FINDINGS, TABLE, refuse_faults, write_findings
from nodeless.cli.commands.terms import refuse, remark
from nodeless.cli.manifests.overlays import overlay_notes
from nodeless.explain.words import count
from nodeless.scheduling.pods.buffers import BufferReason

if TYPE_CHECKING:
    from nodeless.cli.manifests.documents import Document
    from nodeless.cli.manifests.reading import FileContents
    from nodeless.cloudprovider.aws.catalog_file import CatalogFile
    from nodeless.cloudprovider.billing.terms import BillTerms
    from nodeless.disruption import DisruptionPolicy
    from nodeless.explain.decisions import Situation
    from nodeless.explain.price_terms import PriceTerms
    from nodeless.model.snapshot import Snapshot
    from nodeless.operator.settings import GlobalSettings
    from nodeless.scheduling import Policy

#: Settings by which catalogs are priced, and what they are called among the terms of bills.
_PRICED_BY = {
    "nodeless.billParts": "parts",
    "nodeless.cpuCredits": "credit_mode",
    "nodeless.burstableCPUUse": "cpu_use",
    "nodeless.priceAdjustments": "adjustments",
    "nodeless.leastMemory": "least_memory",
    "nodeless.priceBook": "book",
}
_NO_PODS = "replicas, percentage and limits result in 0 pods"


@dataclass(frozen=True, slots=True)
class ReadAs:
    """How manifests are read.

    Attributes:
        replicas: Of those that an autoscaler allows a workload: min, current or max.
        ends: Whether notes say what is added at the ends of what autoscalers allow.
        strict: Whether an object that is left out, and might change the plan, ends the command.
        namespace: Of objects that say none; empty: `default`.
        output: The form of the command's answer; faults are in it, too, where it is one of findings.
        documents: Gets the objects of the files.
    """

    replicas: str = "current"
    strict: bool = False
    ends: bool = False
    namespace: str = ""
    output: str = TABLE
    documents: "list[Document] | None" = None


_AS_USUAL = ReadAs()


@dataclass(frozen=True, slots=True)
class Offer:
    """What is sold where, for situations whose cloud is not asked."""

    sold: "CatalogFile"
    zones: tuple[str, ...]

    def notes(self) -> list[str]:
        """Lines on the date of prices and on what is assumed."""
        types = f"{len(self.sold.facts)} instance types"
        notes = [f"prices of {self.sold.region}, {self.sold.date}, {types}, zones {', '.join(self.zones)}"]
        if self.sold.spot_percent is not None:
            notes.append(f"spot is assumed to cost {self.sold.spot_percent:g} % of on-demand")
        return notes

    def dates(self, terms: "BillTerms") -> str:
        """A line on the dates of what is paid besides instances; empty where nothing of it counts."""
        from nodeless.cloudprovider.billing.book import PRICE_BOOK  # noqa: PLC0415

        known = {name: terms.book.dates.get(name, "") for name in sorted(terms.parts)}
        told = ", ".join(f"{name} {date}" for name, date in known.items() if date)
        own = f"; entries of {PRICE_BOOK} in place of some" if terms.book.given else ""
        return f"prices besides instances: {told}{own}" if told else ""


def situation_of_files(
    files: Sequence[str], offer: Offer, notes: list[str], read_as: ReadAs = _AS_USUAL
) -> "Situation":
    """The situation that manifests describe; ends the command with every fault of every file."""
    # Imported here: other commands do not need the solver.
    from nodeless.cli.manifests.pod_templates import ReplicasMode  # noqa: PLC0415
    from nodeless.cli.manifests.reading import read_documents  # noqa: PLC0415
    from nodeless.cloudprovider.aws.offline_catalogs import (  # noqa: PLC0415
        offline_catalogs,
        offline_evaluation,
    )
    from nodeless.cloudprovider.billing.terms import terms_of  # noqa: PLC0415
    from nodeless.explain.bill import term_notes  # noqa: PLC0415
    from nodeless.explain.decisions import Situation  # noqa: PLC0415
    from nodeless.model.snapshot import Snapshot  # noqa: PLC0415

    given, settings, documents = _given(files, None, read_as)
    policy, prices, disruption = _terms_of(settings)
    terms = terms_of(prices)
    notes += offer.notes()
    notes += filter(None, [offer.dates(terms)])
    notes += (f"price book: {fault}" for fault in terms.book.faults)
    _note(given, notes)
    if given.snapshot.node_overlays:
        notes += overlay_notes(offline_evaluation(offer.sold, given.snapshot, offer.zones))
    now = time.time()
    notes += term_notes(policy.commitments, now)

    def situation(snapshot: "Snapshot") -> Situation:
        catalog, problems = offline_catalogs(offer.sold, snapshot, offer.zones, terms)
        policed = replace(policy.at(now), pool_problems=problems)
        return Situation(snapshot, catalog, policed, now, prices, disruption)

    if read_as.ends and given.autoscaled:
        for mode, words in ((ReplicasMode.MIN, "minimum"), (ReplicasMode.MAX, "maximum")):
            end = _with_room_for_buffers(read_documents(documents, Snapshot(), mode))
            notes.append(f"at the {words} of the autoscalers: {_cost(situation(end.snapshot))}")
    return situation(given.snapshot)


def _terms_of(settings: "GlobalSettings | None") -> "tuple[Policy, PriceTerms, DisruptionPolicy]":
    """What settings ask of a plan, of the prices that it goes by, and of disruption; else the defaults."""
    from nodeless.disruption import DisruptionPolicy  # noqa: PLC0415
    from nodeless.explain.price_terms import PriceTerms  # noqa: PLC0415
    from nodeless.operator.solver_policy import (  # noqa: PLC0415
        disruption_policy_of,
        policy_of,
        price_terms_of,
    )
    from nodeless.scheduling import Policy  # noqa: PLC0415

    if settings is None:
        return Policy(), PriceTerms(), DisruptionPolicy()
    return policy_of(settings), price_terms_of(settings), disruption_policy_of(settings)


def _with_settings(situation: "Situation", settings: "GlobalSettings", files: Sequence[str]) -> "Situation":
    """The situation by other settings; ends the command where they would change what the catalog costs.

    That cannot be priced again: what a snapshot was made of (subnets, images) is not among what it holds.
    """
    from nodeless.cloudprovider.billing.terms import terms_of  # noqa: PLC0415

    chosen, prices, disruption = _terms_of(settings)
    before, after = terms_of(situation.prices), terms_of(prices)
    if other := [
        key for key, member in _PRICED_BY.items() if getattr(before, member) != getattr(after, member)
    ]:
        refuse(
            f"{', '.join(files)}: settings replace those of the situation as a whole, and its prices cannot "
            f"be computed again by another {', '.join(other)}; hint: leave the ConfigMap out, or have it "
            "among the manifests, or in the cluster, of which the situation is made"
        )
    known = situation.policy
    policy = replace(chosen.at(situation.now), pool_problems=known.pool_problems, subnets=known.subnets)
    return replace(situation, policy=policy, disruption=disruption)


def _cost(situation: "Situation") -> str:
    """What a plan adds, in a few words."""
    plan = situation.plan()
    unplaced = f", {count(len(plan.refusals), 'pod')} not placed" if plan.refusals else ""
    return f"{plan.cost_per_hour:.4f} USD/h added{unplaced}"


def with_files(
    situation: "Situation",
    files: Sequence[str],
    offer: Offer,
    notes: list[str],
    *,
    read_as: ReadAs = _AS_USUAL,
    may_be_empty: bool = False,
) -> "Situation":
    """The situation after `kubectl apply` of more manifests; ends the command when they cannot be used."""
    from nodeless.cloudprovider.aws.offline_catalogs import offline_catalogs  # noqa: PLC0415
    from nodeless.cloudprovider.billing.terms import terms_of  # noqa: PLC0415
    from nodeless.launch.overlays import evaluate, laid_over, with_named_zones  # noqa: PLC0415
    from nodeless.model.subnets import zone_names  # noqa: PLC0415

    given, settings, _ = _given(files, situation.snapshot, read_as, may_be_empty=may_be_empty)
    if settings is not None:
        situation = _with_settings(situation, settings, files)
    after = given.snapshot
    touched = {key for key in after.pools if _changed(situation, after, key)}
    _note(given, notes)
    before = situation.snapshot.node_overlays
    if after.node_overlays != before:
        sold = [(after.pools[key], types) for key, types in situation.catalog.items() if key in after.pools]
        names = zone_names(situation.policy.subnets)
        found = evaluate(with_named_zones(after.node_overlays.values(), names), sold)
        notes += overlay_notes(found)
        if before:
            # What the types were without the overlays that count already is not known.
            touched = set(after.pools)
        else:
            laid = {pool.key: laid_over(found.accepted, pool, types) for pool, types in sold}
            situation = replace(situation, catalog={**situation.catalog, **laid})
    if not touched:
        return replace(situation, snapshot=after)
    terms, zones = terms_of(situation.prices), _zones_of(situation, offer, files)
    made, wrong = offline_catalogs(offer.sold, after, zones, terms)
    notes.append(
        f"types of {', '.join(sorted(touched))}: as {offer.sold.region} sold them on {offer.sold.date}"
    )
    catalog = {**situation.catalog, **{key: kinds for key, kinds in made.items() if key in touched}}
    known = {key: text for key, text in situation.policy.pool_problems.items() if key not in touched}
    problems = {**known, **{key: text for key, text in wrong.items() if key in touched}}
    policy = replace(situation.policy, pool_problems=problems)
    return replace(situation, snapshot=after, catalog=catalog, policy=policy)


def applied(
    files: Sequence[str],
    snapshot: "Snapshot",
    notes: list[str],
    *,
    read_as: ReadAs = _AS_USUAL,
    may_be_empty: bool = False,
) -> "Snapshot":
    """The snapshot after `kubectl apply` of manifests; ends the command when they cannot be used."""
    given, _, _ = _given(files, snapshot, read_as, may_be_empty=may_be_empty)
    _note(given, notes)
    return given.snapshot


def _changed(situation: "Situation", after: "Snapshot", key: str) -> bool:
    """Whether what a pool may buy has to be found anew."""
    before, pool = situation.snapshot, after.pools[key]
    if before.pools.get(key) != pool:
        return True
    name = str(pool.node_class)
    known = name in before.node_classes or key in situation.policy.pool_problems
    return known and before.node_classes.get(name) != after.node_classes.get(name)


def _zones_of(situation: "Situation", offer: Offer, files: Sequence[str]) -> tuple[str, ...]:
    """The zones in which the situation's pools buy already; those of the offer where they buy nothing."""
    there = {
        offering.zone
        for kinds in situation.catalog.values()
        for kind in kinds
        for offering in kind.offerings
        if offering.zone
    }
    return known_zones(there, offer, ", ".join(files)) or offer.zones


def known_zones(zones: Collection[str], offer: Offer, subject: str) -> tuple[str, ...]:
    """Those of a cluster's zones that the offer sells in; ends the command where it is of another region.

    Args:
        zones: The zones of the cluster, as far as they are known.
        offer: What is sold.
        subject: What needs the offer, for the message.
    """
    known = tuple(sorted(set(zones) & set(offer.sold.all_zones)))
    if zones and not known:
        refuse(
            f"{subject}: the catalog of {offer.sold.region} has none of the cluster's zones "
            f"({', '.join(sorted(zones))}); hint: give --catalog with the output of `nodeless catalog` "
            "in its region"
        )
    return known


def _note(given: "FileContents", notes: list[str]) -> None:
    from nodeless.cli.manifests.skipped import skipped_lines  # noqa: PLC0415

    notes += given.assumed
    notes += skipped_lines(given.skipped)


def _given(
    files: Sequence[str], base: "Snapshot | None", read_as: ReadAs = _AS_USUAL, *, may_be_empty: bool = False
) -> "tuple[FileContents, GlobalSettings | None, list[Document]]":
    """What files hold, on top of a snapshot; their settings, if any; their other objects."""
    from nodeless.cli.manifests.documents import BadManifests, Document, documents_of  # noqa: PLC0415
    from nodeless.cli.manifests.files import listed_files, text_of_listed  # noqa: PLC0415
    from nodeless.cli.manifests.members import in_namespace  # noqa: PLC0415
    from nodeless.cli.manifests.pod_templates import ReplicasMode  # noqa: PLC0415
    from nodeless.cli.manifests.reading import FileContents, read_documents  # noqa: PLC0415
    from nodeless.cli.manifests.yaml_files import HELM_HINT, is_template  # noqa: PLC0415
    from nodeless.model.snapshot import Snapshot  # noqa: PLC0415

    faults: list[str] = []
    templates: list[str] = []
    documents: list[Document] = []
    given, settings = FileContents(Snapshot()), None
    for name in files:
        listed, remarks = listed_files(name)
        for line in remarks:
            remark(f"nodeless: note: {line}")
        for file in listed:
            try:
                text = text_of_listed(file)
                if is_template(text):
                    templates.append(file)
                documents += documents_of(file, text)
            except BadManifests as error:
                faults += error.faults
            except UnreadableFileError as error:
                refuse(str(error))
    if read_as.namespace:
        documents = [in_namespace(document, read_as.namespace) for document in documents]
    try:
        settings = _settings_among(documents)
        given = read_documents(documents, base or Snapshot(), ReplicasMode(read_as.replicas))
    except BadManifests as error:
        faults += error.faults
    if not documents and settings is None and not faults and not may_be_empty:
        refuse(
            f"{', '.join(files)}: it contains no object; hint: the command that made the input may "
            "have failed"
        )
    if faults:
        for file in templates:
            if any(fault.startswith(f"{file}:") and HELM_HINT not in fault for fault in faults):
                remark(f"nodeless: note: {file} contains expressions in {{{{ }}}}; {HELM_HINT}")
        refuse_faults(faults, "the manifests", read_as.output)
    if read_as.documents is not None:
        read_as.documents.extend(documents)
    if read_as.strict:
        _refuse_skipped(given, read_as.output)
    return _with_room_for_buffers(given), settings, documents


def _refuse_skipped(given: "FileContents", output: str) -> None:
    """End the command with each object that is left out and might change the plan, if there is any."""
    # Imported here: most calls end without.
    from nodeless.api.rule_codes import RuleCode  # noqa: PLC0415
    from nodeless.cli.findings import faulty  # noqa: PLC0415
    from nodeless.cli.manifests.documents import FaultLine  # noqa: PLC0415

    skipped = [one for one in (*given.unread, *given.skipped) if one.matters]
    lines = [
        FaultLine.of(f"{one.place}: {one.subject}: ignored: {one.reason}", RuleCode.KIND_NOT_READ)
        for one in skipped
    ]
    if lines and output in FINDINGS:
        write_findings(*faulty(lines), output)
    for line in lines:
        remark(line)
    if skipped:
        objects = count(len(skipped), "object is", "objects are")
        refuse(f"{objects} ignored; hint: see the lines above, or plan without --strict")


def _with_room_for_buffers(given: "FileContents") -> "FileContents":
    """Capacity buffers as the pods for which they keep room, as a pass sees them."""
    from nodeless.scheduling import with_placeholders  # noqa: PLC0415
    from nodeless.scheduling.pods.buffers import resolutions  # noqa: PLC0415

    asked = resolutions(given.snapshot)
    lost = tuple(
        f"capacity buffer {key} reserves no capacity: {found.message or _NO_PODS}"
        for key, found in sorted(asked.items())
        if found.reason != BufferReason.RESOLVED or not found.replicas
    )
    lost += tuple(
        f"capacity buffer {key} {found.held_back}" for key, found in sorted(asked.items()) if found.held_back
    )
    lost += _requests_without_pods(given.snapshot)
    return replace(given, snapshot=with_placeholders(given.snapshot), assumed=(*given.assumed, *lost))


def _requests_without_pods(snapshot: "Snapshot") -> tuple[str, ...]:
    """Why provisioning requests have no pods in a plan."""
    from nodeless.model.provisioning_requests import CHECK_CAPACITY, Phase  # noqa: PLC0415
    from nodeless.scheduling.pods.requests import invalid, problem_of  # noqa: PLC0415

    said: list[str] = []
    for key, request in sorted(snapshot.provisioning_requests.items()):
        if not request.ours:
            why = f"class {request.provisioning_class} or instance is another autoscaler's"
        elif request.phase == Phase.OVER:
            why = "it is over"
        elif request.phase == Phase.PENDING and request.provisioning_class == CHECK_CAPACITY:
            why = "its class only checks existing capacity, nodeless launches nothing for it"
        else:
            why = invalid(request) or problem_of(snapshot, request)
        if why:
            said.append(f"provisioning request {key} is not planned: {why}")
    return tuple(said)


def _settings_among(documents: "list[Document]") -> "GlobalSettings | None":
    """The settings of their ConfigMap, which is taken out of the documents. Raises BadManifests."""
    from nodeless.cli.manifests.documents import BadManifests  # noqa: PLC0415
    from nodeless.operator.config_sources import ConfigSources as Spoken  # noqa: PLC0415
    from nodeless.operator.settings import SETTINGS_NAME, GlobalSettings, SettingsError  # noqa: PLC0415

    for document in documents:
        value = document.value if isinstance(document.value, dict) else {}
        if (value.get("kind"), _name(value)) == ("ConfigMap", SETTINGS_NAME):
            documents.remove(document)
            data = value.get("data") or {}
            if not isinstance(data, dict):
                raise BadManifests([f"{document.at('data')}: data: {data!r} is not an object"])
            try:
                # A plan needs no name of a cluster.
                unnamed = Spoken({"CLUSTER_NAME": "plan"})
                return GlobalSettings.from_config_map(data, unnamed)
            except SettingsError as error:
                raise BadManifests([f"{document.at('data')}: {fault}" for fault in error.faults]) from None
    return None


def _name(manifest: dict[str, Any]) -> object:
    metadata = manifest.get("metadata")
    return metadata.get("name") if isinstance(metadata, dict) else None

"""Decisions as files: what a solve was given, and what it answered.

A file without an answer is a saved situation (`nodeless snapshot`); one with it can be
repeated (`nodeless replay`): the same release gives the same plan, to the bit.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from nodeless.disruption import DisruptionPolicy
from nodeless.explain.price_terms import PriceTerms
from nodeless.model.instance_types import Catalog
from nodeless.model.plan import Alternative, Plan
from nodeless.model.snapshot import Snapshot
from nodeless.scheduling import Policy, solve
from nodeless.state.documents import catalog_document, read_catalog, read_snapshot, snapshot_document
from nodeless.state.saving import SavedFormatError, build_value, plain

FORMAT = "nodeless/situation"
VERSION = 1


@dataclass(frozen=True, slots=True)
class Situation:
    """The four arguments of a solve, how what is added to them is priced, and how disruption is judged."""

    snapshot: Snapshot
    catalog: Catalog
    policy: Policy
    now: float
    prices: PriceTerms = field(default_factory=PriceTerms)
    """What the catalog was priced by; files of older releases do not tell: the defaults."""
    disruption: DisruptionPolicy = field(default_factory=DisruptionPolicy)
    """How disruption is judged, by its own settings; pods are placed by `policy`."""

    @property
    def disruption_policy(self) -> DisruptionPolicy:
        """How disruption is judged: simulations take the first-fit plan."""
        return replace(self.disruption, solving=replace(self.policy, time_box=0.0))

    def plan(self) -> Plan:
        return solve(self.snapshot, self.catalog, self.policy)


@dataclass(frozen=True, slots=True)
class Saved:
    """A situation as it was read from a file, with the plan that was made of it if there was one."""

    situation: Situation
    plan: Plan | None = None
    release: str = ""
    """The release of nodeless that wrote the file."""


def write(situation: Situation, release: str, plan: Plan | None = None) -> bytes:
    """A file's content: one JSON object, in a stable order, the large tables last."""
    document = {
        "format": FORMAT,
        "version": VERSION,
        "release": release,
        "now": situation.now,
        "policy": plain(situation.policy),
        "prices": plain(situation.prices),
        "disruption": plain(situation.disruption),
        **({} if plan is None else {"plan": plain(plan)}),
        "snapshot": snapshot_document(situation.snapshot),
        "catalog": catalog_document(situation.catalog),
    }
    return msgspec.json.encode(document) + b"\n"


def read(content: bytes) -> Saved:
    """What a file holds. Raises SavedFormatError."""
    try:
        document = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise SavedFormatError(f"not JSON: {error}; hint: make the file with `nodeless snapshot`") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise SavedFormatError("not a saved situation; hint: make the file with `nodeless snapshot`")
    if document.get("version") != VERSION:
        raise SavedFormatError(
            f"version {document.get('version')!r} is not known, this release reads version {VERSION}; "
            f"hint: use the release that wrote the file ({document.get('release')})"
        )
    plan = document.get("plan")
    situation = Situation(
        read_snapshot(_object(document, "snapshot")),
        read_catalog(_object(document, "catalog")),
        build_value(Policy, document.get("policy", {}), "policy"),
        build_value(float, document.get("now"), "now"),
        build_value(PriceTerms, document.get("prices", {}), "prices"),
        build_value(DisruptionPolicy, document.get("disruption", {}), "disruption"),
    )
    return Saved(
        situation,
        None if plan is None else build_value(Plan, plan, "plan"),
        str(document.get("release") or ""),
    )


def same_plan(left: Plan, right: Plan) -> bool:
    """Whether two plans are equal to the bit; how much work they were and who named prices play no part."""
    return bool(plain(_decided(left)) == plain(_decided(right)))


def _decided(plan: Plan) -> Plan:
    """What was decided: without the work, and without the time at which each process read its prices."""
    nodes = (
        replace(node, alternatives=tuple(map(_without_sources, node.alternatives))) for node in plan.new_nodes
    )
    return replace(plan, work={}, new_nodes=tuple(nodes))


def _without_sources(alternative: Alternative) -> Alternative:
    offering = alternative.offering
    bill = offering.bill
    if bill is not None:
        bill = replace(bill, parts=tuple(replace(part, sources=()) for part in bill.parts))
    return replace(alternative, offering=replace(offering, source=None, bill=bill))


def _object(document: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = document.get(key)
    if not isinstance(value, dict):
        raise SavedFormatError(f"{key} is missing; hint: the file was edited or cut off")
    return value

"""What the settings ask of the solver, of the prices that it goes by, and of disruption."""

from dataclasses import replace
from typing import TYPE_CHECKING

from nodeless.operator.settings import GlobalSettings

if TYPE_CHECKING:
    # The solver's arrays take long to load: the command line shows its help without them.
    from nodeless.disruption import DisruptionPolicy
    from nodeless.disruption.repair_policy import RepairPolicy
    from nodeless.explain.price_terms import PriceTerms
    from nodeless.scheduling import Policy


def policy_of(settings: GlobalSettings, *, nominates: bool = True) -> "Policy":
    """The policy of every pass; `nominates`: whether pods are nominated to their planned nodes.

    All commitments are in it, whatever their terms. Adjustments of prices are not: they are in the catalogs,
    where they change the price of the instance and leave the rest of a node's bill as it is
    (`cloudprovider.billing`).
    """
    from nodeless.scheduling import Policy  # noqa: PLC0415

    return Policy(
        packing=settings.packing,
        commitments=settings.commitments,
        node_fee=settings.node_fee,
        fewer_nodes_tolerance=settings.fewer_nodes_tolerance / 100,
        spot_interruptions=settings.spot_interruptions,
        time_box=settings.time_box,
        termination_wait=settings.termination_wait,
        ignore_preferences=settings.preference_policy == "Ignore",
        min_values=settings.min_values_policy,
        as_bound={"always": True, "never": False}.get(settings.plan_as_bound, not nominates),
        nominates=nominates and settings.plan_as_bound != "never",
    )


def price_terms_of(settings: GlobalSettings) -> "PriceTerms":
    """The settings by which catalogs are priced, as they are kept with a situation."""
    from nodeless.explain.price_terms import PriceTerms  # noqa: PLC0415

    return PriceTerms(
        parts=settings.bill_parts,
        credit_mode=settings.cpu_credits,
        cpu_use=settings.burstable_cpu_use,
        adjustments=settings.price_adjustments,
        least_memory=settings.least_memory,
        price_book=settings.price_book,
    )


def disruption_policy_of(settings: GlobalSettings) -> "DisruptionPolicy":
    """How disruption is judged, but for how the pods of nodes that end are placed."""
    from nodeless.disruption import DisruptionPolicy  # noqa: PLC0415
    from nodeless.model.disruption import DisruptionReason  # noqa: PLC0415

    return DisruptionPolicy(
        drift_of_provisioners=settings.drift_enabled,
        spot_to_spot=settings.spot_to_spot,
        terminate_first=frozenset(
            reason
            for reason, allowed in (
                (DisruptionReason.DRIFTED, settings.terminate_first_drift),
                (DisruptionReason.UNHEALTHY, settings.terminate_first_repair),
            )
            if allowed
        ),
        node_repair=settings.node_repair,
        legacy_repair=settings.legacy_repair,
        repair_policies=_repair_policies(settings),
        eviction_price=settings.eviction_price,
        as_bound=settings.plan_as_bound != "never",
    )


def _repair_policies(settings: GlobalSettings) -> "tuple[RepairPolicy, ...]":
    """Those with the toleration that is set; none: the usual ones."""
    from nodeless.disruption.repair_policy import usual_policies  # noqa: PLC0415

    if settings.repair_toleration is None:
        return ()
    usual = usual_policies(legacy=settings.legacy_repair)
    return tuple(replace(policy, toleration=settings.repair_toleration) for policy in usual)

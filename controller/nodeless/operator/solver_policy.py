"""What the settings ask of the solver, and of the prices that it goes by."""

from typing import TYPE_CHECKING

from nodeless.operator.settings import GlobalSettings

if TYPE_CHECKING:
    # The solver's arrays take long to load: the command line shows its help without them.
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

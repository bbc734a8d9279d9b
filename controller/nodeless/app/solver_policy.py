"""What the settings ask of the solver."""

from typing import TYPE_CHECKING

from nodeless.app.settings import GlobalSettings

if TYPE_CHECKING:
    # The solver's arrays take long to load: the command line shows its help without them.
    from nodeless.solve import Policy


def policy_of(settings: GlobalSettings) -> "Policy":
    """The policy of every pass."""
    from nodeless.solve import Policy  # noqa: PLC0415

    return Policy(
        packing=settings.packing,
        node_fee=settings.node_fee,
        time_box=settings.time_box,
        price_adjustments=settings.price_adjustments,
        ignore_preferences=settings.preference_policy == "Ignore",
        min_values=settings.min_values_policy,
    )

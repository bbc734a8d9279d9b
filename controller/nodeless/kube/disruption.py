"""PodDisruptionBudgets, as far as evictions depend on them."""

import msgspec

from nodeless.kube.decoding import label_selector
from nodeless.kube.documents import Metadata, Selector
from nodeless.model import events
from nodeless.model.disruption import PodDisruptionBudget


class BudgetSpec(msgspec.Struct):
    selector: Selector | None = None
    minAvailable: object = None  # noqa: N815 - the API's name
    maxUnavailable: object = None  # noqa: N815 - the API's name
    unhealthyPodEvictionPolicy: str | None = None  # noqa: N815 - the API's name


class BudgetStatus(msgspec.Struct):
    disruptionsAllowed: int = 0  # noqa: N815 - the API's name


class BudgetDocument(msgspec.Struct):
    metadata: Metadata
    spec: BudgetSpec = msgspec.field(default_factory=BudgetSpec)
    status: BudgetStatus = msgspec.field(default_factory=BudgetStatus)


_BUDGET = msgspec.json.Decoder(BudgetDocument)


def decode_budget(raw: bytes) -> tuple[str, tuple[events.Event, ...]]:
    """A PodDisruptionBudget from its JSON. Raises msgspec.DecodeError."""
    document = _BUDGET.decode(raw)
    budget = PodDisruptionBudget(
        document.metadata.namespace,
        document.metadata.name,
        label_selector(document.spec.selector),
        document.status.disruptionsAllowed,
        document.spec.unhealthyPodEvictionPolicy == "AlwaysAllow",
        document.spec.maxUnavailable in (0, "0%") or document.spec.minAvailable == "100%",
    )
    return budget.key, (events.PodDisruptionBudgetSeen(budget),)

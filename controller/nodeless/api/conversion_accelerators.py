"""GPUs in the two generations: v1alpha5's labels of accelerators speak of them, too, v1's do not."""

from collections.abc import Iterable, Mapping
from typing import Any

from nodeless.api.errors import FieldError, at
from nodeless.api.rule_codes import RuleCode
from nodeless.model.labels import (
    INSTANCE_ACCELERATOR_COUNT,
    INSTANCE_ACCELERATOR_MANUFACTURER,
    INSTANCE_ACCELERATOR_NAME,
)

_SHARED = frozenset(
    {INSTANCE_ACCELERATOR_COUNT, INSTANCE_ACCELERATOR_MANUFACTURER, INSTANCE_ACCELERATOR_NAME}
)
#: How the values begin that no GPU bears: AWS makes accelerators alone.
_NO_GPU = ("aws", "inferentia", "trainium")
_HINT = "require karpenter.k8s.aws/instance-gpu-... where GPUs are meant, and check where accelerators are"


def accelerator_losses(requirements: Iterable[Mapping[str, Any]], path: str) -> Iterable[FieldError]:
    """The requirements that mean other types in the other generation."""
    for position, requirement in enumerate(requirements):
        values = requirement.get("values") or ()
        same = requirement.get("operator") == "In" and all(value.startswith(_NO_GPU) for value in values)
        if requirement.get("key") in _SHARED and not same:
            fault = "is a label of GPUs, too, in v1alpha5, and of accelerators alone in v1"
            yield FieldError(
                f"{at(path, position)}.key", requirement["key"], fault, _HINT, code=RuleCode.NOT_CONVERTIBLE
            )

"""Which image fits which instance type: the first in order of preference whose requirements it meets."""

from collections.abc import Iterable, Sequence

from nodeless.launch.resolved import Image
from nodeless.model.instance_types import InstanceType


def image_for(instance_type: InstanceType, images: Sequence[Image]) -> Image | None:
    """The image that a type boots from, or None when no image is made for it (its architecture, its GPU)."""
    return next(
        (image for image in images if instance_type.requirements.conflict(image.requirements) is None), None
    )


def bootable(instance_types: Iterable[InstanceType], images: Sequence[Image]) -> tuple[InstanceType, ...]:
    """The types that have an image."""
    return tuple(
        instance_type for instance_type in instance_types if image_for(instance_type, images) is not None
    )

"""What sets launch templates of one launch apart: image, limit of pods, EFA, cores, reservation. Pure.

Instance types with the same variant share a template; most launches need one for each image.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from nodeless.launch.images import image_for
from nodeless.launch.resolved import Image
from nodeless.model.efa import EFA
from nodeless.model.hardware import CpuOptions
from nodeless.model.instance_types import InstanceType, Offering
from nodeless.model.labels import EFA_DEVICES
from nodeless.model.nodes import NodeClaim
from nodeless.model.resources import CPU, PODS


@dataclass(frozen=True, slots=True)
class Variant:
    """`pods` None: left to the node; `efa`: interfaces of that kind."""

    image: Image
    pods: int | None = None
    efa: int = 0
    cpu_options: CpuOptions | None = None
    reservation: Offering | None = None
    """The offering of a reservation that its instances are bought from, as far as the template needs it."""


def needs_efa(claim: NodeClaim) -> bool:
    """Whether its pods ask for EFA interfaces, by the resource or as devices."""
    return bool(claim.requests.get(EFA)) or EFA_DEVICES in claim.annotations


def variant_of(
    instance_type: InstanceType,
    images: Sequence[Image],
    *,
    limits_pods: bool,
    efa: bool,
    cpu_options: CpuOptions | None = None,
) -> Variant | None:
    """The variant of a type; None when no image is made for it.

    Args:
        instance_type: The type as its pool makes it.
        images: In order of preference.
        limits_pods: The limit of pods is other than a node computes itself.
        efa: The pods ask for EFA.
        cpu_options: What the node class says of the processor.
    """
    image = image_for(instance_type, images)
    if image is None:
        return None
    return Variant(
        image,
        pods=instance_type.capacity.get(PODS, 0) if limits_pods else None,
        efa=instance_type.capacity.get(EFA, 0) if efa else 0,
        cpu_options=cpu_options and _complete(cpu_options, instance_type),
    )


def _complete(options: CpuOptions, instance_type: InstanceType) -> CpuOptions:
    """With both cores and threads where either is given: EC2 takes none of them alone."""
    cpus = instance_type.capacity.get(CPU, 0) // 1000
    if options.cores is None and options.threads_per_core is not None:
        return replace(options, cores=cpus // options.threads_per_core)
    if options.cores is not None and options.threads_per_core is None:
        return replace(options, threads_per_core=cpus // options.cores)
    return options


def reserved_by(variant: Variant, offering: Offering) -> Variant:
    """The variant for one offering: offerings of a reservation have a template of their own."""
    if not offering.reservation:
        return variant
    return replace(variant, reservation=replace(offering, remaining=0, price=0.0))

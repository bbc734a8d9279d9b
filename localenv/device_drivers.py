"""Installs the drivers of GPUs, Neuron chips and EFA interfaces (`device_drivers.yaml`) into a cluster."""

from importlib.resources import files
from typing import Any

import yaml

from localenv.kubernetes import KubernetesApi


def manifests() -> list[dict[str, Any]]:
    """A DeviceClass and a DaemonSet for each driver."""
    return list(yaml.safe_load_all(files("localenv").joinpath("device_drivers.yaml").read_text()))


def install(api: KubernetesApi) -> None:
    """Apply the objects of all drivers; applied again, they are as they were."""
    for manifest in manifests():
        api.apply(manifest, field_manager="helm")


def remove(api: KubernetesApi) -> None:
    """Delete what `install` made; the slices of the drivers follow."""
    for manifest in manifests():
        api.delete(api.path_of(manifest), propagation="Background", missing_ok=True)

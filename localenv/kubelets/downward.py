"""The downward API: a pod's own fields and resources as texts.

Pure. Addresses are given as they are reached on this machine (`addresses.local_address`), so that a process
binds and announces what others can connect to.
"""

import math
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from localenv.kubelets.addresses import local_address
from localenv.kubelets.quantities import parse_quantity

_KEYED = re.compile(r"metadata\.(?P<map>labels|annotations)\['(?P<key>[^']+)'\]")


def field_value(pod: Mapping[str, Any], path: str) -> str:
    """Return what a `fieldRef` names; maps as a volume shows them, one `key="value"` a line.

    Raises:
        ValueError: if the downward API has no such field.
    """
    metadata, spec, status = pod["metadata"], pod["spec"], pod.get("status") or {}
    if keyed := _KEYED.fullmatch(path):
        return str((metadata.get(keyed["map"]) or {}).get(keyed["key"], ""))
    if path in ("metadata.labels", "metadata.annotations"):
        values = metadata.get(path.partition(".")[2]) or {}
        return "\n".join(f'{key}="{value}"' for key, value in sorted(values.items()))
    if path in ("metadata.name", "metadata.namespace", "metadata.uid"):
        return str(metadata[path.partition(".")[2]])
    if path in ("spec.nodeName", "spec.serviceAccountName"):
        return str(spec.get(path.partition(".")[2], ""))
    if path in ("status.podIP", "status.podIPs", "status.hostIP", "status.hostIPs"):
        address = status.get("podIP" if "pod" in path else "hostIP", "")
        return local_address(address) if address else ""
    raise ValueError(f"fieldRef {path!r} is not in the downward API")


def resource_value(
    container: Mapping[str, Any], reference: Mapping[str, Any], allocatable: Mapping[str, Decimal]
) -> str:
    """Return what a `resourceFieldRef` names, in units of its divisor, rounded up.

    A limit that is not set is the node's allocatable; a request that is not set is the limit, else 0.

    Raises:
        ValueError: if the reference is neither limits nor requests.
    """
    kind, _, resource = reference["resource"].partition(".")
    if kind not in ("limits", "requests"):
        raise ValueError(f"resourceFieldRef {reference['resource']!r} is neither limits nor requests")
    resources = container.get("resources") or {}
    limit = (resources.get("limits") or {}).get(resource)
    request = (resources.get("requests") or {}).get(resource)
    if kind == "limits":
        amount = parse_quantity(limit) if limit is not None else allocatable.get(resource, Decimal(0))
    else:
        amount = parse_quantity(request if request is not None else limit or 0)
    divisor = parse_quantity(reference.get("divisor") or 1) or Decimal(1)
    return str(math.ceil(amount / divisor))

"""Which pods a Fargate profile claims.

Pure. Selectors follow EKS: namespace with the wildcards `*` and `?`, all labels of a selector must match, any
selector suffices; the pod's label (or annotation) `eks.amazonaws.com/fargate-profile` chooses among the
profiles that match.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

PROFILE_KEY = "eks.amazonaws.com/fargate-profile"
COMPUTE_TYPE = "eks.amazonaws.com/compute-type"
SCHEDULER = "fargate-scheduler"


@dataclass(frozen=True, slots=True)
class Selector:
    """Namespace pattern and label patterns."""

    namespace: str
    labels: Mapping[str, str]

    def claims(self, namespace: str, labels: Mapping[str, str]) -> bool:
        if not _matches(self.namespace, namespace):
            return False
        return all(key in labels and _matches(pattern, labels[key]) for key, pattern in self.labels.items())


@dataclass(frozen=True, slots=True)
class FargateProfile:
    """A profile of the cluster."""

    name: str
    status: str
    subnets: tuple[str, ...]
    selectors: tuple[Selector, ...]


def read_profile(record: Mapping[str, Any]) -> FargateProfile:
    """Make a profile of DescribeFargateProfile's record."""
    return FargateProfile(
        name=record["fargateProfileName"],
        status=record["status"],
        subnets=tuple(record.get("subnets") or ()),
        selectors=tuple(
            Selector(selector.get("namespace", ""), selector.get("labels") or {})
            for selector in record.get("selectors") or ()
        ),
    )


def claiming_profile(
    profiles: Iterable[FargateProfile],
    namespace: str,
    labels: Mapping[str, str],
    annotations: Mapping[str, str],
) -> FargateProfile | None:
    """Return the active profile that claims a pod at its creation, the first by name if several do."""
    if annotations.get(COMPUTE_TYPE, "fargate").lower() != "fargate":
        return None
    matching = [
        profile
        for profile in sorted(profiles, key=lambda profile: profile.name)
        if profile.status == "ACTIVE"
        and any(selector.claims(namespace, labels) for selector in profile.selectors)
    ]
    chosen = labels.get(PROFILE_KEY) or annotations.get(PROFILE_KEY)
    if chosen is not None:
        return next((profile for profile in matching if profile.name == chosen), None)
    return matching[0] if matching else None


def unsupported_fields(pod: Mapping[str, Any]) -> list[str]:
    """Return the fields of a pod's specification that Fargate refuses."""
    spec = pod.get("spec") or {}
    fields = [name for name in ("hostNetwork", "hostPID", "hostIPC") if spec.get(name)]
    for container in [*(spec.get("initContainers") or []), *spec.get("containers", [])]:
        if (container.get("securityContext") or {}).get("privileged"):
            fields.append(f"containers[{container['name']}].securityContext.privileged")
        if any(port.get("hostPort") for port in container.get("ports") or []):
            fields.append(f"containers[{container['name']}].ports.hostPort")
    fields.extend(
        f"volumes[{volume['name']}].hostPath" for volume in spec.get("volumes") or [] if "hostPath" in volume
    )
    return fields


def _matches(pattern: str, text: str) -> bool:
    expression = re.escape(pattern).replace(r"\*", ".*").replace(r"\?", ".")
    return re.fullmatch(expression, text) is not None

"""Warnings about annotations, kubelet settings and volumes, the same in both generations."""

from collections.abc import Iterator, Mapping
from ipaddress import ip_address
from typing import Any

from nodeless.api.errors import FieldError, at
from nodeless.api.names import qualified_name_defects
from nodeless.api.requirement_warnings import warning
from nodeless.api.rule_codes import RuleCode

#: Operations per second that EC2 grants a volume of each type (EBS volume types, User Guide).
_IOPS = {"gp3": (3000, 80_000), "io1": (100, 64_000), "io2": (100, 256_000)}
#: Types of which EC2 makes no volume without a figure of these (CreateVolume, EC2 API Reference).
NEEDS_IOPS = ("io1", "io2")
#: MiB per second; other types have no such setting.
_THROUGHPUT = {"gp3": (125, 2000)}


def annotation_warnings(annotations: Any, path: str) -> Iterator[FieldError]:
    """Annotations that no node can carry."""
    for key in annotations if isinstance(annotations, Mapping) else ():
        if isinstance(key, str) and (defects := qualified_name_defects(key)):
            message = f"is not an annotation key ({defects[0]}): nodes cannot carry it"
            yield warning(at(path, key), key, message, code=RuleCode.INVALID_ANNOTATION)


def kubelet_warnings(kubelet: Any, path: str) -> Iterator[FieldError]:
    """Settings that a kubelet would not act on."""
    if not isinstance(kubelet, Mapping):
        return
    servers = kubelet.get("clusterDNS")
    for position, server in enumerate(servers if isinstance(servers, list) else ()):
        if isinstance(server, str) and not _is_address(server):
            where = at(at(path, "clusterDNS"), position)
            yield warning(
                where,
                server,
                "is not an IP address: pods cannot resolve names",
                "for example 172.20.0.10",
                code=RuleCode.INVALID_ADDRESS,
            )
    runtime = kubelet.get("containerRuntime")
    if isinstance(runtime, str) and runtime not in ("", "containerd"):
        message = "has no effect since Kubernetes 1.24: nodes run containerd"
        yield warning(
            at(path, "containerRuntime"), runtime, message, "leave it out", code=RuleCode.IGNORED_SETTING
        )


def volume_warnings(mappings: Any, path: str) -> Iterator[FieldError]:
    """Figures of volumes that EC2 would refuse."""
    for position, mapping in enumerate(mappings if isinstance(mappings, list) else ()):
        ebs = mapping.get("ebs") if isinstance(mapping, Mapping) else None
        if isinstance(ebs, Mapping):
            where = at(at(path, position), "ebs")
            kind = ebs.get("volumeType")
            if kind in NEEDS_IOPS and ebs.get("iops") is None:
                message = f"needs iops: EC2 refuses {kind} volumes without it"
                yield warning(where, ebs, message, "for example iops: 3000", code=RuleCode.VOLUME_SETTING)
            yield from _figure(ebs, "iops", kind, _IOPS, where)
            yield from _figure(ebs, "throughput", kind, _THROUGHPUT, where)


def _figure(
    ebs: Mapping[str, Any], name: str, kind: Any, ranges: Mapping[str, tuple[int, int]], path: str
) -> Iterator[FieldError]:
    figure = ebs.get(name)
    if not isinstance(figure, int) or isinstance(figure, bool) or not isinstance(kind, str) or not kind:
        return  # without a type, the snapshot or EC2 decides what is possible
    if kind not in ranges:
        yield warning(
            at(path, name),
            figure,
            f"cannot be set with volume type {kind}",
            "leave it out",
            code=RuleCode.VOLUME_SETTING,
        )
    else:
        least, most = ranges[kind]
        if not least <= figure <= most:
            message = f"is out of range: EC2 allows from {least} to {most} for {kind}"
            yield warning(at(path, name), figure, message, code=RuleCode.VOLUME_SETTING)


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True

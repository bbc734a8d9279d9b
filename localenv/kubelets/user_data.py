"""User data of an instance -> how it bootstraps into a cluster.

Pure. Reads what the three kinds of EKS image read at first boot: a call of `/etc/eks/bootstrap.sh` (AL2,
Ubuntu), a `NodeConfig` of `node.eks.aws/v1alpha1` (AL2023's nodeadm), Bottlerocket's TOML, or a call of
`Start-EKSBootstrap.ps1` (Windows); the first two plain or as part of a MIME archive. It does not run the
script: only the call of the bootstrap counts, and huge pages set by `sysctl`. Next: `bootstrap`, `instances`.
"""

import email
import re
import shlex
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import yaml

from localenv.kubelets.bootstrap import (
    Bootstrap,
    Taint,
    UserDataError,
    as_count,
    check_labels,
    from_flags,
    parse_flags,
    parse_taint,
)

_SCRIPT = "/etc/eks/bootstrap.sh"
#: Options of bootstrap.sh that take a value (amazon-eks-ami, AL2).
_VALUED_OPTIONS = frozenset(
    {
        "--apiserver-endpoint",
        "--aws-api-retry-attempts",
        "--b64-cluster-ca",
        "--cluster-id",
        "--container-runtime",
        "--containerd-config-file",
        "--dns-cluster-ip",
        "--docker-config-json",
        "--enable-docker-bridge",
        "--enable-local-outpost",
        "--ip-family",
        "--kubelet-extra-args",
        "--local-disks",
        "--mount-bpf-fs",
        "--pause-container-account",
        "--pause-container-version",
        "--service-ipv6-cidr",
        "--use-max-pods",
    }
)

#: A script's line that keeps huge pages; the default size of one is 2 MiB on every image.
_HUGE_PAGES = re.compile(r"^\s*(?:sudo\s+)?sysctl\s+(?:-w\s+)?vm\.nr_hugepages\s*=\s*(\d+)", re.MULTILINE)
#: `-Name 'value'` or `-Name "value"`, a quotation mark inside doubled; or one word.
_POWERSHELL_ARGUMENT = re.compile(r"""(?<=\s)-(\w+)\s+(?:'((?:[^']|'')*)'|"((?:[^"]|"")*)"|([^\s'"-]\S*))""")


def parse_user_data(text: str) -> Bootstrap:
    """Return how an instance with this user data joins.

    Raises:
        UserDataError: if it never would: nothing there to bootstrap it, or a value its kubelet refuses.
    """
    if not text.strip():
        raise UserDataError("the user data is empty; hint: the instance needs a bootstrap for its image")
    if text.lstrip().startswith("<powershell>"):
        return _from_powershell(text)
    if _is_mime(text):
        return _from_parts(_mime_parts(text))
    return _from_parts([text])


def _is_mime(text: str) -> bool:
    return text.lstrip().startswith(("MIME-Version:", "Content-Type:"))


def _mime_parts(text: str) -> list[str]:
    message = email.message_from_string(text.lstrip())
    if not message.is_multipart():
        raise UserDataError("the MIME archive has no parts; hint: Content-Type must be multipart/mixed")
    parts = []
    for part in message.walk():
        if part.is_multipart():
            continue
        payload = part.get_payload(decode=True)
        parts.append(payload.decode(errors="replace") if isinstance(payload, bytes) else str(payload))
    return parts


def _from_parts(parts: list[str]) -> Bootstrap:
    node_config: dict[str, Any] = {}
    for part in parts:
        document = _node_config(part)
        if document is not None:
            node_config = _merge(node_config, document)
    if node_config:
        return replace(_from_node_config(node_config), huge_pages=_huge_pages(parts))
    for part in parts:
        call = _bootstrap_call(part)
        if call is not None:
            return replace(_from_script(call), huge_pages=_huge_pages(parts))
    if len(parts) == 1:
        settings = _bottlerocket(parts[0])
        if settings is not None:
            return replace(
                _from_bottlerocket(settings),
                instance_store_raid=_binds_disks(parts[0]),
                huge_pages=_huge_pages_of_bottlerocket(parts[0]),
            )
    raise UserDataError(
        "no bootstrap found; hint: call /etc/eks/bootstrap.sh, "
        "or give a NodeConfig of node.eks.aws, or Bottlerocket's TOML"
    )


def _huge_pages(parts: list[str]) -> int:
    """How many pages the last script that says so keeps."""
    kept = [
        number for part in parts if part.lstrip().startswith("#!") for number in _HUGE_PAGES.findall(part)
    ]
    return int(kept[-1]) if kept else 0


def _bootstrap_call(script: str) -> list[str] | None:
    lines = script.replace("\\\r\n", " ").replace("\\\n", " ").splitlines()
    start = next((n for n, line in enumerate(lines) if line.strip().startswith(_SCRIPT)), None)
    if start is None:
        return None
    # A quoted argument may go on over the end of a line.
    for end in range(start + 1, len(lines) + 1):
        try:
            return shlex.split("\n".join(lines[start:end]), comments=True)[1:]
        except ValueError:
            continue
    raise UserDataError("the call of bootstrap.sh does not parse: a quotation is not closed")


def _from_script(words: list[str]) -> Bootstrap:
    options: dict[str, str] = {}
    positional: list[str] = []
    index = 0
    while index < len(words):
        word = words[index]
        index += 1
        if word in _VALUED_OPTIONS:
            if index >= len(words):
                raise UserDataError(f"bootstrap.sh: {word} lacks its value")
            options[word] = words[index]
            index += 1
        else:
            positional.append(word)
    if not positional or positional[0].startswith("-"):
        given = f", got {positional[0]!r}" if positional else ""
        raise UserDataError(f"bootstrap.sh needs the cluster's name as its first plain argument{given}")
    bootstrap = from_flags(
        "AL2",
        positional[0],
        parse_flags(options.get("--kubelet-extra-args", "")),
        endpoint=options.get("--apiserver-endpoint"),
        certificate_authority=options.get("--b64-cluster-ca"),
    )
    bootstrap = replace(bootstrap, instance_store_raid=options.get("--local-disks") == "raid0")
    if options.get("--use-max-pods") == "false" and bootstrap.max_pods is None:
        return replace(bootstrap, max_pods=110)
    return bootstrap


def _from_powershell(text: str) -> Bootstrap:
    if "Start-EKSBootstrap.ps1" not in text:
        raise UserDataError("no call of Start-EKSBootstrap.ps1 with -EKSClusterName")
    # The script's path may be in a variable (`& $EKSBootstrapScriptFile ...`), and a line may be continued.
    lines = text.replace("`\r\n", " ").replace("`\n", " ").splitlines()
    call = next((line for line in lines if "-EKSClusterName" in line), "")
    given = {
        name: single.replace("''", "'") or double.replace('""', '"') or word
        for name, single, double, word in _POWERSHELL_ARGUMENT.findall(call)
    }
    if not given.get("EKSClusterName"):
        raise UserDataError("no call of Start-EKSBootstrap.ps1 with -EKSClusterName")
    return from_flags(
        "Windows",
        given["EKSClusterName"],
        parse_flags(given.get("KubeletExtraArgs", "")),
        endpoint=given.get("APIServerEndpoint"),
        certificate_authority=given.get("Base64ClusterCA"),
    )


def _node_config(part: str) -> dict[str, Any] | None:
    if "node.eks.aws/" not in part or part.lstrip().startswith("#!"):
        return None
    try:
        document = yaml.safe_load(part)
    except yaml.YAMLError as error:
        raise UserDataError(f"the NodeConfig is not valid YAML: {error}") from None
    if not isinstance(document, dict) or document.get("kind") != "NodeConfig":
        return None
    return document


def _merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    result = dict(base)
    for key, value in over.items():
        if isinstance(value, Mapping) and isinstance(result.get(key), Mapping):
            result[key] = _merge(result[key], value)
        elif isinstance(value, list) and isinstance(result.get(key), list):
            result[key] = [*result[key], *value]
        else:
            result[key] = value
    return result


def _from_node_config(document: Mapping[str, Any]) -> Bootstrap:
    spec = document.get("spec") or {}
    cluster = spec.get("cluster") or {}
    missing = [
        name
        for name in ("name", "apiServerEndpoint", "certificateAuthority", "cidr")
        if not cluster.get(name)
    ]
    if missing:
        raise UserDataError(
            f"NodeConfig spec.cluster lacks {', '.join(missing)}; hint: nodeadm needs all four"
        )
    kubelet = spec.get("kubelet") or {}
    config = kubelet.get("config") or {}
    bootstrap = from_flags(
        "AL2023",
        cluster["name"],
        parse_flags(kubelet.get("flags") or []),
        endpoint=cluster["apiServerEndpoint"],
        certificate_authority=cluster["certificateAuthority"],
    )
    taints = tuple(
        parse_taint(f"{taint.get('key', '')}={taint.get('value', '')}:{taint.get('effect', '')}")
        for taint in config.get("registerWithTaints") or []
    )
    return replace(
        bootstrap,
        taints=(*bootstrap.taints, *taints),
        max_pods=as_count("maxPods", config["maxPods"]) if "maxPods" in config else bootstrap.max_pods,
        pods_per_core=as_count("podsPerCore", config.get("podsPerCore", bootstrap.pods_per_core)),
        kube_reserved=config.get("kubeReserved") or bootstrap.kube_reserved,
        system_reserved=config.get("systemReserved") or bootstrap.system_reserved,
        eviction_hard=config.get("evictionHard") or bootstrap.eviction_hard,
        instance_store_raid=_local_storage(spec).get("strategy") == "RAID0",
    )


def _local_storage(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    return (spec.get("instance") or {}).get("localStorage") or {}


def _bottlerocket(text: str) -> Mapping[str, Any] | None:
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None
    settings = document.get("settings", {}).get("kubernetes")
    return settings if isinstance(settings, Mapping) else None


def _binds_disks(text: str) -> bool:
    """Whether a command at boot mounts the disks inside the host, and puts the kubelet's folders there."""
    commands = tomllib.loads(text)["settings"].get("bootstrap-commands") or {}
    return any(
        list(call[:3]) == ["apiclient", "ephemeral-storage", "bind"]
        for command in commands.values()
        for call in command.get("commands") or ()
    )


def _huge_pages_of_bottlerocket(text: str) -> int:
    kernel = tomllib.loads(text)["settings"].get("kernel") or {}
    return as_count("vm.nr_hugepages", (kernel.get("sysctl") or {}).get("vm.nr_hugepages", 0))


def _from_bottlerocket(settings: Mapping[str, Any]) -> Bootstrap:
    missing = [
        name for name in ("cluster-name", "api-server", "cluster-certificate") if not settings.get(name)
    ]
    if missing:
        raise UserDataError(
            f"settings.kubernetes lacks {', '.join(missing)}; hint: Bottlerocket needs all three"
        )
    labels = {str(key): str(value) for key, value in settings.get("node-labels", {}).items()}
    check_labels(labels)
    return Bootstrap(
        family="Bottlerocket",
        cluster_name=settings["cluster-name"],
        endpoint=settings["api-server"],
        certificate_authority=settings["cluster-certificate"],
        labels=labels,
        taints=tuple(_bottlerocket_taints(settings.get("node-taints", {}))),
        max_pods=as_count("max-pods", settings["max-pods"]) if "max-pods" in settings else None,
        kube_reserved=settings.get("kube-reserved", {}),
        system_reserved=settings.get("system-reserved", {}),
        eviction_hard=settings.get("eviction-hard", {}),
    )


def _bottlerocket_taints(taints: Mapping[str, Any]) -> list[Taint]:
    result = []
    for key, values in taints.items():
        for value in values if isinstance(values, list) else [values]:
            result.append(parse_taint(f"{key}={value}"))
    return result

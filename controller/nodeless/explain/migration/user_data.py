"""What the start-up data of a group's nodes says: kubelet arguments become fields, the rest stays a script.

The controller writes the call that joins the cluster itself. So the call of EKS' own bootstrap script, the
`cluster` of a NodeConfig and the cluster's settings of Bottlerocket are taken out, and what they say of the
kubelet goes where pools and node classes have it.
"""

import base64
import binascii
import re
import shlex
import tomllib
from dataclasses import dataclass, field
from typing import Any

import yaml

from nodeless.explain.migration.ledger import Ledger
from nodeless.launch import mime
from nodeless.launch.toml_writer import to_toml

AL2, AL2023, BOTTLEROCKET, WINDOWS, CUSTOM = "AL2", "AL2023", "Bottlerocket", "Windows2022", "Custom"
_SCRIPT = "/etc/eks/bootstrap.sh"
#: Where a command of a shell script begins, and what may be before its name.
_COMMAND = r"""(?:^|(?<=[;&|({!])|(?<=\bif|\bdo)|(?<=\bthen|\belse))(?P<indent>[ \t]*)"""
_PREFIXES = r"""(?:(?:[A-Za-z_]\w*=\S*|(?:/\S*/)?(?:sudo|exec|env|bash|sh)|-\w+)[ \t]+)*"""
#: The rest of the command: quotes may span lines, and a backslash continues one.
_WORDS = r"""(?:[ \t]*(?:[0-9]*[<>]&[0-9-]|'[^']*'|"(?:[^"\\]|\\.)*"|\\.|[^\s;&|)'"\\]))*"""
#: The call of EKS' own script; other commands may name it, such as a `sed` that changes it.
_BOOTSTRAP = re.compile(
    rf"{_COMMAND}{_PREFIXES}(?P<call>{re.escape(_SCRIPT)}(?![^\s;&|)]){_WORDS})", re.MULTILINE | re.DOTALL
)
#: What takes the call's place, for a branch of a script must not be empty.
_NO_COMMAND = r"\g<indent>:"
#: What a script holds though it does nothing.
_IDLE = re.compile(r"^\s*(#.*|set [-+].*|exec > .*|:|fi|done|})?$")
_CLOUD_CONFIG = "#cloud-config"
_JOINS = "the controller writes the part that joins the cluster"
_NO_FLAG = "EC2NodeClass has no field for this argument; hint: set it in userData, or do without it"
_NUMBERS = {
    "max-pods": "maxPods",
    "pods-per-core": "podsPerCore",
    "image-gc-high-threshold": "imageGCHighThresholdPercent",
    "image-gc-low-threshold": "imageGCLowThresholdPercent",
    "eviction-max-pod-grace-period": "evictionMaxPodGracePeriod",
}
_MAPS = {
    "system-reserved": ("systemReserved", "="),
    "kube-reserved": ("kubeReserved", "="),
    "eviction-hard": ("evictionHard", "<"),
    "eviction-soft": ("evictionSoft", "<"),
    "eviction-soft-grace-period": ("evictionSoftGracePeriod", "="),
}
#: Members of a KubeletConfiguration that EC2NodeClass has under the same name, or as given here.
_CONFIGURED = {name: name for name in ("maxPods", "podsPerCore", "clusterDNS", "evictionMaxPodGracePeriod")}
_CONFIGURED |= {name: name for name, _ in _MAPS.values()} | {"cpuCFSQuota": "cpuCFSQuota"}
_CONFIGURED |= {"imageGCHighThresholdPercent": "imageGCHighThresholdPercent"}
_CONFIGURED |= {"imageGCLowThresholdPercent": "imageGCLowThresholdPercent"}
_ARGUMENTS = "--kubelet-extra-args"
_SHELL = "text/x-shellscript"
#: Options of the bootstrap script that say where the cluster is, or what images do by themselves now.
_OF_THE_CLUSTER = {
    "--apiserver-endpoint",
    "--b64-cluster-ca",
    "--container-runtime",
    "--ip-family",
    "--service-ipv6-cidr",
    "--use-max-pods",
    "--cluster-id",
}


@dataclass(slots=True)
class StartUp:
    """What start-up data says."""

    family: str = ""
    """Of images that understand it; empty: it does not say."""
    labels: dict[str, str] = field(default_factory=dict)
    taints: list[dict[str, str]] = field(default_factory=list)
    kubelet: dict[str, Any] = field(default_factory=dict)
    instance_store_raid: bool = False
    rest: str = ""
    """What is left for userData."""


class _Reader:
    def __init__(self, source: str, member: str, ledger: Ledger) -> None:
        self.found = StartUp()
        self._source, self._member, self._ledger = source, member, ledger

    def read(self, text: str) -> None:
        """Start-up data as it is on the instance."""
        if text.lstrip().lower().startswith(("mime-version:", "content-type: multipart")):
            self._read_mime(text)
        elif "<powershell>" in text.lower():
            self.found.family, self.found.rest = WINDOWS, text
            self._leave("<powershell>", "remove the call of Start-EKSBootstrap by hand")
        elif (settings := _toml(text)) is not None:
            self._read_bottlerocket(settings)
        elif (config := _node_config(text)) is not None:
            self.found.rest = self._read_node_config(config)
        elif text.startswith(_CLOUD_CONFIG):
            # By itself it would be taken for a script, or for a NodeConfig.
            self.found.rest = mime.archive([mime.Part("text/cloud-config", text)])
        else:
            self.found.rest = self._read_script(text)

    def _read_mime(self, text: str) -> None:
        try:
            parts = mime.parts_of(text)
        except mime.MimeError as error:
            self.found.rest = text
            self._leave("as it is", str(error))
            return
        kept = [
            part._replace(text=rest) for part in parts if (rest := self._read_part(part)) and rest.strip()
        ]
        if len(kept) == 1 and kept[0].content_type.startswith((mime.NODE_CONFIG, _SHELL)):
            self.found.rest = kept[0].text
        elif kept:
            self.found.rest = mime.archive(kept)

    def _read_part(self, part: mime.Part) -> str:
        """What is left of a document of an archive."""
        kind, text = part.content_type, part.text
        if kind.startswith(mime.NODE_CONFIG) and (config := _node_config(text)) is not None:
            return self._read_node_config(config)
        return self._read_script(text) if kind.startswith(_SHELL) or text.startswith("#!") else text

    def _read_script(self, text: str) -> str:
        """A shell script without the call that joins; empty where it does nothing else."""
        if _SCRIPT in text:
            self.found.family = self.found.family or AL2
        for match in _BOOTSTRAP.finditer(text):
            self._read_bootstrap(match["call"].replace("\\\n", " "))
            after = text[match.end() :]
            if not all(_IDLE.match(line) for line in after.splitlines()):
                self._leave("bootstrap.sh", "the commands after its call run before the node joins")
        rest = _BOOTSTRAP.sub(_NO_COMMAND, text)
        return "" if all(_IDLE.match(line) for line in rest.splitlines()) else rest

    def _read_bootstrap(self, call: str) -> None:
        try:
            words = shlex.split(call)[1:]
        except ValueError:
            self._leave(call, "its quotes do not match; hint: move its kubelet settings by hand")
            return
        options = {}
        while words:
            word = words.pop(0)
            if not word.startswith("--"):
                continue  # the cluster's name
            name, has_value, value = word.partition("=")
            takes_next = bool(words) and (name == _ARGUMENTS or not words[0].startswith("--"))
            options[name] = words.pop(0) if takes_next and not has_value else value
        for name, value in options.items():
            self._read_option(name, value)

    def _read_option(self, name: str, value: str) -> None:
        if name == _ARGUMENTS:
            self._read_arguments(value)
        elif name == "--dns-cluster-ip":
            self._set("clusterDNS", [value], name)
        elif name == "--local-disks" and value == "raid0":
            self.found.instance_store_raid = True
            self._carry(name, "EC2NodeClass spec.instanceStorePolicy")
        elif name in _OF_THE_CLUSTER:
            self._leave(name, _JOINS, value, matters=False)
        else:
            self._leave(name, _NO_FLAG, value)

    def _read_arguments(self, text: str) -> None:
        """Arguments of the kubelet in one line."""
        try:
            words = shlex.split(text)
        except ValueError:
            words = text.split()
        while words:
            name, has_value, value = words.pop(0).removeprefix("--").partition("=")
            if not has_value and words and not words[0].startswith("--"):
                value = words.pop(0)
            self.read_argument(name, value)

    def read_argument(self, name: str, value: str) -> bool:
        """One argument of the kubelet; whether it has a counterpart."""
        if "$" in value:
            hint = "its value is computed on the instance; hint: keep it in userData"
            self._leave(f"--{name}", hint, value)
        elif name == "node-labels":
            pairs = (pair.partition("=") for pair in value.split(",") if pair)
            self.found.labels |= {key.strip(): text for key, _, text in pairs}
            self._carry(f"--{name}", "NodePool spec.template.metadata.labels")
            return True
        elif name == "register-with-taints":
            self.found.taints += [taint for text in value.split(",") if (taint := taint_of(text))]
            self._carry(f"--{name}", "NodePool spec.template.spec.taints")
            return True
        elif name in _NUMBERS and value.isdigit():
            self._set(_NUMBERS[name], int(value), f"--{name}")
            return True
        elif name in _MAPS:
            member, between = _MAPS[name]
            parts = (pair.partition(between) for pair in value.split(",") if pair)
            self._set(member, {key.strip(): text.strip() for key, _, text in parts}, f"--{name}")
            return True
        elif name == "cluster-dns":
            self._set("clusterDNS", value.split(","), f"--{name}")
            return True
        elif name == "cpu-cfs-quota":
            self._set("cpuCFSQuota", value != "false", f"--{name}")
            return True
        else:
            self._leave(f"--{name}", _NO_FLAG, value)
        return False

    def _read_node_config(self, config: dict[str, Any]) -> str:
        """A NodeConfig of nodeadm without what has a field elsewhere; empty where nothing is left."""
        self.found.family = AL2023
        spec = {name: value for name, value in _object(config.get("spec")).items() if name != "cluster"}
        kubelet = dict(_object(spec.pop("kubelet", None)))
        settings = dict(_object(kubelet.pop("config", None)))
        for name in [name for name in settings if name in _CONFIGURED]:
            self._set(_CONFIGURED[name], settings.pop(name), f"kubelet.config.{name}")
        flags = kubelet.pop("flags", None)
        unread = [
            flag for flag in (flags if isinstance(flags, list) else []) if not self._read_flag(str(flag))
        ]
        instance = dict(_object(spec.pop("instance", None)))
        storage = instance.get("localStorage")
        if isinstance(storage, dict) and storage.get("strategy") == "RAID0":
            self.found.instance_store_raid = True
            self._carry("instance.localStorage.strategy", "EC2NodeClass spec.instanceStorePolicy")
            others = {name: value for name, value in storage.items() if name != "strategy"}
            instance["localStorage"] = others
        kubelet |= {"config": settings} if settings else {}
        kubelet |= {"flags": unread} if unread else {}
        spec |= {"kubelet": kubelet} if kubelet else {}
        instance = {name: value for name, value in instance.items() if value}
        spec |= {"instance": instance} if instance else {}
        if not spec:
            return ""
        return str(yaml.safe_dump({**config, "spec": spec}, sort_keys=False))

    def _read_flag(self, flag: str) -> bool:
        name, _, value = flag.removeprefix("--").partition("=")
        known = {*_NUMBERS, *_MAPS, "node-labels", "register-with-taints", "cluster-dns", "cpu-cfs-quota"}
        # The others stay in the NodeConfig, which the controller merges with its own.
        return name in known and self.read_argument(name, value)

    def _read_bottlerocket(self, settings: dict[str, Any]) -> None:
        self.found.family = BOTTLEROCKET
        below = settings.get("settings")
        kubernetes = below.get("kubernetes") if isinstance(below, dict) else None
        if isinstance(kubernetes, dict):
            for name in ("cluster-name", "api-server", "cluster-certificate"):
                if name in kubernetes:
                    self._leave(name, _JOINS, kubernetes.pop(name), matters=False)
            if addresses := kubernetes.pop("cluster-dns-ip", None):
                listed = addresses if isinstance(addresses, list) else [addresses]
                self._set("clusterDNS", listed, "cluster-dns-ip")
            labels = kubernetes.pop("node-labels", None)
            if isinstance(labels, dict):
                self.found.labels |= {key: str(value) for key, value in labels.items()}
                self._carry("node-labels", "NodePool spec.template.metadata.labels")
            self._read_toml_taints(kubernetes.pop("node-taints", None))
            if isinstance(kubernetes.get("max-pods"), int):
                self._set("maxPods", kubernetes.pop("max-pods"), "max-pods")
            if not kubernetes:
                settings["settings"].pop("kubernetes")
        if not settings.get("settings"):
            settings.pop("settings", None)
        self.found.rest = to_toml(settings) if settings else ""

    def _read_toml_taints(self, taints: Any) -> None:
        if not isinstance(taints, dict):
            return
        for key, values in taints.items():
            for value in values if isinstance(values, list) else [values]:
                if taint := taint_of(f"{key}={value}"):
                    self.found.taints.append(taint)
        self._carry("node-taints", "NodePool spec.template.spec.taints")

    def _set(self, member: str, value: Any, name: str) -> None:
        self.found.kubelet[member] = value
        self._carry(name, f"EC2NodeClass spec.kubelet.{member}")

    def _carry(self, name: str, to: str) -> None:
        self._ledger.carry(self._source, f"{self._member} {name}", to)

    def _leave(self, name: str, reason: str, value: Any = "", *, matters: bool = True) -> None:
        self._ledger.leave(self._source, f"{self._member} {name}", value, reason, matters=matters)


def read_start_up(encoded: str, source: str, member: str, ledger: Ledger) -> StartUp:
    """What the base64 user data of a launch template says."""
    try:
        text = base64.b64decode(encoded, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError, ValueError):
        ledger.leave(source, member, encoded, "is not base64 text; hint: set userData by hand")
        return StartUp()
    reader = _Reader(source, member, ledger)
    reader.read(text)
    found = reader.found
    if found.rest.strip():
        ledger.carry(source, member, "EC2NodeClass spec.userData")
    else:
        found.rest = ""
        ledger.leave(source, member, "a call that joins the cluster", _JOINS, matters=False)
    return found


def taint_of(text: str) -> dict[str, str] | None:
    """`key=value:NoSchedule` or `key:NoSchedule` as a taint; None for anything else."""
    before, between, effect = text.strip().rpartition(":")
    key, _, value = before.partition("=")
    if not between or not key or effect not in ("NoSchedule", "PreferNoSchedule", "NoExecute"):
        return None
    return {"key": key, **({"value": value} if value else {}), "effect": effect}


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _toml(text: str) -> dict[str, Any] | None:
    """The settings of Bottlerocket, under headings or each with its whole name; None for anything else."""
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None
    return found if isinstance(found.get("settings"), dict) else None


def _node_config(text: str) -> dict[str, Any] | None:
    if "NodeConfig" not in text:
        return None
    try:
        config = yaml.safe_load(text)
    except yaml.YAMLError:
        return None
    return config if isinstance(config, dict) and config.get("kind") == "NodeConfig" else None

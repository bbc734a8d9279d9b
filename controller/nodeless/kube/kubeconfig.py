"""What kubectl reads of kubeconfigs, and the `kubernetes` library does not.

Of what several files set, the first counts, the current context too; files that are not there are passed
over. The proxy is the cluster's own, else that of the environment, as Go's clients have it.
"""

import ipaddress
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml
from kubernetes.aio.config import ConfigException

from nodeless.api.yaml_bounds import check_yaml

_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Kubeconfigs:
    """The files of a KUBECONFIG that there are.

    Attributes:
        files: With their content, in order.
        context: The context that counts; None: no file names one.
    """

    files: tuple[tuple[Path, Mapping[str, Any]], ...]
    context: str | None

    @property
    def paths(self) -> str:
        """As a KUBECONFIG."""
        return os.pathsep.join(str(file) for file, _ in self.files)

    def token_file(self) -> Path | None:
        """The `tokenFile` of the context's user: read anew for each request, because it rotates."""
        file, user = self._user()
        named = user.get("tokenFile")
        return file.parent / named if isinstance(named, str) and named else None

    def credential_command(self) -> str:
        """The command that gives the context's user credentials; empty when none does."""
        given = self._user()[1].get("exec")
        return str(given.get("command") or "") if isinstance(given, Mapping) else ""

    def _user(self) -> tuple[Path, Mapping[str, Any]]:
        context = next(self._named("contexts", self.context, "context"), None)
        user = context[1].get("user") if context is not None else None
        return next(self._named("users", user, "user"), (Path(), {}))

    def _named(self, lists: str, name: Any, member: str) -> Iterator[tuple[Path, Mapping[str, Any]]]:
        for file, document in self.files:
            entries = document.get(lists)
            for entry in entries if isinstance(entries, list) else ():
                if isinstance(entry, Mapping) and entry.get("name") == name:
                    content = entry.get(member)
                    yield file, content if isinstance(content, Mapping) else {}


def read_kubeconfigs(given: str) -> Kubeconfigs:
    """The files that a KUBECONFIG names. Raises ConfigException for what the library would stumble over."""
    named = [Path(path).expanduser() for path in given.split(os.pathsep) if path]
    present = [path for path in named if path.is_file()]
    if not present:
        raise ConfigException(f"KUBECONFIG names {', '.join(map(str, named)) or given}, which is no file")
    files = tuple((path, document) for path in present if (document := _read(path)))
    if not any(document.get("clusters") for _, document in files):
        raise ConfigException(f"{', '.join(map(str, present))} names no cluster")
    contexts = (document.get("current-context") for _, document in files)
    return Kubeconfigs(files, next((name for name in contexts if isinstance(name, str) and name), None))


def _read(file: Path) -> Mapping[str, Any]:
    try:
        text = file.read_text()
        check_yaml(text)
        document = yaml.safe_load(text)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigException(f"{file} is no YAML: {' '.join(str(error).split())}") from error
    if not isinstance(document, dict | None):
        raise ConfigException(f"{file} is no kubeconfig")
    return document or {}


def proxy_of(server: str, environment: Mapping[str, str] = os.environ) -> str | None:
    """The proxy that the environment has for an API server.

    HTTPS_PROXY and NO_PROXY are read as by Go: names with what is below them, addresses, networks, ports.
    """
    address = urlsplit(server)
    name, port = address.hostname or "", address.port or _PORTS.get(address.scheme)
    proxy = _variable(environment, f"{address.scheme}_proxy")
    if not proxy or not name or name == "localhost" or _is_loopback(name):
        return None
    exceptions = _variable(environment, "no_proxy").lower().split(",")
    if any(_covers(entry.strip(), name, port) for entry in exceptions):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def _variable(environment: Mapping[str, str], name: str) -> str:
    return environment.get(name.upper()) or environment.get(name, "")


def _is_loopback(name: str) -> bool:
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _covers(entry: str, name: str, port: int | None) -> bool:
    """Whether an entry of NO_PROXY is about a host."""
    if entry == "*":
        return True
    try:
        return ipaddress.ip_address(name) in ipaddress.ip_network(entry.strip("[]"), strict=False)
    except ValueError:
        pass
    host, _, given_port = entry.partition(":")
    if not host or (given_port and given_port != str(port)):
        return False
    below = f".{host.removeprefix('*').removeprefix('.')}"
    return name.endswith(below) or (name == host and not entry.startswith(("*", ".")))

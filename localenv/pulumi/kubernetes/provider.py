"""The attached provider of package `kubernetes`: server-side apply on the local control plane.

It serves one cluster, the local control plane. The kubeconfig that a program makes
signs in by `aws eks get-token`, as on EKS; that needs the AWS command line and gives a
token only EKS understands. Where the kubeconfig's endpoint is that of the control plane,
this provider signs in with the control plane's own administrator certificate instead. The
program and its kubeconfig output stay as they are on AWS.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

import yaml

from localenv.kubernetes import ApiUnreachable, KubernetesApi, UnknownKind
from localenv.pulumi import wire
from localenv.pulumi.input_check import check_inputs
from localenv.pulumi.kubernetes import objects, waiting
from localenv.pulumi.kubernetes.releases import Release
from localenv.pulumi.kubernetes.replacement import Mutable
from localenv.pulumi.kubernetes.writing import Writing
from localenv.pulumi.provider import Provider
from localenv.pulumi.resources import (
    Change,
    Checked,
    Difference,
    Fault,
    Inputs,
    Outputs,
    Proposal,
    ResourceFailed,
)

_CONFIGURATION = frozenset(
    {
        "kubeconfig",
        "enableServerSideApply",
        "enableConfigMapMutable",
        "enableSecretMutable",
        "enablePatchForce",
        "upsertExistingObjects",
        "deleteUnreachable",
        "clusterIdentifier",
        "version",
    }
)
#: With it set, objects of a cluster that does not answer are taken out of the state.
_FORGET = "PULUMI_K8S_DELETE_UNREACHABLE"
_UNREACHABLE = f"hint: where the cluster was deleted, refresh with {_FORGET}=true"


class KubernetesEndpoint(Protocol):
    """The little this package needs of a control plane."""

    @property
    def endpoint(self) -> str:
        """URL of the API server."""

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""


@dataclass(frozen=True, slots=True)
class _Settings:
    """What a provider resource says, and whether its cluster is there to be asked."""

    mutable: Mutable
    writing: Writing
    forgets: bool
    is_there: bool


class KubernetesProvider(Provider):
    """Carries out the package `kubernetes` on the local control plane."""

    package = "kubernetes"

    def __init__(self, control_plane: KubernetesEndpoint) -> None:
        super().__init__()
        self._control_plane = control_plane
        self._api = KubernetesApi.from_kubeconfig(control_plane.kubeconfig)
        self._release = Release()
        #: By the connection of each provider resource; pulumi-eks has one of its own.
        self._said: dict[str, _Settings] = {}

    @property
    def _settings(self) -> _Settings:
        """What the provider resource has said that a call is for."""
        return self._said[self.connection]

    def close(self) -> None:
        """Close the connections to the API server."""
        self._api.close()

    def check_configuration(self, inputs: Inputs) -> Checked:
        faults = [
            Fault(key, "this input of the kubernetes provider is not carried out locally")
            for key in inputs
            if key not in _CONFIGURATION
        ]
        return Checked(dict(inputs), tuple(faults))

    def compare_configuration(self, old: Inputs, new: Inputs) -> Difference:
        difference = super().compare_configuration(old, new)
        # As the real provider: another cluster means other objects; the identifier settles which it is.
        moved = "clusterIdentifier" if "clusterIdentifier" in new else "kubeconfig"
        other = moved in difference.changed and (
            moved == "clusterIdentifier" or _server(old.get("kubeconfig")) != _server(new.get("kubeconfig"))
        )
        return Difference(difference.changed, (moved,) if other else ())

    def configure(self, inputs: Inputs) -> None:
        kubeconfig = inputs.get("kubeconfig")
        if kubeconfig is None:
            raise ResourceFailed(
                "the kubernetes provider has no kubeconfig"
                "\nhint: pass an explicit provider; the user's own clusters are never touched from here"
            )
        # The cluster is not there yet in its first preview.
        there = not wire.is_unknown(kubeconfig)
        asked = os.environ.get(_FORGET) == "true" or inputs.get("deleteUnreachable") in (True, "true")
        self._said[self.connection] = _Settings(Mutable.of(inputs), Writing.of(inputs), asked, there)
        if not there:
            return
        server = _server(kubeconfig)
        if server is None or _address(server) != _address(self._control_plane.endpoint):
            raise ResourceFailed(
                f"the kubeconfig points to {server}, not to the local control plane"
                f" {self._control_plane.endpoint}\nhint: was the control plane started anew on another port?"
            )

    def check(self, token: str, inputs: Inputs, proposal: Proposal) -> Checked:
        if token == Release.token:
            if problems := check_inputs(token, inputs):
                return Checked(dict(inputs), tuple(Fault("", problem) for problem in problems))
            return self._release.check(inputs, proposal)
        checked = objects.check(token, inputs, proposal)
        if checked.faults or not objects.is_built_in(str(inputs["apiVersion"])):
            return checked
        try:
            self._api.path(str(inputs["apiVersion"]), str(inputs["kind"]))
        except UnknownKind:
            return Checked(checked.inputs, (Fault("", objects.unknown_type(token)),))
        return checked

    def compare(self, token: str, old: Inputs, new: Inputs) -> Difference:
        if token == Release.token:
            return self._release.compare(old, new)
        difference = objects.compare(old, new, self._settings.mutable)
        if self._settings.is_there and waiting.is_replaced_unready(self._api, new):
            return objects.force_replacement(difference, new)
        return difference

    def foresee(self, token: str, inputs: Inputs) -> Outputs:
        if token == Release.token:
            return self._release.foresee(inputs)
        if self._settings.is_there:
            self._settings.writing.foresee_create(self._api, wire.without_none(inputs))
        return dict(inputs) | {"status": wire.UNKNOWN}

    def foresee_change(self, token: str, change: Change) -> Outputs:
        if token != Release.token and self._settings.is_there:
            self._settings.writing.foresee_update(self._api, wire.without_none(change.new))
        return super().foresee_change(token, change)

    def create(self, token: str, inputs: Inputs, timeout: float) -> tuple[str, Outputs]:
        if token == Release.token:
            identity = self._release.create(self._api, inputs)
            return identity, self._read_release(identity, inputs)
        obj = wire.without_none(inputs)
        path = waiting.wait_until_served(self._api, obj, self.cancelled)
        made = self._settings.writing.create(self._api, obj)
        return self._finish_write(made, path, inputs, timeout)

    def read(self, token: str, identity: str, inputs: Inputs) -> Outputs | None:
        try:
            return self._read(token, identity, inputs)
        except ApiUnreachable as error:
            if self._settings.forgets:
                return None
            raise ResourceFailed(f"{error}\n{_UNREACHABLE}") from error

    def _read(self, token: str, identity: str, inputs: Inputs) -> Outputs | None:
        if token == Release.token:
            found = self._release.read(self._api, identity, inputs)
            return None if found is None else dict(inputs) | found
        namespace, _, name = identity.rpartition("/")
        version, kind = objects.kind_of(token, inputs)
        try:
            path = self._api.path(version, kind, namespace or None, name)
        except UnknownKind:
            return None
        live = self._api.find(path)
        return None if live is None else _outputs(live)

    def inputs_of(self, token: str, outputs: Outputs) -> Inputs:
        return objects.inputs_of(outputs)

    def update(self, token: str, identity: str, change: Change, timeout: float) -> Outputs:
        if token == Release.token:
            self._release.update(self._api, identity, change.old, change.new)
            return self._read_release(identity, change.new)
        obj = wire.without_none(change.new)
        path = waiting.wait_until_served(self._api, obj, self.cancelled)
        changed = self._settings.writing.update(self._api, obj)
        return self._finish_write(changed, path, change.new, timeout)[1]

    def delete(self, token: str, identity: str, inputs: Inputs, state: Inputs, timeout: float) -> None:
        try:
            self._delete(token, identity, inputs, state, timeout)
        except ApiUnreachable as error:
            # Deleting a Release, the real provider does not ask whether it may forget it (its issue 2675).
            if token == Release.token or not self._settings.forgets:
                raise ResourceFailed(f"{error}\n{_UNREACHABLE}") from error

    def _delete(self, token: str, identity: str, inputs: Inputs, state: Inputs, timeout: float) -> None:
        if token == Release.token:
            self._release.delete(self._api, identity, state)
            return
        namespace, _, name = identity.rpartition("/")
        try:
            path = self._api.path(inputs["apiVersion"], inputs["kind"], namespace or None, name)
        except UnknownKind:
            return  # its definition is gone, and with it all objects of the kind
        waiting.delete(self._api, path, waiting.patience(self.cancelled, timeout, inputs))

    def _finish_write(
        self, applied: Outputs, path: str, inputs: Inputs, timeout: float
    ) -> tuple[str, Outputs]:
        """The id and the outputs of an object that was just written, once it is ready."""
        identity = objects.identity(applied, namespaced="namespace" in applied["metadata"])
        try:
            made = waiting.ready(self._api, path, applied, waiting.patience(self.cancelled, timeout, applied))
        except ResourceFailed as error:
            raise ResourceFailed(str(error), identity, inputs, _outputs(applied)) from error
        return identity, _outputs(made)

    def _read_release(self, identity: str, inputs: Inputs) -> Outputs:
        return dict(inputs) | (self._release.read(self._api, identity, inputs) or {})


def _outputs(obj: Mapping[str, Any]) -> Outputs:
    """The live object without the bookkeeping of server-side apply."""
    metadata = {key: value for key, value in obj["metadata"].items() if key != "managedFields"}
    return dict(obj) | {"metadata": metadata}


def _server(kubeconfig: Any) -> str | None:
    """The API server of a kubeconfig's current context, or of its only cluster."""
    if kubeconfig is None or wire.is_unknown(kubeconfig):
        return None
    config = yaml.safe_load(kubeconfig) if isinstance(kubeconfig, str) else kubeconfig
    clusters = {cluster["name"]: cluster["cluster"] for cluster in config.get("clusters") or []}
    contexts = {context["name"]: context["context"] for context in config.get("contexts") or []}
    current = contexts.get(config.get("current-context", ""), {}).get("cluster")
    chosen: Mapping[str, Any] = clusters.get(current) or next(iter(clusters.values()), {})
    return chosen.get("server")


def _address(url: str) -> tuple[str | None, int | None]:
    parts = urlsplit(url)
    return parts.hostname, parts.port

"""The rights of a service account, out of the roles that a cluster binds to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from localenv.kubernetes import KubernetesApi
from localenv.rbac.rights import Right, rights_of

_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_Subject = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ServiceAccount:
    """A service account by its place."""

    namespace: str
    name: str

    @property
    def user(self) -> str:
        """As whom the API server knows it."""
        return f"system:serviceaccount:{self.namespace}:{self.name}"

    @property
    def groups(self) -> tuple[str, ...]:
        """Groups that it is in, as every service account of its namespace is."""
        return (
            "system:authenticated",
            "system:serviceaccounts",
            f"system:serviceaccounts:{self.namespace}",
        )


def own_rights(api: KubernetesApi, account: ServiceAccount) -> frozenset[Right]:
    """What is bound to the account itself."""

    def is_account(subject: _Subject) -> bool:
        return (
            subject["kind"] == "ServiceAccount"
            and (subject.get("namespace"), subject["name"]) == (account.namespace, account.name)
        ) or (subject["kind"] == "User" and subject["name"] == account.user)

    return frozenset(_rights(api, is_account))


def common_rights(api: KubernetesApi, account: ServiceAccount) -> frozenset[Right]:
    """What it may do because every service account may."""
    return frozenset(
        _rights(api, lambda subject: subject["kind"] == "Group" and subject["name"] in account.groups)
    )


def _rights(api: KubernetesApi, meant: Callable[[_Subject], bool]) -> Iterator[Right]:
    for collection in ("clusterrolebindings", "rolebindings"):
        for binding in api.list(f"{_RBAC}/{collection}"):
            if any(meant(subject) for subject in binding.get("subjects") or ()):
                namespace = binding["metadata"].get("namespace", "")
                yield from rights_of(_rules(api, binding["roleRef"], namespace), namespace)


def _rules(api: KubernetesApi, reference: Mapping[str, Any], namespace: str) -> list[dict[str, Any]]:
    """The rules of a role; a role that is gone grants nothing."""
    of_cluster = reference["kind"] == "ClusterRole"
    collection = f"{_RBAC}/clusterroles" if of_cluster else f"{_RBAC}/namespaces/{namespace}/roles"
    role = api.find(f"{collection}/{reference['name']}") or {}
    return role.get("rules") or []

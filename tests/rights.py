"""The controller's rights where tests run it without a stack: those that the component grants, no more."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from localenv.control_plane import ControlPlane
from localenv.kubernetes import KubernetesApi
from localenv.rbac import Call, read_calls
from pulumi_nodeless import rbac

USER = "nodeless-test:controller"
FORBIDDEN = 403
_GROUP = "rbac.authorization.k8s.io"
_SUBJECTS = [{"apiGroup": _GROUP, "kind": "User", "name": USER}]
_LIFECYCLE = Path(__file__).parents[1] / "docs" / "lifecycle.md"
_YAML = re.compile(r"```yaml\n(.*?)```", re.DOTALL)
_ROLES = {
    "nodeless-test:cluster": (*rbac.CORE_RULES, *rbac.CLOUD_RULES),
    "nodeless-test:namespace": rbac.namespace_rules("karpenter-cert"),
    "nodeless-test:dns": rbac.DNS_RULES,
    "nodeless-test:holds": rbac.HOLD_RULES,
}


def as_the_controller(control_plane: ControlPlane, namespace: str) -> Path:
    """A kubeconfig with what the component grants to a controller in `namespace`."""
    kubeconfig = control_plane.kubeconfig.with_name("controller.kubeconfig")
    api = control_plane.client()
    if not kubeconfig.exists():
        for manifest in _cluster_manifests():
            api.apply(manifest)
        control_plane.write_kubeconfig(kubeconfig, USER)
    api.apply(_binding("nodeless-test:namespace", namespace))
    _await_right(api, Call("", "nodes", "watch"))
    _await_right(api, Call("", "services", "get", "kube-system", "kube-dns"))
    _await_right(api, Call("coordination.k8s.io", "leases", "list", "kube-system"))
    _await_right(api, Call("coordination.k8s.io", "leases", "create", namespace))
    api.close()
    return kubeconfig


def right_to_surge(namespace: str) -> list[dict[str, Any]]:
    """Role and binding with which users allow surges in a namespace, as the documentation has them."""
    page = _LIFECYCLE.read_text().replace("namespace: shop", f"namespace: {namespace}")
    (found,) = (each for each in _YAML.findall(page) if "nodeless-surge" in each)
    return [*yaml.safe_load_all(found)]


def allow_surges(control_plane: ControlPlane, namespace: str) -> None:
    """Grant the same to the controller of a test."""
    role, binding = right_to_surge(namespace)
    api = control_plane.client()
    api.apply(role)
    api.apply({**binding, "subjects": _SUBJECTS})
    _await_right(api, Call("apps", "deployments", "patch", namespace))
    api.close()


def allow(control_plane: ControlPlane, namespace: str, resource: str, *verbs: str, name: str = "") -> None:
    """Grant what an installation of another kind than the component's may grant in its namespace."""
    role = f"nodeless-test:{resource}"
    rule = rbac.Rule(("",), (resource,), verbs, (name,) if name else ())
    reference = {"apiGroup": _GROUP, "kind": "Role", "name": role}
    api = control_plane.client()
    api.apply({**_of_rbac("Role", role, namespace), "rules": [_manifest(rule)]})
    api.apply({**_binding(role, namespace), "roleRef": reference})
    for verb in verbs:
        _await_right(api, Call("", resource, verb, namespace, name))
    api.close()


@contextmanager
def nothing_refused(control_plane: ControlPlane, user: str = USER) -> Iterator[None]:
    """Fail when the controller was refused anything for want of a right.

    An API server that has just started refuses what is allowed, too, until it has read the roles.
    """
    log = control_plane.audit_log
    start = log.stat().st_size if log.exists() else 0
    yield
    calls = read_calls(log, user, start=start) if log.exists() else {}
    api = control_plane.client()
    refused = [call for call, status in calls.items() if status == FORBIDDEN]
    missing = [str(call) for call in refused if not _allowed(api, user, call)]
    api.close()
    if missing:
        raise AssertionError(f"refused to the controller: {', '.join(missing)}")


def _await_right(api: KubernetesApi, call: Call) -> None:
    """Roles and bindings hold a moment after they were written."""
    api.wait(lambda: _allowed(api, USER, call), what=f"the right to {call}")


def _allowed(api: KubernetesApi, user: str, call: Call) -> bool:
    resource, _, subresource = call.resource.partition("/")
    asked = {
        "verb": call.verb,
        "group": call.group,
        "resource": resource,
        "subresource": subresource,
        "namespace": call.namespace,
        "name": call.name,
    }
    path = {"path": call.resource, "verb": call.verb}
    about = {"resourceAttributes": asked} if resource else {"nonResourceAttributes": path}
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": user, "groups": ["system:authenticated"], **about},
    }
    return bool(api.create(review)["status"]["allowed"])


def _cluster_manifests() -> Iterable[dict[str, Any]]:
    for name, rules in _ROLES.items():
        yield {**_of_rbac("ClusterRole", name), "rules": [_manifest(rule) for rule in rules]}
    yield _binding("nodeless-test:cluster")
    yield _binding("nodeless-test:dns", "kube-system")
    yield _binding("nodeless-test:holds", "kube-system")


def _binding(role: str, namespace: str = "") -> dict[str, Any]:
    return {
        **_of_rbac("RoleBinding" if namespace else "ClusterRoleBinding", role, namespace),
        "roleRef": {"apiGroup": _GROUP, "kind": "ClusterRole", "name": role},
        "subjects": _SUBJECTS,
    }


def _of_rbac(kind: str, name: str, namespace: str = "") -> dict[str, Any]:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": f"{_GROUP}/v1", "kind": kind, "metadata": metadata}


def _manifest(rule: rbac.Rule) -> dict[str, Any]:
    return {
        "apiGroups": [*rule.groups],
        "resources": [*rule.resources],
        "verbs": [*rule.verbs],
        **({"resourceNames": [*rule.names]} if rule.names else {}),
    }

"""Rights and calls, and the comparison of the two. Pure.

A rule of a role is taken apart into rights: one group, one resource, one verb, one name. A call is covered
by a right as the RBAC authorizer sees it (`k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac`): a name in
a rule limits it to calls that name the object, so that it covers no creation, and covers a list or a watch
only with the field selector `metadata.name`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

_ANY = "*"


@dataclass(frozen=True, slots=True, order=True)
class Call:
    """A request as it is authorized.

    Attributes:
        group: API group; empty for the core group and for a path.
        resource: Plural, with its subresource (`pods/eviction`); or a path outside of the API (`/version`).
        verb: As in roles: get, list, watch, create, update, patch, delete, deletecollection.
        namespace: Empty for what is cluster-scoped, or asked for in all namespaces.
        name: Of the object; empty where the request names none.
    """

    group: str
    resource: str
    verb: str
    namespace: str = ""
    name: str = ""

    def __str__(self) -> str:
        return _text(self.group, self.resource, self.verb, self.namespace, self.name)


@dataclass(frozen=True, slots=True, order=True)
class Right:
    """The smallest part of a rule; the fields are those of `Call`.

    Attributes:
        namespace: Where it holds; empty: everywhere.
        name: The one object that it is for; empty: all.
    """

    group: str
    resource: str
    verb: str
    namespace: str = ""
    name: str = ""

    def covers(self, call: Call) -> bool:
        """Whether the call is allowed by this right alone."""
        return (
            self.group in (_ANY, call.group)
            and _covers_resource(self.resource, call.resource)
            and self.verb in (_ANY, call.verb)
            and self.namespace in ("", call.namespace)
            and self.name in ("", call.name)
        )

    def __str__(self) -> str:
        return _text(self.group, self.resource, self.verb, self.namespace, self.name)


@dataclass(frozen=True, slots=True)
class Comparison:
    """What was done beside what may be done.

    Attributes:
        missing: Calls that no right covers.
        unused: Rights that cover no call.
    """

    missing: tuple[Call, ...]
    unused: tuple[Right, ...]


def rights_of(rules: Iterable[Mapping[str, Any]], namespace: str = "") -> frozenset[Right]:
    """The rights in the rules of a Role or ClusterRole, as the API server has them.

    Args:
        rules: Entries of `rules`.
        namespace: Of the RoleBinding; empty for a ClusterRoleBinding.
    """
    return frozenset(right for rule in rules for right in _rights_of_rule(rule, namespace))


def compare(rights: Iterable[Right], calls: Iterable[Call], common: Iterable[Right] = ()) -> Comparison:
    """Compare both ways.

    Args:
        rights: What was granted for these calls, and so has to be used.
        calls: What was done.
        common: What everybody may do besides; it need not be used.
    """
    given, done = sorted(set(rights)), sorted(set(calls))
    usable = (*given, *common)
    return Comparison(
        missing=tuple(call for call in done if not any(right.covers(call) for right in usable)),
        unused=tuple(right for right in given if not any(right.covers(call) for call in done)),
    )


def _rights_of_rule(rule: Mapping[str, Any], namespace: str) -> Iterable[Right]:
    verbs = rule.get("verbs") or ()
    for verb, path in product(verbs, rule.get("nonResourceURLs") or ()):
        yield Right("", "/*" if path == _ANY else path, verb)
    named = product(
        rule.get("apiGroups") or (), rule.get("resources") or (), verbs, rule.get("resourceNames") or ("",)
    )
    for group, resource, verb, name in named:
        yield Right(group, resource, verb, namespace, name)


def _covers_resource(granted: str, asked: str) -> bool:
    if asked.startswith("/"):
        below = granted.startswith("/") and granted.endswith(_ANY) and asked.startswith(granted.rstrip(_ANY))
        return granted == asked or below
    if granted.startswith(f"{_ANY}/"):
        return asked.partition("/")[2] == granted.removeprefix(f"{_ANY}/")
    return granted in (_ANY, asked)


def _text(group: str, resource: str, verb: str, namespace: str, name: str) -> str:
    """`patch configmaps nodeless-teardown in karpenter`, `list karpenter.sh/nodepools`."""
    where = f" in {namespace}" if namespace else ""
    return f"{verb} {group}{'/' if group else ''}{resource}{' ' if name else ''}{name}{where}"

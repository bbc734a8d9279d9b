"""Given rules and calls, expect what is missing and what is unused, as the RBAC authorizer sees it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localenv.rbac import Call, Right, compare, read_calls, rights_of


def rule(group: str, resource: str, *verbs: str, names: tuple[str, ...] = ()) -> dict[str, object]:
    given = {"apiGroups": [group], "resources": [resource], "verbs": [*verbs]}
    return {**given, "resourceNames": [*names]} if names else given


def test_a_call_without_a_right_is_missing_and_a_right_without_a_call_is_unused() -> None:
    rights = rights_of([rule("", "nodes", "list", "patch"), rule("", "pods/eviction", "create")])
    calls = [Call("", "nodes", "list"), Call("", "nodes", "delete", name="n1")]

    found = compare(rights, calls)

    assert found.missing == (Call("", "nodes", "delete", name="n1"),)
    assert found.unused == (Right("", "nodes", "patch"), Right("", "pods/eviction", "create"))
    assert [str(right) for right in found.unused] == ["patch nodes", "create pods/eviction"]


def test_a_rule_is_taken_apart_into_each_group_resource_verb_and_name() -> None:
    whole = {
        "apiGroups": ["apps", "batch"],
        "resources": ["a", "b/status"],
        "verbs": ["get", "patch"],
        "resourceNames": ["x", "y"],
    }
    rights = rights_of([whole], namespace="shop")
    assert len(rights) == 16
    assert Right("batch", "b/status", "patch", "shop", "y") in rights


@pytest.mark.parametrize(
    ("right", "call", "covered"),
    [
        pytest.param(Right("", "pods", "get"), Call("", "pods", "get", "shop", "web"), True, id="any object"),
        pytest.param(Right("", "pods", "get"), Call("apps", "pods", "get"), False, id="another group"),
        pytest.param(Right("", "pods", "get"), Call("", "pods/log", "get"), False, id="a subresource"),
        pytest.param(Right("", "pods/log", "get"), Call("", "pods", "get"), False, id="the resource itself"),
        pytest.param(Right("", "pods", "get", "a"), Call("", "pods", "get", "b"), False, id="elsewhere"),
        pytest.param(Right("", "pods", "list", "a"), Call("", "pods", "list"), False, id="everywhere"),
        pytest.param(Right("", "cm", "get", "a", "x"), Call("", "cm", "get", "a", "x"), True, id="by name"),
        pytest.param(Right("", "cm", "get", "a", "x"), Call("", "cm", "get", "a", "y"), False, id="other"),
        pytest.param(
            Right("", "cm", "list", "a", "x"), Call("", "cm", "list", "a"), False, id="unnamed list"
        ),
        pytest.param(
            Right("", "cm", "list", "a", "x"), Call("", "cm", "list", "a", "x"), True, id="selected"
        ),
        pytest.param(Right("*", "*", "*"), Call("apps", "x/status", "get", "a", "y"), True, id="all"),
        pytest.param(Right("", "*/scale", "get"), Call("", "x/scale", "get"), True, id="any scale"),
        pytest.param(Right("", "*/scale", "get"), Call("", "x", "get"), False, id="no scale"),
        pytest.param(Right("", "/version", "get"), Call("", "/version", "get"), True, id="a path"),
        pytest.param(Right("", "/openapi/*", "get"), Call("", "/openapi/v3", "get"), True, id="below a path"),
        pytest.param(Right("", "/openapi/*", "get"), Call("", "/metrics", "get"), False, id="another path"),
        pytest.param(Right("*", "*", "*"), Call("", "/metrics", "get"), False, id="all resources, no path"),
    ],
)
def test_a_right_covers_what_the_authorizer_would_allow(right: Right, call: Call, covered: bool) -> None:
    assert right.covers(call) is covered


def test_what_everybody_may_do_is_not_missing_and_need_not_be_used() -> None:
    common = rights_of([{"nonResourceURLs": ["/version", "/healthz"], "verbs": ["get"]}])
    found = compare([], [Call("", "/version", "get")], common)
    assert found.missing == found.unused == ()


NAMES = st.sampled_from(["", "x", "y"])
PARTS = (st.sampled_from(["", "apps"]), st.sampled_from(["pods", "pods/status"]), st.sampled_from(["get"]))
RIGHTS = st.frozensets(st.builds(Right, *PARTS, NAMES, NAMES), max_size=4)
CALLS = st.frozensets(st.builds(Call, *PARTS, NAMES, NAMES), max_size=4)


@given(RIGHTS, CALLS)
def test_a_role_of_exactly_the_calls_lacks_nothing_and_has_nothing_to_spare(
    rights: frozenset[Right], calls: frozenset[Call]
) -> None:
    found = compare(rights, calls)
    assert compare(rights - {*found.unused}, calls).missing == found.missing
    exact = [Right(c.group, c.resource, c.verb, c.namespace, c.name) for c in calls]
    assert compare(exact, calls) == compare([], [])


def event(verb: str, resource: str, code: int = 200, user: str = "robot", **about: str) -> dict[str, object]:
    reference = {"resource": resource, "apiVersion": "v1", **about}
    return {
        "user": {"username": user},
        "verb": verb,
        "objectRef": reference,
        "responseStatus": {"code": code},
    }


def test_calls_are_read_out_of_an_audit_log(tmp_path: Path) -> None:
    events = [
        event("create", "events", 201, namespace="shop", name="web.1"),
        event("create", "pods", 429, namespace="shop", name="web", subresource="eviction"),
        event("create", "pods", 201, namespace="shop", name="web", subresource="eviction"),
        event("patch", "nodepools", 403, apiGroup="karpenter.sh", name="default"),
        event("get", "nodes", user="somebody", name="n1"),
        {"user": {"username": "robot"}, "verb": "get", "requestURI": "/version?timeout=1s"},
    ]
    log = tmp_path / "audit.log"
    log.write_text("\n".join(json.dumps(each) for each in events) + '\n{"user": {"usern')

    assert read_calls(log, "robot") == {
        Call("", "events", "create", "shop"): 201,
        Call("", "pods/eviction", "create", "shop", "web"): 429,
        Call("karpenter.sh", "nodepools", "patch", name="default"): 403,
        Call("", "/version", "get"): 0,
    }

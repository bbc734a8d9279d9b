"""Admission as the real API server shows it: refusals, pruning, defaults on create and update."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from localenv.kubernetes import KubernetesApi
from nodeless.api.kinds import NODE_POOL, PROVISIONER
from tests.api.manifests import node_pool, provisioner, requirement
from tests.webhook.asking import asked_to_apply
from tests.webhook.conftest import Serving

pytestmark = pytest.mark.cluster

ARCH = "kubernetes.io/arch"


@pytest.fixture(autouse=True)
def clean(api: KubernetesApi, admission: Serving) -> Iterator[None]:
    """No pool outlives its test."""
    yield
    for kind in (PROVISIONER, NODE_POOL):
        path = kind.path("default")
        if api.find(path) is not None:
            api.patch(path, {"metadata": {"finalizers": None}})
            api.delete(path, missing_ok=True)
            api.wait_gone(path)


def keys_of(stored: dict[str, Any]) -> list[str]:
    return [each["key"] for each in stored["spec"]["requirements"]]


def test_3_1_a_refusal_is_a_bad_request_with_a_cause_for_each_field(api: KubernetesApi) -> None:
    faulty = provisioner(weight=101, ttlSecondsUntilExpired=-1, requirements=[requirement("a b", "Exists")])

    answer = api.connection.exchange("POST", PROVISIONER.path(), body=faulty)

    assert (answer.status, answer.content["code"], answer.content["reason"]) == (400, 400, "BadRequest")
    causes = answer.content["details"]["causes"]
    assert [cause["field"] for cause in causes] == [
        "spec.requirements[0].key",
        "spec.ttlSecondsUntilExpired",
        "spec.weight",
    ]
    assert all(cause["message"] in answer.content["message"] for cause in causes)


@pytest.mark.parametrize("strict", [True, False])
def test_3_1_unknown_members_are_refused_when_asked_for_and_else_pruned_before_we_are_asked(
    api: KubernetesApi, strict: bool
) -> None:
    query = {"fieldValidation": "Strict" if strict else "Ignore", "dryRun": "All"}
    body = provisioner(requirement=[], requirements=[requirement(ARCH, "Exists") | {"operatr": "In"}])

    answer = api.connection.exchange("POST", PROVISIONER.path(), body=body, query=query)

    if strict:
        assert 'unknown field "spec.requirement' in answer.content["message"]
    else:
        assert answer.status == 201
        assert "requirement" not in answer.content["spec"]
        assert answer.content["spec"]["requirements"][0] == requirement(ARCH, "Exists")


def test_3_1_nothing_of_a_provisioner_is_immutable_and_updates_are_checked(api: KubernetesApi) -> None:
    api.create(provisioner(weight=1, labels={"team": "a"}))
    path = PROVISIONER.path("default")

    changed = api.patch(path, {"spec": {"weight": 2, "labels": {"team": "b"}, "providerRef": {"name": "x"}}})
    refused = api.connection.exchange(
        "PATCH", path, body={"spec": {"weight": 101}}, content_type="application/merge-patch+json"
    )

    assert (changed["spec"]["weight"], changed["spec"]["providerRef"]["name"]) == (2, "x")
    assert "spec.weight: 101 must be from 1 to 100" in refused.content["message"]


def test_9_2_an_update_that_takes_a_default_away_gets_it_again(api: KubernetesApi) -> None:
    stored = api.create(provisioner())
    without = [each for each in stored["spec"]["requirements"] if each["key"] != ARCH]

    again = api.replace({**stored, "spec": {**stored["spec"], "requirements": without}})

    assert sorted(keys_of(again)) == sorted(keys_of(stored))
    assert keys_of(again)[-1] == ARCH


def test_9_2_a_status_update_adds_no_default_and_changes_no_word(api: KubernetesApi) -> None:
    stored = api.create(provisioner())

    after = api.patch(
        PROVISIONER.path("default"), {"status": {"resources": {"cpu": "1500m"}}}, subresource="status"
    )

    assert after["spec"] == stored["spec"]
    assert after["metadata"]["generation"] == 1


@pytest.mark.parametrize("alias", ["beta.kubernetes.io/arch", ARCH], ids=["9.2 alias", "9.2 key"])
def test_an_alias_counts_as_its_key_and_stays_as_it_was_written(api: KubernetesApi, alias: str) -> None:
    stored = asked_to_apply(api, provisioner(requirements=[requirement(alias, "In", "arm64")])).stored

    assert keys_of(stored)[0] == alias
    assert ARCH not in keys_of(stored)[1:]


def test_9_2_a_label_counts_too_since_a_default_could_only_contradict_it(api: KubernetesApi) -> None:
    """v0.27.3 appends arch In [amd64], and the pool can then never launch (docs/compatibility.md)."""
    stored = asked_to_apply(api, provisioner(labels={ARCH: "arm64"})).stored

    assert ARCH not in keys_of(stored)
    assert keys_of(stored)[0] == "kubernetes.io/os"


def test_9_2_a_node_pool_gets_no_default_of_ours(api: KubernetesApi) -> None:
    manifest = node_pool(template={"requirements": [requirement("team", "In", "b", "a")]})

    stored = asked_to_apply(api, manifest).stored

    assert stored["spec"]["template"]["spec"]["requirements"] == [requirement("team", "In", "b", "a")]

"""One question, one answer."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from nodeless.webhook.review import (
    UnreadableReviewError,
    read_request,
    review_config_map,
    review_default,
    review_validate,
)
from tests.api.manifests import article, article_corrected, node_template, provisioner, requirement
from tests.api.test_properties import JSON, UNHURRIED
from tests.webhook.reviews import patch_of, request, review


def test_a_valid_object_is_allowed() -> None:
    assert review_validate(request(provisioner())) == {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": {"uid": "u-1", "allowed": True},
    }


def test_a_denial_names_every_fault_on_a_line_of_its_own() -> None:
    response = review_validate(request(article()))["response"]

    assert (response["uid"], response["allowed"]) == ("u-1", False)
    status = response["status"]
    assert (status["code"], status["reason"]) == (400, "BadRequest")
    first, *faults = status["message"].split("\n")
    assert first == "Provisioner/default is invalid:"
    assert [fault.strip().removeprefix("warning: ").split(": ")[0] for fault in faults] == [
        "spec.provider.securityGroupSelector",
        "spec.provider.subnetSelector",
        "spec.requirements[0].key",
        "spec.requirements[2].operator",
        "spec.requirements[3].key",
    ]
    assert [cause["field"] for cause in status["details"]["causes"]] == [
        "spec.provider.securityGroupSelector",
        "spec.provider.subnetSelector",
        "spec.requirements[0].key",
        "spec.requirements[2].operator",
        "spec.requirements[3].key",
    ]


def test_warnings_go_with_a_yes() -> None:
    manifest = provisioner(requirements=[requirement("node.k8s.aws/instance-type", "In", "m5.large")])

    response = review_validate(request(manifest))["response"]

    assert response["allowed"]
    assert "node.kubernetes.io/instance-type" in response["warnings"][0]


def test_the_patch_holds_the_defaults_and_nothing_else() -> None:
    manifest = article_corrected()
    manifest["spec"]["limits"] = {"resources": {"cpu": 1000}}

    assert patch_of(review_default(request(manifest))) == [
        {
            "op": "add",
            "path": "/spec/requirements/-",
            "value": {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]},
        }
    ]


def test_the_patch_makes_the_list_when_there_is_none() -> None:
    (operation,) = patch_of(review_default(request(provisioner())))

    assert (operation["op"], operation["path"], len(operation["value"])) == ("add", "/spec/requirements", 5)


def test_what_has_all_its_defaults_gets_no_patch() -> None:
    assert "patch" not in review_default(request(node_template()))["response"]


def test_defaulting_refuses_what_the_schema_would_with_all_other_faults() -> None:
    response = review_default(request(article()))["response"]

    assert not response["allowed"]
    assert response == review_validate(request(article()))["response"]


def test_defaulting_leaves_faults_that_the_schema_lets_through_to_validation() -> None:
    manifest = provisioner(ttlSecondsAfterEmpty=-1)

    assert review_default(request(manifest))["response"]["allowed"]
    assert not review_validate(request(manifest))["response"]["allowed"]


def finalized(manifest: dict[str, Any]) -> dict[str, Any]:
    changed = deepcopy(manifest)
    changed["metadata"]["finalizers"] = ["karpenter.sh/termination"]
    return changed


def deleting(manifest: dict[str, Any]) -> dict[str, Any]:
    changed = deepcopy(manifest)
    changed["metadata"]["deletionTimestamp"] = "2023-05-01T12:00:00Z"
    changed["spec"]["weight"] = 1000
    return changed


NEVER_REFUSED = {
    "deletion": request(None, "DELETE", article()),
    "status": request(article(), "UPDATE", article_corrected(), subresource="status"),
    "finalizers": request(finalized(article()), "UPDATE", article()),
    "during deletion": request(deleting(article()), "UPDATE", article()),
}


@pytest.mark.parametrize("asked", NEVER_REFUSED.values(), ids=NEVER_REFUSED)
@pytest.mark.parametrize("answer", [review_default, review_validate])
def test_an_old_invalid_object_still_gets_its_status_finalizers_and_end(asked: Any, answer: Any) -> None:
    response = answer(asked)["response"]

    assert response["allowed"]
    assert "patch" not in response


def test_an_update_of_the_spec_is_validated() -> None:
    assert not review_validate(request(article(), "UPDATE", article_corrected()))["response"]["allowed"]


def test_an_unknown_kind_is_denied_by_name() -> None:
    response = review_validate(request({"apiVersion": "karpenter.sh/v1beta1", "kind": "NodePool"}))[
        "response"
    ]

    assert not response["allowed"]
    assert "karpenter.sh/v1beta1 NodePool" in response["status"]["message"]


@UNHURRIED
@given(JSON, JSON, some.sampled_from(["CREATE", "UPDATE", "DELETE"]))
def test_any_object_gets_an_answer(manifest: Any, old: Any, operation: str) -> None:
    for answer in (review_default, review_validate, review_config_map):
        response = answer(request(manifest, operation, old))["response"]
        assert response["uid"] == "u-1"
        assert response["allowed"] or response["status"]["message"]


@UNHURRIED
@given(some.binary() | JSON.map(lambda document: json.dumps(document).encode()))
def test_a_body_that_is_no_review_is_told_apart(body: bytes) -> None:
    with pytest.raises(UnreadableReviewError):
        read_request(body)


def test_a_review_is_read() -> None:
    assert read_request(json.dumps(review({})).encode())["uid"] == "u-1"


LOGGING = [
    ({}, []),
    ({"loglevel.controller": "debug", "zap-logger-config": '{"level": "info"}'}, []),
    ({"loglevel.webhook": "loud"}, ['data["loglevel.webhook"]: "loud" is not a level']),
    ({"zap-logger-config": "{"}, ['data["zap-logger-config"]: is not JSON']),
    ({"zap-logger-config": "[]"}, ['data["zap-logger-config"]: must be a JSON object']),
    ({"zap-logger-config": '{"level": 1}'}, ['data["zap-logger-config"].level: 1 is not a level']),
]


def config_map(name: str, data: dict[str, str]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


@pytest.mark.parametrize(("data", "faults"), LOGGING)
def test_the_logging_configuration_is_checked(data: dict[str, str], faults: list[str]) -> None:
    response = review_config_map(request(config_map("config-logging", data)))["response"]

    assert response["allowed"] is not bool(faults)
    for fault in faults:
        assert fault in response["status"]["message"]


def test_the_settings_are_checked_by_whoever_reads_them() -> None:
    asked = request(config_map("karpenter-global-settings", {"batchMaxDuration": "soon"}))

    response = review_config_map(asked, lambda data: [f"batchMaxDuration: {data['batchMaxDuration']}"])

    assert not response["response"]["allowed"]
    assert "batchMaxDuration: soon" in response["response"]["status"]["message"]
    assert review_config_map(asked)["response"]["allowed"]


def test_other_config_maps_are_none_of_our_business() -> None:
    asked = request(config_map("other", {"loglevel.x": "loud"}))

    assert review_config_map(asked, lambda _data: ["fault"])["response"]["allowed"]

"""The checker of resource inputs finds the mistakes it is there for, and nothing else."""

import pytest

from localenv.pulumi.input_check import HELM_RELEASE, UnknownTokenError, check_inputs

PROFILE = {
    "clusterName": "demo",
    "podExecutionRoleArn": "arn",
    "selectors": [{"namespace": "karpenter"}],
    "subnetIds": ["subnet-1"],
}


def test_right_inputs_pass() -> None:
    assert check_inputs("aws:eks/fargateProfile:FargateProfile", PROFILE) == []


@pytest.mark.parametrize(
    ("change", "reported"),
    [
        (
            {"clusterNam": "demo"},
            "FargateProfile.clusterNam: no such input on FargateProfileArgs (did you mean clusterName?)",
        ),
        (
            {"selectors": [{}]},
            "FargateProfile.selectors[0].namespace: required input of FargateProfileSelectorArgs is missing",
        ),
        (
            {"selectors": [{"namespace": "a", "label": {}}]},
            "FargateProfile.selectors[0].label: no such input on FargateProfileSelectorArgs "
            "(did you mean labels?)",
        ),
        ({"subnetIds": "subnet-1"}, "FargateProfile.subnetIds: expected a list, got str"),
        ({"tags": {"a": 1.0}}, "FargateProfile.tags.a: expected str, got 1.0"),
        (
            {"podExecutionRoleArn": None},
            "FargateProfile.podExecutionRoleArn: required input of FargateProfileArgs is missing",
        ),
    ],
)
def test_a_mistake_is_named_with_its_path(change: dict[str, object], reported: str) -> None:
    assert check_inputs("aws:eks/fargateProfile:FargateProfile", {**PROFILE, **change}) == [reported]


def test_a_value_outside_an_enumeration_is_named() -> None:
    (reported,) = check_inputs("eks:index:Cluster", {"authenticationMode": "APIX"})
    assert reported.startswith("Cluster.authenticationMode: 'APIX' is not one of")


def test_an_input_of_several_kinds_is_judged_by_the_kind_that_is_given() -> None:
    reported = check_inputs("eks:index:Cluster", {"fargate": {"selectors": [{"namespce": "karpenter"}]}})
    assert reported[0].startswith("Cluster.fargate.selectors[0].namespce: no such input")
    assert check_inputs("eks:index:Cluster", {"fargate": True}) == []


def test_a_release_takes_its_one_literal_and_no_other() -> None:
    assert check_inputs(HELM_RELEASE, {"chart": "nginx", "compat": "true"}) == []
    reported = check_inputs(HELM_RELEASE, {"chart": "nginx", "compat": "yes"})
    assert reported == ["Release.compat: 'yes' is not one of ['true']"]


def test_a_token_that_no_sdk_knows_is_refused() -> None:
    with pytest.raises(UnknownTokenError):
        check_inputs("aws:eks/fargatProfile:FargatProfile", {})

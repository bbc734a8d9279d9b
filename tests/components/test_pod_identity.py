"""EKS Pod Identity instead of IAM roles for service accounts, and where it cannot work."""

import json
from typing import Any

import pytest

from pulumi_nodeless import ArgumentError
from pulumi_nodeless.configuration import ConfigurationError
from tests.components.conftest import CONFIG, program
from tests.components.recorder import ACCOUNT, Recorder, run

BALANCERS = {"namespace": "kube-system", "labels": {"app.kubernetes.io/name": "aws-load-balancer-controller"}}
DNS = [
    {
        "name": "kube-system",
        "selectors": [{"namespace": "kube-system", "labels": {"k8s-app": "kube-dns"}}, BALANCERS],
    }
]
ROLE = "KarpenterControllerRole-demo"
POD_IDENTITY = {
    **CONFIG,
    "nodeless:controllerIdentity": "pod-identity",
    "nodeless:fargateProfiles": json.dumps(DNS),
}


@pytest.fixture(scope="module")
def recorder() -> Recorder:
    return run(program, config=POD_IDENTITY)


def controllers_trust(recorder: Recorder) -> dict[str, Any]:
    (role,) = [each for each in recorder.of("aws:iam/role:Role") if each.inputs["name"] == ROLE]
    (statement,) = json.loads(role.inputs["assumeRolePolicy"])["Statement"]
    return dict(statement)


def test_the_role_trusts_eks_for_one_service_account_of_one_cluster(recorder: Recorder) -> None:
    assert recorder.faults == []
    trust = controllers_trust(recorder)
    assert trust["Principal"] == {"Service": "pods.eks.amazonaws.com"}
    assert trust["Action"] == ["sts:AssumeRole", "sts:TagSession"]
    assert trust["Condition"] == {
        "StringEquals": {
            "aws:RequestTag/eks-cluster-arn": f"arn:aws:eks:us-east-1:{ACCOUNT}:cluster/demo",
            "aws:RequestTag/kubernetes-namespace": "karpenter",
            "aws:RequestTag/kubernetes-service-account": "karpenter",
        }
    }


def test_an_association_and_its_agent_stand_before_the_pods_and_after_the_cluster(recorder: Recorder) -> None:
    association = recorder.one("aws:eks/podIdentityAssociation:PodIdentityAssociation")
    (agent,) = [
        each
        for each in recorder.of("aws:eks/addon:Addon")
        if each.inputs["addonName"] == "eks-pod-identity-agent"
    ]
    role = association.inputs["roleArn"]
    assert role == f"arn:aws:iam::{ACCOUNT}:role/{ROLE}"
    place = [association.inputs[key] for key in ("clusterName", "namespace", "serviceAccount")]
    assert place == ["demo", "karpenter", "karpenter"]
    cluster = recorder.one("eks:index:Cluster").urn
    for each in (association, agent):
        assert cluster in recorder.everything_behind(each)
        assert each.urn in recorder.everything_behind(recorder.one("kubernetes:apps/v1:Deployment"))


def test_the_service_account_names_no_role(recorder: Recorder) -> None:
    account = recorder.one("kubernetes:core/v1:ServiceAccount").inputs["metadata"]
    assert "annotations" not in account


def test_pod_identity_for_a_controller_on_fargate_is_one_error_that_names_the_argument() -> None:
    recorder = Recorder()
    config = {**CONFIG, "nodeless:controllerIdentity": "pod-identity"}
    with pytest.raises(ConfigurationError) as refused:
        run(program, config=config, recorder=recorder)
    (problem,) = refused.value.problems
    assert problem.path == "controllerIdentity"
    assert "'pod-identity' cannot work on Fargate" in problem.message
    assert not [each for each in recorder.custom() if not each.token.startswith("pulumi:providers")]


def test_a_profile_without_a_selector_is_named_before_anything_is_registered() -> None:
    profiles = json.dumps([{"name": "empty", "selectors": []}])
    with pytest.raises(ConfigurationError, match=r"nodeless:fargateProfiles\[0\].selectors: 0 given"):
        run(program, config={**CONFIG, "nodeless:fargateProfiles": profiles})


@pytest.mark.parametrize("missing", ["oidc_provider_arn", "oidc_issuer"])
def test_a_role_by_token_needs_the_clusters_issuer(missing: str) -> None:
    def identity() -> None:
        from pulumi_nodeless import ControllerIdentity  # noqa: PLC0415 - the SDKs are slow to import

        args: Any = {
            "cluster_name": "demo",
            "node_role_arn": "arn:aws:iam::1:role/nodes",
            "oidc_provider_arn": "arn:aws:iam::1:oidc-provider/x",
            "oidc_issuer": "oidc.example/id/1",
        }
        ControllerIdentity("own", {key: value for key, value in args.items() if key != missing})

    with pytest.raises(ArgumentError, match=f"{missing}: needed with irsa"):
        run(identity)


def test_pods_are_made_anew_when_they_come_by_their_role_in_another_way(
    recorder: Recorder, environment: Recorder
) -> None:
    """The token and its variables are put into a pod when it is made, and never again."""

    def annotations(of: Recorder) -> dict[str, str]:
        template = of.one("kubernetes:apps/v1:Deployment").inputs["spec"]["template"]
        return dict(template["metadata"]["annotations"])

    by_association, by_token = annotations(recorder), annotations(environment)
    assert by_association["checksum/identity"] != by_token["checksum/identity"]
    assert annotations(run(program, config=POD_IDENTITY)) == by_association

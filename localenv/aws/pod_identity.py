"""eks-auth.AssumeRoleForPodIdentity: what the Pod Identity agent of a node asks for a pod.

The token is verified as for a web identity, with the audience of Pod Identity; its service account must have
an association in the cluster; and the role's trust policy must let `pods.eks.amazonaws.com` assume and tag,
its conditions holding for the session's tags. Conditions of other kinds are refused rather than ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from botocore.exceptions import ClientError

from localenv.aws.calls import AwsError, Call, Handlers, as_list
from localenv.aws.eks_records import cluster_of, not_found
from localenv.aws.web_identity import claims_of, conditions_hold, trust_statements

AUDIENCE = "pods.eks.amazonaws.com"
_ACTIONS = frozenset({"sts:AssumeRole", "sts:TagSession"})
_SESSION_NAME = 64


def assume_role_for_pod_identity(call: Call) -> dict[str, Any]:
    """eks-auth.AssumeRoleForPodIdentity."""
    record = cluster_of(call)
    claims = _claims(call)
    pod = claims.get("kubernetes.io") or {}
    namespace, account = str(claims["sub"]).split(":")[2:]
    found = (
        pod_identity
        for pod_identity in record.pod_identities.values()
        if (pod_identity["namespace"], pod_identity["serviceAccount"]) == (namespace, account)
    )
    association = next(found, None)
    if association is None:
        raise not_found(f"No pod identity association for service account {namespace}/{account}")
    tags = {
        "eks-cluster-arn": record.cluster["arn"],
        "eks-cluster-name": record.cluster["name"],
        "kubernetes-namespace": namespace,
        "kubernetes-service-account": account,
        "kubernetes-pod-name": str((pod.get("pod") or {}).get("name", "")),
        "kubernetes-pod-uid": str((pod.get("pod") or {}).get("uid", "")),
    }
    session = f"eks-{record.cluster['name']}-{tags['kubernetes-pod-name'] or account}"[:_SESSION_NAME]
    assumed = _assume_role(
        call, association["roleArn"], session, {} if association["disableSessionTags"] else tags
    )
    credentials, user = assumed["Credentials"], assumed["AssumedRoleUser"]
    return {
        "subject": {"namespace": namespace, "serviceAccount": account},
        "audience": AUDIENCE,
        "podIdentityAssociation": {
            "associationArn": association["associationArn"],
            "associationId": association["associationId"],
        },
        "assumedRoleUser": {"arn": user["Arn"], "assumeRoleId": user["AssumedRoleId"]},
        "credentials": {
            "accessKeyId": credentials["AccessKeyId"],
            "secretAccessKey": credentials["SecretAccessKey"],
            "sessionToken": credentials["SessionToken"],
            "expiration": credentials["Expiration"],
        },
    }


def _claims(call: Call) -> dict[str, Any]:
    try:
        claims = claims_of(call, str(call.parameters.get("token")))
    except AwsError as error:
        code = "InvalidTokenException" if error.code == "InvalidIdentityToken" else error.code
        raise AwsError(code, error.message) from error
    if AUDIENCE not in as_list(claims.get("aud")):
        raise AwsError("InvalidTokenException", f"The token's audience is not {AUDIENCE}")
    return claims


def _assume_role(call: Call, role_arn: str, session: str, tags: Mapping[str, str]) -> dict[str, Any]:
    denied = AwsError("AccessDeniedException", f"Role {role_arn} does not trust {AUDIENCE}", 400)
    try:
        role = call.client("iam").get_role(RoleName=role_arn.rpartition("/")[2])["Role"]
    except ClientError:
        raise denied from None
    allowed = {
        action
        for trust_statement in trust_statements(role)
        if _trusts(trust_statement, tags)
        for action in as_list(trust_statement["Action"])
    }
    if not allowed >= _ACTIONS:
        raise denied
    answer: dict[str, Any] = call.client("sts").assume_role(RoleArn=role_arn, RoleSessionName=session)
    return answer


def _trusts(statement: Mapping[str, Any], tags: Mapping[str, str]) -> bool:
    """Whether one statement of a trust policy lets EKS in with these tags; Deny statements are not read."""
    principal = statement.get("Principal") or {}
    if statement.get("Effect") != "Allow" or not isinstance(principal, Mapping):
        return False
    if AUDIENCE not in as_list(principal.get("Service")):
        return False
    actual = {prefix + key: [tags[key]] for prefix in ("", "aws:RequestTag/") for key in tags}
    return conditions_hold(statement, actual)


HANDLERS: Handlers = {("eks-auth", "AssumeRoleForPodIdentity"): assume_role_for_pod_identity}

"""Who may call, and roles for service accounts."""

from __future__ import annotations

import base64
import json
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest
from botocore.exceptions import ClientError
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from localenv.aws import LocalAws

ISSUER = "https://127.0.0.1:6443"
SUBJECT = "system:serviceaccount:karpenter:karpenter"
PROVIDER = "arn:aws:iam::123456789012:oidc-provider/127.0.0.1:6443"


def encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


@dataclass
class Issuer:
    """Signs service account tokens as kube-apiserver does."""

    key: rsa.RSAPrivateKey

    def token(self, **changes: Any) -> str:
        claims = {
            "iss": ISSUER,
            "sub": SUBJECT,
            "aud": ["sts.amazonaws.com"],
            "exp": time.time() + 600,
            **changes,
        }
        header = {"alg": "RS256", "kid": "first"}
        signed = ".".join(encoded(json.dumps(part).encode()) for part in (header, claims))
        return f"{signed}.{encoded(self.key.sign(signed.encode(), padding.PKCS1v15(), SHA256()))}"

    @property
    def pem(self) -> str:
        return self.key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()

    @property
    def jwks(self) -> dict[str, Any]:
        numbers = self.key.public_key().public_numbers()
        n, e = (encoded(v.to_bytes((v.bit_length() + 7) // 8)) for v in (numbers.n, numbers.e))
        return {"keys": [{"kty": "RSA", "kid": "first", "alg": "RS256", "use": "sig", "n": n, "e": e}]}


@pytest.fixture(scope="module")
def issuer() -> Issuer:
    return Issuer(rsa.generate_private_key(65537, 2048))


@pytest.fixture
def role(aws: LocalAws, issuer: Issuer) -> str:
    """A role that the service account karpenter/karpenter may assume."""
    aws.set_cluster(endpoint=ISSUER, certificate_authority_data="eA==", issuer=ISSUER, jwks=issuer.jwks)
    iam = aws.client("iam")
    iam.create_open_id_connect_provider(
        Url=ISSUER, ClientIDList=["sts.amazonaws.com"], ThumbprintList=["0" * 40]
    )
    host = ISSUER.removeprefix("https://")
    conditions = {"StringEquals": {f"{host}:sub": SUBJECT, f"{host}:aud": "sts.amazonaws.com"}}
    statement = {
        "Effect": "Allow",
        "Principal": {"Federated": PROVIDER},
        "Action": "sts:AssumeRoleWithWebIdentity",
        "Condition": conditions,
    }
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    return str(iam.create_role(RoleName="controller", AssumeRolePolicyDocument=policy)["Role"]["Arn"])


def assume(aws: LocalAws, role: str, token: str) -> dict[str, Any]:
    answer: dict[str, Any] = aws.client("sts").assume_role_with_web_identity(
        RoleArn=role, RoleSessionName="controller", WebIdentityToken=token
    )
    return answer


def session_of(answer: dict[str, Any]) -> dict[str, str]:
    """What a client is made of from the answer of STS."""
    keys = answer["Credentials"]
    return {
        "aws_access_key_id": keys["AccessKeyId"],
        "aws_secret_access_key": keys["SecretAccessKey"],
        "aws_session_token": keys["SessionToken"],
    }


def denying(action: str | list[str], **changes: Any) -> str:
    statement = {"Effect": "Deny", "Action": action, "Resource": "*", **changes}
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


@pytest.mark.parametrize("action", ["ec2:RunInstances", ["ec2:createfleet", "EC2:run*"], "*"])
@pytest.mark.parametrize("dry", [True, False])
def test_what_a_roles_policy_denies_is_refused_until_the_policy_goes(
    aws: LocalAws, role: str, issuer: Issuer, action: str | list[str], dry: bool
) -> None:
    iam = aws.client("iam")
    iam.put_role_policy(RoleName="controller", PolicyName="none", PolicyDocument=denying(action))
    ec2 = aws.client("ec2", **session_of(assume(aws, role, issuer.token())))
    wanted = {"MinCount": 1, "MaxCount": 1, "ImageId": "ami-12345678", "DryRun": dry}
    with pytest.raises(ClientError, match="with an explicit deny") as refused:
        ec2.run_instances(**wanted)
    assert refused.value.response["Error"]["Code"] == "UnauthorizedOperation"
    aws.client("ec2").describe_instances()  # by another principal
    iam.delete_role_policy(RoleName="controller", PolicyName="none")
    with pytest.raises(ClientError, match=r"DryRunOperation|InvalidAMIID"):
        ec2.run_instances(**wanted)


@pytest.mark.parametrize(
    "policy",
    [
        denying("ec2:CreateFleet"),
        denying("iam:DescribeVpcs"),
        denying("ec2:DescribeVpcs", Resource="arn:aws:ec2:us-east-1:123456789012:vpc/vpc-1"),
        denying("ec2:DescribeVpcs", Condition={"Bool": {"aws:SecureTransport": "false"}}),
        denying("ec2:DescribeVpcs", Effect="Allow"),
    ],
)
def test_what_is_denied_otherwise_is_answered(aws: LocalAws, role: str, issuer: Issuer, policy: str) -> None:
    aws.client("iam").put_role_policy(RoleName="controller", PolicyName="some", PolicyDocument=policy)
    aws.client("ec2", **session_of(assume(aws, role, issuer.token()))).describe_vpcs()


def test_a_service_account_becomes_its_role(aws: LocalAws, role: str, issuer: Issuer) -> None:
    answer = assume(aws, role, issuer.token())
    assert answer["SubjectFromWebIdentityToken"] == SUBJECT
    session = session_of(answer)
    caller = aws.client("sts", **session).get_caller_identity()
    assert caller["Arn"] == "arn:aws:sts::123456789012:assumed-role/controller/controller"
    aws.client("ec2", **session).describe_vpcs()
    principals = {call["principal"] for call in aws.calls() if call["action"] == "DescribeVpcs"}
    assert principals == {caller["Arn"]}


def test_the_key_may_be_given_as_pem(aws: LocalAws, role: str, issuer: Issuer) -> None:
    aws.set_cluster(
        endpoint=ISSUER, certificate_authority_data="eA==", issuer=ISSUER, service_account_key=issuer.pem
    )
    assert assume(aws, role, issuer.token())["Credentials"]["AccessKeyId"].startswith("ASIA")


@pytest.mark.parametrize(
    ("claims", "code"),
    [
        ({"sub": "system:serviceaccount:default:default"}, "AccessDenied"),
        ({"aud": ["https://kubernetes.default.svc"]}, "InvalidIdentityToken"),
        ({"iss": "https://elsewhere"}, "InvalidIdentityToken"),
        ({"exp": 1}, "ExpiredTokenException"),
    ],
    ids=["subject", "audience", "issuer", "expiry"],
)
def test_a_token_of_someone_else_is_refused(
    aws: LocalAws, role: str, issuer: Issuer, claims: dict[str, Any], code: str
) -> None:
    with pytest.raises(ClientError) as error:
        assume(aws, role, issuer.token(**claims))
    assert error.value.response["Error"]["Code"] == code


def test_a_forged_token_is_refused(aws: LocalAws, role: str) -> None:
    forger = Issuer(rsa.generate_private_key(65537, 2048))
    for token in (forger.token(), "not-a-token"):
        with pytest.raises(ClientError) as error:
            assume(aws, role, token)
        assert error.value.response["Error"]["Code"] == "InvalidIdentityToken"


def test_a_role_that_does_not_trust_the_cluster_is_refused(aws: LocalAws, role: str, issuer: Issuer) -> None:
    statement = {"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    aws.client("iam").update_assume_role_policy(RoleName="controller", PolicyDocument=policy)
    with pytest.raises(ClientError) as error:
        assume(aws, role, issuer.token())
    assert error.value.response["Error"]["Code"] == "AccessDenied"


@pytest.mark.parametrize(
    ("service", "operation", "code", "status"),
    [
        ("ec2", "describe_vpcs", "AuthFailure", 401),
        ("iam", "list_roles", "InvalidClientTokenId", 403),
        ("sts", "get_caller_identity", "InvalidClientTokenId", 403),
        ("sqs", "list_queues", "InvalidClientTokenId", 403),
        ("ssm", "describe_parameters", "UnrecognizedClientException", 403),
        ("eks", "list_clusters", "UnrecognizedClientException", 403),
        ("pricing", "describe_services", "UnrecognizedClientException", 403),
    ],
)
def test_unknown_credentials_are_refused(
    aws: LocalAws, service: str, operation: str, code: str, status: int
) -> None:
    client = aws.client(service, aws_access_key_id="AKIAUNKNOWNUNKNOWN12", aws_secret_access_key="x")
    with pytest.raises(ClientError) as error:
        getattr(client, operation)()
    assert error.value.response["Error"]["Code"] == code
    assert error.value.response["ResponseMetadata"]["HTTPStatusCode"] == status


def test_a_user_with_an_access_key_may_call(aws: LocalAws) -> None:
    iam = aws.client("iam")
    iam.create_user(UserName="ada")
    key = iam.create_access_key(UserName="ada")["AccessKey"]
    sts = aws.client(
        "sts", aws_access_key_id=key["AccessKeyId"], aws_secret_access_key=key["SecretAccessKey"]
    )
    assert sts.get_caller_identity()["Arn"] == "arn:aws:iam::123456789012:user/ada"


def test_managed_policies_attach_and_hold_their_role(aws: LocalAws, role: str) -> None:
    iam = aws.client("iam")
    for name in (
        "AmazonEKSWorkerNodePolicy",
        "AmazonEKS_CNI_Policy",
        "AmazonEC2ContainerRegistryReadOnly",
        "AmazonSSMManagedInstanceCore",
        "AmazonEKSFargatePodExecutionRolePolicy",
    ):
        found = [f"arn:aws:iam::aws:policy/{name}", f"arn:aws:iam::aws:policy/service-role/{name}"]
        attached = next(arn for arn in found if _exists(iam, arn))
        iam.attach_role_policy(RoleName="controller", PolicyArn=attached)
    with pytest.raises(ClientError, match="DeleteConflict"):
        iam.delete_role(RoleName="controller")
    for policy in iam.list_attached_role_policies(RoleName="controller")["AttachedPolicies"]:
        iam.detach_role_policy(RoleName="controller", PolicyArn=policy["PolicyArn"])
    iam.create_instance_profile(InstanceProfileName="p")
    iam.add_role_to_instance_profile(InstanceProfileName="p", RoleName="controller")
    with pytest.raises(ClientError, match="DeleteConflict"):
        iam.delete_role(RoleName="controller")
    iam.remove_role_from_instance_profile(InstanceProfileName="p", RoleName="controller")
    iam.delete_role(RoleName="controller")


def _exists(iam: Any, arn: str) -> bool:
    try:
        iam.get_policy(PolicyArn=arn)
    except ClientError:
        return False
    return True


def test_roles_get_policies_while_others_are_made(aws: LocalAws) -> None:
    iam = aws.client("iam")
    iam.create_role(RoleName="nodes", AssumeRolePolicyDocument="{}")
    managed = "arn:aws:iam::aws:policy/AmazonEKSWorkerNodePolicy"
    statement = {"Effect": "Allow", "Action": "ec2:DescribeSubnets", "Resource": "*"}
    document = json.dumps({"Version": "2012-10-17", "Statement": [statement]})

    def attach_and_make(number: int) -> None:
        for turn in range(20):
            if number % 2:
                iam.create_policy(PolicyName=f"policy-{number}-{turn}", PolicyDocument=document)
            else:
                iam.attach_role_policy(RoleName="nodes", PolicyArn=managed)

    with ThreadPoolExecutor(8) as threads:
        # A call that fails raises here.
        assert [*threads.map(attach_and_make, range(8))] == [None] * 8

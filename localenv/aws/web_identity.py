"""sts.AssumeRoleWithWebIdentity and GetCallerIdentity: IAM roles for service accounts, proven.

The token's signature is verified with the key of the cluster's issuer (a JWKS or PEM of `POST
/nodeless/cluster`), then issuer, expiry and audience, then the role's trust policy: an Allow of
sts:AssumeRoleWithWebIdentity to the issuer's OIDC provider whose StringEquals and StringLike conditions on
`<issuer>:sub` and `<issuer>:aud` hold. Conditions of other kinds are refused rather than ignored.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any, cast
from urllib.parse import unquote

from botocore.exceptions import ClientError
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, KeySet, RSAKey, import_key

from localenv.aws.calls import AwsError, Call, Handlers, as_list, digest
from localenv.aws.moto_internals import ACCOUNT, session_of
from localenv.aws.state import ClusterIdentity

ACTION = "sts:AssumeRoleWithWebIdentity"
#: With which kube-apiserver signs service account tokens, and the kind of key of each.
_KEY_TYPES = {"RS256": "RSA", "ES256": "EC"}


def assume_role_with_web_identity(call: Call) -> dict[str, Any]:
    """sts.AssumeRoleWithWebIdentity."""
    claims = claims_of(call, str(call.parameters.get("WebIdentityToken")))
    role_arn = call.parameters["RoleArn"]
    denied = AwsError("AccessDenied", f"Not authorized to perform {ACTION}", 403)
    try:
        role = call.client("iam").get_role(RoleName=role_arn.rpartition("/")[2])["Role"]
    except ClientError:
        raise denied from None
    if role["Arn"] != role_arn:
        raise denied
    issuer = str(claims["iss"]).removeprefix("https://")
    provider_arn = f"arn:aws:iam::{ACCOUNT}:oidc-provider/{issuer}"
    audiences = _audiences(call, provider_arn, claims)
    if not any(_trusts(s, provider_arn, issuer, claims, audiences) for s in trust_statements(role)):
        raise denied
    answer = call.forward()
    return {
        **answer,
        "SubjectFromWebIdentityToken": claims.get("sub"),
        "Provider": provider_arn,
        "Audience": audiences[0],
    }


def get_caller_identity(call: Call) -> dict[str, Any]:
    """sts.GetCallerIdentity: the role session behind the key, or the owner."""
    session = session_of(call.access_key)
    if session is not None:
        return {"UserId": session[0], "Account": ACCOUNT, "Arn": session[1]}
    return {"UserId": digest(call.access_key, 20).upper(), "Account": ACCOUNT, "Arn": call.principal}


def claims_of(call: Call, token: str) -> dict[str, Any]:
    """The claims of a service account's token, if it is genuine and still good.

    Raises:
        AwsError: InvalidIdentityToken or ExpiredTokenException.
    """
    cluster = call.state.cluster
    if cluster is None:
        message = "No OpenIDConnect provider found in your account: no cluster was given to the local AWS"
        raise AwsError("InvalidIdentityToken", message)
    try:
        claims = jwt.decode(token, lambda sent: _key(cluster, sent.headers()), [*_KEY_TYPES]).claims
    except (JoseError, ValueError) as error:
        raise AwsError("InvalidIdentityToken", f"Couldn't verify the token: {error}") from error
    if claims.get("iss") != cluster.issuer:
        message = f"No OpenIDConnect provider found in your account for {claims.get('iss')}"
        raise AwsError("InvalidIdentityToken", message)
    now = time.time()
    if float(claims.get("exp", 0)) <= now:
        raise AwsError(
            "ExpiredTokenException", "Token expired: current date/time must be before the expiration"
        )
    if float(claims.get("nbf", 0)) > now + 60:
        raise AwsError("InvalidIdentityToken", "The token is not valid yet")
    return claims


def _key(cluster: ClusterIdentity, header: Mapping[str, Any]) -> RSAKey | ECKey:
    """The issuer's key that a token names. Raises JoseError or ValueError when it has no such key."""
    kind = _KEY_TYPES.get(str(header.get("alg")))
    if cluster.jwks is not None:
        found = KeySet.import_key_set(cast("Any", cluster.jwks)).get_by_kid(header.get("kid"))
    else:
        found = import_key(cluster.service_account_key or "", cast("Any", kind))
    if not isinstance(found, RSAKey | ECKey) or found.key_type != kind:
        raise ValueError(f"the issuer has no key of kind {kind}")
    return found


def _audiences(call: Call, provider_arn: str, claims: Mapping[str, Any]) -> list[str]:
    """The token's audiences that the account's OIDC provider accepts."""
    iam = call.client("iam")
    try:
        provider = iam.get_open_id_connect_provider(OpenIDConnectProviderArn=provider_arn)
    except ClientError:
        message = f"No OpenIDConnect provider found in your account for {claims['iss']}"
        raise AwsError("InvalidIdentityToken", message) from None
    accepted = [a for a in as_list(claims.get("aud")) if a in provider["ClientIDList"]]
    if not accepted:
        raise AwsError("InvalidIdentityToken", "Incorrect token audience")
    return accepted


def trust_statements(role: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The statements of a role's trust policy, as IAM gives the role."""
    document = role["AssumeRolePolicyDocument"]
    policy = json.loads(unquote(document)) if isinstance(document, str) else document
    return as_list(policy["Statement"])


def _trusts(
    statement: Mapping[str, Any],
    provider_arn: str,
    issuer: str,
    claims: Mapping[str, Any],
    audiences: list[str],
) -> bool:
    """Whether one statement of a trust policy lets the token in; Deny statements are not read."""
    if statement.get("Effect") != "Allow" or ACTION not in as_list(statement.get("Action")):
        return False
    principal = statement.get("Principal") or {}
    if not isinstance(principal, Mapping) or provider_arn not in as_list(principal.get("Federated")):
        return False
    actual = {
        f"{issuer}:sub": [str(claims.get("sub"))],
        f"{issuer}:aud": audiences,
        f"{issuer}:iss": [str(claims["iss"])],
    }
    return conditions_hold(statement, actual)


def conditions_hold(statement: Mapping[str, Any], actual: Mapping[str, list[str]]) -> bool:
    """Whether the conditions of a statement hold for these values by key; what is of other kinds does not."""
    for operator, conditions in (statement.get("Condition") or {}).items():
        for key, wanted in conditions.items():
            if operator not in {"StringEquals", "StringLike"} or key not in actual:
                return False
            like = operator == "StringLike"
            if not any(
                fnmatchcase(value, pattern) if like else value == pattern
                for value in actual[key]
                for pattern in map(str, as_list(wanted))
            ):
                return False
    return True


HANDLERS: Handlers = {
    ("sts", "AssumeRoleWithWebIdentity"): assume_role_with_web_identity,
    ("sts", "GetCallerIdentity"): get_caller_identity,
}

"""EKS Fargate profiles, with the checks that EKS makes: selectors, private subnets, the execution role."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from botocore.exceptions import ClientError

from localenv.aws.calls import Call, Handlers, as_list
from localenv.aws.eks_access import add_entry
from localenv.aws.eks_clusters import require_role
from localenv.aws.eks_records import ClusterRecord, arn, cluster_of, find, in_use, invalid, now
from localenv.aws.web_identity import trust_statements

MAXIMUM_SELECTORS = 5
MAXIMUM_LABELS = 5
SERVICE = "eks-fargate-pods.amazonaws.com"


def create_fargate_profile(call: Call) -> dict[str, Any]:
    parameters = call.parameters
    with call.state.lock:
        record = cluster_of(call)
        name = parameters["fargateProfileName"]
        if name in record.fargate_profiles:
            raise in_use("A Fargate Profile already exists with this name in this cluster.")
        if name == "eks" or name.startswith("eks-"):
            raise invalid("The Fargate Profile name cannot start with the reserved prefix eks-")
        selectors = parameters.get("selectors") or []
        _check_selectors(selectors)
        subnets = parameters.get("subnets") or []
        _check_subnets(call, record, subnets)
        role_arn = parameters["podExecutionRoleArn"]
        _check_role(require_role(call, role_arn))
        profile = {
            "fargateProfileName": name,
            "fargateProfileArn": arn(call, "fargateprofile", record.cluster["name"], name, str(uuid.uuid4())),
            "clusterName": record.cluster["name"],
            "createdAt": now(),
            "podExecutionRoleArn": role_arn,
            "subnets": subnets,
            "selectors": selectors,
            "status": "ACTIVE",
            "tags": parameters.get("tags") or {},
            "health": {"issues": []},
        }
        record.fargate_profiles[name] = profile
        if record.cluster["accessConfig"]["authenticationMode"] != "CONFIG_MAP":
            add_entry(call, record, role_arn, "FARGATE_LINUX")
        return {"fargateProfile": {**profile, "status": "CREATING"}}


def describe_fargate_profile(call: Call) -> dict[str, Any]:
    return {"fargateProfile": _profile(call, cluster_of(call))}


def list_fargate_profiles(call: Call) -> dict[str, Any]:
    return {"fargateProfileNames": sorted(cluster_of(call).fargate_profiles)}


def delete_fargate_profile(call: Call) -> dict[str, Any]:
    record = cluster_of(call)
    profile = _profile(call, record)
    del record.fargate_profiles[profile["fargateProfileName"]]
    return {"fargateProfile": {**profile, "status": "DELETING"}}


def _profile(call: Call, record: ClusterRecord) -> dict[str, Any]:
    name = call.parameters["fargateProfileName"]
    return find(record.fargate_profiles, name, f"No Fargate Profile found with name: {name}.")


def _check_selectors(selectors: Sequence[Mapping[str, Any]]) -> None:
    if not selectors:
        raise invalid("Fargate Profile requires at least one selector.")
    if len(selectors) > MAXIMUM_SELECTORS:
        raise invalid(f"Fargate Profile can have at most {MAXIMUM_SELECTORS} selectors.")
    for selector in selectors:
        if not selector.get("namespace"):
            raise invalid(
                "Fargate Profile must have at least one selector with at least one namespace value."
            )
        if len(selector.get("labels") or {}) > MAXIMUM_LABELS:
            raise invalid(f"Request contains Selector with more than {MAXIMUM_LABELS} Label pairs")


def _check_subnets(call: Call, record: ClusterRecord, subnets: Sequence[str]) -> None:
    """Subnets must exist, lie in the cluster's VPC and have no route to an internet gateway."""
    if not subnets:
        raise invalid("Fargate Profile requires at least one private subnet.")
    ec2 = call.client("ec2")
    try:
        found = ec2.describe_subnets(SubnetIds=list(subnets))["Subnets"]
    except ClientError as error:
        raise invalid(error.response["Error"]["Message"]) from None
    vpc_id = record.cluster["resourcesVpcConfig"]["vpcId"]
    tables = ec2.describe_route_tables(Filters=[{"Name": "vpc-id", "Values": [vpc_id]}])["RouteTables"]
    for subnet in found:
        if subnet["VpcId"] != vpc_id:
            raise invalid(
                f"Subnet {subnet['SubnetId']} provided in Fargate Profile is not in the cluster's VPC"
            )
        if _is_public(subnet["SubnetId"], tables):
            raise invalid(f"Subnet {subnet['SubnetId']} provided in Fargate Profile is not a private subnet")


def _is_public(subnet_id: str, tables: Sequence[Mapping[str, Any]]) -> bool:
    own = [t for t in tables if any(a.get("SubnetId") == subnet_id for a in t["Associations"])]
    main = [t for t in tables if any(a.get("Main") for a in t["Associations"])]
    routes = [route for table in own or main for route in table["Routes"]]
    return any(str(route.get("GatewayId", "")).startswith("igw-") for route in routes)


def _check_role(role: Mapping[str, Any]) -> None:
    principals = [statement.get("Principal") or {} for statement in trust_statements(role)]
    if not any(SERVICE in as_list(principal.get("Service")) for principal in principals):
        message = f"Misconfigured PodExecutionRole Trust Policy; Please add the {SERVICE} Service Principal"
        raise invalid(message)


HANDLERS: Handlers = {
    ("eks", "CreateFargateProfile"): create_fargate_profile,
    ("eks", "DescribeFargateProfile"): describe_fargate_profile,
    ("eks", "ListFargateProfiles"): list_fargate_profiles,
    ("eks", "DeleteFargateProfile"): delete_fargate_profile,
}

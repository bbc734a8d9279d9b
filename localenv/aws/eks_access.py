"""EKS access entries with their policies, and Pod Identity associations: records with EKS's checks."""

from __future__ import annotations

from typing import Any

from localenv.aws.calls import AwsError, Call, Handlers, digest
from localenv.aws.eks_records import ClusterRecord, arn, cluster_of, find, in_use, invalid, now
from localenv.aws.moto_internals import ACCOUNT

ADMIN_POLICY = "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"
_POLICY_PREFIX = "arn:aws:eks::aws:cluster-access-policy/"
#: Types of entries that EKS fills itself: they take neither groups nor policies.
_NODE_TYPES = frozenset(
    {"EC2_LINUX", "EC2_WINDOWS", "FARGATE_LINUX", "EC2", "HYBRID_LINUX", "HYPERPOD_LINUX"}
)


def admit_creator(call: Call, record: ClusterRecord) -> None:
    """Give the cluster's creator the entry that EKS gives them, when the mode has access entries."""
    access = record.cluster["accessConfig"]
    if access["authenticationMode"] == "CONFIG_MAP" or not access["bootstrapClusterCreatorAdminPermissions"]:
        return
    principal = call.principal
    add_entry(call, record, principal, "STANDARD")
    record.access_policies[principal] = {ADMIN_POLICY: _association(ADMIN_POLICY, {"type": "cluster"})}


def add_entry(
    call: Call, record: ClusterRecord, principal: str, kind: str, **fields: object
) -> dict[str, Any]:
    """Write an entry, replacing none."""
    name = record.cluster["name"]
    path = (name, "role", ACCOUNT, principal.rpartition("/")[2], digest([principal, name], 32))
    default_user = "system:node:{{EC2PrivateDNSName}}" if kind in _NODE_TYPES else principal
    entry = {
        "clusterName": name,
        "principalArn": principal,
        "accessEntryArn": arn(call, "access-entry", *path),
        "createdAt": now(),
        "modifiedAt": now(),
        "type": kind,
        "username": fields.get("username") or default_user,
        "kubernetesGroups": fields.get("kubernetesGroups")
        or (["system:nodes"] if kind in _NODE_TYPES else []),
        "tags": fields.get("tags") or {},
    }
    record.access_entries.setdefault(principal, entry)
    return record.access_entries[principal]


def _entry(call: Call, record: ClusterRecord) -> dict[str, Any]:
    principal = call.parameters["principalArn"]
    message = f"The specified principalArn could not be found: {principal}"
    return find(record.access_entries, principal, message)


def _with_entries(call: Call) -> ClusterRecord:
    """The cluster, if its mode has access entries."""
    record = cluster_of(call)
    if record.cluster["accessConfig"]["authenticationMode"] == "CONFIG_MAP":
        message = "The cluster's authentication mode must be set to one of [API, API_AND_CONFIG_MAP]"
        raise AwsError("InvalidRequestException", message)
    return record


def create_access_entry(call: Call) -> dict[str, Any]:
    record, parameters = _with_entries(call), call.parameters
    principal, kind = parameters["principalArn"], parameters.get("type") or "STANDARD"
    if principal in record.access_entries:
        raise in_use("The specified access entry resource is already in use on this cluster.")
    if not principal.startswith("arn:aws"):
        raise invalid("The principalArn parameter format is not valid")
    if kind in _NODE_TYPES and (parameters.get("kubernetesGroups") or parameters.get("username")):
        raise invalid(f"The kubernetesGroups and username parameters are not allowed for type {kind}")
    fields = {name: parameters.get(name) for name in ("username", "kubernetesGroups", "tags")}
    return {"accessEntry": add_entry(call, record, principal, kind, **fields)}


def describe_access_entry(call: Call) -> dict[str, Any]:
    return {"accessEntry": _entry(call, _with_entries(call))}


def list_access_entries(call: Call) -> dict[str, Any]:
    record, policy = _with_entries(call), call.parameters.get("associatedPolicyArn")
    names = [
        p for p in record.access_entries if policy is None or policy in record.access_policies.get(p, {})
    ]
    return {"accessEntries": sorted(names)}


def update_access_entry(call: Call) -> dict[str, Any]:
    entry = _entry(call, _with_entries(call))
    for name in ("username", "kubernetesGroups"):
        if call.parameters.get(name) is not None:
            entry[name] = call.parameters[name]
    entry["modifiedAt"] = now()
    return {"accessEntry": entry}


def delete_access_entry(call: Call) -> dict[str, Any]:
    record = _with_entries(call)
    _entry(call, record)
    del record.access_entries[call.parameters["principalArn"]]
    record.access_policies.pop(call.parameters["principalArn"], None)
    return {}


def associate_access_policy(call: Call) -> dict[str, Any]:
    record, parameters = _with_entries(call), call.parameters
    entry = _entry(call, record)
    if entry["type"] in _NODE_TYPES:
        raise AwsError(
            "InvalidRequestException", f"Access policies cannot be associated with {entry['type']}"
        )
    if not parameters["policyArn"].startswith(_POLICY_PREFIX):
        raise invalid(f"The policyArn parameter format is not valid: {parameters['policyArn']}")
    associated = _association(parameters["policyArn"], parameters["accessScope"])
    record.access_policies.setdefault(entry["principalArn"], {})[parameters["policyArn"]] = associated
    name = record.cluster["name"]
    return {"clusterName": name, "principalArn": entry["principalArn"], "associatedAccessPolicy": associated}


def list_associated_access_policies(call: Call) -> dict[str, Any]:
    record = _with_entries(call)
    principal = _entry(call, record)["principalArn"]
    policies = list(record.access_policies.get(principal, {}).values())
    name = record.cluster["name"]
    return {"clusterName": name, "principalArn": principal, "associatedAccessPolicies": policies}


def disassociate_access_policy(call: Call) -> dict[str, Any]:
    record = _with_entries(call)
    principal = _entry(call, record)["principalArn"]
    policies = record.access_policies.get(principal, {})
    find(policies, call.parameters["policyArn"], "The specified policyArn is not associated")
    del policies[call.parameters["policyArn"]]
    return {}


def _association(policy: str, scope: dict[str, Any]) -> dict[str, Any]:
    return {"policyArn": policy, "accessScope": scope, "associatedAt": now(), "modifiedAt": now()}


def create_pod_identity_association(call: Call) -> dict[str, Any]:
    record, parameters = cluster_of(call), call.parameters
    wanted = (parameters["namespace"], parameters["serviceAccount"])
    token = parameters.get("clientRequestToken")
    # A client that has lost the answer sends the request again.
    if token and (earlier := record.pod_identities.get(record.pod_identity_tokens.get(token, ""))):
        return {"association": earlier}
    if any((a["namespace"], a["serviceAccount"]) == wanted for a in record.pod_identities.values()):
        raise in_use(
            f"Association already exists for the provided service account and namespace: {'/'.join(wanted)}"
        )
    identifier = f"a-{digest([record.cluster['name'], wanted, call.state.number()], 17)}"
    association = {
        "clusterName": record.cluster["name"],
        "namespace": wanted[0],
        "serviceAccount": wanted[1],
        "roleArn": parameters["roleArn"],
        "targetRoleArn": parameters.get("targetRoleArn"),
        "disableSessionTags": bool(parameters.get("disableSessionTags")),
        "associationArn": arn(call, "podidentityassociation", record.cluster["name"], identifier),
        "associationId": identifier,
        "tags": parameters.get("tags") or {},
        "createdAt": now(),
        "modifiedAt": now(),
    }
    record.pod_identities[identifier] = association
    if token:
        record.pod_identity_tokens[token] = identifier
    return {"association": association}


def _pod_identity(call: Call, record: ClusterRecord) -> dict[str, Any]:
    identifier = call.parameters["associationId"]
    return find(record.pod_identities, identifier, f"No association found with associationId: {identifier}")


def describe_pod_identity_association(call: Call) -> dict[str, Any]:
    return {"association": _pod_identity(call, cluster_of(call))}


def list_pod_identity_associations(call: Call) -> dict[str, Any]:
    chosen = [
        association
        for association in cluster_of(call).pod_identities.values()
        if all(
            call.parameters.get(name) in {None, association[name]} for name in ("namespace", "serviceAccount")
        )
    ]
    return {"associations": chosen}


def update_pod_identity_association(call: Call) -> dict[str, Any]:
    association = _pod_identity(call, cluster_of(call))
    association["roleArn"] = call.parameters.get("roleArn") or association["roleArn"]
    association["modifiedAt"] = now()
    return {"association": association}


def delete_pod_identity_association(call: Call) -> dict[str, Any]:
    record = cluster_of(call)
    association = _pod_identity(call, record)
    del record.pod_identities[association["associationId"]]
    return {"association": association}


HANDLERS: Handlers = {
    ("eks", "CreateAccessEntry"): create_access_entry,
    ("eks", "DescribeAccessEntry"): describe_access_entry,
    ("eks", "ListAccessEntries"): list_access_entries,
    ("eks", "UpdateAccessEntry"): update_access_entry,
    ("eks", "DeleteAccessEntry"): delete_access_entry,
    ("eks", "AssociateAccessPolicy"): associate_access_policy,
    ("eks", "ListAssociatedAccessPolicies"): list_associated_access_policies,
    ("eks", "DisassociateAccessPolicy"): disassociate_access_policy,
    ("eks", "CreatePodIdentityAssociation"): create_pod_identity_association,
    ("eks", "DescribePodIdentityAssociation"): describe_pod_identity_association,
    ("eks", "ListPodIdentityAssociations"): list_pod_identity_associations,
    ("eks", "UpdatePodIdentityAssociation"): update_pod_identity_association,
    ("eks", "DeletePodIdentityAssociation"): delete_pod_identity_association,
}

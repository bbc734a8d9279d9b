"""What the local EKS keeps of each cluster, and the lookups and errors that all of its calls share."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from localenv.aws.calls import AwsError, Call
from localenv.aws.moto_internals import ACCOUNT


@dataclass(slots=True)
class ClusterRecord:
    """One cluster with all that hangs on it, in EKS's own documents."""

    cluster: dict[str, Any]
    #: Availability zones of the subnets that it was created with.
    zones: frozenset[str] = frozenset()
    #: By add-on name.
    addons: dict[str, dict[str, Any]] = field(default_factory=dict)
    #: Access entries by principal ARN; their policies by principal ARN, then policy ARN.
    access_entries: dict[str, dict[str, Any]] = field(default_factory=dict)
    access_policies: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    #: By association id.
    pod_identities: dict[str, dict[str, Any]] = field(default_factory=dict)
    #: Ids of associations by the client request token that they were created with.
    pod_identity_tokens: dict[str, str] = field(default_factory=dict)
    #: By profile name.
    fargate_profiles: dict[str, dict[str, Any]] = field(default_factory=dict)
    #: By update id.
    updates: dict[str, dict[str, Any]] = field(default_factory=dict)
    #: Shifts away from a zone, by id.
    zonal_shifts: dict[str, dict[str, Any]] = field(default_factory=dict)

    def tagged_resources(self) -> dict[str, dict[str, Any]]:
        """Everything that carries tags, by its ARN."""
        found = {self.cluster["arn"]: self.cluster}
        found |= {document["addonArn"]: document for document in self.addons.values()}
        found |= {document["accessEntryArn"]: document for document in self.access_entries.values()}
        found |= {document["associationArn"]: document for document in self.pod_identities.values()}
        found |= {document["fargateProfileArn"]: document for document in self.fargate_profiles.values()}
        return found


def cluster_of(call: Call, parameter: str = "clusterName") -> ClusterRecord:
    """The cluster that a call names.

    Raises:
        AwsError: ResourceNotFoundException.
    """
    name = str(call.parameters.get(parameter))
    record: ClusterRecord | None = call.state.clusters.get(f"{call.region}/{name}")
    if record is None:
        raise not_found(f"No cluster found for name: {name}.")
    return record


def find(documents: Mapping[str, dict[str, Any]], key: object, message: str) -> dict[str, Any]:
    """The document of that key.

    Raises:
        AwsError: ResourceNotFoundException with the message.
    """
    if str(key) not in documents:
        raise not_found(message)
    return documents[str(key)]


def not_found(message: str) -> AwsError:
    return AwsError("ResourceNotFoundException", message, 404)


def in_use(message: str) -> AwsError:
    return AwsError("ResourceInUseException", message, 409)


def invalid(message: str) -> AwsError:
    return AwsError("InvalidParameterException", message, 400)


def now() -> datetime:
    return datetime.now(UTC)


def arn(call: Call, kind: str, *path: str) -> str:
    return ":".join(["arn:aws:eks", call.region, ACCOUNT, "/".join([kind, *path])])


def keep_update(
    record: ClusterRecord, kind: str, parameters: Mapping[str, object], *, addon: str | None = None
) -> dict[str, Any]:
    """Keep and answer an update that is over already; the first answer says InProgress as EKS's does."""
    identifier = str(uuid.uuid4())
    update = {
        "id": identifier,
        "status": "Successful",
        "type": kind,
        "params": [{"type": name, "value": str(value)} for name, value in parameters.items()],
        "createdAt": now(),
        "errors": [],
    }
    record.updates[identifier] = {**update, "addon": addon}
    return {"update": {**update, "status": "InProgress"}}

"""boto3 clients of one region, made once each, and what all AWS resources share.

`AwsEndpoint` is the little this package needs of the local AWS, so that any server
with an endpoint will do in tests.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

from localenv.pulumi.aws.replacement import FORCE_NEW
from localenv.pulumi.resources import Inputs, Resource

# No proxy: the local AWS listens on loopback. The pool is as wide as the provider has threads.
_CONFIG = Config(
    retries={"max_attempts": 2, "mode": "standard"},
    connect_timeout=5,
    read_timeout=60,
    proxies={},
    max_pool_connections=48,
)


#: Codes for what does not exist that do not say so by `NotFound`.
_GONE = frozenset(
    {
        "AWS.SimpleQueueService.NonExistentQueue",
        "InvalidAllocationID",
        "NatGatewayNotFound",
        "NoSuchEntity",
        "QueueDoesNotExist",
    }
)


class AwsEndpoint(Protocol):
    """An AWS to talk to."""

    @property
    def endpoint_url(self) -> str:
        """Where all services answer."""

    def session(self) -> boto3.Session:
        """A session with credentials and a region."""


class AwsClients:
    """The clients that handlers use; safe to use from many threads."""

    def __init__(self, aws: AwsEndpoint, region: str) -> None:
        self.region = region
        self._aws = aws
        self._session = aws.session()
        self._clients: dict[str, Any] = {}
        self._lock = threading.Lock()
        self._identity: dict[str, str] | None = None

    def client(self, service: str) -> Any:
        """The client of a service; making one takes a tenth of a second, so it is kept."""
        with self._lock:
            if service not in self._clients:
                self._clients[service] = self._session.client(
                    service,
                    endpoint_url=self._aws.endpoint_url,
                    region_name=self.region,
                    config=_CONFIG,
                )
            return self._clients[service]

    ec2 = property(lambda clients: clients.client("ec2"))
    iam = property(lambda clients: clients.client("iam"))
    eks = property(lambda clients: clients.client("eks"))
    sqs = property(lambda clients: clients.client("sqs"))
    events = property(lambda clients: clients.client("events"))
    ecr = property(lambda clients: clients.client("ecr"))

    def caller(self) -> Mapping[str, str]:
        """Account, ARN and user id of the credentials."""
        if self._identity is None:
            self._identity = self.client("sts").get_caller_identity()
        return self._identity

    @property
    def account(self) -> str:
        return self.caller()["Account"]

    @property
    def partition(self) -> str:
        return self.caller()["Arn"].split(":")[1]

    def close(self) -> None:
        """Close all connections."""
        for client in self._clients.values():
            client.close()


class AwsResource(Resource[AwsClients]):
    """A resource whose rule in `FORCE_NEW` says what it takes besides `required` and `in_place`."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if rule := FORCE_NEW.get(getattr(cls, "token", "")):
            cls.optional, cls.conditions = (rule.inputs | cls.in_place) - cls.required, rule.conditions


def error_code(error: ClientError) -> str:
    """AWS's code of an error, such as `InvalidVpcID.NotFound`."""
    return str(error.response.get("Error", {}).get("Code", ""))


def is_gone(error: ClientError) -> bool:
    """Whether the error says that what was asked for does not exist."""
    code = error_code(error)
    return "NotFound" in code or code in _GONE


def unless_gone(call: Callable[..., Any], **arguments: Any) -> Any:
    """The reply of a call, or None when what it is about does not exist."""
    try:
        return call(**arguments)
    except ClientError as error:
        if is_gone(error):
            return None
        raise


def tag_list(tags: Mapping[str, str] | None) -> list[dict[str, str]]:
    """Tags as EC2 and IAM take them."""
    return [{"Key": key, "Value": value} for key, value in (tags or {}).items()]


def changed_tags(
    old: Mapping[str, str] | None, new: Mapping[str, str] | None
) -> tuple[list[str], dict[str, str]]:
    """The keys to remove and the tags to set to get from one set of tags to another."""
    old, new = old or {}, new or {}
    removed = [key for key in old if key not in new]
    return removed, {key: value for key, value in new.items() if old.get(key) != value}


def retag(old: Inputs, new: Inputs, untag: Callable[..., Any], tag: Callable[..., Any], **of: str) -> None:
    """Give what `of` names the new tags, by calls that take `TagKeys`, and `Tags` as a list."""
    removed, added = changed_tags(old.get("tags"), new.get("tags"))
    if removed:
        untag(**of, TagKeys=removed)
    if added:
        tag(**of, Tags=tag_list(added))

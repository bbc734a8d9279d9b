"""What touches moto's private names, as `moto_instances` and `upstream` do; moto is pinned to 5.2.5 for it.

Everything else in this package speaks to moto as a client would: through `MotoServer.client`, a boto3
client whose requests go to moto's WSGI application inside this process. What cannot be said in AWS's own
words stands here:

* dispatching a WSGI request to moto, and parsing and rendering AWS's five wire protocols with moto's own
  code;
* attributes of an instance that no call can set (`SpotInstanceRequestId`, the `aws:` tags, the hypervisor);
* looking up who owns an access key.

`configure_environment` must run before this module is imported: moto reads its switches at import.
Next: `localenv.aws.gateway`, which decides what moto gets to see.
"""

from __future__ import annotations

import io
import json
import threading
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache
from typing import Any, cast
from urllib.parse import parse_qsl, urlsplit

import boto3
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.config import Config
from botocore.model import OperationModel as BotocoreOperationModel
from moto.core.exceptions import ServiceException
from moto.core.model import OperationModel
from moto.core.parse import PROTOCOL_PARSERS
from moto.core.serialize import XFormedAttributePicker, get_serializer_class
from moto.core.utils import get_service_model
from moto.ec2.models import ec2_backends
from moto.iam.models import iam_backends
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from moto.sts.models import sts_backends
from werkzeug.datastructures import MultiDict

from localenv.aws.upstream import filters, managed_policies, private_addresses, queue_policies, tag_lookup
from localenv.aws.upstream.filters import EveryFilter
from localenv.aws.upstream.managed_policies import PARTITION

for _gap in (filters, managed_policies, private_addresses, queue_policies, tag_lookup):
    _gap.patch()

#: moto's only account.
ACCOUNT = "123456789012"

RequestHandler = MotoRequestHandler
#: What moto raises; its code and message are AWS's.
MotoError = ServiceException

# Codes common to all services stand in no service's model; moto wonders about each of them.
warnings.filterwarnings("ignore", message=r"Exception\(_LocalError\) with code")


class _LocalError(ServiceException):
    """An error of ours. Of a module that is not moto's, so that only the called service's model is asked."""


@dataclass(frozen=True, slots=True)
class WireResponse:
    """An HTTP answer in AWS's wire format."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


class _RawBody(io.BytesIO):
    """The body of an `AWSResponse`, which wants urllib3's `stream`."""

    def stream(self, amount: int = 65536, **_: object) -> Iterator[bytes]:
        while chunk := self.read(amount):
            yield chunk


class MotoServer:
    """moto's server application, and boto3 clients that reach it without a socket."""

    def __init__(self, access_key: str, secret_key: str) -> None:
        self._application = DomainDispatcherApplication(create_backend_app)
        self._credentials: dict[str, Any] = {
            "aws_access_key_id": access_key,
            "aws_secret_access_key": secret_key,
        }
        self._clients: dict[tuple[str, str], Any] = {}
        #: moto's models are plain dicts: while one request walks through them, no other may change them.
        self._one_at_a_time = threading.RLock()

    def alone(self) -> threading.RLock:
        """A lock: as long as it is held, nobody else's request changes anything."""
        return self._one_at_a_time

    def dispatch(self, environ: dict[str, Any]) -> WireResponse:
        """Let moto answer one WSGI request; an exception of moto's comes through."""
        from werkzeug.test import run_wsgi_app  # noqa: PLC0415 - werkzeug's test helpers are slow to import

        # ReceiveMessage waits for messages, which nobody could send if it kept the others out.
        waits = "/sqs/aws4_request" in environ.get("HTTP_AUTHORIZATION", "")
        with nullcontext() if waits else self._one_at_a_time:
            chunks, status, headers = run_wsgi_app(self._application, environ, buffered=True)
        return WireResponse(int(status.split(" ", 1)[0]), tuple(headers), b"".join(chunks))

    def client(self, service: str, region: str) -> Any:
        """A boto3 client of moto itself: no recording, no faults, no authentication on the way."""
        key = (service, region)
        if key not in self._clients:
            session = boto3.Session(**self._credentials, region_name=region)
            client = session.client(
                cast("Any", service),
                endpoint_url="http://moto.local",
                config=Config(retries={"total_max_attempts": 1}, parameter_validation=False),
            )
            client.meta.events.register("before-send", self._send)
            self._clients[key] = client
        return self._clients[key]

    def tag(self, region: str, resource: str, tags: Mapping[str, str]) -> None:
        """Tag an EC2 resource, with AWS's reserved `aws:` keys too, which CreateTags refuses."""
        ec2_backends[ACCOUNT][region].create_tags([resource], dict(tags))

    def reset(self) -> None:
        """Forget every resource of every service."""
        self.dispatch(_environ("POST", "http://moto.local/moto-api/reset", {}, b""))

    def _send(self, request: AWSPreparedRequest, **_: object) -> AWSResponse:
        data = _bytes(request.body)
        headers = {k: _bytes(v).decode() for k, v in request.headers.items()}
        answer = self.dispatch(_environ(request.method, request.url, headers, data))
        return AWSResponse(
            request.url, answer.status, cast("Any", dict(answer.headers)), _RawBody(answer.body)
        )


def _bytes(body: Any) -> bytes:
    if body is None:
        return b""
    return bytes(body, "utf-8") if isinstance(body, str) else bytes(body)


def _environ(method: str, url: str, headers: Mapping[str, str], body: bytes) -> dict[str, Any]:
    from werkzeug.test import EnvironBuilder  # noqa: PLC0415 - werkzeug's test helpers are slow to import

    parts = urlsplit(url)
    builder = EnvironBuilder(
        method=method,
        base_url=f"{parts.scheme}://{parts.netloc}",
        path=parts.path or "/",
        query_string=parts.query,
        headers=list(headers.items()),
        data=body,
    )
    return builder.get_environ()


@cache
def operation_model(service: str, operation: str) -> OperationModel:
    """Moto's model of an operation.

    Raises:
        botocore.model.OperationNotFoundError: The service has no such operation.
    """
    model: OperationModel = get_service_model(service).operation_model(operation)
    return model


def parse_request(
    service: str, operation: str, *, method: str, path: str, query: str, body: bytes, uri: Mapping[str, str]
) -> dict[str, Any]:
    """The parameters of a request by the names of the API, whatever the wire protocol."""
    model = operation_model(service, operation)
    protocol = str(get_service_model(service).protocol)
    values = MultiDict(parse_qsl(query, keep_blank_values=True))
    if protocol in {"ec2", "query"}:
        values.update(parse_qsl(body.decode(), keep_blank_values=True))
    parser = PROTOCOL_PARSERS[protocol](model)
    request = {
        "method": method,
        "values": values,
        "query_string": values,
        "headers": {},
        "body": body,
        "url_path": path,
        "url_params": dict(uri),
    }
    return parser.parse(cast("Any", request))


def render(service: str, operation: str, result: object) -> WireResponse:
    """A successful answer in the service's wire protocol; one that is in it already stays as it is."""
    if isinstance(result, WireResponse):
        return result
    model = operation_model(service, operation)
    serializer = get_serializer_class(service, str(get_service_model(service).protocol))(
        operation_model=model, pretty_print=False, value_picker=XFormedAttributePicker()
    )
    return _wire(serializer.serialize(result))


def render_error(service: str, operation: str | None, code: str, message: str, status: int) -> WireResponse:
    """An error answer in the service's wire protocol."""
    service_model = get_service_model(service)
    try:
        model = operation_model(service, operation or "")
    except Exception:
        model = OperationModel(cast("Any", {}), service_model)
    serializer = get_serializer_class(service, str(service_model.protocol))(
        operation_model=model, pretty_print=False
    )
    wire = _wire(serializer.serialize(_LocalError(code, message)))
    return WireResponse(status, wire.headers, wire.body)


def _wire(serialized: Any) -> WireResponse:
    body = serialized["body"]
    data = body.encode() if isinstance(body, str) else bytes(body or b"")
    headers = tuple((str(k), str(v)) for k, v in serialized["headers"].items())
    return WireResponse(int(serialized["status_code"]), headers, data)


def principal_of(access_key: str) -> str | None:
    """The ARN behind an access key that moto has handed out; `None` when it has not."""
    keys = iam_backends[ACCOUNT][PARTITION].access_keys
    if access_key not in keys:
        return None
    if session := session_of(access_key):
        return session[1]
    user = keys[access_key].user_name
    return f"arn:{PARTITION}:iam::{ACCOUNT}:user/{user}" if user else f"arn:{PARTITION}:iam::{ACCOUNT}:root"


def inline_policies_of(role: str) -> list[Any]:
    """The inline policies of a role, as documents; none of a role that is not there."""
    found = [each for each in list(iam_backends[ACCOUNT][PARTITION].roles.values()) if each.name == role]
    return [json.loads(text) for each in found for text in list(each.policies.values())]


def session_of(access_key: str) -> tuple[str, str] | None:
    """User id and ARN of the role session that an access key belongs to."""
    session = sts_backends[ACCOUNT][PARTITION].get_assumed_role_from_access_key(access_key)
    return (str(session.user_id), str(session.arn)) if session else None


def annotate_instance(
    region: str, instance_id: str, *, attributes: Mapping[str, object], tags: Mapping[str, str]
) -> None:
    """Set what no call can set on an instance: attributes in moto's spelling (snake case) and reserved tags.

    Its interfaces end with it, as those that EC2 makes at launch do.
    """
    instance: Any = ec2_backends[ACCOUNT][region].get_instance(instance_id)
    for name, value in attributes.items():
        setattr(instance, name, value)
    instance.add_tags(dict(tags))
    for interface in instance.nics.values():
        interface.delete_on_termination = True
        interface.private_dns_name = instance.private_dns_name


def give_profile(region: str, instance_ids: Iterable[str], profile: Mapping[str, str]) -> None:
    """Give instances their profile, which moto does for the first of a request alone; a call takes long."""
    backend = ec2_backends[ACCOUNT][region]
    for instance_id in instance_ids:
        backend.associate_iam_instance_profile(instance_id, profile.get("Name"), profile.get("Arn"))


def set_volume_performance(region: str, instance_id: str, device: str, ebs: Mapping[str, Any]) -> None:
    """Give a volume of an instance the type, IOPS and throughput that it was asked for."""
    backend = ec2_backends[ACCOUNT][region]
    attached: Any = backend.get_instance(instance_id).block_device_mapping.get(device)
    if attached is None:
        return
    volume: Any = backend.volumes[attached.volume_id]
    volume.volume_type = ebs.get("VolumeType") or volume.volume_type
    for name, attribute in (("Iops", "iops"), ("Throughput", "throughput")):
        if ebs.get(name):
            setattr(volume, attribute, int(ebs[name]))


def set_volume_sizes(region: str, instance_id: str, size: int) -> None:
    """Give the volumes of an instance that nobody described the size of its image's, GiB."""
    backend = ec2_backends[ACCOUNT][region]
    attached: Any = backend.get_instance(instance_id).block_device_mapping
    for each in attached.values():
        backend.volumes[each.volume_id].size = size


def instance_ids(region: str) -> set[str]:
    """The ids of all instances, those that have ended too."""
    return {
        str(instance.id)
        for reservation in ec2_backends[ACCOUNT][region].reservations.values()
        for instance in reservation.instances
    }


def give_public_address(region: str, instance_id: str, *, given: bool) -> None:
    """Give the first interface of an instance a public address, or none, whatever its subnet says."""
    instance: Any = ec2_backends[ACCOUNT][region].get_instance(instance_id)
    interface = instance.nics[0]
    interface.public_ip_auto_assign = given
    interface.public_ip = None
    interface.check_auto_public_ip()


def instance_type_records(
    region: str, names: list[str], filters: Iterable[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Moto's instance types as DescribeInstanceTypes gives them; over its XML the whole list takes seconds.

    Raises:
        moto.core.exceptions.ServiceException: An unknown type or filter.
    """
    found = ec2_backends[ACCOUNT][region].describe_instance_types(names, EveryFilter(filters))
    return [dict(record) for record in found]


def instance_type_offerings(
    region: str, location_type: str | None, filters: Iterable[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Moto's offerings as DescribeInstanceTypeOfferings gives them."""
    found = ec2_backends[ACCOUNT][region].describe_instance_type_offerings(
        location_type, EveryFilter(filters)
    )
    return [dict(row) for row in found]


def operations(service: str) -> list[BotocoreOperationModel]:
    """Every operation of a service."""
    model = get_service_model(service)
    return [model.operation_model(name) for name in model.operation_names]

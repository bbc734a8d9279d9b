"""What an answer of AWS must hold to count as one: its form, and the members that nothing works without.

botocore takes much for an answer: to its parsers the HTML page of a proxy is an EC2 answer in which every
list is missing, and a cut JSON document has no members. Kept by a cache, such an answer would mean for an
hour that nothing can be had; bought by it, an instance would bear an id that EC2 never gave. So each answer
passes here before anybody sees it, those to botocore's own calls for credentials among them. What is refused
is tried again by whoever asked, and kept by nobody.

Entries of long lists whose readers pass over what they cannot read (instance types, offerings, prices) are
not looked at here: one of them may be new, and says nothing against the others.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any

Check = Callable[[Any], bool]

#: Beginning of a document, after declarations and comments, up to the name of its root.
_ROOT = re.compile(rb"\A(?:\xef\xbb\xbf)?\s*(?:<[?!][^>]*>\s*)*<(?:[\w.-]+:)?([\w.-]+)")
#: Bytes of an answer that are looked at for its root.
_BEGINNING = 1024
#: What a value is shown as in an error.
_SHOWN = 60
#: Key in a call's context: its answer was judged.
_JUDGED = "nodeless_answer_judged"
_XML = frozenset({"ec2", "query", "rest-xml"})


class UnreadableAnswerError(ValueError):
    """An answer that is not in AWS's form, or lacks what it must hold."""


def _matches(pattern: str) -> Check:
    compiled = re.compile(pattern)
    return lambda value: isinstance(value, str) and compiled.fullmatch(value) is not None


def _id(prefix: str) -> Check:
    return _matches(rf"{prefix}-[0-9A-Za-z-]{{1,64}}")


_LIST: Check = lambda value: isinstance(value, list)  # noqa: E731
_TIME: Check = lambda value: isinstance(value, datetime)  # noqa: E731
_NUMBER: Check = lambda value: isinstance(value, int) and not isinstance(value, bool)  # noqa: E731
_TEXT = _matches(r"[\x20-\x7e]{1,2048}")
_NAME = _matches(r"[\w+=,.@-]{1,128}")
#: Zones, with those of Local Zones and Wavelength (`us-west-2-lax-1a`, `us-east-1-wl1-bos-wlz-1`).
_ZONE = _matches(r"[a-z]+-[a-z0-9-]*\d[a-z0-9-]*")
_TYPE = _matches(r"[a-z][a-z0-9-]*\.[a-z0-9-]+")
_STATE = _matches("pending|running|shutting-down|terminated|stopping|stopped")
_KEY = _matches(r"[A-Za-z0-9]{16,128}")
_SECRET = _matches(r"[A-Za-z0-9/+=]{16,4096}")
_VERSION = _matches(r"\d+\.\d+")
_URL = _matches(r"https?://[\x21-\x7e]+")
_BASE64 = _matches(r"[A-Za-z0-9+/=\s]{4,}")
_NETWORK = _matches(r"[0-9a-fA-F.:]+/\d{1,3}")

#: By service and operation the paths that an answer must have, each with what stands there. `[]` is each
#: entry of a list; a path whose last name ends with `?` may be missing.
_REQUIRED: Mapping[tuple[str, str], Mapping[str, Check]] = {
    ("arc-zonal-shift", "GetManagedResource"): {
        "zonalShifts[].appliedStatus": _TEXT,
        "zonalShifts[].awayFrom": _TEXT,
        "zonalShifts[].expiryTime": _TIME,
    },
    ("ec2", "CreateFleet"): {
        "Instances[].InstanceType": _TYPE,
        "Instances[].InstanceIds": _LIST,
        "Instances[].InstanceIds[]": _id("i"),
        "Instances[].LaunchTemplateAndOverrides.Overrides.AvailabilityZone": _ZONE,
        "Instances[].LaunchTemplateAndOverrides.Overrides.SubnetId": _id("subnet"),
        "Errors[].ErrorCode": _TEXT,
    },
    ("ec2", "DescribeCapacityReservations"): {
        "CapacityReservations": _LIST,
        "CapacityReservations[].CapacityReservationId": _id("cr"),
        "CapacityReservations[].InstanceType": _TYPE,
        "CapacityReservations[].AvailabilityZone": _ZONE,
        "CapacityReservations[].AvailableInstanceCount": _NUMBER,
    },
    ("ec2", "DescribeImages"): {"Images": _LIST, "Images[].ImageId": _id("ami")},
    ("ec2", "DescribeInstanceStatus"): {
        "InstanceStatuses": _LIST,
        "InstanceStatuses[].InstanceId": _id("i"),
    },
    ("ec2", "DescribeInstanceTypeOfferings"): {"InstanceTypeOfferings": _LIST},
    ("ec2", "DescribeInstanceTypes"): {"InstanceTypes": _LIST},
    ("ec2", "DescribeInstances"): {
        "Reservations": _LIST,
        "Reservations[].Instances": _LIST,
        "Reservations[].Instances[].InstanceId": _id("i"),
        "Reservations[].Instances[].InstanceType": _TYPE,
        "Reservations[].Instances[].LaunchTime": _TIME,
        "Reservations[].Instances[].Placement.AvailabilityZone": _ZONE,
        "Reservations[].Instances[].State.Name": _STATE,
        "Reservations[].Instances[].Tags[].Key": lambda value: isinstance(value, str),
        "Reservations[].Instances[].Tags[].Value": lambda value: isinstance(value, str),
    },
    ("ec2", "DescribeLaunchTemplates"): {
        "LaunchTemplates": _LIST,
        "LaunchTemplates[].LaunchTemplateName": _TEXT,
    },
    ("ec2", "DescribeNetworkInterfaces"): {
        "NetworkInterfaces": _LIST,
        "NetworkInterfaces[].NetworkInterfaceId": _id("eni"),
    },
    ("ec2", "DescribePlacementGroups"): {
        "PlacementGroups": _LIST,
        "PlacementGroups[].GroupId": _id("pg"),
        "PlacementGroups[].GroupName": _TEXT,
        "PlacementGroups[].State": _TEXT,
        "PlacementGroups[].Strategy": _matches("cluster|partition|spread"),
    },
    ("ec2", "DescribeSecurityGroups"): {"SecurityGroups": _LIST, "SecurityGroups[].GroupId": _id("sg")},
    ("ec2", "DescribeSpotPriceHistory"): {"SpotPriceHistory": _LIST},
    ("ec2", "DescribeSubnets"): {
        "Subnets": _LIST,
        "Subnets[].SubnetId": _id("subnet"),
        "Subnets[].AvailabilityZone": _ZONE,
        "Subnets[].AvailabilityZoneId?": _matches(r"[a-z0-9-]*\d[a-z0-9-]*"),
        "Subnets[].AvailableIpAddressCount": lambda value: _NUMBER(value) and value >= 0,
    },
    ("ec2", "TerminateInstances"): {
        "TerminatingInstances": _LIST,
        "TerminatingInstances[].InstanceId": _id("i"),
        "TerminatingInstances[].CurrentState.Name": _STATE,
    },
    ("eks", "DescribeCluster"): {
        "cluster.arn": _matches(r"arn:[\w-]+:eks:.+"),
        "cluster.certificateAuthority.data": _BASE64,
        "cluster.endpoint": _URL,
        "cluster.kubernetesNetworkConfig.serviceIpv4Cidr?": _NETWORK,
        "cluster.kubernetesNetworkConfig.serviceIpv6Cidr?": _NETWORK,
        "cluster.version": _VERSION,
    },
    ("iam", "CreateInstanceProfile"): {
        "InstanceProfile.InstanceProfileName": _NAME,
        "InstanceProfile.Path": _matches("/|/[\x21-\x7e]+/"),
    },
    ("iam", "GetInstanceProfile"): {
        "InstanceProfile.InstanceProfileName": _NAME,
        "InstanceProfile.Path": _matches("/|/[\x21-\x7e]+/"),
        "InstanceProfile.Roles": _LIST,
        "InstanceProfile.Roles[].RoleName": _NAME,
    },
    ("iam", "ListInstanceProfiles"): {
        "InstanceProfiles": _LIST,
        "InstanceProfiles[].InstanceProfileName": _NAME,
        "InstanceProfiles[].Path": _matches("/|/[\x21-\x7e]+/"),
    },
    ("pricing", "GetProducts"): {"PriceList": _LIST},
    ("sqs", "GetQueueUrl"): {"QueueUrl": _URL},
    ("sqs", "ReceiveMessage"): {"Messages[].ReceiptHandle": bool},
    ("ssm", "GetParameter"): {"Parameter.Value": _TEXT},
    **{
        ("sts", operation): {
            "Credentials.AccessKeyId": _KEY,
            "Credentials.SecretAccessKey": _SECRET,
            "Credentials.SessionToken": lambda value: isinstance(value, str) and len(value) >= 16,
            "Credentials.Expiration": _TIME,
        }
        for operation in ("AssumeRole", "AssumeRoleWithWebIdentity")
    },
}


def assert_form(protocol: str, operation: str, body: bytes, *, speaks: bool) -> None:
    """The document of a successful answer is one of AWS's.

    Args:
        protocol: As botocore's model of the service names it: `ec2`, `query`, `json`, `rest-json`.
        operation: Of the call.
        body: The document.
        speaks: Whether the operation's answers have members.

    Raises:
        UnreadableAnswerError: It is not.
    """
    if protocol in _XML:
        found = _ROOT.match(body[:_BEGINNING])
        name = found[1].decode() if found is not None else ""
        if name != f"{operation}Response":
            raise UnreadableAnswerError(f"its document is {_shorten(name)}, not {operation}Response")
    elif speaks and body.strip()[:1] != b"{":
        raise UnreadableAnswerError(
            f"its document begins with {_shorten(body[:20].decode('utf-8', 'replace'))}"
        )


def assert_complete(service: str, operation: str, answer: Any) -> None:
    """A parsed answer has what it must have, in the form that it must have.

    Raises:
        UnreadableAnswerError: Names the first place that has not.
    """
    for path, check in _REQUIRED.get((service, operation), {}).items():
        for place, value, given in _values(answer, path.split("."), ""):
            if not given:
                if not path.endswith("?"):
                    raise UnreadableAnswerError(f"it has no {place}")
            elif not check(value):
                raise UnreadableAnswerError(f"{place} is {_shorten(value)}")


def _values(node: Any, path: list[str], place: str) -> Iterator[tuple[str, Any, bool]]:
    """Places of a path with what stands there, and whether anything does. A missing list has no entries."""
    name = path[0].rstrip("?").removesuffix("[]")
    here = f"{place}.{name}".lstrip(".")
    if not isinstance(node, Mapping):
        yield here, node, False
        return
    value = node.get(name)
    if path[0].endswith("[]"):
        if name in node and not isinstance(value, list):
            raise UnreadableAnswerError(f"{here} is {_shorten(value)}")
        for number, entry in enumerate(value or ()):
            if len(path) == 1:
                yield f"{here}[{number}]", entry, True
            else:
                yield from _values(entry, path[1:], f"{here}[{number}]")
    elif len(path) == 1:
        yield here, value, value is not None
    elif value is not None or not path[-1].endswith("?"):
        yield from _values(value, path[1:], here)


def _shorten(value: Any) -> str:
    text = repr(value) if not isinstance(value, str) else f'"{value}"'
    text = text.encode("ascii", "backslashreplace").decode()
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def check_answer(
    http_response: Any, parsed: Any, model: Any, context: dict[str, Any] | None = None, **_: Any
) -> None:
    """Refuse a successful answer that is none; a handler of botocore's event `after-call`.

    An answer that passed is noted in the call's context, and not judged again.

    Raises:
        UnreadableAnswerError: Out of the call, in place of its answer.
    """
    if http_response.status_code >= 300 or (context or {}).get(_JUDGED):
        return
    metadata = model.service_model.metadata
    shape = model.output_shape
    speaks = shape is not None and bool(shape.members)
    assert_form(metadata.get("protocol", ""), model.name, http_response.content, speaks=speaks)
    assert_complete(model.service_model.service_name, model.name, parsed)
    if context is not None:
        context[_JUDGED] = True

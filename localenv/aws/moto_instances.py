"""What DescribeInstances shows of each instance, asked of moto once until a call may have changed it.

Moto and botocore take some four milliseconds for each instance that is shown: two seconds for five hundred,
which the simulated kubelets and the controller ask for again and again. Which instances a call chooses is
moto's decision each time; how one looks is remembered, as data and as XML. Like `moto_internals` it touches
moto's private names. Next: `ec2_describe`, which adds what moto knows nothing of.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from moto.core.responses import BaseResponse
from moto.ec2.models import ec2_backends
from moto.ec2.responses._base_response import EC2BaseResponse

from localenv.aws.calls import AwsError, Call
from localenv.aws.moto_internals import ACCOUNT, MotoServer, WireResponse, render
from localenv.aws.upstream.filters import EveryFilter

_READING = ("Describe", "Get", "List", "Search")
#: Calls that change no instance but those that they name.
_NAMING = frozenset(
    {
        *("CreateFleet", "CreateLaunchTemplate", "CreateTags", "DeleteLaunchTemplate", "DeleteTags"),
        *("RunInstances", "StartInstances", "StopInstances", "TerminateInstances"),
    }
)
_INSTANCE = re.compile(r"\bi-[0-9a-f]+")
_AT_ONCE = 100
_LIST = re.compile(r"(.*<reservationSet>)(.*)(</reservationSet>.*)", re.DOTALL)

#: By instance id: its reservation without the instances, and itself.
_known: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {}
#: By reservation id: what was rendered, and how.
_rendered: dict[str, tuple[dict[str, Any], str]] = {}


def forget(instance_ids: Iterable[str]) -> None:
    """These instances may have changed."""
    for each in instance_ids:
        _known.pop(each, None)


def _forget_what_changes(action: str, parameters: object) -> None:
    if action in _NAMING:
        forget(_INSTANCE.findall(str(parameters)))
    elif not action.startswith(_READING):
        _known.clear()


_answer = BaseResponse.call_action


def _call_action(self: Any) -> Any:
    try:
        return _answer(self)
    finally:
        _forget_what_changes(self._get_action(), self.data)


setattr(EC2BaseResponse, "call_action", _call_action)  # noqa: B010 - mypy forbids assigning a method


def choose_page(call: Call) -> tuple[list[dict[str, Any]], str | None]:
    """The reservations of one page of DescribeInstances with their instances, and the next page's token.

    Raises:
        AwsError, moto.core.exceptions.ServiceException: An unknown instance, token or combination.
    """
    parameters = call.parameters
    if parameters.get("InstanceIds") and parameters.get("MaxResults"):
        message = "The parameter instancesSet cannot be used with the parameter maxResults"
        raise AwsError("InvalidParameterCombination", message)
    with call.moto.alone():
        groups = list(_groups(call.region, parameters.get("InstanceIds"), parameters.get("Filters") or ()))
        most, token = int(parameters.get("MaxResults") or _AT_ONCE), parameters.get("NextToken")
        names = [name for name, _ in groups]
        if token and token not in names:
            raise AwsError("InvalidNextToken", f"The token '{token}' is invalid")
        start = names.index(token) + 1 if token else 0
        page = groups[start : start + most]
        _learn(call.moto, call.region, [each for _, ids in page for each in ids if each not in _known])
        shown = [
            {**_known[ids[0]][0], "Instances": [dict(_known[each][1]) for each in ids]}
            for _, ids in page
            if ids
        ]
    return shown, page[-1][0] if len(groups) > start + most else None


def records(moto: MotoServer, region: str, ids: list[str] | None = None) -> list[dict[str, Any]]:
    """Every instance, or those with these ids, as DescribeInstances shows it.

    Raises:
        moto.core.exceptions.ServiceException: An unknown instance.
    """
    with moto.alone():
        found = [each for _, group in _groups(region, ids) for each in group]
        _learn(moto, region, [each for each in found if each not in _known])
        return [dict(_known[each][1]) for each in found]


def _groups(
    region: str, ids: list[str] | None, wanted: Iterable[Mapping[str, Any]] = ()
) -> Iterator[tuple[str, list[str]]]:
    """Reservation ids with the ids of those of their instances that are chosen."""
    backend, filters = ec2_backends[ACCOUNT][region], EveryFilter(wanted)
    found = (
        backend.get_reservations_by_instance_ids(ids, filters=filters)
        if ids
        else backend.describe_instances(filters=filters)
    )
    for reservation in found:
        yield str(reservation.id), [str(instance.id) for instance in reservation.instances]


def _learn(moto: MotoServer, region: str, ids: list[str]) -> None:
    for start in range(0, len(ids), _AT_ONCE):
        answer = moto.client("ec2", region).describe_instances(InstanceIds=ids[start : start + _AT_ONCE])
        for reservation in answer["Reservations"]:
            head = {name: value for name, value in reservation.items() if name != "Instances"}
            _known.update({instance["InstanceId"]: (head, instance) for instance in reservation["Instances"]})


def render_answer(
    reservations: Iterable[dict[str, Any]], token: str | None
) -> WireResponse | Mapping[str, Any]:
    """An answer of DescribeInstances; reservations that look as they did are not rendered again."""
    documents = list(reservations)
    more = {"NextToken": token} if token else {}
    if not documents:
        return {"Reservations": [], **more}
    whole = _render(documents[:1], more)
    outer = _LIST.fullmatch(whole.body.decode())
    assert outer is not None, "moto renders a list of reservations in one element"
    items = "".join(map(_item, documents))
    return WireResponse(whole.status, whole.headers, f"{outer[1]}{items}{outer[3]}".encode())


def _item(document: dict[str, Any]) -> str:
    before = _rendered.get(document["ReservationId"])
    if before is not None and before[0] == document:
        return before[1]
    outer = _LIST.fullmatch(_render([document], {}).body.decode())
    assert outer is not None, "moto renders a list of reservations in one element"
    _rendered[document["ReservationId"]] = (document, outer[2])
    return outer[2]


def _render(documents: list[dict[str, Any]], more: Mapping[str, Any]) -> WireResponse:
    return render("ec2", "DescribeInstances", {"Reservations": documents, **more})

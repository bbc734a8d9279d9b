"""The control endpoints under `/nodeless/`: the cluster's identity, recorded calls, faults, reset.

* `GET health` answers once the server serves;
* `POST cluster` takes `{endpoint, certificateAuthorityData, issuer, jwks?, serviceAccountKey?}`, the
  control plane with which EKS clusters answer and the key that proves its tokens;
* `GET calls` and `DELETE calls`: the calls made so far, each with service, action, principal, time, status,
  parameters, and error when refused;
* `GET instances`: every instance as EC2 holds it, in the form of DescribeInstances; no fault hides any, and
  the question is not recorded as a call;
* `GET reboots`: how often each instance was rebooted, by id;
* `GET faults` and `PUT faults`: `{capacity, quotas, errors, throttle, unreachable, impaired, scheduled,
  consistency, profiles, boot, delay, lost, garbled}`, what is left out is off.
  `capacity` is a list of `{instanceType?, zone?, capacityType?, remaining?, code?}`: pools that can give so
  many instances more (default 0), and what EC2 says then (default: insufficient capacity); `quotas` maps
  capacity types to the vCPUs that may run; `errors` maps actions to `{code, message?, status?, times?}` with
  which they are refused, `times` calls long or always; `consistency` is for how many seconds nobody sees a
  new instance, `profiles` for how many EC2 does not know a new instance profile; `throttle` is a number of
  calls to refuse; `unreachable` drops connections;
  `impaired` lists instance ids, or maps them to the seconds for which their checks have failed; `scheduled`
  maps ids to codes of events (`instance-stop`); `boot` is a list of `{instanceType?, zone?, seconds?,
  outcome?, lostDevices?}`: new instances take so much longer, and join (`joins`, the default), never join
  (`never`) or are ended by EC2 (`terminated`), and each driver of devices finds so many fewer on them;
  `delay` maps actions to seconds by which their answers come late, after what was asked for has been done;
  `lost` maps actions to how many of their answers to come never arrive, though what was asked for has been
  done; `garbled` is `{chance, seed?, principal?, actions?}`: this part of the answers arrives changed
  (`localenv.aws.garbling`), of all or of those to some principal or actions;
* `POST interruptions` takes `{instanceId, kind?, state?, after?, region?}` and sends the warning to the event
  bus: `kind` is `spot` (the default; the instance goes `after` seconds later, or 120), `rebalance`,
  `scheduled-change`, `state-change` (to `state`) or `reservation`;
* `POST capacity-reservations` takes `{instanceType, zone, count?, kind?, endsIn?, tags?, tenancy?, platform?,
  owner?}` and makes a reservation, active at once, that ends after so many seconds: `kind` is
  `capacity-block` (the default), `interruptible` or `default`;
* `POST addresses` takes `{reusedAtOnce}`: whether a new instance gets the address of one that has just ended,
  as hardly ever on EC2;
* `POST reset` forgets everything: resources, faults, calls, the cluster.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from localenv.aws import moto_instances
from localenv.aws.interruptions import interrupt
from localenv.aws.moto_internals import MotoServer, WireResponse
from localenv.aws.state import (
    BOOT_OUTCOMES,
    BootFault,
    CallFault,
    CapacityFault,
    ClusterIdentity,
    Faults,
    GarbledFault,
    LocalState,
)
from localenv.aws.upstream import capacity_reservations
from localenv.aws.upstream.private_addresses import Addresses

PREFIX = "/nodeless/"


def answer(state: LocalState, moto: MotoServer, method: str, path: str, body: bytes) -> WireResponse:
    """Answer one control request."""
    try:
        document: Any = json.loads(body) if body else {}
        if not isinstance(document, dict):
            return _json(400, {"error": "the body must be a JSON object"})
        return _dispatch(state, moto, (method, path.removeprefix(PREFIX).rstrip("/")), document)
    except (KeyError, TypeError, ValueError) as error:
        return _json(400, {"error": f"{method} {path}: {type(error).__name__}: {error}"})


def _dispatch(
    state: LocalState, moto: MotoServer, request: tuple[str, str], document: Mapping[str, Any]
) -> WireResponse:
    match request:
        case ("POST", "cluster"):
            state.cluster = ClusterIdentity(
                endpoint=document["endpoint"],
                certificate_authority_data=document["certificateAuthorityData"],
                issuer=document["issuer"],
                jwks=document.get("jwks"),
                service_account_key=document.get("serviceAccountKey"),
            )
            return _json(200, {})
        case ("DELETE", "calls"):
            state.calls.clear()
            return _json(200, {})
        case ("GET", name):
            return _show(state, moto, name)
        case ("PUT", "faults"):
            state.faults = _faults(document)
            return _json(200, _faults_document(state.faults))
        case ("POST", "interruptions"):
            return _json(200, interrupt(state, moto, document))
        case ("POST", "capacity-reservations"):
            return _json(200, capacity_reservations.make(state, moto, document))
        case ("POST", "addresses"):
            Addresses.reused_at_once = bool(document["reusedAtOnce"])
            return _json(200, {})
        case ("POST", "reset"):
            with state.lock:
                Addresses.reused_at_once = False
                moto.reset()
                state.reset()
            return _json(200, {})
        case _:
            return _json(404, {"error": f"no control endpoint {request[0]} {PREFIX}{request[1]}"})


def _show(state: LocalState, moto: MotoServer, name: str) -> WireResponse:
    match name:
        case "health":
            return _json(200, {"status": "ok", "region": state.region})
        case "calls":
            return _json(200, {"calls": list(state.calls)})
        case "instances":
            return _json(200, {"instances": moto_instances.records(moto, state.region)})
        case "reboots":
            return _json(200, {"reboots": dict(state.reboots)})
        case "faults":
            return _json(200, _faults_document(state.faults))
        case _:
            return _json(404, {"error": f"no control endpoint GET {PREFIX}{name}"})


def _faults(document: Mapping[str, Any]) -> Faults:
    unknown = set(document) - {field.name for field in fields(Faults)}
    if unknown:
        raise ValueError(f"unknown faults {sorted(unknown)}")
    return Faults(
        capacity=tuple(_pool(each) for each in document.get("capacity", [])),
        throttle=int(document.get("throttle", 0)),
        unreachable=bool(document.get("unreachable", False)),
        impaired=_read_impairment(document.get("impaired", [])),
        scheduled={str(name): str(code) for name, code in document.get("scheduled", {}).items()},
        errors={str(action): CallFault(**fault) for action, fault in document.get("errors", {}).items()},
        quotas={str(kind): int(cpus) for kind, cpus in document.get("quotas", {}).items()},
        consistency=float(document.get("consistency", 0)),
        profiles=float(document.get("profiles", 0)),
        boot=tuple(_boot(each) for each in document.get("boot", [])),
        delay={str(action): float(seconds) for action, seconds in document.get("delay", {}).items()},
        lost={str(action): int(times) for action, times in document.get("lost", {}).items()},
        garbled=_read_garbled_fault(document.get("garbled", {})),
    )


def _read_garbled_fault(given: Mapping[str, Any]) -> GarbledFault:
    actions = tuple(map(str, given.get("actions", ())))
    return GarbledFault(**{**given, "actions": actions})


def _pool(pool: Mapping[str, Any]) -> CapacityFault:
    strange = set(pool) - {"instanceType", "zone", "capacityType", "remaining", "code"}
    if strange:
        raise ValueError(f"unknown fields {sorted(strange)} of a capacity fault")
    names = (pool.get("instanceType"), pool.get("zone"), pool.get("capacityType"))
    return CapacityFault(*names, remaining=int(pool.get("remaining", 0)), code=str(pool.get("code", "")))


def _read_impairment(given: Any) -> dict[str, float | None]:
    if isinstance(given, Mapping):
        return {str(name): time.time() - float(seconds) for name, seconds in given.items()}
    return dict.fromkeys(map(str, given))


def _boot(boot: Mapping[str, Any]) -> BootFault:
    strange = set(boot) - {"instanceType", "zone", "seconds", "outcome", "lostDevices"}
    if strange:
        raise ValueError(f"unknown fields {sorted(strange)} of a boot fault")
    outcome = str(boot.get("outcome", BOOT_OUTCOMES[0]))
    if outcome not in BOOT_OUTCOMES:
        raise ValueError(f"unknown outcome {outcome!r} of a boot; one of {', '.join(BOOT_OUTCOMES)}")
    late, lost = float(boot.get("seconds", 0)), int(boot.get("lostDevices", 0))
    return BootFault(boot.get("instanceType"), boot.get("zone"), late, outcome, lost)


def _faults_document(faults: Faults) -> dict[str, Any]:
    return {
        "capacity": [
            {
                "instanceType": f.instance_type,
                "zone": f.zone,
                "capacityType": f.capacity_type,
                "remaining": f.remaining,
                "code": f.code,
            }
            for f in faults.capacity
        ],
        "throttle": faults.throttle,
        "unreachable": faults.unreachable,
        "impaired": faults.impaired,
        "scheduled": faults.scheduled,
        "errors": {action: asdict(fault) for action, fault in faults.errors.items()},
        "quotas": faults.quotas,
        "consistency": faults.consistency,
        "profiles": faults.profiles,
        "boot": [
            {
                "instanceType": f.instance_type,
                "zone": f.zone,
                "seconds": f.seconds,
                "outcome": f.outcome,
                "lostDevices": f.lost_devices,
            }
            for f in faults.boot
        ],
        "delay": faults.delay,
        "lost": faults.lost,
        "garbled": asdict(faults.garbled),
    }


def _json(status: int, document: object) -> WireResponse:
    body = json.dumps(document, default=str).encode()
    return WireResponse(status, (("Content-Type", "application/json"),), body)

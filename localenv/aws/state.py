"""What the local AWS remembers besides moto: recorded calls, faults switched on, the cluster it stands for.

Guarded by one lock; `reset` brings back the beginning.
"""

from __future__ import annotations

import itertools
import threading
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any

#: So many calls are remembered; older ones are dropped.
CALLS_KEPT = 20_000
#: What `reset` leaves: answers that never change, and the counts from which garbled answers are drawn.
_LEFT = frozenset({"rendered", "garbled_calls"})


@dataclass(frozen=True, slots=True)
class ClusterIdentity:
    """The control plane behind every EKS cluster of this AWS.

    `jwks` is the JSON Web Key Set of the issuer, `service_account_key` the same key as PEM: either proves
    tokens.
    """

    endpoint: str
    certificate_authority_data: str
    issuer: str
    jwks: dict[str, Any] | None = None
    service_account_key: str | None = None


@dataclass(slots=True)
class CapacityFault:
    """A capacity pool that is short; a field that is `None` matches everything."""

    instance_type: str | None = None
    zone: str | None = None
    capacity_type: str | None = None
    #: Instances it can still give.
    remaining: int = 0
    #: What EC2 says when it gives no more; empty: insufficient capacity.
    code: str = ""

    def matches(self, instance_type: str, zone: str, capacity_type: str) -> bool:
        wanted = ((self.instance_type, instance_type), (self.zone, zone), (self.capacity_type, capacity_type))
        return all(expected is None or expected == actual for expected, actual in wanted)


#: What becomes of an instance: it joins; it runs and never joins; EC2 ends it.
BOOT_OUTCOMES = ("joins", "never", "terminated")


@dataclass(frozen=True, slots=True)
class BootFault:
    """How instances come up; a field that is `None` matches everything."""

    instance_type: str | None = None
    zone: str | None = None
    #: Seconds beyond the usual time until it joins or is ended.
    seconds: float = 0.0
    outcome: str = "joins"
    #: So many of the devices of each driver are not there.
    lost_devices: int = 0

    def matches(self, instance_type: str, zone: str) -> bool:
        return self.instance_type in (None, instance_type) and self.zone in (None, zone)


#: Codes that a call gets for who makes it, how often, and with what does not go together.
_OF_CALLERS = frozenset({"AuthFailure", "InvalidParameter", "RequestLimitExceeded", "UnauthorizedOperation"})


@dataclass(slots=True)
class CallFault:
    """An action that is refused."""

    code: str
    message: str = ""
    status: int = 400
    #: So many calls to come; `None`: every one.
    times: int | None = None

    @property
    def meets_dry_runs(self) -> bool:
        """A dry run finds out what may be called, and whether EC2 answers; not what would become of it."""
        return self.status >= 500 or self.code in _OF_CALLERS


@dataclass(slots=True)
class GarbledFault:
    """Answers that arrive garbled (`localenv.aws.garbling`)."""

    #: Of how many answers, 0 to 1.
    chance: float = 0.0
    seed: int = 0
    #: Only answers to principals whose ARN contains this.
    principal: str = ""
    #: Only answers to these actions; none: to all.
    actions: tuple[str, ...] = ()


@dataclass(slots=True)
class Faults:
    """Faults switched on over `PUT /nodeless/faults`."""

    capacity: tuple[CapacityFault, ...] = ()
    #: So many calls to come are refused for their rate.
    throttle: int = 0
    #: Connections are dropped without an answer.
    unreachable: bool = False
    #: Instances whose status checks fail, by id the time since when; `None`: EC2 does not say.
    impaired: dict[str, float | None] = field(default_factory=dict)
    #: Codes of events that are scheduled for instances, by id.
    scheduled: dict[str, str] = field(default_factory=dict)
    #: Actions that are refused, by name.
    errors: dict[str, CallFault] = field(default_factory=dict)
    #: Most vCPUs that may run, by capacity type.
    quotas: dict[str, int] = field(default_factory=dict)
    #: Seconds for which a new instance is not seen by those who describe instances.
    consistency: float = 0.0
    #: Seconds for which EC2 does not know a new instance profile.
    profiles: float = 0.0
    #: How new instances come up; the first that matches counts.
    boot: tuple[BootFault, ...] = ()
    #: Seconds by which the answer to an action comes late; what it does is done at once.
    delay: dict[str, float] = field(default_factory=dict)
    #: Actions of which so many answers to come are lost on the way; what they do is done.
    lost: dict[str, int] = field(default_factory=dict)
    garbled: GarbledFault = field(default_factory=GarbledFault)


@dataclass(slots=True)
class LocalState:
    """The server's memory besides moto."""

    region: str
    faults: Faults = field(default_factory=Faults)
    cluster: ClusterIdentity | None = None
    calls: deque[dict[str, Any]] = field(default_factory=lambda: deque(maxlen=CALLS_KEPT))
    #: Instant fleets by id, and by client token for idempotency.
    fleets: dict[str, Any] = field(default_factory=dict)
    fleet_tokens: dict[str, Any] = field(default_factory=dict)
    #: Capacity reservations by id, placement groups by name.
    reservations: dict[str, Any] = field(default_factory=dict)
    placement_groups: dict[str, Any] = field(default_factory=dict)
    #: What of instances moto does not keep, by id: reservation, placement, cores, interfaces.
    instance_details: dict[str, Any] = field(default_factory=dict)
    #: When images are deprecated, by id.
    deprecations: dict[str, datetime] = field(default_factory=dict)
    #: Requests for spot instances by id.
    spot_requests: dict[str, Any] = field(default_factory=dict)
    #: How often each instance was rebooted, by id: nothing that EC2 tells shows it.
    reboots: dict[str, int] = field(default_factory=dict)
    #: Calls whose answer may have been garbled, by action.
    garbled_calls: Counter[str] = field(default_factory=Counter)
    #: EKS clusters by name.
    clusters: dict[str, Any] = field(default_factory=dict)
    #: Rendered answers of calls whose answer never changes.
    rendered: dict[str, Any] = field(default_factory=dict)
    #: What is to happen later: ends of interrupted instances.
    timers: list[threading.Timer] = field(default_factory=list)
    #: Serialises launches, deletions and the EKS records.
    lock: threading.RLock = field(default_factory=threading.RLock)
    _numbers: itertools.count[int] = field(default_factory=itertools.count)

    def number(self) -> int:
        """A number never given before."""
        return next(self._numbers)

    @property
    def shapes_instances(self) -> bool:
        """Whether instances are to be described otherwise than moto knows them."""
        return bool(self.faults.consistency or self.instance_details)

    def take_error(self, operation: str, *, rehearsed: bool = False) -> CallFault | None:
        """The fault with which this call is to be refused; a dry run is for want of permission or of EC2."""
        with self.lock:
            fault = self.faults.errors.get(operation)
            if fault is None or fault.times == 0:
                return None
            if rehearsed and not fault.meets_dry_runs:
                return None
            if fault.times is not None:
                fault.times -= 1
            return fault

    def take_loss(self, operation: str) -> bool:
        """Whether the answer to this call is to be lost."""
        with self.lock:
            left = self.faults.lost.get(operation, 0)
            if left > 0:
                self.faults.lost[operation] = left - 1
            return left > 0

    def later(self, seconds: float, action: Callable[[], None]) -> None:
        """Do something after so many seconds, unless everything is forgotten before."""
        timer = threading.Timer(seconds, action)
        timer.daemon = True
        with self.lock:
            self.timers = [timer for timer in self.timers if timer.is_alive()]
            self.timers.append(timer)
            timer.start()

    def record(self, entry: dict[str, Any]) -> None:
        self.calls.append(entry)

    def take_throttle(self) -> bool:
        """Whether this call is to be refused for its rate."""
        with self.lock:
            if self.faults.throttle <= 0:
                return False
            self.faults.throttle -= 1
            return True

    def reset(self) -> None:
        with self.lock:
            for timer in self.timers:
                timer.cancel()
            self.faults = Faults()
            self.cluster = None
            for each in fields(self):
                kept = getattr(self, each.name)
                if isinstance(kept, dict | deque | list) and each.name not in _LEFT:
                    kept.clear()

"""Specs that cannot run here, and why; and specs that fail where this controller differs on purpose."""

from __future__ import annotations

import re
from dataclasses import dataclass

from localenv.conformance.controllers import NODELESS
from localenv.conformance.specs import CLOSING, Outcome, Result, Spec


@dataclass(frozen=True, slots=True)
class NotHere:
    """Specs that are left out.

    Attributes:
        pattern: A regular expression, searched for in a spec's name (`suite: text`).
        reason: Why.
        beyond: Whether no local environment could run them: scale tests, and what needs real hardware.
    """

    pattern: str
    reason: str
    beyond: bool = False


@dataclass(frozen=True, slots=True)
class Difference:
    """What this controller does otherwise by docs/compatibility.md, or where upstream contradicts itself.

    Attributes:
        pattern: A regular expression, searched for in a spec's name (`suite: text`).
        failure: A regular expression, searched for in its failure: another one is a failure still.
        reason: What is different, in a sentence.
    """

    pattern: str
    failure: str
    reason: str


@dataclass(frozen=True, slots=True)
class ClosingCheck:
    """What a container asserts of all its specs, after the last: one that ran by itself cannot fulfil it.

    Attributes:
        pattern: A regular expression, searched for in a spec's name (`suite: text`).
        failure: A regular expression, searched for in the failure: another one is a failure still.
        note: Stands beside the spec, which has passed by itself.
    """

    pattern: str
    failure: str
    note: str


NOT_HERE: tuple[NotHere, ...] = (
    NotHere(
        r"^ami: .* most recent AMI when discovering multiple$",
        "the local AWS lacks the release that it names",
    ),
    NotHere(r"^ipv6: ", "the local cluster has IPv4 alone"),
    NotHere(r"^localzone: ", "the local AWS has no local zones"),
    NotHere(r"^scale: ", "hundreds of nodes: `make soak` is the test of that size here", beyond=True),
    NotHere(
        r"^storage: Stateful workloads ",
        "nothing attaches EBS volumes here, and a detachment is what these wait for",
    ),
    NotHere(
        r"^interruption: .* instance status failure$", "no kernel that could panic runs here", beyond=True
    ),
    NotHere(r"^(integration|scheduling\S*): .* EFAs? ", "device plugins need the devices", beyond=True),
    NotHere(
        r"^integration: Extended Resources .* requests "
        r"(nvidia\.com/gpu|amd\.com/gpu|aws\.amazon\.com/neuron|habana\.ai/gaudi|vpc\.amazonaws\.com/efa)",
        "device plugins need the devices",
        beyond=True,
    ),
)


def not_here(spec: Spec) -> str:
    """Why a spec is left out; empty when it is run."""
    return next((each.reason for each in NOT_HERE if re.search(each.pattern, spec.name)), "")


def is_beyond(spec: Spec) -> bool:
    """Whether a spec is a scale test, or needs real hardware: it does not count among those to be run."""
    return any(each.beyond for each in NOT_HERE if re.search(each.pattern, spec.name))


#: Specs that wait longer than others by themselves, in seconds.
SLOW: tuple[tuple[str, float], ...] = (
    (r"^regression: NodeClaim .* after the registration timeout ", 1200.0),
    (r"^(regression|disruption): Drift Failure should not disrupt a drifted node ", 960.0),
    (r"^regression: NodeClaim .* no Instance mapping$", 600.0),
    (r"^regression: Chaos Runaway Scale-Up ", 600.0),
    (r"^(regression|disruption): Expiration ", 480.0),
    (r"^regression: Integration DoNotDisrupt Grace Period ", 480.0),
    (r"^regression: Integration Utilization ", 600.0),
    (r"^regression: StaticCapacity .* (node limits|drifted nodes|over limit)", 600.0),
    (r"^(regression|disruption): Drift Budgets .* (delete|replace|empty) drift$", 600.0),
    (r"^repair: .* 30 minute toleration$", 2700.0),
    (r"^disruption: Reboot should reboot twice", 2400.0),
    (r"^(repair|disruption): (Repair|Reboot|TerminateFirst)", 1200.0),
    (r"^scheduling\S*: .* a Zonal Shift is active$", 600.0),
    (r"^consolidation: .* (Budgets should respect|should consolidate nodes)", 900.0),
)


#: Specs that count nodes of two processors; of the provider of Karpenter's own tests they ask for such.
SMALL_MACHINES = r"^regression: CapacityBuffer "


def is_for_small_machines(spec: Spec) -> bool:
    """Whether a spec needs a pool of machines with two processors."""
    return re.search(SMALL_MACHINES, spec.name) is not None


def patience(spec: Spec, seconds: float) -> float:
    """Seconds that a spec is given: so many, or what it needs."""
    return max([seconds, *(most for pattern, most in SLOW if re.search(pattern, spec.name))])


_HINTS = "messages of conditions begin with Karpenter's words, and go on with what was looked for and a hint"
_READY = "the message of Ready is that of the first condition that is not true, not its name"

#: Upstream's own contradiction.
_SWITCH = Difference(
    r"^integration: Validation EC2NodeClass should fail to switch between .* instance profile$",
    r"^Expected failure, but got no error\.",
    "v1.14 allows the switch, and tests that it does in `ec2nodeclass_validation_cel_test.go`; this spec "
    "passes where the controller happens to write the class between its two writes",
)

DIFFERENCES: tuple[Difference, ...] = (
    Difference(
        r"^(integration|drift): .*(a kubelet expression|CEL expressions?)\b",
        r"(must be a whole number|is not a quantity|FieldValueInvalid)",
        "NodeClassCEL is an alpha gate of v1.15 that is not here: the kubelet's numbers are numbers, and an "
        "expression is refused at admission",
    ),
    Difference(
        r"^integration: Validation EC2NodeClass .* a kubelet field the AMI family won't apply ",
        r"^A suite timeout occurred",
        "fields of the kubelet that v1.14 did not have are dropped by the schema, whatever the AMI family",
    ),
    Difference(
        r"^integration: Validation EC2NodeClass should mark ValidationSucceeded=False if imageGC",
        r"denied the request",
        "a class that no kubelet could take is refused at admission, not accepted and told on its status",
    ),
    Difference(
        r"^scheduling\S*: .* should provision a node for a deployment$",
        r"^expected 2 created nodes",
        "the lowest price is packed for, not the fewest nodes (`--packing fewest-nodes`)",
    ),
    Difference(
        # One of the two reservations stands in the claim: the one that the spec wants launched.
        r"^scheduling\S*: .* Interruptible Capacity Resverations should prioritize ",
        r"^Expected <\[\]string \| len:1, cap:1>: .* to consist of <\[\]string \| len:2, cap:2>: "
        r".* the missing elements were <\[\]string \| len:1,",
        "a NodeClaim names the one reservation of which it holds a slot, not all that it might use",
    ),
    Difference(
        r"^scheduling\S*: .* zonal topology spread when a Zonal Shift is active$",
        r"^A suite timeout occurred \(scheduling\.go:467\)",
        "a zone that AWS shifts away from, in which there is no node, is no domain of a spread: its pod runs "
        "in another zone and does not wait for the end of the shift",
    ),
    Difference(
        r"^integration: NodeClass IAM Permissions ", r"to equal <string>: ValidationSucceeded=False", _READY
    ),
    _SWITCH,
    Difference(
        r"^regression: NodeClaim .* references a NodeClass that isn't Ready$",
        r"^A suite timeout occurred \(nodeclaim_test\.go:",
        "a class is judged by what the controller finds out, not by a Ready that somebody else wrote",
    ),
    Difference(
        r"^(regression|disruption|drift): Drift should update the (nodepool|ec2nodeclass)-hash annotation ",
        r"Expected <map\[string\]string .*-hash\b",
        "a claim carries the hash, under a version of its own; pools and node classes carry none",
    ),
    Difference(
        r"^integration: InstanceProfile Generation .* Instance Profile was not resolved$",
        r"Expected <v1\.ConditionStatus>: False to equal <v1\.ConditionStatus>: Unknown",
        "a role that IAM does not know is a fault of the class: InstanceProfileReady is False and names it",
    ),
    Difference(r"^(integration|ami): ", r"to equal <string>: \w+Selector did not match any", _HINTS),
    Difference(
        # gomega leaves out what two long texts begin with alike.
        r"^integration: SecurityGroups .* since security groups were not resolved$",
        r'Expected <string>: "\.\.\.roups: no s\.\.\." to equal \| <string>: "\.\.\.roups"',
        _HINTS,
    ),
)


CLOSING_CHECKS: tuple[ClosingCheck, ...] = (
    ClosingCheck(
        r"^scheduling\S*: Scheduling \S",
        r"^Expected <\[\]string.* (to contain elements|the missing elements were) ",
        "by itself: that the specs of its container use every well-known label was not looked at",
    ),
)


#: Specs that the real Karpenter fails in the local environment, and why.
OF_KARPENTER: tuple[Difference, ...] = (_SWITCH,)


def explain_failure(spec: Spec, result: Result, *, alone: bool = False, controller: str = NODELESS) -> Result:
    """The result; a failure for a documented difference says so.

    Args:
        spec: That was run.
        result: As its suite told it.
        alone: Whether the spec was run without the others of its container.
        controller: Which one was judged.
    """
    if result.outcome != Outcome.FAIL:
        return result
    if alone and result.message.startswith(CLOSING):
        said = result.message.removeprefix(CLOSING)
        for check in CLOSING_CHECKS:
            if re.search(check.pattern, spec.name) and re.search(check.failure, said):
                return Result(Outcome.PASS, result.seconds, check.note)
    for difference in DIFFERENCES if controller == NODELESS else OF_KARPENTER:
        if re.search(difference.pattern, spec.name) and re.search(difference.failure, result.message):
            return Result(Outcome.DIFFERS, result.seconds, difference.reason)
    return result

"""Why EC2 refuses a launch, as reasons fit for a condition, each with what to do. Pure.

The reasons are those of Karpenter v1 where it has one; it says `LaunchFailed` of everything else.
What a message says goes before its code: EC2 has codes that mean many things (`InvalidParameterValue`).
"""

from dataclasses import dataclass

from nodeless.cloudprovider import LAUNCH_FAILED, UNAUTHORIZED, LaunchFailed

#: The rendered user data is larger than EC2 takes.
USER_DATA_TOO_LARGE = "UserDataSizeLimitExceeded"
#: The image belongs to another account, which does not share it.
IMAGE_FORBIDDEN = "AMIAuthorizationFailure"


@dataclass(frozen=True, slots=True)
class Refusal:
    """`reason` is a CamelCase word; `hint` says what to do."""

    reason: str
    hint: str


_IMAGES = "spec.amiSelector (amiSelectorTerms) of the node class"
_SUBNETS = Refusal(
    "SubnetNotFound", "the subnets are looked up again; correct spec.subnetSelector (subnetSelectorTerms)"
)
_GROUPS = Refusal(
    "SecurityGroupNotFound",
    "the groups are looked up again; correct spec.securityGroupSelector (securityGroupSelectorTerms)",
)
_TEMPLATE = Refusal("LaunchTemplateNotFound", "correct spec.launchTemplate; one of ours is made again")
_THROTTLED = Refusal("RequestLimitExceeded", "EC2 throttles launches: they are tried again later")
_FAULT_OF_AWS = Refusal("InternalError", "AWS failed on its side: the launch is tried again later")
_FORBIDDEN = Refusal(
    UNAUTHORIZED,
    "allow ec2:RunInstances on what the launch template names, and look for an organization's policy",
)
#: Denials that the controller's own policy cannot lift, by words of IAM's message.
_DENIALS = {
    "permissions boundary": Refusal(
        UNAUTHORIZED,
        "the permissions boundary of the controller's role denies it: allow it there, too; "
        "the role's policies alone cannot",
    ),
    "service control policy": Refusal(
        UNAUTHORIZED,
        "a service control policy of the AWS organization denies it: whoever manages the organization "
        "can allow it; the role's policies cannot",
    ),
}
#: By words of the message, in lower case and without blanks.
_BY_WORDS = {
    "notauthorizedforimages": Refusal(
        IMAGE_FORBIDDEN, f"have its owner share the image with this account, or correct {_IMAGES}"
    ),
    "belongtodifferentnetworks": Refusal(
        "SecurityGroupSubnetVPCMismatch",
        "select subnets and security groups of one VPC with spec.subnetSelector and "
        "spec.securityGroupSelector (subnetSelectorTerms, securityGroupSelectorTerms)",
    ),
    "iaminstanceprofile": Refusal(
        "InstanceProfileNameInvalid",
        "EC2 knows a new instance profile after some seconds, and the launch is tried again; if this lasts, "
        "create the profile, or correct spec.instanceProfile or aws.defaultInstanceProfile",
    ),
    "userdataislimitedto": Refusal(USER_DATA_TOO_LARGE, "shorten spec.userData of the node class"),
    "noteligibleforfreetier": Refusal(
        "FreeTierIneligible",
        "the account's plan has free types only: upgrade it, or have the pool require them (list: aws ec2 "
        "describe-instance-types --filters Name=free-tier-eligible,Values=true)",
    ),
}
#: By error code; one that ends with `.` stands for all that begin with it, and the first that fits counts.
_BY_CODE = {
    "InvalidAMIID.Malformed": Refusal("InvalidAMIID", f"no image has such an id: correct {_IMAGES}"),
    "InvalidAMIID.": Refusal(
        "AMINotFound", f"the image is gone, or its owner does not share it: correct {_IMAGES}"
    ),
    "InvalidSubnetID.": _SUBNETS,
    "InvalidSubnet": _SUBNETS,
    "InvalidGroup.": _GROUPS,
    "InvalidSecurityGroupID.": _GROUPS,
    "InvalidCapacityReservationId.": Refusal(
        "CapacityReservationNotFound",
        "reservations are looked up again; correct spec.capacityReservationSelectorTerms",
    ),
    "InvalidPlacementGroup.": Refusal(
        "PlacementGroupNotFound", "the group is looked up again; correct spec.placementGroupSelector"
    ),
    "InvalidUserData.": Refusal("UserDataInvalid", "shorten or correct spec.userData of the node class"),
    "InvalidLaunchTemplateName.": _TEMPLATE,
    "InvalidLaunchTemplateId.": _TEMPLATE,
    "InvalidInstanceType": Refusal(
        "InstanceTypeNotFound", "the region does not sell it any more; it is tried without"
    ),
    "IdempotentParameterMismatch": Refusal(
        "ClientTokenReused", "delete the claim: a new one gets a name of its own"
    ),
    "AuthFailure.ServiceLinkedRoleCreationNotPermitted": Refusal(
        "SpotSLRCreationFailed",
        "run: aws iam create-service-linked-role --aws-service-name spot.amazonaws.com",
    ),
    "UnauthorizedOperation": _FORBIDDEN,
    "AccessDenied": _FORBIDDEN,
    "AccessDeniedException": _FORBIDDEN,
    "AuthFailure": _FORBIDDEN,
    "RequestLimitExceeded": _THROTTLED,
    "Throttling": _THROTTLED,
    "ThrottlingException": _THROTTLED,
    "InternalError": _FAULT_OF_AWS,
    "InternalFailure": _FAULT_OF_AWS,
    "PendingVerification": Refusal("AccountPendingVerification", "wait for AWS to verify the account"),
    "MaxFleetCountExceeded": Refusal(
        "FleetQuotaExceeded",
        "have AWS raise the account's quota of fleets in this region (Service Quotas, EC2 Fleet)",
    ),
    "MaxSpotInstanceCountExceeded": Refusal(
        "SpotQuotaExceeded",
        "have AWS raise the account's quotas of spot requests (Service Quotas, Amazon EC2), "
        "or allow on-demand; the pool's limits keep it below them",
    ),
    "VcpuLimitExceeded": Refusal(
        "VCPULimitExceeded",
        "have AWS raise the account's quotas of vCPUs (Service Quotas, Amazon EC2), "
        "or allow types of other families; the pool's limits keep it below them",
    ),
    "InsufficientFreeAddressesInSubnet": Refusal(
        "InsufficientFreeAddressesInSubnet",
        "select further subnets in this zone, or larger ones; other zones are tried",
    ),
}
_UNKNOWN = Refusal(LAUNCH_FAILED, "see the code in EC2's documentation; the launch is tried again later")
#: Every reason that a launch may be refused for.
REASONS = frozenset(each.reason for each in (*_DENIALS.values(), *_BY_WORDS.values(), *_BY_CODE.values()))


def refusal(code: str, message: str) -> Refusal:
    """What an error of EC2 means for a launch."""
    if denied := denial(message):
        return denied
    spelled = "".join(message.lower().split())
    for words, meaning in _BY_WORDS.items():
        if words in spelled:
            return meaning
    for pattern, meaning in _BY_CODE.items():
        if code == pattern or (pattern.endswith(".") and code.startswith(pattern)):
            return meaning
    return _UNKNOWN


def denial(message: str) -> Refusal | None:
    """Who denies what the controller's own policy may well allow; None when the message names nobody."""
    lower = message.lower()
    return next((meaning for words, meaning in _DENIALS.items() if words in lower), None)


def launch_failed(claim: str, code: str, message: str, evidence: str = "") -> LaunchFailed:
    """The error for a code of EC2; `evidence` is for the log."""
    text = message if message.startswith((code, "ec2:")) else f"{code}: {message}"
    known = refusal(code, message)
    return LaunchFailed(claim, known.reason, text, known.hint, evidence)

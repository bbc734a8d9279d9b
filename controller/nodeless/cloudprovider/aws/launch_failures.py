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
    "SubnetNotFound", "nodeless looks up the subnets again; correct spec.subnetSelector (subnetSelectorTerms)"
)
_GROUPS = Refusal(
    "SecurityGroupNotFound",
    "nodeless looks up the groups again; correct spec.securityGroupSelector (securityGroupSelectorTerms)",
)
_TEMPLATE = Refusal(
    "LaunchTemplateNotFound", "correct spec.launchTemplate; nodeless creates its own launch templates again"
)
_THROTTLED = Refusal("RequestLimitExceeded", "EC2 throttles launches: nodeless tries again later")
_FAULT_OF_AWS = Refusal("InternalError", "AWS failed on its side: nodeless tries the launch again later")
_FORBIDDEN = Refusal(
    UNAUTHORIZED,
    "allow ec2:RunInstances on the resources that the launch template names, and check the policies of "
    "the organization",
)
#: Denials that the controller's own policy cannot lift, by words of IAM's message.
_DENIALS = {
    "permissions boundary": Refusal(
        UNAUTHORIZED,
        "the permissions boundary of the controller's role denies it: allow it there as well; the "
        "role's policies alone are not enough",
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
        IMAGE_FORBIDDEN, f"ask its owner to share the image with this account, or correct {_IMAGES}"
    ),
    "belongtodifferentnetworks": Refusal(
        "SecurityGroupSubnetVPCMismatch",
        "select subnets and security groups of one VPC with spec.subnetSelector and "
        "spec.securityGroupSelector (subnetSelectorTerms, securityGroupSelectorTerms)",
    ),
    "iaminstanceprofile": Refusal(
        "InstanceProfileNameInvalid",
        "EC2 knows a new instance profile after a few seconds, and nodeless tries the launch again; if "
        "this continues, create the profile, or correct spec.instanceProfile or aws.defaultInstanceProfile",
    ),
    "userdataislimitedto": Refusal(USER_DATA_TOO_LARGE, "shorten spec.userData of the node class"),
    "noteligibleforfreetier": Refusal(
        "FreeTierIneligible",
        "the account's plan allows only instance types of the free tier: upgrade it, or make the pool "
        "require them (list: aws ec2 "
        "describe-instance-types --filters Name=free-tier-eligible,Values=true)",
    ),
}
#: By error code; one that ends with `.` stands for all that begin with it, and the first that fits counts.
_BY_CODE = {
    "InvalidAMIID.Malformed": Refusal("InvalidAMIID", f"no image can have this ID: correct {_IMAGES}"),
    "InvalidAMIID.": Refusal(
        "AMINotFound", f"the image is gone, or its owner does not share it: correct {_IMAGES}"
    ),
    "InvalidSubnetID.": _SUBNETS,
    "InvalidSubnet": _SUBNETS,
    "InvalidGroup.": _GROUPS,
    "InvalidSecurityGroupID.": _GROUPS,
    "InvalidCapacityReservationId.": Refusal(
        "CapacityReservationNotFound",
        "nodeless looks up the reservations again; correct spec.capacityReservationSelectorTerms",
    ),
    "InvalidPlacementGroup.": Refusal(
        "PlacementGroupNotFound", "nodeless looks up the group again; correct spec.placementGroupSelector"
    ),
    "InvalidUserData.": Refusal("UserDataInvalid", "shorten or correct spec.userData of the node class"),
    "InvalidLaunchTemplateName.": _TEMPLATE,
    "InvalidLaunchTemplateId.": _TEMPLATE,
    "InvalidInstanceType": Refusal(
        "InstanceTypeNotFound", "the region no longer offers it; nodeless tries without it"
    ),
    "IdempotentParameterMismatch": Refusal(
        "ClientTokenReused", "delete the NodeClaim: a new one gets a new token"
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
        "ask AWS to raise the account's quota for fleets in this region (Service Quotas, EC2 Fleet)",
    ),
    "MaxSpotInstanceCountExceeded": Refusal(
        "SpotQuotaExceeded",
        "ask AWS to raise the account's quotas for spot requests (Service Quotas, Amazon EC2), "
        "or allow on-demand; set limits on the pool to stay below them",
    ),
    "VcpuLimitExceeded": Refusal(
        "VCPULimitExceeded",
        "ask AWS to raise the account's quotas for vCPUs (Service Quotas, Amazon EC2), "
        "or allow types of other families; set limits on the pool to stay below them",
    ),
    "InsufficientFreeAddressesInSubnet": Refusal(
        "InsufficientFreeAddressesInSubnet",
        "select more or larger subnets in this zone; nodeless tries other zones",
    ),
}
_UNKNOWN = Refusal(
    LAUNCH_FAILED, "look up the code in EC2's documentation; nodeless tries the launch again later"
)
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

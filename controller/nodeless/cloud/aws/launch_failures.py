"""Why EC2 refuses a launch, as reasons fit for a condition, each with what to do. Pure."""

from nodeless.cloud import LaunchFailed

#: Error code of EC2 to (reason, hint); a code that ends with `.` stands for all that begin with it.
_REASONS = {
    "InvalidAMIID.": ("ImageNotFound", "correct spec.amiSelector of the node class"),
    "InvalidSubnetID.": ("SubnetNotFound", "the subnets are looked up again; correct spec.subnetSelector"),
    "InvalidSubnet": ("SubnetNotFound", "the subnets are looked up again; correct spec.subnetSelector"),
    "InvalidGroup.": (
        "SecurityGroupNotFound",
        "the groups are looked up again; correct spec.securityGroupSelector",
    ),
    "InvalidSecurityGroupID.": (
        "SecurityGroupNotFound",
        "the groups are looked up again; correct spec.securityGroupSelector",
    ),
    "InvalidCapacityReservationId.": (
        "CapacityReservationNotFound",
        "reservations are looked up again; correct spec.capacityReservationSelectorTerms",
    ),
    "InvalidPlacementGroup.": (
        "PlacementGroupNotFound",
        "the group is looked up again; correct spec.placementGroupSelector",
    ),
    "InvalidUserData.": ("UserDataInvalid", "shorten or correct spec.userData of the node class"),
    "InvalidLaunchTemplateName.": ("LaunchTemplateNotFound", "correct spec.launchTemplate"),
    "InvalidLaunchTemplateId.": ("LaunchTemplateNotFound", "correct spec.launchTemplate"),
    "InvalidInstanceType": (
        "InstanceTypeNotFound",
        "the region does not sell it any more; it is tried without",
    ),
    "IdempotentParameterMismatch": (
        "ClientTokenReused",
        "delete the claim: a new one gets a name of its own",
    ),
    "UnauthorizedOperation": (
        "Unauthorized",
        "allow ec2:RunInstances on what the launch template names, and look for an organization's policy",
    ),
    "RequestLimitExceeded": ("RequestLimitExceeded", "EC2 throttles launches: they are tried again later"),
    "Throttling": ("RequestLimitExceeded", "EC2 throttles launches: they are tried again later"),
    "PendingVerification": ("AccountPendingVerification", "wait for AWS to verify the account"),
    "AuthFailure.ServiceLinkedRoleCreationNotPermitted": (
        "SpotServiceLinkedRoleMissing",
        "run: aws iam create-service-linked-role --aws-service-name spot.amazonaws.com",
    ),
}
_PROFILE_HINT = (
    "EC2 knows a new instance profile after some seconds, and the launch is tried again; if this lasts, "
    "create the profile, or correct spec.instanceProfile or aws.defaultInstanceProfile"
)
_DEFAULT_HINT = "see the code in EC2's documentation; the launch is tried again later"


def launch_failed(claim: str, code: str, message: str) -> LaunchFailed:
    """The error for a code of EC2."""
    text = message if message.startswith((code, "ec2:")) else f"{code}: {message}"
    if "iaminstanceprofile" in message.replace(" ", "").lower():
        return LaunchFailed(claim, "InstanceProfileNotFound", text, _PROFILE_HINT)
    for pattern, (reason, hint) in _REASONS.items():
        if code == pattern or (pattern.endswith(".") and code.startswith(pattern)):
            return LaunchFailed(claim, reason, text, hint)
    return LaunchFailed(claim, "LaunchFailed", text, _DEFAULT_HINT)

"""The kind `karpenter.k8s.aws/v1alpha1` AWSNodeTemplate, and the inline `spec.provider` of a Provisioner.

Both are about how an instance is made; `AwsSettings` holds what they share. Only the
form; the rules are in `aws_rules`.
"""

from msgspec import field

from nodeless.api.metav1 import Conditions, Definition, FreeForm, Int64, Quantity, Strings


class MetadataOptions(Definition):
    """Access of the instance to its metadata service. A member that is missing is left to EC2."""

    http_endpoint: str | None = None
    """Whether the service answers: enabled or disabled."""
    http_protocol_ipv6: str | None = field(default=None, name="httpProtocolIPv6")
    """Whether it answers over IPv6: enabled or disabled."""
    http_put_response_hop_limit: Int64 | None = None
    """How many network hops an answer survives, from 1 to 64."""
    http_tokens: str | None = None
    """Whether a session token is needed: optional or required."""


class ElasticBlockStore(Definition):
    """An EBS volume. One of volumeSize and snapshotID is needed."""

    volume_size: Quantity | None = None
    """Size as a quantity, from 1G to 64T, as 50Gi; a bare number is bytes."""
    volume_type: str | None = None
    """standard, io1, io2, gp2, gp3, sc1 or st1."""
    iops: Int64 | None = None
    """Operations per second."""
    throughput: Int64 | None = None
    """MiB per second."""
    encrypted: bool | None = None
    """Whether the volume is encrypted."""
    kms_key_id: str | None = field(default=None, name="kmsKeyID")
    """Key that encrypts it, when it is not the account's default."""
    delete_on_termination: bool | None = None
    """Whether the volume goes with its instance."""
    snapshot_id: str | None = field(default=None, name="snapshotID")
    """Snapshot that the volume is made of."""


class BlockDeviceMapping(Definition):
    """One volume of each instance."""

    device_name: str | None = None
    """Device that the volume is attached as, as /dev/xvda."""
    ebs: ElasticBlockStore | None = None


class AwsSettings(Definition):
    """How instances are made: where, as what, with which disks and tags."""

    api_version: str | None = None
    """Only in an inline provider: extensions.karpenter.sh/v1alpha1."""
    kind: str | None = None
    """Only in an inline provider: AWS."""
    ami_family: str | None = None
    """AL2 (when not given), Bottlerocket, Ubuntu or Custom."""
    context: str | None = None
    """Passed to EC2 unchanged as the fleet's context."""
    instance_profile: str | None = None
    """Instance profile, when it is not the controller's default."""
    subnet_selector: Strings | None = None
    """Tags of the subnets, all of them: a value, a list separated by commas, or * for any. aws-ids selects by
    id."""
    security_group_selector: Strings | None = None
    """Tags of the security groups, as in subnetSelector."""
    tags: Strings | None = None
    """Tags of instances, volumes and launch templates."""
    launch_template: str | None = None
    """Name of a launch template of your own; it excludes most other settings."""
    metadata_options: MetadataOptions | None = None
    block_device_mappings: list[BlockDeviceMapping] | None = None
    """EBS volumes, when they are not the family's default."""


class InlineProvider(AwsSettings, forbid_unknown_fields=True):
    """The inline `spec.provider`: nothing but the shared settings is allowed in it."""


class AwsNodeTemplateSpec(AwsSettings):
    """How instances are made: where, from which image, with which disks, tags and start-up data."""

    user_data: str | None = None
    """User data, merged with what the AMI family needs to join the cluster."""
    ami_selector: Strings | None = None
    """Tags of the images to use instead of the family's newest; aws-ids (or aws::ids), aws::name and
    aws::owners select by id, name and owner."""
    detailed_monitoring: bool | None = None
    """Whether CloudWatch gets figures every minute."""


class SubnetStatus(Definition):
    """A subnet that was found."""

    id: str | None = None
    """Id of the subnet."""
    zone: str | None = None
    """Its availability zone."""


class SecurityGroupStatus(Definition):
    """A security group that was found."""

    id: str | None = None
    """Id of the security group."""


class AwsNodeTemplateStatus(Definition):
    """What the selectors find now."""

    subnets: list[SubnetStatus] | None = None
    """Subnets, the one with most free addresses first."""
    security_groups: list[SecurityGroupStatus] | None = None
    """Security groups."""
    conditions: Conditions = None


class AwsNodeTemplate(Definition):
    """How the nodes of pools are configured in AWS."""

    api_version: str | None = None
    kind: str | None = None
    metadata: FreeForm | None = None
    spec: AwsNodeTemplateSpec | None = None
    status: AwsNodeTemplateStatus | None = None

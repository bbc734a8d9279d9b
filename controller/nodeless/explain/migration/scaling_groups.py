"""Scaling groups: those that are node groups by themselves, and those that EKS keeps for its own."""

from nodeless.explain.migration.answers import Answers, Placed
from nodeless.explain.migration.instance_requirements import requirements_of
from nodeless.explain.migration.launch_templates import (
    Launch,
    add_tags,
    read_configuration,
    read_reservation,
    read_template,
    template_of,
)
from nodeless.explain.migration.ledger import BadAnswer, Ledger, Members
from nodeless.explain.migration.node_group import (
    LABELS,
    OF_THE_GROUP,
    REQUIREMENT,
    SELF_MANAGED,
    TAINTS,
    GroupInstance,
    NodeGroup,
    add_group_security,
    is_label_of_groups,
    leave_sizes,
    set_image,
    set_labels,
    set_subnets,
)
from nodeless.explain.migration.user_data import taint_of
from nodeless.model.labels import CLUSTER_TAG_PREFIX, ON_DEMAND, RESERVED, SPOT

_TEMPLATE_TAG = "k8s.io/cluster-autoscaler/node-template/"
WARM = "instances are launched when pods need them; hint: a CapacityBuffer keeps room for pods to come"
_BALANCERS = (
    "instances are not registered by the group; hint: the AWS Load Balancer Controller registers pods"
)
_OWN_TEMPLATE = ("LaunchTemplateSpecification", "ImageId")
_ONE_TEMPLATE = "one pool has one template; hint: a second pool with a node class of its own"
_HEALTH = "the controller watches nodes and EC2's status checks"
_SPREAD = "nodes are launched in the zones that pods require; hint: topologySpreadConstraints on the zone"
_STRATEGY = "nodeless buys the cheapest of the allowed types; for spot, EC2's capacity counts as well"


def read_scaling_group(answer: Placed, answers: Answers, ledger: Ledger) -> NodeGroup:
    """A group of `aws autoscaling describe-auto-scaling-groups`. Raises BadAnswer."""
    name = answer.name("AutoScalingGroupName")
    if not name:
        raise BadAnswer(
            f"{answer.place}: a group has no AutoScalingGroupName; hint: aws autoscaling "
            f"describe-auto-scaling-groups"
        )
    group = NodeGroup(SELF_MANAGED, name, answer.place, scaling_groups=(name,))
    members = Members(answer.value, group.subject, ledger, place=answer.place)
    launch = _launch_of_self_managed(members, group, answers, ledger)
    group.spec = launch.spec
    set_image(group, launch, members)
    group.minimum, group.desired = members.number("MinSize") or 0, members.number("DesiredCapacity") or 0
    group.maximum = members.number("MaxSize", "NodePool spec.limits")
    leave_sizes(members, group, "MinSize", "DesiredCapacity")
    if launch.profile:
        group.spec["instanceProfile"] = launch.profile
    if launch.market == SPOT:
        group.capacity_types = (SPOT,)
    elif launch.market == "capacity-block":
        group.capacity_types = (RESERVED,)
    subnets = [subnet.strip() for subnet in members.text("VPCZoneIdentifier").split(",") if subnet.strip()]
    if subnets:
        ledger.carry(group.subject, "VPCZoneIdentifier", "EC2NodeClass spec.subnetSelectorTerms")
    set_subnets(group, subnets, answers)
    if launch.zone:
        group.zones = (launch.zone,)
    set_labels(group, launch.start_up.labels, ledger)
    group.taints = list(launch.start_up.taints)
    read_scaling_members(members, group)
    cluster = next((key.rpartition("/")[2] for key in group.tags if key.startswith(CLUSTER_TAG_PREFIX)), "")
    group.cluster = cluster
    if "subnetSelectorTerms" not in group.spec:
        group.spec["subnetSelectorTerms"] = [{"tags": {"karpenter.sh/discovery": cluster or "*"}}]
    add_group_security(group, answers)
    if group.capacity_types == (ON_DEMAND,) and launch.reserved:
        group.capacity_types = (RESERVED, ON_DEMAND)
    return group


def _launch_of_self_managed(members: Members, group: NodeGroup, answers: Answers, ledger: Ledger) -> Launch:
    mixed, reference = members.below("MixedInstancesPolicy"), members.below("LaunchTemplate")
    configuration = members.text("LaunchConfigurationName")
    if mixed is not None:
        return _read_mixed(mixed, group, answers, ledger)
    if reference is not None:
        launch = read_template(template_of(reference, answers, group.subject), ledger)
        ledger.carry(group.subject, "LaunchTemplate", "EC2NodeClass")
    elif configuration:
        found = [
            one
            for one in answers.of("LaunchConfigurations")
            if one.name("LaunchConfigurationName") == configuration
        ]
        if not found:
            raise BadAnswer(
                f"{group.place}: {group.subject}: its launch configuration {configuration} is not in the "
                f"input; hint: "
                f"add aws autoscaling describe-launch-configurations --launch-configuration-names "
                f"{configuration}"
            )
        launch = read_configuration(found[0], ledger)
        ledger.carry(group.subject, "LaunchConfigurationName", "EC2NodeClass")
    else:
        raise BadAnswer(
            f"{group.place}: {group.subject} has neither launch template nor launch configuration; "
            "hint: leave out groups that EKS Auto Mode or Karpenter created"
        )
    _take_types(group, [launch.instance_type] if launch.instance_type else [], launch, answers)
    return launch


def _take_types(group: NodeGroup, types: list[str], launch: Launch, answers: Answers) -> None:
    """Types by name, or else by attributes. Raises BadAnswer."""
    group.types = tuple(dict.fromkeys(types))
    if group.types:
        return
    if launch.instance_requirements is None:
        raise BadAnswer(
            f"{group.place}: {group.subject}: neither it nor its template names an instance type; "
            "hint: is the version of the template right?"
        )
    group.requirements = requirements_of(launch.instance_requirements, answers.sold)


def _read_mixed(mixed: Members, group: NodeGroup, answers: Answers, ledger: Ledger) -> Launch:
    template = mixed.below("LaunchTemplate")
    reference = None if template is None else template.below("LaunchTemplateSpecification")
    if template is None or reference is None:
        raise BadAnswer(
            f"{group.place}: {group.subject}: its mixed instances policy names no launch template; "
            "hint: give the output of the AWS CLI unchanged"
        )
    launch = read_template(template_of(reference, answers, group.subject), ledger)
    ledger.carry(group.subject, mixed.path("LaunchTemplate"), "EC2NodeClass")
    types: list[str] = []
    apart: list[str] = []
    attributes: Members | None = None
    for override in template.each("Overrides"):
        has_template = any(name in override for name in _OWN_TEMPLATE)
        if has_template:
            # An image of another architecture, often: the pool's own cannot start on such a type.
            apart.append(override.text("InstanceType"))
        elif kind := override.text("InstanceType", f"{REQUIREMENT}node.kubernetes.io/instance-type"):
            types.append(kind)
        if attributes is None:
            attributes = override.below("InstanceRequirements")
        else:
            override.leave(
                "one pool has one set of attributes, that of the first override; hint: a second pool",
                "InstanceRequirements",
            )
        override.leave("pods are packed by what they request: a node has no weight", "WeightedCapacity")
        if has_template:
            override.leave(_ONE_TEMPLATE, "InstanceType", *_OWN_TEMPLATE)
        override.close()
    template.close()
    if attributes is not None:
        # Attributes of an override take the place of what the template says.
        launch.instance_requirements = attributes
    elif not types and not apart and launch.instance_type:
        types = [launch.instance_type]
    _take_types(group, types or [kind for kind in apart if kind], launch, answers)
    distribution = mixed.below("InstancesDistribution")
    if distribution is not None:
        _read_distribution(distribution, group)
    mixed.close()
    return launch


def _read_distribution(distribution: Members, group: NodeGroup) -> None:
    to = f"{REQUIREMENT}karpenter.sh/capacity-type"
    base = distribution.number("OnDemandBaseCapacity", to) or 0
    above = distribution.number("OnDemandPercentageAboveBaseCapacity", to)
    above = 100 if above is None else above
    if above == 0 and base == 0:
        group.capacity_types = (SPOT,)
    elif above < 100:
        group.capacity_types = (SPOT, ON_DEMAND)
        reason = (
            "nodeless does not keep shares of capacity types: it buys the cheaper one; hint: "
            "topologySpreadConstraints of "
            "pods on karpenter.sh/capacity-type, or a pool of on-demand with a limit"
        )
        share = f"{base} and {above} % above"
        distribution.ledger.leave(
            group.subject, distribution.path("OnDemandPercentageAboveBaseCapacity"), share, reason
        )
    distribution.leave(
        _STRATEGY, "OnDemandAllocationStrategy", "SpotAllocationStrategy", "SpotInstancePools", matters=False
    )
    distribution.leave("nodeless takes the lowest price instead of a bound on it", "SpotMaxPrice")
    distribution.leave(_STRATEGY, "DistributionSegments")
    distribution.close()


def add_scaling_group(group: NodeGroup, answer: Placed, ledger: Ledger) -> None:
    """What the scaling group of a managed node group adds: zones, instances, tags."""
    source = f"{SELF_MANAGED}/{answer.name('AutoScalingGroupName')}"
    members = Members(answer.value, source, ledger, place=answer.place)
    of_eks = "EKS writes it from the managed node group"
    members.leave(of_eks, "LaunchTemplate", "MixedInstancesPolicy", "VPCZoneIdentifier", matters=False)
    members.leave(of_eks, "MinSize", "MaxSize", "DesiredCapacity", "LaunchConfigurationName", matters=False)
    read_scaling_members(members, group)


def read_scaling_members(members: Members, group: NodeGroup) -> None:
    """What all scaling groups have, whoever made them."""
    zones = members.texts("AvailabilityZones", f"{REQUIREMENT}topology.kubernetes.io/zone")
    if zones and not group.zones:
        group.zones = tuple(sorted(set(zones)))
    group.instances += tuple(
        GroupInstance(
            str(instance.read("InstanceId") or ""),
            str(instance.read("InstanceType") or ""),
            str(instance.read("AvailabilityZone") or ""),
        )
        for instance in members.each("Instances")
    )
    _read_tags(members, group)
    lifetime = members.number("MaxInstanceLifetime", "NodePool spec.template.spec.expireAfter")
    group.lifetime = lifetime or group.lifetime
    placement = members.text("PlacementGroup", "EC2NodeClass spec.placementGroupSelector")
    if placement:
        group.spec["placementGroupSelector"] = {"name": placement}
    reservation = members.below("CapacityReservationSpecification")
    if reservation is not None:
        _read_group_reservation(reservation, group)
    members.leave(WARM, "WarmPoolConfiguration", "WarmPoolSize")
    members.leave(_BALANCERS, "TargetGroupARNs", "LoadBalancerNames", "TrafficSources")
    members.leave(
        _HEALTH, "HealthCheckType", "HealthCheckGracePeriod", "DefaultInstanceWarmup", matters=False
    )
    members.leave(
        "protect nodes by the annotation karpenter.sh/do-not-disrupt on them",
        "NewInstancesProtectedFromScaleIn",
    )
    members.leave(
        "spot nodes are replaced when EC2 warns of their interruption", "CapacityRebalance", matters=False
    )
    members.leave(
        "consolidation chooses by price and by the cost of disruption", "TerminationPolicies", matters=False
    )
    members.leave("pools cannot suspend single processes", "SuspendedProcesses")
    members.leave("metrics of pools are the controller's own", "EnabledMetrics", matters=False)
    members.leave(_SPREAD, "AvailabilityZoneDistribution", "AvailabilityZoneImpairmentPolicy")
    members.leave("replacements are launched before nodes go", "InstanceMaintenancePolicy", matters=False)
    members.leave("pools react to pods at once", "DefaultCooldown", matters=False)
    members.leave("sizes are counted in nodes", "DesiredCapacityType")
    members.leave(
        "deleting a pool terminates its nodes; hint: limit by RBAC who may delete pools", "DeletionProtection"
    )
    members.leave(
        "hooks run on groups only; hint: a DaemonSet, userData, or a preStop hook", "InstanceLifecyclePolicy"
    )
    members.state(
        "AutoScalingGroupName", "AutoScalingGroupARN", "CreatedTime", "Status", "ServiceLinkedRoleARN"
    )
    members.state("PredictedCapacity", "Context", "AvailabilityZoneIds", "Operator")
    members.close()


def _read_group_reservation(reservation: Members, group: NodeGroup) -> None:
    """A scaling group names reservations in another form than a template."""
    target = reservation.below("CapacityReservationTarget")
    if target is not None:
        to = "EC2NodeClass spec.capacityReservationSelectorTerms"
        ids = target.texts("CapacityReservationIds", to)
        if ids:
            group.spec["capacityReservationSelectorTerms"] = [{"id": identity} for identity in ids]
            group.capacity_types = (RESERVED, *(one for one in group.capacity_types if one != RESERVED))
        target.leave(
            "resource groups are not read; hint: select their reservations by id or tag",
            "CapacityReservationResourceGroupArns",
        )
        target.close()
    read_reservation(reservation, group.spec)
    reservation.close()


def _read_tags(members: Members, group: NodeGroup) -> None:
    """Tags: hints for the autoscaler about nodes, and what goes on instances."""
    own: dict[str, str] = {}
    for tag in members.each("Tags"):
        key, value = tag.text("Key"), tag.text("Value")
        for name in ("ResourceId", "ResourceType"):
            tag.read(name)  # the group itself
        propagated = tag.read("PropagateAtLaunch") is True
        tag.close()
        group.tags[key] = value
        if key.startswith(_TEMPLATE_TAG):
            _read_hint(members, group, key.removeprefix(_TEMPLATE_TAG), value)
        elif propagated:
            own[key] = value
        else:
            members.ledger.leave(members.source, f"Tags {key}", value, "is only on the group", matters=False)
    add_tags(group.spec, own, members.source, members.ledger)


def _read_hint(members: Members, group: NodeGroup, hint: str, value: str) -> None:
    """One `node-template` tag, by which the autoscaler knows what a group without nodes would have."""
    what, _, key = hint.partition("/")
    source, member = members.source, f"Tags {_TEMPLATE_TAG}{hint}"
    if what == "label" and not is_label_of_groups(key):
        group.labels.setdefault(key, value)
        members.ledger.carry(source, member, LABELS)
    elif what == "label":
        members.ledger.leave(source, member, value, OF_THE_GROUP, matters=False)
    elif what == "taint" and (taint := taint_of(f"{key}={value}")) is not None:
        if taint not in group.taints:
            group.taints.append(taint)
        members.ledger.carry(source, member, TAINTS)
    elif what == "resources":
        group.resources[key] = value
        reason = (
            "the instance type and device plugins determine what a node offers"
            if "/" not in key
            else "a new node is planned with the resources of its type; pods that request it stay "
            "pending where no "
            "type has it"
        )
        members.ledger.leave(source, member, value, reason, matters="/" in key)
    elif what == "autoscaling-options" and key == "scaledownunneededtime":
        group.unneeded_time = value
        members.ledger.carry(source, member, "NodePool spec.disruption.consolidateAfter")
    else:
        members.ledger.leave(source, member, value, "this hint has no known counterpart")

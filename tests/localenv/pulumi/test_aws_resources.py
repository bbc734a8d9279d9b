"""aws:* on the real engine: made, left alone, changed, replaced, and gone."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pulumi
import pulumi_aws as aws_sdk
import pytest

from localenv.aws import LocalAws
from localenv.pulumi import ResourceStep, StackFailed
from pulumi_nodeless import InterruptionQueue
from tests.localenv.pulumi.conftest import Shop
from tests.localenv.pulumi.programs import network, on_aws

pytestmark = pytest.mark.cluster

TRUST = json.dumps(
    {
        "Version": "2012-10-17",
        "Statement": [
            {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": "ec2.amazonaws.com"}}
        ],
    }
)


def vpcs(aws: LocalAws) -> dict[str, str]:
    found: list[dict[str, Any]] = aws.client("ec2").describe_vpcs()["Vpcs"]
    return {vpc["VpcId"]: vpc["CidrBlock"] for vpc in found if not vpc.get("IsDefault")}


def test_what_is_made_stands_in_the_cloud_and_a_second_run_changes_nothing(shop: Shop, aws: LocalAws) -> None:
    shop.program = network
    assert shop.stack.up()["create"] == 5
    made = shop.stack.outputs()["vpc"]
    assert vpcs(aws) == {made: "10.0.0.0/16"}
    ec2 = aws.client("ec2")
    names = ec2.describe_vpc_attribute(VpcId=made, Attribute="enableDnsHostnames")
    assert names["EnableDnsHostnames"]["Value"] is True
    filters = [{"Name": "vpc-id", "Values": [made]}]
    subnets = {s["CidrBlock"]: s for s in ec2.describe_subnets(Filters=filters)["Subnets"]}
    assert {block: s["MapPublicIpOnLaunch"] for block, s in subnets.items()} == {
        "10.0.0.0/24": True,
        "10.0.1.0/24": False,
    }

    assert shop.another().up() == {"same": 5}


def test_a_preview_with_unknown_ids_creates_nothing(shop: Shop, aws: LocalAws) -> None:
    shop.program = network
    before = len(aws.calls())
    assert shop.stack.preview()["create"] == 5
    assert [call["action"] for call in aws.calls()[before:] if call["action"].startswith("Create")] == []
    assert vpcs(aws) == {}


def test_a_changed_tag_is_an_update_in_place(shop: Shop, aws: LocalAws) -> None:
    shop.program = lambda: network(team="a", keep="yes")
    shop.stack.up()
    made = shop.stack.outputs()["vpc"]
    shop.program = lambda: network(team="b")
    assert shop.stack.up() == {"same": 4, "update": 1}
    assert shop.stack.outputs()["vpc"] == made
    tags = aws.client("ec2").describe_vpcs(VpcIds=[made])["Vpcs"][0]["Tags"]
    assert {tag["Key"]: tag["Value"] for tag in tags} == {"team": "b"}


def test_an_address_range_cannot_change_so_the_network_is_replaced(shop: Shop, aws: LocalAws) -> None:
    shop.program = network
    shop.stack.up()
    old = shop.stack.outputs()["vpc"]
    shop.program = lambda: network("10.9.0.0/16")
    assert shop.stack.up()["replace"] == 3
    new = shop.stack.outputs()["vpc"]
    assert new != old
    assert vpcs(aws) == {new: "10.9.0.0/16"}


def test_a_role_with_a_name_is_deleted_before_its_successor_is_made(shop: Shop, aws: LocalAws) -> None:
    def role(path: str) -> None:
        aws_sdk.iam.Role("node", name="shop-node", path=path, assume_role_policy=TRUST, opts=on_aws())

    shop.program = lambda: role("/one/")
    shop.stack.up()
    shop.program = lambda: role("/two/")
    steps: list[ResourceStep] = []
    shop.stack.up(steps.append)
    order = [step.operation for step in steps if step.done and step.type == "aws:iam/role:Role"]
    assert order.index("delete-replaced") < order.index("create-replacement")
    assert aws.client("iam").get_role(RoleName="shop-node")["Role"]["Path"] == "/two/"


def test_a_resource_without_a_name_keeps_the_name_made_up_for_it(shop: Shop, aws: LocalAws) -> None:
    def role(description: str) -> None:
        made = aws_sdk.iam.Role("node", assume_role_policy=TRUST, description=description, opts=on_aws())
        pulumi.export("name", made.name)

    shop.program = lambda: role("first")
    shop.stack.up()
    name = shop.stack.outputs()["name"]
    assert name.startswith("node-")
    shop.program = lambda: role("second")
    assert shop.stack.up()["update"] == 1
    assert shop.stack.outputs()["name"] == name
    assert aws.client("iam").get_role(RoleName=name)["Role"]["Description"] == "second"


def test_after_a_failure_in_the_middle_the_next_run_goes_on(shop: Shop, aws: LocalAws) -> None:
    def program(policy: str) -> None:
        options = on_aws()
        role = aws_sdk.iam.Role("node", name="shop-node", assume_role_policy=TRUST, opts=options)
        attachment = aws_sdk.iam.RolePolicyAttachment(
            "policy", role=role.name, policy_arn=f"arn:aws:iam::aws:policy/{policy}", opts=options
        )
        aws_sdk.iam.InstanceProfile(
            "profile",
            name="shop-profile",
            role=role.name,
            opts=pulumi.ResourceOptions.merge(options, pulumi.ResourceOptions(depends_on=[attachment])),
        )

    shop.program = lambda: program("NoSuchPolicy")
    with pytest.raises(StackFailed) as failure:
        shop.stack.up()
    first_line = str(failure.value).splitlines()[0]
    assert "aws:iam/rolePolicyAttachment:RolePolicyAttachment 'policy'" in first_line
    assert "NoSuchPolicy" in first_line or "NoSuchEntity" in first_line

    shop.program = lambda: program("AmazonEKSWorkerNodePolicy")
    changes = shop.stack.up()
    assert changes["create"] == 2, "the role was there already, only the rest is made"
    profile = aws.client("iam").get_instance_profile(InstanceProfileName="shop-profile")["InstanceProfile"]
    assert [role["RoleName"] for role in profile["Roles"]] == ["shop-node"]


def test_destroy_takes_dependents_first_and_leaves_the_cloud_empty(shop: Shop, aws: LocalAws) -> None:
    def program() -> None:
        options = on_aws()
        vpc = aws_sdk.ec2.Vpc("net", cidr_block="10.0.0.0/16", opts=options)
        gateway = aws_sdk.ec2.InternetGateway("gateway", vpc_id=vpc.id, opts=options)
        subnet = aws_sdk.ec2.Subnet("subnet", vpc_id=vpc.id, cidr_block="10.0.0.0/24", opts=options)
        address = aws_sdk.ec2.Eip("address", domain="vpc", opts=options)
        nat = aws_sdk.ec2.NatGateway("nat", allocation_id=address.id, subnet_id=subnet.id, opts=options)
        table = aws_sdk.ec2.RouteTable("table", vpc_id=vpc.id, opts=options)
        everywhere = "0.0.0.0/0"
        aws_sdk.ec2.Route(
            "out",
            route_table_id=table.id,
            destination_cidr_block=everywhere,
            nat_gateway_id=nat.id,
            opts=options,
        )
        aws_sdk.ec2.RouteTableAssociation("uses", route_table_id=table.id, subnet_id=subnet.id, opts=options)
        group = aws_sdk.ec2.SecurityGroup(
            "group",
            vpc_id=vpc.id,
            ingress=[{"protocol": "tcp", "from_port": 443, "to_port": 443, "cidr_blocks": [everywhere]}],
            egress=[{"protocol": "-1", "from_port": 0, "to_port": 0, "cidr_blocks": [everywhere]}],
            opts=options,
        )
        aws_sdk.ec2.SecurityGroupRule(
            "within",
            type="ingress",
            security_group_id=group.id,
            protocol="tcp",
            from_port=8443,
            to_port=8443,
            source_security_group_id=group.id,
            opts=options,
        )
        aws_sdk.ec2.Tag("mark", resource_id=group.id, key="karpenter.sh/discovery", value="x", opts=options)
        pulumi.export("gateway", gateway.id)

    shop.program = program
    shop.stack.up()
    ec2 = aws.client("ec2")
    assert shop.another().up() == {"same": 13}
    group = ec2.describe_security_groups(Filters=[{"Name": "tag:karpenter.sh/discovery", "Values": ["x"]}])
    rules = group["SecurityGroups"][0]
    assert sorted(rule["FromPort"] for rule in rules["IpPermissions"]) == [443, 8443]
    assert len(rules["IpPermissionsEgress"]) == 1

    steps: list[ResourceStep] = []
    shop.stack.destroy(steps.append)
    ends = [step.name for step in steps if step.done]
    assert ends.index("out") < ends.index("nat") < ends.index("address")
    assert ends.index("subnet") < ends.index("net")
    assert vpcs(aws) == {}
    assert ec2.describe_addresses()["Addresses"] == []
    assert ec2.describe_internet_gateways(InternetGatewayIds=[])["InternetGateways"] == []
    assert shop.stack.outputs() == {}


def test_an_unknown_type_fails_and_is_named(shop: Shop) -> None:
    shop.program = lambda: aws_sdk.s3.Bucket("bucket", opts=on_aws()) and None
    with pytest.raises(
        StackFailed, match=r"(?s)^preview failed: aws:s3/bucket:Bucket 'bucket': .*aws:s3/bucket:Bucket"
    ):
        shop.stack.preview()


def test_an_input_that_would_be_ignored_is_refused(shop: Shop) -> None:
    def program() -> None:
        aws_sdk.ec2.Vpc("net", cidr_block="10.0.0.0/16", ipv4_ipam_pool_id="pool", opts=on_aws())

    shop.program = program
    with pytest.raises(StackFailed, match="ipv4IpamPoolId"):
        shop.stack.up()


def test_an_error_of_the_program_names_the_line_it_comes_from(shop: Shop) -> None:
    def program() -> None:
        raise ValueError("no zones left")

    shop.program = program
    with pytest.raises(StackFailed) as failure:
        shop.stack.up()
    assert str(failure.value).splitlines()[0] == "up failed: the program failed: no zones left"
    assert "test_aws_resources.py" in str(failure.value)


def test_functions_answer_while_the_program_runs(shop: Shop) -> None:
    def program() -> None:
        options = pulumi.InvokeOptions(provider=on_aws().provider)
        zones = aws_sdk.get_availability_zones(state="available", opts=options)
        pulumi.export("zones", zones.names)
        pulumi.export("account", aws_sdk.get_caller_identity(opts=options).account_id)
        pulumi.export("partition", aws_sdk.get_partition(opts=options).partition)
        pulumi.export("region", aws_sdk.get_region(opts=options).region)

    shop.program = program
    shop.stack.up()
    outputs = shop.stack.outputs()
    assert outputs["zones"][:2] == ["us-east-1a", "us-east-1b"]
    assert (outputs["account"], outputs["partition"], outputs["region"]) == (
        "123456789012",
        "aws",
        "us-east-1",
    )


def test_what_somebody_deleted_is_made_again_after_a_refresh(shop: Shop, aws: LocalAws) -> None:
    def program() -> None:
        aws_sdk.iam.Role("node", name="shop-node", assume_role_policy=TRUST, opts=on_aws())

    shop.program = program
    shop.stack.up()
    aws.client("iam").delete_role(RoleName="shop-node")
    shop.stack.refresh()
    assert shop.stack.up()["create"] == 1
    assert aws.client("iam").get_role(RoleName="shop-node")


def test_nothing_is_left_running(shop: Shop, no_threads_left: None) -> None:
    shop.program = network
    shop.stack.preview()


def test_configuration_reaches_the_program(shop: Shop) -> None:
    shop.program = lambda: pulumi.export("color", pulumi.Config("shop").require("color"))
    shop.stack.up()
    assert shop.stack.outputs()["color"] == "red"
    blue = shop.another(color="blue")
    blue.up()
    assert blue.outputs()["color"] == "blue"


def test_a_queue_is_filled_by_its_rules_and_changes_in_place(shop: Shop, aws: LocalAws) -> None:
    def program(retention: int, detail_type: str) -> None:
        options = on_aws()
        queue = aws_sdk.sqs.Queue("q", name="shop", message_retention_seconds=retention, opts=options)
        pattern = json.dumps({"source": ["aws.ec2"], "detail-type": [detail_type]})
        rule = aws_sdk.cloudwatch.EventRule("r", event_pattern=pattern, opts=options)
        aws_sdk.cloudwatch.EventTarget("t", rule=rule.name, arn=queue.arn, opts=options)
        aws_sdk.sqs.QueuePolicy("p", queue_url=queue.url, policy=queue.arn.apply(_may_fill), opts=options)
        pulumi.export("url", queue.url)

    shop.program = lambda: program(300, "A")
    shop.stack.up()
    assert shop.another().up() == {"same": 6}
    url = shop.stack.outputs()["url"]
    shop.program = lambda: program(600, "B")
    assert shop.stack.up() == {"same": 4, "update": 2}
    sqs = aws.client("sqs")
    names = ["MessageRetentionPeriod", "Policy"]
    attributes = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=names)["Attributes"]
    assert attributes["MessageRetentionPeriod"] == "600"
    assert json.loads(attributes["Policy"])["Statement"][0]["Action"] == "sqs:SendMessage"
    for kind in ("A", "B"):
        entry = {"Source": "aws.ec2", "DetailType": kind, "Detail": "{}"}
        aws.client("events").put_events(Entries=[entry])
    received = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10)["Messages"]
    assert [json.loads(each["Body"])["detail-type"] for each in received] == ["B"]
    shop.stack.destroy()
    assert "QueueUrls" not in sqs.list_queues()
    assert aws.client("events").list_rules()["Rules"] == []


def _may_fill(queue: str) -> str:
    statement = {
        "Effect": "Allow",
        "Principal": {"Service": "events.amazonaws.com"},
        "Action": "sqs:SendMessage",
        "Resource": queue,
    }
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


def movable(after: bool) -> None:
    """What pulumi-aws changes in place though it looks like another resource."""
    options = on_aws()
    made = [aws_sdk.ec2.Vpc(f"net-{n}", cidr_block=f"10.{n}.0.0/16", opts=options) for n in range(2)]
    vpc = made[0]
    aws_sdk.ec2.InternetGateway("way-out", vpc_id=made[after].id, opts=options)
    subnet = aws_sdk.ec2.Subnet("subnet", vpc_id=vpc.id, cidr_block="10.0.0.0/24", opts=options)
    tables = [aws_sdk.ec2.RouteTable(f"table-{n}", vpc_id=vpc.id, opts=options) for n in range(2)]
    aws_sdk.ec2.RouteTableAssociation(
        "association", subnet_id=subnet.id, route_table_id=tables[after].id, opts=options
    )
    aws_sdk.ec2.VpcEndpoint(
        "endpoint",
        vpc_id=vpc.id,
        service_name="com.amazonaws.us-east-1.sts",
        vpc_endpoint_type="Interface",
        subnet_ids=[subnet.id],
        private_dns_enabled=after,
        opts=options,
    )
    group = aws_sdk.ec2.SecurityGroup("group", vpc_id=vpc.id, opts=options)
    aws_sdk.ec2.SecurityGroupRule(
        "rule",
        type="ingress",
        security_group_id=group.id,
        protocol="tcp",
        from_port=443,
        to_port=443,
        cidr_blocks=["10.0.0.0/8"],
        description=f"web {after}",
        opts=options,
    )
    boundary = aws_sdk.iam.Policy("boundary", policy=json.dumps(ANYTHING), opts=options)
    aws_sdk.iam.Role(
        "role",
        name="shop-bound",
        assume_role_policy=TRUST,
        permissions_boundary=boundary.arn if after else None,
        opts=options,
    )


ANYTHING = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}
MOVED = {"way-out", "association", "endpoint", "rule", "role"}


def test_what_the_real_provider_changes_in_place_is_changed_in_place_and_back(
    shop: Shop, aws: LocalAws
) -> None:
    shop.program = lambda: movable(after=False)
    shop.stack.up()
    for after in (True, False):
        shop.program = partial(movable, after)
        steps: list[ResourceStep] = []
        shop.stack.up(steps.append)
        assert {(step.operation, step.name) for step in steps} == {("update", name) for name in MOVED}
        assert set(shop.stack.up()) == {"same"}, after
        role = aws.client("iam").get_role(RoleName="shop-bound")["Role"]
        assert ("PermissionsBoundary" in role) == after
        (gateway,) = aws.client("ec2").describe_internet_gateways(
            Filters=[{"Name": "attachment.state", "Values": ["available"]}]
        )["InternetGateways"][-1:]
        assert vpcs(aws)[gateway["Attachments"][0]["VpcId"]] == f"10.{int(after)}.0.0/16"


def test_a_key_for_secrets_is_given_to_a_cluster_in_place_and_is_never_taken_away(
    shop: Shop, aws: LocalAws
) -> None:
    key = "arn:aws:kms:us-east-1:123456789012:key/one"

    def program(*, encrypted: bool) -> None:
        options = on_aws()
        vpc = aws_sdk.ec2.Vpc("net", cidr_block="10.0.0.0/16", opts=options)
        subnets = [
            aws_sdk.ec2.Subnet(
                f"subnet-{zone}",
                vpc_id=vpc.id,
                cidr_block=f"10.0.{number}.0/24",
                availability_zone=f"us-east-1{zone}",
                opts=options,
            )
            for number, zone in enumerate("ab")
        ]
        role = aws_sdk.iam.Role("role", assume_role_policy=TRUST, opts=options)
        aws_sdk.eks.Cluster(
            "cluster",
            name="shop",
            role_arn=role.arn,
            vpc_config={"subnet_ids": [subnet.id for subnet in subnets]},
            encryption_config={"provider": {"key_arn": key}, "resources": ["secrets"]} if encrypted else None,
            opts=options,
        )

    shop.program = lambda: program(encrypted=False)
    shop.stack.up()
    shop.program = lambda: program(encrypted=True)
    assert shop.stack.up()["update"] == 1
    (given,) = aws.client("eks").describe_cluster(name="shop")["cluster"]["encryptionConfig"]
    assert given["provider"]["keyArn"] == key
    shop.program = lambda: program(encrypted=False)
    assert shop.stack.preview()["replace"] == 1


def test_the_version_of_an_add_on_is_looked_up_as_by_the_real_pulumi_eks(shop: Shop) -> None:
    """It asks for each add-on that a cluster is made with, for the newest or for EKS's own choice."""

    def asks(name: str) -> None:
        provider = aws_sdk.Provider("aws", region="us-east-1")
        options = pulumi.InvokeOptions(provider=provider)
        for newest in (True, False):
            found = aws_sdk.eks.get_addon_version_output(
                addon_name=name, kubernetes_version="1.30", most_recent=newest, opts=options
            )
            pulumi.export(f"newest {newest}", found.version)

    shop.program = partial(asks, "coredns")
    shop.stack.up()
    assert {version[:3] for version in shop.stack.outputs().values()} == {"v1."}
    shop.program = partial(asks, "no-such")
    with pytest.raises(StackFailed, match="no-such"):
        shop.stack.preview()


def test_rules_of_a_component_with_a_long_name_get_names_that_eventbridge_takes(
    shop: Shop, aws: LocalAws
) -> None:
    """The real provider makes up no name of more than 64 characters, and previews fail."""

    def rules(component: str) -> list[str]:
        shop.stack.destroy()
        shop.program = lambda: InterruptionQueue(
            component, {"cluster_name": "shop"}, pulumi.ResourceOptions(providers=[on_aws().provider])
        )
        shop.stack.up()
        assert "update" not in shop.stack.up()
        return sorted(rule["Name"] for rule in aws.client("events").list_rules()["Rules"])

    long = rules("the-warnings-about-all-instances-of-the-shop")
    assert len(long) == 5
    assert "shop-spot-interruption" in long
    # Where there is room for it, they have the component's name.
    assert [name[:8] for name in rules("warnings")] == ["warnings"] * 5

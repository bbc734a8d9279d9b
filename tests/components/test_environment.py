"""The whole environment as the program of infra/ registers it."""

import json
from typing import Any

import pytest
from pulumi import RunError
from pulumi.runtime import get_root_resource
from pulumi.runtime.sync_await import _sync_await

from pulumi_nodeless import names
from pulumi_nodeless.configuration import ConfigurationError
from pulumi_nodeless.network import first_zones
from tests.components.conftest import CONFIG, program
from tests.components.recorder import ACCOUNT, ISSUER, Recorder, Registered, run

DISCOVERY = "karpenter.sh/discovery"
GUARD = "nodeless-teardown"
LEASE = "kubernetes:coordination.k8s.io/v1:Lease"
CONFIG_MAP = "kubernetes:core/v1:ConfigMap"
PROVISIONER = "kubernetes:karpenter.sh/v1alpha5:Provisioner"
NODE_TEMPLATE = "kubernetes:karpenter.k8s.aws/v1alpha1:AWSNodeTemplate"
DEPLOYMENT = "kubernetes:apps/v1:Deployment"
CRD = "kubernetes:apiextensions.k8s.io/v1:CustomResourceDefinition"


def with_tag(recorder: Recorder, key: str) -> list[Registered]:
    return [each for each in recorder.custom() if key in (each.inputs.get("tags") or {})]


def controllers_policy(recorder: Recorder) -> Registered:
    (found,) = [
        each for each in recorder.of("aws:iam/policy:Policy") if each.inputs["name"].startswith("Karpenter")
    ]
    return found


def test_every_input_is_one_that_the_sdk_knows(environment: Recorder) -> None:
    assert environment.faults == []
    assert len(list(environment.custom())) > 60


def test_no_resource_uses_a_default_provider(environment: Recorder) -> None:
    providers = {
        f"{each.token.partition(':')[0]}: {each.provider.split('::')[-2]}"
        for each in environment.custom()
        if not each.token.startswith("pulumi:providers:")
    }
    assert providers == {"aws: aws", "kubernetes: nodeless-kubernetes"}


def test_every_resource_has_a_component_above_it(environment: Recorder) -> None:
    above = {
        resource.name
        for resource in environment.resources.values()
        if resource.parent.split("::")[2:3] == ["pulumi:pulumi:Stack"]
    }
    assert above == {"aws", "nodeless"}


def test_exactly_one_security_group_can_be_discovered(environment: Recorder) -> None:
    tagged = with_tag(environment, DISCOVERY)
    assert {each.token for each in tagged} == {"aws:ec2/subnet:Subnet"}
    (tag,) = environment.of("aws:ec2/tag:Tag")
    assert tag.inputs == {"resourceId": "sg-cluster", "key": DISCOVERY, "value": "demo"}
    cluster = environment.one("eks:index:Cluster").inputs
    assert cluster["skipDefaultSecurityGroups"] is True
    assert DISCOVERY not in json.dumps(cluster)


def test_nodes_and_fargate_live_in_private_subnets_only(environment: Recorder) -> None:
    subnets = environment.of("aws:ec2/subnet:Subnet")
    private = {subnet.name for subnet in subnets if DISCOVERY in subnet.inputs["tags"]}
    assert private == {f"nodeless-network-private-{index}" for index in range(3)}
    assert not any(subnet.inputs.get("mapPublicIpOnLaunch") for subnet in subnets if subnet.name in private)
    for profile in environment.of("aws:eks/fargateProfile:FargateProfile"):
        # Those of the first two zones, of which no change of the zones takes one away.
        assert profile.inputs["subnetIds"] == [f"nodeless-network-private-{index}-id" for index in range(2)]
    # So does the cluster, which EKS keeps in its zones.
    cluster = environment.one("eks:index:Cluster").inputs
    assert cluster["privateSubnetIds"] == [f"nodeless-network-private-{index}-id" for index in range(2)]
    assert cluster.get("publicSubnetIds") is None
    routes = {each.name: each.inputs for each in environment.of("aws:ec2/route:Route")}
    assert all("gatewayId" not in routes[f"{name}-default"] for name in private)


def test_no_node_comes_from_a_group(environment: Recorder) -> None:
    """The controller makes every node: the cluster brings none, by EKS's groups or by auto scaling ones."""
    groups = [
        resource.token for resource in environment.resources.values() if "group" in resource.token.lower()
    ]
    assert not [group for group in groups if "nodegroup" in group.lower() or "autoscaling" in group.lower()]
    assert environment.one("eks:index:Cluster").inputs["skipDefaultNodeGroup"] is True


def test_subnets_and_load_balancers_find_each_other(environment: Recorder) -> None:
    tags = {each.name: each.inputs["tags"] for each in environment.of("aws:ec2/subnet:Subnet")}
    assert tags["nodeless-network-public-0"]["kubernetes.io/role/elb"] == "1"
    assert tags["nodeless-network-private-0"]["kubernetes.io/role/internal-elb"] == "1"


def test_the_controllers_role_trusts_its_service_account_alone(environment: Recorder) -> None:
    role = next(
        each for each in environment.of("aws:iam/role:Role") if "ControllerRole" in each.inputs["name"]
    )
    (statement,) = json.loads(role.inputs["assumeRolePolicy"])["Statement"]
    assert statement["Condition"] == {
        "StringEquals": {
            f"{ISSUER}:aud": "sts.amazonaws.com",
            f"{ISSUER}:sub": "system:serviceaccount:karpenter:karpenter",
        }
    }
    account = environment.one("kubernetes:core/v1:ServiceAccount").inputs["metadata"]
    assert (account["namespace"], account["name"]) == ("karpenter", "karpenter")
    assert account["annotations"]["eks.amazonaws.com/role-arn"].endswith(f"role/{role.inputs['name']}")


def test_fixed_names_are_those_of_the_articles(environment: Recorder) -> None:
    roles = {each.inputs["name"] for each in environment.of("aws:iam/role:Role")}
    assert roles == {
        "KarpenterNodeRole-demo",
        "KarpenterControllerRole-demo",
        "AmazonEKSFargatePodExecutionRole-demo",
        "AmazonEKSLoadBalancerControllerRole-demo",
    }
    assert environment.one("aws:iam/instanceProfile:InstanceProfile").inputs["name"] == (
        "KarpenterNodeInstanceProfile-demo"
    )
    assert controllers_policy(environment).inputs["name"] == "KarpenterControllerPolicy-demo"
    fixed = environment.of("aws:iam/role:Role") + environment.of("aws:eks/fargateProfile:FargateProfile")
    assert all(each.delete_before_replace for each in fixed)


def test_nodes_may_join_by_access_entry_and_by_aws_auth(environment: Recorder) -> None:
    entry = environment.one("aws:eks/accessEntry:AccessEntry").inputs
    assert entry["type"] == "EC2_LINUX"
    assert entry["principalArn"].endswith("role/KarpenterNodeRole-demo")
    cluster = environment.one("eks:index:Cluster").inputs
    assert cluster["authenticationMode"] == "API_AND_CONFIG_MAP"
    assert {role_mapping["username"]: role_mapping["groups"] for role_mapping in cluster["roleMappings"]} == {
        "system:node:{{EC2PrivateDNSName}}": ["system:bootstrappers", "system:nodes"],
        "system:node:{{SessionName}}": ["system:bootstrappers", "system:nodes", "system:node-proxier"],
    }
    # The Kubernetes provider replaces a ConfigMap whose data change, unless it is said to change it in place.
    assert cluster["enableConfigMapMutable"] is True


@pytest.mark.parametrize(
    ("config", "blocks"),
    [
        # Said, so that blocks which were given before are lifted.
        ({}, ["0.0.0.0/0"]),
        ({"nodeless:publicAccessCidrs": '["203.0.113.0/24"]'}, ["203.0.113.0/24"]),
        ({"nodeless:endpointPublicAccess": "false"}, None),
    ],
)
def test_who_may_reach_the_public_endpoint_is_said(config: dict[str, str], blocks: list[str] | None) -> None:
    recorder = run(program, config={**CONFIG, **config})
    assert recorder.one("eks:index:Cluster").inputs.get("publicAccessCidrs") == blocks


def test_a_connected_network_is_admitted_to_the_private_endpoint_before_anything_is_made_in_the_cluster() -> (
    None
):
    private = {"nodeless:endpointPublicAccess": "false", "nodeless:privateAccessCidrs": '["192.0.2.0/24"]'}
    recorder = run(program, config={**CONFIG, **private})
    assert recorder.faults == []
    rule = recorder.one("aws:ec2/securityGroupRule:SecurityGroupRule")
    assert (rule.inputs["securityGroupId"], rule.inputs["cidrBlocks"]) == ("sg-cluster", ["192.0.2.0/24"])
    assert (rule.inputs["type"], rule.inputs["fromPort"], rule.inputs["toPort"]) == ("ingress", 443, 443)
    for made in recorder.custom():
        if made.token.startswith("kubernetes:"):
            assert rule.urn in recorder.everything_behind(made), made.name
    with pytest.raises(ConfigurationError, match=r"privateAccessCidrs: '192.0.2.1/24' is not a network"):
        run(program, config={**CONFIG, "nodeless:privateAccessCidrs": '["192.0.2.1/24"]'})


@pytest.mark.parametrize(("mode", "entries", "mappings"), [("API", 1, 0), ("CONFIG_MAP", 0, 2)])
def test_the_authentication_mode_decides_how_nodes_join(mode: str, entries: int, mappings: int) -> None:
    recorder = run(program, config={**CONFIG, "nodeless:authenticationMode": mode})
    assert len(recorder.of("aws:eks/accessEntry:AccessEntry")) == entries
    assert len(recorder.one("eks:index:Cluster").inputs.get("roleMappings") or []) == mappings


def test_fargate_takes_controller_and_dns_but_no_workloads(environment: Recorder) -> None:
    profiles = {
        each.inputs["fargateProfileName"]: each
        for each in environment.of("aws:eks/fargateProfile:FargateProfile")
    }
    deployment = environment.one(DEPLOYMENT).inputs
    assert profiles["karpenter"].inputs["selectors"] == [{"namespace": deployment["metadata"]["namespace"]}]
    assert {"namespace": "kube-system", "labels": {"k8s-app": "kube-dns"}} in (
        profiles["kube-system"].inputs["selectors"]
    )
    assert profiles["karpenter"].urn in profiles["kube-system"].dependencies, "one operation at a time"
    dns = environment.one("aws:eks/addon:Addon")
    assert json.loads(dns.inputs["configurationValues"]) == {"computeType": "Fargate"}
    assert profiles["kube-system"].urn in dns.dependencies


def test_the_guard_outlives_nothing_that_the_controller_needs(environment: Recorder) -> None:
    guard = environment.one(CONFIG_MAP, GUARD)
    assert guard.inputs["metadata"]["finalizers"] == ["nodeless.dev/teardown"]
    assert guard.inputs["metadata"]["labels"] == {"nodeless.dev/teardown": "guard"}
    assert guard.delete_timeout == "30m"
    assert guard.inputs["metadata"]["annotations"]["nodeless.dev/teardown-drain"] == "600s"
    assert "data" not in guard.inputs, "changed data replace a ConfigMap"
    assert_depends_on_all_but(environment, guard, {PROVISIONER, NODE_TEMPLATE, LEASE})


def test_the_hold_goes_before_the_guard_and_after_the_pools(environment: Recorder) -> None:
    hold, guard = environment.one(LEASE), environment.one(CONFIG_MAP, GUARD)
    assert guard.urn in hold.dependencies
    assert hold.urn in environment.everything_behind(environment.one(PROVISIONER))
    assert hold.inputs["metadata"]["namespace"] == "kube-system"
    assert hold.inputs["metadata"]["labels"] == {"nodeless.dev/teardown": "hold"}


def test_a_hold_is_named_after_its_place_in_the_program_not_after_the_stack() -> None:
    def hold(stack: str, types: str, name: str) -> str:
        return names.hold(f"urn:pulumi:{stack}::shop::{types}nodeless:index:TeardownGuard::{name}")

    assert hold("dev", "", "end") == hold("prod", "pulumi:pulumi:Stack$", "end")
    assert len({hold("dev", "", "end"), hold("dev", "", "stop"), hold("dev", "a:b:C$", "end")}) == 3


@pytest.mark.parametrize(("minutes", "drain", "reported"), [("8", "0", "240s"), ("60", "45", "2700s")])
def test_a_drain_ends_before_destruction_gives_up(minutes: str, drain: str, reported: str) -> None:
    times = {"nodeless:teardownTimeoutMinutes": minutes, "nodeless:teardownDrainMinutes": drain}
    guard = run(program, config={**CONFIG, **times}).one(CONFIG_MAP, GUARD)
    assert guard.inputs["metadata"]["annotations"]["nodeless.dev/teardown-drain"] == reported


@pytest.mark.parametrize("token", [PROVISIONER, NODE_TEMPLATE])
def test_pools_go_before_all_that_the_controller_needs(environment: Recorder, token: str) -> None:
    pool = environment.one(token)
    assert pool.delete_timeout == "30m"
    assert_depends_on_all_but(environment, pool, {PROVISIONER, NODE_TEMPLATE})
    assert environment.one(CONFIG_MAP, GUARD).urn in environment.everything_behind(pool)


def assert_depends_on_all_but(environment: Recorder, dependent: Registered, exempt: set[str]) -> None:
    """Only the user's own resources, or such that serve nobody at teardown, may go earlier or together."""
    needed = {
        each.urn for each in environment.custom() if each.token not in exempt and each.urn != dependent.urn
    }
    missing = {environment.resources[urn].name for urn in needed - environment.everything_behind(dependent)}
    assert missing == set()


def test_a_pool_goes_before_its_node_template(environment: Recorder) -> None:
    assert environment.one(NODE_TEMPLATE).urn in environment.one(PROVISIONER).dependencies


def test_the_first_pool_is_the_articles(environment: Recorder) -> None:
    assert environment.one(PROVISIONER).inputs["spec"] == {
        "providerRef": {"name": "default"},
        "requirements": [
            {"key": "karpenter.k8s.aws/instance-category", "operator": "In", "values": ["c", "m", "r"]},
            {"key": "karpenter.k8s.aws/instance-generation", "operator": "Gt", "values": ["2"]},
        ],
    }
    assert environment.one(NODE_TEMPLATE).inputs["spec"] == {
        # Of AL2, the default of the API, there are no images for the newest version of Kubernetes.
        "amiFamily": "Bottlerocket",
        "subnetSelector": {DISCOVERY: "demo"},
        "securityGroupSelector": {DISCOVERY: "demo"},
    }


def test_the_first_pool_can_be_left_out() -> None:
    recorder = run(program, config={**CONFIG, "nodeless:defaultPool": "false"})
    assert recorder.of(PROVISIONER) == recorder.of(NODE_TEMPLATE) == []
    assert recorder.one(CONFIG_MAP, GUARD)


@pytest.mark.parametrize(
    "templates", [{}, {"nodeless:nodeTemplates": '[{"name": "default", "amiFamily": "Ubuntu"}]'}]
)
def test_provisioners_of_ones_own_may_use_the_default_node_template(templates: dict[str, str]) -> None:
    own = json.dumps([{"name": name, "nodeTemplate": "default"} for name in ("batch", "web")])
    recorder = run(program, config={**CONFIG, "nodeless:provisioners": own, **templates})
    assert {each.inputs["metadata"]["name"] for each in recorder.of(PROVISIONER)} == {"batch", "web"}
    assert {each.inputs["spec"]["providerRef"]["name"] for each in recorder.of(PROVISIONER)} == {"default"}
    (template,) = recorder.of(NODE_TEMPLATE)
    assert template.inputs["metadata"]["name"] == "default"
    assert template.inputs["spec"].get("amiFamily") == ("Ubuntu" if templates else "Bottlerocket")


_TEMPLATES, _CLASSES = "nodeless:nodeTemplates", "nodeless:nodeClasses"


@pytest.mark.parametrize(
    ("key", "item", "path"),
    [
        (_TEMPLATES, {}, "nodeTemplates[0].amiFamily"),
        (_TEMPLATES, {"amiFamily": "AL2"}, "nodeTemplates[0].amiFamily"),
        (_CLASSES, {"amiAlias": "al2@latest"}, "nodeClasses[0].amiAlias"),
    ],
)
@pytest.mark.parametrize("version", ["", "1.33", "1.36"])
def test_amazon_linux_2_is_refused_where_aws_publishes_no_images_of_it(
    key: str, item: dict[str, str], path: str, version: str
) -> None:
    config = {**CONFIG, key: json.dumps([{"name": "own", **item}])}
    if version:
        config["nodeless:kubernetesVersion"] = version
    with pytest.raises(ConfigurationError) as raised:
        run(program, config=config)
    (line,) = [each for each in str(raised.value).splitlines() if path in each]
    assert f"AWS publishes no AL2 images for {f'Kubernetes {version}' if version else 'the newest'}" in line
    assert "set kubernetesVersion" in line.replace("kubernetes_version", "kubernetesVersion")


@pytest.mark.parametrize(
    ("config", "kind"),
    [
        ({"nodeless:kubernetesVersion": "1.32", _TEMPLATES: '[{"name": "own"}]'}, NODE_TEMPLATE),
        (
            {_TEMPLATES: '[{"name": "own", "amiSelector": {"aws-ids": "ami-0123456789abcdef0"}}]'},
            NODE_TEMPLATE,
        ),
        ({_TEMPLATES: '[{"name": "own", "amiFamily": "Bottlerocket"}]'}, NODE_TEMPLATE),
        ({_CLASSES: '[{"name": "own"}]'}, "kubernetes:karpenter.k8s.aws/v1:EC2NodeClass"),
    ],
)
def test_images_that_exist_are_taken(config: dict[str, str], kind: str) -> None:
    pools = {"nodeless:defaultPool": "false"}
    assert "own" in {
        each.inputs["metadata"]["name"]
        for each in run(program, config={**CONFIG, **pools, **config}).of(kind)
    }


def test_settings_follow_from_the_resources_made(environment: Recorder) -> None:
    data = environment.one(CONFIG_MAP, "karpenter-global-settings").inputs["data"]
    assert data["aws.clusterName"] == environment.one("eks:index:Cluster").inputs["name"]
    assert data["aws.clusterEndpoint"] == "https://ABC.gr7.us-east-1.eks.amazonaws.com"
    assert data["aws.defaultInstanceProfile"] == "KarpenterNodeInstanceProfile-demo"


def test_a_changed_setting_restarts_the_pods(environment: Recorder) -> None:
    changed = run(program, config={**CONFIG, "nodeless:controllerSettings": '{"batchMaxDuration": "30s"}'})

    def checksum(recorder: Recorder) -> str:
        template = recorder.one(DEPLOYMENT).inputs["spec"]["template"]
        return str(template["metadata"]["annotations"]["checksum/settings"])

    assert checksum(environment) != checksum(changed)
    data = changed.one(CONFIG_MAP, "karpenter-global-settings").inputs["data"]
    assert data["batchMaxDuration"] == "30s"


def test_the_users_environment_variables_reach_the_container() -> None:
    variables = '{"AWS_ENDPOINT_URL": "http://127.0.0.1:5000"}'
    recorder = run(program, config={**CONFIG, "nodeless:controllerEnvironment": variables})
    (container,) = recorder.one(DEPLOYMENT).inputs["spec"]["template"]["spec"]["containers"]
    assert {"name": "AWS_ENDPOINT_URL", "value": "http://127.0.0.1:5000"} in container["env"]


def test_values_that_the_configuration_reads_as_something_else_reach_the_controller_as_text() -> None:
    """`pulumi config set --path` stores true and 123 as a truth value and a number."""
    recorder = run(
        program,
        config={
            **CONFIG,
            "nodeless:controllerSettings": '{"aws.isolatedVPC": true, "aws.vmMemoryOverheadPercent": 0.05}',
            "nodeless:controllerEnvironment": '{"LEADER_ELECT": false}',
            "nodeless:tags": '{"cost": 123}',
        },
    )
    data = recorder.one(CONFIG_MAP, "karpenter-global-settings").inputs["data"]
    assert {type(value) for value in data.values()} == {str}
    assert data["aws.isolatedVPC"] == "true"
    assert data["aws.vmMemoryOverheadPercent"] == "0.05"
    assert json.loads(data["aws.tags"]) == {"cost": "123"}
    (container,) = recorder.one(DEPLOYMENT).inputs["spec"]["template"]["spec"]["containers"]
    assert {"name": "LEADER_ELECT", "value": "false"} in container["env"]
    assert recorder.one("aws:ec2/vpc:Vpc").inputs["tags"]["cost"] == "123"


def test_the_kubernetes_provider_gets_the_clusters_kubeconfig(environment: Recorder) -> None:
    provider = environment.one("pulumi:providers:kubernetes").inputs
    assert provider["enableServerSideApply"] == "true"
    document = json.loads(provider["kubeconfig"])
    assert document["clusters"][0]["cluster"]["server"] == "https://ABC.gr7.us-east-1.eks.amazonaws.com"
    assert provider["clusterIdentifier"].endswith("cluster/demo")


def test_growing_by_a_zone_only_adds(environment: Recorder) -> None:
    grown = run(program, config={**CONFIG, "nodeless:zoneCount": "4"})
    network = {urn for urn in environment.resources if "nodeless-network" in urn}
    assert network < {urn for urn in grown.resources if "nodeless-network" in urn}
    for urn in network:
        before, after = environment.resources[urn], grown.resources[urn]
        if before.token != "aws:ec2/vpcEndpoint:VpcEndpoint":
            assert before.inputs == after.inputs, before.name


def test_one_nat_gateway_for_each_zone_when_asked_for() -> None:
    recorder = run(program, config={**CONFIG, "nodeless:natGateways": "per-zone"})
    assert len(recorder.of("aws:ec2/natGateway:NatGateway")) == 3
    used = {each.inputs.get("natGatewayId") for each in recorder.of("aws:ec2/route:Route")}
    assert len(used - {None}) == 3


def test_more_zones_than_the_region_has_are_refused() -> None:
    with pytest.raises(RunError, match="the region has 4 usable zones"):
        first_zones(5, ["us-east-1a", "us-east-1b", "us-east-1c", "us-east-1d"])


class Unknowing(Recorder):
    """A first preview: providers know nothing yet of what they will make."""

    def new_resource(self, args: Any) -> tuple[str | None, dict[str, Any]]:
        super().new_resource(args)
        return None, {}


def test_a_first_preview_passes_with_nothing_known() -> None:
    recorder = run(program, config=CONFIG, recorder=Unknowing(), preview=True)
    assert recorder.faults == []
    assert recorder.one(PROVISIONER).inputs["spec"]["providerRef"] == {"name": "default"}
    names = [name for each in recorder.custom() for name in names_of(each)]
    assert len(names) > len(list(recorder.custom()))
    assert [name for name in names if "None" in name] == []


def names_of(registered: Registered) -> list[str]:
    """Its name in Pulumi, and those in its inputs that are known in a preview."""
    inputs = {**registered.inputs, **(registered.inputs.get("metadata") or {})}
    given = [value for key, value in inputs.items() if key.lower().endswith("name")]
    return [registered.name, *(value for value in given if isinstance(value, str))]


def test_an_existing_cluster_is_used_instead_of_a_new_one() -> None:
    def existing() -> None:
        import pulumi  # noqa: PLC0415 - the SDKs are slow to import
        import pulumi_aws as aws  # noqa: PLC0415

        from pulumi_nodeless import Environment  # noqa: PLC0415

        Environment(
            "apps",
            {
                "cluster_name": "demo",
                "authentication_mode": "API",
                "existing_cluster": {
                    "arn": "arn:aws:eks:eu-west-1:123456789012:cluster/demo",
                    "endpoint": "https://abc.eks",
                    "certificate_authority": "Q0E=",
                    "oidc_provider_arn": "arn:aws:iam::123456789012:oidc-provider/x",
                    "oidc_issuer": "https://oidc.example/id/1",
                    "vpc_id": "vpc-1",
                    "private_subnet_ids": ["subnet-1", "subnet-2"],
                    "security_group_id": "sg-1",
                },
            },
            pulumi.ResourceOptions(providers=[aws.Provider("aws", region="eu-west-1")]),
        )

    recorder = run(existing)
    assert recorder.faults == []
    assert recorder.of("eks:index:Cluster") == recorder.of("aws:ec2/vpc:Vpc") == []
    for profile in recorder.of("aws:eks/fargateProfile:FargateProfile"):
        assert profile.inputs["subnetIds"] == ["subnet-1", "subnet-2"]
    assert recorder.one(DEPLOYMENT)
    selectors = {
        each.inputs["fargateProfileName"]: each.inputs["selectors"]
        for each in recorder.of("aws:eks/fargateProfile:FargateProfile")
    }
    # Others may use its namespace: their pods are not taken, and it stays.
    assert selectors["karpenter-controller"] == [
        {"namespace": "karpenter", "labels": {"app.kubernetes.io/name": "karpenter"}}
    ]
    assert recorder.one("kubernetes:core/v1:Namespace").retained
    # EKS Auto Mode has pools of the same kinds: they, and their nodes, would be deleted with the definitions.
    assert recorder.of(CRD)
    assert all(each.retained for each in recorder.of(CRD))


def test_what_a_cluster_of_ones_own_has_goes_with_it(environment: Recorder) -> None:
    assert environment.of(CRD)
    assert not [each.name for each in environment.custom() if each.retained]


def test_warnings_about_instances_reach_the_controller_through_one_queue(environment: Recorder) -> None:
    queue = environment.one("aws:sqs/queue:Queue")
    assert (queue.inputs["name"], queue.inputs["messageRetentionSeconds"]) == ("demo", 300)
    assert queue.inputs["sqsManagedSseEnabled"] is True
    arn = f"arn:aws:sqs:us-east-1:{ACCOUNT}:demo"
    rules = {each.name: each for each in environment.of("aws:cloudwatch/eventRule:EventRule")}
    patterns = [json.loads(rule.inputs["eventPattern"])["detail-type"][0] for rule in rules.values()]
    assert sorted(patterns) == [
        "AWS Health Event",
        "EC2 Capacity Reservation Instance Interruption Warning",
        "EC2 Instance Rebalance Recommendation",
        "EC2 Instance State-change Notification",
        "EC2 Spot Instance Interruption Warning",
    ]
    targets = environment.of("aws:cloudwatch/eventTarget:EventTarget")
    assert {target.inputs["arn"] for target in targets} == {arn}
    assert len(targets) == len(rules)
    fill, deny = json.loads(environment.one("aws:sqs/queuePolicy:QueuePolicy").inputs["policy"])["Statement"]
    assert fill["Principal"] == {"Service": "events.amazonaws.com"}
    assert fill["Condition"]["ArnEquals"]["aws:SourceArn"] == [
        f"arn:aws:events:us-east-1:{ACCOUNT}:rule/{name}" for name in sorted(rules)
    ]
    assert (deny["Effect"], deny["Condition"]) == ("Deny", {"Bool": {"aws:SecureTransport": "false"}})
    settings = environment.one(CONFIG_MAP, "karpenter-global-settings").inputs["data"]
    assert settings["aws.interruptionQueueName"] == "demo"
    policy = json.loads(controllers_policy(environment).inputs["policy"])
    (granted,) = [each for each in policy["Statement"] if each["Sid"] == "InterruptionQueue"]
    assert granted["Resource"] == arn


def test_without_the_queue_nothing_speaks_of_it() -> None:
    recorder = run(program, config={**CONFIG, "nodeless:interruptionQueue": "false"})
    assert not [each for each in recorder.custom() if "sqs" in each.token or "cloudwatch" in each.token]
    settings = recorder.one(CONFIG_MAP, "karpenter-global-settings").inputs["data"]
    assert settings["aws.interruptionQueueName"] == ""
    assert "sqs:" not in controllers_policy(recorder).inputs["policy"]


def protected_names(recorder: Recorder) -> list[str]:
    return [resource.name for resource in recorder.resources.values() if resource.protect]


def test_a_production_stack_keeps_logs_and_cannot_be_deleted_by_mistake() -> None:
    key = "arn:aws:kms:us-east-1:123456789012:key/1"
    recorder = run(
        program,
        config={
            **CONFIG,
            "nodeless:clusterLogTypes": '["api", "audit"]',
            "nodeless:secretsKeyArn": key,
            "nodeless:protect": "true",
        },
    )
    assert recorder.faults == []
    cluster = recorder.one("eks:index:Cluster")
    assert cluster.inputs["enabledClusterLogTypes"] == ["api", "audit"]
    assert cluster.inputs["encryptionConfigKeyArn"] == key
    protected = {each.token for each in recorder.custom() if each.protect}
    assert {"aws:ec2/vpc:Vpc", "aws:ec2/subnet:Subnet"} <= protected
    assert cluster.protect
    assert not [
        resource.name
        for resource in recorder.resources.values()
        if resource.protect and "controller" in resource.name
    ]


def test_nothing_is_protected_unless_asked_for(environment: Recorder) -> None:
    assert protected_names(environment) == []


def test_unknown_logs_are_named_before_anything_is_registered() -> None:
    with pytest.raises(ConfigurationError) as refused:
        run(program, config={**CONFIG, "nodeless:clusterLogTypes": '["audits"]'})
    assert str(refused.value.problems[0]).startswith("clusterLogTypes: 'audits' is not one of api")


@pytest.mark.parametrize("mechanism", ["irsa", "pod-identity"])
def test_a_scoped_policy_too_long_for_a_managed_policy_becomes_two_of_one_role(mechanism: str) -> None:
    name = "c" * 100
    config = {**CONFIG, "nodeless:clusterName": name, "nodeless:controllerPermissions": "scoped"}
    if mechanism == "pod-identity":
        profiles = [{"name": "dns", "selectors": [{"namespace": "kube-system"}]}]
        config |= {
            "nodeless:controllerIdentity": mechanism,
            "nodeless:fargateProfiles": json.dumps(profiles),
        }
    recorder = run(program, config=config)
    assert recorder.faults == []
    found = [
        each
        for each in recorder.of("aws:iam/policy:Policy")
        if each.inputs["name"].startswith("KarpenterControllerPolicy")
    ]
    first, second = sorted(found, key=lambda each: each.name)
    assert second.name == f"{first.name}-2"
    assert second.inputs["name"].endswith("-2")
    statements = [json.loads(each.inputs["policy"])["Statement"] for each in (first, second)]
    assert all(part for part in statements), "each policy says something"
    sids = [each["Sid"] for part in statements for each in part]
    assert len(sids) == len(set(sids)), "and nothing is said twice"
    assert (sids[0], sids[-1]) == ("UseWhatNodeClassesSelect", "ReadZonalShifts")
    # https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html: without white space
    assert all(len("".join(each.inputs["policy"].split())) <= 6144 for each in found)
    arns = [
        each.inputs["policyArn"] for each in recorder.of("aws:iam/rolePolicyAttachment:RolePolicyAttachment")
    ]
    assert {f"arn:aws:iam::{ACCOUNT}:policy/{each.inputs['name']}" for each in found} <= set(arns)


def test_of_a_namespace_that_others_use_fargate_takes_the_controllers_pods_alone() -> None:
    recorder = run(program, config={**CONFIG, "nodeless:controllerNamespace": "kube-system"})
    profiles = recorder.of("aws:eks/fargateProfile:FargateProfile")
    selectors = [selector for profile in profiles for selector in profile.inputs["selectors"]]
    pod = recorder.one("kubernetes:apps/v1:Deployment").inputs["spec"]["template"]["metadata"]
    taking = [
        selector for selector in selectors if (selector.get("labels") or {}).items() <= pod["labels"].items()
    ]
    assert len(taking) == 1
    assert all(selector.get("labels") for selector in selectors if selector["namespace"] == "kube-system")


@pytest.mark.parametrize("namespace", ["karpenter", "nodes"])
def test_outputs_say_how_to_go_on_and_which_image_runs(namespace: str) -> None:
    image = f"registry.example/nodeless@sha256:{'b' * 64}"
    given = {"nodeless:controllerImage": image, "nodeless:controllerNamespace": namespace}
    run(program, config={**CONFIG, **given})
    outputs = get_root_resource().outputs

    async def known(name: str) -> Any:
        return await outputs[name].future()

    assert _sync_await(known("controllerImage")) == image
    steps = _sync_await(known("nextSteps"))
    assert steps[0] == "aws eks update-kubeconfig --region us-east-1 --name demo"
    assert f"kubectl -n {namespace} logs deployment/karpenter" in steps

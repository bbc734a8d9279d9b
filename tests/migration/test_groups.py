"""What a node group becomes: each setting has its place in the pool or its node class, or is listed."""

import base64
from fnmatch import fnmatchcase

import pytest
from typer.testing import CliRunner

from nodeless.cli.main import app
from nodeless.cloudprovider.aws.catalog_file import bundled_catalog
from tests.migration.running import (
    INPUT,
    a_nodegroup,
    a_scaling_group,
    a_template,
    an_autoscaler,
    carried_of,
    classes_of,
    faults_of,
    left_of,
    migrate,
    migration,
    pools_of,
    requirement,
    written,
)


@pytest.fixture(scope="module")
def shop():
    return migration(INPUT)


def alone(folder, document, *more, options=()):
    files = [written(folder, f"{number}.json", one) for number, one in enumerate((document, *more))]
    return migration(*files, *options)


def scaling(folder, group=None, **data):
    return alone(folder, a_template(**data), a_scaling_group(**(group or {})), options=("--role", "nodes"))


def test_each_group_becomes_a_pool_that_the_webhook_accepts(shop):
    assert {one["pool"]: one["from"] for one in shop["origins"]} == {
        "web": "nodegroup/web",
        "batch": "nodegroup/batch",
        "shop-legacy": "AutoScalingGroup/shop-legacy",
    }
    assert faults_of(shop["manifests"]) == []


def test_types_zones_capacity_labels_taints_and_sizes_are_those_of_the_group(shop):
    pools = pools_of(shop)
    assert requirement(pools["web"], "node.kubernetes.io/instance-type") == ("In", ["m5.xlarge"])
    assert requirement(pools["web"], "topology.kubernetes.io/zone") == ("In", ["us-east-1a", "us-east-1b"])
    assert requirement(pools["batch"], "karpenter.sh/capacity-type") == ("In", ["spot"])
    assert pools["batch"]["spec"]["template"]["spec"]["taints"] == [
        {"key": "dedicated", "value": "batch", "effect": "NoSchedule"}
    ]
    assert pools["web"]["spec"]["template"]["metadata"]["labels"] == {"team": "shop"}
    assert pools["web"]["spec"]["limits"] == {"cpu": "40", "memory": "163840Mi"}
    assert "nodegroup/web" in {
        entry["source"] for entry in shop["notCarried"] if "minSize" in entry["member"]
    }


def test_a_mixed_instances_policy_keeps_types_and_capacity_types_and_says_what_it_loses(shop):
    pool = pools_of(shop)["shop-legacy"]
    assert requirement(pool, "node.kubernetes.io/instance-type") == ("In", ["r5.large", "r5.xlarge"])
    assert requirement(pool, "karpenter.sh/capacity-type") == ("In", ["spot", "on-demand"])
    lost = left_of(shop, "AutoScalingGroup/shop-legacy")
    policy = "MixedInstancesPolicy.InstancesDistribution"
    assert (
        "nodeless does not keep shares of capacity types"
        in lost[f"{policy}.OnDemandPercentageAboveBaseCapacity"]["reason"]
    )
    assert lost[f"{policy}.SpotMaxPrice"]["value"] == "0.20"
    assert lost["MixedInstancesPolicy.LaunchTemplate.Overrides[1].WeightedCapacity"]["matters"]
    assert lost["WarmPoolConfiguration"]["matters"]
    assert "0 6 * * MON-FRI" in lost["scheduled action morning"]["value"]


def test_flags_of_the_autoscaler_become_weights_and_consolidation(shop):
    pools = pools_of(shop)
    assert {name: pool["spec"].get("weight") for name, pool in pools.items()} == {
        "web": None,
        "shop-legacy": 10,
        "batch": 20,
    }
    assert pools["web"]["spec"]["disruption"]["consolidateAfter"] == "5m"
    assert pools["shop-legacy"]["spec"]["disruption"]["consolidateAfter"] == "30m0s"
    assert pools["web"]["spec"]["disruption"]["budgets"][0] == {"nodes": "1", "reasons": ["Drifted"]}
    lost = left_of(shop, "Deployment/cluster-autoscaler")
    assert lost["--max-nodes-total"]["value"] == "30"
    assert lost["--balance-similar-node-groups"]["matters"]


def test_a_lifetime_of_instances_is_when_nodes_expire(shop):
    assert pools_of(shop)["shop-legacy"]["spec"]["template"]["spec"]["expireAfter"] == "604800s"
    assert pools_of(shop)["web"]["spec"]["template"]["spec"]["expireAfter"] == "Never"


def test_the_bootstrap_call_is_taken_apart_and_the_rest_of_the_script_is_kept(shop):
    spec = classes_of(shop)["shop-legacy"]["spec"]
    assert "bootstrap.sh" not in spec["userData"]
    assert "vm.max_map_count" in spec["userData"]
    assert spec["kubelet"] == {"maxPods": 58, "kubeReserved": {"cpu": "100m", "memory": "500Mi"}}
    assert spec["amiFamily"] == "AL2"
    assert pools_of(shop)["shop-legacy"]["spec"]["template"]["metadata"]["labels"] == {
        "workload": "legacy",
        "lifecycle": "mixed",
    }
    lost = left_of(shop, "LaunchTemplate/shop-legacy:7")
    assert lost["LaunchTemplateData.UserData --cpu-manager-policy"]["value"] == "static"


def test_a_node_config_keeps_what_has_no_field_and_gives_up_what_joins_the_cluster(shop):
    spec = classes_of(shop)["batch"]["spec"]
    assert "certificateAuthority" not in spec["userData"]
    assert "shutdownGracePeriod" in spec["userData"]
    assert "maxPods" not in spec["userData"]
    assert "mkdir -p /var/lib/batch" in spec["userData"]
    assert spec["kubelet"] == {"maxPods": 110}
    assert pools_of(shop)["batch"]["spec"]["template"]["metadata"]["labels"] == {"workload": "batch"}


def test_disks_metadata_options_security_groups_role_and_image_are_carried_over(shop):
    spec = classes_of(shop)["batch"]["spec"]
    assert spec["amiSelectorTerms"] == [{"id": "ami-0123456789abcdef0"}]
    assert spec["role"] == "shop-nodes"
    assert spec["securityGroupSelectorTerms"] == [{"id": "sg-0n1"}, {"id": "sg-0n2"}]
    assert spec["metadataOptions"]["httpPutResponseHopLimit"] == 2
    assert spec["blockDeviceMappings"][0]["ebs"]["volumeSize"] == "100Gi"
    assert spec["tags"] == {"owner": "batch-team"}
    legacy = classes_of(shop)["shop-legacy"]["spec"]
    assert (legacy["instanceProfile"], legacy["associatePublicIPAddress"]) == ("shop-legacy", False)
    assert classes_of(shop)["web"]["spec"]["amiSelectorTerms"] == [{"alias": "al2023@v20250920"}]


def test_a_disk_of_the_images_size_is_listed_and_the_others_are_kept(tmp_path):
    disks = [
        {"DeviceName": "/dev/xvda", "Ebs": {"Encrypted": True, "VolumeType": "gp3"}},
        {"DeviceName": "/dev/xvdb", "Ebs": {"VolumeSize": 100}},
    ]
    made = scaling(tmp_path, BlockDeviceMappings=disks)
    assert classes_of(made)["workers"]["spec"]["blockDeviceMappings"] == [
        {"deviceName": "/dev/xvdb", "ebs": {"volumeSize": "100Gi"}}
    ]
    lost = left_of(made, "LaunchTemplate/workers:1")["LaunchTemplateData.BlockDeviceMappings[0].Ebs"]
    assert "hint: add the device with a volumeSize" in lost["reason"]


@pytest.mark.parametrize(
    ("kind", "release", "alias"),
    [
        ("AL2_x86_64", "1.30.0-20240703", "al2@v20240703"),
        ("AL2_ARM_64", "", "al2@latest"),
        ("AL2023_ARM_64_STANDARD", "1.33.0-20250920", "al2023@v20250920"),
        ("BOTTLEROCKET_x86_64", "1.20.3-5d9ac849", "bottlerocket@v1.20.3"),
        ("WINDOWS_CORE_2022_x86_64", "1.33-2025.09.10", "windows2022@latest"),
        ("BOTTLEROCKET_ARM_64_FIPS", "1.20.3-5d9ac849", "bottlerocket@v1.20.3"),
    ],
)
def test_images_of_eks_become_aliases_of_their_release(tmp_path, kind, release, alias):
    made = alone(tmp_path, a_nodegroup(amiType=kind, releaseVersion=release))
    assert classes_of(made)["web"]["spec"]["amiSelectorTerms"] == [{"alias": alias}]
    assert ("FIPS" in kind) == any("FIPS" in entry["reason"] for entry in made["notCarried"])


def test_start_up_data_of_bottlerocket_keeps_its_other_settings(tmp_path):
    text = """
[settings.kubernetes]
cluster-name = "shop"
api-server = "https://example.eks.amazonaws.com"
max-pods = 80
[settings.kubernetes.node-labels]
team = "shop"
[settings.kubernetes.node-taints]
dedicated = ["shop:NoSchedule"]
[settings.kernel.sysctl]
"vm.max_map_count" = "262144"
"""
    made = scaling(tmp_path, UserData=base64.b64encode(text.encode()).decode())
    spec, pool = classes_of(made)["workers"]["spec"], pools_of(made)["workers"]["spec"]["template"]
    assert spec["amiFamily"] == "Bottlerocket"
    assert "vm.max_map_count" in spec["userData"]
    assert "cluster-name" not in spec["userData"]
    assert spec["kubelet"] == {"maxPods": 80}
    assert pool["metadata"]["labels"] == {"team": "shop"}
    assert pool["spec"]["taints"] == [{"key": "dedicated", "value": "shop", "effect": "NoSchedule"}]


def test_types_by_attributes_are_requirements(tmp_path):
    attributes = {
        "VCpuCount": {"Min": 2, "Max": 8},
        "MemoryMiB": {"Min": 4096},
        "CpuManufacturers": ["intel", "amd"],
        "InstanceGenerations": ["current"],
        "ExcludedInstanceTypes": ["c5.*", "m5.large"],
        "MemoryGiBPerVCpu": {"Min": 2.0},
    }
    template = a_template(InstanceRequirements=attributes)
    del template["LaunchTemplateVersions"][0]["LaunchTemplateData"]["InstanceType"]
    made = alone(tmp_path, template, a_scaling_group(), options=("--role", "nodes"))
    pool = pools_of(made)["workers"]
    prefix = "karpenter.k8s.aws/instance-"
    assert requirement(pool, f"{prefix}cpu") == ("Gt", ["1"])
    assert requirement(pool, f"{prefix}memory") == ("Gt", ["4095"])
    assert requirement(pool, f"{prefix}cpu-manufacturer") == ("In", ["intel", "amd"])
    assert requirement(pool, f"{prefix}family") == ("NotIn", ["c5"])
    assert requirement(pool, f"{prefix}category") == ("NotIn", ["t"])
    assert pool["spec"]["limits"] == {"nodes": "4"}
    lost = left_of(made, "LaunchTemplate/workers:1")
    assert lost["LaunchTemplateData.InstanceRequirements.MemoryGiBPerVCpu"]["matters"]


@pytest.mark.parametrize(
    ("given", "operator"),
    [
        ({"AllowedInstanceTypes": ["m5*.*", "r6i.large"]}, "In"),
        ({"AllowedInstanceTypes": ["m5.*", "r6i.large"]}, "In"),
        ({"AllowedInstanceTypes": ["*.2xlarge", "zz9*"]}, "In"),
        ({"AllowedInstanceTypes": ["c*a.*large"]}, "In"),
        ({"ExcludedInstanceTypes": ["*3*", "m5.large"]}, "NotIn"),
    ],
)
def test_patterns_of_types_are_the_types_that_they_match(tmp_path, given, operator):
    template = a_template(InstanceRequirements={"VCpuCount": {"Min": 2}, "MemoryMiB": {"Min": 4096}, **given})
    del template["LaunchTemplateVersions"][0]["LaunchTemplateData"]["InstanceType"]
    made = alone(tmp_path, template, a_scaling_group(), options=("--role", "nodes"))
    found, values = requirement(pools_of(made)["workers"], "node.kubernetes.io/instance-type")
    ((name, patterns),) = given.items()
    sold = [one.name for one in bundled_catalog().facts]
    matching = [kind for kind in sold if any(fnmatchcase(kind, pattern) for pattern in patterns)]
    assert (found, sorted(values)) == (operator, sorted(matching))
    lost = left_of(made, "LaunchTemplate/workers:1").get(f"LaunchTemplateData.InstanceRequirements.{name}")
    unknown = [pattern for pattern in patterns if pattern == "zz9*"]
    assert (lost is not None and lost["matters"]) == bool(unknown)


def test_a_pattern_that_no_type_matches_is_told_and_restricts_nothing(tmp_path):
    attributes = {"VCpuCount": {"Min": 2}, "MemoryMiB": {"Min": 4096}, "AllowedInstanceTypes": ["zz*"]}
    template = a_template(InstanceRequirements=attributes)
    del template["LaunchTemplateVersions"][0]["LaunchTemplateData"]["InstanceType"]
    made = alone(tmp_path, template, a_scaling_group(), options=("--role", "nodes"))
    assert requirement(pools_of(made)["workers"], "node.kubernetes.io/instance-type") is None
    lost = left_of(made, "LaunchTemplate/workers:1")
    assert (
        "no known instance type"
        in lost["LaunchTemplateData.InstanceRequirements.AllowedInstanceTypes"]["reason"]
    )


@pytest.mark.parametrize(
    ("given", "operator", "metal"),
    [({}, "In", False), ({"BareMetal": "excluded"}, "In", False), ({"BareMetal": "required"}, "NotIn", True)],
)
def test_bare_metal_is_left_out_in_every_size_unless_it_is_allowed(tmp_path, given, operator, metal):
    attributes = {"VCpuCount": {"Min": 2}, "MemoryMiB": {"Min": 4096}, **given}
    template = a_template(InstanceRequirements=attributes)
    del template["LaunchTemplateVersions"][0]["LaunchTemplateData"]["InstanceType"]
    made = alone(tmp_path, template, a_scaling_group(), options=("--role", "nodes"))
    found, values = requirement(pools_of(made)["workers"], "karpenter.k8s.aws/instance-hypervisor")
    assert found == operator
    allowed = [one.name for one in bundled_catalog().facts if (one.hypervisor in values) == (found == "In")]
    assert {"metal" in name for name in allowed} == {metal}


GPU, ACCELERATOR = (f"karpenter.k8s.aws/instance-{kind}-count" for kind in ("gpu", "accelerator"))


@pytest.mark.parametrize(
    ("given", "terms", "lost"),
    [
        (
            {"AcceleratorCount": {"Max": 0}},
            {GPU: ("DoesNotExist", []), ACCELERATOR: ("DoesNotExist", [])},
            [],
        ),
        ({"AcceleratorCount": {"Min": 2}}, {GPU: ("Gt", ["1"]), ACCELERATOR: None}, []),
        ({"AcceleratorTypes": ["inference"]}, {ACCELERATOR: ("Gt", ["0"]), GPU: None}, []),
        (
            {"AcceleratorTypes": ["gpu", "inference"]},
            {GPU: ("Gt", ["0"]), ACCELERATOR: None},
            ["AcceleratorTypes"],
        ),
        ({"AcceleratorTypes": ["fpga"]}, {GPU: None, ACCELERATOR: None}, ["AcceleratorTypes"]),
        ({"AcceleratorCount": {"Max": 4}}, {GPU: None, ACCELERATOR: None}, ["AcceleratorCount"]),
        ({"AcceleratorManufacturers": ["nvidia"]}, {GPU: None}, ["AcceleratorManufacturers"]),
    ],
)
def test_accelerators_are_required_as_far_as_labels_say_them(tmp_path, given, terms, lost):
    attributes = {"VCpuCount": {"Min": 2}, "MemoryMiB": {"Min": 4096}, **given}
    template = a_template(InstanceRequirements=attributes)
    del template["LaunchTemplateVersions"][0]["LaunchTemplateData"]["InstanceType"]
    made = alone(tmp_path, template, a_scaling_group(), options=("--role", "nodes"))
    assert {key: requirement(pools_of(made)["workers"], key) for key in terms} == terms
    left = left_of(made, "LaunchTemplate/workers:1")
    assert [member for member, one in left.items() if "Accelerator" in member and one["matters"]] == [
        f"LaunchTemplateData.InstanceRequirements.{name}" for name in lost
    ]


def mixed(*overrides):
    specification = {"LaunchTemplateId": "lt-1", "LaunchTemplateName": "workers", "Version": "$Latest"}
    template = {"LaunchTemplateSpecification": specification, "Overrides": list(overrides)}
    group = a_scaling_group(MixedInstancesPolicy={"LaunchTemplate": template})
    del group["AutoScalingGroups"][0]["LaunchTemplate"]
    return group


def test_types_of_an_override_with_a_template_of_its_own_are_for_another_pool(tmp_path):
    own = {"LaunchTemplateId": "lt-arm", "Version": "1"}
    arm = {"InstanceType": "m6g.large", "LaunchTemplateSpecification": own}
    made = alone(
        tmp_path, a_template(), mixed({"InstanceType": "m5.large"}, arm), options=("--role", "nodes")
    )
    types = requirement(pools_of(made)["workers"], "node.kubernetes.io/instance-type")
    assert types == ("In", ["m5.large"])
    lost = left_of(made, "AutoScalingGroup/workers")
    assert lost["MixedInstancesPolicy.LaunchTemplate.Overrides[1].InstanceType"]["value"] == "m6g.large"


def test_a_group_with_the_name_of_a_pool_gets_another_name(tmp_path):
    pool = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "web"},
        "spec": {
            "template": {
                "spec": {
                    "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "web"},
                    "requirements": [],
                }
            }
        },
    }
    node_class = {
        "apiVersion": "karpenter.k8s.aws/v1",
        "kind": "EC2NodeClass",
        "metadata": {"name": "web"},
        "spec": {
            "role": "nodes",
            "amiSelectorTerms": [{"alias": "al2023@latest"}],
            "subnetSelectorTerms": [{"id": "subnet-0123456789abcdef0"}],
            "securityGroupSelectorTerms": [{"id": "sg-0123456789abcdef0"}],
        },
    }
    made = alone(tmp_path, a_nodegroup(), pool, node_class)
    assert {one["pool"]: one["from"] for one in made["origins"]} == {
        "web": "NodePool/web",
        "web-2": "nodegroup/web",
    }
    assert sorted(classes_of(made)) == ["web", "web-2"]


def test_attributes_of_an_override_take_the_place_of_the_templates_type(tmp_path):
    first = {"InstanceRequirements": {"VCpuCount": {"Min": 4}, "MemoryMiB": {"Min": 8192}}}
    second = {"InstanceRequirements": {"VCpuCount": {"Min": 16}, "MemoryMiB": {"Min": 8192}}}
    made = alone(tmp_path, a_template(), mixed(first, second), options=("--role", "nodes"))
    pool = pools_of(made)["workers"]
    assert requirement(pool, "node.kubernetes.io/instance-type") is None
    assert requirement(pool, "karpenter.k8s.aws/instance-cpu") == ("Gt", ["3"])
    (lost,) = [
        entry
        for member, entry in left_of(made, "AutoScalingGroup/workers").items()
        if "InstanceReq" in member
    ]
    assert "Overrides[1]" in lost["member"]
    assert "hint: a second pool" in lost["reason"]


@pytest.mark.parametrize(
    ("largest", "limits"), [(0, {"cpu": "0", "memory": "0Mi"}), (4, {"cpu": "8", "memory": "32768Mi"})]
)
def test_a_group_of_no_nodes_is_a_pool_of_none(tmp_path, largest, limits):
    group = a_scaling_group(MaxSize=largest, DesiredCapacity=0)
    made = alone(tmp_path, a_template(), group, options=("--role", "nodes"))
    assert pools_of(made)["workers"]["spec"]["limits"] == limits


def test_labels_that_a_pool_may_not_have_are_listed_with_the_rule(tmp_path):
    made = alone(tmp_path, a_nodegroup(labels={"karpenter.sh/web": "true", "team": "shop"}))
    assert pools_of(made)["web"]["spec"]["template"]["metadata"]["labels"] == {"team": "shop"}
    assert "not for labels of pools" in left_of(made, "nodegroup/web")["label karpenter.sh/web"]["reason"]


def test_labels_that_name_the_group_are_not_those_of_the_pool(tmp_path):
    of_eksctl = {"alpha.eksctl.io/cluster-name": "shop", "alpha.eksctl.io/nodegroup-name": "web"}
    made = alone(tmp_path, a_nodegroup(labels={**of_eksctl, "team": "shop"}))
    assert pools_of(made)["web"]["spec"]["template"]["metadata"]["labels"] == {"team": "shop"}
    assert {f"label {key}" for key in of_eksctl} <= set(left_of(made, "nodegroup/web"))

    text = "eks.amazonaws.com/nodegroup=workers,eks.amazonaws.com/capacityType=SPOT,team=shop"
    script = f"#!/bin/bash\n/etc/eks/bootstrap.sh shop --kubelet-extra-args '--node-labels={text}'\n"
    made = scaling(tmp_path, UserData=base64.b64encode(script.encode()).decode())
    assert pools_of(made)["workers"]["spec"]["template"]["metadata"]["labels"] == {"team": "shop"}


def test_capacity_reservations_are_selected(tmp_path):
    target = {"CapacityReservationTarget": {"CapacityReservationId": "cr-0123456789abcdef0"}}
    made = scaling(tmp_path, CapacityReservationSpecification=target)
    spec = classes_of(made)["workers"]["spec"]
    assert spec["capacityReservationSelectorTerms"] == [{"id": "cr-0123456789abcdef0"}]
    assert requirement(pools_of(made)["workers"], "karpenter.sh/capacity-type") == (
        "In",
        ["reserved", "on-demand"],
    )


def test_a_launch_configuration_is_read_as_well(tmp_path):
    configuration = {
        "LaunchConfigurations": [
            {
                "LaunchConfigurationName": "old",
                "ImageId": "ami-0123456789abcdef0",
                "InstanceType": "m5.large",
                "IamInstanceProfile": "old-nodes",
                "SecurityGroups": ["sg-1"],
                "SpotPrice": "0.05",
                "InstanceMonitoring": {"Enabled": True},
            }
        ]
    }
    group = a_scaling_group(LaunchConfigurationName="old")
    del group["AutoScalingGroups"][0]["LaunchTemplate"]
    made = alone(tmp_path, configuration, group)
    spec = classes_of(made)["workers"]["spec"]
    assert (spec["instanceProfile"], spec["detailedMonitoring"]) == ("old-nodes", True)
    assert requirement(pools_of(made)["workers"], "karpenter.sh/capacity-type") == ("In", ["spot"])


def test_groups_whose_nodes_are_made_alike_share_a_node_class(tmp_path):
    made = alone(tmp_path, a_nodegroup("web"), a_nodegroup("jobs", instanceTypes=["c5.large"]))
    assert list(classes_of(made)) == ["web"]
    assert pools_of(made)["jobs"]["spec"]["template"]["spec"]["nodeClassRef"]["name"] == "web"


def test_two_groups_never_share_a_name(tmp_path):
    made = alone(tmp_path, a_nodegroup("Web_1"), a_nodegroup("web-1", diskSize=99))
    assert sorted(pools_of(made)) == ["web-1", "web-1-2"]


def test_a_group_that_the_flags_do_not_select_stays_as_it_is(tmp_path):
    flags = ["--nodes=1:3:workers"]
    container = {
        "name": "ca",
        "image": "registry.k8s.io/autoscaling/cluster-autoscaler:v1.33.0",
        "args": flags,
    }
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "ca", "namespace": "kube-system"},
        "spec": {"template": {"spec": {"containers": [container]}}},
    }
    made = alone(
        tmp_path, a_template(), a_scaling_group(), a_nodegroup(), deployment, options=("--role", "nodes")
    )
    assert list(pools_of(made)) == ["workers"]
    assert "do not select it" in left_of(made, "nodegroup/web")["the group"]["reason"]
    assert pools_of(made)["workers"]["spec"]["limits"]["cpu"] == "6"


def test_a_scale_down_that_is_off_is_a_budget_of_no_node(tmp_path):
    container = {"name": "ca", "image": "cluster-autoscaler", "args": ["--scale-down-enabled=false"]}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "ca"},
        "spec": {"template": {"spec": {"containers": [container]}}},
    }
    made = alone(tmp_path, a_nodegroup(), deployment)
    budgets = pools_of(made)["web"]["spec"]["disruption"]["budgets"]
    assert budgets == [{"nodes": "0", "reasons": ["Empty", "Underutilized"]}]


def test_sizes_of_the_flags_bound_the_pool_and_those_of_the_group_come_back(tmp_path):
    group = a_scaling_group(MinSize=0, MaxSize=10, DesiredCapacity=5)
    made = alone(
        tmp_path, a_template(), group, an_autoscaler("--nodes=1:3:workers"), options=("--role", "nodes")
    )
    assert pools_of(made)["workers"]["spec"]["limits"]["cpu"] == "6"
    (step,) = [one for one in made["steps"] if "to no nodes" in one["title"]]
    resize = "aws autoscaling update-auto-scaling-group --auto-scaling-group-name workers"
    assert step["commands"] == [f"{resize} --min-size 0 --max-size 10 --desired-capacity 0"]
    assert step["undo"] == [f"{resize} --min-size 0 --max-size 10 --desired-capacity 5"]


@pytest.mark.parametrize(
    ("key", "flags"),
    [
        ("startup-taint.cluster-autoscaler.kubernetes.io/disk", ()),
        ("ignore-taint.cluster-autoscaler.kubernetes.io/cilium", ()),
        ("readiness.k8s.io/gpu", ("--startup-taint-prefix=readiness.k8s.io/",)),
        ("example.com/warming", ("--startup-taint=example.com/warming",)),
        ("ebs.csi.aws.com/agent-not-ready", ()),
    ],
)
def test_taints_that_are_removed_from_new_nodes_are_startup_taints(tmp_path, key, flags):
    kept = {"key": "dedicated", "value": "shop", "effect": "NO_SCHEDULE"}
    group = a_nodegroup(taints=[{"key": key, "effect": "NO_EXECUTE"}, kept])
    template = pools_of(alone(tmp_path, group, an_autoscaler(*flags)))["web"]["spec"]["template"]["spec"]
    assert template["startupTaints"] == [{"key": key, "effect": "NoExecute"}]
    assert [taint["key"] for taint in template["taints"]] == ["dedicated"]


def test_any_type_leaves_the_types_to_the_solver_and_keeps_the_architecture(tmp_path):
    made = alone(tmp_path, a_nodegroup(instanceTypes=["m7g.large"]), options=("--any-type",))
    pool = pools_of(made)["web"]
    assert requirement(pool, "node.kubernetes.io/instance-type") is None
    assert requirement(pool, "kubernetes.io/arch") == ("In", ["arm64"])


def test_what_is_carried_over_says_where_it_is_now(shop):
    carried = carried_of(shop, "LaunchTemplate/shop-batch:4")
    assert carried["LaunchTemplateData.SecurityGroupIds"] == "EC2NodeClass spec.securityGroupSelectorTerms"
    assert carried["LaunchTemplateData.Monitoring.Enabled"] == "EC2NodeClass spec.detailedMonitoring"


def test_manifests_can_be_applied_as_they_are_printed(tmp_path):
    path = tmp_path / "pools.yaml"
    path.write_text(migrate(INPUT, "-o", "manifests").stdout)
    checked = CliRunner().invoke(app, ["validate", str(path)])
    assert checked.exit_code == 0, checked.stdout
    assert "# from nodegroup/web" in path.read_text()
    assert "userData: |" in path.read_text()

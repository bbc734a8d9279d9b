"""Every setting that is read changes something: a process gets values other than the defaults of most."""

import ast
import base64
import json
from functools import cache
from pathlib import Path

import pytest

import nodeless
from nodeless.operator.process_settings import PROCESS_SETTINGS
from nodeless.operator.settings import SETTINGS
from tests.controllers.process import lease_path, lines, scrape
from tests.controllers.world import CLAIMS, a_pod, a_provisioner, a_template
from tests.localenv.aws.world import AL2
from tests.rights import allow

_TABLES = {"settings.py", "process_settings.py"}


@cache
def asked_for():
    """Names of the attributes that the code beside the tables reads."""
    files = (file for file in Path(nodeless.__file__).parent.rglob("*.py") if file.name not in _TABLES)
    trees = (ast.parse(file.read_text()) for file in files)
    return {each.attr for tree in trees for each in ast.walk(tree) if isinstance(each, ast.Attribute)}


@pytest.mark.parametrize("name", [*SETTINGS, *PROCESS_SETTINGS])
def test_a_setting_that_is_read_is_used(name):
    """A setting that nobody asks for would be a promise without effect."""
    assert {"webhook_disabled": "webhook_enabled"}.get(name, name) in asked_for()


@pytest.mark.cluster
def test_settings_reach_the_node_that_is_made_and_what_the_process_leaves(
    replicas, control_plane, api, aws, network, namespace, tmp_path
):
    aws.client("iam").create_instance_profile(InstanceProfileName="other-nodes")
    pem = b"-----BEGIN CERTIFICATE-----\nMII=\n-----END CERTIFICATE-----\n"
    authority = base64.b64encode(pem).decode()
    data = {
        "aws.clusterEndpoint": "https://other.example",
        "aws.defaultInstanceProfile": "other-nodes",
        "aws.tags": json.dumps({"team": "platform"}),
        "aws.enablePodENI": "true",
        "aws.enableENILimitedPodDensity": "false",
        "aws.vmMemoryOverheadPercent": "0.5",
        "aws.isolatedVPC": "true",
        "nodeless.eksControlPlane": "false",
        "aws.nodeNameConvention": "resource-name",
        "batchIdleDuration": "200ms",
    }
    configs = f"/api/v1/namespaces/{namespace}/configmaps"
    api.patch(f"{configs}/karpenter-global-settings", {"data": data})
    api.create(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "our-logging", "namespace": namespace},
            "data": {"loglevel.controller": "debug"},
        }
    )
    allow(control_plane, namespace, "configmaps", "get", "list", "watch", name="our-logging")
    log = tmp_path / "log"
    process = replicas(
        "first",
        LEADER_ELECT="false",
        CONFIG_LOGGING_NAME="our-logging",
        LOG_OUTPUT_PATHS=f"stdout,{log}",
        CLUSTER_CA_BUNDLE=authority,
        NODELESS_DECISIONS=str(tmp_path / "decisions"),
        NODELESS_DECISIONS_KEPT="1",
    )
    # The API server's own version, which counts without EKS, has no images of AL2.
    image = aws.client("ssm").get_parameter(Name=AL2)["Parameter"]["Value"]
    template = a_template(amiSelector={"aws-ids": image})
    for document in (template, a_provisioner(), a_pod("web", namespace)):
        api.create(document)

    def launched():
        return [each for each in lines(process) if each["message"] == "launched instance"]

    (line,) = api.wait(launched, timeout=60, what="the launch")
    (instance,) = network.instances().values()
    assert line["hostname"] == instance["InstanceId"]
    assert {"Key": "team", "Value": "platform"} in instance["Tags"]
    assert instance["IamInstanceProfile"]["Arn"].endswith("/other-nodes")
    (claim,) = api.list(CLAIMS)
    capacity = claim["status"]["capacity"]
    assert capacity["pods"] == "110"
    assert int(capacity["vpc.amazonaws.com/pod-eni"]) > 0
    assert capacity["memory"] in ("4Gi", "4096Mi")
    (template,) = network.ec2.describe_launch_templates()["LaunchTemplates"]
    (version,) = network.ec2.describe_launch_template_versions(LaunchTemplateId=template["LaunchTemplateId"])[
        "LaunchTemplateVersions"
    ]
    user_data = base64.b64decode(version["LaunchTemplateData"]["UserData"]).decode()
    assert "https://other.example" in user_data
    assert "--use-max-pods false" in user_data
    assert f"--b64-cluster-ca '{authority}'" in user_data
    calls = {name for name in scrape(process) if name.startswith("nodeless_aws_call_duration_seconds_count")}
    assert calls
    assert not any('service="pricing"' in name or 'service="eks"' in name for name in calls)
    assert any(each["level"] == "DEBUG" for each in lines(process))
    assert "launched instance" in log.read_text()
    assert len([*(tmp_path / "decisions").iterdir()]) == 1
    assert api.find(lease_path(namespace)) is None
    assert process.poll() is None

"""Running `nodeless migrate` as a user does."""

import json
from pathlib import Path

import yaml
from typer.testing import CliRunner

from nodeless.api.validation import validate
from nodeless.cli.main import app

INPUT = Path(__file__).parent / "input"


def migrate(*arguments):
    return CliRunner().invoke(app, ["migrate", *map(str, arguments)])


def migration(*arguments):
    """The report; the input has to be usable."""
    ended = migrate(*arguments, "-o", "json")
    assert ended.exit_code in (0, 1), ended.stderr
    return json.loads(ended.stdout)


def written(folder, name, document):
    """A file of JSON, or of YAML where its name says so."""
    path = folder / name
    text = yaml.safe_dump(document) if name.endswith("yaml") else json.dumps(document)
    path.write_text(text)
    return path


def pools_of(made):
    return {one["metadata"]["name"]: one for one in made["manifests"] if one["kind"] == "NodePool"}


def classes_of(made):
    return {one["metadata"]["name"]: one for one in made["manifests"] if one["kind"] == "EC2NodeClass"}


def requirement(pool, key):
    for term in pool["spec"]["template"]["spec"]["requirements"]:
        if term["key"] == key:
            return term["operator"], term.get("values", [])
    return None


def left_of(made, source):
    return {entry["member"]: entry for entry in made["notCarried"] if entry["source"] == source}


def carried_of(made, source):
    return {entry["member"]: entry["to"] for entry in made["carried"] if entry["source"] == source}


def faults_of(manifests):
    return [str(fault) for manifest in manifests for fault in validate(manifest) if not fault.warning]


def a_nodegroup(name="web", **members):
    return {
        "nodegroup": {
            "nodegroupName": name,
            "clusterName": "shop",
            "capacityType": "ON_DEMAND",
            "scalingConfig": {"minSize": 0, "maxSize": 5, "desiredSize": 2},
            "instanceTypes": ["m5.large"],
            "subnets": ["subnet-1"],
            "amiType": "AL2023_x86_64_STANDARD",
            "nodeRole": "arn:aws:iam::111122223333:role/nodes",
            **members,
        }
    }


def a_template(**data):
    version = {
        "LaunchTemplateId": "lt-1",
        "LaunchTemplateName": "workers",
        "VersionNumber": 1,
        "DefaultVersion": True,
        "LaunchTemplateData": {"ImageId": "ami-0123456789abcdef0", "InstanceType": "m5.large", **data},
    }
    return {"LaunchTemplateVersions": [version]}


def a_scaling_group(**members):
    group = {
        "AutoScalingGroupName": "workers",
        "LaunchTemplate": {"LaunchTemplateId": "lt-1", "LaunchTemplateName": "workers", "Version": "$Latest"},
        "MinSize": 0,
        "MaxSize": 4,
        "DesiredCapacity": 1,
        "AvailabilityZones": ["us-east-1a"],
        "VPCZoneIdentifier": "subnet-1",
        **members,
    }
    return {"AutoScalingGroups": [group]}


def an_autoscaler(*flags):
    container = {"name": "ca", "image": "autoscaling/cluster-autoscaler:v1.36.0", "args": list(flags)}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "ca", "namespace": "kube-system"},
        "spec": {"template": {"spec": {"containers": [container]}}},
    }

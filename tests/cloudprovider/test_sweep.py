"""`nodeless sweep` with a controller that is gone: what it finds, what it ends, what it leaves alone."""

import pytest
from typer.testing import CliRunner, Result

from localenv.aws import LocalAws
from nodeless.cli.main import app
from tests.cloudprovider.conftest import CLUSTER, World

PROFILE = f"{CLUSTER}_0123456789abcdef"


def sweep(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["sweep", "--region", "us-east-1", *arguments])


def launch(aws: LocalAws, world: World, cluster: str, **tags: str) -> str:
    ec2 = aws.client("ec2")
    owned = {f"kubernetes.io/cluster/{cluster}": "owned", **tags}
    made = ec2.run_instances(
        ImageId=ec2.describe_images(Owners=["amazon"])["Images"][0]["ImageId"],
        InstanceType="m5.large",
        MinCount=1,
        MaxCount=1,
        SubnetId=world.subnets[0],
        TagSpecifications=[
            {
                "ResourceType": "instance",
                "Tags": [{"Key": key, "Value": value} for key, value in owned.items()],
            }
        ],
    )
    return str(made["Instances"][0]["InstanceId"])


def states(aws: LocalAws) -> dict[str, str]:
    reservations = aws.client("ec2").describe_instances()["Reservations"]
    return {
        instance["InstanceId"]: instance["State"]["Name"]
        for reservation in reservations
        for instance in reservation["Instances"]
    }


@pytest.fixture
def left(aws: LocalAws, world: World) -> str:
    """An instance, an interface, a launch template and a profile of the cluster; gives the instance's id."""
    iam = aws.client("iam")
    iam.create_instance_profile(InstanceProfileName=PROFILE, Path=f"/karpenter/us-east-1/{CLUSTER}/uid-1/")
    iam.add_role_to_instance_profile(InstanceProfileName=PROFILE, RoleName="nodes")
    ec2 = aws.client("ec2")
    ec2.create_network_interface(
        SubnetId=world.subnets[0],
        TagSpecifications=[
            {
                "ResourceType": "network-interface",
                "Tags": [{"Key": "cluster.k8s.amazonaws.com/name", "Value": CLUSTER}],
            }
        ],
    )
    ec2.create_launch_template(
        LaunchTemplateName="karpenter.k8s.aws/1",
        LaunchTemplateData={"InstanceType": "m5.large"},
        TagSpecifications=[
            {
                "ResourceType": "launch-template",
                "Tags": [{"Key": "karpenter.k8s.aws/cluster", "Value": CLUSTER}],
            }
        ],
    )
    return launch(aws, world, CLUSTER, **{"karpenter.sh/nodeclaim": "default-1"})


def test_without_yes_it_says_what_is_there_and_changes_nothing(aws: LocalAws, left: str) -> None:
    reported = sweep("--cluster", CLUSTER)

    assert reported.exit_code == 1
    assert "1 instance, 1 network interface, 1 launch template, 1 instance profile" in reported.stdout
    assert left in reported.stdout
    assert "--yes" in reported.stderr
    assert states(aws)[left] == "running"


def test_with_yes_everything_of_the_cluster_goes_and_nothing_else(
    aws: LocalAws, world: World, left: str
) -> None:
    others = [
        launch(aws, world, "other", **{"karpenter.sh/nodeclaim": "default-2"}),
        launch(aws, world, CLUSTER),  # made by somebody else: no claim's name
    ]

    reported = sweep("--cluster", CLUSTER, "--yes")

    assert reported.exit_code == 0, reported.output
    assert f"nothing of cluster {CLUSTER} is left" in reported.stderr
    assert states(aws)[left] in {"shutting-down", "terminated"}
    assert [states(aws)[other] for other in others] == ["running", "running"]
    ec2 = aws.client("ec2")
    assert ec2.describe_launch_templates()["LaunchTemplates"] == []
    profiles = aws.client("iam").list_instance_profiles()["InstanceProfiles"]
    assert [profile["InstanceProfileName"] for profile in profiles] == ["nodes"]
    tagged = [{"Name": "tag-key", "Values": ["cluster.k8s.amazonaws.com/name"]}]
    assert ec2.describe_network_interfaces(Filters=tagged)["NetworkInterfaces"] == []


def test_a_cluster_without_leftovers_is_no_fault(aws: LocalAws) -> None:
    reported = sweep("--cluster", "elsewhere", "--yes")

    assert reported.exit_code == 0
    assert "nothing is left" in reported.stdout


def test_an_aws_that_does_not_answer_is_named(monkeypatch: pytest.MonkeyPatch, aws: LocalAws) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_ENDPOINT_URL_EC2", "http://127.0.0.1:1")

    reported = sweep("--cluster", CLUSTER)

    assert reported.exit_code == 2
    assert "127.0.0.1:1" in reported.stderr

"""Input that cannot be used: every fault is named with its file and what to do, and the exit code is 2."""

import json

import pytest

from tests.migration.running import (
    INPUT,
    a_nodegroup,
    a_scaling_group,
    a_template,
    an_autoscaler,
    left_of,
    migrate,
    migration,
    pools_of,
    written,
)


def refused(*arguments):
    ended = migrate(*arguments)
    assert ended.exit_code == 2, ended.output
    assert ended.stdout == ""
    assert "Traceback" not in ended.stderr
    return ended.stderr


def raw(folder, name, text):
    path = folder / name
    path.write_text(text)
    return path


def test_json_that_is_cut_off(tmp_path):
    text = (INPUT / "web.json").read_text()
    path = raw(tmp_path, "web.json", text[: len(text) // 2])
    assert f"{path}:" in refused(path)
    assert "not JSON" in refused(path)
    assert "was the output cut off?" in refused(path)


@pytest.mark.parametrize("text", ["An error occurred (AccessDenied)", "42", "[1, 2]", '{"Reservations": []}'])
def test_text_that_is_neither_an_object_nor_an_answer(tmp_path, text):
    path = raw(tmp_path, "web.json", text)
    said = refused(path)
    assert f"{path}:1:1: error: neither a Kubernetes object nor a known output of the AWS CLI" in said
    assert "aws eks describe-nodegroup" in said


@pytest.mark.parametrize("text", ["", '{"apiVersion": "v1", "kind": "List", "items": []}'])
def test_an_empty_dump(tmp_path, text):
    path = raw(tmp_path, "cluster.json", text)
    assert (f"{path} contains no object; hint: did the command that made it fail") in refused(
        INPUT / "web.json", path
    )


def test_a_group_whose_template_is_not_there(tmp_path):
    path = written(tmp_path, "groups.json", a_scaling_group())
    said = refused(path)
    assert (
        f"{path}: AutoScalingGroup/workers: version $Latest of its launch template workers is not in" in said
    )
    assert "aws ec2 describe-launch-template-versions --launch-template-id lt-1 --versions '$Latest'" in said


def test_a_group_without_any_template(tmp_path):
    document = a_scaling_group()
    del document["AutoScalingGroups"][0]["LaunchTemplate"]
    said = refused(written(tmp_path, "groups.json", document))
    assert "has neither launch template nor launch configuration" in said


def test_a_type_that_nobody_sells(tmp_path):
    path = written(tmp_path, "web.json", a_nodegroup(instanceTypes=["m5.lagre"]))
    said = refused(path)
    assert (
        f"{path}: nodegroup/web: instance type m5.lagre is not known; hint: correct it, or give --catalog"
        in said
    )


def test_one_unknown_type_among_others_is_listed_and_not_refused(tmp_path):
    made = migration(written(tmp_path, "web.json", a_nodegroup(instanceTypes=["m5.large", "m5.lagre"])))
    assert any(one["value"] == "m5.lagre" for one in made["notCarried"])


def test_nodes_without_a_role(tmp_path):
    files = [written(tmp_path, "t.json", a_template()), written(tmp_path, "g.json", a_scaling_group())]
    assert "neither a role nor an instance profile of its nodes is known; hint: --role NAME" in refused(
        *files
    )


def test_the_scaling_group_of_a_managed_group_alone(tmp_path):
    tags = [{"Key": "eks:nodegroup-name", "Value": "web"}]
    path = written(tmp_path, "g.json", a_scaling_group(Tags=tags))
    assert "aws eks describe-nodegroup --nodegroup-name web" in refused(path)


def test_groups_that_are_not_migrated_keep_no_other_from_being_read(tmp_path):
    tags = {
        "workers": {"k8s.io/cluster-autoscaler/enabled": "true", "kubernetes.io/cluster/shop": "owned"},
        "bastion": {},
        "eks-pay": {"eks:nodegroup-name": "pay", "eks:cluster-name": "pay"},
    }
    groups = [
        a_scaling_group(
            AutoScalingGroupName=name,
            Tags=[{"Key": key, "Value": value} for key, value in of_group.items()],
            LaunchTemplate={"LaunchTemplateId": "lt-1" if name == "workers" else "lt-9", "Version": "1"},
        )["AutoScalingGroups"][0]
        for name, of_group in tags.items()
    ]
    flag = "--node-group-auto-discovery=asg:tag=k8s.io/cluster-autoscaler/enabled"
    made = migration(
        written(tmp_path, "groups.json", {"AutoScalingGroups": groups}),
        written(tmp_path, "template.json", a_template()),
        written(tmp_path, "ca.yaml", an_autoscaler(flag)),
        "--role",
        "nodes",
    )
    assert [one["from"] for one in made["origins"]] == ["AutoScalingGroup/workers"]
    assert "the group" in left_of(made, "AutoScalingGroup/bastion")


def test_groups_of_other_clusters_stay_as_they_are(tmp_path):
    tags = [{"Key": "eks:nodegroup-name", "Value": "pay"}, {"Key": "eks:cluster-name", "Value": "pay"}]
    files = [
        written(tmp_path, "web.json", a_nodegroup()),
        written(tmp_path, "groups.json", a_scaling_group(AutoScalingGroupName="eks-pay", Tags=tags)),
    ]
    made = migration(*files)
    assert list(pools_of(made)) == ["web"]
    reason = left_of(made, "AutoScalingGroup/eks-pay")["the group"]["reason"]
    assert "belongs to the cluster pay, of which the input has nothing else" in reason


def test_the_same_group_twice_is_one_and_two_versions_of_it_are_a_fault(tmp_path):
    once, again = written(tmp_path, "a.json", a_nodegroup()), written(tmp_path, "b.json", a_nodegroup())
    assert list(pools_of(migration(once, again))) == ["web"]
    other = written(tmp_path, "c.json", a_nodegroup(diskSize=99))
    said = refused(once, again, other)
    assert f"{other}: nodegroup/web is in {once}, too, and differs; hint: give the newest answer" in said


def test_members_of_another_type(tmp_path):
    path = written(tmp_path, "web.json", a_nodegroup(instanceTypes="m5.large"))
    assert f"{path}: nodegroup/web: instanceTypes is not a list of strings: m5.large" in refused(path)
    path = written(tmp_path, "web.json", {"nodegroup": "web"})
    assert f"{path}: nodegroup contains an item that is not an object: web" in refused(path)


@pytest.mark.parametrize("resources", [5, {"autoScalingGroups": 5}, {"autoScalingGroups": [5]}])
def test_scaling_groups_of_another_type_are_none(tmp_path, resources):
    assert list(pools_of(migration(written(tmp_path, "web.json", a_nodegroup(resources=resources))))) == [
        "web"
    ]


def test_every_fault_of_every_file_is_named_at_once(tmp_path):
    files = [
        raw(tmp_path, "cut.json", '{"nodegroup": {'),
        written(tmp_path, "web.json", a_nodegroup(instanceTypes=["nothing.large"])),
        written(tmp_path, "groups.json", a_scaling_group()),
        tmp_path / "missing.json",
    ]
    said = refused(*files)
    assert all(str(path) in said for path in files)
    assert said.rstrip().endswith("4 faults in the input; hint: see the lines above")


def test_a_dump_without_groups_or_pools(tmp_path):
    path = written(
        tmp_path, "ns.json", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
    )
    assert "neither a node group nor a pool in the input" in refused(path)


def test_zones_of_another_region(tmp_path):
    files = [written(tmp_path, "t.json", a_template())]
    files.append(written(tmp_path, "g.json", a_scaling_group(AvailabilityZones=["eu-west-1a"])))
    said = refused(*files, "--role", "nodes")
    assert "has none of the groups' zones (eu-west-1a); hint: give --catalog" in said


def test_a_page_and_a_document_cannot_both_go_to_stdout():
    assert "--html - and -o json both write to stdout" in refused(INPUT, "--html", "-", "-o", "json")


def test_what_is_no_json_document_is_still_one_of_kubernetes(tmp_path):
    objects = json.loads((INPUT / "web.json").read_text())
    path = raw(tmp_path, "both.json", json.dumps(objects) + "\n" + json.dumps(a_nodegroup("jobs")))
    assert {one["from"] for one in migration(path)["origins"]} == {"nodegroup/web", "nodegroup/jobs"}

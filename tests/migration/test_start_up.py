"""What the start-up data of nodes becomes: the call that joins is taken out, and nothing else is lost."""

import base64

import pytest

from tests.migration.running import (
    a_scaling_group,
    a_template,
    carried_of,
    classes_of,
    left_of,
    migration,
    pools_of,
    written,
)


def started_by(folder, text):
    """The migration of a group whose template has this user data."""
    encoded = base64.b64encode(text.encode()).decode()
    files = [
        written(folder, "template.json", a_template(UserData=encoded)),
        written(folder, "group.json", a_scaling_group()),
    ]
    return migration(*files, "--role", "nodes")


def class_of(made):
    return classes_of(made)["workers"]["spec"]


def template_of(made):
    return pools_of(made)["workers"]["spec"]["template"]


def test_a_command_that_changes_the_bootstrap_script_is_kept(tmp_path):
    change = "sed -i '/^KUBELET_EXTRA_ARGS=/a KUBELET_EXTRA_ARGS+=\" --max-pods=110\"' /etc/eks/bootstrap.sh"
    spec = class_of(started_by(tmp_path, f"#!/bin/bash\n{change}\n"))
    assert change in spec["userData"]
    assert spec["amiFamily"] == "AL2"


@pytest.mark.parametrize(
    ("script", "rest"),
    [
        ("yum install -y nfs-utils && /etc/eks/bootstrap.sh shop", "yum install -y nfs-utils && :"),
        ("/etc/eks/bootstrap.sh shop || shutdown -h now", ": || shutdown -h now"),
        ("/etc/eks/bootstrap.sh shop 2>&1 | tee /var/log/join.log", ": | tee /var/log/join.log"),
        (
            "if [ -x /etc/eks/bootstrap.sh ]; then\n  sudo /etc/eks/bootstrap.sh shop\nfi",
            "if [ -x /etc/eks/bootstrap.sh ]; then\n  :\nfi",
        ),
    ],
)
def test_commands_around_the_call_that_joins_stay_a_script(tmp_path, script, rest):
    assert class_of(started_by(tmp_path, f"#!/bin/bash\n{script}\n"))["userData"] == f"#!/bin/bash\n{rest}\n"


def test_arguments_in_quotes_may_span_lines(tmp_path):
    made = started_by(
        tmp_path,
        "#!/bin/bash\n/etc/eks/bootstrap.sh shop --kubelet-extra-args '--node-labels=team=shop\n"
        "  --register-with-taints=dedicated=shop:NoSchedule' --use-max-pods false\n",
    )
    assert "userData" not in class_of(made)
    assert template_of(made)["metadata"]["labels"] == {"team": "shop"}
    assert template_of(made)["spec"]["taints"] == [
        {"key": "dedicated", "value": "shop", "effect": "NoSchedule"}
    ]


def an_archive(*parts):
    documents = [f"--BOUNDARY\nContent-Type: {kind}\n\n{text}" for kind, text in parts]
    head = 'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="BOUNDARY"\n'
    return "\n".join([head, *documents, "--BOUNDARY--", ""])


def test_other_letters_than_those_of_ascii_stay_what_they_are(tmp_path):
    script = "#!/bin/bash\necho 'Größe 中' > /etc/motd\n"
    spec = class_of(started_by(tmp_path, an_archive(('text/x-shellscript; charset="utf-8"', script))))
    assert "echo 'Größe 中' > /etc/motd" in spec["userData"]


def test_a_cloud_config_is_still_one_on_new_nodes(tmp_path):
    spec = class_of(started_by(tmp_path, "#cloud-config\npackages:\n- htop\n"))
    assert spec["userData"].startswith("MIME-Version: 1.0")
    assert "Content-Type: text/cloud-config\n\n#cloud-config\npackages:\n- htop" in spec["userData"]


def test_an_archive_without_parts_is_kept_and_told(tmp_path):
    made = started_by(tmp_path, "MIME-Version: 1.0\n\n#!/bin/bash\necho hello\n")
    assert "echo hello" in class_of(made)["userData"]
    assert any("has no parts" in one["reason"] for one in left_of(made, "LaunchTemplate/workers:1").values())


def test_settings_of_bottlerocket_may_be_written_without_headings(tmp_path):
    made = started_by(
        tmp_path, 'settings.kubernetes.max-pods = 50\nsettings.kubernetes.cluster-name = "shop"\n'
    )
    assert class_of(made)["amiFamily"] == "Bottlerocket"
    assert class_of(made)["kubelet"] == {"maxPods": 50}


@pytest.mark.parametrize("address", ['"169.254.20.10"', '["169.254.20.10"]'])
def test_a_dns_server_of_bottlerocket_is_that_of_the_kubelet(tmp_path, address):
    made = started_by(tmp_path, f"[settings.kubernetes]\ncluster-dns-ip = {address}\n")
    assert class_of(made)["kubelet"] == {"clusterDNS": ["169.254.20.10"]}
    assert "EC2NodeClass spec.kubelet.clusterDNS" in carried_of(made, "LaunchTemplate/workers:1").values()


def test_where_local_disks_are_mounted_stays_in_the_node_config(tmp_path):
    made = started_by(
        tmp_path,
        "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  cluster: {name: shop}\n"
        "  instance: {localStorage: {strategy: RAID0, mountPath: /data}}\n",
    )
    assert class_of(made)["instanceStorePolicy"] == "RAID0"
    assert "mountPath: /data" in class_of(made)["userData"]

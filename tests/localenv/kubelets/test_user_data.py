"""User data as instances carry it: what each bootstrap makes of it, and what keeps a node from joining."""

from __future__ import annotations

import pytest

from localenv.kubelets.bootstrap import Taint, UserDataError
from localenv.kubelets.user_data import parse_user_data
from nodeless.launch.kubelet_arguments import Bootstrap, Cluster
from nodeless.launch.user_data import user_data
from nodeless.model import taints
from nodeless.model.pools import Kubelet

CLUSTER = Cluster("lab", "https://127.0.0.1:6443", "Y2E=", "10.96.0.10", "10.96.0.0/16")
SCRIPT = """#!/bin/bash
/etc/eks/bootstrap.sh lab \\
  --apiserver-endpoint https://127.0.0.1:6443 --b64-cluster-ca Y2E= --use-max-pods false \\
  --kubelet-extra-args '--node-labels=a=1,b=2  --register-with-taints=x=y:NoSchedule,z:NoExecute
  --max-pods=20'
"""


@pytest.mark.parametrize("of_v1", [False, True])
@pytest.mark.parametrize("family", ["AL2", "AL2023", "Bottlerocket", "Ubuntu", "Windows2022"])
def test_what_the_controller_writes_is_what_the_node_does(family: str, of_v1: bool) -> None:
    wanted = Bootstrap(
        CLUSTER,
        labels={"karpenter.sh/capacity-type": "spot", "team": "blue"},
        taints=(
            taints.Taint("dedicated", taints.TaintEffect.NO_SCHEDULE, "blue"),
            taints.Taint("karpenter.sh/unregistered", taints.TaintEffect.NO_EXECUTE),
        ),
        kubelet=Kubelet(
            max_pods=42,
            kube_reserved=(("cpu", "200m"), ("memory", "1Gi")),
            eviction_hard=(("memory.available", "5%"), ("nodefs.available", "10%")),
        ),
        of_v1=of_v1,
    )

    found = parse_user_data(user_data(family, wanted))

    assert (found.cluster_name, found.endpoint) == ("lab", "https://127.0.0.1:6443")
    assert found.certificate_authority == "Y2E="
    assert found.labels == {"karpenter.sh/capacity-type": "spot", "team": "blue"}
    assert set(found.taints) == {
        Taint("dedicated", "blue", "NoSchedule"),
        Taint("karpenter.sh/unregistered", "", "NoExecute"),
    }
    assert found.max_pods == 42
    assert found.kube_reserved == {"cpu": "200m", "memory": "1Gi"}
    assert found.eviction_hard == {"memory.available": "5%", "nodefs.available": "10%"}


def test_a_plain_script_is_read_across_continued_lines_and_quotes() -> None:
    found = parse_user_data(SCRIPT)

    assert found.labels == {"a": "1", "b": "2"}
    assert found.taints == (Taint("x", "y", "NoSchedule"), Taint("z", "", "NoExecute"))
    assert found.max_pods == 20


def test_reservations_are_read() -> None:
    arguments = (
        "--kube-reserved=cpu=100m,memory=1Gi --system-reserved=cpu=50m --eviction-hard=memory.available<5%"
    )

    found = parse_user_data(f"/etc/eks/bootstrap.sh lab --kubelet-extra-args '{arguments}'")

    assert found.kube_reserved == {"cpu": "100m", "memory": "1Gi"}
    assert found.system_reserved == {"cpu": "50m"}
    assert found.eviction_hard == {"memory.available": "5%"}


def test_without_max_pods_of_the_interfaces_a_node_takes_110() -> None:
    assert parse_user_data("/etc/eks/bootstrap.sh lab --use-max-pods false").max_pods == 110


def test_node_configs_of_several_parts_are_merged() -> None:
    kind = "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n"
    part = f"Content-Type: application/node.eks.aws\n\n{kind}"
    cluster = "  cluster: {name: lab,apiServerEndpoint: https://x, certificateAuthority: YQ==, cidr: 0/0}\n"
    kubelet = "  kubelet: {config: {maxPods: 7}, flags: ['--node-labels=a=1']}\n"
    archive = (
        'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="B"\n\n'
        f"--B\n{part}{cluster}\n--B\n{part}{kubelet}\n--B--\n"
    )

    found = parse_user_data(archive)

    assert (found.family, found.cluster_name, found.max_pods, found.labels) == (
        "AL2023",
        "lab",
        7,
        {"a": "1"},
    )


@pytest.mark.parametrize("line", ["sudo sysctl -w vm.nr_hugepages=2048", "sysctl vm.nr_hugepages = 2048"])
@pytest.mark.parametrize("family", ["AL2", "AL2023"])
def test_huge_pages_that_a_script_keeps_are_counted(family: str, line: str) -> None:
    script = f"#!/bin/bash -e\ncat /proc/sys/vm/nr_hugepages\n{line}\n"
    archive = f'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="B"\n\n--B\n\n{script}\n--B--\n'
    assert parse_user_data(user_data(family, Bootstrap(CLUSTER, {}, (), custom=archive))).huge_pages == 2048
    assert parse_user_data(user_data(family, Bootstrap(CLUSTER, {}, ()))).huge_pages == 0


def test_huge_pages_of_a_setting_are_counted() -> None:
    sysctl = '[settings.kernel.sysctl]\n"vm.nr_hugepages" = "512"\n'
    found = parse_user_data(user_data("Bottlerocket", Bootstrap(CLUSTER, {}, (), custom=sysctl)))
    assert found.huge_pages == 512


@pytest.mark.parametrize(
    "call",
    [
        "& $Script -EKSClusterName 'lab' -APIServerEndpoint 'https://x' -Base64ClusterCA 'YQ=='",
        '& $Script -EKSClusterName "lab" -APIServerEndpoint https://x -Base64ClusterCA "YQ=="',
        "& $Script `\r\n  -EKSClusterName lab `\r\n  -APIServerEndpoint 'https://x' -Base64ClusterCA YQ==",
    ],
)
def test_powershell_may_call_the_script_by_a_variable_and_quote_as_it_likes(call: str) -> None:
    flags = """ -KubeletExtraArgs '--node-labels="a=1,b=2" --max-pods=110'"""
    script = '[string]$Script = "$env:ProgramFiles\\Amazon\\EKS\\Start-EKSBootstrap.ps1"'

    found = parse_user_data(f"<powershell>\n{script}\n{call}{flags}\n</powershell>")

    assert (found.family, found.cluster_name, found.endpoint) == ("Windows", "lab", "https://x")
    assert (found.certificate_authority, found.labels, found.max_pods) == ("YQ==", {"a": "1", "b": "2"}, 110)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("<powershell>dir</powershell>", "no call of Start-EKSBootstrap.ps1"),
        ("", "is empty"),
        ("#!/bin/sh\necho hello", "no bootstrap found"),
        ("/etc/eks/bootstrap.sh", "needs the cluster's name"),
        ("/etc/eks/bootstrap.sh --unknown lab", "needs the cluster's name"),
        ("/etc/eks/bootstrap.sh lab --kubelet-extra-args", "lacks its value"),
        ("/etc/eks/bootstrap.sh 'lab", "does not parse"),
        (
            "/etc/eks/bootstrap.sh lab --kubelet-extra-args '--node-labels=kubernetes.io/role=x'",
            "kubernetes.io/role",
        ),
        ("/etc/eks/bootstrap.sh lab --kubelet-extra-args '--node-labels=alone'", "lacks its '='"),
        (
            "/etc/eks/bootstrap.sh lab --kubelet-extra-args '--register-with-taints=a=b:Never'",
            "taint 'a=b:Never'",
        ),
        ("/etc/eks/bootstrap.sh lab --kubelet-extra-args '--max-pods=many'", "'many' is not a number"),
        (
            "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec: {cluster: {name: lab}}",
            "apiServerEndpoint",
        ),
        ("[settings.kubernetes]\ncluster-name = 'lab'", "lacks api-server, cluster-certificate"),
        ("MIME-Version: 1.0\nContent-Type: text/plain\n\nx", "has no parts"),
    ],
)
def test_user_data_that_would_not_join_says_why(text: str, reason: str) -> None:
    with pytest.raises(UserDataError, match=reason):
        parse_user_data(text)

"""What instances run at first boot, compared byte for byte with files beside this one."""

import base64
import email
import gzip
import json
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from nodeless.launch.al2023 import kubelet_configuration
from nodeless.launch.kubelet_arguments import (
    Bootstrap,
    Cluster,
    go_duration,
    kubelet_labels,
    registration_taints,
)
from nodeless.launch.user_data import UserDataError, encode_base64, user_data
from nodeless.model.pools import Kubelet
from nodeless.model.taints import Taint

GOLDEN = Path(__file__).parent / "golden"
CLUSTER = Cluster("demo", "https://demo.example", "Q0E=", "10.100.0.10", "10.100.0.0/16")
PLAIN = Bootstrap(
    CLUSTER,
    {"karpenter.sh/capacity-type": "spot", "karpenter.sh/provisioner-name": "default", "team": "a"},
    registration_taints((Taint("gpu", "NoSchedule", "yes"),), (Taint("cni/not-ready", "NoExecute"),)),
)
EVERYTHING = replace(
    PLAIN,
    kubelet=Kubelet(
        cluster_dns=("fd00::10",),
        container_runtime="dockerd",
        max_pods=42,
        pods_per_core=4,
        system_reserved=(("memory", "100Mi"), ("cpu", "100m")),
        kube_reserved=(("cpu", "200m"),),
        eviction_hard=(("memory.available", "5%"),),
        eviction_soft=(("nodefs.available", "10%"), ("memory.available", "10%")),
        eviction_soft_grace_period=(("nodefs.available", "90s"), ("memory.available", "1m")),
        eviction_max_pod_grace_period=30,
        image_gc_high_threshold_percent=80,
        image_gc_low_threshold_percent=70,
        cpu_cfs_quota=False,
    ),
)
MIME = (
    'MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary="BOUNDARY"\r\n\r\n--BOUNDARY\r\n'
    'Content-Type: text/cloud-config; charset="us-ascii"\r\n\r\npackages: [jq]\r\n--BOUNDARY--\r\n'
)
NODE_CONFIG = """apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  featureGates: {FastImagePull: true}
"""
CASES = {
    "al2-plain": ("AL2", PLAIN),
    "al2-everything": ("AL2", EVERYTHING),
    "al2-custom-script": ("AL2", replace(PLAIN, custom="#!/bin/bash\necho hello\n")),
    "al2-custom-mime": ("AL2", replace(PLAIN, custom=MIME)),
    "al2-v1-plain": ("AL2", replace(PLAIN, of_v1=True)),
    "al2-v1-everything": ("AL2", replace(EVERYTHING, of_v1=True, instance_store_raid=True)),
    "ubuntu-plain": ("Ubuntu", PLAIN),
    "al2023-everything": ("AL2023", EVERYTHING),
    "al2-instance-store": ("AL2", replace(PLAIN, instance_store_raid=True)),
    "al2023-plain": ("AL2023", PLAIN),
    "al2023-instance-store": ("AL2023", replace(PLAIN, instance_store_raid=True)),
    "al2023-custom-config": ("AL2023", replace(PLAIN, custom=NODE_CONFIG)),
    "al2023-custom-script": ("AL2023", replace(PLAIN, custom="#!/bin/bash\necho hello\n")),
    "al2023-custom-mime": ("AL2023", replace(PLAIN, custom=MIME)),
    "ubuntu-everything": ("Ubuntu", EVERYTHING),
    "bottlerocket-plain": ("Bottlerocket", PLAIN),
    "bottlerocket-instance-store": (
        "Bottlerocket",
        replace(
            PLAIN, instance_store_raid=True, custom="[settings.bootstrap-commands.mine]\nmode = 'once'\n"
        ),
    ),
    "windows2019-plain": ("Windows2019", PLAIN),
    "windows2022-everything": ("Windows2022", EVERYTHING),
    "windows2025-custom": (
        "Windows2025",
        replace(PLAIN, custom="<powershell>\r\nWrite-Output 'hello'\r\n</powershell>\r\n"),
    ),
    "bottlerocket-everything": (
        "Bottlerocket",
        replace(
            EVERYTHING,
            custom="[settings.host-containers.admin]\nenabled = true\n"
            "[settings.kubernetes]\nevent-qps = 9\nunknown = 1\n"
            '[settings.kubernetes.node-labels]\nmine = "kept"\nteam = "lost"\n',
        ),
    ),
}


@pytest.mark.parametrize("name", sorted(CASES))
def test_to_the_byte(name: str) -> None:
    family, bootstrap = CASES[name]
    assert user_data(family, bootstrap) == (GOLDEN / f"{name}.txt").read_text()


def test_custom_is_untouched() -> None:
    text = "anything\r\n at all"
    assert user_data("Custom", replace(PLAIN, custom=text)) == text
    assert base64.b64decode(encode_base64(text)).decode() == text


BOTTLEROCKETS_OWN = """[settings.kubernetes]
eviction-max-pod-grace-period = 40
shutdown-grace-period = "30s"
cluster-name = "another"
unknown = 1
[settings.kubernetes.eviction-soft]
"memory.available" = "100Mi"
[settings.kubernetes.node-taints]
"node.cilium.io/agent-not-ready" = ["true:NoExecute"]
"""


@pytest.mark.parametrize("ours", [None, 90])
def test_a_setting_of_bottlerocket_stays_the_users_where_the_kubelet_asks_for_none(ours: int | None) -> None:
    family, bootstrap = CASES["bottlerocket-plain"]
    kubelet = replace(bootstrap.kubelet, eviction_max_pod_grace_period=ours)
    text = user_data(family, replace(bootstrap, custom=BOTTLEROCKETS_OWN, kubelet=kubelet))
    kubernetes = tomllib.loads(text)["settings"]["kubernetes"]
    assert kubernetes["eviction-max-pod-grace-period"] == (ours or 40)
    assert kubernetes["eviction-soft"] == {"memory.available": "100Mi"}
    assert kubernetes["shutdown-grace-period"] == "30s"
    assert kubernetes["cluster-name"] == bootstrap.cluster.name
    assert "unknown" not in kubernetes and "node.cilium.io" not in str(kubernetes.get("node-taints"))


def test_bottlerocket_keeps_the_users_tables_and_only_known_settings_of_its_own() -> None:
    settings = tomllib.loads(user_data(*CASES["bottlerocket-everything"]))["settings"]
    assert settings["host-containers"]["admin"]["enabled"] is True
    assert settings["kubernetes"]["event-qps"] == 9
    assert "unknown" not in settings["kubernetes"]
    assert settings["kubernetes"]["node-labels"] == {"mine": "kept", **PLAIN.labels}
    assert settings["kubernetes"]["node-taints"]["karpenter.sh/unregistered"] == [":NoExecute"]


def parts_of(text: str) -> list[tuple[str, str]]:
    """Content type and text of each part, as cloud-init splits an archive."""
    message = email.message_from_string(text)
    return [(part.get_content_type(), str(part.get_payload())) for part in message.walk()][1:]


def test_al2023_is_a_node_config() -> None:
    ((kind, text),) = parts_of(user_data("AL2023", PLAIN))
    config = json.loads(text)
    assert kind == "application/node.eks.aws"
    assert config["spec"]["cluster"]["cidr"] == "10.100.0.0/16"
    assert "instance" not in config["spec"]
    assert config["spec"]["kubelet"]["config"]["registerWithTaints"][-1] == {
        "key": "karpenter.sh/unregistered",
        "effect": "NoExecute",
    }


@pytest.mark.parametrize(
    ("custom", "kind"),
    [
        (NODE_CONFIG, "application/node.eks.aws"),
        ("#!/bin/bash\nkey: value\n", "text/x-shellscript"),
        ("echo hello", "text/x-shellscript"),
        (MIME, "text/cloud-config"),
    ],
)
def test_the_users_part_of_al2023_comes_first_and_as_what_it_is(custom: str, kind: str) -> None:
    kinds = [each for each, _ in parts_of(user_data("AL2023", replace(PLAIN, custom=custom)))]
    assert kinds == [kind, "application/node.eks.aws"]


ZIPPED = gzip.compress(b"#!/bin/bash\necho hello\n", mtime=0)
MERGED = f"""MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="B"

--B
Content-Type: text/cloud-config; charset="utf-8"
Merge-Type: list(append)+dict(recurse_array)+str()
Content-Disposition: attachment;
 filename="first.yaml"

runcmd: [echo 5 €]
--B
Content-Type: application/gzip
Content-Transfer-Encoding: base64

{base64.encodebytes(ZIPPED).decode()}
--B
Content-Type: text/x-shellscript
Content-Transfer-Encoding: base64

{base64.b64encode(b"echo hi").decode()}
--B--
"""


@pytest.mark.parametrize("family", ["AL2", "Ubuntu", "AL2023"])
def test_parts_of_an_archive_keep_their_headers_and_what_is_no_text(family: str) -> None:
    made = user_data(family, replace(PLAIN, custom=MERGED))
    config, zipped, script, _ = list(email.message_from_string(made).walk())[1:]
    assert config["Merge-Type"] == "list(append)+dict(recurse_array)+str()"
    assert config.get_filename() == "first.yaml"
    assert str(config.get_payload()).strip() == "runcmd: [echo 5 €]"
    assert zipped.get_content_type() == "application/gzip"
    assert zipped.get_payload(decode=True) == ZIPPED
    assert script.get_payload(decode=True) in (b"echo hi", b"echo hi\n")


def test_disks_inside_the_host_become_one_volume() -> None:
    raid = replace(PLAIN, instance_store_raid=True)
    assert "--local-disks raid0" in user_data("AL2", raid)
    assert "--local-disks" not in user_data("Ubuntu", raid)
    config = json.loads(parts_of(user_data("AL2023", raid))[-1][1])
    assert config["spec"]["instance"]["localStorage"] == {"strategy": "RAID0"}
    commands = tomllib.loads(user_data(*CASES["bottlerocket-instance-store"]))["settings"][
        "bootstrap-commands"
    ]
    assert list(commands) == ["000-mount-instance-storage", "mine"]
    assert commands["000-mount-instance-storage"]["essential"] is True


@pytest.mark.parametrize(
    ("release", "reported"), [("", True), ("v1.45.9", True), ("1.46.0", False), ("x", True)]
)
def test_only_older_bottlerocket_is_told_what_goes_on_these_disks(release: str, reported: bool) -> None:
    text = user_data("Bottlerocket", replace(PLAIN, instance_store_raid=True, release=release))
    commands = tomllib.loads(text)["settings"]["bootstrap-commands"]["000-mount-instance-storage"]["commands"]
    assert commands[0] == ["apiclient", "ephemeral-storage", "init"]
    assert ("--dirs" in commands[1]) == reported


def test_windows_runs_the_users_text_and_then_the_bootstrap_with_110_pods() -> None:
    lines = user_data(*CASES["windows2025-custom"]).splitlines()
    assert lines[:2] == ["<powershell>", "Write-Output 'hello'"]
    assert lines[-1] == "</powershell>"
    script = '"$env:ProgramFiles\\Amazon\\EKS\\Start-EKSBootstrap.ps1"'
    assert lines[2] == f"[string]$EKSBootstrapScriptFile = {script}"
    assert lines[3].startswith("& $EKSBootstrapScriptFile -EKSClusterName 'demo'")
    assert "--max-pods=110" in lines[3]


def test_a_quotation_mark_ends_no_argument_of_powershell() -> None:
    cluster = replace(CLUSTER, name="it's")
    assert "-EKSClusterName 'it''s' " in user_data("Windows2022", replace(PLAIN, cluster=cluster))


@pytest.mark.parametrize(
    ("family", "custom", "says"),
    [
        ("AL2", "MIME-Version: 1.0\n\nplain", "multipart/mixed"),
        ("Bottlerocket", "[settings", "is not TOML"),
        ("Bottlerocket", "settings = 3", "must be tables"),
        ("AL2", "#" * 17000, "16384"),
        ("AL2023", "apiVersion: node.eks.aws/v1alpha1\nkind: [", "is not YAML"),
        ("AL2023", "apiVersion: v1\nkind: ConfigMap\n", "kind ConfigMap"),
        ("AL2023", "MIME-Version: 1.0\n\nplain", "multipart/mixed"),
        ("AL2023", MIME.replace("text/cloud-config", "application/node.eks.aws"), "kind None"),
        ("Bottlerocket", "[settings.kubernetes]\nnode-labels = 3", "node-labels must be a table"),
        ("Windows2022", "<script>dir</script>", "<script> inside"),
        ("Windows", "", "use one of AL2"),
    ],
)
def test_what_cannot_be_merged_is_refused_with_a_hint(family: str, custom: str, says: str) -> None:
    with pytest.raises(UserDataError, match="hint: ") as caught:
        user_data(family, replace(PLAIN, custom=custom))
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("bootstrap", "reported"),
    [
        pytest.param(PLAIN, None, id="left-to-the-node"),
        pytest.param(replace(PLAIN, eni_limited_pod_density=False), 110, id="density-off"),
        pytest.param(replace(PLAIN, pods=20), 20, id="interfaces-kept-free"),
        pytest.param(
            replace(PLAIN, kubelet=Kubelet(max_pods=7), eni_limited_pod_density=False, pods=20),
            7,
            id="max-pods-wins",
        ),
    ],
)
def test_aws_5_6_a_limit_of_pods_is_told_where_the_node_would_compute_another(
    bootstrap: Bootstrap, reported: int | None
) -> None:
    for family in ("AL2", "Ubuntu"):
        text = user_data(family, bootstrap)
        assert ("--use-max-pods false" in text) == (reported is not None)
        assert (f"--max-pods={reported}" in text) == (reported is not None)
    kubelet = json.loads(parts_of(user_data("AL2023", bootstrap))[-1][1])["spec"]["kubelet"]
    assert kubelet["config"].get("maxPods") == reported
    assert (
        tomllib.loads(user_data("Bottlerocket", bootstrap))["settings"]["kubernetes"].get("max-pods")
        == reported
    )


def test_aws_5_6_every_kubelet_setting_of_bottlerocket_has_its_name() -> None:
    kubernetes = tomllib.loads(user_data("Bottlerocket", EVERYTHING))["settings"]["kubernetes"]
    assert kubernetes == {
        "cluster-name": "demo",
        "api-server": "https://demo.example",
        "cluster-certificate": "Q0E=",
        "node-labels": dict(PLAIN.labels),
        "node-taints": {
            "gpu": ["yes:NoSchedule"],
            "cni/not-ready": [":NoExecute"],
            "karpenter.sh/unregistered": [":NoExecute"],
        },
        "max-pods": 42,
        "cluster-dns-ip": "fd00::10",
        "system-reserved": {"cpu": "100m", "memory": "100Mi"},
        "kube-reserved": {"cpu": "200m"},
        "eviction-hard": {"memory.available": "5%"},
        "eviction-soft": {"memory.available": "10%", "nodefs.available": "10%"},
        "eviction-soft-grace-period": {"memory.available": "1m0s", "nodefs.available": "1m30s"},
        "eviction-max-pod-grace-period": 30,
        "cpu-cfs-quota-enforced": False,
        "image-gc-high-threshold-percent": "80",
        "image-gc-low-threshold-percent": "70",
    }


def test_aws_5_6_every_kubelet_setting_of_al2023_has_its_name() -> None:
    config = json.loads(parts_of(user_data("AL2023", EVERYTHING))[-1][1])["spec"]["kubelet"]["config"]
    assert config == {
        "clusterDNS": ["fd00::10"],
        "maxPods": 42,
        "podsPerCore": 4,
        "systemReserved": {"cpu": "100m", "memory": "100Mi"},
        "kubeReserved": {"cpu": "200m"},
        "evictionHard": {"memory.available": "5%"},
        "evictionSoft": {"memory.available": "10%", "nodefs.available": "10%"},
        "evictionSoftGracePeriod": {"memory.available": "1m0s", "nodefs.available": "1m30s"},
        "evictionMaxPodGracePeriod": 30,
        "imageGCHighThresholdPercent": 80,
        "imageGCLowThresholdPercent": 70,
        "cpuCFSQuota": False,
        "registerWithTaints": [
            {"key": "gpu", "effect": "NoSchedule", "value": "yes"},
            {"key": "cni/not-ready", "effect": "NoExecute"},
            {"key": "karpenter.sh/unregistered", "effect": "NoExecute"},
        ],
    }


def test_al2023_is_told_all_addresses_of_the_dns() -> None:
    """As in Karpenter: with a cache on the node, the cluster's own DNS is the second."""
    both = Kubelet(cluster_dns=("169.254.20.10", "172.20.0.10"))
    cluster = Cluster("demo", "https://demo.example", dns="172.20.0.10")
    dns = [
        kubelet_configuration(Bootstrap(cluster, {}, (), kubelet))["clusterDNS"]
        for kubelet in (both, Kubelet())
    ]
    assert dns == [["169.254.20.10", "172.20.0.10"], ["172.20.0.10"]]


def test_aws_5_6_the_arguments_of_al2_stand_in_karpenters_order() -> None:
    (script,) = (text for kind, text in parts_of(user_data("AL2", EVERYTHING)) if "shellscript" in kind)
    lines = [line.rstrip("\\ ") for line in script.splitlines()]
    assert lines[2].endswith("--apiserver-endpoint 'https://demo.example' --b64-cluster-ca 'Q0E='")
    assert [line.split()[0] for line in lines[3:]] == [
        "--ip-family",
        "--use-max-pods",
        "--container-runtime",
        "--kubelet-extra-args",
        "--dns-cluster-ip",
    ]
    assert not any("--container-runtime" in line for line in user_data("Ubuntu", EVERYTHING).splitlines())
    arguments = lines[6].split("'")[1]
    assert [word.split("=")[0] for word in arguments.split()] == [
        *("--node-labels", "--register-with-taints", "--max-pods", "--pods-per-core"),
        *("--system-reserved", "--kube-reserved", "--eviction-hard", "--eviction-soft"),
        *("--eviction-soft-grace-period", "--eviction-max-pod-grace-period"),
        *("--image-gc-high-threshold", "--image-gc-low-threshold", "--cpu-cfs-quota"),
    ]


def test_aws_5_6_al2_of_an_ec2_node_class_is_spelled_as_v1_does() -> None:
    of_v1 = replace(EVERYTHING, of_v1=True, instance_store_raid=True)
    ((_, script),) = parts_of(user_data("AL2", of_v1))
    lines = [line.rstrip("\\ ") for line in script.splitlines()]
    assert [line.split()[0] for line in lines[3:]] == [
        "--ip-family",
        "--dns-cluster-ip",
        "--use-max-pods",
        "--kubelet-extra-args",
        "--local-disks",
    ]
    words = lines[6].split("'")[1].split()
    assert [word for word in words if '"' in word] == [
        '--node-labels="karpenter.sh/capacity-type=spot,karpenter.sh/provisioner-name=default,team=a"',
        f'--register-with-taints="{",".join(map(str, PLAIN.taints))}"',
        '--system-reserved="cpu=100m,memory=100Mi"',
        '--kube-reserved="cpu=200m"',
        '--eviction-hard="memory.available<5%"',
        '--eviction-soft="memory.available<10%,nodefs.available<10%"',
        '--eviction-soft-grace-period="memory.available=1m0s,nodefs.available=1m30s"',
    ]
    # The order and the words of the arguments are the same in both generations.
    (former,) = (text for _, text in parts_of(user_data("AL2", EVERYTHING)))
    assert lines[6].replace('"', "") in [line.rstrip("\\ ") for line in former.splitlines()]


def test_labels_that_a_kubelet_may_not_set_are_left_to_the_controller() -> None:
    labels = {
        "kubernetes.io/role": "x",
        "node.kubernetes.io/a": "y",
        "topology.kubernetes.io/zone": "z",
        "b": "c",
    }
    assert list(kubelet_labels(labels)) == ["b", "node.kubernetes.io/a", "topology.kubernetes.io/zone"]


@pytest.mark.parametrize(
    ("text", "go"),
    [
        ("90s", "1m30s"),
        ("1h", "1h0m0s"),
        ("2m", "2m0s"),
        ("1.5s", "1.5s"),
        ("250ms", "250ms"),
        ("0s", "0s"),
        ("soon", "soon"),
    ],
)
def test_durations_as_go_prints_them(text: str, go: str) -> None:
    assert go_duration(text) == go

"""What instances run at first boot, compared byte for byte with files beside this one."""

import base64
import json
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from nodeless.launch.kubelet_arguments import (
    Bootstrap,
    Cluster,
    go_duration,
    kubelet_labels,
    registration_taints,
)
from nodeless.launch.user_data import UserDataError, encoded, user_data
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
CASES = {
    "al2-plain": ("AL2", PLAIN),
    "al2-everything": ("AL2", EVERYTHING),
    "al2-custom-script": ("AL2", replace(PLAIN, custom="#!/bin/bash\necho hello\n")),
    "al2-custom-mime": ("AL2", replace(PLAIN, custom=MIME)),
    "ubuntu-plain": ("Ubuntu", PLAIN),
    "al2023-everything": ("AL2023", EVERYTHING),
    "bottlerocket-everything": (
        "Bottlerocket",
        replace(
            EVERYTHING,
            custom="[settings.host-containers.admin]\nenabled = true\n"
            "[settings.kubernetes]\nevent-qps = 9\nunknown = 1\n"
            '[settings.kubernetes.node-labels]\nmine = "gone"\n',
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
    assert base64.b64decode(encoded(text)).decode() == text


def test_bottlerocket_keeps_the_users_tables_and_only_known_settings_of_its_own() -> None:
    settings = tomllib.loads(user_data(*CASES["bottlerocket-everything"]))["settings"]
    assert settings["host-containers"]["admin"]["enabled"] is True
    assert settings["kubernetes"]["event-qps"] == 9
    assert "unknown" not in settings["kubernetes"]
    assert settings["kubernetes"]["node-labels"] == dict(PLAIN.labels)
    assert settings["kubernetes"]["node-taints"]["karpenter.sh/unregistered"] == [":NoExecute"]


def test_al2023_is_a_node_config() -> None:
    config = json.loads(user_data("AL2023", PLAIN).split("\n\n", 2)[2].rsplit("\n--//--", 1)[0])
    assert config["spec"]["cluster"]["cidr"] == "10.100.0.0/16"
    assert config["spec"]["kubelet"]["config"]["registerWithTaints"][-1] == {
        "key": "karpenter.sh/unregistered",
        "effect": "NoExecute",
    }


@pytest.mark.parametrize(
    ("family", "custom", "says"),
    [
        ("AL2", "MIME-Version: 1.0\n\nplain", "multipart/mixed"),
        ("Bottlerocket", "[settings", "is not TOML"),
        ("Bottlerocket", "settings = 3", "must be tables"),
        ("AL2", "#" * 17000, "16384"),
        ("Windows", "", "use AL2"),
    ],
)
def test_what_cannot_be_merged_is_refused_with_a_hint(family: str, custom: str, says: str) -> None:
    with pytest.raises(UserDataError, match="hint: ") as caught:
        user_data(family, replace(PLAIN, custom=custom))
    assert says in str(caught.value)


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

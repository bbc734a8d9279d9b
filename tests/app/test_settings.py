"""Every fault of the settings is told at once, with its key and value."""

import pytest

from nodeless.app.settings import GlobalSettings, ProcessSettings, SettingsError


def test_the_defaults_are_karpenters():
    settings = GlobalSettings.from_config_map({"aws.clusterName": "demo"})
    assert (settings.batch_idle_seconds, settings.batch_max_seconds) == (1.0, 10.0)
    assert settings.vm_memory_overhead_percent == 0.075
    assert settings.enable_eni_limited_pod_density
    assert settings.node_name_convention == "ip-name"


@pytest.mark.parametrize(
    ("text", "seconds"), [("10s", 10), ("1m30s", 90), ("1.5s", 1.5), ("500ms", 0.5), ("1h", 3600)]
)
def test_durations_are_read_as_go_writes_them(text, seconds):
    data = {"aws.clusterName": "demo", "batchMaxDuration": text}
    assert GlobalSettings.from_config_map(data).batch_max_seconds == pytest.approx(seconds)


def test_all_faults_come_at_once_each_with_key_value_and_hint():
    data = {
        "batchMaxDuration": "",
        "batchIdleDuration": "0s",
        "aws.clusterEndpoint": "not a url",
        "aws.isolatedVPC": "maybe",
        "aws.vmMemoryOverheadPercent": "7.5",
        "aws.tags": "[]",
    }
    with pytest.raises(SettingsError) as caught:
        GlobalSettings.from_config_map(data)
    faults = "\n".join(caught.value.faults)
    for key in (*data, "aws.clusterName"):
        assert key in faults
    assert len(caught.value.faults) == 7
    assert all("hint:" in fault for fault in caught.value.faults)


def test_unknown_keys_are_ignored_as_karpenter_ignores_them():
    assert GlobalSettings.from_config_map({"aws.clusterName": "demo", "aws.tags.team": "x"}).tags == {}


def test_a_process_without_namespace_or_with_a_bad_port_says_both():
    with pytest.raises(SettingsError) as caught:
        ProcessSettings.from_environment({"METRICS_PORT": "http"})
    assert "SYSTEM_NAMESPACE" in str(caught.value)
    assert "METRICS_PORT='http'" in str(caught.value)


def test_the_pod_says_who_and_where_the_process_is():
    settings = ProcessSettings.from_environment(
        {"SYSTEM_NAMESPACE": "karpenter", "POD_NAME": "karpenter-1", "POD_IP": "10.0.1.2"}
    )
    assert (settings.identity, settings.bind_address) == ("karpenter-1", "10.0.1.2")

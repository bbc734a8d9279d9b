"""Every fault of the settings is told at once, with its key and value."""

import pytest

from nodeless.app.settings import GlobalSettings, ProcessSettings, SettingsError
from nodeless.solve import PriceAdjustment


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


def test_planning_is_at_the_lowest_price_unless_the_settings_or_the_environment_say_otherwise():
    def packing(process="lowest-price", **data):
        settings = GlobalSettings.from_config_map({"aws.clusterName": "demo", **data})
        return settings.solver.policy(process).packing

    assert ProcessSettings.from_environment({"SYSTEM_NAMESPACE": "karpenter"}).packing == "lowest-price"
    assert packing() == "lowest-price"
    assert packing("fewest-nodes") == "fewest-nodes"
    assert packing("fewest-nodes", **{"nodeless.packing": "lowest-price"}) == "lowest-price"


def test_an_unknown_packing_in_the_environment_is_refused():
    with pytest.raises(
        SettingsError, match=r"NODELESS_PACKING='cheap' is no packing; hint: use lowest-price"
    ):
        ProcessSettings.from_environment({"SYSTEM_NAMESPACE": "karpenter", "NODELESS_PACKING": "cheap"})


def test_fee_time_and_price_adjustments_reach_the_solver():
    data = {
        "aws.clusterName": "demo",
        "nodeless.nodeFee": "0.01",
        "nodeless.timeBox": "0",
        "nodeless.priceAdjustments": '[{"pools": ["batch"], "capacityTypes": ["on-demand"], "percent": -28}]',
    }
    policy = GlobalSettings.from_config_map(data).solver.policy("lowest-price")
    assert (policy.node_fee, policy.time_box) == (0.01, 0.0)
    assert policy.price_adjustments == (
        PriceAdjustment(pools=("batch",), capacity_types=("on-demand",), percent=-28.0),
    )


@pytest.mark.parametrize(
    ("key", "text", "problem"),
    [
        ("nodeless.packing", "tight", "is no packing"),
        ("nodeless.nodeFee", "-1", "is no number from 0 on"),
        ("nodeless.timeBox", "soon", "is no number from 0 on"),
        ("nodeless.priceAdjustments", "{}", "is no JSON list"),
        ("nodeless.priceAdjustments", '[{"percent": "-20"}]', "entry 0: percent is no number"),
        ("nodeless.priceAdjustments", '[{"percent": -120}]', "entry 0: percent is -120"),
        ("nodeless.priceAdjustments", '[{"pool": "batch", "percent": 1}]', "entry 0: unknown member 'pool'"),
        ("nodeless.priceAdjustments", '[{"pools": "batch", "percent": 1}]', "entry 0: pools is no list"),
        ("nodeless.priceAdjustments", '[{"pools": ["batch"]}]', "entry 0: changes no price"),
    ],
)
def test_a_wrong_setting_of_the_solver_is_told_with_a_hint(key, text, problem):
    with pytest.raises(SettingsError) as caught:
        GlobalSettings.from_config_map({"aws.clusterName": "demo", key: text})
    (fault,) = caught.value.faults
    assert f"key {key}={text!r}: {problem}" in fault
    assert "; hint: " in fault

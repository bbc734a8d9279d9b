"""Settings: every key with its default, its values and its faults, from wherever it is given."""

import base64
import json

import pytest

from nodeless.api.times import parse_time
from nodeless.cloudprovider.billing.terms import bill_terms
from nodeless.model.commitments import Commitment
from nodeless.model.lost_work import InterruptionRate
from nodeless.operator.config_sources import ConfigSources
from nodeless.operator.process_settings import PROCESS_SETTINGS, ProcessSettings
from nodeless.operator.settings import (
    SETTINGS,
    GlobalSettings,
    SettingsError,
    read_settings,
    settings_faults,
    unknown_keys,
)
from nodeless.operator.solver_policy import policy_of
from nodeless.scheduling import PriceAdjustment
from nodeless.scheduling.policy import DEFAULT_TIME_BOX

NAMED = {"aws.clusterName": "demo"}


def read(**data):
    return GlobalSettings.from_config_map({**NAMED, **data})


NINE_PERCENT_LESS = PriceAdjustment(percent=-9.0)
AUTHORITY = base64.b64encode(b"-----BEGIN CERTIFICATE-----\nMII=\n-----END CERTIFICATE-----\n").decode()
#: Key, field, default, a text and what it means, a text that means nothing (None: there is none).
TABLE = [
    ("batchMaxDuration", "batch_max_seconds", 10.0, "1m30s", 90.0, "0s"),
    ("batchIdleDuration", "batch_idle_seconds", 1.0, "500ms", 0.5, "soon"),
    ("featureGates.driftEnabled", "drift_enabled", False, "T", True, "yes"),
    ("aws.clusterEndpoint", "cluster_endpoint", "", "https://a.example", "https://a.example", '"https://a"'),
    ("aws.defaultInstanceProfile", "default_instance_profile", "", "nodes", "nodes", None),
    ("aws.enablePodENI", "enable_pod_eni", False, "TRUE", True, "on"),
    ("aws.enableENILimitedPodDensity", "enable_eni_limited_pod_density", True, "0", False, "off"),
    ("nodeless.reservedENIs", "reserved_interfaces", 0, "1", 1, "-1"),
    ("nodeless.prefixDelegation", "prefix_delegation", False, "true", True, "yes"),
    ("nodeless.podAddresses", "pod_addresses", "subnet", "none", "none", "pods"),
    ("aws.isolatedVPC", "isolated_vpc", False, "true", True, "maybe"),
    ("nodeless.clusterCABundle", "cluster_ca_bundle", "", AUTHORITY, AUTHORITY, "Q0E="),
    ("nodeless.eksControlPlane", "eks_control_plane", True, "false", False, "maybe"),
    ("nodeless.zonalShift", "zonal_shift", False, "true", True, "maybe"),
    ("nodeless.amiRefreshInterval", "ami_refresh_interval", 60.0, "15m", 900.0, "59s"),
    ("nodeless.subnetRefreshInterval", "subnet_refresh_interval", 60.0, "2h", 7200.0, "often"),
    ("nodeless.disableDryRun", "disable_dry_run", False, "true", True, "maybe"),
    ("aws.nodeNameConvention", "node_name_convention", "ip-name", "resource-name", "resource-name", "dns"),
    ("aws.vmMemoryOverheadPercent", "vm_memory_overhead_percent", 0.075, "0.1", 0.1, "7.5"),
    ("aws.interruptionQueueName", "interruption_queue_name", "", "queue", "queue", None),
    ("aws.tags", "tags", {}, '{"team": "x"}', {"team": "x"}, '["team"]'),
    ("nodeless.packing", "packing", "lowest-price", "fewest-nodes", "fewest-nodes", "tight"),
    ("nodeless.spotToSpotConsolidation", "spot_to_spot", False, "true", True, "yes"),
    ("nodeless.terminateFirstDrift", "terminate_first_drift", False, "true", True, "yes"),
    ("nodeless.terminateFirstRepair", "terminate_first_repair", False, "true", True, "yes"),
    ("nodeless.nodeRepair", "node_repair", False, "true", True, "yes"),
    ("nodeless.legacyNodeRepair", "legacy_repair", False, "true", True, "yes"),
    ("nodeless.repairToleration", "repair_toleration", None, "5m", 300.0, "soon"),
    ("nodeless.evictionPrice", "eviction_price", 0.0, "0.01", 0.01, "-1"),
    ("nodeless.nodeFee", "node_fee", 0.0, "0.01", 0.01, "-1"),
    ("nodeless.fewerNodesTolerance", "fewer_nodes_tolerance", 1.0, "0.5", 0.5, "101"),
    ("nodeless.planAsBound", "plan_as_bound", "auto", "always", "always", "sometimes"),
    ("nodeless.preferencePolicy", "preference_policy", "Respect", "Ignore", "Ignore", "Sometimes"),
    ("nodeless.minValuesPolicy", "min_values_policy", "Strict", "BestEffort", "BestEffort", "Loose"),
    ("nodeless.gangTimeout", "gang_timeout", 600.0, "30m", 1800.0, "soon"),
    ("nodeless.terminationWait", "termination_wait", 30.0, "0s", 0.0, "soon"),
    ("nodeless.timeBox", "time_box", DEFAULT_TIME_BOX, "0", 0.0, "inf"),
    ("nodeless.priceAdjustments", "price_adjustments", (), '[{"percent": -9}]', (NINE_PERCENT_LESS,), "{}"),
    (
        "nodeless.commitments",
        "commitments",
        (),
        '[{"name": "plan", "dollarsPerHour": 5, "discountPercent": 28}]',
        (Commitment("plan", dollars=5.0, discount=28.0),),
        "5",
    ),
    (
        "nodeless.spotInterruptions",
        "spot_interruptions",
        (),
        '[{"instanceTypes": ["p5.*"], "perMonth": 2}]',
        (InterruptionRate(instance_types=("p5.*",), per_month=2.0),),
        "0.05",
    ),
]
ROWS = pytest.mark.parametrize(
    ("key", "name", "default", "text", "value", "bad"), TABLE, ids=[row[0] for row in TABLE]
)


@ROWS
def test_a_key_that_is_absent_has_karpenters_default(key, name, default, text, value, bad):
    assert getattr(read(), name) == default


@ROWS
def test_a_key_that_is_given_means_what_karpenter_means_by_it(key, name, default, text, value, bad):
    assert getattr(read(**{key: text}), name) == value


@ROWS
def test_a_key_that_is_empty_is_refused_for_durations_and_counts_as_absent_elsewhere(
    key, name, default, text, value, bad
):
    if key.startswith("batch"):
        with pytest.raises(SettingsError, match=f"key {key}=''"):
            read(**{key: ""})
    else:
        assert getattr(read(**{key: ""}), name) == default


@ROWS
def test_a_value_that_means_nothing_is_refused_with_config_map_key_value_and_hint(
    key, name, default, text, value, bad
):
    if bad is None:
        assert getattr(read(**{key: "?"}), name) == "?"
        return
    with pytest.raises(SettingsError) as caught:
        read(**{key: bad})
    (fault,) = caught.value.faults
    assert fault.startswith(f"ConfigMap karpenter-global-settings, key {key}={bad!r}: ")
    assert "; hint: " in fault


@ROWS
def test_while_running_a_bad_value_leaves_the_last_good_one(key, name, default, text, value, bad):
    last = read(**{key: text})
    settings, faults = read_settings({**NAMED, key: bad or ""}, last=last)
    if bad is None:
        assert not faults
    else:
        assert getattr(settings, name) == value
        assert [fault.key for fault in faults] == [key]


def test_the_cluster_must_have_a_name():
    with pytest.raises(SettingsError, match=r"key aws\.clusterName=None: is required; hint:"):
        GlobalSettings.from_config_map({})


def test_the_webhook_asks_no_config_map_for_the_name_that_the_process_was_given():
    named = ConfigSources({"CLUSTER_NAME": "demo"})
    assert settings_faults({"nodeless.timeBox": "2"}, named) == []
    (fault,) = settings_faults({"nodeless.timeBox": "long"}, named)
    assert "nodeless.timeBox='long'" in fault
    (fault,) = settings_faults({"nodeless.timeBox": "2"})
    assert "aws.clusterName=None: is required" in fault


def test_the_table_has_every_key_of_karpenter_and_ours_are_told_apart_by_their_domain():
    keys = {setting.key for setting in SETTINGS.values()}
    upstream = {row[0] for row in TABLE if not row[0].startswith("nodeless.")} | {"aws.clusterName"}
    assert upstream <= keys
    assert all(key.startswith("nodeless.") for key in keys - upstream)


@pytest.mark.parametrize(
    ("text", "seconds"), [("10s", 10), ("1m30s", 90), ("1.5s", 1.5), ("500ms", 0.5), ("1h", 3600)]
)
def test_durations_are_read_as_go_writes_them(text, seconds):
    assert read(batchMaxDuration=text).batch_max_seconds == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["0", "0s", "0ms", "0h0m"])
def test_pods_wait_for_no_room_where_the_wait_is_zero_however_it_is_written(text):
    assert read(**{"nodeless.terminationWait": text}).termination_wait == 0.0


def test_all_faults_come_at_once_each_with_key_value_and_hint():
    data = {
        "batchMaxDuration": "",
        "batchIdleDuration": "0s",
        "aws.clusterEndpoint": "not a url",
        "aws.isolatedVPC": "maybe",
        "aws.vmMemoryOverheadPercent": "nan",
        "aws.tags": "[]",
    }
    with pytest.raises(SettingsError) as caught:
        GlobalSettings.from_config_map(data)
    faults = "\n".join(caught.value.faults)
    for key in (*data, "aws.clusterName"):
        assert key in faults
    assert len(caught.value.faults) == 7
    assert all("hint:" in fault for fault in caught.value.faults)


def test_unknown_keys_are_ignored_as_karpenter_ignores_them_and_named_with_what_was_meant():
    assert read(**{"aws.tags.team": "x"}).tags == {}
    assert unknown_keys({**NAMED, "batchMaxDurations": "1s", "zzz": ""}) == (
        "batchMaxDurations (did you mean batchMaxDuration?)",
        "zzz",
    )


#: How Karpenter v1 says the same: variable, text, field, value.
VERSION_ONE = [
    ("CLUSTER_NAME", "other", "cluster_name", "other"),
    ("CLUSTER_ENDPOINT", "https://b.example", "cluster_endpoint", "https://b.example"),
    ("BATCH_MAX_DURATION", "20s", "batch_max_seconds", 20.0),
    ("BATCH_IDLE_DURATION", "2s", "batch_idle_seconds", 2.0),
    ("ISOLATED_VPC", "true", "isolated_vpc", True),
    ("DISABLE_DRY_RUN", "true", "disable_dry_run", True),
    ("CLUSTER_CA_BUNDLE", AUTHORITY, "cluster_ca_bundle", AUTHORITY),
    ("EKS_CONTROL_PLANE", "false", "eks_control_plane", False),
    ("ENABLE_ZONAL_SHIFT", "true", "zonal_shift", True),
    ("AMI_REFRESH_INTERVAL", "1h", "ami_refresh_interval", 3600.0),
    ("SUBNET_REFRESH_INTERVAL", "5m", "subnet_refresh_interval", 300.0),
    ("RESERVED_ENIS", "1", "reserved_interfaces", 1),
    ("VM_MEMORY_OVERHEAD_PERCENT", "0.05", "vm_memory_overhead_percent", 0.05),
    ("INTERRUPTION_QUEUE", "queue", "interruption_queue_name", "queue"),
    ("FEATURE_GATES", "Drift=true,Other=false", "drift_enabled", True),
    ("NODELESS_PACKING", "fewest-nodes", "packing", "fewest-nodes"),
    ("PREFERENCE_POLICY", "Ignore", "preference_policy", "Ignore"),
    ("MIN_VALUES_POLICY", "BestEffort", "min_values_policy", "BestEffort"),
]


@pytest.mark.parametrize(("variable", "text", "name", "value"), VERSION_ONE)
def test_variables_of_v1_mean_the_same_as_the_keys_and_go_before_them(variable, text, name, value):
    data = {**NAMED, "batchMaxDuration": "3s", "batchIdleDuration": "3s", "aws.isolatedVPC": "false"}
    settings = GlobalSettings.from_config_map(data, ConfigSources({variable: text}))
    assert getattr(settings, name) == value


@pytest.mark.parametrize(("variable", "text", "name", "value"), VERSION_ONE)
def test_flags_go_before_variables(variable, text, name, value):
    given = ConfigSources({variable: "nonsense"}, {variable: text})
    assert getattr(GlobalSettings.from_config_map(NAMED, given), name) == value


def test_a_fault_in_a_variable_or_flag_names_it():
    given = ConfigSources(
        {"BATCH_MAX_DURATION": "soon", "FEATURE_GATES": "Drift"}, {"VM_MEMORY_OVERHEAD_PERCENT": "9"}
    )
    with pytest.raises(SettingsError) as caught:
        GlobalSettings.from_config_map(NAMED, given)
    said = "\n".join(caught.value.faults)
    assert "environment variable BATCH_MAX_DURATION='soon': is not a duration; hint:" in said
    assert "flag --vm-memory-overhead-percent='9': must be a fraction" in said
    assert "FEATURE_GATES='Drift', gate Drift: has no value; hint: write Drift=true" in said


def test_fee_time_and_price_adjustments_reach_the_solver():
    data = {
        "nodeless.nodeFee": "0.01",
        "nodeless.fewerNodesTolerance": "2",
        "nodeless.timeBox": "0",
        "nodeless.packing": "fewest-nodes",
        "nodeless.priceAdjustments": '[{"pools": ["batch"], "capacityTypes": ["spot"], "percent": -28}]',
    }
    settings = read(**data)
    policy = policy_of(settings)
    assert (policy.node_fee, policy.time_box, policy.packing) == (0.01, 0.0, "fewest-nodes")
    assert policy.fewer_nodes_tolerance == 0.02
    assert bill_terms(settings).adjustments == (
        PriceAdjustment(pools=("batch",), capacity_types=("spot",), percent=-28.0),
    )
    # They are in the catalog: applied again, a discount would be taken off twice.
    assert policy.price_adjustments == ()


@pytest.mark.parametrize(
    ("key", "text", "problem"),
    [
        (
            "billParts",
            "volumes,disks",
            "'disks' is not a part of the bill; hint: use some of licenses, credits, volumes",
        ),
        ("cpuCredits", "on", "is not known; hint: use one of default, unlimited, standard"),
        ("burstableCPUUse", "130", "is not a percentage from 0 to 100"),
        ("leastMemory", "-1", "is not an amount of memory"),
        ("leastMemory", "much", "is not an amount of memory"),
        ("priceBook", "[]", "is not a JSON object"),
    ],
)
def test_settings_of_the_bill_that_cannot_be_used_say_why(key, text, problem):
    with pytest.raises(SettingsError) as caught:
        read(**{f"nodeless.{key}": text})
    assert problem in str(caught.value)


def test_no_part_of_the_bill_is_a_choice():
    assert read(**{"nodeless.billParts": "none"}).bill_parts == frozenset()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{}", "is not a JSON list"),
        ('[{"percent": "-20"}]', "entry 0: percent is not a number"),
        ('[{"percent": -120}]', "entry 0: percent is -120"),
        ('[{"pool": "batch", "percent": 1}]', "entry 0: unknown member 'pool'"),
        ('[{"pools": "batch", "percent": 1}]', "entry 0: pools is not a list"),
        ('[{"pools": ["batch"]}]', "entry 0: changes no price"),
        ('[{"percent": 1}, 3]', "entry 1: is not an object"),
    ],
)
def test_a_wrong_adjustment_of_prices_is_told_with_its_place_and_a_hint(text, problem):
    with pytest.raises(SettingsError) as caught:
        read(**{"nodeless.priceAdjustments": text})
    (fault,) = caught.value.faults
    assert f"key nodeless.priceAdjustments={text!r}: {problem}" in fault
    assert "; hint: " in fault


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("2", "is not a JSON list"),
        ('[{"perMonth": "2"}]', "entry 0: perMonth is not a number"),
        ('[{"perMonth": -2}]', "entry 0: perMonth is -2"),
        ('[{"perMonth": 1e999}]', "entry 0: perMonth is inf"),
        ('[{"perMonth": 2}, {"pools": ["batch"]}]', "entry 1: says no rate"),
        ('[{"capacityTypes": ["spot"], "perMonth": 2}]', "entry 0: unknown member 'capacityTypes'"),
    ],
)
def test_a_wrong_rate_of_interruptions_is_told_with_its_place_and_a_hint(text, problem):
    with pytest.raises(SettingsError) as caught:
        read(**{"nodeless.spotInterruptions": text})
    (fault,) = caught.value.faults
    assert f"key nodeless.spotInterruptions={text!r}: {problem}" in fault
    assert "; hint: " in fault


def test_commitments_are_read_with_their_terms_and_reach_the_solver():
    text = """[
        {"name": "m7g", "instanceTypes": ["m7g.xlarge"], "instances": 20, "sizeFlexible": true,
         "region": "eu-central-1", "from": "2026-01-31", "until": "2027-01-31T12:00:00Z"},
        {"name": "zonal", "instanceTypes": ["p5.48xlarge"], "instances": 1, "zones": ["eu-central-1a"],
         "platform": "Windows"}
    ]"""
    flexible = Commitment(
        "m7g",
        instance_types=("m7g.xlarge",),
        region="eu-central-1",
        instances=20.0,
        size_flexible=True,
        start=parse_time("2026-01-31T00:00:00Z"),
        end=parse_time("2027-01-31T12:00:00Z"),
    )
    zonal = Commitment(
        "zonal",
        instance_types=("p5.48xlarge",),
        platform="Windows",
        instances=1.0,
        zones=("eu-central-1a",),
    )
    policy = policy_of(read(**{"nodeless.commitments": text}))
    assert policy.commitments == (flexible, zonal)
    assert policy.at(parse_time("2027-02-01T00:00:00Z")).commitments == (zonal,)


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ({"name": 3, "dollarsPerHour": 1, "discountPercent": 0}, "name is not a string"),
        ({"dollarsPerHour": 1, "discountPercent": 0}, "name is missing"),
        ({"name": "a"}, "it needs instances or dollarsPerHour"),
        ({"name": "a", "dollarsPerHour": 1}, "discountPercent is missing"),
        ({"name": "a", "dollarsPerHour": "1", "discountPercent": 0}, "dollarsPerHour is not a number"),
        ({"name": "a", "dollarsPerHour": True, "discountPercent": 0}, "dollarsPerHour is not a number"),
        ({"name": "a", "dollarsPerHour": -1, "discountPercent": 0}, "its amount is -1"),
        ({"name": "a", "dollarsPerHour": 1, "discountPercent": 100}, "discountPercent is 100"),
        ({"name": "a", "dollarsPerHour": 1, "discountPercent": {}}, "discountPercent names no instance type"),
        (
            {"name": "a", "dollarsPerHour": 1, "discountPercent": {"m5.*": 3, "*": "3"}},
            "discountPercent of * is not a number",
        ),
        ({"name": "a", "dollarsPerHour": 1, "discountPercent": {"m5.*": -3}}, "discountPercent is -3"),
        (
            {"name": "a", "instances": 1, "instanceTypes": ["m5.large"], "discountPercent": 3},
            "discountPercent is for dollarsPerHour",
        ),
        ({"name": "a", "instances": 1, "instanceTypes": ["m5.*"]}, "instanceTypes must be one type"),
        ({"name": "a", "instances": 1, "instanceTypes": "m5.large"}, "instanceTypes is not a list"),
        (
            {"name": "a", "instances": 1, "instanceTypes": ["m5.large"], "sizeFlexible": "yes"},
            "sizeFlexible is neither true nor false",
        ),
        ({"name": "a", "dollarsPerHour": 1, "discountPercent": 0, "until": "soon"}, "until is 'soon'"),
        ({"name": "a", "dollarsPerHour": 1, "discountPercent": 0, "from": 2026}, "from is not a string"),
        (
            {
                "name": "a",
                "dollarsPerHour": 1,
                "discountPercent": 0,
                "from": "2026-01-02",
                "until": "2026-01-01",
            },
            "it ends before it begins",
        ),
        (
            {"name": "a", "instances": 1, "instanceTypes": ["m5.large"], "platform": "Linux"},
            "platform is 'Linux'",
        ),
        ({"name": "a", "hours": 3}, "unknown member 'hours'"),
    ],
)
def test_a_wrong_commitment_is_told_with_its_place_and_a_hint(entry, problem):
    text = json.dumps([{"name": "right", "dollarsPerHour": 1, "discountPercent": 0}, entry])
    with pytest.raises(SettingsError) as caught:
        read(**{"nodeless.commitments": text})
    (fault,) = caught.value.faults
    assert f"key nodeless.commitments={text!r}: entry 1: {problem}" in fault
    assert "; hint: " in fault


def test_two_commitments_of_one_name_are_refused():
    entry = {"name": "a", "dollarsPerHour": 1, "discountPercent": 0}
    with pytest.raises(SettingsError, match="two commitments are named 'a'; hint: "):
        read(**{"nodeless.commitments": json.dumps([entry, entry])})


def test_rates_of_interruptions_reach_the_solver():
    text = '[{"pools": ["batch"], "perMonth": 3}, {"perMonth": 1}]'
    assert policy_of(read(**{"nodeless.spotInterruptions": text})).spot_interruptions == (
        InterruptionRate(pools=("batch",), per_month=3.0),
        InterruptionRate(per_month=1.0),
    )


LONG = "1" + "0" * 400


@pytest.mark.parametrize(
    ("key", "text", "problem"),
    [
        ("nodeFee", "1.7e308", "is not a number from 0 to 1000000"),
        ("nodeFee", LONG, "is not a number from 0 to 1000000"),
        ("evictionPrice", "1000001", "is not a number from 0 to 1000000"),
        ("priceAdjustments", '[{"price": 1.7e308}]', "entry 0: price is 1.7e+308"),
        ("priceAdjustments", f'[{{"percent": -{LONG}}}]', "entry 0: percent is -1000000000000000000..."),
        ("priceAdjustments", '[{"dollars": -1000001}]', "entry 0: dollars is -1000001"),
        ("priceAdjustments", '[{"percent": NaN}]', "entry 0: percent is nan"),
        ("spotInterruptions", f'[{{"perMonth": {LONG}}}]', "entry 0: perMonth is 1000000000000000000"),
        (
            "commitments",
            f'[{{"name": "x", "instanceTypes": ["m5.large"], "instances": {LONG}}}]',
            "entry 0: instances is 1000000000000000000",
        ),
        (
            "commitments",
            '[{"name": "x", "dollarsPerHour": 1e7, "discountPercent": 0}]',
            "entry 0: dollarsPerHour is 10000000.0",
        ),
        (
            "commitments",
            f'[{{"name": "x", "dollarsPerHour": 1, "discountPercent": {{"*": {LONG}}}}}]',
            "entry 0: discountPercent of * is 1000000000000000000",
        ),
    ],
)
def test_a_figure_that_nobody_can_mean_is_told_and_the_other_settings_count(key, text, problem):
    name = f"nodeless.{key}"
    settings, faults = read_settings({**NAMED, name: text, "batchIdleDuration": "2s"})
    (fault,) = faults
    assert fault.key == name
    assert problem in fault.problem
    assert fault.hint
    assert settings.batch_idle_seconds == 2.0


@pytest.mark.parametrize("text", ["1_0", "٣", "0x10", "1,5", "", "+", "1e", "true"])
@pytest.mark.parametrize("key", ["nodeless.nodeFee", "nodeless.burstableCPUUse"])
def test_a_number_is_written_in_decimal_digits(key, text):
    _, faults = read_settings({**NAMED, key: text})
    assert [fault.key for fault in faults] == ([key] if text else [])


@pytest.mark.parametrize(("text", "value"), [("1.5", 1.5), (".5", 0.5), ("2.", 2.0), ("+1e-2\n", 0.01)])
def test_a_number_may_have_a_sign_and_an_exponent(text, value):
    assert read(**{"nodeless.nodeFee": text}).node_fee == value


@pytest.mark.parametrize(
    ("value", "written"),
    [(True, "True"), (1, "1"), (0.5, "0.5"), (["volumes"], "['volumes']"), ({"a": 1}, "{'a': 1}")],
)
@pytest.mark.parametrize("key", ["nodeless.nodeFee", "nodeless.commitments", "nodeless.billParts", "mine"])
def test_a_value_that_is_no_string_is_told_as_the_api_server_would(key, value, written):
    settings, faults = read_settings({**NAMED, key: value, "batchIdleDuration": "2s"})
    (fault,) = faults
    assert fault.key == key
    assert str(fault) == (
        f"ConfigMap karpenter-global-settings, key {key}={written}: is not a string; "
        "hint: the values of a ConfigMap are strings: write it in quotes, or as a block after |"
    )
    assert settings == GlobalSettings.from_config_map({**NAMED, "batchIdleDuration": "2s"})


SYSTEM = {"SYSTEM_NAMESPACE": "karpenter"}


@pytest.mark.parametrize(
    ("variable", "default", "text", "value"),
    [
        ("KARPENTER_SERVICE", "karpenter", "mine", "mine"),
        ("DISABLE_WEBHOOK", False, "true", True),
        ("WEBHOOK_PORT", 8443, "9443", 9443),
        ("METRICS_PORT", 8080, "9080", 9080),
        ("HEALTH_PROBE_PORT", 8081, "9081", 9081),
        ("KUBE_CLIENT_QPS", 200, "20", 20),
        ("KUBE_CLIENT_BURST", 300, "30", 30),
        ("ENABLE_PROFILING", False, "t", True),
        ("LEADER_ELECT", True, "false", False),
        ("CONFIG_LOGGING_NAME", "config-logging", "logs", "logs"),
        ("LOG_LEVEL", "", "DEBUG", "debug"),
    ],
)
def test_the_process_has_karpenters_defaults_and_takes_flag_variable_default_in_this_order(
    variable, default, text, value
):
    (name,) = (name for name, setting in PROCESS_SETTINGS.items() if setting.variable == variable)
    assert getattr(ProcessSettings.from_environment(SYSTEM), name) == default
    assert getattr(ProcessSettings.from_environment({**SYSTEM, variable: text}), name) == value
    flagged = ProcessSettings.from_environment({**SYSTEM, variable: str(default)}, {variable: text})
    assert getattr(flagged, name) == value


def test_the_election_is_turned_off_in_the_words_of_either_generation():
    for environment in ({"LEADER_ELECT": "false"}, {"DISABLE_LEADER_ELECTION": "true"}):
        assert not ProcessSettings.from_environment({**SYSTEM, **environment}).leader_elect


def test_a_process_without_namespace_or_with_a_bad_port_says_both():
    with pytest.raises(SettingsError) as caught:
        ProcessSettings.from_environment({"METRICS_PORT": "http"})
    assert "SYSTEM_NAMESPACE" in str(caught.value)
    assert "METRICS_PORT='http'" in str(caught.value)


def test_a_level_of_the_log_that_does_not_exist_keeps_the_process_from_starting_and_is_told():
    with pytest.raises(SettingsError, match="LOG_LEVEL='warning' is not a level; hint: use one of"):
        ProcessSettings.from_environment({**SYSTEM, "LOG_LEVEL": "warning"})


def test_the_pod_says_who_and_where_the_process_is():
    settings = ProcessSettings.from_environment({**SYSTEM, "POD_NAME": "karpenter-1", "POD_IP": "127.0.1.2"})
    assert (settings.identity, settings.bind_address) == ("karpenter-1", "127.0.1.2")


@pytest.mark.parametrize(("pod", "bound"), [("10.0.1.2", "0.0.0.0"), ("2600:1f13::a", "::"), ("::1", "::1")])
def test_ports_are_open_where_kubectl_forwards_to_as_well_as_on_the_address_of_the_pod(pod, bound):
    assert ProcessSettings.from_environment({**SYSTEM, "POD_IP": pod}).bind_address == bound

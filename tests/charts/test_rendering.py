"""What the chart makes of its values, and what it refuses."""

import json
import re

import pytest
import yaml

from nodeless.operator.settings import SETTINGS as OF_THE_CONTROLLER
from tests.charts.conftest import (
    CHART,
    DEFINITIONS,
    ROOT,
    HelmFailed,
    container_of,
    logging_of,
    pod_of,
    settings_of,
)

pytestmark = pytest.mark.cluster

DEPLOYMENT = ("Deployment", "karpenter", "karpenter")


@pytest.mark.parametrize("chart", [CHART, DEFINITIONS], ids=lambda chart: chart.name)
def test_helm_finds_nothing_to_criticize(charts, chart):
    values = charts.values({"settings": {"clusterName": "demo"}} if chart == CHART else {})
    assert "0 chart(s) failed" in charts.run("lint", "--strict", chart, *values)


def test_the_definitions_are_those_that_the_controller_ships(charts):
    text = charts.run("template", "karpenter-crd", DEFINITIONS)
    made = {each["metadata"]["name"]: each for each in yaml.safe_load_all(text) if each}
    shipped = [yaml.safe_load(file.read_text()) for file in (ROOT / "controller" / "crds").glob("*.yaml")]
    for definition in shipped:
        definition["metadata"]["annotations"] = {"helm.sh/resource-policy": "keep"}
    assert made == {each["metadata"]["name"]: each for each in shipped}


def test_without_the_name_of_the_cluster_nothing_is_made(charts):
    with pytest.raises(HelmFailed, match=r"settings\.clusterName is needed"):
        charts.run("template", "karpenter", CHART)


#: Values, and the key of the ConfigMap with what it then says.
SETTINGS = [
    ({"clusterName": "other"}, "aws.clusterName", "other"),
    ({"clusterEndpoint": "https://api.example"}, "aws.clusterEndpoint", "https://api.example"),
    ({"clusterCABundle": "Q0E="}, "nodeless.clusterCABundle", "Q0E="),
    ({"eksControlPlane": False}, "nodeless.eksControlPlane", "false"),
    ({"batchMaxDuration": "20s"}, "batchMaxDuration", "20s"),
    ({"batchIdleDuration": "1500ms"}, "batchIdleDuration", "1500ms"),
    ({"isolatedVPC": True}, "aws.isolatedVPC", "true"),
    ({"vmMemoryOverheadPercent": 0.05}, "aws.vmMemoryOverheadPercent", "0.05"),
    ({"interruptionQueue": "queue"}, "aws.interruptionQueueName", "queue"),
    ({"reservedENIs": "1"}, "nodeless.reservedENIs", "1"),
    ({"preferencePolicy": "Ignore"}, "nodeless.preferencePolicy", "Ignore"),
    ({"minValuesPolicy": "BestEffort"}, "nodeless.minValuesPolicy", "BestEffort"),
    ({"disableDryRun": True}, "nodeless.disableDryRun", "true"),
    ({"enableZonalShift": True}, "nodeless.zonalShift", "true"),
    ({"amiRefreshInterval": "5m"}, "nodeless.amiRefreshInterval", "5m"),
    ({"subnetRefreshInterval": "5m"}, "nodeless.subnetRefreshInterval", "5m"),
    ({"featureGates": {"drift": True}}, "featureGates.driftEnabled", "true"),
    ({"featureGates": {"spotToSpotConsolidation": True}}, "nodeless.spotToSpotConsolidation", "true"),
    ({"featureGates": {"terminateFirstDrift": True}}, "nodeless.terminateFirstDrift", "true"),
    ({"featureGates": {"terminateFirstRepair": True}}, "nodeless.terminateFirstRepair", "true"),
    ({"featureGates": {"nodeRepair": True}}, "nodeless.nodeRepair", "true"),
    ({"featureGates": {"capacityBuffer": True}}, "nodeless.capacityBuffers", "true"),
    ({"featureGates": {"provisioningRequest": True}}, "nodeless.provisioningRequests", "true"),
    ({"featureGates": {"nodeOverlay": True}}, "nodeless.nodeOverlays", "true"),
    ({"aws": {"defaultInstanceProfile": "nodes"}}, "aws.defaultInstanceProfile", "nodes"),
    ({"aws": {"enablePodENI": True}}, "aws.enablePodENI", "true"),
    ({"aws": {"enableENILimitedPodDensity": False}}, "aws.enableENILimitedPodDensity", "false"),
    ({"aws": {"nodeNameConvention": "resource-name"}}, "aws.nodeNameConvention", "resource-name"),
    ({"aws": {"tags": {"team": "a", "cost": "7"}}}, "aws.tags", '{"cost":"7","team":"a"}'),
    ({"nodeless": {"legacyNodeRepair": True}}, "nodeless.legacyNodeRepair", "true"),
    ({"nodeless": {"repairToleration": "5m"}}, "nodeless.repairToleration", "5m"),
    ({"nodeless": {"prefixDelegation": True}}, "nodeless.prefixDelegation", "true"),
    ({"nodeless": {"podAddresses": "none"}}, "nodeless.podAddresses", "none"),
    ({"nodeless": {"amiRefreshInterval": "6m"}}, "nodeless.amiRefreshInterval", "6m"),
    ({"nodeless": {"subnetRefreshInterval": "6m"}}, "nodeless.subnetRefreshInterval", "6m"),
    ({"nodeless": {"packing": "fewest-nodes"}}, "nodeless.packing", "fewest-nodes"),
    ({"nodeless": {"nodeFee": 0.01}}, "nodeless.nodeFee", "0.01"),
    ({"nodeless": {"fewerNodesTolerance": 0.5}}, "nodeless.fewerNodesTolerance", "0.5"),
    ({"nodeless": {"evictionPrice": 0.002}}, "nodeless.evictionPrice", "0.002"),
    ({"nodeless": {"gangTimeout": "30m"}}, "nodeless.gangTimeout", "30m"),
    ({"nodeless": {"terminationWait": "1m"}}, "nodeless.terminationWait", "1m"),
    ({"nodeless": {"terminationWait": 0}}, "nodeless.terminationWait", "0"),
    ({"nodeless": {"timeBox": 0}}, "nodeless.timeBox", "0"),
    ({"nodeless": {"planAsBound": "never"}}, "nodeless.planAsBound", "never"),
    ({"nodeless": {"billParts": "volumes"}}, "nodeless.billParts", "volumes"),
    ({"nodeless": {"cpuCredits": "standard"}}, "nodeless.cpuCredits", "standard"),
    ({"nodeless": {"burstableCPUUse": 30}}, "nodeless.burstableCPUUse", "30"),
    ({"nodeless": {"verticalPodAutoscalers": True}}, "nodeless.verticalPodAutoscalers", "true"),
    ({"nodeless": {"leastMemory": "256Mi"}}, "nodeless.leastMemory", "256Mi"),
    (
        {"nodeless": {"priceBook": {"addresses": {"ipv4": 0.004}}}},
        "nodeless.priceBook",
        '{"addresses":{"ipv4":0.004}}',
    ),
    ({"nodeless": {"priceAdjustments": [{"factor": 0.7}]}}, "nodeless.priceAdjustments", '[{"factor":0.7}]'),
    (
        {"nodeless": {"commitments": [{"name": "plan", "dollarsPerHour": 5, "discountPercent": 28}]}},
        "nodeless.commitments",
        '[{"discountPercent":28,"dollarsPerHour":5,"name":"plan"}]',
    ),
    (
        {"nodeless": {"spotInterruptions": [{"perMonth": 2}]}},
        "nodeless.spotInterruptions",
        '[{"perMonth":2}]',
    ),
]


@pytest.mark.parametrize(
    ("given", "key", "value"), SETTINGS, ids=lambda part: part if isinstance(part, str) else ""
)
def test_a_setting_reaches_the_config_map_under_the_controllers_name(rendered, given, key, value):
    assert settings_of(rendered({"settings": given}))[key] == value


def test_every_setting_of_the_controller_can_be_given():
    known = {setting.key for setting in OF_THE_CONTROLLER.values()}
    assert known == {key for _, key, _ in SETTINGS}


def test_settings_may_be_templates_as_in_karpenters_chart(rendered):
    """Which charts that have this one below them write, to say once what the cluster is called."""
    cluster = {"name": "shop", "endpoint": "https://api.example", "isolated": True, "idle": "2s"}
    settings = {
        "clusterName": "{{ .Values.global.cluster.name }}",
        "clusterEndpoint": "{{ .Values.global.cluster.endpoint }}",
        "interruptionQueue": "{{ .Values.global.cluster.name }}-{{ .Release.Name }}",
        "isolatedVPC": "{{ .Values.global.cluster.isolated }}",
        "batchIdleDuration": "{{ .Values.global.cluster.idle }}",
    }
    data = settings_of(rendered({"global": {"cluster": cluster}, "settings": settings}))
    assert data["aws.clusterName"] == "shop"
    assert data["aws.clusterEndpoint"] == "https://api.example"
    assert data["aws.interruptionQueueName"] == "shop-karpenter"
    assert data["aws.isolatedVPC"] == "true"
    assert data["batchIdleDuration"] == "2s"


@pytest.mark.parametrize(
    "blank",
    [
        {"additionalAnnotations": None},
        {"serviceAccount": {"annotations": None}},
        {"podSecurityContext": None},
        {"settings": {"aws": None}},
        {"settings": {"featureGates": None}},
    ],
)
def test_a_value_that_is_left_blank_is_an_empty_one(rendered, blank):
    """As `annotations:` with nothing behind it, or with comments only."""
    assert DEPLOYMENT in rendered(blank)


def test_the_settings_of_the_chart_of_0_27_carry_over(rendered):
    aws = {
        "clusterName": "old",
        "clusterEndpoint": "https://api.example",
        "interruptionQueueName": "queue",
        "isolatedVPC": True,
        "vmMemoryOverheadPercent": 0.06,
    }
    data = settings_of(
        rendered({"settings": {"clusterName": "", "aws": aws, "featureGates": {"driftEnabled": True}}})
    )
    assert data["aws.clusterName"] == "old"
    assert data["aws.clusterEndpoint"] == "https://api.example"
    assert data["aws.interruptionQueueName"] == "queue"
    assert data["aws.isolatedVPC"] == "true"
    assert data["aws.vmMemoryOverheadPercent"] == "0.06"
    assert data["featureGates.driftEnabled"] == "true"


def test_what_is_left_empty_is_left_to_the_controllers_defaults(rendered):
    data = settings_of(rendered())
    assert "aws.clusterEndpoint" not in data
    assert "aws.tags" not in data
    assert all(isinstance(value, str) and value for value in data.values())


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"replica": 2}, "replica"),
        ({"settings": {"clustername": "demo"}}, "clustername"),
        ({"settings": {"nodeless": {"packingg": "x"}}}, "packingg"),
        ({"settings": {"nodeless": {"packing": "cheapest"}}}, "packing"),
        ({"settings": {"batchMaxDuration": "10"}}, "batchMaxDuration"),
        ({"settings": {"assumeRoleARN": "arn:aws:iam::1:role/x"}}, "assumeRoleARN"),
        ({"settings": {"isolatedVPC": "yes"}}, "isolatedVPC"),
        ({"logLevel": "loud"}, "logLevel"),
        ({"replicas": 0.5}, "replicas"),
        ({"controller": {"image": {"digest": "abc"}}}, "digest"),
        ({"networkPolicy": {"webhookCIDRs": ["10.0.0.0"]}}, "webhookCIDRs"),
    ],
)
def test_values_that_mean_nothing_are_refused_by_name(rendered, values, named):
    with pytest.raises(HelmFailed, match=re.escape(named)):
        rendered(values)


@pytest.mark.parametrize(
    "values",
    [
        {"settings": {"assumeRoleARN": "", "assumeRoleDuration": "15m", "ignoreDRARequests": True}},
        {"settings": {"featureGates": {"reservedCapacity": True, "staticCapacity": False}}},
        {"webhook": {"metrics": {"port": 8001}}},
        {"logConfig": {"enabled": False, "logLevel": {"global": "info"}}},
        {"serviceMonitor": {"enabled": False, "endpointConfig": {}}},
        {"podSecurityContext": {"fsGroup": 65536}},
    ],
)
def test_values_of_karpenters_chart_without_a_meaning_here_are_accepted(rendered, values):
    assert DEPLOYMENT in rendered(values)


@pytest.mark.parametrize(
    ("image", "reference"),
    [
        ({}, r"ghcr\.io/nodeless/controller:[\w.]+"),
        ({"repository": "r.example/n", "tag": "1.2.3"}, r"r\.example/n:1\.2\.3"),
        ({"repository": "r.example/n", "digest": "sha256:" + "a" * 64}, "r.example/n@sha256:a{64}"),
        (
            {"repository": "r.example/n", "tag": "1", "digest": "sha256:" + "a" * 64},
            "r.example/n:1@sha256:a{64}",
        ),
    ],
)
def test_the_image_is_given_by_tag_or_digest(rendered, image, reference):
    assert re.fullmatch(reference, container_of(rendered({"controller": {"image": image}}))["image"])


def test_what_is_logged(rendered):
    objects = rendered({"logLevel": "debug", "logOutputPaths": ["stdout", "/tmp/log"]})
    assert logging_of(objects)["level"] == "debug"
    assert logging_of(objects)["outputPaths"] == ["stdout", "/tmp/log"]


def test_terms_without_a_selector_select_the_controllers_own_pods(rendered):
    given = [
        {"maxSkew": 2, "topologyKey": "rack", "whenUnsatisfiable": "DoNotSchedule"},
        {
            "maxSkew": 1,
            "topologyKey": "zone",
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": {"app": "other"}},
        },
    ]
    preferred = [{"weight": 1, "podAffinityTerm": {"topologyKey": "zone"}}]
    objects = rendered(
        {
            "topologySpreadConstraints": given,
            "affinity": {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}},
        }
    )
    own = objects[DEPLOYMENT]["spec"]["selector"]
    spread = pod_of(objects)["topologySpreadConstraints"]
    assert [each["labelSelector"] for each in spread] == [own, {"matchLabels": {"app": "other"}}]
    affinity = pod_of(objects)["affinity"]
    [term] = affinity["podAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert term["podAffinityTerm"] == {"topologyKey": "zone", "labelSelector": own}
    [apart] = affinity["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert apart["labelSelector"] == own


def test_labels_and_annotations_are_on_every_object(rendered):
    objects = rendered({"additionalLabels": {"team": "a"}, "additionalAnnotations": {"note": "b"}})
    for name, each in objects.items():
        assert each["metadata"]["labels"]["team"] == "a", name
        assert each["metadata"]["annotations"]["note"] == "b", name


def test_an_annotation_of_the_service_account_goes_before_that_of_all_objects(rendered):
    role = {"eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/x"}
    objects = rendered({"additionalAnnotations": {"note": "b"}, "serviceAccount": {"annotations": role}})
    assert objects["ServiceAccount", "karpenter", "karpenter"]["metadata"]["annotations"] == {
        "note": "b",
        **role,
    }


@pytest.mark.parametrize(("name", "used"), [("", "default"), ("given", "given")])
def test_an_account_that_is_there_is_used(rendered, name, used):
    objects = rendered({"serviceAccount": {"create": False, "name": name}})
    assert not [kind for kind, _, _ in objects if kind == "ServiceAccount"]
    assert pod_of(objects)["serviceAccountName"] == used
    bindings = [each for (kind, _, _), each in objects.items() if kind.endswith("Binding")]
    assert {each["subjects"][0]["name"] for each in bindings} == {used}


def test_pods_have_a_token_also_of_an_account_that_gives_its_pods_none(rendered):
    """As the account of Karpenter's chart, which the pods then keep."""
    pod = pod_of(rendered({"serviceAccount": {"create": False, "name": "given"}}))
    assert pod["automountServiceAccountToken"] is True


def test_without_webhooks_nothing_of_them_is_left(rendered):
    objects = rendered({"webhook": {"enabled": False}})
    assert not [kind for kind, _, _ in objects if kind.endswith("WebhookConfiguration") or kind == "Secret"]
    container = container_of(objects)
    assert {"name": "DISABLE_WEBHOOK", "value": "true"} in container["env"]
    assert [port["name"] for port in container["ports"]] == ["http-metrics", "http"]
    service = objects["Service", "karpenter", "karpenter"]["spec"]["ports"]
    assert [port["name"] for port in service] == ["http-metrics"]
    policy = objects["NetworkPolicy", "karpenter", "karpenter"]["spec"]["ingress"]
    assert [rule["ports"][0]["port"] for rule in policy] == [8080, 8081]


def test_ports_that_are_given_are_those_of_container_service_and_policy(rendered):
    values = {
        "controller": {"metrics": {"port": 9000}, "healthProbe": {"port": 9001}},
        "webhook": {"port": 9002},
    }
    objects = rendered(values)
    container = container_of(objects)
    assert [port["containerPort"] for port in container["ports"]] == [9000, 9001, 9002]
    variables = {each["name"]: each.get("value") for each in container["env"]}
    assert (variables["METRICS_PORT"], variables["HEALTH_PROBE_PORT"], variables["WEBHOOK_PORT"]) == (
        "9000",
        "9001",
        "9002",
    )
    assert objects["Service", "karpenter", "karpenter"]["spec"]["ports"][0]["port"] == 9000
    policy = objects["NetworkPolicy", "karpenter", "karpenter"]["spec"]["ingress"]
    assert [rule["ports"][0]["port"] for rule in policy] == [9002, 9000, 9001]


def test_a_service_monitor_is_made_where_it_is_asked_for(rendered):
    relabeling = [{"action": "labeldrop", "regex": "pod"}]
    values = {
        "enabled": True,
        "additionalLabels": {"release": "prom"},
        "endpointConfig": {"interval": "15s"},
        "relabelings": relabeling,
        "metricRelabelings": relabeling,
        "sampleLimit": 0,
    }
    monitor = rendered({"serviceMonitor": values})["ServiceMonitor", "karpenter", "karpenter"]
    assert monitor["metadata"]["labels"]["release"] == "prom"
    assert monitor["spec"]["endpoints"] == [
        {
            "port": "http-metrics",
            "path": "/metrics",
            "interval": "15s",
            "relabelings": relabeling,
            "metricRelabelings": relabeling,
        }
    ]
    assert monitor["spec"]["sampleLimit"] == 0
    assert monitor["spec"]["selector"] == rendered()[DEPLOYMENT]["spec"]["selector"]


def test_the_security_of_pod_and_container_can_be_set(rendered):
    local = {"type": "Localhost", "localhostProfile": "strict"}
    options = {"level": "s0:c123,c456"}
    container = {"appArmorProfile": local, "seccompProfile": local, "seLinuxOptions": options}
    objects = rendered(
        {
            "podSecurityContext": {"fsGroup": 1, "runAsUser": 7},
            "controller": {"securityContext": container},
        }
    )
    assert pod_of(objects)["securityContext"] == {
        "fsGroup": 1,
        "runAsGroup": 65532,
        "runAsNonRoot": True,
        "runAsUser": 7,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    made = container_of(objects)["securityContext"]
    assert {key: made[key] for key in container} == container
    assert made["readOnlyRootFilesystem"] is True


def test_further_containers_volumes_and_variables(rendered):
    values = {
        "controller": {
            "env": [{"name": "AWS_REGION", "value": "eu-west-1"}],
            "envFrom": [{"secretRef": {"name": "more"}}],
            "extraVolumeMounts": [{"name": "token", "mountPath": "/token"}],
            "sidecarContainer": [{"name": "agent", "image": "agent:1"}],
            "sidecarVolumeMounts": [{"name": "own", "mountPath": "/own"}],
        },
        "extraVolumes": [{"name": "token", "emptyDir": {}}, {"name": "own", "emptyDir": {}}],
        "initContainers": [{"name": "first", "image": "first:1"}],
        "additionalClusterRoleRules": [{"apiGroups": ["x"], "resources": ["things"], "verbs": ["get"]}],
    }
    objects = rendered(values)
    pod = pod_of(objects)
    own, sidecar = pod["containers"]
    assert own["env"][-1] == {"name": "AWS_REGION", "value": "eu-west-1"}
    assert own["envFrom"] == [{"secretRef": {"name": "more"}}]
    assert [mount["name"] for mount in own["volumeMounts"]] == ["tmp", "token"]
    assert [mount["name"] for mount in sidecar["volumeMounts"]] == ["token", "own"]
    assert [volume["name"] for volume in pod["volumes"]] == ["tmp", "token", "own"]
    assert pod["initContainers"] == [{"name": "first", "image": "first:1"}]
    rules = objects["ClusterRole", "", "karpenter-core"]["rules"]
    assert rules[-1] == {"apiGroups": ["x"], "resources": ["things"], "verbs": ["get"]}


def test_a_changed_setting_and_a_changed_role_restart_the_pods(rendered):
    def checksums(values):
        return rendered(values)[DEPLOYMENT]["spec"]["template"]["metadata"]["annotations"]

    usual = checksums({})
    assert checksums({"replicas": 3}) == usual
    assert checksums({"settings": {"isolatedVPC": True}})["checksum/settings"] != usual["checksum/settings"]
    role = {"serviceAccount": {"annotations": {"eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/x"}}}
    assert checksums(role)["checksum/identity"] != usual["checksum/identity"]


def test_every_value_of_the_file_is_one_that_the_schema_knows():
    schema = json.loads((CHART / "values.schema.json").read_text())
    values = yaml.safe_load((CHART / "values.yaml").read_text())

    def unknown(given, part, path):
        if not isinstance(given, dict) or "properties" not in part:
            return []
        missing = [f"{path}.{key}" for key in given if key not in part["properties"]]
        deeper = [(key, value) for key, value in given.items() if key in part["properties"]]
        return missing + [
            name for key, value in deeper for name in unknown(value, part["properties"][key], f"{path}.{key}")
        ]

    assert unknown(values, schema, "values") == []


def test_alerts_and_dashboards_are_made_where_they_are_asked_for(rendered):
    plain = rendered()
    assert not {kind for kind, _, _ in plain} & {"ServiceMonitor", "PrometheusRule"}
    assert not [name for kind, _, name in plain if kind == "ConfigMap" and name.startswith("nodeless-")]
    values = {
        "prometheusRule": {
            "enabled": True,
            "additionalLabels": {"release": "prometheus"},
            "exclude": ["NodelessPlansNotFollowed"],
        },
        "dashboards": {"enabled": True, "annotations": {"grafana_folder": "Nodes"}},
    }
    objects = rendered(values)
    rule = objects["PrometheusRule", "karpenter", "karpenter"]
    assert rule["metadata"]["labels"]["release"] == "prometheus"
    (own,) = yaml.safe_load((CHART / "files" / "alerts.yaml").read_text())["groups"]
    left = [one for one in own["rules"] if one["alert"] != "NodelessPlansNotFollowed"]
    assert rule["spec"]["groups"] == [{**own, "rules": left}]
    assert len(left) == len(own["rules"]) - 1
    for file in (CHART / "files" / "dashboards").glob("*.json"):
        page = objects["ConfigMap", "karpenter", file.stem]
        assert json.loads(page["data"][file.name]) == json.loads(file.read_text())
        assert page["metadata"]["labels"]["grafana_dashboard"] == "1"
        assert page["metadata"]["annotations"] == {"grafana_folder": "Nodes"}


def test_an_alert_that_does_not_exist_cannot_be_left_out(charts):
    values = {"settings": {"clusterName": "demo"}, "prometheusRule": {"exclude": ["NodelessTypo"]}}
    with pytest.raises(HelmFailed, match=r"exclude/0': value must be one of 'NodelessNoLeader"):
        charts.run("template", "karpenter", CHART, *charts.values(values))

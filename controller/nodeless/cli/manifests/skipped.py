"""What of the manifests a plan leaves out, and why."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nodeless.cli.manifests.members import group_of
from nodeless.explain.words import count

#: Groups of Kubernetes and of its own projects, of whose kinds no pods come but where `_CHANGING` says it.
#: Others use the suffix too: of a SparkApplication (sparkoperator.k8s.io) pods come.
_GROUPS = frozenset(
    {
        "",
        "admissionregistration.k8s.io",
        "apiextensions.k8s.io",
        "apiregistration.k8s.io",
        "apps",
        "authentication.k8s.io",
        "authorization.k8s.io",
        "autoscaling",
        "autoscaling.k8s.io",
        "batch",
        "certificates.k8s.io",
        "coordination.k8s.io",
        "custom.metrics.k8s.io",
        "discovery.k8s.io",
        "events.k8s.io",
        "extensions",
        "external.metrics.k8s.io",
        "flowcontrol.apiserver.k8s.io",
        "gateway.networking.k8s.io",
        "groupsnapshot.storage.k8s.io",
        "internal.apiserver.k8s.io",
        "metrics.k8s.io",
        "networking.k8s.io",
        "node.k8s.io",
        "policy",
        "policy.networking.k8s.io",
        "rbac.authorization.k8s.io",
        "resource.k8s.io",
        "scheduling.k8s.io",
        "settings.k8s.io",
        "snapshot.storage.k8s.io",
        "storage.k8s.io",
        "storagemigration.k8s.io",
    }
)
#: Groups of others that configure what there is: of none of their kinds pods come.
_CONFIGURING = frozenset(
    {
        "bitnami.com",
        "cert-manager.io",
        "cilium.io",
        "crd.projectcalico.org",
        "elbv2.k8s.aws",
        "external-secrets.io",
        "extensions.istio.io",
        "generators.external-secrets.io",
        "getambassador.io",
        "networking.istio.io",
        "projectcontour.io",
        "secrets-store.csi.x-k8s.io",
        "security.istio.io",
        "telemetry.istio.io",
        "traefik.containo.us",
        "traefik.io",
        "vpcresources.k8s.aws",
    }
)
#: The same of groups that have kinds of which pods come, too.
_CONFIGURING_KINDS = {
    "argoproj.io": (
        "AnalysisTemplate",
        "AppProject",
        "ClusterAnalysisTemplate",
        "ClusterWorkflowTemplate",
        "WorkflowTemplate",
    ),
    "keda.sh": ("ClusterTriggerAuthentication", "TriggerAuthentication"),
    "kafka.strimzi.io": ("KafkaConnector", "KafkaRebalance", "KafkaTopic", "KafkaUser"),
    "kueue.x-k8s.io": ("ClusterQueue", "LocalQueue", "WorkloadPriorityClass"),
    "monitoring.coreos.com": (
        "AlertmanagerConfig",
        "PodMonitor",
        "Probe",
        "PrometheusRule",
        "ScrapeConfig",
        "ServiceMonitor",
    ),
    "rabbitmq.com": ("Binding", "Exchange", "Permission", "Policy", "Queue", "User", "Vhost"),
    "serving.knative.dev": ("DomainMapping", "Revision", "Route"),
    "tekton.dev": ("ClusterTask", "Pipeline", "StepAction", "Task"),
    "triggers.tekton.dev": ("ClusterTriggerBinding", "Trigger", "TriggerBinding", "TriggerTemplate"),
}
_IN_TURNS = "they create one pod for each of their {}s, one after another"
_DEPLOYED = "what they deploy is not in the files; hint: render it and give the result"
#: Kinds of which it is known when pods come of them, and not how many there are at a time.
_COMING = {
    ("argoproj.io", "Application"): _DEPLOYED,
    ("argoproj.io", "ApplicationSet"): _DEPLOYED,
    ("argoproj.io", "CronWorkflow"): _IN_TURNS.format("step"),
    ("argoproj.io", "Workflow"): _IN_TURNS.format("step"),
    ("core.strimzi.io", "StrimziPodSet"): "their pods are planned by their Kafka and its node pools",
    ("flink.apache.org", "FlinkSessionJob"): "their session starts task managers for them",
    ("helm.toolkit.fluxcd.io", "HelmRelease"): _DEPLOYED,
    ("kustomize.toolkit.fluxcd.io", "Kustomization"): _DEPLOYED,
    ("tekton.dev", "PipelineRun"): _IN_TURNS.format("task"),
    ("tekton.dev", "TaskRun"): "each creates a pod, with the steps of a task that is not in the files",
    ("triggers.tekton.dev", "EventListener"): "each creates a Deployment of one pod",
}
#: Where kinds say how many pods come of them; what these request is not read.
_NUMBERS = {
    ("cassandra.datastax.com", "CassandraDatacenter"): ("size",),
    ("databases.spotahome.com", "RedisFailover"): ("redis.replicas", "sentinel.replicas"),
    ("k8ssandra.io", "K8ssandraCluster"): ("cassandra.datacenters[].size",),
    ("mongodbcommunity.mongodb.com", "MongoDBCommunity"): ("members",),
    ("mysql.oracle.com", "InnoDBCluster"): ("instances", "router.instances"),
    ("opensearch.opster.io", "OpenSearchCluster"): ("nodePools[].replicas", "dashboards.replicas"),
    ("opentelemetry.io", "OpenTelemetryCollector"): ("replicas",),
    ("postgres-operator.crunchydata.com", "PostgresCluster"): ("instances[].replicas",),
    ("psmdb.percona.com", "PerconaServerMongoDB"): ("replsets[].size", "sharding.mongos.size"),
    ("pxc.percona.com", "PerconaXtraDBCluster"): ("pxc.size", "haproxy.size"),
    ("zookeeper.pravega.io", "ZookeeperCluster"): ("replicas",),
}
_KUSTOMIZE = "kustomize.config.k8s.io"
_NOT_BUILT = "what they change in other files is not known; hint: give their folder, so that it is built"
_METRICS = "metrics.k8s.io"
_NO_PODS = "they create no pods"
_UNKNOWN = "it is not known whether they create pods; hint: add the workloads that their operator creates"
#: Kinds of Kubernetes that may change a plan, and are not read.
_CHANGING = {
    "ResourceQuota": "their limits are not applied",
    "MutatingWebhookConfiguration": "what webhooks change in pods is not known",
    "MutatingAdmissionPolicy": "what they change in pods is not known",
    "VerticalPodAutoscaler": "requests are taken from the manifests",
}


@dataclass(frozen=True, slots=True)
class Skipped:
    """An object that is left out.

    Attributes:
        place: `FILE:LINE:COL`.
        subject: Kind and name.
        kind: The kind, with its group where that is none of Kubernetes' own.
        reason: Why.
        matters: Whether a plan might be another with it.
    """

    place: str
    subject: str
    kind: str
    reason: str
    matters: bool = True


def skipped_kind(manifest: Mapping[str, Any], place: str, subject: str) -> Skipped:
    """An object of a kind that is not read."""
    kind, group = str(manifest["kind"]), group_of(manifest)
    if group == _KUSTOMIZE:
        return Skipped(place, subject, kind, _NOT_BUILT)
    if group in _CONFIGURING or kind in _CONFIGURING_KINDS.get(group, ()):
        return Skipped(place, subject, f"{kind} of {group}", _NO_PODS, matters=False)
    if group in _GROUPS:
        if group == _METRICS:
            return Skipped(
                place, subject, kind, "`nodeless advise` reads them for what pods use", matters=False
            )
        reason = _CHANGING.get(kind)
        return Skipped(place, subject, kind, reason or _NO_PODS, matters=reason is not None)
    return Skipped(place, subject, f"{kind} of {group}", _coming(manifest, group, kind))


def _coming(manifest: Mapping[str, Any], group: str, kind: str) -> str:
    """What is known of the pods that come of an object whose kind is not read."""
    known = _COMING.get((group, kind))
    if known is not None:
        return known
    spec = manifest.get("spec")
    numbers = [
        (path, sum(found))
        for path in _NUMBERS.get((group, kind), ())
        if (found := list(_numbers(spec, path.split("."))))
    ]
    if not numbers:
        return _UNKNOWN
    told = ", ".join(f"{count(number, 'pod')} by spec.{path}" for path, number in numbers)
    return f"their operator makes {told}; hint: add the workloads that it creates"


def _numbers(holder: Any, steps: Sequence[str]) -> Iterator[int]:
    """The numbers at a path, whose steps may go through lists (`pools[]`)."""
    if not steps:
        if isinstance(holder, int) and not isinstance(holder, bool) and holder >= 0:
            yield holder
        return
    found = holder.get(steps[0].removesuffix("[]")) if isinstance(holder, Mapping) else None
    listed = found if isinstance(found, list) and steps[0].endswith("[]") else [found]
    for one in listed:
        yield from _numbers(one, steps[1:])


def skipped_lines(skipped: Iterable[Skipped]) -> Iterator[str]:
    """One line for each reason, with the kinds and how many there are."""
    kinds: dict[tuple[bool, str], Counter[str]] = {}
    for one in skipped:
        kinds.setdefault((one.matters, one.reason), Counter())[one.kind] += 1
    for (_, reason), counted in sorted(kinds.items()):
        named = ", ".join(f"{kind} ({number})" for kind, number in sorted(counted.items()))
        yield f"ignored: {named}: {reason}"

"""The controller's pods: the Deployment's spec from a few figures. Pure; `controller` registers it.

Two replicas on different hosts and, where possible, in different zones, of which one leads. They run where
the controller makes no nodes (its own nodes are excluded by affinity), resolve names without the cluster's
DNS (which may wait for the first node), and are sized for Fargate: requests equal limits. Nothing in the
container can be written to but /tmp.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import pulumi_kubernetes as k8s

from pulumi_nodeless.settings import LOGGING

CONTAINER: Final = "controller"
WEBHOOK_PORT: Final = 8443
METRICS_PORT: Final = 8080
HEALTH_PORT: Final = 8081
SCRATCH: Final = "/tmp"  # noqa: S108 - a mount point in the container, not a file of this process
USER: Final = 65532
"""The image's user and group; a number, so that the kubelet can tell it is not root."""

_core = k8s.core.v1


@dataclass(frozen=True, slots=True)
class PodOptions:
    """What distinguishes one installation's pods from another's."""

    name: str
    """Name of Deployment, Service and service account."""
    image: Any
    """Reference of the image; may be an output."""
    replicas: int
    cpu: str
    memory: str
    labels: Mapping[str, str]
    """Labels that select the pods."""
    environment: Mapping[str, Any]
    """Environment variables of the user; values may be outputs."""
    checksum: Any
    """Digest of the settings."""
    identity: Any
    """Digest of how the pods come by their role: they get its token when they are made."""


def deployment_spec(options: PodOptions) -> k8s.apps.v1.DeploymentSpecArgs:
    """The Deployment's spec."""
    return k8s.apps.v1.DeploymentSpecArgs(
        replicas=options.replicas,
        revision_history_limit=10,
        selector=k8s.meta.v1.LabelSelectorArgs(match_labels=options.labels),
        strategy=k8s.apps.v1.DeploymentStrategyArgs(
            type="RollingUpdate",
            rolling_update=k8s.apps.v1.RollingUpdateDeploymentArgs(max_unavailable=1),
        ),
        template=_core.PodTemplateSpecArgs(
            metadata=k8s.meta.v1.ObjectMetaArgs(
                labels=options.labels,
                annotations={"checksum/settings": options.checksum, "checksum/identity": options.identity},
            ),
            spec=pod_spec(options),
        ),
    )


def pod_spec(options: PodOptions) -> k8s.core.v1.PodSpecArgs:
    """The spec of one pod."""
    return _core.PodSpecArgs(
        service_account_name=options.name,
        # The controller is a client of the API server, also where the account says that its pods are none.
        automount_service_account_token=True,
        priority_class_name="system-cluster-critical",
        dns_policy="Default",
        node_selector={"kubernetes.io/os": "linux"},
        security_context=_core.PodSecurityContextArgs(
            run_as_non_root=True,
            run_as_user=USER,
            run_as_group=USER,
            fs_group=USER,
            seccomp_profile=_core.SeccompProfileArgs(type="RuntimeDefault"),
        ),
        affinity=_affinity(options.labels),
        topology_spread_constraints=[
            _core.TopologySpreadConstraintArgs(
                max_skew=1,
                topology_key="topology.kubernetes.io/zone",
                when_unsatisfiable="ScheduleAnyway",
                label_selector=k8s.meta.v1.LabelSelectorArgs(match_labels=options.labels),
            )
        ],
        tolerations=[_core.TolerationArgs(key="CriticalAddonsOnly", operator="Exists")],
        containers=[_container(options)],
        volumes=[_core.VolumeArgs(name="tmp", empty_dir=_core.EmptyDirVolumeSourceArgs())],
    )


def _affinity(labels: Mapping[str, str]) -> k8s.core.v1.AffinityArgs:
    own_nodes = [
        _core.NodeSelectorRequirementArgs(key=key, operator="DoesNotExist")
        for key in ("karpenter.sh/provisioner-name", "karpenter.sh/nodepool")
    ]
    return _core.AffinityArgs(
        node_affinity=_core.NodeAffinityArgs(
            required_during_scheduling_ignored_during_execution=_core.NodeSelectorArgs(
                node_selector_terms=[_core.NodeSelectorTermArgs(match_expressions=own_nodes)]
            )
        ),
        pod_anti_affinity=_core.PodAntiAffinityArgs(
            required_during_scheduling_ignored_during_execution=[
                _core.PodAffinityTermArgs(
                    topology_key="kubernetes.io/hostname",
                    label_selector=k8s.meta.v1.LabelSelectorArgs(match_labels=labels),
                )
            ]
        ),
    )


def _container(options: PodOptions) -> k8s.core.v1.ContainerArgs:
    figures = {"cpu": options.cpu, "memory": options.memory}
    return _core.ContainerArgs(
        name=CONTAINER,
        image=options.image,
        image_pull_policy="IfNotPresent",
        command=["nodeless"],
        args=["run"],
        env=environment(options.name, options.environment),
        ports=[
            _core.ContainerPortArgs(name="http-metrics", container_port=METRICS_PORT, protocol="TCP"),
            _core.ContainerPortArgs(name="http", container_port=HEALTH_PORT, protocol="TCP"),
            _core.ContainerPortArgs(name="https-webhook", container_port=WEBHOOK_PORT, protocol="TCP"),
        ],
        resources=_core.ResourceRequirementsArgs(requests=figures, limits=figures),
        liveness_probe=_probe("/healthz", initial_delay=30),
        readiness_probe=_probe("/readyz"),
        security_context=_core.SecurityContextArgs(
            allow_privilege_escalation=False,
            read_only_root_filesystem=True,
            run_as_non_root=True,
            capabilities=_core.CapabilitiesArgs(drop=["ALL"]),
        ),
        volume_mounts=[_core.VolumeMountArgs(name="tmp", mount_path=SCRATCH)],
    )


def environment(service: str, extra: Mapping[str, Any]) -> list[k8s.core.v1.EnvVarArgs]:
    """The container's environment: where it is, its ports, then what the user gave."""
    own = {
        "KARPENTER_SERVICE": service,
        "WEBHOOK_PORT": str(WEBHOOK_PORT),
        "METRICS_PORT": str(METRICS_PORT),
        "HEALTH_PROBE_PORT": str(HEALTH_PORT),
        "CONFIG_LOGGING_NAME": LOGGING,
    }
    fields = {
        "SYSTEM_NAMESPACE": "metadata.namespace",
        "POD_NAME": "metadata.name",
        "POD_IP": "status.podIP",
    }
    return [
        *(
            _core.EnvVarArgs(
                name=name,
                value_from=_core.EnvVarSourceArgs(field_ref=_core.ObjectFieldSelectorArgs(field_path=path)),
            )
            for name, path in fields.items()
        ),
        *(_core.EnvVarArgs(name=name, value=value) for name, value in own.items()),
        *(_core.EnvVarArgs(name=name, value=extra[name]) for name in sorted(extra)),
    ]


RESERVED_ENVIRONMENT: Final = frozenset(
    {
        "SYSTEM_NAMESPACE",
        "POD_NAME",
        "POD_IP",
        "KARPENTER_SERVICE",
        "WEBHOOK_PORT",
        "METRICS_PORT",
        "HEALTH_PROBE_PORT",
        "CONFIG_LOGGING_NAME",
    }
)
"""Variables the component sets; a user's value for one of them is refused."""


def _probe(path: str, initial_delay: int | None = None) -> k8s.core.v1.ProbeArgs:
    return _core.ProbeArgs(
        http_get=_core.HTTPGetActionArgs(path=path, port="http"),
        initial_delay_seconds=initial_delay,
        timeout_seconds=30,
    )

"""The controller in the cluster: its kinds, its objects, its rights.

Everything is a typed Kubernetes resource with the names of Karpenter's chart, so that dashboards, policies
and runbooks written for it apply. The custom resource definitions are resources too, one each: they are
upgraded with the component. What each object holds is computed next door: `deployment`, `rbac`,
`webhooks`, `settings`. Pools are `capacity`'s, the object that guards destruction is `teardown`'s.

The Deployment comes last and is ready only when the webhooks answer, so whatever depends on this
component can create pools at once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NotRequired, TypedDict

import pulumi
import pulumi_kubernetes as k8s

import pulumi_nodeless
from nodeless.api.crds import all_crds
from pulumi_nodeless import deployment, network_policy, rbac, settings, webhooks
from pulumi_nodeless.arguments import ArgumentReader
from pulumi_nodeless.names import HOLD_NAMESPACE, IMAGE_REPOSITORY, PATCH_FORCE
from pulumi_nodeless.ordering import child_after

NAME: Final = "karpenter"
"""Name of every object of the controller, and of the service account that the IAM role trusts."""
LABELS: Final = {"app.kubernetes.io/name": NAME, "app.kubernetes.io/instance": NAME}
"""Labels of every object, by which the controller's pods are selected."""
GIVEN_NAMESPACES: Final = frozenset({"default", "kube-node-lease", "kube-public", "kube-system"})
"""Namespaces that every cluster has: they are neither made nor deleted."""
DEFAULT_IMAGE: Final = f"{IMAGE_REPOSITORY}:{pulumi_nodeless.__version__}"
"""The released image of this version."""


class ControllerArgs(TypedDict):
    """How the controller is installed."""

    cluster_name: str
    """Name of the cluster for which it launches nodes."""
    cluster_endpoint: pulumi.Input[str]
    """URL of the API server that the nodes join."""
    role_arn: NotRequired[pulumi.Input[str]]
    """ARN of the IAM role that its service account assumes (IRSA). Omit it where EKS Pod Identity provides
    the role."""
    default_instance_profile: pulumi.Input[str]
    """Instance profile of node templates that set none."""
    namespace: NotRequired[str]
    """Namespace of the controller. It is created here, unless every cluster has it (kube-system, for
    example). Default: karpenter."""
    image: NotRequired[pulumi.Input[str]]
    """Image of the controller, preferably by digest. Default: the released image of this version."""
    replicas: NotRequired[int]
    """Number of replicas, of which one is the leader. Default: 2."""
    cpu: NotRequired[str]
    """CPU request and limit of each replica. Default: 1."""
    memory: NotRequired[str]
    """Memory request and limit of each replica. Default: 1Gi."""
    log_level: NotRequired[str]
    """debug, info, warn or error. Default: info."""
    settings: NotRequired[Mapping[str, pulumi.Input[str]]]
    """Additional keys of the ConfigMap karpenter-global-settings, for example batchMaxDuration."""
    environment: NotRequired[Mapping[str, pulumi.Input[str]]]
    """Additional environment variables of the container."""
    network_policy: NotRequired[bool]
    """Whether to create a NetworkPolicy that lets only API servers, metrics scrapers and probes reach the
    controller's pods. Default: true."""
    webhook_cidrs: NotRequired[Sequence[str]]
    """CIDR blocks of the API servers, from which the NetworkPolicy allows traffic to the webhook. Default:
    all addresses."""
    aws_tags: NotRequired[Mapping[str, str]]
    """Tags of everything that the controller creates in AWS."""
    shared_cluster: NotRequired[bool]
    """Whether something else in the cluster may use the same custom resource definitions (EKS Auto Mode,
    Karpenter) or the same namespace. These then stay when the component is destroyed, since all of their
    objects would be deleted with them. Default: false."""


@dataclass(frozen=True, slots=True)
class ControllerOptions:
    """The arguments of the controller, checked and with defaults."""

    cluster_name: str
    namespace: str
    image: pulumi.Input[str]
    replicas: int
    cpu: str
    memory: str
    log_level: str
    settings: dict[str, Any]
    environment: dict[str, Any]
    network_policy: bool
    webhook_cidrs: tuple[str, ...]
    aws_tags: dict[str, str]
    shared_cluster: bool

    @classmethod
    def read(cls, args: ControllerArgs) -> "ControllerOptions":
        """Checks the arguments.

        Raises:
            ArgumentError: with every fault found.
        """
        reader = ArgumentReader("Controller", args, ControllerArgs)
        options = cls(
            cluster_name=reader.cluster_name(),
            namespace=reader.text("namespace", NAME),
            image=reader.value("image", DEFAULT_IMAGE),
            replicas=reader.integer("replicas", 2, 1, 5),
            cpu=reader.text("cpu", "1"),
            memory=reader.text("memory", "1Gi"),
            log_level=reader.choice("log_level", settings.LOG_LEVELS, "info"),
            settings=reader.text_mapping("settings"),
            environment=reader.text_mapping("environment"),
            network_policy=reader.flag("network_policy", True),
            webhook_cidrs=reader.networks("webhook_cidrs"),
            aws_tags=reader.tags("aws_tags"),
            shared_cluster=reader.flag("shared_cluster", False),
        )
        for key in sorted(set(options.settings) & set(settings.FIXED_SETTINGS)):
            reader.report(f"settings.{key}", "follows from the other arguments", "leave it out")
        for key in sorted(set(options.environment) & deployment.RESERVED_ENVIRONMENT):
            reader.report(f"environment.{key}", "is set by the component", "leave it out")
        reader.check()
        return options


class Controller(pulumi.ComponentResource):
    """The nodeless controller, installed in the cluster and ready."""

    namespace: pulumi.Output[str]
    """Namespace of the controller, available once it exists."""
    service_account: pulumi.Output[str]
    """Name of the controller's service account."""
    image: pulumi.Output[str]
    """Image of the controller: by digest where it was built here or given by digest."""

    def __init__(self, name: str, args: ControllerArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        self._name = name
        self._options = options = ControllerOptions.read(args)
        super().__init__("nodeless:index:Controller", name, {}, opts)
        self._opts = pulumi.ResourceOptions(parent=self)
        self._shared = pulumi.ResourceOptions(parent=self, retain_on_delete=options.shared_cluster or None)
        self._given = opts
        self._labels = LABELS
        # A pod waits for what the Deployment's own spec does not mention, too.
        self._before_pods: list[pulumi.Resource] = []
        self.namespace = self._namespace()
        self._definitions()
        self._role = args.get("role_arn")
        account = self._service_account(self._role)
        self._rights()
        data = settings.global_settings(
            options.cluster_name,
            args["cluster_endpoint"],
            args["default_instance_profile"],
            options.settings,
            options.aws_tags,
        )
        self._config_maps(data)
        self._service_and_webhooks()
        if options.network_policy:
            self._before_pods.append(
                k8s.networking.v1.NetworkPolicy(
                    f"{name}-network-policy",
                    metadata=self._metadata(NAME),
                    spec=network_policy.network_policy_spec(self._labels, options.webhook_cidrs),
                    opts=self._opts,
                )
            )
        self._pods(data)
        self.service_account = account.metadata.apply(lambda metadata: str(metadata.name))
        self.image = pulumi.Output.from_input(options.image)
        self.register_outputs(
            {"namespace": self.namespace, "serviceAccount": self.service_account, "image": self.image}
        )

    def _namespace(self) -> pulumi.Output[str]:
        """The name of the controller's namespace, which is made unless every cluster has it."""
        name = self._options.namespace
        if name in GIVEN_NAMESPACES:
            return pulumi.Output.from_input(name)
        made = k8s.core.v1.Namespace(
            f"{self._name}-namespace",
            metadata=k8s.meta.v1.ObjectMetaArgs(name=name, labels=self._labels),
            opts=self._shared,
        )
        return made.metadata.apply(lambda metadata: str(metadata.name))

    def _metadata(self, name: str, **more: Any) -> k8s.meta.v1.ObjectMetaArgs:
        labels = {**self._labels, **more.pop("labels", {})}
        return k8s.meta.v1.ObjectMetaArgs(name=name, namespace=self.namespace, labels=labels, **more)

    def _cluster_metadata(self, name: str, **more: str) -> k8s.meta.v1.ObjectMetaArgs:
        return k8s.meta.v1.ObjectMetaArgs(name=name, labels={**self._labels, **more})

    def _definitions(self) -> None:
        for definition in all_crds():
            crd = definition["metadata"]["name"]
            self._before_pods.append(
                k8s.apiextensions.v1.CustomResourceDefinition(
                    f"{self._name}-crd-{crd}",
                    metadata=taken_over(definition["metadata"]),
                    spec=definition["spec"],
                    opts=self._shared,
                )
            )

    def _service_account(self, role_arn: pulumi.Input[str] | None) -> k8s.core.v1.ServiceAccount:
        annotations = None if role_arn is None else {"eks.amazonaws.com/role-arn": role_arn}
        account = k8s.core.v1.ServiceAccount(
            f"{self._name}-service-account",
            metadata=self._metadata(NAME, annotations=annotations),
            opts=self._opts,
        )
        self._before_pods.append(account)
        return account

    def _rights(self) -> None:
        subject = k8s.rbac.v1.SubjectArgs(kind="ServiceAccount", name=NAME, namespace=self.namespace)
        for name, rules in ((f"{NAME}-core", rbac.CORE_RULES), (NAME, rbac.CLOUD_RULES)):
            role = self._cluster_role(name, rules)
            binding = k8s.rbac.v1.ClusterRoleBinding(
                f"{self._name}-cluster-binding-{name}",
                metadata=self._cluster_metadata(name),
                role_ref=_role_ref("ClusterRole", name),
                subjects=[subject],
                opts=pulumi.ResourceOptions(parent=self, depends_on=[role]),
            )
            self._before_pods.extend([role, binding])
        self._cluster_role(
            f"{NAME}-admin", rbac.ADMIN_RULES, **{"rbac.authorization.k8s.io/aggregate-to-admin": "true"}
        )
        for name, space, rules in (
            (NAME, self.namespace, rbac.namespace_rules(f"{NAME}-cert")),
            (f"{NAME}-dns", "kube-system", rbac.DNS_RULES),
            (f"{NAME}-holds", HOLD_NAMESPACE, rbac.HOLD_RULES),
        ):
            metadata = k8s.meta.v1.ObjectMetaArgs(name=name, namespace=space, labels=self._labels)
            local = k8s.rbac.v1.Role(
                f"{self._name}-role-{name}",
                metadata=metadata,
                rules=[rule.args() for rule in rules],
                opts=self._opts,
            )
            local_binding = k8s.rbac.v1.RoleBinding(
                f"{self._name}-binding-{name}",
                metadata=metadata,
                role_ref=_role_ref("Role", name),
                subjects=[subject],
                opts=pulumi.ResourceOptions(parent=self, depends_on=[local]),
            )
            self._before_pods.extend([local, local_binding])

    def _cluster_role(self, name: str, rules: Sequence[rbac.Rule], **labels: str) -> k8s.rbac.v1.ClusterRole:
        return k8s.rbac.v1.ClusterRole(
            f"{self._name}-cluster-role-{name}",
            metadata=self._cluster_metadata(name, **labels),
            rules=[rule.args() for rule in rules],
            opts=self._opts,
        )

    def _config_maps(self, data: Mapping[str, Any]) -> None:
        labels = {webhooks.PART_OF_LABEL: webhooks.PART_OF}
        for name, content in (
            (settings.GLOBAL_SETTINGS, data),
            (settings.LOGGING, settings.logging_settings(self._options.log_level)),
        ):
            self._before_pods.append(
                k8s.core.v1.ConfigMap(
                    f"{self._name}-{name}",
                    metadata=self._metadata(name, labels=labels),
                    data=content,
                    opts=self._opts,
                )
            )

    def _service_and_webhooks(self) -> None:
        # Made empty: the controller fills in the certificate and owns the data.
        secret = k8s.core.v1.Secret(
            f"{self._name}-certificate", metadata=self._metadata(f"{NAME}-cert"), opts=self._opts
        )
        service = k8s.core.v1.Service(
            f"{self._name}-service",
            # Its pods come later, and they need what depends on it: waiting for endpoints would never end.
            metadata=self._metadata(NAME, annotations={"pulumi.com/skipAwait": "true"}),
            spec=k8s.core.v1.ServiceSpecArgs(
                type="ClusterIP",
                selector=self._labels,
                ports=[
                    _port("http-metrics", deployment.METRICS_PORT),
                    _port("https-webhook", webhooks.SERVICE_PORT),
                ],
            ),
            opts=self._opts,
        )
        self._before_pods.extend([secret, service])
        # After the ConfigMaps: nobody answers yet when those are created.
        opts = pulumi.ResourceOptions(parent=self, depends_on=list(self._before_pods))
        for name in webhooks.MUTATING_NAMES:
            self._before_pods.append(
                k8s.admissionregistration.v1.MutatingWebhookConfiguration(
                    f"{self._name}-{name}",
                    metadata=self._cluster_metadata(name),
                    webhooks=[webhooks.mutating(name, NAME, self._options.namespace)],
                    opts=opts,
                )
            )
        for name in webhooks.VALIDATING_NAMES:
            self._before_pods.append(
                k8s.admissionregistration.v1.ValidatingWebhookConfiguration(
                    f"{self._name}-{name}",
                    metadata=self._cluster_metadata(name),
                    webhooks=[webhooks.validating(name, NAME, self._options.namespace)],
                    opts=opts,
                )
            )

    def _pods(self, data: Mapping[str, Any]) -> None:
        selector = k8s.meta.v1.LabelSelectorArgs(match_labels=self._labels)
        budget = k8s.policy.v1.PodDisruptionBudget(
            f"{self._name}-disruption-budget",
            metadata=self._metadata(NAME),
            spec=k8s.policy.v1.PodDisruptionBudgetSpecArgs(max_unavailable=1, selector=selector),
            opts=self._opts,
        )
        spec = deployment.deployment_spec(
            deployment.PodOptions(
                name=NAME,
                image=self._options.image,
                replicas=self._options.replicas,
                cpu=self._options.cpu,
                memory=self._options.memory,
                labels=self._labels,
                environment=self._options.environment,
                checksum=pulumi.Output.from_input(dict(data)).apply(settings.checksum),
                identity=pulumi.Output.from_input(self._role or "").apply(
                    lambda role: settings.checksum({"role": role})
                ),
            )
        )
        k8s.apps.v1.Deployment(
            f"{self._name}-deployment",
            metadata=self._metadata(NAME),
            spec=spec,
            opts=child_after(self, self._given, [budget, *self._before_pods]),
        )


def taken_over(metadata: Mapping[str, Any]) -> k8s.meta.v1.ObjectMetaArgs:
    """The metadata of a definition that becomes ours whoever installed it.

    Karpenter's chart leaves its definitions behind when it is uninstalled, with its name as the owner of
    every field; without the annotation pulumi-kubernetes stops at the conflict of server-side apply.
    """
    annotations = {**metadata.get("annotations", {}), PATCH_FORCE: "true"}
    return k8s.meta.v1.ObjectMetaArgs(name=metadata["name"], annotations=annotations)


def _role_ref(kind: str, name: str) -> k8s.rbac.v1.RoleRefArgs:
    return k8s.rbac.v1.RoleRefArgs(api_group="rbac.authorization.k8s.io", kind=kind, name=name)


def _port(name: str, port: int) -> k8s.core.v1.ServicePortArgs:
    return k8s.core.v1.ServicePortArgs(name=name, port=port, target_port=name, protocol="TCP")

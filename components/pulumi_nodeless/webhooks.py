"""The five webhook configurations: which requests the API server asks the controller about.

Pure tables and builders; `controller` registers them. The CA bundle is left out, since the controller
makes its own certificate and fills the bundle in. Requests about pools fail closed: an unchecked pool
launches machines. The one about the controller's own settings fails open: otherwise settings that keep
the controller from starting could not be repaired.
"""

from collections.abc import Sequence
from typing import Final

import pulumi_kubernetes as k8s

MUTATING_NAMES: Final = ("defaulting.webhook.karpenter.sh", "defaulting.webhook.karpenter.k8s.aws")
SETTINGS_NAME: Final = "validation.webhook.config.karpenter.sh"
VALIDATING_NAMES: Final = (
    "validation.webhook.karpenter.sh",
    "validation.webhook.karpenter.k8s.aws",
    SETTINGS_NAME,
)
PART_OF_LABEL: Final = "app.kubernetes.io/part-of"
PART_OF: Final = "karpenter"
SERVICE_PORT: Final = 443

_admission = k8s.admissionregistration.v1
_KINDS: Final = {
    "karpenter.sh": (("v1alpha5", "provisioners"), ("v1", "nodepools")),
    "karpenter.k8s.aws": (("v1alpha1", "awsnodetemplates"), ("v1", "ec2nodeclasses")),
}


OPERATIONS: Final = ("CREATE", "UPDATE")


def requests(name: str) -> tuple[tuple[str, str, str, str], ...]:
    """What the configuration `name` is asked about: group, version, resource and scope of each kind."""
    if name == SETTINGS_NAME:
        return (("", "v1", "configmaps", "Namespaced"),)
    group = name.split(".webhook.")[1]
    return tuple((group, version, resource, "Cluster") for version, resource in _KINDS[group])


def failure_policy(name: str) -> str:
    """Requests about pools fail closed; those about the controller's own settings fail open."""
    return "Ignore" if name == SETTINGS_NAME else "Fail"


def rules(name: str) -> Sequence[k8s.admissionregistration.v1.RuleWithOperationsArgs]:
    """The requests of the configuration `name`, for the Kubernetes provider."""
    return [_rule(*request) for request in requests(name)]


def _rule(
    group: str, version: str, resource: str, scope: str
) -> k8s.admissionregistration.v1.RuleWithOperationsArgs:
    return _admission.RuleWithOperationsArgs(
        api_groups=[group],
        api_versions=[version],
        resources=[resource],
        operations=[*OPERATIONS],
        scope=scope,
    )


def path(name: str) -> str:
    """Where the controller answers for the configuration `name`, for example /validate/karpenter.sh."""
    verb, group = name.split(".webhook.")
    return f"/{'default' if verb == 'defaulting' else 'validate'}/{group}"


def client_config(
    name: str, service: str, namespace: str
) -> k8s.admissionregistration.v1.WebhookClientConfigArgs:
    """The controller's Service; the CA bundle is the controller's to fill in."""
    return _admission.WebhookClientConfigArgs(
        service=_admission.ServiceReferenceArgs(
            name=service, namespace=namespace, port=SERVICE_PORT, path=path(name)
        )
    )


def mutating(name: str, service: str, namespace: str) -> k8s.admissionregistration.v1.MutatingWebhookArgs:
    """The defaulting webhook `name`."""
    return _admission.MutatingWebhookArgs(
        name=name,
        admission_review_versions=["v1"],
        client_config=client_config(name, service, namespace),
        failure_policy=failure_policy(name),
        side_effects="None",
        rules=rules(name),
    )


def validating(name: str, service: str, namespace: str) -> k8s.admissionregistration.v1.ValidatingWebhookArgs:
    """The validating webhook `name`."""
    settings = name == SETTINGS_NAME
    return _admission.ValidatingWebhookArgs(
        name=name,
        admission_review_versions=["v1"],
        client_config=client_config(name, service, namespace),
        failure_policy=failure_policy(name),
        side_effects="None",
        rules=rules(name),
        object_selector=_settings_selector() if settings else None,
    )


def _settings_selector() -> k8s.meta.v1.LabelSelectorArgs:
    return k8s.meta.v1.LabelSelectorArgs(match_labels={PART_OF_LABEL: PART_OF})

"""CoreDNS as an EKS add-on, on Fargate or on nodes.

EKS calls the add-on active when its pods run, and the engine waits for that. So it comes after what its pods
run on: the Fargate profiles (`fargate` makes it), or the pools, from which the controller then launches the
first node for it (`environment`). EKS knows one such add-on of a cluster, so it moves between the two places
in the state by aliases, and is changed in place.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import pulumi
import pulumi_aws as aws

_ADDON: Final = "coredns"
_ON_FARGATE: Final = {"computeType": "Fargate"}


def coredns_on_fargate(
    name: str,
    profiles: pulumi.Resource,
    given: pulumi.ResourceOptions | None,
    cluster_name: pulumi.Input[str],
    tags: Mapping[str, str],
    after: Sequence[pulumi.Resource],
    kubernetes_version: pulumi.Input[str] | None = None,
) -> aws.eks.Addon:
    """Makes the add-on for Fargate.

    Args:
        name: logical name.
        profiles: the component that has the Fargate profiles.
        given: the options of that component.
        cluster_name: name of the cluster.
        tags: tags of the add-on.
        after: the profiles; a pod made before its profile is active stays pending for ever.
        kubernetes_version: that of the cluster, for which the add-on's version is chosen.
    """
    above = None if given is None else given.parent
    aliases = [] if above is None else [pulumi.Alias(parent=above)]
    opts = pulumi.ResourceOptions(parent=profiles, depends_on=list(after), aliases=aliases)
    return _addon(name, cluster_name, tags, opts, _ON_FARGATE, kubernetes_version)


def coredns_on_nodes(
    name: str,
    parent: pulumi.Resource,
    profiles: pulumi.Resource,
    cluster_name: pulumi.Input[str],
    tags: Mapping[str, str],
    after: Sequence[pulumi.Resource],
    kubernetes_version: pulumi.Input[str] | None = None,
) -> aws.eks.Addon:
    """Makes the add-on for nodes.

    Args:
        name: logical name, the same as on Fargate.
        parent: the component above that of the profiles.
        profiles: the component that has the Fargate profiles.
        cluster_name: name of the cluster.
        tags: tags of the add-on.
        after: what makes nodes.
        kubernetes_version: that of the cluster, for which the add-on's version is chosen.
    """
    aliases = [pulumi.Alias(parent=profiles)]
    opts = pulumi.ResourceOptions(parent=parent, depends_on=list(after), aliases=aliases)
    # Deleted before the pools, it leaves its pods to those that still drain.
    return _addon(name, cluster_name, tags, opts, {}, kubernetes_version, preserve=True)


def _addon(
    name: str,
    cluster_name: pulumi.Input[str],
    tags: Mapping[str, str],
    opts: pulumi.ResourceOptions,
    configuration: Mapping[str, Any],
    kubernetes_version: pulumi.Input[str] | None,
    *,
    preserve: bool | None = None,
) -> aws.eks.Addon:
    return aws.eks.Addon(
        name,
        cluster_name=cluster_name,
        addon_name=_ADDON,
        addon_version=_version_for(kubernetes_version, opts.parent),
        # An empty one is said as well: left out, the provider would keep the one before.
        configuration_values=json.dumps(configuration),
        resolve_conflicts_on_create="OVERWRITE",
        resolve_conflicts_on_update="OVERWRITE",
        preserve=preserve,
        tags=tags,
        opts=opts,
    )


def _version_for(
    kubernetes_version: pulumi.Input[str] | None, parent: pulumi.Resource | None
) -> pulumi.Output[str] | None:
    """The add-on's version that EKS installs by default; without one an add-on stays at its first version."""
    if kubernetes_version is None:
        return None
    found = aws.eks.get_addon_version_output(
        addon_name=_ADDON,
        kubernetes_version=kubernetes_version,
        opts=pulumi.InvokeOutputOptions(parent=parent),
    )
    return found.apply(lambda answer: answer.version)
